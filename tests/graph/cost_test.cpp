// What options say beside the kernel: costs, metadata, debug; and how often a body is traced.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/captured_stderr.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

Lowered copy_of(PallasCallOptions options) {
  options.name = "copy";
  options.out_type = {{4}, f32};
  return pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, std::move(options))
      .lower(ShapeDtype{{4}, f32});
}

template <class F>
CostEstimate cost(F body, const ShapeDtype& out, std::initializer_list<ArgType> types) {
  const Kernel k = pallas_call(body, {.out_type = out, .compiler_params = {.fma = false}});
  return k.lower(std::span(types.begin(), types.size())).estimate_cost();
}

}  // namespace

TEST_CASE("costs are counted on a kernel's operations and arrays [C116]") {
  const ShapeDtype ten{{10}, f32};
  CHECK(cost([](Ref x, Ref y, Ref o) { o[_] = pl::exp(x[_] + y[_]); }, ten, {ten, ten}) ==
        CostEstimate{10, 10, 120});
  const std::int64_t m = 40, k = 80, n = 90;
  CHECK(cost([](Ref x, Ref y, Ref o) { o[_] = pl::dot(x[_], y[_]).astype(bf16); }, {{m, n}, bf16},
             {ShapeDtype{{m, k}, bf16}, ShapeDtype{{k, n}, bf16}}) ==
        CostEstimate{2 * m * n * k, 0, 2 * (m * k + k * n + m * n)});
  // The products that there are: squares, and what joins them.
  const std::int64_t powers[][2] = {{1, 0}, {7, 4}, {8, 3}, {9, 4}};
  for (const auto& [power, products] : powers) {
    CAPTURE(power);
    const auto body = [power = power](Ref x, Ref o) { o[_] = pl::integer_pow(x[_], power); };
    CHECK(cost(body, ten, {ten}).flops == 10 * products);
  }
}

TEST_CASE("the cost of a batch of products is that of each, times the batch [C116]") {
  const std::int64_t b = 7, m = 37, k = 91, n = 23;
  const BlockSpec x{{squeezed, m, k}, [](Index i) { return Indices{i, 0, 0}; }};
  const BlockSpec y{{squeezed, k, n}, [](Index i) { return Indices{i, 0, 0}; }};
  const BlockSpec o{{squeezed, m, n}, [](Index i) { return Indices{i, 0, 0}; }};
  const Kernel batched =
      pallas_call([](Ref x, Ref y, Ref o) { o[_] = pl::dot(x[_], y[_]); },
                  {.out_type = {{b, m, n}, f32}, .grid = b, .in_specs = {x, y}, .out_specs = {o}});
  CHECK(batched.lower(ShapeDtype{{b, m, k}, f32}, ShapeDtype{{b, k, n}, f32}).estimate_cost() ==
        CostEstimate{2 * b * m * k * n, 0, 4 * b * (m * k + k * n + m * n)});
}

TEST_CASE("the cost of attention is that of its products and its exponentials [C116]") {
  const std::int64_t q = 64, k = 128, d = 16, v = 4;
  const CostEstimate c = cost(
      [](Ref q, Ref k, Ref v, Ref o) {
        const Value s = pl::dot(q[_], k[_], {.trans_b = true});
        const Value e = pl::exp(s - pl::max(s, {.axis = 1, .keepdims = true}));
        o[_] = pl::dot(e / pl::sum(e, {.axis = 1, .keepdims = true}), v[_]);
      },
      {{q, v}, f32}, {ShapeDtype{{q, d}, f32}, ShapeDtype{{k, d}, f32}, ShapeDtype{{k, v}, f32}});
  CHECK(c.flops == 2 * q * k * d + 2 * q * k * v + 2 * q * k);  // products; less, over
  CHECK(c.flops == 344064);
  CHECK(c.transcendentals == 8192);
  CHECK(c.bytes_accessed == 15360);
}

TEST_CASE("a loop's cost is that of its iterations, and a symbol has none") {
  const ShapeDtype four{{4}, f32};
  CHECK(cost([](Ref x, Ref o) { pl::loop(0, 5, [&](Index) { o[_] = x[_] + 1.f; }); }, four, {four})
            .flops == 20);
  const Kernel any = pallas_call(
      [](Ref x, Ref o) { o[_] = x[_] + 1.f; },
      [](ShapeDtype x) {
        const BlockSpec part{{4}, [](Index i) { return i; }};
        return PallasCallOptions{
            .out_type = x, .grid = {cdiv(x.shape[0], 4)}, .in_specs = {part}, .out_specs = {part}};
      });
  CHECK_THROWS_WITH(any.lower(ShapeDtype{{pl::dim("m")}, f32}).estimate_cost(),
                    ContainsSubstring("what it costs depends on the sizes of a call"));
}

TEST_CASE("what a kernel says it costs stands in graph and report, and changes no key [C115]") {
  const Lowered said = copy_of({.cost_estimate = {1234, 21, 12345}}), plain = copy_of({});
  CHECK_THAT(said.graph(), ContainsSubstring("cost estimate: 1234 flops, 21 transcendentals"));
  CHECK(said.report().cost_estimate == CostEstimate{1234, 21, 12345});
  CHECK(plain.report().cost_estimate == CostEstimate{});
  CHECK(said.key() == plain.key());
}

TEST_CASE("metadata stands in the graph and changes no key [C118]") {
  const Lowered said = copy_of({.metadata = {{"foo", "bar"}}});
  CHECK_THAT(said.graph(), ContainsSubstring("metadata foo: bar"));
  CHECK(said.key() == copy_of({}).key());
}

TEST_CASE("a kernel's graph is shown as soon as it is traced, if it asks for it") {
  const auto shown = [](bool debug) {
    const CapturedStderr captured;
    (void)copy_of({.debug = debug});
    return captured.text();
  };
  CHECK_THAT(shown(true), ContainsSubstring("kernel copy") && ContainsSubstring("store"));
  CHECK(shown(false).empty());
}

TEST_CASE("a kernel that is called twice alike is traced once [C117]") {
  int traces = 0;
  const Kernel add_one = pallas_call(
                             [&traces](Ref x, Ref o) {
                               ++traces;
                               o[_] = x[_] + 1.f;
                             },
                             {.out_type = {{8}, f32}})
                             .on(Target::interpreter);
  const Array two = add_one(Array(add_one(Array::full({8}, f32, 0))));
  CHECK(two.values<float>()[7] == 2);
  CHECK(traces == 1);
}
