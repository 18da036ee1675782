#include "codegen/passes/said_layouts.hpp"

#include <algorithm>
#include <span>

#include "codegen/base/format.hpp"
#include "codegen/graph/products.hpp"
#include "codegen/graph/register_layout.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {
namespace {

using graph::Extents;
using graph::RegisterLayout;
using layout::Layout;
using Kind = RegisterLayout::Kind;
using Tiles = RegisterLayout::Tiles;

// As Mosaic GPU writes them.
Tiles tiles_of(const RegisterLayout& said) {
  switch (said.kind) {
  case Kind::wgmma: return {{{64, 8}, {16, 8}, {8, 8}, {2}}, {-7}, {-3, -2}, -1};
  case Kind::wgmma_8bit: return {{{64, 16}, {16, 16}, {8, 16}, {4}}, {-7}, {-3, -2}, -1};
  case Kind::wgmma_upcast_2x:
    return {{{64, 16}, {16, 16}, {8, 16}, {8}, {4}}, {-8}, {-4, -2, -3}, -1};
  case Kind::wgmma_upcast_4x: return {{{64, 32}, {16, 32}, {8, 32}, {8}}, {-7}, {-3, -2}, -1};
  case Kind::wgmma_transposed:
    return {{{64, 8}, {16, 8}, {8, 8}, {2, 2}, {2, 1}}, {-10}, {-6, -3, -5}, -2};
  default: return said.tiles();
  }
}

// Of the value that was reduced: what is no more had as many elements as a tile has.
Extents whole_shape(const RegisterLayout& said, const Extents& shape, const Extents& tile) {
  Extents all = shape;
  const std::size_t rank = shape.size() + said.reduced.size();
  for (const std::int64_t d : said.reduced) {
    const std::size_t from_last = rank - static_cast<std::size_t>(d);
    const std::int64_t extent = from_last <= tile.size() ? tile[tile.size() - from_last] : 1;
    all.insert(all.begin() + std::min<std::ptrdiff_t>(d, std::ssize(all)), extent);
  }
  return all;
}

class Said {
 public:
  Said(const Program& l, RegisterLayout said, const graph::Type& type, const char* by, Location at)
      : l_(l), said_(std::move(said)), type_(type), by_(by), at_(at) {}

  Layout run() {
    const std::int64_t rank = std::ssize(type_.shape) + std::ssize(said_.reduced);
    for (const std::int64_t d : said_.reduced)
      if (d < 0 || d >= rank) fail(fmt::format("it has no dimension {} to reduce", d));
    try {
      const Layout all = whole();
      const std::vector<int> gone(said_.reduced.begin(), said_.reduced.end());
      return gone.empty() ? all : layout::drop(all, gone);
    } catch (const CompileError& error) {
      fail(error.what());
    }
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw CompileError(at_, fmt::format("{}: {} of {} is no layout: {}", by_, to_string(said_),
                                        graph::to_string(type_), why));
  }

  Layout whole() const {
    const int warps = l_.num_warps;
    switch (said_.kind) {
    case Kind::strided: return layout::strided(fitting({}), vector(), layout::full_width, warps);
    case Kind::mma_lhs: return layout::operand_a(fitting({64, 8}), bits(), {warps, 1});
    case Kind::mma_rhs: return layout::operand_b(fitting({8, 8}), bits(), {warps, 1});
    case Kind::mma_acc: return layout::accumulator(fitting({64, 8}), {warps, 1});
    default: break;
    }
    const Tiles tiles = tiles_of(said_);
    if (tiles.tiles.empty()) fail("it has no tile");
    const Extents tile(tiles.tiles[0].begin(), tiles.tiles[0].end());
    const Extents shape = fitting(tile);
    return layout::tiled(shape, tiles.tiles, tiles.warp_dims, tiles.lane_dims, tiles.vector_dim);
  }

  // The shape that was reduced, which tiles divide.
  Extents fitting(const Extents& tile) const {
    const Extents shape = whole_shape(said_, type_.shape, tile);
    if (shape.size() < tile.size())
      fail(fmt::format("it is of values of {} dimensions or more",
                       tile.size() - said_.reduced.size()));
    for (std::size_t d = 0; d < tile.size(); ++d)
      if (shape[shape.size() - tile.size() + d] % tile[d] != 0)
        fail(fmt::format("its tiles of {} do not divide it",
                         graph::to_string(graph::Type::value(type_.dtype, tile))));
    return shape;
  }

  int bits() const { return static_cast<int>(said_.numbers[0]); }
  int vector() const {
    if (said_.numbers[0] > 0) return static_cast<int>(said_.numbers[0]);
    const std::int64_t each = graph::element_count(type_.shape) / l_.threads();
    return static_cast<int>(std::clamp<std::int64_t>(each, 1, 8 / type_.dtype.bytes()));
  }

  const Program& l_;
  const RegisterLayout said_;
  const graph::Type& type_;
  const char* const by_;
  const Location at_;
};

std::string of_memory(const Storage& s) {
  if (s.in_registers()) return "in registers, " + layout::to_string(s.registers().layout);
  if (!s.in_shared()) return "one element";
  const Shared& in = s.shared();
  if (in.swizzle > 0) return fmt::format("in shared memory, in panels of {} bytes", in.swizzle);
  return fmt::format("in shared memory, row-major, {} elements from row to row", in.row_stride);
}

std::string lies(const Program& l, ValueId v) {
  const graph::Graph& g = l.graph;
  const StorageId s =
      g[v].type.is_ref() ? l.windows[l.window_of[g.base(v)]].storage() : l.storage_of[v];
  if (s) return of_memory(l.storages[s]);
  return g[v].type.is_ref() ? "in global memory" : "in no registers: computed where it is used";
}

}  // namespace

Layout said_layout(const Program& l, ValueId layout_cast) {
  const graph::Inst& inst = l.graph[layout_cast];
  return said_layout(l, RegisterLayout::of(inst), inst.type, "layout_cast",
                     l.graph.location(layout_cast));
}

Layout said_layout(const Program& l, const RegisterLayout& said, const graph::Type& type,
                   const char* by, Location at) {
  return Said(l, said, type, by, at).run();
}

void tell_layouts(Program& l) {
  for (std::size_t i = 0; i < l.graph.insts.size(); ++i) {
    const auto v = static_cast<ValueId>(i);
    const graph::Inst& inst = l.graph[v];
    if (inst.op != graph::Op::PrintLayout) continue;
    std::string text = inst.attr.text;
    text.replace(graph::place_of_layout(inst), 2, lies(l, inst.args[0]));
    l.remarks.push_back({l.graph.location(v), std::move(text)});
  }
}

}  // namespace palladium::passes
