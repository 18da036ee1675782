// Copies for turns of loops that are to come: each goes to a slot of a ring of shared memory, from
// which its turn reads.
#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"

namespace palladium::expand {

ExprId Expander::slot(int storage) const {
  const int ring = l_.storages[storage].ring;
  return ring < 0 ? no_expr : slots_[static_cast<std::size_t>(ring)].now;
}

void Expander::expand_one(const passes::Await& a) {
  if (a.closes) b_.add(thread::Call{.function = Row::cp_async_commit});
  b_.add(thread::Call{.function = Row::cp_async_wait, .templates = {std::int64_t{a.pending}}});
}

void Expander::expand_one(const passes::Prefetch& p) {
  Slots& slots = slots_[static_cast<std::size_t>(p.ring)];
  const ExprId none = e_.literal(u32, 0);
  if (p.first) {
    const auto declare = [&](const char* name) {
      const VariableId v = e_.declare({.name = fmt::format("{}{}", name, p.ring), .type = u32});
      b_.add(thread::Declare{
          .start = thread::Declare::Start::values, .variable = v, .values = {none}});
      return v;
    };
    slots = {.from = declare("read"), .to = declare("fill"), .now = no_expr};
    const VariableId s = e_.declare({.name = fmt::format("early{}", p.ring),
                                     .type = i32,
                                     .facts = {.low = 0, .high = p.ahead - 1}});
    b_.open_loop(thread::For{
        .counter = s, .low = number(0), .high = number(p.ahead), .unroll = 1, .body = {}});
    prefetch(p, e_.variable(s), 0);
    const std::int64_t bytes = l_.rings[static_cast<std::size_t>(p.ring)].slot_bytes;
    b_.add(thread::Assign{e_.variable(slots.to),
                          e_.sum(Affine::term(e_.variable(slots.to)) + Affine(bytes), u32)});
    b_.close();
  } else {
    const ExprId counter =
        p.axis >= 0 ? program_id(p.axis)
                    : scalar_storage(
                          l_.storage_of[index(g_[graph::LoopView::of(g_[p.loop]).body].params[0])]);
    prefetch(p, counter, p.ahead);
  }
  slots.now = e_.variable(slots.from);
}

// For the turn that is `ahead` of the one that `counter` numbers: of a loop over indices in the
// loop by its index, before it by 0, 1, ...
void Expander::prefetch(const passes::Prefetch& p, ExprId counter, std::int64_t ahead) {
  std::int64_t step = 1;
  ExprId high = no_expr;
  Affine turn = Affine::term(counter);
  if (p.axis >= 0) {
    high = grid_size(p.axis);
  } else {
    const graph::LoopView loop = graph::LoopView::of(g_[p.loop]);
    step = loop.step;
    high = scalar(loop.high);
    if (p.first) turn = turn * step + e_.affine(scalar(loop.low));
  }
  turn = turn + Affine(ahead * step);
  // Behind the last turns there may be none that an i32 numbers.
  const thread::Facts known = e_.facts(turn);
  const DType type = known.high <= INT32_MAX && known.low >= INT32_MIN ? i32 : i64;
  b_.open(thread::If{
      .condition = e_.plain(Operator::less, e_.sum(turn, type), e_.as(type, high), bool_),
      .body = {}});
  const VariableId v =
      e_.declare({.name = fmt::format("turn{}", p.ring),
                  .type = i32,
                  .facts = {.multiple = known.multiple,
                            .low = std::max<std::int64_t>(known.low, INT32_MIN),
                            .high = std::min(known.high, e_.facts(high).high - 1)}});
  b_.add(thread::Let{v, e_.as(i32, e_.sum(turn, type))});
  expand_turn(p, e_.variable(v));
  b_.close();
  b_.add(thread::Call{.function = Row::cp_async_commit});
}

// What is known of this turn is not what is known of that one: its scalars are others.
void Expander::expand_turn(const passes::Prefetch& p, ExprId turn) {
  Slots& slots = slots_[static_cast<std::size_t>(p.ring)];
  slots.now = e_.variable(slots.to);
  std::vector<int> own;
  for (const passes::Statement& s : p.body)
    if (const auto* scalar = std::get_if<passes::Scalar>(&s.what)) own.push_back(scalar->storage);
  int index_storage = -1;
  if (p.loop != graph::no_value)
    index_storage = l_.storage_of[index(g_[graph::LoopView::of(g_[p.loop]).body].params[0])];
  const std::vector<VariableId> storages = storages_;
  const std::vector<bool> declared = declared_, changing = mutable_;
  for (const int s : own) {
    const auto at = static_cast<std::size_t>(s);
    storages_[at] = thread::no_variable;
    declared_[at] = mutable_[at] = false;
  }
  const std::vector<passes::BlockNames> windows = windows_;
  ExprId program = no_expr;
  if (p.axis >= 0)
    program = std::exchange(program_ids_[static_cast<std::size_t>(p.axis)], turn);
  else
    storages_[static_cast<std::size_t>(index_storage)] = e_[turn].variable;
  expand_list(p.body);
  if (p.axis >= 0) program_ids_[static_cast<std::size_t>(p.axis)] = program;
  storages_ = storages;
  declared_ = declared;
  mutable_ = changing;
  windows_ = windows;
}

void Expander::expand_one(const passes::Turn& t) {
  const passes::Ring& ring = l_.rings[static_cast<std::size_t>(t.ring)];
  const Slots& slots = slots_[static_cast<std::size_t>(t.ring)];
  const ExprId from = e_.variable(slots.from);
  const std::int64_t last = (ring.slots - 1) * ring.slot_bytes;
  b_.add(thread::Assign{e_.variable(slots.to), from});
  b_.add(thread::Assign{
      from,
      e_.choose(e_.plain(Operator::equal, from, e_.number(last, u32), bool_), e_.number(0, u32),
                e_.sum(Affine::term(from) + Affine(ring.slot_bytes), u32))});
}

}  // namespace palladium::expand
