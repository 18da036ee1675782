// Kernels whose operands have sizes that only a call knows, whole ones among them: as many kernels
// as classes, whatever the sizes are, and what a plain loop gives.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "tests/emulator/random_sizes.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

/// Rows of an array by a list of their numbers.
Kernel gather() {
  return pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; },
                     [](ShapeDtype ids, ShapeDtype x) {
                       return PallasCallOptions{
                           .name = "gather",
                           .out_type = {{ids.shape[0], x.shape[1]}, f32},
                           .num_scalar_prefetch = 1,
                           .grid = {ids.shape[0], cdiv(x.shape[1], 64)},
                           .in_specs = {{{squeezed, 64},
                                         [](Index i, Index j, Ref ids) {
                                           return Indices{ids[i], j};
                                         }}},
                           .out_specs = {{{squeezed, 64}, [](Index i, Index j, Ref) {
                                            return Indices{i, j};
                                          }}}};
                     });
}

/// The same of a table that each program sees as a whole.
Kernel embedding() {
  return pallas_call(
      [](Ref ids, Ref table, Ref o) {
        o[_] = table[{ids[program_id(0)], ds(program_id(1) * 32, 32)}];
      },
      [](ShapeDtype ids, ShapeDtype table) {
        require_multiple(table.shape[1], 32);
        return PallasCallOptions{.name = "embedding",
                                 .out_type = {{ids.shape[0], table.shape[1]}, f32},
                                 .num_scalar_prefetch = 1,
                                 .grid = {ids.shape[0], table.shape[1] / 32},
                                 .in_specs = {BlockSpec{}},
                                 .out_specs = {{{squeezed, 32}, [](Index i, Index j, Ref) {
                                                  return Indices{i, j};
                                                }}}};
      });
}

/// Blocks of 16 rows, each by the matrix of its expert: sums over a length that is an extent.
Kernel grouped_matmul() {
  return pallas_call(
      [](Ref experts, Ref x, Ref w, Ref o) {
        Value expert = experts[program_id(0)];
        Ref own = w.at({expert});
        o[_] = loop(
            0, x.shape()[1] / 16,
            [&](Index k, Value sum) {
              return carry(sum + dot(x[{ds(program_id(0) * 16, 16), ds(k * 16, 16)}],
                                     own[{ds(k * 16, 16), ds(program_id(1) * 16, 16)}]));
            },
            zeros({16, 16}, f32));
      },
      [](ShapeDtype experts, ShapeDtype x, ShapeDtype w) {
        require_equal(x.shape[1], w.shape[1]);
        require_equal(x.shape[0], experts.shape[0] * 16);
        require_multiple(x.shape[1], 16);
        require_multiple(w.shape[2], 16);
        return PallasCallOptions{.name = "grouped_matmul",
                                 .out_type = {{x.shape[0], w.shape[2]}, f32},
                                 .num_scalar_prefetch = 1,
                                 .grid = {experts.shape[0], w.shape[2] / 16},
                                 .in_specs = {BlockSpec{}, BlockSpec{}},
                                 .out_specs = {{{16, 16}, [](Index i, Index j, Ref) {
                                                  return Indices{i, j};
                                                }}}};
      });
}

/// Sums of rows over a mesh: each program takes some of the rows, in slices.
Kernel row_sums() {
  return gpu::kernel(
      [](Ref x, Ref o) {
        const Value columns = x.shape()[1];
        loop(axis_index("i"), x.shape()[0], {.step = 3}, [&](Index row) {
          Value sum = loop(
              0, cdiv(x.shape()[1], 64),
              [&](Index j, Value s) {
                const Value inside = iota(i32, {64}, 0) + j * 64 < columns;
                return carry(s + load(x.at({row, ds(j * 64, 64)}), {.mask = inside, .other = 0}));
              },
              zeros({64}, f32));
          o[row] = pl::sum(sum);
        });
      },
      [](ShapeDtype x) {
        return gpu::KernelOptions{
            .name = "row_sums", .out_type = {{x.shape[0]}, f32}, .grid = {3}, .grid_names = {"i"}};
      });
}

/// Twice an array, in blocks that are copied by hand: by a loop, or as emit_pipeline does.
Kernel doubled_by_hand(bool by_pipeline) {
  const auto by_loop = [](Ref x, Ref o, Ref block, Ref there) {
    const Value column = axis_index("column") * 32;
    loop(0, x.shape()[0] / 8, [&](Index i) {
      const auto part = [&](const Ref& of) { return of.at({ds(i * 8, 8), ds(column, 32)}); };
      gpu::copy_gmem_to_smem(part(x), block, there);
      gpu::barrier_wait(there);
      block[_] = block[_] * 2;
      gpu::commit_smem();
      gpu::copy_smem_to_gmem(block, part(o));
      gpu::wait_smem_to_gmem(0);
    });
  };
  const auto pipeline = [](Ref x, Ref o) {
    const BlockSpec tile{{8, 32}, [](Index i) { return Indices{i, axis_index("column")}; }};
    gpu::emit_pipeline([](const std::vector<Value>&, Ref in, Ref out) { out[_] = in[_] * 2; },
                       {.grid = {x.shape()[0] / 8},
                        .in_specs = {tile},
                        .out_specs = {tile},
                        .max_concurrent_steps = 3})(x, o);
  };
  const auto options = [=](ShapeDtype x) {
    require_multiple(x.shape[0], 8);
    require_multiple(x.shape[1], 32);
    gpu::KernelOptions of{.name = by_pipeline ? "pipeline" : "by_hand",
                          .out_type = x,
                          .grid = {x.shape[1] / 32},
                          .grid_names = {"column"}};
    if (!by_pipeline) of.scratch_types = {gpu::SMEM({8, 32}, f32), gpu::Barrier()};
    return of;
  };
  return by_pipeline ? gpu::kernel(pipeline, options) : gpu::kernel(by_loop, options);
}

}  // namespace

TEST_CASE("a gather of any number of rows of any array compiles once for each class") {
  for_each_target("gather", [](Target target) {
    CountedCalls k(gather());
    RandomSizes sizes(1);
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t n = sizes.next(0, 40), rows = sizes.below(60) + 1,
                         columns = sizes.below(200) + 1;
      const Array x = small_numbers({rows, columns});
      const Array ids =
          make_array<std::int32_t>({n}, [&](std::int64_t) { return sizes.below(rows); });
      const Array o = k(target, ids, x);
      for (std::int64_t e = 0; e < o.size(); ++e)
        REQUIRE(o.data<float>()[e] ==
                x.data<float>()[ids.data<std::int32_t>()[e / columns] * columns + e % columns]);
    }
    CHECK(k.kernels() <= 2);
  });
}

TEST_CASE("an embedding in a table of any height and width compiles once for each class") {
  for_each_target("embedding", [](Target target) {
    CountedCalls k(embedding());
    RandomSizes sizes(2);
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t n = sizes.next(0, 40), rows = sizes.below(100) + 1,
                         columns = 32 * (sizes.below(4) + 1);
      const Array x = small_numbers({rows, columns});
      const Array ids =
          make_array<std::int32_t>({n}, [&](std::int64_t) { return sizes.below(rows); });
      const Array o = k(target, ids, x);
      for (std::int64_t e = 0; e < o.size(); ++e)
        REQUIRE(o.data<float>()[e] ==
                x.data<float>()[ids.data<std::int32_t>()[e / columns] * columns + e % columns]);
    }
    CHECK(k.kernels() == 1);
  });
}

TEST_CASE("a grouped product of any numbers of groups, experts, rows and columns compiles once") {
  for_each_target("grouped_matmul", [](Target target) {
    CountedCalls k(grouped_matmul());
    RandomSizes sizes(3);
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t groups = sizes.next(0, 4), experts = sizes.below(5) + 1,
                         depth = 16 * sizes.below(4), n = 16 * (sizes.below(3) + 1);
      const Array x = small_numbers({16 * groups, depth}), w = small_numbers({experts, depth, n});
      const Array ids =
          make_array<std::int32_t>({groups}, [&](std::int64_t) { return sizes.below(experts); });
      const Array o = k(target, ids, x, w);
      for (std::int64_t e = 0; e < o.size(); ++e) {
        const std::int64_t row = e / n, column = e % n;
        const float* const matrix =
            w.data<float>() + ids.data<std::int32_t>()[row / 16] * depth * n;
        float sum = 0;
        for (std::int64_t j = 0; j < depth; ++j)
          sum += x.data<float>()[row * depth + j] * matrix[j * n + column];
        REQUIRE(o.data<float>()[e] == sum);
      }
    }
    CHECK(k.kernels() == 1);
  });
}

TEST_CASE("a reduction over a mesh compiles once for each class of its array") {
  for_each_target("row_sums", [](Target target) {
    CountedCalls k(row_sums());
    RandomSizes sizes(4);
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t rows = sizes.next(0, 20), columns = sizes.below(300);
      const Array x = small_numbers({rows, columns});
      const Array o = k(target, x);
      for (std::int64_t r = 0; r < rows; ++r) {
        float sum = 0;
        for (std::int64_t j = 0; j < columns; ++j) sum += x.data<float>()[r * columns + j];
        REQUIRE(o.data<float>()[r] == sum);
      }
    }
    CHECK(k.kernels() <= 2);
  });
}

TEST_CASE("copies by hand and pipelines of arrays of any size compile once, by TMA") {
  for (const bool by_pipeline : {false, true})
    for_each_target(by_pipeline ? "pipeline" : "by_hand", [&](Target target) {
      CountedCalls k(doubled_by_hand(by_pipeline));
      RandomSizes sizes(5);
      for (int i = 0; i < RandomSizes::count(); ++i) {
        const std::int64_t rows = 8 * sizes.next(0, 9), columns = 32 * sizes.below(5);
        const Array x = small_numbers({rows, columns});
        const Array o = k(target, x);
        for (std::int64_t e = 0; e < o.size(); ++e)
          REQUIRE(o.data<float>()[e] == 2 * x.data<float>()[e]);
      }
      CHECK(k.kernels() == 1);
      CHECK_THAT(doubled_by_hand(by_pipeline)
                     .lower(small_numbers({8, 64}))
                     .cuda_source({.arch = "sm_90a"}),
                 ContainsSubstring("tma_load"));
    });
}

TEST_CASE(
    "a pipeline of blocks that end behind an array of any size compiles once for each class") {
  const Kernel pipeline = gpu::kernel(
      [](Ref x, Ref o) {
        const BlockSpec tile{{8}, [](Index i) { return i; }};
        gpu::emit_pipeline(
            [](const std::vector<Value>&, Ref in, Ref out) { out[_] = in[_] + 1; },
            {.grid = {cdiv(x.shape()[0], 8)}, .in_specs = {tile}, .out_specs = {tile}})(x, o);
      },
      [](ShapeDtype x) { return gpu::KernelOptions{.name = "ends_behind", .out_type = x}; });
  for_each_target("ends_behind", [&](Target target) {
    CountedCalls k(pipeline);
    RandomSizes sizes(6);
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const Array x = small_numbers({sizes.next(0, 300)}), o = k(target, x);
      for (std::int64_t e = 0; e < o.size(); ++e)
        REQUIRE(o.data<float>()[e] == x.data<float>()[e] + 1);
    }
    CHECK(k.kernels() <= 2);
  });
  const auto key = [&](DimOptions n) {
    return pipeline.lower(ShapeDtype{{dim("n", n)}, f32}).key();
  };
  CHECK(key({.multiple_of = 4}) != key({.multiple_of = 8}));  // whose blocks are whole
}
