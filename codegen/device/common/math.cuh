// Elementary functions of f16 and bf16: computed in f32, then rounded.

namespace pl {

#define PL_HALF_UNARY(name)                                                     \
  PL_FN f16 name(f16 x) { return detail::narrow<f16>(name(detail::widen(x))); } \
  PL_FN bf16 name(bf16 x) { return detail::narrow<bf16>(name(detail::widen(x))); }
#define PL_HALF_BINARY(name)                                               \
  PL_FN f16 name(f16 x, f16 y) {                                           \
    return detail::narrow<f16>(name(detail::widen(x), detail::widen(y)));  \
  }                                                                        \
  PL_FN bf16 name(bf16 x, bf16 y) {                                        \
    return detail::narrow<bf16>(name(detail::widen(x), detail::widen(y))); \
  }

namespace detail {

// exp(-|x|) cannot overflow, so that results far below 1 keep their digits.
template <class T>
PL_FN T logistic_of(T x) {
  const T e = pl::exp(x < T(0) ? x : -x);
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

}  // namespace detail

PL_FN f32 logistic(f32 x) { return detail::logistic_of(x); }
PL_FN f64 logistic(f64 x) { return detail::logistic_of(x); }

PL_HALF_UNARY(sqrt)
PL_HALF_UNARY(rsqrt)
PL_HALF_UNARY(cbrt)
PL_HALF_UNARY(exp)
PL_HALF_UNARY(exp2)
PL_HALF_UNARY(expm1)
PL_HALF_UNARY(log)
PL_HALF_UNARY(log2)
PL_HALF_UNARY(log1p)
PL_HALF_UNARY(sin)
PL_HALF_UNARY(cos)
PL_HALF_UNARY(tan)
PL_HALF_UNARY(tanh)
PL_HALF_UNARY(erf)
PL_HALF_UNARY(logistic)
PL_HALF_UNARY(floor)
PL_HALF_UNARY(ceil)
PL_HALF_UNARY(round)
PL_HALF_UNARY(trunc)
PL_HALF_BINARY(atan2)
PL_HALF_BINARY(pow)
#undef PL_HALF_UNARY
#undef PL_HALF_BINARY

PL_FN f16 fma(f16 a, f16 b, f16 c) {
  return detail::narrow<f16>(fma(detail::widen(a), detail::widen(b), detail::widen(c)));
}
PL_FN bf16 fma(bf16 a, bf16 b, bf16 c) {
  return detail::narrow<bf16>(fma(detail::widen(a), detail::widen(b), detail::widen(c)));
}

}  // namespace pl
