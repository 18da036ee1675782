// Loops over packed operands; 16-bit floats compute in f32 and round each result.
#pragma once

#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {

/// out[i] = op(x[i]...) in T's computing type. A result's place is never that of a live operand.
template <class T, class F>
void map1(Frame& f, ValueId v, const Inst& inst, F op) {
  const T* __restrict x = f.operand<T>(inst, 0);
  T* __restrict out = f.data<T>(v);
  const std::int64_t n = f.count(v);
  if (n == 1) {  // without what the compiler makes of the loop
    *out = narrow<T>(op(widen(*x)));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) out[i] = narrow<T>(op(widen(x[i])));
}

template <class T, class F>
void map2(Frame& f, ValueId v, const Inst& inst, F op) {
  const T* __restrict x = f.operand<T>(inst, 0);
  const T* __restrict y = f.operand<T>(inst, 1);
  T* __restrict out = f.data<T>(v);
  const std::int64_t n = f.count(v);
  if (n == 1) {
    *out = narrow<T>(op(widen(*x), widen(*y)));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) out[i] = narrow<T>(op(widen(x[i]), widen(y[i])));
}

}  // namespace palladium::interpreter
