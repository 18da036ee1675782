// Products into the same registers, which assemblers have to tell apart.
//
// ptxas (12.9 to 13.5) numbers values within a basic block, and a register of PTX that a wgmma
// writes keeps its number: what threads compute of it behind a second product is taken for what
// they computed of it behind the first, which is left out. wgmma_apart ends the basic block.
#include <optional>
#include <set>
#include <utility>

#include "codegen/thread/program.hpp"

namespace palladium::thread {
namespace {

using device::Row;

class Apart {
 public:
  explicit Apart(const Program& p) : exprs_(p.exprs) {}

  void visit(Statements& list) {
    const std::optional<std::size_t> around = std::exchange(fence_, std::nullopt);
    for (std::size_t i = 0; i < list.size(); ++i) i += visit_one(list, i);
    fence_ = around;
  }

 private:
  // What stands in the registers that products of this basic block have written.
  struct State {
    std::set<VariableId> written = {};  // and nobody has looked at it
    std::set<VariableId> seen = {};
  };

  // How many statements were put in front of it.
  std::size_t visit_one(Statements& list, std::size_t at) {
    if (const Wgmma* const w = std::get_if<Wgmma>(&list[at].what))
      return product(list, at, w->registers);
    if (const Call* const c = std::get_if<Call>(&list[at].what)) return call(at, *c), 0;
    look(list[at]);
    Statements* const body = body_of(list[at]);
    if (body == nullptr) return 0;
    if (!std::holds_alternative<For>(list[at].what) &&
        !std::holds_alternative<While>(list[at].what))
      return visit(*body), 0;
    return loop(list, at);
  }

  std::size_t product(Statements& list, std::size_t at, ExprId registers) {
    bool seen = false;
    for_each_variable(exprs_, registers,
                      [&](VariableId v) { seen = seen || state_.seen.contains(v); });
    const std::size_t added = seen ? part(list, fence_.value_or(at), list[at].at) : 0;
    if (fence_) *fence_ += added;
    for_each_variable(exprs_, registers, [&](VariableId v) { state_.written.insert(v); });
    return added;
  }

  std::size_t part(Statements& list, std::size_t at, Origin origin) {
    state_ = {};
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at),
                {Call{.function = Row::wgmma_apart}, origin});
    return 1;
  }

  void call(std::size_t at, const Call& c) {
    switch (c.function) {
    case Row::wgmma_fence: fence_ = at; return;
    case Row::wgmma_registers:
    case Row::promote: return;  // which says itself what part it adds
    case Row::mbarrier_wait:    // loops
    case Row::wgmma_apart: state_ = {}; return;
    default: look(Statement{c});
    }
  }

  void look(const Statement& s) {
    for_each_expr(s, [&](ExprId e) {
      for_each_variable(exprs_, e, [&](VariableId v) {
        if (state_.written.contains(v)) state_.seen.insert(v);
      });
    });
  }

  // A loop that is unrolled is none, nor is one of one iteration.
  std::size_t loop(Statements& list, std::size_t at) {
    const For* const f = std::get_if<For>(&list[at].what);
    const bool unrolled = f != nullptr && f->unroll != 1;
    if (!unrolled && !(f != nullptr && runs_once(*f))) {
      state_ = {};
      visit(*body_of(list[at]));
      state_ = {};
      return 0;
    }
    const std::size_t added = continues(*body_of(list[at])) ? part(list, at, list[at].at) : 0;
    const State before = state_;
    Statements& body = *body_of(list[at + added]);
    if (unrolled) {
      Statements once = body;
      visit(once);
    }
    visit(body);
    state_.written.insert(before.written.begin(), before.written.end());
    state_.seen.insert(before.seen.begin(), before.seen.end());
    return added;
  }

  bool runs_once(const For& f) const {
    const Affine trips = exprs_.affine(f.high) + exprs_.affine(f.low) * -1;
    const Facts known = exprs_.facts(trips);
    return known.low > 0 && known.high <= f.step;
  }

  // Whether products go on with registers of this basic block.
  bool continues(const Statements& list) const {
    bool found = false;
    for (const Statement& s : list) {
      if (const Wgmma* const w = std::get_if<Wgmma>(&s.what))
        for_each_variable(exprs_, w->registers,
                          [&](VariableId v) { found = found || state_.written.contains(v); });
      if (const Statements* const body = body_of(s)) found = found || continues(*body);
    }
    return found;
  }

  const Exprs& exprs_;
  State state_ = {};
  std::optional<std::size_t> fence_ = {};  // the last one of the list
};

}  // namespace

void part_products(Program& p) { Apart(p).visit(p.body); }

}  // namespace palladium::thread
