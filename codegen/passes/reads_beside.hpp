// What threads read beside products of tensor cores, and what is there when they come to it.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/fetches.hpp"
#include "codegen/passes/operands.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Precondition: windows are placed; loads are asked for after those who read them are placed.
class ReadsBeside {
 public:
  ReadsBeside(const Program& l, const Analysis& a) : l_(l), g_(l.graph), a_(a), fetches_(l) {}

  /// Of what threads read anew in each iteration of a loop with products, or once beside their
  /// sums, and TMA, or copies of theirs, can bring to shared memory meanwhile: its place there.
  std::optional<Shared> fetched(ValueId load);
  /// A few registers of what nobody writes, anew in each iteration of a loop in which threads wait
  /// for each other or for products: that is loaded for the next iteration meanwhile (load_ahead).
  bool is_loaded_ahead(ValueId load);

 private:
  /// Bytes of shared memory that an iteration fills, and those that are filled before.
  struct Staging {
    Checked anew = 0, before = 0;
  };

  bool is_read_beside_sums(ValueId v);
  bool is_operand_beside_products(ValueId v) const;
  bool has_room_beside_sums();
  bool comes_last(ValueId v) const;
  std::optional<Shared> room_of_fetch(ValueId v);
  bool is_copied_in_rows(ValueId load) const;
  bool has_room(graph::RegionId region);
  bool is_small(ValueId v);
  Staging operands_in(graph::RegionId region);
  bool is_operand(ValueId v) const;
  bool is_read_by_product(ValueId v) const;
  bool waits_beside(ValueId v);
  bool repeats_product(ValueId v);
  bool is_repeated(ValueId v) const;
  const std::map<graph::RegionId, bool>& multiplying();

  const Program& l_;
  const graph::Graph& g_;
  const Analysis& a_;
  Fetches fetches_;
  std::map<graph::RegionId, bool> fetches_all_;
  std::optional<bool> room_beside_sums_;
  std::optional<std::map<graph::RegionId, bool>> multiplying_;
  std::optional<std::set<graph::RegionId>> waiting_;
};

}  // namespace palladium::passes
