// Values made of values.
#include <algorithm>

#include "tests/random/statements.hpp"

namespace palladium::test::random_calls {
namespace {

constexpr std::int64_t most_elements = 256;

bool broadcast_together(const Shape& p, const Shape& q) {
  std::int64_t elements = 1;
  for (int i = 1; i <= std::max(p.rank(), q.rank()); ++i) {
    const std::int64_t m = i <= p.rank() ? p[p.rank() - i].value() : 1;
    const std::int64_t n = i <= q.rank() ? q[q.rank() - i].value() : 1;
    if (m != n && m != 1 && n != 1) return false;
    elements *= std::max(m, n);
  }
  return elements <= most_elements;
}

}  // namespace

Value Statements::unary(const Value& v) {
  const DType d = v.dtype();
  if (d.is_bool()) return !v;
  if (!d.is_float()) {
    switch (random_.below(6)) {
    case 0: return -v;
    case 1: return pl::abs(v);
    case 2: return sign(v);
    case 3: return clz(v);
    case 4: return clip(v, 1, 100);
    default: return ~v;
    }
  }
  switch (random_.below(10)) {
  case 0: return -v;
  case 1: return pl::abs(v);
  case 2: return sign(v);
  case 8: return pl::trunc(v);
  case 9: return relu(v);
  case 3: return pl::sqrt(v);
  case 4: return pl::floor(v);
  case 5: return pl::ceil(v);
  case 6: return pl::round(v);
  default: return is_finite(v);
  }
}

Value Statements::binary() {
  const Value x = some(), other = some();
  const DType d = x.dtype();
  const Value y =
      broadcast_together(x.shape(), other.shape()) ? other.astype(d) : coerced(other, d, x.shape());
  if (random_.chance(20)) {
    switch (random_.below(6)) {
    case 0: return x == y;
    case 1: return x != y;
    case 2: return x < y;
    case 3: return x <= y;
    case 4: return x > y;
    default: return x >= y;
    }
  }
  const int kind = random_.below(12);
  if (!d.is_float() && (d.is_bool() || kind < 3))
    return kind % 3 == 0 ? x & y : kind % 3 == 1 ? x | y : x ^ y;
  switch (kind) {
  case 3: return x - y;
  case 4:
  case 5: return x * y;
  case 6: return maximum(x, y);
  case 7: return minimum(x, y);
  case 8: return d.is_float() ? x / (pl::abs(y) + 1) : x / y;
  case 9: return d.is_float() ? x + y : x % y;
  case 10: return d.is_float() ? x - y : x << y;
  case 11: return d.is_float() ? x + 1 : x >> y;
  default: return x + y;
  }
}

Value Statements::select() {
  const Value x = some();
  const Value y = coerced(some(), x.dtype(), x.shape());
  return where(coerced(some(), bool_, x.shape()), x, y);
}

Value Statements::moved(const Value& v) {
  const Shape s = v.shape();
  switch (random_.below(5)) {
  case 0: return pl::transpose(v);
  case 1: return pl::reshape(v, {-1});
  case 2:
  case 3:
    if (s.rank() > 0) return elsewhere(v);
    break;
  default: break;
  }
  Shape to = {random_.between(1, 3)};
  if (s.rank() > 3 || s.size() * to[0].value() > most_elements) return v;
  for (const Dim& d : s) to.push_back(d);
  return broadcast_to(v, to);
}

Value Statements::elsewhere(const Value& v) {
  const Shape s = v.shape();
  const int axis = random_.below(s.rank());
  const auto extent = static_cast<int>(s[axis].value());
  switch (random_.below(13)) {
  case 0: return flip(v, random_.chance(50) ? Axes() : Axes(axis));
  case 1: {
    const int by = random_.between(-9, 9);
    return roll(v, by, random_.chance(50) ? Axes() : Axes(axis));
  }
  case 2: {
    const int size = random_.between(1, static_cast<int>(s[0].value()));
    const int start = random_.below(static_cast<int>(s[0].value()) - size + 1);
    return v[{ds(start, size), ellipsis}];
  }
  case 3: return v[{ds(index_up_to(s[0].value() + 3) - 1, 1), ellipsis}];
  case 4:
    if (2 * s.size() > most_elements) return flip(v);
    return concatenate({v, flip(v)}, axis);
  case 5: {
    const Value at = coerced(some(), i32, Shape{3});
    if (3 * s.size() > most_elements) return flip(v);
    return take(v, at, axis);
  }
  case 6: return take_along_axis(v, coerced(some(), i32, s) - 1, axis);
  case 7: return s.rank() < 2 ? flip(v) : random_.chance(50) ? tril(v, 1) : triu(v, -1);
  case 8: return pl::sort(v, {.axis = axis, .descending = random_.chance(50)});
  case 9: return padded(v);
  case 10: return named(v);
  case 11: return changed(v);
  default: break;
  }
  if (s.rank() != 1) return split(v, extent, axis)[0];
  const Value start = index_up_to(extent);
  return dynamic_update_slice(v, v[ds(0, (extent + 1) / 2)], {start});
}

Value Statements::padded(const Value& v) {
  const std::int64_t before = random_.between(-1, 2), after = random_.between(-1, 2);
  const std::int64_t interior = random_.below(3);
  const Shape s = v.shape();
  if (8 * s.size() > most_elements) return flip(v);
  Value flat = pl::reshape(v, {-1});
  if (s.size() < 3) flat = concatenate({flat, flat, flat});
  return pad(flat, {{before, after, interior}});
}

Value Statements::named(const Value& v) {
  const Shape s = v.shape();
  const Value first = coerced(some(), i32, Shape{2, 1}) - 1;
  if (s.rank() < 2 || 6 * s.size() > most_elements) return gather(v, {first[{_, 0}]});
  const Value second = coerced(some(), i16, Shape{3});
  const int last = s.rank() - 1;
  return gather(v, {first, second}, random_.chance(50) ? Axes{0, 1} : Axes{last, 0});
}

Value Statements::changed(const Value& v) {
  const Shape s = v.shape();
  if (v.dtype().is_bool()) return scatter(v, {index_up_to(s[0].value())}, true);
  Shape updates = s;
  updates[0] = 5;
  if (5 * s.size() > most_elements) return flip(v);
  const Value at = coerced(some(), i32, Shape{5}), x = coerced(some(), v.dtype(), updates);
  const bool adds = v.dtype().is_integer() && random_.chance(50);
  return scatter(v, {at - 1}, x,
                 {.mode = adds                 ? ScatterMode::add
                          : random_.chance(50) ? ScatterMode::max
                                               : ScatterMode::min});
}

Value Statements::reduced(const Value& v) {
  const int rank = v.shape().rank();
  const bool keepdims = random_.chance(50);
  ReduceOptions options{{}, keepdims};
  if (rank > 0 && random_.chance(70)) options.axis = random_.between(-rank, rank - 1);
  switch (random_.below(8)) {
  case 0: return pl::max(v, options);
  case 1: return pl::min(v, options);
  case 2: return pl::any(v, options);
  case 3: return pl::argmax(v, options);
  case 4: return pl::argmin(v, options);
  case 5:
    if (v.dtype().is_integer()) return pl::prod(v, options);
    break;
  case 6:
    if (rank > 0 && !v.dtype().is_bool()) return pl::cummax(v, {.axis = rank - 1});
    break;
  default: break;
  }
  const DType d = v.dtype().is_bool() ? i32 : v.dtype();
  return pl::sum(small(v, d), options);
}

Value Statements::product() {
  const DType d = random_.pick({f32, f16, bf16, f64, i8, i16, i32, f8e4m3});
  std::int64_t m = random_.pick({1, 3, 8, 16, 64}), n = random_.pick({1, 2, 8, 16, 64});
  const std::int64_t k = random_.pick({1, 4, 8, 15, 32});
  const bool ta = random_.chance(50), tb = random_.chance(50);
  const Value a = small(coerced(some(), i32, ta ? Shape{k, m} : Shape{m, k}), d);
  const Value b = small(coerced(some(), i32, tb ? Shape{n, k} : Shape{k, n}), d);
  if (random_.chance(25)) return einsum(ta ? "ki,jk->ij" : "ik,jk->ji", a, tb ? b : transpose(b));
  return pl::dot(a, b, {.trans_a = ta, .trans_b = tb});
}

}  // namespace palladium::test::random_calls
