// Elementary functions. f32 is computed in f64 and rounded once, which is nearly always the
// correctly rounded result: the op table's ulp are left to the GPU.
#include <cmath>

#include "codegen/base/special.hpp"
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

}  // namespace

#define PALLADIUM_MATH(Op, name, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, ...) \
  void eval_##Op(Frame& f, ValueId v, const Inst& i) {                                          \
    function(f, v, i, [](double x) { return cpu; });                                            \
  }
#define PALLADIUM_MATH2(Op, name, a, b, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, \
                        ...)                                                                      \
  void eval_##Op(Frame& f, ValueId v, const Inst& i) {                                            \
    function2(f, v, i, [](double a, double b) { return cpu; });                                   \
  }
#include "palladium/math.def"

}  // namespace palladium::interpreter
