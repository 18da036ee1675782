// emit_pipeline: blocks that are copied ahead, and back.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace pipelines {

using Steps = const std::vector<Value>&;

BlockSpec columns(int width) {
  return {{64, width}, [](Index i) { return Indices{0, i}; }};
}

bool is_next(const Array& o, float more = 1) {
  const std::vector<float> values = elements<float>(o);
  bool right = true;
  for (std::size_t i = 0; i < values.size(); ++i)
    right = right && values[i] == static_cast<float>(i) + more;
  return right;
}

TEST_CASE("a pipeline runs its body on each block, once or again and again [M74]") {
  for (const int times : {1, 3})
    for (const int slots : {1, 2, 3, 7})
      for_each_target("emit", [&](Target target) {
        const Kernel k = gpu::kernel(
            [=](Ref x, Ref o) {
              pl::loop(0, times, [&](Index) {
                gpu::emit_pipeline([](Steps, Ref in, Ref out) { out[_] = in[_] + 1.0f; },
                                   {.grid = {4},
                                    .in_specs = {columns(32)},
                                    .out_specs = {columns(32)},
                                    .max_concurrent_steps = slots})(x, o);
              });
            },
            {.name = "emit",
             .out_type = {{64, 128}, f32},
             .interpret = InterpretParams{.detect_races = true}});
        CHECK(is_next(k.on(target)(on(target, counted({64, 128})))));
      });
}

TEST_CASE("a pipeline in the body of another goes over whole arrays [M75]") {
  for_each_target("nested", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          gpu::emit_pipeline(
              [](Steps, Ref all, Ref to) {
                gpu::emit_pipeline([](Steps, Ref in, Ref out) { out[_] = in[_] + 1.0f; },
                                   {.grid = {4},
                                    .in_specs = {columns(32)},
                                    .out_specs = {columns(32)},
                                    .max_concurrent_steps = 2})(all, to);
              },
              {.in_specs = {BlockSpec({.memory_space = gpu::GMEM})},
               .out_specs = {BlockSpec({.memory_space = gpu::GMEM})}})(x, o);
        },
        {.name = "nested", .out_type = {{64, 128}, f32}});
    CHECK(is_next(k.on(target)(on(target, counted({64, 128})))));
  });
}

TEST_CASE("a block of an output that steps in a row have is one, stored behind the last [M76]") {
  for_each_target("sums", [](Target target) {
    const BlockSpec tile{{1, 64}, [](Index i, Index k) { return Indices{4 * i + k, 0}; }};
    const BlockSpec row{{pl::squeezed, 64}, [](Index i, Index) { return Indices{i, 0}; }};
    const BlockSpec once{{1, 64}, [](Index, Index) { return Indices{0, 0}; }};
    const Kernel k = gpu::kernel(
        [=](Ref x, Ref sums, Ref last) {
          gpu::emit_pipeline(
              [](Steps at, Ref in, Ref sum, Ref last) {
                const Value v = in[{0, _}];
                pl::cond(
                    at[1] == 0, [&] { sum[_] = v; }, [&] { sum[_] += v; });
                last[_] = in[_];
              },
              {.grid = {3, 4},
               .in_specs = {tile},
               .out_specs = {row, once},
               .max_concurrent_steps = 2})(x, sums, last);
        },
        {.name = "sums",
         .out_type = {{{3, 64}, f32}, {{1, 64}, f32}},
         .interpret = InterpretParams{.detect_races = true}});
    const auto [sums, last] = k.on(target)(on(target, counted({12, 64}))).unpack<2>();
    const std::vector<float> s = elements<float>(sums), l = elements<float>(last);
    for (std::size_t i = 0; i < s.size(); ++i)
      CHECK(s[i] == static_cast<float>(4 * (i % 64) + 64 * (16 * (i / 64) + 6)));
    for (std::size_t i = 0; i < l.size(); ++i) CHECK(l[i] == static_cast<float>(11 * 64 + i));
  });
}

TEST_CASE("a pipeline of a grid that the kernel computes may have no step [M78]") {
  for_each_target("dynamic", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref n, Ref x, Ref o) {
          const Value steps = n[0];
          for (int time = 0; time < 2; ++time)
            gpu::emit_pipeline([](Steps, Ref in, Ref out) { out[_] = in[_] + 1.0f; },
                               {.grid = {steps},
                                .in_specs = {columns(32)},
                                .out_specs = {columns(32)},
                                .max_concurrent_steps = 2})(x, o);
        },
        {.name = "dynamic"});
    for (const int steps : {0, 1, 2, 4}) {
      const Array n = make_array<std::int32_t>({1}, [&](std::int64_t) { return steps; });
      const Array o = on(target, counted({64, 128}));
      k.on(target)(on(target, n), on(target, counted({64, 128})), new_ref(o));
      const std::vector<float> values = elements<float>(o);
      bool right = true;
      for (std::size_t i = 0; i < values.size(); ++i)
        right =
            right && values[i] == static_cast<float>(i + (static_cast<int>(i % 128 / 32) < steps));
      CHECK(right);
    }
  });
}

TEST_CASE("blocks may begin at elements [M80]") {
  for_each_target("elements", [](Target target) {
    const BlockSpec rows{{pl::Element(8), 256}, [](Index i) { return Indices{10 * i + 1, 0}; }};
    const Kernel k = gpu::kernel(
        [=](Ref x) {
          gpu::emit_pipeline([](Steps, Ref in, Ref out) { out[_] = in[_] + 1.0f; },
                             {.grid = {2}, .in_specs = {rows}, .out_specs = {rows}})(x, x);
        },
        {.name = "elements"});
    const Array x = on(target, counted({20, 256}));
    k.on(target)(new_ref(x));
    const std::vector<float> values = elements<float>(x);
    bool right = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int row = static_cast<int>(i / 256);
      right = right && values[i] == static_cast<float>(i + (row > 0 && (row - 1) % 10 < 8));
    }
    CHECK(right);
  });
}

TEST_CASE("each warpgroup of a block may have a pipeline of its own") {
  for_each_target("two", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value wg = axis_index("wg");
          const BlockSpec half{{pl::squeezed, 16, 32}, [=](Index i) { return Indices{wg, i, 0}; }};
          gpu::emit_pipeline(
              [](Steps, Ref in, Ref out) { out[_] = in[_] + 1.0f; },
              {.grid = {5}, .in_specs = {half}, .out_specs = {half}, .max_concurrent_steps = 3})(x,
                                                                                                 o);
        },
        {.name = "two",
         .out_type = {{2, 80, 32}, f32},
         .num_threads = 2,
         .thread_name = "wg",
         .interpret = InterpretParams{.detect_races = true}});
    CHECK(is_next(k.on(target)(on(target, counted({2, 80, 32})))));
  });
}

std::string traced(gpu::EmitPipelineOptions options, int refs = 2) {
  return refused([&] {
    gpu::kernel(
        [=](Ref x, Ref o) {
          const auto body = [](Steps, auto... blocks) { (void)sizeof...(blocks); };
          if (refs == 1)
            gpu::emit_pipeline(body, options)(x);
          else
            gpu::emit_pipeline(body, options)(x, o);
        },
        {.name = "refused", .out_type = {{64, 128}, f32}})
        .lower(ShapeDtype{{64, 128}, f32});
  });
}

TEST_CASE("a pipeline of no steps, and one whose blocks do not fit, are refused [M77]") {
  CHECK_THAT(
      traced({.grid = {0, 2}}),
      ContainsSubstring("expected 0 inputs and 0 outputs, as there are specifications, given "
                        "2 Refs"));
  const auto over = [](std::vector<Value> grid, BlockSpec spec, int slots = 1) {
    return traced({.grid = std::move(grid),
                   .in_specs = {spec},
                   .out_specs = {spec},
                   .max_concurrent_steps = slots});
  };
  const BlockSpec all{{64, 128}, [](Index, Index) { return Indices{0, 0}; }};
  for (const auto& grid : {std::vector<Value>{0, 2}, std::vector<Value>{2, -1}})
    CHECK_THAT(
        over(grid, all),
        ContainsSubstring("emit_pipeline: All elements in the grid must be strictly positive"));
  CHECK_THAT(over({4}, columns(48)),
             ContainsSubstring("args[0]: dimension 1 of the block has 48 elements, which do not "
                               "divide the 128 of the array"));
  CHECK_THAT(over({4, 4}, columns(32)),
             ContainsSubstring("args[0]: the index map takes a pl::Index per axis of the grid, of "
                               "which there are 2"));
  CHECK_THAT(over({4}, columns(32), 0),
             ContainsSubstring("max_concurrent_steps must be 1 or more"));
  CHECK_THAT(over({4}, {{32}, [](Index i) { return Indices{i}; }}),
             ContainsSubstring("args[0]: the block has 1 dimensions, and the array is ref gmem "
                               "f32[64,128]"));
}

}  // namespace pipelines
