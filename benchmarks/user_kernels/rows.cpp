#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {

UserKernel layer_norm_backward(const Rows& p, std::int64_t programs) {
  const std::int64_t n = p.columns, block = p.block, steps = p.rows / programs / block;
  const auto by_row = ReduceOptions{.axis = 1, .keepdims = true};
  // dx of a block, and what it adds to dgamma and to dbeta.
  const auto of_block = [=](Value x, Value dy, const Value& gamma, const Value& mean,
                            const Value& rstd) {
    x = x.astype(f32);
    dy = dy.astype(f32);
    const Value hat = (x - mean) * rstd, g = dy * gamma;
    const Value c1 = sum(g * hat, by_row) / static_cast<float>(n),
                c2 = sum(g, by_row) / static_cast<float>(n);
    return carry((g - hat * c1 - c2) * rstd, sum(dy * hat, {.axis = 0, .keepdims = true}),
                 sum(dy, {.axis = 0, .keepdims = true}));
  };
  const ShapeDtype x{{p.rows, n}, p.dtype}, row{{1, n}, f32}, number{{p.rows, 1}, f32},
      sums{{programs, n}, f32};
  const std::vector<ShapeDtype> inputs{x, x, row, number, number};
  PallasCallOptions options{.name = "layer_norm_backward", .out_type = {x, sums, sums}};
  if (p.style == Style::loop) {
    const auto body = [=](Ref x, Ref dy, Ref gamma, Ref mean, Ref rstd, Ref dx, Ref dgamma,
                          Ref dbeta) {
      const Value weight = gamma[_];
      const auto add = [&](Index i, Value g, Value b) {
        const Slice now = ds(i * block, block);
        const auto [part, more_g, more_b] =
            of_block(x[{now, _}], dy[{now, _}], weight, mean[{now, _}], rstd[{now, _}]);
        dx[{now, _}] = part.astype(p.dtype);
        return carry(g + more_g, b + more_b);
      };
      const auto [g, b] = loop(0, steps, add, zeros({1, n}, f32), zeros({1, n}, f32));
      dgamma[_] = g;
      dbeta[_] = b;
    };
    const auto some = [](Index i) { return Indices{i, 0}; };
    const BlockSpec blocks{{steps * block, n}, some}, numbers{{steps * block, 1}, some},
        one{{1, n}, some};
    options.grid = {programs};
    options.in_specs = {blocks, blocks, BlockSpec{}, numbers, numbers};
    options.out_specs = {blocks, one, one};
    return {pallas_call(body, options), inputs};
  }
  const auto body = [=](Ref x, Ref dy, Ref gamma, Ref mean, Ref rstd, Ref dx, Ref dgamma,
                        Ref dbeta) {
    when(program_id(1) == 0, [&] {
      dgamma[_] = zeros({1, n}, f32);
      dbeta[_] = zeros({1, n}, f32);
    });
    const auto [part, more_g, more_b] = of_block(x[_], dy[_], gamma[_], mean[_], rstd[_]);
    dx[_] = part.astype(p.dtype);
    dgamma[_] += more_g;
    dbeta[_] += more_b;
  };
  const auto some = [=](Index i, Index j) { return Indices{i * steps + j, 0}; };
  const auto mine = [](Index i, Index) { return Indices{i, 0}; };
  const BlockSpec blocks{{block, n}, some}, numbers{{block, 1}, some}, one{{1, n}, mine};
  options.grid = {programs, steps};
  options.in_specs = {blocks, blocks, BlockSpec{}, numbers, numbers};
  options.out_specs = {blocks, one, one};
  options.compiler_params.dimension_semantics = {parallel, sequential};
  return {pallas_call(body, options), inputs};
}

UserKernel scan_by_chunks(const Rows& p) {
  const std::int64_t block = p.block, n = 512;
  const auto body = [=](Ref a, Ref x, Ref o) {
    const auto chunk = [&](Index i, Value h) {
      const Slice now = ds(i * block, block);
      // h_t = exp(sum of log a up to t) (h + sum of x_s / exp(sum of log a up to s))
      const Value decay = cumsum(log(a[{now, _}].astype(f32)), {.axis = 0});
      const Value up = exp(decay);
      const Value all = up * (h + cumsum(x[{now, _}].astype(f32) * exp(-decay), {.axis = 0}));
      o[{now, _}] = all.astype(p.dtype);
      return all[{ds(block - 1, 1), _}];
    };
    (void)loop(0, p.rows / block, chunk, zeros({1, n}, f32));
  };
  const BlockSpec columns{{p.rows, n}, [](Index j) { return Indices{0, j}; }};
  const ShapeDtype x{{p.rows, p.columns}, p.dtype};
  return {pallas_call(body, {.name = "scan_by_chunks",
                             .out_type = x,
                             .grid = {p.columns / n},
                             .in_specs = {columns, columns},
                             .out_specs = {columns}}),
          {x, x}};
}

UserKernel top_k_softmax(const Rows& p, std::int64_t k) {
  const auto rows = [](Index i) { return Indices{i, 0}; };
  const auto body = [=](Ref x, Ref values, Ref indices) {
    const TopK best = top_k(x[_].astype(f32), k);
    values[_] = softmax(best.values, {.axis = 1});
    indices[_] = best.indices;
  };
  return {pallas_call(body, {.name = "top_k_softmax",
                             .out_type = {{{p.rows, k}, f32}, {{p.rows, k}, i32}},
                             .grid = {p.rows / p.block},
                             .in_specs = {{{p.block, p.columns}, rows}},
                             .out_specs = {{{p.block, k}, rows}, {{p.block, k}, rows}}}),
          {{{p.rows, p.columns}, p.dtype}}};
}

}  // namespace palladium::user_kernels
