// Values from nothing: arange, and what is like another value or a Ref; delays.
#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

struct Counted {
  DType dtype;
  double start, stop, step;
  bool integers;
};

const Counted counted[] = {
    {i32, 0, 7, 1, true},         {i32, 3, 40, 5, true},        {i64, 10, -3, -4, true},
    {u8, 255, 0, -51, true},      {i8, -128, 127, 250, true},   {u16, 0, 60001, 60000, true},
    {u64, 5, 6, 1, true},         {f32, 0, 9, 1, true},         {f32, 0, 1, 0.1, false},
    {f32, 1, 1.3, 0.1, false},    {f64, -1, 1, 0.3, false},     {f16, 0, 100, 0.37, false},
    {bf16, 2, -2, -0.123, false}, {f8e4m3, 0, 20, 1.25, false}, {f8e5m2, 1, 9, 3, true},
    {i16, 0, 6, 2, false},        {f32, 0, 2.5, 1, false},
};

Value value_of(const Counted& c) {
  const auto whole = [](double x) { return static_cast<std::int64_t>(x); };
  return c.integers ? pl::arange(whole(c.start), whole(c.stop), whole(c.step), c.dtype)
                    : pl::arange(c.start, c.stop, c.step, c.dtype);
}

}  // namespace

TEST_CASE("arange counts as numpy's, in every dtype, each number rounded once") {
  std::vector<Tensor> outputs;
  for (const Counted& c : counted) {
    const double n = std::ceil((c.stop - c.start) / c.step);
    outputs.emplace_back(c.dtype, std::vector<std::int64_t>{static_cast<std::int64_t>(n)});
  }
  std::vector<Tensor*> out;
  for (Tensor& t : outputs) out.push_back(&t);
  run(
      [&](Refs refs) {
        for (std::size_t k = 0; k < std::size(counted); ++k) refs[k][_] = value_of(counted[k]);
      },
      {}, {}, out);
  for (std::size_t k = 0; k < std::size(counted); ++k) {
    const Counted& c = counted[k];
    for (std::int64_t i = 0; i < outputs[k].size(); ++i) {
      CAPTURE(c.dtype.name(), c.start, c.step, i);
      const double step = c.dtype == f64 ? c.step : static_cast<float>(c.step);
      const double exact = std::fma(static_cast<double>(i), step, c.start);
      const std::uint64_t bits =
          c.dtype == f64 || c.integers
              ? graph::to_bits(c.dtype, exact)
              : graph::to_bits(c.dtype, static_cast<double>(static_cast<float>(exact)));
      CHECK(outputs[k].bits(i) == bits);
    }
  }
}

TEST_CASE("arange takes one number, a dtype, and a size that the trace knows") {
  Tensor x = arange(f32, {6}), a(i32, {6}), b(f32, {6}), c(i64, {4}), d(i8, {4});
  run(
      [](Ref x, Ref a, Ref b, Ref c, Ref d) {
        d[_] = pl::arange(-8, 8, 5, i4).astype(i8);
        const Dim n = x.shape()[0];
        a[_] = pl::arange(n);
        b[_] = x[_] * pl::arange(n, f32) + pl::arange(5.5);
        c[_] = pl::arange(std::int64_t(-9223372036854775807), std::uint64_t(9223372036854775808u),
                          std::int64_t(4611686018427387904), i64);
      },
      {}, {&x}, {&a, &b, &c, &d});
  CHECK(a.numbers() == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(b.numbers() == std::vector<double>{0, 2, 6, 12, 20, 30});
  CHECK(d.numbers() == std::vector<double>{-8, -3, 2, 7});
  for (std::int64_t i = 0; i < 4; ++i)
    CHECK(c.bits(i) == 0x8000000000000001u + static_cast<std::uint64_t>(i) * 0x4000000000000000u);
}

TEST_CASE("zeros, ones and numbers like a value or a Ref have its shape and dtype, or one given") {
  Tensor x = arange(i16, {3, 4}), s(f32, {3, 4}), t(i16, {3, 4}), u(f32, {3, 4}), v(u8, {4}),
         w(bf16, {3, 4});
  run(
      [](Ref x, Ref s, Ref t, Ref u, Ref v, Ref w) {
        // Of what is not there yet nothing is read.
        s[_] = pl::ones_like(s) + pl::zeros_like(s[_]) + pl::empty_like(s) * pl::zeros_like(u);
        t[_] = x[_] + pl::ones_like(x[_]) * pl::full_like(x, 7);
        u[_] = pl::full_like(x[_], x[{1, 2}], f32) + pl::zeros_like(x, f32);
        v[_] = pl::full_like(x.at(0), pl::arange(4), u8) + pl::ones_like(x[0], u8);
        w[_] = pl::full_like(w, pl::reshape(x[{_, 0}], {3, 1}));
      },
      {}, {&x}, {&s, &t, &u, &v, &w});
  for (std::int64_t i = 0; i < 12; ++i) {
    CHECK(s[i] == 1);
    CHECK(t[i] == static_cast<double>(i + 7));
    CHECK(u[i] == 6);
    CHECK(w[i] == static_cast<double>(i / 4 * 4));
  }
  CHECK(v.numbers() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("delays of numbers and Values, wherever they stand, change nothing") {
  Tensor x = arange(f32, {8}), o(f32, {8});
  run(
      [](Ref x, Ref o) {
        pl::delay(100);
        const Value v = x[_];
        pl::loop(0, 3, [&](Index i) {
          pl::delay(i * 1000000);
          o[_] = v + pl::f32(i);
        });
        pl::when(x[0] == 0, [&] { pl::delay(-5); });
        pl::delay(pl::i32(x[1]));
      },
      {}, {&x}, {&o});
  for (std::int64_t i = 0; i < 8; ++i) CHECK(o[i] == static_cast<double>(i + 2));
}
