// Elementary functions. f32 is computed in f64 and rounded once, which is nearly always the
// correctly rounded result: the op table's ulp are left to the GPU.
#include <cmath>

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
PALLADIUM_EVAL(Rsqrt, 1 / std::sqrt(x))
PALLADIUM_EVAL(Sin, std::sin(x))
PALLADIUM_EVAL(Cos, std::cos(x))
PALLADIUM_EVAL(Tan, std::tan(x))
PALLADIUM_EVAL(Tanh, std::tanh(x))
PALLADIUM_EVAL(Logistic, logistic(x))
PALLADIUM_EVAL(Erf, std::erf(x))
PALLADIUM_EVAL(Floor, std::floor(x))
PALLADIUM_EVAL(Ceil, std::ceil(x))
PALLADIUM_EVAL(Round, std::nearbyint(x))
#undef PALLADIUM_EVAL

void eval_Pow(Frame& f, ValueId v, const Inst& i) {
  function2(f, v, i, [](double x, double y) { return std::pow(x, y); });
}
void eval_Atan2(Frame& f, ValueId v, const Inst& i) {
  function2(f, v, i, [](double y, double x) { return std::atan2(y, x); });
}

}  // namespace palladium::interpreter
