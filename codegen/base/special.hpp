// Functions that the C++ library lacks, or has for one thread at a time: what math.def gives as
// their meaning on the CPU, of any of its floating-point types.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

namespace palladium::special {

template <class T>
T logistic(T x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const T e = std::exp(x);
  return e / (1 + e);
}

/// Winitzki's approximation, then steps of Halley's method; erfc keeps the digits of the tails.
template <class T>
T erf_inv(T x) {
  const T a = std::fabs(x);
  if (a == 1) return std::copysign(std::numeric_limits<T>::infinity(), x);
  if (!(a < 1)) return std::numeric_limits<T>::quiet_NaN();
  constexpr T k = 0.147;
  const T l = std::log1p(-a * a), t = 2 / (k * std::numbers::pi_v<T>)+l / 2;
  T y = std::sqrt(std::sqrt(t * t - l / k) - t);
  constexpr int steps = std::numeric_limits<T>::digits > 53 ? 5 : 3;
  for (int step = 0; step < steps; ++step) {
    const T error = a < T(0.5) ? std::erf(y) - a : 1 - a - std::erfc(y);
    const T newton = error * std::exp(y * y) / (2 * std::numbers::inv_sqrtpi_v<T>);
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

/// std::lgamma writes the sign to a variable that all threads share. The C library's error in float
/// is above the table's.
inline long double lgamma(long double x) {
  int sign = 0;
  return ::lgammal_r(x, &sign);
}
inline double lgamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}
inline float lgamma(float x) { return static_cast<float>(lgamma(static_cast<double>(x))); }

/// The series of Stirling and Bernoulli from 20 on. Below, from psi's zero z: psi(x) is the sum
/// over k of 1 / (k + z) - 1 / (k + x), which is (x - z) times terms of one sign, so that all
/// digits stay next to the zero; from the 20th term on by Euler and Maclaurin. Negative numbers are
/// reflected.
inline long double digamma(long double x) {
  using T = long double;
  constexpr T bernoulli[] = {T(1) / 12,        T(-1) / 120,      T(1) / 252, T(-1) / 240,
                             T(1) / 132,       T(-691) / 32760,  T(1) / 12,  T(-3617) / 8160,
                             T(43867) / 14364, T(-174611) / 6600};
  constexpr int n = 20;
  if (!(x > 0)) {
    const T rest = x - std::nearbyint(x);
    if (!(std::fabs(rest) > 0)) return std::numeric_limits<T>::quiet_NaN();  // poles, and NaN
    return digamma(1 - x) - std::numbers::pi_v<T> / std::tan(std::numbers::pi_v<T> * rest);
  }
  if (x >= n) {
    const T w = 1 / x / x;
    T sum = 0, power = w;
    for (const T b : bernoulli) {
      sum += b * power;
      power *= w;
    }
    return std::log(x) - 1 / x / 2 - sum;
  }
  constexpr T z = 0x1.762d86356be3fp+0L, rest = 9.549995429965697715184199e-17L;
  const T apart = x - z - rest;
  T terms = 0;
  for (int k = 0; k < n; ++k) terms += 1 / ((k + z + rest) * (k + x));
  const T u = 1 / (n + x), v = 1 / (n + z + rest), between = apart * u * v;  // v - u
  T sum = 0, quotient = 1, power = 1;  // (v^2k - u^2k) / (v^2 - u^2)
  for (const T b : bernoulli) {
    sum += b * quotient;
    power *= v * v;
    quotient = quotient * u * u + power;
  }
  return apart * terms + std::log1p(apart * v) + between / 2 + between * (u + v) * sum;
}
inline double digamma(double x) {
  return static_cast<double>(digamma(static_cast<long double>(x)));
}
inline float digamma(float x) { return static_cast<float>(digamma(static_cast<long double>(x))); }

}  // namespace palladium::special
