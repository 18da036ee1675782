// Loops over blocks of arrays that are copied ahead, and back, by the primitives of copy.hpp and
// barrier.hpp: by the threads that compute, or by a warpgroup beside them.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/gpu/barrier.hpp"
#include "palladium/gpu/copy.hpp"
#include "palladium/scoped.hpp"

namespace palladium::detail {

/// The body of a pipeline, erased: what it takes is decided by its call.
struct PipelineBody : Counted {
  /// body(indices, *refs, *carries), whose results are the next carries; false if it takes others.
  virtual bool call(const std::vector<Value>& indices, const std::vector<Ref>& refs,
                    const std::vector<Value>& carries, std::vector<Value>& next) = 0;
};

/// Of the parameters of a body behind the indices: Refs, structs of Refs, perhaps a pl::Refs of all
/// others, then carries.
struct PipelineParameters {
  int refs = 0, rests = 0, carries = 0;
  bool fits = true;
};
template <class Indices, class... A>
consteval PipelineParameters pipeline_parameters(List<Indices, A...>) {
  PipelineParameters p;
  p.fits = std::same_as<Indices, std::vector<Value>>;
  const auto add = [&](Parameter each) {
    if (each.kind == Parameter::Kind::value)
      ++p.carries;
    else if (each.kind == Parameter::Kind::rest && p.rests == 0 && p.carries == 0)
      ++p.rests;
    else if (each.kind == Parameter::Kind::refs && each.count > 0 && p.carries == 0)
      p.refs += each.count;
    else
      p.fits = false;
  };
  (add(parameter<A>()), ...);
  return p;
}
consteval PipelineParameters pipeline_parameters(List<>) { return {.fits = false}; }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-braces"  // structs in structs: their Refs in one row
template <class T>
T pipeline_argument(const Ref* refs, int rest, const Value* carry) {
  if constexpr (std::same_as<T, Value>) {
    return *carry;
  } else if constexpr (std::same_as<T, Refs>) {
    return {refs, rest};
  } else if constexpr (std::same_as<T, Ref>) {
    return *refs;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return T{refs[I]...}; }
    (std::make_index_sequence<width<T>()>());
  }
}
#pragma GCC diagnostic pop

template <class F>
struct PipelineBodyModel final : PipelineBody {
  explicit PipelineBodyModel(F f) : function(std::move(f)) {}

  bool call(const std::vector<Value>& indices, const std::vector<Ref>& refs,
            const std::vector<Value>& carries, std::vector<Value>& next) override {
    if constexpr (Plain<F>) {
      constexpr PipelineParameters p = pipeline_parameters(typename Signature<F>::Parameters{});
      if constexpr (!p.fits) return false;
      const int rest = static_cast<int>(refs.size()) - p.refs;
      if (static_cast<int>(carries.size()) != p.carries || rest < 0 || (rest > 0 && p.rests == 0))
        return false;
      if constexpr (p.fits)
        take(next, [&] {
          return plain(indices, refs.data(), rest, carries.data(),
                       typename Signature<F>::Parameters{});
        });
      return true;
    } else {
      // A generic parameter could be a carry as well.
      if (!carries.empty()) return false;
      return [&]<std::size_t... N>(std::index_sequence<N...>) {
        return (attempt(indices, refs, next, std::make_index_sequence<N>()) || ...);
      }
      (std::make_index_sequence<max_fields + 1>());
    }
  }

 private:
  template <class C>
  static void take(std::vector<Value>& next, const C& called) {
    using R = std::invoke_result_t<C>;
    if constexpr (std::is_void_v<R>) {
      called();
    } else {
      next.resize(static_cast<std::size_t>(value_count<R>()));
      Value* to = next.data();
      put_values(to, called());
    }
  }
  template <class I, class... A>
  auto plain(const std::vector<Value>& indices, const Ref* refs, int rest, const Value* carries,
             List<I, A...>) {
    constexpr Parameter parameters[] = {parameter<A>()..., Parameter{}};
    const auto refs_before = [&](std::size_t n) {
      int sum = 0;
      for (std::size_t k = 0; k < n; ++k)
        sum += parameters[k].kind == Parameter::Kind::rest ? rest : parameters[k].count;
      return sum;
    };
    const auto carries_before = [&](std::size_t n) {
      int sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += parameters[k].kind == Parameter::Kind::value;
      return sum;
    };
    return [&]<std::size_t... N>(std::index_sequence<N...>) {
      return function(indices, pipeline_argument<A>(refs + refs_before(N), rest,
                                                    carries + carries_before(N))...);
    }
    (std::index_sequence_for<A...>());
  }
  template <std::size_t... N>
  bool attempt(const std::vector<Value>& indices, const std::vector<Ref>& refs,
               std::vector<Value>& next, std::index_sequence<N...>) {
    if constexpr (std::is_invocable_v<F&, const std::vector<Value>&, Repeat<const Ref&, N>...>) {
      if (refs.size() != sizeof...(N)) return false;
      take(next, [&] { return function(indices, refs[N]...); });
      return true;
    } else {
      return false;
    }
  }

  F function;
};

/// What the body gives: nothing, a Value, pl::carry(a, b, ...) or a struct of Values.
template <class F>
struct PipelineResult {
  using type = void;
};
template <Plain F>
struct PipelineResult<F> {
  using type = Result<typename Signature<F>::Result>;
};

template <class F>
Shared<PipelineBody> pipeline_body(F body) {
  if constexpr (Plain<F>) {
    constexpr PipelineParameters p = pipeline_parameters(typename Signature<F>::Parameters{});
    static_assert(
        p.fits,
        "palladium: the body of a pipeline takes const std::vector<pl::Value>& indices, "
        "a pl::Ref for each block and barrier (or structs of pl::Ref, or pl::Refs), then a "
        "pl::Value for each carry");
    static_assert(value_count<typename Signature<F>::Result>() == p.carries,
                  "palladium: the body of a pipeline returns as many values as it takes carries: "
                  "nothing, a pl::Value, or pl::carry(a, b, ...)");
  }
  return Shared<PipelineBody>(new PipelineBodyModel<F>(std::move(body)));
}

}  // namespace palladium::detail

namespace palladium::gpu {

// ---- by the thread that computes

/// Designators stand in this order.
struct EmitPipelineOptions {
  std::vector<Value> grid =
      {};  ///< numbers, or values of the kernel; the last axis is the inner one
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  /// Blocks of each input that are there or on their way at once, and of each output; a
  /// specification's `.pipeline_mode = pl::Buffered(n)` says it for that one.
  int max_concurrent_steps = 1;
  std::vector<Value> init_carry = {};
};

}  // namespace palladium::gpu

namespace palladium::detail {

PALLADIUM_API std::vector<Value> emit_pipeline(PipelineBody& body,
                                               const gpu::EmitPipelineOptions& options,
                                               const std::vector<Ref>& arrays, Location at);

}  // namespace palladium::detail

namespace palladium::gpu {

/// A body that waits for the arrays of its pipeline.
template <class R>
class EmittedPipeline {
 public:
  EmittedPipeline(detail::Shared<detail::PipelineBody> body, EmitPipelineOptions options,
                  Location at)
      : body_(std::move(body)), options_(std::move(options)), at_(at) {}

  /// Runs it: Refs in GMEM, those of the inputs, then those of the outputs. Gives the last carries.
  template <std::same_as<Ref>... Arrays>
  R operator()(const Arrays&... arrays) const {
    return (*this)(std::vector<Ref>{arrays...});
  }
  R operator()(const std::vector<Ref>& arrays) const {
    const std::vector<Value> last =
        detail::emit_pipeline(*body_.operator->(), options_, arrays, at_);
    if constexpr (!std::is_void_v<R>)
      return detail::taken<R>([&](int i) { return last[static_cast<std::size_t>(i)]; });
  }

 private:
  detail::Shared<detail::PipelineBody> body_;
  EmitPipelineOptions options_;
  Location at_;
};

/// `plgpu::emit_pipeline(body, {.grid = {n}, .in_specs = {...}, .out_specs = {...},
/// .max_concurrent_steps = 2})(x, o)`: the calling thread runs the body for every index of the
/// grid, as body(indices, *blocks of inputs, *blocks of outputs, *carries), with blocks in SMEM,
/// and gets back the next carries. Blocks of inputs are copied so many steps ahead; what is the
/// same for the whole grid is copied once. A block of an output is the same room for as long as
/// steps that follow one another have it, holds nothing at the first of them, and is stored behind
/// the last.
///
/// Block shapes divide their arrays. A specification without a block shape, or in GMEM, passes the
/// array as it is. A grid of values may have no step. A body that leaves k products under way says
/// `.delay_release = k` of the inputs that they read: so many steps later their room is filled
/// again.
template <class F>
EmittedPipeline<typename detail::PipelineResult<F>::type> emit_pipeline(F body,
                                                                        EmitPipelineOptions options,
                                                                        Location at = here()) {
  return {detail::pipeline_body(std::move(body)), std::move(options), at};
}

}  // namespace palladium::gpu
