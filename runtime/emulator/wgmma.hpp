// The state of asynchronous products: what a warpgroup has issued and which registers are lent.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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
  std::vector<float> floats;  // row by row; integers use the other
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

/// One warpgroup's tensor core: products by their number, in order of issue.
class WgmmaUnit {
 public:
  std::uint32_t executed = 0;  // products before this number are
  std::vector<Thread*> waiting;
  race::Agent agent = 0;

  bool has(std::uint32_t number) const { return number != end_; }
  WgmmaProduct& operator[](std::uint32_t number) { return ring_[number & mask_]; }
  /// The next product; those that are over lend their memory to new ones.
  WgmmaProduct& add(const WgmmaCall& call) {
    if (end_ - first_ == ring_.size()) grow();
    WgmmaProduct& product = (*this)[end_++];
    static_cast<WgmmaCall&>(product) = call;
    product.issued = product.retired = 0;
    product.a_chunks = product.b_chunks = nullptr;
    return product;
  }
  /// Forgets the first products that all `threads` have waited for.
  void drop_retired(int threads) {
    while (first_ != end_ && (*this)[first_].retired == threads) {
      (*this)[first_++].accumulator = nullptr;
    }
  }

 private:
  void grow() {
    std::vector<WgmmaProduct> larger(std::max<std::size_t>(8, 2 * ring_.size()));
    const auto mask = static_cast<std::uint32_t>(larger.size() - 1);
    for (std::uint32_t i = first_; i != end_; ++i) larger[i & mask] = std::move((*this)[i]);
    ring_ = std::move(larger);
    mask_ = mask;
  }

  std::vector<WgmmaProduct> ring_;  // a power of two of them; number n lies at n % size
  std::uint32_t mask_ = 0;
  std::uint32_t first_ = 0, end_ = 0;  // the numbers of those that are not over
};

/// A thread's side of it.
struct WgmmaThread {
  std::uint32_t issued = 0, retired = 0;
  std::vector<std::uint32_t> groups;  // products issued when each open group was committed
  bool fenced = false;                // wgmma_fence since registers may have been touched
  std::uint32_t fences = 0;           // so many until now
  struct Lent {
    void* registers;
    std::shared_ptr<Accumulator> accumulator;
    std::uint32_t last;    // the latest product that writes it
    std::uint32_t fences;  // before that
  };
  std::vector<Lent> lent;
  /// An A that products in flight read, as it was at its issue.
  struct Reading {
    const std::uint32_t* registers;
    std::array<std::uint32_t, 4> words;
    std::uint32_t product;
  };
  std::vector<Reading> reading;
  /// Registers that are known to be operands, with what they held at a fence.
  struct Operand {
    const std::uint32_t* registers;
    std::uint32_t words;
    std::uint64_t hash;
    std::uint32_t fence;  // 0: of none
  };
  static constexpr std::size_t most_operands = 64;
  std::vector<Operand> operands;

  Operand* operand(const void* registers) {
    for (Operand& o : operands) {
      if (o.registers == registers) return &o;
    }
    return nullptr;
  }

  /// The part of an accumulator that lies in these registers; null if nobody has it.
  Lent* find(const void* registers) {
    for (Lent& l : lent) {
      if (l.registers == registers) return &l;
    }
    return nullptr;
  }
};

}  // namespace palladium::emulator
