#include "runtime/launch/launcher.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/memory.hpp"
#include "codegen/base/event.hpp"
#include "codegen/base/log.hpp"
#include "codegen/graph/debug.hpp"
#include "runtime/build/compile.hpp"
#include "runtime/driver/capture.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/tensor_map.hpp"

namespace palladium::runtime {
namespace {

/// A library keeps its code in the memory of a device.
constexpr std::size_t most_unused = 64;

struct Loaded {
  driver::Kernel kernel;
  int device;
};

/// Kernels that are loaded already, by device and key: equal kernels share one library.
cache::Memory<Loaded>& loaded_kernels() {
  static auto& table = *new cache::Memory<Loaded>;
  return table;
}

std::shared_ptr<const driver::Kernel> kernel_in(const cache::Memory<Loaded>::Handle& loaded) {
  return {loaded, &loaded->kernel};
}

}  // namespace

Launcher::Ready Launcher::load(const Specialization& s, int device) {
  const driver::Device& on = driver::device(device);
  cache::Memory<Loaded>& table = loaded_kernels();
  auto program = compile_or_weaker(s, on.arch());
  if (const auto known = table.find(&on, program->entry.key))
    return {kernel_in(known), program->plan};

  const driver::RelaxedCapture relaxed;
  unload_unused(most_unused);
  const auto try_load = [&](std::string& rejection) {
    return driver::Kernel::load(program->entry.cubin, program->entry.metadata.function, device,
                                rejection);
  };
  std::string rejection;
  auto kernel = try_load(rejection);
  if (!kernel && program->from_cache) {
    log::event(log::Level::warning, "reject",
               "'" + s.graph.name + "': the driver rejects the cached cubin (" + rejection +
                   "); it is compiled anew",
               {{"kernel", s.graph.name},
                {"arch", on.arch()},
                {"key", program->entry.key.hex()},
                {"reason", rejection}});
    forget(*program);
    program = compile_or_weaker(s, on.arch(), Lookup::fresh);
    kernel = try_load(rejection);
  }
  if (!kernel)
    throw CudaError("the driver rejects the cubin of '" + s.graph.name + "' for " + on.arch() +
                    ": " + rejection);
  const LaunchPlan& plan = program->plan;
  if (plan.shared_bytes > on.shared_bytes)
    kernel->allow_shared_bytes(static_cast<std::size_t>(plan.shared_bytes), device);
  constexpr int portable_cluster = 8;
  if (plan.cluster_blocks > portable_cluster) kernel->allow_large_clusters(device);
  return {kernel_in(table.insert(&on, program->entry.key, {std::move(*kernel), device})), plan};
}

Launcher::Launcher(const Specialization& s, int device) : Launcher(s, device, load(s, device)) {
  for (const graph::Op op : {graph::Op::DebugPrint, graph::Op::DebugCheck})
    if (graph::has_debug_op(s.graph, op))
      throw CompileError(s.graph.at, "kernel '" + s.graph.name + "': " + graph::info(op).name +
                                         " runs on interpreter and emulator alone; "
                                         "PALLADIUM_DEBUG=off leaves it out");
}

Launcher::Launcher(const Specialization& s, int device, Ready ready)
    : specialization_(s),
      kernel_(std::move(ready.kernel)),
      packer_(s.graph, ready.plan, driver::encode),
      prepared_(*kernel_, {.block = {static_cast<unsigned>(ready.plan.threads), 1, 1},
                           .cluster = {static_cast<unsigned>(ready.plan.cluster_blocks), 1, 1},
                           .shared_bytes = static_cast<unsigned>(ready.plan.shared_bytes),
                           .cooperative = graph::blocks_may_wait(s.graph)}),
      device_(device) {}

bool Launcher::is_at(std::span<const Arg> arguments, std::span<const Arg> outputs) const {
  const Device here = Device::cuda(device_);
  for (const Arg& a : arguments)
    if (a.array() && a.array()->device() != here) return false;
  for (const Arg& o : outputs)
    if (o.array()->device() != here) return false;
  return true;
}

void Launcher::launch(std::span<const Arg> arguments, std::span<const Arg> outputs,
                      const Signature::Symbols& symbols, Stream stream) const {
  const unsigned blocks = packer_.blocks(symbols);
  if (blocks == 0) return;
  const driver::ContextScope context(device_);
  ArgumentBlock block;
  packer_.pack(arguments, outputs, symbols, block);
  const auto handle = reinterpret_cast<driver::StreamHandle>(stream.handle());
  if (!context.is_primary()) [[unlikely]]
    stay_loaded();
  if (driver::is_capturing(handle)) [[unlikely]]
    driver::keep_while_captured(handle, kernel_);
  prepared_(blocks, handle, block.pointers);
}

/// What runs in a context of the program's own cannot be waited for: that may be gone.
void Launcher::stay_loaded() const {
  if (!stays_loaded_.exchange(true)) new std::shared_ptr<const driver::Kernel>(kernel_);
}

std::size_t unload_unused(std::size_t most_left) {
  std::vector<Loaded> unloading = loaded_kernels().take_unused(most_left);
  if (unloading.empty()) return 0;
  const driver::RelaxedCapture relaxed;
  std::set<int> devices;
  for (const Loaded& each : unloading) devices.insert(each.device);
  for (const int each : devices) {
    const driver::ContextScope context(each);
    driver::synchronize_context();
  }
  const std::size_t count = unloading.size();
  unloading.clear();  // and not after what this stands in
  return count;
}

}  // namespace palladium::runtime
