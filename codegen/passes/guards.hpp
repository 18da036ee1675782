// Whether a condition on elements of a window keeps all that is in bounds.
#pragma once

#include <map>
#include <utility>

#include "codegen/passes/passes.hpp"
#include "codegen/passes/sums.hpp"

namespace palladium::passes {

class Guards {
 public:
  explicit Guards(const Program& l)
      : g_(l.graph),
        sums_(
            l.graph, exprs_, [this](int axis) { return program_id(axis); },
            [this](std::uint32_t symbol) { return this->symbol(symbol); }) {}

  /// Whether the condition holds wherever elements of the view are in bounds, along some or all
  /// dimensions. Out of bounds nothing is defined: who puts zeros there need not ask.
  bool asks_bounds(const Window& w, ValueId view, ValueId condition);
  bool is_zero(ValueId v) const;
  /// Whether it is where(inside, x, 0), of elements x of a view of the window.
  bool guards(const Window& w, ValueId select, ValueId x, ValueId view);

 private:
  thread::ExprId program_id(int axis);
  thread::ExprId symbol(std::uint32_t number);
  thread::ExprId coordinate(std::size_t d, std::int64_t extent);
  thread::ExprId variable(std::int64_t count);

  const graph::Graph& g_;
  thread::Exprs exprs_;
  Sums sums_;
  std::map<int, thread::ExprId> program_ids_;
  std::map<std::uint32_t, thread::ExprId> symbols_;
  std::map<std::pair<std::size_t, std::int64_t>, thread::ExprId> coordinates_;
};

}  // namespace palladium::passes
