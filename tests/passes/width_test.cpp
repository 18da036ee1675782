// Programs of 8 and 16 warps: their layouts, products, reductions and barriers.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/error.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string copy(const std::string& type) {
  return whole({type}, {type}, "  %2: " + type + " = load %0\n  store %1, %2");
}

std::string sum(const std::string& type, const std::string& result, const std::string& dims) {
  return whole({type}, {result},
               "  %2: " + type + " = load %0\n  %3: " + result + " = reduce_sum %2 " + dims +
                   "\n  store %1, %3");
}

std::string product(const std::string& a, const std::string& b, const std::string& result) {
  return whole({a, b}, {result},
               "  %3: " + a + " = load %0\n  %4: " + b + " = load %1\n  %5: " + result +
                   " = dot %3, %4\n  store %2, %5");
}

std::string softmax(const std::string& row) {
  return whole({row}, {row},
               "  %2: " + row + " = load %0\n  %3: f32[1] = reduce_max %2 [1]\n  %4: " + row +
                   " = broadcast %3 [0]\n  %5: " + row + " = sub %2, %4\n  %6: " + row +
                   " = exp %5\n  %7: f32[1] = reduce_sum %6 [1]\n  %8: " + row +
                   " = broadcast %7 [0]\n  %9: " + row + " = div %6, %8\n  store %1, %9");
}

}  // namespace

TEST_CASE("a layout has a thread bit more for each doubling of the warps") {
  const std::string text = copy("f32[4096]");
  CHECK_THAT(decided(by_warps(4, text)),
             Shows({"lowered k\n  w0", "reg[i1 i2] lane[i4 i8 i16 i32 i64] warp[i128 i256]"}));
  CHECK_THAT(decided(by_warps(8, text)),
             Shows({"lowered k\n  8 warps\n", "lane[i4 i8 i16 i32 i64] warp[i128 i256 i512]"}));
  CHECK_THAT(decided(by_warps(16, text)),
             Shows({"16 warps\n", "lane[i4 i8 i16 i32 i64] warp[i128 i256 i512 i1024]"}));
}

TEST_CASE("a wide program asks for its threads by their number in the block") {
  const std::string narrow = emitted(by_warps(4, copy("f32[4096]")));
  CHECK_THAT(narrow, Shows({"PL_KERNEL(128)", "t = pl::thread();"}));
  CHECK_THAT(narrow, !ContainsSubstring("program_"));
  const std::string wide = emitted(by_warps(16, copy("f32[4096]")));
  CHECK_THAT(wide, Shows({"PL_KERNEL(512)", "t = pl::program_thread();"}));
  CHECK_THAT(wide, !ContainsSubstring("pl::thread()"));
}

TEST_CASE("what few threads hold is stored by the first of those that hold it") {
  CHECK_THAT(emitted(by_warps(8, copy("f32[128]"))), Shows({"store_global", "(t & 128) == 0"}));
  CHECK_THAT(emitted(by_warps(16, sum("f32[1,4096]", "f32[1]", "[1]"))),
             Shows({"store_global", "t == 0"}));
}

TEST_CASE("a reduction takes a place in shared memory per warp of the program") {
  const std::string text = sum("f32[4096]", "f32[]", "[0]");
  CHECK_THAT(decided(by_warps(8, text)), Shows({"shared f32[8]"}));
  CHECK_THAT(decided(by_warps(16, text)), Shows({"shared f32[16]"}));
  CHECK_THAT(emitted(by_warps(8, text)), Shows({"reduce_lanes<31>", "reduce_warps<7, 0, 1, 8>"}));
  CHECK_THAT(emitted(by_warps(16, text)), Shows({"reduce_warps<15, 0, 1, 16>"}));
}

TEST_CASE("of 16 warps with a row for every four, each four exchange") {
  CHECK_THAT(emitted(by_warps(16, sum("f32[4,512]", "f32[4]", "[1]"))),
             Shows({"reduce_lanes<31>", "reduce_warps<3, 0, 1, 16>"}));
}

TEST_CASE("a barrier waits for all warps of the program, which has one copy of its memory") {
  const std::string text = by_warps(8, whole({"f32[1024]"}, {"f32[1024]"}, R"(
  %3: f32[1024] = load %0
  store %2, %3
  %4: f32[1024] = load %2
  store %1, %4)",
                                             {"smem f32[1024]"}));
  CHECK(occurrences(emitted(text), "pl::program_sync<8>();") == 1);
  CHECK_THAT(emitted(text), !ContainsSubstring("warpgroup"));
  CHECK_THAT(decided(text), ContainsSubstring("shared bytes 4096"));
}

TEST_CASE("a product is split over as many warps as there are, as square as may be") {
  const auto split = [](int warps, const std::string& a, const std::string& b,
                        const std::string& result) {
    const std::string text = decided(by_warps(warps, product(a, b, result)), 80);
    const std::size_t at = text.find("by mma_16816 on ") + 16;
    return text.substr(at, text.find(" warps", at) - at);
  };
  CHECK(split(4, "f16[128,32]", "f16[32,128]", "f32[128,128]") == "2x2");
  CHECK(split(8, "f16[128,32]", "f16[32,128]", "f32[128,128]") == "4x2");
  CHECK(split(16, "f16[128,32]", "f16[32,128]", "f32[128,128]") == "4x4");
  CHECK(split(8, "f16[16,32]", "f16[32,256]", "f32[16,256]") == "1x8");
  CHECK(split(16, "f16[256,32]", "f16[32,8]", "f32[256,8]") == "16x1");
  CHECK(split(16, "f16[16,16]", "f16[16,16]", "f32[16,16]") == "4x4");
  CHECK_THAT(emitted(by_warps(8, product("f16[128,32]", "f16[32,128]", "f32[128,128]")), 80),
             Shows({"f32 v0[64] = {};",
                    "dot_mma_16816<2, 8, 4, false, false, f16, 32, 64, 2, 256, 3, 2>(v0, "}));
}

TEST_CASE("what a warpgroup cannot hold whole, more warps do") {
  const std::string text = product("f16[128,16]", "f16[16,256]", "f32[128,256]");
  CHECK_THROWS_WITH(decided(by_warps(4, text)),
                    ContainsSubstring("whole by the 128 threads of a warpgroup: 131072 bytes take "
                                      "256 registers per thread, at most 192 are possible"));
  CHECK_THAT(decided(by_warps(8, text)), Shows({"registers f32[128,256]"}));
  CHECK_THROWS_WITH(
      decided(by_warps(16, product("f16[512,16]", "f16[16,256]", "f32[512,256]"))),
      ContainsSubstring("whole by the 512 threads of 16 warps: 524288 bytes take 256 registers"));
}

// ---- the width that lowering chooses

TEST_CASE("a program whose values fit a warpgroup stays one") {
  for (const std::string& text :
       {copy("f32[4096]"), sum("f32[64,128]", "f32[64]", "[1]"), softmax("f32[1,8192]"),
        product("f16[128,32]", "f16[32,64]", "f32[128,64]")})
    CHECK_THAT(decided(text), !ContainsSubstring("warps:"));
}

TEST_CASE(
    "accumulators of tensor cores take 128 registers of a thread before more warps are taken") {
  const auto by = [](const std::string& t, const std::string& rows, const std::string& columns) {
    return product(t + "[" + rows + ",32]", t + "[32," + columns + "]",
                   "f32[" + rows + "," + columns + "]");
  };
  CHECK_THAT(decided(by("f16", "128", "128"), 80), !ContainsSubstring("warps:"));
  CHECK_THAT(emitted(by("f16", "128", "128"), 80), Shows({"PL_KERNEL(128)", "f32 v0[128] = {};"}));
  CHECK_THAT(decided(by("f16", "128", "256"), 80),
             Shows({"2x4 warps", "8 warps: a value takes 256 registers of each of 128 threads\n"}));
  // What computes without them works in registers that loops index.
  CHECK_THAT(decided(by("f32", "128", "128"), 80),
             Shows({"8 warps: a value takes 128 registers of each of 128 threads\n"}));
}

TEST_CASE("a program of wgmma is no wider than its accumulators need, up to 128 registers") {
  const auto by = [](const std::string& rows, const std::string& columns) {
    return product("f16[" + rows + ",32]", "f16[32," + columns + "]",
                   "f32[" + rows + "," + columns + "]");
  };
  CHECK_THAT(decided(by("128", "128")), Shows({"8 warps: a value takes 128 registers"}));
  CHECK_THAT(decided(by("128", "256")),
             Shows({"by wgmma", "8 warps: a value takes 256 registers of each of 128 threads\n"}));
  // More warps would have no rows.
  CHECK_THAT(decided(by("64", "256")), !ContainsSubstring("warps:"));
}

TEST_CASE("a row that more threads can keep is read once") {
  CHECK_THAT(decided(softmax("f32[1,16384]")),
             Shows({"registers f32[1,16384]",
                    "8 warps: 128 threads would read a value again that more of them keep\n"}));
  CHECK_THAT(decided(softmax("f32[1,32768]")), Shows({"16 warps", "registers f32[1,32768]"}));
}

TEST_CASE("a row that no program can keep is streamed by a warpgroup") {
  const std::string text = decided(softmax("f32[1,65536]"));
  CHECK_THAT(text, !ContainsSubstring("warps:"));
  CHECK_THAT(text, ContainsSubstring("rolled(1, 8 together)"));
}

TEST_CASE("a width that is given is kept, whatever it costs") {
  CHECK_THAT(emitted(by_warps(4, product("f16[128,32]", "f16[32,128]", "f32[128,128]")), 80),
             Shows({"PL_KERNEL(128)", "f32 v0[128] = {};"}));
  CHECK_THAT(decided(by_warps(8, softmax("f32[1,32768]"))),
             Shows({"8 warps\n", "rolled(1, 8 together)"}));
}

TEST_CASE("one of several Pallas threads is a warpgroup") {
  std::string text = product("f16[128,32]", "f16[32,128]", "f32[128,128]");
  text.insert(text.find("\n{") + 1, "warpgroups 2\n");
  CHECK_THAT(emitted(text), Shows({"PL_KERNEL(256)", "f32 v0[128]"}));
}

// ---- what accumulators leave of a thread's registers

TEST_CASE("a product that leaves wgmma too few registers takes mma.sync, with a tile that fits") {
  const auto by = [](const std::string& columns, int warps = 0) {
    const std::string text =
        product("f16[256,64]", "f16[64," + columns + "]", "f32[256," + columns + "]");
    return decided(warps == 0 ? text : by_warps(warps, text));
  };
  for (const int warps : {0, 16})
    CHECK_THAT(by("256", warps),
               Shows({"by mma_16816 on 4x4 warps",
                      "by mma.sync, not by wgmma, because its accumulators take 128 of the 128 "
                      "registers that a thread of 512 has, and 26 are needed beside them; a block "
                      "that makes it f32[256,128] fits"}));
  for (const int warps : {0, 8, 16}) {
    CHECK_THAT(by("128", warps), Shows({"by wgmma"}));
    CHECK_THAT(by("128", warps), !ContainsSubstring("not by wgmma"));
  }
  CHECK_THAT(by("192"), Shows({"by wgmma"}));
  // Elsewhere nothing is lost but time.
  CHECK_THAT(decided(product("f16[256,64]", "f16[64,256]", "f32[256,256]"), 80),
             Shows({"partly in local memory, because values take",
                    "of the 128 registers that a "
                    "thread of 512 has, and 40 are needed beside them"}));
}

TEST_CASE("Pallas threads of one block share its registers") {
  const auto of = [](int warpgroups) {
    std::string text = product("f16[64,32]", "f16[32,256]", "f32[64,256]");
    return decided(
        text.insert(text.find("\n{") + 1, "warpgroups " + std::to_string(warpgroups) + "\n"));
  };
  CHECK_THAT(of(2), Shows({"by wgmma"}));
  CHECK_THAT(of(3), Shows({"by wgmma"}));
  CHECK_THAT(of(4), Shows({"by mma_16816", "128 of the 128 registers that a thread of 512 has"}));
}

// Products of one A of 64 rows.
std::string two_products(const std::string& columns, int warps = 0) {
  const std::string b = "f16[32," + columns + "]", c = "f32[64," + columns + "]";
  const auto by = [&](const std::string& text) {
    return decided(warps == 0 ? text : by_warps(warps, text));
  };
  return by(whole({"f16[64,32]", "f16[32,256]", b}, {"f32[64,256]", c},
                  "  %5: f16[64,32] = load %0\n  %6: f16[32,256] = load %1\n  %7: " + b +
                      " = load %2\n  %8: f32[64,256] = dot %5, %6\n  %9: " + c +
                      " = dot %5, %7\n  store %3, %8\n  store %4, %9"));
}

TEST_CASE("warpgroups share columns only where fewer cannot hold the program") {
  CHECK_THAT(two_products("192"), Shows({"by wgmma on 4x1 warps", "by wgmma on 4x1 warps"}));
  CHECK_THAT(two_products("192"), !ContainsSubstring("warps:"));
  CHECK_THAT(two_products("256"),
             Shows({"by wgmma on 4x2 warps", "by wgmma on 4x2 warps",
                    "8 warps: a value takes 128 registers of each of 128 threads\n"}));
  CHECK_THAT(two_products("256"), !ContainsSubstring("local memory"));
  // By as many warps as somebody wants: with a block for which registers of both are enough.
  CHECK_THAT(two_products("256", 4),
             Shows({"by wgmma on 4x1 warps", "by wgmma on 4x1 warps",
                    "partly in local memory, because values take 256 of the 255 registers that a "
                    "thread of 128 has, and 26 are needed beside them; a block that makes it "
                    "f32[64,128] fits"}));
}

// 16 columns of B as (K, N) are one panel of 32 bytes, which no two warpgroups share.
TEST_CASE("a program becomes wider than wgmma allows only where its values find room so") {
  const auto beside = [](const std::string& columns) {
    const std::string b = "f16[32," + columns + "]", c = "f32[64," + columns + "]";
    return decided(whole({"f16[64,32]", b, b, "f16[32,16]"}, {c, c, "f32[64,16]"},
                         "  %7: f16[64,32] = load %0\n  %8: " + b + " = load %1\n  %9: " + b +
                             " = load %2\n  %10: f16[32,16] = load %3\n  %11: " + c +
                             " = dot %7, %8\n  %12: " + c +
                             " = dot %7, %9\n  %13: f32[64,16] = dot %7, %10\n  store %4, %11\n"
                             "  store %5, %12\n  store %6, %13"));
  };
  CHECK_THAT(beside("192"), Shows({"by wgmma on 4x1", "by wgmma on 4x1", "by wgmma on 4x1"}));
  CHECK_THAT(beside("192"), !ContainsSubstring("warps:"));
  CHECK_THAT(beside("256"),
             Shows({"by wgmma on 4x2", "by wgmma on 4x2", "by mma_16816", "8 warps: ",
                    "so many multiply by mma.sync what fewer would by "
                    "wgmma"}));
}

TEST_CASE("of a width that loses wgmma is said which keeps it") {
  const auto by = [](int warps, const char* b) {
    return decided(by_warps(warps, product("f16[64,32]", "f16[32," + std::string(b) + "]",
                                           "f32[64," + std::string(b) + "]")));
  };
  CHECK_THAT(by(16, "16"), Shows({"by mma_16816",
                                  "by mma.sync, not by wgmma, because 16 warps would have too "
                                  "little each of its 64 rows and 16 columns; with num_warps = "
                                  "4 it is by wgmma"}));
  CHECK_THAT(by(4, "16"), !ContainsSubstring("not by wgmma"));
  CHECK_THAT(by(16, "256"), !ContainsSubstring("not by wgmma"));
}
