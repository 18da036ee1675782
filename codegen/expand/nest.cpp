// The loops over the elements of a nest: repetitions, groups of registers, elements of a vector.
#include "codegen/expand/nest.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::MemoryView;
using graph::Op;
using layout::Layout;
using lowered::Residency;
using lowered::Storage;
using thread::Declare;
using thread::For;

namespace {

std::string dim_name(int d) {
  return d < 6 ? std::string(1, "ijklmn"[d]) : "d" + std::to_string(d);
}

}  // namespace

// The thread's part of each coordinate has a name; the loops' counters add the rest.
void Nest::name_coordinates() {
  const auto counter = [&](const std::string& name, std::int64_t count, thread::Depends on) {
    return e_.variable(e_.declare(
        {.name = name, .type = i32, .facts = {.low = 0, .high = count - 1, .depends = on}}));
  };
  const int bits = static_cast<int>(layout_.reg.size());
  thread_ = x_.thread_;
  group_ = counter("g", std::int64_t{1} << (bits - vector_bits_), thread::on_group);
  element_ = counter("e", vector_, thread::on_element);
  for (int d = 0; d < layout_.rank(); ++d)
    repetitions_.push_back(
        counter("r" + dim_name(d), layout_.repetitions(d), thread::on_repetition(d)));
  const passes::Counters counters{group_, element_, repetitions_, vector_bits_};
  for (int d = 0; d < layout_.rank(); ++d) {
    ExprId part = passes::thread_part(e_, layout_, d, thread_);
    if (part != no_expr) part = b_.let_once(dim_name(d), false, part);
    thread_part_.push_back(part);
    coordinates_.push_back((part == no_expr ? Affine() : Affine::term(part)) +
                           passes::counted_part(e_, layout_, d, counters));
  }
}

void Nest::open_repetition(int d) {
  std::int64_t most = layout_.repetitions(d);
  for (const Dim& extent : ends_along(d)) most = std::min(most, repetitions_up_to(d, extent));
  b_.open_loop(For{.counter = e_[repetitions_[static_cast<std::size_t>(d)]].variable,
                   .low = e_.number(0),
                   .high = e_.number(most),
                   .unroll = unrolled_by(d) > 1 && !ends_along(d).empty() ? 1 : unrolled_by(d),
                   .body = {}},
               thread::on_repetition(d));
  loops_ |= thread::on_repetition(d);
  for (const Dim& extent : ends_along(d)) break_at(d, extent, most);
}

// What is left of a thread's elements from the repetition on is known before the loop, of so many.
void Nest::break_at(int d, const Dim& extent, std::int64_t repetitions) {
  const Affine place = repetition(d) * layout_.tile(d);
  const Affine first = first_of_repetition(d) + place * -1;
  const ExprId left = e_.sum(Affine::term(e_.as(i32, dim(extent))) + first * -1);
  ExprId goes_on = e_.plain(Operator::less, e_.sum(place), left, bool_);
  const std::int64_t whole = whole_repetitions(d, extent);
  if (whole > 0)
    goes_on =
        e_.op(Op::Or, bool_,
              {e_.plain(Operator::less, e_.sum(repetition(d)), e_.number(whole), bool_), goes_on});
  b_.break_unless({.condition = goes_on, .asked = repetitions - whole});
}

// Of a case of its length: repetitions in which some thread may have elements, ...
std::int64_t Nest::repetitions_up_to(int d, const Dim& extent) const {
  const auto& length = x_.length_;
  const bool is_known = length && length->extent.same(extent) && length->most != INT64_MAX;
  return is_known ? cdiv(length->most, layout_.tile(d)) : INT64_MAX;
}

// ... and those in which all threads have.
std::int64_t Nest::whole_repetitions(int d, const Dim& extent) const {
  const auto& length = x_.length_;
  return length && length->extent.same(extent) ? (length->above + 1) / layout_.tile(d) : 0;
}

void Nest::open_repetitions(bool reduced, bool kept) {
  for (int d = 0; d < layout_.rank(); ++d)
    if (layout_.repetitions(d) > 1 && (is_reduced(d) ? reduced : kept)) open_repetition(d);
}

void Nest::open_groups() {
  if (groups() == 1) return;
  b_.open_loop(For{.counter = e_[group_].variable,
                   .low = e_.number(0),
                   .high = e_.number(groups()),
                   .body = {}},
               thread::on_group);
  loops_ |= thread::on_group;
}

void Nest::open_elements() {
  constexpr thread::Depends known = thread::on_element | thread::in_element;
  if (vector_ == 1) return b_.open_splice(known);
  b_.open_loop(For{.counter = e_[element_].variable,
                   .low = e_.number(0),
                   .high = e_.number(vector_),
                   .body = {}},
               known);
}

// ---- the nest

// The first exchange of a nest finds its scratch read; one in a loop of its own may not.
void Nest::sync_scratch() {
  if (b_.loops() > loops_around_) x_.sync();
}

void Nest::expand() {
  loops_around_ = b_.loops();
  b_.open_nest();
  name_coordinates();
  std::visit([this](const auto& sink) { expand_sink(sink); }, nest_->sink);
  b_.close();
}

// Of threads that hold the same elements one stores them.
void Nest::mask_replicas() {
  std::uint32_t replicated = layout_.replicated_threads();
  if (x_.in_warps_) replicated &= graph::warp_threads - 1;
  if (replicated == 0) return;
  const ExprId which =
      replicated == layout_.threads() - 1u ? thread_ : e_.bits(thread_, replicated, 0);
  thread_mask_.push_back(e_.plain(Operator::equal, which, e_.number(0), bool_));
}

void Nest::open_unless_one() {
  const Storage& s = l_.storages[nest_->unless_one];
  const ExprId one = e_.literal(s.dtype, graph::to_bits(s.dtype, 1.0));
  ExprId is_other = no_expr;
  for (std::int64_t r = 0; r < s.registers().layout.registers(); ++r) {
    const ExprId held = e_.element(x_.storage(nest_->unless_one), e_.number(r)),
                 next = e_.op(Op::Ne, bool_, {held, one});
    is_other = is_other == no_expr ? next : e_.op(Op::Or, bool_, {is_other, next});
  }
  b_.open(thread::If{e_.call(Row::vote_any, bool_, {is_other}), {}});
}

void Nest::expand_sink(const lowered::Assign& s) {
  if (nest_->unless_one) open_unless_one();
  open_to_groups();
  open_elements();
  if (l_.storages[s.storage].is_packed())
    assign_words(s.storage,
                 evaluate(nest_->value, coordinates_, all_dimensions(), enters(s.storage)));
  else if (!copies_load(s.storage))
    assign_element(s.storage,
                   evaluate(nest_->value, coordinates_, all_dimensions(), enters(s.storage)));
  b_.close_nest_loops();
}

void Nest::assign_element(StorageId storage, ExprId value) {
  const VariableId v = x_.storage(storage);
  const Storage& s = l_.storages[storage];
  const ExprId to =
      s.in_registers()
          ? e_.element(v, e_.sum(register_index(s.registers().layout, all_dimensions())))
          : e_.variable(v);
  b_.add(thread::Assign{to, value});
}

// Elements of 8 and 16 bits, four and two to a register.
void Nest::assign_words(StorageId storage, ExprId value) {
  const Storage& s = l_.storages[storage];
  const int together = 4 / s.dtype.bytes();
  const Affine at = register_index(s.registers().layout, all_dimensions());
  const VariableId o = gathered(s.dtype, value);
  for (int e = 0; e < vector_; e += together) {
    const ExprId first = e_.sum(at.without(element_) + Affine(e));
    const ExprId to =
        e_.element(x_.storage(storage), e_.plain(Operator::div, first, e_.number(together)));
    if (together == 4) {
      b_.add(thread::Call{
          .function = Row::pack_bytes, .args = {e_.address(o, e_.number(e))}, .to = to});
      continue;
    }
    const ExprId low = e_.element(o, e_.number(e)), high = e_.element(o, e_.number(e + 1));
    b_.add(thread::Assign{to, e_.call(Row::pack, u32, {low, high})});
  }
}

// Whether it is read where its elements have been rounded on their way.
bool Nest::is_tf32(ValueId v) const {
  while (!l_.storage_of[v] && g_[v].op == graph::Op::Transpose) v = g_[v].args[0];
  const StorageId read =
      l_.storage_of[v] ? copy_of(l_.storage_of[v], all_dimensions()) : StorageId();
  return read && l_.storages[read].in_shared() && l_.storages[read].shared().tf32;
}

void Nest::expand_sink(const lowered::Stage& s) {
  if (const auto turned = passes::turned_bytes(l_, *nest_); turned && !x_.in_warps_)
    return turn_bytes(*turned);
  mask_replicas();
  if (l_.storages[s.storage].shared().skewed) return copy_rows_around(s);
  if (s.by.asynchronous && copies_moved(s)) return;
  if (const auto matrices = matrices_stored(s.storage))
    return store_matrices(s.storage, *matrices, [&] {
      return evaluate(nest_->value, coordinates_, all_dimensions(), enters(s.storage));
    });
  open_to_groups();
  open_elements();
  ExprId value = evaluate(nest_->value, coordinates_, all_dimensions(), enters(s.storage));
  if (l_.storages[s.storage].shared().tf32 && !is_tf32(nest_->value))
    value = e_.call(Row::round_to_tf32, f32, {value});
  put_in_shared(s.storage, value);
  b_.close_nest_loops();
}

void Nest::expand_sink(const lowered::Spill& s) {
  mask_replicas();
  if (const auto matrices = matrices_stored(s.storage))
    return store_matrices(s.storage, *matrices,
                          [&] { return read(s.from, coordinates_, all_dimensions()); });
  open_repetitions(true, true);
  open_groups();
  open_elements();
  put_in_shared(s.storage, read(s.from, coordinates_, all_dimensions()));
  b_.close_nest_loops();
}

void Nest::expand_sink(const lowered::Fill& s) {
  const DimMap all = all_dimensions();
  const bool shared = l_.storages[s.storage].in_shared();
  if (shared) mask_replicas();
  open_repetitions(true, true);
  open_groups();
  if (l_.windows[s.window].is_staged()) {
    stage(s);
    return b_.close_nest_loops();
  }
  open_elements();
  if (!shared && copies_window(s.window, s.storage)) return b_.close_nest_loops();
  const ExprId value = access(window_address(s.window, coordinates_), all, no_expr);
  if (shared)
    put_in_shared(s.storage, value);
  else
    assign_element(s.storage, value);
  b_.close_nest_loops();
}

// A block that ends, from where it lives to its array.
void Nest::expand_sink(const lowered::Flush& s) {
  const DimMap all = all_dimensions();
  mask_replicas();
  if (const ExprId stored = x_.is_stored(s.from); stored != no_expr)
    thread_mask_.push_back(e_.call(Row::was_stored, bool_, {stored}));
  open_repetitions(true, true);
  open_groups();
  const Storage& storage = l_.storages[s.from];
  Address to = window_address(s.window, coordinates_);
  Vector v{.direction = Direction::store,
           .function = Row::store_global,
           .function_of_part = Row::store_global_part,
           .place = to,
           .bounds = to.bounds,
           .tests = thread_mask_};
  if (storage.in_shared()) {
    v.direction = Direction::flush;
    v.function = Row::flush_resident, v.function_of_part = Row::flush_resident_part;
    v.from = storage_address(s.from, coordinates_);
    passes::add_padding(e_, v.bounds, padding(all));
    b_.add_statement(vector_access(std::move(v)));
    return b_.close_nest_loops();
  }
  if (storage.in_registers() && vector_ > 1) {
    const Affine at = register_index(storage.registers().layout, all);
    if (at.coefficient(element_) == 1 && to.dtype == storage.dtype) {
      v.array = x_.storage(s.from);
      v.first = at.without(element_);
      passes::add_padding(e_, v.bounds, padding(all));
      b_.add_statement(vector_access(std::move(v)));
      return b_.close_nest_loops();
    }
  }
  open_elements();
  store_element(to, read(s.from, coordinates_, all), no_expr, padding(all));
  b_.close_nest_loops();
}

void Nest::expand_sink(const lowered::Store& s) {
  const DimMap all = all_dimensions();
  const MemoryView m = MemoryView::of(g_[s.inst]);
  mask_replicas();
  if (s.by.asynchronous && copies_stored(s)) return;
  if (const StorageId to = stored_in_shared(s); const auto matrices = matrices_stored(to))
    return store_matrices(to, *matrices,
                          [&] { return evaluate(nest_->value, coordinates_, all, false); });
  open_to_groups();
  if (stores_registers(s)) return b_.close_nest_loops();
  if (!nest_->forked.empty()) return store_two_ways(s);
  open_elements();
  const ExprId value = evaluate(nest_->value, coordinates_, all, false);
  const ExprId mask =
      m.mask == graph::no_value ? no_expr : evaluate(m.mask, coordinates_, all, false);
  check_indices(s.inst, coordinates_, all, mask);
  store_element(store_address(m.ref), value, mask, padding(all));
  b_.close_nest_loops();
}

// Where the nest does nothing but read memory, a group of elements goes straight to registers.
bool Nest::copies_load(StorageId storage) {
  return loads_memory(storage) &&
         copy(address(g_[nest_->value].args[0], coordinates_, all_dimensions()), storage);
}

bool Nest::copies_window(WindowId window, StorageId storage) {
  return copy(window_address(window, coordinates_), storage);
}

bool Nest::copy(const Address& a, StorageId storage) {
  const DimMap all = all_dimensions();
  if (!fills_vectors(a, storage)) return false;
  if (nest_->value != graph::no_value) check_indices(nest_->value, coordinates_, all, no_expr);
  b_.close();  // of the elements, which one access loads
  const Affine at = register_index(l_.storages[storage].registers().layout, all);
  Vector v = load_of(a, all, x_.storage(storage), at.without(element_));
  if (nest_->repeats_first) read_first_again(v);
  b_.add_statement(vector_access(std::move(v)));
  return true;
}

// What lies beyond the value is zero.
void Nest::put_in_shared(StorageId storage, ExprId value) {
  const Storage& s = l_.storages[storage];
  const auto [beyond, inside] = limits();
  if (const ExprId exists = predicate(beyond); exists != no_expr)
    value = e_.choose(exists, value, e_.literal(s.dtype, 0));
  store_element(storage_address(storage, coordinates_), value, no_expr, inside);
}

// ---- stores

Row store_function(const Address& a) {
  return a.peer ? Row::store_cluster : a.shared ? Row::store_shared : Row::store_global;
}

// Puts one value per element into memory: collected over e, then stored as vectors. The loop over
// e is open.
void Nest::store_element(const Address& a, ExprId value, ExprId mask, const Bounds& limits) {
  if (!a.parts.empty()) return store_parts(a, value, mask, limits);
  Bounds bounds = a.bounds;
  passes::add_padding(e_, bounds, limits);
  if (is_together(a, bounds, mask))
    return store_vector(a, gathered(a.dtype, value), mask, std::move(bounds), store_function(a));
  const VariableId o = unfilled("o", a.dtype, 0);
  b_.add(thread::Let{o, value});
  store_one(a, o, mask, bounds);
}

// Of the elements of a vector the values, behind the loop over e.
VariableId Nest::gathered(DType type, ExprId value) {
  // What is the same for all elements of the group is computed once: with a branch in it, NVRTC
  // would unroll the loop too late to keep the group in registers.
  if ((e_.depends(value) & (thread::on_element | thread::in_element)) == 0 && e_.size(value) > 1)
    value = temporary("x", value);
  if (const VariableId all = combined(type, value); all != thread::no_variable) return all;
  const VariableId o = unfilled("o", type, vector_);
  const ExprId wide = narrowed_together(value);
  if (wide != no_expr) {
    const VariableId x = unfilled("x", e_[wide].type, vector_);
    b_.declare_around(x);
    b_.add(thread::Assign{e_.element(x, element_), wide});
    b_.close();
    b_.add(thread::Declare{.variable = o});
    b_.add(thread::Call{.function = Row::to_all,
                        .templates = {std::int64_t{vector_}},
                        .args = {e_.address(o), e_.address(x)}});
    return o;
  }
  b_.declare_around(o);
  b_.add(thread::Assign{e_.element(o, element_), value});
  b_.close();
  return o;
}

// The f32 that a value is rounded from, of which a vector takes fewer instructions together than
// one by one: that of bytes.
ExprId Nest::narrowed_together(ExprId value) {
  constexpr int least = 2;
  const thread::Expr x = e_[unnamed(value)];
  const bool is_cast =
      x.node == thread::Node::cast || (x.node == thread::Node::op && x.op == graph::Op::Cast);
  if (!is_cast || vector_ % least != 0 || x.type.bytes() != 1 || x.type == bool_) return no_expr;
  const DType from = e_[x.args[0]].type;
  if (from == f32) return x.args[0];
  return from == f16 || from == bf16 ? e_.op(graph::Op::Cast, f32, {x.args[0]}) : no_expr;
}

void Nest::store_vector(const Address& a, VariableId from, ExprId mask, Bounds bounds,
                        Row function) {
  Vector v{.direction = Direction::store,
           .function = function,
           .function_of_part = Row::store_global_part,
           .place = a,
           .array = from,
           .bounds = std::move(bounds),
           .tests = thread_mask_};
  if (mask != no_expr) v.tests.insert(v.tests.begin(), mask);
  b_.add_statement(vector_access(std::move(v)));
}

void Nest::store_one(const Address& a, VariableId from, ExprId mask, const Bounds& bounds) {
  std::vector<ExprId> tests = thread_mask_;
  thread::Access access{
      .function = store_function(a), .registers = e_.address(from), .place = place_of(a)};
  std::vector<ExprId> first;
  if (mask != no_expr) first.push_back(mask);
  first.push_back(predicate(bounds));
  tests.insert(tests.begin(), first.begin(), first.end());
  access.test = e_.all(std::move(tests));
  b_.add(thread::Store{access});
}

// Stores those parts of one element that are in bounds.
void Nest::store_parts(const Address& a, ExprId value, ExprId mask, const Bounds& limits) {
  const DType bits = passes::unsigned_of(a.dtype.bytes()), part = a.parts[0].dtype;
  const auto named = [&](DType t, ExprId x) {
    const VariableId v = unfilled("o", t, 0);
    b_.add(thread::Let{v, x});
    return v;
  };
  const ExprId whole = e_.bitcast(bits, e_.variable(named(a.dtype, value)));
  for (std::size_t k = 0; k < a.parts.size(); ++k) {
    Bounds bounds = a.parts[k].bounds;
    passes::add_padding(e_, bounds, limits);
    const ExprId moved = e_.plain(Operator::shift_right, whole,
                                  e_.number(8 * part.bytes() * static_cast<std::int64_t>(k)), bits);
    store_one(a.parts[k], named(part, e_.cast(part, moved)), mask, bounds);
  }
}

}  // namespace palladium::expand
