// Chooses which programs run at the same time: what they read of one array is read from memory
// once, and by all but the first from the L2 cache.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

// Of a GPU with one for each multiprocessor, and of an axis whose size only a call knows.
constexpr std::int64_t programs_at_once = 128, unknown_programs = 64;
constexpr int candidates[] = {2, 4, 8, 16};

class Order {
 public:
  Order(const Program& l, int rows, int columns) : g_(l.graph) {
    programs_[0] = programs(rows);
    programs_[1] = programs(columns);
    for (const Window& w : l.windows) {
      if (w.mapping < 0 || w.mapping >= g_.mapping.num_inputs) continue;
      const bool by_row = graph::depends_on_axis(g_, w.mapping, rows),
                 by_column = graph::depends_on_axis(g_, w.mapping, columns);
      if (by_row != by_column) bytes_[by_row ? 0 : 1] += bytes(w);
    }
  }

  bool is_shared_both_ways() const {
    return std::min(bytes_[0], bytes_[1]) > 0 && programs_[0] * programs_[1] > programs_at_once;
  }

  // Of what programs that run together share, in bytes of their blocks.
  double read(std::int64_t rows) const {
    rows = std::min(rows, programs_[0]);
    const std::int64_t columns = cdiv(programs_at_once, rows);
    if (columns > programs_[1]) rows = std::min(cdiv(programs_at_once, programs_[1]), programs_[0]);
    return static_cast<double>(rows) * bytes_[0] +
           static_cast<double>(std::min(columns, programs_[1])) * bytes_[1];
  }

 private:
  std::int64_t programs(int axis) const {
    const Dim& size = g_.mapping.grid[static_cast<std::size_t>(axis)];
    return size.is_static() ? size.value() : unknown_programs;
  }

  double bytes(const Window& w) const {
    const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(w.mapping)];
    double bytes = m.array_aval.dtype.bytes();
    for (const BlockDim& d : m.block_shape) bytes *= static_cast<double>(d.size);
    return bytes;
  }

  const graph::Graph& g_;
  std::int64_t programs_[2] = {};
  double bytes_[2] = {};  // of a program's blocks, of inputs that all of its row or column read
};

}  // namespace

void swizzle_grid(Program& l) {
  if (l.graph.grid_rows > 0) l.grid_rows = l.graph.grid_rows;
  if (l.graph.grid_rows > 0 || l.parallel_axes.size() < 2) return;
  const std::size_t axes = l.parallel_axes.size();
  const Order order(l, l.parallel_axes[axes - 2], l.parallel_axes[axes - 1]);
  if (!order.is_shared_both_ways()) return;
  constexpr double worth = 0.9;  // of what row-major reads
  double least = worth * order.read(1);
  for (const int rows : candidates)
    if (const double bytes = order.read(rows); bytes < least) {
      least = bytes;
      l.grid_rows = rows;
    }
  if (l.grid_rows > 1)
    l.remarks.push_back({{},
                         fmt::format("programs go through {} rows of the grid at once, which share "
                                     "columns: grid_order = pl::grouped({})",
                                     l.grid_rows, l.grid_rows)});
}

}  // namespace palladium::passes
