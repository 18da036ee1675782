// Elements of a vector that come from among neighbours in memory in another order: halves of pairs,
// pairs put together, each element several times. All targets give what the interpreter does.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

/// Blocks of so many rows and columns, two by two; the last of the array are missing.
struct Blocks {
  std::int64_t rows = 4, columns = 128, missing_rows = 1, missing_columns = 0;
  DType from = f32, to = f32;

  std::string text() const {
    return std::to_string(rows) + "x" + std::to_string(columns) + " of " +
           std::string(from.name()) + " to " + std::string(to.name()) + " without " +
           std::to_string(missing_rows) + "x" + std::to_string(missing_columns);
  }
};

/// What a kernel makes of a block of x, of whose columns a row of `table` has as many as there are
/// pairs; `per` elements of x make one.
struct Operation {
  std::string name;
  std::int64_t per = 1, of = 2;  // columns are multiples of that
  std::function<Value(Ref x, Ref table, std::int64_t rows, std::int64_t columns)> f = {};
};

Value half(const Value& x, std::int64_t rows, std::int64_t n, std::int64_t of, int which) {
  return x.reshape({rows, n / of, of})[{_, _, which}];
}

Value together(const std::vector<Value>& parts, std::int64_t rows, std::int64_t n) {
  return parts.size() == 2 ? stack({parts[0], parts[1]}, 2).reshape({rows, n})
                           : stack({parts[0], parts[1], parts[2], parts[3]}, 2).reshape({rows, n});
}

Value turned(const Value& x, const Value& by, std::int64_t rows, std::int64_t n) {
  const Value a = half(x, rows, n, 2, 0), b = half(x, rows, n, 2, 1);
  return together({a * by - b * 2.0f, b * by + a * 2.0f}, rows, n);
}

std::vector<Operation> operations() {
  using N = std::int64_t;
  return {
      {"gated", 2, 2,
       [](Ref x, Ref, N r, N n) {
         const Value v = x[_].astype(f32);
         return half(v, r, n, 2, 0) * 3.0f + half(v, r, n, 2, 1);
       }},
      {"turned", 1, 2,
       [](Ref x, Ref table, N r, N n) { return turned(x[_].astype(f32), table[_], r, n); }},
      {"turned behind a fold", 1, 2,
       [](Ref x, Ref table, N r, N n) {
         const Value v = x[_].astype(f32);
         return turned(v - max(v, {.axis = 1, .keepdims = true}), table[_], r, n);
       }},
      {"exchanged", 1, 2,
       [](Ref x, Ref, N r, N n) {
         const Value v = x[_].astype(f32);
         return together({half(v, r, n, 2, 1), half(v, r, n, 2, 0)}, r, n);
       }},
      {"of four", 4, 4,
       [](Ref x, Ref, N r, N n) {
         const Value v = x[_].astype(f32);
         return half(v, r, n, 4, 0) + half(v, r, n, 4, 1) * 2.0f + half(v, r, n, 4, 2) * 4.0f -
                half(v, r, n, 4, 3);
       }},
      {"four reversed", 1, 4,
       [](Ref x, Ref, N r, N n) {
         const Value v = x[_];
         return together({half(v, r, n, 4, 3), half(v, r, n, 4, 2), half(v, r, n, 4, 1),
                          half(v, r, n, 4, 0)},
                         r, n)
             .astype(f32);
       }},
      {"each twice", 1, 2,
       [](Ref x, Ref table, N r, N n) {
         const Value t = table[_] + zeros({r, n / 2});
         return x[_].astype(f32) + together({t, t}, r, n);
       }},
      {"every second", 2, 2,
       [](Ref x, Ref, N, N n) {
         return x[{_, ds(0, n / 2, 2)}].astype(f32) - x[{_, ds(1, n / 2, 2)}].astype(f32) * 2.0f;
       }},
      {"every third", 3, 3,
       [](Ref x, Ref, N r, N n) {
         const Value v = x[_].astype(f32);
         return half(v, r, n, 3, 2) - half(v, r, n, 3, 0);
       }},
      {"reversed", 1, 1, [](Ref x, Ref, N, N) { return flip(x[_].astype(f32), 1); }},
  };
}

Kernel kernel(const Blocks& b, const Operation& operation) {
  const auto body = [b, operation](Ref x, Ref table, Ref o) {
    o[_] = operation.f(x, table, b.rows, b.columns).astype(b.to);
  };
  const auto here = [](Index i, Index j) { return Indices{i, j}; };
  return pallas_call(body, {.name = "pairs",
                            .out_type = {{2 * b.rows - b.missing_rows,
                                          (2 * b.columns - b.missing_columns) / operation.per},
                                         b.to},
                            .grid = {2, 2},
                            .in_specs = {BlockSpec{{b.rows, b.columns}, here, {.fill = 0}},
                                         BlockSpec{{1, b.columns / 2},
                                                   [](Index, Index j) {
                                                     return Indices{0, j};
                                                   },
                                                   {.fill = 0}}},
                            .out_specs = {BlockSpec{{b.rows, b.columns / operation.per}, here}}});
}

void compare(const Blocks& b, const Operation& operation) {
  INFO(operation.name << ", blocks " << b.text());
  const Kernel k = kernel(b, operation);
  std::vector<float> expected;
  for_each_target("pairs", [&](Target target) {
    Random random(7);
    const auto small = [&](auto) { return static_cast<float>(random.between(-7, 7)); };
    const std::int64_t columns = 2 * b.columns - b.missing_columns;
    const Array x = make_array<float>({2 * b.rows - b.missing_rows, columns}, small);
    const Array table = make_array<float>({1, columns / 2}, small);
    const Array o =
        on_cpu(k.on(target)(on(target, x.astype(b.from)), on(target, table))).astype(f32);
    if (expected.empty()) expected.assign(o.data<float>(), o.data<float>() + o.size());
    for (std::int64_t i = 0; i < o.size(); ++i) {
      INFO("element " << i);
      REQUIRE(o.data<float>()[i] == expected[static_cast<std::size_t>(i)]);
    }
  });
}

}  // namespace

TEST_CASE("neighbours in memory make elements in any order") {
  const Blocks all[] = {{},
                        {.rows = 1, .columns = 4096, .missing_rows = 0, .from = bf16, .to = bf16},
                        {.rows = 16, .columns = 96, .from = f16, .to = f32},
                        {.rows = 8, .columns = 256, .missing_columns = 24, .from = bf16},
                        {.rows = 4, .columns = 1200, .missing_columns = 12, .to = f16},
                        {.rows = 2, .columns = 24, .from = i8, .to = i32},
                        {.rows = 3, .columns = 2016, .missing_columns = 60, .from = f64}};
  for (const Operation& operation : operations())
    for (const Blocks& b : all)
      if (b.columns % operation.of == 0 && b.missing_columns % operation.of == 0)
        compare(b, operation);
}

TEST_CASE("nothing is read behind an array that ends with an element that is wanted") {
  const Kernel k = pallas_call([](Ref x, Ref o) { o[_] = x[ds(0, 512, 2)]; },
                               {.name = "every_second", .out_type = {{512}, f32}});
  for_each_target("an odd row", [&](Target target) {
    const Array x = make_array<float>({1023}, [](auto i) { return static_cast<float>(i); });
    const Array o = on_cpu(k.on(target)(on(target, x)));
    for (std::int64_t i = 0; i < o.size(); ++i) REQUIRE(o.data<float>()[i] == 2 * i);
  });
}

TEST_CASE("neighbours in memory make elements in any order, of random blocks") {
  const std::vector<Operation> all = operations();
  for_seeds(1, 60, [&](std::uint64_t seed) {
    Random random(seed);
    const Operation& operation = all[random.below(static_cast<int>(all.size()))];
    const DType types[] = {f32, bf16, f16, i8, f64};
    Blocks b{.rows = random.between(1, 9),
             .columns = 12 * random.pick({1, 2, 3, 4, 8, 16, 20, 32, 64, 100}),
             .missing_rows = 0,
             .from = types[random.below(5)],
             .to = types[random.below(3)]};
    b.missing_rows = random.between(0, static_cast<int>(b.rows) - 1);
    b.missing_columns =
        random.chance(50) ? 0 : 12 * random.between(0, static_cast<int>(b.columns) / 12 - 1);
    compare(b, operation);
  });
}
