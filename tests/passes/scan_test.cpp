// Scans: which registers, lanes and warps continue each other, and what is emitted for that.
#include <catch2/catch_test_macros.hpp>

#include "palladium/error.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

std::string cumsum(const std::string& type, const std::string& along) {
  return whole({type}, {type},
               "  %2: " + type + " = load %0\n  %3: " + type + " = cumsum %2 [" + along +
                   "]\n  store %1, %3");
}

}  // namespace

TEST_CASE("a row per warp is scanned by shuffles, several tiles of it at once") {
  const std::string text = cumsum("f32[4,1000]", "1,0");
  CHECK_THAT(decided(text),
             Shows({"s0 = cumsum %2 [1] by", "reg[j1 j2] lane[j4 j8 j16 j32 j64] warp[i1 i2]",
                    "shared bytes 0"}));
  const std::string program = emitted(text);
  CHECK_THAT(program, Shows({"f32 s[8];", "pl::scan_registers<4, false>(v0, s, pl::Sum());",
                             "pl::scan_lanes<4, 8, false, 31>(v0, s, pl::Sum());"}));
  CHECK(occurrences(program, "sync") == 0);
}

TEST_CASE("a row of all warps is scanned through shared memory, with one barrier") {
  const std::string text = cumsum("f32[4096]", "0,1");
  CHECK_THAT(decided(text),
             Shows({"s0 = cumsum %2 [0] reverse through s1 by", "shared bytes 128"}));
  const std::string program = emitted(text);
  CHECK_THAT(program, Shows({"pl::scan_warps<4, 8, true, 31, 3, 0, 1>(v0, s, smem, pl::Sum());"}));
  CHECK(occurrences(program, "_sync") == 0);
}

TEST_CASE("a scan wider than a warpgroup meets all its warps") {
  CHECK_THAT(emitted(by_warps(8, cumsum("i32[4096]", "0,0"))),
             Shows({"scan_registers<16, false>", "scan_warps<16, 1, false, 31, 7, 0, 1, 8>"}));
  CHECK_THAT(emitted(by_warps(16, cumsum("i32[4096]", "0,0"))),
             Shows({"scan_warps<8, 1, false, 31, 15, 0, 1, 16>"}));
}

TEST_CASE("columns that one thread holds are scanned in its registers alone") {
  const std::string program = emitted(cumsum("f32[8,512]", "0,0"));
  CHECK_THAT(program, Shows({"pl::scan_registers<8, false>("}));
  CHECK(occurrences(program, "scan_lanes") + occurrences(program, "scan_warps") == 0);
}

TEST_CASE("threads that share columns hold rows that follow one another") {
  const std::string text = cumsum("f32[64,64]", "0,0");
  CHECK_THAT(decided(text), Shows({"s0 = cumsum %2 [0]", "reg[", "i1 i2"}));
  CHECK(occurrences(decided(cumsum("f32[128,256]", "0,0")), "shared bytes 131072") == 0);
}

TEST_CASE("16-bit floats are summed in f32 and rounded once") {
  CHECK_THAT(emitted(cumsum("bf16[2048]", "0,0")),
             Shows({"f32 x[16];", "= pl::to<f32>(", "scan_warps<8, 2,", "= pl::to<bf16>(x["}));
  CHECK_THAT(emitted(cumsum("i8[2048]", "0,0")), Shows({"i8 s[", "scan_registers<16, false>(v0"}));
}

TEST_CASE("padding counts for nothing where the scan begins") {
  CHECK(occurrences(emitted(cumsum("f32[1000]", "0,0")), "?") == 0);
  CHECK_THAT(emitted(cumsum("f32[1000]", "0,1")), Shows({"< 1000 ? a0[e] : 0.0f"}));
}

TEST_CASE("a scan too large for registers goes tile by tile through shared memory") {
  const std::string text = by_warps(4, cumsum("f32[40000]", "0,0"));
  CHECK_THAT(decided(text),
             Shows({"s0: shared f32[40000]", "s0 = cumsum %2 [0] through s1 rolled(0) by", "sync",
                    "w1 = %3 rolled(0, 8 together)"}));
  CHECK_THAT(emitted(text),
             Shows({"f32 carry[1];", "PL_NOUNROLL for (i32 ri = 0; ri < 79; ++ri)",
                    "scan_registers<4, false>", "pl::warpgroup_sync();", "scan_warps<4, 1,",
                    "pl::fold(pl::Sum(), carry[0], x[e])", "pl::store_shared<4>", "carry[a] ="}));
  CHECK_THAT(emitted(by_warps(4, cumsum("f32[40000]", "0,1"))),
             Shows({"for (i32 back = 0; back < 79; ++back)", "const i32 ri = -back + 78;"}));
}

TEST_CASE("a scan too large for registers and shared memory is refused") {
  CHECK_THROWS_AS(decided(cumsum("f32[1000000]", "0,0")), CompileError);
}

TEST_CASE("a scan of one element is that element") {
  CHECK_THAT(decided(cumsum("f32[1,1]", "1,0")), Shows({"s0 = cumsum %2 [0,1] by"}));
}

TEST_CASE("a program is widened for a scan that fewer threads do not hold") {
  CHECK_THAT(decided(cumsum("f32[128,256]", "0,0")), Shows({"16 warps", "s0: registers"}));
}
