// Matrix products of operands in shared memory, accumulated in registers.
//
// On tensor cores acc is laid out as the accumulators of m16n8 instructions: MR x NR of them per
// warp, the warps WM along rows by WN along columns. A is (M, K) with rows `lda` bytes apart, stored
// (K, M) if TA; B is (K, N) with rows `ldb` bytes apart, stored (N, K) if TB. For tensor cores
// both are padded with zeros to whole instructions along K.

namespace pl {
namespace detail {

template <int Warps>
PL_FN u32 dot_warp() {
  return (Warps == 4 ? pl::thread() : pl::program_thread()) / 32;
}
template <int WM, int WN>
PL_FN u32 dot_row(u32 tile) {
  return 16 * (dot_warp<WM * WN>() % WM + WM * tile);
}
template <int WM, int WN>
PL_FN u32 dot_column(u32 tile) {
  return 8 * (dot_warp<WM * WN>() / WM + WN * tile);
}

// Address of element (i, j) of the matrix, or of (j, i) where it is stored transposed.
template <bool Transposed, class T>
PL_FN u32 dot_address(u32 base, u32 stride, u32 i, u32 j) {
  return Transposed ? base + j * stride + i * u32(sizeof(T))
                    : base + i * stride + j * u32(sizeof(T));
}

}  // namespace detail

namespace detail {

// N elements, a step of K from one to the next, of the matrix at (i, k); its rows run along K unless
// Transposed.
template <int N, bool Transposed, class T, class Acc>
PL_FN void dot_steps(Acc* x, u32 base, u32 stride, u32 i, u32 k PL_AND_LINE) {
  T v[N];
  if constexpr (Transposed) {
    PL_UNROLL for (u32 l = 0; l < N; ++l) {
      pl::load_shared<1>(v + l, dot_address<true, T>(base, stride, i, k + l),
                         true PL_AND_PASS_LINE);
    }
  } else {
    pl::load_shared<N>(v, dot_address<false, T>(base, stride, i, k), true PL_AND_PASS_LINE);
  }
  PL_UNROLL for (u32 l = 0; l < N; ++l) x[l] = pl::to<Acc>(v[l]);
}

// N steps of K from `k` on.
template <int N, int MR, int NR, int V, int L, int R, bool TA, bool TB, class T, class Acc>
PL_FN void dot_fma_steps(Acc* acc, u32 a, u32 lda, u32 b, u32 ldb, u32 row, u32 column,
                         u32 k PL_AND_LINE) {
  Acc x[MR * N];
  PL_UNROLL for (u32 i = 0; i < MR; ++i) {
    dot_steps<N, TA, T>(x + N * i, a, lda, row + R * i, k PL_AND_PASS_LINE);
  }
  PL_UNROLL for (u32 j = 0; j < NR; ++j) {
    Acc y[N * V];
    PL_UNROLL for (u32 e = 0; e < (TB ? V : N); ++e) {
      if constexpr (TB) {
        dot_steps<N, false, T>(y + N * e, b, ldb, column + V * L * j + e, k PL_AND_PASS_LINE);
      } else {
        dot_steps<V, false, T>(y + V * e, b, ldb, k + e, column + V * L * j PL_AND_PASS_LINE);
      }
    }
    PL_UNROLL for (u32 l = 0; l < N; ++l) {
      PL_UNROLL for (u32 i = 0; i < MR; ++i) {
        PL_UNROLL for (u32 e = 0; e < V; ++e) {
          Acc& d = acc[(i * NR + j) * V + e];
          const Acc factor = y[TB ? N * e + l : V * l + e];
          if constexpr (is_float<Acc>) {
            d = pl::fma(x[N * i + l], factor, d);
          } else {
            d = pl::add(d, pl::mul(x[N * i + l], factor));
          }
        }
      }
    }
  }
}

}  // namespace detail

// acc is MR x NR vectors of V columns: L threads side by side hold V * L columns, R of them below
// each other a row each; further threads repeat those. Operands are read 16 bytes of accumulators
// at a time, in order of K, which needs no padding.
template <int MR, int NR, int V, int L, int R, bool TA, bool TB, class T, class Acc, int Warps = 4>
PL_FN void dot_fma(Acc* acc, u32 a, u32 lda, u32 b, u32 ldb, u32 depth PL_AND_LINE) {
  constexpr u32 N = 16 / sizeof(Acc);
  const u32 t = Warps == 4 ? pl::thread() : pl::program_thread();
  const u32 row = t / L % R, column = V * (t % L), whole = depth / N * N;
  PL_NOUNROLL for (u32 k = 0; k < whole; k += N) {
    detail::dot_fma_steps<N, MR, NR, V, L, R, TA, TB, T>(acc, a, lda, b, ldb, row, column,
                                                         k PL_AND_PASS_LINE);
  }
  PL_NOUNROLL for (u32 k = whole; k < depth; ++k) {
    detail::dot_fma_steps<1, MR, NR, V, L, R, TA, TB, T>(acc, a, lda, b, ldb, row, column,
                                                         k PL_AND_PASS_LINE);
  }
}

// T is f16 or bf16, K in steps of 16.
template <int MR, int NR, int WM, bool TA, bool TB, class T, int WN = 4 / WM>
PL_FN void dot_mma_16816(f32* acc, u32 a, u32 lda, u32 b, u32 ldb, u32 depth PL_AND_LINE) {
  const u32 l = pl::lane(), r = l % 8, low = l / 8 % 2, high = l / 16;
  PL_NOUNROLL for (u32 k = 0; k < depth; k += 16) {
    T y[4 * NR];
    PL_UNROLL for (u32 j = 0; j < NR; ++j) {
      const u32 column = detail::dot_column<WM, WN>(j);
      if constexpr (TB) {
        pl::ldmatrix_x2(y + 4 * j, detail::dot_address<true, T>(b, ldb, k + 8 * low, column + r)
                                       PL_AND_PASS_LINE);
      } else {
        pl::ldmatrix_x2_trans(y + 4 * j, detail::dot_address<false, T>(b, ldb, k + 8 * low + r,
                                                                       column) PL_AND_PASS_LINE);
      }
    }
    PL_UNROLL for (u32 i = 0; i < MR; ++i) {
      const u32 row = detail::dot_row<WM, WN>(i);
      T x[8];
      if constexpr (TA) {
        pl::ldmatrix_x4_trans(x, detail::dot_address<true, T>(a, lda, row + 8 * low,
                                                              k + 8 * high + r) PL_AND_PASS_LINE);
      } else {
        pl::ldmatrix_x4(x, detail::dot_address<false, T>(a, lda, row + 8 * low + r, k + 8 * high)
                               PL_AND_PASS_LINE);
      }
      PL_UNROLL for (u32 j = 0; j < NR; ++j) {
        pl::mma_m16n8k16(acc + 4 * (i * NR + j), x, y + 4 * j PL_AND_PASS_LINE);
      }
    }
  }
}

// f16 on sm_75, K in steps of 8.
template <int MR, int NR, int WM, bool TA, bool TB, int WN = 4 / WM>
PL_FN void dot_mma_1688(f32* acc, u32 a, u32 lda, u32 b, u32 ldb, u32 depth PL_AND_LINE) {
  const u32 l = pl::lane(), r = l % 8, low = l / 8 % 2;
  PL_NOUNROLL for (u32 k = 0; k < depth; k += 8) {
    f16 y[2 * NR];
    PL_UNROLL for (u32 j = 0; j < NR; ++j) {
      const u32 column = detail::dot_column<WM, WN>(j);
      if constexpr (TB) {
        pl::ldmatrix_x1(y + 2 * j,
                        detail::dot_address<true, f16>(b, ldb, k, column + r) PL_AND_PASS_LINE);
      } else {
        pl::ldmatrix_x1_trans(
            y + 2 * j, detail::dot_address<false, f16>(b, ldb, k + r, column) PL_AND_PASS_LINE);
      }
    }
    PL_UNROLL for (u32 i = 0; i < MR; ++i) {
      const u32 row = detail::dot_row<WM, WN>(i);
      f16 x[4];
      if constexpr (TA) {
        pl::ldmatrix_x2_trans(
            x, detail::dot_address<true, f16>(a, lda, row + 8 * low, k + r) PL_AND_PASS_LINE);
      } else {
        pl::ldmatrix_x2(
            x, detail::dot_address<false, f16>(a, lda, row + 8 * low + r, k) PL_AND_PASS_LINE);
      }
      PL_UNROLL for (u32 j = 0; j < NR; ++j) {
        pl::mma_m16n8k8(acc + 4 * (i * NR + j), x, y + 2 * j PL_AND_PASS_LINE);
      }
    }
  }
}

// f32 rounded to tf32, K in steps of 8.
template <int MR, int NR, int WM, bool TA, bool TB, int WN = 4 / WM>
PL_FN void dot_mma_tf32(f32* acc, u32 a, u32 lda, u32 b, u32 ldb, u32 depth PL_AND_LINE) {
  const u32 g = pl::lane() / 4, c = pl::lane() % 4;
  PL_NOUNROLL for (u32 k = 0; k < depth; k += 8) {
    f32 y[2 * NR];
    PL_UNROLL for (u32 j = 0; j < 2 * NR; ++j) {
      pl::load_shared<1>(y + j,
                         detail::dot_address<TB, f32>(b, ldb, k + c + 4 * (j % 2),
                                                      detail::dot_column<WM, WN>(j / 2) + g),
                         true PL_AND_PASS_LINE);
    }
    PL_UNROLL for (u32 i = 0; i < MR; ++i) {
      f32 x[4];
      PL_UNROLL for (u32 e = 0; e < 4; ++e) {
        pl::load_shared<1>(
            x + e,
            detail::dot_address<TA, f32>(a, lda, detail::dot_row<WM, WN>(i) + g + 8 * (e % 2),
                                         k + c + 4 * (e / 2)),
            true PL_AND_PASS_LINE);
      }
      PL_UNROLL for (u32 j = 0; j < NR; ++j) {
        pl::mma_m16n8k8_tf32(acc + 4 * (i * NR + j), x, y + 2 * j PL_AND_PASS_LINE);
      }
    }
  }
}

}  // namespace pl
