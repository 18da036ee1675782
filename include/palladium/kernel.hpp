// Kernel: a body with its options, called like a function.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/array.hpp"
#include "palladium/call.hpp"
#include "palladium/device.hpp"
#include "palladium/function.hpp"
#include "palladium/outputs.hpp"
#include "palladium/report.hpp"
#include "palladium/resources.hpp"
#include "palladium/sass.hpp"
#include "palladium/spec.hpp"

namespace palladium {

class Kernel;
namespace detail {
struct KernelMaker;
}

struct CompileOptions {
  /// One of known_archs(); empty: the first GPU's, or sm_90a where there is none.
  std::string arch = {};
  /// Seconds from the call after which a kernel that is not there is a CudaError; 0: any time.
  double deadline = 0;
};

/// How many kernels may be compiled at once, each in a helper process. Default:
/// PALLADIUM_COMPILE_JOBS, else the number of cores.
PALLADIUM_API void set_compile_jobs(int jobs);

/// A cubin and what the compiler said about it.
class PALLADIUM_API Compiled {
 public:
  std::span<const std::byte> cubin() const;
  const std::string& ptx() const;
  /// The emitted CUDA C++, without the device library.
  const std::string& cuda_source() const;
  const Resources& resources() const;
  /// How many blocks of it a multiprocessor of that architecture takes at once.
  Occupancy occupancy() const;
  /// Its machine code, by the nvdisasm that PALLADIUM_NVDISASM names or that is found; CudaError
  /// where there is none, or it fails.
  Sass sass() const;
  const std::string& arch() const;
  /// The kernel's key, 64 hex digits.
  const std::string& key() const;
  bool from_cache() const;
  using Times = CompileTimes;
  const Times& times() const;

 private:
  friend class Lowered;
  friend class CompileFuture;
  explicit Compiled(detail::Shared<detail::Counted> state) : state_(std::move(state)) {}
  detail::Shared<detail::Counted> state_;
};

/// A kernel that is compiled in the background: a handle, cheap to copy, safe to use from several
/// threads. Who drops it without a word still finds the kernel in the cache later; at the end of
/// the program what is under way is given up.
class PALLADIUM_API CompileFuture {
 public:
  /// Waits. Throws what compile() would, and CudaError after cancel() and after the deadline; the
  /// next to ask for the kernel starts anew.
  Compiled get() const;
  /// Whether get() would not wait, now or within so many seconds.
  bool wait_for(double seconds) const;
  /// Nobody waits here any more: get() throws at once. The compile ends, unless somebody else asked
  /// for the same kernel.
  void cancel() const;

 private:
  friend class Lowered;
  explicit CompileFuture(detail::Shared<detail::Counted> state) : state_(std::move(state)) {}
  detail::Shared<detail::Counted> state_;
};

/// A kernel traced for some types of its arguments.
class PALLADIUM_API Lowered {
 public:
  /// The kernel graph, for people.
  std::string graph() const;
  /// The kernel graph, for programs: lossless.
  std::string json() const;
  /// The emitted CUDA C++, without the device library.
  std::string cuda_source(const CompileOptions& options = {}) const;
  /// Where each Ref and value lives, and the passes that decided it.
  std::string decisions(const CompileOptions& options = {}) const;
  /// Every pass as it ran, in order, with what the program was behind it.
  std::vector<PassDump> passes(const CompileOptions& options = {}) const;
  /// Who waits for whom of those who work on a block, step by step of one iteration, and whether
  /// they do so as they must; for people.
  std::string schedule(const CompileOptions& options = {}) const;
  /// What that asks of a multiprocessor: how its accesses fall on memory, its instructions; and its
  /// registers and occupancy, for which it is compiled like by compile(), if it can be.
  Report report(const CompileOptions& options = {}) const;
  /// The kernel's name in the cache, 64 hex digits.
  std::string key(const CompileOptions& options = {}) const;
  /// What that name is made of, by name: short parts as text, long ones as digests.
  std::vector<std::pair<std::string, std::string>> key_components(
      const CompileOptions& options = {}) const;
  std::vector<ShapeDtype> out_types() const;
  /// What a run of it costs, counted on its operations (jax.experimental.pallas.estimate_cost):
  /// arithmetic is a flop for each element, an elementary function a transcendental, loops count by
  /// their trips where these are constants, bytes are those of all arrays. CompileError where sizes
  /// are symbols.
  CostEstimate estimate_cost() const;
  const std::string& name() const;
  double trace_ms() const;

  /// From the cache, else by NVRTC; needs no GPU. Threads that ask for one kernel at once get one
  /// compile.
  Compiled compile(const CompileOptions& options = {}) const;
  /// The same without waiting for it.
  CompileFuture compile_async(const CompileOptions& options = {}) const;

 private:
  friend class Kernel;
  friend struct detail::KernelMaker;
  explicit Lowered(detail::Shared<detail::Counted> state) : state_(std::move(state)) {}
  detail::Shared<detail::Counted> state_;
};

/// A kernel: a handle, cheap to copy, safe to use from several threads.
///
/// A grid has up to 8 axes of up to 2^31 - 1 programs. Its parallel axes are folded into one, so
/// that a GPU's limit of 65535 along y and z does not hold for them; their product, times the
/// blocks of a cluster, is at most 2^31 - 1. A cluster has at most 16 blocks (8 on every GPU that
/// knows clusters) and is one program, so it always divides the grid. All this is refused on every
/// target: by the trace, or by the call where the sizes of its arrays decide. What an architecture
/// lacks (clusters before sm_90, shared memory) is refused where text is emitted for it: on a GPU,
/// by `compile`, and on the emulator, which runs that text; the interpreter runs such kernels. With
/// no program along some axis nothing runs.
///
/// A call traces the body once for each new combination of argument types, compiles it or finds it
/// in the cache, and launches. In an options function the extents of the arguments arrive as
/// symbols bound to the call's sizes: those it only passes on to array types and grids stay
/// symbols, those it reads become part of the specialisation.
class PALLADIUM_API Kernel {
 public:
  /// Launches on new outputs, which are ready on the stream.
  Outputs operator()(const Arg& a0 = {}, const Arg& a1 = {}, const Arg& a2 = {}, const Arg& a3 = {},
                     const Arg& a4 = {}, const Arg& a5 = {}, const Arg& a6 = {}, const Arg& a7 = {},
                     const Arg& a8 = {}, const Arg& a9 = {}, const Arg& a10 = {},
                     const Arg& a11 = {}) const;
  Outputs call(std::initializer_list<Arg> args, Location at = here()) const;
  /// Launches on the caller's outputs and allocates nothing.
  void into(std::initializer_list<Arg> outputs, std::initializer_list<Arg> args,
            Location at = here()) const;

  /// The same kernel, launching on a stream of the caller's.
  Kernel on(Stream stream) const;
  /// The same kernel, run by that target.
  Kernel on(Target target) const;

  /// Does for such arguments all that a first call does but launch, on every GPU of the machine:
  /// later calls neither trace nor compile nor load, and so may be the first in a stream that is
  /// captured. Arrays are looked at, not read; a ShapeDtype is taken as by lower().
  void prepare(std::initializer_list<ArgType> args, Location at = here()) const;

  /// Traces without running. A ShapeDtype is taken as it stands: its integers are static.
  Lowered lower(const ArgType& a0 = {}, const ArgType& a1 = {}, const ArgType& a2 = {},
                const ArgType& a3 = {}, const ArgType& a4 = {}, const ArgType& a5 = {},
                const ArgType& a6 = {}, const ArgType& a7 = {}, const ArgType& a8 = {},
                const ArgType& a9 = {}, const ArgType& a10 = {}, const ArgType& a11 = {}) const;
  Lowered lower(std::span<const ArgType> types, Location at = here()) const;

 private:
  friend struct detail::KernelMaker;
  explicit Kernel(detail::Shared<detail::Counted> state) : state_(std::move(state)) {}

  detail::Shared<detail::Counted> state_;
  Stream stream_;
  Target target_ = Target::cuda;
  bool has_target_ = false;
};

/// Takes those kernels off the GPUs that no Kernel, no stream at work and no graph needs any more,
/// and returns how many; waits for what the GPUs are doing. The kernels stay in the cache on disk.
/// Without this call a process keeps the 64 that were loaded or asked for last.
PALLADIUM_API std::size_t unload_unused_kernels();

namespace detail {

PALLADIUM_API Kernel make_kernel(BodyOrCall first, PallasCallOptions options, Location at);
PALLADIUM_API Kernel make_kernel(BodyOrCall first, Shared<OptionsFunction> options, Location at);

}  // namespace detail

/// A kernel of this body, run once for each program of the grid. `options` are PallasCallOptions,
/// or a function of the types of the arguments that returns them:
/// `pallas_call(body, {.out_type = ...})`, `pallas_call(body, [](pl::ShapeDtype x) {...})`. In
/// place of body and options stands a function of these types that returns both, as a pl::Call.
// One function, so that the compilers list no others when a field in the braces is wrong.
template <class F = PallasCallOptions>
Kernel pallas_call(detail::BodyOrCall body, F options = detail::no_options<F>(),
                   Location at = here()) {
  if constexpr (std::same_as<F, Location>) {  // pallas_call(call, at)
    return detail::make_kernel(std::move(body), detail::no_options<PallasCallOptions>(), options);
  } else if constexpr (std::convertible_to<F, PallasCallOptions>) {
    return detail::make_kernel(std::move(body), PallasCallOptions(std::move(options)), at);
  } else {
    constexpr bool fits = detail::makes<F, PallasCallOptions>();
    static_assert(fits,
                  "palladium: behind a body stand pl::PallasCallOptions, or a function that takes "
                  "a pl::ShapeDtype per argument, or one std::span<const pl::ShapeDtype>, and "
                  "returns them (one that returns a pl::Call stands alone)");
    detail::Shared<detail::OptionsFunction> function;
    if constexpr (fits)
      function = detail::Shared<detail::OptionsFunction>(
          new detail::OptionsModel<F, detail::PallasCallMaker>(std::move(options)));
    return detail::make_kernel(std::move(body), std::move(function), at);
  }
}

/// The kernel for a batch: argument i is an array with one more axis, `in_axes[i]` (below 0: from
/// the end), along which the arguments of single calls lie, or is `unbatched`. Without a list all
/// arrays have the batch as axis 0. Results have it as axis 0. Scalars are unbatched.
///
/// The batch is one more axis of the grid, in front, whose programs run in any order; body and
/// index maps, program_id and num_programs know nothing of it. It stays a symbol: one kernel serves
/// every size. vmap of a vmap adds another. Index operands may be batched, a size of the grid may
/// not; an input that is aliased to an output has the batch as axis 0.
PALLADIUM_API Kernel vmap(const Kernel& kernel, std::vector<int> in_axes = {},
                          Location at = here());

/// In an options function: for how many elements, of all batches, vmap runs the kernel in this
/// call; 1 without it. A symbol stays one: pl::size_class() gives a number to choose blocks by.
PALLADIUM_API Dim batch_size();

}  // namespace palladium
