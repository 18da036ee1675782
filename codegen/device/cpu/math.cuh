// Elementary functions: the host's own, through the emulator.

namespace pl {

#define PL_UNARY(name, T, function) \
  PL_FN T name(T x) { return detail::host.function(x); }
PL_UNARY(sqrt, f32, sqrt_f32)
PL_UNARY(sqrt, f64, sqrt_f64)
PL_UNARY(cbrt, f32, cbrt_f32)
PL_UNARY(cbrt, f64, cbrt_f64)
PL_UNARY(exp, f32, exp_f32)
PL_UNARY(exp, f64, exp_f64)
PL_UNARY(exp2, f32, exp2_f32)
PL_UNARY(exp2, f64, exp2_f64)
PL_UNARY(expm1, f32, expm1_f32)
PL_UNARY(expm1, f64, expm1_f64)
PL_UNARY(log, f32, log_f32)
PL_UNARY(log, f64, log_f64)
PL_UNARY(log2, f32, log2_f32)
PL_UNARY(log2, f64, log2_f64)
PL_UNARY(log1p, f32, log1p_f32)
PL_UNARY(log1p, f64, log1p_f64)
PL_UNARY(sin, f32, sin_f32)
PL_UNARY(sin, f64, sin_f64)
PL_UNARY(cos, f32, cos_f32)
PL_UNARY(cos, f64, cos_f64)
PL_UNARY(tan, f32, tan_f32)
PL_UNARY(tan, f64, tan_f64)
PL_UNARY(tanh, f32, tanh_f32)
PL_UNARY(tanh, f64, tanh_f64)
PL_UNARY(erf, f32, erf_f32)
PL_UNARY(erf, f64, erf_f64)
PL_UNARY(floor, f32, floor_f32)
PL_UNARY(floor, f64, floor_f64)
PL_UNARY(ceil, f32, ceil_f32)
PL_UNARY(ceil, f64, ceil_f64)
PL_UNARY(round, f32, round_f32)
PL_UNARY(round, f64, round_f64)
PL_UNARY(trunc, f32, trunc_f32)
PL_UNARY(trunc, f64, trunc_f64)

PL_FN f32 rsqrt(f32 x) { return static_cast<f32>(1.0 / sqrt(f64(x))); }
PL_FN f64 rsqrt(f64 x) { return 1.0 / sqrt(x); }
PL_FN f32 atan2(f32 y, f32 x) { return detail::host.atan2_f32(y, x); }
PL_FN f64 atan2(f64 y, f64 x) { return detail::host.atan2_f64(y, x); }
PL_FN f32 pow(f32 x, f32 y) { return detail::host.pow_f32(x, y); }
PL_FN f64 pow(f64 x, f64 y) { return detail::host.pow_f64(x, y); }

PL_FN f32 fma(f32 a, f32 b, f32 c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return detail::host.fma_f32(a, b, c);
#endif
}
PL_FN f64 fma(f64 a, f64 b, f64 c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return detail::host.fma_f64(a, b, c);
#endif
}

PL_FN f32 exp2_approx(f32 x) { return exp2(x); }
PL_FN f32 rcp_approx(f32 x) { return 1.0f / x; }
PL_FN f32 rsqrt_approx(f32 x) { return rsqrt(x); }
PL_FN f32 tanh_approx(f32 x) { return tanh(x); }

}  // namespace pl
