// Elementary functions: libdevice's, which NVRTC declares by itself, but for the exponential.

namespace pl {

#define PL_UNARY(name, T, function) \
  PL_FN T name(T x) { return function(x); }
PL_UNARY(sqrt, f32, ::sqrtf)
PL_UNARY(sqrt, f64, ::sqrt)
PL_UNARY(rsqrt, f32, ::rsqrtf)
PL_UNARY(rsqrt, f64, ::rsqrt)
PL_UNARY(cbrt, f32, ::cbrtf)
PL_UNARY(cbrt, f64, ::cbrt)
PL_UNARY(exp, f64, ::exp)
PL_UNARY(exp2, f32, ::exp2f)
PL_UNARY(exp2, f64, ::exp2)
PL_UNARY(expm1, f32, ::expm1f)
PL_UNARY(expm1, f64, ::expm1)
PL_UNARY(log, f32, ::logf)
PL_UNARY(log, f64, ::log)
PL_UNARY(log2, f32, ::log2f)
PL_UNARY(log2, f64, ::log2)
PL_UNARY(log1p, f32, ::log1pf)
PL_UNARY(log1p, f64, ::log1p)
PL_UNARY(sin, f32, ::sinf)
PL_UNARY(sin, f64, ::sin)
PL_UNARY(cos, f32, ::cosf)
PL_UNARY(cos, f64, ::cos)
PL_UNARY(tan, f32, ::tanf)
PL_UNARY(tan, f64, ::tan)
PL_UNARY(tanh, f32, ::tanhf)
PL_UNARY(tanh, f64, ::tanh)
PL_UNARY(asin, f32, ::asinf)
PL_UNARY(asin, f64, ::asin)
PL_UNARY(acos, f32, ::acosf)
PL_UNARY(acos, f64, ::acos)
PL_UNARY(atan, f32, ::atanf)
PL_UNARY(atan, f64, ::atan)
PL_UNARY(sinh, f32, ::sinhf)
PL_UNARY(sinh, f64, ::sinh)
PL_UNARY(cosh, f32, ::coshf)
PL_UNARY(cosh, f64, ::cosh)
PL_UNARY(asinh, f32, ::asinhf)
PL_UNARY(asinh, f64, ::asinh)
PL_UNARY(acosh, f32, ::acoshf)
PL_UNARY(acosh, f64, ::acosh)
PL_UNARY(atanh, f32, ::atanhf)
PL_UNARY(atanh, f64, ::atanh)
PL_UNARY(erf, f32, ::erff)
PL_UNARY(erf, f64, ::erf)
PL_UNARY(erf_inv, f32, ::erfinvf)
PL_UNARY(erf_inv, f64, ::erfinv)
PL_UNARY(floor, f32, ::floorf)
PL_UNARY(floor, f64, ::floor)
PL_UNARY(ceil, f32, ::ceilf)
PL_UNARY(ceil, f64, ::ceil)
PL_UNARY(trunc, f32, ::truncf)
PL_UNARY(trunc, f64, ::trunc)
PL_UNARY(round, f32, ::rintf)
PL_UNARY(round, f64, ::rint)

PL_FN f32 atan2(f32 y, f32 x) { return ::atan2f(y, x); }
PL_FN f64 atan2(f64 y, f64 x) { return ::atan2(y, x); }
PL_FN f32 pow(f32 x, f32 y) { return ::powf(x, y); }
PL_FN f64 pow(f64 x, f64 y) { return ::pow(x, y); }
PL_FN f32 fma(f32 a, f32 b, f32 c) { return ::fmaf(a, b, c); }
PL_FN f64 fma(f64 a, f64 b, f64 c) { return ::fma(a, b, c); }

// 2^n 2^f with x = (n + f) / log2(e), n the nearest whole number that is a float's exponent and f
// the rest, to twice a float's bits. n stands, plus 127, in the last bits of n + 127 + 1.5 * 2^23.
// (To link libdevice takes NVRTC 2 ms.)
PL_FN f32 exp(f32 x) {
  f32 r;
  asm("{.reg .f32 n, f;\n\t"
      "fma.rn.f32 n, %1, 0f3FB8AA3B, 0f4B40007F;\n\t"
      "max.f32 n, n, 0f4B400001;\n\t"
      "min.f32 n, n, 0f4B4000FE;\n\t"
      "sub.f32 f, 0f4B40007F, n;\n\t"
      "fma.rn.f32 f, %1, 0f3FB8AA3B, f;\n\t"
      "fma.rn.f32 f, %1, 0f32A57060, f;\n\t"
      "ex2.approx.ftz.f32 f, f;\n\t"
      "shl.b32 n, n, 23;\n\t"
      "mul.rn.f32 %0, f, n;}"
      : "=f"(r)
      : "f"(x));
  return r;
}

// 2^t (1 + (x - t ln 2)), t the rounded x / ln 2: what t has lost comes back to first order. Nothing
// is left below -200, -infinity included.
PL_FN f32 exp_nonpositive(f32 x) {
  const f32 c = detail::no_less(x, -200.0f);
  f32 r;
  asm("{.reg .f32 t, y, e;\n\t"
      "mul.rn.f32 t, %1, 0f3FB8AA3B;\n\t"
      "ex2.approx.ftz.f32 y, t;\n\t"
      "fma.rn.f32 e, t, 0fBF317218, %1;\n\t"
      "fma.rn.f32 e, t, 0f3102E308, e;\n\t"
      "fma.rn.f32 %0, y, e, y;}"
      : "=f"(r)
      : "f"(c));
  return r;
}
PL_FN f64 exp_nonpositive(f64 x) { return exp(x); }

PL_FN f32 exp2_approx(f32 x) {
  f32 r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

PL_FN f32 rcp_approx(f32 x) {
  f32 r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

PL_FN f32 rsqrt_approx(f32 x) {
  f32 r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

PL_FN f32 tanh_approx(f32 x) {
  f32 r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

}  // namespace pl
