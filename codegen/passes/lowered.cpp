#include "codegen/passes/lowered.hpp"

#include "codegen/base/format.hpp"

namespace palladium::passes {

using graph::Graph;
using graph::Inst;
using graph::Op;

DimMap identity_map(int rank) {
  DimMap m(rank);
  for (int d = 0; d < rank; ++d) m[d] = d;
  return m;
}

namespace {

// A reshape that only adds or removes dimensions of extent 1 maps dimensions; any other mixes them.
DimMap map_through_reshape(const Extents& operand, const Extents& result, const DimMap& map) {
  DimMap out(operand.size(), zero_dim);
  std::size_t r = 0;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] == 1) continue;
    while (r < result.size() && result[r] == 1) ++r;
    if (r == result.size() || result[r] != operand[d]) {
      for (std::size_t k = 0; k < operand.size(); ++k)
        out[k] = operand[k] == 1 ? zero_dim : opaque_dim;
      return out;
    }
    out[d] = map[r++];
  }
  return out;
}

}  // namespace

DimMap map_of_operand(const Graph& g, ValueId v, std::size_t arg, const DimMap& map) {
  const Inst& inst = g[v];
  const Extents& operand = g[inst.args[arg]].type.shape;
  switch (inst.op) {
  case Op::Broadcast: {
    DimMap out(operand.size(), zero_dim);
    for (std::size_t d = 0; d < operand.size(); ++d)
      if (operand[d] != 1) out[d] = map[inst.attr.ints[d]];
    return out;
  }
  case Op::Transpose: {
    DimMap out(operand.size());
    for (std::size_t d = 0; d < operand.size(); ++d) out[inst.attr.ints[d]] = map[d];
    return out;
  }
  case Op::Reshape: return map_through_reshape(operand, inst.type.shape, map);
  default: break;
  }
  if (operand.size() == map.size()) return map;
  return DimMap(operand.size(), zero_dim);  // a scalar operand (mask, other)
}

std::string name_of(const Graph& g, ValueId v) {
  return index(v) < g.names.size() ? g.names[index(v)] : "";
}

bool is_reduce(Op op) { return op == Op::ReduceSum || op == Op::ReduceMax || op == Op::ReduceMin; }

bool is_elementwise(Op op) { return op >= Op::Neg && op <= Op::Select; }

std::int64_t registers_estimate(const graph::Type& type) {
  const std::int64_t per_thread = cdiv(graph::element_count(type.shape), layout::threads);
  return per_thread * (type.dtype.bytes() == 8 ? 2 : 1);
}

namespace {

const char* name_of(Place p) {
  constexpr const char* names[] = {"inlined", "scalar", "registers", "shared"};
  return names[static_cast<int>(p)];
}

std::string storage_text(const Lowered& l, int i) {
  const Storage& s = l.storages[i];
  std::string text = fmt::format("s{}: {} {}", i, name_of(s.place), s.dtype.name());
  text += graph::to_string(graph::Type::value(s.dtype, s.shape))
              .substr(std::string(s.dtype.name()).size());
  if (s.place == Place::registers) text += " " + layout::to_string(s.layout);
  if (s.place == Place::shared) text += fmt::format(" at {} row stride {}", s.offset, s.row_stride);
  return text;
}

std::string rolled_text(const Pass& p) {
  std::string text;
  for (std::size_t d = 0; d < p.rolled.size(); ++d)
    if (p.rolled[d]) text += fmt::format(" rolled({})", d);
  return text;
}

void statements_text(const std::vector<Statement>& list, int indent, std::string& out) {
  const std::string pad(indent, ' ');
  const auto value = [](ValueId v) {
    return v == graph::no_value ? "-" : "%" + std::to_string(index(v));
  };
  for (const Statement& s : list) {
    switch (s.kind) {
    case Statement::Kind::pass: {
      constexpr const char* sinks[] = {"assign", "shared", "store", "reduce"};
      out += pad + fmt::format("pass {} {} inst {} -> s{}{} {}\n",
                               sinks[static_cast<int>(s.pass.sink)], value(s.pass.value),
                               value(s.pass.inst), s.pass.storage, rolled_text(s.pass),
                               layout::to_string(s.pass.layout));
      break;
    }
    case Statement::Kind::dot:
      out += pad + fmt::format("dot s{} s{} -> s{}\n", s.dot.a, s.dot.b, s.dot.result);
      break;
    case Statement::Kind::relayout:
      out += pad + fmt::format("relayout s{} -> s{}: {}\n", s.relayout.from, s.relayout.to,
                               layout::describe(s.relayout.plan));
      break;
    case Statement::Kind::sync: out += pad + "sync\n"; break;
    case Statement::Kind::scalar:
      out += pad + fmt::format("scalar {} -> s{}\n", value(s.value), s.to);
      break;
    case Statement::Kind::copy: out += pad + fmt::format("copy s{} -> s{}\n", s.from, s.to); break;
    case Statement::Kind::window: out += pad + fmt::format("window {}\n", s.window); break;
    case Statement::Kind::when:
    case Statement::Kind::loop:
    case Statement::Kind::grid_loop:
      out += pad +
             (s.kind == Statement::Kind::when   ? "when " + value(s.value)
              : s.kind == Statement::Kind::loop ? "loop " + value(s.value)
                                                : fmt::format("grid loop {}", s.axis)) +
             "\n";
      statements_text(s.body, indent + 2, out);
      break;
    }
  }
}

}  // namespace

std::string to_text(const Lowered& l) {
  std::string out = "lowered " + l.graph.name + "\n";
  constexpr const char* residencies[] = {"direct", "registers", "shared"};
  for (std::size_t i = 0; i < l.windows.size(); ++i) {
    const Window& w = l.windows[i];
    out += fmt::format("  window {}: {} {}{}{}{}{} depth {}\n", i,
                       w.mapping < 0 ? "scratch" : l.graph.mapping.block_mappings[w.mapping].origin,
                       residencies[static_cast<int>(w.residency)],
                       w.storage >= 0 ? fmt::format(" s{}", w.storage) : "", w.fill ? " fill" : "",
                       w.flush ? " flush" : "", w.read_only ? " read only" : "", w.depth);
  }
  for (std::size_t i = 0; i < l.storages.size(); ++i)
    out += "  " + storage_text(l, static_cast<int>(i)) + "\n";
  for (const LoweredBody& b : l.bodies) statements_text(b.statements, 2, out);
  out += fmt::format("  shared bytes {}\n", l.shared_bytes);
  return out;
}

}  // namespace palladium::passes
