// Elementary functions of f16 and bf16: computed in f32, then rounded.

namespace pl {
namespace detail {

// exp(-|x|) cannot overflow, so that results far below 1 keep their digits.
template <class T>
PL_FN T logistic_of(T x) {
  const T e = pl::exp(x < T(0) ? x : -x);
  return pl::div(x < T(0) ? e : T(1), T(1) + e);
}

}  // namespace detail

PL_FN f32 logistic(f32 x) { return detail::logistic_of(x); }
PL_FN f64 logistic(f64 x) { return detail::logistic_of(x); }

PL_HALF_UNARY(sqrt, f16)
PL_HALF_UNARY(sqrt, bf16)
PL_HALF_UNARY(rsqrt, f16)
PL_HALF_UNARY(rsqrt, bf16)
PL_HALF_UNARY(cbrt, f16)
PL_HALF_UNARY(cbrt, bf16)
PL_HALF_UNARY(exp, f16)
PL_HALF_UNARY(exp, bf16)
PL_HALF_UNARY(exp_nonpositive, f16)
PL_HALF_UNARY(exp_nonpositive, bf16)
PL_HALF_UNARY(exp2, f16)
PL_HALF_UNARY(exp2, bf16)
PL_HALF_UNARY(expm1, f16)
PL_HALF_UNARY(expm1, bf16)
PL_HALF_UNARY(log, f16)
PL_HALF_UNARY(log, bf16)
PL_HALF_UNARY(log2, f16)
PL_HALF_UNARY(log2, bf16)
PL_HALF_UNARY(log1p, f16)
PL_HALF_UNARY(log1p, bf16)
PL_HALF_UNARY(sin, f16)
PL_HALF_UNARY(sin, bf16)
PL_HALF_UNARY(cos, f16)
PL_HALF_UNARY(cos, bf16)
PL_HALF_UNARY(tan, f16)
PL_HALF_UNARY(tan, bf16)
PL_HALF_UNARY(tanh, f16)
PL_HALF_UNARY(tanh, bf16)
PL_HALF_UNARY(asin, f16)
PL_HALF_UNARY(asin, bf16)
PL_HALF_UNARY(acos, f16)
PL_HALF_UNARY(acos, bf16)
PL_HALF_UNARY(atan, f16)
PL_HALF_UNARY(atan, bf16)
PL_HALF_UNARY(sinh, f16)
PL_HALF_UNARY(sinh, bf16)
PL_HALF_UNARY(cosh, f16)
PL_HALF_UNARY(cosh, bf16)
PL_HALF_UNARY(asinh, f16)
PL_HALF_UNARY(asinh, bf16)
PL_HALF_UNARY(acosh, f16)
PL_HALF_UNARY(acosh, bf16)
PL_HALF_UNARY(atanh, f16)
PL_HALF_UNARY(atanh, bf16)
PL_HALF_UNARY(erf, f16)
PL_HALF_UNARY(erf, bf16)
PL_HALF_UNARY(erf_inv, f16)
PL_HALF_UNARY(erf_inv, bf16)
PL_HALF_UNARY(logistic, f16)
PL_HALF_UNARY(logistic, bf16)
PL_HALF_UNARY(floor, f16)
PL_HALF_UNARY(floor, bf16)
PL_HALF_UNARY(ceil, f16)
PL_HALF_UNARY(ceil, bf16)
PL_HALF_UNARY(round, f16)
PL_HALF_UNARY(round, bf16)
PL_HALF_UNARY(trunc, f16)
PL_HALF_UNARY(trunc, bf16)
PL_HALF_BINARY(atan2, f16)
PL_HALF_BINARY(atan2, bf16)
PL_HALF_BINARY(pow, f16)
PL_HALF_BINARY(pow, bf16)

PL_FN f16 fma(f16 a, f16 b, f16 c) {
  return detail::narrow<f16>(fma(detail::widen(a), detail::widen(b), detail::widen(c)));
}
PL_FN bf16 fma(bf16 a, bf16 b, bf16 c) {
  return detail::narrow<bf16>(fma(detail::widen(a), detail::widen(b), detail::widen(c)));
}

}  // namespace pl
