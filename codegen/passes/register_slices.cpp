#include "codegen/passes/register_slices.hpp"

#include <algorithm>

#include "codegen/layout/transfer.hpp"

namespace palladium::passes {

using layout::Layout;

std::optional<RegisterSlice> register_slice(const Program& l, const LoopNest& p) {
  const Assign* const to = std::get_if<Assign>(&p.sink);
  if (to == nullptr || p.value == graph::no_value || l.storage_of[p.value] != to->storage)
    return {};
  const graph::Inst& i = l.graph[p.value];
  if (i.op != graph::Op::Slice || !p.redirects.empty()) return {};
  const StorageId of = l.storage_of[i.args[0]];
  const graph::SliceView at = graph::SliceView::of(i);
  const bool neighbours = std::ranges::all_of(at.strides, [](std::int64_t s) { return s == 1; });
  if (!neighbours || !of || !l.storages[of].in_registers() || l.storages[of].is_packed()) return {};
  return RegisterSlice{of, at.starts, i.type.shape};
}

std::optional<Layout> layout_of_slice(const Layout& whole, const RegisterSlice& s) {
  std::optional<Layout> part = whole;
  for (int d = 0; d < whole.rank() && part; ++d)
    if (const auto at = static_cast<std::size_t>(d); s.shape[at] != whole.domain[at])
      part = layout::slice(*part, d, s.starts[at], s.shape[at]);
  return part && layout::is_unit(*part) ? part : std::nullopt;
}

layout::Plan plan_of_slice(const Layout& from, const Layout& to, const RegisterSlice& s,
                           int element_bytes) {
  layout::Plan plan{
      .kind = layout::Move::Rename, .from = from, .to = to, .element_bytes = element_bytes};
  Layout part = from;
  for (int d = 0; d < from.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (s.shape[at] == from.domain[at]) continue;
    const Layout next = *layout::slice(part, d, s.starts[at], s.shape[at]);
    const std::vector<int> sources = layout::registers_of_slice(part, next, d, s.starts[at]);
    std::vector<int> all;
    for (const int k : sources)
      all.push_back(k < 0 || plan.sources.empty() ? k : plan.sources[static_cast<std::size_t>(k)]);
    plan.sources = std::move(all);
    part = next;
  }
  return plan;
}

}  // namespace palladium::passes
