// Recorded control flow. Plain `if` and `for` run while tracing; these are part of the kernel.
//
// What a body hands on is nothing, a pl::Value, pl::carry(a, b, ...), or a plain struct of
// pl::Values, which the compiler counts.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "palladium/function.hpp"
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

struct ScanOptions {
  std::int64_t length = 0;  ///< >= 0: iterations
  bool reverse = false;     ///< what there is no other order of, without slices to take or give
  int unroll = 1;           ///< 0: all iterations
};

class ScratchTypes;
struct ScopedOptions;
namespace gpu {
struct WarpMesh;
}

namespace detail {

class Bound;
class Operands;
struct InlineText;

// ---- what a body hands on

struct AnyValue {
  operator Value() const;
};
struct AnyMember {
  template <class T>
  operator T() const;
};
inline constexpr int max_values = 16;
template <class T, std::size_t... I>
consteval bool takes_values(std::index_sequence<I...>) {
  return requires { T{Repeat<AnyValue, I>{}...}; };
}
template <class T, int N = max_values>
consteval int value_fields() {
  if constexpr (N == 0) {
    return 0;
  } else if constexpr (takes_values<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return value_fields<T, N - 1>();
  }
}
template <class T, std::size_t... I>
consteval bool has_more_fields(std::index_sequence<I...>) {
  return requires { T{Repeat<AnyValue, I>{}..., AnyMember{}}; };
}

/// How many values a T is: 0 for void; -1 for what is neither a value nor a struct of values.
template <class T>
consteval int value_count() {
  using S = std::remove_cvref_t<T>;
  if constexpr (std::is_void_v<S>) {
    return 0;
  } else if constexpr (std::convertible_to<T, Value>) {
    return 1;
  } else if constexpr (std::is_aggregate_v<S> && std::is_trivially_copyable_v<S>) {
    constexpr int n = value_fields<S>();
    if constexpr (n == 0 || has_more_fields<S>(std::make_index_sequence<n>())) {
      return -1;
    } else {
      return sizeof(S) == sizeof(Values<n>) ? n : -1;
    }
  } else {
    return -1;
  }
}
template <std::size_t N>
inline constexpr int known_count = static_cast<int>(N);

template <class T>
concept Carriable = value_count<T>()
> 0;

/// What a T is handed on as: a Value, or the struct that it is.
template <class T>
using Carried = std::conditional_t<std::convertible_to<T, Value>, Value, std::remove_cvref_t<T>>;

/// Puts the values of `from` behind `to`.
template <class T>
void put_values(Value*& to, T&& from) {
  if constexpr (std::convertible_to<T, Value>) {
    *to++ = Value(std::forward<T>(from));
  } else {
    constexpr int n = value_count<T>();
    const auto all =
        __builtin_bit_cast(Values<n>, static_cast<const std::remove_cvref_t<T>&>(from));
    for (const Value& v : all.values) *to++ = v;
  }
}

/// A T of the values that value(first), value(first + 1), ... are.
template <class T, class F>
T taken(const F& value, int first = 0) {
  if constexpr (std::same_as<T, Value>) {
    return value(first);
  } else {
    Values<value_count<T>()> all;
    for (Value& v : all.values) v = value(first++);
    return __builtin_bit_cast(T, all);
  }
}

/// The values with which something that repeats starts, in a row.
template <class... Init>
struct Start {
  static constexpr int count = (0 + ... + value_count<Init>());
  explicit Start(Init&&... init) {
    [[maybe_unused]] Value* to = values;
    (put_values(to, std::forward<Init>(init)), ...);
  }
  Value values[count + 1];
};

/// What repeats gives for what it was started with, the last value that its body, which returns
/// R, handed on.
template <class R, class... Init>
struct Outcome {
  using type = std::remove_cvref_t<R>;
};
template <class R, class Init>
struct Outcome<R, Init> {
  using type = Carried<Init>;
};

/// f(lead..., carries...), with the values of `carry` in the order of Init.
template <class... Init, class F, class C, class... Lead>
decltype(auto) call_with_carries(F& f, const C& carry, const Lead&... lead) {
  constexpr int counts[] = {value_count<Init>()..., 0};
  const auto first = [&](std::size_t i) {
    int sum = 0;
    for (std::size_t k = 0; k < i; ++k) sum += counts[k];
    return sum;
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>)->decltype(auto) {
    return f(lead..., taken<Carried<Init>>(carry, first(I))...);
  }
  (std::make_index_sequence<sizeof...(Init)>());
}

// ---- recording

/// A loop bound, a predicate or an index.
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
  Value value_;
  Location at_;
  mutable Mark mark_;
};

/// An operation with regions, while they are recorded, one after the other. Destroyed before
/// `finish`, by an exception in the user's lambda, it leaves nothing behind.
class PALLADIUM_API Building {
 public:
  explicit Building(const Bound& condition);  // when
  Building(const Bound& lo, const Bound& hi, const LoopOptions& options, const Value* init,
           int count);
  Building(const ScanOptions& options, const Value* init, int count, const Expression& at);
  Building(const Value* init, int count, const Expression& at);  // while_loop
  Building(const Bound& first, const Value* others, int count);  // while_loop
  Building(const char* what, const Bound& which, int branches);  // cond, switch_
  Building(const ScratchTypes& types, const ScopedOptions& options, const Expression& at);  // scope
  Building(const gpu::WarpMesh& mesh, const Expression& at);  // core_map over warps
  Building(const InlineText& text, const Expression& at);     // inline_cuda
  ~Building();
  Building(const Building&) = delete;

  /// A predicate that is a C++ number: its truth, without a record.
  static bool is_literal(const char* what, const Bound& condition);
  static bool truth(const Bound& condition);
  /// The branch that an index which is a C++ number names.
  static int branch(const Bound& index, int branches);
  [[noreturn]] static void no_branches(const Bound& index);

  Value index() const;
  Value carry(int i) const;
  /// The warp that runs the body of a core_map.
  Value warp() const;
  /// The Refs of a scope.
  Operands& operands() const;
  /// Ends the region that is open, and opens the next one, if there is any. Of a while_loop's
  /// first, the value says whether there is another iteration.
  void close(const Value* yielded, int count);
  Value result(int i) const;

 private:
  struct State;
  State* state_;
};

template <class F>
void record_region(Building& building, F&& body) {
  using R = std::invoke_result_t<F>;
  if constexpr (std::is_void_v<R>) {
    body();
    building.close(nullptr, 0);
  } else {
    constexpr int count = value_count<R>();
    Value values[count];
    Value* to = values;
    put_values(to, body());
    building.close(values, count);
  }
}

/// What the operation gives, as a T.
template <class T>
T results(const Building& building) {
  if constexpr (!std::is_void_v<T>) return taken<T>([&](int i) { return building.result(i); });
}

template <class R, class... Init>
inline constexpr bool closes = value_count<R>() < 0 || value_count<R>() ==
                                                           (0 + ... + value_count<Init>());

/// The result of a function that is called while tracing instead.
template <class T, class F>
T called(F&& f) {
  if constexpr (std::is_void_v<T>) {
    f();
  } else if constexpr (std::same_as<T, Value>) {
    return Value(f());
  } else {
    return f();
  }
}

/// An operand as branches take it: what is still to be loaded, loaded before them.
template <class T>
decltype(auto) operand(T&& given) {
  if constexpr (std::same_as<std::remove_cvref_t<T>, Slot>) {
    return Value(std::forward<T>(given));
  } else {
    return std::forward<T>(given);
  }
}

template <class R>
struct ResultOf {
  using type = Carried<R>;
};
template <>
struct ResultOf<void> {
  using type = void;
};
/// What a function that returns R hands on.
template <class R>
using Result = typename ResultOf<R>::type;

template <class F, class... Carry>
inline constexpr bool tests = [] {
  if constexpr (std::is_invocable_v<F&, Carry...>)
    return std::convertible_to<std::invoke_result_t<F&, Carry...>, Value>;
  else
    return false;
}();

// A while_loop whose first carries are known.
template <class... Init, class C, class F>
auto repeated(Building& building, C& condition, F& body) {
  constexpr bool starts = (Carriable<Init> && ...);
  static_assert(starts,
                "palladium: a while_loop starts with pl::Values, or with structs that hold nothing "
                "else");
  if constexpr (starts) {
    constexpr bool fits = std::is_invocable_v<F&, Carried<Init>...>;
    static_assert(tests<C, Carried<Init>...>,
                  "palladium: the condition of a while_loop takes one pl::Value per initial value, "
                  "and returns one");
    static_assert(fits,
                  "palladium: the body of a while_loop takes one pl::Value per initial value");
    if constexpr (tests<C, Carried<Init>...> && fits) {
      using R = std::invoke_result_t<F&, Carried<Init>...>;
      constexpr bool closed = closes<R, Init...> && value_count<R>() > 0;
      static_assert(closed,
                    "palladium: the body of a while_loop returns as many values as were given to "
                    "start with: pl::carry(a, b, ...)");
      if constexpr (closed) {
        const auto carry = [&](int i) { return building.carry(i); };
        record_region(building,
                      [&]() -> Value { return call_with_carries<Init...>(condition, carry); });
        record_region(building, [&]() -> R { return call_with_carries<Init...>(body, carry); });
        return results<typename Outcome<R, Init...>::type>(building);
      }
    }
  }
}

/// Functions of which one is called give one thing.
template <class R, class... Others>
inline constexpr bool is_one_result = value_count<R>() >= 0 &&
                                      (std::same_as<Result<R>, Result<Others>> && ...);

template <class F, class G, class... Operands>
auto cond(const Bound& predicate, F& on_true, G& on_false, const Operands&... operands) {
  constexpr bool fits =
      std::is_invocable_v<F&, const Operands&...> && std::is_invocable_v<G&, const Operands&...>;
  static_assert(fits, "palladium: both functions of cond take the operands behind them");
  if constexpr (fits) {
    using R = std::invoke_result_t<F&, const Operands&...>;
    constexpr bool one = is_one_result<R, std::invoke_result_t<G&, const Operands&...>>;
    static_assert(one,
                  "palladium: both functions of cond return the same: nothing, a pl::Value, "
                  "pl::carry(a, b, ...), or a struct of pl::Values");
    if constexpr (one) {
      const auto f = [&]() -> decltype(auto) { return on_true(operands...); };
      const auto g = [&]() -> decltype(auto) { return on_false(operands...); };
      if (Building::is_literal("cond", predicate))
        return Building::truth(predicate) ? called<Result<R>>(f) : called<Result<R>>(g);
      Building building("cond", predicate, 2);
      record_region(building, f);
      record_region(building, g);
      return results<Result<R>>(building);
    }
  }
}

template <class F, class... Others>
auto switch_(const Bound& index, F& first, Others&... others) {
  using R = std::invoke_result_t<F&>;
  constexpr bool one = is_one_result<R, std::invoke_result_t<Others&>...>;
  static_assert(one,
                "palladium: all branches of switch_ return the same: nothing, a pl::Value, "
                "pl::carry(a, b, ...), or a struct of pl::Values");
  if constexpr (one) {
    constexpr int count = 1 + static_cast<int>(sizeof...(Others));
    if (int n = Building::branch(index, count); n >= 0) {
      if constexpr (sizeof...(Others) > 0) {
        if (n > 0) return switch_(Bound(n - 1), others...);
      }
      return called<Result<R>>(first);
    }
    Building building("switch_", index, count);
    record_region(building, first);
    (record_region(building, others), ...);
    return results<Result<R>>(building);
  }
}

template <class List, class... Operands>
auto switch_among(const Bound& index, const List& branches, const Operands&... operands) {
  using F = decltype(*branches.begin());
  constexpr bool fits = std::is_invocable_v<F, const Operands&...>;
  static_assert(fits, "palladium: the branches of switch_ take the operands behind them");
  if constexpr (fits) {
    using R = std::invoke_result_t<F, const Operands&...>;
    constexpr bool one = is_one_result<R>;
    static_assert(one,
                  "palladium: the branches of switch_ return nothing, a pl::Value, "
                  "pl::carry(a, b, ...), or a struct of pl::Values");
    if constexpr (one) {
      const int count = static_cast<int>(branches.size());
      if (count == 0) Building::no_branches(index);
      const int known = Building::branch(index, count);
      int n = 0;
      if (known >= 0)
        for (const auto& branch : branches)
          if (n++ == known)
            return called<Result<R>>([&]() -> decltype(auto) { return branch(operands...); });
      Building building("switch_", index, count);
      for (const auto& branch : branches)
        record_region(building, [&]() -> decltype(auto) { return branch(operands...); });
      return results<Result<R>>(building);
    }
  }
}

}  // namespace detail

/// Runs the body where the condition holds. A C++ bool decides while tracing.
template <class F>
void when(const detail::Bound& condition, F&& body) {
  static_assert(std::is_void_v<std::invoke_result_t<F>>,
                "palladium: the body of when returns nothing; pl::cond(c, f, g) and "
                "pl::where(c, a, b) give a value");
  if (detail::Building::is_literal("when", condition)) {
    if (detail::Building::truth(condition)) body();
    return;
  }
  detail::Building building(condition);
  detail::record_region(building, body);
}

namespace detail {

template <class F, class... Init>
auto loop(const Bound& lo, const Bound& hi, LoopOptions options, F&& body, Init&&... init) {
  constexpr bool starts = (Carriable<Init> && ...);
  static_assert(starts,
                "palladium: a loop starts with pl::Values, or with structs that hold nothing else");
  constexpr bool fits = std::is_invocable_v<F, Index, Carried<Init>...>;
  static_assert(fits,
                "palladium: the body of a loop takes the index and one pl::Value per initial "
                "value");
  if constexpr (starts && fits) {
    using R = std::invoke_result_t<F, Index, Carried<Init>...>;
    constexpr bool closes = detail::closes<R, Init...>;
    static_assert(closes,
                  "palladium: the body of a loop returns as many values as were given to start "
                  "with: pl::carry(a, b, ...)");
    constexpr bool is_value = value_count<R>() >= 0;
    static_assert(is_value,
                  "palladium: a body returns nothing, a pl::Value, or pl::carry(a, b, ...)");
    if constexpr (closes && is_value) {
      Start<Init...> start(std::forward<Init>(init)...);
      Building building(lo, hi, options, start.values, start.count);
      record_region(building, [&]() -> R {
        return call_with_carries<Init...>(
            body, [&](int i) { return building.carry(i); }, building.index());
      });
      return results<typename Outcome<R, Init...>::type>(building);
    }
  }
}

}  // namespace detail

/// for (i = lo; i < hi; i += step), as if i could not overflow: the body sees i < hi only. The body
/// takes the index and what each initial value is (a Value or a struct of Values), and returns
/// their next values: nothing, a Value, pl::carry(a, b, ...), or a struct of Values, like the loop
/// itself. The index is an i32; of bounds in a wider dtype the nearest i32 is taken.
///
/// `pl::loop(lo, hi, {.unroll = 2}, body, init...)`: options stand before the body, or nothing.
// One function, so that the compilers list no others when a field in the braces is wrong.
template <class First = LoopOptions, class... Rest>
auto loop(const detail::Bound& lo, const detail::Bound& hi, First&& first, Rest&&... rest) {
  constexpr bool is_options = std::same_as<std::remove_cvref_t<First>, LoopOptions>;
  constexpr bool has_body = !is_options || sizeof...(Rest) > 0;
  static_assert(has_body, "palladium: a loop has a body: pl::loop(0, n, {.unroll = 2}, body)");
  if constexpr (is_options && has_body)
    return detail::loop(lo, hi, first, std::forward<Rest>(rest)...);
  else if constexpr (has_body)
    return detail::loop(lo, hi, LoopOptions{}, std::forward<First>(first),
                        std::forward<Rest>(rest)...);
}

/// The same, by JAX's name.
template <class First = LoopOptions, class... Rest>
auto fori_loop(const detail::Bound& lo, const detail::Bound& hi, First&& first, Rest&&... rest) {
  return loop(lo, hi, std::forward<First>(first), std::forward<Rest>(rest)...);
}

/// The body `length` times, for what carries nothing but its carry: takes and returns what `init`
/// is: a Value, pl::carry(a, b, ...), or a struct of Values.
template <class F, class Init, std::same_as<ScanOptions> O = ScanOptions>
auto scan(F&& body, Init&& init, O options, const detail::Expression& at = {}) {
  constexpr bool starts = detail::Carriable<Init>;
  static_assert(starts,
                "palladium: a scan starts with a pl::Value, pl::carry(a, b, ...), or a struct of "
                "pl::Values");
  if constexpr (starts) {
    constexpr bool fits = std::is_invocable_v<F, detail::Carried<Init>>;
    static_assert(fits, "palladium: the body of a scan takes what it was started with");
    if constexpr (fits) {
      using R = std::invoke_result_t<F, detail::Carried<Init>>;
      constexpr bool closes = detail::value_count<R>() == detail::value_count<Init>();
      static_assert(closes, "palladium: the body of a scan returns what it was started with");
      if constexpr (closes) {
        detail::Start<Init> start(std::forward<Init>(init));
        detail::Building building(options, start.values, start.count, at);
        detail::record_region(building, [&]() -> R {
          return detail::call_with_carries<Init>(body, [&](int i) { return building.carry(i); });
        });
        return detail::results<detail::Carried<Init>>(building);
      }
    }
  }
}

/// As long as `condition` holds of the carries, `body` gives the next ones: a Value, pl::carry(a,
/// b, ...), or a struct of Values, like the loop itself. Both take what each initial value is. The
/// condition is a scalar; of a number, it holds if that is not 0.
template <class C, class F, class Init>
auto while_loop(C&& condition, F&& body, Init&& init, const detail::Expression& at = {}) {
  detail::Start<Init> start(std::forward<Init>(init));
  detail::Building building(start.values, start.count, at);
  return detail::repeated<Init>(building, condition, body);
}
template <class C, class F, class... Init>
requires(sizeof...(Init) > 0) auto while_loop(C&& condition, F&& body, const detail::Bound& first,
                                              Init&&... init) {
  detail::Start<Init...> others(std::forward<Init>(init)...);
  detail::Building building(first, others.values, others.count);
  return detail::repeated<Value, Init...>(building, condition, body);
}

/// What `on_true` gives where the predicate holds, else what `on_false` does; only that one runs.
/// Both take the operands, and return nothing, a Value, pl::carry(a, b, ...) or a struct of Values,
/// of the same dtypes and shapes. The predicate is a scalar; of a number, it holds if that is not
/// 0. A C++ bool decides while tracing.
template <class F, class G, class... Operands>
auto cond(const detail::Bound& predicate, F&& on_true, G&& on_false, Operands&&... operands) {
  return detail::cond(predicate, on_true, on_false,
                      detail::operand(std::forward<Operands>(operands))...);
}

/// What the branch number `index` gives, the first or the last one for an index below or above
/// them; only that one runs. The branches return what those of pl::cond may. A C++ number decides
/// while tracing.
template <class... F>
requires(sizeof...(F) > 0 && (std::invocable<F&> && ...)) auto switch_(const detail::Bound& index,
                                                                       F&&... branches) {
  return detail::switch_(index, branches...);
}
/// The same of a list of branches (an array, a vector), which take the operands.
template <class List, class... Operands>
requires requires(const List& list) {
  list.begin();
  list.size();
}
auto switch_(const detail::Bound& index, const List& branches, Operands&&... operands) {
  return detail::switch_among(index, branches,
                              detail::operand(std::forward<Operands>(operands))...);
}

}  // namespace palladium

template <std::size_t N>
struct std::tuple_size<palladium::Values<N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t I, std::size_t N>
struct std::tuple_element<I, palladium::Values<N>> {
  using type = palladium::Value;
};
