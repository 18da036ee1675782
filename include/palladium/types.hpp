// Element types, dimensions and shapes.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "palladium/api.hpp"
#include "palladium/error.hpp"

namespace palladium {

class Value;
class Operand;

/// An element type. `pl::f32(x)` inside a kernel body casts x, or makes a strongly typed constant.
class PALLADIUM_API DType {
 public:
  enum Kind : std::uint8_t {
    None,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    I4,
    U4,
    F8E4M3,
    F8E5M2,
    F16,
    BF16,
    F32,
    F64
  };

  constexpr DType() = default;
  explicit constexpr DType(Kind kind) : kind_(kind) {}

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_float() const { return kind_ >= F8E4M3; }
  constexpr bool is_integer() const { return kind_ >= I8 && kind_ <= U4; }
  constexpr bool is_signed() const {
    return (kind_ >= I8 && kind_ <= I64) || kind_ == I4 || is_float();
  }
  constexpr bool is_bool() const { return kind_ == Bool; }
  /// Two elements share a byte of memory, the first its low half.
  constexpr bool is_packed() const { return kind_ == I4 || kind_ == U4; }
  /// Size of an element in memory, of one that is packed by itself. A bool takes one byte, 0 or 1.
  constexpr int bytes() const {
    constexpr int sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 1, 1, 2, 2, 4, 8};
    return sizes[kind_];
  }
  constexpr int bits() const { return is_packed() ? 4 : 8 * bytes(); }
  /// Size of as many elements in memory: of packed ones an even number.
  constexpr std::int64_t bytes_of(std::int64_t elements) const {
    return is_packed() ? elements / 2 : elements * bytes();
  }
  /// "f32", "bool", ...: as in dumps, messages and the names of the constants below.
  const char* name() const;
  constexpr bool operator==(const DType&) const = default;

  Value operator()(const Operand& x) const;

 private:
  Kind kind_ = None;
};

inline constexpr DType bool_{DType::Bool}, i8{DType::I8}, i16{DType::I16}, i32{DType::I32},
    i64{DType::I64}, u8{DType::U8}, u16{DType::U16}, u32{DType::U32}, u64{DType::U64},
    f16{DType::F16}, bf16{DType::BF16}, f32{DType::F32}, f64{DType::F64};
/// Floats of 8 bits, rounded to nearest even. e4m3 is `float8_e4m3fn`: no infinity, and what rounds
/// beyond 448 is NaN; e5m2 is `float8_e5m2`: what rounds beyond 57344 is infinite.
inline constexpr DType f8e4m3{DType::F8E4M3}, f8e5m2{DType::F8E5M2};
/// Integers of 4 bits, two in a byte: arrays of them have an even last extent, and are read and
/// written in whole bytes.
inline constexpr DType i4{DType::I4}, u4{DType::U4};

/// The type named `name`; DType() if there is none.
PALLADIUM_API DType dtype_named(const char* name);

namespace detail {
[[noreturn]] PALLADIUM_API void extent_too_large(std::uint64_t n);
[[noreturn]] PALLADIUM_API void extent_divided_by_zero();
[[noreturn]] PALLADIUM_API void no_power_of_two(std::int64_t n);
template <class T>
inline constexpr bool no_float = !std::floating_point<T>;
}  // namespace detail

/// An extent: an integer, a symbol (`pl::dim("m")`) or an expression of both, 0 or more elements.
///
/// In an options function the dims of the arguments are symbols bound to the sizes of the call:
/// reading one as an integer (conversion, comparison) pins it, so that it becomes part of the
/// specialisation; using it in array types and grids leaves it symbolic. So does finding two of
/// them equal: the kernel then serves every size of both, as long as they are equal.
class PALLADIUM_API Dim {
 public:
  constexpr Dim() = default;
  /// CompileError for 2^63 and more.
  template <std::integral T>
  constexpr Dim(T n) : value_(static_cast<std::int64_t>(n)) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8)
      if (value_ < 0) detail::extent_too_large(n);
  }
  template <std::floating_point T>
  constexpr Dim(T) {
    static_assert(detail::no_float<T>,
                  "palladium: an extent is a whole number, given a float; divide integers, n / 2, "
                  "or round up: pl::cdiv(n, 2)");
  }

  constexpr bool is_static() const { return expression_ == 0; }
  /// The integer. Pins a bound symbol; CompileError for an unbound one.
  constexpr std::int64_t value() const { return expression_ == 0 ? value_ : read(); }
  constexpr operator std::int64_t() const { return value(); }

  /// Node of the process-wide table of expressions; 0 for an integer (see codegen/base/dim.hpp).
  constexpr std::uint32_t expression() const { return expression_; }
  static Dim of_expression(std::uint32_t id);

  /// Same integer, or the same expression. Reads (and pins) nothing.
  constexpr bool same(const Dim& o) const {
    return value_ == o.value_ && expression_ == o.expression_;
  }

  /// What pl::dim() was told of the symbol: its place in a process-wide table, 0 for nothing.
  constexpr std::uint32_t promise() const { return promise_; }
  Dim with_promise(std::uint32_t promise) const;

 private:
  std::int64_t read() const;
  std::int64_t value_ = 0;
  std::uint32_t expression_ = 0, promise_ = 0;
};

/// What every size keeps that a symbol stands for, where a kernel is lowered for it: a call looks
/// at its own sizes.
struct DimOptions {
  std::int64_t multiple_of = 1;
  std::int64_t at_most = INT64_MAX;
};
/// A symbolic extent: one kernel serves every value of it. Equal names are equal symbols; what one
/// of the arguments' dims says of a symbol holds for all of them.
PALLADIUM_API Dim dim(const char* name, DimOptions options = {}, Location at = here());

/// The integer that argument `i` of a call holds, in a grid: a dynamic grid bound (a jax.Array in
/// the grid of jax.experimental.pallas). One kernel serves every value.
///
/// Of a `pl::scalar` it may stand wherever a symbol may, in expressions too. Of an array of one
/// element, of which only the device knows what it holds, it stands alone in `pl::at_most`: as many
/// programs are launched, and those from that number on return at once.
PALLADIUM_API Dim argument(int i, Location at = here());
/// The smaller of two extents.
PALLADIUM_API Dim at_most(const Dim& d, const Dim& most);

namespace detail {
enum class DimOp : std::uint8_t { symbol, constant, add, sub, mul, div, mod, cdiv, min, max };
PALLADIUM_API Dim dim_binary(DimOp op, const Dim& a, const Dim& b);
PALLADIUM_API bool dim_equal(const Dim& a, const Dim& b);
template <class T>
concept DimLike = std::integral<T> || std::same_as<T, Dim>;
template <class A, class B>
concept OneIsDim = DimLike<A> && DimLike<B> &&(std::same_as<A, Dim> || std::same_as<B, Dim>);
}  // namespace detail

template <class A, class B>
requires detail::OneIsDim<A, B> Dim operator+(A a, B b) {
  return detail::dim_binary(detail::DimOp::add, a, b);
}
template <class A, class B>
requires detail::OneIsDim<A, B> Dim operator-(A a, B b) {
  return detail::dim_binary(detail::DimOp::sub, a, b);
}
template <class A, class B>
requires detail::OneIsDim<A, B> Dim operator*(A a, B b) {
  return detail::dim_binary(detail::DimOp::mul, a, b);
}
template <class A, class B>
requires detail::OneIsDim<A, B> Dim operator/(A a, B b) {
  return detail::dim_binary(detail::DimOp::div, a, b);
}
template <class A, class B>
requires detail::OneIsDim<A, B> Dim operator%(A a, B b) {
  return detail::dim_binary(detail::DimOp::mod, a, b);
}
// Comparisons read both sides: they pin, but for two that are equal. (!=, >, ... are rewritten from
// these two.)
template <class A, class B>
requires detail::OneIsDim<A, B>
bool operator==(A a, B b) { return detail::dim_equal(a, b); }
template <class A, class B>
requires detail::OneIsDim<A, B>
auto operator<=>(A a, B b) { return Dim(a).value() <=> Dim(b).value(); }

// What 64 bits do not hold, of integers at once and of symbols where their sizes are known, is a
// CompileError; so is a division by zero.

/// a / b rounded up; a >= 0, b > 0.
template <class A, class B>
requires detail::OneIsDim<A, B> Dim cdiv(A a, B b) {
  return detail::dim_binary(detail::DimOp::cdiv, a, b);
}
constexpr std::int64_t cdiv(std::integral auto a, std::integral auto b) {
  const std::int64_t n = Dim(a).value(), d = Dim(b).value();
  if (d == 0) detail::extent_divided_by_zero();
  return n / d + (n % d != 0);
}

/// a rounded up to a multiple of n; a >= 0, n > 0.
template <class A, class B>
requires detail::OneIsDim<A, B> Dim align_to(A a, B n) { return cdiv(a, n) * n; }
constexpr std::int64_t align_to(std::integral auto a, std::integral auto n) {
  return cdiv(a, n) * Dim(n).value();
}
/// The least power of two that is not below n, 1 for 0; CompileError for a negative n, and where 64
/// bits do not hold it.
constexpr std::int64_t next_power_of_2(std::integral auto n) {
  const std::int64_t least = Dim(n).value();
  if (least < 0 || least > std::int64_t{1} << 62) detail::no_power_of_two(least);
  std::int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}
inline std::int64_t next_power_of_2(const Dim& n) { return next_power_of_2(n.value()); }

/// The extents of an array, outermost first; at most 8.
class PALLADIUM_API Shape {
 public:
  static constexpr int max_rank = 8;

  constexpr Shape() = default;
  Shape(std::initializer_list<Dim> dims);

  constexpr int rank() const { return rank_; }
  /// A negative `i` counts from the end. CompileError if there is no such dimension.
  const Dim& operator[](int i) const { return dims_[i >= 0 && i < rank_ ? i : position(i)]; }
  Dim& operator[](int i) { return dims_[i >= 0 && i < rank_ ? i : position(i)]; }
  const Dim* begin() const { return dims_; }
  const Dim* end() const { return dims_ + rank_; }
  Dim* begin() { return dims_; }
  Dim* end() { return dims_ + rank_; }
  void push_back(Dim d);
  /// `auto [m, n] = x.shape.unpack<2>();` CompileError if the rank is another.
  template <std::size_t N>
  std::array<Dim, N> unpack() const {
    require_rank(static_cast<int>(N));
    std::array<Dim, N> dims;
    for (std::size_t i = 0; i < N; ++i) dims[i] = dims_[i];
    return dims;
  }
  bool is_static() const;
  /// Product of the extents, 1 for a scalar. Reads (and pins) every dim. CompileError for more than
  /// 64 bits hold.
  std::int64_t size() const;
  /// Same rank and, in an options function, equal dims; elsewhere dims pairwise `same`.
  bool operator==(const Shape& o) const;

  /// The argument of a call that it is the shape of, for messages; -1: of none.
  int argument() const { return argument_; }
  void set_argument(int argument) { argument_ = static_cast<std::int16_t>(argument); }

 private:
  int position(int i) const;
  void require_rank(int rank) const;
  Dim dims_[max_rank] = {};
  std::int16_t rank_ = 0, argument_ = -1;
};

/// "[4,1000]", "[m,1000]".
PALLADIUM_API std::string to_string(const Shape& shape);
PALLADIUM_API std::string to_string(const Dim& dim);

/// What is known of an array before there is one: `jax.ShapeDtypeStruct`.
struct ShapeDtype {
  Shape shape = {};
  DType dtype = {};
  bool operator==(const ShapeDtype&) const = default;
};

/// "f32[m,1000]".
PALLADIUM_API std::string to_string(const ShapeDtype& type);

/// In an options function: the kernel is only for arguments for which the two are equal. Symbols
/// stay symbolic; a call with others is a CompileError that names both arguments.
PALLADIUM_API void require_equal(const Dim& a, const Dim& b);
/// Shapes and dtypes.
PALLADIUM_API void require_equal(const ShapeDtype& a, const ShapeDtype& b);
/// In an options function: the kernel is only for arguments for which `d` is a multiple of `n`. A
/// symbol stays symbolic; a call with another size is a CompileError that names both.
PALLADIUM_API void require_multiple(const Dim& d, std::int64_t n, Location at = here());
/// In an options function: the kernel is only for arguments for which `d` is at most `most`, which may
/// be a symbol, too. Symbols stay symbolic; a call with others is a CompileError that names both.
PALLADIUM_API void require_at_most(const Dim& d, const Dim& most);
/// In an options function: the least power of two, of those from `least` on, that `d` does not
/// exceed; 0 of a size of 0. The kernel is then for arguments of this class of sizes: `d` stays
/// symbolic, and each class, a bound for blocks of pl::bounded(), has a kernel of its own. Of a
/// pl::dim() without a size, the class of what it is said to be at most.
PALLADIUM_API std::int64_t size_class(const Dim& d, std::int64_t least = 1, Location at = here());

}  // namespace palladium
