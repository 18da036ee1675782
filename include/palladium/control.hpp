// Recorded control flow. Plain `if` and `for` run while tracing; these are part of the kernel.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "palladium/ref.hpp"
#include "palladium/value.hpp"

namespace palladium {

/// Several values: `return pl::carry(a, b);` and `auto [a, b] = pl::loop(...)`.
template <std::size_t N>
struct Values {
  Value values[N];

  static constexpr std::size_t size() { return N; }
  Value& operator[](std::size_t i) { return values[i]; }
  const Value& operator[](std::size_t i) const { return values[i]; }
  template <std::size_t I>
  Value get() const {
    return values[I];
  }
};

template <class... T>
Values<sizeof...(T)> carry(T&&... values) {
  static_assert(sizeof...(T) > 0, "palladium: pl::carry takes at least one value");
  return {{Value(std::forward<T>(values))...}};
}

struct LoopOptions {
  std::int64_t step = 1;  ///< > 0
  int unroll = 1;         ///< > 1: needs static bounds; 0: all iterations
};

namespace detail {

class Building;

/// A loop bound or a predicate.
class Bound {
 public:
  Bound(const Value& value, Location at = here()) : value_(value), at_(at) {}
  Bound(Slot&& slot, Location at = here()) : value_(std::move(slot)), at_(at) {}
  template <Literal T>
  Bound(T literal, Location at = here()) : value_(literal), at_(at) {}
  template <std::same_as<Ref> R>
  Bound(const R&) {
    static_assert(never<R>,
                  "palladium: this is a Ref, not a value; did you forget to load it: x[_] ?");
  }
  Bound(const Bound&) = delete;

 private:
  friend class Access;
  friend class Building;
  Value value_;
  Location at_;
  mutable Mark mark_;
};

/// An operation with a region, while its region is recorded. Destroyed before `close`, by an
/// exception in the user's lambda, it leaves nothing behind.
class PALLADIUM_API Building {
 public:
  explicit Building(const Bound& condition);  // when
  Building(const Bound& lo, const Bound& hi, const LoopOptions& options, const Value* init,
           int count);
  ~Building();
  Building(const Building&) = delete;

  /// A predicate that is a C++ number: its truth, without a record.
  static bool is_literal(const Bound& condition);
  static bool truth(const Bound& condition);

  Value index() const;
  Value carry(int i) const;
  void close(const Value* yielded, int count);
  Value result(int i) const;

 private:
  struct State;
  State* state_;
};

template <class R>
inline constexpr int yields = std::is_void_v<R> ? 0 : 1;
template <std::size_t N>
inline constexpr int yields<Values<N>> = static_cast<int>(N);

template <class>
inline constexpr bool is_values = false;
template <std::size_t N>
inline constexpr bool is_values<Values<N>> = true;

template <class F>
void record_body(Building& building, F&& body) {
  using R = std::invoke_result_t<F>;
  if constexpr (std::is_void_v<R>) {
    body();
    building.close(nullptr, 0);
  } else if constexpr (is_values<R>) {
    const R r = body();
    building.close(r.values, static_cast<int>(r.size()));
  } else {
    const Value r = body();
    building.close(&r, 1);
  }
}

}  // namespace detail

/// Runs the body where the condition holds. A C++ bool decides while tracing.
template <class F>
void when(const detail::Bound& condition, F&& body) {
  static_assert(std::is_void_v<std::invoke_result_t<F>>,
                "palladium: the body of when returns nothing; pl::where(c, a, b) gives a value");
  if (detail::Building::is_literal(condition)) {
    if (detail::Building::truth(condition)) body();
    return;
  }
  detail::Building building(condition);
  detail::record_body(building, body);
}

/// for (i = lo; i < hi; i += step), as if i could not overflow: the body sees i < hi only. The body
/// takes the index and one Value per initial value, and returns their next values: nothing, a
/// Value, or pl::carry(a, b, ...), like the loop itself. The index is an i32; of bounds in a wider
/// dtype the nearest i32 is taken.
template <class F, class... Init>
auto loop(const detail::Bound& lo, const detail::Bound& hi, LoopOptions options, F&& body,
          Init&&... init) {
  constexpr int count = sizeof...(Init);
  const Value initial[count + 1] = {Value(std::forward<Init>(init))..., Value()};
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr bool fits = std::is_invocable_v<F, Index, decltype((void(I), Value()))...>;
    static_assert(fits,
                  "palladium: the body of a loop takes the index and one pl::Value per initial "
                  "value");
    if constexpr (fits) {
      using R = std::invoke_result_t<F, Index, decltype((void(I), Value()))...>;
      constexpr bool closes = detail::yields<std::remove_cvref_t<R>> == count;
      static_assert(closes,
                    "palladium: the body of a loop returns as many values as were given to start "
                    "with: pl::carry(a, b, ...)");
      constexpr bool is_value = std::is_void_v<R> || detail::is_values<std::remove_cvref_t<R>> ||
                                std::convertible_to<R, Value>;
      static_assert(is_value,
                    "palladium: a body returns nothing, a pl::Value, or pl::carry(a, b, ...)");
      if constexpr (closes && is_value) {
        detail::Building building(lo, hi, options, initial, count);
        detail::record_body(building, [&]() -> R {
          return body(building.index(), building.carry(static_cast<int>(I))...);
        });
        if constexpr (count == 1) {
          return building.result(0);
        } else if constexpr (count > 1) {
          return Values<sizeof...(I)>{{building.result(static_cast<int>(I))...}};
        }
      }
    }
  }
  (std::make_index_sequence<sizeof...(Init)>());
}

template <class F, class... Init>
requires(!std::same_as<std::remove_cvref_t<F>, LoopOptions>) auto loop(const detail::Bound& lo,
                                                                       const detail::Bound& hi,
                                                                       F&& body, Init&&... init) {
  return loop(lo, hi, LoopOptions{}, std::forward<F>(body), std::forward<Init>(init)...);
}

}  // namespace palladium

template <std::size_t N>
struct std::tuple_size<palladium::Values<N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t I, std::size_t N>
struct std::tuple_element<I, palladium::Values<N>> {
  using type = palladium::Value;
};
