#include "palladium/ops/attention.hpp"

#include <cmath>
#include <numbers>

#include "palladium/palladium.hpp"

namespace palladium::ops {

Kernel attention(AttentionOptions options) {
  return pallas_call([=](ShapeDtype q, ShapeDtype k, ShapeDtype v) {
    const auto [batch, q_heads, q_length, q_depth] = q.shape.unpack<4>();
    const auto [k_batch, k_heads, k_length, k_depth] = k.shape.unpack<4>();
    const std::int64_t heads = q_heads, queries = q_length, d = q_depth, groups = k_heads,
                       keys = k_length, causal = options.causal;
    require_equal(batch, k_batch);
    require_equal(k, v);
    if (!q.dtype.is_float() || q.dtype.bytes() > 4 || q.dtype.bytes() < 2 || k.dtype != q.dtype ||
        k_depth != d || d % 16 != 0 || d > 128 || keys == 0 || groups == 0 || heads % groups != 0)
      throw CompileError("attention: q is " + to_string(q) + " and k " + to_string(k) +
                         "; f16, bf16 or f32 of one d, a multiple of 16 up to 128, and a number of "
                         "heads that k's divides are needed");
    if (causal && queries > keys)
      throw CompileError("attention: causal queries have as many keys at least; given " +
                         std::to_string(queries) + " and " + std::to_string(keys) + " keys");
    const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
    if (scale <= 0)
      throw CompileError("attention: a scale above 0 is needed, given " + std::to_string(scale));
    const bool small = q.dtype != f32;
    const std::int64_t rows = small ? 128 : 64, columns = options.block_keys > 0
                                                              ? options.block_keys
                                                          : small ? 128
                                                                  : 32;
    // From the last block of keys to the first: only what comes first asks which keys are seen.
    const std::int64_t before = keys - queries;
    const bool aligned = !causal || (before % columns == 0 && columns % rows == 0);
    const std::int64_t asking = aligned ? 1 : cdiv(rows - 1, columns) + 1;
    auto body = [=](Ref q, Ref k, Ref v, Ref o) {
      const auto factor = static_cast<float>(scale * std::numbers::log2e);
      const Value row = iota(i32, {rows, 1}, 0) + (program_id(2) * rows + before);
      const Value end =
          causal ? minimum((program_id(2) + 1) * rows + before, keys) : full({}, keys, i32);
      const Value turns = (end + (columns - 1)) / columns;
      auto turn = [&](Value i, Value top, Value total, Value sums) {
        const Value at = (turns - 1 - i) * columns;
        const Value column = iota(i32, {1, columns}, 1) + at;
        const Value seen = causal ? column <= minimum(row, keys - 1) : column < keys;
        Value s = dot(q[_], k[{ds(at, columns), _}], {.trans_b = true});
        s = where((i >= asking) | seen, s, -std::numeric_limits<float>::infinity());
        const Value next = maximum(top, max(s, {.axis = 1, .keepdims = true}) * factor);
        const Value p = exp2(s * factor - next), shrink = exp2(top - next);
        return carry(next, total * shrink + sum(p, {.axis = 1, .keepdims = true}),
                     sums * shrink + dot(p.astype(v.dtype()), v[{ds(at, columns), _}]));
      };
      auto [top, total, sums] = loop(0, turns, turn, full({rows, 1}, -1e30f, f32),
                                     zeros({rows, 1}, f32), zeros({rows, d}, f32));
      o[_] = (sums / total).astype(o.dtype());
    };
    const auto of_queries = [](Index b, Index h, Index i) { return Indices{b, h, i, 0}; };
    const auto of_keys = [=](Index b, Index h, Index) {
      return Indices{b, h / (heads / groups), 0, 0};
    };
    const BlockSpec some{{squeezed, squeezed, rows, d}, of_queries},
        all{{squeezed, squeezed, cdiv(keys, columns) * columns, d}, of_keys, {.fill = 0}};
    return Call{body,
                {.name = "attention",
                 .out_type = q,
                 .grid = {batch, heads, cdiv(queries, rows)},
                 .in_specs = {some, all, all},
                 .out_specs = {some},
                 .compiler_params = {.approx_math = small}}};
  });
}

}  // namespace palladium::ops
