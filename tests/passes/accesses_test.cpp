// Widths of memory accesses, their tests and hoisted parts, in the emitted text.
#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

std::string copy(const std::string& in, const std::string& out, const std::string& view = "",
                 const std::string& of = "%0") {
  return emitted(
      whole({in}, {out}, view + "\n  %9: " + out + " = load " + of + "\n  store %1, %9"));
}

}  // namespace

TEST_CASE("dense rows are read and written 16 bytes at a time") {
  CHECK_THAT(copy("f32[512]", "f32[512]"), Shows({"load_global_nc<4>", "store_global<4>"}));
  CHECK_THAT(copy("f16[1024]", "f16[1024]"), Shows({"load_global_nc<8>", "store_global<8>"}));
  CHECK_THAT(copy("f64[512]", "f64[512]"), Shows({"load_global_nc<2>", "store_global<2>"}));
}

TEST_CASE("bytes that are stored together are rounded together, however they are computed") {
  const auto rounded = [](const std::string& n, const std::string& to, int operations) {
    const std::string f32 = "f32[" + n + "]", type = to + "[" + n + "]";
    std::string body = "  %2: " + f32 + " = load %0\n", last = "%2";
    for (int i = 3; i < 3 + operations; ++i) {
      const std::string v = "%" + std::to_string(i);
      body += "  " + v + ": " + f32 + (i % 2 == 0 ? " = mul " : " = sub ") + last + ", %2\n";
      last = v;
    }
    return emitted(
        whole({f32}, {type}, body + "  %99: " + type + " = cast " + last + "\n  store %1, %99"));
  };
  for (const std::string to : {"i8", "u8", "f8e4m3"})
    for (const int operations : {0, 1, 20}) {
      CHECK_THAT(rounded("64,66", to, operations), Shows({"pl::to_all<2>(", "store_global<2>"}));
      CHECK_THAT(rounded("2048", to, operations), Shows({"pl::to_all<16>(", "store_global<16>"}));
    }
}

TEST_CASE("memory that the kernel writes is not read through the read-only cache") {
  CHECK_THAT(emitted(R"(kernel k
  grid
  args[0]: f32[512] in blocks [512]
  outputs[0]: f32[512] in blocks [512]
  alias: input 0 is output 0
{ %0: ref block f32[512] %1: ref block f32[512]
  %2: f32[512] = load %0
  %3: f32[512] = neg %2
  store %1, %3
})"),
             Shows({"pl::load_global<4>", "store_global<4>"}));
}

TEST_CASE("a slice is read by as many elements at a time as its start allows") {
  CHECK_THAT(copy("f32[1024]", "f32[512]", "  %2: ref block f32[512] = at %0 [ds(1,512)]", "%2"),
             Shows({"load_global_nc<1>"}));
  CHECK_THAT(copy("f32[1024]", "f32[512]", "  %2: ref block f32[512] = at %0 [ds(2,512)]", "%2"),
             Shows({"load_global_nc<2>"}));
  CHECK_THAT(copy("f32[1024]", "f32[512]", "  %2: ref block f32[512] = at %0 [ds(4,512)]", "%2"),
             Shows({"load_global_nc<4>"}));
}

TEST_CASE(
    "a slice with a stride is read by the vectors that its elements are in, if these are few") {
  const auto every = [](const std::string& n) {
    return copy("f32[8192]", "f32[512]", "  %2: ref block f32[512] = at %0 [ds(1,512," + n + ")]",
                "%2");
  };
  CHECK_THAT(every("2"), Shows({"q += 4) pl::load_global_nc<4>", "store_global<4>"}));
  CHECK_THAT(every("3"), Shows({"q += 4) pl::load_global_nc<4>", "store_global<4>"}));
  CHECK_THAT(every("4"), Shows({"load_global_nc<1>"}));
}

TEST_CASE("elements around those of a vector are read where they are in the array with them") {
  const auto every_second = [](const std::string& columns, const std::string& half) {
    return copy("f16[64," + columns + "]", "f16[64," + half + "]",
                "  %2: ref block f16[64," + half + "] = at %0 [ds(0,64), ds(0," + half + ",2)]",
                "%2");
  };
  CHECK_THAT(every_second("64", "32"), Shows({"load_global_nc<8>"}));
  CHECK_THAT(every_second("65", "32"), Shows({"load_global_nc<1>"}));
  // Of a single row, too, the array may end between the last one that is wanted and its neighbour.
  const auto row = [](const std::string& size) {
    return copy("f32[" + size + "]", "f32[512]", "  %2: ref block f32[512] = at %0 [ds(0,512,2)]",
                "%2");
  };
  CHECK_THAT(row("1024"), Shows({"load_global_nc<4>"}));
  CHECK_THAT(row("1023"), Shows({"load_global_nc<1>"}));
}

TEST_CASE("both halves of pairs are read once, and what is put together of them is stored") {
  const std::string pairs = emitted(whole({"f16[32,128]"}, {"f16[32,128]"}, R"(
  %2: f16[32,128] = load %0
  %3: f16[32,64,2] = reshape %2
  %4: f16[32,64,1] = slice %3 [0,0,0,1,1,1]
  %5: f16[32,64,1] = slice %3 [0,0,1,1,1,1]
  %6: f16[32,64,1] = neg %5
  %7: f16[32,64,2] = concatenate %6, %4 [2]
  %8: f16[32,128] = reshape %7
  store %1, %8)"));
  CHECK_THAT(pairs, Shows({"load_global_nc<8>", "store_global<8>"}));
  CHECK(occurrences(pairs, "load_global_nc") == 1);
  CHECK(occurrences(pairs, "shared") == 0);
  const std::string product = emitted(whole({"bf16[32,128]"}, {"f32[32,64]"}, R"(
  %2: bf16[32,128] = load %0
  %3: f32[32,128] = cast %2
  %4: f32[32,64] = slice %3 [0,0,1,2]
  %5: f32[32,64] = slice %3 [0,1,1,2]
  %6: f32[32,64] = mul %4, %5
  store %1, %6)"));
  CHECK_THAT(product, Shows({"load_global_nc<8>", "store_global<4>"}));
}

TEST_CASE("memory that the kernel writes is read by the elements that are wanted alone") {
  CHECK_THAT(emitted(R"(kernel k
  grid
  args[0]: f32[1024] in blocks [1024]
  outputs[0]: f32[1024] in blocks [1024]
  outputs[1]: f32[512] in blocks [512]
  alias: input 0 is output 0
{ %0: ref block f32[1024] %1: ref block f32[1024] %2: ref block f32[512]
  %3: ref block f32[512] = at %0 [ds(0,512,2)]
  %4: f32[512] = load %3
  store %2, %4
})"),
             Shows({"load_global<1>"}));
}

TEST_CASE("an array whose rows are aligned to elements is read by elements") {
  CHECK_THAT(emitted(R"(kernel k
  grid
  args[0]: f32[512] in blocks [512] aligned 4
  outputs[0]: f32[512] in blocks [512]
{ %0: ref block f32[512] %1: ref block f32[512]
  %2: f32[512] = load %0
  store %1, %2
})"),
             Shows({"load_global_nc<1>"}));
}

TEST_CASE("rows at an aligned run-time stride keep their vectors") {
  CHECK_THAT(emitted(R"(kernel k
  grid s0
  args[0]: f32[s0,512] in blocks [1,512] strided
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
  outputs[0]: f32[s0,512] in blocks [1,512]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
{ %0: ref block f32[1,512] %1: ref block f32[1,512]
  %2: f32[1,512] = load %0
  store %1, %2
})"),
             Shows({"i64(p0) * in0_stride0", "load_global_nc<4>", "store_global<4>"}));
}

TEST_CASE(
    "an end between the elements of a vector is left to the access, one beside it is a test") {
  const auto text = [](const std::string& extent) {
    const std::string array =
        "f32[" + extent + "] in blocks [512]\n    { %0: i32[]\n      yield %0\n    }\n";
    return emitted("kernel k\n  grid 2\n  args[0]: " + array + "  outputs[0]: " + array + R"(
{ %0: ref block f32[512] %1: ref block f32[512]
  %2: f32[512] = load %0
  store %1, %2
})");
  };
  CHECK_THAT(text("1001"), Shows({"if (size0 == 512) {", "load_global_nc<4>(a0, in0 + start0 + i);",
                                  "store_global<4>(out0 + start0 + i, o1);", "} else {"}));
  CHECK_THAT(text("1000"), Shows({"load_global_nc<4>(a0, in0 + start0 + i, i < size0)",
                                  "store_global<4>(out0 + start0 + i, o1, i < size0)"}));
  CHECK(occurrences(text("1024"), "size") == 0);
}

TEST_CASE("a block that may be wholly out of bounds is checked where it begins") {
  CHECK_THAT(emitted(R"(kernel k
  grid 2
  args[0]: f32[401] in blocks [512]
    { %0: i32[]
      yield %0
    }
  outputs[0]: f32[1024] in blocks [512]
    { %0: i32[]
      yield %0
    }
{ %0: ref block f32[512] %1: ref block f32[512]
  %2: f32[512] = load %0
  store %1, %2
})"),
             Shows({"const i64 start0 = i64(p0) * 512;",
                    "pl::check(size0 > 0, \"args[0]:", "load_global"}));
}

TEST_CASE("16-bit elements that are widened are read as many at a time as they are written") {
  const std::string text = emitted(whole({"f16[512]"}, {"f32[512]"}, R"(
  %2: f16[512] = load %0
  %3: f32[512] = cast %2
  store %1, %3)"));
  CHECK_THAT(text, Shows({"load_global_nc<4>", "pl::to<f32>", "store_global<4>"}));
}

TEST_CASE("16-bit elements that are widened before a sum are read 16 bytes at a time") {
  const std::string text = emitted(whole({"f16[8,512]"}, {"f32[8,1]"}, R"(
  %2: f16[8,512] = load %0
  %3: f32[8,512] = cast %2
  %4: f32[8] = reduce_sum %3 [1]
  %5: f32[8,1] = reshape %4
  store %1, %5)"));
  CHECK_THAT(text, Shows({"load_global_nc<8>", "pl::fold", "pl::to<f32>"}));
}

namespace {

// 64 columns of a block of 512 in each iteration of a loop, from `start`, written with %4 the
// counter.
std::string in_iterations(const std::string& start) {
  return emitted(whole({"f16[128,512]"}, {"f32[128,1]"}, R"(
  %2: i32[] = constant 0
  %3: i32[] = constant 8
  %4: f32[128,1] = constant 0
  %5 = loop %2, %3 carry %4
    { %6: i32[] %7: f32[128,1]
)" + start + R"(
      %10: ref block f16[128,64] = at %0 [:,ds(%9,64)]
      %11: f16[128,64] = load %10
      %12: f32[128,64] = cast %11
      %13: f32[128] = reduce_sum %12 [1]
      %14: f32[128,1] = reshape %13
      %15: f32[128,1] = add %7, %14
      yield %15
    }
  %16: f32[128,1] = get %5 [0]
  store %1, %16)"));
}

}  // namespace

TEST_CASE("a slice that a loop moves by whole vectors is read by vectors, any other by elements") {
  CHECK_THAT(in_iterations("      %8: i32[] = constant 64\n      %9: i32[] = mul %6, %8"),
             Shows({"PL_NOUNROLL", "load_global_nc<8>"}));
  CHECK_THAT(in_iterations("      %8: i32[] = constant 2\n      %9: i32[] = mul %6, %8"),
             Shows({"PL_NOUNROLL", "load_global_nc<2>"}));
  CHECK_THAT(in_iterations("      %8: i32[] = constant 1\n      %9: i32[] = add %6, %8"),
             Shows({"PL_NOUNROLL", "load_global_nc<1>"}));
}

TEST_CASE("a mask that is the same along a vector keeps it whole") {
  const std::string text = emitted(whole({"f32[8,512]"}, {"f32[8,512]"}, R"(
  %2: i32[8,512] = iota [0]
  %3: i32[8,512] = constant 5
  %4: bool[8,512] = lt %2, %3
  %5: f32[8,512] = constant 7
  %6: f32[8,512] = load %0 mask %4 other %5
  store %1, %6 mask %4)"));
  CHECK_THAT(text, Shows({"load_global_nc<4>", "store_global<4>"}));
}

TEST_CASE("what is the same in all columns is computed once per row") {
  const std::string text = emitted(whole({"f32[512,1]", "f32[512,64]"}, {"f32[512,64]"}, R"(
  %3: f32[512,1] = load %0
  %4: f32[512,1] = exp %3
  %5: f32[512,64] = broadcast %4 [0,1]
  %6: f32[512,64] = load %1
  %7: f32[512,64] = mul %5, %6
  store %2, %7)"));
  CHECK_THAT(text, Shows({"pl::exp(", "for (i32 e = 0", "] = "}));
  CHECK(occurrences(text, "pl::exp") == 1);
}

TEST_CASE(
    "registers are indexed by unrolled loops alone, and what is in them is stored from there") {
  const std::string text = emitted(whole({"f16[128,32]", "f16[32,128]"}, {"f32[128,128]"}, R"(
  %3: f16[128,32] = load %0
  %4: f16[32,128] = load %1
  %5: f32[128,128] = dot %3, %4
  store %2, %5)"),
                                   80);
  CHECK_THAT(text, Shows({"dot_mma_16816", "store_global<"}));
  CHECK(occurrences(text, "PL_NOUNROLL") == 0);
  CHECK(occurrences(text, "load_shared") == 0);
}

TEST_CASE("a transposed copy writes whole vectors") {
  CHECK_THAT(emitted(whole({"f32[64,64]"}, {"f32[64,64]"}, R"(
  %2: f32[64,64] = load %0
  %3: f32[64,64] = transpose %2 [1,0]
  store %1, %3)")),
             Shows({"copy_async<4>", "load_shared_padded<1>", "store_global<4>"}));
}

TEST_CASE("the guard of scratch memory stands in loops alone") {
  const std::string in_loop = emitted(whole({"f32[8,2048]"}, {"f32[1]"}, R"(
  %2: i32[] = constant 0
  %3: i32[] = constant 8
  %4: f32[] = constant 0
  %5 = loop %2, %3 carry %4
    { %6: i32[] %7: f32[]
      %13: ref block f32[2048] = at %0 [%6, :]
      %8: f32[2048] = load %13
      %9: f32[] = reduce_sum %8 [0]
      %10: f32[] = mul %7, %9
      yield %10
    }
  %11: f32[] = get %5 [0]
  %12: f32[1] = broadcast %11
  store %1, %12)"));
  CHECK_THAT(in_loop, Shows({"for (i32", "warpgroup_sync", "reduce_warps"}));
}

TEST_CASE("elements that a mask covers are accessed one by one") {
  CHECK_THAT(emitted(whole({"f32[512]"}, {"f32[512]"}, R"(
  %2: i32[512] = iota [0]
  %3: i32[512] = constant 102
  %4: bool[512] = lt %2, %3
  %5: f32[512] = constant 7
  %6: f32[512] = load %0 mask %4 other %5
  store %1, %6 mask %4)")),
             Shows({"< 102", "load_global_nc<1>(&a1, in0 + i + e, x0)", "x0 ? a1 : 7.0f",
                    "store_global<1>"}));
}

TEST_CASE("a vector that a mask covers as a whole, or not at all, is accessed as one") {
  CHECK_THAT(emitted(whole({"f32[512]"}, {"f32[512]"}, R"(
  %2: i32[512] = iota [0]
  %3: i32[512] = constant 100
  %4: bool[512] = ge %2, %3
  %5: f32[512] = constant 7
  %6: f32[512] = load %0 mask %4 other %5
  store %1, %6 mask %4)")),
             Shows({"const bool x0 = i >= 100;", "load_global_nc<4>(a1, in0 + i, x0)",
                    "x0 ? a1[e] : 7.0f", "store_global<4>(out0 + i, o2, x0)"}));
}

TEST_CASE("parts of an element are in bounds where it is") {
  const std::string text = emitted(R"(kernel k
  grid cdiv(s0, 4)
  args[0]: u32[s0] in blocks [4]
    { %0: i32[]
      yield %0
    }
  outputs[0]: u32[s0] in blocks [4]
    { %0: i32[]
      yield %0
    }
{ %0: ref block u32[4] %1: ref block u32[4]
  %2: ref block u16[8] = ref_bitcast %0
  %3: u16[8] = load %2
  %4: u16[] = reduce_max %3 [0]
  %5: u16[] = reduce_min %3 [0]
  %6: u16[] = sub %4, %5
  %7: u32[] = cast %6
  %8: u32[4] = broadcast %7
  store %1, %8
})");
  CHECK_THAT(text, Shows({"n0 = i >> 1", "load_global_nc<1>", "n0 < size0"}));
}
