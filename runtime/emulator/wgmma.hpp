// The state of asynchronous products: what a warpgroup has issued and which registers are lent.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/emulator/host.hpp"
#include "runtime/race/engine.hpp"

namespace palladium::emulator {

struct Thread;

/// The accumulator of products in flight: 64 x n numbers, taken out of the threads' registers by
/// the first product and given back when a thread waits for the last.
struct Accumulator {
  std::array<void*, 128> registers = {};  // null: given back, or not lent yet
  std::vector<float> floats;              // row by row; integers use the other
  std::vector<std::int32_t> integers;
};

/// What all threads of a warpgroup must agree on.
struct WgmmaCall {
  abi::Wgmma shape = {};
  std::uint64_t a = 0, b = 0;  // descriptors
  bool accumulate = false, a_in_registers = false;
  int line = 0;

  bool operator==(const WgmmaCall& o) const {
    return a == o.a && b == o.b && accumulate == o.accumulate && line == o.line &&
           a_in_registers == o.a_in_registers && shape.n == o.shape.n && shape.k == o.shape.k &&
           shape.d == o.shape.d && shape.a == o.shape.a && shape.b == o.shape.b &&
           shape.transpose_a == o.shape.transpose_a && shape.transpose_b == o.shape.transpose_b;
  }
};

struct WgmmaProduct : WgmmaCall {
  int issued = 0, retired = 0;  // by how many of the 128 threads
  // 64 x k elements of 32 bits, as registers hold them, where A comes from registers.
  std::vector<std::uint32_t> a_elements;
  // Offsets in shared memory of the 16-byte chunks of the operands.
  std::vector<std::uint32_t> a_chunks, b_chunks;
  std::array<race::Snapshot, 4> known = {};  // by the warps when they issued it
  std::shared_ptr<Accumulator> accumulator;
  race::Snapshot after;
};

/// One warpgroup's tensor core: products in order of issue.
struct WgmmaUnit {
  std::deque<WgmmaProduct> products;
  std::uint32_t first = 0;     // number of products.front()
  std::uint32_t executed = 0;  // products before this number are
  std::vector<Thread*> waiting;
  race::Agent agent = 0;

  WgmmaProduct& operator[](std::uint32_t number) { return products[number - first]; }
};

/// A thread's side of it.
struct WgmmaThread {
  std::uint32_t issued = 0, retired = 0;
  std::vector<std::uint32_t> groups;  // products issued when each open group was committed
  bool fenced = false;                // wgmma_fence since registers may have been touched
  struct Lent {
    void* registers;
    std::shared_ptr<Accumulator> accumulator;
    std::uint32_t last;  // the latest product that writes it
  };
  std::vector<Lent> lent;
};

}  // namespace palladium::emulator
