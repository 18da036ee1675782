// What copies of a loop need of it to be made ahead of their iterations.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// A loop whose statements are looked at.
struct Over {
  Statements* body = nullptr;
  int axis = -1;
  ValueId loop = graph::no_value;
  RingId* unrolled = nullptr;  // of the loop: the ring that is unrolled in it
  int steps = 1;               // of its rings, in each iteration
};

/// What copies of a loop need that is not the same in all of its iterations.
class Needs {
 public:
  Needs(const Program& l, const Over& over);

  /// Adds the statements that make what the copies need; says why there are none ("" else).
  std::string add(std::span<const Statement> copies, std::set<std::size_t>& statements);

 private:
  std::string add_copy(const Statement& copy, std::set<std::size_t>& found);
  void note(const Statement& s, bool ahead);
  std::string add_window(WindowId window, std::set<std::size_t>& found);
  std::string add_value(ValueId root, std::set<std::size_t>& found);
  std::string add_view(ValueId ref, std::vector<std::pair<ValueId, bool>>& stack,
                       std::set<std::size_t>& found);

  const Program& l_;
  const graph::Graph& g_;
  const Over over_;
  StorageId index_;                           // of the loop
  std::map<StorageId, int> filled_;           // how often in the text of the loop
  std::map<StorageId, std::size_t> scalars_;  // by which statement
  std::map<WindowId, std::size_t> windows_;   // that are entered, by which statement
};

}  // namespace palladium::passes
