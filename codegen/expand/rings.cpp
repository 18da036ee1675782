// Copies for iterations of loops that are to come: each goes to a slot of a ring of shared memory,
// from which its iteration reads.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::expand {

namespace {

// Slots that threads alone copy to are counted in bytes, others by their number.
bool counts_bytes(const lowered::Ring& r) { return r.copied && !r.fetched; }

}  // namespace

Affine Expander::slot(StorageId storage, std::int64_t unit, int back) {
  const RingId in = l_.storages[storage].ring();
  if (!in) return {};
  const lowered::Ring& ring = l_.rings[in];
  const ExprId now = back > 0 ? slot_before(in, back) : slots_[in].now;
  if (!counts_bytes(ring)) return Affine::term(now, ring.slot_bytes / unit);
  return Affine::term(unit == 1 ? now : e_.plain(Operator::div, now, e_.number(unit, u32), u32));
}

ExprId Expander::declare_number(const std::string& name, RingId ring) {
  const VariableId v = e_.declare({.name = fmt::format("{}{}", name, ring.number()), .type = u32});
  b_.add(thread::Declare{
      .start = thread::Declare::Start::values, .variable = v, .values = {e_.literal(u32, 0)}});
  return e_.variable(v);
}

// Whose loop begins anew goes on where it was: barriers remember.
void Expander::begin_rings() {
  find_turns();
  for (const RingId r : l_.rings.ids()) {
    const lowered::Ring& ring = l_.rings[r];
    if (counts_bytes(ring) || ring.unrolled || ring.follows) continue;
    if (!ring.fetched) {
      slots_[r] = {.from = declare_number("computed", r)};
      slots_[r].now = slots_[r].from;
      continue;
    }
    if (turns_with_[r] != r) {
      slots_[r] = slots_[turns_with_[r]];
      continue;
    }
    slots_[r].from = slots_[r].now = declare_number("read", r);
    if (!ring.empty_barriers) slots_[r].to = declare_number("fill", r);
    slots_[r].phase = declare_number("phase_of_ring", r);
  }
}

// What is loaded for the first iteration, if there is one.
void Expander::lead_alone(const lowered::Lead& e) {
  for (const StorageId s : e.kept) declare_storage(s);
  slots_alone_.lead = number(0);
  expand_list(e.body);
  slots_alone_.lead = no_expr;
}

void Expander::expand_one(const lowered::Lead& e) {
  if (!e.ring) return lead_alone(e);
  const lowered::Ring& ring = l_.rings[e.ring];
  Slots& slots = slots_[e.ring];
  if (!ring.fetched)
    slots = {.from = declare_number("read", e.ring), .to = declare_number("fill", e.ring)};
  else if (!ring.unrolled)
    b_.add(thread::Assign{slots.to, slots.from});
  const VariableId s = e_.declare({.name = fmt::format("early{}", e.ring.number()),
                                   .type = i32,
                                   .facts = {.low = 0, .high = e.iterations - 1}});
  if (ring.unrolled) slots.to = e_.variable(s);
  b_.open_loop(thread::For{
      .counter = s, .low = number(0), .high = number(e.iterations), .unroll = 1, .body = {}});
  slots.lead = e_.variable(s);
  leading_ = slots.leads = e.iterations;
  expand_list(e.body);
  slots.lead = no_expr;
  if (!ring.unrolled)
    b_.add(thread::Assign{
        slots.to, ring.fetched ? next_slot(e.ring, slots.to)
                               : e_.sum(Affine::term(slots.to) + Affine(ring.slot_bytes), u32)});
  b_.close();
  slots.now = slots.from;
}

void Expander::expand_rotated(const lowered::Loop& l) {
  const graph::LoopView loop = graph::LoopView::of(g_[l.inst]);
  const StorageId s = l_.storage_of[g_[loop.body].params[0]];
  const ExprId low = scalar(loop.low), high = scalar(loop.high);
  const VariableId first = storage(s);
  storages_[s] = thread::no_variable;
  const VariableId counter = storage(s);
  for (const StorageId shared : l.shared) declare_storage(shared);
  if (e_.facts(low).high < e_.facts(high).low)
    b_.open(thread::Block{});
  else
    b_.open(thread::If{
        .condition = e_.plain(Operator::less, low, high, bool_), .body = {}, .uniform = true});
  e_[first].facts = e_.facts(low);
  expand_rotated({.parts = rotation_of(l),
                  .known = l.known,
                  .low = low,
                  .others = {.counter = counter,
                             .low = behind(low, loop.step),
                             .high = high,
                             .step = loop.step,
                             .next = advanced(counter, loop.step, loop.high),
                             .unroll = std::max<std::int64_t>(1, loop.unroll),
                             .body = {}},
                  .limit = loop.high},
                 first, [&](VariableId number) { storages_[s] = number; });
  b_.close();
}

void Expander::expand_rotated(const lowered::GridLoop& l) {
  const auto number_of = [&] {
    return e_.declare({.name = fmt::format("p{}", l.axis), .type = i32});
  };
  const VariableId first = number_of(), counter = number_of();
  e_[first].facts = {.low = 0, .high = 0};
  for (const StorageId shared : l.shared) declare_storage(shared);
  if (l_.end_of(l.axis) == graph::no_value)
    b_.open(thread::Block{});
  else
    b_.open(thread::If{.condition = e_.plain(Operator::less, number(0), loop_end(l.axis), bool_),
                       .body = {},
                       .uniform = true});
  expand_rotated({.parts = rotation_of(l),
                  .known = l.known,
                  .low = number(0),
                  .others = {.counter = counter,
                             .low = number(1),
                             .high = loop_end(l.axis),
                             .unroll = 1,
                             .body = {}}},
                 first, [&](VariableId number) {
                   program_ids_[static_cast<std::size_t>(l.axis)] = e_.variable(number);
                 });
  b_.close();
}

// The first iteration, the others, and what is left behind the last.
void Expander::expand_rotated(Rotated loop, VariableId first,
                              const std::function<void(VariableId number)>& enter) {
  b_.open(thread::Block{});
  apart([&] {
    enter(first);
    b_.add(thread::Let{first, loop.low});
    expand_list(*loop.parts.prologue);
  });
  b_.close();
  const VariableId counter = loop.others.counter;
  const ExprId second = loop.others.low, high = loop.others.high;
  e_[counter].facts = thread::facts_of_counter(e_.facts(second), e_.facts(high), loop.others.step);
  over_parts(loop.known, std::move(loop.others), loop.limit, [&](thread::For part) {
    enter(part.counter);
    for (const RingId r : l_.rings.ids()) {
      slots_[r].begins = e_.plain(Operator::equal, e_.variable(part.counter), second, bool_);
      slots_[r].first_steps = lowered::steps(*loop.parts.prologue, r);
    }
    b_.open_loop(std::move(part));
    apart([&] { expand_list(*loop.parts.body); });
    b_.close();
  });
  for (Slots& slots : slots_)
    slots.begins = e_.op(graph::Op::Not, bool_, {e_.plain(Operator::less, second, high, bool_)});
  expand_list(*loop.parts.epilogue);
  for (Slots& slots : slots_) slots.first_steps = 0;
}

// Of a loop over indices in the loop by its index, before it by 0, 1, ...
void Expander::expand_one(const lowered::Ahead& e) {
  static const lowered::Ring alone;
  const lowered::Ring& ring = e.ring ? l_.rings[e.ring] : alone;
  Slots& slots = e.ring ? slots_[e.ring] : slots_alone_;
  const bool leads = slots.lead != no_expr;
  const ExprId counter =
      leads ? slots.lead
      : e.axis >= 0
          ? program_id(e.axis)
          : scalar_storage(l_.storage_of[g_[graph::LoopView::of(g_[e.loop]).body].params[0]]);
  if (!leads && ring.unrolled)
    slots.to = e_.plain(Operator::rem, e_.sum(Affine::term(slots.from) + Affine(e.iterations)),
                        number(ring.slots));
  std::int64_t step = 1;
  ExprId high = no_expr;
  Affine iteration = Affine::term(counter);
  if (e.axis >= 0) {
    high = loop_end(e.axis);
  } else {
    const graph::LoopView loop = graph::LoopView::of(g_[e.loop]);
    step = loop.step;
    high = scalar(loop.high);
    if (leads) iteration = iteration * step + e_.affine(scalar(loop.low));
  }
  iteration = iteration + Affine(e.iterations * step);
  // Behind the last iterations there may be none that an i32 numbers.
  const thread::Facts known = e_.facts(iteration);
  const DType type = known.high <= INT32_MAX && known.low >= INT32_MIN ? i32 : i64;
  // How many of the iterations before the loop, or in it, have one to fill.
  const auto trips = static_cast<double>(ring.trips);
  const double share =
      leads ? std::min(1.0, trips / leading_) : std::max(0.0, (trips - e.iterations) / trips);
  // The size of a grid is not negative: less than that is an i32.
  const ExprId in_loop =
      type == i64 && e.axis >= 0
          ? e_.plain(Operator::less, counter, e_.sum(e_.affine(high) + Affine(-e.iterations)),
                     bool_)
          : e_.plain(Operator::less, e_.sum(iteration, type), e_.as(type, high), bool_);
  b_.open(thread::If{.condition = in_loop, .body = {}, .share = share});
  const VariableId v =
      e_.declare({.name = e.ring ? fmt::format("turn{}", e.ring.number()) : "next",
                  .type = i32,
                  .facts = {.multiple = known.multiple,
                            .low = std::max<std::int64_t>(known.low, INT32_MIN),
                            .high = std::min(known.high, e_.facts(high).high - 1)}});
  const bool fits = type == i32 || e.axis >= 0;
  b_.add(thread::Let{v, fits ? e_.sum(iteration) : e_.as(i32, e_.sum(iteration, type))});
  expand_iteration(e, e_.variable(v));
  b_.close();
  slots.now = slots.from;
}

// What is known of this iteration is not what is known of that one: its scalars are others.
void Expander::expand_iteration(const lowered::Ahead& e, ExprId iteration) {
  Slots& slots = e.ring ? slots_[e.ring] : slots_alone_;
  slots.now = slots.to;
  std::vector<StorageId> own;
  for (const lowered::Statement& s : e.body)
    if (const auto* scalar = std::get_if<lowered::Scalar>(&s.what))
      if (std::ranges::count(e.kept, scalar->storage) == 0) own.push_back(scalar->storage);
  StorageId index_storage = {};
  if (e.loop != graph::no_value)
    index_storage = l_.storage_of[g_[graph::LoopView::of(g_[e.loop]).body].params[0]];
  const auto known = std::exchange(known_, {});
  apart([&] {
    for (const StorageId s : own) {
      storages_[s] = thread::no_variable;
      declared_[s] = mutable_[s] = false;
    }
    if (e.axis >= 0)
      program_ids_[static_cast<std::size_t>(e.axis)] = iteration;
    else
      storages_[index_storage] = e_[iteration].variable;
    expand_list(e.body);
  });
  known_ = known;
}

// Rings whose slots have their number of those of this one.
void Expander::follow(RingId number) {
  const ExprId slot = slots_[number].now;
  for (const RingId r : l_.rings.ids()) {
    const lowered::Ring& ring = l_.rings[r];
    if (ring.follows != number) continue;
    slots_[r] = slots_[number];
    const DType type = e_[slot].type;
    if (ring.slots != l_.rings[number].slots)
      slots_[r].now = e_.plain(Operator::rem, slot, e_.number(ring.slots, type), type);
  }
}

ExprId Expander::next_slot(RingId number, ExprId slot) {
  const lowered::Ring& ring = l_.rings[number];
  const std::int64_t step = counts_bytes(ring) ? ring.slot_bytes : 1;
  return e_.choose(e_.plain(Operator::equal, slot, e_.number((ring.slots - 1) * step, u32), bool_),
                   e_.number(0, u32), e_.sum(Affine::term(slot) + Affine(step), u32));
}

// To the slot that is read next, or by a producer filled.
void Expander::expand_one(const lowered::Advance& a) {
  const lowered::Ring& ring = l_.rings[a.ring];
  Slots& slots = slots_[a.ring];
  slots.begins = no_expr;  // what stands behind this has an iteration, or a step, before it
  const bool unrolled = l_.rings[turns_with_[a.ring]].unrolled;
  if ((unrolled || slots.group != no_expr) && !slots.fills) return;
  if (ring.follows && !ring.fetched) return;
  if (ring.fetched && last_to_turn_[turns_with_[a.ring]] != a.ring) return;
  const Slots& all = slots_[turns_with_[a.ring]];
  const ExprId left = all.late != no_expr ? all.late : slots.from;
  if (all.before != no_expr)
    b_.add(thread::Assign{all.before,
                          e_.sum(Affine::term(smem_) + Affine::term(left, barrier_bytes), u32)});
  if (all.late != no_expr) b_.add(thread::Assign{all.late, slots.from});
  if (const auto lag = lags_.find(a.ring); lag != lags_.end()) {
    const Slots& other = slots_[lag->second];
    b_.add(thread::Assign{slots.from, other.from});
    return b_.add(thread::Assign{slots.phase, other.phase});
  }
  const bool fills_last = slots.leads == 0 || slots.leads == ring.slots - 1;  // what was read
  if (!ring.empty_barriers && slots.to != no_expr)
    b_.add(thread::Assign{slots.to, fills_last ? slots.from : next_slot(a.ring, slots.to)});
  b_.add(thread::Assign{slots.from, next_slot(a.ring, slots.from)});
  if (!ring.fetched) return;
  const ExprId begins = e_.plain(Operator::equal, slots.from, e_.number(0, u32), bool_);
  const ExprId other = e_.plain(Operator::bit_xor, slots.phase, e_.number(1, u32), u32);
  b_.add(thread::Assign{slots.phase, e_.choose(begins, other, slots.phase)});
}

// ---- who fills and who frees

namespace {

bool fills_ring(const lowered::Program& l, const lowered::Statement& s, RingId ring) {
  return any_effect(l, s, [&](const lowered::Effect& e) {
    return e.access == lowered::Effect::Access::write && e.storage &&
           l.storages[e.storage].ring() == ring;
  });
}

}  // namespace

ExprId Expander::slot_before(RingId number, int back) {
  const lowered::Ring& ring = l_.rings[number];
  const ExprId late = slots_[turns_with_[number]].late;
  if (late != no_expr && back == 1) return late;
  const ExprId slot = late != no_expr ? late : slots_[number].from;
  const DType type = e_[slot].type;
  return e_.choose(e_.plain(Operator::equal, slot, e_.number(0, type), bool_),
                   e_.number(ring.slots - 1, type), e_.sum(Affine::term(slot) + Affine(-1), type));
}

// One thread of each warpgroup tells for all of it: its product is done when the thread knows it.
// What threads have read each warp tells for itself.
// What a user counts are Pallas threads, whatever they are made of.
void Expander::expand_one(const lowered::Arrive& a) {
  if (a.bytes > 0)
    return b_.add(thread::Call{
        .function = Row::mbarrier_arrive_expect_tx,
        .args = {barrier_address(a.barrier, slot_of(a.barrier, a.slot)), number(a.bytes)}});
  // Of those that tell for the same, one.
  const bool by_warps = l_.barriers[a.barrier].by_warps || in_warps_;
  const bool of_each = is_wide() && !l_.barriers[a.barrier].by_hand;
  if (by_warps) b_.add(thread::Sync{.whole_warps = true});
  const ExprId among = by_warps ? lane()
                       : of_each
                           ? e_.plain(Operator::rem, thread_, number(graph::warpgroup_threads))
                           : thread_;
  const RingId ring = l_.barriers[a.barrier].ring;
  const ExprId slot = a.back > 0 ? slot_before(ring, a.back) : slot_of(a.barrier, a.slot);
  if (!l_.barriers[a.barrier].along.empty()) return arrive_along(a, slot, among);
  std::vector<ExprId> conditions;
  if (by_warps || !is_one_thread_)
    conditions.push_back(b_.let_once(by_warps ? "tells_for_warp" : "tells", false,
                                     e_.plain(Operator::equal, among, number(0), bool_)));
  if (a.back > 0 && a.back > slots_[ring].first_steps && slots_[ring].begins != no_expr)
    conditions.push_back(e_.op(graph::Op::Not, bool_, {slots_[ring].begins}));
  const ExprId condition = e_.all(std::move(conditions));
  if (condition != no_expr) b_.open(thread::If{condition, {}});
  const bool is_left_last =
      a.back > 0 && a.back == (slots_[turns_with_[ring]].late != no_expr ? 2 : 1);
  const ExprId before = is_left_last ? slots_[turns_with_[ring]].before : no_expr;
  const ExprId own = before == no_expr ? barrier_address(a.barrier, slot)
                                       : e_.sum(shared_place(l_.barriers[a.barrier].storage) +
                                                    Affine::term(smem_, -1) + Affine::term(before),
                                                u32);
  const Row remote = cluster_scopes_.contains(a.barrier) ? Row::mbarrier_arrive_cluster
                                                         : Row::mbarrier_arrive_remote;
  const bool is_own = a.block == graph::no_value;
  b_.add(thread::Call{.function = is_own ? Row::mbarrier_arrive : remote,
                      .args = {is_own ? own : in_block(own, a.block), number(1)}});
  if (condition != no_expr) b_.close();
}

// Who fills counts for itself: it is ahead of who reads.
void Expander::begin_rings_filled(const lowered::Statement& s) {
  for (const RingId r : l_.rings.ids()) {
    if (!l_.rings[r].empty_barriers || slots_[r].fills || !fills_ring(l_, s, r)) continue;
    if (const RingId first = turns_with_[r]; first != r) {
      slots_[r] = slots_[first];
      continue;
    }
    slots_[r].from = slots_[r].now = declare_number("fill", r);
    slots_[r].phase = declare_number("phase_of_fill", r);
    slots_[r].fills = true;
  }
}

}  // namespace palladium::expand
