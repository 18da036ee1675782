// How the coordinates of a value follow from those of the nest that evaluates it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

namespace palladium::lowered {

inline constexpr int zero_dim = -1;    // always 0
inline constexpr int opaque_dim = -2;  // computed from several (a reshape)

/// One of them: that of a dimension of the nest, or one of the two above; or, in a slice,
/// `start + stride * that`. Who asks for a number alone finds a slice opaque.
struct DimIndex {
  int dim = 0;
  bool sliced = false;
  std::int64_t start = 0, stride = 1;

  constexpr DimIndex() = default;
  constexpr DimIndex(int d) : dim(d) {}  // NOLINT: a number is one
  constexpr operator int() const { return sliced ? opaque_dim : dim; }
  constexpr bool operator==(const DimIndex&) const = default;
  constexpr auto operator<=>(const DimIndex&) const = default;
  friend constexpr bool operator==(const DimIndex& a, int b) { return int{a} == b; }
  friend constexpr auto operator<=>(const DimIndex& a, int b) { return int{a} <=> b; }
};
/// Per dimension.
using DimMap = std::vector<DimIndex>;

DimMap identity_map(int rank);
/// The same without slices: where these begin, and how far apart their elements are, forgotten.
DimMap without_slices(DimMap map);
/// Whether there are slices, and nothing else that is opaque.
bool is_of_slices(const DimMap& map);
inline bool is_opaque(const DimMap& map) {
  return std::find(map.begin(), map.end(), opaque_dim) != map.end();
}

}  // namespace palladium::lowered
