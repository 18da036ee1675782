// Tensor cores by mma.sync, ldmatrix and stmatrix.

namespace pl {
namespace detail {

template <int Words, class T>
PL_FN void fragment(u32 (&w)[Words], const T* e) {
  constexpr int per_word = 4 / int(sizeof(T));
  PL_UNROLL for (int i = 0; i < Words; ++i) {
    w[i] = 0;
    PL_UNROLL for (int j = 0; j < per_word; ++j) {
      w[i] |= u32(bitcast<bits_of<T>>(e[i * per_word + j])) << (8 * sizeof(T) * j);
    }
  }
}

// Only from sm_90 on there is an instruction for it. Nobody reads the last 13 bits.
PL_FN u32 tf32_word(f32 x) {
#if __CUDA_ARCH__ >= 900
  u32 r;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
#else
  const u32 bits = bitcast<u32>(x);
  return x != x ? 0x7fffffffu : bits + 0xfff + (bits >> 13 & 1);
#endif
}

template <int Words, class T>
PL_FN void unpack_all(T* dst, const u32 (&w)[Words]) {
  PL_UNROLL for (int i = 0; i < Words; ++i) unpack(dst + 2 * i, w[i]);
}

}  // namespace detail

PL_FN f32 round_to_tf32(f32 x) { return bitcast<f32>(detail::tf32_word(x) & ~0x1fffu); }

template <class T>
PL_FN void mma_m16n8k16(f32* d, const T* a, const T* b) {
  static_assert(detail::is_half<T>, "mma_m16n8k16: f16 or bf16");
  u32 x[4], y[2];
  detail::fragment(x, a);
  detail::fragment(y, b);
  if constexpr (detail::same<T, f16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
}

PL_FN void mma_m16n8k8(f32* d, const f16* a, const f16* b) {
  u32 x[2], y[1];
  detail::fragment(x, a);
  detail::fragment(y, b);
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(y[0]));
}

PL_FN void mma_m16n8k8_tf32(f32* d, const f32* a, const f32* b) {
  u32 x[4], y[2];
  PL_UNROLL for (int i = 0; i < 4; ++i) x[i] = detail::tf32_word(a[i]);
  PL_UNROLL for (int i = 0; i < 2; ++i) y[i] = detail::tf32_word(b[i]);
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

PL_FN void mma_m16n8k32(i32* d, const i8* a, const i8* b) {
  u32 x[4], y[2];
  detail::fragment(x, a);
  detail::fragment(y, b);
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

#define PL_MMA_WORDS(name, type)                                                   \
  PL_FN void name(f32* d, const u32* a, const u32* b) {                            \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                     \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"     \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));       \
  }
PL_MMA_WORDS(mma_m16n8k16_f16, "f16")
PL_MMA_WORDS(mma_m16n8k16_bf16, "bf16")

PL_FN void mma_m16n8k8_f16(f32* d, const u32* a, const u32* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

// clang-format off
#define PL_MMA_16832(sum, a_type, b_type, with)                                                        \
  asm("mma.sync.aligned.m16n8k32.row.col." sum "." a_type "." b_type "." sum                           \
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                               \
      : with(d[0]), with(d[1]), with(d[2]), with(d[3])                                                 \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
// Before sm_80: of 8 rows and 16 of K.
#define PL_MMA_8816(a_type, b_type, row, k)                                                            \
  asm("mma.sync.aligned.m8n8k16.row.col.s32." a_type "." b_type ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};" \
      : "+r"(d[2 * (row)]), "+r"(d[2 * (row) + 1]) : "r"(a[(row) + 2 * (k)]), "r"(b[k]))
#define PL_MMA_INTEGERS(a_type, b_type)                                                                \
  if constexpr (__CUDA_ARCH__ >= 800) {                                                                \
    PL_MMA_16832("s32", a_type, b_type, "+r");                                                         \
  } else {                                                                                             \
    PL_MMA_8816(a_type, b_type, 0, 0);                                                                 \
    PL_MMA_8816(a_type, b_type, 1, 0);                                                                 \
    PL_MMA_8816(a_type, b_type, 0, 1);                                                                 \
    PL_MMA_8816(a_type, b_type, 1, 1);                                                                 \
  }
// clang-format on

template <class A, class B>
PL_FN void mma_m16n8k32_integers(i32* d, const u32* a, const u32* b) {
  if constexpr (detail::is_signed<A>) {
    if constexpr (detail::is_signed<B>) {
      PL_MMA_INTEGERS("s8", "s8")
    } else {
      PL_MMA_INTEGERS("s8", "u8")
    }
  } else {
    if constexpr (detail::is_signed<B>) {
      PL_MMA_INTEGERS("u8", "s8")
    } else {
      PL_MMA_INTEGERS("u8", "u8")
    }
  }
}

template <class A, class B>
PL_FN void mma_m16n8k32_floats(f32* d, const u32* a, const u32* b) {
  if constexpr (detail::same<A, f8e4m3>) {
    if constexpr (detail::same<B, f8e4m3>) {
      PL_MMA_16832("f32", "e4m3", "e4m3", "+f");
    } else {
      PL_MMA_16832("f32", "e4m3", "e5m2", "+f");
    }
  } else {
    if constexpr (detail::same<B, f8e4m3>) {
      PL_MMA_16832("f32", "e5m2", "e4m3", "+f");
    } else {
      PL_MMA_16832("f32", "e5m2", "e5m2", "+f");
    }
  }
}

// clang-format off
#define PL_LDMATRIX_WORDS(name, form, registers, ...)                                                  \
  PL_FN void name(u32* dst, u32 row) {                                                                 \
    asm volatile("ldmatrix.sync.aligned.m8n8." form ".shared.b16 " registers ";"                       \
                 : __VA_ARGS__ : "r"(row) : "memory");                                                 \
  }
#define PL_LDMATRIX(name, count, form, registers, ...)                                                 \
  template <class T>                                                                                   \
  PL_FN void name(T* dst, u32 row) {                                                                   \
    u32 w[count];                                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n8." form ".shared.b16 " registers ", [%" #count "];"        \
                 : __VA_ARGS__ : "r"(row) : "memory");                                                 \
    detail::unpack_all(dst, w);                                                                        \
  }
#define PL_STMATRIX(name, count, form, registers, ...)                                                 \
  template <class T>                                                                                   \
  PL_FN void name(u32 row, const T* src) {                                                             \
    u32 w[count];                                                                                      \
    detail::fragment(w, src);                                                                          \
    asm volatile("stmatrix.sync.aligned.m8n8." form ".shared.b16 [%0], " registers ";"                 \
                 :: "r"(row), __VA_ARGS__ : "memory");                                                 \
  }
PL_LDMATRIX(ldmatrix_x1, 1, "x1", "{%0}", "=r"(w[0]))
PL_LDMATRIX(ldmatrix_x2, 2, "x2", "{%0, %1}", "=r"(w[0]), "=r"(w[1]))
PL_LDMATRIX(ldmatrix_x4, 4, "x4", "{%0, %1, %2, %3}", "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]))
PL_LDMATRIX(ldmatrix_x1_trans, 1, "x1.trans", "{%0}", "=r"(w[0]))
PL_LDMATRIX(ldmatrix_x2_trans, 2, "x2.trans", "{%0, %1}", "=r"(w[0]), "=r"(w[1]))
PL_LDMATRIX(ldmatrix_x4_trans, 4, "x4.trans", "{%0, %1, %2, %3}", "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]))
PL_LDMATRIX_WORDS(ldmatrix_words_x2, "x2", "{%0, %1}, [%2]", "=r"(dst[0]), "=r"(dst[1]))
PL_LDMATRIX_WORDS(ldmatrix_words_x4, "x4", "{%0, %1, %2, %3}, [%4]", "=r"(dst[0]), "=r"(dst[1]), "=r"(dst[2]), "=r"(dst[3]))
PL_LDMATRIX_WORDS(ldmatrix_words_x2_trans, "x2.trans", "{%0, %1}, [%2]", "=r"(dst[0]), "=r"(dst[1]))
PL_LDMATRIX_WORDS(ldmatrix_words_x4_trans, "x4.trans", "{%0, %1, %2, %3}, [%4]", "=r"(dst[0]), "=r"(dst[1]), "=r"(dst[2]), "=r"(dst[3]))
PL_STMATRIX(stmatrix_x1, 1, "x1", "{%1}", "r"(w[0]))
PL_STMATRIX(stmatrix_x2, 2, "x2", "{%1, %2}", "r"(w[0]), "r"(w[1]))
PL_STMATRIX(stmatrix_x4, 4, "x4", "{%1, %2, %3, %4}", "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]))
PL_STMATRIX(stmatrix_x1_trans, 1, "x1.trans", "{%1}", "r"(w[0]))
PL_STMATRIX(stmatrix_x2_trans, 2, "x2.trans", "{%1, %2}", "r"(w[0]), "r"(w[1]))
PL_STMATRIX(stmatrix_x4_trans, 4, "x4.trans", "{%1, %2, %3, %4}", "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]))
// clang-format on

// A lane has of two rows a pair of neighbours, and of the two rows behind them another in another
// matrix: which comes first is what bit 1 of the lane says, and bit 4 which neighbour.
PL_FN void transpose_bytes(u32 to, u32 from) {
  const u32 l = lane();
  const u32 first = (l & 2 ? 0x2064 : 0x6420) ^ (l & 16 ? 0x1111 : 0);
  u32 w[4];
  ldmatrix_words_x4_trans(w, from);
  const u32 turned[4] = {
      detail::bytes_below(w[0], w[1], first), detail::bytes_below(w[0], w[1], first ^ 0x1111),
      detail::bytes_below(w[2], w[3], first), detail::bytes_below(w[2], w[3], first ^ 0x1111)};
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(to), "r"(turned[0]), "r"(turned[1]), "r"(turned[2]), "r"(turned[3])
               : "memory");
}

}  // namespace pl
