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
#include "tests/support/seeds.hpp"
#include "tests/support/written_chains.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

bool has_remark(const lowered::Program& l, const std::string& words) {
  return std::ranges::any_of(
      l.remarks, [&](const Remark& r) { return r.text.find(words) != std::string::npos; });
}

// What lowering said has no room is left alone.
void check(const graph::Graph& g, const cuda::Options& options = {.compute_capability = 90}) {
  std::optional<lowered::Program> l;
  try {
    l = cuda::lower(g, options);
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

TEST_CASE("products of products as users write them compile for sm_90a without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  using enum BlockLoop::Spelling;
  const BlockLoop loops[] = {
      {.columns = 64, .iterations = 8, .num_warps = 4, .num_stages = 3},
      {.dtype = bf16,
       .rows = 128,
       .columns = 64,
       .iterations = 8,
       .num_warps = 8,
       .num_stages = 3,
       .persistent = true},
      {.spelling = axis_registers,
       .rows = 128,
       .columns = 64,
       .iterations = 8,
       .num_warps = 8,
       .num_stages = 3},
      {.columns = 64, .iterations = 8, .masked = 9, .num_warps = 4, .num_stages = 4, .cluster = 2}};
  std::size_t number = 0;
  for (const std::int64_t d : {64, 128})
    for (const BlockLoop& l : loops)
      for (const WrittenChain& w : written_chains(l.dtype, d, l.columns)) {
        if (!is_full() && number++ % 4 != 0) continue;
        CAPTURE(w.name, d, static_cast<int>(l.spelling), l.num_warps, l.persistent, l.cluster);
        check(w.in(l).graph());
      }
}

// Zeros of a sum that NVVM makes where a product is in flight already.
TEST_CASE("where a loop begins with a product in flight, its sums are there before") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  using enum LateProducts::Tree;
  for (const auto tree : {bare, clamped, gated})
    for (const auto spelling : {BlockLoop::Spelling::carried, BlockLoop::Spelling::held,
                                BlockLoop::Spelling::axis_registers})
      check({.loop = {.spelling = spelling, .iterations = 5, .num_stages = 3},
             .lates = {{.tree = tree, .by_key = true}}});
}

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

TEST_CASE("drawn loops of products that are made of others compile for sm_90a without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for_seeds(1, is_full() ? 300 : 24, [](std::uint64_t seed) {
    Random random(seed);
    const LateProducts p = LateProducts::drawn(random);
    // None of these is left for the next iteration, and three sums in f32 beside parts may spill.
    if (p.loop.dtype.bytes() > 1) check(p);
  });
}

TEST_CASE("drawn loops of which rings have one slot compile for sm_90a without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for_seeds(3001, is_full() ? 200 : 16, [](std::uint64_t seed) {
    Random random(seed);
    LateProducts p = LateProducts::drawn(random);
    if (p.loop.dtype.bytes() == 1) return;
    p.set_arrays();
    INFO(p.text());
    const graph::Graph g = p.graph();
    try {
      const std::int64_t all = cuda::lower(g, {.compute_capability = 90}).shared_bytes;
      check(g, {.compute_capability = 90,
                .most_shared_bytes = random.between(all * 3 / 10, all) / 16 * 16});
    } catch (const CompileError&) {
      return;  // it has no room at all
    }
  });
}
