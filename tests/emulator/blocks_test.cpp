// Blocks that are whole, that end in the middle and that lie beside their arrays compute what the
// interpreter says, whatever way their programs take.
#include <catch2/catch_test_macros.hpp>

#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

const BlockSpec blocks_of_1024{{1024}, [](Index i) { return i; }};

}  // namespace

TEST_CASE("blocks agree that end within and between vectors, threads and blocks") {
  const graph::Graph g = add_graph(dim("n"), 1024), halves = add_graph(dim("n"), 1024, f16);
  for (const std::int64_t n :
       {1, 3, 4, 5, 127, 128, 129, 511, 512, 513, 1021, 1024, 1025, 2047, 3072}) {
    CAPTURE(n);
    CHECK(on_all_targets(g, {n}) == "");
    CHECK(on_all_targets(halves, {n}, 80) == "");
  }
}

TEST_CASE("blocks agree of which one is whole and another is not") {
  const graph::Graph g = traced([](Ref x, Ref y, Ref o) { o[_] = x[_] * y[_]; },
                                {.name = "apart",
                                 .out_type = ShapeDtype{{dim("n")}, f32},
                                 .grid = {cdiv(dim("n"), 1024)},
                                 .in_specs = {blocks_of_1024, blocks_of_1024},
                                 .out_specs = {blocks_of_1024}},
                                {array({dim("n")}), array({dim("m")})});
  CHECK(on_all_targets(g, {1024, 1024}) == "");
  CHECK(on_all_targets(g, {1024, 1000}) == "");
  CHECK(on_all_targets(g, {2048, 1026}) == "");
  CHECK(on_all_targets(g, {1026, 2048}) == "");
}

TEST_CASE("blocks agree that begin before their array") {
  const graph::Graph g =
      traced([](Ref x, Ref o) { o[_] = x[ds(0, 512)] + x[ds(4, 512)]; },
             {.name = "before",
              .out_type = ShapeDtype{{1536}, f32},
              .grid = {3},
              .in_specs = {BlockSpec{{Element(516, {2, 2})}, [](Index i) { return i * 512; }}},
              .out_specs = {BlockSpec{{512}, [](Index i) { return i; }}}},
             {array({1536})});
  CHECK(on_all_targets(g) == "");
}

TEST_CASE("blocks agree that are masked, and blocks that are written where they are read") {
  const graph::Graph masked = traced(
      [](Ref x, Ref o) {
        const Value at = iota(i32, {1024}, 0);
        store(o, load(x, {.mask = at % 3 == 0, .other = 7.0f}), {.mask = at < 1000});
      },
      {.name = "masked",
       .out_type = ShapeDtype{{dim("n")}, f32},
       .grid = {cdiv(dim("n"), 1024)},
       .in_specs = {blocks_of_1024},
       .out_specs = {blocks_of_1024},
       .input_output_aliases = {{0, 0}}},
      {array({dim("n")})});
  for (const std::int64_t n : {5, 1001, 1024, 2050}) {
    CAPTURE(n);
    CHECK(on_all_targets(masked, {n}) == "");
  }
}

TEST_CASE("blocks agree of which the first, or each, is known to be whole") {
  const auto body = [](Ref x, Ref o, Ref first) {
    const Value i = program_id(0);
    when(i == 0, [&] { first[0] = 1; });
    const Value taken = load(x, {.mask = iota(i32, {4}, 0) + i > 1, .other = 7});
    o[_] = taken / (taken + 1);
  };
  for (const std::int64_t n : {13, 16})
    for (const bool persistent : {false, true})
      for (const int cc : {75, 90}) {
        CAPTURE(n, persistent, cc);
        const BlockSpec x{{4}, [](Index i) { return i; }};
        const graph::Graph g = traced(
            body,
            {.name = "first_whole",
             .out_type = {ShapeDtype{{n}, i64}, ShapeDtype{{1}, i32}},
             .grid = {4},
             .in_specs = {x},
             .out_specs = {x, {{1}, [](Index) { return Indices{0}; }}},
             .compiler_params = {.dimension_semantics = {sequential}, .persistent = persistent}},
            {array({n}, i64)});
        CHECK(on_all_targets(g, {}, cc) == "");
      }
}

TEST_CASE("rows agree that end within and between the vectors of their threads") {
  for (const std::int64_t columns : {4, 500, 508, 512, 516, 1000, 1001, 1020, 1024, 1996})
    for (const std::int64_t rows : {1, 4}) {
      CAPTURE(columns, rows);
      CHECK(on_all_targets(softmax_graph(columns, rows), {5}) == "");
    }
}

TEST_CASE("folds over rows that are read again agree on NaN, on integers and on squares") {
  for (const DType t : {f32, i32}) {
    const ShapeDtype one{{3, 1}, t};
    const BlockSpec row{{1, 1000}, [](Index i) { return Indices{i, 0}; }};
    const BlockSpec element{{1, 1}, [](Index i) { return Indices{i, 0}; }};
    const graph::Graph g = traced(
        [=](Ref x, Ref most, Ref least, Ref squares, Ref last) {
          Value v = x[_];
          if (t == f32) v = sqrt(v);  // of negative numbers too
          const Value keep = v * v;
          most[_] = max(v, {.axis = {1}, .keepdims = true});
          least[_] = min(keep - v, {.axis = {1}, .keepdims = true});
          squares[_] = sum(keep, {.axis = {1}, .keepdims = true});
          last[_] = max(v + iota(t, {1, 1000}, 1), {.axis = {1}, .keepdims = true});
        },
        {.name = "folds",
         .out_type = {one, one, one, one},
         .grid = {3},
         .in_specs = {row},
         .out_specs = {element, element, element, element}},
        {array({3, 1000}, t)});
    CHECK(on_all_targets(g) == "");
  }
}
