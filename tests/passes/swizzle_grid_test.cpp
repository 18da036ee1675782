// Which programs of a grid run together.
#include <optional>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/lower.hpp"
#include "tests/passes/lowering.hpp"
#include "tests/support/kernels.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using palladium::_;

namespace {

/// Of a product, or with `sums` of what a program finds at the same place of both operands.
std::string ordered(Dim m, Dim n, int block_m, int block_n, std::optional<GridOrder> order = {},
                    bool sums = false) {
  const auto rows = [](Index i, Index) { return Indices{i, 0}; };
  const auto columns = [](Index, Index j) { return Indices{0, j}; };
  const auto both = [](Index i, Index j) { return Indices{i, j}; };
  const auto body = [=](Ref a, Ref b, Ref o) {
    if (sums)
      o[_] = a[_] + b[_];
    else
      o[_] = dot(a[_], b[_]);
  };
  PallasCallOptions options{.name = "ordered",
                            .out_type = ShapeDtype{{m, n}, f32},
                            .grid = {cdiv(m, block_m), cdiv(n, block_n)},
                            .in_specs = {{{block_m, 64}, rows}, {{64, block_n}, columns}},
                            .out_specs = {{{block_m, block_n}, both}},
                            .compiler_params = {.grid_order = order}};
  Shape a{m, 64}, b{64, n};
  if (sums) {
    options.in_specs = {{{block_m, block_n}, both}, {{block_m, block_n}, both}};
    a = b = {m, n};
  }
  const graph::Graph g =
      traced(body, options, {{ShapeDtype{a, f32}, false}, {ShapeDtype{b, f32}, false}});
  return lowered::to_text(cuda::lower(g, {.compute_capability = 80}));
}

}  // namespace

TEST_CASE("programs of a product go through as many rows as lets them read the least") {
  CHECK_THAT(ordered(4096, 4096, 64, 64), Shows({"programs by 8 rows\n"}));
  CHECK_THAT(ordered(dim("m"), dim("n"), 64, 64), Shows({"programs by 8 rows\n"}));
  CHECK_THAT(ordered(4096, 4096, 16, 64), Shows({"programs by 16 rows\n"}));
  CHECK_THAT(ordered(4096, 4096, 64, 16), Shows({"programs by 4 rows\n"}));
}

TEST_CASE("programs that fill a GPU once, or share nothing one way, go row by row") {
  CHECK_THAT(ordered(512, 1024, 64, 64), !ContainsSubstring("programs by"));
  CHECK_THAT(ordered(65536, 64, 64, 64), !ContainsSubstring("programs by"));
  CHECK_THAT(ordered(4096, 4096, 64, 64, {}, true), !ContainsSubstring("programs by"));
}

TEST_CASE("an order that somebody gave is kept") {
  CHECK_THAT(ordered(4096, 4096, 64, 64, row_major), !ContainsSubstring("programs by"));
  CHECK_THAT(ordered(128, 128, 64, 64, grouped(3)), Shows({"programs by 3 rows\n"}));
  CHECK_THAT(ordered(4096, 4096, 64, 64, grouped(3), true), Shows({"programs by 3 rows\n"}));
}
