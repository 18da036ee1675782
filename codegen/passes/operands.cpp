#include "codegen/passes/operands.hpp"

#include <algorithm>
#include <bit>

#include "codegen/base/format.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/turned_bytes.hpp"

namespace palladium::passes {

using graph::Op;

std::pair<Operand, Operand> operands_of(const Program& l, const Dot& d,
                                        const layout::Layout& layout) {
  const graph::Graph& g = l.graph;
  const graph::DotView view = graph::DotView::of(g[d.inst]);
  const std::int64_t m = layout.repetitions(0) * layout.tile(0);
  const std::int64_t n = layout.repetitions(1) * layout.tile(1);
  const std::int64_t depth = g[view.a].type.shape[view.trans_a ? 0 : 1];
  const std::int64_t k = round_up(depth, k_step(d.unit, g[view.a].type.dtype));
  const bool by_matrices = d.unit == Dot::Unit::mma_16816 || d.unit == Dot::Unit::mma_1688 ||
                           d.unit == Dot::Unit::mma_16832;
  const bool tf32 = is_of_wgmma(d.unit) && g[view.a].type.dtype == f32;
  // Warpgroups side by side have whole panels each of a B that lies along its columns.
  const auto operand = [&](ValueId value, Extents shape, int along_k, int parts = 1) {
    const std::int64_t row_bytes = shape[1] * g[value].type.dtype.bytes();
    const int swizzle = is_of_wgmma(d.unit) ? swizzle_of(row_bytes / parts) : 0;
    const bool pads = g[value].type.shape != shape;
    return Operand{value, std::move(shape), swizzle, pads ? along_k : -1, by_matrices, tf32};
  };
  return {operand(view.a, view.trans_a ? Extents{k, m} : Extents{m, k}, view.trans_a ? 0 : 1),
          operand(view.b, view.trans_b ? Extents{n, k} : Extents{k, n}, view.trans_b ? 1 : 0,
                  view.trans_b ? 1 : d.warps_n)};
}

// What ldmatrix reads, 8 rows of 16 bytes at once, is swizzled as far as rows begin at the same
// banks; rows that are read by elements lie 16 bytes apart from a multiple of the banks.
Storage storage_for(const graph::Graph& g, const Operand& o) {
  const DType t = g[o.value].type.dtype;
  const std::int64_t pad = std::max<std::int64_t>(1, 16 / t.bytes());
  Shared s{.row_stride = o.swizzle > 0 ? o.shape[1] : round_up(o.shape[1], pad),
           .swizzle = o.swizzle,
           .tf32 = o.tf32};
  if (o.by_matrices)
    s.row_swizzle = std::min(3, std::countr_zero(static_cast<std::uint64_t>(s.row_stride / pad)));
  else if (o.swizzle == 0)
    s.row_stride += pad;
  return {.in = s, .dtype = t, .shape = o.shape, .of = o.value};
}

std::optional<Operand> first_read(const Program& l, const Analysis& a, ValueId value) {
  for (const ValueId u : a.users[index(value)]) {
    if (l.graph[u].op != Op::Dot || a.region[index(u)] != a.region[index(value)]) continue;
    const auto [d, layout] = product(l, u);
    const auto [first, second] = operands_of(l, d, layout);
    return first.value == value ? first : second;
  }
  return {};
}

std::optional<Operand> turned_operand(const Program& l, const Analysis& a, ValueId value) {
  const auto is_left_over = [&](ValueId u) { return l.graph[u].type.is_value() && l.uses[u] == 0; };
  const auto is_dot = [&](ValueId u) { return l.graph[u].op == Op::Dot; };
  ValueId turned = graph::no_value;
  for (const ValueId u : a.users[index(value)]) {
    if (is_left_over(u)) continue;
    if (turned != graph::no_value || !turns_bytes(l, u)) return {};
    turned = u;
  }
  if (turned == graph::no_value || !a.yielded[index(value)].empty()) return {};
  if (!std::ranges::all_of(a.users[index(turned)], is_dot)) return {};
  const Extents& shape = l.graph[value].type.shape;
  return Operand{.value = value, .shape = shape, .swizzle = swizzle_of(shape[1])};
}

void Operands::stage(Statements& out, graph::RegionId r, const Here& here) {
  std::set<Operand> wanted;
  find(r, here, wanted);
  stage(out, std::vector<Operand>(wanted.begin(), wanted.end()));
}

void Operands::find(graph::RegionId r, const Here& here, std::set<Operand>& wanted) const {
  for (const ValueId v : g_[r].insts) {
    for (const graph::RegionId inner : g_[v].regions) find(inner, here, wanted);
    if (g_[v].op != Op::Dot) continue;
    const graph::DotView view = graph::DotView::of(g_[v]);
    if (!here(view.a, v) && !here(view.b, v)) continue;
    const auto [d, layout] = product(l_, v);
    const auto [a, b] = operands_of(l_, d, layout);
    for (const Operand& o : {a, b})
      if (here(o.value, v) && !staged_.contains(o)) wanted.insert(o);
  }
}

// Padded with zeros.
StorageId Operands::stage_by_threads(Statements& out, const Operand& o) {
  const StorageId storage = add_staged(o);
  out.push_back({LoopNest{.sink = Stage{storage},
                          .value = o.value,
                          .domain = o.shape,
                          .valid = g_[o.value].type.shape,
                          .variable = l_.add_variable()},
                 g_.location(o.value)});
  return storage;
}

// Of a value that lives as this operand there is no other room.
StorageId Operands::add_staged(const Operand& o) {
  Storage s = storage_for(g_, o);
  const StorageId kept = l_.storage_of[o.value];
  if (kept && l_.storages[kept].in_shared() && l_.storages[kept].shape == s.shape &&
      l_.storages[kept].shared().swizzle == s.shared().swizzle)
    return kept;
  return l_.add_storage(std::move(s));
}

void Operands::stage(Statements& out, std::vector<Operand> operands) {
  std::erase_if(operands, [&](const Operand& o) { return staged_.contains(o); });
  if (operands.empty()) return;
  std::vector<Copy> copies;
  Statements clears;
  for (const Operand& o : operands) add_copy(copies, clears, o);
  if (!copies.empty()) {
    const Location at = g_.location(copies[0].of);
    const BarrierId barrier = l_.add_barriers();
    for (Copy& c : copies) {
      c.completes = barrier;
      out.push_back({std::move(c), at});
    }
    std::ranges::move(clears, std::back_inserter(out));
  }
  for (const Operand& o : operands) {
    if (staged_.contains(o)) continue;
    const StorageId whole = storage_of_whole(o);
    staged_[o] = whole ? whole : stage_by_threads(out, o);
  }
}

// The first columns of what is there: all rows of its first panels, or the begin of each row. Not
// of an A, whose columns say how long K is.
StorageId Operands::storage_of_whole(const Operand& o) const {
  const graph::Inst& slice = g_[o.value];
  const auto is_left = [&](const graph::Inst& i) {
    return i.op == Op::Dot && graph::DotView::of(i).a == o.value;
  };
  if (slice.op != Op::Slice || o.padded_k >= 0 || std::ranges::any_of(g_.insts, is_left)) return {};
  const graph::SliceView view = graph::SliceView::of(slice);
  const auto is = [](const std::vector<std::int64_t>& all, std::int64_t n) {
    return std::ranges::all_of(all, [n](std::int64_t x) { return x == n; });
  };
  if (!is(view.starts, 0) || !is(view.strides, 1)) return {};
  for (const auto& [whole, storage] : staged_) {
    const std::int64_t panel =
        std::max<std::int64_t>(1, o.swizzle / g_[o.value].type.dtype.bytes());
    if (whole.value == slice.args[0] && whole.shape[0] == o.shape[0] &&
        whole.shape[1] >= o.shape[1] && o.shape[1] % panel == 0 && whole.swizzle == o.swizzle &&
        whole.padded_k < 0 && whole.by_matrices == o.by_matrices && whole.tf32 == o.tf32)
      return storage;
  }
  return {};
}

// What a mask leaves out of a storage that is filled without it.
Statement Operands::clear(lowered::IfMasked masked, StorageId storage, const Extents& shape) {
  const ValueId load = masked.load;
  const Location at = g_.location(load);
  masked.body.push_back({LoopNest{.sink = lowered::Clear{.storage = storage, .load = load},
                                  .value = graph::MemoryView::of(g_[load]).mask,
                                  .domain = shape,
                                  .valid = g_[load].type.shape,
                                  .variable = l_.add_variable()},
                         at});
  return {std::move(masked), at};
}

void Operands::add_copy(std::vector<Copy>& copies, Statements& clears, const Operand& o) {
  if (o.swizzle == 0 || staged_.contains(o)) return;
  std::string why;
  auto found = fetches_.find(o.value, o.shape, o.swizzle, o.padded_k, why);
  if (found) found->box.tf32 = o.tf32;
  const BoxId box = found ? number_of(l_, found->box, why) : BoxId();
  if (!why.empty()) {
    const ValueId load = read_by(g_, o.value);
    l_.remarks.push_back(
        {g_.location(load), fmt::format("{}: copied by threads, not by TMA, because {}",
                                        description_of(g_, g_.root(g_[load].args[0])), why)});
  }
  if (!box) return;
  const StorageId storage = add_staged(o);
  l_.storages[storage].shared().fetched = true;
  copies.push_back({.from = {.view = g_[found->load].args[0]},
                    .to = {.storage = storage},
                    .box = box,
                    .of = found->load});
  if (found->masked) clears.push_back(clear(std::move(*found->masked), storage, o.shape));
  staged_[o] = storage;
}

}  // namespace palladium::passes
