#include "palladium/ops/attention.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "palladium/palladium.hpp"

namespace palladium::ops {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw CompileError("attention: " + what);
}

void check(const ShapeDtype& q, const ShapeDtype& k, const AttentionOptions& options) {
  const auto [batch, heads, queries, d] = q.shape.unpack<4>();
  const auto [k_batch, groups, keys, k_d] = k.shape.unpack<4>();
  const std::string given = "q is " + to_string(q) + " and k " + to_string(k);
  require(q.dtype == f16 || q.dtype == bf16 || q.dtype == f32,
          std::string("q is of ") + q.dtype.name() + "; f16, bf16 or f32 is needed");
  require(k.dtype == q.dtype && k_d == d && d > 0 && d <= 128 && d.value() % 16 == 0,
          given + "; one dtype, and one d, a multiple of 16 up to 128, are needed");
  require(keys > 0 && groups > 0 && heads.value() % groups.value() == 0,
          given + "; keys, and a number of heads that k's divides, are needed");
  require(!options.causal || queries <= keys,
          given + "; causal queries have as many keys at least");
  if (const std::optional<double> scale = options.scale)
    require(*scale > 0 && std::isfinite(*scale),
            "a scale above 0 is needed, given " + std::to_string(*scale));
  require(options.block_keys >= 0 && options.block_keys <= 256 && options.block_keys % 16 == 0,
          "block_keys is " + std::to_string(options.block_keys) +
              "; a multiple of 16 up to 256, or 0, is needed");
}

}  // namespace

Kernel attention(AttentionOptions options) {
  return pallas_call([=](ShapeDtype q, ShapeDtype k, ShapeDtype v) {
    require_equal(q.shape.unpack<4>()[0], k.shape.unpack<4>()[0]);
    require_equal(k, v);
    check(q, k, options);
    const Dim batch = q.shape[0];
    const std::int64_t heads = q.shape[1], queries = q.shape[2], d = q.shape[3],
                       groups = k.shape[1], keys = k.shape[2], causal = options.causal;
    const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
    const bool small = q.dtype != f32;
    const std::int64_t rows = small ? 128 : 64, usual = small ? 128 : 32,
                       columns = options.block_keys > 0 ? options.block_keys : usual;
    // From the last block of keys to the first: only what comes first asks which keys are seen.
    const std::int64_t before = keys - queries;
    const bool aligned = !causal || (before % columns == 0 && columns % rows == 0);
    const std::int64_t asking = aligned ? 1 : cdiv(rows - 1, columns) + 1;
    const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
      const auto factor = static_cast<float>(scale * std::numbers::log2e);
      const Value row = iota(i32, {rows, 1}, 0) + (program_id(2) * rows + before);
      const Value end =
          causal ? minimum((program_id(2) + 1) * rows + before, keys) : full({}, keys, i32);
      const Value turns = (end + (columns - 1)) / columns;
      const auto turn = [&](Value i, Value top, Value total, Value sums) {
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
      const auto [top, total, sums] = loop(0, turns, turn, full({rows, 1}, -1e30f, f32),
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
