// Appends checked instructions to a region: the only way a trace, a test or a pass makes them.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Result type by the op's rule. CompileError (at `at`, naming op and operands' types) if the
/// operands do not fit. `given` is the type for ops whose rule is `given` (Constant, Cast, ...) and
/// the result shape of Reshape and Broadcast.
Type infer(const Graph& g, Op op, const Attr& attr, std::span<const ValueId> args,
           const Type& given, Location at);

/// CompileError if a body of `op` stands inside of more than max_nesting - 1 others.
void check_nesting(std::size_t bodies_around, Op op, Location at);

class Builder {
 public:
  Builder(Graph& g, RegionId region) : graph_(g), region_(region) {}

  Graph& graph() { return graph_; }
  RegionId region() const { return region_; }

  /// Infers the type, appends to the region.
  ValueId add(Op op, std::vector<ValueId> args, Attr attr = {}, Type given = {}, Location at = {});
  /// An instruction with regions that are already built.
  ValueId add(Op op, std::vector<ValueId> args, std::vector<RegionId> regions, Attr attr = {},
              Location at = {});
  ValueId param(Type type, Location at = {});
  ValueId constant(DType dtype, double number, Extents shape = {}, Location at = {});
  ValueId constant(DType dtype, std::int64_t number, Extents shape = {}, Location at = {});
  ValueId constant(DType dtype, int number, Extents shape = {}, Location at = {}) {
    return constant(dtype, static_cast<std::int64_t>(number), std::move(shape), at);
  }
  /// What hinders numpy from broadcasting the values to one shape, a sentence of `what`; or "".
  std::string broadcast_problem(const std::vector<ValueId>& values, const char* what) const;
  /// The values as numpy broadcasts them; CompileError by the name `what` where it does not.
  std::vector<ValueId> broadcast_together(std::vector<ValueId> values, const char* what,
                                          Location at = {});
  /// Elementwise op with numpy broadcasting of shapes; dtypes must agree already.
  ValueId elementwise(Op op, std::vector<ValueId> args, Location at = {});
  ValueId broadcast_to(ValueId v, const Extents& shape, Location at = {});
  ValueId cast(ValueId v, DType dtype, Location at = {});
  /// The part of a Ref that `subscript` selects; `starts` are its dynamic starts in order.
  ValueId at(ValueId ref, const Subscript& subscript, std::vector<ValueId> starts = {},
             Location at = {});
  ValueId load(ValueId ref, ValueId mask = no_value, ValueId other = no_value, Location at = {});
  ValueId store(ValueId ref, ValueId value, ValueId mask = no_value, Location at = {});
  ValueId swap(ValueId ref, ValueId value, ValueId mask = no_value, Location at = {});
  ValueId atomic(Update update, ValueId ref, ValueId value, ValueId mask = no_value,
                 ValueId expected = no_value, Location at = {});
  void yield(std::vector<ValueId> values);

 private:
  bool common_shape(const std::vector<ValueId>& values, Extents& shape) const;

  Graph& graph_;
  RegionId region_;
};

}  // namespace palladium::graph
