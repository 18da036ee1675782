// Elementary functions that math.def calls its own; library.cpp makes those that are libdevice's,
// which NVRTC declares by itself.

namespace pl {
namespace detail {

// The exponential as below, of what has no power beyond the floats: x <= 80.
PL_FN f32 exp_finite(f32 x) {
  f32 r;
  asm("{.reg .f32 n, f;\n\t"
      "fma.rn.f32 n, %1, 0f3FB8AA3B, 0f4B40007F;\n\t"
      "max.f32 n, n, 0f4B400001;\n\t"
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

}  // namespace detail

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

// libdevice keeps its bound outside of the interval in which the function has its zeros below 0:
// there f64 does.
PL_FN f32 lgamma(f32 x) {
  return x < -2.25f && x > -10.5f ? static_cast<f32>(::lgamma(f64(x))) : ::lgammaf(x);
}

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
