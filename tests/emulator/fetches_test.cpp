// Operands that TMA brings to shared memory.
#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

std::string text_of(const graph::Graph& g, int cc = 90) {
  return cuda::emit(g, {.compute_capability = cc}).text;
}

// Operands that are, pipelined or not.
std::ptrdiff_t fetches(const graph::Graph& g, int cc = 90) {
  const auto l = cuda::lower(g, {.compute_capability = cc});
  return std::ranges::count_if(l.storages, [](const lowered::Storage& s) {
    return s.is_fetched() && s.shared().swizzle > 0;
  });
}

}  // namespace

TEST_CASE("operands are fetched by TMA where their rows are multiples of 16 bytes") {
  const auto product = [](std::int64_t k, std::int64_t n) {
    return matmul_graph(f16, {.m = 100, .n = n, .k = k, .block_n = 64, .block_k = 32});
  };
  CHECK(fetches(product(64, 128)) == 2);
  CHECK(fetches(product(64, 128), 80) == 0);
  CHECK(fetches(product(64, 100)) == 1);  // rows of 200 bytes
  CHECK(fetches(product(60, 128)) == 1);
  CHECK(fetches(product(60, 100)) == 0);
  const auto remarks = [](const graph::Graph& g) {
    std::string all;
    for (const Remark& r : cuda::lower(g, {.compute_capability = 90}).remarks)
      if (r.at.line > 0) all += r.text + "\n";
    return all;
  };
  const std::string because =
      ": copied by threads, not by TMA, because its rows or its inner offset are not multiples of "
      "16 bytes";
  CHECK(remarks(product(64, 100)).find("args[1]" + because) != std::string::npos);
  CHECK(remarks(product(60, 128)).find("args[0]" + because) != std::string::npos);
  CHECK(remarks(product(64, 128)).find("TMA") == std::string::npos);
  for (const graph::Graph& g :
       {product(64, 128), product(64, 100), product(60, 128), product(60, 100), product(72, 136)})
    CHECK(on_all_targets(g, {}, 90) == "");
}

TEST_CASE("a mask that asks where the array ends is what TMA fills with zeros, another is not") {
  const auto masked = [](int limit) {
    return traced(
        [=](Ref x, Ref y, Ref o) {
          const Value step = program_id(0);
          when(step == 0, [&] { o[_] = zeros({64, 64}, f32); });
          const Value kx = iota(i32, {64, 32}, 1) + step * 32;
          const Value ky = iota(i32, {32, 64}, 0) + step * 32;
          o[_] += dot(where(kx < limit, x[_], 0), where(ky < limit, y[_], 0));
        },
        {.name = "masked",
         .out_type = {{{64, 64}, f32}},
         .grid = {3},
         .in_specs = {{{64, 32},
                       [](Index i) {
                         return Indices{0, i};
                       }},
                      {{32, 64},
                       [](Index i) {
                         return Indices{i, 0};
                       }}},
         .out_specs = {{{64, 64},
                        [](Index) {
                          return Indices{0, 0};
                        }}},
         .compiler_params = {.dimension_semantics = {sequential}}},
        {array({64, 72}, f16), array({72, 64}, f16)});
  };
  CHECK(fetches(masked(72)) == 2);
  CHECK(fetches(masked(80)) == 2);  // asks less
  CHECK(fetches(masked(71)) == 0);
  for (const int limit : {72, 71, 40}) CHECK(on_all_targets(masked(limit), {}, 90) == "");
}

TEST_CASE("rows that a mask hides, and for which nothing stands, are fetched as they are") {
  // Rows of a group that ends inside of a block, as mixtures of experts have them.
  const auto grouped = [](int rows) {
    return traced(
        [=](Ref x, Ref w, Ref o) {
          const Value first = program_id(0) * 64;
          const Value seen = first + iota(i32, {64, 1}, 0) < rows;
          const auto add = [&](Value k, Value sum) {
            const Slice now = ds(k * 32, 32);
            const Value a = load(x.at({ds(first, 64), now}), {.mask = seen});
            return sum + dot(a, w[{now, pl::_}]);
          };
          const Value sum = loop(0, 3, add, zeros({64, 64}, f32));
          store(o.at({ds(first, 64), pl::_}), sum, {.mask = seen});
        },
        {.name = "grouped",
         .out_type = {{{100, 64}, f32}},
         .grid = {2},
         .in_specs = {{}, {}},
         .out_specs = {BlockSpec{}},
         .compiler_params = {.allow_revisit = true}},
        {array({100, 96}, f16), array({96, 64}, f16)});
  };
  for (const int rows : {100, 70, 64, 1}) {
    CAPTURE(rows);
    CHECK(fetches(grouped(rows)) == 2);
    for (const int cc : {80, 90}) CHECK(on_all_targets(grouped(rows), {}, cc) == "");
  }
}

TEST_CASE(
    "views of windows are fetched where they begin, and before loops that do not change them") {
  const graph::Graph g = traced(
      [](Ref q, Ref k, Ref o) {
        const auto sums = loop(
            0, 4,
            [&](Value i, Value acc) {
              return acc + dot(q[_], k[{0, ds(i * 32, 32), _}], {.trans_b = true});
            },
            zeros({64, 32}, f32));
        o[_] = sums;
      },
      {.name = "views",
       .out_type = {{{128, 32}, f32}},
       .grid = {2},
       .in_specs = {{{64, 64},
                     [](Index i) {
                       return Indices{i, 0};
                     }},
                    {{2, 128, 64},
                     [](Index) {
                       return Indices{0, 0, 0};
                     }}},
       .out_specs = {{{64, 32},
                      [](Index i) {
                        return Indices{i, 0};
                      }}}},
      {array({128, 64}, bf16), array({2, 128, 64}, bf16)});
  CHECK(fetches(g) == 2);
  CHECK(text_of(g).find("tma_load") < text_of(g).find("PL_NOUNROLL"));
  CHECK(on_all_targets(g, {}, 90) == "");
}

TEST_CASE("scales and zeros of an iteration are fetched, of however many groups they are") {
  constexpr std::int64_t m = 64, n = 128, block = 64, steps = 6;
  const auto product = [](std::int64_t rows, DType zeros_are) {
    const Shape parts{rows, block / rows, n}, groups{rows, 1, n};
    return traced(
        [=](Ref x, Ref w, Ref scales, Ref offsets, Ref o) {
          const auto add = [&](Index i, Value sum) {
            const Slice now = ds(i * block, block), of = ds(i * rows, rows);
            const Value numbers = w[{now, _}].astype(f16).reshape(parts);
            const Value from = offsets[{of, _}].astype(f16).reshape(groups),
                        by = scales[{of, _}].reshape(groups);
            const Value operand = ((numbers - from) * by).reshape({block, n});
            return sum + dot(x[{_, now}], operand);
          };
          o[_] = loop(0, steps, add, zeros({m, n}, f32));
        },
        {.name = "groups", .out_type = {{{m, n}, f32}}},
        {array({m, block * steps}, f16), array({block * steps, n}, i8),
         array({rows * steps, n}, f16), array({rows * steps, n}, zeros_are)});
  };
  for (const std::int64_t rows : {1, 2, 4, 8})
    for (const DType zeros_are : {i8, f16}) {
      CAPTURE(rows, zeros_are.name());
      const graph::Graph g = product(rows, zeros_are);
      CHECK(text_of(g).find("load_global") == std::string::npos);
      CHECK(on_all_targets(g, {}, 90) == "");
    }
}

TEST_CASE(
    "TMA fills with zeros, so that what another fill, or an index array, asks is not fetched") {
  const auto product = [](BlockSpecOptions ends, bool gathers) {
    return traced(
        [=](Ref x, Ref y, Ref o) {
          const Value rows = iota(i32, {32}, 0) * 2;
          o[_] = dot(x[_], gathers ? y[{rows, _}] : y[{ds(0, 32), _}]);
        },
        {.name = "beyond",
         .out_type = {{{128, 64}, f32}},
         .grid = {2},
         .in_specs = {{{64, 32},
                       [](Index i) {
                         return Indices{i, 0};
                       },
                       ends},
                      {{64, 64},
                       [](Index) {
                         return Indices{0, 0};
                       }}},
         .out_specs = {{{64, 64},
                        [](Index i) {
                          return Indices{i, 0};
                        }}}},
        {array({100, 24}, f16), array({64, 64}, f16)});
  };
  CHECK(fetches(product({.fill = 0}, false)) == 2);
  CHECK(fetches(product({.fill = 3}, false)) == 1);
  CHECK(fetches(product({.fill = 0}, true)) == 1);
  for (const double fill : {0.0, 3.0})
    for (const bool gathers : {false, true})
      CHECK(on_all_targets(product({.fill = fill}, gathers), {}, 90) == "");
}

TEST_CASE("random products with operands by TMA and by threads agree") {
  int by_tma = 0;
  for_seeds(40, 8, [&](std::uint64_t seed) {
    Random random(seed);
    const int warps = random.pick({4, 8});
    const MatmulShape s{.m = random.between(1, 200),
                        .n = random.pick({8, 64, 72, 100, 128, 200}),
                        .k = random.pick({8, 16, 40, 64, 65, 120}),
                        .block_m = 16 * warps,
                        .block_n = random.pick({64, 96, 128}),
                        .block_k = random.pick({16, 32, 64}),
                        .trans_a = random.chance(50),
                        .trans_b = random.chance(50)};
    INFO(s.m << "x" << s.n << "x" << s.k << " in " << s.block_m << "x" << s.block_n << "x"
             << s.block_k << ", transposed " << s.trans_a << s.trans_b);
    const graph::Graph g = by_warps(warps, matmul_graph(random.pick({f16, bf16}), s));
    by_tma += fetches(g) > 0;
    for (const std::string& found : unpinned_registers(text_of(g))) FAIL_CHECK(found);
    CHECK(on_all_targets(g, {}, 90) == "");
  });
  CHECK(by_tma > 0);
}

TEST_CASE("nothing is fetched of arrays without elements, which no tensor map describes") {
  const Kernel product = pallas_call(
      [](Ref x, Ref y, Ref o) {
        when(program_id(0) == 0, [&] { o[_] = zeros({64, 64}, f32); });
        o[_] += dot(x[_], y[_]);
      },
      [](ShapeDtype x, ShapeDtype) {
        return PallasCallOptions{.name = "product",
                                 .out_type = {{64, 64}, f32},
                                 .grid = {cdiv(x.shape[1], 32)},
                                 .in_specs = {{{64, 32},
                                               [](Index i) {
                                                 return Indices{0, i};
                                               }},
                                              {{32, 64},
                                               [](Index i) {
                                                 return Indices{i, 0};
                                               }}},
                                 .out_specs = {{{64, 64}, [](Index) {
                                                  return Indices{0, 0};
                                                }}}};
      });
  const Dim k = dim("k", {.multiple_of = 8, .at_most = 1 << 12});
  REQUIRE(product.lower(ShapeDtype{{64, k}, f16}, ShapeDtype{{k, 64}, f16})
              .cuda_source({.arch = "sm_90a"})
              .find("tma_load") != std::string::npos);
  const Array none = Array::empty({64, 0}, f16), others = Array::empty({0, 64}, f16);
  CHECK_NOTHROW(product.on(Target::emulator)(none, others));
}

namespace {

// A valid convolution: sums of 3 x 5 elements, of blocks that overlap.
graph::Graph convolution(DType t, std::int64_t rows, std::int64_t columns, std::int64_t width,
                         int stages, bool sequential) {
  graph::Graph g = traced(
      [=](Ref x, Ref o) {
        Value sum = zeros({16, width}, t);
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 5; ++j) sum = sum + x[{ds(i, 16), ds(j, width)}];
        o[_] = sum;
      },
      {.name = "rows",
       .out_type = {{rows, columns}, t},
       .grid = {cdiv(columns, width), cdiv(rows, 16)},
       .in_specs = {{{Element(18), Element(width + 16)},
                     [=](Index j, Index i) {
                       return Indices{i * 16, j * width};
                     },
                     {.fill = 0}}},
       .out_specs = {{{16, width},
                      [](Index j, Index i) {
                        return Indices{i, j};
                      }}},
       .compiler_params = {.dimension_semantics = {parallel,
                                                   sequential ? palladium::sequential : parallel}}},
      {array({rows, columns}, t)});
  g.bodies[0].num_stages = stages;
  return g;
}

std::ptrdiff_t fetched_windows(const graph::Graph& g, int cc = 90) {
  const auto l = cuda::lower(g, {.compute_capability = cc});
  return std::ranges::count_if(l.windows, [&](const lowered::Window& w) {
    return w.is_staged() && l.storages[w.storage()].is_fetched();
  });
}

}  // namespace

TEST_CASE("windows that are read at several offsets are fetched where they lie as in their array") {
  for (const DType t : {f32, i16, i32, f64}) {
    CAPTURE(t.name());
    const graph::Graph g = convolution(t, 70, 272, 64, 0, false);
    CHECK(fetched_windows(g) == 1);
    CHECK(fetched_windows(g, 80) == 0);
    CHECK(on_all_targets(g, {}, 90) == "");
  }
  // Rows of 1080 bytes; 272 columns.
  for (const graph::Graph& g :
       {convolution(f32, 70, 270, 64, 0, false), convolution(f32, 40, 544, 256, 0, false)}) {
    CHECK(fetched_windows(g) == 0);
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

TEST_CASE("windows of a loop are fetched ahead, for any number of stages and iterations") {
  for (const int stages : {1, 2, 3, 5})
    for (const std::int64_t iterations : {1, 2, 3, 6}) {
      CAPTURE(stages, iterations);
      const graph::Graph g = convolution(f32, 16 * iterations - 3, 64, 64, stages, true);
      CHECK(fetched_windows(g) == 1);
      CHECK(on_all_targets(g, {}, 90) == "");
      graph::Graph served = g;
      served.bodies[0].warp_specialize = true;
      CHECK(on_all_targets(served, {}, 90) == "");
    }
}

TEST_CASE("two windows of a loop have rings of their own") {
  const auto rows = [](int from) {
    return BlockSpec{{Element(20), Element(80)},
                     [=](Index i) {
                       return Indices{i * 16 + from, 0};
                     },
                     {.fill = 0}};
  };
  const graph::Graph g = traced(
      [](Ref x, Ref y, Ref o) {
        const auto sum = [](Ref r) {
          Value all = zeros({16, 64}, f32);
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 5; ++j) all = all + r[{ds(i, 16), ds(j, 64)}];
          return all;
        };
        o[_] = sum(x) - sum(y);
      },
      {.name = "two",
       .out_type = {{128, 64}, f32},
       .grid = {8},
       .in_specs = {rows(0), rows(1)},
       .out_specs = {{{16, 64},
                      [](Index i) {
                        return Indices{i, 0};
                      }}},
       .compiler_params = {.dimension_semantics = {sequential}}},
      {array({140, 68}, f32), array({133, 80}, f32)});
  CHECK(fetched_windows(g) == 2);
  CHECK(on_all_targets(g, {}, 90) == "");
  for (const auto& [of_x, of_y] : {std::pair(2, 4), {3, 1}, {1, 1}}) {
    CAPTURE(of_x, of_y);
    graph::Graph given = g;
    given.mapping.block_mappings[0].buffers = of_x;
    given.mapping.block_mappings[1].buffers = of_y;
    CHECK(on_all_targets(given, {}, 90) == "");
  }
}
