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
  // The last element of a block that begins at the array's last one counts.
  CHECK_THAT(text("524284"), Shows({"at0 = start1 + start0 * 4096;", "in0 + (at0 + j)"}));
  CHECK_THAT(text("524285"), Shows({"w0 = in0 + i64(start1) + i64(start0) * 4096;", "w0 + j"}));
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

// ---- loops

TEST_CASE("a fold over registers begins with the first of them") {
  const std::string text = emitted(whole({"f32[1,1024]"}, {"f32[1]", "f32[1,1024]"}, R"(
  %3: f32[1,1024] = load %0
  %4: f32[1] = reduce_max %3 [1]
  store %1, %4
  %5: f32[1,1024] = exp %3
  store %2, %5)"));
  CHECK_THAT(text, Shows({"f32 acc = v1[0];",
                          "r = 1; r < 8; ++r) acc = pl::fold(pl::Max(), acc, v1[r]);"}));
}

TEST_CASE("a sum of floats begins with 0, which makes a 0 of -0") {
  const auto text = [](const std::string& t) {
    const std::string type = t + "[1,1024]";
    return emitted(whole({type}, {t + "[1]", type},
                         "  %3: " + type + " = load %0\n  %4: " + t +
                             "[1] = reduce_sum %3 [1]\n  store %1, %4\n"
                             "  store %2, %3"));
  };
  CHECK_THAT(text("f32"), Shows({"f32 acc = 0.0f;", "r = 0; r < 8;"}));
  CHECK_THAT(text("i32"), Shows({"i32 acc = v1[0];", "r = 1; r < 8;"}));
}

TEST_CASE("a fold in a loop at run time begins with its identity") {
  CHECK_THAT(emitted(by_warps(4, whole({"f32[1,1048576]"}, {"f32[1]"}, R"(
  %2: f32[1,1048576] = load %0
  %3: f32[1] = reduce_max %2 [1]
  store %1, %3)"))),
             Shows({"f32 acc = pl::min_value<f32>();", "_Pragma(\"unroll 8\") for"}));
}

TEST_CASE("elements that are computed alike are counted by one loop") {
  const std::string text =
      emitted(whole({"f32[1,1024]"}, {"f32[1]", "f32[1,1024]", "f32[1,1024]"}, R"(
  %4: f32[1,1024] = load %0
  %5: f32[1] = reduce_sum %4 [1]
  store %1, %5
  %6: f32[1,1024] = exp %4
  store %2, %6
  store %3, %6)"));
  CHECK_THAT(text, Shows({"PL_UNROLL for (i32 r = 0; r < 8; ++r) v", "[r] = pl::exp(v", "[r]);"}));
}

TEST_CASE("all that a pass reads it reads before it stores for the first time") {
  const auto text = [](const std::string& n) {
    const std::string type = "f32[" + n + "]";
    return emitted(
        by_warps(4, whole({type, type}, {type},
                          "  %3: " + type + " = load %0\n  %4: " + type +
                              " = load %1\n  %5: " + type + " = add %3, %4\n  store %2, %5")));
  };
  CHECK_THAT(text("1024"),
             Shows({"f32 a0[8];", "f32 a1[8];", "ri < 2;", "load_global_nc<4>(a0 + ri * 4,",
                    "load_global_nc<4>(a1 + ri * 4,", "}", "ri < 2;",
                    "o2[e] = a0[ri * 4 + e] + "
                    "a1[ri * 4 + e];",
                    "store_global<4>"}));
  // More than 32 registers would wait for it.
  CHECK_THAT(text("4096"), Shows({"f32 a0[4];", "load_global_nc", "store_global"}));
}

// ---- rows that end between two vectors of a thread

namespace {

/// The fold of a row of `n`, which is also kept, and a square of it.
std::string row(const std::string& n, const std::string& fold, const std::string& value = "%3") {
  const std::string type = "f32[1," + n + "]";
  return emitted(
      by_warps(4, whole({type}, {"f32[1]", type},
                        "  %3: " + type + " = load %0\n  %6: " + type +
                            " = mul %3, %3\n  %7: i32[1," + n + "] = iota [1]\n  %8: " + type +
                            " = cast %7\n  %9: " + type + " = add %3, %8\n  %4: f32[1] = " + fold +
                            " " + value + " [1]\n  store %1, %4\n  store %2, %3")));
}

}  // namespace

TEST_CASE("a vector beyond a row's end is the thread's first again, and not stored") {
  const std::string text = row("1000", "reduce_max");
  CHECK_THAT(text, Shows({"load_global_nc<4>(v1 + rj * 4, in0 + j + (j + rj * 512 < 1000 ? ",
                          "acc = pl::fold(pl::Max(), acc, v1[", "store_global<4>",
                          "j + rj * 512 < 1000);"}));
  CHECK(occurrences(text, "pl::min_value") == 0);
}

TEST_CASE("a sum leaves out what is read again, a vector at a time") {
  CHECK_THAT(row("1000", "reduce_sum", "%6"),
             Shows({"f32 part = v1[rj * 4] * v1[rj * 4];",
                    "acc = pl::fold(pl::Sum(), acc, j + rj * 512 < 1000 ? part : 0.0f);"}));
}

TEST_CASE("the greatest of what depends on where it stands leaves out what is beyond the row") {
  CHECK_THAT(row("1000", "reduce_max", "%9"),
             Shows({"j + rj * 512 < 1000 ? part : pl::min_value<f32>()"}));
}

TEST_CASE("a row that ends within a thread's first vectors, or within a vector, is tested") {
  CHECK_THAT(row("500", "reduce_max"), Shows({"load_global_nc<4>(v1, in0 + j, j < 500)"}));
  const std::string odd = row("1001", "reduce_max");
  CHECK(occurrences(odd, "? (rj") == 0);
  CHECK(occurrences(odd, "pl::min_value") > 0);
}
