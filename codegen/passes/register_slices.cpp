#include "codegen/passes/register_slices.hpp"

#include "codegen/layout/transfer.hpp"

namespace palladium::passes {

using layout::Layout;

std::optional<Layout> layout_of_slice(const Layout& whole, const DimMap& map,
                                      const Extents& domain) {
  if (!lowered::is_of_slices(map)) return {};
  std::optional<Layout> part = whole;
  for (int d = 0; d < whole.rank() && part; ++d)
    if (const lowered::DimIndex& i = map[static_cast<std::size_t>(d)]; i.sliced)
      part = layout::slice(*part, d, i.start, domain[static_cast<std::size_t>(i.dim)], i.stride);
  return part && layout::is_unit(*part) ? part : std::nullopt;
}

bool takes_slices_of_registers(const Program& l, const LoopNest& p, const Layout& own) {
  const Stage* const to = std::get_if<Stage>(&p.sink);
  return to == nullptr || l.storages[to->storage].shared().sent ||
         (!own.reg.empty() && own.reg[0] == 1);
}

layout::Plan plan_of_slice(const Layout& from, const Layout& to, const DimMap& map,
                           int element_bytes) {
  layout::Plan plan{
      .kind = layout::Move::Rename, .from = from, .to = to, .element_bytes = element_bytes};
  Layout part = from;
  for (int d = 0; d < from.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    const lowered::DimIndex& i = map[at];
    if (!i.sliced) continue;
    const Layout next = *layout::slice(part, d, i.start, to.domain[at], i.stride);
    std::vector<int> all = layout::registers_of_slice(part, next, d, i.start, i.stride);
    for (int& k : all)
      if (k >= 0 && !plan.sources.empty()) k = plan.sources[static_cast<std::size_t>(k)];
    plan.sources = std::move(all);
    part = next;
  }
  return plan;
}

}  // namespace palladium::passes
