// The shipped attention as it is by default: for every architecture, without a word from ptxas.
#include <algorithm>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/differential.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

graph::Graph graph_of(DType t, std::int64_t d, bool causal) {
  const ShapeDtype x{{1, 4, 1000, d}, t};
  return graph::from_json(ops::attention({.causal = causal}).lower(x, x, x).json());
}

// In registers without local memory, with products that wait for no other.
void check(const graph::Graph& g, const std::string& arch) {
  INFO(arch << ", " << g.insts.size() << " operations");
  CHECK(compile_problem(g, arch) == "");
}

bool takes_parts(const graph::Graph& g, int compute_capability) {
  const auto l = cuda::lower(g, {.compute_capability = compute_capability});
  return std::ranges::any_of(l.remarks, [](const Remark& r) {
    return r.text.find("operands of products are copied by parts of K") != std::string::npos;
  });
}

}  // namespace

TEST_CASE(
    "attention of every d compiles by default for every architecture and stays in registers") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  bool causal = false;
  for (const std::int64_t d : {32, 64, 96, 128, 160, 192, 256})
    for (const char* const arch :
         {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"}) {
      CAPTURE(d, causal);
      check(graph_of(f16, d, causal), arch);
      causal = !causal;
    }
}

TEST_CASE(
    "attention of the widest d compiles in every dtype, masked or not, where memory is least") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const DType t : {f16, bf16, f32})
    for (const bool causal : {false, true})
      for (const std::int64_t d : {128, 256}) {
        CAPTURE(t.name(), d, causal);
        check(graph_of(t, d, causal), "sm_75");
        check(graph_of(t, d, causal), "sm_120a");
      }
}

TEST_CASE("operands of attention are divided where a block has no room for them, nowhere else") {
  CHECK(takes_parts(graph_of(f16, 256, false), 75));
  CHECK(takes_parts(graph_of(f32, 256, false), 86));
  CHECK_FALSE(takes_parts(graph_of(f16, 128, false), 75));
  CHECK_FALSE(takes_parts(graph_of(f16, 128, false), 86));
  CHECK_FALSE(takes_parts(graph_of(f16, 256, false), 90));
}
