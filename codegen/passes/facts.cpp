#include "codegen/passes/facts.hpp"

#include <algorithm>
#include <numeric>

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;

// Strides of a view's dimensions in the memory of a direct window, as far as they are known.
class View {
 public:
  View(const Lowered& l, Indices& indices, ValueId ref) : l_(l), g_(l.graph), indices_(indices) {
    known_ = walk(ref);
  }

  bool known() const { return known_; }
  layout::MemoryFacts facts() const {
    return {.element_bytes = bytes_,
            .strides = strides_,
            .alignment = alignment_,
            .last_extent_multiple = 16};  // vectors may end inside
  }

 private:
  bool walk(ValueId ref) {
    std::vector<ValueId> views;  // innermost first: chains are long
    for (; g_[ref].op != Op::Param; ref = g_[ref].args[0]) views.push_back(ref);
    bytes_ = g_[ref].type.dtype.bytes();
    if (!root(l_.windows[l_.window_of[index(ref)]])) return false;
    return std::all_of(views.rbegin(), views.rend(), [&](ValueId v) { return apply(g_[v]); });
  }

  bool apply(const Inst& i) {
    switch (i.op) {
    case Op::At: {
      const graph::Subscript s = graph::Subscript::of(i);
      std::vector<layout::Stride> out;
      std::size_t operand = 1;
      for (std::size_t d = 0; d < s.dims.size(); ++d) {
        const graph::SubscriptDim& x = s.dims[d];
        starts_at(x.dynamic ? indices_.facts(i.args[operand++]).multiple : x.start, strides_[d]);
        if (!x.is_slice) continue;
        layout::Stride stride = strides_[d];
        stride.value *= x.stride;
        out.push_back(stride);
      }
      strides_ = std::move(out);
      return true;
    }
    case Op::RefTranspose: {
      std::vector<layout::Stride> out;
      for (std::int64_t d : graph::dimensions(i))
        out.push_back(strides_[static_cast<std::size_t>(d)]);
      strides_ = std::move(out);
      return true;
    }
    default: return false;
    }
  }

  // The view begins at a multiple of this many elements along a dimension.
  void starts_at(std::int64_t multiple, const layout::Stride& stride) {
    const std::int64_t elements = std::gcd(multiple, std::int64_t{16}) * (stride.value % 16);
    alignment_ = static_cast<int>(std::gcd<std::int64_t>(alignment_, elements * bytes_));
  }

  // Whether every block begins where the array does.
  bool begins_at_zero(const BlockMapping& m, int d) const {
    if (m.block_shape[d].pad_lo != 0) return false;
    if (m.index_map == no_region) return true;
    const Inst& at = g_[g_[graph::RegionId{m.index_map}].yields[static_cast<std::size_t>(d)]];
    return at.op == Op::Constant && at.attr.bits == 0;
  }

  bool root(const Window& w) {
    if (w.mapping < 0) return false;
    const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
    const int rank = m.array_aval.shape.rank();
    std::vector<layout::Stride> all(static_cast<std::size_t>(rank));
    Dim stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const bool last = d + 1 == rank;
      if (!m.dense && !last)
        all[d] = layout::Stride::unknown(m.alignment / bytes_);
      else if (stride.is_static())
        all[d] = layout::Stride::fixed(stride.value());
      else
        all[d] = layout::Stride::unknown(multiple_of(stride, g_.facts));
      stride = stride * m.array_aval.shape[d];
    }
    alignment_ = m.alignment;
    for (int d = 0; d < rank; ++d) {
      const BlockDim& b = m.block_shape[d];
      if (b.kind != BlockDim::Kind::squeezed) strides_.push_back(all[d]);
      const std::int64_t step = b.kind == BlockDim::Kind::blocked ? b.size : 1;
      const Dim& extent = m.array_aval.shape[d];
      const bool one_block = extent.is_static() && b.size >= extent.value();
      const bool whole = b.kind == BlockDim::Kind::blocked && one_block;
      if (!whole && !begins_at_zero(m, d)) starts_at(step, all[d]);
    }
    return true;
  }

  const Lowered& l_;
  const Graph& g_;
  Indices& indices_;
  std::vector<layout::Stride> strides_;
  int bytes_ = 4, alignment_ = 16;
  bool known_ = false;
};

}  // namespace

std::optional<layout::MemoryFacts> memory_facts(const Lowered& l, Indices& indices, ValueId ref) {
  const View view(l, indices, ref);
  if (!view.known()) return std::nullopt;
  return view.facts();
}

}  // namespace palladium::passes
