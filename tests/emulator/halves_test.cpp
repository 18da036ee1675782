// 16-bit floats that are added, multiplied and compared two at a time, as the interpreter does it
// one by one: whatever operands are (vectors, a number of a row, of a column or of all, what is
// computed element by element), in chains, and where rows are no whole vectors.
#include <functional>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

using Made = std::function<Value(const Value& x, const Value& y, const Value& rows)>;

// x and y, and a number for each row of them.
graph::Graph computed(DType t, std::int64_t columns, const Made& made) {
  constexpr std::int64_t rows = 24, some = 8;
  const auto body = [=](Ref x, Ref y, Ref numbers, Ref o) { o[_] = made(x[_], y[_], numbers[_]); };
  const auto of = [=](std::int64_t n) {
    return BlockSpec{{some, n}, [](Index i) { return Indices{i, 0}; }};
  };
  return traced(body,
                {.name = "halves",
                 .out_type = {{rows, columns}, t},
                 .grid = {rows / some},
                 .in_specs = {of(columns), of(columns), of(1)},
                 .out_specs = {of(columns)}},
                {array({rows, columns}, t), array({rows, columns}, t), array({rows, 1}, t)});
}

std::string text_of(const graph::Graph& g) {
  return cuda::emit(g, {.compute_capability = 90}).text;
}

// Calls of functions that combine vectors.
int calls(const std::string& text) {
  int n = 0;
  for (const char* function : {"add_all<", "sub_all<", "mul_all<", "max_all<", "min_all<"})
    for (std::size_t at = text.find(function); at != text.npos; at = text.find(function, at + 1))
      ++n;
  return n;
}

}  // namespace

TEST_CASE("16-bit floats are added, multiplied and compared two at a time") {
  struct Case {
    const char* name;
    Made made;
    int calls;
  };
  const Case cases[] = {
      {"sum", [](auto& x, auto& y, auto&) { return x + y; }, 1},
      {"chain", [](auto& x, auto& y, auto&) { return (x - y) * x; }, 2},
      {"positive", [](auto& x, auto&, auto&) { return maximum(x, 0.0f); }, 1},
      {"within", [](auto& x, auto& y, auto&) { return minimum(maximum(x, -0.5f), y); }, 2},
      {"of rows", [](auto& x, auto&, auto& rows) { return x * rows; }, 1},
      {"less of rows", [](auto& x, auto&, auto& rows) { return rows - x; }, 1},
      {"of what is computed", [](auto& x, auto& y, auto&) { return x * exp(y); }, 1},
      {"chosen", [](auto& x, auto& y, auto&) { return where(x > y, x, y) - y; }, 1},
      {"narrowed",
       [](auto& x, auto& y, auto&) { return (x.astype(f32) * 0.3f).astype(x.dtype()) * y; }, 1},
      {"itself", [](auto& x, auto&, auto&) { return x * x; }, 1}};
  for (const DType t : {f16, bf16})
    for (const Case& c : cases) {
      CAPTURE(t.name(), c.name);
      const graph::Graph g = computed(t, 256, c.made);
      CHECK(calls(text_of(g)) == c.calls);
      for (const int cc : {75, 80, 90}) CHECK(on_all_targets(g, {}, cc) == "");
    }
}

TEST_CASE("16-bit floats of which threads have no two neighbours are computed with one by one") {
  for (const DType t : {f16, bf16}) {
    const graph::Graph g = computed(t, 15, [](auto& x, auto& y, auto&) { return (x - y) * x; });
    CHECK(calls(text_of(g)) == 0);
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

// A product and a sum are rounded once, as a contraction is.
TEST_CASE("contractions of 16-bit floats are not taken apart") {
  const graph::Graph g = computed(bf16, 256, [](auto& x, auto& y, auto&) { return x * y + x; });
  CHECK(calls(text_of(g)) == 0);
  CHECK(on_all_targets(g, {}, 90) == "");
}
