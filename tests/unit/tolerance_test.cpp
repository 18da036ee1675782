// What a differential test lets pass, and that it sees a fault of one bit.
#include "tests/support/tolerance.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

constexpr std::int64_t rows = 4, columns = 50;

/// One program over x, f32[4, 50] of `element`, and what it gives.
struct Ran {
  graph::Graph g;
  test::Call result;
  Tolerance tolerance;

  template <class F>
  Ran(const Body& body, const std::vector<ShapeDtype>& outputs, F element)
      : g(traced(body, {.name = "k", .out_type = OutType(outputs)}, {array({rows, columns})})) {
    Random random(3);
    result = random_call(g, {}, random, true);
    auto* x = reinterpret_cast<float*>(result.arrays[0].data());
    for (int i = 0; i < rows * columns; ++i) x[i] = static_cast<float>(element(i));
    tolerance = tolerance_of(g, result);
    run_interpreter(g, result);
  }

  /// How the comparison ends when element `i` of array `k` is `changed(its value)`.
  template <class T = float, class F>
  std::string with(std::size_t k, int i, F changed) const {
    test::Call other = result;
    T* element = reinterpret_cast<T*>(other.arrays[k].data()) + i;
    *element = changed(*element);
    return difference(g, result, other, tolerance);
  }
};

float ulps_up(float x, int n) {
  for (; n > 0; --n) x = std::nextafter(x, INFINITY);
  return x;
}
const auto by = [](int n) { return [n](float x) { return ulps_up(x, n); }; };

const auto fraction = [](int i) { return std::sin(i + 1.0); };
const ShapeDtype whole = {{rows, columns}, f32}, per_row = {{rows}, f32};

}  // namespace

TEST_CASE("moves and IEEE operations agree in every bit, the sign of a zero among them") {
  const Ran r([](Ref x, Ref o) { o[_] = (x[_] * 3.0f + 1.0f) / 7.0f; }, {whole},
              [](int i) { return i == 5 ? NAN : i; });
  CHECK(r.tolerance[1].empty());
  CHECK(r.with(1, 8, by(0)) == "");
  CHECK(r.with(1, 8, by(1)).starts_with("outputs[0] element 8 of 200: "));
  CHECK(r.with(1, 5, [](float) { return std::bit_cast<float>(0xffc00001u); }) == "");
  CHECK(r.with(1, 5, [](float) { return 0.0f; }) != "");
  const Ran zeros([](Ref x, Ref o) { o[_] = x[_]; }, {whole}, [](int) { return 0.0; });
  CHECK(zeros.with(1, 0, [](float) { return -0.0f; }) != "");
}

TEST_CASE("an elementary function may be off by the op table's ulp, and no more") {
  const Ran r([](Ref x, Ref o) { o[_] = exp(x[_]); }, {whole}, fraction);
  for (const int i : {0, 1, 77}) {
    CHECK(r.with(1, i, by(graph::info(graph::Op::Exp).ulp)) == "");
    CHECK(r.with(1, i, by(2 * graph::info(graph::Op::Exp).ulp + 2)) != "");
  }
  const Ran zero([](Ref x, Ref o) { o[_] = sin(x[_]); }, {whole}, [](int) { return 0.0; });
  CHECK(zero.with(1, 0, [](float) { return -0.0f; }) != "");
}

TEST_CASE("a narrow elementary function may be rounded to either neighbour") {
  const Ran r([](Ref x, Ref o) { o[_] = exp(Value(x[_]).astype(bf16)); }, {{{rows, columns}, bf16}},
              fraction);
  const auto bits = [](int n) { return [n](std::uint16_t x) { return std::uint16_t(x + n); }; };
  CHECK(r.with<std::uint16_t>(1, 3, bits(1)) == "");
  CHECK(r.with<std::uint16_t>(1, 3, bits(3)) != "");
}

TEST_CASE("a sum may be off by the length of its accumulation, one of whole numbers by nothing") {
  const Body sums = [](Ref x, Ref o) { o[_] = sum(x[_], {.axis = 1}); };
  const Ran r(sums, {per_row}, fraction);
  double sizes = 0;
  for (int i = 0; i < columns; ++i) sizes += std::fabs(fraction(i));
  const double bound = 2 * (columns - 1) * std::ldexp(sizes, -23);
  const auto plus = [](double d) { return [d](float x) { return static_cast<float>(x + d); }; };
  CHECK(r.with(1, 0, plus(bound / 2)) == "");
  CHECK(r.with(1, 0, plus(bound * 1.1)) != "");
  CHECK(bound < 1e-3);
  const Ran exact(sums, {per_row}, [](int i) { return i % 9 - 4; });
  CHECK(exact.with(1, 0, by(1)) != "");
}

TEST_CASE("a product may be off by its depth") {
  const Ran r([](Ref x, Ref o) { o[_] = dot(x[_], x[_], {.trans_b = true}); },
              {{{rows, rows}, f32}}, fraction);
  CHECK(r.with(1, 5, by(8)) == "");
  CHECK(r.with(1, 5, [](float x) { return x * 1.001f; }) != "");
}

TEST_CASE("where sums nearly cancel the bound is wide, in their quotient it is narrow") {
  const Ran r(
      [](Ref x, Ref o, Ref p) {
        const Value a = sum(x[_], {.axis = 1}), b = sum(x[_] * 0.99999f, {.axis = 1});
        o[_] = a - b;
        p[_] = a / b;
      },
      {per_row, per_row}, [](int i) { return 100 + fraction(i); });
  const auto times = [](float f) { return [f](float x) { return x * f; }; };
  CHECK(r.with(1, 2, times(1.001f)) == "");
  CHECK(r.with(2, 2, times(1.001f)) != "");
}

TEST_CASE("what is exact stays so beside what is not, through memory, loops and conditions") {
  Ran r(
      [](Ref x, Ref o, Ref exact, Ref controlled, Ref carried) {
        exact[_] = x[_] + 1.0f;
        o[_] = exp(x[_]);
        controlled[_] = x[_];
        const Value first = sum(o[_]);
        when(first > 1.0f, [&] { controlled[_] = x[_] * 2.0f; });
        const auto step = [&](Index, Value v) { return v * o[_]; };
        carried[_] = loop(0, 3, step, Value(x[_]));
      },
      {whole, whole, whole, whole}, fraction);
  CHECK(inexact_arrays(r.g) == std::vector<bool>{false, true, false, true, true});
  CHECK(r.with(2, 9, by(1)) != "");
  CHECK(r.with(4, 9, by(8)) == "");
}
