#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {

UserKernel scaled_matmul(const Sizes& p, Style style, bool approx_math) {
  const auto [bm, bn, bk] = p.tile;
  const std::int64_t steps = p.k / bk;
  const std::vector<ShapeDtype> inputs{
      {{p.m, p.k}, f8e4m3}, {{p.n, p.k}, f8e4m3}, {{p.m, steps}, f32}, {{p.n / bn, steps}, f32}};
  PallasCallOptions options{.name = "scaled_matmul", .out_type = {{p.m, p.n}, bf16}};
  options.compiler_params.approx_math = approx_math;
  if (style == Style::grid) {
    const auto body = [=](Ref a, Ref b, Ref of_rows, Ref of_columns, Ref o, Ref sum) {
      const Value l = program_id(2);
      when(l == 0, [&] { sum[_] = zeros({bm, bn}, f32); });
      sum[_] += dot(a[_], b[_], {.trans_b = true}) * of_rows[_] * of_columns[{0, 0}];
      when(l == num_programs(2) - 1, [&] { o[_] = sum[_].astype(bf16); });
    };
    const auto left = [](Index i, Index, Index l) { return Indices{i, l}; };
    const auto right = [](Index, Index j, Index l) { return Indices{j, l}; };
    options.grid = {p.m / bm, p.n / bn, steps};
    options.in_specs = {{{bm, bk}, left}, {{bn, bk}, right}, {{bm, 1}, left}, {{1, 1}, right}};
    options.out_specs = {{{bm, bn}, [](Index i, Index j, Index) { return Indices{i, j}; }}};
    options.scratch_types = {gpu::REGS({bm, bn}, f32)};
    options.compiler_params.dimension_semantics = {parallel, parallel, sequential};
    return {pallas_call(body, options), inputs};
  }
  const auto body = [=](Ref a, Ref b, Ref of_rows, Ref of_columns, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      const Value part = dot(a[{_, now}], b[{_, now}], {.trans_b = true});
      return sum + part * of_rows[{_, ds(l, 1)}] * of_columns[{0, l}];
    };
    o[_] = loop(0, steps, add, zeros({bm, bn}, f32)).astype(bf16);
  };
  const auto left = [](Index i, Index) { return Indices{i, 0}; };
  const auto right = [](Index, Index j) { return Indices{j, 0}; };
  options.grid = {p.m / bm, p.n / bn};
  options.in_specs = {
      {{bm, p.k}, left}, {{bn, p.k}, right}, {{bm, steps}, left}, {{1, steps}, right}};
  options.out_specs = {{{bm, bn}, [](Index i, Index j) { return Indices{i, j}; }}};
  return {pallas_call(body, options), inputs};
}

UserKernel grouped_weights(const Sizes& p, std::int64_t group) {
  const auto [bm, bn, bk] = p.tile;
  const std::int64_t groups = p.k / group, steps = group / bk;
  const auto body = [=](Ref a, Ref b, Ref scale, Ref zero, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk), of_group = ds(l / static_cast<int>(steps), 1);
      const Value from_zero = b[{now, _}].astype(bf16) - zero[{of_group, _}].astype(bf16);
      return sum + dot(a[{_, now}], from_zero * scale[{of_group, _}]);
    };
    o[_] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
  };
  const auto rows = [](Index i, Index) { return Indices{i, 0}; };
  const auto columns = [](Index, Index j) { return Indices{0, j}; };
  const BlockSpec numbers{{groups, bn}, columns};
  return {
      pallas_call(body, {.name = "grouped_weights",
                         .out_type = {{p.m, p.n}, bf16},
                         .grid = {p.m / bm, p.n / bn},
                         .in_specs = {{{bm, p.k}, rows}, {{p.k, bn}, columns}, numbers, numbers},
                         .out_specs = {{{bm, bn},
                                        [](Index i, Index j) {
                                          return Indices{i, j};
                                        }}}}),
      {{{p.m, p.k}, bf16}, {{p.k, p.n}, u4}, {{groups, p.n}, bf16}, {{groups, p.n}, u4}}};
}

UserKernel recurrence(std::int64_t batch, std::int64_t rows, std::int64_t d) {
  const auto body = [=](Ref q, Ref k, Ref v, Ref g, Ref o) {
    const auto step = [&](Index t, Value state) {
      const auto row = [&](Ref x) { return x[{t, _}].astype(f32); };
      const Value next = state * exp(g[t]) + row(k).reshape({d, 1}) * row(v).reshape({1, d});
      o[{t, _}] = sum(next * row(q).reshape({d, 1}), {.axis = 0}).astype(bf16);
      return next;
    };
    (void)loop(0, rows, step, zeros({d, d}, f32));
  };
  const auto own = [](Index b) { return Indices{b, 0, 0}; };
  const BlockSpec all{{squeezed, rows, d}, own};
  const ShapeDtype x{{batch, rows, d}, bf16};
  return {pallas_call(body, {.name = "recurrence",
                             .out_type = x,
                             .grid = {batch},
                             .in_specs = {all,
                                          all,
                                          all,
                                          {{squeezed, rows},
                                           [](Index b) {
                                             return Indices{b, 0};
                                           }}},
                             .out_specs = {all}}),
          {x, x, x, {{batch, rows}, f32}}};
}

UserKernel row_scaled_matmul(const Sizes& p, DType rounded) {
  const auto [bm, bn, bk] = p.tile;
  const bool turned = rounded.bytes() == 1;
  const auto body = [=](Ref a, Ref scale, Ref b, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      const Value left = (a[{_, now}].astype(f32) * scale[_]).astype(rounded);
      return sum + dot(left, turned ? b[{_, now}] : b[{now, _}], {.trans_b = turned});
    };
    o[_] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
  };
  const auto rows = [](Index i, Index) { return Indices{i, 0}; };
  const auto columns = [=](Index, Index j) { return turned ? Indices{j, 0} : Indices{0, j}; };
  return {
      pallas_call(body, {.name = "row_scaled_matmul",
                         .out_type = {{p.m, p.n}, bf16},
                         .grid = {p.m / bm, p.n / bn},
                         .in_specs = {{{bm, p.k}, rows},
                                      {{bm, 1}, rows},
                                      {{turned ? bn : p.k, turned ? p.k : bn}, columns}},
                         .out_specs = {{{bm, bn},
                                        [](Index i, Index j) {
                                          return Indices{i, j};
                                        }}}}),
      {{{p.m, p.k}, bf16}, {{p.m, 1}, f32}, {{turned ? p.n : p.k, turned ? p.k : p.n}, rounded}}};
}

}  // namespace palladium::user_kernels
