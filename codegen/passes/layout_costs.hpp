// What nests and moves of values cost in a layout, for the assignment of layouts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "codegen/layout/relayout.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/access_model.hpp"
#include "codegen/passes/nest_model.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Operations that a nest inlines for an element of the value, up to a limit.
int operations(const Program& l, ValueId v, int limit);

/// In clocks of a warp, as far as layouts differ in them.
class LayoutCosts {
 public:
  using Layout = layout::Layout;

  explicit LayoutCosts(const Program& l);

  AccessModel& accesses() const { return model_; }

  /// Of a nest that reads these elements.
  double of_nest(const LoopNest& p, const std::vector<Effect>& elements, const Layout& l) const;
  /// Of what a nest of one layout reads of registers that have another.
  double of_move(const Storage& s, const Layout& source, const Layout& nest, const Read& r,
                 const layout::PlanOptions& options) const;
  /// Of what lies in rows in shared memory, and is no window.
  bool reads_columns(const Effect& e) const;

 private:
  std::map<ValueId, int> widths_of_mixed(const LoopNest& p, const std::vector<Effect>& elements,
                                         const Layout& l) const;
  std::optional<double> halves_cost(const LoopNest& p, const Layout& l, ValueId bytes) const;
  std::vector<ValueId> evaluated(const LoopNest& p) const;
  double shared_reads(const LoopNest& p, const Effect& e, const Layout& l) const;
  double conflicts(ValueId load, const DimMap& map) const;
  int staged_width(ValueId load, const DimMap& map) const;
  double assign_cost(const Assign& to, const Layout& l) const;
  double copy_cost(const LoopNest& p, const Layout& l) const;
  double stage_cost(const LoopNest& p, StorageId storage, const Layout& l) const;
  double shared_vector(const LoopNest& p, StorageId storage, const Layout& l) const;

  const Program& l_;
  const graph::Graph& g_;
  mutable AccessModel model_;       // remembers what it was asked
  mutable NestModel nests_;         // likewise
  const std::set<ValueId> halved_;  // bytes of which elements of 4 bits are made
};

}  // namespace palladium::passes
