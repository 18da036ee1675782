// What stands between the products of models: each reads rows, folds them or not, and writes rows.
#include <cmath>

#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {
namespace {

const auto by_row = ReduceOptions{.axis = 1, .keepdims = true};
const auto some_rows = [](Index i) { return Indices{i, 0}; };
const auto first_row = [](Index) { return Indices{0, 0}; };

ShapeDtype matrix(const Rows& p) { return {{p.rows, p.columns}, p.dtype}; }
BlockSpec rows_of(const Rows& p) { return {{p.block, p.columns}, some_rows}; }
BlockSpec numbers_of(const Rows& p) { return {{p.block, 1}, some_rows}; }
Value mean_of(const Value& x) { return mean(x, by_row); }

// Blocks of rows that are computed one by one; what is `shared` all read.
UserKernel by_blocks(const char* name, const Rows& p, auto body, std::vector<ShapeDtype> inputs,
                     std::vector<BlockSpec> in, std::vector<ShapeDtype> outputs,
                     std::vector<BlockSpec> out) {
  return {pallas_call(body, {.name = name,
                             .out_type = std::move(outputs),
                             .grid = {p.rows / p.block},
                             .in_specs = std::move(in),
                             .out_specs = std::move(out)}),
          std::move(inputs)};
}

}  // namespace

UserKernel layer_norm(const Rows& p, const Dim& columns) {
  const std::int64_t most = p.columns;
  const auto body = [=](Ref x, Ref weight, Ref bias, Ref o) {
    const bool is_whole = columns.is_static() && columns.value() == most;
    const Value n = dim_as_value(columns).astype(f32);
    const auto inside = [&](const Value& v) {
      if (is_whole) return v;
      return where(iota(i32, {1, most}, 1) < dim_as_value(columns), v, 0.0f);
    };
    const Value v = inside(x[_].astype(f32));
    const Value centred = inside(v - sum(v, by_row) / n);
    const Value scale = rsqrt(sum(centred * centred, by_row) / n + 1e-5f);
    o[_] = (centred * scale * weight[_].astype(f32) + bias[_].astype(f32)).astype(p.dtype);
  };
  const ShapeDtype x{{p.rows, columns}, p.dtype}, row{{1, columns}, p.dtype};
  const BlockSpec rows = rows_of(p), one{{1, most}, first_row};
  return by_blocks("layer_norm", p, body, {x, row, row}, {rows, one, one}, {x}, {rows});
}

UserKernel rms_norm_residual(const Rows& p) {
  const auto body = [=](Ref x, Ref residual, Ref weight, Ref o, Ref next) {
    const Value v = x[_].astype(f32) + residual[_].astype(f32);
    next[_] = v.astype(p.dtype);
    o[_] = (v * rsqrt(mean_of(v * v) + 1e-6f) * weight[_].astype(f32)).astype(p.dtype);
  };
  const ShapeDtype x = matrix(p), row{{1, p.columns}, p.dtype};
  const BlockSpec rows = rows_of(p), one{{1, p.columns}, first_row};
  return by_blocks("rms_norm_residual", p, body, {x, x, row}, {rows, rows, one}, {x, x},
                   {rows, rows});
}

UserKernel bias_gelu(const Rows& p) {
  const auto body = [=](Ref x, Ref bias, Ref o, Ref before) {
    const Value v = x[_].astype(f32) + bias[_].astype(f32);
    before[_] = v.astype(p.dtype);
    o[_] = gelu(v).astype(p.dtype);
  };
  const ShapeDtype x = matrix(p), row{{1, p.columns}, f32};
  const BlockSpec rows = rows_of(p), one{{1, p.columns}, first_row};
  return by_blocks("bias_gelu", p, body, {x, row}, {rows, one}, {x, x}, {rows, rows});
}

UserKernel softmax_backward(const Rows& p) {
  const auto body = [=](Ref y, Ref dy, Ref dx) {
    const Value v = y[_].astype(f32), g = dy[_].astype(f32);
    dx[_] = ((g - sum(v * g, by_row)) * v).astype(p.dtype);
  };
  const ShapeDtype x = matrix(p);
  const BlockSpec rows = rows_of(p);
  return by_blocks("softmax_backward", p, body, {x, x}, {rows, rows}, {x}, {rows});
}

UserKernel scaled_and_summed(const Rows& p, std::int64_t programs) {
  const std::int64_t steps = p.rows / programs / p.block;
  const auto body = [=](Ref x, Ref y, Ref o) {
    when(program_id(1) == 0, [&] { o[_] = zeros({1, p.columns}, f32); });
    const Value v = x[_].astype(f32);
    y[_] = (v * 2.0f).astype(f16);
    o[_] += sum(v, {.axis = 0, .keepdims = true});
  };
  const BlockSpec rows{{p.block, p.columns}, [=](Index i, Index j) {
                         return Indices{i * steps + j, 0};
                       }};
  const BlockSpec one{{1, p.columns}, [](Index i, Index) { return Indices{i, 0}; }};
  return {pallas_call(body, {.name = "scaled_and_summed",
                             .out_type = {{{p.rows, p.columns}, f16}, {{programs, p.columns}, f32}},
                             .grid = {programs, steps},
                             .in_specs = {rows},
                             .out_specs = {rows, one},
                             .compiler_params = {.dimension_semantics = {parallel, sequential}}}),
          {matrix(p)}};
}

UserKernel transposed(const Rows& p) {
  const std::int64_t b = p.block;
  const auto body = [=](Ref x, Ref o) { o[_] = transpose(x[_]); };
  return {pallas_call(body, {.name = "transposed",
                             .out_type = {{p.columns, p.rows}, p.dtype},
                             .grid = {p.rows / b, p.columns / b},
                             .in_specs = {{{b, b},
                                           [](Index i, Index j) {
                                             return Indices{i, j};
                                           }}},
                             .out_specs = {{{b, b},
                                            [](Index i, Index j) {
                                              return Indices{j, i};
                                            }}}}),
          {matrix(p)}};
}

UserKernel group_norm(const Rows& p, std::int64_t groups) {
  // x: [images, groups, channels of a group, places]
  const std::int64_t of_group = p.block, images = p.rows / groups / of_group;
  const auto body = [=](Ref x, Ref weight, Ref bias, Ref o) {
    const Value v = x[_].astype(f32);
    const auto all = ReduceOptions{.axis = {0, 1}, .keepdims = true};
    const Value centred = v - mean(v, all);
    const Value scale = rsqrt(mean(centred * centred, all) + 1e-5f);
    o[_] = (centred * scale * weight[_] + bias[_]).astype(p.dtype);
  };
  const BlockSpec block{{squeezed, squeezed, of_group, p.columns},
                        [](Index i, Index g) {
                          return Indices{i, g, 0, 0};
                        }},
      one{{squeezed, of_group, 1}, [](Index, Index g) {
            return Indices{g, 0, 0};
          }};
  const ShapeDtype x{{images, groups, of_group, p.columns}, p.dtype}, w{{groups, of_group, 1}, f32};
  return {pallas_call(body, {.name = "group_norm",
                             .out_type = x,
                             .grid = {images, groups},
                             .in_specs = {block, one, one},
                             .out_specs = {block}}),
          {x, w, w}};
}

UserKernel dropout(const Rows& p) {
  const auto body = [=](Ref seed, Ref x, Ref o, Ref kept) {
    const Shape shape{p.block, p.columns};
    const Value row = iota(i32, shape, 0) + program_id(0) * static_cast<int>(p.block);
    const auto [bits, more, other, last] =
        philox(seed[{0}], row * static_cast<int>(p.columns) + iota(i32, shape, 1));
    const Value keep = bits > 0x1999999au;
    o[_] = where(keep, x[_].astype(f32) * (1 / 0.9f), 0.0f).astype(p.dtype);
    kept[_] = keep.astype(u8);
  };
  const ShapeDtype x = matrix(p);
  const BlockSpec rows = rows_of(p);
  return by_blocks("dropout", p, body, {{{1}, i32}, x},
                   {{{1}, [](Index) { return Indices{0}; }}, rows}, {x, {x.shape, u8}},
                   {rows, rows});
}

UserKernel quantised_rows(const Rows& p, DType to) {
  const auto body = [=](Ref x, Ref o, Ref scales) {
    const Value v = x[_].astype(f32);
    const float most = to == i8 ? 127.0f : 448.0f;
    const Value scale = maximum(max(abs(v), by_row), 1e-8f) / most;
    const Value scaled = v / scale;
    o[_] = (to == i8 ? round(scaled) : scaled).astype(to);
    scales[_] = scale;
  };
  const ShapeDtype x = matrix(p);
  return by_blocks("quantised_rows", p, body, {x}, {rows_of(p)},
                   {{x.shape, to}, {{p.rows, 1}, f32}}, {rows_of(p), numbers_of(p)});
}

UserKernel restored_rows(const Rows& p, DType from) {
  const auto body = [=](Ref x, Ref scales, Ref o) {
    o[_] = (x[_].astype(f32) * scales[_]).astype(p.dtype);
  };
  const ShapeDtype x = matrix(p);
  return by_blocks("restored_rows", p, body, {{x.shape, from}, {{p.rows, 1}, f32}},
                   {rows_of(p), numbers_of(p)}, {x}, {rows_of(p)});
}

UserKernel embedding(const Rows& p, std::int64_t words) {
  const auto body = [=](Ref, Ref word, Ref place, Ref o) {
    o[_] = (word[_].astype(f32) + place[_].astype(f32)).astype(p.dtype);
  };
  const BlockSpec by_word{{1, p.columns},
                          [](Index i, Ref ids) {
                            return Indices{ids[i], 0};
                          }},
      by_place{{1, p.columns}, [](Index i, Ref) {
                 return Indices{i, 0};
               }};
  return {pallas_call(body, {.name = "embedding",
                             .out_type = matrix(p),
                             .num_scalar_prefetch = 1,
                             .grid = {p.rows},
                             .in_specs = {by_word, by_place},
                             .out_specs = {by_place}}),
          {{{p.rows}, i32}, {{words, p.columns}, p.dtype}, matrix(p)},
          {{.step = 7919, .below = words}}};
}

UserKernel rotary(const Rows& p, Rotary kind) {
  const std::int64_t d = p.columns, half = d / 2;
  const auto body = [=](Ref x, Ref cos, Ref sin, Ref o) {
    const Value c = cos[_].astype(f32), s = sin[_].astype(f32);
    const auto halves = [&](const Value& a, const Value& b) {
      return carry((a * c - b * s).astype(p.dtype), (b * c + a * s).astype(p.dtype));
    };
    if (kind == Rotary::interleaved) {
      const Value pairs = x[_].astype(f32).reshape({p.block, half, 2});
      const auto part = [&](std::int64_t i) {
        return pairs[{_, _, ds(i, 1)}].reshape({p.block, half});
      };
      const auto [a, b] = halves(part(0), part(1));
      o[_] = stack({a, b}, 2).reshape({p.block, d});
    } else if (kind == Rotary::concatenated) {
      const Value v = x[_].astype(f32);
      const auto [a, b] = halves(v[{_, ds(0, half)}], v[{_, ds(half, half)}]);
      o[_] = concatenate({a, b}, 1);
    } else {
      const auto [a, b] =
          halves(x[{_, ds(0, half)}].astype(f32), x[{_, ds(half, half)}].astype(f32));
      o[{_, ds(0, half)}] = a;
      o[{_, ds(half, half)}] = b;
    }
  };
  const ShapeDtype x = matrix(p), table{{p.rows, half}, p.dtype};
  const BlockSpec rows = rows_of(p), angles{{p.block, half}, some_rows};
  return by_blocks("rotary", p, body, {x, table, table}, {rows, angles, angles}, {x}, {rows});
}

UserKernel gated(const Rows& p) {
  const std::int64_t n = p.columns;
  const auto body = [=](Ref x, Ref o) {
    o[_] = (silu(x[{_, ds(0, n)}].astype(f32)) * x[{_, ds(n, n)}].astype(f32)).astype(p.dtype);
  };
  return by_blocks("gated", p, body, {{{p.rows, 2 * n}, p.dtype}}, {{{p.block, 2 * n}, some_rows}},
                   {matrix(p)}, {rows_of(p)});
}

UserKernel adam(const Rows& p) {
  const auto body = [=](Ref weights, Ref gradient, Ref first, Ref second, Ref o, Ref rounded,
                        Ref next_first, Ref next_second) {
    const Value g = gradient[_].astype(f32);
    const Value m = first[_] * 0.9f + g * 0.1f, v = second[_] * 0.999f + g * g * 0.001f;
    const Value next = weights[_] - m / (sqrt(v) + 1e-8f) * 1e-3f;
    o[_] = next;
    rounded[_] = next.astype(p.dtype);
    next_first[_] = m;
    next_second[_] = v;
  };
  const ShapeDtype x = matrix(p), f{x.shape, f32};
  const BlockSpec rows = rows_of(p);
  return by_blocks("adam", p, body, {f, x, f, f}, {rows, rows, rows, rows}, {f, x, f, f},
                   {rows, rows, rows, rows});
}

UserKernel label_gradient(const Rows& p) {
  const auto body = [=](Ref x, Ref labels, Ref dx, Ref loss) {
    const Value v = x[_].astype(f32);
    const Value top = max(v, by_row), e = exp(v - top), total = sum(e, by_row);
    const Value here = iota(i32, {p.block, p.columns}, 1) == labels[_];
    dx[_] = (e / total - where(here, 1.0f, 0.0f)).astype(p.dtype);
    loss[_] = log(total) + top - sum(where(here, v, 0.0f), by_row);
  };
  const ShapeDtype x = matrix(p);
  return by_blocks("label_gradient", p, body, {x, {{p.rows, 1}, i32}}, {rows_of(p), numbers_of(p)},
                   {x, {{p.rows, 1}, f32}}, {rows_of(p), numbers_of(p)});
}

UserKernel column_sums(const Rows& p, std::int64_t programs) {
  const std::int64_t steps = p.rows / programs / p.block;
  const auto body = [=](Ref x, Ref o) {
    const auto add = [&](Index i, Value total) {
      return total + sum(x[{ds(i * p.block, p.block), _}].astype(f32), {.axis = 0});
    };
    o[{0, _}] = loop(0, steps, add, zeros({p.columns}, f32));
  };
  return {pallas_call(body, {.name = "column_sums",
                             .out_type = {{programs, p.columns}, f32},
                             .grid = {programs},
                             .in_specs = {{{steps * p.block, p.columns}, some_rows}},
                             .out_specs = {{{1, p.columns}, some_rows}}}),
          {matrix(p)}};
}

}  // namespace palladium::user_kernels
