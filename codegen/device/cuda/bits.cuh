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
