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

/// A sum of products whose step of K has room in shared memory less than three times.
struct DeepSum {
  enum class Of { plain, relu, bytes, rows } left = Of::plain;
  DType dtype = f16;
  std::int64_t m = 128, n = 64, step = 256, steps = 3;
  int products = 1;
  bool by_axis = false, persistent = false, from_array = false;
};

Value left_of(const DeepSum& p, Ref a, Ref scale, const Slice& k) {
  const Value x = a[{_, k}];
  if (p.left == DeepSum::Of::relu) return maximum(x, 0.0f);
  if (p.left == DeepSum::Of::bytes) return x.astype(p.dtype);
  if (p.left == DeepSum::Of::rows) return x * broadcast_to(scale[{_, ds(0, 1)}], {p.m, p.step});
  return x;
}

// Of a [m, k], b [products, k, n] and scale [m, 8], which begins at the iteration that `from` says.
graph::Graph graph_of(const DeepSum& p) {
  const std::int64_t k = p.step * p.steps;
  const auto add = [=](Ref a, Ref b, Ref scale, const Slice& now, int product, Value sum) {
    const Precision precision = p.dtype == f32 ? Precision::tf32 : Precision::ieee;
    return sum + dot(left_of(p, a, scale, now), b[{product, now, _}], {.precision = precision});
  };
  const auto body = [=](Ref a, Ref b, Ref scale, Ref from, Ref o, Ref more) {
    const Value z = zeros({p.m, p.n}, f32);
    const auto now = [&](Index i) { return ds(i * p.step, p.step); };
    const Value first = p.from_array ? from[0] : Value(0).astype(i32);
    if (p.products == 1) {
      o[_] = loop(
          first, p.steps, [&](Index i, Value s) { return add(a, b, scale, now(i), 0, s); }, z);
      more[_] = z;
      return;
    }
    const auto [x, y] = loop(
        first, p.steps,
        [&](Index i, Value s, Value t) {
          return carry(add(a, b, scale, now(i), 0, s), add(a, b, scale, now(i), 1, t));
        },
        z, z);
    o[_] = x;
    more[_] = y;
  };
  return traced(body,
                {.name = "deep_sum",
                 .out_type = {ShapeDtype{{p.m, p.n}, f32}, ShapeDtype{{p.m, p.n}, f32}},
                 .compiler_params = {.persistent = p.persistent}},
                {array({p.m, k}, p.left == DeepSum::Of::bytes ? i8 : p.dtype),
                 array({p.products, k, p.n}, p.dtype), array({p.m, 8}, p.dtype), array({1}, i32)});
}

// The same along an axis of the grid, of one product, added to a number that is the first argument.
graph::Graph graph_by_axis(const DeepSum& p) {
  const std::int64_t k = p.step * p.steps;
  const BlockSpec a{{p.m, p.step},
                    [](Index i, Index l) {
                      return Indices{i, l};
                    }},
      b{{p.step, p.n},
        [](Index, Index l) {
          return Indices{l, 0};
        }},
      o{{p.m, p.n}, [](Index i, Index) {
          return Indices{i, 0};
        }};
  return traced(
      [=](Value begin, Ref x, Ref y, Ref sum) {
        when(program_id(1) == 0, [&] { sum[_] = broadcast_to(begin, {p.m, p.n}); });
        sum[_] = Value(sum[_]) + dot(x[_], y[_]);
      },
      {.name = "deep_sum",
       .out_type = {{2 * p.m, p.n}, f32},
       .grid = {2, p.steps},
       .in_specs = {a, b},
       .out_specs = {o},
       .compiler_params = {.dimension_semantics = {parallel, sequential},
                           .persistent = p.persistent}},
      {number(), array({2 * p.m, k}, p.dtype), array({k, p.n}, p.dtype)});
}

void check(const DeepSum& p, int compute_capability) {
  CAPTURE(compute_capability, p.dtype.name(), p.step, p.steps, p.products, static_cast<int>(p.left),
          p.by_axis, p.persistent, p.from_array);
  const graph::Graph g = p.by_axis ? graph_by_axis(p) : graph_of(p);
  CHECK_THAT(remarks(g, compute_capability), ContainsSubstring("iterations go through K in"));
  CHECK(on_all_targets(g, {}, compute_capability) == "");
}

}  // namespace

TEST_CASE("iterations of sums that have no room three times go through K in parts, and agree") {
  using enum DeepSum::Of;
  for (const std::int64_t steps : {1, 2, 5}) {
    check({.step = 512, .steps = steps}, 90);
    check({.step = 384, .steps = steps, .products = 2}, 90);
    check({.step = 512, .steps = steps, .by_axis = true}, 90);
  }
  check({.dtype = bf16, .n = 128, .step = 256, .persistent = true}, 90);
  check({.step = 512, .by_axis = true, .persistent = true}, 90);
  check({.left = relu, .step = 512}, 90);
  check({.left = bytes, .step = 512}, 90);
  check({.left = rows, .dtype = bf16, .step = 512}, 90);
  check({.step = 512, .from_array = true}, 90);
  check({.dtype = f32, .n = 128, .step = 128}, 90);  // transposed as they are staged
  check({.dtype = f8e4m3, .n = 128, .step = 512}, 90);
  check({.dtype = f8e4m3, .m = 64, .step = 768}, 90);
  check({.n = 128, .step = 256}, 80);
  check({.left = relu, .n = 128, .step = 128}, 86);
}

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
