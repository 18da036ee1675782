// What kernels along the rows of a matrix have in common.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "palladium/palladium.hpp"
#include "runtime/ops/arguments.hpp"

namespace palladium::ops {

/// A matrix cut into blocks of whole rows.
struct Rows {
  Dim m;
  std::int64_t n, rows;  ///< columns, and rows of a block

  /// Short rows share a program: a warp has the whole of each, so that nothing goes through shared
  /// memory, and what is done once for a row is done beside more elements.
  explicit Rows(const ShapeDtype& x) {
    constexpr std::int64_t longest = 1024, fewest = 4, most = 64, elements = 4096;
    const auto [height, width] = x.shape.unpack<2>();
    m = height;
    n = width;
    const auto fit =
        std::bit_floor(static_cast<std::uint64_t>(elements / std::max<std::int64_t>(n, 1)));
    rows = n > longest ? 1 : std::clamp(static_cast<std::int64_t>(fit), fewest, most);
  }
  /// Of a matrix without columns there is nothing to do.
  Grid grid() const { return {n == 0 ? Dim(0) : cdiv(m, rows)}; }
  BlockSpec blocks() const {
    return {{rows, std::max<std::int64_t>(n, 1)}, [](Index i) { return Indices{i, 0}; }};
  }
  /// Of a vector with an element for each row.
  BlockSpec elements() const {
    return {{rows}, [](Index i) { return i; }};
  }
  /// Of a vector with an element for each column.
  BlockSpec columns() const {
    return {{std::max<std::int64_t>(n, 1)}, [](Index) { return Indices{0}; }};
  }
};

}  // namespace palladium::ops
