// What lowering makes of the classes of symbols.
#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// A copy of f16 tiles of [s0,s1] into an array of as many elements; `facts` stand in the header.
std::string copy(const std::string& facts, const std::string& block = "[64,64]") {
  const std::string array =
      "f16[s0,s1] in blocks " + block + "\n    { %0: i32[] %1: i32[]\n      yield %0, %1\n    }\n";
  return "kernel k\n  grid s0, s1\n" + facts + "  args[0]: " + array + "  outputs[0]: " + array +
         "{ %0: ref block f16" + block + " %1: ref block f16" + block + "\n  %2: f16" + block +
         " = load %0\n  store %1, %2\n}\n";
}

constexpr const char* wide = "  symbol 1: multiple of 8\n";
constexpr const char* both = "  symbol 1: multiple of 8\n  offsets below 2^31\n";

}  // namespace

TEST_CASE("rows of a symbolic length are moved by elements") {
  CHECK_THAT(emitted(copy("")), Shows({"load_global_nc<1>", "store_global<1>"}));
}

TEST_CASE("rows whose length is a multiple of 16 bytes are moved 16 bytes at a time") {
  const std::string text = emitted(copy(wide));
  CHECK_THAT(text, Shows({"load_global_nc<8>", "store_global<8>"}));
  CHECK(occurrences(text, "_part") == 0);  // no end lies between the elements of a vector
  CHECK_THAT(emitted(copy("  symbol 0: multiple of 8\n")), Shows({"load_global_nc<1>"}));
}

TEST_CASE("offsets at symbolic strides are of 64 bits unless they are short") {
  CHECK_THAT(emitted(copy(wide)), Shows({"i64(i + ri * 16) * s1"}));
  const std::string text = emitted(copy(both));
  CHECK_THAT(text, Shows({"start0 * s1", "(i + ri * 16) * i32(s1)"}));
  CHECK(occurrences(text, "i64(i") == 0);
}

TEST_CASE("layouts of rows of symbolic length follow their class") {
  // Lanes side by side where elements are moved one by one, 8 registers where eight are.
  CHECK(decided(copy("")) != decided(copy(wide)));
  CHECK(decided(copy(wide)) == decided(copy(both)));
  CHECK_THAT(decided(copy(wide)), Shows({"reg[j1 j2 j4]"}));
}

TEST_CASE("a vector of symbolic length ends where a vector ends if its class says so") {
  const auto text = [](const std::string& facts) {
    const std::string array = "f32[s0] in blocks [512]\n    { %0: i32[]\n      yield %0\n    }\n";
    return emitted("kernel k\n  grid cdiv(s0, 512)\n" + facts + "  args[0]: " + array +
                   "  outputs[0]: " + array + R"({ %0: ref block f32[512] %1: ref block f32[512]
  %2: f32[512] = load %0
  store %1, %2
})");
  };
  CHECK_THAT(text(""),
             Shows({"if (size0 == 512) {", "load_global_nc<4>(a0, w0 + i);", "} else {"}));
  CHECK_THAT(text("  symbol 0: multiple of 4\n"),
             Shows({"load_global_nc<4>(a0, w0 + i, i < size0)"}));
}

TEST_CASE("several vectors of a thread are moved without tests where a block is whole") {
  const auto text = [](const std::string& what) {
    const std::string array = "f32[s0] in blocks [1024]\n    { %0: i32[]\n      yield %0\n    }\n";
    return emitted("kernel k\n  grid cdiv(s0, 1024)\n  symbol 0: multiple of 4\n  args[0]: " +
                   array + "  outputs[0]: " + array +
                   "{ %0: ref block f32[1024] %1: ref block f32[1024]\n" + what + "\n}\n");
  };
  CHECK_THAT(text("  %2: f32[1024] = load %0\n  store %1, %2"),
             Shows({"if (size0 == 1024) {", "load_global_nc<4>(a0 + ri * 4, w0 + i + ri * 512);",
                    "} else {", "w0 + i + ri * 512, i + ri * 512 < size0);"}));
}

TEST_CASE("offsets in arrays of one symbolic extent are short if their class says so") {
  const auto text = [](const std::string& type, const std::string& block, const std::string& at,
                       const std::string& facts) {
    const std::string array = type + " in blocks " + block + "\n    { %0: i32[]\n" + at + "    }\n";
    return emitted("kernel k\n  grid cdiv(s0, 8)\n" + facts + "  args[0]: " + array +
                   "  outputs[0]: " + array + "{ %0: ref block f32" + block + " %1: ref block f32" +
                   block + "\n  %2: f32" + block + " = load %0\n  store %1, %2\n}\n");
  };
  constexpr const char* is_short = "  offsets below 2^31\n";
  const auto vector = [&](const char* facts) {
    return text("f32[s0]", "[8]", "      yield %0\n", facts);
  };
  CHECK_THAT(vector(""), Shows({"const i64 start0 = i64(p0) * 8;", "w0 = in0 + start0;"}));
  CHECK_THAT(vector(is_short), Shows({"const i32 start0 = p0 * 8;", "pl::min(i32(s0) - start0, 8)",
                                      "in0 + start0 + ", "out0 + start0 + "}));
  const auto rows = [&](const char* facts) {
    return text("f32[s0,512]", "[8,512]", "      %1: i32[] = constant 0\n      yield %0, %1\n",
                facts);
  };
  CHECK_THAT(rows(""), Shows({"w0 = in0 + start0 * 512;"}));
  CHECK_THAT(rows(is_short),
             Shows({"const i32 start0 = p0 * 8;", "at0 = start0 * 512;", "in0 + (at0 + j)"}));
}

TEST_CASE("strides that are products of symbols are multiples of what each is") {
  const auto text = [](const std::string& facts) {
    const std::string array =
        "f16[s0,s1,s2] in blocks [1,64,64]\n    { %0: i32[] %1: i32[] %2: i32[]\n"
        "      yield %0, %1, %2\n    }\n";
    return emitted("kernel k\n  grid s0, s1, s2\n" + facts + "  args[0]: " + array +
                   "  outputs[0]: " + array +
                   R"({ %0: ref block f16[1,64,64] %1: ref block f16[1,64,64]
  %2: f16[1,64,64] = load %0
  store %1, %2
})");
  };
  CHECK_THAT(text("  symbol 2: multiple of 8\n"), Shows({"load_global_nc<8>"}));
  CHECK_THAT(text("  symbol 1: multiple of 8\n"), Shows({"load_global_nc<1>"}));
}

TEST_CASE("arrays with gaps have short offsets too") {
  const auto text = [](const std::string& facts) {
    const std::string array =
        "f32[s0,512] in blocks [4,512] strided\n    { %0: i32[]\n"
        "      %1: i32[] = constant 0\n      yield %0, %1\n    }\n";
    return emitted("kernel k\n  grid s0\n" + facts + "  args[0]: " + array +
                   "  outputs[0]: " + array + R"({ %0: ref block f32[4,512] %1: ref block f32[4,512]
  %2: f32[4,512] = load %0
  store %1, %2
})");
  };
  CHECK_THAT(text(""), Shows({"i64(ri) * in0_stride0"}));
  CHECK_THAT(text("  offsets below 2^31\n"), Shows({"load_global_nc<4>", "ri * i32(in0_stride0)"}));
}
