// pl::kernel and plgpu::kernel: bodies that get whole arrays and run over a mesh.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/control.hpp"
#include "palladium/kernel.hpp"
#include "palladium/mesh.hpp"

namespace palladium {

/// Designators stand in this order.
struct KernelOptions {
  std::string name = {};
  OutType out_type = {};
  Meshes mesh = {};  ///< one, or of a list of bodies one for each
  ScratchTypes scratch_types = {};
  Interpret interpret = {};
  bool debug = false;
  CompilerParams compiler_params = {};
  CostEstimate cost_estimate = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

namespace gpu {

/// The same with the mesh in line. Designators stand in this order; of an old and a new spelling
/// (out_shape, out_type) one is given.
struct KernelOptions {
  std::string name = {};
  OutType out_type = {};
  OutType out_shape = {};
  std::vector<Dim> grid = {};
  std::vector<std::string> grid_names = {};
  std::vector<Dim> cluster = {};
  std::vector<std::string> cluster_names = {};
  int num_threads = 0;
  std::string thread_name = {};
  std::string kernel_name = {};
  ScratchTypes scratch_types = {};
  ScratchTypes scratch_shapes = {};
  Interpret interpret = {};
  bool debug = false;
  CompilerParams compiler_params = {};
  CostEstimate cost_estimate = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

}  // namespace gpu

namespace detail {

/// What a kernel over meshes is made of.
struct MeshCall {
  PallasCallOptions options = {};
  Meshes meshes = {};
  bool must_write = false;  ///< an ArrayRef: nothing else comes of a call
};
PALLADIUM_API MeshCall mesh_call(KernelOptions options, Location at);
PALLADIUM_API MeshCall mesh_call(gpu::KernelOptions options, Location at);

template <class T>
concept MeshOptions = std::same_as<T, KernelOptions> || std::same_as<T, gpu::KernelOptions>;

/// Of a kernel whose options are a function that returns them.
struct MeshCallMaker {
  using Made = OptionsFunction::Made;
  template <MeshOptions Options>
  static Made made(Options returned) {
    MeshCall call = mesh_call(std::move(returned), Location{});
    return {std::move(call.options), {}, std::move(call.meshes)};
  }
};

/// The bodies of a kernel, and whether they were given as a list.
struct Bodies {
  std::vector<Body> list = {};
  bool is_list = false;
};
PALLADIUM_API Kernel make_kernel(Bodies bodies, MeshCall call, Location at);
PALLADIUM_API Kernel make_kernel(Bodies bodies, Shared<OptionsFunction> options, Location at);
/// CompileError where such a mesh cannot be that of a factory.
PALLADIUM_API void check_factory(const MeshCall& call, Location at);

/// CompileError: options were given twice, or not at all.
[[noreturn]] PALLADIUM_API void refuse_options(bool are_given, Location at);

template <class Options, class F>
Kernel make_mesh_kernel(Bodies bodies, F options, Location at) {
  if constexpr (MeshOptions<F>) {
    if (!were_given(options)) refuse_options(false, at);
    return make_kernel(std::move(bodies), mesh_call(std::move(options), at), at);
  } else {
    Shared<OptionsFunction> function;
    if constexpr (makes<F, Options>())
      function =
          Shared<OptionsFunction>(new OptionsModel<F, MeshCallMaker>(std::move(options)));
    return make_kernel(std::move(bodies), std::move(function), at);
  }
}

/// What may stand first in a kernel over meshes, and what may stand behind a body.
template <class T, class Options>
consteval bool waits_for_body() {
  return std::same_as<T, Options> || takes_types<T, KernelOptions, gpu::KernelOptions>();
}
template <class T, class Options>
consteval bool gives_options() {
  if constexpr (std::same_as<T, Options> || std::same_as<T, Location>)
    return true;
  else
    return makes<T, Options>();
}

}  // namespace detail

/// Options that wait for a body: `pl::kernel({...})(body)`.
template <class Options, class F>
class KernelFactory {
 public:
  KernelFactory(F options, Location at) : options_(std::move(options)), at_(at) {
    if constexpr (detail::MeshOptions<F>)
      detail::check_factory(detail::mesh_call(options_, at), at);
  }
  Kernel operator()(Body body) const {
    return detail::make_mesh_kernel<Options>({{std::move(body)}}, options_, at_);
  }

 private:
  F options_;
  Location at_;
};

namespace detail {

/// Of a function that has been asserted to be one.
struct AssertedBody : Body {
  template <class F>
  AssertedBody(F f, Location at) : Body(Unchecked(), std::move(f), at) {}
};
template <class F>
Body body_of(F f, Location at) {
  if constexpr (std::derived_from<F, Body>)
    return f;
  else
    return AssertedBody(std::move(f), at);
}

template <class Options, class First, class F>
auto kernel_or_factory(First first, F options, Location at) {
  if constexpr (std::same_as<F, Location>) {  // kernel(options, at)
    return kernel_or_factory<Options>(std::move(first), no_options<Options>(), options);
  } else if constexpr (waits_for_body<First, Options>()) {
    if constexpr (!MeshOptions<F>)
      refuse_options(true, at);
    else if (were_given(options))
      refuse_options(true, at);
    return KernelFactory<Options, First>(std::move(first), at);
  } else {
    return make_mesh_kernel<Options>({{body_of(std::move(first), at)}}, std::move(options), at);
  }
}

}  // namespace detail

/// A kernel of this body, run by every Pallas thread of the mesh. The body gets *arguments,
/// *outputs, *scratch: of arrays the Refs are the whole arrays, of static shape, in global memory.
/// pl::axis_index tells where in the mesh it runs. An argument that is an ArrayRef is read and
/// written, like an ArrayRef that the body captured; other arrays are only read. `options` are
/// KernelOptions, or a function of the types of the arguments that returns them.
///
/// Options without a body wait for one, `pl::kernel(options)(body)`; a function is then no template.
// One function, so that the compilers list few others when a field in the braces is wrong.
template <class First = KernelOptions, class F = KernelOptions>
auto kernel(First first, F options = detail::no_options<F>(), Location at = here()) {
  constexpr bool waits = detail::waits_for_body<First, KernelOptions>();
  constexpr bool takes_operands = waits || detail::takes_operands<First>();
  static_assert(takes_operands,
                "palladium: a kernel function takes pl::Ref, pl::Refs, pl::Scratch, structs of "
                "pl::Ref (nothing else in them), or pl::Value for a scalar argument; a generic "
                "lambda is not to take any number, so pl::Refs for auto...");
  constexpr bool returns_nothing = waits || detail::returns_nothing<First>();
  static_assert(returns_nothing,
                "palladium: the kernel function should return nothing; write results to the "
                "output Refs");
  static_assert(detail::gives_options<std::conditional_t<waits, First, F>, KernelOptions>(),
                "palladium: behind a body stand pl::KernelOptions, or a function that takes a "
                "pl::ShapeDtype per argument, or one std::span<const pl::ShapeDtype>, and returns "
                "them");
  return detail::kernel_or_factory<KernelOptions>(std::move(first), std::move(options), at);
}
/// Several bodies in one launch, each run by the threads of its mesh, all in the same blocks and at
/// the same time.
template <class F = KernelOptions>
Kernel kernel(std::initializer_list<Body> bodies, F options, Location at = here()) {
  static_assert(detail::gives_options<F, KernelOptions>(),
                "palladium: behind bodies stand pl::KernelOptions, or a function that takes a "
                "pl::ShapeDtype per argument, or one std::span<const pl::ShapeDtype>, and returns "
                "them");
  return detail::make_mesh_kernel<KernelOptions>({bodies, true}, std::move(options), at);
}

/// Designators stand in this order; of an old and a new spelling one is given.
struct CoreMapOptions {
  std::string name = {};
  ScratchTypes scratch_types = {};
  ScratchTypes scratch_shapes = {};
  Interpret interpret = {};
  bool debug = false;
  CompilerParams compiler_params = {};
  CostEstimate cost_estimate = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

/// A mesh that waits for a body, which it runs at once.
class PALLADIUM_API CoreMap {
 public:
  CoreMap(gpu::Mesh mesh, CoreMapOptions options, Location at)
      : mesh_(std::move(mesh)), options_(std::move(options)), at_(at) {
    mesh_.check(at);
  }
  /// The body takes scratch; it reads and writes the ArrayRefs that it captured. CompileError if it
  /// writes none.
  void operator()(Body body) const;

 private:
  gpu::Mesh mesh_;
  CoreMapOptions options_;
  Location at_;
};
/// In a body, warps that wait for what each of them runs.
class WarpMap {
 public:
  explicit WarpMap(gpu::WarpMesh mesh) : mesh_(std::move(mesh)) {}
  template <class F>
  void operator()(F&& body, const detail::Expression& at = {}) const {
    static_assert(std::is_void_v<std::invoke_result_t<F>>,
                  "palladium: the body of core_map returns nothing; it writes Refs");
    detail::Building building(mesh_, at);
    detail::record_region(building, body);
  }

 private:
  gpu::WarpMesh mesh_;
};
namespace detail {
[[noreturn]] PALLADIUM_API void refuse_warp_options(Location at);
}

/// `pl::core_map(mesh)([=] { o[_] = x[_] + 1; });`, with ArrayRefs x and o; and, in the body of a
/// pl::kernel, `pl::core_map(plgpu::WarpMesh{"warp"})([&] { ... });`, which takes no options.
// Here and elsewhere: options of a type that is deduced, and that braces are not deduced from, so
// that gcc says in two lines what is wrong in the braces.
template <class M = gpu::Mesh, std::same_as<CoreMapOptions> O = CoreMapOptions>
auto core_map(M mesh, O options = detail::no_options<O>(), Location at = here()) {
  const bool are_given = detail::were_given(options);
  if constexpr (std::same_as<M, gpu::WarpMesh>) {
    if (are_given) detail::refuse_warp_options(at);
    return WarpMap(std::move(mesh));
  } else {
    return CoreMap(std::move(mesh), are_given ? std::move(options) : CoreMapOptions(), at);
  }
}

/// `pl::run_state(f)({x, y})` copies the arrays, runs f with ArrayRefs of the copies and gives them
/// as f left them.
template <class F>
auto run_state(F f, Location at = here()) {
  return [f = std::move(f), at](std::initializer_list<Array> arrays) {
    constexpr int arity = detail::Signature<F>::arity;
    if (arrays.size() != static_cast<std::size_t>(arity))
      throw CompileError(at, "run_state: the function takes " + std::to_string(arity) +
                                 " Refs, given " + std::to_string(arrays.size()) + " arrays");
    std::vector<Array> state;
    for (const Array& a : arrays) state.push_back(a.copy(at));
    [&]<std::size_t... I>(std::index_sequence<I...>) { f(new_ref(state[I], at)...); }
    (std::make_index_sequence<static_cast<std::size_t>(arity)>());
    return Outputs(std::move(state), at);
  };
}

namespace gpu {

/// The same with the number of the warp: `plgpu::warp_map([&](pl::Value warp) { ... });`
template <class F>
void warp_map(F&& body, const detail::Expression& at = {}) {
  static_assert(std::is_void_v<std::invoke_result_t<F, Value>>,
                "palladium: the function of warp_map takes the number of a warp and returns "
                "nothing; it writes Refs");
  detail::Building building(WarpMesh{}, at);
  detail::record_region(building, [&] { body(building.warp()); });
}

/// As pl::kernel, over a Mesh that the options spell.
template <class First = KernelOptions, class F = KernelOptions>
auto kernel(First first, F options = detail::no_options<F>(), Location at = here()) {
  constexpr bool waits = detail::waits_for_body<First, KernelOptions>();
  constexpr bool takes_operands = waits || detail::takes_operands<First>();
  static_assert(takes_operands,
                "palladium: a kernel function takes pl::Ref, pl::Refs, pl::Scratch, structs of "
                "pl::Ref (nothing else in them), or pl::Value for a scalar argument; a generic "
                "lambda is not to take any number, so pl::Refs for auto...");
  constexpr bool returns_nothing = waits || detail::returns_nothing<First>();
  static_assert(returns_nothing,
                "palladium: the kernel function should return nothing; write results to the "
                "output Refs");
  static_assert(detail::gives_options<std::conditional_t<waits, First, F>, KernelOptions>(),
                "palladium: behind a body stand plgpu::KernelOptions, or a function that takes a "
                "pl::ShapeDtype per argument, or one std::span<const pl::ShapeDtype>, and returns "
                "them");
  return detail::kernel_or_factory<KernelOptions>(std::move(first), std::move(options), at);
}

}  // namespace gpu

}  // namespace palladium
