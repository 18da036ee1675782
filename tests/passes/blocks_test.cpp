// What of a block is computed once: where it begins, how much of it exists, who the thread is.
#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// A sum of two arrays of `extent` elements in blocks of 512; `map` yields the blocks' index.
std::string sum(const std::string& grid, const std::string& extent, const std::string& other,
                const std::string& map = "      yield %0\n") {
  const auto array = [&](const std::string& n) {
    return "f32[" + n + "] in blocks [512]\n    { %0: i32[]\n" + map + "    }\n";
  };
  return "kernel k\n  grid " + grid + "\n  args[0]: " + array(extent) +
         "  args[1]: " + array(other) + "  outputs[0]: " + array(extent) +
         R"({ %0: ref block f32[512] %1: ref block f32[512] %2: ref block f32[512]
  %3: f32[512] = load %0
  %4: f32[512] = load %1
  %5: f32[512] = add %3, %4
  store %2, %5
})";
}

const std::string next = R"(      %1: i32[] = constant 1
      %2: i32[] = add %0, %1
      yield %2
)";

}  // namespace

TEST_CASE("windows that begin together and end together share a start and a size") {
  const std::string text = emitted(sum("cdiv(s0, 512)", "s0", "s0"));
  CHECK(occurrences(text, "const i64 start") == 1);
  CHECK(occurrences(text, "const i32 size") == 1);
  CHECK_THAT(text, Shows({"w0 = in0 + start0;", "w1 = in1 + start0;", "w2 = out0 + start0;"}));
}

TEST_CASE("windows that begin together and end apart share a start, and have a size each") {
  const std::string text = emitted(sum("cdiv(s0, 512)", "s0", "s1"));
  CHECK(occurrences(text, "const i64 start") == 1);
  CHECK_THAT(text, Shows({"size0 = i32(pl::min(s0 - start0, i64(512)))",
                          "size1 = u64(start0) < u64(s1) ? ", "pl::check(size1 > 0, \"args[1]:"}));
  CHECK(occurrences(text, "const i32 size") == 2);
}

TEST_CASE("a block that its grid puts inside of its array is neither tested nor checked") {
  const std::string inside = emitted(sum("cdiv(s0, 512)", "s0", "s0"));
  CHECK(occurrences(inside, "u64(") == 0);
  CHECK(occurrences(inside, "pl::check") == 0);
  for (const std::string& elsewhere :
       {emitted(sum("s0", "s0", "s0")), emitted(sum("cdiv(s0, 512)", "s0", "s0", next)),
        emitted(sum("3", "1001", "1001"))}) {
    CHECK(occurrences(elsewhere, "u64(start0) < ") == 1);
    for (const char* origin : {"args[0]", "args[1]", "outputs[0]"})
      CHECK(occurrences(elsewhere, "pl::check(size0 > 0, \"" + std::string(origin)) == 1);
  }
  CHECK(occurrences(emitted(sum("2", "1001", "1001")), "pl::check") == 0);
}

TEST_CASE("a start has 32 bits where the extent has, an offset where the array has") {
  CHECK_THAT(emitted(sum("2", "1001", "1001")),
             Shows({"const i32 start0 = p0 * 512;", "pl::min(1001 - start0, 512)"}));
  const auto text = [](const std::string& rows) {
    const std::string array = "f32[" + rows + ",4096] in blocks [4,512]\n" +
                              "    { %0: i32[] %1: i32[]\n      yield %0, %1\n    }\n";
    return emitted("kernel k\n  grid cdiv(" + rows + ", 4), 8\n  args[0]: " + array +
                   "  outputs[0]: " + array +
                   "{ %0: ref block f32[4,512] %1: ref block f32[4,512]\n"
                   "  %2: f32[4,512] = load %0\n  store %1, %2\n}\n");
  };
  CHECK_THAT(text("524287"), Shows({"in0 + start1 + start0 * 4096;"}));
  CHECK_THAT(text("524288"), Shows({"in0 + i64(start1) + i64(start0) * 4096;"}));
  CHECK_THAT(text("s0"), Shows({"in0 + i64(start1) + start0 * 4096;"}));
}

TEST_CASE("what of a window a sequential axis does not move stands before its loop") {
  CHECK_THAT(emitted(R"(kernel k
  grid cdiv(s0, 64), cdiv(s1, 64) sequential
  args[0]: f32[s0,s1] in blocks [64,64]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
  outputs[0]: f32[s0,s1] in blocks [64,64]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
{ %0: ref block f32[64,64] %1: ref block f32[64,64]
  %2: f32[64,64] = load %0
  store %1, %2
})"),
             Shows({"start0 = i64(p0) * 64;", "size0 = ", "i = ", "j = ", "for (i32 p1 = 0;",
                    "start1 = i64(p1) * 64;", "size1 = ", "w0 = in0 + start1 + start0 * s1;"}));
}

TEST_CASE("the thread and its parts of coordinates are named once") {
  const std::string text = emitted(whole({"f32[16,256]"}, {"f32[16,256]", "f32[16]"}, R"(
  %3: f32[16,256] = load %0
  %4: f32[16,256] = exp %3
  %5: f32[16] = reduce_sum %4 [1]
  store %1, %4
  store %2, %5)"));
  CHECK(occurrences(text, "pl::thread()") == 1);
  CHECK(occurrences(text, " j = ") == 1);
  CHECK(occurrences(text, " i = ") == 1);
}

TEST_CASE("parts of coordinates that differ have names that differ") {
  const std::string text = emitted(whole({"f32[64,64]", "f32[64,64]"}, {"f32[64,64]"}, R"(
  %3: f32[64,64] = load %0
  %4: f32[64,64] = load %1
  %5: f32[64,64] = dot %3, %4
  store %2, %5)"));
  CHECK(occurrences(text, "const i32 i = ") == 1);
  CHECK(occurrences(text, "const i32 i_b = ") == 1);
}
