// Rooms of emit_pipeline_warp_specialized, which have their turns one after the other: one number
// says the phase of all their barriers.
#include "codegen/trace/clusters.hpp"
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using pl::_;

namespace room_turns {

using Steps = const std::vector<Value>&;

/// Two threads that compute, and one that copies.
gpu::KernelOptions block(const char* name, OutType out) {
  return {.name = name,
          .out_type = std::move(out),
          .num_threads = 3,
          .thread_name = "wg",
          .interpret = InterpretParams{.detect_races = true}};
}

/// What a computing thread has of 64 rows.
Idx half(const Value& wg) { return ds(wg * 32, 32); }

/// Pipelines over the same rooms: the first number is of rooms, the others are steps of each.
/// `repeated`: all of that several times, in a loop, the last of them with a step less each time,
/// down to less than none.
struct Turns {
  int rooms;
  std::vector<std::int64_t> steps;
  int repeated = 1;
};

// Each adds what it has found to what was before, three times: in whose order blocks come shows.
std::int32_t in_order(const Turns& t, std::int64_t element) {
  std::uint32_t sum = 0;
  for (int again = 0; again < t.repeated; ++again)
    for (std::size_t p = 0; p < t.steps.size(); ++p)
      for (std::int64_t i = 0; i < t.steps[p] - (p + 1 == t.steps.size() ? again : 0); ++i)
        sum = sum * 3 + static_cast<std::uint32_t>(i * 2048 + element);
  return static_cast<std::int32_t>(sum);
}

/// A pipeline over blocks of 64 rows, of which each thread adds its half to three times what o was.
auto summed(Ref o, int rooms, const Index& steps, MaybeValue state) {
  const Value wg = axis_index("wg");
  return gpu::emit_pipeline_warp_specialized(
      [=](Steps, Ref in, Value sum) {
        return sum * 3 + in[{half(wg), _}];
      },
      {.grid = {steps},
       .in_specs = {BlockSpec{{64, 32},
                              [](Index i) {
                                return Indices{i, 0};
                              },
                              {.delay_release = 1}}},
       .max_concurrent_steps = rooms,
       .wg_axis = "wg",
       .num_compute_wgs = 2,
       .pipeline_state = state,
       .compute_context = [=](const gpu::PipelineRun& pipeline) {
         o[{half(wg), _}] = pipeline(Value(o[{half(wg), _}]));
       }});
}

TEST_CASE("rooms have their turns whatever number of steps pipelines have, start and stop with") {
  using State = gpu::PipelinePipeline;
  // Two pipelines that go on, one alone, two that go on: START, STOP, ALONE, START, STOP.
  const int states[] = {State::START, State::STOP, State::ALONE, State::START, State::STOP};
  std::vector<Turns> all;
  for (const int rooms : {2, 3, 4})
    for (const std::vector<std::int64_t>& steps : std::vector<std::vector<std::int64_t>>{
             {1, 1, 1, 1, 1}, {4, 5, 7, 3, 8}, {2, 1, 6, 1, 9}, {3, 3, 3, 3, 3}})
      all.push_back({rooms, steps, 1 + static_cast<int>(steps[0] % 2) * 2});
  for (const Turns& t : all) {
    INFO(t.rooms << " rooms, " << t.repeated << " times " << t.steps[0] << ", " << t.steps[1]);
    for_each_target("turns", [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o) {
            const Value wg = axis_index("wg");
            const auto pipeline = [=](MaybeValue state, const Index& steps) {
              return summed(o, t.rooms, steps, state);
            };
            const gpu::PipelineAllocations rooms = pipeline({}, 9).get_allocations(x);
            pl::when(wg != 2, [&] { o[{half(wg), _}] = zeros({32, 32}, i32); });
            pl::loop(0, t.repeated, [&](Index again) {
              for (std::size_t i = 0; i + 1 < t.steps.size(); ++i)
                pipeline(states[i], t.steps[i])(rooms, x);
              pipeline(State::STOP, t.steps.back() - again)(rooms, x);
            });
          },
          block("turns", {{64, 32}, i32}));
      const Array x = make_array<std::int32_t>({576, 32}, [](std::int64_t i) { return i; });
      const std::vector<std::int32_t> sums = elements<std::int32_t>(k.on(target)(on(target, x)));
      bool right = true;
      for (std::size_t i = 0; i < sums.size(); ++i)
        right = right && sums[i] == in_order(t, static_cast<std::int64_t>(i));
      CHECK(right);
      if (target == Target::interpreter)
        CHECK_THAT(verdict_of(k, {ShapeDtype{{576, 32}, i32}}), StartsWith("good"));
    });
  }
}

// Rooms of its own begin anew: one number says the phase of all only where each time ends with the
// last room, or there is one time.
TEST_CASE("pipelines with rooms of their own agree where they are run again by a loop") {
  for (const int rooms : {2, 3})
    for (const std::int64_t steps : {1, 2, 3, 4, 6, 7})
      for (const int times : {1, 3}) {
        INFO(rooms << " rooms, " << times << " times " << steps);
        const Turns t{rooms, std::vector<std::int64_t>(static_cast<std::size_t>(times), steps)};
        for_each_target("again", [&](Target target) {
          const Kernel k = gpu::kernel(
              [=](Ref x, Ref o) {
                const Value wg = axis_index("wg");
                pl::when(wg != 2, [&] { o[{half(wg), _}] = zeros({32, 32}, i32); });
                const auto run = [&] { summed(o, rooms, steps, {})(x); };
                if (times == 1)
                  run();
                else
                  pl::loop(0, times, [&](Index) { run(); });
              },
              block("again", {{64, 32}, i32}));
          const Array x = make_array<std::int32_t>({576, 32}, [](std::int64_t i) { return i; });
          const std::vector<std::int32_t> sums =
              elements<std::int32_t>(k.on(target)(on(target, x)));
          bool right = true;
          for (std::size_t i = 0; i < sums.size(); ++i)
            right = right && sums[i] == in_order(t, static_cast<std::int64_t>(i));
          CHECK(right);
          if (target != Target::interpreter) return;
          const std::vector<ArgType> of{ShapeDtype{{576, 32}, i32}};
          CHECK_THAT(verdict_of(k, of), StartsWith("good"));
          const std::int64_t used = std::min<std::int64_t>(rooms, steps);
          const bool is_whole = used > 1 && (times == 1 || steps % used == 0);
          CHECK((k.lower(of).graph().find("in turn") != std::string::npos) == is_whole);
        });
      }
}

/// Waits of one thread for two barriers in turn, as internals say them, and for the first, by hand.
Kernel waits(const std::vector<int>& in_turn, bool others) {
  const auto body = [in_turn, others](Ref o, Ref barriers) {
    for (const int room : in_turn) {
      gpu::barrier_arrive(barriers.at(room));
      trace::wait_in_turn(barriers.at(room), "barrier_wait", {});
    }
    if (others) {
      gpu::barrier_arrive(barriers.at(0));
      gpu::barrier_wait(barriers.at(0));
    }
    o[_] = zeros({8}, f32);
  };
  return gpu::kernel(body, {.name = "turns",
                            .out_type = {{8}, f32},
                            .scratch_types = {gpu::Barrier({.num_barriers = 2})}});
}

TEST_CASE("waits in turn that are not are told") {
  const auto told = [](const std::vector<int>& in_turn) {
    return refused([&] { waits(in_turn, false).on(Target::interpreter)(); });
  };
  CHECK(told({0, 1, 0, 1}) == "");
  CHECK_THAT(told({1}), ContainsSubstring("scratch[0][1] is not the one that is next"));
  CHECK_THAT(told({0, 0}), ContainsSubstring("scratch[0][0] is not the one that is next"));
}

TEST_CASE("waits beside others for barriers of the same array have no turns") {
  for_each_target("turns", [](Target target) {
    for (const bool others : {false, true}) {
      const Kernel k = waits({0, 1, 0, 1, 0}, others);
      CHECK((k.lower().graph().find("in turn") == std::string::npos) == others);
      CHECK(elements<float>(k.on(target)()) == std::vector<float>(8, 0.0f));
    }
  });
}

// The rooms of one pipeline, for which the body of another waits itself.
TEST_CASE("pipelines with and without waits of their own share rooms") {
  for_each_target("mixed", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value wg = axis_index("wg");
          const auto options = [=](bool manual) {
            return gpu::EmitPipelineWarpSpecializedOptions{
                .grid = {5},
                .in_specs = {BlockSpec{{64, 32},
                                       [](Index i) {
                                         return Indices{i, 0};
                                       }}},
                .max_concurrent_steps = 3,
                .wg_axis = "wg",
                .num_compute_wgs = 2,
                .manual_ready_barriers = manual};
          };
          const auto plain = gpu::emit_pipeline_warp_specialized(
              [=](Steps, Ref in) {
                o[{half(wg), _}] += in[{half(wg), _}];
              },
              options(false));
          const auto manual = gpu::emit_pipeline_warp_specialized(
              [=](Steps, Ref in, Ref ready) {
                gpu::barrier_wait(ready);
                o[{half(wg), _}] += in[{half(wg), _}];
              },
              options(true));
          pl::when(wg != 2, [&] { o[{half(wg), _}] = zeros({32, 32}, f32); });
          const gpu::PipelineAllocations rooms = plain.get_allocations(x);
          plain(rooms, x);
          manual(rooms, x);
          plain(rooms, x);
        },
        block("mixed", {{64, 32}, f32}));
    const std::vector<float> sums = elements<float>(k.on(target)(on(target, counted({320, 32}))));
    bool right = true;
    for (std::size_t i = 0; i < sums.size(); ++i)
      right = right && sums[i] == 3 * (5 * static_cast<float>(i) + 10 * 2048);
    CHECK(right);
  });
}

}  // namespace room_turns
