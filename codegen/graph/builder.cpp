#include "codegen/graph/builder.hpp"

#include <algorithm>

#include "codegen/graph/limits.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {

void check_nesting(std::size_t bodies_around, Op op, Location at) {
  if (bodies_around >= max_nesting)
    throw CompileError(at, std::string(info(op).name) + ": more than " +
                               std::to_string(max_nesting) + " bodies inside each other");
}

ValueId Builder::add(Op op, std::vector<ValueId> args, Attr attr, Type given, Location at) {
  if (graph_.insts.size() >= max_recorded)
    throw CompileError(at, std::string(info(op).name) + ": kernel '" + graph_.name +
                               "' records more than " + std::to_string(max_recorded) +
                               " operations; C++ loops run while tracing: write pl::loop");
  Type type = infer(graph_, op, attr, args, given, at);
  const ValueId v = graph_.add({op, std::move(type), std::move(attr), std::move(args), {}}, at);
  graph_[region_].insts.push_back(v);
  return v;
}

ValueId Builder::add(Op op, std::vector<ValueId> args, std::vector<RegionId> regions, Attr attr,
                     Location at) {
  const ValueId v = add(op, std::move(args), std::move(attr), {}, at);
  graph_[v].regions = std::move(regions);
  return v;
}

ValueId Builder::param(Type type, Location at) {
  Type checked = infer(graph_, Op::Param, {}, {}, type, at);
  const ValueId v = graph_.add({Op::Param, std::move(checked), {}, {}, {}}, at);
  graph_[region_].params.push_back(v);
  return v;
}

ValueId Builder::constant(DType dtype, double number, Extents shape, Location at) {
  return add(Op::Constant, {}, {{}, to_bits(dtype, number)}, Type::value(dtype, std::move(shape)),
             at);
}

ValueId Builder::constant(DType dtype, std::int64_t number, Extents shape, Location at) {
  return add(Op::Constant, {}, {{}, to_bits(dtype, number)}, Type::value(dtype, std::move(shape)),
             at);
}

// The shape that all broadcast to; false where there is none.
bool Builder::common_shape(const std::vector<ValueId>& args, Extents& shape) const {
  for (const ValueId v : args) {
    const Extents& own = graph_[v].type.shape;
    if (own.size() > shape.size()) shape.insert(shape.begin(), own.size() - shape.size(), 1);
  }
  for (const ValueId v : args) {
    const Extents& own = graph_[v].type.shape;
    const std::size_t shift = shape.size() - own.size();
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::int64_t& extent = shape[shift + i];
      if (extent == 1) extent = own[i];
      if (own[i] != 1 && own[i] != extent) return false;
    }
  }
  return true;
}

std::string Builder::broadcast_problem(const std::vector<ValueId>& args, const char* what) const {
  Extents shape;
  if (common_shape(args, shape)) return "";
  std::string given;
  for (const ValueId a : args)
    given += (given.empty() ? "" : a == args.back() ? " and " : ", ") + to_string(graph_[a].type);
  return std::string(what) + ": expected operands whose shapes can be broadcast to one, given " +
         given;
}

std::vector<ValueId> Builder::broadcast_together(std::vector<ValueId> args, const char* what,
                                                 Location at) {
  for (const ValueId v : args)
    if (!graph_[v].type.is_value()) return args;  // the rule says what is wrong
  Extents shape;
  if (!common_shape(args, shape)) throw CompileError(at, broadcast_problem(args, what));
  for (ValueId& v : args) v = broadcast_to(v, shape, at);
  return args;
}

ValueId Builder::elementwise(Op op, std::vector<ValueId> args, Location at) {
  return add(op, broadcast_together(std::move(args), info(op).name, at), Attr{}, {}, at);
}

ValueId Builder::broadcast_to(ValueId v, const Extents& shape, Location at) {
  const Type& type = graph_[v].type;
  if (type.is_value() && type.shape == shape) return v;
  if (type.is_value() && type.shape.size() > shape.size())
    throw CompileError(at, "broadcast: expected a shape of at least " +
                               std::to_string(type.shape.size()) + " dimensions for " +
                               to_string(type) + ", given " +
                               to_string(Type::value(type.dtype, shape)));
  Attr attr;
  for (std::size_t i = 0; i < type.shape.size(); ++i)
    attr.ints.push_back(static_cast<std::int64_t>(shape.size() - type.shape.size() + i));
  return add(Op::Broadcast, {v}, std::move(attr), Type::value(type.dtype, shape), at);
}

ValueId Builder::cast(ValueId v, DType dtype, Location at) {
  if (graph_[v].type.is_value() && graph_[v].type.dtype == dtype) return v;
  return add(Op::Cast, {v}, {}, Type::value(dtype), at);
}

ValueId Builder::at(ValueId ref, const Subscript& subscript, std::vector<ValueId> starts,
                    Location at) {
  starts.insert(starts.begin(), ref);
  return add(Op::At, std::move(starts), {subscript.encode(), 0}, {}, at);
}

ValueId Builder::load(ValueId ref, ValueId mask, ValueId other, Location at) {
  std::vector<ValueId> args{ref};
  if (mask != no_value) args.push_back(mask);
  if (other != no_value) args.push_back(other);
  return add(Op::Load, std::move(args), {{mask != no_value, other != no_value}, 0}, {}, at);
}

ValueId Builder::store(ValueId ref, ValueId value, ValueId mask, Location at) {
  std::vector<ValueId> args{ref, value};
  if (mask != no_value) args.push_back(mask);
  return add(Op::Store, std::move(args), {{mask != no_value, 0}, 0}, {}, at);
}

ValueId Builder::swap(ValueId ref, ValueId value, ValueId mask, Location at) {
  std::vector<ValueId> args{ref, value};
  if (mask != no_value) args.push_back(mask);
  return add(Op::Swap, std::move(args), {{mask != no_value, 0}, 0}, {}, at);
}

ValueId Builder::atomic(Update update, ValueId ref, ValueId value, ValueId mask, ValueId expected,
                        Location at) {
  std::vector<ValueId> args{ref, value};
  if (mask != no_value) args.push_back(mask);
  if (expected != no_value) args.push_back(expected);
  Attr attr{{mask != no_value, expected != no_value, static_cast<std::int64_t>(update)}, 0};
  return add(Op::Atomic, std::move(args), std::move(attr), {}, at);
}

void Builder::yield(std::vector<ValueId> values) { graph_[region_].yields = std::move(values); }

}  // namespace palladium::graph
