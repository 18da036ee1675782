// Which tensor core computes a product, and how its accumulators are distributed.
#pragma once

#include <utility>
#include <vector>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// A product for mma.sync of so many warps along rows and columns: those that hold it in the fewest
/// registers, then load the fewest fragments per step of K. Of equals the squarest: operands are
/// padded to whole fragments of all warps.
struct WarpGrid {
  int rows = 4, columns = 1;
};
WarpGrid choose_warps(int num_warps, std::int64_t m, std::int64_t n);

/// Whether wgmma would compute the product but for the registers: it does where it has such
/// operands, the program's warpgroups can share rows and columns, its accumulators leave a thread
/// the registers that it takes beside them and, with what it pads, in less time than mma.sync.
bool lacks_registers_for_wgmma(const Program& l, const graph::Inst& dot);
/// The fewest warps of a program in which wgmma computes the product; 0: none.
int warps_that_take_wgmma(const Program& l, const graph::Inst& dot);

/// What a value was at the end of a loop's iteration, when somebody stored it, or before it was
/// sliced: nothing of what is no more than computed.
std::vector<ValueId> held_before(const graph::Graph& g, ValueId v);
/// Whether elements of products give those of the value, each that of one.
bool is_of_products(const graph::Graph& g, ValueId value);

/// A product without operands, and the layout of its accumulators.
std::pair<Dot, layout::Layout> product(const Program& l, ValueId dot);
/// Whether a product takes A, staged with so many rows and columns of K, from registers: where they
/// are all that it is computed of, nothing is padded with zeros along K, and no warps beside others
/// need the same rows. Rows are padded, and mma.sync takes registers, of what another product
/// leaves there alone.
bool takes_registers(const Program& l, const Dot& d, ValueId a, const Extents& staged);
/// What K is padded to a multiple of, of operands of such elements.
std::int64_t k_step(Dot::Unit u, DType t);
/// Whether both operands are stored along K, which is where tensor cores want all elements but
/// those of 16 bits.
bool is_k_major(const graph::DotView& dot);

/// Has sums of more than promoted_k, of which tensor cores would keep too few bits, added up by
/// threads, and says so. Precondition: whether the product accumulates is known.
void promote_sums(Program& l, Dot& d);

/// Whether what tensor cores have added up last of a product of wgmma_promoted waits for the next
/// one, or who asks for the sum, so that it goes on meanwhile: where there is no other product, for
/// which ptxas would wait, and none that only some iterations come to.
bool rests(const Program& l, const Dot& d);

/// Whether the statement is a product that runs by itself, behind it.
inline bool is_wgmma(const Statement& s) {
  const Dot* const d = std::get_if<Dot>(&s.what);
  return d != nullptr && is_of_wgmma(d->unit);
}

}  // namespace palladium::passes
