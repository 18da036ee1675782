// Which bytes of a window a Ref's elements are: chains of subscripts, reshapes, transposes and
// bitcasts. Nothing is read here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "palladium/types.hpp"

namespace palladium::interpreter {

class Window;

/// A part of a window. Its elements lie at constant distances per dimension where the chain allows,
/// else their offsets are listed one by one.
struct View {
  Window* window = nullptr;
  DType dtype;
  int bytes = 0;                        // of an element
  std::span<const std::int64_t> shape;  // of the Ref's type, or the window's

  std::int64_t offset = 0;            // bytes from the window's first element
  std::vector<std::int64_t> strides;  // bytes, one per dimension

  // Listed: byte offsets of the equal pieces that make up each element, in row-major order (more
  // than one piece after a bitcast of elements that are not neighbours). Of an element out of
  // bounds of a Ref that is the complement of the number of a misfit.
  bool listed = false;
  int pieces_per_element = 1;
  const std::vector<std::int64_t>& pieces() const {
    if (index != nullptr) list_pieces();
    return pieces_;
  }
  /// To be set.
  std::vector<std::int64_t>& new_pieces() {
    index = nullptr;
    return pieces_;
  }
  // Listed by the one index array that chose them, all inside: element i lies at
  // offset + index[i] * index_stride, and pieces are made of that once somebody asks.
  mutable const std::int32_t* index = nullptr;
  std::int64_t index_stride = 0;
  static constexpr bool is_missing(std::int64_t piece) { return piece < 0; }

  /// A start or an index that leaves the Ref: an error once a missing element is used.
  struct Misfit {
    graph::ValueId at = graph::no_value;
    int dimension = 0;
    std::int64_t start = 0, size = 0, stride = 0, extent = 0;
  };
  std::vector<Misfit> misfits;
  const Misfit& misfit_of(std::int64_t piece) const {
    return misfits[static_cast<std::size_t>(-1 - piece)];
  }
  bool chosen = false;  // by index arrays: one piece may stand for several elements

  std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
  /// Becomes a view of what `source` shows, without strides or pieces.
  void start_from(const View& source, std::span<const std::int64_t> its_shape) {
    window = source.window;
    dtype = source.dtype;
    bytes = source.bytes;
    shape = its_shape;
    strides.clear();
    listed = false;
    index = nullptr;
    if (!misfits.empty() || !source.misfits.empty()) misfits = source.misfits;
    chosen = source.chosen;
  }

 private:
  void list_pieces() const;
  mutable std::vector<std::int64_t> pieces_;
};

/// The operand of a subscript for one dimension: a start, or the elements of an index array.
struct Start {
  std::int64_t number = 0;
  const std::int32_t* array = nullptr;
};

// Each makes `result`, whose shape `type` says and which must not outlive it, from `source`; its
// vectors are reused.
void subscript(View& result, const View& source, graph::ValueId at, const graph::Type& type,
               const graph::Subscript& subscript, std::span<const Start> starts);
void reshape(View& result, const View& source, const graph::Type& type);
void transpose(View& result, const View& source, const graph::Type& type,
               std::span<const std::int64_t> permutation);
void bitcast(View& result, const View& source, const graph::Type& type);

/// The same as `subscript` without arrays, start_of(i) being its operand i; false, and an
/// unspecified result, where elements must be listed.
template <class StartOf>
bool step(View& result, const View& source, const graph::Type& type,
          const graph::Subscript& subscript, StartOf&& start_of) {
  if (source.listed) return false;
  result.start_from(source, type.shape);
  std::int64_t offset = source.offset;
  std::size_t next = 0;
  for (std::size_t d = 0; d < subscript.dims.size(); ++d) {
    const graph::SubscriptDim& dim = subscript.dims[d];
    if (dim.array) return false;
    const std::int64_t start = dim.dynamic ? start_of(next++) : dim.start;
    if (start < 0 || start + (dim.size - 1) * dim.stride >= source.shape[d]) return false;
    offset += start * source.strides[d];
    if (dim.is_slice) result.strides.push_back(dim.stride * source.strides[d]);
  }
  result.offset = offset;
  return true;
}

/// Elements at a constant distance.
struct Run {
  std::int64_t first = 0;   // number among the elements in row-major order
  std::int64_t offset = 0;  // bytes
  std::int64_t stride = 0;  // bytes
  std::int64_t count = 0;
};

/// Calls f(Run) for rows that cover a strided array in row-major order, as long as they can be.
template <class F>
void for_each_run(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                  std::int64_t offset, F&& f) {
  if (shape.empty()) return f(Run{0, offset, 0, 1});
  // Dimensions that continue each other are one.
  std::int64_t extent[Shape::max_rank] = {}, stride[Shape::max_rank] = {};
  int rank = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (rank > 0 && stride[rank - 1] == strides[i] * shape[i]) {
      extent[rank - 1] *= shape[i];
      stride[rank - 1] = strides[i];
    } else {
      extent[rank] = shape[i];
      stride[rank] = strides[i];
      ++rank;
    }
  }
  if (rank == 0) {
    f(Run{0, offset, 0, 1});
    return;
  }
  const int last = rank - 1;
  std::int64_t index[Shape::max_rank] = {}, first = 0;
  for (;;) {
    f(Run{first, offset, stride[last], extent[last]});
    first += extent[last];
    int d = last - 1;
    for (; d >= 0; --d) {
      offset += stride[d];
      if (++index[d] < extent[d]) break;
      offset -= stride[d] * extent[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/// Strides, in units of `unit`, of a row-major array without gaps.
std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape, std::int64_t unit);

/// Copies `count` elements of `bytes` bytes each between two strided places (strides in bytes).
void copy_run(std::byte* to, std::int64_t to_stride, const std::byte* from,
              std::int64_t from_stride, std::int64_t count, int bytes);

/// Copies one element.
inline void copy_element(std::byte* to, const std::byte* from, int bytes) {
  switch (bytes) {
  case 1: std::memcpy(to, from, 1); return;
  case 2: std::memcpy(to, from, 2); return;
  case 4: std::memcpy(to, from, 4); return;
  default: std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

/// The elements of a strided array, packed in row-major order.
void gather(std::byte* to, const std::byte* from, std::span<const std::int64_t> shape,
            std::span<const std::int64_t> strides, std::int64_t offset, int bytes);

/// Fills with the low `bytes` bytes of `bits`.
void fill(std::byte* to, std::int64_t count, int bytes, std::uint64_t bits);

}  // namespace palladium::interpreter
