// What convert.cuh and arithmetic.cuh need of a GPU.

namespace pl {
namespace detail {

PL_FN void watch(u32) {}

PL_FN f32 widen(f16 x) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}

PL_FN f32 widen(bf16 x) { return bitcast<f32>(u32(x.bits) << 16); }

template <class H>
PL_FN H narrow(f32 x);
template <>
PL_FN f16 narrow<f16>(f32 x) {
  u16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return f16{r};
}
template <>
PL_FN bf16 narrow<bf16>(f32 x) {
  u16 r;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
#else
  const u32 b = bitcast<u32>(x);
  r = x != x ? 0x7fff : u16((b + 0x7fff + ((b >> 16) & 1)) >> 16);
#endif
  return bf16{r};
}

template <class I, class F>
PL_FN I float_to_integer(F x);

// One instruction saturates and turns NaN into 0 for 32-bit integers.
template <class I, class F>
PL_FN I truncate(F x) {
  if constexpr (same<F, f32> && same<I, i32>) {
    i32 r;
    asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
  } else if constexpr (same<F, f32> && same<I, u32>) {
    u32 r;
    asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
  } else {
    return float_to_integer<I>(x);
  }
}

PL_FN f32 remainder(f32 a, f32 b) { return ::fmodf(a, b); }
PL_FN f64 remainder(f64 a, f64 b) { return ::fmod(a, b); }

// IEEE division of f32. Where doubles are not slow, it goes through them: ptxas expands div.rn.f32
// into a call of 7 ms, and what depends on the divisor alone is computed once for all dividends. A
// quotient of doubles that is right to 50 bits rounds to the right float, for no quotient of floats
// comes closer than that to the middle of two, unless it is that middle, and then it is exact here.
// A residual that is NaN (b or the quotient is infinite or 0) leaves what it would correct.
struct Divisor {
  double reciprocal, negated;
};
PL_FN Divisor divisor(f32 b) {
  double r, n;
  asm("{.reg .f64 e; .reg .pred p;\n\t"
      "cvt.f64.f32 %1, %2;\n\t"
      "rcp.approx.ftz.f64 %0, %1;\n\t"
      "neg.f64 %1, %1;\n\t"
      "fma.rn.f64 e, %1, %0, 0d3FF0000000000000;\n\t"
      "setp.ne.f64 p, e, 0d0000000000000000;\n\t"
      "@p fma.rn.f64 %0, e, %0, %0;\n\t"
      "fma.rn.f64 e, %1, %0, 0d3FF0000000000000;\n\t"
      "setp.ne.f64 p, e, 0d0000000000000000;\n\t"
      "@p fma.rn.f64 %0, e, %0, %0;}"
      : "=&d"(r), "=&d"(n)
      : "f"(b));
  return {r, n};
}
PL_FN f32 quotient(f32 a, f32 b) {
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
  const Divisor d = divisor(b);
  f32 q;
  asm("{.reg .f64 a, q, e; .reg .pred p;\n\t"
      "cvt.f64.f32 a, %1;\n\t"
      "mul.rn.f64 q, a, %2;\n\t"
      "fma.rn.f64 e, %3, q, a;\n\t"
      "setp.ne.f64 p, e, 0d0000000000000000;\n\t"
      "@p fma.rn.f64 q, e, %2, q;\n\t"
      "cvt.rn.f32.f64 %0, q;}"
      : "=f"(q)
      : "f"(a), "d"(d.reciprocal), "d"(d.negated));
  return q;
#else
  return a / b;
#endif
}

PL_FN int count_ones(u64 x) { return __popcll(x); }
PL_FN int count_ones(u32 x) { return __popc(x); }
PL_FN int count_ones(u16 x) { return __popc(x); }
PL_FN int count_ones(u8 x) { return __popc(x); }
PL_FN int leading_zeros(u64 x) { return __clzll(x); }

PL_FN f32 lesser(f32 a, f32 b) {
#if __CUDA_ARCH__ >= 800
  f32 r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return lesser_float(a, b);
#endif
}

PL_FN f32 greater(f32 a, f32 b) {
#if __CUDA_ARCH__ >= 800
  f32 r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return greater_float(a, b);
#endif
}

}  // namespace detail
}  // namespace pl
