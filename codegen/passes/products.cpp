#include "codegen/passes/products.hpp"

#include <algorithm>

namespace palladium::passes {
namespace {

// Per multiprocessor and clock (reference/performance.md): multiply-adds of tensor cores, what of
// them mma.sync reaches on sm_90, bytes of shared memory that are read.
constexpr double multiply_adds = 2048, of_mma_sync = 0.62, shared_bytes_per_clock = 128;
constexpr std::int64_t step_bytes = 32;  // of a row of A, or a column of B, in one step of K

double clocks_of_shared(std::int64_t rows_and_columns) {
  return static_cast<double>(rows_and_columns * step_bytes) / shared_bytes_per_clock;
}

// Clocks of a step of K: what the tensor cores take, or to read the operands; and to stage them.
double clocks(std::int64_t m, std::int64_t n, std::int64_t rows_read, std::int64_t columns_read,
              double rate) {
  constexpr double k = 16;
  const double products = static_cast<double>(m * n) * k / (multiply_adds * rate);
  return std::max(products, clocks_of_shared(rows_read + columns_read)) + clocks_of_shared(m + n);
}

double clocks_of_wgmma(std::int64_t m, std::int64_t n) { return clocks(m, n, m, n * (m / 64), 1); }

double clocks_of_mma(std::int64_t m, std::int64_t n, int num_warps) {
  const auto [rows, columns] = choose_warps(num_warps, m, n);
  const std::int64_t padded_m = round_up(m, 16 * rows), padded_n = round_up(n, 8 * columns);
  return clocks(padded_m, padded_n, padded_m * columns, padded_n * rows, of_mma_sync);
}

}  // namespace

WarpGrid choose_warps(int num_warps, std::int64_t m, std::int64_t n) {
  WarpGrid best;
  std::int64_t least = -1, least_loads = 0;
  for (const int wm : {4, 2, 8, 1, 16}) {
    if (wm > num_warps) continue;
    const int wn = num_warps / wm;
    const std::int64_t rows = cdiv(m, 16 * wm), columns = cdiv(n, 8 * wn);
    const std::int64_t loads = 2 * rows + columns;
    const bool better =
        least < 0 || rows * columns < least || (rows * columns == least && loads < least_loads);
    if (!better) continue;
    least = rows * columns;
    least_loads = loads;
    best = {wm, wn};
  }
  return best;
}

bool takes_wgmma(const Lowered& l, const graph::Inst& dot) {
  const graph::DotView view = graph::DotView::of(dot);
  const DType t = l.graph[view.a].type.dtype;
  if (l.machine.compute_capability != 90 || !l.machine.is_specific || (t != f16 && t != bf16))
    return false;
  const std::int64_t m = dot.type.shape[0];
  const std::int64_t padded_m = round_up(m, 16 * l.num_warps);
  if (padded_m > 64 && padded_m - m >= 64) return false;  // a warpgroup without rows
  const std::int64_t n = round_up(dot.type.shape[1], 8);
  // Panels of B that lie along its columns are whole.
  if (!view.trans_b && swizzle_of(n * t.bytes()) == 0) return false;
  if (padded_m * n > max_whole_registers * l.threads()) return false;
  return clocks_of_wgmma(padded_m, n) <= clocks_of_mma(m, n, l.num_warps);
}

}  // namespace palladium::passes
