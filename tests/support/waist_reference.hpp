// The elementary functions of the waist in long double, and where they are tried: their table's
// columns, but for the approximations that stand beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/base/special.hpp"

namespace palladium::test {

using UnaryReference = long double (*)(long double);
using BinaryReference = long double (*)(long double, long double);

inline const std::map<std::string, UnaryReference> unary_references = {
#define PALLADIUM_MATH(Op, name, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, ...) \
  {#name, [](long double x) -> long double { return cpu; }},
#include "palladium/math.def"
    {"exp2_approx", [](long double x) { return std::exp2(x); }},
    {"rcp_approx", [](long double x) { return 1 / x; }},
    {"rsqrt_approx", [](long double x) { return 1 / std::sqrt(x); }},
    {"logistic_approx", [](long double x) { return special::logistic(x); }},
    {"tanh_approx", [](long double x) { return std::tanh(x); }},
};

inline const std::map<std::string, BinaryReference> binary_references = {
#define PALLADIUM_MATH2(Op, name, a, b, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, \
                        ...)                                                                      \
  {#name, [](long double a, long double b) -> long double { return cpu; }},
#include "palladium/math.def"
};

/// The numbers of an operand that are tried densely.
struct Domain {
  double from = 0, to = 0;
  bool bounds_f64 = false;  // the table's error of f64 is that of these numbers alone

  /// The nearest number in it; NaN stays.
  long double nearest(long double x) const {
    return x < from ? static_cast<long double>(from) : x > to ? static_cast<long double>(to) : x;
  }
  /// The same of an expression in emitted text, of f64.
  std::string nearest(const std::string& x) const {
    std::string text = x;
    if (std::isfinite(from)) text = fmt::format("pl::max({}, f64({:a}))", text, from);
    if (std::isfinite(to)) text = fmt::format("pl::min({}, f64({:a}))", text, to);
    return text;
  }
  /// About n numbers: some evenly, where it ends, some by powers of 2 of either sign up to 2^most.
  std::vector<double> dense(int n, int most) const {
    std::vector<double> all;
    const double low = std::isfinite(from) ? from : -64, high = std::isfinite(to) ? to : 64;
    for (int i = 0; i <= n; ++i) all.push_back(low + (high - low) * i / n);
    for (int i = 0; i < n; ++i) {
      const double size = std::exp2(-most + 2.0 * most * (i + 0.37) / n);
      for (const double x : {size, -size, low + size, high - size})
        if (x >= from && x <= to) all.push_back(x);
    }
    return all;
  }
};

/// Of the functions of one operand; of two, by the name and 0 or 1.
inline const std::map<std::string, Domain> domains = [] {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto everywhere = [](double from, double to) { return Domain{from, to, false}; };
  const auto inside = [](double from, double to) { return Domain{from, to, true}; };
  (void)infinity, (void)everywhere, (void)inside;
  return std::map<std::string, Domain>{
#define PALLADIUM_MATH(Op, name, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, domain, \
                       ...)                                                                        \
  {#name, domain},
#define PALLADIUM_MATH2(Op, name, a, b, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, \
                        domain_a, domain_b, ...)                                                  \
  {#name "0", domain_a}, {#name "1", domain_b},
#include "palladium/math.def"
  };
}();

/// Whether a call of f64 is measured on the numbers of its domain alone.
inline bool bounds_f64(const std::string& function) {
  const auto found = domains.find(function);
  return found != domains.end() && found->second.bounds_f64;
}

}  // namespace palladium::test
