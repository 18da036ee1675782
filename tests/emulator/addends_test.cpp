// Sums of integers whose addends are regrouped: the same numbers, by fewer additions.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "codegen/cuda/emit.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using palladium::_;

namespace {

constexpr int rows = 16, columns = 64, around = 3;
constexpr int height = 40, width = 200;

struct Tap {
  int i = 0, j = 0;
};
using Taps = std::vector<Tap>;

// What `body` makes of a window of 3 more rows and columns on each side of a block.
template <class Body>
graph::Graph over_window(DType from, DType to, const Body& body) {
  return traced([=](Ref x, Ref o) { o[_] = body(x); },
                {.name = "taps",
                 .out_type = ShapeDtype{{height, width}, to},
                 .grid = {cdiv(height, rows), cdiv(width, columns)},
                 .in_specs = {{{Element(rows + 2 * around, {around, around}),
                                Element(columns + 2 * around, {around, around})},
                               [](Index i, Index j) {
                                 return Indices{i * rows, j * columns};
                               }}},
                 .out_specs = {{{rows, columns},
                                [](Index i, Index j) {
                                  return Indices{i, j};
                                }}}},
                {array({height, width}, from)});
}

Value inside(const Tap& t) {
  const Value row = iota(i32, {rows, 1}, 0) + program_id(0) * rows + t.i;
  const Value column = iota(i32, {1, columns}, 1) + program_id(1) * columns + t.j;
  return (row >= 0) & (row < height) & ((column >= 0) & (column < width));
}

Value tapped(Ref x, const Tap& t) { return x[{ds(around + t.i, rows), ds(around + t.j, columns)}]; }

graph::Graph sum_of(const Taps& taps, DType from = u8, DType to = i32) {
  return over_window(from, to, [=](Ref x) {
    Value total = zeros({rows, columns}, to);
    for (const Tap& t : taps)
      total = total + where(inside(t), tapped(x, t).astype(to), zeros({rows, columns}, to));
    return total;
  });
}

graph::Graph count_of(const Taps& taps, int more = 0) {
  return over_window(u8, i32, [=](Ref x) {
    Value total = x[{ds(around, rows), ds(around, columns)}].astype(i32) + more;
    for (const Tap& t : taps)
      total = total + where(inside(t), ones({rows, columns}, i32), zeros({rows, columns}, i32));
    return total;
  });
}

std::string source_of(const graph::Graph& g) { return cuda::emit(g, {}).text; }

// "" if interpreter and emulator agree.
std::string both(const graph::Graph& g) {
  Random random(11);
  test::Call a = random_call(g, {}, random, true), b = a;
  run_interpreter(g, a);
  run_emulator(g, {}, b);
  return difference(g, a, b);
}

Taps box(int reach) {
  Taps taps;
  for (int i = -reach; i <= reach; ++i)
    for (int j = -reach; j <= reach; ++j) taps.push_back({i, j});
  return taps;
}

const char* const sums_of_columns = "++q) x";

}  // namespace

TEST_CASE("neighbouring sums over a box share the sums of its columns") {
  const graph::Graph g = sum_of(box(2));
  CHECK_THAT(source_of(g), ContainsSubstring(sums_of_columns));
  CHECK(both(g) == "");
}

TEST_CASE("columns are shared by rows that have the same ones") {
  Taps taps = box(2);
  taps.push_back({3, -1});
  taps.push_back({-3, 0});
  taps.push_back({-3, 3});
  taps.push_back({0, 0});  // twice
  const graph::Graph g = sum_of(taps);
  CHECK_THAT(source_of(g), ContainsSubstring(sums_of_columns));
  CHECK(both(g) == "");
  CHECK_THAT(source_of(sum_of({{-1, 0}, {0, 1}, {1, 2}, {2, 3}})),
             !ContainsSubstring(sums_of_columns));
}

TEST_CASE("sums of floats keep their order") {
  const graph::Graph g = sum_of(box(1), f32, f32);
  CHECK_THAT(source_of(g), !ContainsSubstring(sums_of_columns));
  CHECK(both(g) == "");
}

TEST_CASE("sums that wrap are the same in any order") {
  for (const DType t : {i8, u8, i16, u32, i64}) CHECK(both(sum_of(box(2), t, t)) == "");
}

TEST_CASE("a count over two directions is a product") {
  for (const int reach : {1, 2, 3}) {
    const graph::Graph g = count_of(box(reach));
    CHECK_THAT(source_of(g),
               ContainsSubstring("pl::mul(pl::add(") || ContainsSubstring("pl::mul(x"));
    CHECK(both(g) == "");
    CHECK(both(count_of(box(reach), 5)) == "");
  }
}

TEST_CASE("pairs of which some lie apart are counted one by one") {
  CHECK(both(count_of({{2, 0}, {-2, 0}, {1, 3}, {-2, 1}})) == "");
}

TEST_CASE("a count of some pairs, or of some twice, is none") {
  Taps all = box(2);
  for (std::size_t left_out = 0; left_out < all.size(); ++left_out) {
    Taps some = all;
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(left_out));
    CHECK(both(count_of(some)) == "");
    some.push_back(some.front());
    CHECK(both(count_of(some)) == "");
  }
}

TEST_CASE("sums and counts of taps drawn at random agree") {
  Random random(5);
  for (int n = 0; n < 20; ++n) {
    Taps taps;
    const auto count = random.between(3, 20);
    for (std::int64_t k = 0; k < count; ++k)
      taps.push_back(
          {static_cast<int>(random.between(-3, 3)), static_cast<int>(random.between(-3, 3))});
    CAPTURE(n);
    CHECK(both(sum_of(taps)) == "");
    CHECK(both(count_of(taps)) == "");
  }
}
