// What a call of a kernel is made of: its arguments, and options as a function of their types.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/array.hpp"
#include "palladium/array_ref.hpp"
#include "palladium/mesh.hpp"
#include "palladium/outputs.hpp"
#include "palladium/spec.hpp"

namespace palladium {

/// Of an argument in vmap(): each element of the batch gets all of it.
inline constexpr int unbatched = -1000;

/// A number passed by value: its bits in its dtype.
struct Scalar {
  DType dtype = {};
  std::uint64_t bits = 0;
};
namespace detail {
PALLADIUM_API Scalar scalar(const Value& literal, DType dtype, Location at);
}
/// `axpy(pl::scalar(alpha), x, y)`: the kernel gets it in its argument block, the body as
/// pl::Value. CompileError for a number that an integer dtype does not hold; floats round it.
template <class T>
requires std::is_arithmetic_v<T> Scalar scalar(T number, DType dtype = dtype_of<T>,
                                               Location at = here()) {
  return detail::scalar(Value(number), dtype, at);
}

namespace detail {

/// What neither a call nor lower() takes.
template <class T>
concept NoArgument =
    !std::is_arithmetic_v<T> && !std::is_same_v<T, Location> && !std::is_base_of_v<Array, T> &&
    !std::is_base_of_v<Scalar, T> && !std::is_base_of_v<ShapeDtype, T> &&
    !std::is_base_of_v<ArrayRef, T> && !std::is_base_of_v<Outputs, T>;

}  // namespace detail

/// An argument of one call, with the caller's line. Never kept.
class Arg {
 public:
  Arg(Location at = here()) : at_(at) {}
  Arg(const Array& array, Location at = here()) : array_(&array), at_(at) {}
  Arg(const Outputs& outputs, Location at = here()) : Arg(outputs.only("an argument", at), at) {}
  Arg(const ArrayRef& ref, Location at = here()) : array_(&ref.array()), is_ref_(true), at_(at) {}
  Arg(const Scalar& scalar, Location at = here()) : scalar_(scalar), at_(at) {}
  template <class T>
  requires std::is_arithmetic_v<T> Arg(T) {
    static_assert(detail::never<T>,
                  "palladium: a number is passed to a kernel by value as pl::scalar(x)");
  }
  template <std::same_as<ShapeDtype> T>
  Arg(const T&) {
    static_assert(detail::never<T>,
                  "palladium: a call takes pl::Array and pl::scalar(x); of types alone there is "
                  "k.lower(type) and k.prepare({type})");
  }
  template <class T>
  requires detail::NoArgument<T> Arg(const T&) {
    static_assert(detail::never<T>,
                  "palladium: a kernel takes pl::Array and pl::scalar(x); view memory of your own: "
                  "pl::Array::view(std::span(vector), {rows, columns})");
  }

  const Array* array() const { return array_; }
  const Scalar& scalar() const { return scalar_; }
  bool is_none() const { return !array_ && scalar_.dtype == DType(); }
  bool is_ref() const { return is_ref_; }
  Location at() const { return at_; }

 private:
  const Array* array_ = nullptr;
  Scalar scalar_ = {};
  bool is_ref_ = false;
  Location at_;
};

/// The type of an argument, for `lower`: a ShapeDtype, or an argument as of a call.
class ArgType {
 public:
  ArgType(Location at = here()) : at_(at) {}
  ArgType(const ShapeDtype& type, Location at = here()) : type_(type), at_(at) {}
  ArgType(const Array& array, Location at = here()) : array_(&array), at_(at) {}
  ArgType(const Outputs& outputs, Location at = here())
      : ArgType(outputs.only("an argument", at), at) {}
  ArgType(const ArrayRef& ref, Location at = here())
      : array_(&ref.array()), is_ref_(true), at_(at) {}
  ArgType(const Scalar& scalar, Location at = here())
      : type_{{}, scalar.dtype}, is_scalar_(true), at_(at) {}
  template <class T>
  requires(detail::NoArgument<T> && !std::is_convertible_v<const T&, std::span<const ArgType>>)
      ArgType(const T&) {
    static_assert(detail::never<T>,
                  "palladium: lower and prepare take pl::ShapeDtype{{rows, columns}, pl::f32}, or "
                  "what a call takes: pl::Array and pl::scalar(x)");
  }

  const ShapeDtype& type() const { return type_; }
  const Array* array() const { return array_; }
  bool is_scalar() const { return is_scalar_; }
  bool is_none() const { return !array_ && type_.dtype == DType(); }
  bool is_ref() const { return is_ref_; }
  Location at() const { return at_; }

 private:
  ShapeDtype type_ = {};
  const Array* array_ = nullptr;
  bool is_scalar_ = false;
  bool is_ref_ = false;
  Location at_;
};

/// A body together with its options, made for some types of arguments: a body can then use their
/// extents, which it cannot ask of its blocks.
struct Call {
  Body body;
  PallasCallOptions options = {};
};

namespace detail {

/// A function from the types of the arguments to what is called.
struct OptionsFunction : Counted {
  static constexpr int any = -1;
  struct Made {
    PallasCallOptions options;
    std::vector<Body> body;  ///< none, or the one that stands in for the kernel's
    Meshes meshes = {};      ///< of a pl::kernel
  };
  int arity = 0;          ///< any: takes a span of them
  bool on_stack = false;  ///< it captured what is on the stack (refers_to_stack)
  virtual Made call(std::span<const ShapeDtype> types) = 0;
};

template <class F, std::size_t... I>
consteval bool takes_count(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, Repeat<const ShapeDtype&, I>...>;
}
inline constexpr int max_options_arity = 12;
template <class F, class... A>
consteval int options_arity(List<A...>) {
  if (std::is_same_v<List<A...>, List<std::span<const ShapeDtype>>>) return OptionsFunction::any;
  constexpr bool fits = std::is_invocable_v<F&, std::conditional_t<true, const ShapeDtype&, A>...>;
  return fits ? static_cast<int>(sizeof...(A)) : -2;
}
/// -2: it takes something else. -3: it has no call operator that the compiler knows, as a lambda
/// with a mistake inside, which the compiler has told already.
template <class F>
consteval int options_arity() {
  if constexpr (Plain<F>) {
    return options_arity<F>(typename Signature<F>::Parameters());
  } else if constexpr (std::conjunction_v<std::negation<std::is_invocable<F&, const ShapeDtype&>>,
                                          std::is_invocable<F&, std::span<const ShapeDtype>>>) {
    return OptionsFunction::any;
  } else {
    int arity = -3, fitting = 0;
    [&]<std::size_t... N>(std::index_sequence<N...>) {
      ((takes_count<F>(std::make_index_sequence<N>()) ? (arity = static_cast<int>(N), ++fitting)
                                                      : 0),
       ...);
    }
    (std::make_index_sequence<max_options_arity + 1>());
    return fitting > 1 ? -2 : arity;
  }
}

template <class Result, class R>
consteval bool makes(List<R>) {
  return std::is_same_v<std::remove_cvref_t<R>, Result>;
}
template <class F, std::size_t... I>
consteval auto options_result(std::index_sequence<I...>) {
  return List<std::invoke_result_t<F&, Repeat<const ShapeDtype&, I>...>>();
}
/// Whether it is a function from the types of the arguments to `Result`. Who makes an OptionsModel
/// of what a user wrote asserts this in the function that the user called, so that compilers name
/// the user's line, and no lines of ours in between. True of a lambda with a mistake inside.
template <class F, class Result>
consteval bool makes() {
  constexpr int arity = std::is_class_v<F> || Plain<F> ? options_arity<F>() : -2;
  if constexpr (arity == OptionsFunction::any)
    return makes<Result>(List<std::invoke_result_t<F&, std::span<const ShapeDtype>>>());
  else if constexpr (arity >= 0)
    return makes<Result>(options_result<F>(std::make_index_sequence<arity>()));
  else
    return arity == -3;
}

/// `Maker::made` takes what the function returns.
template <class F, class Maker>
struct OptionsModel final : OptionsFunction {
  explicit OptionsModel(F f) : function(std::move(f)) {
    arity = options_arity<F>();
    on_stack = refers_to_stack(function);
    (void)&OptionsModel::call;  // here, so that what is wrong in it is told with the user's line
  }
  Made call(std::span<const ShapeDtype> types) override {
    constexpr int count = options_arity<F>();
    if constexpr (count == any) {
      return Maker::made(function(types));
    } else if constexpr (count >= 0) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return Maker::made(function(types[I]...));
      }
      (std::make_index_sequence<count>());
    } else {
      function(types[0]);  // in the compilers' own words
      return {};
    }
  }
  F function;
};

/// Whether a function is one of the types of the arguments, where a body may stand as well: a lambda
/// that is no template, which returns one of `Results`, or takes nothing but types.
template <class F, class... Results, class... A>
consteval bool takes_types(List<A...>) {
  using R = typename Signature<F>::Result;
  return (std::is_same_v<R, Results> || ...) ||
         (sizeof...(A) > 0 && ((std::is_same_v<A, ShapeDtype> ||
                                std::is_same_v<A, std::span<const ShapeDtype>>)&&...));
}
template <class F, class... Results>
consteval bool takes_types() {
  if constexpr (Plain<F>)
    return takes_types<F, Results...>(typename Signature<F>::Parameters());
  else
    return false;
}

/// Of a pallas_call.
struct PallasCallMaker {
  using Made = OptionsFunction::Made;
  static Made made(PallasCallOptions options) { return {std::move(options), {}}; }
  static Made made(Call call) { return {std::move(call.options), {std::move(call.body)}}; }
};

/// What a pallas_call begins with: its body, or a function that makes body and options.
class BodyOrCall : public Body {
 public:
  BodyOrCall(Body body) : Body(std::move(body)) {}
  template <class F>
  requires(takes_types<F, Call, PallasCallOptions>()) BodyOrCall(F f, Location = here()) {
    constexpr bool fits = makes<F, Call>();
    static_assert(fits,
                  "palladium: what stands alone returns a pl::Call, and takes a pl::ShapeDtype per "
                  "argument, or one std::span<const pl::ShapeDtype>; a function that returns "
                  "pl::PallasCallOptions stands behind a body");
    if constexpr (fits)
      call = Shared<OptionsFunction>(new OptionsModel<F, PallasCallMaker>(std::move(f)));
  }
  template <class F>
  requires(!takes_types<F, Call, PallasCallOptions>() &&
           !std::derived_from<std::remove_cvref_t<F>, Body>)
      BodyOrCall(F f, Location at = here())
      : Body(Unchecked(), std::move(f), at) {
    static_assert(takes_operands<F>(),
                  "palladium: a kernel function takes pl::Ref, pl::Refs, pl::Scratch, structs of "
                  "pl::Ref (nothing else in them), or pl::Value for a scalar argument; a generic "
                  "lambda is not to take any number, so pl::Refs for auto...");
    static_assert(returns_nothing<F>(),
                  "palladium: the kernel function should return nothing; write results to the "
                  "output Refs");
  }
  Shared<OptionsFunction> call;
};

/// The options of what is given none, which were_given() tells from any that are.
template <class F>
F no_options() {
  F options = {};
  if constexpr (requires { options.name; }) options.name = "\n";
  return options;
}
template <class F>
bool were_given(const F& options) {
  return options.name != "\n";
}

}  // namespace detail
}  // namespace palladium
