#include "runtime/interpreter/view.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

int piece_bytes(const View& view) { return view.dtype.bytes() / view.pieces_per_element; }

std::vector<std::int64_t> list(std::span<const std::int64_t> shape,
                               std::span<const std::int64_t> strides, std::int64_t offset) {
  std::vector<std::int64_t> offsets;
  for_each_run(shape, strides, offset, [&](const Run& run) {
    for (std::int64_t k = 0; k < run.count; ++k) offsets.push_back(run.offset + k * run.stride);
  });
  return offsets;
}

// The offsets of a view that is not listed yet.
std::vector<std::int64_t> list(const View& view) {
  return list(view.shape, view.strides, view.offset);
}

void list_into(View& result, const View& source) {
  result.listed = true;
  result.pieces_per_element = source.listed ? source.pieces_per_element : 1;
  std::vector<std::int64_t> pieces = source.listed ? source.pieces() : list(source);
  result.new_pieces() = std::move(pieces);
}

/// The elements of `source` that a subscript selects, one by one.
class Selection {
 public:
  Selection(View& result, const View& source, graph::ValueId at, const graph::Subscript& subscript,
            std::span<const Start> starts)
      : result_(result),
        source_(source),
        at_(at),
        dims_(subscript.dims),
        chosen_(subscript.chosen(result.shape.size())),
        starts_(starts) {}

  void list() {
    if (!source_.listed && slices_are_inside()) {
      list_chosen();
    } else {
      list_all();
    }
    result_.listed = true;
  }

 private:
  // Elements of arrays, between the offsets of the slices before and behind them.
  void list_chosen() {
    const std::span<const std::int64_t> shape = result_.shape;
    std::int64_t strides[Shape::max_rank] = {}, base = source_.offset;
    std::size_t view = chosen_.first_of_slices(), start = 0;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const std::int64_t from = dims_[d].dynamic ? starts_[start++].number : dims_[d].start;
      if (!dims_[d].is_slice) continue;
      base += from * source_.strides[d];
      strides[view] = dims_[d].stride * source_.strides[d];
      view = chosen_.next(view);
    }
    result_.pieces_per_element = 1;
    const std::size_t count = count_of(shape.subspan(chosen_.first, chosen_.rank));
    const std::size_t behind = chosen_.first + chosen_.rank;
    if (count_of(shape.first(chosen_.first)) * count_of(shape.subspan(behind)) == 1) {
      if (point_by_index(count, base)) return;
      std::vector<std::int64_t>& pieces = result_.new_pieces();
      pieces.resize(count);
      list_indices(pieces.data(), count, base);
      return;
    }
    const std::span<const std::int64_t> steps(strides, shape.size());
    const std::vector<std::int64_t> outer =
        interpreter::list(shape.first(chosen_.first), steps.first(chosen_.first), base);
    const std::vector<std::int64_t> inner =
        interpreter::list(shape.subspan(behind), steps.subspan(behind), 0);
    std::vector<std::int64_t> chosen(count);
    list_indices(chosen.data(), count, 0);
    std::vector<std::int64_t>& pieces = result_.new_pieces();
    pieces.resize(outer.size() * count * inner.size());
    std::int64_t* piece = pieces.data();
    for (const std::int64_t o : outer)
      for (const std::int64_t c : chosen)
        for (const std::int64_t i : inner) *piece++ = View::is_missing(c) ? c : o + c + i;
  }

  // Where one index array chooses alone: the view remembers it.
  bool point_by_index(std::size_t count, std::int64_t base) {
    const graph::SubscriptDim* by = nullptr;
    std::size_t start = 0, given = 0, dimension = 0;
    for (std::size_t d = 0; d < dims_.size(); start += dims_[d++].dynamic) {
      if (dims_[d].is_slice) continue;
      if (by != nullptr || !dims_[d].array) return false;
      by = &dims_[d];
      given = start;
      dimension = d;
    }
    if (by == nullptr || !are_inside(starts_[given].array, count, source_.shape[dimension]))
      return false;
    result_.index = starts_[given].array;
    result_.index_stride = source_.strides[dimension];
    result_.offset = base;
    return true;
  }

  static std::size_t count_of(std::span<const std::int64_t> shape) {
    std::size_t n = 1;
    for (const std::int64_t extent : shape) n *= static_cast<std::size_t>(extent);
    return n;
  }

  bool slices_are_inside() const {
    std::size_t start = 0;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const std::int64_t from = dims_[d].dynamic ? starts_[start++].number : dims_[d].start;
      if (dims_[d].is_slice &&
          (from < 0 || from + (dims_[d].size - 1) * dims_[d].stride >= source_.shape[d]))
        return false;
    }
    return true;
  }

  // The offset from `base` to which the indices lead, for each element of the index arrays.
  void list_indices(std::int64_t* offsets, std::size_t count, std::int64_t base) {
    const std::int64_t from = base;
    bool inside = true;
    std::size_t start = 0;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const Start* const given = dims_[d].dynamic ? &starts_[start++] : nullptr;
      if (dims_[d].is_slice) continue;
      const std::int64_t extent = source_.shape[d];
      if (dims_[d].array) {
        inside = inside && are_inside(given->array, count, extent);
        continue;
      }
      const std::int64_t at = given != nullptr ? given->number : dims_[d].start;
      inside = inside && at >= 0 && at < extent;
      base += at * source_.strides[d];
    }
    if (!inside) return list_indices_with_misses(offsets, count, from);
    bool first = true;
    start = 0;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const Start* const given = dims_[d].dynamic ? &starts_[start++] : nullptr;
      if (!dims_[d].array) continue;
      const std::int32_t* __restrict at = given->array;
      std::int64_t* __restrict out = offsets;
      const std::int64_t stride = source_.strides[d];
      if (first)
        for (std::size_t i = 0; i < count; ++i) out[i] = base + at[i] * stride;
      else
        for (std::size_t i = 0; i < count; ++i) out[i] += at[i] * stride;
      first = false;
    }
    if (first) std::fill_n(offsets, count, base);
  }

  // Whether all are indices of a dimension.
  static bool are_inside(const std::int32_t* at, std::size_t count, std::int64_t extent) {
    const auto last = static_cast<std::uint32_t>(std::min<std::int64_t>(extent, INT32_MAX) - 1);
    std::uint32_t outside = 0;  // its sign
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = static_cast<std::uint32_t>(at[i]);
      outside |= index | (last - index);
    }
    return outside >> 31 == 0;
  }

  // As above, where some elements do not exist.
  [[gnu::noinline]] void list_indices_with_misses(std::int64_t* offsets, std::size_t count,
                                                  std::int64_t base) {
    std::fill_n(offsets, count, base);
    std::size_t start = 0;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const graph::SubscriptDim& dim = dims_[d];
      const Start given = dim.dynamic ? starts_[start++] : Start{.number = dim.start};
      if (dim.is_slice) continue;
      const std::int64_t stride = source_.strides[d], extent = source_.shape[d];
      for (std::size_t i = 0; i < count; ++i) {
        if (View::is_missing(offsets[i])) continue;
        const std::int64_t at = dim.array ? given.array[i] : given.number;
        offsets[i] = at < 0 || at >= extent ? miss(d, at) : offsets[i] + at * stride;
      }
    }
  }

  void list_all() {
    const std::vector<std::int64_t> numbers = dense_strides(source_.shape, 1);
    const std::vector<std::int64_t> from =
        source_.listed ? source_.pieces() : interpreter::list(source_);
    const int n = source_.listed ? source_.pieces_per_element : 1;
    std::vector<std::int64_t> pieces;
    pieces.reserve(static_cast<std::size_t>(result_.count() * n));
    const std::span<const std::int64_t> shape = result_.shape;
    std::vector<std::int64_t> index(shape.size());
    for (;;) {
      std::int64_t number = 0, outside = 0;
      for_each_index(index, [&](std::size_t d, std::int64_t i) {
        if (outside == 0 && (i < 0 || i >= source_.shape[d])) outside = miss(d, i);
        number += i * numbers[d];
      });
      for (int p = 0; p < n; ++p)
        pieces.push_back(outside != 0 ? outside : from[static_cast<std::size_t>(number * n + p)]);
      std::size_t d = shape.size();
      while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
      if (d == 0) break;
    }
    result_.pieces_per_element = n;
    result_.new_pieces() = std::move(pieces);
  }

  // f(dimension of the source, where in it) for the element of the view at `index`.
  template <class F>
  void for_each_index(const std::vector<std::int64_t>& index, F&& f) const {
    std::int64_t of_arrays = 0;
    for (std::size_t k = 0; k < chosen_.rank; ++k)
      of_arrays = of_arrays * result_.shape[chosen_.first + k] + index[chosen_.first + k];
    std::size_t view = chosen_.first_of_slices(), start = 0;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const graph::SubscriptDim& dim = dims_[d];
      std::int64_t i = dim.start;
      if (dim.array)
        i = starts_[start++].array[of_arrays];
      else if (dim.dynamic)
        i = starts_[start++].number;
      if (dim.is_slice) {
        i += index[view] * dim.stride;
        view = chosen_.next(view);
      }
      f(d, i);
    }
  }

  // The piece that stands for an element outside: of a slice there is one misfit for all of them.
  std::int64_t miss(std::size_t d, std::int64_t i) {
    const graph::SubscriptDim& dim = dims_[d];
    View::Misfit misfit{at_, static_cast<int>(d), i, dim.size, dim.stride, source_.shape[d]};
    if (dim.is_slice) misfit.start = start_of(d);
    for (std::size_t m = 0; m < result_.misfits.size(); ++m) {
      const View::Misfit& known = result_.misfits[m];
      if (known.at == at_ && known.dimension == misfit.dimension && known.start == misfit.start)
        return -1 - static_cast<std::int64_t>(m);
    }
    result_.misfits.push_back(misfit);
    return -static_cast<std::int64_t>(result_.misfits.size());
  }

  std::int64_t start_of(std::size_t dimension) const {
    std::size_t start = 0;
    for (std::size_t d = 0; d < dimension; ++d) start += dims_[d].dynamic;
    return dims_[dimension].dynamic ? starts_[start].number : dims_[dimension].start;
  }

  View& result_;
  const View& source_;
  const graph::ValueId at_;
  const std::vector<graph::SubscriptDim>& dims_;
  const graph::Subscript::Chosen chosen_;
  const std::span<const Start> starts_;
};

// The strides with which the elements of a strided array form another shape, if there are any.
bool restride(const View& source, const graph::Extents& shape, std::vector<std::int64_t>& strides) {
  std::vector<std::int64_t> extents, old;
  for (std::size_t i = 0; i < source.shape.size(); ++i) {
    if (source.shape[i] == 1) continue;
    extents.push_back(source.shape[i]);
    old.push_back(source.strides[i]);
  }
  strides.assign(shape.size(), 0);
  std::size_t i = 0, j = 0;
  while (i < extents.size()) {
    // The least groups of old and new dimensions that hold the same number of elements.
    const std::size_t i0 = i, j0 = j;
    std::int64_t a = extents[i++], b = 1;
    while (a != b || b == 1) {
      if (b < a) {
        b *= shape[j++];
      } else {
        a *= extents[i++];
      }
    }
    for (std::size_t k = i0; k + 1 < i; ++k)
      if (old[k] != old[k + 1] * extents[k + 1]) return false;
    std::int64_t stride = old[i - 1];
    for (std::size_t k = j; k > j0; --k) {
      strides[k - 1] = stride;
      stride *= shape[k - 1];
    }
  }
  return true;
}

template <class T>
void copy_typed(std::byte* to, std::int64_t to_stride, const std::byte* from,
                std::int64_t from_stride, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) {
    T element;
    std::memcpy(&element, from + k * from_stride, sizeof element);
    std::memcpy(to + k * to_stride, &element, sizeof element);
  }
}

}  // namespace

void View::list_pieces() const {
  const auto n = static_cast<std::size_t>(count());
  pieces_.resize(n);
  for (std::size_t i = 0; i < n; ++i) pieces_[i] = offset + index[i] * index_stride;
  index = nullptr;
}

void subscript(View& result, const View& source, graph::ValueId at, const graph::Type& type,
               const graph::Subscript& subscript, std::span<const Start> starts) {
  const auto start_of = [&](std::size_t i) { return starts[i].number; };
  if (step(result, source, type, subscript, start_of)) return;
  result.start_from(source, type.shape);
  for (const graph::SubscriptDim& dim : subscript.dims) result.chosen = result.chosen || dim.array;
  Selection(result, source, at, subscript, starts).list();
}

void reshape(View& result, const View& source, const graph::Type& type) {
  result.start_from(source, type.shape);
  result.offset = source.offset;
  if (source.listed || !restride(source, type.shape, result.strides)) list_into(result, source);
}

void transpose(View& result, const View& source, const graph::Type& type,
               std::span<const std::int64_t> permutation) {
  result.start_from(source, type.shape);
  const std::size_t rank = permutation.size();
  if (!source.listed) {
    result.offset = source.offset;
    result.strides.resize(rank);
    for (std::size_t i = 0; i < rank; ++i)
      result.strides[i] = source.strides[static_cast<std::size_t>(permutation[i])];
    return;
  }
  std::vector<std::int64_t> numbers = dense_strides(source.shape, 1), permuted(rank);
  for (std::size_t i = 0; i < rank; ++i)
    permuted[i] = numbers[static_cast<std::size_t>(permutation[i])];
  const int n = source.pieces_per_element;
  const std::vector<std::int64_t>& from = source.pieces();
  std::vector<std::int64_t> pieces;
  pieces.reserve(from.size());
  for_each_run(result.shape, permuted, 0, [&](const Run& run) {
    for (std::int64_t k = 0; k < run.count; ++k)
      for (int p = 0; p < n; ++p)
        pieces.push_back(from[static_cast<std::size_t>((run.offset + k * run.stride) * n + p)]);
  });
  result.listed = true;
  result.pieces_per_element = n;
  result.new_pieces() = std::move(pieces);
}

void bitcast(View& result, const View& source, const graph::Type& type) {
  result.start_from(source, type.shape);
  result.dtype = type.dtype;
  result.bytes = type.dtype.bytes();
  const int from = source.dtype.bytes(), to = type.dtype.bytes();
  const bool neighbours = !source.listed && (source.shape.empty() || source.shape.back() == 1 ||
                                             source.strides.back() == from);
  if (from == to || (neighbours && (to < from || source.shape.back() * from >= to))) {
    if (source.listed) {
      list_into(result, source);
      return;
    }
    result.offset = source.offset;
    result.strides = source.strides;
    // A last dimension that vanishes into one element keeps no meaningful stride.
    if (from != to) result.strides.back() = to;
    return;
  }
  list_into(result, source);
  int piece = piece_bytes(source);
  if (!source.listed) piece = from;
  if (to < piece) {  // pieces are cut
    std::vector<std::int64_t> cut;
    cut.reserve(result.pieces().size() * static_cast<std::size_t>(piece / to));
    for (const std::int64_t offset : result.pieces())
      for (int k = 0; k < piece; k += to)
        cut.push_back(View::is_missing(offset) ? offset : offset + k);
    result.new_pieces() = std::move(cut);
    piece = to;
  }
  result.pieces_per_element = to / piece;
}

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape, std::int64_t unit) {
  std::vector<std::int64_t> strides(shape.size());
  for (std::size_t i = shape.size(); i > 0; --i) {
    strides[i - 1] = unit;
    unit *= shape[i - 1];
  }
  return strides;
}

void copy_run(std::byte* to, std::int64_t to_stride, const std::byte* from,
              std::int64_t from_stride, std::int64_t count, int bytes) {
  if (to_stride == bytes && from_stride == bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(count * bytes));
    return;
  }
  with_size(bytes, [&]<class T>() { copy_typed<T>(to, to_stride, from, from_stride, count); });
}

void gather(std::byte* to, const std::byte* from, std::span<const std::int64_t> shape,
            std::span<const std::int64_t> strides, std::int64_t offset, int bytes) {
  for_each_run(shape, strides, offset, [&](const Run& run) {
    copy_run(to + run.first * bytes, bytes, from + run.offset, run.stride, run.count, bytes);
  });
}

void fill(std::byte* to, std::int64_t count, int bytes, std::uint64_t bits) {
  with_size(bytes,
            [&]<class T>() { std::fill_n(reinterpret_cast<T*>(to), count, static_cast<T>(bits)); });
}

}  // namespace palladium::interpreter
