// What convert.cuh and arithmetic.cuh need of a GPU.

namespace pl {
namespace detail {

PL_FN void watch(u32) {}

// x, of which the compiler no longer knows how it was made: it is computed before a loop that does
// not change it, and not taken apart there to be added to something else first.
PL_FN u32 kept(u32 x) {
  asm("" : "+r"(x));
  return x;
}

PL_FN u32 word_at(const void* src) {
  u32 word;
  ::memcpy(&word, src, 4);
  return word;
}

PL_FN f32 widen(f16 x) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}

PL_FN f32 widen(bf16 x) { return bitcast<f32>(u32(x.bits) << 16); }
PL_FN f32 widen(f8e4m3 x) {
#if __CUDA_ARCH__ >= 890
  u32 pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(u16(x.bits)));
  return widen(f16{static_cast<u16>(pair)});
#else
  return widen(as_small_f16(x)) * 256;
#endif
}
PL_FN f32 widen(f8e5m2 x) { return widen(as_f16(x)); }

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
// The instruction takes the greatest number for all that are beyond it.
template <>
PL_FN f8e4m3 narrow<f8e4m3>(f32 x) {
#if __CUDA_ARCH__ >= 890
  u16 r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));
  const u32 bits = bitcast<u32>(x);
  return f8e4m3{static_cast<u8>((bits & 0x7fffffff) > 0x43e80000 ? bits >> 24 | 0x7f : r)};
#else
  return rounded_e4m3(x);
#endif
}
template <>
PL_FN f8e5m2 narrow<f8e5m2>(f32 x) {
#if __CUDA_ARCH__ >= 890
  u16 r;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));
  const u32 bits = bitcast<u32>(x), magnitude = bits & 0x7fffffff;
  const bool is_beyond = magnitude >= 0x47700000 && magnitude <= 0x7f800000;
  return f8e5m2{static_cast<u8>(is_beyond ? (bits >> 24 & 0x80) | 0x7c : r)};
#else
  return rounded_e5m2(x);
#endif
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
  } else if constexpr (same<F, f32> && sizeof(I) < 4) {
    const i32 r = truncate<i32>(x), most = max_value<I>(), least = min_value<I>();
    return static_cast<I>(r > most ? most : r < least ? least : r);
  } else {
    return float_to_integer<I>(x);
  }
}

// Of four bytes two, `which` of them, below the bytes of `above`.
PL_FN u32 bytes_below(u32 x, u32 above, u32 which) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(above), "r"(which));
  return r;
}

template <class H>
PL_FN u32 difference_of_pairs(u32 a, u32 b) {
  u32 r;
  if constexpr (same<H, f16>) {
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else {
#if __CUDA_ARCH__ >= 900
    asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#elif __CUDA_ARCH__ >= 800
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(b), "r"(0xbf80bf80), "r"(a));
#endif
  }
  return r;
}

// Whether two 16-bit floats in a word are added, multiplied and compared by one instruction. f32 has
// more than twice the bits of both: what is rounded to it first, and then to 16, is the same.
template <class T>
PL_FN constexpr bool computes_pairs() {
#if __CUDA_ARCH__ >= 800
  return is_half<T>;
#else
  return false;
#endif
}

// Two neighbours, or (step 0) a number twice.
template <int Step, class H>
PL_FN u32 pair_at(const H* x) {
  return bitcast<u16>(x[0]) | u32(bitcast<u16>(x[Step])) << 16;
}
template <class H>
PL_FN void put_pair(H* dst, u32 pair) {
  ::memcpy(dst, &pair, 4);
}

// What bf16 has no instruction for before sm_90 is a multiply-add of 1 or of -0.
template <class H>
PL_FN u32 sum_of_pairs(u32 a, u32 b) {
  u32 r = 0;
  if constexpr (same<H, f16>) {
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else {
#if __CUDA_ARCH__ >= 900
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#elif __CUDA_ARCH__ >= 800
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(0x3f803f80), "r"(b));
#endif
  }
  return r;
}
template <class H>
PL_FN u32 product_of_pairs(u32 a, u32 b) {
  u32 r = 0;
  if constexpr (same<H, f16>) {
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else {
#if __CUDA_ARCH__ >= 900
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#elif __CUDA_ARCH__ >= 800
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0x80008000));
#endif
  }
  return r;
}
template <class H>
PL_FN u32 greater_of_pairs(u32 a, u32 b) {
  u32 r = 0;
#if __CUDA_ARCH__ >= 800
  if constexpr (same<H, f16>)
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  else
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#endif
  return r;
}
template <class H>
PL_FN u32 lesser_of_pairs(u32 a, u32 b) {
  u32 r = 0;
#if __CUDA_ARCH__ >= 800
  if constexpr (same<H, f16>)
    asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  else
    asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#endif
  return r;
}

// a b + c of two bf16, rounded once.
PL_FN u32 fused_pairs(u32 a, u32 b, u32 c) {
  u32 r = 0;
#if __CUDA_ARCH__ >= 800
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
#endif
  return r;
}

// 1024 and more have a last place of 1 in f16: a byte there is the number that it adds. In bf16 a
// byte by itself is that number of the smallest that there are, 2^-133, of which 2^127 is the most
// that one factor makes.
template <class H, class I>
PL_FN u32 widened_pair(u32 x, u32 which) {
  const u32 natural = same<I, i8> ? x ^ 0x80808080 : x;
  if constexpr (same<H, f16>) {
    return difference_of_pairs<H>(bytes_below(natural, 0x64646464, which),
                                  same<I, i8> ? 0x64806480 : 0x64006400);
  } else {
    const u32 none = 0x80008000, less_by_2 = 0xc000c000;  // -0: adds nothing to 0, either
    const u32 sixty_fourths =
        fused_pairs(bytes_below(natural, 0, which), 0x7f007f00, same<I, i8> ? less_by_2 : none);
    return fused_pairs(sixty_fourths, 0x42804280, none);
  }
}

// Whether four elements at once take fewer instructions than one by one.
template <class To, class From>
PL_FN constexpr bool converts_fours() {
  constexpr bool from_integers = same<From, i8> || same<From, u8>;
  constexpr bool to_integers = same<To, i8> || same<To, u8>;
#if __CUDA_ARCH__ >= 800
  if (same<To, bf16> && (from_integers || same<From, f8e5m2>)) return true;
#endif
#if __CUDA_ARCH__ >= 890
  if (is_byte_float<To> && same<From, f32>) return true;
  if ((is_half<To> || same<To, f32>) && same<From, f8e4m3>) return true;
#endif
  if (same<To, f32>) return from_integers || same<From, bf16> || same<From, f8e5m2>;
  return (same<To, f16> && (from_integers || same<From, f8e5m2>)) ||
         (to_integers && same<From, f32>);
}

// Whether two at once do, where no four are neighbours.
template <class To, class From>
PL_FN constexpr bool converts_pairs() {
#if __CUDA_ARCH__ >= 890
  if (same<To, f8e4m3> && same<From, f32>) return true;
#endif
  return (same<To, i8> || same<To, u8>) && same<From, f32>;
}

// Whether none of them becomes an infinity, which the instruction does not make.
template <int N, class To, class From>
PL_FN bool converts_all(const From* src) {
  if constexpr (same<To, f8e5m2>) {
    f32 most = 0;
#if __CUDA_ARCH__ >= 890
    PL_UNROLL for (int i = 0; i < N; ++i)
      asm("{.reg .f32 x; abs.f32 x, %1; max.NaN.f32 %0, %0, x;}" : "+f"(most) : "f"(src[i]));
#endif
    return most <= bitcast<f32>(0x476fffff);
  } else {
    return true;
  }
}

// Four bytes that are numbers: in f32, 2^23 and more have a last place of 1.
template <class I>
PL_FN void convert_word(f32* dst, u32 x) {
  const u32 natural = same<I, i8> ? x ^ 0x80808080 : x;
  PL_UNROLL for (u32 i = 0; i < 4; ++i)
    dst[i] = bitcast<f32>(bytes_below(natural, 0x4b000000, 0x7440 + i)) -
             (same<I, i8> ? 8388736.0f : 8388608.0f);
}
template <class I, class H>
PL_FN void convert_word(H* dst, u32 x) {
  const u32 all[2] = {widened_pair<H, I>(x, 0x4140), widened_pair<H, I>(x, 0x4342)};
  ::memcpy(dst, all, 8);
}

// Four floats of 8 bits as those of 16 that hold them: an e5m2 is the upper byte of one.
template <class F>
PL_FN void f16_pairs(u32* pairs, u32 x) {
  if constexpr (same<F, f8e5m2>) {
    pairs[0] = bytes_below(x, 0, 0x1404);
    pairs[1] = bytes_below(x, 0, 0x3424);
  } else {
#if __CUDA_ARCH__ >= 890
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e4m3x2 %0, l;\n\t"
        "cvt.rn.f16x2.e4m3x2 %1, h;}"
        : "=r"(pairs[0]), "=r"(pairs[1])
        : "r"(x));
#endif
  }
}
template <class F, class To>
PL_FN void convert_float_word(To* dst, u32 x) {
  u32 pairs[2];
  f16_pairs<F>(pairs, x);
  if constexpr (same<To, f16>) {
    ::memcpy(dst, pairs, 8);
  } else {
    f16 halves[4];
    ::memcpy(halves, pairs, 8);
    PL_UNROLL for (int i = 0; i < 4; ++i) {
      if constexpr (same<To, f32>)
        dst[i] = widen(halves[i]);
      else
        dst[i] = narrow<To>(widen(halves[i]));
    }
  }
}

// What is beyond the greatest e4m3 is no number.
PL_FN f32 within_e4m3(f32 x) {
  f32 r;
  asm("{.reg .f32 m; .reg .pred p; abs.f32 m, %1; setp.le.f32 p, m, 0f43E80000;\n\t"
      "selp.f32 %0, %1, 0f7FFFFFFF, p;}"
      : "=f"(r)
      : "f"(x));
  return r;
}
template <class F>
PL_FN u32 narrow_pair(f32 low, f32 high) {
  u16 r = 0;
#if __CUDA_ARCH__ >= 890
  if constexpr (same<F, f8e4m3>) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(r)
        : "f"(within_e4m3(high)), "f"(within_e4m3(low)));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
  }
#endif
  return r;
}
// Two integers as bytes, below the lower two of `above`.
template <class I>
PL_FN u32 saturated_pair(i32 low, i32 high, u32 above) {
  u32 r;
  if constexpr (same<I, i8>) {
    asm("cvt.pack.sat.s8.s32.b32 %0, %2, %1, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(above));
  } else {
    asm("cvt.pack.sat.u8.s32.b32 %0, %2, %1, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(above));
  }
  return r;
}
template <class To>
PL_FN u32 narrowed_pair(const f32* src, u32 above) {
  if constexpr (is_byte_float<To>)
    return narrow_pair<To>(src[0], src[1]) | above << 16;
  else
    return saturated_pair<To>(truncate<i32>(src[0]), truncate<i32>(src[1]), above);
}

// Of words, which no byte is taken out of.
template <class To, class From>
PL_FN void convert_four(To* dst, const From* src) {
  if constexpr (sizeof(From) == 1) {
    u32 x;
    ::memcpy(&x, src, 4);
    if constexpr (is_byte_float<From>)
      convert_float_word<From>(dst, x);
    else
      convert_word<From>(dst, x);
  } else if constexpr (same<From, bf16>) {
    u32 pairs[2];
    ::memcpy(pairs, src, 8);
    PL_UNROLL for (int i = 0; i < 4; ++i)
      dst[i] = bitcast<f32>(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000);
  } else {
    const u32 all = narrowed_pair<To>(src, narrowed_pair<To>(src + 2, 0));
    ::memcpy(dst, &all, 4);
  }
}
template <class To>
PL_FN void convert_pair(To* dst, const f32* src) {
  const u16 both = narrowed_pair<To>(src, 0);
  ::memcpy(dst, &both, 2);
}

// x & mask ^ bits: one instruction, where ptxas makes two of two constants.
PL_FN u32 chosen_and_turned(u32 x, u32 mask, u32 bits) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(r) : "r"(x), "r"(mask), "r"(bits));
  return r;
}

// Eight of 4 bits: the upper halves of bytes are lower ones of the word that is shifted.
template <bool Signed, class H>
PL_FN void convert_halves(H* dst, const u8* src) {
  constexpr u32 least = same<H, f16> ? 0x64006400 : 0x43004300, sign = Signed ? 0x00080008 : 0;
  u32 x, all[4];
  ::memcpy(&x, src, 4);
  PL_UNROLL for (u32 i = 0; i < 4; ++i) {
    const u32 pair = bytes_below(x, x >> 4, 0x4400 + 0x1111 * i);
    all[i] = difference_of_pairs<H>(chosen_and_turned(pair, 0x000f000f, least | sign), least | sign);
  }
  ::memcpy(dst, all, 16);
}

PL_FN f32 remainder(f32 a, f32 b) { return ::fmodf(a, b); }
PL_FN f64 remainder(f64 a, f64 b) { return ::fmod(a, b); }

// IEEE division of f32. Where doubles are not slow, it goes through them: ptxas expands div.rn.f32
// into a call of 7 ms, and the reciprocal is computed once for all dividends.
//
// The reciprocal is too large by a part of 2^-51, give or take 2^-53, so that a quotient of doubles
// is too large by 1 to 7 of its last places. Without its last 3 bits it is then exact where the
// true one has at most 50 bits, as the middle of two floats has, and off by less than 2^-49 where
// not; a quotient of floats that is not the middle of two is farther from it than that.
PL_FN double reciprocal(f32 b) {
  double r;
  asm("{.reg .f64 n, g, e, x; .reg .pred p;\n\t"
      "cvt.f64.f32 n, %1;\n\t"
      "rcp.approx.ftz.f64 g, n;\n\t"
      "neg.f64 n, n;\n\t"
      "fma.rn.f64 e, n, g, 0d3FF0000000000000;\n\t"
      "fma.rn.f64 x, e, g, g;\n\t"
      "fma.rn.f64 e, n, x, 0d3FF0000000000002;\n\t"
      "fma.rn.f64 x, e, x, x;\n\t"
      // Of 0 and of infinity there is nothing to correct.
      "setp.num.f64 p, x, x;\n\t"
      "selp.f64 %0, x, g, p;}"
      : "=d"(r)
      : "f"(b));
  return r;
}
PL_FN f32 rounded_quotient(f32 a, double r) {
  f32 q;
  asm("{.reg .f64 q;\n\t"
      "cvt.f64.f32 q, %1;\n\t"
      "mul.rn.f64 q, q, %2;\n\t"
      "and.b64 q, q, -8;\n\t"
      "cvt.rn.f32.f64 %0, q;}"
      : "=f"(q)
      : "f"(a), "d"(r));
  return q;
}
PL_FN f32 quotient(f32 a, f32 b) {
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
  return rounded_quotient(a, reciprocal(b));
#else
  return a / b;
#endif
}

// Of 0 and of numbers from 1 to 2^32, in one step that leaves the third power of what the
// approximation is off by, some 2^-57. That of 0, cut to a finite number, becomes infinity again.
PL_FN double reciprocal_of_count(f32 b) {
  double r;
  asm("{.reg .f64 n, g, e; .reg .b32 low, high;\n\t"
      "cvt.f64.f32 n, %1;\n\t"
      "rcp.approx.ftz.f64 g, n;\n\t"
      "mov.b64 {low, high}, g;\n\t"
      "min.s32 high, high, 0x7FE00000;\n\t"
      "mov.b64 g, {low, high};\n\t"
      "neg.f64 n, n;\n\t"
      "fma.rn.f64 e, n, g, 0d3FF0000000000002;\n\t"
      "fma.rn.f64 e, e, e, e;\n\t"
      "fma.rn.f64 %0, e, g, g;}"
      : "=d"(r)
      : "f"(b));
  return r;
}
PL_FN f32 quotient_by_count(f32 a, f32 b) {
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
  return rounded_quotient(a, reciprocal_of_count(b));
#else
  return a / b;
#endif
}

// (Of two that were widened compilers do not see that they are narrow, and take three.)
PL_FN i64 wide_product(i32 a, i32 b) {
  i64 r;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(r) : "r"(a), "r"(b));
  return r;
}

// Off by no more than a unit in the last place, where that is a normal number.
PL_FN f32 approximate_reciprocal(f32 b) {
  f32 r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  return r;
}

// a b + c, rounded once. (To link libdevice's takes NVRTC 2 ms.)
PL_FN f32 fused(f32 a, f32 b, f32 c) {
  f32 r;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
  return r;
}

// Eight of 4 bits that become f32: 16^i n beside 2^23 is a sixteenth to the i-th of that, less what
// 2^23 becomes.
template <bool Signed>
PL_FN void convert_halves(f32* dst, const u8* src) {
  u32 x;
  ::memcpy(&x, src, 4);
  if (Signed) x ^= 0x88888888;
  PL_UNROLL for (u32 i = 0; i < 8; ++i) {
    const f32 one = 1.0f / f32(1 << 4 * (i % 4));
    const u32 all = chosen_and_turned(i < 4 ? x : x >> 16, 15u << 4 * (i % 4), 0x4b000000);
    dst[i] = fused(bitcast<f32>(all), one, -8388608.0f * one - (Signed ? 8.0f : 0.0f));
  }
}

PL_FN int count_ones(u64 x) { return __popcll(x); }
PL_FN int count_ones(u32 x) { return __popc(x); }
PL_FN int count_ones(u16 x) { return __popc(x); }
PL_FN int count_ones(u8 x) { return __popc(x); }
PL_FN int leading_zeros(u64 x) { return __clzll(x); }

// x, or `least` where it is less; NaN stays.
PL_FN f32 no_less(f32 x, f32 least) {
#if __CUDA_ARCH__ >= 800
  f32 r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(least));
  return r;
#else
  return x < least ? least : x;
#endif
}

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
