// Turns the regions of a kernel into statements: loop nests for sinks, barriers around memory that
// threads share, sequential grid axes as loops around the whole body.
//
// Precondition: place_values. Layouts are still variables.
#include <algorithm>
#include <map>
#include <set>

#include "codegen/layout/constructors.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/accumulators.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/async_copies.hpp"
#include "codegen/passes/inline.hpp"
#include "codegen/passes/operands.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/sends.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::MemoryView;
using graph::Op;

// The result of a fold that keeps all dimensions, which no program holds in registers, is made tile
// by tile, in shared memory.
void share_if_large(Program& l, Storage& s) {
  if (!s.in_registers()) return;
  constexpr std::int64_t comfortable = 64, of_a_multiprocessor = 48 * 1024;
  const graph::Type type = graph::Type::value(s.dtype, s.shape);
  if (fits_registers(l, type, comfortable)) return;
  const std::int64_t most = std::min(max_whole_registers, of_a_multiprocessor / l.threads());
  if (registers_estimate(type, l.threads()) <= most) return;
  s.in = Shared{.row_stride = s.shape.back()};
}

class Building {
 public:
  explicit Building(Program& l)
      : l_(l), g_(l.graph), a_(l.graph), fetches_(l), operands_(l, fetches_) {
    find_added();
  }

  void run() {
    for (const graph::Body& b : g_.bodies) {
      body_ = &b;
      Agent all{.warpgroups = b.warpgroups * l_.num_warps / 4};
      nest(all.statements, 0);
      end_by_hand(l_, all.statements);
      l_.bodies.push_back({{std::move(all)}});
    }
  }

 private:
  using List = Statements;
  // The sequential axes from `depth` on, inside of them the body.
  void nest(List& out, int depth) {
    const auto windows = windows_at(depth);
    for (const WindowId w : windows) {
      out.push_back({EnterWindow{w}, g_.at});
      if (l_.windows[w].fills()) move_window(out, w, true);
    }
    region(out, body_->region, depth);
    if (depth < num_axes()) {
      operands_.stage(out, body_->region,
                      [&](ValueId operand, ValueId) { return l_.around[operand] == depth; });
      GridLoop loop;
      loop.axis = l_.sequential_axes[depth];
      nest(loop.body, depth + 1);
      out.push_back({std::move(loop), g_.at});
    }
    for (const WindowId w : windows)
      if (l_.windows[w].flushes()) move_window(out, w, false);
  }

  std::vector<WindowId> windows_at(int depth) const {
    std::vector<WindowId> found;
    for (ValueId p : g_[body_->region].params) {
      const WindowId w = l_.window_of[p];
      if (w && l_.windows[w].mapping >= 0 && l_.windows[w].depth == depth) found.push_back(w);
    }
    return found;
  }

  void move_window(List& out, WindowId window, bool fill) {
    const Window& w = l_.windows[window];
    const Storage& s = l_.storages[w.storage()];
    LoopNest p;
    if (fill)
      p.sink = Fill{.window = window, .storage = w.storage()};
    else
      p.sink = Flush{.window = window, .from = w.storage()};
    p.domain = p.valid = s.shape;
    p.variable = s.variable ? s.variable : l_.add_variable();
    out.push_back({std::move(p), g_.at});
  }

  int num_axes() const { return static_cast<int>(l_.sequential_axes.size()); }

  // What stands in the loops of the first `depth` sequential axes.
  void region(List& out, graph::RegionId r, int depth) {
    for (ValueId v : g_[r].insts)
      if (l_.around[v] == depth) instruction(out, v);
  }
  // What is staged inside may not be there behind it.
  void inner_region(List& out, graph::RegionId r) {
    const Operands::Staged before = operands_.staged();
    region(out, r, num_axes());
    operands_.staged() = before;
  }

  void instruction(List& out, ValueId v) {
    const Inst& i = g_[v];
    switch (i.op) {
    case Op::Store:
      if (!accumulated_.contains(v)) store(out, v);
      return;
    case Op::Atomic: update(out, v); return;
    case Op::When: {
      When when;
      when.condition = i.args[0];
      inner_region(when.body, i.regions[0]);
      out.push_back({std::move(when), g_.location(v)});
      return;
    }
    case Op::Loop: loop(out, v); return;
    case Op::While: while_loop(out, v); return;
    case Op::Switch: branches(out, v); return;
    case Op::Scoped: scope(out, v); return;
    case Op::Warps: warps(out, v); return;
    case Op::Dot: dot(out, v); return;
    case Op::Get: return;
    case Op::LayoutCast: return assign(out, i.args[0], l_.storage_of[v], true);
    case Op::PrintLayout: return;
    case Op::SemaphoreRead:
    case Op::SemaphoreSignal:
    case Op::SemaphoreWait:
    case Op::Delay: semaphore(out, v); return;
    case Op::DebugPrint:
    case Op::DebugCheck: tell(out, v); return;
    case Op::ScopeEvent: out.push_back({HostCall{.inst = v}, g_.location(v)}); return;
    case Op::InlineCuda: add_text(l_, a_, v, out); return;
    case Op::BarrierArrive:
    case Op::BarrierWait:
    case Op::BarrierTest:
    case Op::CopyToShared:
    case Op::CopyToGlobal:
    case Op::ReduceToGlobal:
    case Op::FetchToShared:
    case Op::AwaitFetches:
    case Op::Prefetch:
    case Op::CommitShared:
    case Op::CloseCopies:
    case Op::AwaitCopies:
    case Op::Wgmma:
    case Op::WgmmaHeld:
    case Op::AwaitProducts:
    case Op::SetMaxRegisters:
    case Op::GridDependencyWait:
    case Op::LaunchDependents: add_by_hand(l_, v, in_warps_, out); return;
    case Op::Swap:
      assign(out, v, l_.storage_of[v]);
      store(out, v);
      return;
    default: break;
    }
    const StorageId storage = l_.storage_of[v];
    if (!storage || accumulated_.contains(v)) return;
    if (l_.storages[storage].in_shared())
      if (const auto operand = turned_operand(l_, a_, v)) return operands_.stage(out, {*operand});
    if (i.op == Op::Load && l_.storages[storage].in_shared()) return bring(out, v, storage);
    if (!graph::is_fold(i.op)) return assign(out, v, storage);
    out.push_back({fold_nest(l_, v), g_.location(v)});
    if (i.type.shape.size() == g_[i.args[0]].type.shape.size())
      share_if_large(l_, l_.storages[storage]);
  }

  // To shared memory, where products or others read it.
  void bring(List& out, ValueId load, StorageId storage) {
    if (const auto operand = first_read(l_, a_, load)) return operands_.stage(out, {*operand});
    std::string why;
    Shared& s = l_.storages[storage].shared();
    auto found = l_.machine.has_tma() ? fetches_.box_of_load(load, s.swizzle, why) : std::nullopt;
    if (found && are_rounded(load)) found->tf32 = s.tf32 = true;
    const BoxId box = found ? number_of(l_, *found, why) : BoxId();
    const Location at = g_.location(load);
    if (box) {
      s.fetched = true;
      out.push_back({Copy{.from = {.view = g_[load].args[0]},
                          .to = {.storage = storage},
                          .box = box,
                          .completes = l_.add_barriers(),
                          .of = load},
                     at});
    } else {
      const Extents& shape = g_[load].type.shape;
      out.push_back({LoopNest{.sink = Stage{storage},
                              .value = load,
                              .domain = shape,
                              .valid = shape,
                              .variable = l_.add_variable()},
                     at});
    }
  }

  // Whether it is f32 that nobody reads but products that want tf32, transposed.
  bool are_rounded(ValueId load) const {
    const auto is_wanted = [&](ValueId user) {
      const ValueId by = g_[user].op == Op::Transpose ? user : graph::no_value;
      return by != graph::no_value && a_.yielded[index(by)].empty() &&
             std::ranges::all_of(a_.users[index(by)], [&](ValueId dot) {
               if (g_[dot].op != Op::Dot) return false;
               const auto [d, layout] = product(l_, dot);
               const auto [a, b] = operands_of(l_, d, layout);
               return (a.value != by || a.tf32) && (b.value != by || b.tf32);
             });
    };
    return g_[load].type.dtype == f32 && a_.yielded[index(load)].empty() &&
           std::ranges::all_of(a_.users[index(load)], [&](ValueId user) {
             return (g_[user].type.is_value() && l_.uses[user] == 0) || is_wanted(user);
           });
  }

  void semaphore(List& out, ValueId v) {
    Semaphore s{.inst = v, .storage = l_.storage_of[v]};
    if (g_[v].op == Op::SemaphoreRead) s.scratch = shared_number(v);
    out.push_back({s, g_.location(v)});
  }

  // An i32 by which one thread tells the others something.
  StorageId shared_number(ValueId v) {
    return l_.add_storage({.in = Shared{.row_stride = 1, .per_warp = in_warps_},
                           .dtype = i32,
                           .shape = {1},
                           .of = v});
  }

  void tell(List& out, ValueId v) {
    const Location at = g_.location(v);
    const std::vector<ValueId>& args = g_[v].args;
    const bool is_array = args.size() == 1 && !g_[args[0]].type.shape.empty();
    HostCall t{.inst = v};
    if (is_array) t.scratch = shared_number(v);
    out.push_back({t, at});
    if (!is_array) return;
    const Extents& shape = g_[args[0]].type.shape;
    out.push_back({LoopNest{.sink = Print{v},
                            .value = args[0],
                            .domain = shape,
                            .valid = shape,
                            .variable = l_.add_variable()},
                   at});
  }

  // storage = value
  void assign(List& out, ValueId value, StorageId storage, bool force = false) {
    const Storage& s = l_.storages[storage];
    if (!force && l_.storage_of[value] == storage && g_[value].op == Op::Param) return;
    if (s.is_scalar()) {
      out.push_back({Scalar{.value = value, .storage = storage}, g_.location(value)});
      return;
    }
    out.push_back({LoopNest{.sink = Assign{storage},
                            .value = value,
                            .domain = s.shape,
                            .valid = s.shape,
                            .variable = s.variable},
                   g_.location(value)});
  }

  void store(List& out, ValueId v) {
    const MemoryView m = MemoryView::of(g_[v]);
    const Window& w = l_.windows[l_.window_of[g_.base(m.ref)]];
    if (w.residency() == Residency::registers) {
      assign(out, m.value, w.storage(), true);
      return;
    }
    if (!in_warps_ && send(l_, a_, fetches_, v, out)) return;
    const Extents& shape = g_[m.value].type.shape;
    const bool by_hand = std::ranges::find(l_.fetches_by_hand, v) != l_.fetches_by_hand.end();
    out.push_back({LoopNest{.sink = Store{v, {.asynchronous = by_hand}},
                            .value = m.value,
                            .domain = shape,
                            .valid = shape,
                            .variable = l_.add_variable()},
                   g_.location(v)});
    if (by_hand) close_fetch(l_, v, out);
  }

  void update(List& out, ValueId v) {
    const MemoryView m = MemoryView::of(g_[v]);
    const StorageId result = l_.storage_of[v];
    const Extents& shape = g_[m.value].type.shape;
    const StorageId told = result ? shared_result(result) : StorageId();
    out.push_back({LoopNest{.sink = Update{v, told},
                            .value = m.value,
                            .domain = shape,
                            .valid = shape,
                            .variable = l_.add_variable()},
                   g_.location(v)});
    if (told != result) out.push_back({CopyStorage{.from = told, .to = result}, g_.location(v)});
  }

  // Where the thread that has a result leaves it for the others.
  StorageId shared_result(StorageId storage) {
    Storage s = l_.storages[storage];
    if (s.in_shared()) return storage;
    s.in = Shared{.row_stride = 1, .per_warp = in_warps_};
    return l_.add_storage(std::move(s));
  }

  void loop(List& out, ValueId v) {
    const graph::LoopView view = graph::LoopView::of(g_[v]);
    const std::span<const ValueId> carries = std::span(g_[view.body].params).subspan(1);
    start(out, view.carries, carries);
    stage_before(out, v);
    Loop loop;
    loop.inst = v;
    inner_region(loop.body, view.body);
    yield(loop.body, g_[view.body].yields, carries);
    out.push_back({std::move(loop), g_.location(v)});
  }

  void while_loop(List& out, ValueId v) {
    const graph::WhileView view = graph::WhileView::of(g_[v]);
    const std::span<const ValueId> carries = g_[view.body].params;
    start(out, view.carries, carries);
    stage_before(out, v);
    While loop;
    loop.inst = v;
    inner_region(loop.test, view.condition);
    inner_region(loop.body, view.body);
    yield(loop.body, g_[view.body].yields, carries);
    out.push_back({std::move(loop), g_.location(v)});
  }

  void start(List& out, std::span<const ValueId> first, std::span<const ValueId> carries) {
    for (std::size_t c = 0; c < carries.size(); ++c)
      assign(out, first[c], l_.storage_of[carries[c]], true);
  }

  // Operands of products inside of a loop that is the outermost in which they are not made.
  void stage_before(List& out, ValueId loop) {
    for (const graph::RegionId r : g_[loop].regions)
      operands_.stage(out, r, [&](ValueId operand, ValueId product) {
        return l_.around[operand] == num_axes() && a_.loop_between(operand, product) == loop;
      });
  }

  void branches(List& out, ValueId v) {
    const Inst& i = g_[v];
    Switch s;
    s.inst = v;
    s.results = results(v);
    for (const graph::RegionId r : i.regions) {
      List& body = s.bodies.emplace_back();
      inner_region(body, r);
      give(body, r, s.results);
    }
    std::erase(s.results, StorageId());
    out.push_back({std::move(s), g_.location(v)});
  }

  void scope(List& out, ValueId v) {
    const graph::RegionId r = g_[v].regions[0];
    Scope s;
    s.inst = v;
    for (ValueId p : g_[r].params) s.windows.push_back(l_.window_of[p]);
    inner_region(s.body, r);
    give(s.body, r, results(v));
    out.push_back({std::move(s), g_.location(v)});
  }

  void warps(List& out, ValueId v) {
    Warps w{.inst = v, .body = {}};
    in_warps_ = true;
    inner_region(w.body, g_[v].regions[0]);
    in_warps_ = false;
    out.push_back({std::move(w), g_.location(v)});
  }

  // The storages of what regions yield; none where nobody reads it.
  std::vector<StorageId> results(ValueId v) const {
    std::vector<StorageId> storages(g_[g_[v].regions[0]].yields.size());
    for (ValueId u : a_.users[index(v)])
      if (g_[u].op == Op::Get) storages[graph::result_of(g_[u])] = l_.storage_of[u];
    return storages;
  }

  void give(List& out, graph::RegionId r, const std::vector<StorageId>& results) {
    for (std::size_t n = 0; n < results.size(); ++n)
      if (results[n]) assign(out, g_[r].yields[n], results[n], true);
  }

  // All carries take their next values at once: in place, if no other still asks for the one that
  // it had.
  void yield(List& out, std::span<const ValueId> yields, std::span<const ValueId> carries) {
    std::vector<std::size_t> changed;
    for (std::size_t c = 0; c < yields.size(); ++c)
      if (yields[c] != carries[c] && !accumulated_.contains(yields[c])) changed.push_back(c);
    const auto storage = [&](std::size_t c) { return l_.storage_of[carries[c]]; };
    const auto in_place = [&](std::size_t c) {
      return reads_in_place(yields[c], carries[c]) &&
             std::ranges::none_of(changed, [&](std::size_t other) {
               return other != c && reads(yields[other], storage(c));
             });
    };
    for (auto c = std::ranges::find_if(changed, in_place); c != changed.end();
         c = std::ranges::find_if(changed, in_place)) {
      assign(out, yields[*c], storage(*c), true);
      changed.erase(c);
    }
    std::vector<std::pair<StorageId, StorageId>> moves;
    for (std::size_t c : changed) {
      Storage next = l_.storages[storage(c)];
      next.of = yields[c];
      moves.emplace_back(l_.add_storage(std::move(next)), storage(c));
      assign(out, yields[c], moves.back().first, true);
    }
    for (const auto& [from, to] : moves) out.push_back({CopyStorage{.from = from, .to = to}});
  }

  bool reads(ValueId value, StorageId storage) const {
    bool found = false;
    for_each_leaf(l_, value, identity_map(static_cast<int>(g_[value].type.shape.size())), false,
                  [&](ValueId, const DimMap&, StorageId read) { found |= read == storage; });
    return found;
  }

  // Whether `value` wants of `carry` only the element that it replaces.
  bool reads_in_place(ValueId value, ValueId carry) const {
    const DimMap all = identity_map(static_cast<int>(g_[value].type.shape.size()));
    bool in_place = true;
    for_each_leaf(l_, value, all, false, [&](ValueId, const DimMap& map, StorageId storage) {
      if (storage == l_.storage_of[carry] && map != all) in_place = false;
    });
    return in_place;
  }

  // Of what is added up together all products are added in place, by one layout, or none.
  void find_added() {
    added_ = accumulations(g_, a_);
    std::map<ValueId, layout::Layout> layouts;
    std::set<ValueId> apart;
    for (const auto& [v, added] : added_) {
      layout::Layout layout = product(l_, v).second;
      const StorageId target = accumulator(l_, a_, added);
      const bool agrees = targets_.try_emplace(added.sum, target).first->second == target;
      const auto known = layouts.try_emplace(added.sum, layout).first;
      if (!target || !agrees || known->second != layout) apart.insert(added.sum);
    }
    std::erase_if(added_, [&](const auto& x) { return apart.contains(x.second.sum); });
    for (const SumOfProducts& s : sums_of_products(g_, a_)) find_summed(s);
  }

  // Of products that are added to nothing but each other: the first one's result is the sum, or
  // what a loop leaves of its own.
  void find_summed(const SumOfProducts& s) {
    const bool goes_on = s.left_by_loop != graph::no_value;
    const StorageId target = l_.storage_of[goes_on ? s.left_by_loop : s.products[0]];
    const layout::Layout layout = product(l_, goes_on ? s.added_by_loop : s.products[0]).second;
    if (goes_on && !added_.contains(s.added_by_loop)) return;
    const auto fits = [&](ValueId v) {
      return !added_.contains(v) && product(l_, v).second == layout;
    };
    if (!target || !l_.storages[target].in_registers() || !std::ranges::all_of(s.products, fits) ||
        is_kept_between(s))
      return;
    for (const ValueId v : std::span(s.products).subspan(goes_on ? 0 : 1)) summed_[v] = target;
    if (const StorageId kept = l_.storage_of[s.sum]) l_.storages[kept].in = Inlined{};
    l_.storage_of[s.sum] = target;
    accumulated_.insert(s.sum);
  }

  // Whether somebody wants a part of the sum as it is.
  bool is_kept_between(const SumOfProducts& s) const {
    bool found = false;
    for (std::vector<ValueId> stack{g_[s.sum].args}; !stack.empty();) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (g_[v].op != Op::Add) continue;
      found = found || l_.storage_of[v];
      stack.insert(stack.end(), g_[v].args.begin(), g_[v].args.end());
    }
    return found;
  }

  void dot(List& out, ValueId v) {
    auto [d, layout] = product(l_, v);
    const auto added = added_.find(v);
    if (added != added_.end()) {
      const StorageId target = targets_.at(added->second.sum);
      layout::Layout& pin = l_.pinned[l_.storages[target].variable];
      if (pin.domain.empty() || pin == layout) {
        pin = layout;
        d.result = target;
        d.accumulates = true;
        if (d.unit == Dot::Unit::wgmma && added->second.first && added->second.scaled.empty())
          d.anew = take_clearing(out, target);
        l_.storages[l_.storage_of[v]].in = Inlined{};
        const ValueId sum = added->second.sum;
        accumulated_.insert(a_.yielded[index(sum)].empty() ? a_.users[index(sum)][0] : sum);
        if (const ValueId part = added->second.added_by; part != sum) {
          // What scales it before the next product reads it there.
          l_.storage_of[part] = target;
          accumulated_.insert(part);
        }
      }
    }
    if (const auto summed = summed_.find(v); summed != summed_.end()) {
      d.result = summed->second;
      d.accumulates = true;
      l_.storages[l_.storage_of[v]].in = Inlined{};
    }
    if (!d.accumulates) l_.pinned[l_.storages[d.result].variable] = layout;

    const auto [a, b] = operands_of(l_, d, layout);
    Operands::Staged& staged = operands_.staged();
    const bool k_is_last = !graph::DotView::of(g_[v]).trans_a;
    const bool held = !staged.contains(a) && k_is_last && takes_registers(l_, d, a.value, a.shape);
    if (held) {
      const auto [of, is_new] = held_.try_emplace({a_.region[index(v)], a.value});
      if (is_new) of->second = fragments(out, a);
      d.a = of->second;
      operands_.stage(out, std::vector{b});
    } else {
      operands_.stage(out, std::vector{a, b});
      d.a = staged.at(a);
    }
    d.b = staged.at(b);
    promote_sums(l_, d);
    if (added != added_.end() && d.accumulates && !added->second.scaled.empty())
      assign(out, added->second.scaled.back(), d.result, true);
    out.push_back({std::move(d), g_.location(v)});
  }

  // Registers that hold an A of tensor cores: of 16 bits what a thread has of an accumulator of its
  // shape, in the same order.
  StorageId fragments(List& out, const Operand& a) {
    const DType t = g_[a.value].type.dtype;
    const Extents& shape = g_[a.value].type.shape;
    const layout::Warps warps{l_.num_warps, 1};
    const layout::Layout layout = t.bytes() == 2 ? layout::accumulator(shape, warps)
                                                 : layout::operand_a(shape, t.bits(), warps, false);
    const StorageId storage = l_.add_storage({.in = Registers{.packed = true},
                                              .dtype = t,
                                              .shape = shape,
                                              .of = a.value,
                                              .variable = l_.add_variable(layout)});
    assign(out, a.value, storage);
    return storage;
  }

  // Takes out of the statements so far what clears an accumulator under a condition: where that
  // holds, the product adds to nothing.
  ValueId take_clearing(List& out, StorageId accumulator) {
    for (std::size_t i = out.size(); i-- > 0;) {
      if (const When* when = std::get_if<When>(&out[i].what)) {
        if (!only_clears(when->body, accumulator)) return graph::no_value;
        const ValueId condition = when->condition;
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
        return condition;
      }
      const bool plain = std::holds_alternative<LoopNest>(out[i].what) ||
                         std::holds_alternative<Scalar>(out[i].what) ||
                         std::holds_alternative<EnterWindow>(out[i].what);
      if (!plain || touches(out[i], accumulator)) return graph::no_value;
    }
    return graph::no_value;
  }

  bool only_clears(const List& body, StorageId accumulator) const {
    const LoopNest* nest = body.size() == 1 ? std::get_if<LoopNest>(&body[0].what) : nullptr;
    return nest != nullptr && std::holds_alternative<Assign>(nest->sink) &&
           storage_filled(nest->sink) == accumulator && is_zero(nest->value);
  }

  bool is_zero(ValueId v) const {
    while (g_[v].op == Op::Broadcast || g_[v].op == Op::Reshape) v = g_[v].args[0];
    return g_[v].op == Op::Constant && g_[v].attr.bits == 0;
  }

  bool touches(const Statement& s, StorageId storage) const {
    return any_effect(l_, s, [&](const Effect& e) { return e.storage == storage; });
  }

  Program& l_;
  const Graph& g_;
  Analysis a_;
  Fetches fetches_;
  const graph::Body* body_ = nullptr;
  bool in_warps_ = false;  // what warps do each for itself
  Operands operands_;
  /// By region of products, and value: registers with an A of theirs.
  std::map<std::pair<graph::RegionId, ValueId>, StorageId> held_;
  std::map<ValueId, Accumulation> added_;  // by product: in place ...
  std::map<ValueId, StorageId> targets_;   // ... there, by their sum
  std::map<ValueId, StorageId> summed_;    // by product: what it is added to, another's result
  std::set<ValueId> accumulated_;          // stores and sums that products have done already
};

}  // namespace

void build_statements(Program& l) { Building(l).run(); }

}  // namespace palladium::passes
