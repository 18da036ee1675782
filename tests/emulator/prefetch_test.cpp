// Scalar prefetch: arrays that index maps and bodies read before anything else.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

template <class T>
std::vector<T> values_of(const Array& a) {
  const Array here = on_cpu(a);
  return {here.values<T>().begin(), here.values<T>().end()};
}

Array integers(std::vector<std::int32_t> list) {
  return make_array<std::int32_t>({static_cast<std::int64_t>(list.size())}, [&](std::int64_t i) {
    return list[static_cast<std::size_t>(i)];
  });
}

Array table(std::int64_t rows, std::int64_t columns) {
  return make_array<std::int32_t>({rows, columns}, [](std::int64_t i) { return i; });
}

const auto rows = [](Index i, Ref) { return Indices{i, 0}; };

/// Block i of the output is block s[i] of the input.
PallasCallOptions gather(std::int64_t block, std::int64_t columns, std::int64_t programs) {
  return {.name = "gather",
          .out_type = {{block * programs, columns}, i32},
          .num_scalar_prefetch = 1,
          .grid = programs,
          .in_specs = {BlockSpec{{block, columns},
                                 [](Index i, Ref s) {
                                   return Indices{s[i], 0};
                                 }}},
          .out_specs = {BlockSpec{{block, columns}, rows}}};
}

}  // namespace

TEST_CASE("an index map reads a prefetched array [C24]") {
  for_each_target("gather", [](Target target) {
    const std::vector<std::int32_t> s{4, 3, 2, 5, 3, 5, 2, 7};
    const Kernel k =
        pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; }, gather(8, 128, 8)).on(target);
    const std::vector<std::int32_t> y =
        values_of<std::int32_t>(k(on(target, integers(s)), on(target, table(64, 128))));
    for (std::size_t i = 0; i < 64 * 128; ++i)
      REQUIRE(y[i] == s[i / 1024] * 1024 + static_cast<std::int32_t>(i % 1024));
  });
}

TEST_CASE("blocks go where a prefetched array says, on a grid of a size that a call gives [C26]") {
  for_each_target("scatter", [](Target target) {
    const Kernel k =
        pallas_call(
            [](Ref s, Ref more, Value, Ref dst) {
              dst[_] = zeros({32, 64}, i32);
              // Row 0 of block 0, row 1 of block 1.
              const Value row = s[program_id(0)];
              dst[{ds(row, 1)}] = broadcast_to(more[{0, 0}] + iota(i32, {1, 64}, 1), {1, 64});
            },
            {.name = "scatter",
             .out_type = {{64, 64}, i32},
             .grid_spec = PrefetchScalarGridSpec{.num_scalar_prefetch = 2,
                                                 .grid = {argument(2)},
                                                 .out_specs = {BlockSpec{{32, 64},
                                                                         [](Index i, Ref s, Ref) {
                                                                           return Indices{s[i], 0};
                                                                         }}}}})
            .on(target);
    const std::vector<std::int32_t> y = values_of<std::int32_t>(
        k(on(target, integers({1, 0})), on(target, table(1, 1)), pl::scalar(2)));
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j)
        REQUIRE(y[static_cast<std::size_t>(64 * i + j)] == (i == 0 || i == 33 ? j : 0));
  });
}

TEST_CASE("a body reads what it prefetched, of any dtype and rank, whole or in part") {
  for_each_target("body", [](Target target) {
    const Kernel k = pallas_call(
                         [](Ref weights, Ref ids, Ref o) {
                           const Value id = ids[{program_id(0), 1}];
                           o[_] = broadcast_to(weights[id] + pl::sum(weights[_]), {4});
                         },
                         {.name = "body",
                          .out_type = {{12}, f32},
                          .num_scalar_prefetch = 2,
                          .grid = 3,
                          .out_specs = {BlockSpec{{4}, [](Index i, Ref, Ref) { return i; }}}})
                         .on(target);
    const Array weights = make_array<float>({5}, [](std::int64_t i) { return i * 0.5f; });
    const Array ids = make_array<std::int64_t>({3, 2}, [](std::int64_t i) { return 5 - i; });
    const std::vector<float> y = values_of<float>(k(on(target, weights), on(target, ids)));
    for (std::size_t i = 0; i < 12; ++i) CHECK(y[i] == 5 + 0.5f * (4 - 2 * (i / 4)));
  });
}

TEST_CASE("aliases count index operands [C50]") {
  for_each_target("next", [](Target target) {
    const BlockSpec block{{squeezed, 8, 16}, [](Index i, Ref s) { return Indices{s[i], 0, 0}; }};
    const Kernel k =
        pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_] + 1; }, {.name = "next",
                                                                 .out_type = {{4, 8, 16}, i32},
                                                                 .num_scalar_prefetch = 1,
                                                                 .grid = 4,
                                                                 .in_specs = {block},
                                                                 .out_specs = {block},
                                                                 .input_output_aliases = {{1, 0}}})
            .on(target);
    const Array x = on(target, table(4, 128).reshape({4, 8, 16}));
    const Array y = k(on(target, integers({2, 0, 3, 1})), x);
    CHECK(y.data() == x.data());
    const std::vector<std::int32_t> v = values_of<std::int32_t>(y);
    for (std::size_t i = 0; i < v.size(); ++i) REQUIRE(v[i] == static_cast<std::int32_t>(i) + 1);
  });
}

TEST_CASE("blocks along a sequential axis follow a prefetched list") {
  // Row blocks of a sparse matrix: columns of block r are from starts[r] to starts[r + 1].
  for_each_target("sparse", [](Target target) {
    const Kernel k =
        pallas_call(
            [](Ref counts, Ref, Ref x, Ref o) {
              pl::when(program_id(1) == 0, [&] { o[_] = zeros({4}, i32); });
              pl::when(program_id(1) < counts[program_id(0)], [&] { o[_] += x[_]; });
            },
            {.name = "sparse",
             .out_type = {{12}, i32},
             .num_scalar_prefetch = 2,
             .grid = {3, 4},
             .in_specs = {BlockSpec{{4},
                                    [](Index r, Index n, Ref, Ref columns) {
                                      return Indices{columns[{r, n}]};
                                    }}},
             .out_specs = {BlockSpec{{4}, [](Index r, Index, Ref, Ref) { return r; }}}})
            .on(target);
    const std::vector<std::int32_t> counts{2, 0, 4};
    const std::vector<std::int32_t> columns{5, 1, 0, 0, 0, 0, 0, 0, 2, 2, 3, 4};
    const Array x = make_array<std::int32_t>({24}, [](std::int64_t i) { return i * i; });
    const std::vector<std::int32_t> y =
        values_of<std::int32_t>(k(on(target, integers(counts)),
                                  on(target, integers(columns).reshape({3, 4})), on(target, x)));
    for (int r = 0; r < 3; ++r)
      for (int e = 0; e < 4; ++e) {
        int sum = 0;
        for (int n = 0; n < counts[static_cast<std::size_t>(r)]; ++n) {
          const int at = 4 * columns[static_cast<std::size_t>(4 * r + n)] + e;
          sum += at * at;
        }
        CHECK(y[static_cast<std::size_t>(4 * r + e)] == sum);
      }
  });
}

TEST_CASE("what index maps read out of bounds is refused at their line") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CAPTURE(to_string(target));
    PallasCallOptions options = gather(8, 4, 4);
    const int line = __LINE__ + 1;
    const auto beyond = [](Index i, Ref s) { return Indices{s[i + 1], 0}; };
    options.in_specs = {BlockSpec{{8, 4}, beyond}};
    const Kernel k = pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; }, options).on(target);
    try {
      k(integers({0, 1, 2, 3}), table(32, 4));
      FAIL("nothing was refused");
    } catch (const CompileError& e) {
      CHECK_THAT(e.what(), ContainsSubstring("load") && ContainsSubstring("out of bounds"));
      CHECK(e.at().line == line);
    }
  }
}

TEST_CASE("a block number beyond the array is refused on the CPU, wherever it comes from") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CAPTURE(to_string(target));
    const Kernel k =
        pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; }, gather(8, 4, 2)).on(target);
    for (const std::int32_t far : {4, -1})
      CHECK_THROWS_WITH(k(integers({0, far}), table(32, 4)),
                        ContainsSubstring("args[1]") && ContainsSubstring("wholly out of bounds"));
  }
}

TEST_CASE("two programs that a prefetched array sends to one block are told apart from others") {
  const auto scatter = [](Target target) {
    return pallas_call(
               [](Ref, Ref x, Ref o) { o[_] = x[_]; },
               {.name = "scatter",
                .out_type = {{16}, i32},
                .num_scalar_prefetch = 1,
                .grid = 2,
                .in_specs = {BlockSpec{{8}, [](Index i, Ref) { return i; }}},
                .out_specs = {BlockSpec{{8}, [](Index i, Ref s) { return Indices{s[i]}; }}}})
        .on(target);
  };
  const Array x = table(1, 16).reshape({16});
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CAPTURE(to_string(target));
    CHECK(values_of<std::int32_t>(scatter(target)(integers({1, 0}), x))[0] == 8);
    CHECK_THROWS_WITH(scatter(target)(integers({1, 1}), x), ContainsSubstring("outputs[0]"));
  }
}

TEST_CASE("rows that end between vectors have no more in them where their block has fewer rows") {
  const BlockSpec block{{2, BoundedSlice(1000)}, [](Index i, Ref sizes) {
                          return Indices{i, ds(Index(0), Index(sizes[i]))};
                        }};
  const BlockSpec each{{2, 1}, [](Index i, Ref) { return Indices{i, 0}; }};
  for_each_target("rows", [&](Target target) {
    const Kernel k = pallas_call(
                         [](Ref, Ref x, Ref least, Ref total) {
                           const Value v = x[_];
                           least[_] = min(v, {.axis = {1}, .keepdims = true});
                           total[_] = sum(v, {.axis = {1}, .keepdims = true});
                         },
                         {.name = "rows",
                          .out_type = {{{3, 1}, i32}, {{3, 1}, i32}},
                          .num_scalar_prefetch = 1,
                          .grid = 2,
                          .in_specs = {block},
                          .out_specs = {each, each},
                          .interpret = InterpretParams{.out_of_bounds = InterpretParams::zero}})
                         .on(target);
    const Array x = make_array<std::int32_t>(
        {3, 2800}, [](std::int64_t i) { return 5 + static_cast<std::int32_t>(i % 2800); });
    for (const int size : {1000, 3}) {
      const Outputs y = k(on(target, integers({size, size})), on(target, x));
      CHECK(values_of<std::int32_t>(y[0]) == std::vector<std::int32_t>(3, size == 3 ? 0 : 5));
      CHECK(values_of<std::int32_t>(y[1]) ==
            std::vector<std::int32_t>(3, 5 * size + size * (size - 1) / 2));
    }
  });
}
