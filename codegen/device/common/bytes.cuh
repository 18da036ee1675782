// Floats of 8 bits by their bits, where no instruction converts them.

namespace pl {
namespace detail {

// f16 has the exponents of e5m2; with those of e4m3 a number is too small by 2^8.
PL_FN f16 as_f16(f8e5m2 x) { return f16{static_cast<u16>(x.bits << 8)}; }
PL_FN f16 as_small_f16(f8e4m3 x) {
  const u32 sign = u32(x.bits & 0x80) << 8, magnitude = x.bits & 0x7f;
  return f16{static_cast<u16>(sign | (magnitude == 0x7f ? 0x7fff : magnitude << 7))};
}

// The float of this magnitude with so many bits behind the point and exponents that are less by
// `scale`. `least` is the least normal number; the last place of `beside` is the least subnormal.
PL_FN u32 rounded_bits(u32 magnitude, u32 fraction, u32 scale, u32 least, f32 beside) {
  if (magnitude < least)
    return bitcast<u32>(bitcast<f32>(magnitude) + beside) - bitcast<u32>(beside);
  const u32 drop = 23 - fraction, odd = (magnitude >> drop) & 1;
  return (magnitude - (scale << 23) + ((1u << (drop - 1)) - 1) + odd) >> drop;
}

// What is above 464 has no place below NaN.
PL_FN f8e4m3 rounded_e4m3(f32 x) {
  const u32 bits = bitcast<u32>(x), magnitude = bits & 0x7fffffff;
  const u32 rounded =
      magnitude > 0x43e80000 ? 0x7f : rounded_bits(magnitude, 3, 120, 0x3c800000, 16384.0f);
  return f8e4m3{static_cast<u8>((bits >> 24 & 0x80) | rounded)};
}
// 61440 and more is infinite.
PL_FN f8e5m2 rounded_e5m2(f32 x) {
  const u32 bits = bitcast<u32>(x), magnitude = bits & 0x7fffffff;
  u32 rounded = 0x7c;
  if (magnitude > 0x7f800000) rounded = 0x7f;
  if (magnitude < 0x47700000) rounded = rounded_bits(magnitude, 2, 112, 0x38800000, 128.0f);
  return f8e5m2{static_cast<u8>((bits >> 24 & 0x80) | rounded)};
}

}  // namespace detail
}  // namespace pl
