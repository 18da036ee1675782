// Pipelines whose bodies do not what they say: interpreter and verdict tell, with a line of the
// user's.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace wrong_pipelines {

using Steps = const std::vector<Value>&;
using Options = gpu::EmitPipelineWarpSpecializedOptions;

Options over(int delay = 0) {
  const BlockSpec spec{{64, 32}, [](Index i) { return Indices{i, 0}; }, {.delay_release = delay}};
  return {.grid = {4}, .in_specs = {spec}, .wg_axis = "wg", .num_compute_wgs = 2};
}

Options with_output(Options o = over()) {
  o.out_specs = {BlockSpec{{64, 32}, [](Index i) { return Indices{i, 0}; }}};
  return o;
}

Idx half() { return ds(axis_index("wg") * 32, 32); }

struct Program {
  const char* name;
  void (*body)(const Ref& x, const Ref& o);
  const char* words;  // "": it is right
};

template <class F>
void run(F body, Options options, const Ref& x, const Ref& o) {
  if (options.out_specs.empty())
    gpu::emit_pipeline_warp_specialized(body, std::move(options))(x);
  else
    gpu::emit_pipeline_warp_specialized(body, std::move(options))(x, o);
}

const Program programs[] = {
    {"all of it",
     [](const Ref& x, const Ref& o) {
       run([](Steps, Ref in, Ref out) { out[{half(), _}] = in[{half(), _}]; }, with_output(), x, o);
     },
     ""},
    {"no arrival of one thread where a block was consumed",
     [](const Ref& x, const Ref& o) {
       Options options = with_output();
       options.manual_consumed_barriers = true;
       run(
           [](Steps, Ref in, Ref out, Ref consumed) {
             out[{half(), _}] = in[{half(), _}];
             pl::when(axis_index("wg") == 0, [&] { gpu::barrier_arrive(consumed); });
           },
           options, x, o);
     },
     "deadlock"},
    {"an arrival before the block is read",
     [](const Ref& x, const Ref& o) {
       Options options = with_output();
       options.manual_consumed_barriers = true;
       run(
           [](Steps, Ref in, Ref out, Ref consumed) {
             gpu::barrier_arrive(consumed);
             out[{half(), _}] = in[{half(), _}];
           },
           options, x, o);
     },
     "race on"},
    {"no wait for a block",
     [](const Ref& x, const Ref& o) {
       Options options = with_output();
       options.manual_ready_barriers = true;
       run([](Steps, Ref in, Ref out, Ref) { out[{half(), _}] = in[{half(), _}]; }, options, x, o);
     },
     "is read before anything was stored"},
    {"an arrival in the first step, too, where blocks are released late",
     [](const Ref& x, const Ref& o) {
       Options options = with_output(over(1));
       options.manual_consumed_barriers = true;
       run(
           [](Steps, Ref in, Ref out, Ref consumed) {
             out[{half(), _}] = in[{half(), _}];
             gpu::barrier_arrive(consumed);
           },
           options, x, o);
     },
     "had only observed it up to phase"},
    {"two threads that store the same part of an output",
     [](const Ref& x, const Ref& o) {
       run([](Steps, Ref in, Ref out) { out[_] = in[_]; }, with_output(), x, o);
     },
     "race on"},
    {"a last pipeline that is not said to be it",
     [](const Ref& x, const Ref&) {
       const auto pipeline = [](MaybeValue state) {
         Options options = over();
         options.pipeline_state = state;
         return gpu::emit_pipeline_warp_specialized([](Steps, Ref) {}, options);
       };
       const gpu::PipelineAllocations rooms = pipeline({}).get_allocations(x);
       pipeline(gpu::PipelinePipeline::START)(rooms, x);
       pipeline(gpu::PipelinePipeline::STEADY)(rooms, x);
     },
     "had only observed"},
    {"a loop over a counter that one thread of three runs",
     [](const Ref&, const Ref&) {
       pl::when(axis_index("wg") == 0, [&] {
         gpu::dynamic_scheduling_loop({"i"}, {.thread_axis = "wg"}, [](const gpu::NDLoopInfo&) {});
       });
     },
     "deadlock"},
};

/// What a body leaves under way behind a step, where it says that it leaves nothing.
Kernel hasty(int delay) {
  return gpu::kernel(
      [=](Ref a, Ref b, Ref c) {
        run_scoped(
            [&](Ref acc) {
              gpu::emit_pipeline(
                  [=](Steps, Ref a, Ref b) {
                    gpu::wgmma(acc, a, b);
                    gpu::wgmma_wait(1);
                  },
                  {.grid = {4},
                   .in_specs = {BlockSpec{{64, 64},
                                          [](Index k) {
                                            return Indices{0, k};
                                          },
                                          {.delay_release = delay}},
                                BlockSpec{{64, 64},
                                          [](Index k) {
                                            return Indices{k, 0};
                                          },
                                          {.delay_release = delay}}},
                   .max_concurrent_steps = 2})(a, b);
              c[_] = acc[_];
            },
            {gpu::ACC({64, 64})});
      },
      {.name = "hasty",
       .out_type = {{64, 64}, f32},
       .interpret = InterpretParams{.detect_races = true}});
}

Kernel kernel_of(const Program& p) {
  return gpu::kernel([body = p.body](Ref x, Ref o) { body(x, o); },
                     {.name = "wrong",
                      .out_type = {{256, 32}, f32},
                      .grid = {1},
                      .grid_names = {"i"},
                      .num_threads = 3,
                      .thread_name = "wg",
                      .interpret = InterpretParams{.detect_races = true}});
}

TEST_CASE("pipelines whose bodies do not what they say are refused, by line") {
  for (const Program& p : programs) {
    CAPTURE(p.name);
    const std::string found = refused([&] {
      kernel_of(p).on(Target::interpreter)(counted({256, 32}));
    });
    CHECK((found == "") == (std::string(p.words) == ""));
    CHECK_THAT(found, ContainsSubstring(p.words));
    if (found != "") CHECK_THAT(found, ContainsSubstring("wrong_pipelines_test.cpp:"));
  }
}

TEST_CASE("of wrong pipelines the verdict at compile time is not that they are right") {
  for (const Program& p : programs) {
    CAPTURE(p.name);
    const std::string verdict = verdict_of(kernel_of(p), {ShapeDtype{{256, 32}, f32}});
    CAPTURE(verdict);
    CHECK(verdict.starts_with("good") == (std::string(p.words) == ""));
  }
}

TEST_CASE("products that are under way when their operands' room is filled are a race") {
  const auto told = [](int delay) {
    const Array a = make_array<float>({64, 256}, [](std::int64_t i) { return i % 3; });
    const Array b = make_array<float>({256, 64}, [](std::int64_t i) { return i % 5; });
    return refused([&] { hasty(delay).on(Target::interpreter)(a.astype(f16), b.astype(f16)); });
  };
  CHECK(told(1) == "");
  CHECK_THAT(told(0),
             ContainsSubstring("race on") && ContainsSubstring("wrong_pipelines_test.cpp:"));
  const ShapeDtype a{{64, 256}, f16}, b{{256, 64}, f16};
  CHECK(verdict_of(hasty(1), {a, b}).starts_with("good"));
  CHECK(verdict_of(hasty(0), {a, b}).starts_with("counterexample"));
}

}  // namespace wrong_pipelines
