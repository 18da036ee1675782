// Kernels that several tests lower, compile and run.
#pragma once

#include "tests/support/tracing.hpp"

namespace palladium::test {

/// The kernel, computed by so many warps.
inline graph::Graph by_warps(int n, graph::Graph g) {
  for (graph::Body& b : g.bodies) b.num_warps = n;
  return g;
}

/// o = x + y in blocks of `block` elements.
inline graph::Graph add_graph(Dim n, std::int64_t block, DType t = f32) {
  const BlockSpec spec{{block}, [](Index i) { return i; }};
  return traced([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                {.name = "add",
                 .out_type = ShapeDtype{{n}, t},
                 .grid = {cdiv(n, block)},
                 .in_specs = {spec, spec},
                 .out_specs = {spec}},
                {array({n}, t), array({n}, t)});
}

/// Softmax along rows, `rows` rows of a symbolic number of them per block.
inline graph::Graph softmax_graph(std::int64_t columns, std::int64_t rows = 1, DType t = f32) {
  const BlockSpec spec{{rows, columns}, [](Index i) { return Indices{i, 0}; }};
  const Shape shape{dim("m"), columns};
  return traced(
      [](Ref x, Ref o) {
        Value v = x[_];
        Value e = exp(v - max(v, {.axis = {1}, .keepdims = true}));
        o[_] = e / sum(e, {.axis = {1}, .keepdims = true});
      },
      {.name = "softmax",
       .out_type = ShapeDtype{shape, t},
       .grid = {cdiv(dim("m"), rows)},
       .in_specs = {spec},
       .out_specs = {spec}},
      {array(shape, t)});
}

/// Normalises rows, four to a block, with a weight per column.
inline graph::Graph layer_norm_graph() {
  const Shape shape{dim("m"), 768};
  const BlockSpec rows{{4, 768}, [](Index i) { return Indices{i, 0}; }};
  return traced(
      [](Ref x, Ref weight, Ref o) {
        Value v = x[_];
        Value centred = v - sum(v, {.axis = {1}, .keepdims = true}) / 768.0f;
        Value variance = sum(centred * centred, {.axis = {1}, .keepdims = true}) / 768.0f;
        o[_] = centred * rsqrt(variance + 1e-5f) * weight[_];
      },
      {.name = "layer_norm",
       .out_type = ShapeDtype{shape, f32},
       .grid = {cdiv(dim("m"), 4)},
       .in_specs = {rows, BlockSpec{{1, 768},
                                    [](Index) {
                                      return Indices{0, 0};
                                    }}},
       .out_specs = {rows}},
      {array(shape), array({1, 768})});
}

/// Running sums along an axis of a block of the whole array.
inline graph::Graph cumsum_graph(const Shape& shape, int axis, bool reverse = false,
                                 DType t = f32) {
  return traced([=](Ref x, Ref o) { o[_] = cumsum(x[_], {.axis = axis, .reverse = reverse}); },
                {.name = "cumsum", .out_type = ShapeDtype{shape, t}}, {array(shape, t)});
}

/// A machine of two registers of 256 numbers that runs the instructions (operation, number) of
/// `code`: a while_loop with a switch_ of vectors in it.
inline graph::Graph vm_graph() {
  struct Machine {
    Value next, x, saved;
  };
  return traced(
      [](Ref code, Ref x, Ref o) {
        const Machine last =
            while_loop([&](Machine m) { return m.next < code.shape()[0]; },
                       [&](Machine m) {
                         const Value n = code[{m.next, 1}], next = m.next + 1;
                         return switch_(
                             i32(code[{m.next, 0}]),
                             [&] {
                               return Machine{next, m.x + n, m.saved};
                             },
                             [&] {
                               return Machine{next, m.x * n, m.saved};
                             },
                             [&] {
                               return Machine{next, m.x, m.x};
                             },
                             [&] {
                               return Machine{next, m.x + m.saved / pl::sum(m.saved), m.saved};
                             },
                             [&] {
                               return Machine{where(pl::min(m.x) < n, 0, next), m.x, m.saved};
                             });
                       },
                       Machine{i32(0), x[_], ones({256})});
        o[_] = last.x;
      },
      {.name = "vm", .out_type = ShapeDtype{{256}, f32}}, {array({8, 2}), array({256})});
}

struct MatmulShape {
  std::int64_t m, n, k;
  std::int64_t block_m = 64, block_n = 64, block_k = 32;
  bool trans_a = false, trans_b = false;
};

/// Accumulates over k in the output block; what lies beyond k is masked.
inline graph::Graph matmul_graph(DType t, const MatmulShape& s,
                                 Precision precision = Precision::ieee) {
  const DType acc = t.is_float() ? (t == f64 ? f64 : f32) : i32;
  const auto spec = [](bool swapped, std::int64_t rows, std::int64_t columns, int row, int column) {
    const auto map = [=](Index i, Index j, Index k) {
      const Index axes[] = {i, j, k};
      return swapped ? Indices{axes[column], axes[row]} : Indices{axes[row], axes[column]};
    };
    return swapped ? BlockSpec{{columns, rows}, map} : BlockSpec{{rows, columns}, map};
  };
  return traced(
      [=](Ref a, Ref b, Ref o) {
        Value step = program_id(2);
        when(step == 0, [&] { o[_] = zeros({s.block_m, s.block_n}, acc); });
        Value x = a[_], y = b[_];
        Value kx = iota(i32, x.shape(), s.trans_a ? 0 : 1) + step * s.block_k;
        Value ky = iota(i32, y.shape(), s.trans_b ? 1 : 0) + step * s.block_k;
        o[_] += dot(where(kx < s.k, x, 0), where(ky < s.k, y, 0),
                    {.trans_a = s.trans_a, .trans_b = s.trans_b, .precision = precision});
      },
      {.name = "matmul",
       .out_type = ShapeDtype{{s.m, s.n}, acc},
       .grid = {cdiv(s.m, s.block_m), cdiv(s.n, s.block_n), cdiv(s.k, s.block_k)},
       .in_specs = {spec(s.trans_a, s.block_m, s.block_k, 0, 2),
                    spec(s.trans_b, s.block_k, s.block_n, 2, 1)},
       .out_specs = {spec(false, s.block_m, s.block_n, 0, 1)}},
      {array(s.trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, t),
       array(s.trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, t)});
}

}  // namespace palladium::test
