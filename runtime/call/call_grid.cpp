#include "runtime/call/call_grid.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/graph/extents.hpp"
#include "codegen/graph/limits.hpp"

namespace palladium::runtime {

namespace {

// Where the symbol is an extent.
std::string origin_of(const graph::Graph& g, std::uint32_t symbol) {
  for (const BlockMapping& m : g.mapping.block_mappings)
    for (int d = 0; d < m.array_aval.shape.rank(); ++d)
      if (m.array_aval.shape[d].same(dim_symbol(symbol)))
        return m.origin + ".shape[" + std::to_string(d) + "]";
  return symbol_name(symbol);
}

}  // namespace

CallGrid::CallGrid(const graph::Graph& g) {
  for (const Dim& axis : g.mapping.grid) is_empty_ |= axis.same(0);
  is_empty_ |= g.mapping.num_outputs > 0 && graph::writes_nothing(g);
  note_outputs(g);
  for (const graph::Inst& in : g.insts)
    if (in.op == graph::Op::DimValue) asked_.push_back(graph::symbol_of(in));
  std::ranges::sort(asked_);
  asked_.erase(std::ranges::unique(asked_).begin(), asked_.end());
  if (g.mapping.static_grid()) return;
  most_ = graph::most_blocks / graph::cluster_blocks(g);
  for (std::size_t axis = 0; axis < g.mapping.grid.size(); ++axis)
    axes_.push_back(
        {Extent(g.mapping.grid[axis]), g.semantics[axis] == graph::Semantics::parallel});
}

void CallGrid::note_outputs(const graph::Graph& g) {
  if (is_empty_ || std::ranges::any_of(g.insts, [](const graph::Inst& inst) {
        return graph::is_debug_op(inst.op);
      }))
    return;
  for (int o = 0; o < g.mapping.num_outputs; ++o) {
    const BlockMapping& m =
        g.mapping.block_mappings[static_cast<std::size_t>(g.mapping.num_inputs + o)];
    if (graph::is_empty(m)) continue;
    std::vector<Extent> extents;
    for (const Dim& d : m.array_aval.shape)
      if (!d.is_static()) extents.emplace_back(d);
    if (extents.empty()) return outputs_.clear();
    outputs_.push_back(std::move(extents));
  }
}

// Almost every call has an element to write.
[[gnu::noinline]] bool CallGrid::writes_nothing(const Signature::Symbols& symbols) const {
  for (const std::vector<Extent>& extents : outputs_)
    if (std::ranges::none_of(
            extents, [&](const Extent& extent) { return extent.find(symbols).within(0, 0); }))
      return false;
  return true;
}

// Almost every grid is one that can be, and has programs.
bool CallGrid::check(const graph::Graph& g, const Signature::Symbols& symbols, Location at) const {
  if (!asked_.empty()) check_asked(g, symbols, at);
  if (axes_.empty()) return !is_empty_ && (outputs_.empty() || !writes_nothing(symbols));
  std::int64_t programs = 1;
  for (const Axis& axis : axes_) {
    const Checked size = axis.size.find(symbols);
    if (!size.within(1, graph::most_programs)) return check_sizes(g, symbols, at);
    if (axis.is_parallel) programs *= size.value();  // of two numbers below 2^31
    if (programs > most_) return check_sizes(g, symbols, at);
  }
  return !is_empty_ && (outputs_.empty() || !writes_nothing(symbols));
}

void CallGrid::check_asked(const graph::Graph& g, const Signature::Symbols& symbols,
                           Location at) const {
  for (const std::uint32_t s : asked_)
    if (symbols[s] > INT32_MAX)
      throw CompileError(at, "kernel '" + g.name + "' computes with an extent, " + origin_of(g, s) +
                                 ", as an i32: at most 2147483647 elements, given " +
                                 std::to_string(symbols[s]));
}

[[gnu::cold]] bool CallGrid::check_sizes(const graph::Graph& g, const Signature::Symbols& symbols,
                                         Location at) const {
  std::int64_t sizes[detail::max_grid_rank] = {};
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) try {
      sizes[axis] = axes_[axis].size.evaluate(symbols);
    } catch (const CompileError& error) {
      throw CompileError(at, "kernel '" + g.name + "': grid axis " + std::to_string(axis) + ", " +
                                 to_string(g.mapping.grid[axis]) + ": " + error.what());
    }
  const auto given = std::span(sizes).first(axes_.size());
  graph::check_grid(g, given, at);
  return std::find(given.begin(), given.end(), 0) == given.end();
}

}  // namespace palladium::runtime
