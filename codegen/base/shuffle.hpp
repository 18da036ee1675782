// An order of many things that a seed gives, without a list of them.
#pragma once

#include <bit>
#include <cstdint>

namespace palladium {

/// A permutation of 0 ... n - 1: rounds that mix one half of a number's bits into the other, which
/// can be undone, on the smallest square of a power of two that holds n, again while the result is
/// beyond n. Equal seeds give equal permutations.
class Shuffle {
 public:
  Shuffle(std::uint64_t n, std::uint64_t seed)
      : n_(n), seed_(seed), half_((std::bit_width(n > 0 ? n - 1 : 0) + 1) / 2) {}

  /// i < n.
  std::uint64_t operator()(std::uint64_t i) const {
    do {
      i = mixed(i);
    } while (i >= n_);
    return i;
  }

 private:
  static constexpr int rounds = 4;

  std::uint64_t mixed(std::uint64_t i) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = i >> half_, right = i & mask;
    for (std::uint64_t r = 0; r < rounds; ++r) {
      const std::uint64_t next = left ^ (hash(right * rounds + r) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  std::uint64_t hash(std::uint64_t x) const {
    x = (x + seed_) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9;
    return x ^ (x >> 29);
  }

  std::uint64_t n_, seed_;
  int half_;  // bits
};

}  // namespace palladium
