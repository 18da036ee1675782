// What lowering makes of what the user says of numbers.
#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// 512 elements of f32[n], from the number that `start` defines as %8 from the scalar %1.
std::string slice(const std::string& start, const std::string& scalar = "i32",
                  const std::string& array = "f32[4096] in blocks [4096]") {
  return "kernel k\n  grid\n  args[0]: " + array + "\n  scalar 0: " + scalar +
         "\n  outputs[0]: f32[512] in blocks [512]\n{ %0: ref block " +
         array.substr(0, array.find(' ')) + " %1: " + scalar + "[] %2: ref block f32[512]\n" +
         start + R"(
  %9: ref block f32[512] = at %0 [ds(%8,512)]
  %10: f32[512] = load %9
  store %2, %10
})";
}

/// A copy of f32[8] behind which a value of `shape` that `lines` define as %9 is stored.
std::string arrays(const std::string& shape, const std::string& lines) {
  return whole({}, {"i32" + shape}, lines + "\n  store %0, %9");
}

}  // namespace

TEST_CASE("slices that start at multiples of 16 bytes are moved 16 bytes at a time") {
  const std::string four = "  %3: i32[] = constant 4\n";
  CHECK_THAT(emitted(slice(four + "  %8: i32[] = add %1, %3")), Shows({"load_global_nc<1>"}));
  CHECK_THAT(emitted(slice(four + "  %8: i32[] = mul %1, %3")), Shows({"load_global_nc<4>"}));
  const std::string said = emitted(slice("  %8: i32[] = multiple_of %1 [4]"));
  CHECK_THAT(said, Shows({"pl::check_value(i64(scalar0) % 4 == 0, i64(scalar0), "
                          "\"multiple_of: the value {} is no multiple of 4\")",
                          "load_global_nc<4>(a0, in0 + "}));
  CHECK(occurrences(said, "i64(i") == 0);  // offsets of 32 bits
  CHECK_THAT(emitted(slice("  %8: i32[] = multiple_of %1 [2]")), Shows({"load_global_nc<2>"}));
  CHECK_THAT(emitted(slice("  %8: i32[] = multiple_of %1 [3]")), Shows({"load_global_nc<1>"}));
}

TEST_CASE("tiles that start at a multiple along their rows are moved 16 bytes at a time") {
  const auto text = [](const std::string& start) {
    return emitted(R"(kernel k
  grid
  args[0]: f16[64,4096] in blocks [64,4096]
  scalar 0: i32
  outputs[0]: f16[64,64] in blocks [64,64]
{ %0: ref block f16[64,4096] %1: i32[] %2: ref block f16[64,64]
)" + start + R"(
  %9: ref block f16[64,64] = at %0 [:,ds(%8,64)]
  %10: f16[64,64] = load %9
  store %2, %10
})");
  };
  CHECK_THAT(text("  %8: i32[] = multiple_of %1 [64]"), Shows({"load_global_nc<8>"}));
  CHECK_THAT(text("  %8: i32[] = abs %1"), Shows({"load_global_nc<1>"}));
}

TEST_CASE("what is said of a number goes through arithmetic") {
  const auto text = [](const std::string& n, const std::string& lines) {
    return emitted(
        slice("  %3: i32[] = constant 4\n  %7: i32[] = multiple_of %1 [" + n + "]\n" + lines));
  };
  CHECK_THAT(text("12", "  %8: i32[] = add %7, %3"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(text("6", "  %8: i32[] = mul %7, %3"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(text("6", "  %8: i32[] = multiple_of %7 [4]"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(text("1", "  %8: i32[] = shift_left %7, %3"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(text("4", "  %8: i32[] = neg %7"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(text("4", "  %8: i32[] = and %7, %1"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(text("4", "  %8: i32[] = sub %7, %1"), Shows({"load_global_nc<1>"}));
}

TEST_CASE("what is said of a wide number holds of the index that it becomes") {
  const std::string start = "  %7: i64[] = multiple_of %1 [64]\n  %8: i32[] = cast %7";
  CHECK_THAT(emitted(slice(start, "i64")), Shows({"scalar0 % 64 == 0", "load_global_nc<4>"}));
}

TEST_CASE("a hint that is known to hold is no check") {
  const std::string text = emitted(slice(
      "  %3: i32[] = constant 8\n  %7: i32[] = mul %1, %3\n  %8: i32[] = multiple_of %7 [4]"));
  CHECK_THAT(text, Shows({"load_global_nc<4>"}));
  CHECK(occurrences(text, "check_value") == 0);
}

TEST_CASE("slices of a ragged window keep wide accesses where it ends at a multiple") {
  const auto text = [](const std::string& facts) {
    return emitted(R"(kernel k
  grid cdiv(s0, 4096)
)" + facts + R"(  args[0]: f32[s0] in blocks [4096]
    { %0: i32[]
      yield %0
    }
  scalar 0: i32
  outputs[0]: f32[s0] in blocks [512]
    { %0: i32[]
      yield %0
    }
{ %0: ref block f32[4096] %1: i32[] %2: ref block f32[512]
  %8: i32[] = multiple_of %1 [64]
  %9: ref block f32[512] = at %0 [ds(%8,512)]
  %10: f32[512] = load %9
  store %2, %10
})");
  };
  CHECK_THAT(text("  symbol 0: multiple of 4\n"), Shows({"load_global_nc<4>(a0, w0 + "}));
  CHECK_THAT(text(""), Shows({"} else {", "load_global_nc<1>(&a0, w0 + "}));
}

TEST_CASE("slices along a loop's index are as aligned as its steps") {
  const auto text = [](const std::string& size) {
    return emitted(whole({"f32[4096]"}, {"f32[512]"}, R"(
  %2: i32[] = constant 0
  %3: i32[] = constant 8
  loop %2, %3
    { %4: i32[]
      %5: i32[] = constant )" + size + R"(
      %6: i32[] = mul %4, %5
      %7: ref block f32[512] = at %0 [ds(%6,512)]
      %8: f32[512] = load %7
      store %1, %8
    })"));
  };
  CHECK_THAT(text("512"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(text("6"), Shows({"load_global_nc<2>"}));
}

TEST_CASE("hints on arrays compare neighbours, those of hints inside once") {
  const std::string text = emitted(arrays("[64]", R"(
  %1: i32[64] = iota [0]
  %8: i32[64] = multiple_of %1 [16]
  %9: i32[64] = max_contiguous %8 [64])"));
  CHECK(occurrences(text, "check_value") == 2);
  CHECK_THAT(text,
             Shows({"% 16 == 0", "with which a run along dimension 0 begins, is no multiple of 16",
                    "does not follow the one before it, in 64 along dimension 0"}));
}

TEST_CASE("hints on what is loaded are left to the interpreter") {
  const std::string text = emitted(whole({"i32[64]"}, {"i32[64]"}, R"(
  %2: i32[64] = load %0
  %3: i32[64] = max_contiguous %2 [4]
  store %1, %3)"));
  CHECK(occurrences(text, "check_value") == 0);
}

TEST_CASE("a padded lane is held to nothing") {
  CHECK_THAT(emitted(arrays("[40]", R"(
  %1: i32[40] = iota [0]
  %9: i32[40] = max_contiguous %1 [40])")),
             Shows({"if (", " < 40) pl::check_value("}));
}
