#include "codegen/trace/lengths.hpp"

#include <algorithm>
#include <string>

#include "codegen/base/dim.hpp"
#include "palladium/error.hpp"

namespace palladium::trace {

using graph::Extents;
using graph::Inst;
using graph::Op;
using graph::ValueId;

namespace {

Dim as_known(const Dim& d) {
  const DimBinding* const binding = DimBinding::current();
  return binding ? binding->resolve(d) : d;
}

Lengths none_of(std::size_t rank) { return Lengths(rank); }

// Of the element start + stride * i, where the first has it at i.
Length at_stride(Length l, std::int64_t start, std::int64_t stride) {
  l.first += l.stride * start;
  l.stride *= stride;
  return l;
}

std::vector<Length> at_stride(const std::vector<Length>& all, std::int64_t start,
                              std::int64_t stride) {
  std::vector<Length> result;
  for (const Length& l : all) result.push_back(at_stride(l, start, stride));
  return result;
}

// A scan keeps its dimensions.
Lengths folded(const Inst& fold, const Lengths& from) {
  if (from.size() == fold.type.shape.size()) return from;
  Lengths left;
  for (std::size_t d = 0; d < from.size(); ++d)
    if (std::ranges::count(graph::dimensions(fold), static_cast<std::int64_t>(d)) == 0)
      left.push_back(from[d]);
  return left;
}

}  // namespace

bool Length::same(const Length& o) const {
  return as_known(extent).same(as_known(o.extent)) && first == o.first && stride == o.stride &&
         addends == o.addends;
}

bool has_any(const Lengths& lengths) {
  return std::ranges::any_of(lengths, [](const auto& along) { return !along.empty(); });
}

void narrow(Lengths& lengths, const Lengths& others) {
  lengths.resize(std::max(lengths.size(), others.size()));
  for (std::size_t d = 0; d < others.size(); ++d)
    for (const Length& l : others[d])
      if (std::ranges::none_of(lengths[d], [&](const Length& o) { return l.same(o); }))
        lengths[d].push_back(l);
}

Lengths without(const Lengths& lengths, const Lengths& known) {
  Lengths left = lengths;
  for (std::size_t d = 0; d < std::min(left.size(), known.size()); ++d)
    std::erase_if(left[d], [&](const Length& l) {
      return std::ranges::any_of(known[d], [&](const Length& o) { return l.same(o); });
    });
  return left;
}

void LengthTable::bound(ValueId ref, const BlockMapping& m) {
  Lengths lengths;
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    const BlockDim& b = m.block_shape[d];
    if (b.kind == BlockDim::Kind::squeezed) continue;
    lengths.emplace_back();
    const Dim& extent = m.array_aval.shape[static_cast<int>(d)];
    if (b.kind == BlockDim::Kind::bounded) lengths.back().push_back({.extent = extent});
  }
  if (!has_any(lengths)) return;
  any_ = true;
  set(ref, std::move(lengths));
}

void LengthTable::set(ValueId v, Lengths lengths) {
  if (!any_) return;
  (void)of(v);
  known_[graph::index(v)] = std::move(lengths);
}

void LengthTable::set_results(ValueId v, std::vector<Lengths> results) {
  if (any_) results_[v] = std::move(results);
}

Lengths LengthTable::of(ValueId v) {
  if (!any_) return {};
  // Operands stand in front of their users.
  while (known_.size() <= graph::index(v)) {
    Lengths next = inferred(ValueId{static_cast<std::uint32_t>(known_.size())});
    known_.push_back(has_any(next) ? std::move(next) : Lengths());
  }
  return known_[graph::index(v)];
}

void LengthTable::refuse(ValueId v, const std::string& why) const {
  throw CompileError(g_.location(v),
                     std::string(graph::info(g_[v].op).name) + ": " + why +
                         ": a dimension that is pl::bounded stays as it is, given " +
                         graph::to_string(g_[v].type));
}

Lengths LengthTable::inferred(ValueId v) const {
  const Inst& i = g_[v];
  const auto own = [&](std::size_t k) -> const Lengths& { return known_[graph::index(i.args[k])]; };
  const bool bounded = std::ranges::any_of(i.args, [&](ValueId a) {
    return graph::index(a) < known_.size() && !known_[graph::index(a)].empty();
  });
  if (i.op == Op::Get) {
    const auto found = results_.find(i.args[0]);
    return found == results_.end() ? Lengths() : found->second[graph::result_of(i)];
  }
  if (!bounded) return {};
  switch (i.op) {
  case Op::Load:
  case Op::Swap:
  case Op::Atomic:
  case Op::LayoutCast: return own(0);
  case Op::At: return of_view(i);
  case Op::Broadcast:
  case Op::Transpose:
  case Op::RefTranspose: return moved(v);
  case Op::Reshape:
  case Op::RefReshape: return reshaped(v);
  case Op::RefBitcast: {
    const bool scales = g_[i.args[0]].type.dtype.bytes() != i.type.dtype.bytes();
    if (scales && !own(0).back().empty()) refuse(v, "elements of another size");
    return own(0);
  }
  case Op::Slice: return of_slice(v);
  case Op::DynamicSlice: return of_dynamic_slice(v);
  case Op::DynamicUpdateSlice: {
    Lengths all = own(0);
    for (std::size_t d = 0; d < own(1).size(); ++d)
      if (!own(1)[d].empty() && g_[i.args[1]].type.shape[d] != i.type.shape[d])
        refuse(v, "a part whose length only a call knows");
    narrow(all, own(1));
    return all;
  }
  case Op::Concatenate: {
    Lengths all = none_of(i.type.shape.size());
    for (const ValueId a : i.args) narrow(all, known_[graph::index(a)]);
    if (!all[static_cast<std::size_t>(graph::concatenated(i))].empty())
      refuse(v, "what comes behind a part whose length only a call knows");
    return all;
  }
  case Op::TakeAlong: {
    Lengths all = own(0);
    if (!all.empty()) all[static_cast<std::size_t>(graph::taken(i))].clear();
    narrow(all, own(1));
    return all;
  }
  case Op::Dot: return of_dot(i);
  default:
    if (graph::is_fold(i.op)) return folded(i, own(0));
    return graph::is_elementwise(i.op) ? elementwise(i) : Lengths();
  }
}

Lengths LengthTable::elementwise(const Inst& i) const {
  Lengths all;
  for (const ValueId a : i.args) narrow(all, known_[graph::index(a)]);
  return all;
}

Lengths LengthTable::of_view(const Inst& at) const {
  const Lengths& from = known_[graph::index(at.args[0])];
  if (from.empty()) return {};
  const graph::Subscript s = graph::Subscript::of(at);
  const std::size_t rank = at.type.shape.size();
  Lengths lengths = none_of(rank);
  const graph::Subscript::Chosen chosen = s.chosen(rank);
  std::size_t next = chosen.first_of_slices(), operand = 1;
  for (std::size_t d = 0; d < s.dims.size(); ++d) {
    const graph::SubscriptDim& dim = s.dims[d];
    const ValueId start = dim.dynamic ? at.args[operand++] : graph::no_value;
    if (!dim.is_slice) continue;
    lengths[next] = at_stride(from[d], dim.start, 1);
    for (Length& l : lengths[next]) {
      if (dim.dynamic) l.addends.push_back({start, l.stride});
      l.stride *= dim.stride;
    }
    next = chosen.next(next);
  }
  return lengths;
}

Lengths LengthTable::of_slice(ValueId v) const {
  const Lengths& from = known_[graph::index(g_[v].args[0])];
  const graph::SliceView view = graph::SliceView::of(g_[v]);
  Lengths lengths;
  for (std::size_t d = 0; d < from.size(); ++d)
    lengths.push_back(at_stride(from[d], view.starts[d], view.strides[d]));
  return lengths;
}

Lengths LengthTable::of_dynamic_slice(ValueId v) const {
  const Inst& i = g_[v];
  Lengths lengths = known_[graph::index(i.args[0])];
  const Extents& whole = g_[i.args[0]].type.shape;
  for (std::size_t d = 0; d < lengths.size(); ++d)
    for (Length& l : lengths[d])
      if (whole[d] != i.type.shape[d])
        l.addends.push_back({i.args[d + 1], l.stride, whole[d] - i.type.shape[d]});
  return lengths;
}

Lengths LengthTable::of_dot(const Inst& dot) const {
  const graph::DotView view = graph::DotView::of(dot);
  const auto kept = [&](ValueId operand, std::size_t d) {
    const Lengths& of = known_[graph::index(operand)];
    return of.empty() ? std::vector<Length>() : of[d];
  };
  return {kept(view.a, view.trans_a ? 1 : 0), kept(view.b, view.trans_b ? 0 : 1)};
}

Lengths LengthTable::moved(ValueId v) const {
  const Inst& i = g_[v];
  const Lengths& from = known_[graph::index(i.args[0])];
  Lengths to = none_of(i.type.shape.size());
  const auto places = graph::dimensions(i);
  for (std::size_t d = 0; d < places.size(); ++d) {
    const auto at = static_cast<std::size_t>(places[d]);
    if (i.op == Op::Broadcast)
      to[at] = from[d];
    else
      to[d] = from[at];
  }
  return to;
}

// Dimensions that are split, or become one with others of more than an element, have no length.
Lengths LengthTable::reshaped(ValueId v) const {
  const Inst& i = g_[v];
  const Lengths& from = known_[graph::index(i.args[0])];
  const Extents &old = g_[i.args[0]].type.shape, &shape = i.type.shape;
  Lengths to = none_of(shape.size());
  std::int64_t before = 1;
  for (std::size_t d = 0; d < old.size(); before *= old[d++]) {
    if (from[d].empty()) continue;
    std::int64_t in_front = 1;
    std::size_t at = 0;
    while (at < shape.size() && (in_front != before || shape[at] != old[d]))
      in_front *= shape[at++];
    if (at == shape.size()) refuse(v, "elements of another dimension");
    to[at] = from[d];
  }
  return to;
}

}  // namespace palladium::trace
