// Loads, stores and atomic updates of parts of Refs.
#include <algorithm>

#include "tests/random/statements.hpp"

namespace palladium::test::random_calls {
namespace {

Shape size_of(const std::vector<std::int64_t>& size) {
  Shape s;
  for (const std::int64_t n : size) s.push_back(n);
  return s;
}

}  // namespace

Ref Statements::view(const Ref& ref, bool repeats) {
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

Ref Statements::chosen(const Ref& ref, bool repeats) {
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

Value Statements::beyond(const Ref& ref) {
  const std::int64_t n = ref.shape()[0].value();
  const int lead = random_.between(-4, 4);
  const bool moves = random_.chance(50);
  const std::int64_t size = n + random_.between(1, 5);
  const Value start = moves ? index_up_to(n) + lead : Value(lead);
  const Value at = iota(i32, {size}) + start;
  const Value other = coerced(some(), ref.dtype(), {size});
  return pl::load(ref.at({ds(start, size)}), {.mask = (at >= 0) & (at < n), .other = other});
}

MaybeValue Statements::mask(const Shape& shape) {
  if (random_.chance(60)) return {};
  return coerced(some(), bool_, shape);
}

Value Statements::load() {
  const Ref& ref = *random_.pick(readable_);
  if (ref.shape().rank() == 1 && random_.chance(10)) return beyond(ref);
  const Ref v = view(ref, true);
  const Shape shape = v.shape();
  if (random_.chance(70)) return v[_];
  const Value m = coerced(some(), bool_, shape);
  return pl::load(v, {.mask = m, .other = coerced(some(), v.dtype(), shape)});
}

Value Statements::neighbours() {
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
    for (const std::int64_t most : reach) from.push_back(random_.below(static_cast<int>(most) + 1));
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
      tap = where(in_array(number, from, size), tap, zeros(size_of(size), i32));
    total = i == 0 ? tap : sums ? total + tap : maximum(total, tap);
  }
  return total;
}

Value Statements::in_array(int input, const std::vector<std::int64_t>& from,
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

void Statements::store() {
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

void Statements::swapped() {
  std::vector<const Ref*> both;
  for (const Ref* r : writable_)
    if (std::find(readable_.begin(), readable_.end(), r) != readable_.end()) both.push_back(r);
  if (both.empty()) return;
  const Ref v = view(*random_.pick(both), false);
  const Value x = coerced(some(), v.dtype(), v.shape());
  const MaybeValue m = mask(v.shape());
  keep(pl::swap(v, x, {.mask = m}));
}

void Statements::updated() {
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

}  // namespace palladium::test::random_calls
