// Copies by TMA that stand in no loop begin as early as they may: in front of the products, and of
// loops of such, that stand before them in their list, as far as shared memory has room for what is
// under way, and for a few slots of what those loops copy. So what is multiplied one behind the
// other is awaited once, and what is added to a sum is there when the sum is. Not in loops but
// over programs, where a room is filled again behind who read it in the iteration before.
//
// Precondition: choose_copies. Scalars that a copy needs, and whoever has its room before, stay in
// front of it.
#include <algorithm>
#include <limits>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/slots.hpp"

namespace palladium::passes {
namespace {

constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
constexpr std::size_t most_passed = 256;  // statements, of which each is compared with each
constexpr std::int64_t least_slots = 3;   // of a loop's ring

template <class... Kinds>
bool is_any(const Statement& s) {
  return (std::holds_alternative<Kinds>(s.what) || ...);
}

class Beginning {
 public:
  explicit Beginning(Program& l) : l_(l) {}

  void run() {
    for (Body& b : l_.bodies)
      for (Agent& a : b.agents) visit(a.statements);
  }

 private:
  void visit(Statements& list) {
    for (Statement& s : list)
      if (!repeats(s) || is_over_programs(s))
        for_each_body(s, [&](Statements& body) { visit(body); });
    if (std::ranges::none_of(list, [&](const Statement& s) { return is_copy(s); })) return;
    const Statements before = list;
    for (const std::size_t passed : {all, std::size_t{4}, std::size_t{2}, std::size_t{1}}) {
      if (!begin(list, passed) || has_room()) return;
      list = before;
    }
  }

  // Where programs wait for each other once, at the end of each, anyway.
  static bool is_over_programs(const Statement& s) {
    const GridLoop* const loop = std::get_if<GridLoop>(&s.what);
    return loop != nullptr && loop->axis == programs_axis;
  }

  // Also for slots of what loops copy, which are not there yet.
  bool has_room() const {
    std::int64_t slot = 0;
    for (const Body& b : l_.bodies)
      for (const Agent& a : b.agents) slot += copied_by_loops(a.statements, false);
    const Checked taken = placed_bytes(l_) + slot * (least_slots - 1);
    return taken.within(0, l_.machine.max_shared_bytes) || (slot == 0 && fits_shared_memory(l_));
  }

  std::int64_t copied_by_loops(const Statements& list, bool repeated) const {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](const Statements& body) {
        bytes +=
            copied_by_loops(body, repeated || (repeats(list[i]) && !is_over_programs(list[i])));
      });
      if (!repeated || !begins_copies(list, i)) continue;
      for (const StorageId filled : filled_by(l_, copies_at(list, i)))
        bytes += shared_bytes(l_.storages[filled]).value_or(0);
    }
    return bytes;
  }

  // Whether some are begun earlier, each in front of so many products at most.
  bool begin(Statements& list, std::size_t most) {
    bool moved = false;
    for (std::size_t i = 0, end = 0; i < list.size(); i = end) {
      end = is_copy(list[i]) ? end_of_copies(list, i) : i + 1;
      if (!is_copy(list[i]) && !is_number(list[i])) continue;
      const std::size_t to = earliest(list, i, end, most);
      moved |= to < i && is_copy(list[i]);
      const auto at = [&](std::size_t n) { return list.begin() + static_cast<std::ptrdiff_t>(n); };
      std::rotate(at(to), at(i), at(end));
    }
    return moved;
  }

  // Where the copies from `first` to `end` may stand.
  std::size_t earliest(const Statements& list, std::size_t first, std::size_t end,
                       std::size_t most) const {
    const std::size_t least = first < most_passed ? 0 : first - most_passed;
    std::size_t at = first, found = first;
    for (std::size_t products = 0; at > least && may_pass(list, first, end, list[at - 1]); --at) {
      if (!multiplies(list[at - 1])) continue;
      if (++products > most) break;
      found = at - 1;
    }
    return found;
  }

  bool may_pass(const Statements& list, std::size_t first, std::size_t end,
                const Statement& s) const {
    if (!computes(s)) return false;
    for (std::size_t i = first; i < end; ++i)
      if (lowered::depend(l_, s, list[i])) return false;
    return true;
  }

  // Or repeats what does, for which it copies.
  bool computes(const Statement& s, bool inside = false) const {
    const bool alone = is_any<Dot, LoopNest, Relayout, Scalar>(s),
               around = is_any<Loop, GridLoop>(s);
    const bool of_loop = is_any<EnterWindow, When>(s) || is_copy(s);
    if (!(alone || around || (inside && of_loop)) || effects(l_, s).syncs) return false;
    bool all_do = true;
    for_each_body(s, [&](const Statements& body) {
      for (const Statement& inner : body) all_do = all_do && computes(inner, true);
    });
    return all_do;
  }

  static bool multiplies(const Statement& s) {
    bool found = std::holds_alternative<Dot>(s.what);
    for_each_body(s, [&](const Statements& body) {
      for (const Statement& inner : body) found = found || multiplies(inner);
    });
    return found;
  }

  // Which copies may need, computed of others.
  bool is_number(const Statement& s) const {
    const Scalar* const x = std::get_if<Scalar>(&s.what);
    return x != nullptr && x->redirects.empty() &&
           !any_effect(l_, s, [&](const Effect& e) { return e.window || !is_scalar(e.storage); });
  }
  bool is_scalar(StorageId s) const { return !s || l_.storages[s].is_scalar(); }

  // Of an array that nobody writes, for this block alone.
  bool is_copy(const Statement& s) const {
    const Copy* const c = std::get_if<Copy>(&s.what);
    if (c == nullptr || !completed_by(s) || !c->to.storage || fills_others(*c)) return false;
    const WindowId from = window_copied(l_, std::span(&s, 1));
    return from && l_.windows[from].read_only;
  }

  Program& l_;
};

}  // namespace

void begin_copies(Program& l) {
  if (l.machine.has_tma()) Beginning(l).run();
}

}  // namespace palladium::passes
