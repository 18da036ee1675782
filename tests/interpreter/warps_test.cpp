// What the warps of a Pallas thread do each for itself (core_map over a WarpMesh).
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

std::vector<std::int32_t> numbers(const Array& a) {
  const Array on_host = on_cpu(a);
  const auto values = on_host.values<const std::int32_t>();
  return {values.begin(), values.end()};
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("each warp of a thread runs what a WarpMesh maps, with its own number and scalars") {
  for_each_target("warps", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](Ref x, Ref o, Ref sums, Ref tmp) {
                           const Value wg = axis_index("wg"), base = x[0] * 10;
                           tmp[wg] = pl::iota(i32, {5}, 0) + base;
                           sums[wg] = 0;
                           pl::core_map(gpu::WarpMesh{.axis_name = "warp"})([&] {
                             const Value w = axis_index("warp");
                             const Value sum = pl::fori_loop(
                                 0, w + 1,
                                 [&](Index i, Value s) {
                                   return s + tmp[{wg, i}];
                                 },
                                 pl::i32(0));
                             o[{wg, w}] = sum + wg * 1000;
                             pl::when(w == 3, [&] { tmp[{wg, axis_size("warp")}] = sum; });
                           });
                           const Value after = tmp[wg];
                           gpu::warp_map([&](Value w) {
                             const Value old = pl::atomic_add(sums.at(wg), w + 1);
                             pl::debug_check(old >= 0, "counts up");
                           });
                           sums[wg + 2] = pl::max(after);
                         },
                         {.name = "warps",
                          .out_type = {{{2, 4}, i32}, {{4}, i32}},
                          .num_threads = 2,
                          .thread_name = "wg",
                          .scratch_types = {gpu::SMEM({2, 5}, i32)}})
                         .on(target);
    const auto [o, sums] = k(on(target, Array::of({7}))).unpack<2>();
    CHECK(numbers(o) == std::vector<std::int32_t>{70, 141, 213, 286, 1070, 1141, 1213, 1286});
    CHECK(numbers(sums) == std::vector<std::int32_t>{10, 10, 286, 286});
  });
}

TEST_CASE("warps of a thread wait for each other, and their semaphores count") {
  for_each_target("relay", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](Ref o, Ref cell, Ref turn) {
                           cell[0] = 0;
                           pl::core_map(gpu::WarpMesh{"w"})([&] {
                             const Value mine = 3 - axis_index("w");  // the last one begins
                             pl::semaphore_wait(turn, mine, {.decrement = false});
                             cell[0] = cell[0] * 10 + mine + 1;
                             pl::semaphore_signal(turn);
                           });
                           const Value n = pl::semaphore_read(turn);
                           o[0] = cell[0];
                           o[1] = n;
                         },
                         {.name = "relay",
                          .out_type = {{2}, i32},
                          .scratch_types = {gpu::SMEM({1}, i32), gpu::SemaphoreType::REGULAR()},
                          .compiler_params = {.num_warps = 4}})
                         .on(target);
    CHECK(numbers(k()) == std::vector<std::int32_t>{1234, 4});
  });
}

TEST_CASE("races and deadlocks of warps are seen") {
  const auto told = [](Target target, auto body) {
    return message_of([&] {
      gpu::kernel(body, {.name = "warps",
                         .out_type = {{1}, i32},
                         .scratch_types = {gpu::SMEM({1}, i32), gpu::SemaphoreType::REGULAR()},
                         .interpret = InterpretParams{.detect_races = true}})
          .on(target)();
    });
  };
  const auto race = [](Ref o, Ref cell, Ref) {
    gpu::warp_map([&](Value w) { cell[0] = w; });
    o[0] = cell[0];
  };
  CHECK_THAT(told(Target::interpreter, race), ContainsSubstring("race"));
  const auto stuck = [](Ref o, Ref, Ref turn) {
    gpu::warp_map([&](Value w) { pl::when(w == 2, [&] { pl::semaphore_wait(turn); }); });
    o[0] = 1;
  };
  CHECK_THAT(told(Target::interpreter, stuck),
             ContainsSubstring("warp 2 of program () waits at") &&
                 ContainsSubstring("until scratch[1] is 1; it is 0"));
  CHECK_THAT(told(Target::emulator, stuck), ContainsSubstring("warps_test.cpp"));
}

TEST_CASE("a WarpMesh that cannot be is refused, and what warps cannot do [E21] [E26]") {
  const auto refused = [](auto body, const std::string& sentence) {
    const std::string told = message_of([&] {
      (void)gpu::kernel(body, {.out_type = {{8}, f32},
                               .grid = {2},
                               .grid_names = {"i"},
                               .num_threads = 1,
                               .thread_name = "wg",
                               .scratch_types = {gpu::REGS({8}, f32)}})
          .lower(ShapeDtype{{8}, f32});
    });
    CHECK_THAT(told, ContainsSubstring(sentence));
    CHECK_THAT(told, ContainsSubstring("warps_test.cpp"));
  };
  const auto warps = [](auto body) { pl::core_map(gpu::WarpMesh{"w"})(body); };
  refused([=](Ref x, Ref, Ref) { warps([&] { (void)Value(x[_]); }); },
          "can only load scalars with a WarpMesh, given f32[8]");
  refused(
      [=](Ref x, Ref o, Ref) {
        const Value v = x[_];
        warps([&] { o[0] = pl::sum(v); });
      },
      "can only close over scalars and Refs with a WarpMesh, given f32[8]");
  refused([=](Ref, Ref o, Ref) { warps([&] { o[_] = pl::zeros({8}, f32); }); }, "with a WarpMesh");
  refused([=](Ref, Ref o, Ref r) { warps([&] { o[0] = r[0]; }); },
          "registers are those of the whole thread");
  refused([=](Ref, Ref, Ref) { warps([&] { warps([] {}); }); },
          "a WarpMesh is not inside of another");
  refused(
      [=](Ref, Ref o, Ref) {
        warps([&] { pl::run_scoped([&](Ref t) { o[0] = t[0]; }, {gpu::SMEM({1}, f32)}); });
      },
      "run_scoped stands outside of a WarpMesh");
  refused([](Ref, Ref, Ref) { pl::core_map(gpu::WarpMesh{"wg"})([] {}); },
          "axis 'wg' is that of the threads already");
  refused([](Ref, Ref, Ref) { pl::core_map(gpu::WarpMesh{"i"})([] {}); },
          "axis 'i' is that of grid or cluster already");
  refused(
      [=](Ref, Ref o, Ref) {
        warps([] {});
        o[0] = axis_index("w").astype(f32);
      },
      "no axis is named 'w'");
  CHECK_THAT(message_of([&] { warps([] {}); }), ContainsSubstring("core_map over a WarpMesh"));
  CHECK_THAT(message_of([&] {
               (void)pallas_call([=](Ref) { warps([] {}); }, {.out_type = {{1}, i32}}).lower();
             }),
             ContainsSubstring("is no pl::kernel, whose Pallas threads alone have four warps"));
  CHECK_THAT(message_of([] { gpu::WarpMesh{"w"}.check_is_compatible_with({"v"}); }),
             ContainsSubstring("runs beside no other"));
  const gpu::WarpMesh mesh{"w"};
  CHECK(mesh.shape().size() == 1);
  CHECK(mesh.shape()[0].size == 4);
  CHECK(mesh.default_memory_space().space == Space::gmem);
  CHECK(mesh.supported_memory_spaces().size() == 2);
  static_assert(Mesh<gpu::WarpMesh>);
}
