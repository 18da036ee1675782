// Elementary functions: the host's own, through the emulator.

namespace pl {

#define PL_UNARY(name)                                         \
  PL_FN f32 name(f32 x) { return detail::host.name##_f32(x); } \
  PL_FN f64 name(f64 x) { return detail::host.name##_f64(x); }
PL_UNARY(sqrt)
PL_UNARY(cbrt)
PL_UNARY(exp)
PL_UNARY(exp2)
PL_UNARY(expm1)
PL_UNARY(log)
PL_UNARY(log2)
PL_UNARY(log1p)
PL_UNARY(sin)
PL_UNARY(cos)
PL_UNARY(tan)
PL_UNARY(tanh)
PL_UNARY(erf)
PL_UNARY(floor)
PL_UNARY(ceil)
PL_UNARY(round)
PL_UNARY(trunc)
#undef PL_UNARY

PL_FN f32 rsqrt(f32 x) { return static_cast<f32>(1.0 / sqrt(f64(x))); }
PL_FN f64 rsqrt(f64 x) { return 1.0 / sqrt(x); }
PL_FN f32 atan2(f32 y, f32 x) { return detail::host.atan2_f32(y, x); }
PL_FN f64 atan2(f64 y, f64 x) { return detail::host.atan2_f64(y, x); }
PL_FN f32 pow(f32 x, f32 y) { return detail::host.pow_f32(x, y); }
PL_FN f64 pow(f64 x, f64 y) { return detail::host.pow_f64(x, y); }

#if defined(__FMA__)
PL_FN f32 fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
PL_FN f64 fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
#else
PL_FN f32 fma(f32 a, f32 b, f32 c) { return detail::host.fma_f32(a, b, c); }
PL_FN f64 fma(f64 a, f64 b, f64 c) { return detail::host.fma_f64(a, b, c); }
#endif

PL_FN f32 exp2_approx(f32 x) { return exp2(x); }
PL_FN f32 rcp_approx(f32 x) { return 1.0f / x; }
PL_FN f32 rsqrt_approx(f32 x) { return rsqrt(x); }
PL_FN f32 tanh_approx(f32 x) { return tanh(x); }

}  // namespace pl
