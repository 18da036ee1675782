// What is loaded once and wanted by arrays of different shapes, along whose dimensions it is alike:
// all targets give what the interpreter does.
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

/// Rows of `many` and of `few` vectors, turned by the angles of the row.
struct Turned {
  std::int64_t rows = 4, many = 8, few = 2, size = 64, missing = 0, steps = 1;
  DType values = bf16, angles = f32;
  bool written = false;  // the angles are an output as well

  static Turned drawn(Random& random) {
    Turned t{.rows = random.pick({1, 2, 4, 8, 3}),
             .many = random.pick({4, 8, 16, 31}),
             .few = random.pick({1, 2, 3}),
             .size = random.pick({16, 32, 64, 128, 40}),
             .steps = random.between(1, 3),
             .values = random.chance(60) ? bf16 : f32,
             .angles = random.chance(60) ? f32 : f16,
             .written = random.chance(20)};
    t.missing = random.between(0, static_cast<int>(t.rows) - 1);
    return t;
  }
  std::string text() const {
    return std::to_string(rows) + " rows of " + std::to_string(many) + " and " +
           std::to_string(few) + " of " + std::to_string(size) + ", " + std::string(values.name()) +
           " by " + std::string(angles.name()) + ", " + std::to_string(steps) + " times" +
           (written ? ", written" : "");
  }

  Kernel kernel() const {
    const Turned t = *this;
    const std::int64_t half = size / 2, of_step = rows;
    const auto body = [t, half, of_step](Ref x, Ref y, Ref c, Ref ox, Ref oy, Ref oc) {
      loop(0, t.steps, [&](Index i) {
        const Slice now = ds(i * static_cast<int>(of_step), of_step);
        const Value by = c[{now, _}].astype(f32).reshape({of_step, 1, half});
        const auto turn = [&](Ref from, Ref to) {
          const Value v = from[{now, _, _}].astype(f32);
          const Value a = v[{_, _, ds(0, half)}], b = v[{_, _, ds(half, half)}];
          to[{now, _, _}] = concatenate({a * by - b, b * by + a}, 2).astype(t.values);
        };
        turn(x, ox);
        turn(y, oy);
        if (t.written) oc[{now, _}] = by.reshape({of_step, half});
      });
      if (!t.written) oc[_] = zeros({t.steps * of_step, half}, f32);
    };
    const auto here3 = [](Index i) { return Indices{i, 0, 0}; };
    const auto here2 = [](Index i) { return Indices{i, 0}; };
    const std::int64_t block = rows * steps, all = 2 * block - missing;
    const BlockSpec x{{block, many, size}, here3, {.fill = 0}},
        y{{block, few, size}, here3, {.fill = 0}}, c{{block, half}, here2, {.fill = 0}};
    return pallas_call(
        body, {.name = "turned",
               .out_type = {ShapeDtype{{all, many, size}, values},
                            ShapeDtype{{all, few, size}, values}, ShapeDtype{{all, half}, f32}},
               .grid = {2},
               .in_specs = {x, y, c},
               .out_specs = {x, y, c}});
  }

  void compare() const {
    INFO(text());
    const Kernel k = kernel();
    const std::int64_t all = 2 * rows * steps - missing;
    std::vector<std::vector<float>> expected;
    for_each_target("beside", [&](Target target) {
      Random random(5);
      const auto small = [&](auto) { return static_cast<float>(random.between(-7, 7)); };
      const Array x = make_array<float>({all, many, size}, small).astype(values),
                  y = make_array<float>({all, few, size}, small).astype(values),
                  c = make_array<float>({all, size / 2}, small).astype(angles);
      const Outputs results = k.on(target)(on(target, x), on(target, y), on(target, c));
      for (std::size_t n = 0; n < results.all().size(); ++n) {
        const Array o = on_cpu(results.all()[n]).astype(f32);
        if (expected.size() == n)
          expected.emplace_back(o.data<float>(), o.data<float>() + o.size());
        for (std::int64_t i = 0; i < o.size(); ++i) {
          INFO("output " << n << ", element " << i);
          REQUIRE(o.data<float>()[i] == expected[n][static_cast<std::size_t>(i)]);
        }
      }
    });
  }
};

}  // namespace

TEST_CASE("arrays of different shapes are turned by the same angles") {
  Turned{}.compare();
  Turned{.rows = 1, .many = 32, .size = 128}.compare();
  Turned{.rows = 8, .many = 6, .size = 128, .missing = 3, .values = f32}.compare();
  Turned{.rows = 4, .many = 15, .size = 128, .steps = 2, .angles = f16}.compare();
}

TEST_CASE("random arrays of different shapes are turned by the same angles") {
  for_seeds(1, 40, [](std::uint64_t seed) {
    Random random(seed);
    Turned::drawn(random).compare();
  });
}
