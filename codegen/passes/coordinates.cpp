#include "codegen/passes/coordinates.hpp"

#include <algorithm>

#include "codegen/lowered/effects.hpp"

namespace palladium::passes {

using thread::Affine;
using thread::ExprId;
using thread::Exprs;
using thread::no_expr;

namespace {

bool is_shared(const Program& l, StorageId s) { return s && l.storages[s].in_shared(); }

// Elements of the storage that lie together wherever its rows are swizzled.
int together(const Program& l, StorageId s) {
  constexpr int any = 16;
  if (!is_shared(l, s)) return any;
  const Shared& in = l.storages[s].shared();
  return in.swizzle > 0 || in.row_swizzle > 0 ? 16 / l.storages[s].dtype.bytes() : any;
}

// Elements of the narrowest type that the nest moves in 16 bytes, as far as those that are wider
// lie together.
int widest_access(const Program& l, const LoopNest& p) {
  const graph::Graph& g = l.graph;
  int bytes = 4, most = 16;
  const auto note = [&](DType t) { bytes = std::min(bytes, t.bytes()); };
  for (const StorageId s : {storage_filled(p.sink), storage_moved(p.sink)})
    if (s) note(l.storages[s].dtype), most = std::min(most, together(l, s));
  if (const WindowId w = window_moved(p.sink)) note(g[l.windows[w].root].type.dtype);
  if (const ValueId access = accessed_by(p.sink); access != graph::no_value)
    note(g[g[access].args[0]].type.dtype);
  for (const Effect& e : element_reads(l, p))
    if (e.role == Effect::Role::value && (e.window || is_shared(l, e.storage))) {
      note(g[e.leaf].type.dtype);
      const bool along_rows =
          is_opaque(e.map) ||
          (!e.map.empty() && e.map.back() + 1 == static_cast<int>(p.domain.size()));
      if (along_rows) most = std::min(most, together(l, e.storage));
    }
  return std::min(16 / bytes, most);
}

}  // namespace

int vector_bits(const Program& l, const LoopNest& p, const layout::Layout& layout) {
  const int last = layout.rank() - 1, limit = widest_access(l, p);
  int bits = 0;
  while (last >= 0 && bits < static_cast<int>(layout.reg.size()) &&
         layout.reg[static_cast<std::size_t>(bits)] == (1u << bits) &&
         layout.tile_bits[static_cast<std::size_t>(last)] > bits && (2 << bits) <= limit)
    ++bits;
  return bits;
}

ExprId thread_part(Exprs& exprs, const layout::Layout& layout, int d, ExprId thread) {
  const layout::Terms terms = layout::terms_of(fields_of(layout, layout.thread(), d));
  if (terms.empty()) return no_expr;
  return exprs.sum(affine_of(exprs, thread, terms, layout.thread_bits()));
}

Affine counted_part(Exprs& exprs, const layout::Layout& layout, int d, const Counters& counters) {
  Affine c;
  if (layout.repetitions(d) > 1)
    c = Affine::term(counters.repetitions[static_cast<std::size_t>(d)]) * layout.tile(d);
  const layout::Bits low = fields_of(layout, layout.reg, d);
  const layout::Bits high(low.begin() + counters.vector_bits, low.end());
  c = c + affine_of(exprs, counters.group, layout::terms_of(high), static_cast<int>(high.size()));
  if (counters.vector_bits > 0 && d + 1 == layout.rank()) c = c + Affine::term(counters.element);
  return c;
}

layout::Bits fields_of(const layout::Layout& l, const layout::Bits& images, int d) {
  layout::Bits out;
  for (const std::uint32_t b : images) out.push_back(l.field(d, b));
  return out;
}

Affine affine_of(Exprs& exprs, ExprId v, const layout::Terms& terms, int bits) {
  Affine sum;
  for (const layout::Term& t : terms.terms) {
    const bool all = t.mask == (1u << bits) - 1;
    if (t.shift >= 0)
      sum = sum + Affine::term(all ? v : exprs.bits(v, t.mask, 0), std::int64_t{1} << t.shift);
    else
      sum = sum + Affine::term(exprs.bits(v, t.mask, -t.shift));
  }
  return sum;
}

}  // namespace palladium::passes
