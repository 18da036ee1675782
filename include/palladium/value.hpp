// What a kernel body computes with: Value, and the operators that record on it.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "palladium/types.hpp"

namespace palladium {

class Array;
class ArrayRef;
class Effect;
class Outputs;
class Ref;
class Subscript;
class Value;
template <class>
class BasicSlot;
using Slot = BasicSlot<void>;

/// A program id, a loop counter, ...: an i32 scalar.
using Index = Value;

namespace detail {

class Access;  // codegen/trace: the handles' inside

template <class>
inline constexpr bool never = false;

/// What is weak: takes the dtype of the operand that it meets. A Dim that a call gives a size is
/// read, and so pinned; that of a Ref's shape, and one without a size, is recorded as a scalar.
template <class T>
concept Literal = std::is_arithmetic_v<T> || std::same_as<T, Dim>;

/// Member of temporaries: what this expression reads or writes, until the expression ends. Two
/// effects in one expression, whose order C++ leaves open, are found by it.
class PALLADIUM_API Mark {
 public:
  constexpr Mark() = default;
  Mark(const Mark&) = delete;
  ~Mark() {
    if (number_ != 0) end();
  }

 private:
  friend class Access;
  void end();
  std::uint32_t trace_ = 0;
  std::uint32_t number_ = 0;
};

/// Last parameter of functions that read: the caller's line, and a mark for its expression.
class Expression {
 public:
  Expression(Location at = here()) : at_(at) {}

 private:
  friend class Access;
  Location at_;
  mutable Mark mark_;
};

struct CommaTrap {};
struct NoComma {
  template <class A, class B>
  friend CommaTrap operator,(const A&, const B&) {
    static_assert(never<A>, "palladium: a subscript takes a list: write o[{i, j}], not o[i, j]");
    return {};
  }
};

}  // namespace detail

/// Base of all that stands for a traced value. Both sides of an operator stay unresolved until
/// its body, which records left, then right: the graph does not depend on the host compiler.
struct Traced : detail::NoComma {
  friend PALLADIUM_API Value operator+(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator-(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator*(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator/(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator%(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator&(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator|(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator^(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator<<(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator>>(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator==(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator!=(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator<(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator<=(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator>(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator>=(const Operand&, const Operand&);
  friend PALLADIUM_API Value operator-(const Operand&);
  friend PALLADIUM_API Value operator~(const Operand&);

  // They return a Value, so that the compilers have nothing to say besides the sentence.
  template <class A, class B, class V = Value>
  friend V operator&&(const A&, const B&) {
    static_assert(detail::never<A>,
                  "palladium: && and || cannot be recorded; write a & b (or a | b), or "
                  "pl::when(a, [&] { pl::when(b, ...); })");
    return {};
  }
  template <class A, class B, class V = Value>
  friend V operator||(const A&, const B&) {
    static_assert(detail::never<A>,
                  "palladium: && and || cannot be recorded; write a & b (or a | b), or "
                  "pl::when(a, [&] { pl::when(b, ...); })");
    return {};
  }
};

/// Dimensions of a value, as options and permutations name them: `1`, `{0, 1}`. Negative ones count
/// from the end.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : axes_{axis}, count_(1) {}
  Axes(std::initializer_list<int> axes) {
    for (int a : axes) {
      if (count_ == Shape::max_rank) too_many();
      axes_[count_++] = a;
    }
  }
  int size() const { return count_; }
  const int* begin() const { return axes_; }
  const int* end() const { return axes_ + count_; }
  int operator[](int i) const { return axes_[i]; }

 private:
  [[noreturn]] PALLADIUM_API static void too_many();
  int axes_[Shape::max_rank] = {};
  int count_ = 0;
};

/// A value of a kernel body: a handle, cheap to copy, that is good only in the trace (and the body
/// of pl::when or pl::loop) that recorded it. Made from a C++ number it is a weak literal: nothing
/// is recorded until it meets a typed value, whose dtype must hold it. Floats round it; an integer
/// dtype that does not hold it is an error, so that no number wraps unseen. Where its low bits are
/// meant, a cast says so: `pl::u32(-1)`.
class PALLADIUM_API Value : public Traced {
 public:
  Value() = default;
  template <detail::Literal T>
  Value(T literal) {
    if constexpr (std::same_as<T, Dim>) {
      set(literal);
    } else if constexpr (std::same_as<T, bool>) {
      id_ = truth;
      literal_.integer = literal;
    } else if constexpr (std::floating_point<T>) {
      id_ = floating;
      literal_.floating = static_cast<double>(literal);
    } else {
      id_ = integer;
      literal_.integer = static_cast<std::int64_t>(literal);
      if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8)
        if (literal_.integer < 0) id_ = natural;
    }
  }
  template <std::same_as<Ref> R>
  Value(const R&) {
    static_assert(detail::never<R>,
                  "palladium: this is a Ref, not a value; load it: pl::Value v = x[_];");
  }
  template <std::same_as<bool> B>
  explicit operator B() const {
    static_assert(detail::never<B>,
                  "palladium: a traced value has no truth value while tracing; write "
                  "pl::when(c, [&] {...}) or pl::where(c, a, b), and a loop that it ends as "
                  "pl::loop(0, n, body) or pl::while_loop(condition, body, init)");
    return false;
  }

  Value& operator+=(const Operand& o);
  Value& operator-=(const Operand& o);
  Value& operator*=(const Operand& o);
  Value& operator/=(const Operand& o);
  Value& operator%=(const Operand& o);
  Value& operator&=(const Operand& o);
  Value& operator|=(const Operand& o);
  Value& operator^=(const Operand& o);
  Value& operator<<=(const Operand& o);
  Value& operator>>=(const Operand& o);

  Shape shape(Location at = here()) const;
  DType dtype(Location at = here()) const;  ///< of a literal: bool, i32 or f32

  /// Elements by a subscript like a Ref's: `v[0]`, `v[{0, _}]`, `v[{pl::ds(2, 5), _}]`. A start
  /// that is a Value is moved to where the slice is inside.
  Value operator[](Subscript&& subscript) const;

  Value astype(DType dtype, Location at = here()) const;
  /// The same bits as numbers of another dtype of that width.
  Value bitcast(DType dtype, Location at = here()) const;
  Value reshape(Shape shape, Location at = here()) const;  ///< one dimension may be -1
  Value transpose(Axes permutation = {}, Location at = here()) const;
  /// Names the value in dumps and messages. Changes neither meaning nor key.
  Value named(const char* name, Location at = here()) const;

 private:
  friend class detail::Access;
  void set(const Dim& dim);
  // id_ of literals; natural: an integer of 2^63 and more, by its bits.
  enum : std::uint32_t { empty, truth, integer, floating, natural };

  std::uint32_t trace_ = 0;  // 0: a literal
  std::uint32_t id_ = empty;
  union {
    std::int64_t integer;
    double floating;
  } literal_ = {0};
};

// Exact types: an Operand parameter would tie with the built-in operator.
PALLADIUM_API Value operator!(const Value& v);
PALLADIUM_API Value operator!(Slot&& v);

/// The size that a symbolic extent has in a call, as an i32 scalar: `pl::dim_as_value("k")` of a
/// `pl::dim("k")`, or of any expression of extents, which stays symbolic.
PALLADIUM_API Value dim_as_value(const char* name, Location at = here());
PALLADIUM_API Value dim_as_value(const Dim& dim, Location at = here());

/// Parameter type of every operation, never kept: a literal, a Value or an unresolved x[...], and
/// the user's line.
class Operand {
 public:
  Operand(const Value& value, Location at = here()) : value_(value), at_(at) {}
  Operand(Slot&& slot, Location at = here()) : slot_(&slot), at_(at) {}
  template <detail::Literal T>
  Operand(T literal, Location at = here()) : value_(literal), at_(at) {}

  template <std::same_as<Ref> R>
  Operand(const R&) {
    static_assert(detail::never<R>,
                  "palladium: this is a Ref, not a value; did you forget to load it: x[_] ?");
  }
  template <class A>
  requires(std::same_as<A, Array> || std::same_as<A, Outputs>) Operand(const A&) {
    static_assert(detail::never<A>,
                  "palladium: a body captures a pl::Array, whose elements are no constants of the "
                  "kernel; pass it as an argument, of which the body gets a pl::Ref (and a body of "
                  "pl::kernel may capture pl::new_ref(array))");
  }
  template <std::same_as<ArrayRef> R>
  Operand(const R&) {
    static_assert(detail::never<R>,
                  "palladium: this is an ArrayRef, not a value; did you forget to load it: x[_] ?");
  }
  template <class S>
  requires std::same_as<std::remove_const_t<S>, Slot> Operand(S&) {
    static_assert(detail::never<S>,
                  "palladium: a subscript cannot be kept with auto; write pl::Value v = x[_];");
  }
  template <std::same_as<Effect> E>
  Operand(const E&) {
    static_assert(detail::never<E>,
                  "palladium: this operation also writes; give its result a name first: "
                  "pl::Value old = pl::swap(...);");
  }

 private:
  friend class detail::Access;
  Value value_;
  Slot* slot_ = nullptr;
  Location at_;
};

/// The result of an operation that also writes. No operand: which of two effects in one expression
/// comes first is up to the compiler, so the first result must be given a name.
class PALLADIUM_API Effect : public Traced {
 public:
  Effect(const Effect&) = delete;
  operator Value() && { return value_; }

 private:
  friend class detail::Access;
  template <class F>
  Effect(const Value& value, const F& note) : value_(value) {
    note(mark_);
  }
  Value value_;
  detail::Mark mark_;
};

/// An optional keyword argument.
class PALLADIUM_API MaybeValue {
 public:
  MaybeValue() = default;
  template <class T>
  requires std::constructible_from<Operand, T&&> MaybeValue(T&& value, Location at = here())
      : MaybeValue(Given{}, Operand(std::forward<T>(value), at)) {}
  MaybeValue(const MaybeValue&) = default;
  MaybeValue& operator=(const MaybeValue&) = default;

 private:
  friend class detail::Access;
  struct Given {};
  MaybeValue(Given, const Operand& value);
  bool given_ = false;
  Value value_;
  Location at_;
};

}  // namespace palladium
