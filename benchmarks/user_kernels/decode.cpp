// What a model does for one token at a time, and with what is stored in few bits.
#include <algorithm>

#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {
namespace {

using pl::_;

const auto some_rows = [](Index i) { return Indices{i, 0}; };

}  // namespace

UserKernel decode_linear(const Rows& p, DType weights) {
  const std::int64_t k = p.columns, part = std::min<std::int64_t>(k, 512);
  const auto body = [=](Ref w, Ref scales, Ref x, Ref o) {
    const auto add = [&](Index l, Value total) {
      const Slice now = ds(l * part, part);
      const Value products = w[{_, now}].astype(f32) * x[{_, now}].astype(f32);
      return total + sum(products, {.axis = 1, .keepdims = true});
    };
    const Value total = loop(0, k / part, add, zeros({p.block, 1}, f32));
    o[_] = (total * scales[_]).astype(p.dtype);
  };
  const BlockSpec number{{p.block, 1}, some_rows};
  return {pallas_call(body, {.name = "decode_linear",
                             .out_type = {{p.rows, 1}, p.dtype},
                             .grid = {p.rows / p.block},
                             .in_specs = {{{p.block, k}, some_rows}, number, {}},
                             .out_specs = {number}}),
          {{{p.rows, k}, weights}, {{p.rows, 1}, f32}, {{1, k}, p.dtype}}};
}

UserKernel restored_groups(const Rows& p, DType from, std::int64_t group) {
  const std::int64_t groups = p.columns / group;
  const auto body = [=](Ref x, Ref scales, Ref o) {
    const Value v = x[_].astype(f32).reshape({p.block, groups, group});
    const Value scaled = v * scales[_].reshape({p.block, groups, 1});
    o[_] = scaled.reshape({p.block, p.columns}).astype(p.dtype);
  };
  const BlockSpec rows{{p.block, p.columns}, some_rows}, numbers{{p.block, groups}, some_rows};
  return {pallas_call(body, {.name = "restored_groups",
                             .out_type = {{p.rows, p.columns}, p.dtype},
                             .grid = {p.rows / p.block},
                             .in_specs = {rows, numbers},
                             .out_specs = {rows}}),
          {{{p.rows, p.columns}, from}, {{p.rows, groups}, f32}}};
}

UserKernel quantised_groups(const Rows& p, std::int64_t group) {
  const std::int64_t groups = p.columns / group;
  const auto body = [=](Ref gate, Ref up, Ref o, Ref scales) {
    const Value v = silu(gate[_].astype(f32)) * up[_].astype(f32);
    const Value parts = v.reshape({p.block, groups, group});
    const Value most = maximum(max(abs(parts), {.axis = 2, .keepdims = true}), 1e-8f);
    o[_] = (parts * (448.0f / most)).astype(f8e4m3).reshape({p.block, p.columns});
    scales[_] = (most / 448.0f).reshape({p.block, groups});
  };
  const ShapeDtype x{{p.rows, p.columns}, p.dtype};
  const BlockSpec rows{{p.block, p.columns}, some_rows}, numbers{{p.block, groups}, some_rows};
  return {pallas_call(body, {.name = "quantised_groups",
                             .out_type = {{x.shape, f8e4m3}, {{p.rows, groups}, f32}},
                             .grid = {p.rows / p.block},
                             .in_specs = {rows, rows},
                             .out_specs = {rows, numbers},
                             .compiler_params = {.approx_math = true}}),
          {x, x}};
}

UserKernel cache_append(const Rows& p, std::int64_t slots) {
  const std::int64_t d = p.columns, half = d / 2;
  const auto body = [=](Ref slot, Ref x, Ref cos, Ref sin, Ref, Ref cache) {
    const Value halves = x[_].astype(f32).reshape({p.block, 2, half});
    const Value low = take(halves, 0, 1), high = take(halves, 1, 1);
    const Value turned = stack({low * cos[_] - high * sin[_], high * cos[_] + low * sin[_]}, 1)
                             .reshape({p.block, d});
    store(cache.at({slot[_], _}), turned.astype(p.dtype));
  };
  const BlockSpec rows{{p.block, d}, some_rows}, angles{{p.block, half}, some_rows};
  return {
      pallas_call(
          body,
          {.name = "cache_append",
           .out_type = {{slots, d}, p.dtype},
           .grid = {p.rows / p.block},
           .in_specs = {{{p.block}, [](Index i) { return Indices{i}; }}, rows, angles, angles, {}},
           .out_specs = {{}},
           .input_output_aliases = {{4, 0}},
           .compiler_params = {.dimension_semantics = {parallel}, .allow_revisit = true}}),
      {{{p.rows}, i32},
       {{p.rows, d}, p.dtype},
       {{p.rows, half}, f32},
       {{p.rows, half}, f32},
       {{slots, d}, p.dtype}},
      {{.step = 7, .below = slots}},
      4};
}

}  // namespace palladium::user_kernels
