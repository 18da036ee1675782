// emit_pipeline_warp_specialized: a thread that copies beside those that compute.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using pl::_;

namespace specialized {

using Steps = const std::vector<Value>&;

gpu::KernelOptions block(const char* name, OutType out, int computing = 2) {
  return {.name = name,
          .out_type = std::move(out),
          .num_threads = computing + 1,
          .thread_name = "wg",
          .interpret = InterpretParams{.detect_races = true}};
}

/// What a computing thread of two has of {rows, n}.
Idx half(const Value& wg, int rows) { return ds(wg * (rows / 2), rows / 2); }

BlockSpec tiles(int rows, int columns) {
  return {{rows, columns}, [](Index i, Index j) { return Indices{i, j}; }};
}

template <class F>
bool holds(const Array& o, F expected) {
  const std::vector<float> values = elements<float>(o);
  bool right = true;
  for (std::size_t i = 0; i < values.size(); ++i) right = right && values[i] == expected(i);
  return right;
}

TEST_CASE("threads beside one that copies get each block, and store it with others [M82]") {
  for (const int slots : {2, 3})
    for (const int times : {1, 4})
      for (const bool manual : {false, true})
        for_each_target("copied", [&](Target target) {
          const Kernel k = gpu::kernel(
              [=](Ref x, Ref o, Ref last) {
                const Value wg = axis_index("wg");
                const auto copy = [=](const Ref& in, const Ref& out, const Ref& same) {
                  const Value part = in[{half(wg, 64), _}];
                  out[{half(wg, 64), _}] = part;
                  same[{half(wg, 64), _}] = part;
                };
                const auto options = [&] {
                  return gpu::EmitPipelineWarpSpecializedOptions{
                      .grid = {2, 3},
                      .memory_registers = 40,
                      .in_specs = {tiles(64, 32)},
                      .out_specs = {tiles(64, 32), BlockSpec{{64, 32},
                                                             [](Index, Index) {
                                                               return Indices{0, 0};
                                                             }}},
                      .max_concurrent_steps = slots,
                      .wg_axis = "wg",
                      .num_compute_wgs = 2,
                      .manual_consumed_barriers = manual};
                };
                pl::loop(0, times, [&](Index) {
                  if (manual)
                    gpu::emit_pipeline_warp_specialized(
                        [=](Steps, Ref in, Ref out, Ref same, Ref consumed) {
                          copy(in, out, same);
                          gpu::barrier_arrive(consumed);
                        },
                        options())(x, o, last);
                  else
                    gpu::emit_pipeline_warp_specialized(
                        [=](Steps, Ref in, Ref out, Ref same) { copy(in, out, same); }, options())(
                        x, o, last);
                });
              },
              block("copied", {{{128, 96}, f32}, {{64, 32}, f32}}));
          const auto [o, last] = k.on(target)(on(target, counted({128, 96}))).unpack<2>();
          CHECK(holds(o, [](std::size_t i) { return static_cast<float>(i); }));
          CHECK(holds(last, [](std::size_t i) {
            return static_cast<float>((64 + i / 32) * 96 + 64 + i % 32);
          }));
          if (target == Target::interpreter)
            CHECK_THAT(verdict_of(k, {ShapeDtype{{128, 96}, f32}}), StartsWith("good"));
        });
}

TEST_CASE("who waits for blocks himself, and tells when they are consumed, adds them [M83]") {
  struct In {
    Ref x, y;
  };
  for (const bool ready : {false, true})
    for (const bool consumed : {false, true})
      for (const bool dynamic : {false, true})
        for_each_target("added", [&](Target target) {
          const Kernel k = gpu::kernel(
              [=](Ref n, Ref x, Ref y, Ref o) {
                const Value wg = axis_index("wg");
                const gpu::EmitPipelineWarpSpecializedOptions options{
                    .grid = {dynamic ? Value(n[0]) : Value(4), 2},
                    .in_specs = {tiles(32, 64), tiles(32, 64)},
                    .out_specs = {tiles(32, 64)},
                    .max_concurrent_steps = 2,
                    .wg_axis = "wg",
                    .num_compute_wgs = 2,
                    .manual_ready_barriers = ready,
                    .manual_consumed_barriers = consumed};
                const auto add = [=](Steps, In in, const Ref& out, const std::vector<Ref>& b) {
                  if (ready) gpu::barrier_wait(b[0]);
                  if (ready) gpu::barrier_wait(b[1]);
                  const Value sum = in.x[{half(wg, 32), _}] + in.y[{half(wg, 32), _}];
                  for (std::size_t i = ready ? 2 : 0; i < b.size(); ++i) gpu::barrier_arrive(b[i]);
                  out[{half(wg, 32), _}] = sum;
                };
                if (ready && consumed)
                  gpu::emit_pipeline_warp_specialized(
                      [=](Steps at, In in, Ref out, Ref a, Ref b, Ref c, Ref d) {
                        add(at, in, out, {a, b, c, d});
                      },
                      options)(x, y, o);
                else if (ready || consumed)
                  gpu::emit_pipeline_warp_specialized(
                      [=](Steps at, In in, Ref out, Ref a, Ref b) {
                        add(at, in, out, {a, b});
                      },
                      options)(x, y, o);
                else
                  gpu::emit_pipeline_warp_specialized(
                      [=](Steps at, In in, Ref out) { add(at, in, out, {}); }, options)(x, y, o);
              },
              block("added", {{128, 128}, f32}));
          const Array n = make_array<std::int32_t>({1}, [](std::int64_t) { return 4; });
          const Array x = on(target, counted({128, 128}));
          CHECK(holds(k.on(target)(on(target, n), x, x),
                      [](std::size_t i) { return static_cast<float>(2 * i); }));
        });
}

TEST_CASE("computing threads carry values through a pipeline, and go on with them [M84]") {
  for_each_target("carried", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value wg = axis_index("wg");
          gpu::emit_pipeline_warp_specialized(
              [=](Steps, Ref in, Value sum) {
                return sum + in[{half(wg, 64), _}];
              },
              {.grid = {4, 4},
               .in_specs = {tiles(64, 64)},
               .wg_axis = "wg",
               .num_compute_wgs = 2,
               .compute_context = [=](const gpu::PipelineRun& pipeline) {
                 const Value none =
                     gpu::layout_cast(zeros({32, 64}, f32), gpu::Layout::WG_STRIDED(2));
                 o[{half(wg, 64), _}] = pipeline(none);
               }})(x);
        },
        block("carried", {{64, 64}, f32}));
    const Array x = make_array<float>({256, 256}, [](std::int64_t i) { return i % 256 + i / 256; });
    CHECK(holds(k.on(target)(on(target, x)), [](std::size_t i) {
      return static_cast<float>(16 * (i % 64 + i / 64 + 96 + 96));
    }));
  });
}

/// a @ b by two threads, which leave a product under way behind each step.
Kernel product(int slots, int delay, bool manual) {
  return gpu::kernel(
      [=](Ref a, Ref b, Ref c) {
        const Value wg = axis_index("wg");
        run_scoped(
            [&](Ref acc) {
              const auto multiply = [=](const Ref& a, const Ref& b) {
                gpu::wgmma(acc, a.at({ds(wg * 64, 64), _}), b);
                gpu::wgmma_wait(delay);
              };
              const gpu::EmitPipelineWarpSpecializedOptions options{
                  .grid = {5},
                  .in_specs = {BlockSpec{{128, 64},
                                         [](Index k) {
                                           return Indices{0, k};
                                         },
                                         {.delay_release = delay}},
                               BlockSpec{{64, 64},
                                         [](Index k) {
                                           return Indices{k, 0};
                                         },
                                         {.delay_release = delay}}},
                  .max_concurrent_steps = slots,
                  .wg_axis = "wg",
                  .num_compute_wgs = 2,
                  .manual_consumed_barriers = manual,
                  .compute_context = [&](const gpu::PipelineRun& pipeline) {
                    pipeline();
                    c[{ds(wg * 64, 64), _}] = acc[_].astype(f16);
                  }};
              if (manual)
                gpu::emit_pipeline_warp_specialized(
                    [=](Steps at, Ref a, Ref b, Ref free_a, Ref free_b) {
                      multiply(a, b);
                      pl::when(at[0] >= delay, [&] {
                        gpu::barrier_arrive(free_a);
                        gpu::barrier_arrive(free_b);
                      });
                    },
                    options)(a, b);
              else
                gpu::emit_pipeline_warp_specialized([=](Steps, Ref a, Ref b) { multiply(a, b); },
                                                    options)(a, b);
            },
            {gpu::ACC({64, 64})});
      },
      block("product", {{128, 64}, f16}));
}

TEST_CASE("rooms that products read are filled again when these are over [M85]") {
  const Array a = make_array<float>({128, 320}, [](std::int64_t i) { return i % 7 - 3; });
  const Array b = make_array<float>({320, 64}, [](std::int64_t i) { return i % 5 - 2; });
  for (const int slots : {2, 3, 4})
    for (const bool manual : {false, true})
      for_each_target("product", [&](Target target) {
        const Kernel k = product(slots, 1, manual);
        const Array c = on_cpu(k.on(target)(on(target, a.astype(f16)), on(target, b.astype(f16))));
        CHECK(holds(c.astype(f32), [](std::size_t i) {
          float sum = 0;
          for (std::size_t p = 0; p < 320; ++p)
            sum += static_cast<float>((static_cast<int>((i / 64 * 320 + p) % 7) - 3) *
                                      (static_cast<int>((p * 64 + i % 64) % 5) - 2));
          return sum;
        }));
        if (target == Target::interpreter)
          CHECK_THAT(verdict_of(k, {ShapeDtype{{128, 320}, f16}, ShapeDtype{{320, 64}, f16}}),
                     StartsWith("good"));
      });
}

TEST_CASE("an input that is the same for all of the grid is copied once [M86]") {
  for_each_target("stationary", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref y, Ref o) {
          const Value wg = axis_index("wg");
          gpu::emit_pipeline_warp_specialized(
              [=](Steps, Ref in, Ref same, Ref out) {
                out[{half(wg, 32), _}] = in[{half(wg, 32), _}] + same[{half(wg, 32), _}];
              },
              {.grid = {4, 2},
               .in_specs = {tiles(32, 64), BlockSpec{{32, 64},
                                                     [](Index, Index) {
                                                       return Indices{1, 0};
                                                     }}},
               .out_specs = {tiles(32, 64)},
               .wg_axis = "wg",
               .num_compute_wgs = 2})(x, y, o);
        },
        block("stationary", {{128, 128}, f32}));
    const Array x = on(target, counted({128, 128})), y = on(target, counted({64, 64}));
    CHECK(holds(k.on(target)(x, y), [](std::size_t i) {
      return static_cast<float>(i + (32 + i / 128 % 32) * 64 + i % 64);
    }));
    if (target == Target::interpreter)
      CHECK_THAT(verdict_of(k, {ShapeDtype{{128, 128}, f32}, ShapeDtype{{64, 64}, f32}}),
                 StartsWith("good"));
  });
}

TEST_CASE("pipelines one behind the other use the same rooms, without a pause [M88]") {
  for_each_target("pipelines", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          using gpu::PipelinePipeline;
          const Value wg = axis_index("wg");
          const auto pipeline = [=](MaybeValue state) {
            return gpu::emit_pipeline_warp_specialized(
                [=](Steps, Ref in, Value sum) {
                  return sum + in[{half(wg, 64), _}];
                },
                {.grid = {3},
                 .in_specs = {BlockSpec{{64, 32},
                                        [](Index i) {
                                          return Indices{i, 0};
                                        }}},
                 .wg_axis = "wg",
                 .num_compute_wgs = 2,
                 .pipeline_state = state,
                 .compute_context = [=](const gpu::PipelineRun& run) {
                   const Value sum = run(zeros({32, 32}, i32));
                   o[{half(wg, 64), _}] += sum;
                 }});
          };
          const gpu::PipelineAllocations rooms = pipeline({}).get_allocations(x);
          pl::when(wg != 2, [&] { o[{half(wg, 64), _}] = zeros({32, 32}, i32); });
          pl::loop(0, 2, [&](Index) {
            for (const int state : {PipelinePipeline::START, PipelinePipeline::STEADY,
                                    PipelinePipeline::STEADY, PipelinePipeline::STOP})
              pipeline(state)(rooms, x);
            pipeline({})(rooms, x);
          });
        },
        block("pipelines", {{64, 32}, i32}));
    const Array x = make_array<std::int32_t>({192, 32}, [](std::int64_t i) { return i; });
    const std::vector<std::int32_t> sums = elements<std::int32_t>(k.on(target)(on(target, x)));
    bool right = true;
    for (std::size_t i = 0; i < sums.size(); ++i)
      right = right && sums[i] == static_cast<std::int32_t>(10 * (3 * i + 3 * 2048));
    CHECK(right);
    if (target == Target::interpreter)
      CHECK_THAT(verdict_of(k, {ShapeDtype{{192, 32}, i32}}), StartsWith("good"));
  });
}

TEST_CASE("pipelines of a loop whose state is a value use the same rooms") {
  for_each_target("persistent", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value wg = axis_index("wg");
          const auto pipeline = [=](MaybeValue state, const Value& tile) {
            return gpu::emit_pipeline_warp_specialized(
                [=](Steps, Ref in, Value sum) {
                  return sum + in[{half(wg, 64), _}];
                },
                {.grid = {3},
                 .in_specs = {BlockSpec{{64, 32},
                                        [=](Index i) {
                                          return Indices{tile, i};
                                        }}},
                 .wg_axis = "wg",
                 .num_compute_wgs = 2,
                 .pipeline_state = state,
                 .compute_context = [=](const gpu::PipelineRun& run) {
                   o[{ds(tile * 64 + wg * 32, 32), _}] = run(zeros({32, 32}, f32));
                 }});
          };
          const gpu::PipelineAllocations rooms = pipeline({}, 0).get_allocations(x);
          pl::loop(0, 4, [&](Index tile) {
            const Value state = pl::where(tile == 0, 0, pl::where(tile == 3, 2, 1));
            pipeline(state, tile)(rooms, x);
          });
        },
        block("persistent", {{256, 32}, f32}));
    CHECK(holds(k.on(target)(on(target, counted({256, 96}))),
                [](std::size_t i) { return static_cast<float>(3 * (i / 32 * 96 + 32 + i % 32)); }));
    if (target == Target::interpreter)
      CHECK_THAT(verdict_of(k, {ShapeDtype{{256, 96}, f32}}), StartsWith("good"));
  });
}

std::string traced(gpu::EmitPipelineWarpSpecializedOptions options, int threads = 3) {
  return refused([&] {
    gpu::kernel(
        [=](Ref x, Ref) { gpu::emit_pipeline_warp_specialized([](Steps, Ref) {}, options)(x); },
        {.name = "refused",
         .out_type = {{64, 128}, f32},
         .num_threads = threads,
         .thread_name = "wg"})
        .lower(ShapeDtype{{64, 128}, f32});
  });
}

TEST_CASE("blocks of a cluster share what they copy for pipelines of their own [M89]") {
  for (const int computing : {1, 2})
    for_each_target(std::to_string(computing), [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref y, Ref o) {
            const Value wg = axis_index("wg"), mine = axis_index("c");
            BlockSpec shared = tiles(64, 32);
            shared.collective_axes = {"c"};
            pl::loop(0, 3, [&](Index) {
              gpu::emit_pipeline_warp_specialized(
                  [=](Steps, Ref in, Ref own, Ref out) {
                    const Idx part = computing == 1 ? Idx(ds(0, 64)) : half(wg, 64);
                    out[{part, _}] = in[{part, _}] + own[{part, _}];
                  },
                  {.grid = {1, 4},
                   .in_specs = {shared, tiles(64, 32)},
                   .out_specs = {tiles(64, 32)},
                   .wg_axis = "wg",
                   .num_compute_wgs = computing})(x, y.at(mine), o.at(mine));
            });
          },
          {.name = "shared",
           .out_type = {{2, 64, 128}, f32},
           .cluster = {2},
           .cluster_names = {"c"},
           .num_threads = computing + 1,
           .thread_name = "wg",
           .interpret = InterpretParams{.detect_races = true}});
      const Array x = counted({64, 128}), y = counted({2, 64, 128});
      const Array o = k.on(target)(on(target, x), on(target, y));
      CHECK(holds(o, [](std::size_t i) { return static_cast<float>(i + i % 8192); }));
      const std::vector<ArgType> types{ShapeDtype{{64, 128}, f32}, ShapeDtype{{2, 64, 128}, f32}};
      CHECK_THAT(k.lower(types).cuda_source({.arch = "sm_90a"}),
                 ContainsSubstring("pl::tma_load_multicast("));
      if (target == Target::interpreter) CHECK_THAT(verdict_of(k, types), StartsWith("good"));
    });
}

TEST_CASE("tiles of a pipeline need not divide arrays, with several computing threads either") {
  for_each_target("ragged", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value wg = axis_index("wg");
          gpu::emit_pipeline_warp_specialized(
              [=](Steps, Ref in, Ref out) {
                out[{half(wg, 64), _}] = in[{half(wg, 64), _}] * 2.0f;
              },
              {.grid = {2, 3},
               .in_specs = {tiles(64, 32)},
               .out_specs = {tiles(64, 32)},
               .wg_axis = "wg",
               .num_compute_wgs = 2})(x, o);
        },
        block("ragged", {{100, 72}, f32}));
    const Array o = k.on(target)(on(target, counted({100, 72})));
    CHECK(holds(o, [](std::size_t i) { return static_cast<float>(2 * i); }));
  });
}

TEST_CASE("pipelines that threads of the block cannot have are refused") {
  using Options = gpu::EmitPipelineWarpSpecializedOptions;
  const BlockSpec spec{{64, 32}, [](Index i) { return Indices{0, i}; }};
  const auto base = [&] {
    return Options{.grid = {4}, .in_specs = {spec}, .wg_axis = "wg", .num_compute_wgs = 2};
  };
  CHECK(traced(base()) == "");
  CHECK_THAT(traced(base(), 2), ContainsSubstring("a thread axis of 3 threads"));
  const auto with = [&](auto change) {
    Options o = base();
    change(o);
    return traced(o);
  };
  CHECK_THAT(with([](Options& o) { o.wg_axis = "x"; }), ContainsSubstring("given \"x\""));
  CHECK_THAT(with([](Options& o) { o.memory_thread_idx = 0; }),
             ContainsSubstring("Memory thread must be the last thread."));
  CHECK_THAT(
      with([](Options& o) { o.pipeline_state = MaybeValue(0); }),
      ContainsSubstring("Pipeline state should not be set when using automatic allocation."));
  CHECK_THAT(with([](Options& o) { o.compute_context = [](const gpu::PipelineRun&) {}; }),
             ContainsSubstring("Pipeline was not called in `compute_context`"));
  CHECK_THAT(with([](Options& o) {
               o.compute_context = [](const gpu::PipelineRun& run) {
                 run();
                 run();
               };
             }),
             ContainsSubstring("Cannot call pipeline more than once in `compute_context`"));
  CHECK_THAT(with([](Options& o) { o.in_specs[0].delay_release = 2; }),
             ContainsSubstring("max_concurrent_steps, 2, must be greater than delay_release, 2"));
  CHECK_THAT(with([](Options& o) {
               o.out_specs = {std::exchange(o.in_specs, {})[0]};
               o.out_specs[0].collective_axes = {"c"};
             }),
             ContainsSubstring("outputs[0] is an output, which blocks do not share"));
  CHECK_THAT(with([](Options& o) { o.manual_ready_barriers = true; }),
             ContainsSubstring("the body takes the indices, then 2 Refs and 0 carries"));
}

}  // namespace specialized
