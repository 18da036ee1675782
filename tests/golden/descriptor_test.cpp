// Where operands of wgmma lie: descriptors bit by bit, and the chunks of the canonical layouts.
//
// The layouts are written down as the PTX manual draws them: tiles whose rows follow one another,
// in which the 16-byte chunks of a row are exchanged.
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/emulator/descriptor.hpp"
#include "runtime/emulator/tensor_map.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;
using emulator::MatrixDescriptor;
using emulator::swizzled;

namespace {

struct Golden {
  std::uint64_t bits;
  std::uint32_t start, leading, stride;
  int swizzle;
};
constexpr Golden descriptors[] = {
    {0x4000004000010040, 1024, 16, 1024, 128},
    {0x8000002000010080, 2048, 16, 512, 64},
    {0xc000001000000100, 4096, 0, 256, 32},
    {0x0000000800400048, 1152, 1024, 128, 0},
    {0x40003fff3fff3fff, 0x3fff0, 0x3fff0, 0x3fff0, 128},
};

// In which column a chunk of a row lies, for rows of 8, 4, 2 and 1 chunks.
std::uint32_t exchanged(int swizzle, std::uint32_t row, std::uint32_t chunk) {
  switch (swizzle) {
  case 128: return chunk ^ (row % 8);
  case 64: return chunk ^ (row / 2 % 4);
  case 32: return chunk ^ (row / 4 % 2);
  default: return chunk;
  }
}

}  // namespace

TEST_CASE("a descriptor's fields stand where the manual says") {
  for (const Golden& g : descriptors) {
    const MatrixDescriptor d = MatrixDescriptor::decode(g.bits);
    CAPTURE(g.bits);
    CHECK(d.start == g.start);
    CHECK(d.leading == g.leading);
    CHECK(d.stride == g.stride);
    CHECK(d.swizzle == g.swizzle);
    CHECK(d.base_offset == 0);
  }
  CHECK(MatrixDescriptor::decode(0x000e000000000000).base_offset == 7);
}

TEST_CASE("matrix_descriptor makes the bits of the manual") {
  std::vector<std::uint64_t> o(5);
  test::SmallKernel k(R"(
  const u64 v[5] = {pl::matrix_descriptor(1024, 16, 1024, 128), pl::matrix_descriptor(2048, 16, 512, 64),
                    pl::matrix_descriptor(4096, 0, 256, 32), pl::matrix_descriptor(1152, 1024, 128, 0),
                    pl::matrix_descriptor(0x3fff0, 0x3fff0, 0x3fff0, 128)};
  PL_UNROLL for (i32 i = 0; i < 5; ++i) pl::store_global(o + i, &v[i], pl::thread() == 0);)");
  k.writes("u64", "o", o).run();
  for (int i = 0; i < 5; ++i) CHECK(o[i] == descriptors[i].bits);
}

TEST_CASE("a swizzle of 128 bytes exchanges chunks by the row of 128 bytes") {
  constexpr int first_rows[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
                                    {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
                                    {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                    {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
  for (std::uint32_t row = 0; row < 24; ++row) {
    for (std::uint32_t chunk = 0; chunk < 8; ++chunk) {
      const std::uint32_t address = 5120 + 128 * row + 16 * chunk;
      CHECK(swizzled(address, 128) == 5120 + 128 * row + 16 * first_rows[row % 8][chunk]);
      CHECK(swizzled(address + 9, 128) == swizzled(address, 128) + 9);
    }
  }
}

TEST_CASE("swizzles of 64 and 32 bytes exchange chunks in the same rows of 128 bytes") {
  constexpr int of_64[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                               {1, 0, 3, 2, 5, 4, 7, 6},
                               {2, 3, 0, 1, 6, 7, 4, 5},
                               {3, 2, 1, 0, 7, 6, 5, 4}};
  constexpr int of_32[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t chunk = 0; chunk < 8; ++chunk) {
      const std::uint32_t line = 2048 + 128 * row, address = line + 16 * chunk;
      CHECK(swizzled(address, 64) == line + 16 * of_64[row % 4][chunk]);
      CHECK(swizzled(address, 32) == line + 16 * of_32[row % 2][chunk]);
      CHECK(swizzled(address, 0) == address);
    }
  }
}

TEST_CASE("chunks of a K-major operand are the rows of a swizzled tile") {
  for (const int swizzle : {32, 64, 128}) {
    const auto pitch = static_cast<std::uint32_t>(swizzle);
    const MatrixDescriptor d = {
        .start = 4096, .leading = 16, .stride = 8 * pitch, .swizzle = swizzle};
    for (std::uint32_t row = 0; row < 256; ++row) {
      for (std::uint32_t q = 0; q < pitch / 16; ++q) {
        CAPTURE(swizzle, row, q);
        REQUIRE(d.k_major(row, q) == 4096 + row * pitch + 16 * exchanged(swizzle, row, q));
      }
    }
  }
}

TEST_CASE("a K-major operand further along k begins inside of its tile's rows") {
  for (const int swizzle : {64, 128}) {
    const auto pitch = static_cast<std::uint32_t>(swizzle);
    for (std::uint32_t step = 0; step < pitch / 32; ++step) {
      const MatrixDescriptor d = {
          .start = 2048 + 32 * step, .leading = 16, .stride = 8 * pitch, .swizzle = swizzle};
      for (std::uint32_t row = 0; row < 64; ++row) {
        for (std::uint32_t q = 0; q < 2; ++q) {
          CAPTURE(swizzle, step, row, q);
          REQUIRE(d.k_major(row, q) ==
                  2048 + row * pitch + 16 * exchanged(swizzle, row, 2 * step + q));
        }
      }
    }
  }
}

TEST_CASE("chunks of a K-major operand without swizzle are rows of core matrices") {
  // Eight rows of 16 bytes follow one another; `leading` is between neighbours along k, `stride`
  // along rows.
  const MatrixDescriptor d = {.start = 1024, .leading = 2048, .stride = 128};
  constexpr std::uint32_t golden[][3] = {{0, 0, 1024},  {1, 0, 1040}, {7, 0, 1136}, {8, 0, 1152},
                                         {63, 0, 2032}, {0, 1, 3072}, {9, 1, 3216}, {15, 1, 3312},
                                         {16, 1, 3328}, {63, 1, 4080}};
  for (const auto& [row, q, address] : golden) CHECK(d.k_major(row, q) == address);
}

TEST_CASE("chunks of an MN-major operand are the rows of k of a swizzled tile") {
  for (const int swizzle : {32, 64, 128}) {
    const auto pitch = static_cast<std::uint32_t>(swizzle), w = pitch / 16;
    // Tiles of w chunks along m follow each other, all k of one before the next.
    const MatrixDescriptor d = {
        .start = 8192, .leading = 16 * pitch, .stride = 8 * pitch, .swizzle = swizzle};
    for (std::uint32_t m = 0; m < 16; ++m) {
      for (std::uint32_t k = 0; k < 16; ++k) {
        CAPTURE(swizzle, m, k);
        REQUIRE(d.mn_major(m, k) ==
                8192 + m / w * 16 * pitch + k * pitch + 16 * exchanged(swizzle, k, m % w));
      }
    }
  }
}

TEST_CASE("without swizzle the strides of an MN-major operand change their roles") {
  const MatrixDescriptor d = {.start = 1024, .leading = 4096, .stride = 128};
  constexpr std::uint32_t golden[][3] = {{0, 0, 1024}, {0, 1, 1040},  {0, 7, 1136},
                                         {0, 8, 5120}, {0, 15, 5232}, {1, 0, 1152},
                                         {1, 9, 5264}, {7, 0, 1920},  {7, 15, 6128}};
  for (const auto& [m, k, address] : golden) CHECK(d.mn_major(m, k) == address);
}
