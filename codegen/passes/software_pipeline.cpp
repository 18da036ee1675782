// Rotates loops with products that are added up of what is computed of other products: each
// iteration begins products of its own, then those that the iteration before has left for it, and
// computes while these run.
//
// Precondition: build_pipelines. A producer fetches for the loop, so that no barrier stands in it;
// A of what is left is in registers. Left for the next iteration is what stands around these
// products alone: what fills A and scales the sums, and the steps to their next slots. Of A that is
// no more than its rounding: else what is rounded is there as a whole before.
//
// Of a loop with a product that is made of the result of another, which is not rotated, a remark
// says why.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/graph/cost.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/iterations.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/product_chains.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/registers.hpp"

namespace palladium::passes {
namespace {

using graph::Op;

using Storages = std::set<StorageId>;

// Slots of a ring of which two are read at once.
constexpr int least_shared = 3;
// Operations that a rounding takes with it, rather than that they have a nest of their own.
constexpr std::int64_t few = 2;

bool is_by_wgmma(const Dot& d) { return is_of_wgmma(d.unit); }

bool is_produced(const Program& l, RingId ring) {
  return ring && l.rings[ring].empty_barriers && !l.rings[ring].unrolled;
}

// Why a product that is made of that one cannot be left for the next iteration, whatever stands
// around it; nullptr: it can.
const char* mismatch(const Program& l, const Dot& first, const Dot& second) {
  if (!is_by_wgmma(second)) return "it is not multiplied by wgmma";
  if (!is_by_wgmma(first)) return "what it is made of is not multiplied by wgmma";
  if (!second.accumulates) return "it is not added to what the iterations before it left";
  if (second.anew != graph::no_value) return "its sum begins anew where a condition holds";
  if (!l.storages[second.a].is_packed()) return "its first operand is not in registers";
  if (!l.storages[first.b].ring() || !l.storages[second.b].ring())
    return "not all that is multiplied is copied ahead";
  if (!is_produced(l, l.storages[first.b].ring()) || !is_produced(l, l.storages[second.b].ring()))
    return "no warpgroup fetches for its loop";
  return nullptr;
}

void tell(Program& l, Location at, const std::string& why) {
  l.remarks.push_back({at, "not begun before the next iteration computes: " + why});
}

// A loop over indices, or an axis of the grid: the parts that it has if it is rotated.
struct Rotatable {
  Statements &body, &prologue, &epilogue;
  std::vector<StorageId>& shared;
  ValueId inst = graph::no_value;
  int axis = -1;
};

// A loop, its statements by number: those that an iteration leaves for the next one are late.
class SoftwarePipeline {
 public:
  SoftwarePipeline(Program& l, Rotatable loop) : l_(l), loop_(loop), body_(loop.body) {}

  /// Whether it has products that suit, so that it is rotated, or said why not.
  bool run() {
    const std::set<std::size_t> products = products_that_suit();
    if (products.empty()) return false;
    if (const char* const why = rotate_for(products)) tell(l_, body_[*products.rbegin()].at, why);
    return true;
  }

 private:
  const Dot& dot(std::size_t i) const { return std::get<Dot>(body_[i].what); }
  const Storage& storage(StorageId s) const { return l_.storages[s]; }
  bool is_dot(std::size_t i) const { return std::holds_alternative<Dot>(body_[i].what); }

  // ---- which products

  std::set<std::size_t> products_that_suit() const {
    std::set<std::size_t> found;
    const ProductChains chains(l_, body_);
    for (std::size_t i = 0; i < body_.size(); ++i) {
      if (!is_dot(i)) continue;
      const ProductChains::Product* const p = chains.find(dot(i));
      if (p != nullptr && p->made_of != nullptr && p->made_of->inside == nullptr &&
          mismatch(l_, *p->made_of->dot, *p->dot) == nullptr)
        found.insert(i);
    }
    return found;
  }

  // Leaves these products for the next iteration; else why not, and nothing is changed.
  const char* rotate_for(const std::set<std::size_t>& products) {
    const Statements before = body_;
    const std::size_t storages = l_.storages.size();
    const char* why = nullptr;
    std::size_t tried = SIZE_MAX;
    bool is_crowded = false;
    for (const std::int64_t operations : {few, std::int64_t{0}, std::int64_t{INT64_MAX}}) {
      products_ = products;
      compute_at_once(operations);
      const bool is_new = std::exchange(tried, at_once_.size()) != at_once_.size();
      if (is_new) why = obstacle();
      if (is_new && why == nullptr && rotate()) return nullptr;
      is_crowded = is_crowded || why == nullptr;
      undo(before, storages);
    }
    return is_crowded ? "what both iterations hold takes more registers than a thread has" : why;
  }

  // ---- what they are made of

  // Has what they read in registers computed at once, but for its rounding, where that is more than
  // so many operations. (Rounded at once it would be in registers that to ptxas are those which the
  // product under way reads, whatever copies stand in the text.)
  void compute_at_once(std::int64_t least) {
    for (std::size_t i = 0; i < body_.size(); ++i) {
      const LoopNest* const p = std::get_if<LoopNest>(&body_[i].what);
      const Assign* const to = p == nullptr ? nullptr : std::get_if<Assign>(&p->sink);
      if (to == nullptr || !fills_late(i, to->storage) || !is_computed_in_f32(p->value, least))
        continue;
      const ValueId value = l_.graph[p->value].args[0];
      Storage s = storage(to->storage);
      s.registers().packed = false;
      s.dtype = f32;
      s.of = value;
      StorageId whole = read_last(i, s);
      if (!whole) whole = l_.add_storage(std::move(s));
      at_once_.emplace_back(value, l_.storage_of[value]);
      l_.storage_of[value] = whole;
      Statement first = body_[i];
      LoopNest& nest = std::get<LoopNest>(first.what);
      nest.value = value;
      nest.sink = Assign{.storage = whole};
      body_.insert(body_.begin() + static_cast<std::ptrdiff_t>(i), std::move(first));
      std::set<std::size_t> products;
      for (const std::size_t d : products_) products.insert(d + (d > i));
      products_ = std::move(products);
      ++i;
    }
  }

  // A product of the iteration, of which the nest reads elements where it makes such of its own,
  // and nobody else does behind it: these take their place. None: there is no such.
  StorageId read_last(std::size_t nest, const Storage& like) const {
    for (const StorageId s : read_by(body_[nest])) {
      const Storage& x = storage(s);
      const auto touches = [&](const Statement& other) {
        return any_effect(l_, other, [&](const Effect& e) { return e.storage == s; });
      };
      const auto first = std::ranges::find_if(body_, touches);
      const Dot* const d = std::get_if<Dot>(&first->what);
      const bool is_alike = x.in_registers() && x.dtype == like.dtype && x.shape == like.shape &&
                            x.registers().layout == like.registers().layout;
      if (is_alike && d != nullptr && d->result == s && !d->accumulates &&
          std::none_of(body_.begin() + static_cast<std::ptrdiff_t>(nest) + 1, body_.end(), touches))
        return s;
    }
    return {};
  }

  bool fills_late(std::size_t nest, StorageId filled) const {
    return std::ranges::any_of(products_,
                               [&](std::size_t d) { return d > nest && dot(d).a == filled; });
  }

  // By more than so many operations, and rounded for this alone.
  bool is_computed_in_f32(ValueId v, std::int64_t least) const {
    const graph::Graph& g = l_.graph;
    if (g[v].op != Op::Cast) return false;
    const ValueId value = g[v].args[0];
    return g[value].type.dtype == f32 && l_.uses[value] == 1 && !is_whole(value) &&
           takes_more(value, least);
  }

  bool is_whole(ValueId v) const {
    const StorageId s = l_.storage_of[v];
    return s && !std::holds_alternative<lowered::Inlined>(storage(s).in);
  }

  // Than so many operations for an element that is computed where it is asked for; an elementary
  // function and a quotient are several.
  bool takes_more(ValueId value, std::int64_t least) const {
    constexpr std::int64_t several = 8;
    std::int64_t all = 0;
    std::set<ValueId> counted;
    for (std::vector<ValueId> left{value}; !left.empty() && all <= least;) {
      const ValueId v = left.back();
      left.pop_back();
      const graph::Inst& inst = l_.graph[v];
      if (is_whole(v) || inst.op == Op::Load || !counted.insert(v).second) continue;
      const bool is_long = graph::info(inst.op).ulp > 0 || inst.op == Op::Div;
      if (graph::is_elementwise(inst.op)) all += is_long ? several : 1;
      left.insert(left.end(), inst.args.begin(), inst.args.end());
    }
    return all > least;
  }

  void undo(const Statements& before, std::size_t storages) {
    loop_.body = before;
    loop_.prologue.clear();
    loop_.epilogue.clear();
    for (; shared_added_ > 0; --shared_added_) loop_.shared.pop_back();
    while (l_.storages.size() > storages) l_.storages.pop_back();
    for (const auto& [value, storage] : at_once_) l_.storage_of[value] = storage;
    at_once_.clear();
    late_.clear();
    shared_.clear();
  }

  // ---- what is left for the next iteration

  // Why that cannot be, where it may read nothing but whole values that this iteration makes before
  // it, or none of its loop does; nullptr: it can.
  const char* obstacle() {
    sums_.clear();
    held_.clear();
    for (const std::size_t i : products_) {
      sums_.insert(dot(i).result);
      held_.insert(dot(i).a);
    }
    find_rings();
    for (std::size_t i = 0; i < body_.size(); ++i)
      if (is_late(body_[i])) late_.insert(i);
    first_ = last_ = 0;
    while (first_ < body_.size() && (!is_dot(first_) || late_.contains(first_))) ++first_;
    if (first_ == body_.size()) return "others are added to its sum";
    find_last_of_first();
    const char* why = obstacle_of_late();
    for (std::size_t i = 0; why == nullptr && i < body_.size(); ++i)
      if (!late_.contains(i)) why = obstacle_of(i);
    return why;
  }

  // What these products alone are for.
  bool is_late(const Statement& s) const {
    if (const Dot* const d = std::get_if<Dot>(&s.what)) return sums_.contains(d->result);
    if (const Advance* const a = std::get_if<Advance>(&s.what))
      return late_rings_.contains(a->ring) && !shared_rings_.contains(a->ring);
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    if (p == nullptr || !std::holds_alternative<Assign>(p->sink)) return false;
    const StorageId filled = storage_filled(p->sink);
    return held_.contains(filled) || sums_.contains(filled);
  }

  // Those of which late products read slots, and of these those of which others do, too: late, that
  // is in the slot before.
  void find_rings() {
    late_rings_.clear();
    shared_rings_.clear();
    for (const std::size_t i : products_) late_rings_.insert(storage(dot(i).b).ring());
    for (std::size_t i = 0; i < body_.size(); ++i)
      if (!products_.contains(i))
        for (const StorageId s : read_by(body_[i]))
          if (late_rings_.contains(storage(s).ring())) shared_rings_.insert(storage(s).ring());
  }

  // The products that begin in front of those that are late: from the first one on those of whose
  // results nothing that stands between is made.
  void find_last_of_first() {
    Storages results{dot(first_).result};
    last_ = first_;
    for (std::size_t i = first_ + 1; i < body_.size(); ++i) {
      if (late_.contains(i)) continue;
      const bool adds = is_dot(i) && results.contains(dot(i).result);
      if (!adds &&
          std::ranges::any_of(read_by(body_[i]), [&](StorageId s) { return results.contains(s); }))
        return;
      if (!is_dot(i)) continue;
      last_ = i;
      results.insert(dot(i).result);
    }
  }

  const char* obstacle_of_late() {
    needed_.clear();
    for (const std::size_t i : late_) {
      if (is_dot(i) && !products_.contains(i)) return "others are added to its sum";
      const LoopNest* const p = std::get_if<LoopNest>(&body_[i].what);
      if (p == nullptr) continue;
      const Storages filled = filled_by(body_[i]);
      if (std::ranges::any_of(products_, [&](std::size_t d) {
            return d < i && (filled.contains(dot(d).result) || filled.contains(dot(d).a));
          }))
        return "what it adds up is changed in the loop";
      for (const StorageId s : read_by(body_[i])) {
        const bool is_theirs = sums_.contains(s) || held_.contains(s);
        if (is_theirs && !filled.contains(s)) return "what it adds up is read in the loop";
        if (!is_theirs) needed_.try_emplace(s, i);
      }
    }
    if (std::ranges::any_of(late_rings_, [&](RingId r) { return r && l_.rings[r].slots == 1; }))
      return "a block has room for one slot of what it reads";
    if (asks_for_iteration()) return "it depends on the number of the iteration";
    if (std::ranges::any_of(needed_, [&](const auto& n) { return bool(storage(n.first).ring()); }))
      return "it is made of what is fetched for the iteration";
    return nullptr;
  }

  // Of a statement that is not left.
  const char* obstacle_of(std::size_t i) {
    const Statement& s = body_[i];
    if (!is_plain(s)) return "more than computations stand in its loop";
    if (const Advance* const a = std::get_if<Advance>(&s.what))
      if (!is_produced(l_, a->ring)) return "no warpgroup fetches for its loop";
    if (i < last_ && clears_late(s)) return "what a mask leaves out of it is cleared too early";
    const Storages read = read_by(s), filled = filled_by(s);
    for (const StorageId r : read)
      if (shared_rings_.contains(storage(r).ring()) &&
          l_.rings[storage(r).ring()].slots < least_shared)
        return "others read in the iteration what is fetched for it, of which there are two slots";
    const auto meets = [](const Storages& a, const Storages& b) {
      return std::ranges::any_of(a, [&](StorageId x) { return b.contains(x); });
    };
    if (meets(read, sums_) || meets(read, held_)) return "what it adds up is read in the loop";
    if (meets(filled, sums_) || meets(filled, held_))
      return "what it adds up is changed in the loop";
    for (const StorageId f : filled) {
      const auto needed = needed_.find(f);
      if (needed == needed_.end()) continue;
      const LoopNest* const p = std::get_if<LoopNest>(&s.what);
      const bool whole = is_dot(i) || (p != nullptr && std::holds_alternative<Assign>(p->sink));
      if (!whole || !storage(f).in_registers() || i < first_to_wait() || i > needed->second)
        return "what it is made of changes behind it";
      shared_.insert(f);
    }
    return nullptr;
  }

  bool asks_for_iteration() const {
    if (loop_.inst != graph::no_value) {
      const graph::LoopView view = graph::LoopView::of(l_.graph[loop_.inst]);
      return needed_.contains(l_.storage_of[l_.graph[view.body].params[0]]);
    }
    return std::ranges::any_of(late_, [&](std::size_t i) {
      const LoopNest* const p = std::get_if<LoopNest>(&body_[i].what);
      return p != nullptr && (asks_for_axis(l_, p->value, loop_.axis) || reads_windows(body_[i]));
    });
  }

  // In global memory, of which the next iteration has other blocks.
  bool reads_windows(const Statement& s) const {
    return any_effect(l_, s, [](const Effect& e) { return bool(e.window); });
  }

  static bool is_plain(const Statement& s) {
    return std::holds_alternative<LoopNest>(s.what) || std::holds_alternative<Dot>(s.what) ||
           std::holds_alternative<Scalar>(s.what) || std::holds_alternative<Advance>(s.what) ||
           std::holds_alternative<lowered::CopyStorage>(s.what) ||
           std::holds_alternative<EnterWindow>(s.what) || std::holds_alternative<IfMasked>(s.what);
  }

  // Of the iteration's slot of a late product, which the one before must have left.
  bool clears_late(const Statement& s) const {
    const IfMasked* const m = std::get_if<IfMasked>(&s.what);
    return m != nullptr && std::ranges::any_of(m->body, [&](const Statement& x) {
             return std::ranges::any_of(filled_by(x), [&](StorageId f) {
               const RingId ring = storage(f).ring();
               return late_rings_.contains(ring) && !shared_rings_.contains(ring);
             });
           });
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

  // ---- the loop that is rotated

  // Whether a thread has the registers for what both iterations hold.
  bool rotate() {
    const std::size_t first_awaits = first_to_wait();
    const Statements body = std::move(loop_.body);
    shared_.insert(held_.begin(), held_.end());
    loop_.shared.insert(loop_.shared.end(), shared_.begin(), shared_.end());
    shared_added_ = shared_.size();
    loop_.body.clear();

    for (std::size_t i = 0; i < body.size(); ++i)
      if (!late_.contains(i)) loop_.prologue.push_back(body[i]);

    for (std::size_t i = 0; i < body.size(); ++i) {
      if (i == first_awaits) add_late(loop_.body, body, true);
      if (late_.contains(i)) continue;
      loop_.body.push_back(body[i]);
      if (i == last_) add_late(loop_.body, body, false);
    }

    add_late(loop_.epilogue, body, true);
    add_late(loop_.epilogue, body, false);
    return fits();
  }

  // The first of the iteration that may wait for what is copied: the products of the iteration
  // before are over then. (ptxas makes products wait that are in flight where a thread waits
  // otherwise.)
  std::size_t first_to_wait() const {
    std::size_t i = 0;
    while (i < first_ && !std::holds_alternative<IfMasked>(body_[i].what)) ++i;
    return i;
  }

  // What is left of the iteration before: in front of the first product of this iteration what
  // fills registers, and behind those that begin with it all else. What the last product waits for
  // comes first: when that is over, all are, which ptxas has to see before any sum is touched.
  void add_late(Statements& to, const Statements& body, bool fills) const {
    std::vector<std::size_t> order;
    for (const std::size_t i : late_) {
      const bool is_product = std::holds_alternative<Dot>(body[i].what) ||
                              std::holds_alternative<Advance>(body[i].what);
      if (fills != is_product) order.push_back(i);
    }
    if (fills)
      std::ranges::stable_sort(order, std::greater(),
                               [&](std::size_t i) { return last_reader(body, body[i]); });
    for (const std::size_t i : order) {
      to.push_back(body[i]);
      if (Dot* const d = std::get_if<Dot>(&to.back().what))
        d->back = shared_rings_.contains(storage(d->b).ring());
    }
  }

  // Of the late products, of what the statement fills.
  std::size_t last_reader(const Statements& body, const Statement& s) const {
    const Storages filled = filled_by(s);
    std::size_t last = 0;
    for (const std::size_t i : products_) {
      const Dot& d = std::get<Dot>(body[i].what);
      if (filled.contains(d.a) || filled.contains(d.result)) last = i;
    }
    return last;
  }

  bool fits() {
    const std::int64_t held = most_held(l_);
    const bool fit = holds_beside_producer(l_, held);
    if (fit) l_.most_held = std::max(l_.most_held, held);
    return fit;
  }

  Program& l_;
  Rotatable loop_;
  Statements& body_;
  std::set<std::size_t> products_;                           // that are late
  std::vector<std::pair<ValueId, StorageId>> at_once_ = {};  // what is whole now; what it was
  Storages sums_, held_;  // what they add up, and read in registers
  std::set<RingId> late_rings_, shared_rings_;
  std::set<std::size_t> late_;               // what is left for the next iteration
  std::map<StorageId, std::size_t> needed_;  // what that reads, where for the first time
  std::size_t first_ = 0, last_ = 0;         // products that begin in front of those
  Storages shared_;                          // what is left needs of this iteration
  std::size_t shared_added_ = 0;
};

class Loops {
 public:
  explicit Loops(Program& l) : l_(l) {}

  void visit(Statements& list) {
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { visit(body); });
      if (rotates(s)) continue;
      if (const Statements* const iteration = iteration_of(s); iteration != nullptr && !is_once(s))
        tell_of(s, *iteration);
    }
  }

 private:
  bool rotates(Statement& s) {
    const auto run = [&](Rotatable loop) { return SoftwarePipeline(l_, loop).run(); };
    if (Loop* const x = std::get_if<Loop>(&s.what))
      return run({x->body, x->prologue, x->epilogue, x->shared, x->inst});
    GridLoop* const x = std::get_if<GridLoop>(&s.what);
    return x != nullptr && x->axis != programs_axis &&
           run({x->body, x->prologue, x->epilogue, x->shared, graph::no_value, x->axis});
  }

  // Of a loop that a user wrote, or an axis of the grid.
  static const Statements* iteration_of(const Statement& s) {
    if (const Loop* const loop = std::get_if<Loop>(&s.what)) return &loop->body;
    if (const While* const loop = std::get_if<While>(&s.what)) return &loop->body;
    const GridLoop* const grid = std::get_if<GridLoop>(&s.what);
    return grid != nullptr && grid->axis != programs_axis ? &grid->body : nullptr;
  }

  bool is_once(const Statement& s) const {
    const graph::Graph& g = l_.graph;
    if (const Loop* const loop = std::get_if<Loop>(&s.what)) {
      const std::optional<std::int64_t> trips = graph::trips(g, loop->inst);
      return trips && *trips <= 1;
    }
    const GridLoop* const grid = std::get_if<GridLoop>(&s.what);
    if (grid == nullptr) return false;
    const Dim& extent = g.mapping.grid[static_cast<std::size_t>(grid->axis)];
    return extent.is_static() && extent.value() <= 1;
  }

  // Nothing where somebody said that nobody is to fetch ahead, which is how such loops are made, or
  // where products run by themselves.
  void tell_of(const Statement& s, const Statements& iteration) {
    const graph::Body& body = l_.graph.bodies[0];
    if (body.num_stages == 1 || !body.warp_specialize.value_or(true)) return;
    const ProductChains chains(l_, iteration);
    const ProductChains::Product* const second = chains.last_made_of_other();
    if (second == nullptr) return;
    const Dot& first = *second->made_of->dot;
    if (!is_by_wgmma(first) && !is_by_wgmma(*second->dot)) return;
    if (const std::string why = reason(s, *second); !why.empty()) tell(l_, second->at, why);
  }

  std::string reason(const Statement& s, const ProductChains::Product& second) const {
    if (std::holds_alternative<While>(s.what))
      return "whether a while_loop has a next iteration is known only then";
    for (const char* const inside : {second.inside, second.made_of->inside})
      if (inside != nullptr) return inside;
    const char* const why = mismatch(l_, *second.made_of->dot, *second.dot);
    return why != nullptr ? why : "";
  }

  Program& l_;
};

}  // namespace

void software_pipeline(Program& l) {
  for (Body& b : l.bodies)
    for (Agent& a : b.agents) Loops(l).visit(a.statements);
}

}  // namespace palladium::passes
