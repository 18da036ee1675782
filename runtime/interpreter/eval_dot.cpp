// dot: both operands are packed into panels, which transposes and widens them on the way; then
// tiles of the product are accumulated in registers, in order of k.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

constexpr int tile_rows = 4;

template <class A>
struct Tile {
  typedef A Vector __attribute__((vector_size(16)));
  static constexpr int lanes = 16 / sizeof(A);
  static constexpr int columns = 2 * lanes;

  // c[4][columns] = sum over p of a[p][4] * b[p][columns]
  static void multiply(const A* a, const A* b, std::int64_t k, A* c) {
    Vector sum[tile_rows][2] = {};
    for (std::int64_t p = 0; p < k; ++p, a += tile_rows, b += columns) {
      Vector b0, b1;
      std::memcpy(&b0, b, sizeof b0);
      std::memcpy(&b1, b + lanes, sizeof b1);
      for (int i = 0; i < tile_rows; ++i) {
        sum[i][0] += a[i] * b0;
        sum[i][1] += a[i] * b1;
      }
    }
    std::memcpy(c, sum, sizeof sum);
  }
};

// The nearest number with 10 bits of fraction, halves to even.
float to_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return std::bit_cast<float>((bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu);
}

struct Exact {
  template <class T>
  auto operator()(T x) const {
    return widen(x);
  }
};
struct Tf32 {
  template <class T>
  auto operator()(T x) const {
    return to_tf32(static_cast<float>(widen(x)));
  }
};

// panel[p][i] = x[first + i][p] where x has `rows` rows; rows beyond are zero.
template <class T, class A, class Convert>
void pack(A* panel, int width, const T* x, std::int64_t first, std::int64_t rows, std::int64_t k,
          std::int64_t row_stride, std::int64_t k_stride, Convert convert) {
  const int n = static_cast<int>(std::min<std::int64_t>(width, rows - first));
  const T* at = x + first * row_stride;
  for (std::int64_t p = 0; p < k; ++p, at += k_stride, panel += width) {
    for (int i = 0; i < n; ++i) panel[i] = static_cast<A>(convert(at[i * row_stride]));
    for (int i = n; i < width; ++i) panel[i] = 0;
  }
}

// Out is the result's type, A computes it: integers wrap. B is of U.
template <class T, class A, class Out, class Convert = Exact, class U = T>
void dot(Frame& f, ValueId v, const Inst& inst) {
  const bool trans_a = graph::DotView::of(inst).trans_a, trans_b = graph::DotView::of(inst).trans_b;
  const std::int64_t m = inst.type.shape[0], n = inst.type.shape[1];
  const std::int64_t k = f.type(inst.args[0]).shape[trans_a ? 0 : 1];
  const T* a = f.operand<T>(inst, 0);
  const U* b = f.operand<U>(inst, 1);
  Out* c = f.data<Out>(v);
  constexpr int columns = Tile<A>::columns;
  const std::int64_t panels = (m + tile_rows - 1) / tile_rows;
  const auto rows =
      std::make_unique_for_overwrite<A[]>(static_cast<std::size_t>(panels * tile_rows * k));
  const auto panel = std::make_unique_for_overwrite<A[]>(static_cast<std::size_t>(columns * k));
  for (std::int64_t i = 0; i < panels; ++i)
    pack(rows.get() + i * tile_rows * k, tile_rows, a, i * tile_rows, m, k, trans_a ? 1 : k,
         trans_a ? m : 1, Convert());
  for (std::int64_t j = 0; j < n; j += columns) {
    pack(panel.get(), columns, b, j, n, k, trans_b ? k : 1, trans_b ? 1 : n, Convert());
    const std::int64_t width = std::min<std::int64_t>(columns, n - j);
    for (std::int64_t i = 0; i < m; i += tile_rows) {
      A tile[tile_rows * columns];
      Tile<A>::multiply(rows.get() + i * k, panel.get(), k, tile);
      for (std::int64_t r = 0; r < std::min<std::int64_t>(tile_rows, m - i); ++r)
        for (std::int64_t q = 0; q < width; ++q)
          c[(i + r) * n + j + q] = static_cast<Out>(tile[r * columns + q]);
    }
  }
}

template <class T>
void dot_bytes(Frame& f, ValueId v, const Inst& inst) {
  if (f.dtype(inst.args[1]) == i8)
    dot<T, std::uint32_t, std::int32_t, Exact, std::int8_t>(f, v, inst);
  else
    dot<T, std::uint32_t, std::int32_t, Exact, std::uint8_t>(f, v, inst);
}

}  // namespace

void eval_Dot(Frame& f, ValueId v, const Inst& inst) {
  const bool tf32 = graph::DotView::of(inst).precision == graph::Precision::tf32;
  switch (f.dtype(inst.args[0]).kind()) {
  case DType::F16: return dot<F16, float, float>(f, v, inst);
  case DType::BF16: return dot<BF16, float, float>(f, v, inst);
  case DType::F32:
    return tf32 ? dot<float, float, float, Tf32>(f, v, inst) : dot<float, float, float>(f, v, inst);
  case DType::F64: return dot<double, double, double>(f, v, inst);
  case DType::I8: return dot_bytes<std::int8_t>(f, v, inst);
  case DType::U8: return dot_bytes<std::uint8_t>(f, v, inst);
  case DType::I16: return dot<std::int16_t, std::uint32_t, std::int32_t>(f, v, inst);
  case DType::I32: return dot<std::int32_t, std::uint32_t, std::int32_t>(f, v, inst);
  default:
    throw InternalError(std::string("interpreter: dot got operands of dtype ") +
                        f.dtype(inst.args[0]).name());
  }
}

}  // namespace palladium::interpreter
