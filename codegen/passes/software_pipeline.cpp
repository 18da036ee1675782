// Rotates loops of two products, of which the second is added up of what is computed of the first:
// each iteration begins the first product of its own, then the second one of the iteration before,
// and computes of the first while the second runs.
//
// Precondition: build_pipelines. A producer fetches for the loop, so that no barrier stands in it;
// A of the second product is in registers. What stands around the second product alone is left for
// the next iteration: what fills A and scales the sum, and the step to its next slot.
//
// Of a loop with a product that is made of the result of another, which is not rotated, a remark
// says why.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/graph/cost.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/iterations.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Op;

using Storages = std::set<StorageId>;

// The products of an iteration, but for those of loops inside of it. Of interest is the last one
// that is made of the result of another: it could run while the next iteration begins.
class Products {
 public:
  struct Product {
    const Dot* dot = nullptr;
    Location at = {};
    const char* inside = nullptr;  // of what else than the loop it stands
  };

  Products(const Program& l, const Statements& iteration) : l_(l) {
    find(iteration, nullptr);
    if (all_.size() > 1) follow(iteration);
  }

  std::size_t count() const { return all_.size(); }
  /// Both null if there is no such.
  const Product* first() const { return first_; }
  const Product* second() const { return second_; }

 private:
  void find(const Statements& list, const char* inside) {
    for (const Statement& s : list) {
      const Dot* const d = std::get_if<Dot>(&s.what);
      if (d != nullptr && !graph::is_product_by_hand(l_.graph[d->inst].op))
        all_.push_back({d, s.at, inside});
      if (repeats(s)) continue;
      const bool chosen =
          std::holds_alternative<When>(s.what) || std::holds_alternative<Switch>(s.what);
      const char* const here = chosen ? "a product of its loop stands under a condition"
                                      : "a product of its loop stands in a scope of its own";
      for_each_body(s, [&](const Statements& body) { find(body, here); });
    }
  }

  void follow(const Statements& list) {
    for (const Statement& s : list) {
      follow(s);
      for_each_body(s, [&](const Statements& body) { follow(body); });
    }
  }

  // What a product fills is made of it; what else a statement fills, of what it reads.
  void follow(const Statement& s) {
    const Effects all = effects(l_, s);
    const Dot* const d = std::get_if<Dot>(&s.what);
    const Product* of = d == nullptr ? nullptr : product(*d);
    if (of != nullptr)
      for (const StorageId operand : {d->a, d->b})
        if (const Product* const other = made_of(operand)) first_ = other, second_ = of;
    for (const Effect& e : all)
      if (of == nullptr && e.reads()) of = made_of(e.storage);
    if (of == nullptr) return;
    for (const Effect& e : all)
      if (e.writes() && e.storage) made_of_[e.storage] = of;
  }

  const Product* product(const Dot& d) const {
    const auto found = std::ranges::find(all_, &d, &Product::dot);
    return found == all_.end() ? nullptr : &*found;
  }

  const Product* made_of(StorageId storage) const {
    const auto found = made_of_.find(storage);
    return found == made_of_.end() ? nullptr : found->second;
  }

  const Program& l_;
  std::vector<Product> all_;
  std::map<StorageId, const Product*> made_of_;  // one of those
  const Product *first_ = nullptr, *second_ = nullptr;
};

bool is_by_wgmma(const Dot& d) { return is_of_wgmma(d.unit); }

bool is_produced(const Program& l, StorageId s) {
  const RingId ring = l.storages[s].ring();
  return ring && l.rings[ring].empty_barriers && !l.rings[ring].unrolled;
}

// Why a loop of these two products is none that can be rotated; nullptr: it is.
const char* mismatch(const Program& l, const Dot& first, const Dot& second) {
  if (!is_by_wgmma(second)) return "it is not multiplied by wgmma";
  if (!is_by_wgmma(first)) return "what it is made of is not multiplied by wgmma";
  if (!second.accumulates) return "it is not added to what the iterations before it left";
  if (second.anew != graph::no_value) return "its sum begins anew where a condition holds";
  if (first.accumulates) return "what it is made of is a sum that others added to";
  if (!l.storages[second.a].is_packed()) return "its first operand is not in registers";
  if (!l.storages[first.a].in_shared())
    return "the first operand of the product before it is in registers";
  if (!l.storages[first.b].ring() || !l.storages[second.b].ring())
    return "not all that is multiplied is copied ahead";
  if (!is_produced(l, first.b) || !is_produced(l, second.b))
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

// A loop, its statements by number.
class SoftwarePipeline {
 public:
  SoftwarePipeline(Program& l, Rotatable loop) : l_(l), loop_(loop), body_(loop.body) {}

  /// Whether it has two products that suit, so that it is rotated, or said why not.
  bool run() {
    if (!find_products()) return false;
    if (const char* const why = obstacle(); why != nullptr)
      tell(l_, body_[second_].at, why);
    else
      rotate();
    return true;
  }

 private:
  void rotate() {
    const Statements body = std::move(loop_.body);
    const Dot& second = std::get<Dot>(body[second_].what);
    loop_.shared.insert(loop_.shared.end(), shared_.begin(), shared_.end());
    loop_.shared.push_back(second.a);
    loop_.body.clear();

    for (std::size_t i = 0; i < body.size(); ++i)
      if (!late_.contains(i)) loop_.prologue.push_back(body[i]);

    const std::size_t first_awaits = first_to_wait(body);
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (i == first_awaits) add_late(loop_.body, body, true);
      if (late_.contains(i)) continue;
      loop_.body.push_back(body[i]);
      if (i == first_) add_late(loop_.body, body, false);
    }

    add_late(loop_.epilogue, body, true);
    add_late(loop_.epilogue, body, false);
  }

  // The first of the iteration that may wait for what is copied: the product of the iteration
  // before is over then. (ptxas makes products wait that are in flight where a thread waits
  // otherwise.)
  std::size_t first_to_wait(const Statements& body) const {
    std::size_t i = 0;
    while (i < first_ && !std::holds_alternative<IfMasked>(body[i].what)) ++i;
    return i;
  }

  // The last product, which adds to what the iterations before left, and the one before it.
  bool find_products() {
    std::vector<std::size_t> dots;
    for (std::size_t i = 0; i < body_.size(); ++i)
      if (std::holds_alternative<Dot>(body_[i].what)) dots.push_back(i);
    if (dots.size() != 2) return false;
    first_ = dots[0];
    second_ = dots[1];
    return mismatch(l_, dot(first_), dot(second_)) == nullptr;
  }

  const Dot& dot(std::size_t i) const { return std::get<Dot>(body_[i].what); }
  const Storage& storage(StorageId s) const { return l_.storages[s]; }

  // Why what belongs to the second product cannot be left for the next iteration, where that may
  // read nothing but whole values that this iteration makes before it, or none of its loop does;
  // nullptr: it can.
  const char* obstacle() {
    const Dot& second = dot(second_);
    Storages needed;
    for (std::size_t i = 0; i < body_.size(); ++i)
      if (is_late(body_[i], second)) {
        late_.insert(i);
        if (std::holds_alternative<LoopNest>(body_[i].what)) needed.merge(read_by(body_[i]));
      }
    needed.erase(second.result);
    if (asks_for_iteration(needed)) return "it depends on the number of the iteration";
    if (std::ranges::any_of(needed, [&](StorageId s) { return bool(storage(s).ring()); }))
      return "it is made of what is fetched for the iteration";
    for (std::size_t i = 0; i < body_.size(); ++i) {
      if (late_.contains(i)) continue;
      const Statement& s = body_[i];
      if (!is_plain(s)) return "more than computations stand in its loop";
      if (i < first_ && clears(s, second.b))
        return "what a mask leaves out of it is cleared too early";
      const Storages read = read_by(s), filled = filled_by(s);
      const RingId ring = storage(second.b).ring();
      if (std::ranges::any_of(read, [&](StorageId r) { return storage(r).ring() == ring; }))
        return "others read in the iteration what is fetched for it";
      if (read.contains(second.result) || read.contains(second.a))
        return "what it adds up is read in the loop";
      if (filled.contains(second.result) || filled.contains(second.a))
        return "what it adds up is changed in the loop";
      for (const StorageId f : filled) {
        if (!needed.contains(f)) continue;
        const LoopNest* const p = std::get_if<LoopNest>(&s.what);
        const bool whole = i == first_ || (p != nullptr && std::holds_alternative<Assign>(p->sink));
        if (!whole || !storage(f).in_registers() || i < first_ || i > *late_.begin())
          return "what it is made of changes behind it";
        shared_.insert(f);
      }
    }
    return nullptr;
  }

  bool asks_for_iteration(const Storages& needed) const {
    if (loop_.inst != graph::no_value) {
      const graph::LoopView view = graph::LoopView::of(l_.graph[loop_.inst]);
      return needed.contains(l_.storage_of[l_.graph[view.body].params[0]]);
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

  // What the second product alone is for.
  bool is_late(const Statement& s, const Dot& second) const {
    const RingId ring = storage(second.b).ring();
    if (const Dot* const d = std::get_if<Dot>(&s.what)) return d->result == second.result;
    if (const Advance* const a = std::get_if<Advance>(&s.what)) return a->ring == ring;
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    if (p == nullptr || !std::holds_alternative<Assign>(p->sink)) return false;
    const StorageId filled = storage_filled(p->sink);
    return filled == second.a || filled == second.result;
  }

  static bool is_plain(const Statement& s) {
    return std::holds_alternative<LoopNest>(s.what) || std::holds_alternative<Dot>(s.what) ||
           std::holds_alternative<Scalar>(s.what) || std::holds_alternative<Advance>(s.what) ||
           std::holds_alternative<CopyStorage>(s.what) ||
           std::holds_alternative<EnterWindow>(s.what) || std::holds_alternative<IfMasked>(s.what);
  }

  // Of its slot for the iteration, which the one before must have left.
  bool clears(const Statement& s, StorageId storage) const {
    const IfMasked* const m = std::get_if<IfMasked>(&s.what);
    return m != nullptr && std::ranges::any_of(m->body, [&](const Statement& x) {
             return filled_by(x).contains(storage);
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

  // What stands around the second product of the iteration before: nests in front of the first one
  // of this iteration, and behind that all else.
  void add_late(Statements& to, const Statements& body, bool nests) const {
    for (const std::size_t i : late_)
      if (std::holds_alternative<LoopNest>(body[i].what) == nests && (!nests || i < second_))
        to.push_back(body[i]);
  }

  Program& l_;
  Rotatable loop_;
  const Statements& body_;
  std::size_t first_ = 0, second_ = 0;  // products
  std::set<std::size_t> late_;          // what is left for the next iteration
  Storages shared_;                     // what that needs of this one
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
    const Products products(l_, iteration);
    if (products.second() == nullptr) return;
    if (!is_by_wgmma(*products.first()->dot) && !is_by_wgmma(*products.second()->dot)) return;
    if (const std::string why = reason(s, products); !why.empty())
      tell(l_, products.second()->at, why);
  }

  std::string reason(const Statement& s, const Products& products) const {
    const Products::Product &first = *products.first(), &second = *products.second();
    if (std::holds_alternative<While>(s.what))
      return "whether a while_loop has a next iteration is known only then";
    if (products.count() > 2) return "";  // tell_of_loops knows who waits for which
    for (const char* const inside : {second.inside, first.inside})
      if (inside != nullptr) return inside;
    const char* const why = mismatch(l_, *first.dot, *second.dot);
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
