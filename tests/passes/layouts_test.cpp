// Layouts of loop nests, relayouts between them, and nests that become run-time loops.
#include <catch2/catch_test_macros.hpp>

#include "palladium/error.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("a thread takes 16 bytes of a row at a time") {
  const auto copy = [](const std::string& type) {
    return decided(whole({type}, {type}, "  %2: " + type + " = load %0\n  store %1, %2"));
  };
  CHECK_THAT(copy("f32[8,1024]"), Shows({"w1 = %2 by", "reg[j1 j2] lane[j4 j8"}));
  CHECK_THAT(copy("f16[8,1024]"), Shows({"w1 = %2 by", "reg[j1 j2 j4] lane[j8"}));
  CHECK_THAT(copy("i8[8,2048]"),
             Shows({"w1 = %2 rolled(0, 4 together) by", "reg[j1 j2 j4 j8] lane[j16"}));
}

TEST_CASE("a block of few elements takes fewer of them per thread") {
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]"}, "  %2: f32[128] = load %0\n  store %1, %2")),
             Shows({"w1 = %2 by dom(128) tile(128) reg[] lane[i1 i2 i4 i8 i16] warp[i32 i64]"}));
}

TEST_CASE("a softmax of several rows reduces within warps and moves nothing between threads") {
  const std::string text = decided(whole({"f32[4,1000]"}, {"f32[4,1000]"}, R"(
  %2: f32[4,1000] = load %0
  %3: f32[4] = reduce_max %2 [1]
  %4: f32[4,1000] = broadcast %3 [0]
  %5: f32[4,1000] = sub %2, %4
  %6: f32[4,1000] = exp %5
  %7: f32[4] = reduce_sum %6 [1]
  %8: f32[4,1000] = broadcast %7 [0]
  %9: f32[4,1000] = div %6, %8
  store %1, %9)"));
  CHECK_THAT(text, Shows({"s0: registers f32[4] dom(4) tile(4) reg[] lane[* * * * *] warp[i1 i2]",
                          "s3 = %2", "s2 = reduce_max %2 [1] by", "s1 = %6",
                          "s0 = reduce_sum %6 [1] by", "w1 = %9 by"}));
  CHECK(occurrences(text, "relayout") + occurrences(text, "reading") == 0);
}

TEST_CASE("what follows a product is computed in its accumulators' layout") {
  const std::string text = decided(whole({"f16[64,64]", "f16[64,64]"}, {"f32[64,64]"}, R"(
  %3: f16[64,64] = load %0
  %4: f16[64,64] = load %1
  %5: f32[64,64] = dot %3, %4
  %6: f32[64] = reduce_max %5 [1]
  %7: f32[64,64] = broadcast %6 [0]
  %8: f32[64,64] = sub %5, %7
  store %2, %8)"),
                                   80);
  CHECK_THAT(text, Shows({"s1 = s2 * s3",
                          "s0 = reduce_max %5 [1] through s4 by dom(64,64) tile(32,16) reg[j1 i8]",
                          "w2 = %8 by dom(64,64) tile(32,16) reg[j1 i8] lane[j2 j4 i1 i2 i4]"}));
  CHECK(occurrences(text, "relayout") == 0);
}

TEST_CASE("a value that is stored transposed is written from the layout that it has") {
  const std::string text = decided(whole({"f16[64,64]", "f16[64,64]"}, {"f32[64,64]"}, R"(
  %3: f16[64,64] = load %0
  %4: f16[64,64] = load %1
  %5: f32[64,64] = dot %3, %4
  %6: f32[64,64] = transpose %5 [1,0]
  store %2, %6)"),
                                   80);
  CHECK_THAT(text, Shows({"w2 = %6 by dom(64,64) tile(16,32) reg[i1 j8] lane[i2 i4 j1 j2 j4]"}));
  CHECK(occurrences(text, "relayout") == 0);
}

TEST_CASE("a reduction's result is spread out for the store where that is cheaper") {
  CHECK_THAT(
      decided(whole({"f32[512,32]"}, {"f32[512]"}, R"(
  %2: f32[512,32] = load %0
  %3: f32[512] = reduce_sum %2 [1]
  store %1, %3)")),
      Shows({"s0 = reduce_sum %2 [1] by", "s2 = relayout s0", "w1 = %3 by", "reading s0 from s2"}));
}

TEST_CASE("of few elements those threads store that have them") {
  const std::string text = decided(whole({"f32[128,32]"}, {"f32[128]"}, R"(
  %2: f32[128,32] = load %0
  %3: f32[128] = reduce_sum %2 [1]
  store %1, %3)"));
  CHECK_THAT(text, Shows({"s0 = reduce_sum %2 [1] by", "w1 = %3 by"}));
  CHECK(occurrences(text, "relayout") == 0);
}

TEST_CASE("what a loop adds up by rows has the layout in which rows are read, 16 bytes at a time") {
  const std::string text = decided(whole({"bf16[64,1024]"}, {"f32[1024]"}, R"(
  %2: i32[] = constant 0
  %3: i32[] = constant 16
  %4: i32[] = constant 4
  %5: f32[1024] = constant 0
  %6 = loop %2, %3 carry %5
    { %7: i32[] %8: f32[1024]
      %9: i32[] = mul %7, %4
      %10: ref block bf16[4,1024] = at %0 [ds(%9,4), :]
      %11: bf16[4,1024] = load %10
      %12: f32[4,1024] = cast %11
      %13: f32[1024] = reduce_sum %12 [0]
      %14: f32[1024] = add %8, %13
      yield %14
    }
  %15: f32[1024] = get %6 [0]
  store %1, %15)"));
  CHECK_THAT(text, Shows({"reg[i1 i2 i4]", "reduce_sum %12 [0]", "reg[j1 j2 j4]"}));
  CHECK(occurrences(text, "relayout") == 0);
}

TEST_CASE("arrays of several sizes of elements all move by 16 bytes") {
  CHECK_THAT(decided(whole({"bf16[4,1024]", "f32[4,1024]"}, {"bf16[4,1024]"}, R"(
  %3: bf16[4,1024] = load %0
  %4: f32[4,1024] = load %1
  %5: f32[4,1024] = cast %3
  %6: f32[4,1024] = add %4, %5
  %7: bf16[4,1024] = cast %6
  store %2, %7)")),
             Shows({"w2 = %7 by", "reg[j1 j2 j4]"}));
}

namespace {

std::string product_and_residual() {
  return whole({"f16[64,64]", "f16[64,64]", "f16[64,64]"}, {"f32[64,64]"}, R"(
  %4: f16[64,64] = load %0
  %5: f16[64,64] = load %1
  %6: f32[64,64] = dot %4, %5
  %7: f16[64,64] = load %2
  %8: f32[64,64] = cast %7
  %9: f32[64,64] = add %6, %8
  store %3, %9)");
}

}  // namespace

TEST_CASE("many vectors and few that are scaled by one row all move by 16 bytes") {
  const std::string text =
      decided(whole({"f16[4,8,64]", "f16[4,2,64]", "f32[4,64]"}, {"f16[4,8,64]", "f16[4,2,64]"}, R"(
  %5: f16[4,8,64] = load %0
  %6: f16[4,2,64] = load %1
  %7: f32[4,64] = load %2
  %8: f32[4,64] = exp %7
  %9: f32[4,8,64] = cast %5
  %10: f32[4,8,64] = broadcast %8 [0,2]
  %11: f32[4,8,64] = mul %9, %10
  %12: f16[4,8,64] = cast %11
  store %3, %12
  %13: f32[4,2,64] = cast %6
  %14: f32[4,2,64] = broadcast %8 [0,2]
  %15: f32[4,2,64] = mul %13, %14
  %16: f16[4,2,64] = cast %15
  store %4, %16)"));
  const std::string vectors = "reg[k1 k2 k4] lane[k8 k16 k32 j1";
  CHECK_THAT(text, Shows({vectors, vectors}));
  CHECK(occurrences(text, "relayout") == 0);
}

TEST_CASE("what stands beside a product is read as memory has it, and handed on") {
  const std::string text = decided(product_and_residual(), 80);
  CHECK_THAT(text, Shows({"= %7 by dom(64,64) tile(16,64) reg[j1 j2 j4]", "= relayout"}));
}

TEST_CASE("what has rows that TMA fetches is read where it lies in shared memory") {
  const std::string text = decided(product_and_residual());
  CHECK_THAT(text, Shows({"copy s0 = w2", "= s2 * s3 by wgmma", "w3 = %9"}));
  CHECK(text.find("relayout") == std::string::npos);
}

TEST_CASE("a whole value that is wanted at mixed coordinates is read from shared memory") {
  CHECK_THAT(decided(whole({"f32[8,64]"}, {"f32[8]"}, R"(
  %2: f32[8,64] = load %0
  %3: f32[8] = reduce_sum %2 [1]
  %4: f32[2,4] = reshape %3
  %5: f32[4,2] = transpose %4 [1,0]
  %6: f32[8] = reshape %5
  store %1, %6)")),
             Shows({"s2: shared f32[8]", "s2 = s0", "sync", "w1 = %6", "reading s0 from s2"}));
}

TEST_CASE("a nest of more than 64 elements per thread is a run-time loop") {
  const auto copy = [](const std::string& type) {
    return decided(whole({type}, {type}, "  %2: " + type + " = load %0\n  store %1, %2"));
  };
  CHECK(occurrences(copy("f32[64,128]"), "rolled") == 0);
  // Of 17 repetitions one is left over.
  CHECK_THAT(copy("f32[65,128]"), Shows({"w1 = %2 rolled(0, 8 together) by"}));
  CHECK_THAT(copy("f32[1,16384]"), Shows({"w1 = %2 rolled(1, 8 together) by"}));
}

TEST_CASE("a nest with long expressions is a run-time loop sooner") {
  std::string body = "  %2: f32[32,128] = load %0\n";
  for (int i = 3; i < 40; ++i)
    body += "  %" + std::to_string(i) + ": f32[32,128] = add %" + std::to_string(i - 1) + ", %2\n";
  CHECK_THAT(decided(whole({"f32[32,128]"}, {"f32[32,128]"}, body + "  store %1, %39")),
             Shows({"w1 = %39 rolled(0, 4 together)"}));
}

TEST_CASE("a reduction is rolled along what it folds first") {
  CHECK_THAT(decided(whole({"f32[4,8192]"}, {"f32[4]"}, R"(
  %2: f32[4,8192] = load %0
  %3: f32[4] = reduce_sum %2 [1]
  store %1, %3)")),
             Shows({"= reduce_sum %2 [1] rolled(1, 8 together) by"}));
}

TEST_CASE("a reduction with too many results for registers leaves them in shared memory") {
  CHECK_THAT(decided(whole({"f32[64,8192]"}, {"f32[8192]"}, R"(
  %2: f32[64,8192] = load %0
  %3: f32[8192] = reduce_sum %2 [0]
  store %1, %3)")),
             Shows({"s0: shared f32[8192]",
                    "s0 = reduce_sum %2 [0] rolled(0, 8 together) rolled(1)", "sync", "w1 = %3"}));
}

TEST_CASE("all of a reduction to one element is folded, whatever dimensions it has") {
  CHECK_THAT(decided(whole({"f32[1,128]"}, {"f32[1,1]"}, R"(
  %2: f32[1,128] = load %0
  %3: f32[1] = reduce_max %2 [1]
  %4: f32[1,1] = reshape %3
  store %1, %4)")),
             Shows({"= reduce_max %2 [0,1]"}));
}

TEST_CASE("a whole value of more than 192 registers per thread is refused") {
  CHECK_THROWS_AS(decided(whole({}, {"f32[512,512]"}, R"(
  %1: f32[512,512] = load %0
  %2: f32[512,512] = transpose %1 [1,0]
  store %0, %2)")),
                  CompileError);
}

TEST_CASE("rows keep a warp each beside a row that all of them read") {
  // Warps that read the same scale find it in the cache: less than to fold rows over warps.
  const std::string text =
      emitted(by_warps(4, whole({"f32[4,1024]", "f32[1,1024]", "f32[1,1024]"}, {"f32[4,1024]"}, R"(
  %4: f32[4,1024] = load %0
  %5: f32[4] = reduce_sum %4 [1]
  %6: f32[4,1024] = broadcast %5 [0]
  %7: f32[4,1024] = sub %4, %6
  %8: f32[4,1024] = mul %7, %7
  %9: f32[4] = reduce_sum %8 [1]
  %10: f32[4,1024] = broadcast %9 [0]
  %11: f32[4,1024] = mul %7, %10
  %12: f32[1,1024] = load %1
  %13: f32[4,1024] = broadcast %12 [0,1]
  %14: f32[4,1024] = mul %11, %13
  %15: f32[1,1024] = load %2
  %16: f32[4,1024] = broadcast %15 [0,1]
  %17: f32[4,1024] = add %14, %16
  store %3, %17)")));
  CHECK(occurrences(text, "reduce_lanes<31>") == 2);
  CHECK(occurrences(text, "reduce_warps") == 0);
}
