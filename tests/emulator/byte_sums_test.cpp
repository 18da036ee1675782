// Sums of 8-bit floats over a long K: tensor cores of sm_90a keep 13 bits of them.
#include <cmath>
#include <cstring>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"
#include "tests/support/wgmma_lint.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Product {
  DType dtype = f8e4m3;
  std::int64_t m = 128, n = 128, k = 128, steps = 16;
  int num_warps = 0;
  bool fast = false;
  std::optional<bool> specialize = {};
  bool whole = false;    // one product of all K
  bool scratch = false;  // summed up in scratch, over an axis of the grid
};

CompilerParams params(const Product& p) {
  return {.num_warps = p.num_warps, .warp_specialize = p.specialize, .fast_accumulation = p.fast};
}

graph::Graph by_axis(const Product& p) {
  PallasCallOptions options{.name = "sum",
                            .out_type = {{p.m, p.n}, f32},
                            .grid = {1, p.steps},
                            .scratch_shapes = {gpu::REGS({p.m, p.n}, f32)},
                            .compiler_params = params(p)};
  options.in_specs = {{{p.m, p.k},
                       [](Index, Index k) {
                         return Indices{0, k};
                       }},
                      {{p.n, p.k}, [](Index, Index k) {
                         return Indices{0, k};
                       }}};
  options.out_specs = {{{p.m, p.n}, [](Index, Index) { return Indices{0, 0}; }}};
  return traced(
      [=](Ref a, Ref b, Ref o, Ref sum) {
        when(program_id(1) == 0, [&] { sum[_] = zeros({p.m, p.n}, f32); });
        sum[_] = sum[_] + dot(a[_], b[_], {.trans_b = true});
        when(program_id(1) == p.steps - 1, [&] { o[_] = sum[_]; });
      },
      options, {array({p.m, p.k * p.steps}, p.dtype), array({p.n, p.k * p.steps}, p.dtype)});
}

graph::Graph graph_of(const Product& p) {
  if (p.scratch) return by_axis(p);
  return traced(
      [=](Ref a, Ref b, Ref o) {
        const auto step = [&](Value i, Value sum) {
          const Slice now = ds(i * p.k, p.k);
          return sum + dot(a[{_, now}], b[{_, now}], {.trans_b = true});
        };
        o[_] = p.whole ? dot(a[_], b[_], {.trans_b = true})
                       : loop(0, p.steps, {}, step, zeros({p.m, p.n}, f32));
      },
      {.name = "sum", .out_type = {{p.m, p.n}, f32}, .compiler_params = params(p)},
      {array({p.m, p.k * p.steps}, p.dtype), array({p.n, p.k * p.steps}, p.dtype)});
}

/// Ones times ones, but for a 16 that comes first: what is added to it later is less than what
/// tensor cores keep beside it, if all is added up by them.
void put_terms(test::Call& call, DType t, double first, double rest) {
  for (std::size_t i : {0, 1}) {
    const std::int64_t columns = call.shapes[i][1];
    for (std::size_t at = 0; at < call.arrays[i].size(); ++at) {
      const bool begins = static_cast<std::int64_t>(at) % columns == 0;
      const Array x = Array::full({1}, f32, begins ? first : rest).astype(t);
      std::memcpy(&call.arrays[i][at], x.data(), 1);
    }
  }
}

/// The largest relative error of what the emulator gives; all elements are the same sum.
double error_of(const Product& p, double first, double rest) {
  const graph::Graph g = graph_of(p);
  Random random(1);
  test::Call call = random_call(g, {}, random, true);
  put_terms(call, p.dtype, first, rest);
  run_emulator(g, {.compute_capability = 90}, call);
  const double right = first * first + static_cast<double>(p.k * p.steps - 1) * rest * rest;
  double most = 0;
  for (std::size_t i = 0; i < call.arrays[2].size(); i += 4) {
    float x = 0;
    std::memcpy(&x, &call.arrays[2][i], 4);
    most = test::worst_of(most, std::abs(x - right) / right);
  }
  return most;
}

std::string remarks(const Product& p) {
  std::string all;
  for (const Remark& r : cuda::lower(graph_of(p), {.compute_capability = 90}).remarks)
    all += r.text + "\n";
  return all;
}

constexpr double small = 0.0625;  // its square beside 256 is less than 2^-13

}  // namespace

TEST_CASE(
    "sums of 8-bit floats over a long K are right by default, and cut short where asked for") {
  for (const DType t : {f8e4m3, f8e5m2})
    for (const bool scratch : {false, true}) {
      CAPTURE(t.name(), scratch);
      CHECK(error_of({.dtype = t, .scratch = scratch}, 16, small) < 2e-3);
      CHECK(error_of({.dtype = t, .fast = true, .scratch = scratch}, 16, small) > 0.02);
    }
}

TEST_CASE("one product of a long K is a sum of parts as well") {
  CHECK(error_of({.k = 512, .steps = 1, .whole = true}, 16, small) < 2e-3);
  CHECK(error_of({.k = 512, .steps = 1, .fast = true, .whole = true}, 16, small) > 5e-3);
}

TEST_CASE("sums of 8-bit floats agree with the interpreter for every shape that warps share") {
  const auto agrees = [](const Product& p) {
    CAPTURE(p.m, p.n, p.k, p.num_warps, p.fast);
    CHECK(on_all_targets(graph_of(p)) == "");
  };
  agrees({.m = 64, .n = 64, .k = 128, .steps = 6, .num_warps = 4});
  agrees({.m = 128, .n = 256, .k = 128, .steps = 20, .num_warps = 8});
  agrees({.m = 128, .n = 256, .k = 128, .steps = 20, .num_warps = 8, .specialize = true});
  agrees({.m = 64, .n = 256, .k = 64, .steps = 5, .num_warps = 8});
  agrees({.m = 256, .n = 128, .k = 128, .steps = 3, .num_warps = 16});
  agrees({.m = 64, .n = 72, .k = 256, .steps = 3});
  agrees({.m = 128, .n = 128, .k = 128, .steps = 8, .scratch = true});
}

TEST_CASE("who adds up sums of 8-bit floats is said, and that it can be left") {
  CHECK_THAT(remarks({}), ContainsSubstring("threads add up every 128 of K in f32"));
  CHECK_THAT(remarks({.fast = true}), !ContainsSubstring("add up"));
  CHECK_THAT(remarks({.dtype = f16, .k = 64}), !ContainsSubstring("add up"));
  CHECK_THAT(remarks({.steps = 1, .whole = true}), !ContainsSubstring("add up"));
}

TEST_CASE("no number among the terms of a sum is none in the sum") {
  const Product p{.k = 32, .steps = 1, .whole = true};
  const graph::Graph g = graph_of(p);
  Random random(1);
  test::Call call = random_call(g, {}, random, true);
  put_terms(call, p.dtype, 1, 1);
  constexpr std::byte nan{0x7f};
  call.arrays[0][5] = call.arrays[1][70] = nan;
  CHECK(call_on_all_targets(g, call, 90) == "");
}

TEST_CASE("a sum that a product has left in flight is pinned before parts are added to it") {
  const graph::Graph g = traced(
      [](Ref a, Ref b, Ref c, Ref o) {
        const Value x = a[_];
        o[_] = dot(x, b[_], {.trans_b = true}) + dot(x, c[_], {.trans_b = true});
      },
      {.name = "two", .out_type = {{64, 32}, f32}},
      {array({64, 32}, f8e4m3), array({32, 32}, f8e4m3), array({32, 32}, f8e4m3)});
  const std::string text = cuda::emit(g, {.compute_capability = 90}).text;
  CHECK_THAT(text, ContainsSubstring("pl::promote"));
  CHECK(unpinned_registers(text).empty());
  CHECK(on_all_targets(g, {}, 90) == "");
}
