#include "codegen/graph/extents.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/graph/uses.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

using palladium::detail::DimOp;

Op op_of(DimOp op) {
  switch (op) {
  case DimOp::add: return Op::Add;
  case DimOp::sub: return Op::Sub;
  case DimOp::mul: return Op::Mul;
  case DimOp::div:
  case DimOp::cdiv: return Op::Div;
  case DimOp::mod: return Op::Rem;
  case DimOp::min: return Op::Min;
  case DimOp::max: return Op::Max;
  case DimOp::symbol:
  case DimOp::constant: break;
  }
  throw InternalError("a dimension without an operation");
}

}  // namespace

std::uint32_t symbol_of(const Inst& dim_value) {
  return static_cast<std::uint32_t>(dim_value.attr.ints[0]);
}

ValueId value_of_dim(Builder& builder, const Dim& d, Location at) {
  if (d.is_static()) {
    if (d.value() < INT32_MIN || d.value() > INT32_MAX)
      throw CompileError(at, "the extent " + to_string(d) + " is not held by an i32");
    return builder.constant(i32, d.value(), {}, at);
  }
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol)
    return builder.add(Op::DimValue, {}, Attr{{static_cast<std::int64_t>(n.symbol)}, 0}, {}, at);
  const ValueId a = value_of_dim(builder, n.a, at), b = value_of_dim(builder, n.b, at);
  const ValueId result = builder.elementwise(op_of(n.op), {a, b}, at);
  if (n.op != DimOp::cdiv) return result;
  const ValueId rest = builder.elementwise(Op::Rem, {a, b}, at);
  const ValueId none = builder.constant(i32, 0, {}, at);
  const ValueId more = builder.cast(builder.elementwise(Op::Ne, {rest, none}, at), i32, at);
  return builder.elementwise(Op::Add, {result, more}, at);
}

void replace_symbols(Graph& g, const std::function<Dim(std::uint32_t)>& is) {
  for (std::uint32_t r = 0; r < g.regions.size(); ++r) {
    const RegionId region{r};
    const auto is_dim = [&](ValueId v) { return g[v].op == Op::DimValue; };
    if (std::ranges::none_of(g[region].insts, is_dim)) continue;
    const std::vector<ValueId> before = std::exchange(g[region].insts, {});
    for (const ValueId v : before) {
      if (is_dim(v)) {
        const auto symbol = static_cast<std::uint32_t>(g[v].attr.ints[0]);
        Builder builder(g, region);
        const ValueId made = value_of_dim(builder, is(symbol), g.location(v));
        g[v] = g[made];
        g[region].insts.pop_back();  // what was made last, which `v` is now
      }
      g[region].insts.push_back(v);
    }
  }
}

std::vector<std::pair<ValueId, std::size_t>> array_refs(const Graph& g) {
  std::vector<std::pair<ValueId, std::size_t>> refs;
  const GridMapping& m = g.mapping;
  const auto add = [&](const std::vector<ValueId>& params, std::size_t i, int mapping) {
    if (i < params.size()) refs.emplace_back(params[i], static_cast<std::size_t>(mapping));
  };
  for (const Body& body : g.bodies) {
    const std::vector<ValueId>& params = g[body.region].params;
    for (std::size_t i = 0; i < g.arguments.size(); ++i)
      if (g.arguments[i].kind == Argument::Kind::input) add(params, i, g.arguments[i].index);
    for (int o = 0; o < m.num_outputs; ++o)
      add(params, g.arguments.size() + static_cast<std::size_t>(o), m.num_inputs + o);
  }
  for (const BlockMapping& b : m.block_mappings)
    for (int i = 0; b.index_map != no_region && i < m.num_index_operands; ++i)
      add(g[RegionId{b.index_map}].params, m.grid.size() + static_cast<std::size_t>(i), i);
  return refs;
}

Dim extent_of(const Graph& g, ValueId ref, std::size_t dimension) {
  const std::int64_t known = g[ref].type.shape[dimension];
  if (known != unknown_extent) return known;
  if (g[ref].op == Op::Param) {
    for (const auto& [param, mapping] : array_refs(g)) {
      if (param != ref) continue;
      const BlockMapping& m = g.mapping.block_mappings[mapping];
      for (std::size_t d = 0, next = 0; d < m.block_shape.size(); ++d)
        if (m.block_shape[d].kind != BlockDim::Kind::squeezed && next++ == dimension)
          return m.block_shape[d].kind == BlockDim::Kind::whole
                     ? m.array_aval.shape[static_cast<int>(d)]
                     : Dim(known);
    }
    return known;
  }
  const Inst& view = g[ref];
  if (view.op == Op::RefTranspose)
    return extent_of(g, view.args[0], static_cast<std::size_t>(dimensions(view)[dimension]));
  if (view.op != Op::At) return extent_of(g, view.args[0], dimension);
  // What a subscript takes whole stands in its order.
  const auto& own = view.type.shape;
  auto left =
      std::count(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(dimension), unknown_extent);
  const std::vector<SubscriptDim> dims = Subscript::of(view).dims;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d].is_slice && dims[d].size == unknown_extent && left-- == 0)
      return extent_of(g, view.args[0], d);
  return known;
}

bool has_unknown_extent(const BlockMapping& m) {
  return std::ranges::find(m.block_shape, BlockDim::Kind::whole, &BlockDim::kind) !=
         m.block_shape.end();
}

bool has_unknown_extent(const Graph& g) {
  return std::ranges::any_of(g.mapping.block_mappings,
                             [](const BlockMapping& m) { return has_unknown_extent(m); });
}

namespace {

/// Hands extents that have become known on from Refs to their views.
class Binding {
 public:
  explicit Binding(Graph& g) : g_(g) {}

  /// Of the blocks' sizes, and of Refs that are no blocks yet.
  void run(std::span<const std::pair<ValueId, Extents>> refs) {
    GridMapping& m = g_.mapping;
    for (const auto& [ref, extents] : refs) g_[ref].type.shape = extents;
    for (const auto& [ref, mapping] : array_refs(g_)) {
      const Extents shape = m.block_mappings[mapping].ref_shape();
      if (g_[ref].type.shape.size() == shape.size()) g_[ref].type.shape = shape;
    }
    for (std::size_t i = 0; m.grid.size() + i < m.index_map_avals.size(); ++i) {
      Shape& shape = m.index_map_avals[m.grid.size() + i].type.shape;
      const Extents known = m.block_mappings[i].ref_shape();
      for (int d = 0; d < shape.rank(); ++d) shape[d] = known[static_cast<std::size_t>(d)];
    }
    // A view may have been recorded before what it is of (vmap): until nothing changes.
    for (bool changes = true; changes;) {
      changes = false;
      for (std::uint32_t v = 0; v < g_.insts.size(); ++v)
        if (g_.is_view(ValueId{v})) changes |= bind_view(ValueId{v});
    }
  }

 private:
  bool bind_view(ValueId v) {
    Inst& in = g_[v];
    const Extents& from = g_[in.args[0]].type.shape;
    const Extents before = in.type.shape;
    if (in.op == Op::At) {
      bind_subscript(in, from);
    } else if (in.op == Op::RefTranspose) {
      for (std::size_t d = 0; d < from.size(); ++d)
        in.type.shape[d] = from[static_cast<std::size_t>(dimensions(in)[d])];
    } else if (in.op == Op::RefBitcast) {
      // Of another width the last one is known, and another number.
      for (std::size_t d = 0; d < from.size(); ++d)
        if (before[d] == unknown_extent) in.type.shape[d] = from[d];
    }
    return in.type.shape != before;
  }

  // Slices of all of a dimension have the view's extents that are not known, in order.
  static void bind_subscript(Inst& in, const Extents& from) {
    Subscript subscript = Subscript::of(in);
    auto extent = in.type.shape.begin();
    bool changes = false;
    for (std::size_t d = 0; d < subscript.dims.size(); ++d) {
      SubscriptDim& dim = subscript.dims[d];
      if (!dim.is_slice || dim.dynamic || dim.start != 0 || dim.size != unknown_extent) continue;
      extent = std::find(extent, in.type.shape.end(), unknown_extent);
      if (extent == in.type.shape.end()) break;
      changes |= from[d] != unknown_extent;
      *extent++ = dim.size = from[d];
    }
    if (changes) in.attr.ints = subscript.encode();
  }

  Graph& g_;
};

bool selects_all(const Graph& g, const Inst& at) {
  const Extents& from = g[at.args[0]].type.shape;
  const Subscript subscript = Subscript::of(at);
  for (std::size_t d = 0; d < subscript.dims.size(); ++d) {
    const SubscriptDim& dim = subscript.dims[d];
    if (!dim.is_slice || dim.dynamic || dim.start != 0 || dim.size != from[d] || dim.stride != 1)
      return false;
  }
  return true;
}

// What selects everything is no view.
void drop_whole_views(Graph& g) {
  for (Region& region : g.regions)
    std::erase_if(region.insts, [&](ValueId v) {
      if (g[v].op != Op::At || !selects_all(g, g[v])) return false;
      const ValueId of = g[v].args[0];
      for (Inst& in : g.insts) std::ranges::replace(in.args, v, of);
      return true;
    });
}

// By the rules of the operations, as if the extents had been known from the beginning.
void check_views(const Graph& g) {
  for (const Region& region : g.regions)
    for (const ValueId v : region.insts) {
      const Inst& in = g[v];
      const bool accesses = !in.args.empty() && g[in.args[0]].type.is_ref() &&
                            !is_semaphore_op(in.op) && !effects(in).on_memory().empty();
      if (in.op == Op::At || accesses)
        (void)infer(g, in.op, in.attr, in.args, in.type, g.location(v));
    }
}

// A start that is a number and outside is one that an access finds outside: of one that does not
// happen nobody knows.
void free_starts(Graph& g) {
  for (std::uint32_t r = 0; r < g.regions.size(); ++r) {
    const std::vector<ValueId> before = std::exchange(g.regions[r].insts, {});
    for (const ValueId v : before) {
      if (g[v].op == Op::At) {
        Subscript subscript = Subscript::of(g[v]);
        std::size_t next = 1;
        for (std::size_t d = 0; d < subscript.dims.size(); ++d) {
          SubscriptDim& dim = subscript.dims[d];
          const std::int64_t extent = g[g[v].args[0]].type.shape[d];
          const bool is_outside =
              !dim.dynamic && dim.start + (dim.size - 1) * dim.stride >= extent && dim.size > 0;
          if (is_outside) {
            Builder builder(g, RegionId{r});
            const ValueId start = builder.constant(i32, dim.start, {}, g.location(v));
            g[v].args.insert(g[v].args.begin() + static_cast<std::ptrdiff_t>(next), start);
            dim.dynamic = true;
            dim.start = 0;
          }
          next += dim.dynamic;
        }
        g[v].attr.ints = subscript.encode();
      }
      g.regions[r].insts.push_back(v);
    }
  }
}

}  // namespace

bool bind_extents(Graph& g, std::span<const std::pair<ValueId, Extents>> refs) {
  for (BlockMapping& m : g.mapping.block_mappings)
    for (std::size_t d = 0; d < m.block_shape.size(); ++d)
      if (const Dim& extent = m.array_aval.shape[static_cast<int>(d)];
          m.block_shape[d].kind == BlockDim::Kind::whole && extent.is_static())
        m.block_shape[d] = std::max<std::int64_t>(1, extent.value());
  const auto differs = [&](ValueId ref, const Extents& extents) {
    return g[ref].type.shape != extents;
  };
  const bool changes =
      std::ranges::any_of(refs, [&](const auto& r) { return differs(r.first, r.second); }) ||
      std::ranges::any_of(array_refs(g), [&](const auto& r) {
        return differs(r.first, g.mapping.block_mappings[r.second].ref_shape());
      });
  if (changes) Binding(g).run(refs);
  return changes;
}

void settle_views(Graph& g) {
  drop_whole_views(g);
  check_views(g);
}

void keep_unknown_in_memory(Graph& g) {
  for (BlockMapping& m : g.mapping.block_mappings)
    if (m.memory_space == Space::automatic && has_unknown_extent(m)) m.memory_space = Space::gmem;
  std::vector<bool> moves(g.insts.size());
  for (const auto& [ref, mapping] : array_refs(g))
    moves[index(ref)] = g[ref].type.space != g.mapping.block_mappings[mapping].memory_space;
  if (std::ranges::find(moves, true) == moves.end()) return;
  for (std::uint32_t v = 0; v < g.insts.size(); ++v)
    if (g.insts[v].type.is_ref() && moves[index(g.root(ValueId{v}))])
      g.insts[v].type.space = Space::gmem;
}

bool asks_sizes(const Graph& g) {
  return has_unknown_extent(g) ||
         std::ranges::any_of(g.insts, [](const Inst& in) { return in.op == Op::DimValue; });
}

Graph with_sizes(const Graph& g, std::span<const std::int64_t> symbols) {
  Graph sized = g;
  for (BlockMapping& m : sized.mapping.block_mappings)
    for (std::size_t d = 0; d < m.block_shape.size(); ++d)
      if (m.block_shape[d].kind == BlockDim::Kind::whole)
        m.block_shape[d].size = evaluate(m.array_aval.shape[static_cast<int>(d)], symbols);
  replace_symbols(sized, [&](std::uint32_t symbol) { return Dim(symbols[symbol]); });
  Binding(sized).run({});
  free_starts(sized);
  return sized;
}

}  // namespace palladium::graph
