// Bodies: a few random statements, each defined whatever its operands are.
//
// What they compute is exact, so that both targets must agree in every bit but those of NaNs and of
// the sign of zeros: sums and products get small whole numbers. No call here has two arguments that
// draw: compilers evaluate them in different orders.
#include <algorithm>
#include <utility>

#include "tests/random/plan.hpp"

namespace palladium::test::random_calls {
namespace {

constexpr std::int64_t most_elements = 256;

std::int64_t count_of(const Shape& shape) { return shape.size(); }

Shape scalar_shape() { return {}; }

class Statements {
 public:
  Statements(const Plan& plan, const Parts& parts)
      : random_(plan.seed * 1000003 + 17), plan_(plan), parts_(parts) {
    for (const Ref& r : parts.inputs) readable_.push_back(&r);
    values_ = parts.numbers;
  }

  void run() {
    load_some();
    for (const Ref& s : parts_.scratch) {
      s[_] = coerced(some(), s.dtype(), s.shape());
      readable_.push_back(&s);
      writable_.push_back(&s);
    }
    for (std::size_t i = 0; i < parts_.outputs.size(); ++i) initialise(i);
    // What is written to the block of an input stays there.
    for (std::size_t i = 0; i < parts_.inputs.size(); ++i)
      if (!plan_.inputs[i].is_ragged() && !(i == 0 && plan_.aliased) && random_.chance(10))
        writable_.push_back(&parts_.inputs[i]);
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

 private:
  DType dtype() {
    return random_.pick({bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64});
  }

  void load_some() {
    for (int i = random_.between(1, 2); i > 0; --i) values_.push_back(load());
    if (random_.chance(25)) values_.push_back(neighbours());
  }

  Value some() {
    if (values_.empty() || random_.chance(10)) values_.push_back(leaf());
    const int n = static_cast<int>(values_.size());
    const int i = random_.chance(60) ? n - 1 - random_.below(std::min(n, 4)) : random_.below(n);
    return values_[static_cast<std::size_t>(i)];
  }

  Value leaf() {
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

  // A value of that dtype and shape made of `v`.
  Value coerced(Value v, DType d, const Shape& shape) {
    const Shape own = v.shape();
    bool broadcasts = own.rank() <= shape.rank();
    for (int i = 0; broadcasts && i < own.rank(); ++i) {
      const std::int64_t to = shape[shape.rank() - own.rank() + i].value();
      broadcasts = own[i].value() == to || own[i].value() == 1;
    }
    if (!broadcasts && count_of(own) == count_of(shape))
      v = pl::reshape(v, shape);
    else if (!broadcasts)
      v = random_.chance(50) ? pl::max(v) : pl::min(v);
    return broadcast_to(v.astype(d), shape);
  }

  // Small whole numbers, so that their sums and products are exact in any order.
  Value small(const Value& v, DType d) { return (v.astype(i32) & 7).astype(d); }

  // 0 .. limit, whatever the value is.
  Value index_up_to(std::int64_t limit) {
    const Value v = coerced(some(), i32, scalar_shape());
    return minimum(maximum(v, 0), limit);
  }

  // The same, and sometimes a multiple of something that it is said to be.
  Value start_up_to(std::int64_t limit) {
    const int n = random_.pick({1, 1, 2, 4, 16});
    return n == 1 ? index_up_to(limit) : pl::multiple_of(index_up_to(limit / n) * n, n);
  }

  Value condition() {
    const Value v = coerced(some(), i32, scalar_shape());
    const int against = random_.between(0, 5);
    return random_.chance(50) ? v > against : v == against;
  }

  void statement(int depth) {
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

  void keep(const Value& v) { values_.push_back(v); }

  Value unary(const Value& v) {
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

  static bool broadcast_together(const Shape& p, const Shape& q) {
    std::int64_t elements = 1;
    for (int i = 1; i <= std::max(p.rank(), q.rank()); ++i) {
      const std::int64_t m = i <= p.rank() ? p[p.rank() - i].value() : 1;
      const std::int64_t n = i <= q.rank() ? q[q.rank() - i].value() : 1;
      if (m != n && m != 1 && n != 1) return false;
      elements *= std::max(m, n);
    }
    return elements <= most_elements;
  }

  Value binary() {
    const Value x = some(), other = some();
    const DType d = x.dtype();
    const Value y = broadcast_together(x.shape(), other.shape()) ? other.astype(d)
                                                                 : coerced(other, d, x.shape());
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

  Value select() {
    const Value x = some();
    const Value y = coerced(some(), x.dtype(), x.shape());
    return where(coerced(some(), bool_, x.shape()), x, y);
  }

  Value moved(const Value& v) {
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
    if (s.rank() > 3 || count_of(s) * to[0].value() > most_elements) return v;
    for (const Dim& d : s) to.push_back(d);
    return broadcast_to(v, to);
  }

  // Elements of `v` elsewhere.
  Value elsewhere(const Value& v) {
    const Shape s = v.shape();
    const int axis = random_.below(s.rank());
    const auto extent = static_cast<int>(s[axis].value());
    switch (random_.below(13)) {
    case 0: return flip(v, random_.chance(50) ? Axes() : Axes(axis));
    case 1: return roll(v, random_.between(-9, 9), random_.chance(50) ? Axes() : Axes(axis));
    case 2: {
      const int size = random_.between(1, static_cast<int>(s[0].value()));
      const int start = random_.below(static_cast<int>(s[0].value()) - size + 1);
      return v[{ds(start, size), ellipsis}];
    }
    case 3: return v[{ds(index_up_to(s[0].value() + 3) - 1, 1), ellipsis}];
    case 4:
      if (2 * count_of(s) > most_elements) return flip(v);
      return concatenate({v, flip(v)}, axis);
    case 5: {
      const Value at = coerced(some(), i32, Shape{3});
      if (3 * count_of(s) > most_elements) return flip(v);
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

  // Along a dimension of its own, so that something is left.
  Value padded(const Value& v) {
    const std::int64_t before = random_.between(-1, 2), after = random_.between(-1, 2);
    const std::int64_t interior = random_.below(3);
    const Shape s = v.shape();
    if (8 * count_of(s) > most_elements) return flip(v);
    Value flat = pl::reshape(v, {-1});
    if (count_of(s) < 3) flat = concatenate({flat, flat, flat});
    return pad(flat, {{before, after, interior}});
  }

  // Elements that arrays of numbers name, some out of bounds.
  Value named(const Value& v) {
    const Shape s = v.shape();
    const Value first = coerced(some(), i32, Shape{2, 1}) - 1;
    if (s.rank() < 2 || 6 * count_of(s) > most_elements) return gather(v, {first[{_, 0}]});
    const Value second = coerced(some(), i16, Shape{3});
    const int last = s.rank() - 1;
    return gather(v, {first, second}, random_.chance(50) ? Axes{0, 1} : Axes{last, 0});
  }

  // By updates whose order changes nothing.
  Value changed(const Value& v) {
    const Shape s = v.shape();
    if (v.dtype().is_bool()) return scatter(v, {index_up_to(s[0].value())}, true);
    Shape updates = s;
    updates[0] = 5;
    if (5 * count_of(s) > most_elements) return flip(v);
    const Value at = coerced(some(), i32, Shape{5}), x = coerced(some(), v.dtype(), updates);
    const bool adds = v.dtype().is_integer() && random_.chance(50);
    return scatter(v, {at - 1}, x,
                   {.mode = adds                 ? ScatterMode::add
                            : random_.chance(50) ? ScatterMode::max
                                                 : ScatterMode::min});
  }

  Value reduced(const Value& v) {
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

  Value product() {
    const DType d = random_.pick({f32, f16, bf16, f64, i8, i16, i32, f8e4m3});
    std::int64_t m = random_.pick({1, 3, 8, 16, 64}), n = random_.pick({1, 2, 8, 16, 64});
    const std::int64_t k = random_.pick({1, 4, 8, 15, 32});
    const bool ta = random_.chance(50), tb = random_.chance(50);
    const Value a = small(coerced(some(), i32, ta ? Shape{k, m} : Shape{m, k}), d);
    const Value b = small(coerced(some(), i32, tb ? Shape{n, k} : Shape{k, n}), d);
    if (random_.chance(25)) return einsum(ta ? "ki,jk->ij" : "ik,jk->ji", a, tb ? b : transpose(b));
    return pl::dot(a, b, {.trans_a = ta, .trans_b = tb});
  }

  // ---- memory

  // A part of `ref`, which is never empty. What is stored to has no element twice.
  Ref view(const Ref& ref, bool repeats) {
    const Shape s = ref.shape();
    if (s.rank() == 0 || random_.chance(50)) return ref;
    if (random_.chance(25)) return chosen(ref, repeats);
    switch (random_.below(4)) {
    case 0: return ref.reshape({-1});
    case 1:
      if (s.rank() == 2) return ref.transpose({1, 0});
      break;
    case 2:
      if (ref.dtype() == f32) return ref.bitcast(i32);
      break;
    default: break;
    }
    const std::int64_t n = std::min<std::int64_t>(s[0].value(), 1 << 20);
    const std::int64_t size = random_.between(1, static_cast<int>(n));
    const std::int64_t step = size > 1 && random_.chance(30) ? (n - 1) / (size - 1) : 1;
    const std::int64_t last = n - 1 - (size - 1) * step;
    const std::int64_t start = random_.below(static_cast<int>(last) + 1);
    switch (random_.below(3)) {
    case 0: return ref.at({start, ellipsis});
    case 1: return ref.at({ds(start, size, step), ellipsis});
    default: return ref.at({ds(start_up_to(last), size, step), ellipsis});
    }
  }

  Ref chosen(const Ref& ref, bool repeats) {
    const Shape s = ref.shape();
    const std::int64_t n = std::min<std::int64_t>(s[0].value(), 1 << 20);
    const std::int64_t size = random_.between(1, static_cast<int>(std::min<std::int64_t>(n, 9)));
    const Value from = index_up_to(n - 1);
    const Value any = clip(coerced(some(), i32, {size}), 0, n - 1);
    const Value first = repeats ? any : (iota(i32, {size}) + from) % n;
    if (s.rank() < 2 || random_.chance(50)) return ref.at({first, ellipsis});
    const Value second = clip(coerced(some(), i32, {size}), 0, s[1].value() - 1);
    return ref.at({first, second, ellipsis});
  }

  // A row of `ref` from somewhere before or behind it on, of which the mask keeps what exists.
  Value beyond(const Ref& ref) {
    const std::int64_t n = ref.shape()[0].value();
    const int lead = random_.between(-4, 4);
    const bool moves = random_.chance(50);
    const std::int64_t size = n + random_.between(1, 5);
    const Value start = moves ? index_up_to(n) + lead : Value(lead);
    const Value at = iota(i32, {size}) + start;
    const Value other = coerced(some(), ref.dtype(), {size});
    return pl::load(ref.at({ds(start, size)}), {.mask = (at >= 0) & (at < n), .other = other});
  }

  MaybeValue mask(const Shape& shape) {
    if (random_.chance(60)) return {};
    return coerced(some(), bool_, shape);
  }

  Value load() {
    const Ref& ref = *random_.pick(readable_);
    if (ref.shape().rank() == 1 && random_.chance(10)) return beyond(ref);
    const Ref v = view(ref, true);
    const Shape shape = v.shape();
    if (random_.chance(70)) return v[_];
    const Value m = coerced(some(), bool_, shape);
    return pl::load(v, {.mask = m, .other = coerced(some(), v.dtype(), shape)});
  }

  // An input at several offsets, by a sum or a maximum.
  Value neighbours() {
    const int number = random_.below(static_cast<int>(parts_.inputs.size()));
    const Ref& r = parts_.inputs[static_cast<std::size_t>(number)];
    const Shape s = r.shape();
    if (s.rank() == 0 || s.rank() > 3) return load();
    std::vector<std::int64_t> reach, size;
    for (const Dim& d : s) {
      reach.push_back(random_.below(static_cast<int>(std::min<std::int64_t>(d.value(), 4))));
      size.push_back(d.value() - reach.back());
    }
    const bool sums = random_.chance(70), moves = random_.chance(15);
    Value total;
    for (int i = 0, taps = random_.between(4, 20); i < taps; ++i) {
      std::vector<std::int64_t> from;
      for (const std::int64_t most : reach)
        from.push_back(random_.below(static_cast<int>(most) + 1));
      const Value start = moves ? start_up_to(reach[0]) : Value(from[0]);
      Value tap;
      if (s.rank() == 1)
        tap = r[{ds(start, size[0])}];
      else if (s.rank() == 2)
        tap = r[{ds(start, size[0]), ds(from[1], size[1])}];
      else
        tap = r[{ds(start, size[0]), ds(from[1], size[1]), ds(from[2], size[2])}];
      tap = tap.astype(i32) & 63;
      if (random_.chance(20))
        tap = where(inside(number, from, size), tap, zeros(size_of(size), i32));
      total = i == 0 ? tap : sums ? total + tap : maximum(total, tap);
    }
    return total;
  }

  static Shape size_of(const std::vector<std::int64_t>& size) {
    Shape s;
    for (const std::int64_t n : size) s.push_back(n);
    return s;
  }

  // Where elements of the block of an input lie in its array, or nearly so.
  Value inside(int input, const std::vector<std::int64_t>& from,
               const std::vector<std::int64_t>& size) {
    const Operand& o = plan_.inputs[static_cast<std::size_t>(input)];
    Value all = full(size_of(size), true, bool_);
    std::size_t d = 0;
    for (const Cut& c : o.cuts) {
      if (c.block.kind == BlockDim::Kind::squeezed) continue;
      const std::int64_t step = c.block.kind == BlockDim::Kind::element ? 1 : c.block.size;
      Value at = Value(c.index);
      if (c.axis >= 0)
        at = c.reversed ? num_programs(c.axis) - 1 - program_id(c.axis) : program_id(c.axis);
      const std::int64_t lead = from[d] - c.block.pad_lo + (random_.chance(20) ? 1 : 0);
      const Value place = iota(i32, size_of(size), static_cast<int>(d)) + at * step + lead;
      all = all & (place >= 0);
      all = all & (place < c.extent);
      ++d;
    }
    return all;
  }

  void store() {
    if (writable_.empty()) return;
    const Ref v = view(*random_.pick(writable_), false);
    const Value x = coerced(some(), v.dtype(), v.shape());
    const MaybeValue m = mask(v.shape());
    if (random_.chance(30)) {
      v[_] = x;
    } else {
      pl::store(v, x, {.mask = m});
    }
  }

  void swapped() {
    std::vector<const Ref*> both;
    for (const Ref* r : writable_)
      if (std::find(readable_.begin(), readable_.end(), r) != readable_.end()) both.push_back(r);
    if (both.empty()) return;
    const Ref v = view(*random_.pick(both), false);
    const Value x = coerced(some(), v.dtype(), v.shape());
    const MaybeValue m = mask(v.shape());
    keep(pl::swap(v, x, {.mask = m}));
  }

  // In ways whose result no order changes. What was there depends on it.
  void updated() {
    std::vector<const Ref*> all;
    for (const std::vector<Ref>* refs : {&parts_.outputs, &parts_.scratch})
      for (const Ref& r : *refs)
        if (!r.dtype().is_bool() && !(r.dtype().is_float() && r.dtype().bytes() == 1) &&
            std::find(writable_.begin(), writable_.end(), &r) != writable_.end())
          all.push_back(&r);
    if (all.empty()) return;
    const Ref v = view(*random_.pick(all), true);
    const Value x = coerced(some(), v.dtype(), v.shape());
    const MaybeValue m = mask(v.shape());
    if (v.dtype().is_float()) return void(atomic_min(v, x, {.mask = m}));
    switch (random_.below(5)) {
    case 0: return void(atomic_max(v, x, {.mask = m}));
    case 1: return void(atomic_xor(v, x, {.mask = m}));
    case 2: return addupdate(v, x, {.mask = m});
    default: return void(atomic_add(v, x, {.mask = m}));
    }
  }

  // ---- control

  // Statements in a region, whose values stay there.
  void inside(int depth) {
    for (int i = random_.between(1, 4); i > 0; --i) statement(depth - 1);
  }

  void when_(int depth) {
    const std::size_t outside = values_.size();
    pl::when(condition(), [&] {
      inside(depth);
      store();
    });
    values_.resize(outside);
  }

  void loop_(int depth) {
    const int lo = random_.below(3), step = random_.pick({1, 1, 2, 3});
    const bool literal = random_.chance(50);
    const Value hi = literal ? Value(random_.below(6)) : index_up_to(5);
    const int unroll = literal ? random_.pick({1, 1, 2, 4, 0}) : 1;
    const Value a0 = some(), b0 = some();
    const std::size_t outside = values_.size();
    const auto body = [&](Index i, Value a, Value b) {
      values_.insert(values_.end(), {i, a, b});
      inside(depth);
      const Value next = coerced(some(), a.dtype(), a.shape());
      return carry(next, coerced(some(), b.dtype(), b.shape()));
    };
    auto [a, b] = pl::loop(lo, hi, LoopOptions{.step = step, .unroll = unroll}, body,
                           a0.astype(a0.dtype()), b0.astype(b0.dtype()));
    values_.resize(outside);
    keep(a);
    keep(b);
  }

  // A carry counts, so that there is an end.
  void while_(int depth) {
    const int most = random_.below(5);
    const Value a0 = some();
    const std::size_t outside = values_.size();
    const auto again = [&](Value n, Value a) {
      values_.insert(values_.end(), {n, a});
      if (random_.chance(50)) inside(depth);
      const Value holds = random_.chance(30) ? (n < most) & condition() : n < most;
      values_.resize(outside);
      return holds;
    };
    const auto body = [&](Value n, Value a) {
      values_.insert(values_.end(), {n, a});
      inside(depth);
      const Value next = coerced(some(), a.dtype(), a.shape());
      return carry(n + 1, next);
    };
    auto [n, a] = pl::while_loop(again, body, i32(0), a0.astype(a0.dtype()));
    values_.resize(outside);
    keep(n);
    keep(a);
  }

  // Memory of its own, which is written first.
  void scope(int depth) {
    const std::size_t outside = values_.size();
    const Value start = some();
    const Shape shape = start.shape();
    Space space = random_.pick({Space::smem, Space::regs});
    const auto body = [&](Ref tmp) {
      tmp[_] = start.astype(tmp.dtype());
      readable_.push_back(&tmp);
      writable_.push_back(&tmp);
      inside(depth);
      const Value result = coerced(some(), tmp.dtype(), tmp.shape());
      std::erase(readable_, &tmp);
      std::erase(writable_, &tmp);
      return result;
    };
    const Value given = run_scoped(body, {Scoped{space, {shape, dtype()}, here()}});
    values_.resize(outside);
    keep(given);
  }

  struct Two {
    Value a, b;
  };

  void choose(int depth) {
    const Value a0 = some(), b0 = some();
    const std::size_t outside = values_.size();
    const auto branch = [&] {
      if (random_.chance(80)) inside(depth);
      const Value a = coerced(some(), a0.dtype(), a0.shape());
      const Value b = coerced(some(), b0.dtype(), b0.shape());
      values_.resize(outside);
      return Two{a, b};
    };
    const auto chosen = [&] {
      if (random_.chance(50)) return pl::cond(condition(), branch, branch);
      const Value number = index_up_to(5);
      const Value index = number - random_.below(3);
      return pl::switch_(index, branch, branch, branch);
    };
    const auto [a, b] = chosen();
    values_.resize(outside);
    keep(a);
    keep(b);
  }

  // ---- outputs

  void initialise(std::size_t i) {
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

  void finish(std::size_t i) {
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

  Random random_;
  const Plan& plan_;
  const Parts& parts_;
  std::vector<const Ref*> readable_, writable_;
  std::vector<Value> values_;
};

// ---- parameters

struct Collected {
  std::vector<Ref> refs;
  std::vector<Value> numbers;
  void take(const Ref& r) { refs.push_back(r); }
  void take(const Value& v) { numbers.push_back(v); }
  void take(const Refs& all) {
    for (const Ref& r : all) refs.push_back(r);  // a Ref cannot be assigned
  }
};

Parts apart(const Plan& plan, Collected given) {
  Parts parts;
  parts.numbers = std::move(given.numbers);
  for (std::size_t i = 0; i < given.refs.size(); ++i) {
    auto& part = i < plan.inputs.size()                         ? parts.inputs
                 : i < plan.inputs.size() + plan.outputs.size() ? parts.outputs
                                                                : parts.scratch;
    part.push_back(given.refs[i]);
  }
  return parts;
}

template <class... P>
Body taking(const Plan& plan) {
  return Body(
      [plan](P... parameters) {
        Collected given;
        (given.take(parameters), ...);
        const Parts parts = apart(plan, std::move(given));
        Statements(plan, parts).run();
      },
      user(body_line));
}

template <std::size_t... I>
Body taking_refs(const Plan& plan, std::index_sequence<I...>) {
  return taking<pl::detail::Repeat<Ref, I>...>(plan);
}

Body taking_refs(const Plan& plan, int count) {
  switch (count) {
  case 0: return taking_refs(plan, std::make_index_sequence<0>());
  case 1: return taking_refs(plan, std::make_index_sequence<1>());
  case 2: return taking_refs(plan, std::make_index_sequence<2>());
  case 3: return taking_refs(plan, std::make_index_sequence<3>());
  case 4: return taking_refs(plan, std::make_index_sequence<4>());
  case 5: return taking_refs(plan, std::make_index_sequence<5>());
  case 6: return taking_refs(plan, std::make_index_sequence<6>());
  case 7: return taking_refs(plan, std::make_index_sequence<7>());
  default: return taking_refs(plan, std::make_index_sequence<8>());
  }
}

}  // namespace

Body body_of(const Plan& plan) {
  if (plan.operands_more != 0 || (plan.numbers.empty() && plan.seed % 2 == 0)) {
    const std::size_t all = plan.inputs.size() + plan.outputs.size() + plan.scratch.size();
    return taking_refs(plan, std::max(0, static_cast<int>(all) + plan.operands_more));
  }
  const std::string numbers = plan.pattern.substr(0, plan.pattern.find_last_of('v') + 1);
  if (numbers == "v") return taking<Value, Refs>(plan);
  if (numbers == "rv") return taking<Ref, Value, Refs>(plan);
  if (numbers == "rrv") return taking<Ref, Ref, Value, Refs>(plan);
  if (numbers == "vv") return taking<Value, Value, Refs>(plan);
  if (numbers == "vrv") return taking<Value, Ref, Value, Refs>(plan);
  if (numbers == "rvv") return taking<Ref, Value, Value, Refs>(plan);
  if (numbers == "rvrv") return taking<Ref, Value, Ref, Value, Refs>(plan);
  if (numbers == "vrrv") return taking<Value, Ref, Ref, Value, Refs>(plan);
  if (numbers == "rrvv") return taking<Ref, Ref, Value, Value, Refs>(plan);
  return taking<Refs>(plan);
}

}  // namespace palladium::test::random_calls
