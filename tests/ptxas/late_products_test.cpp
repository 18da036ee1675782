// Loops in which products are made of what is computed of others: ptxas takes what is emitted for
// them without spills, and without products of wgmma that it serialises.
#include <algorithm>
#include <optional>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/error.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/late_products.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

bool has_remark(const lowered::Program& l, const std::string& words) {
  return std::ranges::any_of(
      l.remarks, [&](const Remark& r) { return r.text.find(words) != std::string::npos; });
}

// What lowering said has no room is left alone.
void check(const graph::Graph& g) {
  std::optional<lowered::Program> l;
  try {
    l = cuda::lower(g, {.compute_capability = 90});
  } catch (const CompileError& e) {
    const std::string why = e.what();
    CHECK((why.find("choose") != why.npos ? "" : why) == "");
    return;
  }
  if (has_remark(*l, "partly in local memory") || has_remark(*l, "not by wgmma")) return;
  CHECK(compile_problem(*l, "sm_90a") == "");
}

void check(LateProducts p) {
  p.set_arrays();
  INFO(p.text());
  check(p.graph());
}

}  // namespace

// One reads the block of another product, one its own: who read last is awaited first.
TEST_CASE("products that leave slots to several rings are awaited by one wait") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  using enum LateProducts::Tree;
  for (const bool key_first : {true, false})
    for (const bool persistent : {true, false})
      for (const std::uint64_t order : {1, 2, 3, 4})
        check({.loop = {.iterations = 5, .num_stages = 3, .persistent = persistent},
               .queries = 3,
               .keys = 2,
               .firsts = {{.key = 1}, {.key = 0}, {.key = 1}},
               .lates = {{.tree = bare, .of = 2, .by_key = key_first},
                         {.tree = bare, .of = 1, .by_key = !key_first}},
               .order = order});
}
