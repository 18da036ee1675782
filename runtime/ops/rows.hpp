// What kernels along the rows of a matrix have in common.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "palladium/palladium.hpp"
#include "runtime/ops/arguments.hpp"

namespace palladium::ops {

/// A matrix cut into blocks of whole rows: one kernel for the lengths between two powers of two,
/// and for one that is given as a number.
struct Rows {
  Dim m, n;                 ///< rows and columns
  std::int64_t most, rows;  ///< columns and rows of a block

  /// Short rows share a program: a warp has the whole of each, so that nothing goes through shared
  /// memory, and what is done once for a row is done beside more elements.
  explicit Rows(const ShapeDtype& x) {
    constexpr std::int64_t shortest = 32, longest = 1024, fewest = 4, most_rows = 64,
                           elements = 4096;
    const auto [height, width] = x.shape.unpack<2>();
    m = height;
    n = width;
    most = n.is_static() ? n.value() : size_class(n, shortest);
    const auto fit =
        std::bit_floor(static_cast<std::uint64_t>(elements / std::max<std::int64_t>(most, 1)));
    rows = most > longest ? 1 : std::clamp(static_cast<std::int64_t>(fit), fewest, most_rows);
  }
  /// Of a matrix without columns there is nothing to do.
  Grid grid() const { return {most == 0 ? Dim(0) : cdiv(m, rows)}; }
  BlockSpec blocks() const {
    return {{rows, row()}, [](Index i) { return Indices{i, 0}; }};
  }
  /// Of a vector with an element for each row.
  BlockSpec elements() const {
    return {{rows}, [](Index i) { return i; }};
  }
  /// Of a vector with an element for each column.
  BlockSpec columns() const {
    return {{row()}, [](Index) { return Indices{0}; }};
  }

 private:
  BlockDim row() const {
    const std::int64_t size = std::max<std::int64_t>(most, 1);
    return n.is_static() ? BlockDim(size) : bounded(n, size);
  }
};

}  // namespace palladium::ops
