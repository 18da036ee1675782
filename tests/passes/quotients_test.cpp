// Which divisions are one call for a row, and of which exponentials it is known that their operands
// are not above 0.
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// o = x / y, with `load` making %5 of the shape of x.
std::string division(const std::string& type, const std::string& divisor, const std::string& load) {
  return emitted(whole({type, divisor}, {type},
                       "  %3: " + type + " = load %0\n  %4: " + divisor +
                           " = load %1\n  %5: " + type + " = " + load + "\n  %6: " + type +
                           " = div %3, %5\n  store %2, %6"));
}

/// o = exp(...), %2 being what the block holds.
std::string exponential(const std::string& body, const std::string& of) {
  return emitted(whole({"f32[4,256]"}, {"f32[4,256]"},
                       "  %2: f32[4,256] = load %0\n" + body + "  %99: f32[4,256] = exp " + of +
                           "\n  store %1, %99"));
}

const std::string row_maximum = R"(  %3: f32[4] = reduce_max %2 [1]
  %4: f32[4,1] = reshape %3
  %5: f32[4,256] = broadcast %4 [0,1]
)";

}  // namespace

TEST_CASE("a row by its own number is divided by one call, in front of its loops") {
  const std::string text = division("f32[4,256]", "f32[4,1]", "broadcast %4 [0,1]");
  CHECK_THAT(text, Shows({"f32 q1[8];", "q1[rj * 4 + e] = ", "pl::div_all<8>(q1, q1, a0);",
                          "pl::store_global<4>(out0 + ", "q1 + rj * 4"}));
  CHECK(occurrences(text, "div_all") == 1);
  CHECK(occurrences(text, "pl::div(") == 0);
}

TEST_CASE("a scalar divides all that a thread holds by one call") {
  const std::string text = division("f32[1024]", "f32[1]", "broadcast %4 [0]");
  CHECK(occurrences(text, "pl::div_all<8>(") == 1);
}

TEST_CASE("rows that a thread holds several of are divided one by one") {
  const std::string text = division("f32[64,32]", "f32[64,1]", "broadcast %4 [0,1]");
  CHECK_THAT(text, Shows({"ri", "pl::div_all<4>("}));
}

TEST_CASE("of a constant the reciprocal is known, of 0 and infinity it is not used") {
  const auto text = [](const char* by) {
    return emitted(whole({"f32[1]"}, {"f32[1]"},
                         "  %2: f32[1] = load %0\n  %3: f32[1] = constant " + std::string(by) +
                             "\n  %4: f32[1] = div %2, %3\n  store %1, %4"));
  };
  CHECK_THAT(text("3"), Shows({"pl::div_by(", ", 3.0f, 0x1.5555555555558p-2)"}));
  for (const char* by : {"0", "inf"}) {
    CHECK(occurrences(text(by), "div_by") == 0);
    CHECK(occurrences(text(by), "pl::div(") == 1);
  }
}

TEST_CASE("what counts is no fraction and not below 0, and divides by fewer instructions") {
  const auto text = [](const std::string& type, const std::string& body, const char* count) {
    return emitted(whole({"f32[1]", type + "[1]"}, {"f32[1]"},
                         "  %3: f32[1] = load %0\n  %4: " + type + "[1] = load %1\n" + body +
                             "  %8: f32[1] = cast " + count + "\n  %9: f32[1] = div %3, %8\n" +
                             "  store %2, %9"));
  };
  const std::string zero = "  %5: i32[1] = constant 0\n", less = "  %5: i32[1] = constant -1\n",
                    max = "  %6: i32[1] = max %4, %5\n", min = "  %6: i32[1] = min %4, %5\n";
  CHECK(occurrences(text("u32", "", "%4"), "pl::div_by_count(") == 1);
  CHECK(occurrences(text("i32", zero + max, "%6"), "pl::div_by_count(") == 1);
  for (const std::string& body : {less + max, zero + min})
    CHECK(occurrences(text("i32", body, "%6"), "div_by_count") == 0);
  CHECK(occurrences(text("i32", "", "%4"), "div_by_count") == 0);
  CHECK(occurrences(text("f32", "", "%4"), "div_by_count") == 0);
}

TEST_CASE("what changes from element to element divides each by itself") {
  for (const char* divisor : {"f32[1,256]", "f32[4,256]"}) {
    const std::string text = division("f32[4,256]", divisor, "broadcast %4 [0,1]");
    CHECK(occurrences(text, "div_all") == 0);
    CHECK(occurrences(text, "pl::div(") == 1);
  }
}

TEST_CASE("other types, pairs of elements and approximate division make no such call") {
  CHECK(occurrences(division("f64[4,256]", "f64[4,1]", "broadcast %4 [0,1]"), "div_all") == 0);
  CHECK(occurrences(division("f16[4,256]", "f16[4,1]", "broadcast %4 [0,1]"), "div_all") == 0);
  CHECK(occurrences(division("f32[256]", "f32[1]", "broadcast %4 [0]"), "div_all") == 0);
  graph::Graph approximate = graph_of(whole({"f32[4,256]", "f32[4,1]"}, {"f32[4,256]"}, R"(
  %3: f32[4,256] = load %0
  %4: f32[4,1] = load %1
  %5: f32[4,256] = broadcast %4 [0,1]
  %6: f32[4,256] = div %3, %5
  store %2, %6)"));
  approximate.approx_math = true;
  const std::string text = cuda::emit(approximate, {.compute_capability = 90}).text;
  CHECK(occurrences(text, "div_all") == 0);
  CHECK(occurrences(text, "pl::rcp_approx(") == 1);
}

TEST_CASE("a quotient's dividend may be a quotient, and its user need not be the store") {
  const std::string text =
      emitted(whole({"f32[4,256]", "f32[4,1]", "f32[1,256]"}, {"f32[4,256]"}, R"(
  %4: f32[4,256] = load %0
  %5: f32[4,1] = load %1
  %6: f32[4,256] = broadcast %5 [0,1]
  %7: f32[1,256] = load %2
  %8: f32[4,256] = broadcast %7 [0,1]
  %9: f32[4,256] = exp %4
  %10: f32[4,256] = div %9, %6
  %11: f32[4,256] = div %10, %6
  %12: f32[4,256] = mul %11, %8
  store %3, %12)"));
  CHECK_THAT(text, Shows({"pl::exp(", "pl::div_all<4>(q3, q3, a1[ri]);",
                          "pl::div_all<4>(q4, q3, a1[ri]);", "q4[e] * "}));
}

TEST_CASE("a part of a sum of what is not below 0 is known to be no larger") {
  const auto text = [](const char* terms) {
    return emitted(whole({"f32[4,256]"}, {"f32[4,256]"},
                         "  %2: f32[4,256] = load %0\n" + std::string(terms) + R"(
  %4: f32[4] = reduce_sum %3 [1]
  %5: f32[4,1] = reshape %4
  %6: f32[4,256] = broadcast %5 [0,1]
  %7: f32[4,256] = div %3, %6
  store %1, %7)"));
  };
  CHECK(occurrences(text("  %3: f32[4,256] = exp %2"), "div_all<8, true>") == 1);
  CHECK(occurrences(text("  %3: f32[4,256] = mul %2, %2"), "div_all<8, true>") == 1);
  CHECK(occurrences(text("  %3: f32[4,256] = sin %2"), "div_all<8>") == 1);
}

TEST_CASE("the part of a sum over the other axis is not") {
  const std::string text = emitted(whole({"f32[256,256]"}, {"f32[256,256]"}, R"(
  %2: f32[256,256] = load %0
  %3: f32[256,256] = exp %2
  %4: f32[256] = reduce_sum %3 [0]
  %5: f32[256,1] = reshape %4
  %6: f32[256,256] = broadcast %5 [0,1]
  %7: f32[256,256] = div %3, %6
  store %1, %7)"));
  CHECK(occurrences(text, "div_all") == 1);
  CHECK(occurrences(text, ", true>") == 0);
}

TEST_CASE("what is less than the greatest of its row has the shorter exponential") {
  const std::string text = exponential(row_maximum + "  %6: f32[4,256] = sub %2, %5\n", "%6");
  CHECK(occurrences(text, "pl::exp_nonpositive(") == 1);
  CHECK(occurrences(text, "pl::exp(") == 0);
}

TEST_CASE("scaled, converted and masked it keeps that, against a running maximum as well") {
  for (const char* body : {R"(
  %6: f32[4,256] = sub %2, %5
  %7: f32[4,256] = constant 0.125
  %8: f32[4,256] = mul %6, %7
)",
                           R"(
  %6: f32[4,256] = constant -1
  %7: f32[4,256] = max %6, %5
  %8: f32[4,256] = sub %2, %7
)",
                           R"(
  %6: f16[4,256] = cast %2
  %7: f16[4,256] = cast %5
  %8: f16[4,256] = sub %6, %7
  %9: f32[4,256] = cast %8
  %10: f32[4,256] = constant -inf
  %11: i32[4,256] = iota [1]
  %12: bool[4,256] = lt %11, %11
  %13: f32[4,256] = select %12, %9, %10
)",
                           R"(
  %6: f32[4,256] = mul %2, %2
  %7: f32[4,256] = neg %6
)"}) {
    const std::string text = body;
    const std::size_t last = text.rfind('%', text.rfind(" = "));
    INFO(text);
    CHECK(
        occurrences(exponential(row_maximum + text, text.substr(last, text.find(':', last) - last)),
                    "pl::exp_nonpositive(") == 1);
  }
}

TEST_CASE("against another row, another value or the least nothing is known") {
  for (const char* body : {"  %6: f32[4,256] = sub %5, %2\n",  //
                           "  %7: f32[4,256] = neg %2\n  %6: f32[4,256] = sub %7, %5\n",
                           "  %7: f32[4,256] = min %5, %2\n  %6: f32[4,256] = sub %2, %7\n"})
    CHECK(occurrences(exponential(row_maximum + body, "%6"), "pl::exp_nonpositive(") == 0);
  const std::string other = emitted(whole({"f32[256,256]"}, {"f32[256,256]"}, R"(
  %2: f32[256,256] = load %0
  %3: f32[256] = reduce_max %2 [0]
  %4: f32[256,1] = reshape %3
  %5: f32[256,256] = broadcast %4 [0,1]
  %6: f32[256,256] = sub %2, %5
  %7: f32[256,256] = exp %6
  store %1, %7)"));
  CHECK(occurrences(other, "pl::exp_nonpositive(") == 0);
}

TEST_CASE("of what is rounded to 16 bits before anybody sees it a function is near") {
  const auto text = [](const char* function, const char* behind) {
    return emitted(whole(
        {"f32[4,256]"}, {"f16[4,256]"},
        fmt::format("  %2: f32[4,256] = load %0\n  %3: f32[4,256] = {} %2\n{}", function, behind)));
  };
  constexpr const char* product = R"(  %4: f32[4,256] = mul %2, %3
  %5: f16[4,256] = cast %4
  store %1, %5)";
  CHECK(occurrences(text("logistic", product), "pl::logistic_approx(") == 1);
  CHECK(occurrences(text("exp", product), "pl::exp2_approx(") == 1);
  // A sum may be much smaller than what is added up.
  constexpr const char* sum = R"(  %4: f32[4,256] = add %2, %3
  %5: f16[4,256] = cast %4
  store %1, %5)";
  CHECK(occurrences(text("logistic", sum), "pl::logistic(") == 1);
  CHECK(occurrences(text("exp", sum), "pl::exp(") == 1);
  // Where it decides, the last bit may.
  constexpr const char* choice = R"(  %4: bool[4,256] = lt %2, %3
  %5: f32[4,256] = select %4, %3, %2
  %6: f16[4,256] = cast %5
  store %1, %6)";
  CHECK(occurrences(text("logistic", choice), "pl::logistic(") == 1);
}
