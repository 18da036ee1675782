// The state of asynchronous products: what a warpgroup has issued and which registers are lent.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
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

/// Offsets in shared memory of the 16-byte chunks of an operand. K-major: by rows and then along k;
/// transposed: by chunks of 8 rows and then along k.
using MatrixChunks = std::vector<std::uint32_t>;

/// What all threads of a warpgroup must agree on. `shape` is a constant of the kernel's text.
struct WgmmaCall {
  const abi::Wgmma* shape = nullptr;
  std::uint64_t a = 0, b = 0;  // descriptors
  bool accumulate = false, a_in_registers = false;
  int line = 0;

  bool operator==(const WgmmaCall&) const = default;
};

struct WgmmaProduct : WgmmaCall {
  int issued = 0, retired = 0;  // by how many of the 128 threads
  // 64 x k elements of 32 bits, as registers hold them, where A comes from registers.
  std::vector<std::uint32_t> a_elements;
  const MatrixChunks *a_chunks = nullptr, *b_chunks = nullptr;
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
  std::vector<WgmmaProduct> spare;
  race::Agent agent = 0;

  WgmmaProduct& operator[](std::uint32_t number) { return products[number - first]; }
  /// The next product; those that are over lend their memory to new ones.
  WgmmaProduct& add() {
    if (spare.empty()) return products.emplace_back();
    products.push_back(std::move(spare.back()));
    spare.pop_back();
    WgmmaProduct& product = products.back();
    product.issued = product.retired = 0;
    product.a_chunks = product.b_chunks = nullptr;
    return product;
  }
  void drop_first() {
    products.front().accumulator = nullptr;
    spare.push_back(std::move(products.front()));
    products.pop_front();
    ++first;
  }
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
