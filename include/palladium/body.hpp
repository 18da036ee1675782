// The kernel function, erased: what its parameters take, and how it is called.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/function.hpp"
#include "palladium/ref.hpp"
#include "palladium/value.hpp"

namespace palladium {

/// Parameter of a body: the references that no other parameter takes.
class Refs {
 public:
  Refs(const Ref* refs, int count) : refs_(refs), count_(count) {}
  const Ref* begin() const { return refs_; }
  const Ref* end() const { return refs_ + count_; }
  const Ref& operator[](int i) const { return refs_[i]; }
  int size() const { return count_; }

 private:
  const Ref* refs_;
  int count_;
};

/// Parameter of a body: all scratch, by name.
class PALLADIUM_API Scratch {
 public:
  struct Name {
    Name(const char* text, Location at = here()) : text(text), at(at) {}
    const char* text;
    Location at;
  };
  /// CompileError with the list of names if there is none of that name.
  Ref operator[](Name name) const;

 private:
  friend class detail::Access;
  Scratch(const Ref* refs, const std::vector<std::string>* names) : refs_(refs), names_(names) {}
  const Ref* refs_;
  const std::vector<std::string>* names_;
};

namespace detail {

/// What a body parameter takes from *arguments, *outputs, *scratch.
struct Parameter {
  enum class Kind : std::uint8_t { refs, value, rest, scratch };
  Kind kind = Kind::refs;
  int count = 0;  // Kind::refs
};

/// The operands of one call of a body, in order.
class PALLADIUM_API Operands {
 public:
  virtual ~Operands() = default;
  /// CompileError unless the parameters take exactly these operands; then `position` tells where
  /// each begins.
  virtual void match(const Parameter* parameters, int count, int* position) = 0;
  virtual const Ref* refs(int position) = 0;
  virtual Value value(int position) = 0;
  virtual Refs rest(int position) = 0;
  virtual Scratch scratch() = 0;
  virtual int size() = 0;
};

// Fields of a struct parameter, counted by brace initialisation.
struct AnyRef {
  operator Ref() const;
};
struct AnyField {
  template <class T>
  operator T() const;
};
inline constexpr int max_fields = 16;
template <class T, std::size_t... I>
consteval bool braces(std::index_sequence<I...>) {
  return requires { T{Repeat<AnyRef, I>{}...}; };
}
template <class T, int N = max_fields>
consteval int ref_fields() {
  if constexpr (N == 0) {
    return 0;
  } else if constexpr (braces<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return ref_fields<T, N - 1>();
  }
}
template <class T, std::size_t... I>
consteval bool more_fields(std::index_sequence<I...>) {
  return requires { T{Repeat<AnyRef, I>{}..., AnyField{}}; };
}
template <class T>
consteval int width() {
  if constexpr (std::is_aggregate_v<T>) {
    constexpr int n = ref_fields<T>();
    if constexpr (n == 0 || more_fields<T>(std::make_index_sequence<n>())) {
      return 0;
    } else {
      return n;
    }
  } else {
    return 0;
  }
}

template <class T>
consteval Parameter parameter() {
  if constexpr (std::same_as<T, Ref>) {
    return {Parameter::Kind::refs, 1};
  } else if constexpr (std::same_as<T, Value>) {
    return {Parameter::Kind::value, 1};
  } else if constexpr (std::same_as<T, Refs>) {
    return {Parameter::Kind::rest, 0};
  } else if constexpr (std::same_as<T, Scratch>) {
    return {Parameter::Kind::scratch, 0};
  } else {
    return {Parameter::Kind::refs, width<T>()};
  }
}
constexpr bool takes_something(Parameter p) {
  return p.kind != Parameter::Kind::refs || p.count > 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-braces"  // structs in structs: their Refs in one row
template <class T>
T take(Operands& operands, int position) {
  if constexpr (std::same_as<T, Ref>) {
    return *operands.refs(position);
  } else if constexpr (std::same_as<T, Value>) {
    return operands.value(position);
  } else if constexpr (std::same_as<T, Refs>) {
    return operands.rest(position);
  } else if constexpr (std::same_as<T, Scratch>) {
    return operands.scratch();
  } else {
    const Ref* refs = operands.refs(position);
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return T{refs[I]...}; }
    (std::make_index_sequence<width<T>()>());
  }
}
#pragma GCC diagnostic pop

template <class F, class... A>
auto call_body(F& f, Operands& operands, List<A...>) {
  const Parameter parameters[] = {parameter<A>()..., Parameter{}};
  int position[sizeof...(A) + 1] = {};
  operands.match(parameters, sizeof...(A), position);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return f(take<A>(operands, position[I])...);
  }
  (std::make_index_sequence<sizeof...(A)>());
}

// How many Refs a generic lambda takes: -1 if that cannot be told; -2 of what takes none at all, as
// a lambda with a mistake inside, which the compiler has told already.
template <class F, std::size_t... I>
consteval bool takes_refs(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, Repeat<Ref, I>...>;
}
template <class F>
consteval int generic_arity() {
  int arity = -2, fitting = 0;
  [&]<std::size_t... N>(std::index_sequence<N...>) {
    ((takes_refs<F>(std::make_index_sequence<N>()) ? (arity = static_cast<int>(N), ++fitting) : 0),
     ...);
  }
  (std::make_index_sequence<max_fields + 1>());
  return fitting > 1 ? -1 : arity;
}

template <class... A>
consteval bool takes_operands(List<A...>) {
  return (takes_something(parameter<A>()) && ...);
}
/// Whether all that a kernel function takes is what there is. Who makes a Body of what a user wrote
/// asserts this and returns_nothing in the function that the user called, so that compilers name the
/// user's line, and no lines of ours in between.
template <class F>
consteval bool takes_operands() {
  if constexpr (std::is_class_v<F> && !Plain<F>)
    return generic_arity<F>() != -1;
  else if constexpr (Plain<F>)
    return takes_operands(typename Signature<F>::Parameters{});
  else
    return false;
}

template <class F>
auto call_body(F& f, Operands& operands) {
  if constexpr (!takes_operands<F>()) {
    return;
  } else if constexpr (Plain<F>) {
    return call_body(f, operands, typename Signature<F>::Parameters{});
  } else if constexpr (generic_arity<F>() >= 0) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return call_body(f, operands, List<Repeat<Ref, I>...>{});
    }
    (std::make_index_sequence<generic_arity<F>()>());
  }
}
template <class F>
consteval bool returns_nothing() {
  return std::is_void_v<decltype(call_body(std::declval<F&>(), std::declval<Operands&>()))>;
}
template <class F>
consteval bool has_mistake() {
  if constexpr (takes_operands<F>() && !Plain<F>)
    return generic_arity<F>() == -2;
  else
    return false;
}

struct BodyBase : Counted {
  bool on_stack = false;  ///< it captured what is on the stack (refers_to_stack)
  virtual void call(Operands& operands) = 0;
};
template <class F>
struct BodyModel final : BodyBase {
  explicit BodyModel(F f) : function(std::move(f)) { on_stack = refers_to_stack(function); }
  void call(Operands& operands) override {
    if constexpr (has_mistake<F>())
      (void)function(*operands.refs(0));  // in the compilers' own words
    else
      call_body(function, operands);
  }
  F function;
};

}  // namespace detail

/// A kernel function, kept and run at each trace: capture by `[=]` or nothing, never by `[&]`.
class Body {
 public:
  template <class F>
  requires(!std::derived_from<std::remove_cvref_t<F>, Body>) Body(F f, Location at = here())
      : Body(Unchecked(), std::move(f), at) {
    static_assert(detail::takes_operands<F>(),
                  "palladium: a kernel function takes pl::Ref, pl::Refs, pl::Scratch, structs of "
                  "pl::Ref (nothing else in them), or pl::Value for a scalar argument; a generic "
                  "lambda is not to take any number, so pl::Refs for auto...");
    static_assert(detail::returns_nothing<F>(),
                  "palladium: the kernel function should return nothing; write results to the "
                  "output Refs");
  }
  Location at() const { return at_; }

 protected:
  struct Unchecked {};
  Body() = default;
  template <class F>
  Body(Unchecked, F f, Location at)
      : body_(new detail::BodyModel<F>(detail::given_function(std::move(f), "kernel", at))),
        at_(at) {}

 private:
  friend class detail::Access;
  detail::Shared<detail::BodyBase> body_;
  Location at_;
};

}  // namespace palladium
