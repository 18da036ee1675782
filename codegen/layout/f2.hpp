// Linear algebra over F2: vectors are 32-bit words, addition is exclusive or.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>

namespace palladium::layout {

/// Vectors over F2, or a linear map as the list of the images of its input bits: at most 32 words,
/// kept inline, because choosing layouts copies and compares them by the thousand. Otherwise what
/// std::vector is.
class Bits {
 public:
  using value_type = std::uint32_t;
  using iterator = std::uint32_t*;
  using const_iterator = const std::uint32_t*;
  static constexpr std::size_t capacity = 32;

  constexpr Bits() = default;
  constexpr Bits(std::initializer_list<std::uint32_t> words) : Bits(words.begin(), words.end()) {}
  constexpr explicit Bits(std::size_t size, std::uint32_t word = 0) { resize(size, word); }
  template <std::input_iterator Iterator>
  constexpr Bits(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr iterator begin() { return words_; }
  constexpr iterator end() { return words_ + size_; }
  constexpr const_iterator begin() const { return words_; }
  constexpr const_iterator end() const { return words_ + size_; }
  constexpr std::uint32_t* data() { return words_; }
  constexpr const std::uint32_t* data() const { return words_; }
  constexpr std::uint32_t& operator[](std::size_t i) { return words_[i]; }
  constexpr std::uint32_t operator[](std::size_t i) const { return words_[i]; }
  constexpr std::uint32_t& front() { return words_[0]; }
  constexpr std::uint32_t& back() { return words_[size_ - 1]; }
  constexpr std::uint32_t back() const { return words_[size_ - 1]; }

  constexpr void push_back(std::uint32_t word) {
    assert(size_ < capacity);
    words_[size_++] = word;
  }
  constexpr void pop_back() { --size_; }
  constexpr void resize(std::size_t size, std::uint32_t word = 0) {
    assert(size <= capacity);
    while (size_ < size) words_[size_++] = word;
    size_ = static_cast<std::uint32_t>(size);
  }
  constexpr void append(const Bits& words) {
    for (const std::uint32_t word : words) push_back(word);
  }
  /// Removes all words that equal `word`.
  constexpr void remove(std::uint32_t word) { resize(std::remove(begin(), end(), word) - begin()); }
  constexpr void erase_at(std::size_t i) {
    std::copy(begin() + i + 1, end(), begin() + i);
    --size_;
  }

  friend constexpr bool operator==(const Bits& a, const Bits& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::uint32_t words_[capacity] = {};
  std::uint32_t size_ = 0;
};

/// The map `columns` at `input`: the sum of the columns that the set bits of `input` select.
constexpr std::uint32_t image_of(std::span<const std::uint32_t> columns, std::uint32_t input) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; input != 0; ++i, input >>= 1) {
    if (input & 1) sum ^= columns[i];
  }
  return sum;
}

/// `outer` after `inner`, both as columns.
Bits compose(std::span<const std::uint32_t> outer, std::span<const std::uint32_t> inner);

int rank(std::span<const std::uint32_t> vectors);

/// The inverse of a square map of `columns.size()` bits; nothing if it is singular.
std::optional<Bits> inverse(std::span<const std::uint32_t> columns);

/// Expresses vectors as sums of given ones.
class Solver {
 public:
  Solver() = default;
  /// At most 32 vectors.
  explicit Solver(std::span<const std::uint32_t> vectors);

  /// Adds a vector; returns whether it is independent of those added before. One that is not
  /// never appears in a solution.
  bool add(std::uint32_t vector);
  /// Which of the added vectors (bit i: the i-th) sum to `target`; nothing if none do.
  std::optional<std::uint32_t> solve(std::uint32_t target) const;
  bool contains(std::uint32_t target) const { return solve(target).has_value(); }
  int rank() const { return rank_; }

 private:
  struct Row {
    std::uint32_t vector = 0, sum_of = 0;
  };
  Row reduce(std::uint32_t vector) const;

  std::array<Row, 32> rows_{};  // by leading bit; vector 0: no row
  int added_ = 0, rank_ = 0;
};

}  // namespace palladium::layout
