// Products, truths, places of extremes, means: against loops over the elements, on interpreter and
// emulator.
#include <algorithm>
#include <functional>
#include <limits>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();
constexpr DType numbers[] = {i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

using Elements = std::vector<double>;

struct Fold {
  std::vector<std::int64_t> shape;
  int axis = 0;  // -1: all
};

const std::vector<Fold> few = {{{5, 7}, 0}, {{5, 7}, 1}, {{33}, 0}, {{3, 4, 6}, 1}, {{5, 7}, -1}};
const std::vector<Fold> many = {{{1}, 0},          {{2}, 0},       {{129}, 0},      {{1000}, 0},
                                {{1, 77}, 0},      {{1, 77}, 1},   {{77, 1}, 0},    {{77, 1}, 1},
                                {{17, 33}, 0},     {{17, 33}, 1},  {{2, 1000}, 1},  {{1000, 3}, 0},
                                {{5, 6, 7}, 0},    {{5, 6, 7}, 1}, {{5, 6, 7}, 2},  {{4096}, 0},
                                {{2, 3, 4, 5}, 2}, {{64, 64}, -1}, {{3, 5, 7}, -1}, {{300, 70}, 0}};

// The elements that each result folds.
std::vector<Elements> rows(const Tensor& x, int axis) {
  if (axis < 0) return {x.numbers()};
  const auto along = static_cast<std::size_t>(axis);
  std::int64_t inner = 1;
  for (std::size_t d = along + 1; d < x.shape().size(); ++d) inner *= x.shape()[d];
  const std::int64_t extent = x.shape()[along];
  std::vector<Elements> found(static_cast<std::size_t>(x.size() / extent));
  for (std::int64_t i = 0; i < x.size(); ++i)
    found[static_cast<std::size_t>(i / (inner * extent) * inner + i % inner)].push_back(x[i]);
  return found;
}

std::vector<std::int64_t> without(std::vector<std::int64_t> shape, int axis) {
  if (axis < 0) return {};
  shape.erase(shape.begin() + axis);
  return shape;
}

using Operation = std::function<Value(Value, ReduceOptions)>;
using Reference = std::function<double(const Elements&)>;

double rounded(DType t, double x) {
  if (t.is_integer())
    return static_cast<double>(
        graph::to_int(t, static_cast<std::uint64_t>(static_cast<std::int64_t>(x))));
  return graph::to_double(t, graph::to_bits(t, x));
}

// Exactly, in one kernel.
void check(std::vector<Tensor> in, DType to, const std::vector<Fold>& folds,
           const Operation& operation, const Reference& reference, int num_warps = 0) {
  std::vector<Tensor> out;
  for (const Fold& f : folds) out.emplace_back(to, without(f.shape, f.axis));
  run_each(in, out, {.compiler_params = {.num_warps = num_warps}},
           [&](std::size_t k, const Value& x) {
             ReduceOptions options;
             if (folds[k].axis >= 0) options.axis = folds[k].axis;
             return operation(x, options);
           });
  for (std::size_t k = 0; k < folds.size(); ++k) {
    const Fold& f = folds[k];
    CAPTURE(in[k].dtype().name(), f.shape, f.axis, num_warps);
    Elements expected;
    for (const Elements& row : rows(in[k], f.axis)) expected.push_back(rounded(to, reference(row)));
    REQUIRE(out[k].numbers() == expected);
  }
}

void check(const Tensor& in, DType to, const Fold& f, const Operation& operation,
           const Reference& reference, int num_warps = 0) {
  check(std::vector{in}, to, std::vector{f}, operation, reference, num_warps);
}

// `make` gives the array of a dtype and shape.
template <class Make>
std::vector<Tensor> each(const std::vector<Fold>& folds, DType t, const Make& make) {
  std::vector<Tensor> in;
  for (const Fold& f : folds) in.push_back(make(t, f.shape));
  return in;
}

// One and two, few of the latter: products are exact.
Tensor powers(DType t, const std::vector<std::int64_t>& shape) {
  const std::int64_t n = graph::element_count(shape);
  return Tensor(t, shape,
                [=](std::int64_t i) { return (i * 31 + 5) % (n / 5 + 2) == 1 ? 2.0 : 1.0; });
}

double product(const Elements& row) {
  double all = 1;
  for (const double x : row) all *= x;
  return all;
}

// Repeats, so that the extreme stands at several places.
Tensor pattern(DType t, const std::vector<std::int64_t>& shape) {
  return Tensor(t, shape, [=](std::int64_t i) {
    const auto x = static_cast<double>((i * 7 + i / 3) % 11);
    return t.is_bool() ? x > 5 : t.is_signed() ? x - 5 : x;
  });
}

double place(const Elements& row, bool greatest) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[best])) break;
    if (std::isnan(row[i]) || (greatest ? row[i] > row[best] : row[i] < row[best])) best = i;
  }
  return static_cast<double>(best);
}

}  // namespace

TEST_CASE("prod multiplies every dtype along any axis") {
  const Operation op = [](Value x, ReduceOptions o) { return prod(x, o); };
  for (const DType t : numbers) check(each(few, t, powers), t, few, op, product);
  for (const Fold& f : many) check(powers(f32, f.shape), f32, f, op, product);
  for (const int warps : {4, 8, 16})
    check(powers(f16, {70, 40}), f16, {{70, 40}, 1}, op, product, warps);
}

TEST_CASE("products of integers wrap") {
  Tensor x = full(i32, {40}, 3), o(i32, {});
  run([](Ref x, Ref o) { o[_] = prod(x[_]); }, {}, {&x}, {&o});
  std::uint32_t all = 1;
  for (int i = 0; i < 40; ++i) all *= 3;
  CHECK(o.bits(0) == all);
}

TEST_CASE("products of 16-bit floats leave their range on the way") {
  Tensor x(f16, {4}, {60000, 60000, 1.0 / 1024, 1.0 / 65536}), o(f16, {});
  run([](Ref x, Ref o) { o[_] = prod(x[_]); }, {}, {&x}, {&o});
  CHECK(o[0] == rounded(f16, rounded(f16, 60000) * rounded(f16, 60000) / 1024 / 65536));
}

TEST_CASE("any and all ask every dtype, booleans and what is not 0") {
  const auto some = [](DType t, const std::vector<std::int64_t>& shape) {
    return Tensor(t, shape, [](std::int64_t i) { return i % 5 == 1 || i > 12 ? 1.0 : 0.0; });
  };
  for (const DType t : {bool_, i8, u64, f16, f32}) {
    check(
        each(few, t, some), bool_, few, [](Value v, ReduceOptions o) { return any(v, o); },
        [](const Elements& r) { return std::ranges::count(r, 0.0) < std::ssize(r); });
    check(
        each(few, t, some), bool_, few, [](Value v, ReduceOptions o) { return all(v, o); },
        [](const Elements& r) { return std::ranges::count(r, 0.0) == 0; });
  }
}

TEST_CASE("argmax and argmin give the lowest index of every dtype along any axis") {
  for (const bool greatest : {true, false}) {
    const Operation op = [=](Value x, ReduceOptions o) {
      return greatest ? argmax(x, o) : argmin(x, o);
    };
    const Reference reference = [=](const Elements& row) { return place(row, greatest); };
    for (const DType t : numbers) check(each(few, t, pattern), i32, few, op, reference);
    check(each(few, bool_, pattern), i32, few, op, reference);
    for (const Fold& f : many) check(pattern(f32, f.shape), i32, f, op, reference);
  }
}

TEST_CASE("argmax and argmin take the first NaN, and zeros of both signs as equal") {
  for (const DType t : {f16, bf16, f32, f64}) {
    Tensor x(t, {3, 4}, {1, nan_, 7, nan_, -0.0, 0.0, -0.0, -1, 5, 5, nan_, -9});
    Tensor high(i32, {3}), low(i32, {3});
    run(
        [](Ref x, Ref high, Ref low) {
          high[_] = argmax(x[_], {.axis = 1});
          low[_] = argmin(x[_], {.axis = 1});
        },
        {}, {&x}, {&high, &low});
    CHECK(high.numbers() == Elements{1, 0, 2});
    CHECK(low.numbers() == Elements{1, 3, 2});
  }
}

TEST_CASE("argmax without an axis counts in row-major order, and keeps dimensions if asked") {
  Tensor x = pattern(i32, {4, 9}), o(i32, {1, 1}), p(i32, {4, 1});
  run(
      [](Ref x, Ref o, Ref p) {
        o[_] = argmax(x[_], {.keepdims = true});
        p[_] = argmin(x[_], {.axis = -1, .keepdims = true});
      },
      {}, {&x}, {&o, &p});
  CHECK(o[0] == place(x.numbers(), true));
  for (std::int64_t i = 0; i < 4; ++i)
    CHECK(p[i] == place(rows(x, 1)[static_cast<std::size_t>(i)], false));
}

TEST_CASE("mean and var give floats, computed in f32 or f64") {
  for (const DType t : {i8, u32, i64, bool_, f16, bf16, f32, f64}) {
    const DType to = t.is_float() ? t : t.bytes() == 8 ? f64 : f32;
    CAPTURE(t.name());
    // Means are whole numbers, variances too.
    Tensor x(t, {4, 8}, [&](std::int64_t i) { return t.is_bool() ? 1.0 : i % 2 == 0 ? 2.0 : 6.0; });
    Tensor m(to, {4}), v(to, {1, 8}), w(to, {});
    run(
        [](Ref x, Ref m, Ref v, Ref w) {
          m[_] = mean(x[_], {.axis = 1});
          v[_] = var(x[_], {.axis = 0, .keepdims = true});
          w[_] = var(x[_], {.ddof = 16});
        },
        {}, {&x}, {&m, &v, &w});
    CHECK(m.numbers() == Elements(4, t.is_bool() ? 1 : 4));
    CHECK(v.numbers() == Elements(8, 0));
    CHECK(w[0] == (t.is_bool() ? 0 : 8));
  }
}

TEST_CASE("a mean of 16-bit floats does not overflow") {
  Tensor x = full(f16, {4096}, 60000), m(f16, {});
  run([](Ref x, Ref m) { m[_] = mean(x[_]); }, {}, {&x}, {&m});
  CHECK(m[0] == rounded(f16, 60000));
}

TEST_CASE("logsumexp is the logarithm of the sum of exponentials, without overflow") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const DType t : {f16, bf16, f32, f64})
    for (const int axis : {0, 1, -1})
      for (const bool keepdims : {false, true}) {
        // Beyond what any exponential of f32 holds, where the dtype goes there.
        Tensor x(t, {6, 40}, [](std::int64_t i) {
          return static_cast<double>((i * 37) % 101) / 8 + (i % 40 == 7 ? 1000 : 0);
        });
        std::vector<std::int64_t> shape = without({6, 40}, axis);
        if (keepdims)
          shape = axis < 0 ? std::vector<std::int64_t>{1, 1}
                           : std::vector<std::int64_t>{axis == 0 ? 1 : 6, axis == 0 ? 40 : 1};
        Tensor o(t, shape);
        run(
            [=](Ref x, Ref o) {
              o[_] =
                  logsumexp(x[_], {.axis = axis < 0 ? Axes() : Axes(axis), .keepdims = keepdims});
            },
            {}, {&x}, {&o});
        const std::vector<Elements> all = rows(x, axis);
        for (std::size_t i = 0; i < all.size(); ++i) {
          const double most = *std::max_element(all[i].begin(), all[i].end());
          double sum = 0;
          for (const double e : all[i]) sum += std::exp(e - most);
          const double want = most + std::log(sum), got = o[static_cast<std::int64_t>(i)];
          CAPTURE(t.name(), axis, keepdims, i, got, want);
          CHECK(std::fabs(got - want) <= want * (t == f64   ? 1e-14
                                                 : t == f32 ? 1e-6
                                                 : t == f16 ? 1e-3
                                                            : 8e-3));
        }
      }
  // What has no finite maximum.
  Tensor x(f32, {6, 3},
           {-inf, -inf, -inf, inf, 1, 2, inf, -inf, 3, nan_, 1, 2, nan_, inf, -inf, -inf, 2, -inf});
  Tensor o(f32, {6});
  run([](Ref x, Ref o) { o[_] = logsumexp(x[_], {.axis = 1}); }, {}, {&x}, {&o});
  CHECK(o[0] == -inf);
  CHECK(o[1] == inf);
  CHECK(o[2] == inf);
  CHECK(std::isnan(o[3]));
  CHECK(std::isnan(o[4]));
  CHECK(o[5] == 2);
}

TEST_CASE("logsumexp takes factors, which broadcast and of which 0 leaves out") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Tensor x(f32, {5, 4}, {1, 2, 3, 4, 500, 501, 2, 3, inf, 1, 2, nan_, 0, 0, 0, 0, 3, 3, 1, 1});
  Tensor b(f32, {5, 4}, {1, 2, 0.5, 0, 2, -1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, -1, 0, 0});
  Tensor o(f32, {5}), p(f32, {4}), q(f32, {1, 1});
  run(
      [](Ref x, Ref b, Ref o, Ref p, Ref q) {
        o[_] = logsumexp(x[_], {.axis = {1}, .b = b[_]});
        p[_] = logsumexp(x[{pl::ds(0, 2)}],
                         {.axis = {0}, .b = Value(b[{pl::ds(0, 2), pl::ds(0, 1)}])});
        q[_] = logsumexp(x[{pl::ds(0, 1)}], {.keepdims = true, .b = 2});
      },
      {}, {&x, &b}, {&o, &p, &q});
  const double e = std::exp(1.0);
  CHECK(std::fabs(o[0] - std::log(e + 2 * e * e + 0.5 * e * e * e)) < 1e-6);
  CHECK(std::isnan(o[1]));  // 2 e^500 - e^501 is below 0
  CHECK(std::fabs(o[2] - std::log(e + e * e)) < 1e-6);
  CHECK(o[3] == -inf);
  CHECK(o[4] == -inf);
  CHECK(std::fabs(p[0] - (500 + std::log(2.0))) < 1e-4);
  CHECK(std::fabs(p[2] - std::log(e * e * e + 2 * e * e)) < 1e-6);
  CHECK(std::fabs(q[0] - std::log(2 * (e + e * e + e * e * e + e * e * e * e))) < 1e-6);
}

TEST_CASE("logsumexp says what it takes") {
  Tensor x(i32, {4}), f(f32, {4}), o(f32, {});
  CHECK_THAT(failure_of([](Ref x, Ref o) { o[_] = logsumexp(x[_]); }, {}, {&x}, {&o}),
             ContainsSubstring("logsumexp: expected a floating-point operand, given i32[4]"));
  CHECK_THAT(failure_of([](Ref f, Ref o) { o[_] = logsumexp(f[_], {.axis = 1}); }, {}, {&f}, {&o}),
             ContainsSubstring("logsumexp: "));
  CHECK_THAT(failure_of([](Ref f, Ref x, Ref o) { o[_] = logsumexp(f[_], {.b = x[_]}); }, {},
                        {&f, &x}, {&o}),
             ContainsSubstring("logsumexp: expected operands of one dtype, given f32 and i32"));
}

TEST_CASE("softmax sums up to one along its axis") {
  for (const DType t : {f16, bf16, f32, f64})
    for (const int axis : {0, 1}) {
      Tensor x = pattern(t, {6, 40}), o(t, {6, 40});
      run([=](Ref x, Ref o) { o[_] = softmax(x[_], {.axis = axis}); }, {}, {&x}, {&o});
      for (const Elements& row : rows(o, axis)) {
        double all = 0;
        for (const double p : row) all += p;
        CHECK(std::fabs(all - 1) < (t.bytes() == 2 ? 2e-2 : 1e-5));
      }
      const std::int64_t next = axis == 0 ? 40 : 1;
      CHECK((o[0] < o[next]) == (x[0] < x[next]));
    }
}
