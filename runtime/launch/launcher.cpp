#include "runtime/launch/launcher.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/memory.hpp"
#include "codegen/base/event.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/profile.hpp"
#include "runtime/build/compile.hpp"
#include "runtime/build/record.hpp"
#include "runtime/device/reached.hpp"
#include "runtime/driver/capture.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/memory.hpp"
#include "runtime/driver/tensor_map.hpp"
#include "runtime/launch/debug_buffer.hpp"
#include "runtime/launch/scope_trace.hpp"

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

driver::Launch launch_of(const LaunchPlan& plan, bool blocks_wait, bool overlaps = false) {
  return {.block = {static_cast<unsigned>(plan.threads), 1, 1},
          .cluster = {static_cast<unsigned>(plan.cluster_blocks), 1, 1},
          .shared_bytes = static_cast<unsigned>(plan.shared_bytes),
          .cooperative = blocks_wait,
          .overlaps_previous = overlaps};
}

}  // namespace

// The memory is the host's: what is in it stays there whatever becomes of the kernel.
struct Launcher::Told {
  std::shared_ptr<const graph::Graph> by;
  driver::PinnedMemory memory{debug_buffer_bytes};

  std::span<std::uint64_t> numbers() const {
    return {static_cast<std::uint64_t*>(memory.pointer()), memory.bytes() / sizeof(std::uint64_t)};
  }
  void drain() const {
    if (const std::exception_ptr failure = drain_debug_buffer(numbers(), *by))
      std::rethrow_exception(failure);
  }
};

// Likewise.
struct Launcher::Profiled {
  std::shared_ptr<const graph::Graph> by;
  ScopeTrace trace;
  driver::PinnedMemory memory;
  std::string device;

  Profiled(std::shared_ptr<const graph::Graph> graph, int threads, unsigned blocks,
           std::string device)
      : by(std::move(graph)),
        trace{*by, threads, blocks},
        memory(trace.numbers() * sizeof(std::uint64_t)),
        device(std::move(device)) {
    std::ranges::fill(numbers(), 0);
  }
  std::span<std::uint64_t> numbers() const {
    return {static_cast<std::uint64_t*>(memory.pointer()), trace.numbers()};
  }
};

Launcher::Ready Launcher::load(const Specialization& s, int device,
                               std::shared_ptr<const Program> program) {
  const driver::Device& on = driver::device(device);
  cache::Memory<Loaded>& table = loaded_kernels();
  if (!program) program = compile_or_weaker(s, on.arch());
  record_reachable(s, on.arch());
  if (const auto known = table.find(&on, program->entry.key))
    return {kernel_in(known), program->plan};

  const driver::RelaxedCapture relaxed;
  unload_unused(most_unused);
  const auto try_load = [&](std::string& rejection) {
    const profile::Range range("load", s.graph.name);
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

Launcher::Launcher(const Specialization& s, int device, std::shared_ptr<const Program> compiled)
    : Launcher(s, device, load(s, device, std::move(compiled))) {}

Launcher::Launcher(const Specialization& s, int device, Ready ready)
    : specialization_(s),
      kernel_(std::move(ready.kernel)),
      known_sizes_(s.graph.num_symbols),
      served_(s.graph.num_symbols),
      packer_(s.graph, ready.plan, driver::encode),
      prepared_(*kernel_,
                launch_of(ready.plan, graph::blocks_may_wait(s.graph, graph::Counting::launch),
                          graph::overlaps_previous(s.graph))),
      device_(device) {
  if (ready.plan.persistent) {
    const driver::ContextScope context(device);
    most_blocks_ = static_cast<unsigned>(
        std::max(1, driver::resident_blocks(*kernel_, launch_of(ready.plan, false))));
  }
  if (std::ranges::count(ready.plan.parameters, cuda::Parameter::Kind::debug,
                         &cuda::Parameter::kind) > 0)
    told_by_ = std::make_shared<const graph::Graph>(s.graph);
  if (has_scopes(ready.plan)) {
    profiled_ = std::make_shared<const graph::Graph>(s.graph);
    threads_ = ready.plan.threads;
  }
}

bool Launcher::is_at(std::span<const Arg> arguments, std::span<const Arg> outputs) const {
  const Device here = Device::cuda(device_);
  for (const Arg& a : arguments)
    if (a.array() && a.array()->device() != here) return false;
  for (const Arg& o : outputs)
    if (o.array()->device() != here) return false;
  return true;
}

void Launcher::launch(std::span<const Arg> arguments, std::span<const Arg> outputs,
                      const Signature::Symbols& symbols, unsigned blocks, Stream stream) const {
  if (blocks == 0) return;
  const profile::Range range("launch", specialization_.graph.name);
  const driver::ContextScope context(device_);
  const auto handle = reinterpret_cast<driver::StreamHandle>(stream.handle());
  std::shared_ptr<Told> told;
  if (told_by_) [[unlikely]]
    told = listen(handle);
  std::shared_ptr<Profiled> scopes;
  if (profiled_) [[unlikely]]
    scopes = profile(handle, blocks);
  ArgumentBlock block;
  packer_.pack(arguments, outputs, symbols, block, told ? told->memory.pointer() : nullptr,
               scopes ? scopes->memory.pointer() : nullptr);
  if (!context.is_primary()) [[unlikely]]
    stay_loaded();
  if (driver::is_capturing(handle)) [[unlikely]]
    driver::keep_while_captured(handle, kernel_);
  prepared_(blocks, handle, block.pointers);
  if (told) [[unlikely]]
    when_reached(stream, [told] { told->drain(); });
  if (scopes) [[unlikely]]
    when_reached(stream,
                 [scopes] { scopes->trace.write(scopes->numbers(), scopes->device, "cycles"); });
}

std::shared_ptr<Launcher::Profiled> Launcher::profile(driver::StreamHandle stream,
                                                      unsigned blocks) const {
  if (driver::is_capturing(stream))
    throw CudaError("'" + profiled_->name +
                    "' is profiled (compiler_params.profile_space), which a launch that is "
                    "captured in a graph cannot be");
  return std::make_shared<Profiled>(profiled_, threads_, blocks, driver::device(device_).arch());
}

std::shared_ptr<Launcher::Told> Launcher::listen(driver::StreamHandle stream) const {
  if (driver::is_capturing(stream))
    throw CudaError("'" + told_by_->name +
                    "' prints or checks something (debug_print, debug_check), which a launch that "
                    "is captured in a graph cannot; PALLADIUM_DEBUG=off leaves it out");
  const std::shared_ptr<Told> told(new Told{told_by_});
  std::ranges::fill(told->numbers(), 0);
  begin_debug_buffer(told->numbers());
  return told;
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
