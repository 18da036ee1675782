// Index maps, and the functions that say what kernels see of the grid, recorded as regions.
#include <algorithm>

#include "codegen/trace/captures.hpp"
#include "codegen/trace/tracer.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

ShapeDtype whole(const BlockMapping& m) { return {to_shape(m.ref_shape()), m.array_aval.dtype}; }

}  // namespace

void Tracer::trace_index_maps() {
  GridMapping& m = recorder_.graph.mapping;
  const int rank = static_cast<int>(m.grid.size());
  m.index_map_tree = {rank, m.num_index_operands};
  m.index_map_avals.assign(static_cast<std::size_t>(rank), {ShapeDtype{{}, i32}});
  for (int i = 0; i < m.num_index_operands; ++i)
    m.index_map_avals.push_back({whole(mapping(i)), true, Space::gmem});
  for (auto i = static_cast<std::size_t>(m.num_index_operands); i < m.block_mappings.size(); ++i)
    m.block_mappings[i].index_map = trace_index_map(m.block_mappings[i], *specs_[i]);
}

void Tracer::trace_grid_env() {
  GridMapping& m = recorder_.graph.mapping;
  const std::size_t rank = m.grid.size();
  m.get_grid_indices = trace_grid_region(
      options_.get_grid_indices, "get_grid_indices", [&](std::size_t n) { return n == rank; },
      "an index for each grid axis");
  m.local_grid_env = trace_grid_region(
      options_.local_grid_env, "local_grid_env", [](std::size_t n) { return n % 2 == 0; },
      "an index and a size for each axis that kernels see");
  if (m.local_grid_env == no_region) return;
  const graph::Graph& g = recorder_.graph;
  const std::vector<ValueId>& yields = g[RegionId{m.local_grid_env}].yields;
  recorder_.grid_axes.clear();
  for (std::size_t i = 1; i < yields.size(); i += 2) {
    const graph::Inst& size = g[yields[i]];
    const bool is_static = size.op == Op::Constant;
    recorder_.grid_axes.push_back(
        {"", is_static ? Dim(graph::to_int(i32, size.attr.bits)) : dim("?"), is_static});
  }
}

void Tracer::warn_of_captures_in(const IndexMap& map, const std::string& what) const {
  if (Access::function(map)->on_stack)
    warn_of_captures(recorder_.graph.name, what, Access::at(map));
}

RegionIndex Tracer::trace_grid_region(const IndexMap& map, const char* what,
                                      const std::function<bool(std::size_t)>& fits,
                                      const char* expected) {
  if (!map) return no_region;
  const RegionId region = recorder_.graph.add_region();
  recorder_.enter(region);
  const Location at = Access::at(map);
  warn_of_captures_in(map, what);
  const std::vector<Value> ids = program_ids(at);
  std::vector<BlockIndex> indices;
  bool takes = true;
  blaming(at, [&] {
    takes =
        Access::function(map)->call(ids.data(), static_cast<int>(ids.size()), nullptr, 0, indices);
  });
  if (!takes) fail(at, std::string(what) + " must take a pl::Index for each grid axis");
  if (!fits(indices.size()))
    fail(at, std::string(what) + " must return " + expected + ", given " +
                 std::to_string(indices.size()) + " values");
  std::vector<ValueId> yields;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i].is_slice)
      fail(at, std::string(what) + " must return integer scalars. Output[" + std::to_string(i) +
                   "] is a pl::Slice");
    yields.push_back(scalar_index(indices[i].start, std::string(what) + " must", i, at));
  }
  recorder_.builder().yield(std::move(yields));
  recorder_.leave();
  return graph::index(region);
}

std::vector<Value> Tracer::program_ids(Location at) {
  std::vector<Value> ids;
  for (std::size_t i = 0; i < recorder_.graph.mapping.grid.size(); ++i)
    ids.push_back(recorder_.value(recorder_.builder().param(Type::value(i32), at)));
  return ids;
}

ValueId Tracer::scalar_index(const Value& index, const std::string& who, std::size_t number,
                             Location at) {
  const ValueId v = recorder_.typed(index, who.c_str(), at);
  const Type& type = recorder_.graph[v].type;
  if (!type.is_scalar() || !type.dtype.is_integer())
    fail(at, who + " return integer scalars. Output[" + std::to_string(number) + "] has type " +
                 graph::to_string(type));
  return recorder_.as_i32(v, at);
}

std::vector<BlockIndex> Tracer::indices_of(const BlockMapping& m, const BlockSpec& spec,
                                           const std::vector<Value>& ids,
                                           const std::vector<Ref>& refs) {
  std::vector<BlockIndex> indices;
  const Location at = Access::at(spec.index_map);
  if (spec.index_map) {
    detail::IndexMapBase& map = *Access::function(spec.index_map);
    bool fits = true;
    blaming(at, [&] {
      fits = map.call(ids.data(), static_cast<int>(ids.size()), refs.data(),
                      static_cast<int>(refs.size()), indices);
    });
    if (!fits) refuse_parameters(m, map.arity, at);
  } else {
    indices.assign(m.block_shape.size(), BlockIndex(Value(0)));
  }
  if (indices.size() != m.block_shape.size())
    fail(at, "index map function for " + m.origin + " must return " +
                 std::to_string(m.block_shape.size()) +
                 " values to match block_shape=" + text(m.block_shape) + ". Currently returning " +
                 std::to_string(indices.size()) + " values");
  return indices;
}

RegionIndex Tracer::trace_index_map(const BlockMapping& m, const BlockSpec& spec) {
  graph::Graph& g = recorder_.graph;
  const RegionId region = g.add_region();
  recorder_.enter(region);
  const Location at = Access::at(spec.index_map);
  if (spec.index_map) warn_of_captures_in(spec.index_map, "the index map of " + m.origin);
  const IndexMapTree::Parameters parameters =
      g.mapping.index_map_tree.unflatten(g.mapping.index_map_avals);
  std::vector<Value> ids;
  for (const AbstractValue& id : parameters.program_ids)
    ids.push_back(recorder_.value(recorder_.builder().param(Type::value(id.type.dtype), at)));
  std::vector<Ref> refs;
  for (const AbstractValue& operand : parameters.index_operands)
    refs.push_back(index_operand(operand, mapping(static_cast<int>(refs.size())), at));

  std::vector<ValueId> yields, sizes;
  const std::vector<BlockIndex> indices = indices_of(m, spec, ids, refs);
  const std::string who = "index map function for " + m.origin + " must";
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const BlockDim& block = m.block_shape[i];
    const bool bounded = block.kind == BlockDim::Kind::bounded_slice;
    check_kind(m, indices[i], i, spec.index_map ? at : spec.at);
    if (block.kind == BlockDim::Kind::indirect)
      yields.push_back(recorder_.builder().constant(i32, 0, {}, at));
    else
      yields.push_back(scalar_index(indices[i].start, who, i, at));
    if (bounded) sizes.push_back(scalar_index(indices[i].size, who, i, at));
  }
  yields.insert(yields.end(), sizes.begin(), sizes.end());
  recorder_.builder().yield(std::move(yields));
  recorder_.leave();
  return graph::index(region);
}

void Tracer::check_kind(const BlockMapping& m, const BlockIndex& index, std::size_t i,
                        Location at) const {
  const BlockDim& block = m.block_shape[i];
  const auto refuse = [&](const std::string& given, const char* expected) {
    fail(at, "index_map of " + m.origin + " returned " + given + " at position " +
                 std::to_string(i) + " with block dimension " + text({block}) +
                 " when it should be " + expected);
  };
  if (block.kind != BlockDim::Kind::bounded_slice) {
    if (index.is_slice)
      refuse("a pl::Slice",
             block.kind == BlockDim::Kind::indirect ? "an array of indices" : "a scalar");
    return;
  }
  if (!index.is_slice) refuse("an index", "pl::Slice, pl::ds(start, size)");
  if (index.stride != 1)
    refuse("a slice of stride " + std::to_string(index.stride), "one of stride 1");
  if (!is_literal(index.size)) return;
  if (const std::int64_t n = literal(index.size).integer; n < 0 || n > block.size)
    refuse("a slice of " + std::to_string(n) + " elements", "one of at most that many");
}

ValueId Tracer::chosen(ValueId ref, const BlockMapping& m, const BlockSpec& spec,
                       const std::vector<Ref>& operands) {
  if (std::ranges::find(m.block_shape, BlockDim::Kind::indirect, &BlockDim::kind) ==
      m.block_shape.end())
    return ref;
  const Location at = Access::at(spec.index_map);
  if (!spec.index_map)
    fail(spec.at, "block shape for " + m.origin + ": Indirect needs an index map");
  std::vector<Value> ids;
  for (std::size_t i = 0; i < recorder_.graph.mapping.grid.size(); ++i)
    ids.push_back(program_id(static_cast<int>(i), at));
  const std::vector<BlockIndex> indices = indices_of(m, spec, ids, operands);
  std::size_t dimension = 0;  // of the Ref
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    if (m.block_shape[d].kind == BlockDim::Kind::indirect)
      ref = chosen_along(ref, dimension, indices[d], m, spec.block_shape[d].size, d, at);
    dimension += m.block_shape[d].kind != BlockDim::Kind::squeezed;
  }
  return ref;
}

ValueId Tracer::chosen_along(ValueId ref, std::size_t dimension, const BlockIndex& indices,
                             const BlockMapping& m, std::int64_t count, std::size_t position,
                             Location at) {
  graph::Graph& g = recorder_.graph;
  const std::string who = "index map of " + m.origin;
  const ValueId array = recorder_.typed(indices.start, who.c_str(), at);
  const Type& type = g[array].type;
  if (!type.is_value() || !type.dtype.is_integer() || type.shape != Extents{count})
    fail(at, "index_map of " + m.origin + " returned " + graph::to_string(type) + " at position " +
                 std::to_string(position) + " with block dimension Indirect(" +
                 std::to_string(count) + ") when it should be an array of that many integers");
  graph::Subscript subscript;
  for (const std::int64_t extent : g[ref].type.shape) subscript.dims.push_back({.size = extent});
  subscript.dims[dimension] = {.is_slice = false, .dynamic = true, .array = true};
  const ValueId as_i32 = recorder_.builder().cast(array, i32, at);
  return recorder_.builder().at(ref, subscript, {as_i32}, at);
}

Ref Tracer::index_operand(const AbstractValue& operand, const BlockMapping& m, Location at) {
  const ValueId ref = recorder_.builder().param(
      Type::ref(operand.type.dtype, extents(operand.type.shape), operand.memory_space), at);
  recorder_.read_only.push_back(ref);
  recorder_.note_unknown(ref, m.array_aval.shape, m.origin);
  return recorder_.ref(ref);
}

void Tracer::refuse_parameters(const BlockMapping& m, int arity, Location at) const {
  const GridMapping& grid = recorder_.graph.mapping;
  const auto axes = static_cast<int>(grid.grid.size());
  const std::string of_grid = "the grid " + text(grid.grid) + " has " + std::to_string(axes) +
                              (axes == 1 ? " axis" : " axes");
  if (grid.num_index_operands == 0)
    fail(at, "index map function for " + m.origin + " takes " +
                 (arity < 0 ? "another number of" : std::to_string(arity)) + " program ids, but " +
                 of_grid);
  fail(at, "index map function for " + m.origin + " takes " +
               (arity < 0 ? "parameters of no type" : std::to_string(arity) + " parameters") +
               ", but a pl::Index for each axis and then a pl::Ref for each index operand are " +
               "expected: " + of_grid + ", and num_scalar_prefetch is " +
               std::to_string(grid.num_index_operands));
}

}  // namespace palladium::trace
