// Shared memory that products by hand read, and what users say of how theirs is to lie: in panels,
// which TMA writes and wgmma reads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/passes/indices.hpp"

namespace palladium::passes {

using graph::ValueId;

/// What a view shows of the last two dimensions of its root: where it begins there, and what that
/// is a multiple of.
struct MatrixView {
  std::int64_t row_multiple = 0, column_multiple = 0;  // 0: it begins at 0
  std::int64_t columns = 0;
  bool moves_columns = false;  // by what the program computes
};

class Panels {
 public:
  /// CompileError where no swizzle, or not that which the user gave, is one for all who use the
  /// memory.
  explicit Panels(const graph::Graph& g);

  /// Bytes of a root Ref; 0: it lies row-major.
  int swizzle(ValueId root) const;
  /// Of a view that is a matrix, or several: unit steps along the last two dimensions of its root,
  /// and along those in front of them.
  std::optional<MatrixView> matrices(ValueId view);
  std::optional<MatrixView> matrix(ValueId view);

 private:
  struct Use {
    ValueId product = graph::no_value, view = graph::no_value;
    bool along_k = true;  // rows of the memory go along K
  };
  void find_parts(graph::RegionId region);
  void find_uses(const graph::Body& body, graph::RegionId region);
  void choose(ValueId root, const std::vector<Use>& uses);
  std::string misfit(ValueId root, const Use& use, int swizzle);
  ValueId in_first_body(ValueId root) const;

  const graph::Graph& g_;
  thread::Exprs exprs_;
  Indices indices_;
  std::map<ValueId, ValueId> firsts_;  // scratch that bodies share
  std::vector<ValueId> parts_;         // of unions
  std::map<ValueId, std::vector<Use>> uses_;
  std::map<ValueId, int> swizzles_;
};

}  // namespace palladium::passes
