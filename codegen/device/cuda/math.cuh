// Elementary functions: libdevice's, which NVRTC declares by itself.

namespace pl {

#define PL_UNARY(name)                           \
  PL_FN f32 name(f32 x) { return ::name##f(x); } \
  PL_FN f64 name(f64 x) { return ::name(x); }
PL_UNARY(sqrt)
PL_UNARY(rsqrt)
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
PL_UNARY(trunc)
#undef PL_UNARY

PL_FN f32 round(f32 x) { return ::rintf(x); }
PL_FN f64 round(f64 x) { return ::rint(x); }
PL_FN f32 atan2(f32 y, f32 x) { return ::atan2f(y, x); }
PL_FN f64 atan2(f64 y, f64 x) { return ::atan2(y, x); }
PL_FN f32 pow(f32 x, f32 y) { return ::powf(x, y); }
PL_FN f64 pow(f64 x, f64 y) { return ::pow(x, y); }
PL_FN f32 fma(f32 a, f32 b, f32 c) { return ::fmaf(a, b, c); }
PL_FN f64 fma(f64 a, f64 b, f64 c) { return ::fma(a, b, c); }

PL_FN f32 exp2_approx(f32 x) {
  f32 r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
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
