// Bits, shifts, comparisons and select.
#include <bit>
#include <cmath>

#include "runtime/interpreter/elementwise.hpp"

namespace palladium::interpreter {
namespace {

template <class F>
void bits(Frame& f, ValueId v, const Inst& inst, F op) {
  with_size(inst.type.dtype.bytes(), [&]<class T>() { map2<T>(f, v, inst, op); });
}

template <class F>
void compare(Frame& f, ValueId v, const Inst& inst, F op) {
  with_type_if<IsComputed>(f.dtype(inst.args[0]), [&]<class T>() {
    const T* __restrict x = f.operand<T>(inst, 0);
    const T* __restrict y = f.operand<T>(inst, 1);
    bool* __restrict out = f.data<bool>(v);
    const std::int64_t n = f.count(v);
    for (std::int64_t i = 0; i < n; ++i) out[i] = op(widen(x[i]), widen(y[i]));
  });
}

template <class F>
void shift(Frame& f, ValueId v, const Inst& inst, F op) {
  with_type_if<IsInteger>(inst.type.dtype, [&]<class T>() { map2<T>(f, v, inst, op); });
}

struct ShiftLeft {
  template <class T>
  T operator()(T x, T count) const {
    using U = std::make_unsigned_t<T>;
    const U n = static_cast<U>(count);
    return n < 8 * sizeof(T) ? static_cast<T>(static_cast<std::uint64_t>(x) << n) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T x, T count) const {
    using U = std::make_unsigned_t<T>;
    constexpr U most = 8 * sizeof(T) - 1;
    const U n = static_cast<U>(count);
    if (std::is_unsigned_v<T> && n > most) return 0;
    return static_cast<T>(x >> (n > most ? most : n));
  }
};

}  // namespace

void eval_Not(Frame& f, ValueId v, const Inst& inst) {
  const bool is_bool = inst.type.dtype.is_bool();
  with_size(inst.type.dtype.bytes(), [&]<class T>() {
    map1<T>(f, v, inst, [=](T x) { return static_cast<T>(is_bool ? x ^ 1 : ~x); });
  });
}

void eval_PopulationCount(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<IsInteger>(inst.type.dtype, [&]<class T>() {
    map1<T>(f, v, inst, [](T x) {
      return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
    });
  });
}

void eval_CountLeadingZeros(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<IsInteger>(inst.type.dtype, [&]<class T>() {
    map1<T>(f, v, inst, [](T x) {
      return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(x)));
    });
  });
}

#define PALLADIUM_EVAL(Name, loop, expression)                                             \
  void eval_##Name(Frame& f, ValueId v, const Inst& i) {                                   \
    loop(f, v, i,                                                                          \
         []<class T>(T x, T y) { return static_cast<decltype(expression)>(expression); }); \
  }
PALLADIUM_EVAL(And, bits, static_cast<T>(x& y))
PALLADIUM_EVAL(Or, bits, static_cast<T>(x | y))
PALLADIUM_EVAL(Xor, bits, static_cast<T>(x ^ y))
PALLADIUM_EVAL(Eq, compare, x == y)
PALLADIUM_EVAL(Ne, compare, x != y)
PALLADIUM_EVAL(Lt, compare, x < y)
PALLADIUM_EVAL(Le, compare, x <= y)
PALLADIUM_EVAL(Gt, compare, x > y)
PALLADIUM_EVAL(Ge, compare, x >= y)
#undef PALLADIUM_EVAL

void eval_ShiftLeft(Frame& f, ValueId v, const Inst& i) { shift(f, v, i, ShiftLeft()); }
void eval_ShiftRight(Frame& f, ValueId v, const Inst& i) { shift(f, v, i, ShiftRight()); }

void eval_IsFinite(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<IsFloat>(f.dtype(inst.args[0]), [&]<class T>() {
    const T* x = f.operand<T>(inst, 0);
    bool* out = f.data<bool>(v);
    const std::int64_t n = f.count(v);
    for (std::int64_t i = 0; i < n; ++i) out[i] = std::isfinite(widen(x[i]));
  });
}

void eval_Select(Frame& f, ValueId v, const Inst& inst) {
  with_size(inst.type.dtype.bytes(), [&]<class T>() {
    const bool* __restrict condition = f.operand<bool>(inst, 0);
    const T* __restrict x = f.operand<T>(inst, 1);
    const T* __restrict y = f.operand<T>(inst, 2);
    T* __restrict out = f.data<T>(v);
    const std::int64_t n = f.count(v);
    for (std::int64_t i = 0; i < n; ++i) out[i] = condition[i] ? x[i] : y[i];
  });
}

}  // namespace palladium::interpreter
