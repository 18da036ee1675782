// Rotates loops of two products, of which the second is added up of what is computed of the first:
// each iteration begins the first product of its own, then the second one of the iteration before,
// and computes of the first while the second runs.
//
// Precondition: build_pipelines. A producer fetches for the loop, so that no barrier stands in it;
// A of the second product is in registers. What stands around the second product alone is left for
// the next iteration: what fills A and scales the sum, the wait for B, and what frees its slot.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Op;

using Storages = std::set<StorageId>;

// A loop, its statements by number.
class SoftwarePipeline {
 public:
  /// `comes_again`: the loop stands in another one, by which its producer goes on to fetch.
  SoftwarePipeline(Program& l, Loop& loop, bool comes_again)
      : l_(l), loop_(loop), comes_again_(comes_again), body_(loop.body) {}

  void run() {
    if (!find_products()) return;
    if (const char* const why = obstacle(); why != nullptr) {
      const Location at = body_[second_].at;
      l_.remarks.push_back(
          {at, fmt::format("not begun before the next iteration computes: {}", why)});
      return;
    }
    const Statements body = std::move(loop_.body);
    const Dot& second = std::get<Dot>(body[second_].what);
    loop_.shared = {shared_.begin(), shared_.end()};
    loop_.shared.push_back(second.a);
    loop_.body.clear();
    const RingId ring = storage(second.b).ring();
    AwaitDot done{.storages = {second.result, second.a}};
    if (const StorageId first = std::get<Dot>(body[first_].what).result; shared_.contains(first))
      done.storages.push_back(first);

    for (std::size_t i = 0; i < body.size(); ++i)
      if (!late_.contains(i)) loop_.prologue.push_back(body[i]);

    for (std::size_t i = 0; i < body.size(); ++i) {
      if (late_.contains(i)) continue;
      Statement s = body[i];
      if (i != first_) {
        loop_.body.push_back(std::move(s));
        continue;
      }
      Dot& first = std::get<Dot>(s.what);
      first.in_flight = Dot::all_in_flight;
      loop_.body.push_back({done, s.at});
      loop_.body.push_back({Release{ring}, s.at});
      for (const std::size_t late : late_)
        if (late < second_ && std::holds_alternative<LoopNest>(body[late].what))
          loop_.body.push_back(body[late]);
      loop_.body.push_back(s);
      add_second(loop_.body, body, true);
      loop_.body.push_back({AwaitDot{.storages = {first.result}, .in_flight = 1}, s.at});
    }

    loop_.epilogue.push_back({done, body[second_].at});
    // The slot of the last product but one, if there are two: nobody waits for it behind the
    // kernel.
    if (comes_again_) loop_.epilogue.push_back({Release{ring}, body[second_].at});
    for (const std::size_t late : late_)
      if (late < second_ && std::holds_alternative<LoopNest>(body[late].what))
        loop_.epilogue.push_back(body[late]);
    add_second(loop_.epilogue, body, false);
  }

 private:
  // The last product, which adds to what the iterations before left, and the one before it.
  bool find_products() {
    std::vector<std::size_t> dots;
    for (std::size_t i = 0; i < body_.size(); ++i)
      if (std::holds_alternative<Dot>(body_[i].what)) dots.push_back(i);
    if (dots.size() != 2) return false;
    first_ = dots[0];
    second_ = dots[1];
    const Dot &a = dot(first_), &b = dot(second_);
    return a.unit == Dot::Unit::wgmma && b.unit == Dot::Unit::wgmma && b.accumulates &&
           b.anew == graph::no_value && !a.accumulates && is_produced(a.b) && is_produced(b.b) &&
           storage(b.a).is_packed() && storage(a.a).place() == Place::shared;
  }

  const Dot& dot(std::size_t i) const { return std::get<Dot>(body_[i].what); }
  const Storage& storage(StorageId s) const { return l_.storages[s]; }

  bool is_produced(StorageId s) const {
    const RingId ring = storage(s).ring();
    return ring && l_.rings[ring].empty_barriers && !l_.rings[ring].unrolled;
  }

  // Why what belongs to the second product cannot be left for the next iteration, where that may
  // read nothing but whole values that this iteration makes before it, or none of its loop does;
  // nullptr: it can.
  const char* obstacle() {
    const Dot& second = dot(second_);
    const graph::LoopView view = graph::LoopView::of(l_.graph[loop_.inst]);
    const graph::Inst& low = l_.graph[view.low];
    if (low.op != Op::Constant) return "its loop begins at a computed number";
    if (graph::to_int(i32, low.attr.bits) + view.step > std::numeric_limits<std::int32_t>::max())
      return "an i32 does not number its second iteration";
    Storages needed;
    for (std::size_t i = 0; i < body_.size(); ++i)
      if (is_late(body_[i], second)) {
        late_.insert(i);
        if (std::holds_alternative<LoopNest>(body_[i].what)) needed.merge(read_by(body_[i]));
      }
    needed.erase(second.result);
    const StorageId index_storage = l_.storage_of[l_.graph[view.body].params[0]];
    if (needed.contains(index_storage)) return "it depends on the number of the iteration";
    if (std::ranges::any_of(needed, [&](StorageId s) { return bool(storage(s).ring()); }))
      return "it is made of what is fetched for the iteration";
    for (std::size_t i = 0; i < body_.size(); ++i) {
      if (late_.contains(i)) continue;
      const Statement& s = body_[i];
      if (!is_plain(s)) return "more than computations stand in its loop";
      const Storages read = read_by(s), filled = filled_by(s);
      if (read.contains(second.result) || read.contains(second.a))
        return "what it adds up is read in the loop";
      if (filled.contains(second.result) || filled.contains(second.a))
        return "what it adds up is changed in the loop";
      for (const StorageId f : filled) {
        if (!needed.contains(f)) continue;
        const LoopNest* const p = std::get_if<LoopNest>(&s.what);
        const bool whole = i == first_ || (p != nullptr && std::holds_alternative<Assign>(p->sink));
        if (!whole || storage(f).place() != Place::registers || i < first_ || i > *late_.begin())
          return "what it is made of changes behind it";
        shared_.insert(f);
      }
    }
    return nullptr;
  }

  // What the second product alone is for.
  bool is_late(const Statement& s, const Dot& second) const {
    const RingId ring = storage(second.b).ring();
    if (const Dot* const d = std::get_if<Dot>(&s.what)) return d->result == second.result;
    if (const Consume* const t = std::get_if<Consume>(&s.what)) return t->ring == ring;
    if (const AwaitFetch* const a = std::get_if<AwaitFetch>(&s.what)) return a->ring == ring;
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    if (p == nullptr || !std::holds_alternative<Assign>(p->sink)) return false;
    const StorageId filled = storage_filled(p->sink);
    return filled == second.a || filled == second.result;
  }

  static bool is_plain(const Statement& s) {
    return std::holds_alternative<LoopNest>(s.what) || std::holds_alternative<Dot>(s.what) ||
           std::holds_alternative<Scalar>(s.what) || std::holds_alternative<Consume>(s.what) ||
           std::holds_alternative<AwaitFetch>(s.what) ||
           std::holds_alternative<CopyStorage>(s.what);
  }

  // Storages, scalars among them.
  Storages filled_by(const Statement& s) const {
    Storages filled;
    for (const Effect& e : effects(l_, s))
      if (e.writes() && e.storage) filled.insert(e.storage);
    return filled;
  }
  Storages read_by(const Statement& s) const {
    Storages read;
    for (const Effect& e : effects(l_, s))
      if (e.reads() && e.storage) read.insert(e.storage);
    return read;
  }

  // The second product of the iteration before: its slot is freed when the wait for it is over.
  void add_second(Statements& to, const Statements& body, bool in_flight) const {
    for (const std::size_t i : late_) {
      Statement s = body[i];
      if (std::holds_alternative<LoopNest>(s.what)) continue;
      if (Dot* const d = std::get_if<Dot>(&s.what); d != nullptr && in_flight)
        d->in_flight = Dot::all_in_flight;
      if (Consume* const t = std::get_if<Consume>(&s.what); t != nullptr && in_flight)
        t->frees = Consume::Frees::none;
      to.push_back(std::move(s));
    }
  }

  Program& l_;
  Loop& loop_;
  const bool comes_again_;
  const Statements& body_;
  std::size_t first_ = 0, second_ = 0;  // products
  std::set<std::size_t> late_;          // what is left for the next iteration
  Storages shared_;                     // what that needs of this one
};

// A producer fetches for loops of a program alone: no other loop stands around them than that of a
// persistent block over its programs.
void visit(Program& l, Statements& list, bool comes_again) {
  for (Statement& s : list) {
    GridLoop* const programs = std::get_if<GridLoop>(&s.what);
    if (programs != nullptr && programs->axis == programs_axis) visit(l, programs->body, true);
    if (Loop* const loop = std::get_if<Loop>(&s.what))
      SoftwarePipeline(l, *loop, comes_again).run();
  }
}

}  // namespace

void software_pipeline(Program& l) {
  for (ProgramBody& b : l.bodies)
    if (!b.producer.empty()) visit(l, b.statements, false);
}

}  // namespace palladium::passes
