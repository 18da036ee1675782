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

TEST_CASE("a pipeline hands on what its body carries [M79]") {
  for_each_target("carry", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref last) {
          const auto [count, sum] = gpu::emit_pipeline(
              [](Steps, Ref in, Ref out, Value count, Value sum) {
                out[_] = full({64, 32}, count, f32);
                return pl::carry(count + 1, sum + in[_]);
              },
              {.grid = {4},
               .in_specs = {columns(32)},
               .out_specs = {columns(32)},
               .max_concurrent_steps = 2,
               .init_carry = {0, zeros({64, 32}, f32)}})(x, o);
          last[_] = sum + count.astype(f32);
        },
        {.name = "carry", .out_type = {{{64, 128}, f32}, {{64, 32}, f32}}});
    const auto [o, last] = k.on(target)(on(target, counted({64, 128}))).unpack<2>();
    const std::vector<float> blocks = elements<float>(o), sums = elements<float>(last);
    bool right = true;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      right = right && blocks[i] == static_cast<float>(i % 128 / 32);
    for (std::size_t i = 0; i < sums.size(); ++i)
      right = right && sums[i] == static_cast<float>(4 * (i / 32 * 128 + i % 32) + 6 * 32 + 4);
    CHECK(right);
  });
}

TEST_CASE(
    "an input that is the same for all steps is copied once, others as far ahead as said [M94]") {
  for_each_target("once", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref n, Ref x, Ref y, Ref o) {
          const Value row = n[1];
          gpu::emit_pipeline([](Steps, Ref in, Ref same, Ref out) { out[_] = in[_] + same[_]; },
                             {.grid = {n[0]},
                              .in_specs = {BlockSpec{{64, 32},
                                                     [](Index i) {
                                                       return Indices{0, i};
                                                     },
                                                     {.pipeline_mode = Buffered(3)}},
                                           BlockSpec{{64, 32},
                                                     [=](Index) {
                                                       return Indices{row * 1, 0};
                                                     }}},
                              .out_specs = {columns(32)},
                              .max_concurrent_steps = 2})(x, y, o);
        },
        {.name = "once",
         .out_type = {{64, 128}, f32},
         .interpret = InterpretParams{.detect_races = true}});
    const Array n = make_array<std::int32_t>({2}, [](std::int64_t i) { return i == 0 ? 4 : 1; });
    const Array y = make_array<float>({128, 32}, [](std::int64_t i) { return i / 2048; });
    CHECK(is_next(k.on(target)(on(target, n), on(target, counted({64, 128})), on(target, y))));
    const std::string graph =
        k.lower(ShapeDtype{{2}, i32}, ShapeDtype{{64, 128}, f32}, ShapeDtype{{128, 32}, f32})
            .graph();
    CHECK_THAT(graph, ContainsSubstring("smem f32[3,64,32]") &&
                          ContainsSubstring("smem f32[1,64,32]") &&
                          ContainsSubstring("smem f32[2,64,32]"));
  });
}

TEST_CASE("rooms that products under way read are filled again later [M70]") {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      for_each_target("delayed", [&](Target target) {
        const auto spec = [](bool transposed, std::int64_t m, std::int64_t k, auto map) {
          const std::vector<BlockDim> block =
              transposed ? std::vector<BlockDim>{k, m} : std::vector<BlockDim>{m, k};
          return BlockSpec::of(block, map, {.delay_release = 1});
        };
        const auto as = [](const Ref& r, bool transposed) {
          return transposed ? gpu::transpose_ref(r, {1, 0}) : r;
        };
        const Kernel k = gpu::kernel(
            [=](Ref a, Ref b, Ref c) {
              run_scoped(
                  [&](Ref acc) {
                    gpu::emit_pipeline(
                        [=](Steps, Ref a, Ref b) {
                          gpu::wgmma(acc, as(a, trans_a), as(b, trans_b));
                          gpu::wgmma_wait(1);
                        },
                        {.grid = {5},
                         .in_specs = {spec(trans_a, 64, 64,
                                           [=](Index k) {
                                             return trans_a ? Indices{k, 0} : Indices{0, k};
                                           }),
                                      spec(trans_b, 64, 64,
                                           [=](Index k) {
                                             return trans_b ? Indices{0, k} : Indices{k, 0};
                                           })},
                         .max_concurrent_steps = 2})(a, b);
                    c[_] = acc[_];
                  },
                  {gpu::ACC({64, 64})});
            },
            {.name = "delayed",
             .out_type = {{64, 64}, f32},
             .interpret = InterpretParams{.detect_races = true}});
        const auto matrix = [](std::int64_t rows, std::int64_t columns, bool transposed, int by) {
          const std::int64_t width = transposed ? rows : columns;
          return make_array<float>(transposed ? Shape{columns, rows} : Shape{rows, columns},
                                   [=](std::int64_t i) {
                                     const std::int64_t r = transposed ? i % width : i / width;
                                     const std::int64_t c = transposed ? i / width : i % width;
                                     return (r * 3 + c * by) % 5 - 2;
                                   })
              .astype(f16);
        };
        const Array a = matrix(64, 320, trans_a, 5), b = matrix(320, 64, trans_b, 2);
        const std::vector<float> c = elements<float>(k.on(target)(on(target, a), on(target, b)));
        bool right = true;
        for (int i = 0; i < 64; ++i)
          for (int j = 0; j < 64; ++j) {
            int sum = 0;
            for (int p = 0; p < 320; ++p)
              sum += ((i * 3 + p * 5) % 5 - 2) * ((p * 3 + j * 2) % 5 - 2);
            right = right && c[static_cast<std::size_t>(64 * i + j)] == static_cast<float>(sum);
          }
        CHECK(right);
        if (target == Target::interpreter)
          CHECK_THAT(verdict_of(k, {ShapeDtype{a.shape(), f16}, ShapeDtype{b.shape(), f16}}),
                     Catch::Matchers::StartsWith("good"));
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

TEST_CASE("blocks of a pipeline need not divide their arrays: beyond them are zeros") {
  // Of rows of 30 elements threads copy.
  for (const int columns : {72, 30})
    for_each_target(std::to_string(columns), [&](Target target) {
      const int across = (columns + 31) / 32;
      const BlockSpec tile{{64, 32}, [](Index i, Index j) { return Indices{i, j}; }};
      const BlockSpec row{{64}, [](Index i, Index) { return i; }};
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o, Ref sums) {
            gpu::emit_pipeline(
                [](const std::vector<Value>& step, Ref in, Ref out, Ref sum) {
                  const Value part = pl::sum(in[_], {.axis = 1});
                  pl::cond(
                      step[1] == 0, [&] { sum[_] = part; }, [&] { sum[_] += part; });
                  out[_] = in[_] + 1.0f;
                },
                {.grid = {2, across},
                 .in_specs = {tile},
                 .out_specs = {tile, row},
                 .max_concurrent_steps = 2})(x, o, sums);
          },
          {.name = "ragged", .out_type = {{{100, columns}, f32}, {{100}, f32}}});
      const auto [o, sums] = k.on(target)(on(target, counted({100, columns}))).unpack<2>();
      const std::vector<float> all = elements<float>(o), of_rows = elements<float>(sums);
      bool right = true;
      for (int i = 0; i < 100; ++i) {
        float expected = 0;
        for (int j = 0; j < columns; ++j) {
          const auto n = static_cast<float>(i * columns + j);
          expected += n;
          right = right && all[static_cast<std::size_t>(i * columns + j)] == n + 1;
        }
        right = right && of_rows[static_cast<std::size_t>(i)] == expected;
      }
      CHECK(right);
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
  BlockSpec filled = columns(48);
  filled.fill = 1;
  CHECK_THAT(over({3}, filled),
             ContainsSubstring("args[0]: beyond the array blocks of a pipeline hold zeros, and no "
                               "other number"));
  BlockSpec shared = columns(32);
  shared.collective_axes = {"c"};
  CHECK_THAT(over({4}, shared),
             ContainsSubstring("args[0] has collective_axes; what blocks share a thread of its "
                               "own copies: plgpu::emit_pipeline_warp_specialized"));
  CHECK_THAT(over({4, 4}, columns(32)),
             ContainsSubstring("args[0]: the index map takes a pl::Index per axis of the grid, of "
                               "which there are 2"));
  CHECK_THAT(over({4}, columns(32), 0),
             ContainsSubstring("max_concurrent_steps must be 1 or more"));
  BlockSpec late = columns(32);
  late.delay_release = 2;
  CHECK_THAT(over({4}, late, 2),
             ContainsSubstring("args[0]: max_concurrent_steps, 2, must be greater than "
                               "delay_release, 2"));
  CHECK_THAT(
      refused([] {
        const BlockSpec block{{8}, [](Index i) { return i; }, {.delay_release = 1}};
        pallas_call(
            [](Ref x, Ref o) { o[_] = x[_]; },
            {.out_type = {{16}, f32}, .grid = {2}, .in_specs = {block}, .out_specs = {block}})
            .lower(ShapeDtype{{16}, f32});
      }),
      ContainsSubstring("args[0]: delay_release and transforms are of blocks of a "
                        "plgpu::emit_pipeline"));
  CHECK_THAT(over({4}, {{32}, [](Index i) { return Indices{i}; }}),
             ContainsSubstring("args[0]: the block has 1 dimensions, and the array is ref gmem "
                               "f32[64,128]"));
}

}  // namespace pipelines
