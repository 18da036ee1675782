#include "palladium/ops/attention.hpp"

#include <cmath>
#include <numbers>

#include "palladium/palladium.hpp"
#include "runtime/ops/arguments.hpp"

namespace palladium::ops {

Kernel attention(AttentionOptions options) {
  return pallas_call([=](ShapeDtype q, ShapeDtype k, ShapeDtype v) {
    check_attention(q, k, v, options);
    const std::int64_t heads = q.shape[1], d = q.shape[3], groups = k.shape[1],
                       causal = options.causal, share = groups ? heads / groups : 1,
                       rows = q.dtype == f32 || d <= 64 ? 64 : 128,
                       columns = keys_of_block(q.dtype, d, options);
    const Dim queries = q.shape[2], keys = k.shape[2], before = keys - queries;
    const Dim blocks = cdiv(queries, rows);
    const Length every_key = length_of(keys, columns);
    const auto longest = [=](auto i) { return causal ? size_of(blocks) - 1 - i : i + 0; };
    // From the last block of keys to the first: only what comes first asks which keys are seen.
    const std::int64_t asking = causal ? blocks_on_diagonal(before, rows, columns) : 1;
    const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
      const auto factor = static_cast<float>(scale_of(d, options) * std::numbers::log2e);
      const Value all_keys = size_of(keys),
                  first = longest(Value(program_id(2))) * rows + size_of(before),
                  row = iota(i32, {rows, 1}, 0) + first;
      const Value end = causal ? minimum(first + rows, all_keys) : full({}, all_keys, i32);
      const Value iterations = (end + (columns - 1)) / columns;
      const auto iteration = [&](Value i, Value top, Value total, Value sums) {
        const Value at = (iterations - 1 - i) * columns, column = iota(i32, {1, columns}, 1) + at;
        const Value seen = causal ? column <= minimum(row, all_keys - 1) : column < all_keys;
        Value s = dot(q[_], k[{ds(at, columns), _}], {.trans_b = true});
        s = where((i >= asking) | seen, s, -HUGE_VALF);
        const Value next = followed(top, max(s, {.axis = 1, .keepdims = true}) * factor);
        const Value p = exp2(s * factor - next), shrink = exp2(top - next);
        return carry(next, total * shrink + sum(p, {.axis = 1, .keepdims = true}),
                     sums * shrink + dot(p.astype(v.dtype()), v[{ds(at, columns), _}]));
      };
      if (every_key.most == 0) return void(o[_] = zeros(o.shape(), o.dtype()));
      const auto [top, total, sums] = loop(0, iterations, iteration, full({rows, 1}, -1e30f, f32),
                                           zeros({rows, 1}, f32), zeros({rows, d}, f32));
      o[_] = (sums / total).astype(o.dtype());
    };
    const auto of_queries = [=](Index b, Index h, Index i) { return Indices{b, h, longest(i), 0}; };
    const auto of_keys = [=](Index b, Index h, Index) { return Indices{b, h / share, 0, 0}; };
    const BlockSpec some{{squeezed, squeezed, rows, d}, of_queries},
        all{{squeezed, squeezed, every_key.all, d}, of_keys, {.fill = 0}};
    return Call{body,
                {.name = "attention",
                 .out_type = q,
                 .grid = {q.shape[0], heads, blocks},
                 .in_specs = {some, all, all},
                 .out_specs = {some},
                 .compiler_params = params_of_attention(q.dtype, d, every_key.most, options)}};
  });
}

}  // namespace palladium::ops
