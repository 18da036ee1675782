// Grids whose size a call's argument says, by value or in the memory of the device.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

template <class T>
std::vector<T> values_of(const Array& a) {
  const Array here = on_cpu(a);
  return {here.values<T>().begin(), here.values<T>().end()};
}

template <class T>
Array one(T n) {
  return make_array<T>({1}, [&](std::int64_t) { return n; });
}

// Counts the programs of the grid in every element.
PallasCallOptions counting(Grid grid) {
  return {.name = "counting", .out_type = {{8, 128}, f32}, .grid = std::move(grid)};
}
void count(const Ref& o, const Value& first) {
  pl::when(first, [&] { o[_] = zeros({8, 128}, f32); });
  o[_] += 1.f;
}

}  // namespace

TEST_CASE("a grid is as large as a scalar says: one kernel for all sizes [C22]") {
  for_each_target("counting", [](Target target) {
    int traces = 0;
    const Kernel k = pallas_call(
                         [&traces](Value, Ref o) {
                           ++traces;
                           count(o, program_id(0) == 0);
                         },
                         counting({argument(0) * 2}))
                         .on(target);
    for (const int steps : {4, 1, 7}) {
      const std::vector<float> y = values_of<float>(k(pl::scalar(steps)));
      CHECK(y[0] == 2.f * steps);
      CHECK(y[1023] == 2.f * steps);
    }
    CHECK(traces == 1);
  });
}

TEST_CASE("every axis of a grid may be of a size that a scalar says [C22]") {
  for_each_target("axes", [](Target target) {
    const Kernel k =
        pallas_call(
            [](Value, Value, Value, Ref o) {
              count(o, (program_id(0) == 0) & (program_id(1) == 0) & (program_id(2) == 0));
            },
            counting({argument(0), argument(1), argument(2)}))
            .on(target);
    CHECK(values_of<float>(k(pl::scalar(8), pl::scalar(5), pl::scalar(3)))[5] == 120);
  });
}

TEST_CASE("a scalar of any integer dtype may size grid and outputs") {
  for_each_target("numbers", [](Target target) {
    const Kernel k = pallas_call([](Value n, Ref o) { o[_] = broadcast_to(i32(n), {16}); },
                                 {.name = "numbers",
                                  .out_type = {{argument(0)}, i32},
                                  .grid = {pl::cdiv(argument(0), 16)},
                                  .out_specs = {BlockSpec{{16}, [](Index i) { return i; }}}})
                         .on(target);
    const auto check = [&](auto n) {
      const std::vector<std::int32_t> y = values_of<std::int32_t>(k(pl::scalar(n)));
      REQUIRE(y.size() == static_cast<std::size_t>(n));
      CHECK(y.back() == static_cast<std::int32_t>(n));
    };
    check(std::int32_t(40)), check(std::int64_t(17)), check(std::uint8_t(200));
  });
}

TEST_CASE("a grid is as large as an array says that only the device reads") {
  for_each_target("held", [](Target target) {
    const Kernel k = pallas_call(
                         [](Ref n, Ref o) {
                           o[_] = full({4}, program_id(0) * 100 + num_programs(0) * 10 + n[0], i32);
                         },
                         {.name = "held",
                          .out_type = {{32}, i32},
                          .num_scalar_prefetch = 1,
                          .grid = {at_most(argument(0), 8)},
                          .out_specs = {BlockSpec{{4}, [](Index i, Ref) { return i; }}}})
                         .on(target);
    const std::vector<std::int32_t> y = values_of<std::int32_t>(k(on(target, one(3))));
    for (int i = 0; i < 12; ++i) CHECK(y[static_cast<std::size_t>(i)] == i / 4 * 100 + 33);
  });
}

TEST_CASE("programs beyond what an array says have no blocks") {
  for_each_target("reversed", [](Target target) {
    const Kernel k =
        pallas_call([](Ref, Ref o) { o[_] = full({4}, program_id(0), i32); },
                    {.name = "reversed",
                     .out_type = {{12}, i32},
                     .num_scalar_prefetch = 1,
                     .grid = {at_most(argument(0), 8)},
                     .out_specs = {BlockSpec{{4}, [](Index i, Ref n) { return n[0] - 1 - i; }}}})
            .on(target);
    const std::vector<std::int32_t> y = values_of<std::int32_t>(k(on(target, one(3))));
    for (int i = 0; i < 12; ++i) CHECK(y[static_cast<std::size_t>(i)] == 2 - i / 4);
  });
}

TEST_CASE("sequential axes end where an array says, beside parallel ones") {
  for_each_target("steps", [](Target target) {
    const Kernel k = pallas_call(
        [](Ref, Ref x, Ref o) {
          pl::when(program_id(1) == 0, [&] { o[_] = zeros({8}, i64); });
          o[_] += x[_];
        },
        [](ShapeDtype, ShapeDtype x) {
          return PallasCallOptions{.name = "steps",
                                   .out_type = {{2, 8}, i64},
                                   .num_scalar_prefetch = 1,
                                   .grid = {2, at_most(argument(0), x.shape[0])},
                                   .in_specs = {BlockSpec{{squeezed, 8},
                                                          [](Index, Index s, Ref) {
                                                            return Indices{s, 0};
                                                          }}},
                                   .out_specs = {BlockSpec{{squeezed, 8}, [](Index i, Index, Ref) {
                                                             return Indices{i, 0};
                                                           }}}};
        });
    const Array x = make_array<std::int64_t>({9, 8}, [](std::int64_t i) { return i; });
    for (const std::uint16_t steps : {5, 9, 1}) {
      const std::vector<std::int64_t> y =
          values_of<std::int64_t>(k.on(target)(on(target, one(steps)), on(target, x)));
      for (std::int64_t i = 0; i < 16; ++i)
        CHECK(y[static_cast<std::size_t>(i)] == steps * (i % 8) + 8 * steps * (steps - 1) / 2);
    }
  });
}

TEST_CASE("where an array says that there are no programs, nothing is stored") {
  for_each_target("none", [](Target target) {
    const Kernel k =
        pallas_call([](Ref, Ref, Ref o) { o[_] += 1; }, {.name = "none",
                                                         .out_type = {{8}, i32},
                                                         .num_scalar_prefetch = 1,
                                                         .grid = {at_most(argument(0), 4)},
                                                         .input_output_aliases = {{1, 0}}})
            .on(target);
    const Array x = make_array<std::int32_t>({8}, [](std::int64_t i) { return i; });
    CHECK(values_of<std::int32_t>(k(on(target, one(0)), on(target, x)))[5] == 5);
    CHECK(values_of<std::int32_t>(k(on(target, one(3)), on(target, x)))[5] == 8);
  });
}

TEST_CASE("more programs than there may be are refused on the CPU") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CAPTURE(to_string(target));
    const Kernel k = pallas_call([](Ref, Ref o) { o[_] = zeros({4}, f32); },
                                 {.name = "many",
                                  .out_type = {{16}, f32},
                                  .num_scalar_prefetch = 1,
                                  .grid = {at_most(argument(0), 4)},
                                  .out_specs = {BlockSpec{{4}, [](Index i, Ref) { return i; }}}})
                         .on(target);
    for (const int n : {5, -1})
      CHECK_THROWS_WITH(k(one(n)), ContainsSubstring("grid axis 0 has as many programs as args[0] "
                                                     "says, at most 4; it says " +
                                                     std::to_string(n)));
  }
}

TEST_CASE("a grid of a negative size is refused at its call") {
  const Kernel k =
      pallas_call([](Value, Ref o) { count(o, program_id(0) == 0); }, counting({argument(0)}))
          .on(Target::interpreter);
  CHECK_THROWS_WITH(k(pl::scalar(-3)),
                    ContainsSubstring("args[0] = -3") || ContainsSubstring("= -3 programs"));
}
