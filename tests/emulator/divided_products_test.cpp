// Products whose operands have room in shared memory by parts of K alone.
#include <algorithm>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string remarks(const graph::Graph& g, int compute_capability) {
  std::string all;
  for (const Remark& r : cuda::lower(g, {.compute_capability = compute_capability}).remarks)
    all += r.text + "\n";
  return all;
}

struct Product {
  DType dtype = f16;
  std::int64_t m = 64, n = 64, k = 512;
  bool trans_a = false, trans_b = false;
  bool computed = false;  // of A
  bool added = false;     // to what is there
};

graph::Graph graph_of(const Product& p) {
  return traced(
      [=](Ref a, Ref b, Ref c, Ref o) {
        Value x = a[_];
        if (p.computed) x = x * 2 + 1;
        const Value product = dot(x, b[_], {.trans_a = p.trans_a, .trans_b = p.trans_b});
        o[_] = p.added ? c[_] * 3 + product : product;
      },
      {.name = "product", .out_type = {{p.m, p.n}, f32}},
      {array(p.trans_a ? Shape{p.k, p.m} : Shape{p.m, p.k}, p.dtype),
       array(p.trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, p.dtype), array({p.m, p.n}, f32)});
}

void check(const Product& p, int compute_capability) {
  CAPTURE(compute_capability, p.dtype.name(), p.k, p.trans_a, p.trans_b, p.computed, p.added);
  const graph::Graph g = graph_of(p);
  CHECK_THAT(remarks(g, compute_capability), ContainsSubstring("copied by parts of K"));
  CHECK(on_all_targets(g, {}, compute_capability) == "");
}

}  // namespace

TEST_CASE("products of which a block has no room for the operands take them by parts of K") {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      check({.trans_a = trans_a, .trans_b = trans_b, .added = trans_a}, 75);
  check({.dtype = f32, .k = 384}, 75);
  check({.m = 128, .k = 768, .trans_b = true, .added = true}, 86);
  check({.m = 128, .k = 768, .trans_b = true}, 120);
}

TEST_CASE("of a computed operand parts are chosen where a block has no room for all of it") {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      check({.k = 512, .trans_a = trans_a, .trans_b = trans_b, .computed = true, .added = trans_b},
            75);
}

TEST_CASE(
    "what is written while the kernel runs is not divided, and refused where it is too large") {
  const graph::Graph g = traced(
      [](Ref a, Ref o) {
        o[_] = a[_];
        const Value all = o[_];
        o[_] = (all + dot(all, o[_], {.trans_b = true}).astype(f16));
      },
      {.name = "written", .out_type = {{256, 256}, f16}}, {array({256, 256}, f16)});
  CHECK_THROWS_WITH(cuda::lower(g, {.compute_capability = 75}),
                    ContainsSubstring("sm_75 has 65536 per block"));
}

TEST_CASE("attention is right where operands are divided and where d is widest") {
  const auto attention = [](DType t, std::int64_t d, bool causal) {
    const ShapeDtype q{{1, 2, 150, d}, t}, k{{1, 1, 170, d}, t};
    return graph::from_json(ops::attention({.causal = causal}).lower(q, k, k).json());
  };
  for (const int compute_capability : {75, 86, 90, 120}) {
    CAPTURE(compute_capability);
    CHECK(on_all_targets(attention(f16, 256, true), {}, compute_capability) == "");
    CHECK(on_all_targets(attention(f16, 192, false), {}, compute_capability) == "");
  }
  CHECK(on_all_targets(attention(f16, 128, true), {}, 75) == "");
  CHECK(on_all_targets(attention(bf16, 128, false), {}, 75) == "");
  CHECK(on_all_targets(attention(f32, 256, true), {}, 75) == "");
}
