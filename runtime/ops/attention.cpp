#include "palladium/ops/attention.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "palladium/palladium.hpp"
#include "runtime/ops/arguments.hpp"

namespace palladium::ops {

Kernel attention(AttentionOptions options) {
  return pallas_call([=](ShapeDtype q, ShapeDtype k, ShapeDtype v) {
    check_attention(q, k, v, options);
    const std::int64_t heads = q.shape[1], d = q.shape[3], groups = k.shape[1],
                       causal = options.causal;
    const Dim queries = q.shape[2], keys = k.shape[2], before = keys - queries;
    const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
    const std::int64_t rows = q.dtype == f32 ? 64 : 128,
                       columns = keys_of_block(q.dtype, d, options);
    // One kernel serves all lengths up to a power of two.
    constexpr std::int64_t shortest = 4096;
    const std::int64_t most = keys.is_static() ? keys.value() : size_class(keys, shortest),
                       padded = align_to(most, columns);
    const auto longest = [=](auto i) {
      return causal ? size_of(cdiv(queries, rows)) - 1 - i : i + 0;
    };
    // From the last block of keys to the first: only what comes first asks which keys are seen.
    const bool aligned =
        !causal || (before.is_static() && before.value() % columns == 0 && columns % rows == 0);
    const std::int64_t asking = aligned ? 1 : cdiv(rows - 1, columns) + 1;
    const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
      const auto factor = static_cast<float>(scale * std::numbers::log2e);
      const Value all_keys = size_of(keys),
                  first = longest(Value(program_id(2))) * rows + size_of(before),
                  row = iota(i32, {rows, 1}, 0) + first;
      const Value end = causal ? minimum(first + rows, all_keys) : full({}, all_keys, i32);
      const Value iterations = (end + (columns - 1)) / columns;
      const auto iteration = [&](Value i, Value top, Value total, Value sums) {
        const Value at = (iterations - 1 - i) * columns;
        const Value column = iota(i32, {1, columns}, 1) + at;
        const Value seen = causal ? column <= minimum(row, all_keys - 1) : column < all_keys;
        Value s = dot(q[_], k[{ds(at, columns), _}], {.trans_b = true});
        s = where((i >= asking) | seen, s, -HUGE_VALF);
        const Value next = maximum(top, max(s, {.axis = 1, .keepdims = true}) * factor);
        const Value p = exp2(s * factor - next), shrink = exp2(top - next);
        return carry(next, total * shrink + sum(p, {.axis = 1, .keepdims = true}),
                     sums * shrink + dot(p.astype(v.dtype()), v[{ds(at, columns), _}]));
      };
      if (most == 0) return void(o[_] = zeros(o.shape(), o.dtype()));
      const auto [top, total, sums] = loop(0, iterations, iteration, full({rows, 1}, -1e30f, f32),
                                           zeros({rows, 1}, f32), zeros({rows, d}, f32));
      o[_] = (sums / total).astype(o.dtype());
    };
    const auto of_queries = [=](Index b, Index h, Index i) { return Indices{b, h, longest(i), 0}; };
    const std::int64_t share = groups ? heads / groups : 1;
    const BlockDim each_key =
        keys.is_static() ? BlockDim(padded) : bounded(keys, std::max<std::int64_t>(padded, 1));
    const auto of_keys = [=](Index b, Index h, Index) { return Indices{b, h / share, 0, 0}; };
    const BlockSpec some{{squeezed, squeezed, rows, d}, of_queries},
        all{{squeezed, squeezed, each_key, d}, of_keys, {.fill = 0}};
    return Call{body,
                {.name = "attention",
                 .out_type = q,
                 .grid = {q.shape[0], heads, cdiv(queries, rows)},
                 .in_specs = {some, all, all},
                 .out_specs = {some},
                 .compiler_params = params_of_attention(q.dtype, d, most, options)}};
  });
}

}  // namespace palladium::ops
