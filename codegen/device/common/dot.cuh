// Matrix products of operands in shared memory, accumulated in registers.
//
// On tensor cores acc is laid out as the accumulators of m16n8 instructions: MR x NR of them per
// warp, the warps WM along rows by WN along columns. A is (M, K) with rows `lda` bytes apart, stored
// (K, M) if TA; B is (K, N) with rows `ldb` bytes apart, stored (N, K) if TB. For tensor cores
// both are padded with zeros to whole instructions along K, or to 16 of K.

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

namespace detail {

// What multiplies 32 bytes of K: elements of 16 bits, the same without m16n8k16, or of 8 bits.
template <class T>
struct Halves {};
template <class T>
struct HalvesTwice {};
template <class A, class B>
struct Bytes {};

PL_FN void dot_step(f32* d, const u32* x, const u32* y, Halves<f16> PL_AND_LINE) {
  pl::mma_m16n8k16_f16(d, x, y PL_AND_PASS_LINE);
}
PL_FN void dot_step(f32* d, const u32* x, const u32* y, Halves<bf16> PL_AND_LINE) {
  pl::mma_m16n8k16_bf16(d, x, y PL_AND_PASS_LINE);
}
PL_FN void dot_step(f32* d, const u32* x, const u32* y, HalvesTwice<f16> PL_AND_LINE) {
  pl::mma_m16n8k8_f16(d, x, y PL_AND_PASS_LINE);
  pl::mma_m16n8k8_f16(d, x + 2, y + 1 PL_AND_PASS_LINE);
}
template <class A, class B>
PL_FN void dot_step(i32* d, const u32* x, const u32* y, Bytes<A, B> PL_AND_LINE) {
  pl::mma_m16n8k32_integers<A, B>(d, x, y PL_AND_PASS_LINE);
}
template <class A, class B>
PL_FN void dot_step(f32* d, const u32* x, const u32* y, Bytes<A, B> PL_AND_LINE) {
  pl::mma_m16n8k32_floats<A, B>(d, x, y PL_AND_PASS_LINE);
}

// Bytes from the row's first to a lane's 16 bytes `step` behind its first ones, where those stand at
// `chunk` in the swizzled row. Bits of `step` are none of the lane's.
template <int Swizzle>
PL_FN u32 dot_chunk(u32 chunk, u32 step) {
  constexpr u32 swizzled = (1u << Swizzle) - 1;
  return ((chunk ^ (step & swizzled)) + (step & ~swizzled)) * 16;
}

// How many steps of K are in one piece of straight code: a divisor of all.
PL_FN constexpr u32 dot_together(u32 steps, u32 products) {
  u32 n = steps;
  while (n > 1 && (steps % n != 0 || n * products > 128)) --n;
  return n;
}

// The words of A and B for 32 bytes of K from step k on, of the lane's own tiles. All that changes with
// the lane stands in front, and is kept: loops around it need to add `slot` alone.
template <int MR, int WM, bool TA, int LA, int SA>
PL_FN void dot_rows(u32* x, u32 a, u32 slot, u32 warp, u32 k PL_AND_LINE) {
  const u32 l = pl::lane(), r = l % 8, low = l / 8 % 2, high = l / 16, row = warp % WM;
  const u32 first = a + (TA ? 8 * high + r : 16 * row + 8 * low + r) * LA;
  const u32 chunk = (TA ? 2 * row + low : high) ^ (r >> (3 - SA));
  PL_UNROLL for (u32 i = 0; i < MR; ++i) {
    if constexpr (TA) {
      pl::ldmatrix_words_x4_trans(
          x + 4 * i,
          kept(first + dot_chunk<SA>(chunk, 2 * WM * i)) + 16 * k * LA + slot PL_AND_PASS_LINE);
    } else {
      pl::ldmatrix_words_x4(
          x + 4 * i,
          kept(first + dot_chunk<SA>(chunk, 2 * k)) + 16 * WM * i * LA + slot PL_AND_PASS_LINE);
    }
  }
}

template <int NR, int WN, bool TB, int LB, int SB>
PL_FN void dot_columns(u32* y, u32 b, u32 slot, u32 column, u32 k PL_AND_LINE) {
  const u32 l = pl::lane(), r = l % 8, low = l / 8 % 2, high = l / 16;
  const u32 tile = column + WN * high;
  const u32 first = b + (TB ? 8 * tile + r : 8 * low + r) * LB;
  const u32 chunk = (TB ? low : tile) ^ (r >> (3 - SB));
  PL_UNROLL for (u32 j = 0; j < NR; j += 2) {
    const u32 at = TB ? kept(first + dot_chunk<SB>(chunk, 2 * k)) + 8 * WN * j * LB + slot
                      : kept(first + dot_chunk<SB>(chunk, WN * j)) + 16 * k * LB + slot;
    if constexpr (TB) {
      if (j + 1 < NR) {
        pl::ldmatrix_words_x4(y + 2 * j, at PL_AND_PASS_LINE);
      } else {
        pl::ldmatrix_words_x2(y + 2 * j, at PL_AND_PASS_LINE);
      }
    } else {
      if (j + 1 < NR) {
        pl::ldmatrix_words_x4_trans(y + 2 * j, at PL_AND_PASS_LINE);
      } else {
        pl::ldmatrix_words_x2_trans(y + 2 * j, at PL_AND_PASS_LINE);
      }
    }
  }
}

template <class By, int Steps, int MR, int NR, int WM, bool TA, bool TB, int LA, int SA, int LB,
          int SB, int WN, class Acc>
PL_FN void dot_matrices(Acc* acc, u32 a, u32 a_slot, u32 b, u32 b_slot PL_AND_LINE) {
  constexpr u32 together = dot_together(Steps, MR * NR);
  const u32 warp = dot_warp<WM * WN>();
  PL_NOUNROLL for (u32 step = 0; step < Steps; step += together) {
    PL_UNROLL for (u32 k = 0; k < together; ++k) {
      u32 x[4 * MR], y[2 * NR];
      dot_rows<MR, WM, TA, LA, SA>(x, a, a_slot, warp, step + k PL_AND_PASS_LINE);
      dot_columns<NR, WN, TB, LB, SB>(y, b, b_slot, warp / WM, step + k PL_AND_PASS_LINE);
      PL_UNROLL for (u32 i = 0; i < MR; ++i) {
        PL_UNROLL for (u32 j = 0; j < NR; ++j) {
          dot_step(acc + 4 * (i * NR + j), x + 4 * i, y + 2 * j, By() PL_AND_PASS_LINE);
        }
      }
    }
  }
}

// The same of an A in registers: of each 16 rows all of K, in steps of four words. Each warp has all
// columns.
template <class By, int Steps, int MR, int NR, bool TB, int LB, int SB>
PL_FN void dot_held(f32* acc, const u32* a, u32 b, u32 b_slot PL_AND_LINE) {
  PL_UNROLL for (u32 k = 0; k < Steps; ++k) {
    u32 y[2 * NR];
    dot_columns<NR, 1, TB, LB, SB>(y, b, b_slot, 0, k PL_AND_PASS_LINE);
    PL_UNROLL for (u32 i = 0; i < MR; ++i) {
      PL_UNROLL for (u32 j = 0; j < NR; ++j) {
        dot_step(acc + 4 * (i * NR + j), a + 4 * (i * Steps + k), y + 2 * j, By() PL_AND_PASS_LINE);
      }
    }
  }
}

}  // namespace detail

// K a multiple of 32 bytes. Rows of A are LA bytes long, of B LB; 16 bytes c of row r stand at
// c ^ (r % 8 >> (3 - SA)), of B SB. A and B lie in slots of rings: a + a_slot, b + b_slot.
template <int MR, int NR, int WM, bool TA, bool TB, class T, int K, int LA, int SA, int LB, int SB,
          int WN = 4 / WM>
PL_FN void dot_mma_16816(f32* acc, u32 a, u32 a_slot, u32 b, u32 b_slot PL_AND_LINE) {
  detail::dot_matrices<detail::Halves<T>, K / 16, MR, NR, WM, TA, TB, LA, SA, LB, SB, WN>(
      acc, a, a_slot, b, b_slot PL_AND_PASS_LINE);
}
template <int MR, int NR, int WM, bool TA, bool TB, class T, int K, int LA, int SA, int LB, int SB,
          int WN = 4 / WM>
PL_FN void dot_mma_1688(f32* acc, u32 a, u32 a_slot, u32 b, u32 b_slot PL_AND_LINE) {
  detail::dot_matrices<detail::HalvesTwice<T>, K / 16, MR, NR, WM, TA, TB, LA, SA, LB, SB, WN>(
      acc, a, a_slot, b, b_slot PL_AND_PASS_LINE);
}
template <int MR, int NR, bool TB, class T, int K, int LB, int SB>
PL_FN void dot_mma_16816_from_registers(f32* acc, const u32* a, u32 b, u32 b_slot PL_AND_LINE) {
  detail::dot_held<detail::Halves<T>, K / 16, MR, NR, TB, LB, SB>(acc, a, b,
                                                                  b_slot PL_AND_PASS_LINE);
}
template <int MR, int NR, bool TB, class T, int K, int LB, int SB>
PL_FN void dot_mma_1688_from_registers(f32* acc, const u32* a, u32 b, u32 b_slot PL_AND_LINE) {
  detail::dot_held<detail::HalvesTwice<T>, K / 16, MR, NR, TB, LB, SB>(acc, a, b,
                                                                       b_slot PL_AND_PASS_LINE);
}
// Rows of both run along K: B is stored (N, K).
template <int MR, int NR, int WM, class A, class B, int K, int LA, int SA, int LB, int SB,
          int WN = 4 / WM, class Acc>
PL_FN void dot_mma_16832(Acc* acc, u32 a, u32 a_slot, u32 b, u32 b_slot PL_AND_LINE) {
  detail::dot_matrices<detail::Bytes<A, B>, K / 32, MR, NR, WM, false, true, LA, SA, LB, SB, WN>(
      acc, a, a_slot, b, b_slot PL_AND_PASS_LINE);
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
