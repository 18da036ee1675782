// Loops over work that blocks share, and the order of tiles.
#include <set>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace scheduling {

TEST_CASE("programs share the indices of a grid, each every so many-th [M90]") {
  constexpr int programs = 12;
  for (const int tile : {0, 1, 2, 4})
    for (const bool dynamic : {false, true})
      for_each_target("shared", [&](Target target) {
        const Kernel k = gpu::kernel(
            [=](Ref n, Ref o, Ref steps) {
              const Value sm = axis_index("sm");
              const Value rows = dynamic ? Value(n[0]) : Value(5);
              gpu::NDLoopOptions options{.collective_axes = {"sm"}};
              if (tile > 0) options.tiling = {1, tile, 3};
              steps[sm] = gpu::nd_loop(
                  {rows, 4, 3}, options,
                  [&](const gpu::NDLoopInfo& it, Value before) {
                    const Value flat = (it.index[0] * 4 + it.index[1]) * 3 + it.index[2];
                    o[{sm, it.local_index}] = flat + 1000 * it.num_local_steps;
                    return before + 1;
                  },
                  0);
            },
            {.name = "shared",
             .out_type = {{{programs, 5}, i32}, {{programs}, i32}},
             .grid = {programs},
             .grid_names = {"sm"}});
        const Array n = make_array<std::int32_t>({1}, [](std::int64_t) { return 5; });
        const auto [o, steps] = k.on(target)(on(target, n)).unpack<2>();
        std::set<int> seen;
        const std::vector<std::int32_t> at = elements<std::int32_t>(o);
        for (int i = 0; i < programs * 5; ++i) {
          const int flat = at[static_cast<std::size_t>(i)] % 1000;
          CHECK(at[static_cast<std::size_t>(i)] / 1000 == 5);
          seen.insert(flat);
          if (tile == 0 || tile == 4) CHECK(flat == i % 5 * programs + i / 5);
        }
        CHECK(seen.size() == programs * 5);
        for (const std::int32_t s : elements<std::int32_t>(steps)) CHECK(s == 5);
      });
}

std::vector<std::int32_t> snake(Target target, int rows, int columns, int minor, int width,
                                bool dynamic) {
  const Kernel k = gpu::kernel(
      [=](Ref shape, Ref o) {
        const gpu::LoopGrid plane = dynamic ? gpu::LoopGrid{Value(shape[0]), Value(shape[1])}
                                            : gpu::LoopGrid{rows, columns};
        pl::loop(0, rows * columns, [&](Index i) {
          const auto [row, column] = gpu::planar_snake(i, plane, minor, width);
          o[{row, column}] = i;
        });
      },
      {.name = "snake", .out_type = {{rows, columns}, i32}});
  const Array shape =
      make_array<std::int32_t>({2}, [=](std::int64_t i) { return i == 0 ? rows : columns; });
  return elements<std::int32_t>(k.on(target)(on(target, shape)));
}

TEST_CASE("tiles are gone through in strips that turn at their ends [M91]") {
  const std::vector<std::int32_t> three = {0,  3,  6,  9,  12, 1,  4,  7,  10, 13, 2,  5, 8,
                                           11, 14, 23, 21, 19, 17, 15, 24, 22, 20, 18, 16};
  const std::vector<std::int32_t> two = {
      0,  2,  4,  6,  8,  10, 12, 14, 1,  3,  5,  7,  9,  11, 13, 15, 30, 28, 26, 24, 22, 20,
      18, 16, 31, 29, 27, 25, 23, 21, 19, 17, 32, 34, 36, 38, 40, 42, 44, 46, 33, 35, 37, 39,
      41, 43, 45, 47, 62, 60, 58, 56, 54, 52, 50, 48, 63, 61, 59, 57, 55, 53, 51, 49};
  for_each_target("snake", [&](Target target) {
    for (const bool dynamic : {false, true}) {
      CHECK(snake(target, 5, 5, 0, 3, dynamic) == three);
      CHECK(snake(target, 8, 8, 0, 2, dynamic) == two);
      std::vector<std::int32_t> turned(25);
      for (std::size_t i = 0; i < 25; ++i) turned[i] = three[i % 5 * 5 + i / 5];
      CHECK(snake(target, 5, 5, 1, 3, dynamic) == turned);
    }
  });
}

TEST_CASE("blocks take what there is to do from a counter, and each thread learns of it") {
  for (const int threads : {1, 3})
    for_each_target("taken", [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref o, Ref done) {
            const Value wg = threads == 1 ? Value(0) : axis_index("wg");
            const Value count = gpu::dynamic_scheduling_loop(
                {"m", "n"}, {.thread_axis = threads == 1 ? "" : "wg"},
                [&](const gpu::NDLoopInfo& it, Value before) {
                  o[{it.index[0], it.index[1], wg}] = 10 * it.index[0] + it.index[1];
                  return before + 1;
                },
                0);
            done[{axis_index("m"), axis_index("n"), wg}] = count;
          },
          {.name = "taken",
           .out_type = {{{3, 7, threads}, i32}, {{3, 7, threads}, i32}},
           .grid = {3, 7},
           .grid_names = {"m", "n"},
           .num_threads = threads == 1 ? 0 : threads,
           .thread_name = threads == 1 ? "" : "wg",
           .interpret = InterpretParams{.detect_races = true}});
      const auto [o, done] = k.on(target)().unpack<2>();
      const std::vector<std::int32_t> numbers = elements<std::int32_t>(o);
      for (int i = 0; i < 21 * threads; ++i) {
        const int item = i / threads;
        CHECK(numbers[static_cast<std::size_t>(i)] == item / 7 * 10 + item % 7);
      }
      int sum = 0;
      for (const std::int32_t n : elements<std::int32_t>(done)) sum += n;
      CHECK(sum == 21 * threads);
    });
}

TEST_CASE("blocks of a cluster take the same things to do, each its part of them") {
  for (const int threads : {1, 2})
    for_each_target(std::to_string(threads), [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref o, Ref done) {
            const Value wg = threads == 1 ? Value(0) : axis_index("wg");
            const Value count = gpu::dynamic_scheduling_loop(
                {"m"}, {.thread_axis = threads == 1 ? "" : "wg", .cluster_axes = {"x", "y"}},
                [&](const gpu::NDLoopInfo& it, Value before) {
                  o[{it.index[0], axis_index("x"), axis_index("y"), wg}] = 10 * it.index[0];
                  return before + 1;
                },
                0);
            done[{axis_index("m"), axis_index("x"), axis_index("y"), wg}] = count;
          },
          {.name = "together",
           .out_type = {{{5, 2, 2, threads}, i32}, {{5, 2, 2, threads}, i32}},
           .grid = {5},
           .grid_names = {"m"},
           .cluster = {2, 2},
           .cluster_names = {"x", "y"},
           .num_threads = threads == 1 ? 0 : threads,
           .thread_name = threads == 1 ? "" : "wg",
           .interpret = InterpretParams{.detect_races = true}});
      const auto [o, done] = k.on(target)().unpack<2>();
      const std::vector<std::int32_t> numbers = elements<std::int32_t>(o);
      const std::vector<std::int32_t> counts = elements<std::int32_t>(done);
      int sum = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::size_t of_item = 4 * static_cast<std::size_t>(threads);
        CHECK(numbers[i] == static_cast<std::int32_t>(i / of_item * 10));
        CHECK(counts[i] == counts[i / of_item * of_item]);
        sum += counts[i];
      }
      CHECK(sum == 20 * threads);
    });
}

TEST_CASE("what the launch before may still write is read behind the wait for it, and plainly") {
  for_each_target("overlaps", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          gpu::griddepcontrol_wait();
          o[_] = x[_] + 1.0f;
          gpu::griddepcontrol_launch_dependents();
        },
        {.name = "overlaps", .out_type = {{256}, f32}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({256}))));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<float>(i + 1));
    const std::string source = k.lower(ShapeDtype{{256}, f32}).cuda_source({.arch = "sm_90"});
    CHECK(source.find("pl::griddepcontrol_wait();") < source.find("pl::load_global<"));
    CHECK_THAT(source, ContainsSubstring("pl::griddepcontrol_launch_dependents();") &&
                           !ContainsSubstring("load_global_nc"));
  });
}

TEST_CASE("registers change hands, where there are any to spare") {
  for_each_target("registers", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o) {
          const Value wg = axis_index("wg");
          pl::when(wg == 2, [] { gpu::set_max_registers(40, {.action = "decrease"}); });
          pl::when(wg != 2, [] { gpu::set_max_registers(232); });
          o[wg] = full({128}, wg, i32);
        },
        {.name = "registers", .out_type = {{3, 128}, i32}, .num_threads = 3, .thread_name = "wg"});
    const std::vector<std::int32_t> o = elements<std::int32_t>(k.on(target)());
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<std::int32_t>(i / 128));
    CHECK_THAT(k.lower().cuda_source({.arch = "sm_90a"}),
               ContainsSubstring("pl::setmaxnreg_dec<40>();") &&
                   ContainsSubstring("pl::setmaxnreg_inc<232>();"));
    CHECK_THAT(refused([&] { (void)k.lower().cuda_source({.arch = "sm_90"}); }),
               ContainsSubstring("that registers change hands needs sm_90a") &&
                   ContainsSubstring("scheduling_test.cpp:"));
  });
}

TEST_CASE("loops over what cannot be shared are refused") {
  const auto traced = [](auto f) {
    return refused([&] {
      gpu::kernel([=](Ref o) { f(o); }, {.name = "refused",
                                         .out_type = {{8}, i32},
                                         .grid = {2},
                                         .grid_names = {"sm"},
                                         .num_threads = 2,
                                         .thread_name = "wg"})
          .lower();
    });
  };
  const auto nothing = [](const gpu::NDLoopInfo&) {};
  CHECK_THAT(traced([=](Ref) {
               gpu::nd_loop({4, 6}, {.collective_axes = {"sm"}, .tiling = {2}}, nothing);
             }),
             ContainsSubstring("nd_loop: the grid has 2 dimensions, and a tile 1"));
  CHECK_THAT(traced([=](Ref) {
               gpu::nd_loop({4, 6}, {.collective_axes = {"sm"}, .tiling = {2, 4}}, nothing);
             }),
             ContainsSubstring("nd_loop: tiles of 4 do not divide dimension 1"));
  CHECK_THAT(traced([=](Ref) { gpu::nd_loop({4}, {}, nothing); }),
             ContainsSubstring("nd_loop: expected the axes whose programs share the grid"));
  CHECK_THAT(traced([=](Ref) { gpu::dynamic_scheduling_loop({"sm"}, {}, nothing); }),
             ContainsSubstring("expected .thread_axis = \"wg\""));
  CHECK_THAT(traced([=](Ref) {
               gpu::dynamic_scheduling_loop({"sm"}, {.thread_axis = "wg", .cluster_axes = {"sm"}},
                                            nothing);
             }),
             ContainsSubstring("dynamic_scheduling_loop: 'sm' is no axis of the cluster"));
  CHECK_THAT(traced([=](Ref o) {
               o[0] = gpu::planar_snake(0, {4, 4}, 2, 1)[0];
             }),
             ContainsSubstring("planar_snake: minor_dim is 0 or 1, given 2"));
  CHECK_THAT(traced([=](Ref) { gpu::set_max_registers(41, {.action = "decrease"}); }),
             ContainsSubstring("expected a multiple of 8 registers, from 24 to 256, given 41"));
  CHECK_THAT(traced([=](Ref) { gpu::set_max_registers(40, {.action = "less"}); }),
             ContainsSubstring("expected the action \"increase\" or \"decrease\", given \"less\""));
}

}  // namespace scheduling
