// What a user says of barriers and asynchronous copies becomes the statements that a planner would
// write. Threads copy what TMA cannot, and are done then when they have: a load, a store, and an
// arrival in place of the copy's.
#include "codegen/passes/async_copies.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/extents.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/fetches.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {
namespace {

using graph::CopyView;
using graph::Inst;
using graph::Op;

class Legalization {
 public:
  explicit Legalization(Program& l) : l_(l), g_(l.graph), fetches_(l), panels_(l.graph) {}

  void run() {
    const Analysis a(g_);
    for (const ValueId v : a.order)
      if (g_[v].op == Op::Warps) find_of_warps(g_[v].regions[0]);
    for (const ValueId v : a.order) {
      if (!graph::is_async_op(g_[v].op)) continue;
      expect_barriers(v);
      if (g_[v].op == Op::Prefetch) {
        bring_near(v);
        continue;
      }
      const bool fetches = g_[v].op == Op::FetchToShared;
      if (!graph::is_copy_to_shared(g_[v].op) && !graph::is_copy_to_global(g_[v].op)) continue;
      std::string why;
      if (divides(v)) continue;
      if (!fetches && l_.machine.has_tma() &&
          (is_box(v, why) || fetches_.is_run_of_bytes(v, panels_)))
        continue;
      if (of_warps_.contains(v)) refuse_of_warp(v, why);
      if (!fetches && l_.machine.has_tma()) tell(v, why);
      copy_by_threads(v);
    }
    l_.uses = uses_of(g_);
  }

 private:
  void find_of_warps(graph::RegionId r) {
    for (const ValueId v : g_[r].insts) {
      of_warps_.insert(v);
      for (const graph::RegionId inner : g_[v].regions) find_of_warps(inner);
    }
  }

  [[noreturn]] void refuse_of_warp(ValueId copy, const std::string& why) const {
    throw CompileError(
        g_.location(copy),
        fmt::format("{}: a warp of a WarpMesh copies by TMA alone, {}; outside of it threads copy",
                    graph::info(g_[copy].op).name,
                    l_.machine.has_tma()
                        ? "which cannot, because " + why
                        : fmt::format("which sm_{} has not", l_.machine.compute_capability)));
  }

  void expect_barriers(ValueId v) const {
    if (graph::is_product_by_hand(g_[v].op) && !l_.machine.has_wgmma())
      throw CompileError(g_.location(v),
                         fmt::format("wgmma: kernel '{}' is compiled for sm_{}; products of a "
                                     "warpgroup need sm_90a",
                                     g_.name, l_.machine.compute_capability));
    if (g_[v].op == Op::SetMaxRegisters && !l_.machine.has_wgmma())
      throw CompileError(g_.location(v),
                         fmt::format("set_max_registers: kernel '{}' is compiled for sm_{}; that "
                                     "registers change hands needs sm_90a",
                                     g_.name, l_.machine.compute_capability));
    const bool overlaps = g_[v].op == Op::GridDependencyWait || g_[v].op == Op::LaunchDependents;
    if (overlaps && !l_.machine.has_tma())
      throw CompileError(
          g_.location(v),
          fmt::format("{}: kernel '{}' is compiled for sm_{}; launches that overlap "
                      "need sm_90 or newer",
                      graph::info(g_[v].op).name, g_.name, l_.machine.compute_capability));
    const bool needs_barriers = graph::is_barrier_op(g_[v].op) || g_[v].op == Op::CopyToShared;
    if (needs_barriers && !l_.machine.has_barriers())
      throw CompileError(
          g_.location(v),
          fmt::format("{}: kernel '{}' is compiled for sm_{}; barriers, and copies "
                      "that they know of, need sm_{} or newer",
                      graph::info(g_[v].op).name, g_.name, l_.machine.compute_capability,
                      lowered::Machine::first_with_barriers));
  }

  bool is_box(ValueId copy, std::string& why) {
    const auto box = fetches_.box_of_copy(copy, panels_, why);
    return box && number_of(l_, *box, why);
  }

  // Whether blocks share a copy: each brings a part to all of them then, along the first dimension
  // of which TMA copies parts. Who has all parts relies on all blocks having come so far.
  bool divides(ValueId copy) {
    const CopyView c = CopyView::of(g_[copy]);
    if (c.axes == 0) return false;
    const std::int64_t blocks = graph::blocks_along(g_, c.axes);
    const Extents shape = g_[c.shared].type.shape;
    const Inst whole = g_[copy];
    const Shares shares = shares_of(copy, c.axes);
    std::string why;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] % blocks != 0) continue;
      const ValueId start = times(copy, shares.number, shape[d] / blocks);
      g_[copy].args = {part(copy, c.global, d, blocks, start),
                       part(copy, c.shared, d, blocks, start), c.barrier, c.number, shares.mask};
      if (is_box(copy, why)) return true;
      const Inst tried = std::exchange(g_[copy], whole);
      for (graph::Region& r : g_.regions)
        std::erase_if(r.insts, [&](ValueId v) { return v == tried.args[0] || v == tried.args[1]; });
    }
    throw CompileError(
        g_.location(copy),
        fmt::format(
            "copy_gmem_to_smem: {} blocks cannot share the copy, because TMA cannot bring a "
            "part of it: {}; without collective_axes each block copies all of it",
            blocks, why));
  }

  /// The number of a block among those that share a copy, row-major, and a bit for each of them.
  struct Shares {
    ValueId number, mask;
  };
  Shares shares_of(ValueId copy, std::int64_t axes) {
    ValueId number = graph::no_value, base = graph::no_value;
    std::uint64_t pattern = 1;
    std::int64_t below = 1;
    for (std::size_t axis = g_.cluster.size(); axis-- > 0; below *= g_.cluster[axis]) {
      if ((axes >> axis & 1) == 0) {
        base = plus(copy, base, times(copy, index_along(copy, axis), below));
        continue;
      }
      std::uint64_t along = 0;
      for (int k = 0; k < g_.cluster[axis]; ++k) along |= pattern << (k * below);
      pattern = along;
    }
    std::int64_t factor = 1;
    for (std::size_t axis = g_.cluster.size(); axis-- > 0;) {
      if ((axes >> axis & 1) == 0) continue;
      number = plus(copy, times(copy, index_along(copy, axis), factor), number);
      factor *= g_.cluster[axis];
    }
    const ValueId bits = constant(copy, static_cast<std::int64_t>(pattern));
    if (base == graph::no_value) return {number, bits};
    return {number, before(copy, {Op::ShiftLeft, graph::Type::value(i32), {}, {bits, base}, {}},
                           g_.location(copy))};
  }

  ValueId constant(ValueId copy, std::int64_t n) {
    return before(copy,
                  {Op::Constant, graph::Type::value(i32), {{}, graph::to_bits(i32, n)}, {}, {}},
                  g_.location(copy));
  }
  ValueId index_along(ValueId copy, std::size_t axis) {
    const auto kind = static_cast<std::int64_t>(graph::AxisKind::cluster);
    return before(copy,
                  {Op::AxisIndex,
                   graph::Type::value(i32),
                   {{kind, static_cast<std::int64_t>(axis)}, 0},
                   {},
                   {}},
                  g_.location(copy));
  }
  ValueId times(ValueId copy, ValueId x, std::int64_t factor) {
    if (factor == 1) return x;
    const ValueId n = constant(copy, factor);
    return before(copy, {Op::Mul, graph::Type::value(i32), {}, {x, n}, {}}, g_.location(copy));
  }
  ValueId plus(ValueId copy, ValueId a, ValueId b) {
    if (a == graph::no_value || b == graph::no_value) return a == graph::no_value ? b : a;
    return before(copy, {Op::Add, graph::Type::value(i32), {}, {a, b}, {}}, g_.location(copy));
  }

  ValueId part(ValueId copy, ValueId view, std::size_t d, std::int64_t blocks, ValueId start) {
    graph::Type type = g_[view].type;
    type.swizzle = 0;
    graph::Subscript chosen;
    for (const std::int64_t extent : type.shape) chosen.dims.push_back({.size = extent});
    type.shape[d] /= blocks;
    chosen.dims[d].size = type.shape[d];
    chosen.dims[d].dynamic = true;
    return before(copy, {Op::At, std::move(type), {chosen.encode(), 0}, {view, start}, {}},
                  g_.location(copy));
  }

  void tell(ValueId copy, const std::string& why) {
    l_.remarks.push_back(
        {g_.location(copy), fmt::format("{}: copied by threads, not by TMA, because {}",
                                        graph::info(g_[copy].op).name, why)});
  }

  // Of each element that is copied whether its array has it, where that is asked of any.
  ValueId existing(ValueId copy, const CopyView& c) {
    struct Along {
      int dimension = -1;  // of the view
      std::int64_t start = 0, size = 1;
      ValueId moved = graph::no_value;
    };
    const Extents shape = g_[c.global].type.shape;
    std::vector<Along> along;
    for (std::size_t d = 0; d < shape.size(); ++d)
      along.push_back({.dimension = static_cast<int>(d), .size = shape[d]});
    ValueId view = c.global;
    for (; g_[view].op != Op::Param; view = g_[view].args[0]) {
      const std::vector<ValueId> args = g_[view].args;
      std::vector<Along> inner;
      std::size_t next = 0, operand = 1;
      for (const graph::SubscriptDim& d : graph::Subscript::of(g_[view]).dims) {
        Along x = d.is_slice ? along[next++] : Along();
        x.start += d.dynamic ? 0 : d.start;
        if (d.dynamic) x.moved = plus(copy, x.moved, args[operand++]);
        inner.push_back(x);
      }
      along = std::move(inner);
    }
    ValueId all = graph::no_value;
    const auto test = [&](ValueId coordinate, Op op, ValueId limit) {
      const ValueId holds = of_elements(copy, shape, op, bool_, {coordinate, limit});
      all = all == graph::no_value ? holds : of_elements(copy, shape, Op::And, bool_, {all, holds});
    };
    for (std::size_t d = 0; d < along.size(); ++d) {
      const Along& x = along[d];
      const Dim extent = graph::extent_of(g_, view, d);
      const bool is_known = x.moved == graph::no_value;
      if (is_known && x.start >= 0 && extent.is_static() && x.start + x.size <= extent.value())
        continue;
      const ValueId begin = plus(copy, x.moved, constant(copy, x.start));
      ValueId at = spread(copy, shape, begin);
      if (x.dimension >= 0) {
        const ValueId number =
            before(copy, {Op::Iota, graph::Type::value(i32, shape), {{x.dimension}, 0}, {}, {}},
                   g_.location(copy));
        at = of_elements(copy, shape, Op::Add, i32, {at, number});
      }
      if (!is_known || x.start < 0) test(at, Op::Ge, spread(copy, shape, constant(copy, 0)));
      test(at, Op::Lt, spread(copy, shape, value_of(copy, extent)));
    }
    return all;
  }
  ValueId value_of(ValueId copy, const Dim& d) {
    if (d.is_static()) return constant(copy, d.value());
    const DimNode n = dim_node(d);
    if (n.op == detail::DimOp::symbol)
      return before(copy, {Op::DimValue, graph::Type::value(i32), {{n.symbol}, 0}, {}, {}},
                    g_.location(copy));
    ValueId a = value_of(copy, n.a);
    const ValueId b = value_of(copy, n.b);
    const auto apply = [&](Op op, ValueId x, ValueId y) {
      return of_elements(copy, {}, op, i32, {x, y});
    };
    switch (n.op) {
    case detail::DimOp::add: return apply(Op::Add, a, b);
    case detail::DimOp::sub: return apply(Op::Sub, a, b);
    case detail::DimOp::mul: return apply(Op::Mul, a, b);
    case detail::DimOp::mod: return apply(Op::Rem, a, b);
    case detail::DimOp::min: return apply(Op::Min, a, b);
    case detail::DimOp::max: return apply(Op::Max, a, b);
    case detail::DimOp::cdiv: a = apply(Op::Sub, apply(Op::Add, a, b), constant(copy, 1)); break;
    default: break;
    }
    return apply(Op::Div, a, b);
  }
  ValueId spread(ValueId copy, const Extents& shape, ValueId scalar) {
    if (shape.empty()) return scalar;
    return before(copy, {Op::Broadcast, graph::Type::value(i32, shape), {}, {scalar}, {}},
                  g_.location(copy));
  }
  ValueId of_elements(ValueId copy, const Extents& shape, Op op, DType dtype,
                      std::vector<ValueId> args) {
    return before(copy, {op, graph::Type::value(dtype, shape), {}, std::move(args), {}},
                  g_.location(copy));
  }

  // Loads and stores go to the registers of threads and on; what is copied next from there by the
  // asynchronous proxy finds it.
  void copy_by_threads(ValueId copy) {
    const CopyView c = CopyView::of(g_[copy]);
    const bool brings = graph::is_copy_to_shared(g_[copy].op);
    const bool fetches = g_[copy].op == Op::FetchToShared;
    const bool reduces = g_[copy].op == Op::ReduceToGlobal;
    const ValueId from = brings ? c.global : c.shared, to = brings ? c.shared : c.global;
    const graph::Type type = graph::Type::value(g_[from].type.dtype, g_[from].type.shape);
    const Location at = g_.location(copy);
    const ValueId inside = c.beyond == graph::Beyond::none ? graph::no_value : existing(copy, c);
    const bool asks = inside != graph::no_value;
    Inst read{Op::Load, type, {{0, 0}, 0}, {from}, {}};
    if (asks && brings) {
      graph::Type zeros = type;
      read.attr = {{1, 1}, 0};
      read.args = {from, inside, before(copy, {Op::Constant, zeros, {}, {}, {}}, at)};
    }
    const ValueId load = before(copy, std::move(read), at);
    if (reduces) {
      g_[copy] = {Op::Atomic, type, g_[copy].attr, {to, load}, {}};
      return;
    }
    g_[copy] = {Op::Store, graph::Type::none(), {{0, 0}, 0}, {to, load}, {}};
    if (asks && !brings) {
      g_[copy].attr = {{1, 0}, 0};
      g_[copy].args.push_back(inside);
    }
    if (fetches && l_.machine.has_async_copies()) l_.fetches_by_hand.push_back(copy);
    if (!brings || fetches) return;
    const ValueId arrive =
        before(copy, {Op::BarrierArrive, graph::Type::none(), {}, {c.barrier, c.number}, {}}, at);
    const ValueId commit = before(arrive, {Op::CommitShared, graph::Type::none(), {}, {}, {}}, at);
    // In front of the two stands the store.
    const Inst store = g_[copy];
    g_[copy] = std::exchange(g_[arrive], g_[commit]);
    g_[commit] = store;
  }

  // What is not to be had is left out.
  void bring_near(ValueId v) {
    std::string why;
    const auto box = l_.machine.has_tma() ? fetches_.box_near(g_[v].args[0], why) : std::nullopt;
    if (box && number_of(l_, *box, why)) return;
    if (!why.empty())
      l_.remarks.push_back(
          {g_.location(v), "async_prefetch: nothing is brought near, because " + why});
    for (graph::Region& r : g_.regions) std::erase(r.insts, v);
  }

  ValueId before(ValueId v, Inst inst, Location at) {
    const ValueId added = g_.add(std::move(inst), at);
    insert_before(g_, added, v);
    return added;
  }

  Program& l_;
  graph::Graph& g_;
  Fetches fetches_;
  Panels panels_;
  std::set<ValueId> of_warps_;
};

// ---- statements

class ByHand {
 public:
  ByHand(Program& l, ValueId v, bool in_warps, Statements& out)
      : l_(l), g_(l.graph), v_(v), inst_(l.graph[v]), in_warps_(in_warps), out_(out) {}

  void run() {
    switch (inst_.op) {
    case Op::BarrierArrive: return arrive();
    case Op::BarrierWait: return await_barrier();
    case Op::BarrierTest: return test();
    case Op::CopyToShared: return bring();
    case Op::CopyToGlobal:
    case Op::ReduceToGlobal: return send();
    case Op::Prefetch: return bring_near();
    case Op::AwaitFetches: return await_fetches();
    case Op::CommitShared: return commit();
    case Op::CloseCopies:
      if (l_.machine.has_tma()) add(Close{device::Completion::bulk_group});
      return;
    case Op::Wgmma:
    case Op::WgmmaHeld:
    case Op::AwaitProducts: return add_product_by_hand(l_, v_, out_);
    case Op::SetMaxRegisters: {
      const auto [count, more] = graph::RegistersView::of(inst_);
      add(Sync{});  // all warps are through with the last change
      return add(SetRegisters{count, more});
    }
    case Op::GridDependencyWait:
    case Op::LaunchDependents: return add(Semaphore{.inst = v_});
    default: return await();
    }
  }

 private:
  void add(auto statement) { out_.push_back({std::move(statement), g_.location(v_)}); }

  StorageId storage_of(ValueId view) const {
    return l_.windows[l_.window_of[g_.base(view)]].storage();
  }

  BarrierId barrier(ValueId root) const {
    const StorageId storage = storage_of(root);
    for (const BarrierId b : l_.barriers.ids())
      if (l_.barriers[b].storage == storage) return b;
    throw InternalError("passes: a barrier that there is not");
  }

  // One thread tells of what all have done, which it knows.
  void arrive() {
    if (!has_met()) add(Sync{});
    add(Arrive{.barrier = barrier(inst_.args[0]),
               .slot = inst_.args[1],
               .block = graph::block_of_arrival(inst_)});
  }

  // Whether nothing is done since all threads have waited for each other.
  bool has_met() const {
    for (auto s = out_.rbegin(); s != out_.rend(); ++s) {
      const Arrive* const a = std::get_if<Arrive>(&s->what);
      if (std::holds_alternative<Sync>(s->what) || (a != nullptr && a->bytes == 0)) return true;
      if (!std::holds_alternative<Scalar>(s->what) || reads_memory(*s)) return false;
    }
    return false;
  }
  bool reads_memory(const Statement& s) const {
    return any_effect(l_, s, [&](const Effect& e) {
      return e.window || (e.storage && l_.storages[e.storage].in_shared());
    });
  }

  void await_barrier() {
    Wait wait{.barrier = barrier(inst_.args[0]), .slot = inst_.args[1], .phase = Tracked{}};
    if (graph::waits_in_turn(inst_)) wait.phase = InTurn{};
    add(wait);
  }

  // As it changes what is waited for next, it is done whether or not somebody uses what it says.
  void test() {
    const auto shared = [&] {
      return l_.add_storage({.in = Shared{.row_stride = 1, .per_warp = in_warps_},
                             .dtype = i32,
                             .shape = {1},
                             .of = v_});
    };
    StorageId told = l_.storage_of[v_];
    if (!told) told = l_.add_storage({.in = OneElement{}, .dtype = bool_, .of = v_});
    add(Wait{.barrier = barrier(inst_.args[0]),
             .slot = inst_.args[1],
             .phase = Tracked{},
             .told = told,
             .scratch = shared()});
  }

  BoxId box() const {
    Fetches fetches(l_);
    Panels panels(g_);
    std::string why;
    const auto found = fetches.box_of_copy(v_, panels, why);
    return found ? number_of(l_, *found, why) : BoxId();
  }

  // A room for TMA begins where that can write and read it.
  StorageId room(ValueId view) {
    constexpr std::int64_t aligned = 128;
    const StorageId storage = storage_of(view);
    Shared& s = l_.storages[storage].shared();
    s.alignment = std::max(s.alignment, aligned);
    return storage;
  }

  void bring() {
    const CopyView c = CopyView::of(inst_);
    const BarrierId completes = barrier(c.barrier);
    const graph::Type& type = g_[c.shared].type;
    add(Arrive{.barrier = completes,
               .slot = c.number,
               .bytes = graph::element_count(type.shape) * type.dtype.bytes() *
                        graph::blocks_along(g_, c.axes)});
    add(Copy{.from = {.view = c.global},
             .to = {.storage = room(c.shared), .view = c.shared},
             .box = box(),
             .completes = completes,
             .slot = c.number,
             .of = v_,
             .multicast = c.blocks,
             .by_hand = true});
  }

  void send() {
    const CopyView c = CopyView::of(inst_);
    add(Copy{
        .from = {.storage = room(c.shared), .view = c.shared},
        .to = {.view = c.global},
        .box = box(),
        .of = v_,
        .update = inst_.op == Op::ReduceToGlobal ? static_cast<int>(graph::update_of(inst_)) : -1,
        .by_hand = true});
  }

  void bring_near() {
    Fetches fetches(l_);
    std::string why;
    const auto found = fetches.box_near(inst_.args[0], why);
    add(Copy{.from = {.view = inst_.args[0]},
             .box = found ? number_of(l_, *found, why) : BoxId(),
             .of = v_,
             .by_hand = true});
  }

  void await_fetches() {
    if (l_.machine.has_async_copies())
      add(WaitGroup{.kind = device::Completion::cp_async_group,
                    .pending = graph::fetches_left(inst_)});
    add(Sync{});
  }

  // Other proxies than that of threads came with TMA.
  void commit() {
    if (l_.machine.has_tma()) add(Fence{});
    add(Sync{});
  }

  // One thread waits, and the others for it.
  void await() {
    const graph::AwaitView wait = graph::AwaitView::of(inst_);
    if (l_.machine.has_tma())
      add(WaitGroup{.kind = device::Completion::bulk_group,
                    .pending = wait.pending,
                    .written = !wait.read_only});
    add(Sync{});
  }

  Program& l_;
  const graph::Graph& g_;
  ValueId v_;
  const Inst& inst_;
  const bool in_warps_;
  Statements& out_;
};

}  // namespace

void legalize_async_copies(Program& l) {
  if (graph::has_async_ops(l.graph)) Legalization(l).run();
}

void close_fetch(const Program& l, ValueId v, Statements& out) {
  out.push_back({Close{device::Completion::cp_async_group}, l.graph.location(v)});
}

void end_by_hand(const Program& l, Statements& out) {
  if (graph::reach_other_blocks(l.graph)) out.push_back({Sync{Sync::Of::cluster}, l.graph.at});
}

void add_by_hand(Program& l, ValueId v, bool in_warps, Statements& out) {
  ByHand(l, v, in_warps, out).run();
}

}  // namespace palladium::passes
