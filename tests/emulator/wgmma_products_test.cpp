// Products that lowering gives to wgmma compute what the interpreter does, races on, and are
// written as ptxas wants them.
#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/sums_again.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

constexpr int hopper = 90;

std::string text_of(const graph::Graph& g) {
  return cuda::emit(g, {.compute_capability = hopper}).text;
}

bool is_by_wgmma(const graph::Graph& g) {
  return text_of(g).find("pl::wgmma_m64") != text_of(g).npos;
}

/// "" if both roads agree, and no register of a product in flight is used.
std::string problem(const graph::Graph& g) {
  for (const std::string& found : unpinned_registers(text_of(g))) return found;
  return on_all_targets(g, {}, hopper);
}

}  // namespace

TEST_CASE("products by wgmma agree for every operand type, transposition and width") {
  for (const int warps : {4, 8, 16})
    for (const DType t : {f16, bf16})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          INFO(t.name() << ta << tb << " by " << warps << " warps");
          const std::int64_t rows = 16 * warps;
          const graph::Graph g = by_warps(warps, matmul_graph(t, {.m = 2 * rows - 10,
                                                                  .n = 100,
                                                                  .k = 90,
                                                                  .block_m = rows,
                                                                  .block_n = 64,
                                                                  .block_k = 32,
                                                                  .trans_a = ta,
                                                                  .trans_b = tb}));
          CHECK(is_by_wgmma(g));
          CHECK(problem(g) == "");
        }
}

TEST_CASE("random products of sizes that wgmma takes agree") {
  int by_wgmma = 0;
  for_seeds(60, 12, [&](std::uint64_t seed) {
    Random random(seed);
    const int warps = random.pick({4, 8, 16});
    const std::int64_t whole = 64 * random.between(1, 3);
    const std::int64_t m = whole - random.pick({0, 0, 1, 17}),
                       n = random.pick({8, 16, 40, 48, 64, 96, 136, 192}),
                       k = random.pick({1, 16, 20, 48, 64, 80, 128, 144});
    const bool ta = random.chance(50), tb = random.chance(50), adds = random.chance(50);
    const DType t = random.pick({f16, bf16});
    INFO(t.name() << " " << m << "x" << n << "x" << k << ", transposed " << ta << tb << ", "
                  << warps << " warps, adds " << adds);
    const graph::Graph g = by_warps(
        warps,
        traced(
            [&](Ref x, Ref y, Ref o) {
              const Value d = dot(x[_], y[_], {.trans_a = ta, .trans_b = tb});
              o[_] = adds ? d * 2 + max(d, {.axis = {1}, .keepdims = true}) : d;
            },
            {.name = "product", .out_type = {{m, n}, f32}},
            {array(ta ? Shape{k, m} : Shape{m, k}, t), array(tb ? Shape{n, k} : Shape{k, n}, t)}));
    by_wgmma += is_by_wgmma(g);
    CHECK(problem(g) == "");
  });
  CHECK(by_wgmma > 0);
}

// Of B as (K, N) each warpgroup has every second or fourth panel, of B as (N, K) so every 8
// columns.
TEST_CASE("warpgroups for which there are no rows share the columns") {
  const struct {
    int warps;
    std::int64_t m, n, k;
    const char* call;  // of B as (K, N)
    const char* call_turned;
  } cases[] = {
      {8, 64, 128, 64, "m64n64k16", "m64n64k16"},     {8, 64, 256, 64, "m64n128k16", "m64n128k16"},
      {16, 128, 256, 64, "m64n128k16", "m64n128k16"}, {16, 64, 256, 48, "m64n64k16", "m64n64k16"},
      {8, 192, 128, 32, "m64n64k16", "m64n64k16"},   // rows for three
      {8, 64, 192, 40, "m64n96k16", "m64n96k16"},    // panels of 64 bytes
      {8, 60, 576, 16, "m64n160k16", "m64n144k16"},  // two products each
      {8, 50, 88, 20, "m64n48k16", "m64n48k16"}};    // zeros fill up the last
  for (const auto& c : cases)
    for (const DType t : {f16, bf16})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          INFO(t.name() << " " << c.m << "x" << c.n << "x" << c.k << ", transposed " << ta << tb);
          const graph::Graph g = by_warps(
              c.warps, traced(
                           [&](Ref x, Ref y, Ref o) {
                             const Value d = dot(x[_], y[_], {.trans_a = ta, .trans_b = tb});
                             o[_] = d + max(d, {.axis = {1}, .keepdims = true});
                           },
                           {.name = "beside", .out_type = {{c.m, c.n}, f32}},
                           {array(ta ? Shape{c.k, c.m} : Shape{c.m, c.k}, t),
                            array(tb ? Shape{c.n, c.k} : Shape{c.k, c.n}, t)}));
          CHECK(text_of(g).find(tb ? c.call_turned : c.call) != std::string::npos);
          CHECK(problem(g) == "");
        }
}

TEST_CASE("warpgroups that share columns add up what is fetched ahead") {
  for (const int warps : {8, 16})
    for (const bool tb : {false, true}) {
      INFO(warps << tb);
      const graph::Graph g = by_warps(warps, matmul_graph(bf16, {.m = 120,
                                                                 .n = 300,
                                                                 .k = 320,
                                                                 .block_m = 64,
                                                                 .block_n = 256,
                                                                 .block_k = 64,
                                                                 .trans_b = tb}));
      CHECK(text_of(g).find(warps == 8 ? "m64n128k16" : "m64n64k16") != std::string::npos);
      CHECK(problem(g) == "");
    }
}

// Of 16 warps a thread has half the registers of one of 8: columns are shared for nothing.
TEST_CASE("two accumulators of 128 rows take 8 warps, with rows each") {
  const BlockSpec block{{64, 128}, [](Index k) { return Indices{k, 0}; }};
  const graph::Graph g = traced(
      [](Ref x, Ref gate, Ref up, Ref o, Ref gates, Ref ups) {
        when(program_id(0) == 0, [&] {
          gates[_] = zeros({128, 128}, f32);
          ups[_] = zeros({128, 128}, f32);
        });
        gates[_] += dot(x[_], gate[_]);
        ups[_] += dot(x[_], up[_]);
        when(program_id(0) == 1, [&] { o[_] = (maximum(gates[_], 0) * ups[_]).astype(bf16); });
      },
      {.name = "gated",
       .out_type = {{128, 128}, bf16},
       .grid = {2},
       .in_specs = {BlockSpec{{128, 64},
                              [](Index k) {
                                return Indices{0, k};
                              }},
                    block, block},
       .out_specs = {BlockSpec{{128, 128},
                               [](Index) {
                                 return Indices{0, 0};
                               }}},
       .scratch_shapes = {plgpu::REGS({128, 128}, f32), plgpu::REGS({128, 128}, f32)},
       .compiler_params = {.dimension_semantics = {sequential}}},
      {array({128, 128}, bf16), array({128, 128}, bf16), array({128, 128}, bf16)});
  CHECK(text_of(g).find("PL_KERNEL(256)") != std::string::npos);
  CHECK(text_of(g).find("m64n128k16") != std::string::npos);
  CHECK(problem(g) == "");
}

TEST_CASE("what warpgroups side by side compute of a product is their next operand") {
  const graph::Graph g =
      by_warps(8, traced(
                      [](Ref q, Ref k, Ref v, Ref o) {
                        const Value s = dot(q[_], k[_], {.trans_b = true});
                        o[_] = dot(f16(maximum(s, 0)), v[_]);
                      },
                      {.name = "chain", .out_type = {{64, 128}, f32}},
                      {array({64, 64}, f16), array({128, 64}, f16), array({128, 128}, f16)}));
  // Each has columns of it, and needs rows: it goes through shared memory.
  CHECK(text_of(g).find("_rs") == std::string::npos);
  CHECK(is_by_wgmma(g));
  CHECK(problem(g) == "");
}

TEST_CASE("columns beyond those of one wgmma are split") {
  for (const bool tb : {false, true})
    for (const std::int64_t n : {272, 320}) {
      INFO(n << tb);
      const graph::Graph g =
          traced([&](Ref x, Ref y, Ref o) { o[_] = dot(x[_], y[_], {.trans_b = tb}); },
                 {.name = "wide", .out_type = {{64, n}, f32}},
                 {array({64, 32}, f16), array(tb ? Shape{n, 32} : Shape{32, n}, f16)});
      CHECK(is_by_wgmma(by_warps(4, g)));
      CHECK(problem(by_warps(4, g)) == "");
    }
}

TEST_CASE("blocks of 128 by 256 are products of two warpgroups") {
  const graph::Graph g = matmul_graph(
      bf16, {.m = 200, .n = 300, .k = 100, .block_m = 128, .block_n = 256, .block_k = 64});
  CHECK(text_of(g).find("PL_KERNEL(256)") != std::string::npos);
  CHECK(text_of(g).find("pl::wgmma_m64n256k16_f32_bf16_bf16<false, true>(v0, ") !=
        std::string::npos);
  CHECK(problem(g) == "");
}

TEST_CASE("a product whose operand is a product's result agrees") {
  for (const int warps : {4, 8}) {
    const graph::Graph g =
        by_warps(warps, traced(
                            [](Ref q, Ref k, Ref v, Ref o) {
                              const Value s = dot(q[_], k[_], {.trans_b = true});
                              o[_] = dot(f16(maximum(s, 0)), v[_]);
                            },
                            {.name = "chain", .out_type = {{128, 64}, f32}},
                            {array({128, 64}, f16), array({96, 64}, f16), array({96, 64}, f16)}));
    CHECK(is_by_wgmma(g));
    CHECK(problem(g) == "");
  }
}

TEST_CASE("an accumulator begins with the product that follows on its clearing") {
  const std::string text = text_of(matmul_graph(f16, {.m = 64, .n = 64, .k = 64}));
  CHECK(text.find(" = 0.0f") == std::string::npos);
  CHECK(text.find("f32 v0[32];") != std::string::npos);
  CHECK(text.find(", !v") != std::string::npos);
  // What is read between, or is no zero, is stored as it stands.
  for (const float start : {0.0f, 1.0f}) {
    const graph::Graph g = traced(
        [&](Ref x, Ref y, Ref o, Ref p) {
          when(program_id(0) == 0, [&] { o[_] = full({64, 64}, start, f32); });
          if (start == 0) p[_] = o[_];
          o[_] += dot(x[_], y[_]);
        },
        {.name = "begins",
         .out_type = {{{64, 64}, f32}, {{64, 64}, f32}},
         .grid = {3},
         .in_specs = {{{64, 16},
                       [](Index i) {
                         return Indices{0, i};
                       }},
                      {{16, 64},
                       [](Index i) {
                         return Indices{i, 0};
                       }}},
         .out_specs = {{{64, 64},
                        [](Index) {
                          return Indices{0, 0};
                        }},
                       {{64, 64},
                        [](Index) {
                          return Indices{0, 0};
                        }}},
         .compiler_params = {.dimension_semantics = {sequential}}},
        {array({64, 48}, f16), array({48, 64}, f16)});
    CHECK(is_by_wgmma(g));
    CHECK(problem(g) == "");
  }
}

TEST_CASE("carries that change places take what is computed of products") {
  const graph::Graph g =
      by_warps(4, traced(
                      [](Ref a, Ref b, Ref o, Ref p) {
                        auto [x, y] = loop(
                            0, 5,
                            [&](Index i, Value x, Value y) {
                              return carry(y + dot(a[{i, _, _}], b[{i, _, _}]) * 2, x + 1);
                            },
                            zeros({64, 64}, f32), ones({64, 64}, f32));
                        o[_] = x;
                        p[_] = y;
                      },
                      {.name = "exchange", .out_type = {{{64, 64}, f32}, {{64, 64}, f32}}},
                      {array({5, 64, 32}, f16), array({5, 32, 64}, f16)}));
  CHECK(is_by_wgmma(g));
  CHECK(problem(g) == "");
}

TEST_CASE("two products are added to one window, scaled before each") {
  const graph::Graph g =
      by_warps(4, traced(
                      [](Ref a, Ref b, Ref c, Ref o) {
                        o[_] = zeros({64, 64}, f32);
                        loop(0, 3, [&](Index i) {
                          o[_] = o[_] * 0.5f + dot(a[{i, _, _}], b[{i, _, _}]);
                          o[_] = o[_] * 0.25f + dot(c[{i, _, _}], b[{i, _, _}]);
                        });
                      },
                      {.name = "scaled", .out_type = {{64, 64}, f32}},
                      {array({3, 64, 32}, f16), array({3, 32, 64}, f16), array({3, 64, 32}, f16)}));
  CHECK(is_by_wgmma(g));
  CHECK(problem(g) == "");
}

TEST_CASE("the products of a batch go to tensor cores one by one") {
  const graph::Graph g =
      by_warps(4, traced(
                      [](Ref a, Ref b, Ref o) {
                        o[_] = dot_general(a[_], b[_], {.contracting = {2, 1}, .batch = {1, 0}},
                                           {.preferred_element_type = bf16});
                      },
                      {.name = "batch", .out_type = {{3, 64, 64}, bf16}},
                      {array({64, 3, 32}, bf16), array({3, 32, 64}, bf16)}));
  CHECK(is_by_wgmma(g));
  CHECK(problem(g) == "");
  CHECK(on_all_targets(g, {}, 80) == "");
}

TEST_CASE("a product that a branch alone reads is over on the way around it") {
  for (const int cc : {75, 80, 90, 100}) {
    CAPTURE(cc);
    const graph::Graph g = traced(
        [](Ref a, Ref b, Ref c, Ref n, Ref o, Ref p) {
          const Value d = dot(a[_], b[_], {.preferred_element_type = f32}),
                      e = dot(a[_], c[_], {.preferred_element_type = f32});
          when(n[0] > 0, [&] { p[_] = e * 2; });
          o[_] = (d * (n[1] + 1).astype(f32)).astype(f16);
        },
        {.name = "two", .out_type = {ShapeDtype{{80, 112}, f16}, ShapeDtype{{80, 112}, f32}}},
        {array({80, 48}, bf16), array({48, 112}, bf16), array({48, 112}, bf16), array({2}, i32)});
    CHECK(on_all_targets(g, {}, cc) == "");
  }
}

namespace {

int count(const std::string& text, const std::string& words) {
  int n = 0;
  for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("products into one sum, of which the same is computed behind each, are told apart") {
  for (const bool by_loops : {false, true}) {
    const graph::Graph g = sum_that_goes_on(by_loops);
    CHECK(is_by_wgmma(g));
    CHECK(count(text_of(g), "pl::wgmma_apart()") == 1);
    CHECK(problem(g) == "");
  }
  for (const int n : {64, 128, 256}) {
    const graph::Graph g = sum_of_one_step(128, n);
    CHECK(is_by_wgmma(g));
    CHECK(problem(g) == "");
  }
  CHECK(count(text_of(sum_of_one_step(128, 128)), ", 1>(") > 0);
}
