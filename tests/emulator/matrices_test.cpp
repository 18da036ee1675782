// Values of 16 bits that a product leaves in registers and others read from shared memory: stored
// as matrices of 8 rows.
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/emit.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int hopper = 90;

struct Sizes {
  std::int64_t m = 64, n = 64, k = 64;
  int num_warps = 4;
};

enum class Reader { sent, turned, left, right };

// a @ b, rounded: stored by TMA, transposed or not, or an operand of another product.
graph::Graph rounded(DType t, Reader by, const Sizes& s) {
  const bool multiplied = by == Reader::left || by == Reader::right;
  const Shape result = by == Reader::left     ? Shape{s.n, s.k}
                       : by == Reader::right  ? Shape{s.k, s.n}
                       : by == Reader::turned ? Shape{s.n, s.m}
                                              : Shape{s.m, s.n};
  std::vector<trace::ArgumentType> in{array({s.m, s.k}, t), array({s.k, s.n}, t)};
  if (by == Reader::left) in.push_back(array({s.m, s.k}, t));
  if (by == Reader::right) in.push_back(array({s.k, s.m}, t));
  return by_warps(s.num_warps,
                  traced(
                      [=](Ref a, Ref b, Refs others, Ref o) {
                        const Value p = dot(a[_], b[_]).astype(t);
                        if (by == Reader::sent) o[_] = p;
                        if (by == Reader::turned) o[_] = transpose(p);
                        if (by == Reader::left) o[_] = dot(p, others[0][_], {.trans_a = true});
                        if (by == Reader::right) o[_] = dot(others[0][_], p);
                      },
                      {.name = "rounded", .out_type = {result, multiplied ? f32 : t}}, in));
}

std::string text_of(const graph::Graph& g, int cc = hopper) {
  return cuda::emit(g, {.compute_capability = cc}).text;
}

}  // namespace

TEST_CASE("what products leave is stored as matrices, whoever reads it") {
  for (const DType t : {f16, bf16})
    for (const int num_warps : {4, 8})
      for (const Reader by : {Reader::sent, Reader::left, Reader::right}) {
        CAPTURE(t.name(), num_warps, static_cast<int>(by));
        const graph::Graph g = rounded(t, by, {.m = 128, .num_warps = num_warps});
        // A warpgroup makes p^T itself, and has it in registers.
        const bool is_held = by == Reader::left && num_warps == 4;
        const bool is_stored = text_of(g).find("pl::stmatrix_x4(") != std::string::npos;
        CHECK(is_stored == !is_held);
        CHECK_THAT(text_of(g, 80), !ContainsSubstring("stmatrix"));
        for (const int cc : {hopper, 120}) CHECK(on_all_targets(g, {}, cc) == "");
      }
}

TEST_CASE("matrices of warpgroups side by side lie in panels of any number of rows") {
  for (const DType t : {f16, bf16})
    for (const std::int64_t n : {64, 96, 160, 192, 224}) {
      CAPTURE(t.name(), n);
      const graph::Graph g = rounded(t, Reader::turned, {.m = 128, .n = n, .num_warps = 8});
      const std::string text = text_of(g);
      CHECK_THAT(text, ContainsSubstring("pl::stmatrix_x4_trans("));
      CHECK_THAT(text, !ContainsSubstring("pl::store_shared"));
      CHECK(on_all_targets(g, {}, hopper) == "");
    }
}

TEST_CASE("matrices of any number of rows and columns are stored") {
  for_seeds(1, 12, [](std::uint64_t seed) {
    Random random(seed);
    const Sizes s{.m = 16 * random.between(1, 10),
                  .n = 8 * random.between(1, 20),
                  .k = 16 * random.between(1, 4),
                  .num_warps = random.pick({4, 8})};
    const Reader by = random.pick({Reader::sent, Reader::turned, Reader::left, Reader::right});
    CAPTURE(s.m, s.n, s.k, s.num_warps, static_cast<int>(by));
    CHECK(on_all_targets(rounded(random.pick({f16, bf16}), by, s), {}, hopper) == "");
  });
}
