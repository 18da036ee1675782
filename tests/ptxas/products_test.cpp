// Products of drawn tiles: what is emitted for them ptxas takes, without products of wgmma that it
// serialises, and as many registers as lowering said there would be.
#include <algorithm>
#include <optional>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/error.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/machine_products.hpp"
#include "tests/support/product_loops.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Tile {
  DType dtype = f16;
  Precision precision = Precision::ieee;
  int m = 64, n = 64, k = 32;
  int num_warps = 0, num_stages = 0;
  bool two = false;
  std::optional<bool> specialize = {};
  bool rows_of_b = false;  // B is stored as (K, N)
  std::string text() const {
    return std::string(dtype.name()) + (precision == Precision::tf32 ? "(tf32) " : " ") +
           std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " by " +
           std::to_string(num_warps) + " warps, " + std::to_string(num_stages) + " stages" +
           (two ? ", two products" : "") + (rows_of_b ? ", B as (K, N)" : "") +
           (specialize ? *specialize ? ", a producer" : ", no producer" : "");
  }
};

Tile drawn(Random& random) {
  Tile t;
  const DType types[] = {f16, bf16, f32, f8e4m3, i8};
  t.dtype = types[random.between(0, 4)];
  if (t.dtype == f32) t.precision = Precision::tf32;
  t.m = 16 << random.between(0, 4);
  t.n = 8 << random.between(0, 5);
  t.k = 16 << random.between(0, 3);
  const int warps[] = {0, 0, 4, 8, 16};
  t.num_warps = warps[random.between(0, 4)];
  t.num_stages = random.between(0, 3);
  t.two = random.chance(25);
  if (random.chance(50)) t.specialize = random.chance(60);
  return t;
}

// A loop over K; of two products the second multiplies what the first one gives, as attention does.
graph::Graph graph_of_tile(const Tile& t) {
  const DType acc = t.dtype.is_float() ? f32 : i32;
  const std::int64_t m = t.m, n = t.n, k = t.k, steps = 8;
  const PallasCallOptions options{
      .name = "product",
      .out_type = {{m, n}, acc},
      .compiler_params = {
          .num_warps = t.num_warps, .num_stages = t.num_stages, .warp_specialize = t.specialize}};
  if (!t.two)
    return traced(
        [=](Ref a, Ref b, Ref o) {
          o[_] = loop(
              0, steps, {},
              [&](Value i, Value sum) {
                const Value part = t.rows_of_b ? b[{ds(i * k, k), _}] : b[{_, ds(i * k, k)}];
                return sum + dot(a[{_, ds(i * k, k)}], part,
                                 {.trans_b = !t.rows_of_b, .precision = t.precision});
              },
              zeros({m, n}, acc));
        },
        options,
        {array({m, k * steps}, t.dtype),
         array(t.rows_of_b ? Shape{k * steps, n} : Shape{n, k * steps}, t.dtype)});
  return traced(
      [=](Ref q, Ref keys, Ref values, Ref o) {
        o[_] = loop(
            0, steps, {},
            [&](Value i, Value sum) {
              const Value s =
                  dot(q[_], keys[{ds(i * k, k), _}], {.trans_b = true, .precision = t.precision});
              return sum + dot(s.astype(t.dtype), values[{_, ds(i * k, k)}],
                               {.trans_b = true, .precision = t.precision});
            },
            zeros({m, n}, acc));
      },
      options,
      {array({m, n}, t.dtype), array({k * steps, n}, t.dtype), array({n, k * steps}, t.dtype)});
}

bool has_remark(const lowered::Program& l, const std::string& words) {
  return std::ranges::any_of(
      l.remarks, [&](const Remark& r) { return r.text.find(words) != std::string::npos; });
}

// Registers, spills and what ptxas says of it are as lowering meant them.
void check(const graph::Graph& g, const std::string& arch) {
  const cuda::Options options{.compute_capability = compute_capability_of(arch)};
  lowered::Program l;
  try {
    l = cuda::lower(g, options);
  } catch (const CompileError& error) {
    const std::string why = error.what();
    const bool helps = why.find(" fits") != std::string::npos ||
                       why.find("choose smaller blocks") != std::string::npos;
    CHECK((helps ? "" : why) == "");
    return;
  }
  const cuda::Emitted e = cuda::emit(g, options);
  const nvrtc::Result r = nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, e.text) + e.text, .arch = arch});
  INFO(r.log);
  REQUIRE(r.ok);
  const Resources used = nvrtc::parse_log(r.log);
  const bool crowded = has_remark(l, "partly in local memory") || has_remark(l, "not by wgmma");
  constexpr int few_bytes = 64;
  CHECK((crowded || used.spill_store_bytes <= few_bytes));
  if (l.wgmma_products > 0 && !crowded) {
    CHECK(used.warnings.empty());
    CHECK(used.spill_store_bytes == 0);
  }
  if (l.wgmma_products > 0 && !nvrtc::find_nvdisasm().empty())
    CHECK(machine_products(r.cubin).left_out == 0);
}

void check(const Tile& t, const std::string& arch) {
  INFO(arch << ": " << t.text());
  check(graph_of_tile(t), arch);
}

}  // namespace

TEST_CASE(
    "what is emitted for products of any tile ptxas takes, or we refuse it with one that fits") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const std::string architectures[] = {"sm_75",  "sm_80",   "sm_86",  "sm_89",
                                       "sm_90a", "sm_100a", "sm_120a"};
  for_seeds(1, 28, [&](std::uint64_t seed) {
    Random random(seed);
    const std::string& arch = architectures[seed % std::size(architectures)];
    check(drawn(random), arch);
  });
}

TEST_CASE("the largest tiles compile for sm_90a in every dtype, width and number of products") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  check({.m = 256, .n = 256, .k = 64}, "sm_90a");
  check({.dtype = i8, .m = 256, .n = 256, .k = 64, .num_warps = 16, .specialize = true}, "sm_90a");
  check({.dtype = f8e4m3, .m = 256, .n = 256, .k = 32, .two = true}, "sm_90a");
  check({.m = 256, .n = 128, .k = 64, .num_warps = 16, .two = true, .specialize = true}, "sm_90a");
  check({.m = 64, .n = 256, .k = 64, .num_warps = 4, .two = true, .specialize = true}, "sm_90a");
}

TEST_CASE("sums of products in loops one behind the other compile for sm_90a without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for_seeds(1, 48, [](std::uint64_t seed) {
    Random random(seed);
    const ProductLoops p = ProductLoops::drawn(random);
    INFO(p.text());
    check(graph::from_json(p.kernel().lower(p.types(4096, 4096, 512)).json()), "sm_90a");
  });
}

TEST_CASE("products whose columns warpgroups share compile for sm_90a without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const bool rows_of_b : {false, true}) {
    check({.n = 128, .k = 64, .num_warps = 8, .rows_of_b = rows_of_b}, "sm_90a");
    check({.dtype = bf16, .n = 256, .k = 64, .num_warps = 8, .rows_of_b = rows_of_b}, "sm_90a");
    check({.m = 128, .n = 256, .k = 64, .num_warps = 16, .rows_of_b = rows_of_b}, "sm_90a");
    check({.n = 256, .k = 64, .num_warps = 16, .rows_of_b = rows_of_b}, "sm_90a");
    check({.n = 256, .k = 64, .num_warps = 8, .specialize = true, .rows_of_b = rows_of_b},
          "sm_90a");
  }
  check({.dtype = f8e4m3, .n = 256, .k = 64, .num_warps = 8}, "sm_90a");
  check({.dtype = i8, .m = 128, .n = 256, .k = 64, .num_warps = 16}, "sm_90a");
  check({.dtype = f32, .precision = Precision::tf32, .n = 128, .k = 32, .num_warps = 8}, "sm_90a");
}
