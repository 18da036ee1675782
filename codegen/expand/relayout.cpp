// Values that change their layout: by renaming registers, by shuffles, through shared memory.
#include "codegen/expand/expander.hpp"

namespace palladium::expand {

using layout::Move;
using lowered::Relayout;
using lowered::Storage;
using thread::Block;
using thread::Declare;
using thread::If;

namespace {

/// Whether (t & mask) == value; no_expr for all threads.
ExprId test_of(Exprs& e, ExprId t, const layout::ThreadTest& x) {
  if (x.mask == 0) return no_expr;
  return e.plain(Operator::equal, e.bits(t, x.mask, 0), e.number(x.value), bool_);
}

/// Where registers that keep their order begin.
std::optional<std::int64_t> first_of_neighbours(const layout::Plan& plan) {
  if (plan.kind == Move::Noop) return 0;
  for (std::size_t k = 0; k < plan.sources.size(); ++k)
    if (plan.sources[k] < 0 || plan.sources[k] != plan.sources[0] + static_cast<int>(k)) return {};
  return plan.sources.empty() ? std::nullopt : std::optional<std::int64_t>(plan.sources[0]);
}

}  // namespace

void Expander::expand_one(const Relayout& r) {
  b_.add(thread::Comment{layout::describe(r.plan)});
  declare_storage(r.to);
  switch (r.plan.kind) {
  case Move::Noop:
  case Move::Rename: expand_rename(r); break;
  case Move::Shuffle: expand_shuffles(r); break;
  case Move::Shared: expand_shared_moves(r); break;
  case Move::Memory: expand_memory_move(r); break;
  }
  mark_stored(r.to);
}

void Expander::expand_rename(const Relayout& r) {
  const VariableId from = storage(r.from), to = storage(r.to);
  if (const auto first = first_of_neighbours(r.plan)) {
    const ExprId k = open_registers("k", l_.storages[r.to].registers().layout.registers(), true);
    b_.add(thread::Assign{e_.element(to, k), e_.element(from, e_.sum(Affine::term(k) + *first))});
    b_.close();
    return;
  }
  for (std::size_t k = 0; k < r.plan.sources.size(); ++k)
    if (r.plan.sources[k] >= 0)
      b_.add(thread::Assign{e_.element(to, number(static_cast<std::int64_t>(k))),
                            e_.element(from, number(r.plan.sources[k]))});
}

// ---- shuffles

// Of `count` elements, `pack` to a word.
void Expander::select(const layout::Select& x, VariableId words, std::int64_t count, int pack,
                      ExprId lane) {
  b_.open(Block{});
  const VariableId y = e_.declare({.name = "y",
                                   .form = thread::Form::array,
                                   .type = e_[words].type,
                                   .count = count,
                                   .facts = {.depends = thread::on_thread}});
  b_.add(Declare{.variable = y});
  const ExprId k = open_registers("k", count, true);
  const ExprId odd =
      e_.plain(Operator::differs, e_.bits(lane, 1 << x.lane_bit, x.lane_bit), number(0), bool_);
  const ExprId flipped = e_.plain(Operator::bit_xor, k, number(std::int64_t{x.flip} * pack));
  b_.add(thread::Assign{e_.element(y, k),
                        e_.choose(odd, e_.element(words, flipped), e_.element(words, k))});
  b_.close();
  const ExprId back = open_registers("k", count, true);
  b_.add(thread::Assign{e_.element(words, back), e_.element(y, back)});
  b_.close();
  b_.close();
}

// Words of `pack` elements are permuted in a thread, exchanged between lanes, permuted again.
void Expander::expand_shuffles(const Relayout& r) {
  const layout::Shuffles& s = r.plan.shuffle;
  const VariableId from = storage(r.from), to = storage(r.to);
  const DType type = l_.storages[r.to].dtype;
  b_.open(Block{});
  const ExprId lane = this->lane();
  const ExprId source = s.by_xor ? no_expr : b_.let_here("source", u32, image(lane, s.source_lane));
  const std::int64_t in = s.words_in * s.pack, out = s.words_out * s.pack;
  const auto words = [&](const char* name, std::int64_t count) {
    const VariableId v = e_.declare({.name = name,
                                     .form = thread::Form::array,
                                     .type = type,
                                     .count = count,
                                     .facts = {.depends = thread::on_thread}});
    b_.add(Declare{.start = Declare::Start::zeros, .variable = v});
    return v;
  };
  const auto at = [&](VariableId v, std::size_t k) {
    return e_.element(v, number(static_cast<std::int64_t>(k)));
  };
  for (const layout::ShufflePass& p : s.passes) {
    b_.open(Block{});
    const VariableId x = words("x", in), z = words("z", out);
    for (std::size_t k = 0; k < p.in.size(); ++k)
      if (p.in[k] >= 0)
        b_.add(thread::Assign{at(x, k), at(from, static_cast<std::size_t>(p.in[k]))});
    for (const layout::Select& select : s.before) this->select(select, x, in, s.pack, lane);
    for (const layout::Round& round : p.rounds)
      for (int e = 0; e < s.pack; ++e) {
        ExprId word = at(x, static_cast<std::size_t>(round.from * s.pack + e));
        if (!s.by_xor)
          word = e_.call(Row::shuffle_idx, type,
                         {word, e_.plain(Operator::bit_xor, source, number(round.lane_flip), u32)});
        else if (round.lane_flip != 0)
          word = e_.call(Row::shuffle_xor, type, {word, number(round.lane_flip)});
        b_.add(thread::Assign{at(z, static_cast<std::size_t>(round.to * s.pack + e)), word});
      }
    for (const layout::Select& select : s.after) this->select(select, z, out, s.pack, lane);
    for (std::size_t k = 0; k < p.out.size(); ++k)
      if (p.out[k] >= 0)
        b_.add(thread::Assign{at(to, static_cast<std::size_t>(p.out[k])), at(z, k)});
    b_.close();
  }
  b_.close();
}

// ---- through shared memory, linear

void Expander::move_through_shared(const Relayout& r, const layout::SharedAccess& a, bool store,
                                   ExprId offset, ExprId test) {
  const layout::SharedSide& side = store ? r.plan.shared.store : r.plan.shared.load;
  const DType type = l_.storages[r.to].dtype;
  const VariableId w = e_.declare({.name = "w",
                                   .form = thread::Form::array,
                                   .type = type,
                                   .count = static_cast<std::int64_t>(a.registers.size()),
                                   .facts = {.depends = thread::on_thread}});
  if (store || test == no_expr)
    b_.open(Block{.body = {}, .short_form = true});
  else
    b_.open(If{test, {}, true});
  if (store) {
    Declare words{.start = Declare::Start::values, .variable = w};
    for (const int k : a.registers)
      words.values.push_back(k < 0 ? e_.literal(type, 0) : e_.element(storage(r.from), number(k)));
    b_.add(std::move(words));
    b_.add(thread::Store{{.function = Row::store_shared,
                          .width = side.vector,
                          .registers = e_.address(w),
                          .place = {.base = offset, .type = type, .shared = true},
                          .test = test}});
  } else {
    b_.add(Declare{.variable = w});
    if (side.mode == layout::SharedMode::Plain) {
      b_.add(thread::Load{{.function = a.padded ? Row::load_shared_padded : Row::load_shared,
                           .width = side.vector,
                           .registers = e_.address(w),
                           .place = {.base = offset, .type = type, .shared = true}}});
    } else {
      static constexpr Row plain[] = {Row::ldmatrix_x1, Row::ldmatrix_x2, Row::ldmatrix_x4};
      static constexpr Row transposed[] = {Row::ldmatrix_x1_trans, Row::ldmatrix_x2_trans,
                                           Row::ldmatrix_x4_trans};
      const std::size_t matrices = a.registers.size() / 2, which = matrices == 4 ? 2 : matrices - 1;
      const bool plainly = side.mode == layout::SharedMode::Matrix;
      b_.add(thread::Call{.function = plainly ? plain[which] : transposed[which],
                          .args = {e_.address(w), offset}});
    }
    for (std::size_t e = 0; e < a.registers.size(); ++e)
      if (a.registers[e] >= 0)
        b_.add(thread::Assign{e_.element(storage(r.to), number(a.registers[e])),
                              e_.element(w, number(static_cast<std::int64_t>(e)))});
  }
  b_.close();
}

void Expander::expand_shared_moves(const Relayout& r) {
  const layout::SharedMoves& m = r.plan.shared;
  const auto barrier = [&] {
    if (r.plan.warp_barrier)
      b_.add(thread::Sync{.whole_warps = true});
    else
      sync();
  };
  b_.open(Block{});
  const ExprId scratch = b_.let_here("scratch", shared_address(r.scratch));
  const ExprId st = b_.let_here("st", u32, image(thread_, m.store.thread_offset));
  const ExprId ld = b_.let_here("ld", u32, image(thread_, m.load.thread_offset));
  const auto address = [&](const layout::SharedAccess& a, ExprId offset) {
    if (a.flip != 0) offset = e_.plain(Operator::bit_xor, offset, number(a.flip), u32);
    return e_.sum(Affine::term(scratch) + Affine::term(offset) + Affine(a.offset), u32);
  };
  for (const layout::SharedStep& step : m.steps) {
    // Others of its warp may still read what they did in the iteration before.
    const bool again = r.plan.warp_barrier && b_.loops() > 0;
    if (again || &step != &m.steps.front()) barrier();
    for (const layout::SharedAccess& a : step.stores)
      move_through_shared(r, a, true, address(a, st), test_of(e_, thread_, step.storing));
    barrier();
    for (const layout::SharedAccess& a : step.loads)
      move_through_shared(r, a, false, address(a, ld), test_of(e_, thread_, step.loading));
  }
  b_.close();
}

// ---- through shared memory, row-major, a window of addresses at a time

void Expander::expand_memory_side(const layout::MemoryMove& m, const layout::MemorySide& side,
                                  const layout::Layout& layout, StorageId storage, ExprId scratch,
                                  bool store, ExprId window) {
  const std::vector<layout::Coordinate> coordinates = layout::coordinates(layout);
  const DType type = l_.storages[storage].dtype;
  const ExprId k = open_registers("k", layout.registers(), false);
  std::vector<ExprId> tests;
  Affine at(side.offset);
  for (int d = 0; d < layout.rank(); ++d) {
    const layout::Coordinate& c = coordinates[static_cast<std::size_t>(d)];
    const ExprId low =
        e_.plain(Operator::bit_xor, image(thread_, fields_of(layout, layout.thread(), d)),
                 image(k, fields_of(layout, layout.reg, d)));
    Affine x = Affine::term(low);
    if (c.repeats) {
      ExprId repetition = e_.plain(
          Operator::div, k, number(c.repetition_divisor * (std::int64_t{1} << c.repetition_shift)));
      if (c.repetition_modulus != 0)
        repetition = e_.plain(Operator::rem, repetition, number(c.repetition_modulus));
      x = x + Affine::term(repetition, c.tile);
    }
    const ExprId i = b_.let_here("i" + std::to_string(d), e_.sum(x));
    if (layout.pads(d))
      tests.push_back(e_.plain(Operator::less, i, number(layout.domain[d]), bool_));
    at = at + Affine::term(i, side.strides[d]);
  }
  if (window != no_expr) at = at + Affine::term(window, -m.window);
  const ExprId address = b_.let_here("at", e_.sum(at));
  if (window != no_expr) {
    tests.push_back(e_.plain(Operator::at_least, address, number(0), bool_));
    tests.push_back(e_.plain(Operator::less, address, number(m.window), bool_));
  }
  if (store && side.replicated != 0)
    tests.push_back(test_of(e_, thread_, {.mask = side.replicated, .value = 0}));
  thread::Access access{
      .function = store ? Row::store_shared : Row::load_shared,
      .registers = e_.address(this->storage(storage), k),
      .place = {.base = scratch, .offset = address, .type = type, .shared = true}};
  const ExprId test = e_.all(std::move(tests));
  if (store) {
    access.test = test;
    b_.add(thread::Store{access});
  } else {
    if (test != no_expr) b_.open(If{test, {}, true});
    b_.add(thread::Load{access});
    if (test != no_expr) b_.close();
  }
  b_.close();
}

void Expander::expand_memory_move(const Relayout& r) {
  const layout::MemoryMove& m = r.plan.memory;
  b_.open(Block{});
  const ExprId scratch = b_.let_here("scratch", shared_address(r.scratch));
  ExprId window = no_expr;
  if (m.windows > 1) {
    const VariableId v =
        e_.declare({.name = "window", .type = i32, .facts = {.low = 0, .high = m.windows - 1}});
    window = e_.variable(v);
    b_.open_loop(thread::For{
        .counter = v, .low = number(0), .high = number(m.windows), .unroll = 1, .body = {}});
  }
  if (m.windows > 1) sync();
  expand_memory_side(m, m.store, r.plan.from, r.from, scratch, true, window);
  sync();
  expand_memory_side(m, m.load, r.plan.to, r.to, scratch, false, window);
  if (m.windows > 1) b_.close();
  b_.close();
}

}  // namespace palladium::expand
