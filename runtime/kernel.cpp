#include "palladium/kernel.hpp"

#include <string>
#include <utility>

#include "codegen/graph/graph.hpp"
#include "codegen/trace/mesh.hpp"
#include "codegen/trace/trace.hpp"
#include "palladium/mesh_kernel.hpp"
#include "runtime/launch/dispatch.hpp"
#include "runtime/launch/kernel_state.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/lowered.hpp"

namespace palladium {

using detail::Counted;
using detail::Shared;
using runtime::KernelState;
using runtime::LoweredState;
using runtime::state_of;

// ---- Kernel

struct detail::KernelMaker {
  static Kernel make(runtime::Source source) {
    return Kernel(Shared<Counted>(new KernelState(std::move(source))));
  }
  static Kernel batched(const Kernel& kernel, runtime::Batch batch) {
    runtime::Source source = runtime::state_of<KernelState>(kernel.state_).source;
    source.batches.insert(source.batches.begin(), std::move(batch));
    Kernel k = make(std::move(source));
    k.stream_ = kernel.stream_;
    k.target_ = kernel.target_;
    k.has_target_ = kernel.has_target_;
    return k;
  }
  static Lowered make(std::shared_ptr<runtime::Specialization> specialization) {
    return Lowered(Shared<Counted>(new LoweredState(std::move(specialization))));
  }
};

Lowered runtime::make_lowered(std::shared_ptr<Specialization> specialization) {
  return palladium::detail::KernelMaker::make(std::move(specialization));
}

Kernel vmap(const Kernel& kernel, std::vector<int> in_axes, Location at) {
  return detail::KernelMaker::batched(kernel, {std::move(in_axes), at});
}

Dim batch_size() {
  const DimBinding* const binding = DimBinding::current();
  return binding == nullptr ? Dim(1) : binding->batches();
}

namespace {

[[noreturn]] void refuse_both(Location at) {
  throw CompileError(
      at,
      "pallas_call: a function that returns a pl::Call has made body and options, so "
      "that no options stand beside it");
}

}  // namespace

Kernel detail::make_kernel(BodyOrCall first, PallasCallOptions options, Location at) {
  const bool are_given = were_given(options);
  if (first.call && are_given) refuse_both(at);
  if (first.call) return KernelMaker::make({.function = std::move(first.call), .at = at});
  if (!are_given)
    throw CompileError(
        at,
        "pallas_call: options stand beside a body: pl::pallas_call(body, {.out_type = "
        "..., .grid = ...}), or a function of the arguments' types that returns them");
  return KernelMaker::make({.body = {std::move(first)}, .options = std::move(options), .at = at});
}

Kernel detail::make_kernel(BodyOrCall first, Shared<OptionsFunction> options, Location at) {
  if (first.call) refuse_both(at);
  return KernelMaker::make({.body = {std::move(first)}, .function = std::move(options), .at = at});
}

Kernel detail::make_kernel(Bodies bodies, MeshCall call, Location at) {
  trace::check_meshes(bodies.list.size(), bodies.is_list, call.meshes, at);
  return KernelMaker::make({.body = std::move(bodies.list),
                            .options = std::move(call.options),
                            .meshes = std::move(call.meshes),
                            .is_meshed = true,
                            .is_list = bodies.is_list,
                            .must_write = call.must_write,
                            .at = at});
}

Kernel detail::make_kernel(Bodies bodies, Shared<OptionsFunction> options, Location at) {
  return KernelMaker::make({.body = std::move(bodies.list),
                            .is_meshed = true,
                            .is_list = bodies.is_list,
                            .function = std::move(options),
                            .at = at});
}

namespace {

/// The arguments that were given: what follows the first one that was not is dropped.
template <class T, std::size_t N>
std::size_t given(const T* const (&arguments)[N], const char* what) {
  std::size_t count = N;
  while (count > 0 && arguments[count - 1]->is_none()) --count;
  for (std::size_t i = 0; i < count; ++i)
    if (arguments[i]->is_none())
      throw CompileError(arguments[i]->at(),
                         std::string(what) + ": args[" + std::to_string(i) + "] is nothing");
  return count;
}

}  // namespace

Outputs Kernel::operator()(const Arg& a0, const Arg& a1, const Arg& a2, const Arg& a3,
                           const Arg& a4, const Arg& a5, const Arg& a6, const Arg& a7,
                           const Arg& a8, const Arg& a9, const Arg& a10, const Arg& a11) const {
  const Arg* const pointers[] = {&a0, &a1, &a2, &a3, &a4, &a5, &a6, &a7, &a8, &a9, &a10, &a11};
  const Arg arguments[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};
  const std::size_t count = given(pointers, "call");
  runtime::Results results = runtime::call(
      state_of<KernelState>(state_), {stream_, target_, has_target_}, {arguments, count}, a0.at());
  return Outputs(std::move(results.arrays), a0.at(), std::move(results.names));
}

Outputs Kernel::call(std::initializer_list<Arg> args, Location at) const {
  runtime::Results results =
      runtime::call(state_of<KernelState>(state_), {stream_, target_, has_target_},
                    {args.begin(), args.size()}, at);
  return Outputs(std::move(results.arrays), at, std::move(results.names));
}

void Kernel::into(std::initializer_list<Arg> outputs, std::initializer_list<Arg> args,
                  Location at) const {
  runtime::call_into(state_of<KernelState>(state_), {stream_, target_, has_target_},
                     {outputs.begin(), outputs.size()}, {args.begin(), args.size()}, at);
}

void Kernel::prepare(std::initializer_list<ArgType> args, Location at) const {
  runtime::prepare(state_of<KernelState>(state_), {stream_, target_, has_target_},
                   {args.begin(), args.size()}, at);
}

std::size_t unload_unused_kernels() { return runtime::unload_unused(0); }

Kernel Kernel::on(Stream stream) const {
  Kernel k = *this;
  k.stream_ = stream;
  return k;
}

Kernel Kernel::on(Target target) const {
  Kernel k = *this;
  k.target_ = target;
  k.has_target_ = true;
  return k;
}

Lowered Kernel::lower(const ArgType& a0, const ArgType& a1, const ArgType& a2, const ArgType& a3,
                      const ArgType& a4, const ArgType& a5, const ArgType& a6, const ArgType& a7,
                      const ArgType& a8, const ArgType& a9, const ArgType& a10,
                      const ArgType& a11) const {
  const ArgType* const pointers[] = {&a0, &a1, &a2, &a3, &a4, &a5, &a6, &a7, &a8, &a9, &a10, &a11};
  const ArgType types[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};
  return lower(std::span(types, given(pointers, "lower")), a0.at());
}

Lowered Kernel::lower(std::span<const ArgType> types, Location at) const {
  if (trace::tracing())
    throw CompileError(at, "a kernel cannot be lowered while the kernel '" +
                               trace::traced_kernel() + "' is being traced");
  KernelState& kernel = state_of<KernelState>(state_);
  std::vector<runtime::Request> requests;
  for (const ArgType& t : types) requests.push_back(runtime::request(t));
  const KernelState::Lock lock(kernel, at);
  return Lowered(
      Shared<Counted>(new LoweredState(runtime::specialize(kernel.source, requests, {}, at))));
}

}  // namespace palladium
