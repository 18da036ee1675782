#include "codegen/trace/operands.hpp"

#include <cmath>
#include <vector>

namespace palladium::trace {

std::optional<std::uint64_t> bits_of_fill(double fill, DType dtype) {
  if (dtype.is_float()) return graph::to_bits(dtype, fill);
  const int bits = dtype.is_bool() ? 1 : dtype.bits() - dtype.is_signed();
  const double least = dtype.is_signed() ? -std::ldexp(1.0, bits) : 0.0;
  if (std::trunc(fill) != fill || fill < least || fill >= std::ldexp(1.0, bits)) return {};
  if (dtype == u64) return static_cast<std::uint64_t>(fill);
  return graph::to_bits(dtype, static_cast<std::int64_t>(fill));
}

namespace {

/// The argument that an extent mentions; -1: none.
int mentioned(const Dim& d) {
  std::vector<std::uint32_t> symbols;
  collect_symbols(d, symbols);
  for (const std::uint32_t s : symbols)
    if (const int i = argument_of(s); i >= 0) return i;
  return -1;
}

bool is_argument(const Dim& d) {
  return !d.is_static() && dim_node(d).op == palladium::detail::DimOp::symbol && mentioned(d) >= 0;
}

std::string name_of(int i) { return "args[" + std::to_string(i) + "]"; }

class Connection {
 public:
  Connection(graph::Graph& g, std::span<const ArgumentType> arguments)
      : g_(g), arguments_(arguments) {}

  std::string run() {
    GridMapping& m = g_.mapping;
    m.bounds.assign(m.grid.size(), -1);
    bool any = false;
    for (std::size_t axis = 0; axis < m.grid.size(); ++axis) {
      const Dim given = m.grid[axis];
      if (const std::string problem = connect(m.grid[axis], &m.bounds[axis]); !problem.empty())
        return "grid axis " + std::to_string(axis) + ", " + to_string(given) + ": " + problem;
      any |= m.bounds[axis] >= 0;
    }
    if (!any) m.bounds.clear();
    for (BlockMapping& b : m.block_mappings)
      for (int i = 0; i < b.array_aval.shape.rank(); ++i)
        if (const std::string problem = connect(b.array_aval.shape[i], nullptr); !problem.empty())
          return b.origin + " is " + to_string(b.array_aval) + ": " + problem;
    return "";
  }

 private:
  // `bound`: what becomes of an axis of the grid that an array bounds.
  std::string connect(Dim& d, int* bound) {
    std::vector<std::uint32_t> symbols;
    collect_symbols(d, symbols);
    for (const std::uint32_t s : symbols) {
      const int i = argument_of(s);
      if (i < 0) continue;
      const auto at = static_cast<std::size_t>(i);
      if (at >= arguments_.size())
        return "the call has " + std::to_string(arguments_.size()) + " arguments";
      const ArgumentType& a = arguments_[at];
      if (!a.type.dtype.is_integer() || a.type.shape.size() != 1)
        return name_of(i) + " is " + to_string(a.type) + ", but a size is one integer";
      if (!a.is_scalar) return bound ? bounded(d, i, *bound) : unknown(i);
      g_.arguments[at].symbol = static_cast<int>(s);
    }
    return "";
  }

  static std::string unknown(int i) {
    return "only the device knows what " + name_of(i) +
           " holds: pass it by value, pl::scalar(n), or, in a grid, say how many programs there "
           "are "
           "at most: pl::at_most(pl::argument(" +
           std::to_string(i) + "), n)";
  }

  std::string bounded(Dim& d, int argument, int& bound) {
    const DimNode n = dim_node(d);
    const bool plain =
        n.op == palladium::detail::DimOp::min && is_argument(n.a) && mentioned(n.b) < 0;
    if (!plain) return unknown(argument);
    d = n.b;
    bound = g_.arguments[static_cast<std::size_t>(argument)].index;
    return "";
  }

  graph::Graph& g_;
  std::span<const ArgumentType> arguments_;
};

}  // namespace

std::string connect_arguments(graph::Graph& g, std::span<const ArgumentType> arguments) {
  return Connection(g, arguments).run();
}

}  // namespace palladium::trace
