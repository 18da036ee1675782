// Which statement comes next, and operands for it.
#include "tests/random/statements.hpp"

#include <algorithm>

namespace palladium::test::random_calls {

Statements::Statements(const Plan& plan, const Parts& parts)
    : random_(plan.seed * 1000003 + 17), plan_(plan), parts_(parts) {
  for (const Ref& r : parts.inputs) readable_.push_back(&r);
  values_ = parts.numbers;
}

void Statements::run() {
  load_some();
  for (const Ref& s : parts_.scratch) {
    s[_] = coerced(some(), s.dtype(), s.shape());
    readable_.push_back(&s);
    writable_.push_back(&s);
  }
  for (std::size_t i = 0; i < parts_.outputs.size(); ++i) initialise(i);
  for (std::size_t i = 0; i < parts_.inputs.size(); ++i)
    if (!plan_.inputs[i].is_ragged() && !(i == 0 && plan_.aliased) && random_.chance(10))
      values_.push_back(load());
  for (int i = 0; i <= plan_.statements; ++i) {
    for (const BodyFault& f : plan_.faults)
      if (f.after == i) {
        Random random(f.seed);
        record_fault(f.kind, random, plan_, parts_);
      }
    if (i < plan_.statements) statement(1);
  }
  for (std::size_t i = 0; i < parts_.outputs.size(); ++i) finish(i);
}

void Statements::load_some() {
  for (int i = random_.between(1, 2); i > 0; --i) values_.push_back(load());
  if (random_.chance(25)) values_.push_back(neighbours());
}

void Statements::initialise(std::size_t i) {
  const Ref& o = parts_.outputs[i];
  const Operand& plan = plan_.outputs[i];
  Value first = true;
  for (int axis = 0; axis < static_cast<int>(plan_.axes.size()); ++axis)
    if (!plan.moves_along(axis)) first = first & (program_id(axis) == 0);
  const Value x = coerced(some(), o.dtype(), o.shape());
  pl::when(first, [&] { o[_] = x; });
  writable_.push_back(&o);
  // What lies beyond the end of an array was not kept: it may not be read again.
  if (!plan.is_ragged()) readable_.push_back(&o);
}

void Statements::finish(std::size_t i) {
  const Ref& o = parts_.outputs[i];
  const DType d = o.dtype();
  Value x = coerced(some(), d, o.shape());
  if (plan_.elementary && d.is_float() && d.bytes() > 1) {
    switch (random_.below(4)) {
    case 0: x = pl::exp(x); break;
    case 1: x = pl::tanh(x); break;
    case 2: x = pl::sin(x); break;
    default: x = pl::log1p(pl::abs(x));
    }
    o[_] = x;
  } else if (random_.chance(40) && !d.is_bool()) {
    o[_] += x;
  } else if (random_.chance(80)) {
    o[_] = x;
  }
}

void Statements::statement(int depth) {
  const int kind = random_.below(100);
  if (kind < 4) return keep(neighbours());
  if (kind < 15) return keep(load());
  if (kind < 35) return keep(binary());
  if (kind < 45) return keep(unary(some()));
  if (kind < 50) return keep(select());
  if (kind < 56) return keep(some().astype(dtype()));
  if (kind < 64) return keep(moved(some()));
  if (kind < 72) return keep(reduced(some()));
  if (kind < 77) return keep(product());
  if (kind < 85) return store();
  if (kind < 87) return swapped();
  if (kind < 88) return updated();
  if (kind < 91 || depth == 0) return keep(leaf());
  if (kind < 93) return when_(depth);
  if (kind < 95) return loop_(depth);
  if (kind < 97) return while_(depth);
  kind < 98 ? scope(depth) : choose(depth);
}

DType Statements::dtype() {
  return random_.pick({bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64});
}

Value Statements::some() {
  if (values_.empty() || random_.chance(10)) values_.push_back(leaf());
  const int n = static_cast<int>(values_.size());
  const int i = random_.chance(60) ? n - 1 - random_.below(std::min(n, 4)) : random_.below(n);
  return values_[static_cast<std::size_t>(i)];
}

Value Statements::leaf() {
  const int axes = static_cast<int>(plan_.axes.size());
  const int kind = random_.below(5);
  if (axes > 0 && kind < 2) {
    const int axis = random_.below(axes);
    if (random_.chance(50)) return i32(program_id(axis));
    if (!plan_.rest.grid_names.empty())
      return i32(axis_index(plan_.rest.grid_names[static_cast<std::size_t>(axis)].c_str()));
    return i32(num_programs(axis));
  }
  const DType d = dtype();
  if (kind == 2 && !d.is_bool()) {
    const int n = random_.between(1, 9);
    return iota(d, {n, 4}, random_.below(2));
  }
  const int number = random_.between(0, 40);
  if (kind == 3) return full({random_.between(1, 8)}, d.is_bool() ? number & 1 : number, d);
  return d(d.is_bool() ? Value(number % 2 == 0) : Value(number));
}

Value Statements::coerced(Value v, DType d, const Shape& shape) {
  const Shape own = v.shape();
  bool broadcasts = own.rank() <= shape.rank();
  for (int i = 0; broadcasts && i < own.rank(); ++i) {
    const std::int64_t to = shape[shape.rank() - own.rank() + i].value();
    broadcasts = own[i].value() == to || own[i].value() == 1;
  }
  if (!broadcasts && own.size() == shape.size())
    v = pl::reshape(v, shape);
  else if (!broadcasts)
    v = random_.chance(50) ? pl::max(v) : pl::min(v);
  return broadcast_to(v.astype(d), shape);
}

Value Statements::small(const Value& v, DType d) { return (v.astype(i32) & 7).astype(d); }

Value Statements::index_up_to(std::int64_t limit) {
  const Value v = coerced(some(), i32, {});
  return minimum(maximum(v, 0), limit);
}

Value Statements::start_up_to(std::int64_t limit) {
  const int n = random_.pick({1, 1, 2, 4, 16});
  return n == 1 ? index_up_to(limit) : pl::multiple_of(index_up_to(limit / n) * n, n);
}

Value Statements::condition() {
  const Value v = coerced(some(), i32, {});
  const int against = random_.between(0, 5);
  return random_.chance(50) ? v > against : v == against;
}

}  // namespace palladium::test::random_calls
