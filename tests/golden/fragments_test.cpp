// Which element a register of a fragment holds, by products whose results tell it.
//
// The tables say it the other way round than the emulator: for each element of the matrix, in
// which thread and register it lies.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

// The unit matrix of k x k as B, K-major without swizzle, by one warpgroup: `bytes` per element.
std::string unit_matrix(int k, const std::string& type, const std::string& one) {
  return "  const u32 smem = pl::shared_base(), t = pl::thread();\n"
         "  typedef " +
         type +
         " T;\n"
         "  constexpr i32 K = " +
         std::to_string(k) +
         ", per = 16 / sizeof(T);\n"
         "  for (i32 i = t; i < K * K; i += 128) {  // column n, row i of B\n"
         "    const i32 n = i / K, k = i % K;\n"
         "    const T v = n == k ? " +
         one +
         " : T{};\n"
         "    pl::store_shared(smem + n % 8 * 16 + n / 8 * 128 + k / per * (K / 8 * 128) + k % per "
         "* sizeof(T), &v);\n"
         "  }\n"
         "  pl::fence_async_shared();\n"
         "  pl::warpgroup_sync();\n"
         "  const u64 b = pl::matrix_descriptor(smem, K / 8 * 128, 128, 0);\n";
}

// Element (row, column) of 64 x n numbers that lie in accumulators of n / 2 registers per thread.
template <class T>
T element(const std::vector<T>& registers, int n, int row, int column) {
  const int thread = 32 * (row / 16) + 4 * (row % 8) + column % 8 / 2;
  const int index = 4 * (column / 8) + 2 * (row / 8 % 2) + column % 2;
  return registers[static_cast<std::size_t>(thread * n / 2 + index)];
}

}  // namespace

TEST_CASE("accumulators: rows go over lanes of four and warps, columns over pairs") {
  // Row i of A is (i, 1, 0...), column j of B is (256, j, 0...): d is 256 i + j.
  constexpr int n = 64;
  std::vector<float> o(128 * n / 2);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const bf16 zero[8] = {};
  bf16 row[8] = {}, column[8] = {};
  row[0] = pl::to<bf16>(f32(t));
  row[1] = pl::to<bf16>(1.0f);
  column[0] = pl::to<bf16>(256.0f);
  column[1] = pl::to<bf16>(f32(t));
  if (t < 64) {
    pl::store_shared<8>(smem + 16 * t, row);
    pl::store_shared<8>(smem + 1024 + 16 * t, zero);
    pl::store_shared<8>(smem + 2048 + 16 * t, column);
    pl::store_shared<8>(smem + 3072 + 16 * t, zero);
  }
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[32];
  pl::wgmma_fence();
  pl::wgmma_m64n64k16_f32_bf16_bf16(d, pl::matrix_descriptor(smem, 1024, 128, 0), pl::matrix_descriptor(smem + 2048, 1024, 128, 0), false);
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  for (i32 i = 0; i < 32; ++i) pl::store_global(o + 32 * t + i, &d[i]);)");
  k.writes("f32", "o", o).run();
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < n; ++column) {
      CAPTURE(row, column);
      REQUIRE(element(o, n, row, column) == static_cast<float>(256 * row + column));
    }
  }
  // As the manual's figure has it.
  struct Golden {
    int thread, index, row, column;
  };
  constexpr Golden figure[] = {{0, 0, 0, 0},    {0, 1, 0, 1},     {0, 2, 8, 0},   {0, 3, 8, 1},
                               {0, 4, 0, 8},    {1, 0, 0, 2},     {3, 3, 8, 7},   {4, 0, 1, 0},
                               {31, 0, 7, 6},   {31, 3, 15, 7},   {32, 0, 16, 0}, {96, 2, 56, 0},
                               {127, 3, 63, 7}, {127, 31, 63, 63}};
  for (const Golden& g : figure) {
    CHECK(o[static_cast<std::size_t>(g.thread * 32 + g.index)] ==
          static_cast<float>(256 * g.row + g.column));
  }
}

TEST_CASE("operands A of 16 bits in registers: pairs along k, then rows, then k") {
  std::vector<float> threads(128 * 8), elements(128 * 8);
  SmallKernel k(unit_matrix(16, "bf16", "pl::to<bf16>(1.0f)") + R"(
  f32 d[8], e[8];
  u32 x[4], y[4];
  const bf16 me = pl::to<bf16>(f32(t));
  PL_UNROLL for (i32 j = 0; j < 4; ++j) {
    x[j] = pl::pack(me, me);
    y[j] = pl::pack(pl::to<bf16>(f32(2 * j)), pl::to<bf16>(f32(2 * j + 1)));
  }
  pl::wgmma_fence();
  pl::wgmma_m64n16k16_f32_bf16_bf16_rs(d, x, b, false);
  pl::wgmma_m64n16k16_f32_bf16_bf16_rs(e, y, b, false);
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  pl::wgmma_registers(e);
  for (i32 i = 0; i < 8; ++i) pl::store_global(threads + 8 * t + i, &d[i]);
  for (i32 i = 0; i < 8; ++i) pl::store_global(elements + 8 * t + i, &e[i]);)");
  k.writes("f32", "threads", threads).writes("f32", "elements", elements).run();
  for (int row = 0; row < 64; ++row) {
    for (int along = 0; along < 16; ++along) {
      CAPTURE(row, along);
      REQUIRE(element(threads, 16, row, along) ==
              static_cast<float>(32 * (row / 16) + 4 * (row % 8) + along % 8 / 2));
      REQUIRE(element(elements, 16, row, along) ==
              static_cast<float>(along % 2 + 2 * (row / 8 % 2) + 4 * (along / 8)));
    }
  }
}

TEST_CASE("operands A of 8 bits in registers: four along k, then rows, then k") {
  std::vector<std::int32_t> threads(128 * 16), elements(128 * 16);
  SmallKernel k(unit_matrix(32, "u8", "T(1)") + R"(
  i32 d[16], e[16];
  u32 x[4], y[4];
  PL_UNROLL for (u32 j = 0; j < 4; ++j) {
    x[j] = t * 0x01010101;
    y[j] = 0x03020100 + 4 * j * 0x01010101;
  }
  pl::wgmma_fence();
  pl::wgmma_m64n32k32_s32_u8_u8_rs(d, x, b, false);
  pl::wgmma_m64n32k32_s32_u8_u8_rs(e, y, b, false);
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  pl::wgmma_registers(e);
  for (i32 i = 0; i < 16; ++i) pl::store_global(threads + 16 * t + i, &d[i]);
  for (i32 i = 0; i < 16; ++i) pl::store_global(elements + 16 * t + i, &e[i]);)");
  k.writes("i32", "threads", threads).writes("i32", "elements", elements).run();
  for (int row = 0; row < 64; ++row) {
    for (int along = 0; along < 32; ++along) {
      CAPTURE(row, along);
      REQUIRE(element(threads, 32, row, along) == 32 * (row / 16) + 4 * (row % 8) + along % 16 / 4);
      REQUIRE(element(elements, 32, row, along) ==
              along % 4 + 4 * (row / 8 % 2) + 8 * (along / 16));
    }
  }
}

TEST_CASE("operands A of tf32 in registers: one along k, then rows, then k") {
  std::vector<float> o(128 * 4);
  SmallKernel k(unit_matrix(8, "f32", "1.0f") + R"(
  f32 d[4];
  u32 x[4];
  PL_UNROLL for (u32 j = 0; j < 4; ++j) x[j] = pl::bitcast<u32>(f32(4 * t + j));
  pl::wgmma_fence();
  pl::wgmma_m64n8k8_f32_tf32_tf32_rs(d, x, b, false);
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  for (i32 i = 0; i < 4; ++i) pl::store_global(o + 4 * t + i, &d[i]);)");
  k.writes("f32", "o", o).run();
  for (int row = 0; row < 64; ++row) {
    for (int along = 0; along < 8; ++along) {
      CAPTURE(row, along);
      const int thread = 32 * (row / 16) + 4 * (row % 8) + along % 4;
      const int index = row / 8 % 2 + 2 * (along / 4);
      REQUIRE(element(o, 8, row, along) == static_cast<float>(4 * thread + index));
    }
  }
}
