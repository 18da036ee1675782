// What is known of the scalar indices of a graph, by the arithmetic of the program of a thread.
#pragma once

#include <unordered_map>

#include "codegen/graph/graph.hpp"
#include "codegen/thread/expr.hpp"

namespace palladium::passes {

class Indices {
 public:
  Indices(const graph::Graph& g, thread::Exprs& exprs);

  /// Of a scalar of integers: what knows its multiple and its interval.
  thread::ExprId expr(graph::ValueId v) { return expr(v, 0); }
  /// From now on the value is that.
  void set(graph::ValueId v, thread::ExprId e) { known_[graph::index(v)] = e; }

 private:
  thread::ExprId expr(graph::ValueId v, int depth);
  thread::ExprId leaf(graph::ValueId v);

  const graph::Graph& g_;
  thread::Exprs& exprs_;
  std::unordered_map<std::uint32_t, graph::ValueId> loop_of_;  // of a loop's index
  std::unordered_map<std::uint32_t, thread::ExprId> known_;
};

}  // namespace palladium::passes
