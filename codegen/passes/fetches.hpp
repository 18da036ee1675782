// What TMA copies between global memory and panels in shared memory: operands of products to there,
// results from there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/passes/guards.hpp"
#include "codegen/passes/indices.hpp"
#include "codegen/passes/panels.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// The number of a box among the kernel's tensor maps; none, and why, where it has no room for one
/// more.
BoxId number_of(Program& l, const TensorBox& box, std::string& why);

/// What TMA can do of a kernel's loads and stores.
class Fetches {
 public:
  explicit Fetches(const Program& l);

  struct Found {
    ValueId load = graph::no_value;
    TensorBox box = {};
    /// Of a load with a mask: where that may leave elements out, which are zeros then.
    std::optional<lowered::IfMasked> masked = {};
  };
  /// Of an operand of a product that is staged with `shape` in panels: the load whose view TMA can
  /// copy there, if the operand is no more than that, or that with zeros where it is out of bounds
  /// or masked.
  /// `padded_k`: the dimension of K, where the shape pads it; else -1.
  /// Else the reason, for people; "" of what is computed.
  std::optional<Found> find(ValueId operand, const Extents& shape, int swizzle, int padded_k,
                            std::string& why);
  /// Of a load that others read than products: its view in panels, or a row as it is; `swizzle`
  /// says which.
  std::optional<TensorBox> box_of_load(ValueId load, int swizzle, std::string& why);
  /// Of a window whose block is staged as it is, rows one behind the other: the box that it is;
  /// else the reason.
  std::optional<TensorBox> box_of_window(const Window& w, std::string& why);
  /// Of a Store of a value in panels: the box that TMA can copy to its view; else the reason.
  std::optional<TensorBox> box_of_store(ValueId store, int swizzle, std::string& why);
  /// Of a copy by hand: the box that TMA can copy, or of which it copies several that follow one
  /// another along the first dimension; else the reason. Asks of no window. `panels` know of the
  /// shared memory.
  std::optional<TensorBox> box_of_copy(ValueId copy, Panels& panels, std::string& why);
  /// Whether what is copied by hand are bytes that follow one another in the array, too, as bulk
  /// copies take them: from a multiple of 16 of them on, and a multiple of 16.
  bool is_run_of_bytes(ValueId copy, const Panels& panels);

  /// Of a view that is to be brought near.
  std::optional<TensorBox> box_near(ValueId view, std::string& why);

 private:
  std::optional<TensorBox> box_of_rows(ValueId view, std::string& why);
  std::optional<ValueId> load_of(ValueId operand);
  bool is_masked(ValueId load, std::optional<lowered::IfMasked>& masked) const;
  std::optional<TensorBox> box_of(ValueId access, const Extents& shape, int swizzle,
                                  std::string& why);
  std::optional<TensorBox> box_of_rows_loaded(ValueId load, std::string& why);
  std::optional<TensorBox> box_of_view(ValueId view, const Extents& shape, int swizzle,
                                       std::string& why);
  std::optional<TensorBox> box_of_matrices(ValueId view, int swizzle, std::string& why);
  bool lies_in_array(const BlockMapping& m, ValueId view, int least, std::string& why);
  bool is_aligned(const BlockMapping& m, ValueId view);
  bool ends_aligned(const BlockMapping& m);
  bool is_run(ValueId ref, std::int64_t aligned);
  thread::Facts row_facts(const BlockMapping& m);

  const Program& l_;
  const graph::Graph& g_;
  thread::Exprs exprs_;
  Indices indices_;
  Guards guards_;
  std::vector<thread::ExprId> symbols_;
};

/// The value, or that of which it is the rows, one behind the other: of all dimensions but the
/// last, which is the same.
ValueId rows_of(const graph::Graph& g, ValueId value);

/// What an operand reads, where it is x, or where(condition, x, 0), or rows of that: x. Of what is
/// computed the operand, or a value of which it is computed.
ValueId read_by(const graph::Graph& g, ValueId operand);

/// Per dimension of its block, the dimension of a view that steps along it, or -1; nothing for
/// views that no box covers.
std::optional<std::vector<int>> box_dimensions(const graph::Graph& g, ValueId view);

}  // namespace palladium::passes
