// Linear algebra over F2: vectors are 32-bit words, addition is exclusive or.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace palladium::layout {

/// Vectors over F2, or a linear map as the list of the images of its input bits.
using Bits = std::vector<std::uint32_t>;

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
