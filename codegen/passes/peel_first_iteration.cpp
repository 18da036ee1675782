// What only the first iteration of a sequential axis does before all else, where that fills
// registers with constants, stands before the loop: in it each register would be chosen in every
// iteration.
//
// Precondition: build_statements. A program runs only where its sequential axes have iterations.
#include <algorithm>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Op;

class Peeling {
 public:
  explicit Peeling(Program& l) : l_(l), g_(l.graph) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { visit(list); });
  }

 private:
  void visit(Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](Statements& body) { visit(body); });
      GridLoop* const loop = std::get_if<GridLoop>(&list[i].what);
      if (loop == nullptr) continue;
      Statements moved = take_first(*loop);
      const std::size_t count = moved.size();
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i),
                  std::make_move_iterator(moved.begin()), std::make_move_iterator(moved.end()));
      i += count;
    }
  }

  // The statements of a condition on the first iteration that nothing but names stands before.
  Statements take_first(GridLoop& loop) {
    for (std::size_t i = 0; i < loop.body.size(); ++i) {
      const auto& what = loop.body[i].what;
      if (std::holds_alternative<EnterWindow>(what) || std::holds_alternative<Scalar>(what))
        continue;
      When* const when = std::get_if<When>(&loop.body[i].what);
      if (when == nullptr || !asks_first(when->condition, loop.axis) || !is_constant(*when, loop))
        return {};
      Statements taken = std::move(when->body);
      loop.body.erase(loop.body.begin() + static_cast<std::ptrdiff_t>(i));
      return taken;
    }
    return {};
  }

  bool asks_first(ValueId condition, int axis) const {
    const graph::Inst& i = g_[condition];
    if (i.op != Op::Eq) return false;
    const auto is_zero = [&](ValueId v) {
      return g_[v].op == Op::Constant && g_[v].attr.bits == 0;
    };
    const auto is_iteration = [&](ValueId v) {
      return g_[v].op == Op::ProgramId && graph::AxisView::of(g_[v]).axis == axis;
    };
    return (is_iteration(i.args[0]) && is_zero(i.args[1])) ||
           (is_zero(i.args[0]) && is_iteration(i.args[1]));
  }

  bool is_constant(const When& when, const GridLoop& loop) const {
    return std::ranges::all_of(when.body, [&](const Statement& s) {
      const LoopNest* const p = std::get_if<LoopNest>(&s.what);
      const Assign* const to = p == nullptr ? nullptr : std::get_if<Assign>(&p->sink);
      return to != nullptr && !is_entered(to->storage, loop) && has_no_leaves(p->value);
    });
  }

  // Whether the loop brings the window another block.
  bool is_entered(StorageId storage, const GridLoop& loop) const {
    return std::ranges::any_of(loop.body, [&](const Statement& s) {
      const EnterWindow* const enter = std::get_if<EnterWindow>(&s.what);
      return enter != nullptr && l_.windows[enter->window].storage() == storage;
    });
  }

  bool has_no_leaves(ValueId v) const {
    bool none = !l_.storage_of[v];
    for_each_leaf(l_, v, identity_map(static_cast<int>(g_[v].type.shape.size())), false,
                  [&](ValueId, const DimMap&, StorageId) { none = false; });
    return none;
  }

  Program& l_;
  const Graph& g_;
};

}  // namespace

void peel_first_iteration(Program& l) { Peeling(l).run(); }

}  // namespace palladium::passes
