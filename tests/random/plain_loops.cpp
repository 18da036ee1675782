// What bodies mean, as loops over numbers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/random/plain.hpp"

namespace palladium::test::plain {
namespace {

double wrapped(DType d, std::int64_t x) {
  if (d == i16) return static_cast<std::int16_t>(x);
  if (d == u8) return static_cast<std::uint8_t>(x);
  return static_cast<std::int32_t>(x);
}
double converted(DType to, DType from, double x) {
  if (to.is_bool()) return x != 0;
  if (to.is_float()) return static_cast<float>(x);
  if (!from.is_float()) return wrapped(to, static_cast<std::int64_t>(x));
  const double low = to == i32 ? INT32_MIN : to == i16 ? INT16_MIN : 0;
  const double high = to == i32 ? INT32_MAX : to == i16 ? INT16_MAX : UINT8_MAX;
  return std::isnan(x) ? 0 : std::trunc(std::clamp(x, low, high));
}
bool is_beyond(double x, double y) { return std::isnan(x) ? !std::isnan(y) : x > y; }
double greater(double x, double y) { return std::isnan(x) || is_beyond(x, y) ? x : y; }
double lesser(double x, double y) { return std::isnan(x) || x < y ? x : y; }

double unary(DType d, std::int64_t n, double x) {
  if (d.is_bool()) return x == 0;
  if (!d.is_float()) return wrapped(d, static_cast<std::int64_t>(n == 0 ? -x : std::fabs(x)));
  const double results[] = {-x, std::fabs(x), std::floor(x), std::sqrt(std::fabs(x))};
  return static_cast<float>(results[n]);
}

double binary(DType d, std::int64_t n, double x, double y) {
  if (n == 3 && !d.is_bool()) return greater(x, y);
  if (n == 4 && !d.is_bool()) return lesser(x, y);
  if (d.is_float()) {
    const auto p = static_cast<float>(x), q = static_cast<float>(y);
    const float below = std::fabs(q) + 1;
    return n == 0 ? p + q : n == 1 ? p - q : n == 2 ? p * q : p / below;
  }
  const auto p = static_cast<std::int64_t>(x), q = static_cast<std::int64_t>(y);
  if (d.is_bool()) n += 5;  // and, or, xor
  switch (n) {
  case 0: return wrapped(d, p + q);
  case 1: return wrapped(d, p - q);
  case 2: return wrapped(d, p * q);
  case 5: return wrapped(d, p & q);
  case 6: return wrapped(d, p | q);
  case 7: return wrapped(d, p ^ q);
  case 8: return wrapped(d, q == 0 ? -1 : p / q);
  default: return wrapped(d, q == 0 ? p : p % q);
  }
}

bool compared(std::int64_t n, double x, double y) {
  return n == 0 ? x < y : n == 1 ? x <= y : n == 2 ? x == y : x != y;
}

/// f(index) for every index of a shape, row-major.
template <class F>
void for_each_index(const Sizes& shape, F&& f) {
  for (std::int64_t i = 0; i < count(shape); ++i) {
    Sizes index(shape.size());
    std::int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    f(index);
  }
}
double element(const Numbers& x, const Sizes& index) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < index.size(); ++d) at = at * x.shape[d] + index[d];
  return x.at[static_cast<std::size_t>(at)];
}

class Loops {
 public:
  Loops(const std::vector<Numbers>& blocks, Sizes program)
      : blocks_(blocks), program_(std::move(program)) {}

  Numbers run(const Program& p, std::vector<Numbers> values) const {
    for (const Step& s : p.steps) values.push_back(step(s, values));
    return values[static_cast<std::size_t>(p.result)];
  }

 private:
  Numbers step(const Step& s, const std::vector<Numbers>& values) const {
    if (s.kind == Kind::looped) return looped(s, values);
    const auto value = [&](int v) -> const Numbers& { return values[static_cast<std::size_t>(v)]; };
    if (s.kind == Kind::branched)
      return run(s.inside[std::clamp<std::size_t>(value(s.a).at[0] > 0, 0, 1)], values);
    Numbers result{s.dtype, s.shape, {}};
    for_each_index(s.shape, [&](const Sizes& i) { result.at.push_back(number(s, value, i)); });
    return result;
  }

  Numbers looped(const Step& s, const std::vector<Numbers>& values) const {
    Numbers carried = values[static_cast<std::size_t>(s.a)];
    for (std::int64_t i = 0; i < s.m; ++i) {
      std::vector<Numbers> all = values;
      all.push_back({i32, {}, {static_cast<double>(i)}});
      all.push_back(carried);
      carried = run(s.inside[0], std::move(all));
    }
    return carried;
  }

  // The element of a step's result at `i`.
  template <class F>
  double number(const Step& s, const F& value, Sizes i) const {
    const auto d = static_cast<std::size_t>(s.n);
    const auto first = [&](std::int64_t row) {
      i[0] = row;
      return element(value(s.a), i);
    };
    const auto number_of = [](double x) { return static_cast<std::int64_t>(x); };
    switch (s.kind) {
    case Kind::number: return converted(s.dtype, i32, static_cast<double>(s.n));
    case Kind::counted: return static_cast<double>(i[d]);
    case Kind::program: return static_cast<double>(program_[d]);
    case Kind::loaded: return element(blocks_[d], i);
    case Kind::loaded_row:
      i.insert(i.begin(), number_of(value(s.a).at[0]));
      return element(blocks_[d], i);
    case Kind::loaded_at:
      i[0] = number_of(value(s.a).at[static_cast<std::size_t>(i[0])]);
      return element(blocks_[d], i);
    case Kind::cast: return converted(s.dtype, value(s.a).dtype, element(value(s.a), i));
    case Kind::coerced: return coerced(value(s.a), s.shape, i);
    case Kind::unary: return unary(s.dtype, s.n, element(value(s.a), i));
    case Kind::binary: return binary(s.dtype, s.n, element(value(s.a), i), element(value(s.b), i));
    case Kind::compared: return compared(s.n, element(value(s.a), i), element(value(s.b), i));
    case Kind::chosen: return element(value(element(value(s.a), i) != 0 ? s.b : s.c), i);
    case Kind::transposed: std::ranges::reverse(i); return element(value(s.a), i);
    case Kind::leading: i.erase(i.begin()); return element(value(s.a), i);
    case Kind::summed:
    case Kind::largest:
    case Kind::smallest:
    case Kind::place_of_largest: return folded(s, value(s.a), i);
    case Kind::accumulated: {
      double sum = 0;
      const std::int64_t end = i[d];
      for (i[d] = s.m != 0 ? end : 0; i[d] < (s.m != 0 ? s.shape[d] : end + 1); ++i[d])
        sum += element(value(s.a), i);
      return converted(s.dtype, i32, sum);
    }
    case Kind::product: {
      double sum = 0;
      for (std::int64_t k = 0; k < value(s.b).shape[0]; ++k)
        sum += element(value(s.a), {i[0], k}) * element(value(s.b), {k, i[1]});
      return sum;
    }
    case Kind::flipped: i[d] = s.shape[d] - 1 - i[d]; return element(value(s.a), i);
    case Kind::doubled: return first(i[0] % value(s.a).shape[0]);
    case Kind::part: return first(i[0] + s.n);
    case Kind::part_at:
      return first(i[0] + std::clamp<std::int64_t>(number_of(value(s.b).at[0]), 0,
                                                   value(s.a).shape[0] - s.m));
    case Kind::taken:
      return first(std::clamp<std::int64_t>(
          number_of(value(s.b).at[static_cast<std::size_t>(i[0])]), 0, value(s.a).shape[0] - 1));
    case Kind::looped:
    case Kind::branched: break;
    }
    return 0;
  }

  static double coerced(const Numbers& x, const Sizes& to, const Sizes& i) {
    if (count(x.shape) == count(to)) return element({x.dtype, to, x.at}, i);
    if (x.shape.empty()) return x.at[0];
    std::int64_t sum = 0;
    for (const double e : x.at) sum += static_cast<std::int64_t>(e);
    return wrapped(x.dtype, sum);
  }

  static double folded(const Step& s, const Numbers& x, Sizes i) {
    const auto d = static_cast<std::size_t>(s.n);
    i.insert(i.begin() + s.n, 0);
    double result = element(x, i), place = 0;
    for (i[d] = 1; i[d] < x.shape[d]; ++i[d]) {
      const double e = element(x, i);
      if (s.kind == Kind::place_of_largest && is_beyond(e, result))
        result = e, place = static_cast<double>(i[d]);
      if (s.kind == Kind::summed) result += e;
      if (s.kind == Kind::largest) result = greater(result, e);
      if (s.kind == Kind::smallest) result = lesser(result, e);
    }
    return s.kind == Kind::place_of_largest ? place
           : s.kind == Kind::summed         ? converted(s.dtype, i32, result)
                                            : result;
  }

  const std::vector<Numbers>& blocks_;
  Sizes program_;
};

}  // namespace

// Every program after the other: its blocks, and what it stores.
Numbers meant(const Plan& plan, const std::vector<Numbers>& inputs) {
  Sizes programs, shape = plan.extents();
  for (const Axis& a : plan.axes) programs.push_back(a.programs);
  shape.resize(plan.output_axes());
  Numbers output{plan.output, shape, std::vector<double>(static_cast<std::size_t>(count(shape)))};
  for_each_index(programs, [&](const Sizes& program) {
    std::vector<Numbers> blocks;
    for (const Numbers& x : inputs) {
      Numbers& block = blocks.emplace_back(Numbers{x.dtype, plan.block(), {}});
      for_each_index(block.shape, [&](Sizes i) {
        bool inside = true;
        for (std::size_t d = 0; d < i.size(); ++d) {
          i[d] += program[d] * block.shape[d];
          inside = inside && i[d] < x.shape[d];
        }
        block.at.push_back(inside ? element(x, i) : x.dtype.is_bool() ? 1 : fill);
      });
    }
    const Numbers result = Loops(blocks, program).run(plan.body, {});
    std::size_t n = 0;
    for_each_index(result.shape, [&](const Sizes& i) {
      const double x = result.at[n++];
      std::int64_t at = 0;
      bool inside = true;
      for (std::size_t d = 0; d < i.size(); ++d) {
        const std::int64_t place = i[d] + program[d] * result.shape[d];
        inside = inside && place < shape[d];
        at = at * shape[d] + place;
      }
      if (!inside) return;
      double& o = output.at[static_cast<std::size_t>(at)];
      o = plan.accumulates && program[1] > 0 ? binary(i32, 0, o, x) : x;
    });
  });
  return output;
}

}  // namespace palladium::test::plain
