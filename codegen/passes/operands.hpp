// Operands of products in shared memory.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/fetches.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// An operand of a product, the extents, padded to whole fragments, that it is staged with, and the
/// swizzle of its panels, or whether rows of 16 bytes of it are read by ldmatrix; whether it is
/// rounded to tf32, which wgmma does not do. Products of equal ones read it in one place.
struct Operand {
  ValueId value = graph::no_value;
  Extents shape = {};
  int swizzle = 0;
  int padded_k = -1;  // the dimension of K, where zeros pad it
  bool by_matrices = false;
  bool tf32 = false;
  auto operator<=>(const Operand&) const = default;
};

/// A and B of a product whose sums have this layout.
std::pair<Operand, Operand> operands_of(const Program& l, const Dot& d,
                                        const layout::Layout& layout);

/// The room that it takes there.
Storage storage_for(const graph::Graph& g, const Operand& o);

/// As what the first product of the value's region reads it; nothing if none does.
std::optional<Operand> first_read(const Program& l, const Analysis& a, ValueId value);

/// Of what nobody uses but what transposes it for products, bytes that a warp can transpose: as
/// what it is in shared memory before, in rows as TMA brings them. Nothing of other values.
std::optional<Operand> turned_operand(const Program& l, const Analysis& a, ValueId value);

/// What brings operands of products there, by TMA where it can, else by the threads.
class Operands {
 public:
  Operands(Program& l, Fetches& fetches) : l_(l), g_(l.graph), fetches_(fetches) {}

  /// Adds what stages those that are not there.
  void stage(Statements& out, std::vector<Operand> operands);
  /// The same for those of a region's products for which here(operand, product).
  using Here = std::function<bool(ValueId operand, ValueId product)>;
  void stage(Statements& out, graph::RegionId r, const Here& here);

  /// Those that are there now, and where: a copy of it brings that back.
  using Staged = std::map<Operand, StorageId>;
  Staged& staged() { return staged_; }

 private:
  void find(graph::RegionId r, const Here& here, std::set<Operand>& wanted) const;
  StorageId stage_by_threads(Statements& out, const Operand& o);
  StorageId storage_of_whole(const Operand& o) const;
  StorageId add_staged(const Operand& o);
  void add_copy(std::vector<Copy>& copies, Statements& clears, const Operand& o);
  Statement clear(IfMasked masked, StorageId storage, const Extents& shape);

  Program& l_;
  const graph::Graph& g_;
  Fetches& fetches_;
  Staged staged_;  // before the loops in which they are not made, or in front of their first user
};

}  // namespace palladium::passes
