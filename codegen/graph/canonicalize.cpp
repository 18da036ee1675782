// The canonical form of a graph: order by demand, merged duplicates, folded constants, fma.
//
// Two steps alternate on an arena that only grows until neither changes anything: order_by_demand()
// makes the order of instructions a function of the data flow and of the order of writes alone, and
// drops the dead; simplify() and contract() rewrite instructions in that order, so that what they
// do cannot depend on the order of recording either; under approximate maths so does
// regroup_products(). compact() then numbers densely.
#include <algorithm>
#include <functional>
#include <utility>

#include "codegen/base/dim.hpp"
#include "codegen/graph/builder.hpp"
#include "codegen/graph/simplify.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/graph/uses.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

using Values = std::vector<ValueId>;

// Regions are visited by recursion, instructions never: their chains are deep.
void check_all_nesting(const Graph& g) {
  std::vector<std::pair<RegionId, std::size_t>> stack;  // and the bodies around it
  for (const RegionId r : root_regions(g)) stack.push_back({r, 0});
  while (!stack.empty()) {
    const auto [r, depth] = stack.back();
    stack.pop_back();
    for (const ValueId v : g[r].insts)
      for (const RegionId inner : g[v].regions) {
        graph::check_nesting(depth, g[v].op, g.location(v));
        stack.push_back({inner, depth + 1});
      }
  }
}

void number_symbols(Graph& g) {
  const std::vector<std::uint32_t> symbols = symbols_in_order(g);
  GridMapping& m = g.mapping;
  std::vector<Dim> numbered;
  for (std::size_t i = 0; i < symbols.size(); ++i)
    numbered.push_back(dim_symbol(static_cast<std::uint32_t>(i)));
  const auto renumber = [&](Dim& d) { d = substitute(d, symbols, numbered); };
  for (BlockMapping& b : m.block_mappings)
    for (int i = 0; i < b.array_aval.shape.rank(); ++i) renumber(b.array_aval.shape[i]);
  for (Dim& d : m.grid) renumber(d);
  for (Argument& a : g.arguments) {
    const auto at = std::ranges::find(symbols, static_cast<std::uint32_t>(a.symbol));
    a.symbol = at == symbols.end() ? -1 : static_cast<int>(at - symbols.begin());
  }
  for (Inst& in : g.insts)
    if (in.op == Op::DimValue)
      in.attr.ints[0] =
          std::ranges::find(symbols, static_cast<std::uint32_t>(in.attr.ints[0])) - symbols.begin();
  const DimFacts old = std::move(g.facts);
  g.facts = {};
  g.num_symbols = static_cast<int>(symbols.size());
  const auto is_known = [&](std::uint32_t s) { return old.multiple(s) != 1; };
  if (std::ranges::none_of(symbols, is_known)) return;
  for (const std::uint32_t s : symbols) g.facts.multiples.push_back(old.multiple(s));
}

void cast_index_maps(Graph& g) {
  for (const RegionId r : root_regions(g)) {
    if (is_body(g, r)) continue;
    for (std::size_t i = 0; i < g[r].yields.size(); ++i) {
      const ValueId v = g[r].yields[i];
      if (!g[v].type.is_scalar() || !g[v].type.dtype.is_integer() || g[v].type.dtype == i32)
        continue;
      const ValueId cast = g.add({Op::Cast, Type::value(i32), {}, {v}, {}}, g.location(v));
      g[r].insts.push_back(cast);
      g[r].yields[i] = cast;
    }
  }
}

void compact(Graph& g) {
  std::vector<Inst> insts;
  std::vector<Region> regions;
  std::vector<Location> where;
  std::vector<std::string> names;
  std::vector<ValueId> value(g.insts.size(), no_value);
  std::vector<RegionId> region(g.regions.size(), Uses::no_region_id);
  const auto take = [&](ValueId v) {
    value[index(v)] = ValueId{static_cast<std::uint32_t>(insts.size())};
    where.push_back(g.location(v));
    if (index(v) < g.names.size() && !g.names[index(v)].empty()) {
      names.resize(insts.size() + 1);
      names[insts.size()] = std::move(g.names[index(v)]);
    }
    insts.push_back(std::move(g[v]));
    return value[index(v)];
  };
  const auto renumber = [&](Values& list) {
    for (ValueId& v : list) v = value[index(v)];
  };
  const std::function<RegionId(RegionId)> copy = [&](RegionId from) {
    const RegionId to{static_cast<std::uint32_t>(regions.size())};
    region[index(from)] = to;
    regions.push_back(std::move(g[from]));
    Values params = std::move(regions[index(to)].params);
    Values list = std::move(regions[index(to)].insts);
    for (ValueId& v : params) v = take(v);
    for (ValueId& v : list) {
      v = take(v);
      renumber(insts[index(v)].args);
      const std::vector<RegionId> inner = insts[index(v)].regions;
      for (std::size_t i = 0; i < inner.size(); ++i) {
        const RegionId copied = copy(inner[i]);
        insts[index(v)].regions[i] = copied;
      }
    }
    Region& result = regions[index(to)];
    result.params = std::move(params);
    result.insts = std::move(list);
    renumber(result.yields);
    return to;
  };
  for (const RegionId r : root_regions(g)) copy(r);

  for (Body& body : g.bodies) body.region = region[index(body.region)];
  const auto move_to = [&](RegionIndex& r) {
    if (r != no_region) r = index(region[r]);
  };
  for (BlockMapping& m : g.mapping.block_mappings) move_to(m.index_map);
  move_to(g.mapping.get_grid_indices);
  move_to(g.mapping.local_grid_env);
  if (!names.empty()) names.resize(insts.size());
  g.insts = std::move(insts);
  g.regions = std::move(regions);
  g.where = std::move(where);
  g.names = std::move(names);
}

}  // namespace

std::vector<std::uint32_t> symbols_in_order(const Graph& g) {
  std::vector<std::uint32_t> symbols;
  const auto collect = [&](const Shape& shape) {
    for (const Dim& d : shape) collect_symbols(d, symbols);
  };
  const GridMapping& m = g.mapping;
  for (const Argument& a : g.arguments)
    if (a.kind == Argument::Kind::input) collect(m.block_mappings[a.index].array_aval.shape);
  for (const BlockMapping& b : m.block_mappings) collect(b.array_aval.shape);
  for (const Dim& d : m.grid) collect_symbols(d, symbols);
  return symbols;
}

Graph canonicalize(const Graph& g) {
  Graph result = g;
  check_all_nesting(result);
  number_symbols(result);
  cast_index_maps(result);
  for (;;) {
    order_by_demand(result);
    if (simplify(result) || drop_unread(result)) continue;
    if (result.approx_math && regroup_products(result)) continue;
    if (!result.fma || !contract(result)) break;
  }
  compact(result);
  return result;
}

}  // namespace palladium::graph
