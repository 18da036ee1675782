// Memory for a part of a body.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/body.hpp"
#include "palladium/control.hpp"
#include "palladium/spec.hpp"

namespace palladium {

struct ScopedOptions {
  /// The thread axis: the memory, in SMEM, is one for all threads of the body, all of which run the
  /// scope. It is theirs from the kernel's start to its end, and they wait for each other by
  /// semaphores. Empty: each thread has its own.
  ///
  /// Semaphores are in any case those of all threads of a block, 0 when the kernel starts; cluster
  /// axes make them one for all blocks of a cluster that differ along these.
  std::vector<std::string> collective_axes = {};
};

namespace detail {

template <class F, class... A>
auto scoped(F& f, const ScratchTypes& types, const ScopedOptions& options, const Expression& at,
            List<A...> parameters) {
  using R = decltype(call_body(f, std::declval<Operands&>(), parameters));
  constexpr bool gives_values = value_count<R>() >= 0;
  static_assert(gives_values,
                "palladium: the function of run_scoped returns nothing, a pl::Value, "
                "pl::carry(a, b, ...), or a struct of pl::Values; Refs end with their scope");
  if constexpr (gives_values) {
    Building building(types, options, at);
    record_region(building, [&]() -> R { return call_body(f, building.operands(), parameters); });
    return results<Result<R>>(building);
  }
}

/// Without the first N.
template <int N>
auto behind(List<>) {
  static_assert(N == 0, "palladium: a function of with_scoped is given more than it takes");
  return List<>{};
}
template <int N, class First, class... Rest>
auto behind(List<First, Rest...> all) {
  if constexpr (N == 0)
    return all;
  else
    return behind<N - 1>(List<Rest...>{});
}

template <class F>
auto parameters_of() {
  if constexpr (Plain<F>) {
    return typename Signature<F>::Parameters{};
  } else {
    constexpr int arity = generic_arity<F>();
    static_assert(arity >= 0,
                  "palladium: cannot tell how many references this generic lambda takes; write "
                  "pl::Ref for each, or one pl::Refs");
    return []<std::size_t... I>(std::index_sequence<I...>) { return List<Repeat<Ref, I>...>{}; }
    (std::make_index_sequence<(arity < 0 ? 0 : arity)>());
  }
}

}  // namespace detail

/// Runs f with Refs of fresh memory of these types (`{plgpu::SMEM({8, 128}, pl::f32), ...}`, with
/// names or without), which hold nothing yet and end with it; gives what f returns: nothing, a
/// Value, pl::carry(a, b, ...) or a struct of Values. f takes them as a kernel's body takes
/// scratch. The memory is that of the Pallas thread that runs the scope.
template <class F, std::same_as<ScopedOptions> O = ScopedOptions>
auto run_scoped(F&& f, const ScratchTypes& types, O options = {},
                const detail::Expression& at = {}) {
  std::decay_t<F> function(std::forward<F>(f));
  return detail::scoped(function, types, options, at, detail::parameters_of<std::decay_t<F>>());
}

/// `pl::with_scoped({types...})(f)` is a function of what f takes before its Refs. f names the
/// types of its parameters.
inline auto with_scoped(ScratchTypes types, ScopedOptions options = {}, Location at = here()) {
  return [=](auto f) {
    return [=](auto&&... given) {
      using F = decltype(f);
      const auto rest = detail::behind<static_cast<int>(sizeof...(given))>(
          typename detail::Signature<F>::Parameters{});
      const auto call = [&]<class... A>(detail::List<A...> list) {
        auto bound = [&](A... refs) {
          return f(detail::operand(std::forward<decltype(given)>(given))..., std::move(refs)...);
        };
        return detail::scoped(bound, types, options, detail::Expression(at), list);
      };
      return call(rest);
    };
  };
}

}  // namespace palladium
