// Elementary functions that math.def says the emulator's half has for itself; library.cpp makes
// those that are the host's, through the emulator.

namespace pl {

PL_FN f32 rsqrt(f32 x) { return static_cast<f32>(1.0 / sqrt(f64(x))); }
PL_FN f64 rsqrt(f64 x) { return 1.0 / sqrt(x); }

PL_FN f32 fma(f32 a, f32 b, f32 c) { return detail::fused(a, b, c); }
PL_FN f64 fma(f64 a, f64 b, f64 c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return detail::host.fma_f64(a, b, c);
#endif
}

namespace detail {

PL_FN f32 exp_finite(f32 x) { return pl::exp(x); }

PL_FN f64 ratio(f64 r, const f64 (&above)[8], const f64 (&below)[8]) {
  f64 a = above[7], b = below[7];
  for (int i = 6; i >= 0; --i) {
    a = a * r + above[i];
    b = b * r + below[i];
  }
  return a / b;
}

}  // namespace detail

// By the quantile of the normal distribution: Wichura's AS 241.
PL_FN f64 erf_inv(f64 x) {
  const f64 size = x < 0 ? -x : x, half = 0.70710678118654752440;
  if (!(size < 1)) return size == 1 ? x * infinity<f64>() : nan<f64>();
  if (size <= 0.85) {
    const f64 q = x / 2;
    return half * q *
           detail::ratio(0.180625 - q * q,
                         {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                          1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                          3.3430575583588128105e4, 2.5090809287301226727e3},
                         {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
                          5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
                          2.8729085735721942674e4, 5.2264952788528545610e3});
  }
  const f64 r = sqrt(-log((1 - size) / 2));
  const f64 tail =
      r <= 5 ? detail::ratio(
                   r - 1.6,
                   {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                    3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                    2.27238449892691845833e-2, 7.74545014278341407640e-4},
                   {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
                    6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
                    5.47593808499534494600e-4, 1.05075007164441684324e-9})
             : detail::ratio(
                   r - 5,
                   {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
                    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                    2.71155556874348757815e-5, 2.01033439929228813265e-7},
                   {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                    1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
                    1.42151175831644588870e-7, 2.04426310338993978564e-15});
  return half * (x < 0 ? -tail : tail);
}
PL_FN f32 erf_inv(f32 x) { return static_cast<f32>(erf_inv(f64(x))); }

PL_FN f32 exp_nonpositive(f32 x) { return exp(x); }
PL_FN f64 exp_nonpositive(f64 x) { return exp(x); }
PL_FN f32 exp2_approx(f32 x) { return exp2(x); }
PL_FN f32 rcp_approx(f32 x) { return 1.0f / x; }
PL_FN f32 rsqrt_approx(f32 x) { return rsqrt(x); }
PL_FN f32 tanh_approx(f32 x) { return tanh(x); }

}  // namespace pl
