#include "codegen/passes/reads_beside.hpp"

#include <algorithm>

#include "codegen/passes/iterations.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/registers.hpp"

namespace palladium::passes {

using graph::Inst;
using graph::Op;

namespace {

// Registers of what is loaded for the next iteration while this one waits.
constexpr std::int64_t max_loaded_ahead = 8;

// Rather than computed.
bool is_copied(const graph::Graph& g, ValueId operand) {
  const Inst& i = g[operand];
  return i.op == Op::Load || (i.op == Op::Select && g[i.args[1]].op == Op::Load);
}

std::int64_t bytes_of(DType t, const Extents& shape) {
  return graph::element_count(shape) * t.bytes();
}

}  // namespace

// Of a loop all of a region, or nothing: of each there are two.
std::optional<Shared> ReadsBeside::fetched(ValueId v) {
  if (g_[v].op != Op::Load || l_.uses[v] == 0) return {};
  if (is_read_beside_sums(v)) return has_room_beside_sums() ? room_of_fetch(v) : std::nullopt;
  if (!repeats_product(v)) return {};
  // mma.sync reads operands of shared memory many times: what is neither narrower nor far smaller
  // than those, and comes by way of there, takes more of its bandwidth than there is; and copies
  // by threads cost what loads do.
  const bool is_cheap = g_[v].type.dtype.bytes() == 1 || (l_.machine.has_tma() && is_small(v));
  if (!multiplying().at(a_.region[index(v)]) && !is_cheap) return {};
  const std::optional<Shared> room = room_of_fetch(v);
  if (!room) return {};
  const auto [known, is_new] = fetches_all_.try_emplace(a_.region[index(v)]);
  if (is_new) known->second = has_room(known->first);
  return known->second ? room : std::nullopt;
}

// What is read once, beside elements of products of wgmma, of which a thread has few neighbours
// in a row.
bool ReadsBeside::is_read_beside_sums(ValueId v) {
  constexpr std::int64_t least_bytes = 8 << 10;
  const graph::Type& t = g_[v].type;
  if (!l_.may_fetch_beside || g_[v].op != Op::Load || a_.loop[index(v)] >= 0 ||
      (is_repeated(v) && !comes_last(v)) || t.shape.size() != 2 ||
      bytes_of(t.dtype, t.shape) < least_bytes)
    return false;
  const Window& w = l_.window_loaded(v);
  if (!w.is_direct() || !w.read_only) return false;  // sums of scratch are there
  const bool by_wgmma =
      std::ranges::any_of(multiplying(), [](const auto& region) { return region.second; });
  return by_wgmma && is_operand_beside_products(v);
}
// For all of it, with a few slots of the products' operands; where one program's results leave
// while the next one's are computed, for these, too.
bool ReadsBeside::has_room_beside_sums() {
  constexpr std::int64_t least_slots = 3;
  if (room_beside_sums_) return *room_beside_sums_;
  Checked bytes = 0;
  std::int64_t largest = 0;
  for (const ValueId v : a_.order) {
    if (!is_read_beside_sums(v)) continue;
    const std::int64_t of_block = bytes_of(g_[v].type.dtype, g_[v].type.shape);
    largest = std::max(largest, of_block);
    bytes = bytes + of_block;
  }
  if (g_.persistent) bytes = bytes + largest;
  for (const auto& [region, by_wgmma] : multiplying()) {
    const Staging operands = operands_in(region);
    bytes = bytes + operands.before + operands.anew * least_slots;
  }
  room_beside_sums_ = bytes.within(0, l_.machine.max_shared_bytes);
  return *room_beside_sums_;
}

// Behind all iterations of the innermost axis.
bool ReadsBeside::comes_last(ValueId v) const {
  return runs_last(g_, a_.region[index(v)], l_.sequential_axes.back());
}
// Whether it, converted or not, is an operand of an operation on elements of a product.
bool ReadsBeside::is_operand_beside_products(ValueId v) const {
  constexpr std::size_t most_looked_at = 64;
  std::vector<ValueId> stack{v};
  std::set<ValueId> seen;
  while (!stack.empty() && seen.size() < most_looked_at) {
    const ValueId next = stack.back();
    stack.pop_back();
    if (!seen.insert(next).second) continue;
    for (const ValueId u : a_.users[index(next)]) {
      if (!graph::is_elementwise(g_[u].op)) continue;
      if (is_of_products(g_, u)) return true;
      stack.push_back(u);
    }
  }
  return false;
}

std::optional<Shared> ReadsBeside::room_of_fetch(ValueId v) {
  constexpr std::int64_t box_alignment = 128;
  const graph::Type& t = g_[v].type;
  if (g_[v].op != Op::Load || graph::element_count(g_[v].type.shape) == 1 || is_operand(v) ||
      l_.warpgroups > 1 || t.shape.size() > 2 || t.dtype.is_bool() || t.dtype.bytes() > 4)
    return {};
  if (!l_.machine.has_tma())
    return is_copied_in_rows(v) ? std::optional(Shared{.row_stride = t.shape.back()})
                                : std::nullopt;
  Shared s{.row_stride = t.shape.back(), .alignment = box_alignment};
  if (graph::element_count(t.shape) != t.shape.back()) {
    // A pattern of panels repeats after 8 rows; fewer lie one behind the other.
    s.swizzle = t.shape[0] % 8 == 0 ? swizzle_of(t.shape[1] * t.dtype.bytes()) : 0;
    if (s.swizzle == 0 && t.shape[0] >= 8) return {};
  }
  std::string why;
  return fetches_.box_of_load(v, s.swizzle, why) ? std::optional(s) : std::nullopt;
}

// Whether threads can copy what is loaded by 16 bytes each.
bool ReadsBeside::is_copied_in_rows(ValueId load) const {
  constexpr std::int64_t together = 16;
  const graph::Type& t = g_[load].type;
  const Window& w = l_.window_loaded(load);
  return l_.machine.has_async_copies() && w.is_direct() && w.read_only && w.mapping >= 0 &&
         graph::MemoryView::of(g_[load]).mask == graph::no_value &&
         g_.mapping.block_mappings[w.mapping].alignment % together == 0 &&
         t.shape.back() * t.dtype.bytes() % together == 0 && !g_.chooses(g_[load].args[0]) &&
         !g_.repeats(g_[load].args[0]);
}

// Beside the operands of products in its region.
bool ReadsBeside::is_small(ValueId v) {
  constexpr std::int64_t times = 8;
  const Staging operands = operands_in(a_.region[index(v)]);
  const Checked all = operands.before + operands.anew;
  return bytes_of(g_[v].type.dtype, g_[v].type.shape) <= all.value_or(0) / times;
}

// For what is fetched in an iteration twice, beside operands that are staged before.
bool ReadsBeside::has_room(graph::RegionId region) {
  Staging all = operands_in(region);
  for (const ValueId v : a_.order)
    if (a_.region[index(v)] == region && room_of_fetch(v))
      all.anew = all.anew + bytes_of(g_[v].type.dtype, g_[v].type.shape);
  return (all.before + all.anew * 2).within(0, l_.machine.max_shared_bytes);
}

ReadsBeside::Staging ReadsBeside::operands_in(graph::RegionId region) {
  Staging all;
  std::set<Operand> staged;
  for (const ValueId v : a_.order) {
    if (a_.region[index(v)] != region || g_[v].op != Op::Dot) continue;
    const auto [d, layout] = product(l_, v);
    const auto [left, right] = operands_of(l_, d, layout);
    for (const Operand& o : {left, right}) {
      const bool held = o.value == g_[v].args[0] && takes_registers(l_, d, o.value, o.shape);
      if (held || !staged.insert(o).second) continue;
      const bool copied = a_.loop_between(o.value, v) == graph::no_value && is_copied(g_, o.value);
      Checked& bytes = copied ? all.anew : all.before;
      bytes = bytes + bytes_of(g_[o.value].type.dtype, o.shape);
    }
  }
  return all;
}

// Whether a product reads it, or what is transposed for one, or it with zeros where it is out of
// bounds: that is staged as it is.
bool ReadsBeside::is_operand(ValueId v) const {
  return std::ranges::any_of(a_.users[index(v)], [&](ValueId u) {
    return g_[u].op == Op::Dot || (g_[u].op == Op::Select && is_read_by_product(u));
  });
}
bool ReadsBeside::is_read_by_product(ValueId v) const {
  return turned_operand(l_, a_, v) ||
         std::ranges::any_of(a_.users[index(v)], [&](ValueId u) { return g_[u].op == Op::Dot; });
}

bool ReadsBeside::is_loaded_ahead(ValueId v) {
  const Inst& i = g_[v];
  if (i.op != Op::Load || l_.uses[v] == 0 || !is_repeated(v) || is_operand(v)) return false;
  const Window& w = l_.window_loaded(v);
  if (!w.is_direct() || !w.read_only || w.mapping < 0) return false;
  return registers_estimate(i.type, l_.threads()) <= max_loaded_ahead && waits_beside(v);
}

// Whether there is a product or a fold in the region.
bool ReadsBeside::waits_beside(ValueId v) {
  if (!waiting_) {
    waiting_.emplace();
    for (const ValueId x : a_.order)
      if (g_[x].op == Op::Dot || graph::is_fold(g_[x].op)) waiting_->insert(a_.region[index(x)]);
  }
  return waiting_->contains(a_.region[index(v)]);
}

// Whether it stands beside a product of tensor cores in a loop, or along an axis that a program
// goes through.
bool ReadsBeside::repeats_product(ValueId v) {
  return is_repeated(v) && multiplying().contains(a_.region[index(v)]);
}

// In a loop, or along the innermost axis that a program goes through.
bool ReadsBeside::is_repeated(ValueId v) const {
  if (a_.loop[index(v)] >= 0) return true;
  return l_.around[v] > 0 && l_.around[v] == std::ssize(l_.sequential_axes) &&
         l_.sequential_axes.back() != programs_axis;
}

// Regions with a product of tensor cores, and whether one is by wgmma.
const std::map<graph::RegionId, bool>& ReadsBeside::multiplying() {
  if (!multiplying_) {
    multiplying_.emplace();
    for (const ValueId v : a_.order) {
      if (g_[v].op != Op::Dot) continue;
      const Dot::Unit unit = product(l_, v).first.unit;
      if (unit == Dot::Unit::fma) continue;
      bool& by_wgmma = (*multiplying_)[a_.region[index(v)]];
      by_wgmma = by_wgmma || is_of_wgmma(unit);
    }
  }
  return *multiplying_;
}

}  // namespace palladium::passes
