#include <cmath>

#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {
namespace {

// Index maps of grids whose first axes are rows and columns of blocks.
const auto rows_of = [](Index i, Index) { return Indices{i, 0}; };
const auto columns_of = [](Index, Index j) { return Indices{0, j}; };
const auto block_of = [](Index i, Index j) { return Indices{i, j}; };
const auto block_of_k = [](Index i, Index j, Index) { return Indices{i, j}; };
const auto bias_of = [](Index, Index j) { return j; };
const auto left_of_k = [](Index i, Index, Index k) { return Indices{i, k}; };
const auto right_of_k = [](Index, Index j, Index k) { return Indices{k, j}; };

constexpr auto along_k = {parallel, parallel, sequential};

/// What both styles do with the finished sum.
Value finished(const Matmul& p, Value sum, const Refs& more) {
  if (p.bias_gelu) sum = gelu(sum + more[0][_].astype(f32));
  if (p.residual) sum = sum + more[0][_].astype(f32);
  return p.trans_out ? transpose(sum) : sum;
}

Shape shape_of_result(const Matmul& p) { return p.trans_out ? Shape{p.n, p.m} : Shape{p.m, p.n}; }

DType result_of(const Matmul& p) { return p.dtype == i8 ? i32 : p.dtype == f32 ? f32 : bf16; }
DType sum_of(const Matmul& p) { return p.dtype == i8 ? i32 : f32; }

UserKernel matmul_by_carry(const Matmul& p) {
  const auto [bm, bn, bk] = p.tile;
  const std::int64_t k = p.k;
  const auto body = [=](Ref a, Ref b, Refs more, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      const Value left = p.trans_a ? a[{now, _}] : a[{_, now}];
      const Value right = p.trans_b ? b[{_, now}] : b[{now, _}];
      return sum + dot(left, right,
                       {.trans_a = p.trans_a, .trans_b = p.trans_b, .precision = p.precision});
    };
    const Value sum = loop(0, k / bk, add, zeros({bm, bn}, sum_of(p)));
    o[_] = finished(p, sum, more).astype(o.dtype());
  };
  const BlockSpec a{{p.trans_a ? k : bm, p.trans_a ? bm : k},
                    [=](Index i, Index) {
                      return p.trans_a ? Indices{0, i} : Indices{i, 0};
                    }},
      b{{p.trans_b ? bn : k, p.trans_b ? k : bn},
        [=](Index, Index j) {
          return p.trans_b ? Indices{j, 0} : Indices{0, j};
        }},
      o{{p.trans_out ? bn : bm, p.trans_out ? bm : bn}, [=](Index i, Index j) {
          return p.trans_out ? Indices{j, i} : Indices{i, j};
        }};
  std::vector<BlockSpec> in{a, b};
  if (p.bias_gelu) in.push_back({{bn}, bias_of});
  if (p.residual) in.push_back(o);
  return {pallas_call(body, {.name = "matmul",
                             .out_type = {shape_of_result(p), result_of(p)},
                             .grid = {cdiv(p.m, bm), cdiv(p.n, bn)},
                             .in_specs = in,
                             .out_specs = {o},
                             .compiler_params = p.params}),
          {}};
}

UserKernel matmul_along_axis(const Matmul& p) {
  const auto [bm, bn, bk] = p.tile;
  const bool into_output = p.sum == Sum::output;
  const auto product = [=](Ref a, Ref b) {
    return dot(a[_], b[_], {.trans_a = p.trans_a, .trans_b = p.trans_b, .precision = p.precision});
  };
  const auto through_scratch = [=](Ref a, Ref b, Refs more, Ref o, Ref sum) {
    const Value k = program_id(2);
    when(k == 0, [&] { sum[_] = zeros({bm, bn}, sum_of(p)); });
    sum[_] += product(a, b);
    when(k == num_programs(2) - 1, [&] { o[_] = finished(p, sum[_], more).astype(o.dtype()); });
  };
  const auto through_output = [=](Ref a, Ref b, Ref o) {
    when(program_id(2) == 0, [&] { o[_] = zeros({bm, bn}, sum_of(p)); });
    o[_] += product(a, b);
  };
  // Beyond a k that is no multiple of the block there are zeros.
  const BlockSpecOptions rest = p.k.is_static() ? BlockSpecOptions{} : BlockSpecOptions{.fill = 0};
  const BlockSpec a{{p.trans_a ? bk : bm, p.trans_a ? bm : bk},
                    [=](Index i, Index, Index k) {
                      return p.trans_a ? Indices{k, i} : Indices{i, k};
                    },
                    rest},
      b{{p.trans_b ? bn : bk, p.trans_b ? bk : bn},
        [=](Index, Index j, Index k) {
          return p.trans_b ? Indices{j, k} : Indices{k, j};
        },
        rest},
      o{{p.trans_out ? bn : bm, p.trans_out ? bm : bn}, [=](Index i, Index j, Index) {
          return p.trans_out ? Indices{j, i} : Indices{i, j};
        }};
  PallasCallOptions options{
      .name = "matmul",
      .out_type = {shape_of_result(p), into_output ? sum_of(p) : result_of(p)},
      .grid = {cdiv(p.m, bm), cdiv(p.n, bn), cdiv(p.k, bk)},
      .in_specs = {a, b},
      .out_specs = {o},
      .compiler_params = p.params};
  options.compiler_params.dimension_semantics = along_k;
  if (into_output) return {pallas_call(through_output, options), {}};
  if (p.bias_gelu) options.in_specs.push_back({{bn}, [](Index, Index j, Index) { return j; }});
  if (p.residual) options.in_specs.push_back(o);
  const MemorySpace where = p.sum == Sum::registers ? gpu::REGS : gpu::SMEM;
  options.scratch_types = {where({bm, bn}, sum_of(p))};
  return {pallas_call(through_scratch, options), {}};
}

}  // namespace

UserKernel matmul(const Matmul& p) {
  UserKernel kernel = p.sum == Sum::carry ? matmul_by_carry(p) : matmul_along_axis(p);
  kernel.inputs = {{p.trans_a ? Shape{p.k, p.m} : Shape{p.m, p.k}, p.dtype},
                   {p.trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, p.dtype}};
  if (p.bias_gelu) kernel.inputs.push_back({{p.n}, p.dtype});
  if (p.residual) kernel.inputs.push_back({{p.m, p.n}, p.dtype});
  return kernel;
}

UserKernel grouped_matmul(const Grouped& p) {
  const auto [bm, bn, bk] = p.tile;
  const std::vector<ShapeDtype> inputs{
      {{p.tokens / bm}, i32}, {{p.tokens, p.k}, bf16}, {{p.experts, p.k, p.n}, bf16}};
  const std::vector<Numbers> numbers{
      {.below = p.experts, .together = cdiv(p.tokens / bm, p.experts)}};
  PallasCallOptions options{
      .name = "grouped_matmul", .out_type = {{p.tokens, p.n}, bf16}, .num_scalar_prefetch = 1};
  if (p.style == Style::loop) {
    options.grid = {p.tokens / bm, p.n / bn};
    options.in_specs = {{{bm, p.k},
                         [](Index i, Index, Ref) {
                           return Indices{i, 0};
                         }},
                        {{squeezed, p.k, bn}, [](Index i, Index j, Ref expert) {
                           return Indices{expert[i], 0, j};
                         }}};
    options.out_specs = {{{bm, bn}, [](Index i, Index j, Ref) { return Indices{i, j}; }}};
    const auto body = [=](Ref, Ref a, Ref b, Ref o) {
      const auto add = [&](Index l, Value sum) {
        return sum + dot(a[{_, ds(l * bk, bk)}], b[{ds(l * bk, bk), _}]);
      };
      o[_] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
    };
    return {pallas_call(body, options), inputs, numbers};
  }
  options.grid = {p.tokens / bm, p.n / bn, p.k / bk};
  options.in_specs = {{{bm, bk},
                       [](Index i, Index, Index l, Ref) {
                         return Indices{i, l};
                       }},
                      {{squeezed, bk, bn}, [](Index i, Index j, Index l, Ref expert) {
                         return Indices{expert[i], l, j};
                       }}};
  options.out_specs = {{{bm, bn}, [](Index i, Index j, Index, Ref) { return Indices{i, j}; }}};
  options.scratch_types = {gpu::REGS({bm, bn}, f32)};
  options.compiler_params.dimension_semantics = along_k;
  const auto body = [=](Ref, Ref a, Ref b, Ref o, Ref sum) {
    const Value l = program_id(2);
    when(l == 0, [&] { sum[_] = zeros({bm, bn}, f32); });
    sum[_] += dot(a[_], b[_]);
    when(l == p.k / bk - 1, [&] { o[_] = sum[_].astype(bf16); });
  };
  return {pallas_call(body, options), inputs, numbers};
}

UserKernel swiglu(const SwiGlu& p) {
  const auto [bm, bn, bk] = p.tile;
  const std::vector<ShapeDtype> inputs{{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}, {{p.k, p.n}, bf16}};
  PallasCallOptions options{.name = "swiglu", .out_type = {{p.m, p.n}, bf16}};
  if (p.style == Style::loop) {
    options.grid = {p.m / bm, p.n / bn};
    options.in_specs = {{{bm, p.k}, rows_of}, {{p.k, bn}, columns_of}, {{p.k, bn}, columns_of}};
    options.out_specs = {{{bm, bn}, block_of}};
    const auto body = [=](Ref x, Ref gate, Ref up, Ref o) {
      const auto add = [&](Index l, Value g, Value u) {
        const Slice now = ds(l * bk, bk);
        const Value left = x[{_, now}];
        return carry(g + dot(left, gate[{now, _}]), u + dot(left, up[{now, _}]));
      };
      const auto [g, u] = loop(0, p.k / bk, add, zeros({bm, bn}, f32), zeros({bm, bn}, f32));
      o[_] = (silu(g) * u).astype(bf16);
    };
    return {pallas_call(body, options), inputs};
  }
  options.grid = {p.m / bm, p.n / bn, p.k / bk};
  options.in_specs = {{{bm, bk}, left_of_k}, {{bk, bn}, right_of_k}, {{bk, bn}, right_of_k}};
  options.out_specs = {{{bm, bn}, block_of_k}};
  options.scratch_types = {gpu::REGS({bm, bn}, f32), gpu::REGS({bm, bn}, f32)};
  options.compiler_params.dimension_semantics = along_k;
  const auto body = [=](Ref x, Ref gate, Ref up, Ref o, Ref g, Ref u) {
    const Value l = program_id(2);
    when(l == 0, [&] {
      g[_] = zeros({bm, bn}, f32);
      u[_] = zeros({bm, bn}, f32);
    });
    const Value left = x[_];
    g[_] += dot(left, gate[_]);
    u[_] += dot(left, up[_]);
    when(l == p.k / bk - 1, [&] {
      const Value gated = g[_];
      o[_] = (silu(gated) * u[_]).astype(bf16);
    });
  };
  return {pallas_call(body, options), inputs};
}

UserKernel narrow_weights(const Weights& p) {
  const auto [bm, bn, bk] = p.tile;
  const std::vector<ShapeDtype> inputs{{{p.m, p.k}, p.wide}, {{p.k, p.n}, p.dtype}, {{p.n}, f32}};
  PallasCallOptions options{.name = "narrow_weights", .out_type = {{p.m, p.n}, p.wide}};
  if (p.style == Style::loop) {
    options.grid = {p.m / bm, p.n / bn};
    options.in_specs = {{{bm, p.k}, rows_of}, {{p.k, bn}, columns_of}, {{bn}, bias_of}};
    options.out_specs = {{{bm, bn}, block_of}};
    const auto body = [=](Ref a, Ref b, Ref scale, Ref o) {
      const auto add = [&](Index l, Value sum) {
        const Slice now = ds(l * bk, bk);
        return sum + dot(a[{_, now}], b[{now, _}].astype(p.wide));
      };
      const Value sum = loop(0, p.k / bk, add, zeros({bm, bn}, f32));
      o[_] = (sum * scale[_]).astype(p.wide);
    };
    return {pallas_call(body, options), inputs};
  }
  options.grid = {p.m / bm, p.n / bn, p.k / bk};
  options.in_specs = {{{bm, bk}, left_of_k},
                      {{bk, bn}, right_of_k},
                      {{bn}, [](Index, Index j, Index) { return j; }}};
  options.out_specs = {{{bm, bn}, block_of_k}};
  options.scratch_types = {gpu::REGS({bm, bn}, f32)};
  options.compiler_params.dimension_semantics = along_k;
  const auto body = [=](Ref a, Ref b, Ref scale, Ref o, Ref sum) {
    const Value l = program_id(2);
    when(l == 0, [&] { sum[_] = zeros({bm, bn}, f32); });
    sum[_] += dot(a[_], b[_].astype(p.wide));
    when(l == p.k / bk - 1, [&] { o[_] = (sum[_] * scale[_]).astype(p.wide); });
  };
  return {pallas_call(body, options), inputs};
}

UserKernel low_rank_adapter(const Sizes& p, std::int64_t rank) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref w, Ref down, Ref up, Ref o) {
    const auto add = [&](Index l, Value sum, Value low) {
      const Slice now = ds(l * bk, bk);
      const Value left = x[{_, now}];
      return carry(sum + dot(left, w[{now, _}]), low + dot(left, down[{now, _}]));
    };
    const auto [sum, low] = loop(0, p.k / bk, add, zeros({bm, bn}, f32), zeros({bm, rank}, f32));
    o[_] = (sum + dot(low.astype(bf16), up[_])).astype(bf16);
  };
  return {pallas_call(body, {.name = "low_rank_adapter",
                             .out_type = {{p.m, p.n}, bf16},
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {{{bm, p.k}, rows_of},
                                          {{p.k, bn}, columns_of},
                                          BlockSpec{},
                                          {{rank, bn}, columns_of}},
                             .out_specs = {{{bm, bn}, block_of}}}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}, {{p.k, rank}, bf16}, {{rank, p.n}, bf16}}};
}

UserKernel norm_matmul(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref w, Ref o) {
    const auto add = [&](Index l, Value sum, Value squares) {
      const Slice now = ds(l * bk, bk);
      const Value left = x[{_, now}];
      const Value wide = left.astype(f32);
      return carry(sum + dot(left, w[{now, _}]),
                   squares + palladium::sum(wide * wide, {.axis = 1, .keepdims = true}));
    };
    const auto [sum, squares] = loop(0, p.k / bk, add, zeros({bm, bn}, f32), zeros({bm, 1}, f32));
    o[_] = (sum * rsqrt(squares / static_cast<float>(p.k) + 1e-6f)).astype(bf16);
  };
  return {pallas_call(body, {.name = "norm_matmul",
                             .out_type = {{p.m, p.n}, bf16},
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {{{bm, p.k}, rows_of}, {{p.k, bn}, columns_of}},
                             .out_specs = {{{bm, bn}, block_of}}}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}}};
}

UserKernel activated_matmul(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref a, Ref b, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      const Value left = silu(a[{_, now}]);
      return sum + dot(left, b[{now, _}]);
    };
    o[_] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
  };
  return {pallas_call(body, {.name = "activated_matmul",
                             .out_type = {{p.m, p.n}, bf16},
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {{{bm, p.k}, rows_of}, {{p.k, bn}, columns_of}},
                             .out_specs = {{{bm, bn}, block_of}}}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}}};
}

UserKernel gathered_matmul(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref, Ref a, Ref b, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      return sum + dot(a[{_, now}], b[{now, _}]);
    };
    o[_] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
  };
  const BlockSpec a{{Indirect(bm), p.k},
                    [=](Index i, Index, Ref ids) {
                      return Indices{Value(ids[ds(i * bm, bm)]), 0};
                    }},
      b{{p.k, bn},
        [](Index, Index j, Ref) {
          return Indices{0, j};
        }},
      o{{bm, bn}, [](Index i, Index j, Ref) {
          return Indices{i, j};
        }};
  return {pallas_call(body, {.name = "gathered_matmul",
                             .out_type = {{p.m, p.n}, bf16},
                             .num_scalar_prefetch = 1,
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {a, b},
                             .out_specs = {o}}),
          {{{p.m}, i32}, {{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}},
          {{.step = 17, .below = p.m}}};
}

UserKernel mlp(const Sizes& p, bool gated) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref up, Ref down, Refs gate, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      const Value in = dot(x[_], up[{_, now}]);
      const Value hidden = gated ? silu(dot(x[_], gate[0][{_, now}])) * in : relu(in);
      return sum + dot(hidden.astype(bf16), down[{now, _}]);
    };
    o[_] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
  };
  const BlockSpec rows{{bm, bn}, [](Index i) { return Indices{i, 0}; }};
  std::vector<BlockSpec> in{rows, {}, {}};
  std::vector<ShapeDtype> types{{{p.m, bn}, bf16}, {{bn, p.k}, bf16}, {{p.k, bn}, bf16}};
  if (gated) in.emplace_back(), types.push_back(types[1]);
  return {pallas_call(body, {.name = gated ? "gated_mlp" : "mlp",
                             .out_type = {{p.m, bn}, bf16},
                             .grid = {p.m / bm},
                             .in_specs = in,
                             .out_specs = {rows},
                             .compiler_params = {.approx_math = gated}}),
          types};
}

UserKernel weight_gradient(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref dy, Ref dw, Ref db) {
    const auto add = [&](Index l, Value sum, Value columns) {
      const Slice now = ds(l * bk, bk);
      const Value right = dy[{now, _}];
      return carry(sum + dot(x[{now, _}], right, {.trans_a = true}),
                   columns + palladium::sum(right.astype(f32), {.axis = 0, .keepdims = true}));
    };
    const auto [sum, columns] = loop(0, p.k / bk, add, zeros({bm, bn}, f32), zeros({1, bn}, f32));
    dw[_] = sum;
    db[_] = columns;
  };
  return {pallas_call(body, {.name = "weight_gradient",
                             .out_type = {{{p.m, p.n}, f32}, {{p.m / bm, p.n}, f32}},
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {{{p.k, bm},
                                           [](Index i, Index) {
                                             return Indices{0, i};
                                           }},
                                          {{p.k, bn}, columns_of}},
                             .out_specs = {{{bm, bn}, block_of}, {{1, bn}, block_of}}}),
          {{{p.k, p.m}, bf16}, {{p.k, p.n}, bf16}}};
}

UserKernel gram(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref a, Ref b, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      return sum + dot(a[{_, now}], b[{_, now}], {.trans_b = true});
    };
    o[_] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
  };
  const Kernel product = pallas_call(body, {.name = "gram",
                                            .out_type = {{p.m, p.m}, bf16},
                                            .grid = {p.m / bm, p.m / bn},
                                            .in_specs = {{{bm, p.k}, rows_of},
                                                         {{bn, p.k},
                                                          [](Index, Index j) {
                                                            return Indices{j, 0};
                                                          }}},
                                            .out_specs = {{{bm, bn}, block_of}}});
  return {product, {{{p.m, p.k}, bf16}, {{p.m, p.k}, bf16}}};
}

UserKernel complex_matmul(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref ar, Ref ai, Ref br, Ref bi, Ref re, Ref im) {
    const auto add = [&](Index l, Value r, Value i) {
      const Slice now = ds(l * bk, bk);
      const Value x = ar[{_, now}], y = ai[{_, now}], u = br[{now, _}], v = bi[{now, _}];
      return carry(r + dot(x, u) - dot(y, v), i + dot(x, v) + dot(y, u));
    };
    const auto [r, i] = loop(0, p.k / bk, add, zeros({bm, bn}, f32), zeros({bm, bn}, f32));
    re[_] = r;
    im[_] = i;
  };
  const BlockSpec a{{bm, p.k}, rows_of}, b{{p.k, bn}, columns_of}, o{{bm, bn}, block_of};
  const ShapeDtype left{{p.m, p.k}, bf16}, right{{p.k, p.n}, bf16}, both{{p.m, p.n}, f32};
  return {pallas_call(body, {.name = "complex_matmul",
                             .out_type = {both, both},
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {a, a, b, b},
                             .out_specs = {o, o}}),
          {left, left, right, right}};
}

UserKernel block_sparse_matmul(const Sizes& p, std::int64_t most) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref counts, Ref, Ref a, Ref b, Ref o) {
    const Value s = program_id(2);
    when(s == 0, [&] { o[_] = zeros({bm, bn}, f32); });
    when(s < counts[program_id(0)], [&] { o[_] += dot(a[_], b[_]); });
  };
  const BlockSpec a{{squeezed, squeezed, bm, bk},
                    [](Index i, Index, Index s, Ref, Ref) {
                      return Indices{i, s, 0, 0};
                    }},
      b{{bk, bn},
        [](Index i, Index j, Index s, Ref, Ref columns) {
          return Indices{columns[{i, s}], j};
        }},
      o{{bm, bn}, [](Index i, Index j, Index, Ref, Ref) {
          return Indices{i, j};
        }};
  return {pallas_call(body, {.name = "block_sparse_matmul",
                             .out_type = {{p.m, p.n}, f32},
                             .num_scalar_prefetch = 2,
                             .grid = {p.m / bm, p.n / bn, most},
                             .in_specs = {a, b},
                             .out_specs = {o}}),
          {{{p.m / bm}, i32},
           {{p.m / bm, most}, i32},
           {{p.m / bm, most, bm, bk}, bf16},
           {{p.k, p.n}, bf16}},
          {{.first = most}, {.step = 3, .below = p.k / bk}}};
}

UserKernel small_matmuls(std::int64_t batch, const Tile& size) {
  const auto one = [](Index i) { return Indices{i, 0, 0}; };
  const auto [m, n, k] = size;
  return {pallas_call([](Ref a, Ref b, Ref o) { o[_] = dot(a[_], b[_]).astype(bf16); },
                      {.name = "small_matmuls",
                       .out_type = {{batch, m, n}, bf16},
                       .grid = {batch},
                       .in_specs = {{{squeezed, m, k}, one}, {{squeezed, k, n}, one}},
                       .out_specs = {{{squeezed, m, n}, one}}}),
          {{{batch, m, k}, bf16}, {{batch, k, n}, bf16}}};
}

UserKernel split_k_matmul(const Sizes& p, std::int64_t parts) {
  const auto [bm, bn, bk] = p.tile;
  const std::int64_t part = p.k / parts;
  const auto body = [=](Ref a, Ref b, Ref, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      return sum + dot(a[{_, now}], b[{now, _}]);
    };
    const Value sum = loop(0, part / bk, add, zeros({bm, bn}, f32));
    atomic_add(o.at({ds(program_id(0) * bm, bm), ds(program_id(1) * bn, bn)}), sum);
  };
  return {pallas_call(body,
                      {.name = "split_k_matmul",
                       .out_type = {{p.m, p.n}, f32},
                       .grid = {p.m / bm, p.n / bn, parts},
                       .in_specs = {{{bm, part}, left_of_k}, {{part, bn}, right_of_k}, BlockSpec{}},
                       .out_specs = {BlockSpec{}},
                       .input_output_aliases = {{2, 0}},
                       .compiler_params = {.dimension_semantics = {parallel, parallel, parallel},
                                           .allow_revisit = true}}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}, {{p.m, p.n}, f32}},
          {},
          2};
}

UserKernel nearest_centres(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref centres, Ref lengths, Ref o) {
    const auto block = [&](Index j, Value best, Value which) {
      const Slice now = ds(j * bn, bn);
      const Value product = dot(x[_], centres[{now, _}], {.trans_b = true});
      const Value distance = lengths[{_, now}] - 2.0f * product;
      const Value least = min(distance, {.axis = 1, .keepdims = true});
      const Value at = argmin(distance, {.axis = 1, .keepdims = true}) + j * bn;
      return carry(minimum(best, least), where(least < best, at, which));
    };
    const auto [best, which] =
        loop(0, p.n / bn, block, full({bm, 1}, HUGE_VALF, f32), zeros({bm, 1}, i32));
    o[_] = which;
  };
  const auto rows = [](Index i) { return Indices{i, 0}; };
  return {pallas_call(body, {.name = "nearest_centres",
                             .out_type = {{p.m, 1}, i32},
                             .grid = {p.m / bm},
                             .in_specs = {{{bm, bk}, rows}, BlockSpec{}, BlockSpec{}},
                             .out_specs = {{{bm, 1}, rows}}}),
          {{{p.m, bk}, bf16}, {{p.n, bk}, bf16}, {{1, p.n}, f32}}};
}

UserKernel cross_entropy(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref w, Ref labels, Ref o) {
    const Value label = labels[_];
    const auto block = [&](Value j, Value top, Value total, Value chosen) {
      const auto add = [&](Value l, Value sum) {
        const Slice now = ds(l * bk, bk);
        return sum + dot(x[{_, now}], w[{now, ds(j * bn, bn)}]);
      };
      const Value logits = loop(0, p.k / bk, add, zeros({bm, bn}, f32));
      const Value column = iota(i32, {1, bn}, 1) + j * bn;
      const Value next = maximum(top, max(logits, {.axis = 1, .keepdims = true}));
      return carry(
          next, total * exp(top - next) + sum(exp(logits - next), {.axis = 1, .keepdims = true}),
          chosen + sum(where(column == label, logits, 0.0f), {.axis = 1, .keepdims = true}));
    };
    const auto [top, total, chosen] = loop(0, p.n / bn, block, full({bm, 1}, -1e30f, f32),
                                           zeros({bm, 1}, f32), zeros({bm, 1}, f32));
    o[_] = top + log(total) - chosen;
  };
  const auto rows = [](Index i) { return Indices{i, 0}; };
  return {pallas_call(body, {.name = "cross_entropy",
                             .out_type = {{p.m, 1}, f32},
                             .grid = {p.m / bm},
                             .in_specs = {{{bm, p.k}, rows}, BlockSpec{}, {{bm, 1}, rows}},
                             .out_specs = {{{bm, 1}, rows}}}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}, {{p.m, 1}, i32}},
          {{.step = 7, .below = p.n}}};
}

UserKernel router(const Sizes& p, std::int64_t chosen) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref w, Ref expert, Ref weight) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      return sum + dot(x[{_, now}], w[{now, _}]);
    };
    const TopK best = top_k(loop(0, p.k / bk, add, zeros({bm, bn}, f32)), chosen);
    expert[_] = best.indices;
    weight[_] = softmax(best.values, {.axis = 1});
  };
  const auto rows = [](Index i) { return Indices{i, 0}; };
  return {pallas_call(body, {.name = "router",
                             .out_type = {{{p.m, chosen}, i32}, {{p.m, chosen}, f32}},
                             .grid = {p.m / bm},
                             .in_specs = {{{bm, p.k}, rows}, BlockSpec{}},
                             .out_specs = {{{bm, chosen}, rows}, {{bm, chosen}, rows}}}),
          {{{p.m, p.k}, bf16}, {{p.k, bn}, bf16}}};
}

UserKernel convolution(const Convolution& p) {
  const std::int64_t c = p.block_channels, f = p.block_filters, pixels = p.rows * p.width;
  const auto body = [=](Ref x, Ref w, Ref o) {
    const auto with_window = [&](const Value& i, const Value& j, const Value& at,
                                 const Value& sum) {
      const Value window = x[{ds(i, p.rows), ds(j, p.width), ds(at, c)}];
      return sum + dot(window.reshape({pixels, c}), w[{i, j, ds(at, c), _}]);
    };
    const auto nine = [&](Index l, Value sum) {
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) sum = with_window(i, j, l * c, sum);
      return sum;
    };
    const auto one = [&](Index l, Value sum) {
      return with_window(l / 3 % 3, l % 3, l / 9 * c, sum);
    };
    const Value none = zeros({pixels, f}, f32);
    const Value sum =
        p.unrolled ? loop(0, p.channels / c, nine, none) : loop(0, 9 * (p.channels / c), one, none);
    o[_] = sum.astype(bf16).reshape({p.rows, p.width, f});
  };
  const BlockSpec x{
      {squeezed, Element(p.rows + 2, {1, 1}), Element(p.width + 2, {1, 1}), p.channels},
      [=](Index n, Index i, Index) {
        return Indices{n, i * p.rows, 0, 0};
      },
      {.fill = 0}},
      w{{3, 3, p.channels, f},
        [](Index, Index, Index k) {
          return Indices{0, 0, 0, k};
        }},
      o{{squeezed, p.rows, p.width, f}, [](Index n, Index i, Index k) {
          return Indices{n, i, 0, k};
        }};
  return {
      pallas_call(body, {.name = "convolution",
                         .out_type = {{p.images, p.height, p.width, p.filters}, bf16},
                         .grid = {p.images, p.height / p.rows, p.filters / f},
                         .in_specs = {x, w},
                         .out_specs = {o}}),
      {{{p.images, p.height, p.width, p.channels}, bf16}, {{3, 3, p.channels, p.filters}, bf16}}};
}

}  // namespace palladium::user_kernels
