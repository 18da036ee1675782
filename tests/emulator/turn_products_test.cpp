// Gradients of keys and values, whose products are made transposed so that what is computed of them
// stays in registers: interpreter and emulator agree, races on.
#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Gradients {
  DType dtype = bf16;
  int rows = 64, columns = 128, d = 64, blocks = 3, warps = 8, stages = 0;
  bool causal = false, flat = false, persistent = false, keeps = false;
  bool by_transpose = false;  // in the place of trans_a
};

graph::Graph gradients_of(const Gradients& t) {
  const auto body = [=](Ref q, Ref k, Ref v, Ref g, Ref lse, Ref delta, Ref dk, Ref dv, Ref most) {
    const Value keys = k[_], values = v[_];
    const auto numbers = [&](const Ref& of, Slice now) {
      const Value x = of[now].reshape({t.rows, 1});
      return t.flat ? broadcast_to(x, {t.rows, t.columns}) : x;
    };
    const auto iteration = [&](Index i, Value sum_k, Value sum_v, Value top) {
      const Slice now = ds(i * t.rows, t.rows);
      const Value x = q[{now, _}], y = g[{now, _}];
      Value s = dot(x, keys, {.trans_b = true}) * 0.125f;
      if (t.flat) s = s + iota(f32, {t.columns}, 0) * 0.01f;
      if (t.causal) {
        const int wide = t.flat ? t.columns : 1, high = t.flat ? t.rows : 1;
        const Value row = iota(i32, {t.rows, wide}, 0) + i * t.rows;
        s = where(iota(i32, {high, t.columns}, 1) + program_id(0) * t.columns <= row, s, -1e30f);
      }
      const Value p = exp2(s - numbers(lse, now));
      const Value ds_ = p * (dot(y, values, {.trans_b = true}) - numbers(delta, now));
      const auto product = [&](const Value& left, const Value& right) {
        const Value rounded = left.astype(t.dtype);
        return t.by_transpose ? dot(transpose(rounded), right)
                              : dot(rounded, right, {.trans_a = true});
      };
      return carry(sum_k + product(ds_, x), sum_v + product(p, y),
                   t.keeps ? maximum(top, max(p, {.axis = 1})) : top);
    };
    const Value zero = zeros({t.columns, t.d}, f32);
    const auto [sum_k, sum_v, top] =
        loop(0, program_id(0) + 1, iteration, zero, zero, zeros({t.rows}, f32));
    dk[_] = sum_k;
    dv[_] = sum_v;
    most[_] = top;
  };
  const std::int64_t rows = std::int64_t{t.rows} * t.blocks,
                     keys = std::int64_t{t.columns} * t.blocks;
  const BlockSpec all{{rows, t.d},
                      [](Index) {
                        return Indices{0, 0};
                      }},
      some{{t.columns, t.d},
           [](Index i) {
             return Indices{i, 0};
           }},
      numbers{{rows}, [](Index) { return Indices{0}; }},
      last{{t.rows}, [](Index i) { return Indices{i}; }};
  return traced(
      body,
      {.name = "gradients",
       .out_type = {{{keys, t.d}, f32}, {{keys, t.d}, f32}, {{rows}, f32}},
       .grid = {t.blocks},
       .in_specs = {all, some, some, all, numbers, numbers},
       .out_specs = {some, some, last},
       .compiler_params = {.num_warps = t.warps,
                           .approx_math = true,
                           .num_stages = t.stages,
                           .persistent = t.persistent}},
      {array({rows, t.d}, t.dtype), array({keys, t.d}, t.dtype), array({keys, t.d}, t.dtype),
       array({rows, t.d}, t.dtype), array({rows}, f32), array({rows}, f32)});
}

std::string text_of(const graph::Graph& g) {
  return cuda::emit(g, {.compute_capability = 90}).text;
}

// Of how many products threads have A in registers.
std::ptrdiff_t held(const graph::Graph& g) {
  const lowered::Program l = cuda::lower(g, {.compute_capability = 90});
  return std::ranges::count_if(l.storages, [](const lowered::Storage& s) { return s.is_packed(); });
}

}  // namespace

TEST_CASE("gradients of keys and values agree, and what they are made of stays in registers") {
  for (const Gradients& t :
       {Gradients{}, Gradients{.dtype = f16, .flat = true}, Gradients{.causal = true},
        Gradients{.by_transpose = true},
        Gradients{.rows = 32, .columns = 64, .d = 32, .blocks = 5, .warps = 4, .stages = 3},
        Gradients{.blocks = 4, .stages = 4, .persistent = true},
        Gradients{.rows = 128, .d = 32, .causal = true, .flat = true}}) {
    CAPTURE(t.rows, t.columns, t.d, t.causal, t.flat, t.persistent);
    const graph::Graph g = gradients_of(t);
    CHECK(held(g) == 2);
    for (const std::string& found : unpinned_registers(text_of(g))) FAIL_CHECK(found);
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

// Of each operand of each step a part would be made.
TEST_CASE("a mask of so many steps leaves products as they are, one of few is made once") {
  for (const int count : {4, 64}) {
    const auto body = [=](Ref q, Ref k, Ref o) {
      Value steps = iota(i32, {64, 64}, 0);
      for (int n = 0; n < count; ++n) steps = maximum(steps, steps + 1) - 1;
      const Value s = where(steps >= 3, dot(q[_], k[_], {.trans_b = true}), 0.0f);
      o[_] = dot((s * 0.125f).astype(f16), q[_], {.trans_a = true});
    };
    const graph::Graph g = traced(body, {.name = "steps", .out_type = {{{64, 64}, f32}}},
                                  {array({64, 64}, f16), array({64, 64}, f16)});
    CHECK(held(g) == (count == 4));
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

TEST_CASE("products of which somebody wants more than a transposed operand stay as they are") {
  const graph::Graph g = gradients_of({.keeps = true});
  CHECK(held(g) == 0);
  CHECK(on_all_targets(g, {}, 90) == "");
}
