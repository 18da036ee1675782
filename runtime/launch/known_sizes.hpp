// Sizes of a kernel's calls, of some of the last ones: of another call of these nobody asks again
// which class it is of, which kernel serves it and what grid it has.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace palladium::runtime {

/// Of few symbols; with more nothing is kept. Threads read and write it at once, without waiting:
/// what one writes while another one does is not kept, and what is half written is not read.
class KnownSizes {
 public:
  explicit KnownSizes(int symbols) : count_(static_cast<std::size_t>(symbols)) {}

  bool is_empty() const { return is_empty_.load(std::memory_order_relaxed); }

  /// Whether these are known, with the mark, and of how many blocks such a call is.
  bool find(const std::int64_t* symbols, unsigned& blocks, std::uint64_t mark = 0) const {
    if (count_ > most_symbols) return false;
    const Entry& e = entries_[place_of(symbols)];
    const std::uint64_t version = e.version.load(std::memory_order_acquire);
    if ((version & 1) != 0 || version == 0) return false;
    for (std::size_t i = 0; i < count_; ++i)
      if (e.sizes[i].load(std::memory_order_relaxed) != symbols[i]) return false;
    if (e.mark.load(std::memory_order_relaxed) != mark) return false;
    blocks = e.blocks.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    return e.version.load(std::memory_order_relaxed) == version;
  }

  void set(const std::int64_t* symbols, unsigned blocks, std::uint64_t mark = 0) {
    if (count_ > most_symbols) return;
    Entry& e = entries_[place_of(symbols)];
    std::uint64_t version = e.version.load(std::memory_order_relaxed);
    if ((version & 1) != 0 ||
        !e.version.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel))
      return;
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < count_; ++i)
      e.sizes[i].store(symbols[i], std::memory_order_relaxed);
    e.mark.store(mark, std::memory_order_relaxed);
    e.blocks.store(blocks, std::memory_order_relaxed);
    e.version.store(version + 2, std::memory_order_release);
    is_empty_.store(false, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t most_symbols = 6;
  static constexpr int bits = 3;
  struct Entry {
    std::atomic<std::uint64_t> version = 0;  // odd while somebody writes
    std::atomic<std::int64_t> sizes[most_symbols] = {};
    std::atomic<std::uint64_t> mark = 0;
    std::atomic<unsigned> blocks = 0;
  };

  std::size_t place_of(const std::int64_t* symbols) const {
    std::uint64_t mixed = 0;
    for (std::size_t i = 0; i < count_; ++i)
      mixed = (mixed + static_cast<std::uint64_t>(symbols[i])) * 0x9e3779b97f4a7c15;
    return mixed >> (64 - bits);
  }

  Entry entries_[1 << bits];
  std::atomic<bool> is_empty_ = true;
  const std::size_t count_;
};

}  // namespace palladium::runtime
