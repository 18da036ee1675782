// What BlockSpecOptions::fill costs.
#include <catch2/catch_test_macros.hpp>
#include <optional>

#include "tests/passes/lowering.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

TEST_CASE("a fill costs nothing where blocks are whole, and no test that was not there") {
  const auto text = [](std::optional<double> fill, std::int64_t rows) {
    const BlockSpec tile{{8, 128}, [](Index i) { return Indices{i, 0}; }, {.fill = fill}};
    const graph::Graph g = traced([](Ref x, Ref o) { o[_] = x[_]; },
                                  {.name = "k",
                                   .out_type = {{rows, 128}, f32},
                                   .grid = {cdiv(rows, 8)},
                                   .in_specs = {tile},
                                   .out_specs = {BlockSpec{{8, 128},
                                                           [](Index i) {
                                                             return Indices{i, 0};
                                                           }}}},
                                  {array({rows, 128})});
    return cuda::emit(g, {.compute_capability = 90}).text;
  };
  CHECK(text(7, 64) == text({}, 64));
  const std::string filled = text(7, 61), plain = text({}, 61);
  CHECK(occurrences(filled, "load_global_nc_filled<4>") == 1);
  CHECK(occurrences(filled, ", 7.0f);") == 1);
  CHECK(occurrences(filled, " < ") == occurrences(plain, " < "));
}
