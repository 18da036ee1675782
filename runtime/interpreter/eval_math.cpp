// Elementary functions. f32 is computed in f64 and rounded once, which is nearly always the
// correctly rounded result: the op table's ulp are left to the GPU.
#include <cmath>
#include <limits>
#include <numbers>

#include "runtime/interpreter/elementwise.hpp"

namespace palladium::interpreter {
namespace {

template <class F>
void function(Frame& f, ValueId v, const Inst& inst, F of_double) {
  with_type_if<IsFloat>(inst.type.dtype, [&]<class T>() {
    map1<T>(f, v, inst, [&](Compute<T> x) {
      return static_cast<Compute<T>>(of_double(static_cast<double>(x)));
    });
  });
}
template <class F>
void function2(Frame& f, ValueId v, const Inst& inst, F of_doubles) {
  with_type_if<IsFloat>(inst.type.dtype, [&]<class T>() {
    map2<T>(f, v, inst, [&](Compute<T> x, Compute<T> y) {
      return static_cast<Compute<T>>(of_doubles(static_cast<double>(x), static_cast<double>(y)));
    });
  });
}

double logistic(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}

// Winitzki's approximation, then steps of Halley's method; erfc keeps the digits of the tails.
double erf_inv(double x) {
  const double a = std::fabs(x);
  if (a == 1) return std::copysign(std::numeric_limits<double>::infinity(), x);
  if (!(a < 1)) return std::numeric_limits<double>::quiet_NaN();
  constexpr double k = 0.147;
  const double l = std::log1p(-a * a), t = 2 / (k * std::numbers::pi) + l / 2;
  double y = std::sqrt(std::sqrt(t * t - l / k) - t);
  for (int step = 0; step < 3; ++step) {
    const double error = a < 0.5 ? std::erf(y) - a : 1 - a - std::erfc(y);
    const double newton = error * std::exp(y * y) / (2 * std::numbers::inv_sqrtpi);
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

}  // namespace

#define PALLADIUM_EVAL(Name, expression)                    \
  void eval_##Name(Frame& f, ValueId v, const Inst& i) {    \
    function(f, v, i, [](double x) { return expression; }); \
  }
PALLADIUM_EVAL(Exp, std::exp(x))
PALLADIUM_EVAL(Exp2, std::exp2(x))
PALLADIUM_EVAL(Expm1, std::expm1(x))
PALLADIUM_EVAL(Log, std::log(x))
PALLADIUM_EVAL(Log2, std::log2(x))
PALLADIUM_EVAL(Log1p, std::log1p(x))
PALLADIUM_EVAL(Sqrt, std::sqrt(x))
PALLADIUM_EVAL(Cbrt, std::cbrt(x))
PALLADIUM_EVAL(Rsqrt, 1 / std::sqrt(x))
PALLADIUM_EVAL(Sin, std::sin(x))
PALLADIUM_EVAL(Cos, std::cos(x))
PALLADIUM_EVAL(Tan, std::tan(x))
PALLADIUM_EVAL(Asin, std::asin(x))
PALLADIUM_EVAL(Acos, std::acos(x))
PALLADIUM_EVAL(Atan, std::atan(x))
PALLADIUM_EVAL(Sinh, std::sinh(x))
PALLADIUM_EVAL(Cosh, std::cosh(x))
PALLADIUM_EVAL(Asinh, std::asinh(x))
PALLADIUM_EVAL(Acosh, std::acosh(x))
PALLADIUM_EVAL(Atanh, std::atanh(x))
PALLADIUM_EVAL(Tanh, std::tanh(x))
PALLADIUM_EVAL(Logistic, logistic(x))
PALLADIUM_EVAL(Erf, std::erf(x))
PALLADIUM_EVAL(ErfInv, erf_inv(x))
PALLADIUM_EVAL(Floor, std::floor(x))
PALLADIUM_EVAL(Ceil, std::ceil(x))
PALLADIUM_EVAL(Trunc, std::trunc(x))
PALLADIUM_EVAL(Round, std::nearbyint(x))
#undef PALLADIUM_EVAL

void eval_Pow(Frame& f, ValueId v, const Inst& i) {
  function2(f, v, i, [](double x, double y) { return std::pow(x, y); });
}
void eval_Atan2(Frame& f, ValueId v, const Inst& i) {
  function2(f, v, i, [](double y, double x) { return std::atan2(y, x); });
}

}  // namespace palladium::interpreter
