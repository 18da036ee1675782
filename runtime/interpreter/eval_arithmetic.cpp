// neg abs sign add sub mul div rem max min fma: the types' own arithmetic.
#include <cmath>
#include <limits>

#include "runtime/interpreter/elementwise.hpp"

namespace palladium::interpreter {
namespace {

// Wraps: computed without sign, in at least 32 bits (a product of two u16 overflows an int).
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

struct Add {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(x) + static_cast<Wrapping<T>>(y));
    } else {
      return x + y;
    }
  }
};
struct Sub {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(x) - static_cast<Wrapping<T>>(y));
    } else {
      return x - y;
    }
  }
};
struct Mul {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(y));
    } else {
      return x * y;
    }
  }
};
struct Div {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      if (y == 0) return static_cast<T>(-1);
      if constexpr (std::is_signed_v<T>)
        if (y == -1) return Sub()(T(0), x);
      return static_cast<T>(x / y);
    } else {
      return x / y;
    }
  }
};
struct Rem {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      if (y == 0) return x;
      if constexpr (std::is_signed_v<T>)
        if (y == -1) return 0;
      return static_cast<T>(x % y);
    } else {
      return std::fmod(x, y);
    }
  }
};
struct Neg {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return Sub()(T(0), x);
    } else {
      return -x;
    }
  }
};
struct Abs {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_signed_v<T>) {
      return x < 0 ? Sub()(T(0), x) : x;
    } else {
      return x;
    }
  }
};
struct Sign {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return x > 0 ? T(1) : x < 0 ? T(-1) : x;
    } else {
      return static_cast<T>((x > 0) - (x < 0));
    }
  }
};

template <template <class> class Accept, class Op>
void unary(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<Accept>(inst.type.dtype, [&]<class T>() { map1<T>(f, v, inst, Op()); });
}
template <template <class> class Accept, class Op>
void binary(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<Accept>(inst.type.dtype, [&]<class T>() { map2<T>(f, v, inst, Op()); });
}

}  // namespace

void eval_Neg(Frame& f, ValueId v, const Inst& i) { unary<IsNumber, Neg>(f, v, i); }
void eval_Abs(Frame& f, ValueId v, const Inst& i) { unary<IsNumber, Abs>(f, v, i); }
void eval_Sign(Frame& f, ValueId v, const Inst& i) { unary<IsNumber, Sign>(f, v, i); }
void eval_Add(Frame& f, ValueId v, const Inst& i) { binary<IsNumber, Add>(f, v, i); }
void eval_Sub(Frame& f, ValueId v, const Inst& i) { binary<IsNumber, Sub>(f, v, i); }
void eval_Mul(Frame& f, ValueId v, const Inst& i) { binary<IsNumber, Mul>(f, v, i); }
void eval_Div(Frame& f, ValueId v, const Inst& i) { binary<IsNumber, Div>(f, v, i); }
void eval_Rem(Frame& f, ValueId v, const Inst& i) { binary<IsNumber, Rem>(f, v, i); }
void eval_Max(Frame& f, ValueId v, const Inst& i) { binary<IsComputed, Max>(f, v, i); }
void eval_Min(Frame& f, ValueId v, const Inst& i) { binary<IsComputed, Min>(f, v, i); }

void eval_Fma(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<IsFloat>(inst.type.dtype, [&]<class T>() {
    const T* __restrict x = f.operand<T>(inst, 0);
    const T* __restrict y = f.operand<T>(inst, 1);
    const T* __restrict z = f.operand<T>(inst, 2);
    T* __restrict out = f.data<T>(v);
    const std::int64_t n = f.count(v);
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, F16>) {
        out[i] = narrow<T>(widen(x[i]) * widen(y[i]) + widen(z[i]));  // the product is exact in f32
      } else {
        out[i] = narrow<T>(std::fma(widen(x[i]), widen(y[i]), widen(z[i])));
      }
    }
  });
}

}  // namespace palladium::interpreter
