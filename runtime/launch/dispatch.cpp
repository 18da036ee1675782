#include "runtime/launch/dispatch.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "codegen/base/packed.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/trace/trace.hpp"
#include "runtime/build/record.hpp"
#include "runtime/build/weaker.hpp"
#include "runtime/call/check.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/device/target.hpp"
#include "runtime/driver/capture.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/driver/memory.hpp"
#include "runtime/interpreter/view.hpp"
#include "runtime/launch/classes.hpp"
#include "runtime/launch/first_run.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/launch/operands.hpp"
#include "runtime/launch/run_emulator.hpp"
#include "runtime/launch/run_interpreter.hpp"

namespace palladium::runtime {
namespace {

void refuse_inside_trace(Location at) {
  if (trace::tracing())
    throw CompileError(at, "a kernel cannot be launched while the kernel '" +
                               trace::traced_kernel() +
                               "' is being traced; its body records operations, it does not run");
}

std::string name_of(const KernelState& kernel) {
  const std::string& name = kernel.source.options.name;
  return name.empty() ? "kernel" : name;
}

Target target_of(const Where& where, const Specialization& s) {
  if (where.has_target) return where.target;
  return s.interpret.on ? Target::interpreter : current_target();
}

Variant& keep(KernelState& kernel, const Where& where, std::shared_ptr<Specialization> made,
              std::string family) {
  // What is compiled is recorded there, with its architecture.
  if (target_of(where, *made) != Target::cuda) {
    record(made->graph, "");
    record_reachable(*made, "");
  }
  Variant& kept =
      *kernel.variants.emplace_back(std::make_unique<Variant>(std::move(made), std::move(family)));
  tell_of_sizes(kernel);
  return kept;
}

Variant& find_or_trace(KernelState& kernel, const Where& where, const Given& call,
                       Signature::Symbols& symbols, Location at) {
  const KernelState::Lock lock(kernel, at);
  for (const auto& v : kernel.variants)
    if (v->specialization->debug.is_current() && fits(*v->specialization, call, symbols)) return *v;
  if (Variant* const kept = kept_for(kernel, call, symbols)) return *kept;
  std::vector<Request> requests, output_requests;
  for (const Arg& a : call.arguments) requests.push_back(request(a));
  for (const Arg& o : call.outputs) output_requests.push_back(request(o));
  auto made = specialize(kernel.source, requests, output_requests, at);
  if (!fits(*made, call, symbols)) {
    const Operands all(*made, call);
    made->signature.refuse(all.arguments(), all.outputs(), made->graph.name, at);
  }
  std::string family = family_of(*made);
  if (!wants_weakest(kernel, family))
    return keep(kernel, where, std::move(made), std::move(family));
  tell_of_classes(made->graph);
  if (auto least = weakest(*made)) made = std::move(least);
  Variant& last = keep(kernel, where, std::move(made), std::move(family));
  Variant* const kept = kept_for(kernel, call, symbols);
  return kept != nullptr ? *kept : last;
}

/// The device of the arrays, which for GPUs is that of the first one.
Device device_of_call(Target target, std::span<const Arg> arguments, std::span<const Arg> outputs) {
  if (target == Target::cuda)
    for (const auto& arrays : {outputs, arguments})
      for (const Arg& a : arrays)
        if (a.array() && a.array()->device().is_cuda()) return a.array()->device();
  return device_of(target);
}

/// Of the classes that serve the call the one whose kernel is there, where that is not yet that of
/// the one which it has.
Variant& ready(KernelState& kernel, const Where& where, Target target, Variant& found,
               const Given& call, Signature::Symbols& symbols, Location at) {
  if (target != Target::cuda) return found;
  const Operands all(*found.specialization, call);
  const Device device = device_of_call(target, all.arguments(), all.outputs());
  return serving(kernel, found, device.index, where.stream, call, symbols, at);
}

// What takes time is made outside of the kernel's mutex, so that calls with other types go on. Of
// two threads that make it at once the second takes what the first has made.
const Launcher& launcher_for(KernelState& kernel, Variant& variant, int device, Stream stream,
                             Location at) {
  const Specialization& s = *variant.specialization;
  {
    const KernelState::Lock lock(kernel, at);
    if (const Launcher* known = known_launcher(variant, device)) return *known;
  }
  {
    const driver::ContextScope context(device);
    if (driver::is_capturing(reinterpret_cast<driver::StreamHandle>(stream.handle())))
      throw CudaError(
          "'" + s.graph.name +
          "' is called for the first time on a stream that is being captured, where it "
          "can be neither compiled nor loaded; prepare() it, or call it once, before the capture");
  }
  auto made = std::make_unique<const Launcher>(s, device);
  const KernelState::Lock lock(kernel, at);
  if (const Launcher* known = known_launcher(variant, device)) return *known;
  return *variant.launchers.emplace_back(std::move(made));
}

/// For types, which no specialisation can be asked whether it fits: the one of the same graph, if
/// there is one already.
Variant& trace_for(KernelState& kernel, const Where& where, std::span<const Request> types,
                   Location at) {
  const KernelState::Lock lock(kernel, at);
  auto made = specialize(kernel.source, types, {}, at);
  const std::string bytes = graph::canonical_bytes(made->graph);
  for (const auto& v : kernel.variants)
    if (graph::canonical_bytes(v->specialization->graph) == bytes) return *v;
  std::string family = family_of(*made);
  return keep(kernel, where, std::move(made), std::move(family));
}

const Emulated& emulated_for(KernelState& kernel, Variant& variant, Location at) {
  {
    const KernelState::Lock lock(kernel, at);
    if (variant.emulated) return *variant.emulated;
  }
  auto made = emulate(*variant.specialization);
  const KernelState::Lock lock(kernel, at);
  if (!variant.emulated) variant.emulated = std::move(made);
  return *variant.emulated;
}

Array empty_in(Stream stream, const Shape& shape, DType dtype, Device device, Location at) {
  void* data = nullptr;
  auto* storage =
      allocate(device, static_cast<std::size_t>(dtype.bytes_of(shape.size())), stream, data);
  return Array::of_storage(storage, data, shape, dtype, device, {}, at);
}

Array zeros_in(Stream stream, const Shape& shape, DType dtype, Device device, Location at) {
  const Array array = empty_in(stream, shape, dtype, device, at);
  clear_bytes(array.data(), device, static_cast<std::size_t>(array.dtype().bytes_of(array.size())),
              stream);
  return array;
}

/// Memory of one launch, zero when it starts, behind the outputs.
class Globals {
 public:
  Globals(const Specialization& s, Device device, Stream stream, std::span<const Arg> outputs,
          const Signature::Symbols& symbols, Location at)
      : all_(outputs.begin(), outputs.end()) {
    const std::vector<Operand>& globals = s.signature.globals();
    arrays_.reserve(globals.size());
    for (std::size_t i = 0; i < globals.size(); ++i) {
      const Shape shape = s.signature.global_shape(static_cast<int>(i), symbols, s.graph.name, at);
      const Array& array = arrays_.emplace_back(
          device.is_cpu() ? Array::zeros(shape, globals[i].dtype, device, at)
                          : zeros_in(stream, shape, globals[i].dtype, device, at));
      all_.emplace_back(array, at);
    }
  }
  std::span<const Arg> outputs() const { return all_; }

 private:
  std::vector<Array> arrays_;
  std::vector<Arg> all_;
};

/// `fresh`: the call made the outputs.
void run(KernelState& kernel, Variant& variant, const Where& where, Target target, Device device,
         std::span<const Arg> arguments, std::span<const Arg> given, bool fresh,
         const Signature::Symbols& symbols, Location at) {
  const Specialization& s = *variant.specialization;
  std::optional<Globals> globals;
  std::span<const Arg> outputs = given;
  if (!s.signature.globals().empty())
    outputs = globals.emplace(s, device, where.stream, given, symbols, at).outputs();
  const bool has_programs = s.grid.check(s.graph, symbols, at);
  check_devices(s.graph.name, target, device, arguments, outputs);
  check_aliases(s.graph, arguments, outputs);
  tell_before_first_run(variant, target);
  if (!has_programs) {
    // Nothing runs; that the outputs stay as they are is told all the same.
    const auto is_empty = [](const Arg& o) { return o.array()->size() == 0; };
    if (target != Target::cuda && !std::ranges::all_of(outputs, is_empty))
      run_interpreter(s, arguments, outputs, symbols, fresh);
    return;
  }
  switch (target) {
  case Target::interpreter: run_interpreter(s, arguments, outputs, symbols, fresh); break;
  case Target::emulator:
    run_emulator(s, emulated_for(kernel, variant, at), arguments, outputs, symbols);
    break;
  case Target::cuda: {
    const Launcher& launcher = launcher_for(kernel, variant, device.index, where.stream, at);
    launcher.launch(arguments, outputs, symbols, launcher.blocks(symbols), where.stream);
    if (!s.interpret.on) kernel.recent.put_first(&launcher);
    break;
  }
  }
}

/// What nobody wrote must be seen: NaN, the least integer, true.
void poison(const Array& elements) {
  const Array array = in_bytes(elements);
  interpreter::fill(static_cast<std::byte*>(array.data()), array.size(), array.dtype().bytes(),
                    interpreter::poison_bits(array.dtype()));
}

Array make_output(const Specialization& s, std::size_t o, Target target, Device device,
                  Stream stream, std::span<const Arg> arguments, const Signature::Symbols& symbols,
                  Location at) {
  for (const graph::Alias& a : s.graph.aliases)
    if (a.output == static_cast<int>(o)) {
      const Arg& input = arguments[position_of_input(s.graph, a.input)];
      if (input.array()->is_read_only())
        throw CompileError(input.at(), "'" + s.graph.name + "': outputs[" + std::to_string(o) +
                                           "] is aliased to an array that is read-only");
      return *input.array();
    }
  const Shape shape = s.signature.output_shape(static_cast<int>(o), symbols, s.graph.name, at);
  const DType dtype = s.signature.outputs()[o].dtype;
  if (target == Target::cuda) return empty_in(stream, shape, dtype, device, at);
  Array array = Array::empty(shape, dtype, device, at);
  if (target == Target::emulator) poison(array);  // the interpreter does so where nobody wrote
  return array;
}

/// The sizes of a call on their way to a launcher.
struct Sizes {
  Signature::Symbols symbols;
  unsigned blocks = 0;
  bool are_known = false;  // with `blocks`: class and grid need not be looked at
};

/// Whether the call is of the launcher's class, or of a stronger one that it served before.
bool takes(const Launcher& l, std::span<const Arg> arguments, std::span<const Arg> outputs,
           Sizes& sizes) {
  const Signature& signature = l.specialization().signature;
  if (signature.match_arrays(arguments, outputs, sizes.symbols)) {
    sizes.are_known = l.known_sizes().find(sizes.symbols, sizes.blocks);
    if (sizes.are_known || signature.is_of_class(arguments, outputs, sizes.symbols)) return true;
  }
  std::uint64_t wide = 0;
  sizes.are_known = !l.served().is_empty() &&
                    signature.serves_arrays(arguments, outputs, sizes.symbols, wide) &&
                    l.served().find(sizes.symbols, sizes.blocks, wide);
  return sizes.are_known;
}

/// Whether the call is one for this launcher, and nothing else was to do.
bool launched_by(const Launcher& launcher, const Where& where, std::span<const Arg> outputs,
                 std::span<const Arg> arguments, Location at) {
  const Specialization& s = launcher.specialization();
  Sizes sizes;
  if (has_more_operands(s) || !s.debug.is_current() ||
      !takes(launcher, arguments, outputs, sizes) || !launcher.is_at(arguments, outputs) ||
      !aliases_hold(s.graph, arguments, outputs))
    return false;
  if (!sizes.are_known) {
    const bool has_programs = s.grid.check(s.graph, sizes.symbols, at);
    sizes.blocks = has_programs ? launcher.blocks(sizes.symbols) : 0;
    if (s.signature.is_class_of_symbols()) launcher.known_sizes().set(sizes.symbols, sizes.blocks);
  }
  launcher.launch(arguments, outputs, sizes.symbols, sizes.blocks, where.stream);
  return true;
}

/// Notes that such calls are the launcher's from now on, of which they are no exact match: of a
/// kernel that keeps as many classes as it does none comes that serves them better.
void note_served(KernelState& kernel, const Variant& variant, int device, const Given& call,
                 Location at) {
  const Specialization& s = *variant.specialization;
  Signature::Symbols symbols;
  std::uint64_t wide = 0;
  if (has_more_operands(s) || fits(s, call, symbols) ||
      !s.signature.serves_arrays(call.arguments, call.outputs, symbols, wide))
    return;
  const KernelState::Lock lock(kernel, at);
  if (const Launcher* const launcher = known_launcher(variant, device))
    launcher->served().set(
        symbols, s.grid.check(s.graph, symbols, at) ? launcher->blocks(symbols) : 0, wide);
}

/// The hot path: whatever is not as at launches before is left to the slow one, and its messages.
bool launched_like_before(KernelState& kernel, const Where& where, std::span<const Arg> outputs,
                          std::span<const Arg> arguments, Location at) {
  if ((where.has_target ? where.target : current_target()) != Target::cuda) return false;
  for (const Arg& o : outputs)
    if (!o.array() || !is_writable(*o.array())) return false;
  return kernel.recent.any_of(
      [&](const Launcher& l) { return launched_by(l, where, outputs, arguments, at); });
}

}  // namespace

void prepare(KernelState& kernel, const Where& where, std::span<const ArgType> types, Location at) {
  refuse_inside_trace(at);
  std::vector<Request> requests;
  for (const ArgType& type : types) requests.push_back(request(type));
  Variant& variant = trace_for(kernel, where, requests, at);
  const Target target = target_of(where, *variant.specialization);
  tell_before_first_run(variant, target);
  switch (target) {
  case Target::interpreter: break;
  case Target::emulator: (void)emulated_for(kernel, variant, at); break;
  case Target::cuda:
    (void)driver::api();  // an error without a GPU
    for (int device = 0; device < driver::status().devices; ++device)
      (void)launcher_for(kernel, variant, device, where.stream, at);
  }
}

Results call(KernelState& kernel, const Where& where, std::span<const Arg> given, Location at) {
  refuse_inside_trace(at);
  check_arrays(name_of(kernel), given, {});
  Signature::Symbols symbols;
  Variant& found = find_or_trace(kernel, where, {given, {}}, symbols, at);
  const Target target = target_of(where, *found.specialization);
  Variant& variant = ready(kernel, where, target, found, {given, {}}, symbols, at);
  const Specialization& s = *variant.specialization;
  const Operands all(s, {given, {}});
  const std::span<const Arg> arguments = all.arguments();
  check_refs(s.graph.name, arguments, given.size());
  const Device device = device_of_call(target, arguments, {});
  check_devices(s.graph.name, target, device, arguments, {});
  std::vector<Array> outputs;
  std::vector<Arg> as_args;
  for (std::size_t o = 0; o < s.signature.outputs().size(); ++o)
    outputs.push_back(make_output(s, o, target, device, where.stream, arguments, symbols, at));
  for (const Array& o : outputs) as_args.emplace_back(o, at);
  run(kernel, variant, where, target, device, arguments, as_args, true, symbols, at);
  outputs.resize(s.num_visible);
  return {std::move(outputs), s.out_names};
}

void call_into(KernelState& kernel, const Where& where, std::span<const Arg> outputs,
               std::span<const Arg> arguments, Location at) {
  refuse_inside_trace(at);
  if (launched_like_before(kernel, where, outputs, arguments, at)) return;
  check_arrays(name_of(kernel), arguments, outputs);
  if (outputs.empty())
    throw CompileError(at, "'" + name_of(kernel) + "': into needs the kernel's outputs");
  Signature::Symbols symbols;
  const Given given{arguments, outputs};
  Variant& found = find_or_trace(kernel, where, given, symbols, at);
  const Target target = target_of(where, *found.specialization);
  Variant& variant = ready(kernel, where, target, found, given, symbols, at);
  const Specialization& s = *variant.specialization;
  const Operands all(s, given);
  check_refs(s.graph.name, all.arguments(), arguments.size());
  const Device device = device_of_call(target, all.arguments(), outputs);
  run(kernel, variant, where, target, device, all.arguments(), all.outputs(), false, symbols, at);
  if (target == Target::cuda && &variant == &found)
    note_served(kernel, variant, device.index, given, at);
}

}  // namespace palladium::runtime
