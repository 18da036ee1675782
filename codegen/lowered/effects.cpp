#include "codegen/lowered/effects.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "codegen/lowered/effects_for_tests.hpp"

namespace palladium::lowered {
namespace {

using device::Completion;
using device::Proxy;
using graph::MemoryView;
using graph::Op;
using Access = Effect::Access;
using Role = Effect::Role;
using Of = device::Effects::Role;

class Visit {
 public:
  explicit Visit(const Program& l) : l_(l), g_(l.graph) {}

  Effects take() { return std::move(found_); }

  // ---- loop nests

  void operator()(const LoopNest& p) {
    redirects_ = &p.redirects;
    const DimMap all = identity_map(static_cast<int>(p.domain.size()));
    if (p.value != graph::no_value) {
      const bool fills =
          std::holds_alternative<Assign>(p.sink) || std::holds_alternative<Stage>(p.sink);
      leaves(p.value, all, Role::value, fills && enters(l_, p, storage_filled(p.sink)));
    }
    if (const ValueId access = accessed_by(p.sink); access != graph::no_value) {
      const MemoryView m = MemoryView::of(g_[access]);
      if (m.mask != graph::no_value) leaves(m.mask, all, Role::mask);
      if (m.other != graph::no_value) leaves(m.other, all, Role::compared);
      leaves(m.ref, all, Role::view);
    }
    std::visit([&](const auto& to) { sink(to, all); }, p.sink);
  }

  void sink(const Assign& to, const DimMap&) { fill(to.storage); }
  void sink(const Stage& to, const DimMap&) { fill(to.storage, to.by); }
  void sink(const Store& to, const DimMap&) { access(to.inst); }
  void sink(const Update& to, const DimMap&) {
    access(to.inst);
    fill(to.storage);
  }
  void sink(const Reduce& to, const DimMap&) {
    scratch(to.scratch);
    fill(to.storage);
  }
  void sink(const Scan& to, const DimMap&) {
    scratch(to.scratch);
    fill(to.storage);
  }
  void sink(const Print&, const DimMap&) { found_.tells = true; }
  void sink(const Fill& to, const DimMap&) {
    add({.access = Access::read, .window = to.window});
    fill(to.storage, to.by);
  }
  void sink(const Flush& to, const DimMap& all) {
    move(to.from, all);
    add({.access = Access::write, .role = Role::result, .window = to.window});
  }
  void sink(const Spill& to, const DimMap& all) {
    move(to.from, all);
    fill(to.storage);
  }
  void sink(const Clear& to, const DimMap&) {
    add({.access = Access::update, .role = Role::result, .storage = to.storage});
  }

  // ---- products

  void operator()(const Dot& d) {
    const bool by_wgmma = is_of_wgmma(d.unit);
    if (graph::is_product_by_hand(g_[d.inst].op))
      for (const ValueId v : g_[d.inst].args)
        if (g_[v].type.is_ref()) view(v);
    for (const StorageId operand : {d.a, d.b}) {
      Effect read{.access = Access::read, .storage = operand};
      if (operand == d.b) read.back = d.back;
      if (by_wgmma) read.on = Completion::wgmma_group, read.completion = Of::completes;
      if (by_wgmma && is_shared(operand)) read.proxy = Proxy::async;
      add(std::move(read));
    }
    control(d.anew);
    Effect result{.access = d.accumulates ? Access::update : Access::write,
                  .role = Role::result,
                  .storage = d.result};
    if (by_wgmma) {
      result.on = Completion::wgmma_group;
      result.completion = Of::completes;
    }
    add(result);
  }

  // ---- copies

  void operator()(const Copy& c) {
    if (c.from.view != graph::no_value) view(c.from.view);
    if (c.to.view != graph::no_value) view(c.to.view);
    for (const Place& p : {c.from, c.to})
      for (const ValueId v : {p.slot, p.block}) control(v);
    for (const ValueId v : {c.slot, c.multicast, c.predicate}) control(v);
    Effect read = place(c.from), write = place(c.to);
    read.access = Access::read;
    if (!write.storage && !write.window) return add(read);
    write.role = Role::result;
    write.access = write.window ? Access::update : Access::write;
    Effect& completes = c.completes ? write : read;
    completes.on = c.completes ? Completion::mbarrier : Completion::bulk_group;
    completes.completion = Of::completes;
    if (!c.completes) write.on = read.on, write.completion = read.completion;
    if (c.completes) write.barrier = l_.barriers[c.completes].storage;
    read.leaf = c.completes ? c.of : graph::no_value;
    write.leaf = c.completes ? graph::no_value : c.of;
    add(read);
    add(write);
  }
  void operator()(const Arrive& a) {
    control(a.slot);
    control(a.block);
    barrier(l_.barriers[a.barrier].storage, a.bytes > 0 ? Of::none : Of::completes);
  }
  void operator()(const Wait& w) {
    control(w.slot);
    barrier(l_.barriers[w.barrier].storage, Of::awaits);
    scratch(w.scratch);
    fill(w.told);
  }
  void operator()(const Close& c) {
    add({.elected = c.kind == Completion::bulk_group, .on = c.kind, .completion = Of::closes});
  }
  void operator()(const WaitGroup& w) {
    for (const StorageId s : w.storages)
      add({.access = Access::update,
           .role = Role::result,
           .storage = s,
           .on = w.kind,
           .completion = Of::awaits});
    if (w.storages.empty())
      add({.elected = w.kind == Completion::bulk_group, .on = w.kind, .completion = Of::awaits});
  }
  void operator()(const Fence&) { found_.fences = true; }
  void operator()(const Advance& a) { next_slot(a.ring); }
  void operator()(const Lead& e) { for_iterations(e); }
  void operator()(const Ahead& e) { for_iterations(e); }

  // ---- storages

  void operator()(const Relayout& r) {
    add({.access = Access::read, .storage = r.from});
    scratch(r.scratch, !r.plan.warp_barrier);
    fill(r.to);
  }
  void operator()(const Scalar& s) {
    redirects_ = &s.redirects;
    const Op op = g_[s.value].op;
    const bool own = l_.storage_of[s.value] == s.storage;
    leaves(s.value, identity_map(static_cast<int>(g_[s.value].type.shape.size())), Role::value,
           own && op != Op::Param && op != Op::Get);
    fill(s.storage);
  }
  void operator()(const CopyStorage& c) {
    add({.access = Access::read, .storage = c.from});
    fill(c.to);
  }

  // ---- control

  void operator()(const Sync& s) {
    (s.of == Sync::Of::warpgroup ? found_.meets_warpgroups : found_.syncs) = true;
  }
  void operator()(const When& w) { control(w.condition); }
  void operator()(const IfWhole& i) {
    for (const WindowId w : i.windows)
      add({.access = Access::read, .role = Role::block, .window = w});
  }
  // Its sums are made of what clearing reads.
  void operator()(const IfMasked&) {}
  void operator()(const Loop& l) {
    bounds(l.inst);
    asked(l.known.sums);
    fill(l_.storage_of[g_[graph::LoopView::of(g_[l.inst]).body].params[0]]);
  }
  void operator()(const While& w) {
    control(g_[graph::WhileView::of(g_[w.inst]).condition].yields[0]);
  }
  void operator()(const Scope&) {}
  void operator()(const Warps& w) { found_.syncs = waits_for_others(w.body); }
  void operator()(const Elected&) {}
  void operator()(const SetRegisters&) {}
  void operator()(const Switch& s) {
    control(g_[s.inst].args[0]);
    for (const StorageId r : s.results) fill(r);
  }
  void operator()(const GridLoop& l) {
    control(l_.end_of(l.axis));
    asked(l.known.sums);
  }
  // An index map reads what is prefetched, at places that are computed of nothing else; scratch has
  // none.
  void operator()(const EnterWindow& w) {
    const int mapping = l_.windows[w.window].mapping;
    const RegionIndex map =
        mapping < 0 ? no_region
                    : g_.mapping.block_mappings[static_cast<std::size_t>(mapping)].index_map;
    if (map != no_region)
      for (const ValueId v : g_[graph::RegionId{map}].insts)
        if (g_[v].op == Op::Load)
          add({.access = Access::read,
               .role = Role::control,
               .window = window_of(g_[v].args[0]),
               .leaf = v});
    add({.access = Access::write, .role = Role::block, .window = w.window});
  }

  // ---- beyond the program

  void operator()(const Semaphore& s) {
    const graph::Inst& inst = g_[s.inst];
    for (const ValueId a : inst.args)
      if (g_[a].type.is_ref())
        view(a);
      else
        control(a);
    for (const graph::Effect& e : graph::effects(inst.op).on_operands())
      add({.access = e.writes() ? Access::update : Access::read,
           .role = Role::result,
           .window = window_of(inst.args[e.operand]),
           .leaf = s.inst,
           .elected = true});
    found_.syncs = inst.op != Op::Delay;
    scratch(s.scratch);
    fill(s.storage);
  }
  void operator()(const Inline& t) {
    const graph::Inst& inst = g_[t.inst];
    for (std::size_t i = 0; i < inst.args.size(); ++i)
      if (g_[inst.args[i]].type.is_ref())
        view(inst.args[i]);
      else if (!t.operands[i])
        control(inst.args[i]);
    for (const StorageId s : t.operands)
      if (s) add({.access = Access::read, .storage = s});
    const graph::Effects said = graph::effects(inst);
    for (const graph::Effect& e : said.on_operands()) {
      const WindowId window = window_of(inst.args[e.operand]);
      Effect on{.access = e.writes() ? Access::update : Access::read,
                .role = e.writes() ? Role::result : Role::value,
                .leaf = t.inst};
      if (l_.windows[window].residency() == Residency::shared)
        on.storage = l_.windows[window].storage();
      else
        on.window = window;
      add(std::move(on));
    }
    for (const StorageId s : t.results) fill(s);
  }
  void operator()(const HostCall& h) {
    for (const ValueId a : g_[h.inst].args)
      if (g_[a].type.shape.empty()) control(a);
    scratch(h.scratch);
    found_.tells = true;
  }

 private:
  struct Item {
    ValueId value;
    DimMap map;
    Role role;
  };
  using Seen = std::tuple<ValueId, DimMap, bool>;

  void add(Effect e) { found_.all.push_back(std::move(e)); }

  bool is_shared(StorageId storage) const { return l_.storages[storage].in_shared(); }
  // How far its rows are skewed follows from where they stand in global memory.
  bool is_skewed(StorageId storage) const {
    return is_shared(storage) && l_.storages[storage].shared().skewed;
  }
  WindowId window_of(ValueId ref) const { return l_.window_of[g_.base(ref)]; }

  // Of one thread's copy.
  Effect place(const Place& p) const {
    Effect e{.storage = p.storage, .proxy = Proxy::async, .elected = true};
    if (!p.storage) e.window = p.view != graph::no_value ? window_of(p.view) : p.window;
    return e;
  }
  template <class Early>
  void for_iterations(const Early& e) {
    if (e.loop != graph::no_value) bounds(e.loop);
    if (e.ring) next_slot(e.ring);
    for (const StorageId s : e.kept)
      add({.access = Access::write, .role = Role::block, .storage = s});
  }
  void next_slot(RingId ring) {
    add({.access = Access::update, .role = Role::block, .ring = ring});
  }

  void fill(StorageId storage, CopyMode by = {}) {
    if (!storage) return;
    Effect e{.access = Access::write, .role = Role::result, .storage = storage};
    if (by.asynchronous) {
      e.on = Completion::cp_async_group;
      e.completion = Of::completes;
    }
    add(std::move(e));
  }
  // All threads store there, then wait for each other, then read: by what the statement spells.
  void scratch(StorageId storage, bool syncs = true) {
    if (!storage) return;
    add({.access = Access::update, .role = Role::scratch, .storage = storage});
    found_.syncs |= syncs && shared_bytes(l_.storages[storage]).value_or(1) > 0;
  }
  // Whether semaphores stand there: what other programs did is there for one thread, and who that
  // is for others.
  bool waits_for_others(const Statements& list) const {
    return std::ranges::any_of(list, [&](const Statement& s) {
      const Semaphore* const x = std::get_if<Semaphore>(&s.what);
      bool found = x != nullptr && g_[x->inst].op != Op::Delay;
      for_each_body(s, [&](const Statements& body) { found = found || waits_for_others(body); });
      return found;
    });
  }
  void move(StorageId storage, const DimMap& map) {
    add({.access = Access::read, .storage = storage, .map = map});
  }
  void barrier(StorageId storage, Of completion) {
    if (storage)
      add({.access = completion == Of::awaits ? Access::read : Access::update,
           .role = Role::barrier,
           .storage = storage,
           .elected = completion != Of::awaits,
           .on = Completion::mbarrier,
           .completion = completion,
           .barrier = storage});
  }

  // Of a Store or an Update: the block, or where it is held, of its window.
  void access(ValueId inst) {
    const MemoryView m = MemoryView::of(g_[inst]);
    const WindowId window = window_of(m.ref);
    const bool whole =
        g_[inst].op != Op::Atomic && m.mask == graph::no_value && g_[m.ref].op == Op::Param;
    Effect e{.access = whole ? Access::write : Access::update, .role = Role::result, .leaf = inst};
    const Window& w = l_.windows[window];
    if (w.residency() == Residency::shared)
      e.storage = w.storage();
    else
      e.window = window;
    add(std::move(e));
  }

  void control(ValueId v) {
    if (v != graph::no_value) leaves(v, {}, Role::control);
  }
  // The program's own numbers are asked for whatever holds them.
  void asked(const std::vector<IterationSum>& sums) {
    for (const IterationSum& s : sums)
      for (const auto& [v, _] : s.addends) {
        const bool leaf = graph::info(g_[v].op).op_class == graph::OpClass::leaf;
        leaves(v, {}, Role::control, leaf && g_[v].op != Op::Param);
      }
  }
  void view(ValueId ref) {
    leaves(ref, identity_map(static_cast<int>(g_[ref].type.shape.size())), Role::view);
  }
  void bounds(ValueId loop) {
    const graph::LoopView view = graph::LoopView::of(g_[loop]);
    control(view.low);
    control(view.high);
  }

  // All that the inlined expression `root` reads, subscripts of its views among it; `root` itself
  // is computed where `enter`, whatever holds it. Expressions are deep, and share parts.
  void leaves(ValueId root, const DimMap& map, Role role, bool enter = false) {
    stack_.push_back({root, map, role});
    seen_.clear();
    for (bool first = true; !stack_.empty(); first = false) {
      Item item = std::move(stack_.back());
      stack_.pop_back();
      const graph::Inst& inst = g_[item.value];
      if (l_.uses[item.value] > 1 &&
          !seen_.insert({item.value, item.map, item.role == Role::subscript}).second)
        continue;
      const StorageId storage = l_.storage_of[item.value];
      const bool held = storage && !(first && enter);
      const bool load = inst.op == Op::Load || inst.op == Op::Swap;
      if (held || load) read(item, held ? storage : l_.storage_loaded(item.value));
      if (!held || is_skewed(storage)) push_operands(inst, item);
    }
  }

  // In reverse: what is pushed last is looked at first.
  void push_operands(const graph::Inst& inst, const Item& item) {
    for (std::size_t i = inst.args.size(); i-- > 0;) {
      const graph::Type& operand = g_[inst.args[i]].type;
      const bool starts = inst.type.is_ref() && operand.is_scalar();
      if (starts)
        stack_.push_back({inst.args[i], {}, Role::subscript});
      else
        stack_.push_back({inst.args[i], map_of_operand(g_, item.value, i, item.map), item.role});
    }
  }

  void read(const Item& item, StorageId storage) {
    Effect e{.access = Access::read,
             .role = item.role,
             .storage = storage,
             .leaf = item.value,
             .map = item.map};
    if (!storage) e.window = window_of(g_[item.value].args[0]);
    if (redirects_ != nullptr)
      for (const auto& [from, redirect] : *redirects_)
        if (from == storage && redirect.map == item.map) {
          e.replaces = storage;
          e.storage = redirect.storage;
        }
    add(std::move(e));
  }

  const Program& l_;
  const graph::Graph& g_;
  const Redirects* redirects_ = nullptr;
  std::vector<Item> stack_;
  std::set<Seen> seen_;
  Effects found_;
};

Effects heard(Effects found, const testing::Kind& kind) {
  if (testing::hearing != nullptr) (*testing::hearing)(kind, found);
  return found;
}

}  // namespace

const testing::Hearing* testing::hearing = nullptr;

Effects effects(const Program& l, const Statement& s) {
  if (const auto* nest = std::get_if<LoopNest>(&s.what)) return effects(l, *nest);
  Visit visit(l);
  std::visit(visit, s.what);
  return heard(visit.take(), {.statement = s.what.index()});
}

Effects effects(const Program& l, const LoopNest& p) {
  Visit visit(l);
  visit(p);
  return heard(visit.take(), {.sink = p.sink.index()});
}

std::vector<Effect> element_reads(const Program& l, const LoopNest& p) {
  std::vector<Effect> found = effects(l, p).all;
  std::erase_if(found,
                [](const Effect& e) { return !e.is_element() || e.leaf == graph::no_value; });
  return found;
}

std::vector<Read> register_reads(const Program& l, const LoopNest& p) {
  std::vector<Read> found;
  for (const Effect& e : effects(l, p)) {
    const StorageId storage = e.own_storage();
    if (e.is_element() && storage && l.storages[storage].in_registers())
      found.push_back({&p, storage, e.map});
  }
  return found;
}

bool depend(const Program& l, const Statement& a, const Statement& b) {
  const auto is_in = [&](StorageId s, RingId ring) {
    return ring && s && l.storages[s].ring() == ring;
  };
  return any_effect(l, a, [&](const Effect& x) {
    return any_effect(l, b, [&](const Effect& y) {
      const bool same = (x.storage && x.storage == y.storage) ||
                        (x.window && x.window == y.window) || (x.ring && x.ring == y.ring);
      if (same && (x.writes() || y.writes())) return true;
      // A step from slot to slot changes where all that is in them is.
      return is_in(x.storage, y.ring) || is_in(y.storage, x.ring);
    });
  });
}

}  // namespace palladium::lowered
