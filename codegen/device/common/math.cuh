// Elementary functions that both halves have alike. Those of f16 and bf16 compute in f32, then
// round; library.cpp makes them for the rows of math.def.

namespace pl {
namespace detail {

// psi on x > 0: the series of Stirling and Bernoulli from N on. Below, with z its zero, it is the sum over k of 1 / (k + z) - 1 / (k + x): x - z times terms of one
// sign, so that no digits cancel, next to the zero either. Two quotients hold N terms; the others
// are a logarithm by Euler and Maclaurin with M corrections, differences of powers without x - z.
template <class T, int N, int M>
PL_FN T digamma_of(T x) {
  const f64 bernoulli[7] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                            1.0 / 132, -691.0 / 32760, 1.0 / 12};
  if (x >= T(N)) {
    const T u = pl::div(T(1), x), w = u * u;
    T sum = T(bernoulli[M - 1]);
    PL_UNROLL for (i32 k = M - 2; k >= 0; --k) sum = sum * w + T(bernoulli[k]);
    return pl::log(x) - (u / 2 + w * sum);
  }
  const f64 zero = 1.4616321449683623;
  const T high = T(zero), low = T((zero - f64(high)) + 9.549995429965697715e-17);
  const T apart = (x - high) - low;
  T above = T(1 / (1 + zero)), below = x + 1;
  PL_UNROLL for (i32 k = 2; k < N; ++k) {
    const T y = x + T(k);
    above = above * y + T(1 / (k + zero)) * below;
    below = below * y;
  }
  const T terms = pl::div(T(1 / zero), x) + pl::div(above, below);
  const T v = T(1 / (N + zero)), u = pl::div(T(1), x + T(N)), between = apart * u * v;
  T sum = T(bernoulli[0]), quotient = 1, power = 1;
  PL_UNROLL for (i32 k = 1; k < M; ++k) {
    power = power * (v * v);
    quotient = quotient * (u * u) + power;
    sum = sum + T(bernoulli[k]) * quotient;
  }
  return apart * terms + (pl::log1p(apart * v) + between * (T(0.5) + (u + v) * sum));
}

// pi cot(pi r) of |r| <= 1/2, not 0: its three poles next to 0, and a series by the zeta function.
PL_FN f64 pi_cot_pi(f64 r) {
  const f64 zeta[13] = {
      0.64493406684822643647,   0.082323233711138191516,  0.017343061984449139715,
      0.0040773561979443393787, 9.9457512781808533715e-4, 2.4608655330804829864e-4,
      6.1248135058704829258e-5, 1.5282259408651871733e-5, 3.8172932649998398565e-6,
      9.5396203387279611315e-7, 2.3845050272773299e-7,    5.9608189051259479612e-8,
      1.4901554828365041235e-8};  // zeta(2k) - 1
  const f64 w = r * r;
  f64 sum = 0;
  PL_UNROLL for (i32 k = 12; k >= 0; --k) sum = sum * w + zeta[k];
  return 1 / r + 2 * r * (1 / (w - 1) - sum);
}

}  // namespace detail

// Beyond 80 it is 1. Below, results keep their digits as long as the exponential does.
PL_FN f32 logistic(f32 x) {
  const f32 e = detail::exp_finite(detail::lesser(x, 80.0f));
  return detail::lesser(e * detail::approximate_reciprocal(1.0f + e), 1.0f);
}
// Behind a factor of 2^64, so that neither the exponential nor what it is the denominator of leaves
// the range of normal numbers before the result does.
PL_FN f32 logistic_approx(f32 x) {
  const f32 e = pl::exp2_approx(detail::fused(x, -0x1.715476p+0f, -64.0f));
  return detail::approximate_reciprocal(e + 0x1p-64f) * 0x1p-64f;
}
// exp(-|x|) cannot overflow, so that results far below 1 keep their digits.
PL_FN f64 logistic(f64 x) {
  const f64 e = pl::exp(x < 0 ? x : -x);
  return pl::div(x < 0 ? e : 1.0, 1.0 + e);
}

// Negative numbers are reflected, those of f32 in f64: two large terms cancel next to each zero.
PL_FN f64 digamma(f64 x) {
  if (x > 0) return detail::digamma_of<f64, 10, 7>(x);
  const f64 r = x - pl::round(x);
  if (r == 0) return nan<f64>();
  return detail::digamma_of<f64, 10, 7>(1 - x) - detail::pi_cot_pi(r);
}
PL_FN f32 digamma(f32 x) {
  return x > 0 ? detail::digamma_of<f32, 5, 3>(x) : static_cast<f32>(digamma(f64(x)));
}

PL_HALF_UNARY(exp_nonpositive, f16)
PL_HALF_UNARY(exp_nonpositive, bf16)

PL_FN f16 fma(f16 a, f16 b, f16 c) {
  return detail::narrow<f16>(fma(detail::widen(a), detail::widen(b), detail::widen(c)));
}
PL_FN bf16 fma(bf16 a, bf16 b, bf16 c) {
  return detail::narrow<bf16>(fma(detail::widen(a), detail::widen(b), detail::widen(c)));
}

}  // namespace pl
