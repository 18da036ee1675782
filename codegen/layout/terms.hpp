// Linear maps of bits as the shifts and masks that a printer spells.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codegen/layout/layout.hpp"

namespace palladium::layout {

/// (v & mask) << shift, or (v & mask) >> -shift: some bits of v, all moved by one distance.
struct Term {
  std::uint32_t mask = 0;
  int shift = 0;
  bool operator==(const Term&) const = default;
};

/// A sum of terms over F2. If `disjoint`, no two set the same bit, and `|`, `+` and `^` agree.
struct Terms {
  std::vector<Term> terms;
  bool disjoint = true;
  bool empty() const { return terms.empty(); }
  bool operator==(const Terms&) const = default;
};

/// The terms, ascending by shift, of the map whose input bit i has image columns[i].
Terms terms_of(std::span<const std::uint32_t> columns);
std::uint32_t evaluate(const Terms& terms, std::uint32_t v);

/// One coordinate of the elements a thread holds, as text wants it:
///   thread(t) ^ reg(k) + (k >> repetition_shift) / repetition_divisor % repetition_modulus * tile
/// where t is the thread of the program and k the register number.
struct Coordinate {
  Terms thread;
  Terms reg;             // of the low repetition_shift bits of k
  bool disjoint = true;  // thread and reg share no bit: `^` may be `+`
  bool repeats = false;  // else the last summand is 0
  int repetition_shift = 0;
  std::int64_t repetition_divisor = 1;
  std::int64_t repetition_modulus = 0;  // 0: outermost, no % needed
  std::int64_t tile = 1;
};

std::vector<Coordinate> coordinates(const Layout& layout);
std::int64_t evaluate(const Coordinate& coordinate, int t, std::int64_t k);

/// A table as a linear map of the bits of its index (`x[(k >> 1) & 1]`), if it is one; entries of
/// -1 match anything.
std::optional<Terms> terms_of_table(std::span<const int> table);

}  // namespace palladium::layout
