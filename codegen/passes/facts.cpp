#include "codegen/passes/facts.hpp"

#include <algorithm>

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;

// Strides of a view's dimensions in the memory of a direct window, as far as they are known.
class View {
 public:
  View(const Lowered& l, ValueId ref) : l_(l), g_(l.graph) { known_ = walk(ref); }

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
      for (std::size_t d = 0; d < s.dims.size(); ++d) {
        const graph::SubscriptDim& x = s.dims[d];
        const bool last = d + 1 == s.dims.size();
        if (last && (x.dynamic || !x.is_slice || x.start * bytes_ % 16 != 0)) alignment_ = bytes_;
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
      if (d + 1 < rank) continue;
      const bool aligned_start = b.kind == BlockDim::Kind::blocked && b.size * bytes_ % 16 == 0;
      const Dim& extent = m.array_aval.shape[d];
      const bool one_block = extent.is_static() && b.size >= extent.value();
      if (!aligned_start && !(one_block && b.kind == BlockDim::Kind::blocked)) alignment_ = bytes_;
    }
    return true;
  }

  const Lowered& l_;
  const Graph& g_;
  std::vector<layout::Stride> strides_;
  int bytes_ = 4, alignment_ = 16;
  bool known_ = false;
};

}  // namespace

std::optional<layout::MemoryFacts> memory_facts(const Lowered& l, ValueId ref) {
  const View view(l, ref);
  if (!view.known()) return std::nullopt;
  return view.facts();
}

}  // namespace palladium::passes
