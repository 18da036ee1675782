// How many blocks a multiprocessor takes, by figures that NVIDIA's own calculator gives.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "codegen/thread/occupancy.hpp"

using namespace palladium;

namespace {

struct Case {
  int compute_capability, threads, registers, shared_bytes;
  Occupancy expected;
};

}  // namespace

TEST_CASE("a multiprocessor takes as many blocks as registers, shared memory and places allow") {
  // blocks, warps, most warps; by registers, shared memory, warps, slots
  const Case cases[] = {
      {75, 128, 32, 0, {8, 32, 32, 16, 16, 8, 16}},
      {75, 128, 32, 64 << 10, {1, 4, 32, 16, 1, 8, 16}},
      {80, 128, 255, 0, {2, 8, 64, 2, 164, 16, 32}},
      {80, 32, 16, 0, {32, 32, 64, 32, 164, 64, 32}},
      {86, 128, 40, 48 << 10, {2, 8, 48, 12, 2, 12, 16}},
      {89, 256, 96, 0, {2, 16, 48, 2, 100, 6, 24}},
      {90, 128, 32, 32, {16, 64, 64, 16, 202, 16, 32}},
      {90, 384, 168, 227 << 10, {1, 12, 64, 1, 1, 5, 32}},
      {100, 128, 33, 16 << 10, {12, 48, 64, 12, 13, 16, 32}},
      {120, 512, 64, 99 << 10, {1, 16, 48, 2, 1, 3, 24}},
  };
  for (const Case& c : cases) {
    const Occupancy o =
        thread::occupancy(c.compute_capability, c.threads,
                          {.registers = c.registers, .shared_bytes = c.shared_bytes});
    CAPTURE(c.compute_capability, c.registers, c.shared_bytes, o.blocks, o.by_registers,
            o.by_shared_memory, o.by_warps);
    CHECK(o == c.expected);
  }
}

TEST_CASE("what no multiprocessor has room for gets no block") {
  CHECK(thread::occupancy(80, 128, {.registers = 32, .shared_bytes = 164 << 10}).blocks == 0);
  CHECK(thread::occupancy(90, 1024, {.registers = 80}).blocks == 0);
  CHECK(thread::occupancy(90, 128, {.registers = 256}).blocks == 0);
}

TEST_CASE("a GPU holds the blocks of its multiprocessors, in whole clusters") {
  // An H100 has 132 multiprocessors, an A100 108.
  CHECK(thread::resident_blocks(90, 128, 1, {}) == 16 * 132);
  CHECK(thread::resident_blocks(90, 128, 1, {.shared_bytes = 100 << 10}) == 2 * 132);
  CHECK(thread::resident_blocks(90, 384, 2, {.registers = 168}) == 132);
  CHECK(thread::resident_blocks(90, 1024, 16, {.shared_bytes = 200 << 10}) == 8 * 16);
  CHECK(thread::resident_blocks(80, 256, 1, {.registers = 255}) == 108);
  CHECK(thread::resident_blocks(80, 128, 1, {.shared_bytes = 164 << 10}) == 0);
  CHECK(thread::multiprocessor(90).device == std::string("H100 SXM"));
}

TEST_CASE("an architecture between two rows of the table has what the one before it has") {
  CHECK(thread::multiprocessor(103).block_shared_bytes == 227 << 10);
  CHECK(thread::multiprocessor(121).warps == 48);
  CHECK(thread::multiprocessor(88).warps == 48);
}
