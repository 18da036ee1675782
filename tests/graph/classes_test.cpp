// Classes of symbols: what a graph knows of sizes that are known at a call only.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/graph/classes.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using graph::Reach;

namespace {

/// Copies blocks of 8 x 64.
graph::Graph copy_graph(const Shape& shape, DType t = f16) {
  const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
  return traced([](Ref x, Ref o) { o[_] = x[_]; },
                {.name = "copy",
                 .out_type = ShapeDtype{shape, t},
                 .grid = {cdiv(shape[0], 8), cdiv(shape[1], 64)},
                 .in_specs = {tile},
                 .out_specs = {tile}},
                {array(shape, t)});
}

using Multiples = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a symbol's class is 16 bytes of the smallest array whose addresses depend on it") {
  CHECK(graph::class_multiples(copy_graph({dim("m"), dim("n")}, f16)) == Multiples{1, 8});
  CHECK(graph::class_multiples(copy_graph({dim("m"), dim("n")}, u8)) == Multiples{1, 16});
  CHECK(graph::class_multiples(copy_graph({dim("m"), dim("n")}, f64)) == Multiples{1, 2});
  CHECK(graph::class_multiples(copy_graph({dim("m"), 64})) == Multiples{1});

  const BlockSpec row{{64}, [](Index) { return Index(0); }};
  const graph::Graph several = traced([](Ref x, Ref y, Ref o) { o[_] = x[_] + f32(y[_]); },
                                      {.out_type = ShapeDtype{{dim("n")}, f32},
                                       .grid = {1},
                                       .in_specs = {row, row},
                                       .out_specs = {row}},
                                      {array({dim("n")}, f32), array({dim("n")}, i8)});
  CHECK(graph::class_multiples(several) == Multiples{16});

  graph::Graph strided = copy_graph({dim("m"), dim("n")});
  for (BlockMapping& m : strided.mapping.block_mappings) m.dense = false;
  CHECK(graph::class_multiples(strided) == Multiples{1, 8});
}

TEST_CASE("extents behind the first decide addresses too") {
  const BlockSpec whole{{1, 4, 4}, [](Index i) { return Indices{i, 0, 0}; }};
  graph::Graph g = traced([](Ref x, Ref o) { o[_] = x[_]; },
                          {.out_type = ShapeDtype{{dim("a"), dim("b"), 4}, f32},
                           .grid = {dim("a")},
                           .in_specs = {whole},
                           .out_specs = {whole}},
                          {array({dim("a"), dim("b"), 4})});
  CHECK(graph::class_multiples(g) == Multiples{1, 4});
  // With gaps between the rows nothing follows from how many there are.
  for (BlockMapping& m : g.mapping.block_mappings) m.dense = false;
  CHECK(graph::class_multiples(g) == Multiples{1, 1});
}

TEST_CASE("what a dim promises is rounded down to its class") {
  const auto known = [](std::int64_t multiple) {
    return copy_graph({dim("m"), dim("n", {.multiple_of = multiple})}).facts.multiples;
  };
  CHECK(known(8) == Multiples{1, 8});
  CHECK(known(24) == Multiples{1, 8});
  CHECK(known(64) == Multiples{1, 8});
  CHECK(known(4).empty());
  CHECK(known(1).empty());
  // Nothing is known of what no address depends on.
  CHECK(copy_graph({dim("m", {.multiple_of = 8}), dim("n")}).facts.multiples.empty());
}

TEST_CASE("what one of the arguments says of a symbol holds for all") {
  const BlockSpec row{{64}, [](Index i) { return i; }};
  const auto of = [&](const Dim& x, const Dim& y) {
    return traced([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                  {.out_type = ShapeDtype{{dim("n")}, f32},
                   .grid = {cdiv(dim("n"), 64)},
                   .in_specs = {row, row},
                   .out_specs = {row}},
                  {array({x}), array({y})})
        .facts.multiples;
  };
  const Dim four = dim("n", {.multiple_of = 4}), two = dim("n", {.multiple_of = 2});
  CHECK(of(dim("n"), four) == Multiples{4});
  CHECK(of(four, dim("n")) == Multiples{4});
  CHECK(of(two, four) == Multiples{4});
  CHECK(of(two, dim("n")).empty());
}

TEST_CASE("offsets are short where the largest sizes say so") {
  const auto is_short = [](std::int64_t m, std::int64_t n) {
    return copy_graph({dim("m", {.at_most = m}), dim("n", {.at_most = n})}).short_offsets;
  };
  // A block of 8 x 64 may begin at the last element.
  CHECK(is_short((1 << 15) - 8, 1 << 16));
  CHECK_FALSE(is_short((1 << 15) - 7, 1 << 16));
  CHECK(is_short(1, (1 << 28) - 8));
  CHECK_FALSE(is_short(1, (1 << 28) - 7));
  CHECK_FALSE(is_short(1, 1 << 30));  // a block has 8 rows, wherever the array ends
  CHECK_FALSE(copy_graph({dim("m"), dim("n")}).short_offsets);
  CHECK_FALSE(copy_graph({dim("m", {.at_most = 8}), dim("n")}).short_offsets);
  CHECK(copy_graph({dim("m", {.at_most = 8}), 64}).short_offsets);
  CHECK_FALSE(copy_graph({dim("m"), 64}).short_offsets);
  // Nothing is said of sizes that are known.
  CHECK_FALSE(copy_graph({8, 64}).short_offsets);
}

TEST_CASE("the farthest element of an array is found without overflow") {
  const auto dense = [](std::initializer_list<std::int64_t> extents, std::int64_t block = 1) {
    Reach r;
    for (auto d = std::rbegin(extents); d != std::rend(extents); ++d) r.add(*d, block);
    return r.is_short();
  };
  const std::int64_t most = INT64_MAX, two31 = std::int64_t{1} << 31;
  CHECK(dense({two31}));
  CHECK_FALSE(dense({two31 + 1}));
  CHECK(dense({two31 - 1023}, 1024));
  CHECK_FALSE(dense({two31 - 1022}, 1024));
  CHECK(dense({two31 - 1023}, 1000));  // which threads hold as 1024
  CHECK_FALSE(dense({two31 - 1022}, 1000));
  CHECK(dense({1, two31}));
  CHECK_FALSE(dense({2, two31 + 1}));
  CHECK_FALSE(dense({most, most, most}));
  CHECK(dense({most, 0}));
  CHECK(dense({0, two31}));
  CHECK_FALSE(dense({1, 1 << 28}, 8));
  CHECK(dense({1, (1 << 28) - 1}, 8));
  CHECK_FALSE(dense({1}, most / 2));
  const auto strided = [](std::int64_t extent, std::int64_t stride) {
    Reach r;
    r.add(extent, 1, stride);
    return r.is_short();
  };
  CHECK(strided(2, -(two31 - 1)));
  CHECK_FALSE(strided(2, two31));
  CHECK_FALSE(strided(2, -two31));
  CHECK_FALSE(strided(most, INT64_MIN));
  CHECK(strided(1, INT64_MIN));
  CHECK(strided(most, 0));
}

TEST_CASE("the largest size of a symbolic extent for which offsets are short is found") {
  const auto most = [](const Shape& shape) {
    const graph::Graph g = copy_graph(shape);
    const BlockMapping& m = g.mapping.block_mappings[0];
    const int dimension = shape[0].is_static() ? 1 : 0;
    const std::int64_t n = graph::most_of_short_reach(m, dimension);
    for (const std::int64_t size : {std::int64_t{0}, n - 1, n, n + 1}) {
      graph::Graph known = g;
      BlockMapping& k = known.mapping.block_mappings[0];
      if (size < 0 || (n == INT64_MAX && size < 0)) continue;
      k.array_aval.shape[dimension] = size;
      CHECK(graph::has_short_reach(k) == (size <= n));
    }
    return n;
  };
  CHECK(most({dim("m"), 64}) == (std::int64_t{1} << 25) - 8);
  CHECK(most({8, dim("n")}) == ((std::int64_t{1} << 31) - 64) / 15);
  CHECK(most({dim("m"), 0}) == INT64_MAX);
  CHECK(most({0, dim("n")}) == (std::int64_t{1} << 28) - 8);
  CHECK(most({1 << 28, dim("n")}) == 7);
}

TEST_CASE("the text says what is known of symbols") {
  const graph::Graph g = copy_graph(
      {dim("m", {.at_most = 4096}), dim("n", {.multiple_of = 16, .at_most = 4096})}, f16);
  CHECK_THAT(graph::to_text(g), ContainsSubstring("  symbol 1: multiple of 8\n"
                                                  "  offsets below 2^31\n"
                                                  "  args[0]: f16[s0,s1]"));
  CHECK_THAT(graph::to_text(copy_graph({dim("m"), dim("n")})),
             !ContainsSubstring("symbol 1") && !ContainsSubstring("offsets"));
}

TEST_CASE("a promise that the kernel's own sizes break is refused") {
  DimBinding binding;
  const Dim n = dim("n", {.multiple_of = 8});
  require_equal(n, Dim(12));
  const BlockSpec row{{4}, [](Index i) { return i; }};
  const Body body = [](Ref x, Ref o) { o[_] = x[_]; };
  const trace::ArgumentType x = array({n});
  const PallasCallOptions options{
      .out_type = x.type, .grid = {3}, .in_specs = {row}, .out_specs = {row}};
  CHECK_THROWS_WITH(trace::trace({&body, 1}, options, {&x, 1}, here(), &binding),
                    ContainsSubstring("'n' is 12 here, against what pl::dim() was told of it: "
                                      ".multiple_of = 8"));
}
