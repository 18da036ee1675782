#include "runtime/launcher.hpp"

#include <string>

#include "cache/memory.hpp"
#include "codegen/base/log.hpp"
#include "runtime/driver/device.hpp"

namespace palladium::runtime {
namespace {

using KernelHandle = std::shared_ptr<const driver::Kernel>;

/// Kernels that are loaded already, by device and key: equal kernels share one library.
cache::Memory<KernelHandle>& loaded_kernels() {
  static auto& table = *new cache::Memory<KernelHandle>;
  return table;
}

}  // namespace

Launcher::Loaded Launcher::load(const Specialization& s, int device) {
  const driver::Device& on = driver::device(device);
  cache::Memory<KernelHandle>& table = loaded_kernels();
  auto program = compile(s, on.arch());
  if (auto known = table.find(&on, program->entry.key)) return {*known, program->plan};

  const auto try_load = [&](std::string& rejection) {
    return driver::Kernel::load(program->entry.cubin, program->entry.metadata.function, device,
                                rejection);
  };
  std::string rejection;
  auto kernel = try_load(rejection);
  if (!kernel && program->from_cache) {
    log::warning("'" + s.graph.name + "': the driver rejects the cached cubin (" + rejection +
                 "); it is compiled anew");
    forget(*program);
    program = compile(s, on.arch(), Lookup::fresh);
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
  return {table.insert(&on, program->entry.key,
                       std::make_shared<const driver::Kernel>(std::move(*kernel))),
          plan};
}

Launcher::Launcher(const Specialization& s, int device) : Launcher(s, device, load(s, device)) {}

Launcher::Launcher(const Specialization& s, int device, Loaded loaded)
    : specialization_(s),
      kernel_(std::move(loaded.kernel)),
      plan_(std::move(loaded.plan)),
      packer_(s.graph, plan_),
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
  ArgumentBlock block;
  packer_.pack(arguments, outputs, symbols, block);
  const driver::ContextScope context(device_);
  driver::launch(*kernel_,
                 {.grid = {blocks, 1, 1},
                  .block = {static_cast<unsigned>(plan_.threads), 1, 1},
                  .cluster = {static_cast<unsigned>(plan_.cluster_blocks), 1, 1},
                  .shared_bytes = static_cast<unsigned>(plan_.shared_bytes),
                  .stream = reinterpret_cast<driver::StreamHandle>(stream.handle())},
                 block.pointers);
}

}  // namespace palladium::runtime
