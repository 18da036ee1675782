// Kernels drawn at random, as users write them: all ops and dtypes, and products in loops of the
// grid, of the body and of both, summed in carries, scratch and outputs; of all widths, stages,
// persistent or not, specialised or not. Each is lowered for all architectures, or refused for a
// reason of the list; some of them are compiled. PALLADIUM_TEST_CALLS=10000 tries half as many,
// 500-600 those numbers.
#include <algorithm>
#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>

#include "codegen/base/format.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/error.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace lowering_of_random_kernels {
namespace {

constexpr int architectures[] = {75, 80, 86, 89, 90, 100, 120};

// ---- products in loops

enum class Sum { carry, output, registers, shared };

struct Products {
  DType type;
  int m, n, k, block_m, block_n, block_k;
  Sum sum;
  bool by_axis = false, inner_loop = false, second = false, converts = false, scales = false,
       trans_b = false;

  std::string text() const {
    return fmt::format("{} {}x{}x{} in blocks of {}x{}x{}, sum {}{}{}{}{}{}{}", type.name(), m, n,
                       k, block_m, block_n, block_k, static_cast<int>(sum),
                       by_axis ? ", over an axis" : "", inner_loop ? ", in a loop" : "",
                       second ? ", a second product" : "", converts ? ", converted" : "",
                       scales ? ", scaled" : "", trans_b ? ", b transposed" : "");
  }
};

Products draw_products(Random& random) {
  Products p = {};
  p.type = random.pick({f16, f16, bf16, bf16, f32, f8e4m3, i8});
  p.block_m = random.chance(5) ? 256 : random.pick({16, 32, 64, 64, 128, 128});
  p.block_n = random.chance(5) ? 256 : random.pick({8, 16, 32, 64, 64, 128, 128});
  p.block_k = random.pick({16, 32, 64, 64, 128});
  p.m = p.block_m * random.between(1, 3);
  p.n = p.block_n * random.between(1, 3);
  p.n -= random.pick({0, 0, 0, 1});
  p.sum = random.pick({Sum::carry, Sum::output, Sum::registers, Sum::shared});
  p.by_axis = random.chance(50);
  p.inner_loop = !p.by_axis || random.chance(20);
  p.second = p.type.bytes() == 2 && random.chance(40);
  p.converts = random.chance(20);
  p.scales = random.chance(25);
  p.trans_b = !p.second && random.chance(40);
  if (p.second) p.n = p.block_n = p.block_k = random.pick({32, 64, 64, 128});
  p.k = p.block_k * random.between(1, 8);
  return p;
}

// A sum of products of blocks along K, and what stands around them.
graph::Graph products(const Products& p, const CompilerParams& params) {
  const DType sum_type = p.type == i8 ? i32 : f32;
  const DType a_type = p.converts && p.type.is_float() && p.type.bytes() == 2 ? i8 : p.type;
  const int steps = p.k / p.block_k, depth = p.by_axis ? p.block_k : p.k;
  const auto term = [=](const Ref& a, const Ref& b, const Index& from) {
    const auto rows = ds(from, p.block_k);
    Value x = a[{_, rows}];
    if (a_type != p.type) x = x.astype(p.type);
    const Value y = p.trans_b ? b[{_, rows}] : b[{rows, _}];
    const Value s = dot(x, y,
                        {.trans_b = p.trans_b,
                         .precision = p.type == f32 ? Precision::tf32 : Precision::ieee,
                         .preferred_element_type = sum_type});
    return p.second ? dot(s.astype(p.type), y, {.preferred_element_type = sum_type}) : s;
  };
  const auto scaled = [=](const Value& sum, const Index& i) {
    return p.scales && sum_type == f32 ? sum * (f32(i) * 0.25f + 1.f) : sum;
  };
  const auto body = [=](Ref a, Ref b, Ref o, Ref scratch) {
    const Ref held = p.sum == Sum::output || p.sum == Sum::carry ? o : scratch;
    const Value zero = zeros({p.block_m, p.block_n}, sum_type);
    const Index step = p.by_axis ? program_id(2) : Index(0);
    const int inner = p.by_axis ? (p.inner_loop ? 2 : 1) : steps;
    if (p.sum == Sum::carry) {
      const Value sum = loop(
          0, inner,
          [&](Index i, Value acc) {
            return scaled(acc, i) + term(a, b, p.by_axis ? Index(0) : i * p.block_k);
          },
          zero);
      if (!p.by_axis) return void(o[_] = sum);
      when(step == 0, [&] { o[_] = zero; });
      o[_] += sum;
      return;
    }
    when(step == 0, [&] { held[_] = zero; });
    const auto add = [&](const Index& i) {
      held[_] = scaled(held[_], i) + term(a, b, p.by_axis ? Index(0) : i * p.block_k);
    };
    if (inner == 1)
      add(step);
    else
      loop(0, inner, [&](Index i) { add(i); });
    if (p.sum != Sum::output) when(step == (p.by_axis ? steps - 1 : 0), [&] { o[_] = held[_]; });
  };
  const auto spec = [=](bool rows, int block, bool k_last) {
    const auto map = [=](Index i, Index j, Index k) {
      const Index at = rows ? i : j, along = p.by_axis ? k : Index(0);
      return k_last ? Indices{at, along} : Indices{along, at};
    };
    return k_last ? BlockSpec{{block, depth}, map, {.fill = 0}}
                  : BlockSpec{{depth, block}, map, {.fill = 0}};
  };
  const Shape sum_shape{p.block_m, p.block_n};
  return traced(
      body,
      {.name = "products",
       .out_type = ShapeDtype{{p.m, p.n}, sum_type},
       .grid = {cdiv(p.m, p.block_m), cdiv(p.n, p.block_n), p.by_axis ? steps : 1},
       .in_specs = {spec(true, p.block_m, true), spec(false, p.block_n, p.trans_b)},
       .out_specs = {{{p.block_m, p.block_n},
                      [](Index i, Index j, Index) {
                        return Indices{i, j};
                      }}},
       .scratch_types = {p.sum == Sum::shared ? gpu::SMEM(sum_shape, sum_type)
                                              : gpu::REGS(sum_shape, sum_type)},
       .compiler_params = params},
      {array({p.m, p.k}, a_type), array(p.trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, p.type)});
}

// ---- all of them

struct Drawn {
  graph::Graph graph;
  std::string text;
  bool multiplies = false;
};

Drawn drawn(std::uint64_t seed) {
  Random random(seed);
  CompilerParams params{.num_warps = random.pick({0, 0, 4, 8, 16}),
                        .num_stages = random.pick({0, 0, 1, 2, 3, 5}),
                        .persistent = random.chance(30)};
  if (random.chance(30)) params.warp_specialize = random.chance(50);
  const std::string options =
      fmt::format("{} warps, {} stages{}{}", params.num_warps, params.num_stages,
                  params.persistent ? ", persistent" : "",
                  !params.warp_specialize   ? ""
                  : *params.warp_specialize ? ", specialized"
                                            : ", not specialized");
  if (random.chance(60)) {
    const Products p = draw_products(random);
    return {products(p, params), p.text() + ", " + options, true};
  }
  test::RandomOptions of;
  of.max_elements = random.pick({512, 4096, 16384});
  of.aliases = random.chance(30);
  graph::Graph g = random_kernel(seed, of).graph;
  g.persistent = params.persistent && g.cluster.empty();
  for (graph::Body& b : g.bodies) {
    b.num_warps = params.num_warps;
    b.num_stages = params.num_stages;
    b.warp_specialize = params.warp_specialize;
  }
  return {std::move(g), "random kernel, " + options};
}

/// Why a kernel may be refused: it holds more than the architecture has.
bool is_reason(const std::string& message) {
  for (const char* words : {"registers per thread, at most", "bytes of shared memory, sm_"})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

struct Seeds {
  std::uint64_t first, end;
};

Seeds asked() {
  const char* many = std::getenv("PALLADIUM_TEST_CALLS");
  if (many == nullptr) return {1, 101};
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(many, &end, 10);
  return *end == '-' ? Seeds{n, std::strtoull(end + 1, nullptr, 10)} : Seeds{1, n / 2 + 1};
}

TEST_CASE("random kernels are lowered for each architecture, or refused for want of room") {
  const auto [first, end] = asked();
  int refused = 0, lowered = 0;
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const Drawn d = drawn(seed);
    for (const int cc : architectures) {
      INFO("seed " << seed << " for sm_" << cc << ": " << d.text);
      try {
        (void)cuda::emit(d.graph, {.compute_capability = cc});
        ++lowered;
      } catch (const CompileError& e) {
        ++refused;
        INFO(e.what());
        CHECK(is_reason(e.what()));
      } catch (const InternalError& e) {
        FAIL_CHECK(std::string(e.what()).substr(0, 400));
      }
    }
  }
  CAPTURE(refused, lowered);
  CHECK(refused * 97 <= lowered * 3);
}

TEST_CASE("copies fill memory in which the program before had what threads handed on") {
  const Products p{.type = f8e4m3,
                   .m = 128,
                   .n = 383,
                   .k = 384,
                   .block_m = 128,
                   .block_n = 128,
                   .block_k = 128,
                   .sum = Sum::registers,
                   .inner_loop = true};
  for (const int cc : architectures) {
    CAPTURE(cc);
    CHECK(cuda::emit(products(p, {.persistent = true}), {.compute_capability = cc}).text.size() >
          0);
  }
}

TEST_CASE("ptxas takes random kernels, those with products first") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const char* const archs[] = {"sm_80", "sm_90a", "sm_100a", "sm_90a", "sm_120a"};
  const auto [first, end] = asked();
  const std::uint64_t most = std::max<std::uint64_t>(20, (end - first) * 6 / 100);
  std::uint64_t compiled = 0;
  for (const bool multiplies : {true, false})
    for (std::uint64_t seed = first; seed < end && compiled < most; ++seed) {
      const Drawn d = drawn(seed);
      if (d.multiplies != multiplies) continue;
      const char* const arch = archs[seed % std::size(archs)];
      INFO("seed " << seed << " for " << arch << ": " << d.text);
      try {
        const std::string text =
            cuda::emit(d.graph, {.compute_capability = compute_capability_of(arch)}).text;
        const nvrtc::Result r = nvrtc::compile(
            {.source = device::prelude(device::Half::cuda, text) + text, .arch = arch});
        INFO(r.log);
        CHECK(r.ok);
        ++compiled;
      } catch (const CompileError& e) {
        CHECK(is_reason(e.what()));
      }
    }
  CHECK((compiled == most || end - first < 2 * most));
}

}  // namespace
}  // namespace lowering_of_random_kernels
