// The elementary functions of the waist by the C++ library's, in long double.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace palladium::test {

using UnaryReference = long double (*)(long double);
using BinaryReference = long double (*)(long double, long double);

/// Newton's method; erfc keeps the digits of the tails.
inline long double erf_inv(long double x) {
  const long double a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? x * std::numeric_limits<long double>::infinity() : std::nanl("");
  const long double slope = 2 / std::sqrt(std::acos(-1.0L));
  long double y = a < 0.9L ? a : std::sqrt(-std::log(1 - a));
  for (int step = 0; step < 60; ++step)
    y -= (a < 0.5L ? std::erf(y) - a : 1 - a - std::erfc(y)) * std::exp(y * y) / slope;
  return std::copysign(y, x);
}

#define PALLADIUM_REFERENCE(name)                     \
  {                                                   \
#    name, [](long double x) { return std::name(x); } \
  }
inline const std::map<std::string, UnaryReference> unary_references = {
    PALLADIUM_REFERENCE(sqrt),
    PALLADIUM_REFERENCE(cbrt),
    PALLADIUM_REFERENCE(exp),
    PALLADIUM_REFERENCE(exp2),
    PALLADIUM_REFERENCE(expm1),
    PALLADIUM_REFERENCE(log),
    PALLADIUM_REFERENCE(log2),
    PALLADIUM_REFERENCE(log1p),
    PALLADIUM_REFERENCE(sin),
    PALLADIUM_REFERENCE(cos),
    PALLADIUM_REFERENCE(tan),
    PALLADIUM_REFERENCE(tanh),
    PALLADIUM_REFERENCE(asin),
    PALLADIUM_REFERENCE(acos),
    PALLADIUM_REFERENCE(atan),
    PALLADIUM_REFERENCE(sinh),
    PALLADIUM_REFERENCE(cosh),
    PALLADIUM_REFERENCE(asinh),
    PALLADIUM_REFERENCE(acosh),
    PALLADIUM_REFERENCE(atanh),
    PALLADIUM_REFERENCE(erf),
    PALLADIUM_REFERENCE(floor),
    PALLADIUM_REFERENCE(ceil),
    PALLADIUM_REFERENCE(trunc),
    {"erf_inv", erf_inv},
    {"round", [](long double x) { return std::rint(x); }},
    {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }},
    {"logistic", [](long double x) { return 1 / (1 + std::exp(-x)); }},
    {"exp2_approx", [](long double x) { return std::exp2(x); }},
    {"rcp_approx", [](long double x) { return 1 / x; }},
    {"rsqrt_approx", [](long double x) { return 1 / std::sqrt(x); }},
    {"tanh_approx", [](long double x) { return std::tanh(x); }},
};
#undef PALLADIUM_REFERENCE

inline const std::map<std::string, BinaryReference> binary_references = {
    {"atan2", [](long double y, long double x) { return std::atan2(y, x); }},
    {"pow", [](long double x, long double y) { return std::pow(x, y); }},
};

}  // namespace palladium::test
