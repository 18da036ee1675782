// cast: every dtype to every dtype, rounding once.
#include <cmath>
#include <limits>

#include "runtime/interpreter/elementwise.hpp"

namespace palladium::interpreter {
namespace {

template <class To, class From>
To to_integer(From x) {
  if constexpr (std::is_integral_v<From>) {
    return static_cast<To>(x);
  } else {
    // The bounds are powers of two, exact in From's type; the upper one is already too large.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    const From high = std::ldexp(From(1), std::numeric_limits<To>::digits);
    if (x != x) return 0;
    if (x <= low) return std::numeric_limits<To>::min();
    if (x >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  }
}

constexpr DType dtype_of(F8E4M3) { return f8e4m3; }
constexpr DType dtype_of(F8E5M2) { return f8e5m2; }
constexpr DType dtype_of(F16) { return f16; }
constexpr DType dtype_of(BF16) { return bf16; }

template <class To, class From>
To to_small_float(From x) {
  const auto bits = [](auto number) {
    return To{static_cast<decltype(To::bits)>(graph::to_bits(dtype_of(To{}), number))};
  };
  if constexpr (std::is_same_v<From, float> || (std::is_integral_v<From> && sizeof(From) <= 2)) {
    return narrow<To>(static_cast<float>(x));  // exact in f32
  } else if constexpr (std::is_same_v<From, double>) {
    return bits(x);
  } else if constexpr (std::is_same_v<From, std::uint64_t>) {
    return To{static_cast<decltype(To::bits)>(graph::natural_to_bits(dtype_of(To{}), x))};
  } else {
    return bits(static_cast<std::int64_t>(x));
  }
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (is_half<To> || is_byte_float<To>) {
    return to_small_float<To>(x);
  } else if constexpr (std::is_integral_v<To>) {
    return to_integer<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

void eval_Cast(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<AnyType>(f.dtype(inst.args[0]), [&]<class From>() {
    const From* __restrict x = f.operand<From>(inst, 0);
    const std::int64_t n = f.count(v);
    with_type_if<AnyType>(inst.type.dtype, [&]<class To>() {
      To* __restrict out = f.data<To>(v);
      for (std::int64_t i = 0; i < n; ++i) out[i] = convert<To>(widen(x[i]));
    });
  });
}

}  // namespace palladium::interpreter
