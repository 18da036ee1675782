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

PL_FN u32 round_to_tf32(f32 x) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}

template <int Words, class T>
PL_FN void unpack_all(T* dst, const u32 (&w)[Words]) {
  PL_UNROLL for (int i = 0; i < Words; ++i) unpack(dst + 2 * i, w[i]);
}

}  // namespace detail

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
  PL_UNROLL for (int i = 0; i < 4; ++i) x[i] = detail::round_to_tf32(a[i]);
  PL_UNROLL for (int i = 0; i < 2; ++i) y[i] = detail::round_to_tf32(b[i]);
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

#define PL_LDMATRIX(suffix, modifier)                                                           \
  template <class T>                                                                            \
  PL_FN void ldmatrix_x1##suffix(T* dst, u32 row) {                                             \
    u32 w[1];                                                                                   \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" modifier ".shared.b16 {%0}, [%1];"             \
                 : "=r"(w[0])                                                                   \
                 : "r"(row)                                                                     \
                 : "memory");                                                                   \
    detail::unpack_all(dst, w);                                                                 \
  }                                                                                             \
  template <class T>                                                                            \
  PL_FN void ldmatrix_x2##suffix(T* dst, u32 row) {                                             \
    u32 w[2];                                                                                   \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" modifier ".shared.b16 {%0, %1}, [%2];"         \
                 : "=r"(w[0]), "=r"(w[1])                                                       \
                 : "r"(row)                                                                     \
                 : "memory");                                                                   \
    detail::unpack_all(dst, w);                                                                 \
  }                                                                                             \
  template <class T>                                                                            \
  PL_FN void ldmatrix_x4##suffix(T* dst, u32 row) {                                             \
    u32 w[4];                                                                                   \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" modifier ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])                               \
                 : "r"(row)                                                                     \
                 : "memory");                                                                   \
    detail::unpack_all(dst, w);                                                                 \
  }
PL_LDMATRIX(, "")
PL_LDMATRIX(_trans, ".trans")
#undef PL_LDMATRIX

#define PL_STMATRIX(suffix, modifier)                                                           \
  template <class T>                                                                            \
  PL_FN void stmatrix_x1##suffix(u32 row, const T* src) {                                       \
    u32 w[1];                                                                                   \
    detail::fragment(w, src);                                                                   \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" modifier ".shared.b16 [%0], {%1};" ::"r"(row), \
                 "r"(w[0])                                                                      \
                 : "memory");                                                                   \
  }                                                                                             \
  template <class T>                                                                            \
  PL_FN void stmatrix_x2##suffix(u32 row, const T* src) {                                       \
    u32 w[2];                                                                                   \
    detail::fragment(w, src);                                                                   \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" modifier                                       \
                 ".shared.b16 [%0], {%1, %2};" ::"r"(row),                                      \
                 "r"(w[0]), "r"(w[1])                                                           \
                 : "memory");                                                                   \
  }                                                                                             \
  template <class T>                                                                            \
  PL_FN void stmatrix_x4##suffix(u32 row, const T* src) {                                       \
    u32 w[4];                                                                                   \
    detail::fragment(w, src);                                                                   \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" modifier                                       \
                 ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),                              \
                 "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])                                     \
                 : "memory");                                                                   \
  }
PL_STMATRIX(, "")
PL_STMATRIX(_trans, ".trans")
#undef PL_STMATRIX

}  // namespace pl
