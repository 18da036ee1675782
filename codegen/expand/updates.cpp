// Atomic operations: one for each element, by one of the threads that have it; sums of floats that
// nobody waits for a vector at a time.
#include <utility>

#include "codegen/expand/nest.hpp"
#include "codegen/passes/nest_model.hpp"

namespace palladium::expand {

using graph::MemoryView;

namespace {

// In global memory, in that of the block, and in that of another one.
Row function_of(graph::Update how, const Address& a) {
  struct Functions {
    Row global, shared, cluster;
  };
  constexpr Row none = Row::atomic_add;  // there is none, and graphs ask for none
  constexpr Functions functions[graph::num_updates] = {
      {Row::atomic_add, Row::atomic_add_shared, Row::atomic_add_cluster},
      {Row::atomic_max, Row::atomic_max_shared, Row::atomic_max_cluster},
      {Row::atomic_min, Row::atomic_min_shared, Row::atomic_min_cluster},
      {Row::atomic_and, Row::atomic_and_shared, Row::atomic_and_cluster},
      {Row::atomic_or, Row::atomic_or_shared, Row::atomic_or_cluster},
      {Row::atomic_xor, Row::atomic_xor_shared, Row::atomic_xor_cluster},
      {Row::atomic_exchange, Row::atomic_exchange_shared, none},
      {Row::atomic_compare_exchange, Row::atomic_compare_exchange_shared, none},
      {Row::atomic_inc, none, none},
      {Row::atomic_dec, none, none},
  };
  const Functions& f = functions[static_cast<int>(how)];
  return a.peer ? f.cluster : a.shared ? f.shared : f.global;
}

}  // namespace

void Nest::expand_sink(const lowered::Update& s) {
  const DimMap all = all_dimensions();
  const MemoryView m = MemoryView::of(g_[s.inst]);
  const auto evaluated = [&](ValueId v) {
    return v == graph::no_value ? no_expr : evaluate(v, coordinates_, all, false);
  };
  mask_replicas();
  open_to_groups();
  open_elements();
  const ExprId value = evaluated(m.value), expected = evaluated(m.other), mask = evaluated(m.mask);
  check_indices(s.inst, coordinates_, all, mask);
  const Address a = store_address(m.ref);
  Bounds bounds = a.bounds;
  passes::add_padding(e_, bounds, padding(all));
  if (adds_vectors(s, a, bounds, mask)) {
    store_vector(a, gathered(a.dtype, value), mask, std::move(bounds), Row::red_add_vector);
    return b_.close_nest_loops();
  }
  std::vector<ExprId> tests = thread_mask_;
  tests.insert(tests.begin(), {mask, predicate(bounds)});
  const ExprId old = update_element(s, a, value, expected, e_.all(std::move(tests)));
  if (s.storage)
    store_element(storage_address(s.storage, coordinates_), old, no_expr, padding(all));
  b_.close_nest_loops();
}

bool Nest::adds_vectors(const lowered::Update& s, const Address& a, const Bounds& bounds,
                        ExprId mask) {
  if (!passes::adds_vectors(l_, s) || a.shared || !a.parts.empty() || !is_together(a, bounds, mask))
    return false;
  const thread::Width w = vector_width(a, bounds);
  return w.width > 1 && !w.part;
}

// What the element was; the value where the test does not hold. The function's operands are
// variables, which have their types.
ExprId Nest::update_element(const lowered::Update& s, Address a, ExprId value, ExprId expected,
                            ExprId test) {
  const graph::Update how = graph::update_of(g_[s.inst]);
  const DType type = a.dtype;
  const bool as_bits = how == graph::Update::exchange && type.is_float();
  if (as_bits) {
    see_as(a, passes::unsigned_of(type.bytes()));
    value = e_.bitcast(a.dtype, value);
  }
  const auto variable = [&](ExprId of) {
    const VariableId v = unfilled("u", a.dtype, 0);
    e_[v].facts.depends = loops_ | thread::on_thread | thread::on_element | thread::in_element;
    b_.add(thread::Declare{.start = thread::Declare::Start::values, .variable = v, .values = {of}});
    return e_.variable(v);
  };
  const ExprId x = variable(value);
  thread::Update update{
      .access = {.function = function_of(how, a), .place = place_of(a), .test = test},
      .args = {x},
      .to = s.storage ? x : no_expr};
  if (expected != no_expr) update.args.insert(update.args.begin(), variable(expected));
  b_.add(std::move(update));
  return as_bits ? e_.bitcast(type, x) : x;
}

}  // namespace palladium::expand
