// What convert.cuh and arithmetic.cuh need of a CPU.

namespace pl {
namespace detail {

// Tells of an accumulator in flight, whose signalling NaN arithmetic may have made quiet.
PL_FN void watch(u32 word, i32 line) {
  constexpr u32 quiet = 1 << 22;
  if ((word | quiet) == (in_flight | quiet)) host.saw_in_flight(line);
}

PL_FN u32 kept(u32 x) { return x; }

PL_FN f32 widen(f16 x) {
  const u32 sign = u32(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fff;
  if (magnitude > 0x7c00) return bitcast<f32>(0x7fffffffu);
  if (magnitude == 0x7c00) return bitcast<f32>(sign | 0x7f800000);
  if (magnitude >= 0x400) return bitcast<f32>(sign | ((magnitude << 13) + (112u << 23)));
  const f32 subnormal = static_cast<f32>(magnitude) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

PL_FN f32 widen(bf16 x) { return bitcast<f32>(u32(x.bits) << 16); }
PL_FN f32 widen(f8e4m3 x) { return widen(as_small_f16(x)) * 256; }
PL_FN f32 widen(f8e5m2 x) { return widen(as_f16(x)); }

template <class H>
PL_FN H narrow(f32 x);
template <>
PL_FN f16 narrow<f16>(f32 x) {
  const u32 bits = bitcast<u32>(x), magnitude = bits & 0x7fffffff;
  const u32 sign = (bits >> 16) & 0x8000;
  if (magnitude > 0x7f800000) return f16{0x7fff};
  if (magnitude >= 0x477ff000) return f16{static_cast<u16>(sign | 0x7c00)};
  if (magnitude < 0x38800000) {  // the unit in the last place of 0.5f is f16's least subnormal
    const u32 sum = bitcast<u32>(bitcast<f32>(magnitude) + 0.5f);
    return f16{static_cast<u16>(sign | (sum - 0x3f000000))};
  }
  const u32 rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return f16{static_cast<u16>(sign | ((rounded - (112u << 23)) >> 13))};
}
template <>
PL_FN bf16 narrow<bf16>(f32 x) {
  const u32 bits = bitcast<u32>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return bf16{0x7fff};
  return bf16{static_cast<u16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}
template <>
PL_FN f8e4m3 narrow<f8e4m3>(f32 x) {
  return rounded_e4m3(x);
}
template <>
PL_FN f8e5m2 narrow<f8e5m2>(f32 x) {
  return rounded_e5m2(x);
}

template <class I, class F>
PL_FN I float_to_integer(F x);
template <class I, class F>
PL_FN I truncate(F x) {
  return float_to_integer<I>(x);
}

PL_FN u32 word_at(const void* src) {
  u32 word;
  __builtin_memcpy(&word, src, 4);
  return word;
}

// One by one.
template <class To, class From>
PL_FN constexpr bool converts_fours() {
  return false;
}
template <class To, class From>
PL_FN constexpr bool converts_pairs() {
  return false;
}
template <int N, class To, class From>
PL_FN bool converts_all(const From*) {
  return false;
}
template <class H, class I>
PL_FN void convert_four(H* dst, const I* src);
template <class H, class I>
PL_FN void convert_pair(H* dst, const I* src);
template <bool Signed, class H>
PL_FN void convert_halves(H* dst, const u8* src);

template <class T>
PL_FN constexpr bool computes_pairs() {
  return false;
}
template <int Step, class H>
PL_FN u32 pair_at(const H* x);
template <class H>
PL_FN void put_pair(H* dst, u32 pair);
template <class H>
PL_FN u32 sum_of_pairs(u32 a, u32 b);
template <class H>
PL_FN u32 difference_of_pairs(u32 a, u32 b);
template <class H>
PL_FN u32 product_of_pairs(u32 a, u32 b);
template <class H>
PL_FN u32 greater_of_pairs(u32 a, u32 b);
template <class H>
PL_FN u32 lesser_of_pairs(u32 a, u32 b);

PL_FN f32 quotient(f32 a, f32 b) { return a / b; }
PL_FN f32 rounded_quotient(f32 a, f64 r) {
  return f32(__builtin_bit_cast(f64, __builtin_bit_cast(u64, a * r) & ~u64(7)));
}
PL_FN f32 quotient_by_count(f32 a, f32 b) { return a / b; }
PL_FN i64 wide_product(i32 a, i32 b) { return i64(a) * b; }
PL_FN f32 remainder(f32 a, f32 b) { return host.remainder_f32(a, b); }
PL_FN f64 remainder(f64 a, f64 b) { return host.remainder_f64(a, b); }

// As wrong as the GPU's may be: up to a unit up or down, by the divisor's bits.
PL_FN f32 approximate_reciprocal(f32 b) {
  const u32 draw = bitcast<u32>(b) * 0x9e3779b9 >> 30;
  const u32 nearest = bitcast<u32>(1.0f / b);
  return bitcast<f32>(draw == 0 ? nearest + 1 : draw == 1 ? nearest - 1 : nearest);
}

PL_FN f32 fused(f32 a, f32 b, f32 c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return host.fma_f32(a, b, c);
#endif
}

PL_FN int count_ones(u64 x) {
  int n = 0;
  for (; x != 0; x &= x - 1) ++n;
  return n;
}
PL_FN int leading_zeros(u64 x) { return x == 0 ? 64 : __builtin_clzll(x); }

PL_FN f32 lesser(f32 a, f32 b) { return lesser_float(a, b); }
PL_FN f32 greater(f32 a, f32 b) { return greater_float(a, b); }

}  // namespace detail
}  // namespace pl
