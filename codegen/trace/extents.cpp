// What bodies and index maps see of extents that only a call knows.
#include <algorithm>

#include "codegen/graph/extents.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/trace/recorder.hpp"
#include "codegen/trace/tracer.hpp"
#include "palladium/error.hpp"

namespace palladium::trace {
namespace {

using graph::no_value;

Dim resolved(const Dim& d) {
  const DimBinding* binding = DimBinding::current();
  return binding ? binding->resolve(d) : d;
}

}  // namespace

Extents known_extents(const Shape& shape) {
  Extents result;
  for (const Dim& d : shape) result.push_back(BlockDim::all_of(resolved(d)).size);
  return result;
}

void bind_pinned(BlockMapping& m) {
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    Dim& extent = m.array_aval.shape[static_cast<int>(d)];
    const Dim is = resolved(extent);
    if (m.block_shape[d].kind != BlockDim::Kind::whole || !is.is_static()) continue;
    extent = is;
    m.block_shape[d] = std::max<std::int64_t>(1, is.value());
  }
}

void Recorder::note_unknown(ValueId ref, const Shape& array, const std::string& origin) {
  DimBinding* const binding = DimBinding::current();
  Shape shape;
  bool is_known = true;
  for (int d = 0; d < array.rank(); ++d) {
    const Dim extent = resolved(array[d]);
    is_known = is_known && extent.is_static();
    shape.push_back(extent.same(array[d]) ? array[d]
                                          : extent);  // which says what is promised of it
    if (binding && !extent.is_static() && binding->can_peek(extent))
      shape[d] = binding->seen(origin + ".shape()[" + std::to_string(d) + "]", extent);
  }
  if (!is_known) unknown_.push_back({ref, shape, origin});
}

const Recorder::Unknown* Recorder::unknown(ValueId ref) const {
  const auto found = std::ranges::find(unknown_, ref, &Unknown::ref);
  return found == unknown_.end() ? nullptr : &*found;
}

Shape Recorder::shape_of(ValueId ref) const {
  const graph::Inst& in = graph[ref];
  const Shape own = to_shape(in.type.shape);
  const auto is_unknown = [](const Dim& d) { return d.same(unknown_extent); };
  if (std::none_of(own.begin(), own.end(), is_unknown)) return own;
  Shape shape = own;
  if (in.op == Op::Param) {
    const Unknown* const known = unknown(ref);
    for (int d = 0; d < shape.rank() && known; ++d)
      if (is_unknown(own[d])) shape[d] = known->shape[d];
    return shape;
  }
  if (!graph.is_view(ref)) return shape;
  const Shape from = shape_of(in.args[0]);
  if (in.op == Op::RefTranspose) {
    for (int d = 0; d < shape.rank(); ++d)
      shape[d] = from[static_cast<int>(graph::dimensions(in)[static_cast<std::size_t>(d)])];
  } else if (in.op == Op::RefBitcast) {
    for (int d = 0; d < shape.rank(); ++d)
      if (is_unknown(own[d])) shape[d] = from[d];
  } else if (in.op == Op::At) {
    // What a subscript takes whole stands in its order.
    int next = 0;
    const std::vector<graph::SubscriptDim> dims = graph::Subscript::of(in).dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].is_slice || dims[d].size != unknown_extent) continue;
      while (!is_unknown(own[next])) ++next;
      shape[next++] = from[static_cast<int>(d)];
    }
  }
  return shape;
}

void Recorder::refuse_unknown(ValueId view, int dimension, const Dim& extent, const char* what,
                              Location at) const {
  const Unknown* const root = unknown(graph.root(view));
  const std::string d = std::to_string(dimension);
  throw CompileError(
      at, std::string(what) + ": dimension " + d + " of " +
              (root ? root->origin + ", " : std::string()) + graph::to_string(graph[view].type) +
              ", has '" + to_string(resolved(extent)) +
              "' elements, which only a call knows, and values have static shapes: take a slice "
              "of it, pl::ds(start, 64), in a loop over pl::cdiv(x.shape()[" +
              d + "], 64), or give a pl::BlockSpec");
}

void Recorder::expect_known(ValueId view, const char* what, Location at) {
  const Shape shape = shape_of(view);
  DimBinding* const binding = DimBinding::current();
  bool pins = false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d].is_static()) continue;
    if (!binding || !binding->can_peek(shape[d])) refuse_unknown(view, d, shape[d], what, at);
    (void)binding->read(shape[d]);
    pins = true;
  }
  if (pins) bind_extents();
}

void Recorder::bind_extents() {
  for (BlockMapping& m : graph.mapping.block_mappings)
    for (int d = 0; d < m.array_aval.shape.rank(); ++d)
      m.array_aval.shape[d] = resolved(m.array_aval.shape[d]);
  std::vector<std::pair<ValueId, Extents>> refs;
  for (const Unknown& u : unknown_) refs.emplace_back(u.ref, known_extents(u.shape));
  has_bound_ |= graph::bind_extents(graph, refs);
}

Value Recorder::value_of(const Dim& dim, bool is_weak, Location at) {
  const Dim is = resolved(dim);
  if (is.is_static() && is_weak) return Value(is.value());
  graph::Builder builder = this->builder();
  const ValueId v = graph::value_of_dim(builder, is, at);
  if (is_weak) weak_sizes_.emplace_back(v, dim);
  return value(v);
}

bool Recorder::is_weak_size(ValueId v) const {
  return std::ranges::find(weak_sizes_, v, &std::pair<ValueId, Dim>::first) != weak_sizes_.end();
}

Value Recorder::as_number(const Value& v) const {
  DimBinding* const binding = DimBinding::current();
  if (is_literal(v) || !binding) return v;
  const ValueId id{detail::Access::id(v)};
  const auto size = std::ranges::find(weak_sizes_, id, &std::pair<ValueId, Dim>::first);
  const bool is_bound = size != weak_sizes_.end() && binding->can_peek(size->second);
  return is_bound ? Value(binding->read(size->second)) : v;
}

void Tracer::settle_extents() {
  graph::Graph& g = recorder_.graph;
  graph::replace_symbols(g, [](std::uint32_t symbol) { return resolved(dim_symbol(symbol)); });
  if (graph::bind_extents(g) || recorder_.has_bound()) graph::settle_views(g);
  const std::vector<std::uint32_t> symbols = graph::symbols_in_order(g);
  for (const graph::Region& region : g.regions)
    for (const ValueId v : region.insts) {
      if (g[v].op != Op::DimValue) continue;
      const auto symbol = graph::symbol_of(g[v]);
      if (std::ranges::find(symbols, symbol) == symbols.end())
        fail(g.location(v),
             "dim_as_value: '" + symbol_name(symbol) +
                 "' is in the extent of no array, so that no call gives it a value; the sizes of a "
                 "call's arrays are those of the types that an options function gets");
    }
  graph::keep_unknown_in_memory(g);
}

}  // namespace palladium::trace

namespace palladium {

using trace::Recorder;

void Value::set(const Dim& dim) {
  Recorder* const recorder = Recorder::innermost();
  const DimBinding* const binding = DimBinding::current();
  const bool is_read = dim.is_static() || recorder == nullptr || recorder->depth() == 0 ||
                       (binding && binding->can_peek(dim) && !binding->has_seen(dim));
  if (!is_read) {
    *this = recorder->value_of(dim, true, {});
    return;
  }
  id_ = integer;
  literal_.integer = dim.value();
}

Value dim_as_value(const char* name, Location at) { return dim_as_value(dim(name, {}, at), at); }

Value dim_as_value(const Dim& dim, Location at) {
  return Recorder::current("dim_as_value", at).value_of(dim, false, at);
}

}  // namespace palladium
