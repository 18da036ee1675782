// Which memory a Ref of a Pallas thread is, and what of it a view has.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/lowered/hand_numbers.hpp"
#include "codegen/lowered/hand_walk.hpp"

namespace palladium::lowered::hand {

/// Of one thread on one way, which keeps what they find.
class Places {
 public:
  Places(const graph::Graph& g, const Facts& facts, const Numbers& numbers, const Position& at,
         Way& way)
      : g_(g),
        facts_(facts),
        numbers_(numbers),
        at_(at),
        way_(way),
        memories_(g.insts.size(), -1) {}

  /// A scratch of run_scoped is another one each time.
  void open(ValueId root);
  /// Of the way, by number; in another block, or -1: in the own one.
  int memory_of(ValueId root);
  int memory_of(ValueId root, int block);
  /// Which block a view or an arrival names; -1: the own one, and where there is no such block,
  /// which the way does not survive.
  int block_of(ValueId v, const graph::Inst& inst);

  Region region_of(ValueId ref);
  /// Of the way, by number.
  int keep(const Region& r);
  int viewed(ValueId ref) { return keep(region_of(ref)); }
  /// One of so many parts along a dimension.
  int part(ValueId view, int dimension, std::int64_t parts, std::int64_t number);

 private:
  // Of a view: which dimension of the memory it goes along, by which steps; -1: several.
  struct Axis {
    int of = -1;
    std::int64_t stride = 1, width = 1;  // of which each element has so many there
  };

  int new_memory(ValueId root, int block);
  void see(ValueId v, Region& r);
  void enter_part(const graph::Inst& view, Region& r);
  void select(ValueId v, Region& r);
  static Axis along(Axis axis, const graph::SubscriptDim& dim, std::int64_t start, Region& r);

  const graph::Graph& g_;
  const Facts& facts_;
  const Numbers& numbers_;
  const Position& at_;
  Way& way_;
  std::vector<int> memories_;        // by root
  std::vector<Axis> axes_;           // of the view that is looked at
  std::map<ValueId, int> entry_of_;  // which time that it is opened a scratch of run_scoped is of
  int entries_ = 0;
};

}  // namespace palladium::lowered::hand
