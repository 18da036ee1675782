// What leaves the loops that would repeat it.
#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

// Eight iterations that add %9, which `in_loop` makes of the inputs f32[128] and f32[8,128],
// iteration %7.
std::string iterations(const std::string& in_loop, const std::string& before = "") {
  return whole({"f32[128]", "f32[8,128]"}, {"f32[128]"}, R"(
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5: f32[128] = constant 0
)" + before + R"(
  %6 = loop %3, %4 carry %5
    { %7: i32[] %8: f32[128]
)" + in_loop + R"(
      %10: f32[128] = add %8, %9
      yield %10
    }
  %11: f32[128] = get %6 [0]
  store %2, %11)");
}

// Blocks of rows f32[4,64] by the first axis, a row of factors that none moves, one by the second.
std::string axes(const std::string& second, const std::string& body) {
  return R"(kernel k
  grid 2, )" +
         second + R"(
  args[0]: f32[2,512] in blocks [1,64]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
  args[1]: f32[2,64] in blocks [1,64]
    { %0: i32[] %1: i32[]
      %2: i32[] = constant 0
      yield %0, %2
    }
  outputs[0]: f32[2,512] in blocks [1,64]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
{ %0: ref block f32[1,64] %1: ref block f32[1,64] %2: ref block f32[1,64]
)" + body +
         "\n}\n";
}

constexpr const char* scaled = R"(
  %3: f32[1,64] = load %0
  %4: f32[1,64] = load %1
  %5: f32[1,64] = exp %4
  %6: f32[1,64] = mul %3, %5
  store %2, %6)";

}  // namespace

TEST_CASE("a load that a loop repeats, and what is computed of it, stand before the loop") {
  CHECK_THAT(decided(iterations(R"(
      %12: f32[128] = load %0
      %13: f32[128] = neg %12
      %14: ref block f32[128] = at %1 [%7, :]
      %15: f32[128] = load %14
      %9: f32[128] = mul %13, %15)")),
             Shows({"s3 = %7", "loop %8 {", "s1 = %14", "}"}));
}

TEST_CASE("an elementary function of what no iteration changes is computed before the loop") {
  const std::string text = decided(iterations(R"(
      %12: f32[128] = constant 2
      %13: i32[128] = iota [0]
      %14: f32[128] = cast %13
      %15: f32[128] = mul %14, %12
      %9: f32[128] = cos %15)"));
  CHECK_THAT(text, Shows({"s3 = %10", "loop %11 {", "}"}));
}

TEST_CASE("a few operations without a load stay in the loop") {
  CHECK(occurrences(decided(iterations(R"(
      %12: i32[128] = iota [0]
      %13: i32[128] = mul %12, %12
      %9: f32[128] = cast %13)")),
                    "registers") == 2);
}

TEST_CASE("a load at a place known at run time leaves a loop that has an iteration, and no other") {
  const std::string load = R"(
      %12: ref block f32[128] = at %1 [%20, :]
      %9: f32[128] = load %12)";
  const std::string place = R"(
  %21: ref block f32[] = at %0 [3]
  %22: f32[] = load %21
  %20: i32[] = cast %22)";
  CHECK_THAT(decided(iterations(load, place)), Shows({"s5 = %", "loop %"}));
  std::string perhaps = iterations(load, place + "\n  %23: i32[] = constant 8");
  perhaps.replace(perhaps.find("loop %3, %4"), 11, "loop %20, %4");
  CHECK(occurrences(decided(perhaps), "s5 = %") == 0);
}

TEST_CASE("what the kernel writes, and what stands under a condition, stays in the loop") {
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]", "f32[128]"}, R"(
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5 = loop %3, %4
    { %6: i32[]
      %7: f32[128] = load %1
      %8: f32[128] = neg %7
      store %1, %8
      %9: bool[] = lt %6, %4
      when %9
        {
          %10: f32[128] = load %0
          store %2, %10
        }
    })")),
             Shows({"loop %5 {", "w1 = %8", "when %9 {", "w2 = %10"}));
}

TEST_CASE("a loop within a loop gives what neither changes to what stands before both") {
  CHECK_THAT(decided(iterations(R"(
      %12 = loop %3, %4 carry %8
        { %13: i32[] %14: f32[128]
          %15: f32[128] = load %0
          %16: f32[128] = exp %15
          %17: f32[128] = add %14, %16
          yield %17
        }
      %9: f32[128] = get %12 [0])")),
             Shows({"= %7", "loop %8 {", "loop %11 {"}));
}

TEST_CASE("what the inner sequential axes do not move is computed before their loops") {
  CHECK_THAT(decided(axes("8 sequential", scaled)),
             Shows({"window w1", "s0 = %", "grid loop 1", "window w0", "w2 = %"}));
  CHECK(occurrences(decided(axes("8", scaled)), "s0") == 0);
}

TEST_CASE("what asks for the place on a sequential axis stays in its loop") {
  CHECK_THAT(decided(axes("8 sequential", R"(
  %3: f32[1,64] = load %1
  %4: i32[] = program_id [1]
  %5: f32[] = cast %4
  %6: f32[1,64] = broadcast %5
  %7: f32[1,64] = mul %3, %6
  %8: f32[1,64] = exp %7
  store %2, %8)")),
             Shows({"= %3", "grid loop 1", "w2 = %"}));
}

TEST_CASE("an operand that a loop of products does not change is staged before it") {
  const std::string text = decided(whole({"f16[64,32]", "f16[8,32,64]"}, {"f32[64,64]"}, R"(
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5: f32[64,64] = constant 0
  %6: f16[64,32] = load %0
  %7 = loop %3, %4 carry %5
    { %8: i32[] %9: f32[64,64]
      %10: ref block f16[32,64] = at %1 [%8, :, :]
      %11: f16[32,64] = load %10
      %12: f32[64,64] = dot %6, %11
      %13: f32[64,64] = add %9, %12
      yield %13
    }
  %14: f32[64,64] = get %7 [0]
  store %2, %14)"),
                                   80);
  CHECK_THAT(text, Shows({"s4 = %6", "loop %7 {", "wait", "sync", "s5 = %11", "+= s4 * s5", "}"}));
  CHECK(occurrences(text, "registers f16") == 0);
}

TEST_CASE(
    "an operand that is staged under a condition is loaded once, and staged again behind it") {
  const std::string text = decided(whole({"f16[64,32]", "f16[8,32,64]"}, {"f32[64,64]"}, R"(
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %18: ref block f16[] = at %0 [0, 0]
  %19: f16[] = load %18
  %20: f16[] = constant 1
  %6: f16[64,32] = load %0
  %7: bool[] = lt %19, %20
  when %7
    {
      %8 = loop %3, %4
        { %9: i32[]
          %10: ref block f16[32,64] = at %1 [%9, :, :]
          %11: f16[32,64] = load %10
          %12: f32[64,64] = dot %6, %11
          store %2, %12
        }
    }
  %13 = loop %3, %4
    { %14: i32[]
      %15: ref block f16[32,64] = at %1 [%14, :, :]
      %16: f16[32,64] = load %15
      %17: f32[64,64] = dot %6, %16
      store %2, %17
    })"),
                                   80);
  CHECK_THAT(text, Shows({"s5 = %8", "when %", "s7 = %8", "loop %", "}", "s9 = %8", "loop %"}));
}

TEST_CASE("what no iteration of a while changes, its condition's part too, stands before it") {
  const std::string text = decided(whole({"f32[128]", "f32[128]"}, {"f32[128]"}, R"(
  %3: f32[128] = constant 0
  %4 = while %3
    { %5: f32[128]
      %6: f32[128] = load %0
      %7: f32[] = reduce_max %6 [0]
      %8: f32[] = reduce_min %5 [0]
      %9: bool[] = lt %8, %7
      yield %9
    }
    { %10: f32[128]
      %11: f32[128] = load %1
      %12: f32[] = reduce_sum %11 [0]
      %13: f32[128] = broadcast %12 []
      %14: f32[128] = add %10, %13
      yield %14
    }
  %15: f32[128] = get %4 [0]
  store %2, %15)"));
  const std::size_t loop = text.find("while %");
  CHECK(text.find("reduce_max") < loop);
  CHECK(text.find("reduce_sum") < loop);
  CHECK(text.find("reduce_min") > loop);
}
