// plgpu::Barrier, barrier_arrive, barrier_wait and barrier_test.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace barriers {

const gpu::KernelOptions two_threads{.name = "two",
                                     .out_type = {{2, 128}, f32},
                                     .num_threads = 2,
                                     .thread_name = "wg",
                                     .scratch_types = {gpu::Barrier({.num_arrivals = 2})}};

TEST_CASE("warpgroups that arrive at a barrier and wait for it meet there [M45]") {
  for_each_target("meet", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref b) {
          const Value wg = axis_index("wg");
          gpu::barrier_arrive(b);
          gpu::barrier_wait(b);
          o[wg] = full({128}, 1, f32) * wg.astype(f32);
        },
        two_threads);
    const std::vector<float> o = elements<float>(k.on(target)());
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<float>(i / 128));
  });
}

TEST_CASE(
    "what all threads of a warpgroup committed before it arrived another copies that waited") {
  for_each_target("commits", [](Target target) {
    gpu::KernelOptions options = two_threads;
    options.interpret = InterpretParams{.detect_races = true};
    options.scratch_types = {gpu::SMEM({2, 128}, f32),
                             gpu::Barrier({.num_arrivals = 2, .num_barriers = 2})};
    const Kernel k = gpu::kernel(
        [](Ref o, Ref s, Ref b) {
          const Value wg = axis_index("wg");
          const auto meet = [&](int number) {
            gpu::barrier_arrive(b.at(number));
            gpu::barrier_wait(b.at(number));
          };
          s[wg] = full({128}, 2, f32);
          meet(0);
          gpu::commit_smem();
          meet(1);
          pl::when(wg == 0, [&] {
            gpu::copy_smem_to_gmem(s, o);
            gpu::wait_smem_to_gmem(0);
          });
        },
        options);
    for (const float x : elements<float>(k.on(target)())) CHECK(x == 2);
  });
}

TEST_CASE("what a warpgroup stored before it arrived another reads that waited [M45]") {
  for_each_target("hands_over", [](Target target) {
    gpu::KernelOptions options = two_threads;
    options.interpret = InterpretParams{.detect_races = true};
    options.scratch_types = {gpu::SMEM({2, 128}, f32), gpu::Barrier({.num_arrivals = 2})};
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          const Value wg = axis_index("wg");
          pl::loop(0, 5, [&](Index i) {
            s[wg] = x[{i, wg, _}];
            gpu::barrier_arrive(b);
            gpu::barrier_wait(b);
            const Value other = s[1 - wg];
            pl::cond(
                i == 0, [&] { o[wg] = other; }, [&] { o[wg] += other; });
            gpu::barrier_arrive(b);
            gpu::barrier_wait(b);
          });
        },
        options);
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({5, 2, 128}))));
    for (std::size_t i = 0; i < o.size(); ++i)
      CHECK(o[i] == static_cast<float>(5 * ((i + 128) % 256) + 256 * 10));
  });
}

TEST_CASE("a test of a barrier says whether it is complete, once for each completion [M43]") {
  for_each_target("tests", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref b) {
          const auto test = [&](int at, int number) {
            const Value done = gpu::barrier_test(b.at(number));
            o[at] = done.astype(i32);
          };
          test(0, 0);
          test(1, 1);
          gpu::barrier_arrive(b.at(0));
          test(2, 0);
          test(3, 1);
          gpu::barrier_arrive(b.at(1));
          test(4, 1);
        },
        {.name = "tests",
         .out_type = {{5}, i32},
         .scratch_types = {gpu::Barrier({.num_barriers = 2})}});
    CHECK(elements<std::int32_t>(k.on(target)()) == std::vector<std::int32_t>{0, 0, 1, 0, 1});
  });
}

TEST_CASE("barriers of an array of any rank are chosen by numbers that the kernel computes") {
  for_each_target("chosen", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref s, Ref b) {
          const Value wg = axis_index("wg");
          pl::loop(0, 6, [&](Index i) {
            const Ref mine = b.at({wg, ds(i % 3, 1)}), other = b.at(1 - wg).at(i % 3);
            s[{i, wg}] = 10 * i + wg;
            gpu::barrier_arrive(mine);
            gpu::barrier_wait(other);
            o[{wg, i}] = s[{i, 1 - wg}];
          });
        },
        {.name = "chosen",
         .out_type = {{2, 6}, i32},
         .num_threads = 2,
         .thread_name = "wg",
         .scratch_types = {gpu::SMEM({6, 2}, i32), gpu::Barrier({.num_barriers = {2, 3}})}});
    const std::vector<std::int32_t> o = elements<std::int32_t>(k.on(target)());
    for (int i = 0; i < 12; ++i) CHECK(o[static_cast<std::size_t>(i)] == 10 * (i % 6) + 1 - i / 6);
  });
}

TEST_CASE("barriers of a scope are those of all its threads, and go on where they were") {
  for_each_target("scoped", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref s) {
          const Value wg = axis_index("wg");
          pl::loop(0, 3, [&](Index i) {
            pl::run_scoped(
                [&](Ref b) {
                  s[{i, wg}] = i + wg;
                  gpu::barrier_arrive(b);
                  gpu::barrier_wait(b);
                  o[{wg, i}] = s[{i, 1 - wg}];
                },
                {gpu::Barrier({.num_arrivals = 2})}, {.collective_axes = {"wg"}});
          });
        },
        {.name = "scoped",
         .out_type = {{2, 3}, i32},
         .num_threads = 2,
         .thread_name = "wg",
         .scratch_types = {gpu::SMEM({3, 2}, i32)}});
    CHECK(elements<std::int32_t>(k.on(target)()) == std::vector<std::int32_t>{1, 2, 3, 0, 1, 2});
  });
}

TEST_CASE("bodies of several meshes share barriers [M45]") {
  for_each_target("meshes", [](Target target) {
    const gpu::Mesh mesh{.grid = {3}, .grid_names = {"i"}};
    const Kernel k =
        pl::kernel({[](Ref x, Ref, Ref s, Ref b) {
                      s[_] = x[axis_index("i")];
                      gpu::barrier_arrive(b);
                    },
                    [](Ref, Ref o, Ref s, Ref b) {
                      gpu::barrier_wait(b);
                      o[axis_index("i")] = s[_] + 1.0f;
                    }},
                   pl::KernelOptions{.name = "meshes",
                                     .out_type = {{3, 128}, f32},
                                     .mesh = {mesh, mesh},
                                     .scratch_types = {gpu::SMEM({128}, f32), gpu::Barrier()}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({3, 128}))));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<float>(i + 1));
  });
}

std::string traced(const Body& body, const ScratchTypes& scratch) {
  return refused([&] {
    gpu::kernel(body, {.name = "refused", .out_type = {{4}, i32}, .scratch_types = scratch})
        .lower();
  });
}

TEST_CASE("one of several barriers has to be chosen [M44][M103]") {
  const auto arrive = [](Ref, Ref b) { gpu::barrier_arrive(b); };
  CHECK_THAT(
      traced(arrive, {gpu::Barrier({.num_barriers = 3})}),
      ContainsSubstring("barrier_arrive: operation is only valid for a single barrier, given "
                        "ref barrier(1) u64[3]; choose one: b.at(i)"));
  CHECK(traced(arrive, {gpu::Barrier({.num_barriers = 1})}) == "");
  CHECK_THAT(
      traced([](Ref, Ref b) { gpu::barrier_wait(b.at(3)); }, {gpu::Barrier({.num_barriers = 3})}),
      ContainsSubstring("out of bounds"));
}

TEST_CASE("what is no barrier, or none that can be, is refused") {
  CHECK_THAT(traced([](Ref, Ref s) { gpu::barrier_wait(s); }, {gpu::SMEM({1}, f32)}),
             ContainsSubstring("barrier_wait: expected a barrier, given ref smem f32[1]"));
  CHECK_THAT(traced([](Ref o, Ref b) { o[0] = Value(b[0]).astype(i32); }, {gpu::Barrier()}),
             ContainsSubstring("holds barriers"));
  CHECK_THAT(traced([](Ref, Ref) {}, {gpu::Barrier({.num_arrivals = 0})}),
             ContainsSubstring("scratch[0] is a barrier with num_arrivals = 0"));
  CHECK_THAT(traced([](Ref, Ref) {}, {gpu::Barrier({.num_barriers = {3, 11}})}),
             ContainsSubstring("scratch[0] is of [3,11] barriers; 1 to 32 are possible"));
  const auto in_call = [] {
    pl::pallas_call([](Ref, Ref) {}, {.out_type = {{4}, i32}, .scratch_types = {gpu::Barrier()}})
        .lower();
  };
  CHECK_THAT(refused(in_call), ContainsSubstring("scratch[0] is a barrier, which only bodies of a "
                                                 "pl::kernel can have"));
  const auto in_warps = [](Ref, Ref) { gpu::warp_map([&](Value) { gpu::wait_gmem_to_smem(0); }); };
  CHECK_THAT(traced(in_warps, {gpu::Barrier()}),
             ContainsSubstring("wait_gmem_to_smem: in a WarpMesh"));
  const auto scoped = [](Ref) { pl::run_scoped([](Ref) {}, {gpu::Barrier()}); };
  CHECK_THAT(
      refused([&] {
        gpu::kernel(scoped, {.out_type = {{4}, i32}, .num_threads = 2, .thread_name = "wg"})
            .lower();
      }),
      ContainsSubstring("is a barrier, which is of all 2 threads: .collective_axes = {\"wg\"}"));
}

TEST_CASE("barriers need an architecture that has them, which an error says") {
  const Lowered k =
      gpu::kernel([](Ref, Ref b) { gpu::barrier_arrive(b); },
                  {.name = "old", .out_type = {{4}, i32}, .scratch_types = {gpu::Barrier()}})
          .lower();
  CHECK_THAT(refused([&] { (void)k.cuda_source({.arch = "sm_75"}); }),
             ContainsSubstring("barrier_arrive: kernel 'old' is compiled for sm_75; barriers, and "
                               "copies that they know of, need sm_80 or newer"));
}

}  // namespace barriers
