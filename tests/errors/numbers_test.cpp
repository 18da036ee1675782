// Numbers that are too large, or negative, for what they shall be: literals, grids, clusters,
// blocks.
#include <string>
#include <vector>

#include "codegen/cuda/emit.hpp"
#include "tests/errors/refused.hpp"

using Catch::Matchers::ContainsSubstring;
using pl::_;
using pl::test::array;
using pl::test::line;
using pl::test::one_output;
using pl::test::refused;

namespace {

constexpr std::int64_t two_31 = std::int64_t{1} << 31;

// The literal meets a value of the dtype: what the error says, "" if there is none.
std::string met(pl::DType dtype, const pl::Value& literal) {
  return pl::test::error_of([&](pl::Ref, pl::Ref o) { o[_] = o[_] + literal; },
                            {.name = "k", .out_type = {{8}, dtype}}, {array({8}, dtype)});
}

// An output of the grid's size in blocks of one element; the error's line is that of the call.
void refused_grid(const std::vector<pl::Dim>& grid, const std::string& sentence,
                  pl::PallasCallOptions options = {}, pl::Location at = pl::here()) {
  pl::Shape shape;
  for (std::size_t i = 0; i < grid.size(); ++i) shape.push_back(1);
  options.name = "k";
  options.out_type = {shape, pl::f32};
  options.grid.sizes = grid;
  if (options.out_specs.empty())
    options.out_specs = {pl::BlockSpec::of(std::vector<pl::BlockDim>(grid.size(), 1),
                                           [](auto... i) { return pl::Indices{i...}; })};
  line = at.line;
  refused([](pl::Ref o) { o[_] = 0; }, options, {}, sentence, at);
}

}  // namespace

TEST_CASE("an integer literal meets only a dtype that holds it") {
  struct Row {
    pl::DType dtype;
    std::int64_t least;
    std::uint64_t most;
  };
  const Row rows[] = {{pl::i8, -128, 127},
                      {pl::i16, -32768, 32767},
                      {pl::i32, INT32_MIN, INT32_MAX},
                      {pl::i64, INT64_MIN, INT64_MAX},
                      {pl::u8, 0, 255},
                      {pl::u16, 0, 65535},
                      {pl::u32, 0, UINT32_MAX},
                      {pl::u64, 0, UINT64_MAX}};
  for (const Row& row : rows) {
    CAPTURE(row.dtype.name());
    CHECK(met(row.dtype, row.least) == "");
    CHECK(met(row.dtype, row.most) == "");
    if (row.dtype != pl::i64)
      CHECK_THAT(met(row.dtype, row.least - 1),
                 ContainsSubstring("add: the literal " + std::to_string(row.least - 1) + " is no " +
                                   row.dtype.name() + ", which holds " + std::to_string(row.least) +
                                   " to " + std::to_string(row.most)));
    if (row.dtype != pl::u64)
      CHECK_THAT(met(row.dtype, row.most + 1),
                 ContainsSubstring("add: the literal " + std::to_string(row.most + 1) + " is no " +
                                   row.dtype.name()));
  }
  for (const pl::DType dtype : {pl::f16, pl::bf16, pl::f32, pl::f64})
    for (const pl::Value& literal : {pl::Value(INT64_MIN), pl::Value(UINT64_MAX)})
      CHECK(met(dtype, literal) == "");
}

TEST_CASE("a literal that wraps is refused wherever it is taken, with its line") {
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        (void)(pl::iota(pl::i32, {8}) + 3000000000);
      },
      "add: the literal 3000000000 is no i32, which holds -2147483648 to 2147483647; "
      "pl::i64(3000000000) has a dtype that does, pl::i32(3000000000) keeps its low bits");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        (void)(pl::iota(pl::u32, {8}) & -1);
      },
      "and: the literal -1 is no u32, which holds 0 to 4294967295");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        (void)pl::full({8}, two_31);
      },
      "full: the literal 2147483648 is no i32");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        (void)pl::full({8}, 256, pl::u8);
      },
      "full: the literal 256 is no u8");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        pl::loop(0, two_31, [](pl::Index) {});
      },
      "loop: the literal 2147483648 is no i32");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        (void)(pl::iota(pl::i32, {8}) * 4e9);
      },
      "mul: the literal 4e+09 is no i32");
  line = __LINE__ + 1;
  const auto narrow = [] { return pl::scalar(300, pl::i8); };
  CHECK_THROWS_WITH(narrow(), ContainsSubstring("scalar: the literal 300 is no i8") &&
                                  ContainsSubstring("numbers_test.cpp:" + std::to_string(line)));
  CHECK_THROWS_AS(pl::scalar(-1, pl::u64), pl::CompileError);
  CHECK(pl::scalar(UINT64_MAX).bits == UINT64_MAX);
  CHECK(pl::scalar(UINT64_MAX, pl::f32).bits == 0x5f800000);
}

TEST_CASE("two literals make one that some dtype holds, or are refused") {
  const auto folded = [](const pl::Value& v) {
    return pl::test::text_of([&](pl::Ref o) { o[_] = v; }, {.out_type = {{1}, pl::u64}}, {});
  };
  const pl::Value large = INT64_MAX;
  CHECK_THAT(folded(large + 1), ContainsSubstring("constant 9223372036854775808"));
  CHECK_THAT(folded(large * 2 + 1), ContainsSubstring("constant 18446744073709551615"));
  CHECK_THAT(folded(pl::Value(UINT64_MAX) - UINT64_MAX), ContainsSubstring("constant 0"));
  line = __LINE__ + 1;
  const auto product = [&] { return large * 4; };
  CHECK_THROWS_WITH(product(), ContainsSubstring("mul: the result of two literals is held by no "
                                                 "integer dtype") &&
                                   ContainsSubstring("numbers_test.cpp:" + std::to_string(line)));
  CHECK_THROWS_AS(pl::Value(UINT64_MAX) * UINT64_MAX, pl::CompileError);
  CHECK_THROWS_AS(pl::Value(INT64_MIN) - 1, pl::CompileError);
  CHECK_THROWS_AS(-pl::Value(UINT64_MAX), pl::CompileError);
}

TEST_CASE("a cast of a literal converts it, whatever the dtype holds") {
  const auto cast = [](pl::DType dtype, const pl::Value& literal) {
    return pl::test::text_of([&](pl::Ref o) { o[_] = pl::broadcast_to(dtype(literal), {1}); },
                             {.out_type = {{1}, dtype}}, {});
  };
  CHECK_THAT(cast(pl::u32, -1), ContainsSubstring("constant 4294967295"));
  CHECK_THAT(cast(pl::i8, 300), ContainsSubstring("constant 44"));
  CHECK_THAT(cast(pl::u64, UINT64_MAX), ContainsSubstring("constant 18446744073709551615"));
  CHECK_THAT(cast(pl::f64, UINT64_MAX), ContainsSubstring("constant 18446744073709551616"));
}

TEST_CASE("a loop has a step that its counter can make") {
  const std::int64_t steps[] = {0, -1, INT64_MIN, two_31, INT64_MAX};
  for (const std::int64_t step : steps)
    for (const bool dynamic : {false, true})
      refused(
          [&](pl::Ref, pl::Ref) {
            const pl::Value hi = dynamic ? pl::i32(8) : pl::Value(8);
            line = __LINE__ + 1;
            pl::loop(0, hi, {.step = step}, [](pl::Index) {});
          },
          step < 1 ? "loop: the step must be positive, given " + std::to_string(step)
                   : "loop: the counter is an i32, which has no room for a step of " +
                         std::to_string(step));
}

TEST_CASE("an axis of a grid has at most 2^31 - 1 programs") {
  refused_grid({4, two_31},
               "grid axis 1 has 2147483648 programs; an axis can have 0 to 2147483647");
  refused_grid({0, INT64_MAX}, "grid axis 1 has 9223372036854775807 programs");
  refused_grid({two_31}, "grid axis 0 ('rows') has 2147483648 programs", {.grid_names = {"rows"}});
  refused_grid({3, -2}, "a grid has no negative sizes, given [3,-2]");
}

TEST_CASE("the parallel axes of a grid have at most 2^31 - 1 programs together") {
  refused_grid({65536, 32768},
               "the parallel axes of the grid have 65536 * 32768 programs, 2147483648 blocks; a "
               "launch can have 2147483647");
  refused_grid({two_31 - 1, two_31 - 1, two_31 - 1},
               "2147483647 * 2147483647 * 2147483647 programs, more than 2^63 blocks");
  refused_grid({65536, 32767}, "65536 * 32767 programs of 2 blocks, 4294836224 blocks",
               {.cluster = {2}});
  // Neither y nor z of a launch is what an axis of the grid becomes.
  const auto accepted = [](std::vector<pl::Dim> grid, std::vector<pl::BlockSpec> specs = {}) {
    pl::PallasCallOptions options{.out_type = {{1, 1, 1}, pl::f32}};
    options.grid.sizes = grid;
    options.out_specs = specs.empty()
                            ? std::vector{pl::BlockSpec{{1, 1, 1},
                                                        [](pl::Index i, pl::Index j, pl::Index k) {
                                                          return pl::Indices{i, j, k};
                                                        }}}
                            : specs;
    return pl::test::error_of([](pl::Ref o) { o[_] = 0; }, options, {}) == "";
  };
  CHECK(accepted({2, 3, 100000}));
  CHECK(accepted({0, 65536, 65536}));
  // Sequential axes are loops, which no launch counts.
  CHECK(
      accepted({65536, 65536, 2}, {pl::BlockSpec{{1, 1, 1}, [](pl::Index, pl::Index j, pl::Index) {
                                                   return pl::Indices{0, j, 0};
                                                 }}}));
}

TEST_CASE("a cluster has at most 16 blocks") {
  refused_grid({1},
               "a cluster has at most 16 blocks (8 on every GPU that knows clusters), given "
               "[17]",
               {.cluster = {17}});
  refused_grid({1}, "given [65536,65536,65536]", {.cluster = {65536, 65536, 65536}});
  refused_grid({1}, "given [4611686018427387904,4]", {.cluster = {std::int64_t{1} << 62, 4}});
}

TEST_CASE("clusters are refused by the architectures without them, on the line of the kernel [E24]") {
  const int at = __LINE__ + 1;
  const pl::Kernel k = pl::pallas_call([](pl::Ref o) { o[_] = 0; },
                                       {.name = "k", .out_type = {{8}, pl::f32}, .cluster = {2}});
  const pl::Lowered lowered = k.lower();
  CHECK_THROWS_WITH(lowered.cuda_source({.arch = "sm_80"}),
                    ContainsSubstring("kernel 'k': a cluster of 2 blocks needs sm_90 or newer, "
                                      "given sm_80") &&
                        ContainsSubstring("numbers_test.cpp:" + std::to_string(at)));
  CHECK_THAT(lowered.cuda_source({.arch = "sm_90a"}), ContainsSubstring("PL_KERNEL"));
}

TEST_CASE("a block has at most 1024 threads") {
  pl::graph::Graph g =
      pl::test::traced([](pl::Ref x, pl::Ref o) { o[_] = x[_]; }, one_output(), {array({8})});
  g.bodies[0].warpgroups = 9;
  CHECK_THROWS_WITH(
      pl::cuda::emit(g, {.compute_capability = 90}),
      ContainsSubstring("a block of 9 warpgroups has 1152 threads; it can have 1024") &&
          ContainsSubstring("numbers_test.cpp"));
}

TEST_CASE("blocks, padding and arrays that cannot be counted are refused at their spec") {
  constexpr std::int64_t far = std::int64_t{1} << 62;
  const auto copy = [](pl::Ref x, pl::Ref o) { o[_] = x[_]; };
  pl::PallasCallOptions options = one_output();
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{pl::Element(8, {far, 0})}}};
  refused(copy, options, {array({8})},
          "a block has at most 2147483647 elements, and as much padding, in each dimension");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{pl::Element(8, {0, far})}}};
  refused(copy, options, {array({8})}, "args[0] is f32[8] in blocks of [Element(8)]: a block has");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{two_31}}};
  refused(copy, options, {array({8})}, "a block has at most 2147483647 elements");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{two_31 - 1, two_31 - 1, two_31 - 1}}};
  refused(copy, options, {array({1, 1, 1})}, "array and block together span at most 2^47 elements");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{1, 8}}};
  refused(copy, options, {array({far, 8})}, "array and block together span at most 2^47 elements");
}
