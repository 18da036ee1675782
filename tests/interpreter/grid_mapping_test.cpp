// What options say of grids and blocks: places of programs, environments, bounded slices, indices.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

template <class T>
std::vector<T> elements(const Array& a) {
  const Array on_host = on_cpu(a);
  const auto values = on_host.values<const T>();
  return {values.begin(), values.end()};
}

Array numbers(std::initializer_list<int> list) {
  return make_array<std::int32_t>({static_cast<std::int64_t>(list.size())},
                                  [&](std::int64_t i) { return list.begin()[i]; });
}

Array counted(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return i; });
}

using Numbers = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("programs start in the order that get_grid_indices gives their places") {
  for_each_target("reversed", [](Target target) {
    const BlockSpec one{{1, 1}, [](Index i, Index j) { return Indices{i, j}; }};
    const Kernel k =
        pallas_call(
            [](Ref, Ref o, Ref count) {
              count[_] += 1;
              o[_] = count[_].reshape({1, 1}) * 100 + program_id(0) * 10 + program_id(1);
            },
            {.name = "reversed",
             .out_type = {{{2, 3}, i32}, {{1}, i32}},
             .grid = {2, 3},
             .get_grid_indices =
                 [](Index i, Index j) {
                   return Indices{1 - i, 2 - j};
                 },
             .out_specs = {one, BlockSpec()},
             .input_output_aliases = {{0, 1}},
             .compiler_params = {.dimension_semantics = {pl::sequential, pl::sequential}}})
            .on(target);
    CHECK(elements<std::int32_t>(k(on(target, numbers({0}))).unpack<2>()[0]) ==
          Numbers{600, 501, 402, 310, 211, 112});
    const auto mapped = vmap(k)(on(target, numbers({0, 10}).reshape({2, 1}))).unpack<2>();
    CHECK(elements<std::int32_t>(mapped[0]) ==
          Numbers{600, 501, 402, 310, 211, 112, 1600, 1501, 1402, 1310, 1211, 1112});
  });
}

TEST_CASE("program_id and num_programs count the axes of local_grid_env") {
  for_each_target("unfolded", [](Target target) {
    const Kernel k = pallas_call(
                         [](Ref x, Ref o) {
                           o[_] = x[_] + program_id(0) * 1000 + program_id(-1) * 100 +
                                  num_programs(0) * 10 + num_programs(1);
                         },
                         {.name = "unfolded",
                          .out_type = {{6}, i32},
                          .grid = 6,
                          .local_grid_env =
                              [](Index i) {
                                return Indices{i / 3, num_programs(0) / 3, i % 3, 3};
                              },
                          .in_specs = {BlockSpec{{1}, [](Index i) { return i; }}},
                          .out_specs = {BlockSpec{{1}, [](Index i) { return i; }}}})
                         .on(target);
    const Numbers expected{23, 123, 223, 1023, 1123, 1223};
    CHECK(elements<std::int32_t>(k(on(target, numbers({0, 0, 0, 0, 0, 0})))) == expected);
  });
}

TEST_CASE("one specification of blocks is that of several arrays") {
  for_each_target("pairs", [](Target target) {
    const BlockSpec row{{1, 3}, [](Index i) { return Indices{i, 0}; }};
    const BlockSpec scale{{1}, [](Index i) { return i; }};
    struct Scaled {
      Ref x, scale;
    };
    const Kernel k = pallas_call([](Scaled s, Ref o) { o[_] = s.x[_] * s.scale[_]; },
                                 {.name = "pairs",
                                  .out_type = {{2, 3}, f32},
                                  .grid = 2,
                                  .in_specs = {BlockSpec::of_struct({row, scale})},
                                  .out_specs = {row}})
                         .on(target);
    CHECK(elements<float>(k(on(target, counted({2, 3})), on(target, counted({2})))) ==
          std::vector<float>{0, 0, 0, 3, 4, 5});
  });
  for_each_target("nested_pairs", [](Target target) {
    // An index operand in front, a struct within a struct, and outputs like inputs.
    const BlockSpec row{{1, 3}, [](Index i, Ref) { return Indices{i, 0}; }};
    const BlockSpec scale{{1}, [](Index i, Ref) { return i; }};
    const BlockSpec chosen{{1, 3}, [](Index i, Ref order) { return Indices{order[i], 0}; }};
    const BlockSpec rest = BlockSpec::of_struct({scale, row});
    const Kernel k = pallas_call(
                         [](Ref order, Ref x, Ref s, Ref y, Ref o, Ref t, Ref p) {
                           o[_] = x[_] * s[_] + y[_];
                           t[_] = s[_] + 1;
                           p[_] = x[_] + pl::f32(order[program_id(0)]);
                         },
                         {.name = "nested_pairs",
                          .out_type = {{{2, 3}, f32}, {{2}, f32}, {{2, 3}, f32}},
                          .num_scalar_prefetch = 1,
                          .grid = 2,
                          .in_specs = {BlockSpec::of_struct({chosen, rest})},
                          .out_specs = {BlockSpec::of_struct({row, rest})}})
                         .on(target);
    const auto [o, t, p] = k(on(target, numbers({1, 0})), on(target, counted({2, 3})),
                             on(target, counted({2})), on(target, counted({2, 3})))
                               .unpack<3>();
    CHECK(elements<float>(o) == std::vector<float>{0, 1, 2, 3, 5, 7});
    CHECK(elements<float>(t) == std::vector<float>{1, 2});
    CHECK(elements<float>(p) == std::vector<float>{4, 5, 6, 0, 1, 2});
  });
  const Kernel k = pallas_call(
      [](Refs) {}, {.out_type = {{2}, f32}, .in_specs = {BlockSpec::of_struct({{}, {}})}});
  CHECK_THROWS_WITH(k.lower(ShapeDtype{{2}, f32}),
                    ContainsSubstring("in_specs has 2 entries for 1 array argument"));
}

TEST_CASE("places and axes of a grid that cannot be are refused with the line of their function") {
  const auto error = [](IndexMap places, IndexMap env) {
    try {
      pallas_call([](Ref o) { o[_] = program_id(2) + full({4}, 0, i32); },
                  {.out_type = {{4}, i32},
                   .grid = 4,
                   .get_grid_indices = std::move(places),
                   .local_grid_env = std::move(env)})
          .lower();
    } catch (const CompileError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto same = [](Index i) { return i; };
  CHECK_THAT(
      error(
          [](Index i) {
            return Indices{i, i};
          },
          {}),
      ContainsSubstring("get_grid_indices must return an index for each grid axis, given 2") &&
          ContainsSubstring("grid_mapping_test.cpp"));
  CHECK_THAT(error([](Index i, Index) { return i; }, {}),
             ContainsSubstring("get_grid_indices must take a pl::Index for each grid axis"));
  CHECK_THAT(
      error([](Index i) { return ds(i, 2); }, {}),
      ContainsSubstring("get_grid_indices must return integer scalars. Output[0] is a pl::"));
  CHECK_THAT(error({}, same), ContainsSubstring("local_grid_env must return an index and a size"));
  CHECK_THAT(
      error({},
            [](Index i) {
              return Indices{i.astype(f32), 1};
            }),
      ContainsSubstring("local_grid_env must return integer scalars. Output[0] has type f32"));
  CHECK_THAT(error({},
                   [](Index i) {
                     return Indices{i / 2, 2, i % 2, num_programs(0)};
                   }),
             ContainsSubstring("program_id: axis 2 is out of bounds for grid [2,4]"));
}

TEST_CASE("a bounded slice is as long as its index map says, beyond it the block is filled [E23]") {
  for_each_target("segments", [](Target target) {
    const BlockSpec segment{{BoundedSlice(4)},
                            [](Index i, Ref begins) {
                              const Value begin = begins[i];
                              return Indices{ds(begin, begins[i + 1] - begin)};
                            },
                            {.fill = 0}};
    const Kernel k = pallas_call(
                         [](Ref, Ref x, Ref doubled, Ref row) {
                           doubled[_] = x[_] * 2.f;
                           row[_] = x[_].reshape({1, 4});
                         },
                         {.name = "segments",
                          .out_type = {{{10}, f32}, {{4, 4}, f32}},
                          .num_scalar_prefetch = 1,
                          .grid = 4,
                          .in_specs = {segment},
                          .out_specs = {segment, BlockSpec{{1, 4},
                                                           [](Index i, Ref) {
                                                             return Indices{i, 0};
                                                           }}}})
                         .on(target);
    const auto outputs =
        k(on(target, numbers({0, 3, 7, 7, 10})), on(target, counted({10}))).unpack<2>();
    CHECK(elements<float>(outputs[0]) == std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18});
    CHECK(elements<float>(outputs[1]) ==
          std::vector<float>{0, 1, 2, 0, 3, 4, 5, 6, 0, 0, 0, 0, 7, 8, 9, 0});
  });
}

TEST_CASE("a bounded slice in rows of an array of any height [E23]") {
  for_each_target("rows", [](Target target) {
    const Kernel k =
        pallas_call([](Ref x, Ref o) { o[_] = sum(x[_], {.axis = 0}); },
                    [](ShapeDtype x) {
                      const BlockSpec two{{BoundedSlice(3), 8},
                                          [](Index i) {
                                            return Indices{ds(2 * i, 2), 0};
                                          },
                                          {.fill = 0}};
                      return PallasCallOptions{.name = "rows",
                                               .out_type = {{x.shape[0] / 2, 8}, f32},
                                               .grid = {x.shape[0] / 2},
                                               .in_specs = {two},
                                               .out_specs = {BlockSpec{{squeezed, 8}, [](Index i) {
                                                                         return Indices{i, 0};
                                                                       }}}};
                    })
            .on(target);
    const std::vector<float> sums = elements<float>(k(on(target, counted({6, 8}))));
    for (std::size_t i = 0; i < sums.size(); ++i)
      CHECK(sums[i] == static_cast<float>(2 * (i / 8 * 16 + i % 8) + 8));
  });
}

TEST_CASE("a slice that leaves its array, or its bound, is told by start and size") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CAPTURE(to_string(target));
    const Kernel k =
        pallas_call(
            [](Ref, Ref x, Ref o) { o[_] = x[_]; },
            {.name = "leaves",
             .out_type = {{4}, f32},
             .num_scalar_prefetch = 1,
             .in_specs = {BlockSpec{{BoundedSlice(4)},
                                    [](Ref s) { return Indices{ds(Value(s[0]), Value(s[1]))}; },
                                    {.fill = 0}}}})
            .on(target);
    const auto error = [&](int start, int size) {
      try {
        (void)k(numbers({start, size}), counted({10}));
      } catch (const Error& e) {
        return std::string(e.what());
      }
      return std::string();
    };
    CHECK(error(6, 4).empty());
    for (const auto& [start, size] : {std::pair(7, 4), {-1, 2}, {0, 5}, {2, -1}})
      CHECK_THAT(error(start, size),
                 ContainsSubstring("args[1]: ") &&
                     ContainsSubstring("the slice of start " + std::to_string(start) +
                                       " and size " + std::to_string(size)));
  }
}

TEST_CASE("an indirect dimension gathers rows, and scatters them") {
  for_each_target("rows", [](Target target) {
    const BlockSpec chosen{{Indirect(2), 5}, [](Index i, Ref rows) {
                             return Indices{Value(rows[ds(2 * i, 2)]), 0};
                           }};
    const BlockSpec pair{{2, 5}, [](Index i, Ref) { return Indices{i, 0}; }};
    const auto kernel = [&](const BlockSpec& in, const BlockSpec& out) {
      return pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_] + 1.f; }, {.name = "rows",
                                                                        .out_type = {{6, 5}, f32},
                                                                        .num_scalar_prefetch = 1,
                                                                        .grid = 3,
                                                                        .in_specs = {in},
                                                                        .out_specs = {out}})
          .on(target);
    };
    const Array rows = on(target, numbers({4, 1, 0, 5, 3, 2})), x = on(target, counted({6, 5}));
    const std::vector<float> gathered = elements<float>(kernel(chosen, pair)(rows, x));
    const std::vector<float> scattered = elements<float>(kernel(pair, chosen)(rows, x));
    const int row[] = {4, 1, 0, 5, 3, 2};
    for (std::size_t i = 0; i < 30; ++i) {
      const auto other = static_cast<std::size_t>(row[i / 5]) * 5 + i % 5;
      CHECK(gathered[i] == static_cast<float>(other + 1));
      CHECK(scattered[other] == static_cast<float>(i + 1));
    }
  });
}

TEST_CASE("two indirect dimensions choose each for itself, of every element of a batch") {
  for_each_target("cross", [](Target target) {
    const BlockSpec chosen{{Indirect(2), squeezed, Indirect(3)}, [](Index i) {
                             return Indices{iota(i32, {2}) * 2 + i, i, 3 - iota(i32, {3})};
                           }};
    const Kernel k = pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                                 {.name = "cross",
                                  .out_type = {{2, 2, 3}, f32},
                                  .grid = 2,
                                  .in_specs = {chosen},
                                  .out_specs = {BlockSpec{{squeezed, 2, 3},
                                                          [](Index i) {
                                                            return Indices{i, 0, 0};
                                                          }}}})
                         .on(target);
    const std::vector<float> v = elements<float>(vmap(k)(on(target, counted({2, 4, 2, 4}))));
    REQUIRE(v.size() == 24);
    for (std::size_t e = 0; e < 24; ++e) {
      const std::size_t b = e / 12, i = e / 6 % 2, r = 2 * (e / 3 % 2) + i, c = 3 - e % 3;
      CHECK(v[e] == static_cast<float>(((b * 4 + r) * 2 + i) * 4 + c));
    }
  });
}

TEST_CASE("what an index map gives must suit the kind of its dimension") {
  const auto error = [](const BlockSpec& spec, const ShapeDtype& type = {{8}, f32}) {
    try {
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, {.out_type = {{4}, f32}, .in_specs = {spec}})
          .lower(type);
    } catch (const CompileError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto refused = [&](const std::string& given, const std::string& what) {
    CHECK_THAT(given, ContainsSubstring(what) && ContainsSubstring("grid_mapping_test.cpp"));
  };
  refused(error({{BoundedSlice(4)}, [] { return Indices{1}; }}),
          "index_map of args[0] returned an index at position 0 with block dimension "
          "[BoundedSlice(4)] when it should be pl::Slice, pl::ds(start, size)");
  refused(error({{4}, [] { return Indices{ds(0, 4)}; }}),
          "returned a pl::Slice at position 0 with block dimension [4] when it should be a scalar");
  refused(error({{BoundedSlice(4)}, [] { return Indices{ds(0, 5)}; }}),
          "returned a slice of 5 elements at position 0");
  refused(error({{BoundedSlice(4)}, [] { return Indices{ds(0, 2, 2)}; }}),
          "returned a slice of stride 2 at position 0");
  refused(
      error({{Indirect(4)}, [] { return Indices{1}; }}),
      "returned i32[] at position 0 with block dimension Indirect(4) when it should be an array "
      "of that many integers");
  refused(error({{Indirect(4)}, [] { return Indices{iota(i32, {3})}; }}),
          "returned i32[3] at position 0");
  refused(
      error({{Indirect(4)}, [] { return Indices{iota(i32, {4})}; }, {.memory_space = gpu::SMEM}}),
      "what Indirect chooses stays in global memory, given SMEM");
  refused(error({{Indirect(4)}, [] { return Indices{iota(i32, {4})}; }}, {{pl::dim("m")}, f32}),
          "along an Indirect dimension the array has a static extent, given 'm'");
  CHECK(error({{Indirect(4)}, [] { return Indices{iota(i32, {4})}; }}).empty());
}

TEST_CASE("indices of an indirect dimension that repeat in a store, or do not exist, are told") {
  const auto error = [](std::initializer_list<int> list, bool scatters) {
    const BlockSpec chosen{{Indirect(2)}, [](Ref s) { return Indices{Value(s[_])}; }};
    try {
      (void)pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; },
                        {.out_type = {{2}, f32},
                         .num_scalar_prefetch = 1,
                         .in_specs = {scatters ? BlockSpec() : chosen},
                         .out_specs = {scatters ? chosen : BlockSpec()}})
          .on(Target::interpreter)(numbers(list), counted({2}));
    } catch (const CompileError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(error({1, 0}, true).empty());
  CHECK(error({1, 1}, false).empty());
  CHECK_THAT(error({1, 1}, true), ContainsSubstring("store: "));
  CHECK_THAT(error({0, 2}, false), ContainsSubstring("index 2 is out of bounds for dimension 0"));
}
