// The least and the largest element of integers in an iteration of a loop, as sums that are known
// before it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/lowered/program.hpp"

namespace palladium::passes {

using graph::ValueId;
using lowered::IterationSum;
using lowered::Program;
using lowered::StorageId;

/// What numbers the iterations: an index, or a sequential axis; the storages that they fill.
struct IterationNumber {
  ValueId index = graph::no_value;
  int axis = -1;
  std::set<StorageId> changing = {};
  /// Before values have places: whether a scalar is made in front of the loop.
  std::function<bool(ValueId)> is_made_before = {};
};

/// Comparisons that are what is said of them where no sum is negative.
struct Known {
  std::vector<std::pair<ValueId, bool>> conditions = {};
  std::vector<IterationSum> sums = {};
};

/// Sums none of which is negative, and as few of them as say so: of those that differ in nothing
/// but a constant the least.
void require_also(std::vector<IterationSum>& all, const std::vector<IterationSum>& more);

class IterationBounds {
 public:
  IterationBounds(const Program& l, const IterationNumber& number)
      : l_(l), g_(l.graph), number_(number) {}

  /// Where the elements of a value of bools all hold, or all do not; nothing where that cannot be
  /// said.
  std::optional<Known> of(ValueId condition, bool holds);

 private:
  /// No element is less than the least of `least`, nor larger than the largest of `largest`.
  struct Range {
    std::vector<IterationSum> least = {}, largest = {};
    std::vector<IterationSum> sums = {};  // where it is so: none of them is negative
  };
  std::optional<Known> of(ValueId condition, bool holds, int depth);
  std::optional<Known> compared(ValueId comparison, bool holds);
  const std::optional<Range>& range(ValueId v, int depth);
  std::optional<Range> computed(ValueId v, int depth);
  std::optional<Range> combined(const graph::Inst& i, int depth);
  bool is_number(ValueId v) const;
  bool is_fixed(ValueId v, int depth = 0);

  const Program& l_;
  const graph::Graph& g_;
  const IterationNumber& number_;
  std::map<ValueId, std::optional<Range>> ranges_;
  std::map<ValueId, bool> fixed_;
};

}  // namespace palladium::passes
