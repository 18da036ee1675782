// Offsets in shared memory.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/error.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("storages in shared memory lie side by side, 16 bytes aligned") {
  CHECK_THAT(decided(whole({"f32[5]"}, {"f32[5]"}, R"(
  %4: f32[5] = load %0
  store %2, %4
  store %3, %4
  %5: f32[5] = load %3
  store %1, %5)",
                           {"smem f32[5]", "smem f32[5]"})),
             Shows({"s0: shared f32[5] at 0", "s1: shared f32[5] at 32", "shared bytes 64"}));
}

TEST_CASE("a reduction within a warp takes no shared memory, one across warps takes its results'") {
  CHECK_THAT(decided(whole({"f32[4,128]"}, {"f32[4]"}, R"(
  %2: f32[4,128] = load %0
  %3: f32[4] = reduce_sum %2 [1]
  store %1, %3)")),
             Shows({"shared f32[0]"}));
  CHECK_THAT(decided(whole({"f32[2048]"}, {"f32[1]"}, R"(
  %2: f32[2048] = load %0
  %3: f32[] = reduce_sum %2 [0]
  %4: f32[1] = broadcast %3
  store %1, %4)")),
             Shows({"shared f32[4]", "reduce_sum %2 [0] through", "shared bytes 16"}));
}

TEST_CASE("sums of 16-bit floats are exchanged in f32") {
  CHECK_THAT(decided(whole({"f16[2048]"}, {"f16[1]"}, R"(
  %2: f16[2048] = load %0
  %3: f16[] = reduce_sum %2 [0]
  %4: f16[1] = broadcast %3
  store %1, %4)")),
             Shows({"shared f32[4]"}));
}

TEST_CASE("each use of scratch memory has its own, so that no barrier stands between two") {
  const char* body = R"(
  %2: f32[2048] = load %0
  %3: f32[] = reduce_sum %2 [0]
  %4: f32[] = reduce_max %2 [0]
  %5: f32[] = add %3, %4
  %6: f32[1] = broadcast %5
  store %1, %6)";
  CHECK_THAT(decided(whole({"f32[2048]"}, {"f32[1]"}, body)),
             Shows({"shared f32[4] at 0", "shared f32[4] at 16", "shared bytes 32"}));
  CHECK(occurrences(emitted(whole({"f32[2048]"}, {"f32[1]"}, body)), "warpgroup_sync") == 0);
}

TEST_CASE("what every warpgroup has of its own takes room for each") {
  const std::string text = whole({"f32[128]"}, {"f32[128]"}, R"(
  %3: ref regs f32[64] = at %2 [ds(0,64)]
  %4: f32[64] = constant 1
  store %3, %4
  %5: f32[128] = load %2
  store %1, %5)",
                                 {"regs f32[128]"});
  CHECK_THAT(decided(text), Shows({"shared bytes 512"}));
  const std::size_t grid = text.find("grid\n") + 5, body = text.rfind("\n{") + 1;
  CHECK_THAT(decided(text.substr(0, grid) + "  thread axis wg\n" + text.substr(grid, body - grid) +
                     "warpgroups 2\n" + text.substr(body)),
             Shows({"shared bytes 1024"}));
}

TEST_CASE("more shared memory than the target has is refused with its largest part") {
  const std::string text = whole({"f32[256,8]"}, {"f32[256,8]"}, R"(
  %3: f32[256,8] = load %0
  %4: ref smem f32[256,8] = at %2 [:, ds(0,8)]
  store %4, %3
  %5: f32[256,8] = load %4
  store %1, %5)",
                                 {"smem f32[256,511]"});
  CHECK_THROWS_MATCHES(decided(text), CompileError,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
                           "kernel 'k' needs 523264 bytes of shared memory, sm_90 "
                           "has 232448 per block; the largest part is f32[256,511]")));
}

TEST_CASE("operands that a block has no room for are copied by parts of K, of any K") {
  for (const std::string k : {"504", "511", "1000"})
    CHECK_THAT(decided(whole({"f32[256," + k + "]", "f32[" + k + ",8]"}, {"f32[256,8]"},
                             "  %3: f32[256," + k + "] = load %0\n  %4: f32[" + k +
                                 ",8] = load %1\n  %5: f32[256,8] = dot %3, %4\n"
                                 "  store %2, %5")),
               Shows({"operands of products are copied by parts of K"}));
}

namespace {

// Two running sums, of what no registers hold, one behind the other, and what comes of them.
std::string two_sums(const std::string& then) {
  return whole({"i32[40000]", "i32[40000]"}, {"i32[40000]", "i32[40000]"}, R"(
  %4: i32[40000] = load %0
  %5: i32[40000] = cumsum %4 [0,0]
)" + then);
}

}  // namespace

TEST_CASE(
    "storages that a block has not the memory for take one place if one ends before the other") {
  const std::string one_behind_the_other = two_sums(R"(
  store %2, %5
  %6: i32[40000] = load %1
  %7: i32[40000] = cumsum %6 [0,0]
  store %3, %7)");
  CHECK_THAT(decided(one_behind_the_other),
             Shows({"shared i32[40000] at 0", "shared i32[40000] at 0", "%4", "sync", "w2 = %5",
                    "sync", "%6", "sync", "w3 = %7"}));
  CHECK(occurrences(emitted(one_behind_the_other), "warpgroup_sync") > 0);
}

TEST_CASE("storages that are needed at once, or in iterations of one loop, share no memory") {
  CHECK_THROWS_WITH(decided(two_sums(R"(
  %6: i32[40000] = load %1
  %7: i32[40000] = cumsum %6 [0,0]
  %8: i32[40000] = add %5, %7
  store %2, %8
  store %3, %5)")),
                    Catch::Matchers::ContainsSubstring("bytes of shared memory"));
  CHECK_THROWS_WITH(decided(two_sums(R"(
  %6: i32[] = constant 0
  %7: i32[] = constant 4
  %8 = loop %6, %7
    { %9: i32[]
      %10: i32[40000] = load %3
      %11: i32[40000] = cumsum %10 [0,0]
      store %3, %11
      store %2, %5
    })")),
                    Catch::Matchers::ContainsSubstring("bytes of shared memory"));
}
