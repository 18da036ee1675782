// References to memory: Ref, subscripts and views.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "palladium/value.hpp"

namespace palladium {

/// `x[_]`: all of a dimension; alone, all of the Ref.
struct All : detail::NoComma {};
inline constexpr All _{};
/// `x[{pl::ellipsis, 0}]`: all dimensions that the rest of the list does not name.
struct Ellipsis : detail::NoComma {};
inline constexpr Ellipsis ellipsis{};

/// `size` elements from `start`, `stride` apart; of a Ref 0 repeats one, which is only read.
struct Slice : detail::NoComma {
  Slice(const Value& first, Dim count, Dim step)
      : start(first), size(count.value()), stride(step.value()) {}
  Value start;
  std::int64_t size, stride;
};
inline Slice ds(const Value& start, Dim size, Dim stride = 1) { return {start, size, stride}; }
inline Slice dslice(const Value& start, Dim size, Dim stride = 1) { return {start, size, stride}; }

/// One entry of a subscript. A Value of integers of any rank is an index: index arrays broadcast
/// against each other, as NumPy's do; their dimensions stand where the indices do if all indices,
/// ints among them, are neighbours, else in front. No index is negative, and no two elements of a
/// store go to one place: both are errors in interpreter and emulator.
class PALLADIUM_API Idx {
 public:
  Idx(All) {}
  Idx(Ellipsis) : kind_(Kind::ellipsis) {}
  Idx(const Slice& s) : kind_(Kind::slice), at_(s.start), size_(s.size), stride_(s.stride) {}
  Idx(Slot&& slot);  ///< a loaded index: x[ids[i]]
  // By exact type: a double is no index.
  template <std::same_as<Value> V>
  Idx(const V& v) : kind_(Kind::index), at_(v) {}
  template <class T>
  requires detail::DimLike<T> Idx(T i) : kind_(Kind::index), at_(i) {}

 private:
  friend class detail::Access;
  enum class Kind : std::uint8_t { all, ellipsis, index, slice };
  Kind kind_ = Kind::all;
  Value at_;
  std::int64_t size_ = 0, stride_ = 1;
};

template <class T>
concept IdxLike = std::constructible_from<Idx, T>;

class Subscript;

/// A reference to memory: a block, an array, scratch, or a view of one. Reading is x[_], writing
/// is x[_] = v. A handle like Value; it cannot be rebound.
class PALLADIUM_API Ref : public Traced {
 public:
  Ref(const Ref&) = default;
  Slot&& operator[](Subscript&& subscript) const;

  // Views: nothing is read.
  Ref at(std::initializer_list<Idx> subscript, Location at = here()) const;
  template <IdxLike T>
  Ref at(T&& index, Location at = here()) const {
    return this->at({Idx(std::forward<T>(index))}, at);
  }
  Ref reshape(Shape shape, Location at = here()) const;  ///< one dimension may be -1
  Ref transpose(Axes permutation, Location at = here()) const;
  /// The same bits as elements of another dtype; the last dimension scales.
  Ref bitcast(DType dtype, Location at = here()) const;

  Shape shape(Location at = here()) const;
  DType dtype(Location at = here()) const;

  template <class T>
  Ref& operator=(const T&) {
    static_assert(detail::never<T>,
                  "palladium: a Ref cannot be assigned; to store write o[_] = v; to copy write "
                  "o[_] = x[_];");
    return *this;
  }
  // clang-format off
  Ref& operator=(const Ref&) = delete;  // to copy the contents write o[_] = x[_];
  // clang-format on

 private:
  friend class detail::Access;
  Ref(std::uint32_t trace, std::uint32_t id) : trace_(trace), id_(id) {}
  std::uint32_t trace_, id_;
};

namespace detail {

/// What x[...] stands for, and what can become of it.
class PALLADIUM_API Place {
 public:
  Place(const Place&) = delete;

 protected:
  Place() = default;
  ~Place() = default;
  Value load();
  Shape shape(Location at) const;
  DType dtype(Location at) const;
  void store(const Operand& value);
  void store(Place&& value);
  void store(Effect&& value);
  enum class Update : std::uint8_t { add, sub, mul, div, rem, and_, or_, xor_, shl, shr };
  void update(Update op, const Operand& value);

 private:
  friend class Access;
  friend class palladium::Ref;
  friend class palladium::Subscript;
  std::uint32_t trace_ = 0, id_ = 0;  // of the Ref
  const Idx* indices_ = nullptr;
  int count_ = 0;
  Location at_;
  Mark mark_;
};

}  // namespace detail

/// x[...] until the expression decides whether it is a load or a store; usable only within its
/// full expression. A template only so that its copy constructor may hold a sentence.
template <class>
class BasicSlot : public Traced, public detail::Place {
 public:
  BasicSlot(const BasicSlot&) {
    static_assert(detail::never<BasicSlot>,
                  "palladium: a subscript cannot be kept or returned as it is; write "
                  "pl::Value v = x[_]; return pl::Value(x[_]); or, for a view, "
                  "pl::Ref r = x.at({...});");
  }
  operator Value() && { return load(); }
  // As of the loaded value.
  Value astype(DType dtype, Location at = here()) && { return load().astype(dtype, at); }
  Value bitcast(DType dtype, Location at = here()) && { return load().bitcast(dtype, at); }
  Value reshape(Shape shape, Location at = here()) && { return load().reshape(shape, at); }
  Value transpose(Axes permutation = {}, Location at = here()) && {
    return load().transpose(permutation, at);
  }
  // Nothing is read.
  Shape shape(Location at = here()) && { return Place::shape(at); }
  DType dtype(Location at = here()) && { return Place::dtype(at); }
  template <std::same_as<bool> B>
  explicit operator B() && {
    static_assert(detail::never<B>,
                  "palladium: a traced value has no truth value while tracing; write "
                  "pl::when(c, [&] {...}) or pl::where(c, a, b), and a loop that it ends as "
                  "pl::loop(0, n, body) or pl::while_loop(condition, body, init)");
    return false;
  }

  void operator=(const Operand& v) && { store(v); }
  void operator=(BasicSlot&& v) && { store(static_cast<Place&&>(v)); }
  void operator=(Effect&& v) && { store(std::move(v)); }
  void operator+=(const Operand& v) && { update(Update::add, v); }
  void operator-=(const Operand& v) && { update(Update::sub, v); }
  void operator*=(const Operand& v) && { update(Update::mul, v); }
  void operator/=(const Operand& v) && { update(Update::div, v); }
  void operator%=(const Operand& v) && { update(Update::rem, v); }
  void operator&=(const Operand& v) && { update(Update::and_, v); }
  void operator|=(const Operand& v) && { update(Update::or_, v); }
  void operator^=(const Operand& v) && { update(Update::xor_, v); }
  void operator<<=(const Operand& v) && { update(Update::shl, v); }
  void operator>>=(const Operand& v) && { update(Update::shr, v); }

 private:
  friend class Subscript;
  BasicSlot() = default;
};

/// `[...]` of a Ref: an index or a braced list of them. A temporary of the full expression, in
/// which the slot lives: `auto s = x[_]` would have to copy the slot, and that is refused on its
/// line.
class Subscript {
 public:
  Subscript(std::initializer_list<Idx> list, Location at = here()) : one_(_) {
    set(list.begin(), static_cast<int>(list.size()), at);
  }
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, Subscript> && IdxLike<T>)
      Subscript(T&& index, Location at = here())
      : one_(std::forward<T>(index)) {
    set(&one_, 1, at);
  }
  Subscript(const Subscript&) = delete;

 private:
  friend class Ref;
  friend class detail::Access;
  void set(const Idx* indices, int count, Location at) {
    slot_.indices_ = indices;
    slot_.count_ = count;
    slot_.at_ = at;
  }
  Idx one_;
  Slot slot_;
};

inline Slot&& Ref::operator[](Subscript&& s) const {
  s.slot_.trace_ = trace_;
  s.slot_.id_ = id_;
  return std::move(s.slot_);
}

}  // namespace palladium
