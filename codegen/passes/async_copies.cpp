// What a user says of barriers and asynchronous copies becomes the statements that a planner would
// write. Threads copy what TMA cannot, and are done then when they have: a load, a store, and an
// arrival in place of the copy's.
#include "codegen/passes/async_copies.hpp"

#include <utility>

#include "codegen/base/format.hpp"
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
    for (const ValueId v : a.order) {
      if (!graph::is_async_op(g_[v].op)) continue;
      expect_barriers(v);
      if (g_[v].op != Op::CopyToShared && g_[v].op != Op::CopyToGlobal) continue;
      std::string why;
      const auto box = fetches_.box_of_copy(v, panels_, why);
      if (box && number_of(l_, *box, why)) continue;
      tell(v, why);
      copy_by_threads(v);
    }
    l_.uses = uses_of(g_);
  }

 private:
  void expect_barriers(ValueId v) const {
    if (graph::is_product_by_hand(g_[v].op) && !l_.machine.has_wgmma())
      throw CompileError(g_.location(v),
                         fmt::format("wgmma: kernel '{}' is compiled for sm_{}; products of a "
                                     "warpgroup need sm_90a",
                                     g_.name, l_.machine.compute_capability));
    if (!l_.machine.has_tma())
      throw CompileError(
          g_.location(v),
          fmt::format("{}: kernel '{}' is compiled for sm_{}; barriers, and copies "
                      "that they know of, need sm_90 or newer",
                      graph::info(g_[v].op).name, g_.name, l_.machine.compute_capability));
  }

  void tell(ValueId copy, const std::string& why) {
    l_.remarks.push_back(
        {g_.location(copy), fmt::format("{}: copied by threads, not by TMA, because {}",
                                        graph::info(g_[copy].op).name, why)});
  }

  // Loads and stores go to the registers of threads and on; what is copied next from there by the
  // asynchronous proxy finds it.
  void copy_by_threads(ValueId copy) {
    const CopyView c = CopyView::of(g_[copy]);
    const bool brings = g_[copy].op == Op::CopyToShared;
    const ValueId from = brings ? c.global : c.shared, to = brings ? c.shared : c.global;
    const graph::Type type = graph::Type::value(g_[from].type.dtype, g_[from].type.shape);
    const Location at = g_.location(copy);
    const ValueId load = before(copy, {Op::Load, type, {{0, 0}, 0}, {from}, {}}, at);
    g_[copy] = {Op::Store, graph::Type::none(), {{0, 0}, 0}, {to, load}, {}};
    if (!brings) return;
    const ValueId arrive =
        before(copy, {Op::BarrierArrive, graph::Type::none(), {}, {c.barrier, c.number}, {}}, at);
    const ValueId commit = before(arrive, {Op::CommitShared, graph::Type::none(), {}, {}, {}}, at);
    // In front of the two stands the store.
    const Inst store = g_[copy];
    g_[copy] = std::exchange(g_[arrive], g_[commit]);
    g_[commit] = store;
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
};

// ---- statements

class ByHand {
 public:
  ByHand(Program& l, ValueId v, Statements& out)
      : l_(l), g_(l.graph), v_(v), inst_(l.graph[v]), out_(out) {}

  void run() {
    switch (inst_.op) {
    case Op::BarrierArrive: return arrive();
    case Op::BarrierWait:
      return add(
          Wait{.barrier = barrier(inst_.args[0]), .slot = inst_.args[1], .phase = Tracked{}});
    case Op::BarrierTest: return test();
    case Op::CopyToShared: return bring();
    case Op::CopyToGlobal: return send();
    case Op::CommitShared: return add(Fence{}), add(Sync{});
    case Op::CloseCopies: return add(Close{device::Completion::bulk_group});
    case Op::Wgmma:
    case Op::WgmmaHeld:
    case Op::AwaitProducts: return add_product_by_hand(l_, v_, out_);
    default: return await();
    }
  }

 private:
  void add(auto statement) { out_.push_back({std::move(statement), g_.location(v_)}); }

  StorageId storage_of(ValueId view) const {
    return l_.windows[l_.window_of[g_.root(view)]].storage();
  }

  BarrierId barrier(ValueId root) const {
    const StorageId storage = storage_of(root);
    for (const BarrierId b : l_.barriers.ids())
      if (l_.barriers[b].storage == storage) return b;
    throw InternalError("passes: a barrier that there is not");
  }

  // One thread tells of what all have done, which it knows.
  void arrive() {
    if (out_.empty() || !std::holds_alternative<Sync>(out_.back().what)) add(Sync{});
    add(Arrive{.barrier = barrier(inst_.args[0]), .slot = inst_.args[1]});
  }

  // As it changes what is waited for next, it is done whether or not somebody uses what it says.
  void test() {
    const auto shared = [&] {
      return l_.add_storage({.in = Shared{.row_stride = 1}, .dtype = i32, .shape = {1}, .of = v_});
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
               .bytes = graph::element_count(type.shape) * type.dtype.bytes()});
    add(Copy{.from = {.view = c.global},
             .to = {.storage = room(c.shared), .view = c.shared},
             .box = box(),
             .completes = completes,
             .slot = c.number,
             .of = v_,
             .by_hand = true});
  }

  void send() {
    const CopyView c = CopyView::of(inst_);
    add(Copy{.from = {.storage = room(c.shared), .view = c.shared},
             .to = {.view = c.global},
             .box = box(),
             .of = v_,
             .by_hand = true});
  }

  // One thread waits, and the others for it.
  void await() {
    const graph::AwaitView wait = graph::AwaitView::of(inst_);
    add(WaitGroup{.kind = device::Completion::bulk_group,
                  .pending = wait.pending,
                  .written = !wait.read_only});
    add(Sync{});
  }

  Program& l_;
  const graph::Graph& g_;
  ValueId v_;
  const Inst& inst_;
  Statements& out_;
};

}  // namespace

void legalize_async_copies(Program& l) {
  if (graph::has_async_ops(l.graph)) Legalization(l).run();
}

void add_by_hand(Program& l, ValueId v, Statements& out) { ByHand(l, v, out).run(); }

}  // namespace palladium::passes
