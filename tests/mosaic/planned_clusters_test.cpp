// Blocks of a cluster whose copies are planned: what several of them read is fetched once, a part
// by each, for all of them.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/disassemble.hpp"
#include "runtime/build/launch_plan.hpp"
#include "tests/mosaic/mosaic.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace planned {

/// How a product adds up.
enum class Sum : std::uint8_t { carried, scratch, output, masked };

/// A product of which blocks of a cluster {rows, columns} make tiles side by side.
struct Product {
  std::int64_t m = 256, n = 256, k = 256;
  int rows = 2, columns = 1;
  Sum sum = Sum::scratch;
  std::optional<bool> specialized = true;
  int slots = 0;
  bool has_symbols = false;
  int num_warps = 4, tile_rows = 64, tile_columns = 64, tile_k = 64;

  Kernel kernel() const { return sum == Sum::carried ? of_loop() : of_grid(); }

  Dim dim_or(const char* name, std::int64_t size) const {
    return has_symbols ? pl::dim(name, {.at_most = 4096}) : Dim(size);
  }
  std::vector<ArgType> types() const {
    return {ShapeDtype{{dim_or("m", m), k}, f16}, ShapeDtype{{k, n}, f16}};
  }

  std::string text() const { return kernel().lower(types()).cuda_source({.arch = "sm_90a"}); }
  std::string remarks(const char* arch = "sm_90a") const {
    std::string all;
    for (const Remark& r : kernel().lower(types()).report({.arch = arch}).remarks)
      all += r.text + "\n";
    return all;
  }

  /// Small whole numbers, of which sums are exact.
  Array a() const {
    return make_array<float>({m, k}, [](std::int64_t i) { return i * 7 % 5 - 2; }).astype(f16);
  }
  Array b() const {
    return make_array<float>({k, n}, [](std::int64_t i) { return i * 11 % 7 - 3; }).astype(f16);
  }

  void check(Target target) const {
    const Array o = on(target, Array::zeros({m, n}, f32));
    kernel().on(target).into({o}, {on(target, a()), on(target, b())});
    const std::vector<float> made = elements<float>(o);
    const std::vector<float> left = elements<float>(a().astype(f32)),
                             right = elements<float>(b().astype(f32));
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      std::vector<float> row(static_cast<std::size_t>(n), 0.f);
      for (std::int64_t l = 0; l < k; ++l)
        for (std::int64_t j = 0; j < n; ++j)
          row[static_cast<std::size_t>(j)] += left[static_cast<std::size_t>(i * k + l)] *
                                              right[static_cast<std::size_t>(l * n + j)];
      for (std::int64_t j = 0; j < n; ++j)
        wrong += made[static_cast<std::size_t>(i * n + j)] != row[static_cast<std::size_t>(j)];
    }
    CHECK(wrong == 0);
  }

 private:
  PallasCallOptions options(const Grid& grid) const {
    return {.name = "product",
            .out_type = {{dim_or("m", m), n}, f32},
            .grid = grid,
            .cluster = {rows, columns},
            .cluster_names = {"row", "column"},
            .interpret = InterpretParams{.detect_races = true},
            .compiler_params = {
                .num_warps = num_warps, .num_stages = slots, .warp_specialize = specialized}};
  }
  Dim rows_of_grid() const { return cdiv(dim_or("m", m), std::int64_t{tile_rows} * rows); }
  Dim columns_of_grid() const { return cdiv(n, tile_columns * columns); }
  auto row() const {
    return [r = rows](Index i) { return Index(i * r + axis_index("row")); };
  }
  auto column() const {
    return [c = columns](Index j) { return Index(j * c + axis_index("column")); };
  }

  Kernel of_grid() const {
    const Shape block{tile_rows, tile_columns};
    const bool in_scratch = sum == Sum::scratch;
    const Body with_scratch = [block](Ref a, Ref b, Ref o, Ref acc) {
      pl::when(pl::program_id(2) == 0, [&] { acc[_] = pl::zeros(block, f32); });
      acc[_] += pl::dot(a[_], b[_]);
      pl::when(pl::program_id(2) == pl::num_programs(2) - 1, [&] { o[_] = acc[_]; });
    };
    const Body to_output = [block, k = sum == Sum::masked ? k : 0, step = tile_k](Ref a, Ref b,
                                                                                  Ref o) {
      pl::when(pl::program_id(2) == 0, [&] { o[_] = pl::zeros(block, f32); });
      Value left = a[_], right = b[_];
      if (k > 0) {
        const Value first = pl::program_id(2) * step;
        left = pl::where(pl::iota(i32, left.shape(), 1) + first < k, left, 0);
        right = pl::where(pl::iota(i32, right.shape(), 0) + first < k, right, 0);
      }
      o[_] += pl::dot(left, right);
    };
    PallasCallOptions all = options({rows_of_grid(), columns_of_grid(), cdiv(k, tile_k)});
    all.in_specs = {{{tile_rows, tile_k},
                     [row = row()](Index i, Index, Index k) {
                       return Indices{row(i), k};
                     }},
                    {{tile_k, tile_columns}, [column = column()](Index, Index j, Index k) {
                       return Indices{k, column(j)};
                     }}};
    all.out_specs = {
        {{tile_rows, tile_columns}, [row = row(), column = column()](Index i, Index j, Index) {
           return Indices{row(i), column(j)};
         }}};
    if (in_scratch) all.scratch_types = {gpu::SMEM({tile_rows, tile_columns}, f32)};
    return pallas_call(in_scratch ? with_scratch : to_output, all);
  }

  Kernel of_loop() const {
    PallasCallOptions all = options({rows_of_grid(), columns_of_grid()});
    all.in_specs = {{{tile_rows, k},
                     [row = row()](Index i, Index) {
                       return Indices{row(i), 0};
                     }},
                    {{k, tile_columns}, [column = column()](Index, Index j) {
                       return Indices{0, column(j)};
                     }}};
    all.out_specs = {
        {{tile_rows, tile_columns}, [row = row(), column = column()](Index i, Index j) {
           return Indices{row(i), column(j)};
         }}};
    const std::int64_t steps = k / 64;
    return pallas_call(
        [=, rows = tile_rows, columns = tile_columns](Ref a, Ref b, Ref o) {
          o[_] = pl::loop(
              0, steps,
              [&](Index i, Value before) {
                const Slice part = ds(i * 64, 64);
                return before + pl::dot(a[{_, part}], b[{part, _}]);
              },
              pl::zeros({rows, columns}, f32));
        },
        all);
  }
};

/// All of them, each in the one section of the target: a section that comes again is not run again.
void check_all(const std::string& name, const std::vector<Product>& all) {
  for_each_target(name, [&](Target target) {
    for (const Product& p : all) {
      INFO("product " << &p - all.data());
      p.check(target);
    }
  });
}

constexpr int clusters[][2] = {{2, 1}, {1, 2}, {2, 2}, {4, 1}};

TEST_CASE("what blocks of a cluster read of a product they fetch together") {
  std::vector<Product> all;
  for (const auto& [rows, columns] : clusters)
    for (const Sum sum : {Sum::carried, Sum::scratch, Sum::output, Sum::masked}) {
      const Product p{.n = 128, .rows = rows, .columns = columns, .sum = sum};
      INFO(rows << " x " << columns << ", " << static_cast<int>(sum));
      CHECK_THAT(p.remarks(), ContainsSubstring("fetch a part each, for all of them"));
      CHECK_THAT(p.text(), ContainsSubstring("pl::tma_load_multicast("));
      CHECK(verdict_of(p.kernel(), p.types()).starts_with("good"));
      all.push_back(p);
    }
  check_all("product", all);
}

TEST_CASE("masks, ragged edges and symbolic extents change nothing of what blocks share") {
  std::vector<Product> all;
  for (const auto& [rows, columns] : clusters)
    for (const Sum sum : {Sum::carried, Sum::scratch, Sum::output, Sum::masked}) {
      INFO(rows << " x " << columns << ", " << static_cast<int>(sum));
      const Product p{.m = 232,
                      .n = 200,
                      .k = sum == Sum::masked ? 232 : 256,
                      .rows = rows,
                      .columns = columns,
                      .sum = sum,
                      .has_symbols = rows == 2};
      CHECK_THAT(p.text(), ContainsSubstring("pl::tma_load_multicast("));
      all.push_back(p);
    }
  check_all("ragged", all);
}

TEST_CASE("a product that blocks share is right with and without a producer, of any slots") {
  std::vector<Product> all;
  for (const int warps : {4, 8})
    for (const int slots : {2, 3})
      for (const int iterations : {1, slots, slots + 1, 7}) {
        const Product p{.m = 256,
                        .n = 128,
                        .k = 64 * iterations,
                        .slots = slots,
                        .num_warps = warps,
                        .tile_rows = 16 * warps};
        INFO(warps << " warps, " << slots << " slots, " << iterations << " iterations");
        CHECK(verdict_of(p.kernel(), p.types()).starts_with("good"));
        all.push_back(p);
      }
  const Product alone{.n = 128, .specialized = false};
  const Timeline predicted = Product{.k = 1024}
                                 .kernel()
                                 .lower(Product{.k = 1024}.types())
                                 .report({.arch = "sm_90a"})
                                 .timeline;
  CHECK(predicted.unknown == "");
  CHECK(predicted.loops.size() == 1);
  CHECK_THAT(alone.remarks(),
             ContainsSubstring("args[1]: 2 blocks of a cluster read the same, and each fetches it, "
                               "because no warpgroup fetches for the others"));
  CHECK(alone.text().find("multicast") == std::string::npos);
  all.push_back(alone);
  check_all("slots", all);
}

TEST_CASE("parts are panels where there is one for each block, and else rows of all of them") {
  std::vector<Product> all;
  for (const auto& [rows, columns] : clusters)
    for (const int wide : {128, 256}) {
      const Product p{.n = 256 * columns,
                      .k = 384,
                      .rows = rows,
                      .columns = columns,
                      .sum = Sum::output,
                      .slots = 2,
                      .tile_columns = wide,
                      .tile_k = 128};
      INFO(rows << " x " << columns << ", " << wide);
      CHECK_THAT(p.text(), ContainsSubstring("pl::tma_load_multicast("));
      CHECK(verdict_of(p.kernel(), p.types()).starts_with("good"));
      all.push_back(p);
    }
  check_all("wide", all);
}

/// Parts of K that a number in memory counts: of the cluster, or of each of its blocks.
Kernel counted_by(bool each) {
  const int rows = 64;
  return pallas_call(
      [=](Ref counts, Ref a, Ref b, Ref o) {
        const Value count = counts[each ? axis_index("row") : Value(0)];
        o[_] = pl::loop(
            0, count,
            [&](Index i, Value before) {
              const Slice part = ds(i * 64, 64);
              return before + pl::dot(a[{_, part}], b[{part, _}]);
            },
            pl::zeros({rows, 64}, f32));
      },
      {.name = "counted",
       .out_type = {{2 * rows, 64}, f32},
       .num_scalar_prefetch = 1,
       .grid = {1},
       .cluster = {2},
       .cluster_names = {"row"},
       .in_specs = {{{rows, 512},
                     [](Index, Ref) {
                       return Indices{axis_index("row"), 0};
                     }},
                    {{512, 64},
                     [](Index, Ref) {
                       return Indices{0, 0};
                     }}},
       .out_specs = {{{rows, 64},
                      [](Index, Ref) {
                        return Indices{axis_index("row"), 0};
                      }}},
       .interpret = InterpretParams{.detect_races = true},
       .compiler_params = {.num_stages = 3, .warp_specialize = true}});
}

TEST_CASE("as many iterations as memory says are shared where all blocks read that number") {
  const std::vector<ArgType> types{ShapeDtype{{2}, i32}, ShapeDtype{{128, 512}, f16},
                                   ShapeDtype{{512, 64}, f16}};
  const auto text = [&](bool each) {
    return counted_by(each).lower(types).cuda_source({.arch = "sm_90a"});
  };
  CHECK_THAT(text(false), ContainsSubstring("pl::tma_load_multicast("));
  CHECK(text(true).find("multicast") == std::string::npos);
  for_each_target("counted", [&](Target target) {
    for (const bool each : {false, true})
      for (const int count : {0, 1, 3, 4, 8}) {
        const Array counts = Array::of({count, each ? 8 - count : count});
        const Array ones = Array::full({128, 512}, f16, 1.f),
                    twos = Array::full({512, 64}, f16, 2.f);
        const std::vector<float> o = elements<float>(
            counted_by(each).on(target)(on(target, counts), on(target, ones), on(target, twos)));
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < o.size(); ++i)
          wrong +=
              o[i] != 128.f * static_cast<float>(i < o.size() / 2 || !each ? count : 8 - count);
        CHECK(wrong == 0);
      }
  });
}

/// Attention of which the blocks of a cluster have queries of their own, and all keys.
Kernel attention(int keys) {
  constexpr int depth = 64, rows = 64;
  return pallas_call(
      [=](Ref q, Ref k, Ref v, Ref o) {
        const auto iteration = [&](Index i, Value top, Value total, Value acc) {
          const Slice part = ds(i * 64, 64);
          const Value s = pl::dot(q[_], k[{part, _}], {.trans_b = true});
          const Value next = pl::maximum(top, pl::max(s, {.axis = {1}, .keepdims = true}));
          const Value p = pl::exp2(s - next), shrink = pl::exp2(top - next);
          return pl::carry(next, total * shrink + pl::sum(p, {.axis = {1}, .keepdims = true}),
                           acc * shrink + pl::dot(p.astype(f16), v[{part, _}]));
        };
        auto [top, total, acc] = pl::loop(0, keys / 64, iteration, pl::full({rows, 1}, -1e30f, f32),
                                          pl::zeros({rows, 1}, f32), pl::zeros({rows, depth}, f32));
        (void)top;
        o[_] = acc / total;
      },
      {.name = "attention",
       .out_type = {{4 * rows, depth}, f32},
       .grid = {2},
       .cluster = {2},
       .cluster_names = {"queries"},
       .in_specs = {{{rows, depth},
                     [](Index i) {
                       return Indices{i * 2 + axis_index("queries"), 0};
                     }},
                    {{keys, depth},
                     [](Index) {
                       return Indices{0, 0};
                     }},
                    {{keys, depth},
                     [](Index) {
                       return Indices{0, 0};
                     }}},
       .out_specs = {{{rows, depth},
                      [](Index i) {
                        return Indices{i * 2 + axis_index("queries"), 0};
                      }}},
       .interpret = InterpretParams{.detect_races = true},
       .compiler_params = {.warp_specialize = true}});
}

TEST_CASE("blocks of queries share keys and values") {
  const Kernel k = attention(256);
  const std::vector<ArgType> types{ShapeDtype{{256, 64}, f16}, ShapeDtype{{256, 64}, f16},
                                   ShapeDtype{{256, 64}, f16}};
  std::string remarks;
  for (const Remark& r : k.lower(types).report({.arch = "sm_90a"}).remarks)
    remarks += r.text + "\n";
  for (const char* what : {"args[1]", "args[2]"})
    CHECK_THAT(remarks,
               ContainsSubstring(
                   what + std::string(": 2 blocks of a cluster fetch a part each, for all")));
  CHECK(verdict_of(k, types).starts_with("good"));
  const auto random = [](int seed) {
    return make_array<float>({256, 64},
                             [=](std::int64_t i) {
                               return static_cast<float>((i * 7919 + seed * 104729) % 65 - 32) /
                                      64.f;
                             })
        .astype(f16);
  };
  std::vector<std::vector<float>> results;
  for_each_target("attention", [&](Target target) {
    results.push_back(elements<float>(
        k.on(target)(on(target, random(1)), on(target, random(2)), on(target, random(3)))));
    const std::vector<float> q = elements<float>(random(1).astype(f32)),
                             keys = elements<float>(random(2).astype(f32)),
                             values = elements<float>(random(3).astype(f32));
    double worst = 0;
    for (std::size_t row = 0; row < 256; row += 37) {
      std::vector<double> weights(256), expected(64);
      double total = 0;
      for (std::size_t j = 0; j < 256; ++j) {
        double s = 0;
        for (std::size_t d = 0; d < 64; ++d) s += double{q[row * 64 + d]} * keys[j * 64 + d];
        total += weights[j] = std::exp2(s);
      }
      for (std::size_t j = 0; j < 256; ++j)
        for (std::size_t d = 0; d < 64; ++d) expected[d] += weights[j] / total * values[j * 64 + d];
      for (std::size_t d = 0; d < 64; ++d)
        worst = test::worst_of(worst, std::abs(expected[d] - results.back()[row * 64 + d]));
    }
    CHECK(worst < 2e-3);
  });
}

TEST_CASE("what is fetched once blocks fetch together, too, without anybody who fetches ahead") {
  std::vector<Product> all;
  for (const auto& [rows, columns] : clusters) {
    const Product p{.n = 128,
                    .k = 64,
                    .rows = rows,
                    .columns = columns,
                    .sum = Sum::carried,
                    .specialized = std::nullopt};
    INFO(rows << " x " << columns);
    CHECK_THAT(p.text(), ContainsSubstring("pl::tma_load_multicast("));
    CHECK(verdict_of(p.kernel(), p.types()).starts_with("good"));
    all.push_back(p);
  }
  check_all("once", all);
}

TEST_CASE("threads may read beside a product what blocks share: each warp tells all of them") {
  const Kernel k = pallas_call(
      [](Ref a, Ref b, Ref o, Ref sums) {
        const auto step = [&](Index i, Value product, Value sum) {
          const Slice part = ds(i * 64, 64);
          const Value right = b[{part, _}];
          return pl::carry(product + pl::dot(a[{_, part}], right),
                           sum + pl::sum(right.astype(f32), {.axis = 0, .keepdims = true}));
        };
        auto [product, sum] =
            pl::loop(0, 8, step, pl::zeros({64, 64}, f32), pl::zeros({1, 64}, f32));
        o[_] = product;
        sums[_] = sum;
      },
      {.name = "read_beside",
       .out_type = {{{128, 64}, f32}, {{2, 64}, f32}},
       .grid = {1},
       .cluster = {2},
       .cluster_names = {"row"},
       .in_specs = {{{64, 512},
                     [](Index) {
                       return Indices{axis_index("row"), 0};
                     }},
                    {{512, 64},
                     [](Index) {
                       return Indices{0, 0};
                     }}},
       .out_specs = {{{64, 64},
                      [](Index) {
                        return Indices{axis_index("row"), 0};
                      }},
                     {{1, 64},
                      [](Index) {
                        return Indices{axis_index("row"), 0};
                      }}},
       .interpret = InterpretParams{.detect_races = true},
       .compiler_params = {.num_stages = 3, .warp_specialize = true}});
  const std::vector<ArgType> types{ShapeDtype{{128, 512}, f16}, ShapeDtype{{512, 64}, f16}};
  CHECK_THAT(k.lower(types).decisions({.arch = "sm_90a"}), ContainsSubstring("told by warps"));
  CHECK_THAT(k.lower(types).cuda_source({.arch = "sm_90a"}),
             ContainsSubstring("pl::tma_load_multicast(") &&
                 ContainsSubstring("pl::mbarrier_arrive_cluster("));
  CHECK(verdict_of(k, types).starts_with("good"));
  for_each_target("beside", [&](Target target) {
    const Array a = Array::full({128, 512}, f16, 1.f);
    const Array b =
        make_array<float>({512, 64}, [](std::int64_t i) { return i * 11 % 7 - 3; }).astype(f16);
    const Outputs results = k.on(target)(on(target, a), on(target, b));
    const std::vector<float> right = elements<float>(b.astype(f32)),
                             o = elements<float>(results[0]), sums = elements<float>(results[1]);
    std::int64_t wrong = 0;
    for (std::size_t j = 0; j < 64; ++j) {
      float sum = 0;
      for (std::size_t l = 0; l < 512; ++l) sum += right[l * 64 + j];
      for (std::size_t i = 0; i < 128; ++i) wrong += o[i * 64 + j] != sum;
      for (std::size_t i = 0; i < 2; ++i) wrong += sums[i * 64 + j] != sum;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("what blocks of a cluster cannot share each fetches, and a remark says why") {
  const Product narrow{.n = 128, .rows = 16, .tile_k = 64};
  CHECK_THAT(narrow.remarks(), ContainsSubstring("args[1]: 16 blocks of a cluster read the same, "
                                                 "and each fetches it, because its parts are none "
                                                 "that TMA brings"));
  const Product own{.n = 128};
  CHECK_THAT(own.remarks(),
             ContainsSubstring("args[0]: each block fetches its own, since that depends on where "
                               "in the cluster it stands"));
  // Rows that do not begin at multiples of 16 bytes are no boxes.
  const Product odd{.n = 124, .k = 128};
  CHECK_THAT(odd.remarks(), ContainsSubstring("args[1]"));
  CHECK(odd.text().find("tma_load_multicast") == std::string::npos);
  check_all("odd", {odd});
}

/// A product that a condition asks for, which all blocks of the cluster know or each for itself.
Kernel asked(const std::function<Value(Ref asks)>& condition) {
  const auto row = [](Index, Ref) { return Indices{axis_index("row"), 0}; };
  return pallas_call(
      [=](Ref asks, Ref a, Ref b, Ref o) {
        o[_] = pl::zeros({64, 64}, f32);
        pl::when(condition(asks), [&] { o[_] = pl::dot(a[_], b[_]); });
      },
      {.name = "asked",
       .out_type = {{128, 64}, f32},
       .num_scalar_prefetch = 1,
       .grid = {1},
       .cluster = {2},
       .cluster_names = {"row"},
       .in_specs = {{{64, 64}, row},
                    {{64, 64},
                     [](Index, Ref) {
                       return Indices{0, 0};
                     }}},
       .out_specs = {{{64, 64}, row}},
       .interpret = InterpretParams{.detect_races = true}});
}

TEST_CASE("what a condition asks for is shared where it is one for all blocks") {
  const std::vector<ArgType> types{ShapeDtype{{2}, i32}, ShapeDtype{{128, 64}, f16},
                                   ShapeDtype{{64, 64}, f16}};
  struct Case {
    std::function<Value(Ref)> condition;
    bool is_shared = false;
  };
  const auto of_first = [](Ref asks) { return asks[0] > 0; };
  const Case cases[] = {{of_first, true},
                        {[](Ref asks) { return asks[axis_index("row")] > 0; }, false},
                        {[](Ref) { return axis_index("row") == 1; }, false}};
  for (const Case& c : cases) {
    const std::string text = asked(c.condition).lower(types).cuda_source({.arch = "sm_90a"});
    CHECK((text.find("tma_load_multicast") != text.npos) == c.is_shared);
  }
  for_each_target("asked", [&](Target target) {
    for (const Case& c : cases)
      for (const int first : {0, 1}) {
        const std::vector<float> o =
            elements<float>(asked(c.condition)
                                .on(target)(on(target, Array::of({first, 1})),
                                            on(target, Array::full({128, 64}, f16, 1.f)),
                                            on(target, Array::full({64, 64}, f16, 1.f))));
        const bool by_number = &c != &cases[2];
        CHECK(o[0] == (by_number && first > 0 ? 64.f : 0.f));
        const bool second = &c != &cases[0] || first > 0;
        CHECK(o[64 * 64] == (second ? 64.f : 0.f));
      }
  });
}

TEST_CASE("what may wait at a semaphore for another block shares nothing with it") {
  const Kernel k = gpu::kernel(
      [](Ref a, Ref b, Ref o, Ref met) {
        const Slice own = ds(axis_index("row") * 64, 64);
        pl::semaphore_signal(met);
        pl::semaphore_wait(met);
        o[{own, _}] = pl::dot(a[{own, _}], b[_]);
      },
      {.name = "meets",
       .out_type = {{128, 64}, f32},
       .cluster = {2},
       .cluster_names = {"row"},
       .scratch_types = {gpu::SemaphoreType::REGULAR()}});
  const Lowered lowered = k.lower(ShapeDtype{{128, 64}, f16}, ShapeDtype{{64, 64}, f16});
  std::string remarks;
  for (const Remark& r : lowered.report({.arch = "sm_90a"}).remarks) remarks += r.text + "\n";
  CHECK_THAT(remarks, ContainsSubstring("args[1]: 2 blocks of a cluster read the same, and each "
                                        "fetches it, because one may wait at a semaphore for what "
                                        "the other does then"));
}

TEST_CASE("shared fetches are multicast in machine code, without spills") {
  for (const auto& [rows, columns] : clusters) {
    const Product p{.m = 1024,
                    .n = 1024,
                    .k = 512,
                    .rows = rows,
                    .columns = columns,
                    .num_warps = 8,
                    .tile_rows = 128,
                    .tile_columns = 128};
    INFO(rows << " x " << columns);
    const Compiled compiled = p.kernel().lower(p.types()).compile({.arch = "sm_90a"});
    CHECK_THAT(compiled.ptx(), ContainsSubstring(".multicast::cluster"));
    CHECK(compiled.resources().spill_store_bytes + compiled.resources().spill_load_bytes == 0);
    for (const std::string& warning : compiled.resources().warnings) FAIL_CHECK(warning);
    if (nvrtc::find_nvdisasm().empty()) continue;
    const Sass sass = compiled.sass();
    const auto is_multicast = [](const auto& opcode) {
      return opcode.first.starts_with("UTMALDG") &&
             opcode.first.find("MULTICAST") != std::string::npos;
    };
    CHECK(std::ranges::count_if(sass.all.opcodes, is_multicast) > 0);
  }
}

/// What the emulator says of a text in which each `from`, or all but the first, is `to`.
std::string fault_of(const Product& p, const std::string& from, const std::string& to,
                     bool but_first = false) {
  const graph::Graph g = graph::from_json(p.kernel().lower(p.types()).json());
  const cuda::Emitted e = cuda::emit(g, {.compute_capability = 90});
  std::string text = e.text;
  std::size_t at = but_first ? text.find(from) + 1 : 0;
  int changed = 0;
  while ((at = text.find(from, at)) != std::string::npos) {
    text.replace(at, from.size(), to);
    at += to.size();
    ++changed;
  }
  REQUIRE(changed > 0);
  Random random(1);
  test::Call call = random_call(g, {}, random, true);
  return refused([&] { run_text(g, text, runtime::plan_of(e), call); });
}

TEST_CASE("a block that is not told, not filled or gone before the others is missed") {
  const Product p{.m = 128, .n = 64, .k = 512, .slots = 2};
  CHECK(fault_of(p, "cluster_sync", "cluster_sync") == "");
  CHECK_THAT(fault_of(p, "told < 2", "told < 1"), ContainsSubstring("deadlock"));
  CHECK_THAT(fault_of(p, "u16(3)", "u16(1)"), ContainsSubstring("deadlock"));
  CHECK_THAT(fault_of(p, "pl::cluster_sync();", "", true),
             ContainsSubstring("touches shared memory of block (0, 0, 0), which may have ended"));
  CHECK_THAT(fault_of(p, "pl::mbarrier_init(smem + 16, 2)", "pl::mbarrier_init(smem + 16, 1)"),
             ContainsSubstring("race: the write of shared memory") && ContainsSubstring("wgmma"));
}

}  // namespace planned
