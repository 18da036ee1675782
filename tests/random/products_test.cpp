// Matrix products drawn at random: dtypes, sizes that blocks do not divide, transpositions, widths
// of the program, stages, loops of an axis of the grid or of the body. Interpreter and emulator of
// sm_90a agree, races on. PALLADIUM_TEST_CALLS=10000 tries 500, a twentieth, 500-600 those from 500
// to 599.
#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "codegen/base/format.hpp"
#include "codegen/cuda/emit.hpp"
#include "palladium/error.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Drawn {
  DType a, b;
  Precision precision = ieee;
  int m, n, k, block_m, block_n, block_k, warps, stages;
  bool trans_a, trans_b, by_axis, scales, adds;
  std::optional<bool> specialized;

  std::string text() const {
    return fmt::format(
        "{} by {}{}, {}x{}x{} in blocks of {}x{}x{}{}{}, {} warps, {} stages{}{}{}{}", a.name(),
        b.name(), precision == tf32 ? " as tf32" : "", m, n, k, block_m, block_n, block_k,
        trans_a ? ", a transposed" : "", trans_b ? ", b transposed" : "", warps, stages,
        by_axis ? ", over an axis" : "", scales ? ", scaled" : "", adds ? ", with an epilogue" : "",
        !specialized   ? ""
        : *specialized ? ", specialized"
                       : ", not specialized");
  }
};

Drawn drawn(std::uint64_t seed) {
  Random random(seed);
  Drawn d = {};
  d.a = d.b = random.pick({f16, bf16, f32, f8e4m3, f8e5m2, i8, u8});
  if (d.a.bytes() == 1 && random.chance(50))
    d.b = d.a.is_float() ? random.pick({f8e4m3, f8e5m2}) : random.pick({i8, u8});
  if (d.a == f32) d.precision = tf32;
  d.warps = random.pick({0, 4, 4, 8, 8, 16});
  d.block_m = d.warps == 16 ? 256 : random.pick({64, 64, 128});
  d.block_n = random.pick({8, 16, 24, 40, 64, 64, 72, 96, 128});
  d.block_k = random.pick({16, 32, 64, 128}) / d.a.bytes();
  d.block_k *= random.pick({1, 1, 2});
  if (random.chance(15)) d.block_k = random.pick({5, 20, 33});
  const auto extent = [&](int block, int blocks) {
    const int whole = block * random.between(1, blocks);
    return std::max(1, whole - random.pick({0, 0, 1, block / 2}));
  };
  d.m = extent(d.block_m, 2);
  d.n = extent(d.block_n, 2);
  d.k = extent(d.block_k, 6);
  d.trans_a = random.chance(30);
  d.trans_b = random.chance(60);
  d.by_axis = random.chance(50);
  d.scales = random.chance(20);
  d.adds = random.chance(30);
  d.stages = random.pick({0, 0, 1, 2, 3, 5});
  if (random.chance(30)) d.specialized = random.chance(70);
  return d;
}

graph::Graph kernel(const Drawn& d) {
  const DType sum_type = d.a.is_float() ? f32 : i32;
  const int iterations = (d.k + d.block_k - 1) / d.block_k,
            depth = d.by_axis ? d.block_k : iterations * d.block_k;
  const auto product = [=](const Value& x, const Value& y) {
    return dot(x, y, {.trans_a = d.trans_a, .trans_b = d.trans_b, .precision = d.precision});
  };
  const auto next = [=](const Value& sum, const Value& x, const Value& y) {
    return (d.scales ? sum * 2 : sum) + product(x, y);
  };
  const auto finished = [=](const Value& sum) {
    return d.adds ? sum + max(sum, {.axis = {1}, .keepdims = true}) : sum;
  };
  const auto body = [=](Ref a, Ref b, Ref o) {
    const Value zero = zeros({d.block_m, d.block_n}, sum_type);
    if (d.by_axis) {
      const Value iteration = program_id(2);
      when(iteration == 0, [&] { o[_] = zero; });
      o[_] = next(o[_], a[_], b[_]);
      if (d.adds) when(iteration == iterations - 1, [&] { o[_] = finished(o[_]); });
    } else {
      const auto part = [&](Ref x, bool last, Index now) -> Value {
        const Slice at = ds(now * d.block_k, d.block_k);
        return last ? x[{_, at}] : x[{at, _}];
      };
      o[_] = finished(loop(
          0, iterations,
          [&](Index i, Value sum) {
            return next(sum, part(a, !d.trans_a, i), part(b, d.trans_b, i));
          },
          zero));
    }
  };
  const auto spec = [=](bool k_last, int block, bool rows) {
    const auto map = [=](Index i, Index j, Index k) {
      const Index first = rows ? i : j, along = d.by_axis ? k : Index(0);
      return k_last ? Indices{first, along} : Indices{along, first};
    };
    return k_last ? BlockSpec{{block, depth}, map, {.fill = 0}}
                  : BlockSpec{{depth, block}, map, {.fill = 0}};
  };
  return traced(body,
                {.name = "product",
                 .out_type = ShapeDtype{{d.m, d.n}, sum_type},
                 .grid = {cdiv(d.m, d.block_m), cdiv(d.n, d.block_n), d.by_axis ? iterations : 1},
                 .in_specs = {spec(!d.trans_a, d.block_m, true), spec(d.trans_b, d.block_n, false)},
                 .out_specs = {{{d.block_m, d.block_n},
                                [](Index i, Index j, Index) {
                                  return Indices{i, j};
                                }}},
                 .compiler_params = {.dimension_semantics = {parallel, parallel, sequential},
                                     .num_warps = d.warps,
                                     .num_stages = d.stages,
                                     .warp_specialize = d.specialized}},
                {array(d.trans_a ? Shape{d.k, d.m} : Shape{d.m, d.k}, d.a),
                 array(d.trans_b ? Shape{d.n, d.k} : Shape{d.k, d.n}, d.b)});
}

struct Seeds {
  std::uint64_t first, end;
};

Seeds asked() {
  const char* many = std::getenv("PALLADIUM_TEST_CALLS");
  if (many == nullptr) return {1, 9};
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(many, &end, 10);
  return *end == '-' ? Seeds{n, std::strtoull(end + 1, nullptr, 10)} : Seeds{1, n / 20 + 1};
}

}  // namespace

TEST_CASE("random products of all types that tensor cores have agree on sm_90a") {
  int by_wgmma = 0, refused = 0;
  const auto [first, end] = asked();
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const Drawn d = drawn(seed);
    INFO("seed " << seed << ": " << d.text());
    try {
      const graph::Graph g = kernel(d);
      const std::string text = cuda::emit(g, {.compute_capability = 90}).text;
      by_wgmma += text.find("pl::wgmma_m64") != text.npos;
      for (const std::string& found : unpinned_registers(text)) FAIL_CHECK(found);
      CHECK(on_all_targets(g, {}, 90) == "");
    } catch (const CompileError& e) {  // too large for a program of so many warps
      ++refused;
      CHECK(std::string(e.what()).find("choose") != std::string::npos);
    }
  }
  CHECK(by_wgmma * 3 >= static_cast<int>(end - first) - refused);
}
