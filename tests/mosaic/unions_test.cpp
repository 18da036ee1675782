// Scratch that lies over other scratch, and views that show how memory lies.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace unions {

TEST_CASE("members of a union lie over one another, those of a group behind one another [M93]") {
  for_each_target("overlay", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref sums, Ref seen, Ref bits, Ref first, Ref second) {
          first[_] = x[_];
          second[_] = pl::reshape(x[_] + 100.0f, {2, 64});
          sums[_] = first[_] + pl::reshape(second[_], {128});
          seen[_] = bits[ds(0, 128)];  // what `first` is made of
        },
        {.name = "overlay",
         .out_type = {{{128}, f32}, {{128}, i32}},
         .scratch_types = {gpu::RefUnion(
             {gpu::SMEM({512}, i32), {gpu::SMEM({128}, f32), gpu::SMEM({2, 64}, f32)}})}});
    const Array x = counted({128});
    const auto [sums, seen] = k.on(target)(on(target, x)).unpack<2>();
    const std::vector<float> s = elements<float>(sums);
    CHECK((s[0] == 100 && s[127] == 354));
    const std::vector<std::int32_t> bits = elements<std::int32_t>(seen);
    CHECK((bits[1] == std::bit_cast<std::int32_t>(1.0f) &&
           bits[127] == std::bit_cast<std::int32_t>(127.0f)));
  });
}

TEST_CASE("a union takes as much memory as the largest of its groups") {
  const auto problem = [](bool is_union) {
    const Scoped a = gpu::SMEM({160, 256}, f32), b = gpu::SMEM({64, 256}, f32);
    const Body body = [](Ref o, Ref x, Ref y, Ref z) {
      x[_] = zeros({160, 256}, f32);
      o[0] = pl::sum(x[_]);
      y[_] = zeros({64, 256}, f32);
      z[_] = zeros({64, 256}, f32);
      o[1] = pl::sum(y[_]) + pl::sum(z[_]);
    };
    gpu::KernelOptions options{.name = "bytes", .out_type = {{2}, f32}};
    if (is_union)
      options.scratch_types = {gpu::RefUnion({a, {b, b}})};
    else
      options.scratch_types = {a, b, b};
    return refused([&] { gpu::kernel(body, options).lower().cuda_source({.arch = "sm_90a"}); });
  };
  CHECK_THAT(problem(false), ContainsSubstring("bytes of shared memory, sm_90 has 232448"));
  CHECK(problem(true) == "");
}

TEST_CASE("members of a union are copied to, multiplied and stored, each lying its own way") {
  for_each_target("matrices", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref y, Ref o, Ref a, Ref b, Ref result, Ref there) {
          gpu::copy_gmem_to_smem(x, a, there);
          gpu::copy_gmem_to_smem(y, b, there);
          gpu::barrier_wait(there);
          run_scoped(
              [&](Ref acc) {
                gpu::wgmma(acc, a, gpu::transpose_ref(b, {1, 0}));
                gpu::wgmma_wait(0);
                result[_] = acc[_];  // over a and b, which are read
              },
              {gpu::ACC({64, 64})});
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(result, o);
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "matrices",
         .out_type = {{64, 64}, f32},
         .scratch_types = {gpu::RefUnion({{gpu::SMEM({64, 64}, f16), gpu::SMEM({64, 64}, f16)},
                                          gpu::SMEM({64, 64}, f32)}),
                           gpu::Barrier({.num_arrivals = 2})}});
    const Array x = make_array<float16_t>({64, 64}, [](auto i) { return float(i % 7) - 3; });
    const Array y = make_array<float16_t>({64, 64}, [](auto i) { return float(i % 5) - 2; });
    const std::vector<float> o = elements<float>(k.on(target)(on(target, x), on(target, y)));
    bool right = true;
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) {
        float sum = 0;
        for (int p = 0; p < 64; ++p)
          sum += (float((i * 64 + p) % 7) - 3) * (float((j * 64 + p) % 5) - 2);
        right = right && o[static_cast<std::size_t>(i * 64 + j)] == sum;
      }
    CHECK(right);
    const std::string text = k.lower(ShapeDtype{{64, 64}, f16}, ShapeDtype{{64, 64}, f16})
                                 .cuda_source({.arch = "sm_90a"});
    CHECK_THAT(text, ContainsSubstring("pl::tma_load(") && ContainsSubstring("pl::tma_store("));
  });
}

TEST_CASE("a scope has a union, of its thread or of all threads of a block") {
  for (const bool all : {false, true})
    for_each_target(all ? "all" : "own", [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref o, Ref both) {
            Value wg = axis_index("wg");
            run_scoped(
                [&](Ref a, Ref b) {
                  const Ref mine = all ? a.at({wg, _}) : a.at({0, _}),
                            row = all ? b.at({wg, _}) : b.at({0, _});
                  mine[_] = full({64}, 1.0f, f32) * (wg + 1).astype(f32);
                  Value held = mine[_];
                  if (all) {
                    gpu::barrier_arrive(both);
                    gpu::barrier_wait(both);
                  }
                  row[_] = held.astype(i32);
                  o[wg] = row[_];
                },
                {gpu::RefUnion({gpu::SMEM({2, 64}, f32), gpu::SMEM({2, 64}, i32)})},
                {.collective_axes =
                     all ? std::vector<std::string>{"wg"} : std::vector<std::string>{}});
          },
          {.name = "scopes",
           .out_type = {{2, 64}, i32},
           .num_threads = 2,
           .thread_name = "wg",
           .scratch_types = {gpu::Barrier({.num_arrivals = 2})}});
      const std::vector<std::int32_t> o = elements<std::int32_t>(k.on(target)());
      CHECK((o[0] == 1 && o[63] == 1 && o[64] == 2 && o[127] == 2));
    });
}

TEST_CASE("a member that is copied to while another is read is a race, with both lines") {
  const auto body = [](bool waits) {
    return [=](Ref x, Ref o, Ref a, Ref b, Ref done) {
      Value wg = axis_index("wg");
      when(wg == 0, [&] { gpu::copy_gmem_to_smem(x, a, done.at(0)); });
      when(wg == 1, [&] {
        gpu::barrier_wait(done.at(0));
        o[_] = a[_];
        if (waits) gpu::barrier_arrive(done.at(1));
      });
      when(wg == 0, [&] {
        if (waits) gpu::barrier_wait(done.at(1));
        b[_] = zeros({128}, i32);
      });
    };
  };
  const gpu::KernelOptions options{
      .name = "over",
      .out_type = {{128}, f32},
      .num_threads = 2,
      .thread_name = "wg",
      .scratch_types = {gpu::RefUnion({gpu::SMEM({128}, f32), gpu::SMEM({128}, i32)}),
                        gpu::Barrier({.num_barriers = 2})}};
  CHECK(races_of(body(true), options, {counted({128})}) == "");
  CHECK_THAT(races_of(body(false), options, {counted({128})}),
             ContainsSubstring("race on") && ContainsSubstring("unions_test.cpp"));
}

// One warpgroup of the first body fills a member, two of the second add to it, the first sends what
// they have made, which lies over what it had filled, and has memory of its own besides.
Kernel in_bodies(bool meets) {
  const auto fills = [=](Ref x, Ref o, Ref in, Ref out, Ref there, Ref made, Ref read) {
    gpu::copy_gmem_to_smem(x, in, there);
    run_scoped(
        [&](Ref a, Ref b) {
          a[_] = full({64}, 2.0f, f32);
          const Value two = a[_];
          b[_] = two.astype(i32);
          const Value more = b[_];
          gpu::barrier_wait(made);
          o[1] = pl::sum(out[_]) + pl::sum(more.astype(f32));
        },
        {gpu::RefUnion({gpu::SMEM({64}, f32), gpu::SMEM({64}, i32)})});
    (void)read;
  };
  const auto adds = [=](Ref, Ref o, Ref in, Ref out, Ref there, Ref made, Ref read) {
    const Value wg = axis_index("b");
    gpu::barrier_wait(there);
    const Value half = in[ds(wg * 64, 64)];
    if (meets) {
      gpu::barrier_arrive(read);
      gpu::barrier_wait(read);
    }
    out[ds(wg * 32, 32)] = half[ds(0, 32)] + half[ds(32, 32)];
    pl::when(wg == 0, [&] { o[0] = 5; });
    gpu::barrier_arrive(made);
  };
  return pl::kernel(
      {fills, adds},
      pl::KernelOptions{
          .name = "in_bodies",
          .out_type = {{2}, f32},
          .mesh = {gpu::Mesh{.num_threads = 1, .thread_name = "a"},
                   gpu::Mesh{.num_threads = 2, .thread_name = "b"}},
          .scratch_types = {gpu::RefUnion({gpu::SMEM({128}, f32), gpu::SMEM({64}, f32)}),
                            gpu::Barrier(), gpu::Barrier({.num_arrivals = 2}),
                            gpu::Barrier({.num_arrivals = 2})},
          .interpret = InterpretParams{.detect_races = true}});
}

TEST_CASE("several bodies have a union in common, and one of them another of its own") {
  for_each_target("in_bodies", [](Target target) {
    const std::vector<float> o =
        elements<float>(in_bodies(true).on(target)(on(target, counted({128}))));
    CHECK((o[0] == 5 && o[1] == 127 * 64 + 128));
  });
  CHECK_THAT(refused([] { in_bodies(false).on(Target::interpreter)(counted({128})); }),
             ContainsSubstring("race on"));
  CHECK_THAT(verdict_of(in_bodies(true), {ShapeDtype{{128}, f32}}),
             Catch::Matchers::StartsWith("good"));
  CHECK_THAT(verdict_of(in_bodies(false), {ShapeDtype{{128}, f32}}),
             Catch::Matchers::StartsWith("counterexample"));
}

TEST_CASE("unions of what is no shared memory, or of nothing, are refused") {
  CHECK_THAT(refused([] { gpu::RefUnion({}); }), ContainsSubstring("a union has members"));
  CHECK_THAT(
      refused([] {
        gpu::kernel(
            [](Ref, Ref, Ref) {},
            {.scratch_types = {gpu::RefUnion({gpu::SMEM({64}, f32), gpu::REGS({64}, f32)})}});
      }),
      ContainsSubstring("RefUnion: expected members in SMEM") &&
          ContainsSubstring("unions_test.cpp"));
}

TEST_CASE("a Ref is seen in tiles, as a transform lays them out") {
  for_each_target("tiles", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room) {
          room[_] = x[_];
          o[_] = gpu::transform_ref(room, gpu::TilingTransform({2, 4}))[_];
        },
        {.name = "tiles",
         .out_type = {{2, 2, 2, 4}, f32},
         .scratch_types = {gpu::SMEM({4, 8}, f32)}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({4, 8}))));
    bool right = true;
    for (int i = 0; i < 32; ++i)
      right = right && o[static_cast<std::size_t>(i)] ==
                           static_cast<float>((i / 16 * 2 + i / 4 % 2) * 8 + i / 8 % 2 * 4 + i % 4);
    CHECK(right);
  });
  const auto problem = [](const gpu::Transform& t) {
    return refused([&] {
      gpu::kernel(
          [=](Ref o, Ref room) { o[0] = gpu::transform_ref(room, t).shape()[0].value(); },
          {.name = "bad", .out_type = {{1}, i32}, .scratch_types = {gpu::SMEM({60, 64}, f16)}})
          .lower();
    });
  };
  CHECK_THAT(problem(gpu::TilingTransform({8, 64})),
             ContainsSubstring("cannot apply a tiling whose tiles do not divide [60,64]"));
  CHECK_THAT(problem(gpu::SwizzleTransform(128)),
             ContainsSubstring("say it where that is allocated"));
}

}  // namespace unions
