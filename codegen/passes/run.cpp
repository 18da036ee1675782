#include "codegen/passes/run.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/base/environment.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/hand.hpp"
#include "codegen/lowered/protocol.hpp"
#include "codegen/lowered/verify.hpp"
#include "codegen/passes/divide_products.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/shared_memory.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {
namespace {

bool verifies() {
#ifdef NDEBUG
  constexpr bool otherwise = false;
#else
  constexpr bool otherwise = true;
#endif
  const std::string given = environment::checked(environment::Variable::verify);
  return given.empty() ? otherwise : given == "1";
}

// With the graph, where that is what a pass edits. What a broken program may not even be able to
// say.
std::string text_of_broken(const Program& l, Edits edits) {
  try {
    return edits == Edits::graph ? to_full_text(l) : to_text(l);
  } catch (const Error& error) {
    return std::string("(no text: ") + error.what() + ")\n";
  }
}

class Runner {
 public:
  Runner(const graph::Graph& g, const Machine& machine, const Observer& observer)
      : g_(g), machine_(machine), observer_(observer) {}

  // What is read beside sums waits for its place in shared memory before anything that needs more.
  Program run() {
    try {
      return run(true);
    } catch (const SharedMemoryError&) {
      return run(false);
    }
  }

 private:
  // Slots of rings are counted before copies and products are awaited: what is read until then
  // may need the room of one.
  Program run(bool may_fetch_beside) {
    may_fetch_beside_ = may_fetch_beside;
    for (int most_slots = 0;;) {
      Program l = attempted();
      l.most_slots = most_slots;
      try {
        for (const Pass& p : chosen_passes()) run(p, l);
      } catch (const SharedMemoryError&) {
        most_slots = slots_of_largest(l) - 1;
        if (most_slots < 2) throw;
        continue;
      }
      number_statements(l);
      return l;
    }
  }

  static int slots_of_largest(const Program& l) {
    int slots = 0;
    for (const lowered::Ring& r : l.rings) slots = std::max(slots, r.slots);
    return slots;
  }

  Program attempted() const {
    Program l = widest_needed(true);
    if (!stages_too_much(l)) return l;
    l = widest_needed(false);
    l.remarks.push_back({{},
                         "blocks are read from global memory wherever they are used, not copied: "
                         "a block has no more shared memory"});
    return l;
  }

  Program attempt(int num_warps, bool may_stage) const {
    Program l = start(g_, machine_, num_warps, may_stage);
    l.may_fetch_beside = may_fetch_beside_;
    for (const Pass& p : attempt_passes()) run(p, l);
    return l;
  }

  // Of the width that was asked for, or the narrowest program whose values fit its registers, as
  // far as more threads help.
  Program widest_needed(bool may_stage) const {
    if (const int given = g_.bodies[0].num_warps; given != 0) return attempt(given, may_stage);
    Program l = attempt(4, may_stage);
    if (g_.bodies.size() > 1 || g_.bodies[0].warpgroups > 1 || is_of_a_warpgroup(g_)) return l;
    std::string why;
    bool loses_wgmma = false;
    while (2 * l.num_warps <= layout::most_warps) {
      std::string reason = reason_to_widen(l);
      if (reason.empty()) break;
      Program wider = attempt(2 * l.num_warps, may_stage);
      if (!gains(l, wider)) break;
      loses_wgmma |= wider.wgmma_products < l.wgmma_products;
      l = std::move(wider);
      why = std::move(reason);
    }
    if (loses_wgmma) why += "; so many multiply by mma.sync what fewer would by wgmma";
    if (!why.empty()) l.remarks.push_back({{}, fmt::format("{} warps: {}", l.num_warps, why)});
    return l;
  }

  void run(const Pass& p, Program& l) const {
    const auto begin = std::chrono::steady_clock::now();
    try {
      p.run(l);
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - begin;
      verify_behind(p, l);
      if (observer_) observer_({attempt_of(l), p.name, taken.count()}, l);
    } catch (const InternalError& error) {
      throw InternalError(blame(p, l, error.what()));
    }
  }

  std::string blame(const Pass& p, const Program& broken, const char* what) const {
    Program before = start(g_, machine_, broken.num_warps, broken.may_stage);
    before.most_slots = broken.most_slots;
    before.may_fetch_beside = broken.may_fetch_beside;
    for (const std::span<const Pass> passes : {attempt_passes(), chosen_passes()})
      for (const Pass& other : passes) {
        if (&other == &p)
          return fmt::format(
              "{}\n  in the pass {} of kernel '{}', {} warps\nbefore it: {}behind it: {}", what,
              p.name, g_.name, broken.num_warps, text_of_broken(before, p.edits),
              text_of_broken(broken, p.edits));
        other.run(before);
      }
    return what;
  }

  const graph::Graph& g_;
  const Machine& machine_;
  const Observer& observer_;
  bool may_fetch_beside_ = true;  // in the attempts that are made
};

}  // namespace

bool is_of_a_warpgroup(const graph::Graph& g) {
  return std::ranges::any_of(g.insts, [](const graph::Inst& i) {
    return graph::is_product_by_hand(i.op) || i.op == graph::Op::LayoutCast ||
           i.op == graph::Op::InlineCuda;
  });
}

std::string attempt_of(const Program& l) {
  return fmt::format("{}{}", l.num_warps, l.may_stage ? "" : "-unstaged");
}

namespace {

// What holds behind a pass, of what the verifier asks for.
Behind behind(const Pass& p) {
  Behind all;
  for (const std::span<const Pass> passes : {attempt_passes(), chosen_passes()})
    for (const Pass& other : passes) {
      all.waits |= holds(other.leaves, Fact::waits);
      all.offsets |= holds(other.leaves, Fact::offsets);
      all.order |= holds(other.leaves, Fact::order);
      if (&other == &p) return all;
    }
  return all;
}

}  // namespace

void verify_behind(const Pass& p, const Program& l) {
  if (!verifies() && &p != &chosen_passes().back()) return;
  if (p.edits == Edits::graph)
    if (const std::string what = graph::defect(l.graph, graph::Form::lowered); !what.empty())
      throw InternalError(fmt::format("{} leaves a broken graph: {}", p.name, what));
  const Behind passes = behind(p);
  std::string what = defect(l, passes);
  if (what.empty() && passes.order && verifies()) what = protocol_defect(l);
  if (!what.empty())
    throw InternalError(fmt::format("{} leaves a broken program: {}", p.name, what));
}

Program start(const graph::Graph& g, const Machine& machine, int num_warps, bool may_stage) {
  Program l{.graph = g, .machine = machine, .uses = uses_of(g)};
  if (hand::is_by_hand(g)) l.written = std::make_shared<const graph::Graph>(g);
  l.num_warps = num_warps;
  l.may_stage = may_stage;
  return l;
}

namespace {

// Programs of which a part of the operands of products is in shared memory at a time.
class InParts {
 public:
  InParts(const graph::Graph& g, const Machine& machine, const Observer& observer)
      : g_(g), machine_(machine), observer_(observer) {}

  // Of twice as many parts as have room, where there are: one is copied ahead of its product.
  std::optional<Program> run() const {
    for (const bool computed : {false, true})
      for (Division d{.computed = computed}; const auto divided = divide_products(g_, d);
           d.parts *= 2)
        if (std::optional<Program> fits = run(*divided, d)) {
          d.parts *= 2;
          if (const auto twice = divide_products(g_, d))
            if (std::optional<Program> ahead = run(*twice, d)) return ahead;
          return fits;
        }
    return {};
  }

 private:
  std::optional<Program> run(const graph::Graph& divided, const Division& d) const {
    const std::string name = fmt::format("-k{}{}", d.parts, d.computed ? "-computed" : "");
    const Observer tell = [&](const PassRun& run, const Program& behind) {
      if (observer_) observer_({run.attempt + name, run.pass, run.ms}, behind);
    };
    try {
      Program l = Runner(divided, machine_, tell).run();
      l.remarks.push_back({{},
                           fmt::format("operands of products are copied by parts of K, up to {} "
                                       "one after the other: a block has no more shared memory",
                                       d.parts)});
      return l;
    } catch (const SharedMemoryError&) {
      return {};
    }
  }

  const graph::Graph& g_;
  const Machine& machine_;
  const Observer& observer_;
};

}  // namespace

Program run_passes(const graph::Graph& g, const Machine& machine, const Observer& observer) {
  try {
    return Runner(g, machine, observer).run();
  } catch (const SharedMemoryError&) {
    if (std::optional<Program> l = InParts(g, machine, observer).run()) return std::move(*l);
    throw;
  }
}

}  // namespace palladium::passes
