// Barriers and copies that warps of a thread say each for itself, in a WarpMesh.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using pl::_;

namespace warp_barriers {

const InterpretParams watched{.detect_races = true};

TEST_CASE("warps of a thread arrive and wait each for itself, and the thread goes on [M104]") {
  for_each_target("warps", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref s, Ref four, Ref one) {
          gpu::warp_map([&](Value w) {
            s[w] = w + 1;
            gpu::barrier_arrive(four);
            gpu::barrier_wait(four);
            o[w] = s[(w + 1) % 4] * 10;
          });
          // As often as the warps has the thread waited.
          gpu::warp_map([&](Value) { gpu::barrier_arrive(four); });
          gpu::barrier_wait(four);
          gpu::barrier_arrive(one);
          gpu::warp_map([&](Value w) {
            gpu::barrier_wait(one);
            s[w] = w;
          });
          gpu::barrier_arrive(one);
          gpu::barrier_wait(one);
          o[ds(4, 4)] = s[_] + 7;
        },
        {.name = "warps",
         .out_type = {{8}, i32},
         .scratch_types = {gpu::SMEM({4}, i32), gpu::Barrier({.num_arrivals = 4}), gpu::Barrier()},
         .interpret = watched});
    CHECK(elements<std::int32_t>(k.on(target)()) ==
          std::vector<std::int32_t>{20, 30, 40, 10, 7, 8, 9, 10});
  });
}

TEST_CASE("a warp tests barriers, once for each completion [M43]") {
  for_each_target("test", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref b) {
          gpu::warp_map([&](Value w) {
            pl::when(w == 2, [&] {
              const auto test = [&](int slot, int number) {
                const Value done = gpu::barrier_test(b.at(number));
                o[slot] = done.astype(i32);
              };
              test(0, 0);
              test(1, 1);
              gpu::barrier_arrive(b.at(0));
              test(2, 0);
              test(3, 1);
              gpu::barrier_arrive(b.at(1));
              test(4, 1);
            });
          });
        },
        {.name = "test",
         .out_type = {{5}, i32},
         .scratch_types = {gpu::Barrier({.num_barriers = 2})},
         .interpret = watched});
    CHECK(elements<std::int32_t>(k.on(target)()) == std::vector<std::int32_t>{0, 0, 1, 0, 1});
  });
}

// Of a block's four warps one copies ahead, another adds up what is there, a third sends.
Kernel by_warps(bool waits) {
  constexpr int steps = 8, slots = 2;
  return gpu::kernel(
      [=](Ref x, Ref o, Ref in, Ref out, Ref full, Ref empty, Ref made) {
        gpu::warp_map([&](Value w) {
          pl::when(w == 0, [&] {
            pl::loop(0, steps, [&](Index i) {
              pl::when(i >= slots, [&] { gpu::barrier_wait(empty.at(i % slots)); });
              gpu::copy_gmem_to_smem(x.at(i), in.at(i % slots), full.at(i % slots));
            });
          });
          pl::when(w == 1, [&] {
            pl::loop(0, steps, [&](Index i) {
              if (waits) gpu::barrier_wait(full.at(i % slots));
              out[i] = in[{i % slots, 5}] * 2.0f;
              pl::when(i + slots < steps, [&] { gpu::barrier_arrive(empty.at(i % slots)); });
            });
            gpu::commit_smem();
            gpu::barrier_arrive(made);
          });
          pl::when(w == 2, [&] {
            gpu::barrier_wait(made);
            gpu::copy_smem_to_gmem(out, o, {.commit_group = false});
            gpu::commit_smem_to_gmem_group();
            gpu::wait_smem_to_gmem(0);
          });
        });
      },
      {.name = "by_warps",
       .out_type = {{8}, f32},
       .scratch_types = {gpu::SMEM({slots, 128}, f32), gpu::SMEM({8}, f32),
                         gpu::Barrier({.num_barriers = slots}),
                         gpu::Barrier({.num_barriers = slots}), gpu::Barrier()},
       .interpret = watched});
}

TEST_CASE("one warp copies ahead, one reads, one copies back [M28]") {
  for_each_target("by_warps", [](Target target) {
    const std::vector<float> o =
        elements<float>(by_warps(true).on(target)(on(target, counted({8, 128}))));
    for (int i = 0; i < 8; ++i)
      CHECK(o[static_cast<std::size_t>(i)] == static_cast<float>(2 * (i * 128 + 5)));
  });
  CHECK_THAT(refused([] {
               by_warps(false).on(Target::interpreter)(counted({8, 128}));
             }),
             ContainsSubstring("race on scratch[0]"));
  const std::vector<ArgType> types{ShapeDtype{{8, 128}, f32}};
  CHECK_THAT(verdict_of(by_warps(true), types), StartsWith("good"));
  const std::string verdict = verdict_of(by_warps(false), types);
  CHECK_THAT(verdict, StartsWith("counterexample, behind these steps: race on scratch[0]: "
                                 "warp 1 of thread 0 reads"));
}

// Of each of two warpgroups one warp fills rooms of its own, two others read them.
Kernel by_warps_of_two(bool reads_first) {
  constexpr int steps = 11, slots = 3;
  return gpu::kernel(
      [=](Ref x, Ref o, Ref rooms, Ref full, Ref empty) {
        const Value wg = axis_index("wg");
        gpu::warp_map([&](Value w) {
          pl::when(w == 3, [&] {
            pl::loop(0, steps, [&](Index i) {
              pl::when(i >= slots, [&] { gpu::barrier_wait(empty.at({wg, i % slots})); });
              gpu::copy_gmem_to_smem(x.at({wg, i}), rooms.at({wg, i % slots}),
                                     full.at({wg, i % slots}));
            });
          });
          pl::when(w < 2, [&] {
            pl::loop(0, steps, [&](Index i) {
              const auto read = [&] { o[{wg, i, w}] = rooms[{wg, i % slots, w * 7}]; };
              gpu::barrier_wait(full.at({wg, i % slots}));
              if (reads_first) read();
              pl::when(i + slots < steps, [&] { gpu::barrier_arrive(empty.at({wg, i % slots})); });
              if (!reads_first) read();
            });
          });
        });
      },
      {.name = "by_warps_of_two",
       .out_type = {{2, steps, 2}, f16},
       .num_threads = 2,
       .thread_name = "wg",
       .scratch_types = {gpu::SMEM({2, slots, 64}, f16), gpu::Barrier({.num_barriers = {2, slots}}),
                         gpu::Barrier({.num_arrivals = 2, .num_barriers = {2, slots}})},
       .interpret = watched});
}

TEST_CASE("warps of two warpgroups hand on rows, each in barriers of its own") {
  const Array x = counted({2, 11, 64}).astype(f16);
  for_each_target("by_warps_of_two", [&](Target target) {
    const std::vector<float> o =
        elements<float>(on_cpu(by_warps_of_two(true).on(target)(on(target, x))).astype(f32));
    const std::vector<float> rows = elements<float>(x.astype(f32));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == rows[i / 2 * 64 + i % 2 * 7]);
  });
  const std::vector<ArgType> types{ShapeDtype{{2, 11, 64}, f16}};
  CHECK_THAT(verdict_of(by_warps_of_two(true), types), StartsWith("good"));
  CHECK_THAT(verdict_of(by_warps_of_two(false), types),
             StartsWith("counterexample, behind these steps: race on scratch[0]"));
  CHECK_THAT(refused([&] { by_warps_of_two(false).on(Target::interpreter)(x); }),
             ContainsSubstring("race on scratch[0]"));
}

TEST_CASE("warps that wait a different number of times, and what they cannot, are told [M104]") {
  const auto told = [](auto body) {
    return refused([&] {
      gpu::kernel(body, {.name = "warps",
                         .out_type = {{4}, f32},
                         .scratch_types = {gpu::SMEM({4}, f32), gpu::Barrier()},
                         .interpret = watched})
          .on(Target::interpreter)(Array::zeros({4}, f32));
    });
  };
  CHECK_THAT(told([](Ref x, Ref o, Ref s, Ref b) {
               gpu::barrier_arrive(b);
               gpu::warp_map([&](Value w) { pl::when(w < 2, [&] { gpu::barrier_wait(b); }); });
               gpu::barrier_arrive(b);
               gpu::barrier_wait(b);
               s[_] = x[_];
               o[_] = s[_];
             }),
             ContainsSubstring("program () waits for scratch[1][0], for which its warps have "
                               "waited 1, 1, 0, 0 times"));
  CHECK_THAT(
      told([](Ref x, Ref o, Ref, Ref b) {
        gpu::warp_map([&](Value w) {
          pl::when(w == 0, [&] { gpu::barrier_arrive(b); });
          gpu::barrier_wait(b);
          pl::when(w == 0, [&] { gpu::barrier_arrive(b); });
          pl::when(w == 0, [&] { gpu::barrier_wait(b); });
        });
        o[_] = x[_];
      }),
      ContainsSubstring("a thread that waits for a barrier waits for every completion of it"));
  CHECK_THAT(
      told([](Ref x, Ref o, Ref s, Ref) {
        s[_] = x[_];
        gpu::commit_smem();
        gpu::warp_map([&](Value w) { pl::when(w == 1, [&] { gpu::copy_smem_to_gmem(s, o); }); });
      }),
      ContainsSubstring("warp 1 of thread 0 ends before"));
  CHECK_THAT(told([](Ref x, Ref, Ref s, Ref) {
               gpu::warp_map([&](Value) { gpu::copy_gmem_to_smem(x, s); });
             }),
             ContainsSubstring("copy_gmem_to_smem: in a WarpMesh"));
}

TEST_CASE("what TMA cannot copy for a warp is refused") {
  const Kernel k = gpu::kernel(
      [](Ref x, Ref o, Ref s, Ref b) {
        gpu::warp_map([&](Value w) { pl::when(w == 0, [&] { gpu::copy_gmem_to_smem(x, s, b); }); });
        gpu::barrier_wait(b);
        o[_] = s[_];
      },
      {.name = "odd",
       .out_type = {{23}, f32},
       .scratch_types = {gpu::SMEM({23}, f32), gpu::Barrier()}});
  const Lowered lowered = k.lower(ShapeDtype{{23}, f32});
  CHECK_THAT(refused([&] { (void)lowered.cuda_source({.arch = "sm_90a"}); }),
             ContainsSubstring("copy_gmem_to_smem: a warp of a WarpMesh copies by TMA alone, which "
                               "cannot, because"));
  CHECK_THAT(refused([&] { (void)lowered.cuda_source({.arch = "sm_80"}); }),
             ContainsSubstring("which sm_80 has not"));
}

}  // namespace warp_barriers
