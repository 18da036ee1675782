// Loops whose text goes over the slots of a ring: iterations in whole groups, in whose text the
// slots are constants; those that are left follow one by one.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"

namespace palladium::expand {

// Iterations in whole groups, in whose text the slots are constants; those that are left follow in
// a loop over their slots.
void Expander::over_slots(const OverSlots& o, thread::For groups) {
  pin_declared(o.sums);
  const lowered::Ring& ring = l_.rings[o.ring];
  const std::int64_t slots = ring.slots;
  const thread::Facts first = e_.facts(o.low), end = e_.facts(o.high);
  const bool known = first.low == first.high && end.low == end.high;
  const std::int64_t trips =
      known ? std::max<std::int64_t>(0, cdiv(end.low - first.low, o.step)) : 0;
  if (ring.unrolled)
    slots_[o.ring].phase = declare_number("phase_of_ring", o.ring);
  else if (!known || trips % slots != 0)
    return over_slots_from_any(o, std::move(groups));
  const Slots outside = slots_[o.ring];
  if (!known) return over_groups_and_rest(o, std::move(groups));
  const std::int64_t left = trips % slots;
  groups.high = number(first.low + (trips - left) * o.step);
  const ExprId behind = groups.high;
  const bool any = trips >= slots;
  if (any) over_groups(o, std::move(groups), no_expr);
  if (left > 0) over_left(o, behind, left, any);
  if (ring.unrolled) return;
  slots_[o.ring] = outside;
  begins_unless_run(o);
}

// A ring that goes on where another loop left it: the groups begin with its first slot. Those that
// are left, behind the groups, have the text of those before, once more around.
void Expander::over_slots_from_any(const OverSlots& o, thread::For groups) {
  const std::int64_t slots = l_.rings[o.ring].slots;
  const ExprId at = slots_[o.ring].from;
  const ExprId steps =
      e_.as(i32, e_.choose(e_.plain(Operator::equal, at, e_.number(0, u32), bool_),
                           e_.number(0, u32), e_.sum(Affine(slots) + Affine::term(at, -1), u32)));
  const thread::Facts low = e_.facts(o.low), high = e_.facts(o.high);
  const std::int64_t most = low.high + (slots - 1) * o.step;
  const DType type = most <= INT32_MAX ? i32 : i64;
  const ExprId first = e_.sum(e_.affine(o.low) + Affine::term(steps, o.step), type);
  const ExprId aligned = b_.let_here(fmt::format("aligned{}", o.ring.number()),
                                     e_.as(i32, smaller_of(e_.as(type, o.high), first)),
                                     {.low = low.low, .high = std::min(high.high, most)});
  const ExprId left = declare_iteration("left", o, o.low);
  const ExprId until = declare_iteration("until", o, aligned);
  const Slots outside = slots_[o.ring];
  b_.open_loop(thread::While{});
  one_by_one(o, groups, left, until);
  pin(o.sums);
  b_.add(thread::Assign{left, until});
  groups.low = until;
  groups.high = end_of_groups(o);
  over_groups(o, groups, left);
  slots_[o.ring] = outside;
  pin(o.sums);
  b_.add(thread::BreakUnless{e_.plain(Operator::less, left, o.high, bool_), 0.5});
  b_.add(thread::Assign{until, o.high});
  b_.close();
  begins_unless_run(o);
}

// Behind the loop: whether no iteration was before, if that may be.
void Expander::begins_unless_run(const OverSlots& o) {
  slots_[o.ring].begins =
      e_.facts(o.low).high < e_.facts(o.high).low
          ? no_expr
          : e_.op(graph::Op::Not, bool_, {e_.plain(Operator::less, o.low, o.high, bool_)});
  follow(o.ring);
}

void Expander::one_by_one(const OverSlots& o, const thread::For& like, ExprId low, ExprId high) {
  const VariableId counter = e_.declare(e_[like.counter]);
  b_.open_loop(thread::For{.counter = counter,
                           .low = low,
                           .high = high,
                           .step = o.step,
                           .unroll = 1,
                           .trips = 0,
                           .body = {}});
  slots_[o.ring].begins = e_.plain(Operator::equal, e_.variable(counter), o.low, bool_);
  apart([&] {
    follow(o.ring);
    o.body(e_.variable(counter));
  });
  b_.close();
}

// A variable that is an iteration, or the one behind the last.
ExprId Expander::declare_iteration(const char* name, const OverSlots& o, ExprId first) {
  const thread::Facts low = e_.facts(first), end = e_.facts(o.high);
  const std::int64_t most = std::max(low.high, end.high + o.step - 1);
  const VariableId v =
      e_.declare({.name = fmt::format("{}{}", name, o.ring.number()),
                  .type = i32,
                  .facts = {.low = low.low, .high = std::min<std::int64_t>(INT32_MAX, most)}});
  b_.add(
      thread::Declare{.start = thread::Declare::Start::values, .variable = v, .values = {first}});
  return e_.variable(v);
}

// Before which a group has to begin.
ExprId Expander::end_of_groups(const OverSlots& o) {
  const std::int64_t beyond = (l_.rings[o.ring].slots - 1) * o.step;
  const bool fits = std::max(e_.facts(o.high).low, o.least) >= INT32_MIN + beyond;
  const ExprId whole = fits ? o.high : larger_of(o.high, number(INT32_MIN + beyond));
  return e_.sum(e_.affine(whole) + Affine(-beyond));
}

void Expander::over_groups_and_rest(const OverSlots& o, thread::For groups) {
  const ExprId left = declare_iteration("left", o, o.low);
  groups.high = end_of_groups(o);
  over_groups(o, std::move(groups), left);
  over_left(o, left, l_.rings[o.ring].slots - 1, true);
}

void Expander::over_groups(const OverSlots& o, thread::For groups, ExprId left) {
  Slots& slots = slots_[o.ring];
  const int count = l_.rings[o.ring].slots;
  const VariableId s = variable_of_slot(o.ring, count);
  const thread::Variable counter = e_[groups.counter];
  const ExprId first = e_.variable(groups.counter);
  const ExprId next =
      groups.next != no_expr ? groups.next : e_.sum(Affine::term(first) + Affine(groups.step));
  b_.open_loop(std::move(groups));
  slots.group = first;
  b_.open_loop(thread::For{
      .counter = s, .low = number(0), .high = number(count), .unroll = count, .body = {}});
  const VariableId v = e_.declare(
      {.name = fmt::format("now{}", o.ring.number()), .type = i32, .facts = counter.facts});
  b_.add(thread::Let{v, e_.sum(Affine::term(first) + Affine::term(slots.now, o.step))});
  // In the text of each slot but the first it is known that an iteration was before.
  slots.begins = e_.op(graph::Op::And, bool_,
                       {e_.plain(Operator::equal, slots.now, number(0), bool_),
                        e_.plain(Operator::equal, first, o.low, bool_)});
  apart([&] {
    follow(o.ring);
    o.body(e_.variable(v));
  });
  b_.close();
  slots.group = no_expr;
  b_.add(thread::Assign{slots.phase,
                        e_.plain(Operator::bit_xor, slots.phase, e_.number(1, u32), u32)});
  if (left != no_expr) b_.add(thread::Assign{left, next});
  b_.close();
}

// `most` iterations from `first` on that no group has; `beside`: there are groups, whose iterations
// are counted.
void Expander::over_left(const OverSlots& o, ExprId first, std::int64_t most, bool beside) {
  Slots& slots = slots_[o.ring];
  pin(o.sums);
  const bool known = e_[first].node == thread::Node::number;
  // A loop of no iterations may end anywhere before it begins.
  const thread::Facts begin = e_.facts(first), end = e_.facts(o.high);
  const bool fits = end.low - begin.high >= INT32_MIN && end.high - begin.low <= INT32_MAX;
  const DType type = fits ? i32 : i64;
  ExprId rest = no_expr;
  if (!known)
    rest = b_.let_here(fmt::format("rest{}", o.ring.number()),
                       e_.plain(Operator::sub, e_.as(type, o.high), e_.as(type, first), type));
  const VariableId s = variable_of_slot(o.ring, most);
  b_.open_loop(thread::For{.counter = s,
                           .low = number(0),
                           .high = number(most),
                           .unroll = 1,
                           .trips = beside ? 0 : -1,
                           .body = {}});
  const Affine steps = Affine::term(slots.now, o.step);
  if (!known)
    b_.add(thread::BreakUnless{e_.plain(Operator::less, e_.as(type, e_.sum(steps)), rest, bool_),
                               0.5});
  const VariableId v =
      e_.declare({.name = fmt::format("last{}", o.ring.number()),
                  .type = i32,
                  .facts = {.low = e_.facts(o.low).low, .high = e_.facts(o.high).high - 1}});
  b_.add(thread::Let{v, e_.sum(e_.affine(first) + steps)});
  slots.begins = e_.plain(Operator::equal, e_.variable(v), o.low, bool_);
  apart([&] {
    follow(o.ring);
    o.body(e_.variable(v));
  });
  b_.close();
}

VariableId Expander::variable_of_slot(RingId number, std::int64_t count) {
  const VariableId s = e_.declare({.name = fmt::format("slot{}", number.number()),
                                   .type = i32,
                                   .facts = {.low = 0, .high = count - 1}});
  slots_[number].from = slots_[number].now = e_.variable(s);
  return s;
}

}  // namespace palladium::expand
