// What shipped kernels are to be, at sizes that users have: by ptxas and by what is predicted.
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/expectations.hpp"
#include "codegen/device/library.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "codegen/thread/occupancy.hpp"
#include "palladium/ops/add.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/ops/layer_norm.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/rms_norm.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/ops/transpose.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/differential.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// What is broken of what a kernel is to be, and what lowering remarks of it; "" if nothing is.
std::string broken(const Kernel& kernel, const std::vector<ArgType>& types,
                   const Expectation& expect) {
  graph::Graph g = graph::from_json(kernel.lower(types).json());
  g.expect = expect;
  const cuda::Options options{.compute_capability = compute_capability_of(expect.on)};
  const cuda::Emitted e = cuda::emit(g, options);
  const nvrtc::Result r = nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, e.text) + e.text, .arch = expect.on});
  if (!r.ok) return r.log;
  Resources resources = nvrtc::parse_log(r.log);
  resources.shared_bytes += static_cast<int>(e.shared_bytes);
  const int blocks = thread::occupancy(options.compute_capability, e.threads, resources).blocks;
  std::string all;
  for (const auto& sentences : {cuda::broken_by(g, resources, nvrtc::warnings_of_wgmma(resources)),
                                cuda::broken_by_program(g, options, blocks)})
    for (const std::string& sentence : sentences) all += sentence + "\n";
  if (all.empty()) return all;
  for (const std::string& remark : cuda::remarks_of(g, options)) all += "remark: " + remark + "\n";
  return all;
}

ShapeDtype of(const Shape& shape, DType t) { return {shape, t}; }

}  // namespace

TEST_CASE("shipped products are by wgmma, of blocks that TMA brings, without spills, on sm_90a") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const auto expected = [](double of_limit, bool tma = true) {
    return Expectation{.on = "sm_90a",
                       .tensor_cores = true,
                       .tma = tma,
                       .spills = 0,
                       .registers = 168,
                       .of_limit = of_limit};
  };
  const ShapeDtype square = of({4096, 4096}, f16), bytes = of({4096, 4096}, f8e4m3);
  CHECK(broken(ops::matmul(), {square, square}, expected(0.6)) == "");
  CHECK(broken(ops::matmul({.trans_b = true}), {square, square}, expected(0.6)) == "");
  CHECK(broken(ops::matmul({.trans_b = true}), {bytes, bytes}, expected(0.3)) == "");
  for (const DType out : {f16, f32}) {
    const Kernel wide = ops::matmul({.out_dtype = out, .block_n = 256});
    CHECK(broken(wide, {square, square}, expected(0.7)) == "");
  }
  const auto attention = [&](std::int64_t d, bool causal, double of_limit) {
    const ShapeDtype x = of({4, 16, 4096, d}, bf16);
    CAPTURE(d, causal);
    CHECK(broken(ops::attention({.causal = causal}), {x, x, x}, expected(of_limit)) == "");
  };
  attention(64, false, 0.5);
  attention(64, true, 0.5);
  attention(128, false, 0.6);
  attention(128, true, 0.6);
  attention(256, false, 0.5);
}

TEST_CASE(
    "products of any length, in all blocks that are chosen, are serialised nowhere on sm_90a") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  struct Size {
    std::int64_t m, n;
  };
  const auto check = [](DType t, bool trans_b, DType out, const Size& s, bool is_static) {
    CAPTURE(t.name(), trans_b, out.name(), s.m, s.n, is_static);
    const auto size = [&](const char* name, std::int64_t most) {
      return is_static ? Dim(most) : dim(name, {.multiple_of = 16, .at_most = most});
    };
    const Dim k = size("k", 4096), n = size("n", s.n);
    const Expectation expect{.on = "sm_90a", .tensor_cores = true, .spills = 0};
    const Kernel kernel =
        ops::matmul({.out_dtype = out, .trans_b = trans_b, .precision = t == f32 ? tf32 : ieee});
    CHECK(broken(kernel, {of({size("m", s.m), k}, t), trans_b ? of({n, k}, t) : of({k, n}, t)},
                 expect) == "");
  };
  for (const Size& s : {Size{16, 4096},
                        {16, 512},
                        {64, 8192},
                        {64, 16384},
                        {1 << 16, 64},
                        {512, 512},
                        {4096, 4096}})
    for (const bool is_static : {false, true}) {
      if (is_static && s.m != s.n) continue;
      check(f16, false, f16, s, is_static);
      check(bf16, true, f32, s, is_static);
      check(f8e4m3, true, bf16, s, is_static);
      check(f8e5m2, false, f32, s, is_static);
      check(f32, true, f32, s, is_static);
      check(f32, false, f32, s, is_static);
    }
  // Blocks that a caller chose.
  for (const int n : {32, 128}) {
    const Kernel kernel = ops::matmul({.block_m = 128, .block_n = n});
    const ShapeDtype square = of({4096, 4096}, f16);
    CHECK(broken(kernel, {square, square}, {.on = "sm_90a", .tensor_cores = true}) == "");
  }
}

TEST_CASE("products that ptxas serialises are not what tensor cores are to make") {
  graph::Graph g;
  const Resources said{.warnings = {"(C7514) wgmma.mma_async instructions are serialized", "else"}};
  const std::vector<std::string> of_products = nvrtc::warnings_of_wgmma(said);
  CHECK(cuda::broken_by(g, said, of_products).empty());
  g.expect.tensor_cores = true;
  CHECK(cuda::broken_by(g, said, of_products) ==
        std::vector<std::string>{".tensor_cores: " + said.warnings[0]});
}

TEST_CASE("shipped kernels that move bytes are predicted to be bound by memory on sm_90a") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const Expectation expected{.on = "sm_90a", .spills = 0, .of_limit = 0.9};
  const ShapeDtype x = of({8192, 4096}, f32), row = of({4096}, f32), n = of({1 << 24}, f32);
  CHECK(broken(ops::add(), {n, n}, expected) == "");
  CHECK(broken(ops::softmax(), {x}, expected) == "");
  CHECK(broken(ops::layer_norm(), {x, row, row}, expected) == "");
  CHECK(broken(ops::rms_norm(), {x, row}, expected) == "");
  CHECK(broken(ops::transpose(), {x}, expected) == "");
}
