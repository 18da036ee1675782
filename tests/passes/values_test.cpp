// Which values are whole and which are computed where they are used.
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("a chain of elementwise operations is one loop nest") {
  const std::string text = decided(whole({"f32[8,128]", "f32[8,128]"}, {"f32[8,128]"}, R"(
  %3: f32[8,128] = load %0
  %4: f32[8,128] = load %1
  %5: f32[8,128] = mul %3, %4
  %6: f32[8,128] = exp %5
  store %2, %6)"));
  CHECK_THAT(text, Shows({"window w2", "w2 = %6"}));
  CHECK(occurrences(text, "s0") == 0);
}

TEST_CASE("a value with a load or an elementary function is kept for its second use") {
  CHECK_THAT(decided(whole({"f32[8,128]"}, {"f32[8,128]", "f32[8,128]"}, R"(
  %3: f32[8,128] = load %0
  %4: f32[8,128] = exp %3
  store %1, %4
  store %2, %4)")),
             Shows({"s0: registers f32[8,128]", "s0 = %4", "w1 = %4", "w2 = %4"}));
}

TEST_CASE("a value of three operations without a load is computed again, one of four is kept") {
  const auto text = [](const char* chain, const char* last) {
    return decided(whole({}, {"i32[8,128]", "i32[8,128]"},
                         std::string("  %2: i32[8,128] = iota [1]\n") + chain + "  store %0, " +
                             last + "\n  store %1, " + last));
  };
  const std::string three =
      "  %3: i32[8,128] = add %2, %2\n  %4: i32[8,128] = mul %3, %2\n  %5: i32[8,128] = sub %4, "
      "%2\n";
  CHECK(occurrences(text(three.c_str(), "%5"), "registers") == 0);
  CHECK(occurrences(text((three + "  %6: i32[8,128] = xor %5, %2\n").c_str(), "%6"),
                    "s0: registers i32[8,128]") == 1);
}

TEST_CASE("a value of more than 64 registers per thread is streamed again by each use") {
  const std::string text =
      decided(by_warps(4, whole({"f32[128,128]"}, {"f32[128,128]", "f32[128,128]"}, R"(
  %3: f32[128,128] = load %0
  %4: f32[128,128] = exp %3
  store %1, %4
  store %2, %4)")));
  CHECK_THAT(text, Shows({"w1 = %4 rolled(0, 8 together)", "w2 = %4 rolled(0, 8 together)"}));
  CHECK(occurrences(text, "registers") == 0);
}

TEST_CASE("an elementary function that rows share is computed once, and its result moved") {
  const std::string rotated = whole({"f32[32,64]", "f32[1,64]"}, {"f32[32,64]"}, R"(
  %4: f32[32,64] = load %0
  %5: f32[1,64] = load %1
  %6: f32[1,64] = cos %5
  %7: f32[32,64] = broadcast %6 [0,1]
  %8: f32[32,64] = mul %4, %7
  store %2, %8)");
  CHECK_THAT(decided(rotated), Shows({"s0: registers f32[1,64]", "s0 = %5", "w2 = %7"}));
  const std::string text = emitted(rotated);
  CHECK(text.find("pl::cos(") < text.find("ri"));
}

TEST_CASE("an elementary function of a row's own number stays in its pass") {
  CHECK(occurrences(decided(whole({"f32[32,64]", "f32[32,1]"}, {"f32[32,64]"}, R"(
  %3: f32[32,64] = load %0
  %4: f32[32,1] = load %1
  %5: f32[32,1] = rsqrt %4
  %6: f32[32,64] = broadcast %5 [0,1]
  %7: f32[32,64] = mul %3, %6
  store %2, %7)")),
                    "registers") == 0);
}

TEST_CASE("a value of one element is a scalar, and a constant of one has no place") {
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %2: ref block f32[] = at %0 [0]
  %3: f32[] = load %2
  %4: f32[] = constant 2
  %5: f32[] = mul %3, %4
  %6: f32[128] = broadcast %5
  store %1, %6)")),
             Shows({"s0: scalar f32[]", "s1: scalar f32[]", "s1 = %3", "s0 = %5", "w1 = %6"}));
}

TEST_CASE("a load that is overwritten before its use is whole") {
  CHECK_THAT(decided(whole({}, {"f32[128]"}, R"(
  %1: f32[128] = load %0
  %2: f32[128] = constant 1
  store %0, %2
  %3: f32[128] = add %1, %2
  store %0, %3)")),
             Shows({"s0: registers f32[128]", "s0 = %1", "w0 = %2", "w0 = %3"}));
}

TEST_CASE("a load that its own store overwrites in place is not kept") {
  const std::string text = decided(whole({}, {"f32[128]"}, R"(
  %1: f32[128] = load %0
  %2: f32[128] = neg %1
  store %0, %2)"));
  CHECK_THAT(text, Shows({"w0 = %2"}));
  CHECK(occurrences(text, "registers") == 0);
}

TEST_CASE("a load that its own store overwrites elsewhere is whole") {
  CHECK_THAT(decided(whole({}, {"f32[16,16]"}, R"(
  %1: f32[16,16] = load %0
  %2: f32[16,16] = transpose %1 [1,0]
  store %0, %2)")),
             Shows({"s0 = %1", "sync", "w0 = %2"}));
}

TEST_CASE("a load before a loop that overwrites its source is whole") {
  CHECK_THAT(decided(whole({}, {"f32[128]"}, R"(
  %1: f32[128] = load %0
  %2: i32[] = constant 0
  %3: i32[] = constant 8
  %4 = loop %2, %3
    { %5: i32[]
      %6: f32[128] = add %1, %1
      store %0, %6
    })")),
             Shows({"s1 = %1", "loop %4 {", "w0 = %6"}));
}

TEST_CASE("a load that a loop yields is whole where the last store of the body overwrites it") {
  CHECK_THAT(decided(whole({"f32[8,128]"}, {"f32[128]", "f32[128]"}, R"(
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5: f32[128] = constant 0
  store %1, %5
  %6 = loop %3, %4 carry %5
    { %7: i32[] %8: f32[128]
      %9: f32[128] = load %1
      %12: ref block f32[128] = at %0 [%7, :]
      %10: f32[128] = load %12
      store %1, %10
      yield %9
    }
  %11: f32[128] = get %6 [0]
  store %2, %11)")),
             Shows({"loop %6 {", "= %9", "w1 = %11"}));
}

TEST_CASE("what a loop needs again in each iteration is computed before it") {
  const char* body = R"(
  %2: f32[128] = load %0
  %3: f32[128] = exp %2
  %4: i32[] = constant 0
  %5: i32[] = constant 8
  %6: f32[128] = constant 0
  %7 = loop %4, %5 carry %6
    { %8: i32[] %9: f32[128]
      %10: f32[128] = add %9, %3
      yield %10
    }
  %11: f32[128] = get %7 [0]
  store %1, %11)";
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]"}, body)),
             Shows({"s3 = %3", "s1 = %6", "loop %7 {", "s1 = %10", "}", "w1 = %11"}));
}

TEST_CASE("a loop's parameter and its result are one storage") {
  const std::string text = decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %2: f32[128] = load %0
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5 = loop %3, %4 carry %2
    { %6: i32[] %7: f32[128]
      %8: f32[128] = add %7, %7
      yield %8
    }
  %9: f32[128] = get %5 [0]
  store %1, %9)"));
  CHECK_THAT(text, Shows({"s1 = %2", "loop %5 {", "s1 = %8", "}", "w1 = %9"}));
  CHECK(occurrences(text, "reading") == 0);
}

TEST_CASE("reductions, products, swaps and carries are whole") {
  CHECK_THAT(decided(whole({"f16[64,64]", "f16[64,64]"}, {"f32[64,64]", "f32[64]"}, R"(
  %4: f16[64,64] = load %0
  %5: f16[64,64] = load %1
  %6: f32[64,64] = dot %4, %5
  %7: f32[64,64] = swap %2, %6
  %8: f32[64] = reduce_sum %7 [1]
  store %3, %8)")),
             Shows({"s2 = s3 * s4", "s1 = %7", "w2 = %6", "s0 = reduce_sum %7", "w3 = %8"}));
}

TEST_CASE("a product of one element is distributed like any other") {
  CHECK_THAT(decided(whole({"f32[1,16]", "f32[16,1]"}, {"f32[1,1]"}, R"(
  %3: f32[1,16] = load %0
  %4: f32[16,1] = load %1
  %5: f32[1,1] = dot %3, %4
  store %2, %5)")),
             Shows({"s0: registers f32[1,1]", "s0 = s1 * s2"}));
}

TEST_CASE("values that take elements from elsewhere do not multiply what stands before them") {
  // Each of the steps takes two elements of the one before it.
  const auto text = [](int steps) {
    std::string body = "  %2: f32[128] = load %0\n  %3: i32[128] = iota [0]\n";
    int last = 2, next = 4;
    for (int k = 0; k < steps; ++k, next += 2) {
      body += fmt::format("  %{}: f32[128] = take_along_axis %{}, %3 [0]\n", next, last);
      body += fmt::format("  %{}: f32[128] = add %{}, %{}\n", next + 1, next, last);
      last = next + 1;
    }
    return emitted(whole({"f32[128]"}, {"f32[128]"}, body + fmt::format("  store %1, %{}", last)));
  };
  CHECK(occurrences(decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %2: f32[128] = load %0
  %3: i32[128] = iota [0]
  %4: f32[128] = take_along_axis %2, %3 [0]
  %5: f32[128] = add %4, %2
  store %1, %5)")),
                    "registers") == 0);
  CHECK(text(40).size() < 3 * text(20).size());
}
