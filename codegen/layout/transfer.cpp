#include "codegen/layout/transfer.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

bool is_power_of_two(std::int64_t n) { return n > 0 && std::has_single_bit(std::uint64_t(n)); }

template <class Move>
Layout with_images(Layout shape, const Layout& source, Move move) {
  const auto all = [&](const Bits& images) {
    Bits moved;
    for (const std::uint32_t image : images) moved.push_back(move(image));
    return moved;
  };
  shape.reg = all(source.reg);
  shape.lane = all(source.lane);
  shape.warp = all(source.warp);
  return shape;
}

// Greedy over the two lists of extents from the outermost on: insert, remove, split or merge
// until the prefix agrees.
class Reshape {
 public:
  Reshape(Layout layout, const Extents& shape) : layout_(std::move(layout)), shape_(shape) {}

  std::optional<Layout> run() {
    while (at_ < shape_.size() || at_ < layout_.domain.size()) {
      if (!step()) return std::nullopt;
    }
    return std::move(layout_);
  }

 private:
  bool step() {
    const bool have = at_ < layout_.domain.size(), want = at_ < shape_.size();
    if (have && want && layout_.domain[at_] == shape_[at_]) return ++at_, true;
    const int d = static_cast<int>(at_);
    if (want && shape_[at_] == 1) return layout_ = insert_unit_dim(layout_, d), ++at_, true;
    if (have && layout_.domain[at_] == 1) {
      while (layout_.tile_bits[d] != 0) {
        if (!take(shrink_tile(layout_, d))) return false;
      }
      return layout_ = remove_unit_dim(layout_, d), true;
    }
    if (!have || !want) return false;
    if (shape_[at_] != 0 && layout_.domain[at_] % shape_[at_] == 0) {
      return take(split_dim(layout_, d, layout_.domain[at_] / shape_[at_]));
    }
    if (at_ + 1 == layout_.domain.size()) return false;
    return take(merge_dims(layout_, d));
  }
  bool take(std::optional<Layout> next) {
    if (next) layout_ = std::move(*next);
    return next.has_value();
  }

  Layout layout_;
  const Extents& shape_;
  std::size_t at_ = 0;
};

// Finds the register of thread 0 with given coordinates.
class Registers {
 public:
  explicit Registers(const Layout& layout) : layout_(layout), solver_(layout.reg) {}

  int holding(const Extents& index) const {
    std::int64_t repetition = 0;
    std::uint32_t tile_index = 0;
    for (int d = 0; d < layout_.rank(); ++d) {
      const std::int64_t r = index[d] >> layout_.tile_bits[d];
      if (r >= layout_.repetitions(d)) return -1;
      repetition = repetition * layout_.repetitions(d) + r;
      const auto field = static_cast<std::uint32_t>(index[d] & (layout_.tile(d) - 1));
      tile_index = tile_index << layout_.tile_bits[d] | field;
    }
    const auto tile_register = solver_.solve(tile_index);
    if (!tile_register) {
      throw InternalError("no register of thread 0 holds the element asked for in " +
                          to_string(layout_));
    }
    return static_cast<int>(repetition << layout_.reg.size() | *tile_register);
  }

 private:
  const Layout& layout_;
  Solver solver_;
};

template <class Index>
std::vector<int> registers_holding(const Layout& source, const Layout& result, Index source_index) {
  const Registers registers(source);
  std::vector<int> list;
  list.reserve(static_cast<std::size_t>(result.registers()));
  for (std::int64_t k = 0; k < result.registers(); ++k) {
    list.push_back(registers.holding(source_index(result.index(0, k))));
  }
  return list;
}

// The same where padding of the result has no counterpart in the source. Thread 0 has the least
// coordinates of all threads in a unit layout: where it is outside the domain, all are.
template <class Index>
std::vector<int> valid_registers_holding(const Layout& source, const Layout& result,
                                         Index source_index) {
  const Registers registers(source);
  std::vector<int> list;
  list.reserve(static_cast<std::size_t>(result.registers()));
  for (std::int64_t k = 0; k < result.registers(); ++k) {
    const Extents index = result.index(0, k);
    list.push_back(result.in_domain(index) ? registers.holding(source_index(index)) : -1);
  }
  return list;
}

// Thread images agree, whatever the tiles.
bool same_threads(const Layout& a, const Layout& b) {
  if (a.warp.size() != b.warp.size()) return false;
  for (int i = 0; i < a.thread_bits(); ++i) {
    const std::uint32_t x = i < lane_bits ? a.lane[i] : a.warp[i - lane_bits];
    const std::uint32_t y = i < lane_bits ? b.lane[i] : b.warp[i - lane_bits];
    for (int d = 0; d < a.rank(); ++d) {
      if (a.field(d, x) != b.field(d, y)) return false;
    }
  }
  return true;
}

}  // namespace

Layout transpose(const Layout& l, std::span<const int> permutation) {
  Layout result{Extents(l.domain.size()), std::vector<int>(l.domain.size()), {}, {}, {}};
  for (int d = 0; d < l.rank(); ++d) {
    result.domain[d] = l.domain[permutation[d]];
    result.tile_bits[d] = l.tile_bits[permutation[d]];
  }
  return with_images(result, l, [&](std::uint32_t image) {
    std::uint32_t moved = 0;
    for (int d = 0; d < l.rank(); ++d) {
      moved = moved << result.tile_bits[d] | l.field(permutation[d], image);
    }
    return moved;
  });
}

Layout insert_unit_dim(const Layout& layout, int d) {
  Layout result = layout;
  result.domain.insert(result.domain.begin() + d, 1);
  result.tile_bits.insert(result.tile_bits.begin() + d, 0);
  return result;
}

Layout remove_unit_dim(const Layout& layout, int d) {
  if (layout.domain[d] != 1 || layout.tile_bits[d] != 0) {
    throw InternalError("dimension " + std::to_string(d) + " is no unit of " + to_string(layout));
  }
  Layout result = layout;
  result.domain.erase(result.domain.begin() + d);
  result.tile_bits.erase(result.tile_bits.begin() + d);
  return result;
}

std::optional<Layout> split_dim(const Layout& layout, int d, std::int64_t inner) {
  if (inner <= 0 || layout.domain[d] % inner != 0) return std::nullopt;
  int inner_bits = layout.tile_bits[d];  // the repetitions split ...
  if (inner % layout.tile(d) != 0) {     // ... or the tile does
    if (!is_power_of_two(inner)) {
      const auto smaller = shrink_tile(layout, d);
      return smaller ? split_dim(*smaller, d, inner) : std::nullopt;
    }
    inner_bits = std::countr_zero(static_cast<std::uint64_t>(inner));
  }
  Layout result = layout;  // flattened images stay
  result.domain[d] /= inner;
  result.domain.insert(result.domain.begin() + d + 1, inner);
  result.tile_bits[d] -= inner_bits;
  result.tile_bits.insert(result.tile_bits.begin() + d + 1, inner_bits);
  return result;
}

std::optional<Layout> merge_dims(const Layout& layout, int d) {
  const std::int64_t inner = layout.domain[d + 1], tile = layout.tile(d + 1);
  const auto again = [&](const std::optional<Layout>& other) {
    return other ? merge_dims(*other, d) : std::nullopt;
  };
  if (inner % tile != 0) return again(shrink_tile(layout, d + 1));
  if (inner != tile && layout.tile_bits[d] != 0) {
    // Repetitions of the inner dimension stand between the tile bits of both: one of the two has
    // to go.
    if (!is_power_of_two(inner)) return again(shrink_tile(layout, d));
    std::vector<int> tile_bits = layout.tile_bits;
    tile_bits[d + 1] = std::countr_zero(static_cast<std::uint64_t>(inner));
    return again(grow_tile(layout, tile_bits));
  }
  Layout result = layout;
  result.domain[d] *= inner;
  result.tile_bits[d] += result.tile_bits[d + 1];
  result.domain.erase(result.domain.begin() + d + 1);
  result.tile_bits.erase(result.tile_bits.begin() + d + 1);
  return result;
}

std::optional<Layout> reshape(const Layout& layout, const Extents& shape) {
  const auto size = [](const Extents& e) {
    return std::accumulate(e.begin(), e.end(), std::int64_t{1}, std::multiplies<>());
  };
  if (size(layout.domain) != size(shape)) {
    throw InternalError("reshape of " + to_string(layout) + " to another number of elements");
  }
  return Reshape(layout, shape).run();
}

bool separable(const Layout& layout, int d) {
  const std::uint32_t mask = layout.field_mask(d);
  for (const Bits* part : {&layout.reg, &layout.lane, &layout.warp}) {
    for (const std::uint32_t image : *part) {
      if ((image & mask) != 0 && (image & ~mask) != 0) return false;
    }
  }
  return true;
}

Layout drop(const Layout& layout, int d) {
  if (!separable(layout, d)) {
    throw InternalError("dimension " + std::to_string(d) + " mixes with others in " +
                        to_string(layout));
  }
  Layout result{layout.domain, layout.tile_bits, {}, {}, {}};
  result.domain.erase(result.domain.begin() + d);
  result.tile_bits.erase(result.tile_bits.begin() + d);
  const int shift = layout.field_shift(d), width = layout.tile_bits[d];
  result = with_images(result, layout, [&](std::uint32_t image) {
    return (image & ((1u << shift) - 1)) | (image >> (shift + width)) << shift;
  });
  result.reg.remove(0);
  return result;
}

Layout drop(const Layout& layout, std::span<const int> dims) {
  std::vector<int> order(dims.begin(), dims.end());
  std::sort(order.rbegin(), order.rend());
  Layout result = layout;
  for (const int d : order) result = drop(result, d);
  return result;
}

bool broadcasts(const Layout& source, const Layout& result, int d) {
  return separable(result, d) && same_elements(drop(result, d), source);
}

namespace {

// Every `stride`-th element along d, from `first` on, which is none of a whole stride.
std::optional<Layout> every(const Layout& layout, int d, std::int64_t first, std::int64_t stride) {
  if (!std::has_single_bit(static_cast<std::uint64_t>(stride)) || !is_unit(layout)) return {};
  const int bits = std::countr_zero(static_cast<std::uint64_t>(stride));
  if (layout.tile_bits[d] < bits) return {};
  const int shift = layout.field_shift(d);
  const std::uint32_t below = (1u << shift) - 1, dropped = ((1u << bits) - 1) << shift;
  Layout result = layout;
  const auto left_out = std::remove_if(result.reg.begin(), result.reg.end(),
                                       [&](std::uint32_t image) { return (image & dropped) != 0; });
  result.reg = Bits(result.reg.begin(), left_out);
  for (Bits* const images : {&result.reg, &result.lane, &result.warp})
    for (std::uint32_t& image : *images) {
      if ((image & dropped) != 0) return {};
      image = (image & below) | ((image & ~below) >> bits);
    }
  result.tile_bits[d] -= bits;
  result.domain[d] = (layout.domain[d] - first + stride - 1) / stride;
  return result;
}

}  // namespace

std::optional<Layout> slice(const Layout& layout, int d, std::int64_t offset, std::int64_t size,
                            std::int64_t stride) {
  if (stride != 1) {
    const auto apart = every(layout, d, offset % stride, stride);
    return apart ? slice(*apart, d, offset / stride, size) : std::nullopt;
  }
  Layout result = layout;
  while (offset % result.tile(d) != 0) {
    auto smaller = shrink_tile(result, d);
    if (!smaller) return std::nullopt;
    result = std::move(*smaller);
  }
  result.domain[d] = size;
  return result;
}

std::optional<std::vector<Layout>> concat_pieces(const Layout& result, int d,
                                                 std::span<const std::int64_t> extents) {
  std::vector<Layout> pieces;
  std::int64_t offset = 0;
  for (const std::int64_t extent : extents) {
    auto piece = slice(result, d, offset, extent);
    if (!piece) return std::nullopt;
    pieces.push_back(std::move(*piece));
    offset += extent;
  }
  return pieces;
}

bool same_elements(const Layout& a, const Layout& b) {
  if (a.domain != b.domain || !same_threads(a, b)) return false;
  // The thread images of both are equal; in a unit layout the registers hold the other index bits.
  if (is_unit(a) && is_unit(b)) return true;
  const Layout x = grow_tile(a, b.tile_bits), y = grow_tile(b, a.tile_bits);
  const Solver registers(x.reg);
  return x.reg.size() == y.reg.size() &&
         std::all_of(y.reg.begin(), y.reg.end(),
                     [&](std::uint32_t image) { return registers.contains(image); });
}

std::optional<std::vector<int>> same_up_to_registers(const Layout& a, const Layout& b) {
  if (!same_elements(a, b)) return std::nullopt;
  return registers_holding(a, b, [](const Extents& index) { return index; });
}

std::vector<int> registers_of_transpose(const Layout& source, const Layout& result,
                                        std::span<const int> permutation) {
  Extents from(source.domain.size());
  return valid_registers_holding(source, result, [&](const Extents& index) -> const Extents& {
    for (std::size_t d = 0; d < index.size(); ++d) from[permutation[d]] = index[d];
    return from;
  });
}

std::vector<int> registers_of_reshape(const Layout& source, const Layout& result) {
  Extents from(source.domain.size());
  return valid_registers_holding(source, result, [&](const Extents& index) -> const Extents& {
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < index.size(); ++d) flat = flat * result.domain[d] + index[d];
    for (std::size_t d = from.size(); d-- > 0;) {
      from[d] = flat % source.domain[d];
      flat /= source.domain[d];
    }
    return from;
  });
}

std::vector<int> registers_of_slice(const Layout& source, const Layout& result, int d,
                                    std::int64_t offset, std::int64_t stride) {
  return valid_registers_holding(source, result, [&](Extents index) {
    index[d] = offset + stride * index[d];
    return index;
  });
}

std::vector<int> registers_of_broadcast(const Layout& source, const Layout& result, int d) {
  return valid_registers_holding(source, result, [&](Extents index) {
    index.erase(index.begin() + d);
    return index;
  });
}

std::vector<int> registers_of_reduce(const Layout& source, const Layout& result,
                                     std::span<const int> dims) {
  return valid_registers_holding(result, source, [&](const Extents& index) {
    Extents kept;
    for (int d = 0; d < source.rank(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(index[d]);
    }
    return kept;
  });
}

}  // namespace palladium::layout
