// Windows that are read at several offsets: interpreter and emulator agree in every bit, poison out
// of bounds included, however the window comes to shared memory.
#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

// "" if both agree on random numbers with races on, and the kernel stages as it is said to.
std::string both(const graph::Graph& g, bool staged = true,
                 const std::vector<std::int64_t>& symbols = {}, int cc = 90) {
  Random random(7);
  test::Call a = random_call(g, symbols, random, true), b = a;
  run_interpreter(g, a);
  run_emulator(g, {.compute_capability = cc}, b);
  const bool stages =
      lowered::to_text(cuda::lower(g, {.compute_capability = cc})).find(" staged ") !=
      std::string::npos;
  return stages == staged ? difference(g, a, b) : "staged or not, as it should not be";
}

struct Picture {
  Dim height = 40, width = 100;
  DType dtype = u8;
  int rows = 8, columns = 64, above = 1, below = 1, left = 2, right = 2;
  int num_warps = 0;
  bool guarded = false;
};

// The sum of all neighbours of each element, what is outside left out where it is guarded.
graph::Graph sums(const Picture& p) {
  const DType sum = p.dtype.is_float() ? p.dtype : i32;
  const Padding across{p.left, p.right}, down{p.above, p.below};
  const auto body = [=](Ref x, Ref o) {
    const Value row = iota(i32, {p.rows, p.columns}, 0) + program_id(0) * p.rows;
    const Value column = iota(i32, {p.rows, p.columns}, 1) + program_id(1) * p.columns;
    Value total = zeros({p.rows, p.columns}, sum);
    for (int i = -p.above; i <= p.below; ++i)
      for (int j = -p.left; j <= p.right; ++j) {
        const Value got = x[{ds(p.above + i, p.rows), ds(p.left + j, p.columns)}];
        const Value tap = got.astype(sum);
        if (!p.guarded) {
          total = total + tap;
          continue;
        }
        const Value down = (row + i >= 0) & (row + i < p.height.value());
        const Value across = (column + j >= 0) & (column + j < p.width.value());
        total = total + where(down & across, tap, zeros({p.rows, p.columns}, sum));
      }
    o[_] = total;
  };
  return traced(body,
                {.name = "sums",
                 .out_type = ShapeDtype{{p.height, p.width}, sum},
                 .grid = {cdiv(p.height, p.rows), cdiv(p.width, p.columns)},
                 .in_specs = {{{Element(p.rows + p.above + p.below, down),
                                Element(p.columns + p.left + p.right, across)},
                               [=](Index i, Index j) {
                                 return Indices{i * p.rows, j * p.columns};
                               }}},
                 .out_specs = {{{p.rows, p.columns},
                                [](Index i, Index j) {
                                  return Indices{i, j};
                                }}},
                 .compiler_params = {.num_warps = p.num_warps}},
                {{ShapeDtype{{p.height, p.width}, p.dtype}, false}});
}

}  // namespace

TEST_CASE("neighbours of every dtype are read from a staged window") {
  for (const DType t : {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64}) {
    CAPTURE(t.name());
    CHECK(both(sums({.width = 96, .dtype = t})) == "");
    CHECK(both(sums({.width = 96, .dtype = t, .guarded = true})) == "");
  }
}

TEST_CASE("a staged window may have any sizes, and reach over any end of its array") {
  for (const bool guarded : {false, true}) {
    CAPTURE(guarded);
    for (const auto& [h, w] : {std::pair{1, 1}, {8, 64}, {9, 65}, {33, 100}, {16, 200}})
      CHECK(both(sums({.height = h, .width = w, .guarded = guarded})) == "");
    for (const int left : {0, 1, 7, 16, 17})
      CHECK(both(sums({.width = 160, .left = left, .right = 1, .guarded = guarded})) == "");
    CHECK(both(sums({.above = 0, .below = 3, .left = 5, .right = 0, .guarded = guarded})) == "");
    CHECK(both(sums({.width = 130, .columns = 40, .guarded = guarded})) == "");
    CHECK(both(sums({.width = 130, .rows = 5, .columns = 33, .guarded = guarded})) == "");
  }
}

TEST_CASE("programs of any width share a staged window") {
  for (const int warps : {4, 8, 16}) {
    CAPTURE(warps);
    CHECK(both(sums({.width = 160, .num_warps = warps})) == "");
    CHECK(both(sums({.width = 160, .dtype = f32, .num_warps = warps, .guarded = true})) == "");
  }
  CHECK(both(sums({.width = 160}), true, {}, 75) == "");
}

TEST_CASE("windows of symbolic sizes are staged as wide as their classes allow") {
  const Dim h = dim("h"), w = dim("w");
  for (const auto& [height, width] : {std::pair{40, 100}, {8, 64}, {1, 3}, {17, 161}})
    CHECK(both(sums({.height = h, .width = w}), true, {height, width}) == "");
}

TEST_CASE("a window with squeezed dimensions is staged for each program") {
  CHECK(both(traced(
            [](Ref x, Ref o) {
              Value total = zeros({8, 64}, i32);
              for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) total = total + i32(x[{ds(i, 8), ds(j, 64)}]);
              o[_] = total;
            },
            {.name = "planes",
             .out_type = ShapeDtype{{3, 8, 64}, i32},
             .grid = {3},
             .in_specs = {{{squeezed, 10, 66},
                           [](Index i) {
                             return Indices{i, 0, 0};
                           }}},
             .out_specs = {{{squeezed, 8, 64},
                            [](Index i) {
                              return Indices{i, 0, 0};
                            }}}},
            {{ShapeDtype{{3, 10, 66}, i16}, false}})) == "");
  // The rows run along a squeezed dimension: neighbours are no neighbours in memory.
  CHECK(both(traced(
            [](Ref x, Ref o) {
              Value total = zeros({8, 64}, i32);
              for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) total = total + i32(x[{ds(i, 8), ds(j, 64)}]);
              o[_] = total;
            },
            {.name = "planes",
             .out_type = ShapeDtype{{3, 8, 64}, i32},
             .grid = {3},
             .in_specs = {{{10, 66, squeezed},
                           [](Index i) {
                             return Indices{0, 0, i};
                           }}},
             .out_specs = {{{squeezed, 8, 64},
                            [](Index i) {
                              return Indices{i, 0, 0};
                            }}}},
            {{ShapeDtype{{10, 66, 3}, i16}, false}})) == "");
}

TEST_CASE("a staged window follows its block along a sequential axis") {
  CHECK(both(traced(
            [](Ref x, Ref o) {
              pl::when(program_id(0) == 0, [&] { o[_] = zeros({8, 64}, i32); });
              for (int j = 0; j < 5; ++j) o[_] += i32(x[{_, ds(j, 64)}]);
            },
            {.name = "rows",
             .out_type = ShapeDtype{{8, 64}, i32},
             .grid = {4},
             .in_specs = {{{8, Element(68, Padding{2, 2})},
                           [](Index i) {
                             return Indices{i, 0};
                           }}},
             .out_specs = {{{8, 64},
                            [](Index) {
                              return Indices{0, 0};
                            }}}},
            {{ShapeDtype{{32, 68}, u16}, false}})) == "");
}

TEST_CASE("a loop reads a staged window where its counter says") {
  for (const DType t : {u8, f32}) {
    CAPTURE(t.name());
    CHECK(both(traced(
              [](Ref x, Ref o) {
                o[_] = loop(
                    0, 9,
                    [&](Value k, Value total) {
                      const Value tap = x[{ds(k / 3, 8), ds(k % 3, 64)}];
                      return total + tap.astype(f32);
                    },
                    zeros({8, 64}, f32));
              },
              {.name = "loop", .out_type = ShapeDtype{{8, 64}, f32}},
              {{ShapeDtype{{10, 66}, t}, false}})) == "");
  }
}

TEST_CASE("views and masks of a staged window are those of the array") {
  const auto kernel = [](auto read) {
    return traced(
        [=](Ref x, Ref o) {
          Value total = zeros({8, 64}, i32);
          for (int i = 0; i < 5; ++i)
            for (int j = 0; j < 3; ++j) total = total + i32(read(x, i, j));
          o[_] = total;
        },
        {.name = "views", .out_type = ShapeDtype{{8, 64}, i32}},
        {{ShapeDtype{{12, 68}, i16}, false}});
  };
  CHECK(both(kernel([](Ref x, int i, int j) {
          const Value turned = x.at({ds(i, 8), ds(j, 64)}).transpose({1, 0})[_];
          return transpose(turned);
        })) == "");
  CHECK(both(kernel([](Ref x, int i, int j) {
          const Ref view = x.at({ds(i, 8), ds(j, 64)});
          return pl::load(view, {.mask = iota(i32, {8, 64}, 1) % 7 != j, .other = i16(Value(3))});
        })) == "");
  CHECK(both(kernel([](Ref x, int i, int j) {
          const Value columns = x.at({ds(i, 8), ds(j, 32, 2)})[_];
          return reshape(broadcast_to(columns.reshape({8, 32, 1}), {8, 32, 2}), {8, 64});
        })) == "");
}
