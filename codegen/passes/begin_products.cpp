// Products of wgmma begin in their iteration as soon as their operands are there: in front of what
// is computed between, so that it is computed while they run.
//
// Precondition: build_pipelines, which has taken copies ahead out of iterations, so that nothing
// else makes operands in them than computations. A result that is there earlier takes registers for
// longer: where a thread has none, or other blocks of a warpgroup would find no room beside it,
// products stay where they are.
#include <algorithm>
#include <set>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/registers.hpp"

namespace palladium::passes {
namespace {

class EarlyProducts {
 public:
  explicit EarlyProducts(Program& l) : l_(l) {}

  void run() {
    for (Body& b : l_.bodies)
      for (Agent& a : b.agents) visit(a.statements);
  }

 private:
  void visit(Statements& list) {
    for (Statement& s : list)
      for_each_body(s, [&](Statements& body) {
        visit(body);
        if (repeats(s)) begin(body);
      });
  }

  void begin(Statements& iteration) {
    const Statements before = iteration;
    bool any = false;
    for (std::size_t i = 0; i < iteration.size(); ++i) {
      if (!runs_by_itself(iteration[i])) continue;
      const std::size_t place = place_for(iteration, i);
      if (is_passed(iteration, i, place)) continue;
      const auto product = iteration.begin() + static_cast<std::ptrdiff_t>(i);
      const auto first = iteration.begin() + static_cast<std::ptrdiff_t>(place);
      any = any || first != product;
      std::rotate(first, product, product + 1);
    }
    if (!any) return;
    const std::int64_t held = most_held(l_);
    if (held > l_.most_held && (is_small() || !holds_beside_products(l_, held)))
      iteration = before;
    else
      l_.most_held = std::max(l_.most_held, held);
  }

  // Of which several are on a multiprocessor and hide what each waits for: registers say how many.
  bool is_small() const { return l_.threads() * l_.warpgroups <= graph::warpgroup_threads; }

  bool runs_by_itself(const Statement& s) const {
    const Dot* const d = std::get_if<Dot>(&s.what);
    return d != nullptr && d->unit == Dot::Unit::wgmma &&
           !graph::is_product_by_hand(l_.graph[d->inst].op);
  }

  // Whether others that begin behind the product, were it there, are awaited before somebody asks
  // for its result: it would be done for nothing, and ptxas has it wait where it is asked for
  // (C7514).
  bool is_passed(const Statements& list, std::size_t product, std::size_t place) const {
    std::set<StorageId> begun;
    const StorageId result = std::get<Dot>(list[product].what).result;
    for (std::size_t i = place; i < list.size(); ++i) {
      if (i == product) continue;
      if (const Dot* const d = std::get_if<Dot>(&list[i].what)) {
        begun.insert(d->result);
        continue;
      }
      bool asks = false, awaits = false;
      any_effect(l_, list[i], [&](const Effect& e) {
        asks = asks || e.storage == result;
        awaits = awaits || begun.contains(e.storage);
        return false;
      });
      if (asks || awaits) return !asks;
    }
    return false;
  }

  // In front of the first computation that the product need not wait for.
  std::size_t place_for(const Statements& list, std::size_t product) const {
    std::size_t first = product;
    for (std::size_t i = product; i-- > 0 && may_pass(list[product], list[i]);)
      if (std::holds_alternative<LoopNest>(list[i].what)) first = i;
    return first;
  }

  bool may_pass(const Statement& product, const Statement& s) const {
    const bool is_plain =
        std::holds_alternative<LoopNest>(s.what) || std::holds_alternative<Scalar>(s.what) ||
        std::holds_alternative<Dot>(s.what) || std::holds_alternative<lowered::Advance>(s.what) ||
        std::holds_alternative<IfMasked>(s.what) || std::holds_alternative<EnterWindow>(s.what);
    return is_plain && !lowered::depend(l_, product, s);
  }

  Program& l_;
};

}  // namespace

void begin_products(Program& l) {
  if (l.wgmma_products > 1) EarlyProducts(l).run();
}

}  // namespace palladium::passes
