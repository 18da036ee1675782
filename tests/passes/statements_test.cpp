// Loop nests, barriers, products in place, loops and masks.
#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// a (f16[64,32]) times b (f16[32,64]) in a loop of 8; %8 is the carry, %11 the product.
std::string loop_of_products(const std::string& in_loop, const std::string& next) {
  return whole({"f16[8,64,32]", "f16[8,32,64]"}, {"f32[64,64]"}, R"(
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5: f32[64,64] = constant 0
  %6: f32[64,64] = constant 2
  %7 = loop %3, %4 carry %5
    { %14: i32[] %8: f32[64,64]
      %15: ref block f16[64,32] = at %0 [%14, :, :]
      %9: f16[64,32] = load %15
      %16: ref block f16[32,64] = at %1 [%14, :, :]
      %10: f16[32,64] = load %16
      %11: f32[64,64] = dot %9, %10
)" + in_loop + "\n      yield " + next + R"(
    }
  %20: f32[64,64] = get %7 [0]
  store %2, %20)");
}

std::string product(const std::string& a, const std::string& b, const std::string& result,
                    const std::string& options = "") {
  return whole({a, b}, {result},
               "  %3: " + a + " = load %0\n  %4: " + b + " = load %1\n  %5: " + result +
                   " = dot %3, %4" + options + "\n  store %2, %5");
}

}  // namespace

TEST_CASE("stores to memory that one thread alone touches need no barrier") {
  CHECK(occurrences(decided(whole({"f32[512]"}, {"f32[512]"}, R"(
  %2: f32[512] = load %0
  store %1, %2)")),
                    "sync") == 0);
}

TEST_CASE("who reads shared memory waits for who stores there") {
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %3: f32[128] = load %0
  store %2, %3
  %4: f32[128] = load %2
  store %1, %4)",
                           {"smem f32[128]"})),
             Shows({"w2 = %3", "sync\n", "w1 = %4"}));
}

TEST_CASE("one barrier serves two stores to shared memory, and none stands around them") {
  const std::string text = emitted(whole({"f32[128]"}, {"f32[128]"}, R"(
  %4: f32[128] = load %0
  store %2, %4
  store %3, %4
  %5: f32[128] = load %2
  %6: f32[128] = load %3
  %7: f32[128] = add %5, %6
  store %1, %7)",
                                         {"smem f32[128]", "smem f32[128]"}));
  CHECK(occurrences(text, "warpgroup_sync") == 1);
}

TEST_CASE("a swap reads all elements before any is written") {
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %2: f32[128] = load %0
  %3: f32[128] = swap %1, %2
  store %1, %3)")),
             Shows({"s0 = %3", "sync", "w1 = %2", "w1 = %3"}));
}

TEST_CASE("a masked store writes where its mask holds") {
  CHECK_THAT(decided(whole({"f32[512]"}, {"f32[512]"}, R"(
  %2: i32[512] = iota [0]
  %3: i32[512] = constant 100
  %4: bool[512] = lt %2, %3
  %5: f32[512] = load %0 mask %4
  store %1, %5 mask %4)")),
             Shows({"w1 = %5 where %4"}));
}

TEST_CASE("a loop whose carry is replaced element by element updates it in place") {
  const std::string text = decided(loop_of_products("      %12: f32[64,64] = mul %8, %6", "%12"));
  CHECK_THAT(text, Shows({"s2 = %5", "loop %7 {", "s2 = %15", "}", "w2 = %16"}));
}

TEST_CASE("a loop that exchanges two carries takes both next values before it sets either") {
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %2: f32[128] = load %0
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5: f32[128] = constant 0
  %6 = loop %3, %4 carry %5, %2
    { %7: i32[] %8: f32[128] %9: f32[128]
      yield %9, %8
    }
  %10: f32[128] = get %6 [0]
  store %1, %10)")),
             Shows({"loop %6 {", "s4 = %9", "s5 = %8", "s2 = s4", "s1 = s5"}));
}

TEST_CASE("a carry that its next value reads at other elements is copied") {
  CHECK_THAT(decided(whole({"f32[16,16]"}, {"f32[16,16]"}, R"(
  %2: f32[16,16] = load %0
  %3: i32[] = constant 0
  %4: i32[] = constant 8
  %5 = loop %3, %4 carry %2
    { %6: i32[] %7: f32[16,16]
      %8: f32[16,16] = transpose %7 [1,0]
      yield %8
    }
  %9: f32[16,16] = get %5 [0]
  store %1, %9)")),
             Shows({"loop %5 {", "s4 = relayout s1", "s3 = %8", "reading s1 from s4", "s1 = s3"}));
}

TEST_CASE("a product that is added to a carry is accumulated in place") {
  CHECK_THAT(decided(loop_of_products("      %12: f32[64,64] = add %8, %11", "%12"), 80),
             Shows({"s1: inlined f32[64,64]", "s2 = %5", "loop %7 {", "sync", "sync",
                    "s2 += s4 * s5", "}", "w2 = %16"}));
}

TEST_CASE("a product whose carry is scaled is accumulated in place, behind its scaling") {
  const std::string fused =
      decided(loop_of_products("      %12: f32[64,64] = fma %8, %6, %11", "%12"));
  CHECK_THAT(fused, Shows({"s1: inlined f32[64,64]", "s2 = %5", "loop %7 {", "wait wgmma_group s2",
                           "s2 = %15", "wait m0", "s2 += s4 * s5", "}", "w2 = %17"}));
  CHECK(occurrences(fused, "relayout") == 0);
  // By what is computed of the product it cannot be scaled before.
  const std::string late = decided(loop_of_products(R"(      %17: f32[64,64] = exp %11
      %18: f32[64,64] = mul %8, %17
      %12: f32[64,64] = add %18, %11)",
                                                    "%12"));
  CHECK(occurrences(late, "+=") == 0);
}

TEST_CASE("a product whose carry is read once more is not accumulated in place") {
  const std::string text = decided(loop_of_products(R"(      %12: f32[64,64] = add %8, %11
      store %2, %8)",
                                                    "%12"));
  CHECK(occurrences(text, "+=") == 0);
}

TEST_CASE("a product is accumulated in a block in registers, unless the block is read meanwhile") {
  const auto text = [](const std::string& between, const std::string& behind) {
    return decided(R"(kernel k
  grid 4 sequential
  args[0]: f16[64,128] in blocks [64,32]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %1, %0
    }
  outputs[0]: f32[64,64] in blocks [64,64]
  outputs[1]: f32[64,64] in blocks [64,64]
{ %0: ref block f16[64,32] %1: ref block f32[64,64] %2: ref block f32[64,64]
  %3: f32[64,64] = load %1
  %4: f16[64,32] = load %0
  %5: f32[64,64] = dot %4, %4 trans_b
  %6: f32[64,64] = add %3, %5
)" + between + "  store %1, %6\n" +
                   behind + "}");
  };
  CHECK_THAT(text("", ""), Shows({"w1: outputs[0] registers s0", "s0 += "}));
  const std::string read = "  %7: f32[64,64] = load %1\n  store %2, %7\n";
  CHECK_THAT(text("", read), Shows({"w1: outputs[0] registers s0", "s0 += "}));
  CHECK_THAT(text(read, ""), Shows({"w1: outputs[0] registers s0"}));
  CHECK(occurrences(text(read, ""), "+=") == 0);
}

TEST_CASE("the operands of a product are staged, and behind a barrier multiplied") {
  CHECK_THAT(decided(product("f16[64,32]", "f16[32,64]", "f32[64,64]"), 80),
             Shows({"s1 = %3", "s2 = %4", "wait", "sync", "s0 = s1 * s2", "w2 = %5"}));
}

TEST_CASE("rows of an operand that ldmatrix reads are swizzled as far as they share banks") {
  CHECK_THAT(decided(product("f16[64,32]", "f16[32,64]", "f32[64,64]"), 80),
             Shows({"s1: shared f16[64,32] at 0 row stride 32 swizzle 2",
                    "s2: shared f16[32,64] at 4096 row stride 64 swizzle 3"}));
  CHECK_THAT(decided(product("f16[64,16]", "f16[16,24]", "f32[64,24]"), 80),
             Shows({"row stride 16 swizzle 1\n", "row stride 24\n"}));
}

TEST_CASE("rows that are read by elements are 16 bytes apart from a multiple of the banks") {
  CHECK_THAT(decided(product("f32[64,32]", "f32[32,64]", "f32[64,64]")),
             Shows({"s1: shared f32[64,32] at 0 row stride 36", "row stride 68"}));
}

TEST_CASE("a product takes the tensor core that has its types, else fma") {
  struct {
    const char *a, *b, *options, *unit;
    int compute_capability;
  } cases[] = {{"f16[64,16]", "f16[16,8]", "", "mma_1688", 75},
               {"f16[64,16]", "f16[16,8]", "", "mma_16816", 80},
               {"bf16[64,16]", "bf16[16,8]", "", "fma", 75},
               {"bf16[64,16]", "bf16[16,8]", "", "mma_16816", 100},
               {"f32[64,16]", "f32[16,8]", "", "fma", 90},
               {"f32[64,16]", "f32[16,8]", " tf32", "mma_tf32", 80},
               {"f32[64,16]", "f32[16,8]", " tf32", "fma", 75},
               {"i8[64,32]", "u8[32,8]", "", "mma_16832", 75},
               {"i8[64,32]", "i8[32,8]", "", "mma_16832", 120},
               {"i16[64,32]", "i16[32,8]", "", "fma", 90}};
  for (const auto& c : cases) {
    INFO(c.a << " " << c.options << " on " << c.compute_capability);
    const char* result = c.a[0] == 'i' ? "i32[64,8]" : "f32[64,8]";
    CHECK_THAT(decided(product(c.a, c.b, result, c.options), c.compute_capability),
               Shows({std::string("by ") + c.unit}));
  }
}

TEST_CASE("the warps of a product are arranged by its shape") {
  CHECK_THAT(decided(product("f16[128,16]", "f16[16,8]", "f32[128,8]"), 80),
             Shows({"on 4x1 warps"}));
  CHECK_THAT(decided(product("f16[64,16]", "f16[16,64]", "f32[64,64]"), 80),
             Shows({"on 2x2 warps"}));
  CHECK_THAT(decided(product("f16[16,16]", "f16[16,256]", "f32[16,256]"), 80),
             Shows({"on 1x4 warps"}));
}

TEST_CASE("warpgroups of wgmma have rows of their own, or else columns") {
  const auto text = [](int warps, const char* a, const char* b, const char* result,
                       const char* options = "") {
    return decided(by_warps(warps, product(a, b, result, options)));
  };
  CHECK_THAT(text(8, "f16[128,64]", "f16[64,128]", "f32[128,128]"),
             Shows({"tile(128,8) reg[j1 i8]", "by wgmma on 8x1 warps"}));
  // Of B as (K, N) so many as a panel has: of as many panels for each.
  CHECK_THAT(text(8, "f16[64,64]", "f16[64,128]", "f32[64,128]"),
             Shows({"tile(64,128) reg[j1 i8 j8 j16 j32] lane[j2 j4 i1 i2 i4] warp[i16 i32 j64]",
                    "shared f16[64,128]", "in panels of 128 bytes", "by wgmma on 4x2 warps"}));
  CHECK_THAT(text(8, "f16[64,64]", "f16[64,64]", "f32[64,64]"),
             Shows({"tile(64,64)", "warp[i16 i32 j32]", "in panels of 64 bytes",
                    "by wgmma on 4x2 warps"}));
  CHECK_THAT(text(16, "f16[128,64]", "f16[64,256]", "f32[128,256]"),
             Shows({"warp[i16 i32 i64 j64]", "by wgmma on 8x2 warps"}));
  CHECK_THAT(text(16, "f16[64,64]", "f16[64,256]", "f32[64,256]"),
             Shows({"warp[i16 i32 j64 j128]", "by wgmma on 4x4 warps"}));
  // Of B as (N, K) always 8.
  CHECK_THAT(text(8, "f16[64,64]", "f16[192,64]", "f32[64,192]", " trans_b"),
             Shows({"tile(64,16) reg[j1 i8] lane[j2 j4 i1 i2 i4] warp[i16 i32 j8]",
                    "by wgmma on 4x2 warps"}));
  CHECK_THAT(text(8, "f16[192,64]", "f16[64,128]", "f32[192,128]"),
             Shows({"by wgmma on 4x2 warps"}));
}

TEST_CASE("a product is one of wgmma on sm_90a where that is faster, with what it pads") {
  const auto unit = [](int cc, int warps, const char* a, const char* b, const char* result,
                       const char* options = "") {
    const std::string text = decided(by_warps(warps, product(a, b, result, options)), cc);
    // "s0 = s1 * s2 by mma_16816 on 4x1 warps"; layouts have stars, too.
    const std::size_t at = text.find(" by ", text.find(" * s")) + 4;
    return text.substr(at, text.find(" on ", at) - at);
  };
  CHECK(unit(90, 4, "bf16[64,16]", "bf16[16,64]", "f32[64,64]") == "wgmma");
  CHECK(unit(100, 4, "bf16[64,16]", "bf16[16,64]", "f32[64,64]") == "mma_16816");
  CHECK(unit(90, 4, "f16[50,20]", "f16[20,128]", "f32[50,128]") == "wgmma");
  CHECK(unit(90, 4, "f16[16,16]", "f16[16,128]", "f32[16,128]") == "mma_16816");
  CHECK(unit(90, 8, "f16[128,16]", "f16[16,256]", "f32[128,256]") == "wgmma");
  CHECK(unit(90, 8, "f16[64,16]", "f16[16,256]", "f32[64,256]") == "wgmma");
  CHECK(unit(90, 16, "f16[64,16]", "f16[16,8]", "f32[64,8]") == "mma_16816");
  CHECK(unit(90, 16, "f16[256,16]", "f16[16,128]", "f32[256,128]") == "wgmma");
  // Panels of B are whole where they lie along its columns.
  CHECK(unit(90, 4, "f16[64,16]", "f16[16,72]", "f32[64,72]") == "mma_16816");
  CHECK(unit(90, 4, "f16[64,16]", "f16[72,16]", "f32[64,72]", " trans_b") == "wgmma");
  CHECK(unit(90, 4, "f32[64,16]", "f32[72,16]", "f32[64,72]", " trans_b tf32") == "wgmma");
  CHECK(unit(90, 4, "f32[64,16]", "f32[16,72]", "f32[64,72]", " tf32") == "wgmma");
  CHECK(unit(90, 4, "i8[64,32]", "u8[72,32]", "i32[64,72]", " trans_b") == "wgmma");
  CHECK(unit(90, 4, "i8[64,32]", "u8[32,72]", "i32[64,72]") == "wgmma");
  CHECK(unit(90, 4, "i8[16,32]", "i8[128,32]", "i32[16,128]", " trans_b") == "mma_16832");
}

TEST_CASE("operands of wgmma stand in panels as wide as their rows allow") {
  CHECK_THAT(
      decided(product("f16[64,32]", "f16[32,64]", "f32[64,64]")),
      Shows({"s1: shared f16[64,32] at 512 in panels of 64 bytes",
             "s2: shared f16[32,64] at 5120 in panels of 128 bytes", "arrive m0 for 8192 bytes",
             "copy s1 = w0 at %0 on m0", "copy s2 = w1 at %1 on m0", "wait m0",
             "s0 = s1 * s2 by wgmma", "wait wgmma_group s0"}));
  CHECK_THAT(decided(product("f16[50,20]", "f16[20,96]", "f32[50,96]")),
             Shows({"s1: shared f16[64,32] at 0 in panels of 64 bytes",
                    "s2: shared f16[32,96] at 4096 in panels of 64 bytes",
                    "s1 = %3 asynchronously as [50,20] of [64,32]",
                    "s2 = %4 asynchronously as [20,96] of [32,96]", "close cp_async_group",
                    "wait cp_async_group", "fence", "sync", "s0 = s1 * s2 by wgmma"}));
}

TEST_CASE("operands of odd sizes are padded with zeros to the tensor core's shape") {
  CHECK_THAT(decided(product("f16[50,20]", "f16[20,30]", "f32[50,30]"), 80),
             Shows({"s1 = %3 asynchronously as [50,20] of [64,32]",
                    "s2 = %4 asynchronously as [20,30] of [32,32]"}));
  CHECK_THAT(decided(product("f16[50,20]", "f16[20,30]", "f32[50,30]"), 75),
             Shows({"s1 = %3 as [50,20] of [64,32]", "s2 = %4 as [20,30] of [32,32]"}));
}

TEST_CASE("a condition's statements stand inside of it") {
  CHECK_THAT(decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %2: ref block f32[] = at %0 [0]
  %3: f32[] = load %2
  %4: f32[] = constant 0
  %5: bool[] = lt %3, %4
  when %5
    {
      %6: f32[128] = constant 1
      store %1, %6
    })")),
             Shows({"when %5 {", "w1 = %6", "}"}));
}

TEST_CASE("parallel axes and the rank in a cluster are taken from one block number") {
  const std::string text = emitted(R"(kernel k
  grid 3, 5, 2 sequential, 7
  cluster 2
  outputs[0]: i32[3,5,7,128] in blocks [1,1,1,128]
    { %0: i32[] %1: i32[] %2: i32[] %3: i32[]
      %4: i32[] = constant 0
      yield %0, %1, %3, %4
    }
{ %0: ref block i32[1,1,1,128]
  %1: i32[1,1,1,128] = iota [3]
  store %0, %1
})");
  CHECK_THAT(text, Shows({"block = pl::block_x() / 2", "p3 = i32(block % 7)",
                          "p1 = i32(block / 7 % 5)", "p0 = i32(block / 7 / 5)", "p2 = 0; p2 < 2"}));
}
