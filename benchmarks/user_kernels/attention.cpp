#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {
namespace {

constexpr auto log2e = static_cast<float>(std::numbers::log2e);

float scale_of(const Attention& p) { return 1 / std::sqrt(static_cast<float>(p.d)); }

ShapeDtype queries_of(const Attention& p) { return {{p.batch, p.heads, p.queries, p.d}, bf16}; }
ShapeDtype keys_of(const Attention& p) { return {{p.batch, p.heads, p.keys, p.d}, bf16}; }
/// A number for each query: of the logarithms of sums, of sums of products with the result.
ShapeDtype numbers_of(const Attention& p) { return {{p.batch, p.heads, p.queries}, f32}; }

const auto some_rows = [](Index b, Index h, Index i) { return Indices{b, h, i, 0}; };
const auto all_rows = [](Index b, Index h, Index) { return Indices{b, h, 0, 0}; };
const auto some_numbers = [](Index b, Index h, Index i) { return Indices{b, h, i}; };
const auto all_numbers = [](Index b, Index h, Index) { return Indices{b, h, 0}; };

// Pairs of the two halves of a row are turned by an angle each.
Value turned(const Value& x, const Value& cos, const Value& sin) {
  const std::int64_t half = x.shape()[1] / 2;
  const Value a = x.astype(f32)[{_, ds(0, half)}], b = x.astype(f32)[{_, ds(half, half)}];
  return concatenate({a * cos - b * sin, b * cos + a * sin}, 1).astype(bf16);
}

Value normed(const Value& x) {
  const Value v = x.astype(f32);
  return (v * rsqrt(mean(v * v, {.axis = 1, .keepdims = true}) + 1e-6f)).astype(bf16);
}

/// One block of keys: the online softmax of FlashAttention.
struct Running {
  Value top, total, sums;
};
// `weights`: what values are multiplied by, each key's.
Running with_block(const Running& r, const Value& scores, const Value& values,
                   const std::function<Value(const Value&)>& weights = {}) {
  const Value next = maximum(r.top, max(scores, {.axis = 1, .keepdims = true}));
  const Value p = exp2(scores - next), shrink = exp2(r.top - next);
  return {next, r.total * shrink + sum(p, {.axis = 1, .keepdims = true}),
          r.sums * shrink + dot((weights ? weights(p) : p).astype(values.dtype()), values)};
}
Running at_first(std::int64_t rows, std::int64_t d) {
  return {full({rows, 1}, -1e30f, f32), zeros({rows, 1}, f32), zeros({rows, d}, f32)};
}

}  // namespace

UserKernel attention(const Attention& p) {
  const std::int64_t rows = p.rows, columns = p.columns, d = p.d;
  const bool is_scaled = p.stored.is_integer();
  const DType asking = is_scaled ? bf16 : p.stored;               // of queries in memory
  const DType multiplied = p.stored == f8e4m3 ? p.stored : bf16;  // by products
  const auto body = [=](Ref q, Ref k, Ref v, Refs more, Ref o) {
    const Value first = program_id(2) * rows;
    const Value row = iota(i32, {rows, 1}, 0) + first;
    const Value begin =
        p.window > 0 ? maximum(first - static_cast<int>(p.window), 0) / static_cast<int>(columns)
                     : full({}, 0, i32);
    const Value end =
        p.causal || p.window > 0 ? cdiv(first + rows, columns) : full({}, p.keys / columns, i32);
    // Queries or keys as they are multiplied.
    const auto made = [&](const Value& x, const Slice& which) {
      if (p.normed) return normed(x);
      if (p.rotary) return turned(x, more[0][{which, _}], more[1][{which, _}]);
      return x.astype(multiplied);
    };
    const Value asked = made(q[_], ds(first, rows));
    const auto iteration = [&](Value i, Running r) {
      const Slice now = ds(i * columns, columns);
      Value s = dot(asked, made(k[{now, _}], now), {.trans_b = true}) * scale_of(p);
      const auto scaled = [&](const Value& x, int by) { return x * more[by][{0, now}]; };
      if (is_scaled) s = scaled(s, 0);
      if (p.bias) s = s + more[0][{_, now}].astype(f32);
      if (p.soft_cap > 0) s = p.soft_cap * tanh(s / p.soft_cap);
      const Value column = iota(i32, {1, columns}, 1) + i * columns;
      if (p.causal || p.window > 0) {
        Value seen = column <= row;
        if (p.window > 0) seen = seen & (row - column < static_cast<int>(p.window));
        s = where(seen, s, -1e30f);
      }
      const auto weights = [&](const Value& x) { return is_scaled ? scaled(x, 1) : x; };
      return with_block(r, s * log2e, v[{now, _}].astype(multiplied), weights);
    };
    const Running r = loop(begin, end, iteration, at_first(rows, d));
    o[_] = (r.sums / r.total).astype(bf16);
  };
  const BlockSpec some{{squeezed, squeezed, rows, d}, some_rows},
      all{{squeezed, squeezed, p.keys, d}, all_rows};
  std::vector<BlockSpec> in{some, all, all};
  const ShapeDtype queries{queries_of(p).shape, asking}, keys{keys_of(p).shape, p.stored};
  std::vector<ShapeDtype> inputs{queries, keys, keys};
  if (p.bias) {
    in.push_back({{squeezed, rows, p.keys}, [](Index, Index h, Index i) {
                    return Indices{h, i, 0};
                  }});
    inputs.push_back({{p.heads, p.queries, p.keys}, bf16});
  }
  for (int table = 0; table < (p.rotary ? 2 : 0); ++table) {
    in.emplace_back();
    inputs.push_back({{p.keys, d / 2}, f32});
  }
  for (int of = 0; of < (is_scaled ? 2 : 0); ++of) {
    in.push_back({{squeezed, 1, p.keys}, [](Index b, Index h, Index) { return Indices{b, h, 0}; }});
    inputs.push_back({{p.batch, p.heads, p.keys}, f32});
  }
  CompilerParams params = p.params;
  params.approx_math = true;
  return {pallas_call(body, {.name = "attention",
                             .out_type = queries_of(p),
                             .grid = {p.batch, p.heads, p.queries / rows},
                             .in_specs = in,
                             .out_specs = {some},
                             .compiler_params = params}),
          inputs};
}

UserKernel attention_of_parts(const Attention& p, std::int64_t turned) {
  const std::int64_t rows = p.rows, columns = p.columns, d = p.d;
  const float scale = log2e / std::sqrt(static_cast<float>(d + turned));
  const auto body = [=](Ref q, Ref q_turned, Ref k, Ref k_turned, Ref v, Ref o) {
    const Value asked = q[_], asked_turned = q_turned[_];
    const auto iteration = [&](Value i, Running r) {
      const Slice now = ds(i * columns, columns);
      const Value s = dot(asked, k[{now, _}], {.trans_b = true}) +
                      dot(asked_turned, k_turned[{now, _}], {.trans_b = true});
      return with_block(r, s * scale, v[{now, _}]);
    };
    const Running r = loop(0, p.keys / columns, iteration, at_first(rows, d));
    o[_] = (r.sums / r.total).astype(bf16);
  };
  const BlockSpec some{{squeezed, squeezed, rows, d}, some_rows},
      some_turned{{squeezed, squeezed, rows, turned}, some_rows},
      all{{squeezed, squeezed, p.keys, d}, all_rows},
      shared{{squeezed, p.keys, turned}, [](Index b, Index, Index) {
               return Indices{b, 0, 0};
             }};
  return {pallas_call(body, {.name = "attention_of_parts",
                             .out_type = queries_of(p),
                             .grid = {p.batch, p.heads, p.queries / rows},
                             .in_specs = {some, some_turned, all, shared, all},
                             .out_specs = {some},
                             .compiler_params = {.approx_math = true}}),
          {queries_of(p),
           {{p.batch, p.heads, p.queries, turned}, bf16},
           keys_of(p),
           {{p.batch, p.keys, turned}, bf16},
           keys_of(p)}};
}

UserKernel attention_by_loop(const Attention& p) {
  const std::int64_t rows = p.rows, columns = p.columns;
  const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
    const auto queries = [&](Index block) {
      const Value asked = q[{ds(block * rows, rows), _}];
      const auto iteration = [&](Value i, Running r) {
        const Slice now = ds(i * columns, columns);
        Value s = dot(asked, k[{now, _}], {.trans_b = true}) * (scale_of(p) * log2e);
        if (p.causal) {
          const Value row = iota(i32, {rows, 1}, 0) + block * rows;
          s = where(iota(i32, {1, columns}, 1) + i * columns <= row, s, -1e30f);
        }
        return with_block(r, s, v[{now, _}]);
      };
      const Value end = p.causal ? cdiv((block + 1) * rows, columns) : Value(p.keys / columns);
      const Running r = loop(0, end, iteration, at_first(rows, p.d));
      o[{ds(block * rows, rows), _}] = (r.sums / r.total).astype(bf16);
    };
    loop(0, p.queries / rows, queries);
  };
  const auto head = [](Index b, Index h) { return Indices{b, h, 0, 0}; };
  const BlockSpec q{{squeezed, squeezed, p.queries, p.d}, head},
      k{{squeezed, squeezed, p.keys, p.d}, head};
  return {pallas_call(body, {.name = "attention_by_loop",
                             .out_type = queries_of(p),
                             .grid = {p.batch, p.heads},
                             .in_specs = {q, k, k},
                             .out_specs = {q},
                             .compiler_params = {.approx_math = true}}),
          {queries_of(p), keys_of(p), keys_of(p)}};
}

UserKernel attention_of_lengths(const Attention& p) {
  const std::int64_t rows = p.rows, columns = p.columns, d = p.d, all = p.batch * p.queries;
  // starts: [batch + 1]; a program has a block of queries of one sequence, if it has so many.
  const auto body = [=](Ref starts, Ref q, Ref k, Ref v, Ref o) {
    const Value start = starts[program_id(0)], stop = starts[program_id(0) + 1];
    const Value first = start + program_id(2) * rows, head = program_id(1);
    when(first < stop, [&] {
      const Value row = iota(i32, {rows, 1}, 0) + first;
      const Value asked = load(q.at({head, ds(first, rows), _}), {.mask = row < stop, .other = 0});
      const auto iteration = [&](Value i, Running r) {
        const Value at = start + i * columns;
        const Value key = iota(i32, {columns, 1}, 0) + at, column = iota(i32, {1, columns}, 1) + at;
        const auto block = [&](const Ref& from) {
          return load(from.at({head, ds(at, columns), _}), {.mask = key < stop, .other = 0});
        };
        const Value s = dot(asked, block(k), {.trans_b = true}) * (scale_of(p) * log2e);
        return with_block(r, where((column <= row) & (column < stop), s, -1e30f), block(v));
      };
      const Value blocks = cdiv(minimum(first + rows, stop) - start, columns);
      const Running r = loop(0, blocks, iteration, at_first(rows, d));
      store(o.at({head, ds(first, rows), _}), (r.sums / r.total).astype(bf16),
            {.mask = row < stop});
    });
  };
  const ShapeDtype x{{p.heads, all, d}, bf16};
  return {
      pallas_call(body, {.name = "attention_of_lengths",
                         .out_type = x,
                         .num_scalar_prefetch = 1,
                         .grid = {p.batch, p.heads, p.queries / rows},
                         .in_specs = {BlockSpec{}, BlockSpec{}, BlockSpec{}},
                         .out_specs = {BlockSpec{}},
                         .compiler_params = {.dimension_semantics = {parallel, parallel, parallel},
                                             .approx_math = true,
                                             .allow_revisit = true}}),
      {{{p.batch + 1}, i32}, x, x, x},
      {{.step = p.queries, .below = all + 1}}};
}

UserKernel paged_attention(const Attention& p, std::int64_t pages) {
  const std::int64_t rows = p.rows, page = p.columns, d = p.d, parts = p.keys / page;
  // table: [batch, parts], lengths: [batch]; pools: [pages, heads, page, d].
  const auto body = [=](Ref, Ref lengths, Ref q, Ref k, Ref v, Ref o, Ref top, Ref total,
                        Ref sums) {
    const Value part = program_id(2), length = lengths[program_id(0)];
    when(part == 0, [&] {
      const Running start = at_first(rows, d);
      top[_] = start.top;
      total[_] = start.total;
      sums[_] = start.sums;
    });
    when(part * page < length, [&] {
      const Value column = iota(i32, {1, page}, 1) + part * page;
      const Value s = dot(q[_], k[_], {.trans_b = true}) * (scale_of(p) * log2e);
      const Running r =
          with_block({top[_], total[_], sums[_]}, where(column < length, s, -1e30f), v[_]);
      top[_] = r.top;
      total[_] = r.total;
      sums[_] = r.sums;
    });
    when(part == parts - 1, [&] { o[_] = (sums[_] / total[_]).astype(bf16); });
  };
  const BlockSpec some{{squeezed, squeezed, rows, d},
                       [](Index b, Index h, Index, Ref, Ref) {
                         return Indices{b, h, 0, 0};
                       }},
      pool{{squeezed, squeezed, page, d}, [](Index b, Index h, Index i, Ref table, Ref) {
             return Indices{table[{b, i}], h, 0, 0};
           }};
  const ShapeDtype x{{p.batch, p.heads, rows, d}, bf16}, stored{{pages, p.heads, page, d}, bf16};
  return {pallas_call(body,
                      {.name = "paged_attention",
                       .out_type = x,
                       .num_scalar_prefetch = 2,
                       .grid = {p.batch, p.heads, parts},
                       .in_specs = {some, pool, pool},
                       .out_specs = {some},
                       .scratch_types = {gpu::REGS({rows, 1}, f32), gpu::REGS({rows, 1}, f32),
                                         gpu::REGS({rows, d}, f32)},
                       .compiler_params = {.dimension_semantics = {parallel, parallel, sequential},
                                           .approx_math = true}}),
          {{{p.batch, parts}, i32}, {{p.batch}, i32}, x, stored, stored},
          {{.step = 7, .below = pages}, {.first = p.keys}}};
}

UserKernel decode_attention(const Attention& p, DType stored, std::int64_t pages) {
  const std::int64_t rows = p.rows, page = p.columns, d = p.d, parts = p.keys / page;
  const bool scaled = stored == i8;
  // table: [batch, parts], lengths: [batch]; pools: [pages, heads, page, d], their scales without
  // d.
  const auto body = [=](Ref table, Ref lengths, Ref q, Ref k, Ref v, Refs scales, Ref o) {
    const Value b = program_id(0), h = program_id(1), length = lengths[b], asked = q[_];
    const auto iteration = [&](Value i, Running r) {
      const Value at = table[{b, i}], column = iota(i32, {1, page}, 1) + i * page;
      const Value keys = k[{at, h, _, _}].astype(bf16), values = v[{at, h, _, _}].astype(bf16);
      Value s = dot(asked, keys, {.trans_b = true}) * (scale_of(p) * log2e);
      const auto scale = [&](int of) { return scales[of][{at, h, _}].reshape({1, page}); };
      if (scaled) s = s * scale(0);
      return with_block(r, where(column < length, s, -1e30f), values,
                        [&](const Value& w) { return scaled ? w * scale(1) : w; });
    };
    const Running r = loop(full({}, 0, i32), cdiv(length, page), iteration, at_first(rows, d));
    o[_] = (r.sums / r.total).astype(bf16);
  };
  const BlockSpec some{{squeezed, squeezed, rows, d}, [](Index b, Index h) {
                         return Indices{b, h, 0, 0};
                       }};
  const ShapeDtype x{{p.batch, p.heads, rows, d}, bf16}, pool{{pages, p.heads, page, d}, stored},
      numbers{{pages, p.heads, page}, f32};
  std::vector<BlockSpec> in{{}, {}, some, {}, {}};
  std::vector<ShapeDtype> types{{{p.batch, parts}, i32}, {{p.batch}, i32}, x, pool, pool};
  if (scaled) {
    in.insert(in.end(), 2, BlockSpec());
    types.insert(types.end(), 2, numbers);
  }
  return {pallas_call(body, {.name = "decode_attention",
                             .out_type = x,
                             .grid = {p.batch, p.heads},
                             .in_specs = in,
                             .out_specs = {some},
                             .compiler_params = {.approx_math = true}}),
          types,
          {{.step = 7, .below = pages}, {.first = p.keys}}};
}

UserKernel attention_dkv(const Attention& p, bool turned) {
  const std::int64_t rows = p.rows, columns = p.columns, d = p.d;
  const auto body = [=](Ref q, Ref k, Ref v, Ref d_o, Ref lse, Ref delta, Ref dk, Ref dv) {
    const Value keys = k[_], values = v[_];
    const auto iteration = [&](Index i, Value sum_k, Value sum_v) {
      const Slice now = ds(i * rows, rows);
      const Value x = q[{now, _}], g = d_o[{now, _}];
      if (turned) {
        const Value l = lse[now].reshape({1, rows}), t = delta[now].reshape({1, rows});
        const Value s = dot(keys, x, {.trans_b = true}) * (scale_of(p) * log2e);
        const Value prob = exp2(s - l), dp = dot(values, g, {.trans_b = true});
        const Value ds_ = prob * (dp - t);
        return carry(sum_k + dot(ds_.astype(bf16), x), sum_v + dot(prob.astype(bf16), g));
      }
      const Value l = lse[now].reshape({rows, 1}), t = delta[now].reshape({rows, 1});
      const Value s = dot(x, keys, {.trans_b = true}) * (scale_of(p) * log2e);
      const Value prob = exp2(s - l), dp = dot(g, values, {.trans_b = true});
      const Value ds_ = prob * (dp - t);
      return carry(sum_k + dot(ds_.astype(bf16), x, {.trans_a = true}),
                   sum_v + dot(prob.astype(bf16), g, {.trans_a = true}));
    };
    const auto [sum_k, sum_v] =
        loop(0, p.queries / rows, iteration, zeros({columns, d}, f32), zeros({columns, d}, f32));
    dk[_] = (sum_k * scale_of(p)).astype(bf16);
    dv[_] = sum_v.astype(bf16);
  };
  const BlockSpec some{{squeezed, squeezed, columns, d}, some_rows},
      all{{squeezed, squeezed, p.queries, d}, all_rows},
      numbers{{squeezed, squeezed, p.queries}, all_numbers};
  return {pallas_call(body,
                      {.name = "attention_dkv",
                       .out_type = {keys_of(p), keys_of(p)},
                       .grid = {p.batch, p.heads, p.keys / columns},
                       .in_specs = {all, some, some, all, numbers, numbers},
                       .out_specs = {some, some},
                       .compiler_params = {.num_warps = p.params.num_warps, .approx_math = true}}),
          {queries_of(p), keys_of(p), keys_of(p), queries_of(p), numbers_of(p), numbers_of(p)}};
}

UserKernel attention_dq(const Attention& p) {
  const std::int64_t rows = p.rows, columns = p.columns, d = p.d;
  const auto body = [=](Ref q, Ref k, Ref v, Ref d_o, Ref lse, Ref delta, Ref dq) {
    const Value x = q[_], g = d_o[_];
    const Value l = lse[_].reshape({rows, 1}), t = delta[_].reshape({rows, 1});
    const auto iteration = [&](Index i, Value sum) {
      const Slice now = ds(i * columns, columns);
      const Value keys = k[{now, _}];
      const Value s = dot(x, keys, {.trans_b = true}) * (scale_of(p) * log2e);
      const Value ds_ = exp2(s - l) * (dot(g, v[{now, _}], {.trans_b = true}) - t);
      return sum + dot(ds_.astype(bf16), keys);
    };
    dq[_] =
        (loop(0, p.keys / columns, iteration, zeros({rows, d}, f32)) * scale_of(p)).astype(bf16);
  };
  const BlockSpec some{{squeezed, squeezed, rows, d}, some_rows},
      all{{squeezed, squeezed, p.keys, d}, all_rows},
      numbers{{squeezed, squeezed, rows}, some_numbers};
  return {pallas_call(body, {.name = "attention_dq",
                             .out_type = queries_of(p),
                             .grid = {p.batch, p.heads, p.queries / rows},
                             .in_specs = {some, all, all, some, numbers, numbers},
                             .out_specs = {some},
                             .compiler_params = {.approx_math = true}}),
          {queries_of(p), keys_of(p), keys_of(p), queries_of(p), numbers_of(p), numbers_of(p)}};
}

UserKernel linear_attention(const Attention& p) {
  const std::int64_t rows = p.rows, d = p.d;
  const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
    const Value row = iota(i32, {rows, 1}, 0), column = iota(i32, {1, rows}, 1);
    const auto chunk = [&](Index i, Value state) {
      const Slice now = ds(i * rows, rows);
      const Value x = q[{now, _}], keys = k[{now, _}], values = v[{now, _}];
      const Value s = where(column <= row, dot(x, keys, {.trans_b = true}), 0.0f);
      o[{now, _}] = (dot(s.astype(bf16), values) + dot(x, state.astype(bf16))).astype(bf16);
      return state + dot(keys, values, {.trans_a = true});
    };
    (void)loop(0, p.queries / rows, chunk, zeros({d, d}, f32));
  };
  const auto whole = [](Index b, Index h) { return Indices{b, h, 0, 0}; };
  const BlockSpec all{{squeezed, squeezed, p.queries, d}, whole};
  return {pallas_call(body, {.name = "linear_attention",
                             .out_type = queries_of(p),
                             .grid = {p.batch, p.heads},
                             .in_specs = {all, all, all},
                             .out_specs = {all}}),
          {queries_of(p), queries_of(p), queries_of(p)}};
}

}  // namespace palladium::user_kernels
