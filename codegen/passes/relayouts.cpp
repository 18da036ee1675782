// Values in the layouts of those who read them: moved between registers, or by way of shared
// memory.
//
// Precondition: each nest has its layout, and each storage in registers the one of who fills it.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "codegen/layout/transfer.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/layouts.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/register_slices.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Op;
using layout::Layout;

constexpr std::int64_t max_left_registers = 16;  // of a value that lives through a loop instead
// Bytes of scratch where copies were.
constexpr std::int64_t room_behind_copies = 32 << 10;

layout::Plan planned(const Program& l, const Relayout& r, const layout::PlanOptions& options) {
  const Storage &from = l.storages[r.from], &to = l.storages[r.to];
  return layout::plan_relayout(from.registers().layout, to.registers().layout, from.dtype.bytes(),
                               options);
}

class Relayouts {
 public:
  explicit Relayouts(Program& l) : l_(l), g_(l.graph) {}

  void insert() {
    for_each_list(l_, [&](Statements& list) { repair(list); });
  }
  void hoist() {
    for_each_list(l_, [&](Statements& list) { leave_loops(list); });
  }

 private:
  void repair(Statements& list) {
    const std::map<StorageId, StorageId> before = copies_;
    Statements out;
    for (Statement& s : list) {
      if (repeats(s)) forget_written(s);
      loops_ += repeats(s);
      for_each_body(s, [&](Statements& body) { repair(body); });
      loops_ -= repeats(s);
      has_room_ = has_room_ || leaves_room(l_, s);
      // Others take storages as they are.
      if (LoopNest* const p = std::get_if<LoopNest>(&s.what)) repair(*p, out);
      if (Scalar* const x = std::get_if<Scalar>(&s.what)) repair(*x, out);
      forget_written(s);
      out.push_back(std::move(s));
    }
    list = std::move(out);
    copies_ = before;
  }

  // Of what is written, copies are of what it was.
  void forget_written(const Statement& s) {
    std::erase_if(copies_, [&](const auto& copy) {
      return any_effect(l_, s,
                        [&](const Effect& e) { return e.writes() && e.storage == copy.first; });
    });
  }

  static bool is_redirected(const Redirects& all, StorageId from, const DimMap& map) {
    return std::ranges::any_of(
        all, [&](const auto& c) { return c.first == from && c.second.map == map; });
  }

  void repair(LoopNest& p, Statements& out) {
    for (const Read& r : register_reads(l_, p)) {
      if (is_redirected(p.redirects, r.storage, r.map)) continue;
      const Storage& source = l_.storages[r.storage];
      if (const StorageId part = part_of(p, r, out)) {
        p.redirects.push_back({r.storage, {part, r.map}});
        continue;
      }
      if (is_opaque(r.map) || is_padded(p, r.map) || varies_in_loop(p, r.map) ||
          spreads_too_far(source, project(p.layout, r.map))) {
        p.redirects.push_back({r.storage, {copy_to_shared(r.storage, out), r.map}});
        continue;
      }
      const Layout need = project(p.layout, r.map);
      if (need == source.registers().layout) continue;
      p.redirects.push_back({r.storage, {relayout(r.storage, need, out), r.map}});
    }
  }

  // Of a slice of what its threads have the registers; none: others have it.
  StorageId part_of(const LoopNest& p, const Read& r, Statements& out) {
    const DimMap whole = lowered::without_slices(r.map);
    const Layout& from = l_.storages[r.storage].registers().layout;
    const auto part = layout_of_slice(from, r.map, p.domain);
    if (!part || *part != project(p.layout, whole) || is_padded(p, whole) ||
        varies_in_loop(p, whole) || l_.storages[r.storage].is_packed() ||
        !takes_slices_of_registers(l_, p, p.layout))
      return {};
    Storage s = l_.storages[r.storage];
    s.registers().layout = *part;
    s.shape = part->domain;
    s.dropped = {};
    const layout::Plan plan = plan_of_slice(from, *part, r.map, s.dtype.bytes());
    const StorageId to = l_.add_storage(std::move(s));
    out.push_back({Relayout{.from = r.storage, .to = to, .plan = plan}});
    return to;
  }

  void repair(Scalar& s, Statements& out) {
    const bool own = l_.storage_of[s.value] == s.storage;
    const Op op = g_[s.value].op;
    const DimMap none = identity_map(static_cast<int>(g_[s.value].type.shape.size()));
    for_each_leaf(l_, s.value, none, own && op != Op::Param && op != Op::Get,
                  [&](ValueId, const DimMap& map, StorageId from) {
                    if (!from || !l_.storages[from].in_registers()) return;
                    if (is_redirected(s.redirects, from, map)) return;
                    s.redirects.push_back({from, {copy_to_shared(from, out), map}});
                  });
  }

  // Of what threads have a few elements of, each would have too many.
  static bool spreads_too_far(const Storage& source, const Layout& need) {
    const auto takes = [&](const Layout& l) { return l.registers() * words(source.dtype); };
    return takes(source.registers().layout) <= max_whole_registers &&
           takes(need) > max_whole_registers;
  }

  static bool varies_in_loop(const LoopNest& p, const DimMap& map) {
    return std::any_of(map.begin(), map.end(), [&](int d) { return d >= 0 && p.rolled[d] > 0; });
  }

  StorageId copy_to_shared(StorageId from, Statements& out) {
    const auto [known, is_new] = copies_.try_emplace(from);
    if (is_new) known->second = new_copy(from, out);
    return known->second;
  }

  StorageId new_copy(StorageId from, Statements& out) {
    Storage s = l_.storages[from];
    s.in = Shared{.row_stride = row_stride(s)};
    s.variable = {};
    const StorageId to = l_.add_storage(std::move(s));
    LoopNest copy{.sink = Spill{.from = from, .storage = to},
                  .domain = l_.storages[from].shape,
                  .valid = l_.storages[from].shape,
                  .layout = l_.storages[from].registers().layout};
    copy.rolled.assign(copy.domain.size(), 0);
    out.push_back({std::move(copy)});
    return to;
  }

  // Rows that all begin at one bank are moved apart by what 4 lanes have of a row of a product.
  static std::int64_t row_stride(const Storage& s) {
    constexpr std::int64_t banks = 128, access = 16, elements = 8;
    if (s.shape.empty()) return 1;
    const std::int64_t row = s.shape.back(), bytes = s.dtype.bytes();
    const bool meet = s.shape.size() > 1 && row * bytes % banks == 0;
    return row + (meet ? std::max(elements, access / bytes) : 0);
  }

  StorageId relayout(StorageId from, const Layout& need, Statements& out) {
    Storage s = l_.storages[from];
    s.registers().layout = need;
    s.dropped = {};
    const StorageId to = l_.add_storage(std::move(s));
    Relayout r{.from = from, .to = to};
    r.plan = planned(l_, r, plan_options(l_, loops_ == 0 && has_room_));
    if (r.plan.scratch_bytes > 0)
      r.scratch = l_.add_storage({.in = Shared{}, .dtype = u8, .shape = {r.plan.scratch_bytes}});
    out.push_back({std::move(r)});
    return to;
  }

  // In another layout, or in shared memory, what a loop does not change is the same in all
  // iterations: it is copied there in front of it, of few registers into others.
  void leave_loops(Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](Statements& body) { leave_loops(body); });
      if (!repeats(list[i])) continue;
      Statements first;
      for_each_body(list[i], [&](Statements& body) {
        const auto left = std::stable_partition(body.begin(), body.end(), [&](const Statement& s) {
          return !is_same_in_all(s, list[i]);
        });
        std::move(left, body.end(), std::back_inserter(first));
        body.erase(left, body.end());
      });
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i),
                  std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
      i += first.size();
    }
  }

  bool is_same_in_all(const Statement& s, const Statement& loop) const {
    const auto is_unchanged = [&](StorageId from) {
      return !any_effect(l_, loop,
                         [&](const Effect& e) { return e.writes() && e.storage == from; });
    };
    if (const LoopNest* const p = std::get_if<LoopNest>(&s.what)) {
      const Spill* const copy = std::get_if<Spill>(&p->sink);
      return copy != nullptr && is_unchanged(copy->from);
    }
    const Relayout* const r = std::get_if<Relayout>(&s.what);
    if (r == nullptr) return false;
    const Storage& to = l_.storages[r->to];
    return to.registers().layout.registers() * words(to.dtype) <= max_left_registers &&
           is_unchanged(r->from);
  }

  Program& l_;
  const Graph& g_;
  int loops_ = 0;                          // around
  bool has_room_ = false;                  // behind copies
  std::map<StorageId, StorageId> copies_;  // in shared memory, of what registers hold
};

}  // namespace

Layout project(const Layout& l, const DimMap& map) {
  std::vector<int> gone, kept;
  for (int d = 0; d < l.rank(); ++d)
    (std::find(map.begin(), map.end(), d) == map.end() ? gone : kept).push_back(d);
  Layout out = gone.empty() ? l : layout::drop(l, gone);
  std::vector<int> permutation;
  for (int m : map)
    if (m >= 0)
      permutation.push_back(
          static_cast<int>(std::find(kept.begin(), kept.end(), m) - kept.begin()));
  if (!std::is_sorted(permutation.begin(), permutation.end()))
    out = layout::transpose(out, permutation);
  for (std::size_t d = 0; d < map.size(); ++d)
    if (map[d] < 0) out = layout::insert_unit_dim(out, static_cast<int>(d));
  return out;
}

bool is_padded(const LoopNest& p, const DimMap& map) {
  return std::ranges::any_of(map, [&](int d) {
    return d >= 0 && p.domain[static_cast<std::size_t>(d)] != p.valid[static_cast<std::size_t>(d)];
  });
}

layout::PlanOptions plan_options(const Program& l, bool behind_copies) {
  layout::PlanOptions options{.matrix_moves = l.machine.has_matrix_moves(), .matrix_stores = false};
  if (behind_copies) options.scratch_limit = room_behind_copies;
  return options;
}

bool leaves_room(const Program& l, const Statement& s) {
  if (!repeats(s) || !l.machine.has_async_copies() || l.graph.bodies[0].num_stages == 1 ||
      l.graph.bodies.size() > 1 || l.warpgroups > 1)
    return false;
  std::set<StorageId> copied;
  bool reads_on = false;
  const auto visit = [&](const auto& self, const Statements& list) -> void {
    for (const Statement& inner : list) {
      const Copy* const c = std::get_if<Copy>(&inner.what);
      if (c != nullptr && c->to.storage) copied.insert(c->to.storage);
      const LoopNest* const p = std::get_if<LoopNest>(&inner.what);
      const Stage* const to = p == nullptr ? nullptr : std::get_if<Stage>(&p->sink);
      if (to != nullptr && p->value != graph::no_value && l.graph[p->value].op == Op::Load &&
          l.window_loaded(p->value).is_direct())
        copied.insert(to->storage);
      reads_on = reads_on || is_wgmma(inner);
      for_each_body(inner, [&](const Statements& body) { self(self, body); });
    }
  };
  for_each_body(s, [&](const Statements& body) { visit(visit, body); });
  Checked bytes = 0;
  for (const StorageId c : copied) bytes = bytes + shared_bytes(l.storages[c]);
  return !reads_on && 2 * bytes.value_or(0) >= room_behind_copies;
}

layout::Plan plan_of(const Program& l, const Relayout& r) {
  layout::PlanOptions options = plan_options(l);
  if (r.scratch)
    options.scratch_limit = shared_bytes(l.storages[r.scratch]).value_or(options.scratch_limit);
  return planned(l, r, options);
}

void insert_relayouts(Program& l) { Relayouts(l).insert(); }
void hoist_relayouts(Program& l) { Relayouts(l).hoist(); }

}  // namespace palladium::passes
