#include "codegen/passes/skewed_rows.hpp"

#include <algorithm>
#include <bit>

#include "codegen/layout/constructors.hpp"
#include "codegen/passes/fetches.hpp"

namespace palladium::passes {
namespace {

constexpr std::int64_t piece = 16;  // bytes

int bits_of(std::int64_t extent) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1) - 1));
}

// Whether the elements of the view's rows follow one another in an array in which all that stands
// between two rows is its own.
bool has_whole_rows(const Program& l, ValueId load) {
  const graph::Graph& g = l.graph;
  const ValueId view = g[load].args[0];
  const BlockMapping& m = g.mapping.block_mappings[l.window_loaded(load).mapping];
  const auto dimensions = box_dimensions(g, view);
  const auto is_padded = [](const BlockDim& b) {
    return b.kind == BlockDim::Kind::bounded_slice || b.pad_lo + b.pad_hi > 0;
  };
  return m.dense && dimensions && g[view].type.shape.size() == 2 && dimensions->back() == 1 &&
         std::ranges::count(*dimensions, 1) == 1 &&
         m.block_shape.back().kind != BlockDim::Kind::squeezed &&
         std::ranges::none_of(m.block_shape, is_padded);
}

// Lanes read pieces of eight neighbours, of rows of which every second one is another lane's: where
// rows are an odd number of elements apart, these begin at four different banks.
layout::Layout layout_of_reads(const Extents& shape, int vector, int warps) {
  constexpr int together = 3;
  const int first = bits_of(vector), columns = bits_of(shape[1]), rows = bits_of(shape[0]);
  std::vector<std::pair<int, int>> order;  // dimension, bit
  int column = first;
  while (column < std::min(columns, first + together)) order.emplace_back(1, column++);
  if (rows >= together)
    for (const int bit : {1, 2, 0}) order.emplace_back(0, bit);
  else
    for (int bit = 0; bit < rows; ++bit) order.emplace_back(0, bit);
  while (column < columns) order.emplace_back(1, column++);
  for (int bit = together; bit < rows; ++bit) order.emplace_back(0, bit);
  const std::size_t threads = static_cast<std::size_t>(layout::lane_bits + bits_of(warps));
  order.resize(std::min(order.size(), threads));
  layout::Layout all;
  all.domain = shape;
  all.tile_bits = {0, first};
  for (const auto& [d, bit] : order) {
    int& bits = all.tile_bits[static_cast<std::size_t>(d)];
    bits = std::max(bits, bit + 1);
  }
  for (int bit = 0; bit < first; ++bit) all.reg.push_back(1u << bit);
  for (std::size_t k = 0; k < threads; ++k) {
    const auto image = [&] {
      const auto& [d, bit] = order[k];
      return 1u << (bit + (d == 0 ? all.tile_bits[1] : 0));
    };
    (k < layout::lane_bits ? all.lane : all.warp).push_back(k < order.size() ? image() : 0);
  }
  layout::check(all);
  return all;
}

}  // namespace

bool takes_skewed_rows(const Program& l, const LoopNest& p, ValueId load, Checked placed) {
  const graph::Graph& g = l.graph;
  const DType t = g[load].type.dtype;
  const std::int64_t row = p.valid.back() * t.bytes();
  const bool is_narrow = t.bytes() <= 2 && t.bits() == 8 * t.bytes() && !t.is_bool();
  if (!is_narrow || row % piece != 0 || p.valid != g[load].type.shape || l.uses[load] != 1 ||
      l.storage_of[load] || graph::MemoryView::of(g[load]).mask != graph::no_value ||
      !has_whole_rows(l, load))
    return false;
  // Two of its slots, beside all else.
  const Checked all = placed + Checked(p.valid[0]) * (2 * (row + piece));
  return all.within(0, l.machine.max_shared_bytes);
}

Statement bring_skewed_rows(Program& l, LoopNest& p, ValueId load, bool zeros, Location at) {
  const DType t = l.graph[load].type.dtype;
  const auto vector = static_cast<int>(piece / t.bytes());
  const StorageId rows =
      l.add_storage({.in = Shared{.row_stride = p.valid.back() + vector, .skewed = true},
                     .dtype = t,
                     .shape = p.valid,
                     .of = load});
  l.storage_of[load] = rows;
  const int warps = p.layout.warps();
  p.value = load;
  p.layout = layout_of_reads(p.domain, vector, warps);
  p.rolled.clear();
  return {LoopNest{.sink = Stage{rows, {.asynchronous = true, .zeros = zeros}},
                   .value = load,
                   .domain = p.valid,
                   .valid = p.valid,
                   .variable = l.add_variable(),
                   .layout = layout::strided(p.valid, vector, layout::full_width, warps)},
          at};
}

}  // namespace palladium::passes
