#include "runtime/driver/kernel.hpp"

#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "palladium/error.hpp"
#include "runtime/driver/device.hpp"

namespace palladium::driver {
namespace {

bool is_rejection(abi::Result result) {
  return result == abi::invalid_image || result == abi::no_binary_for_gpu ||
         result == abi::invalid_ptx || result == abi::unsupported_ptx_version;
}

/// The driver's form of a launch, which points to `attributes`.
abi::LaunchConfig config_of(const Launch& launch, abi::LaunchAttribute (&attributes)[3]) {
  unsigned count = 0;
  if (launch.cluster != Dim3{}) {
    abi::LaunchAttribute& attribute = attributes[count++];
    attribute.id = abi::attribute_cluster_dimension;
    attribute.value.cluster = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  }
  if (launch.cooperative) {
    abi::LaunchAttribute& attribute = attributes[count++];
    attribute.id = abi::attribute_cooperative;
    attribute.value.flag = 1;
  }
  if (launch.overlaps_previous) {
    abi::LaunchAttribute& attribute = attributes[count++];
    attribute.id = abi::attribute_programmatic_stream_serialization;
    attribute.value.flag = 1;
  }
  return {launch.grid.x,  launch.grid.y,       launch.grid.z, launch.block.x, launch.block.y,
          launch.block.z, launch.shared_bytes, launch.stream, attributes,     count};
}

[[noreturn]] void launch_failed(abi::Result result, const Kernel& kernel, const Launch& launch) {
  std::vector<std::string> arguments = {kernel.name(), "grid " + text(launch.grid),
                                        "block " + text(launch.block)};
  if (launch.cluster != Dim3{}) arguments.push_back("cluster " + text(launch.cluster));
  if (launch.shared_bytes != 0)
    arguments.push_back(std::to_string(launch.shared_bytes) + " bytes of dynamic shared memory");
  if (launch.cooperative) arguments.push_back("cooperative");
  if (result == abi::cooperative_launch_too_large) {
    try {
      arguments.push_back(fmt::format("of whose blocks {} fit at once on device {}",
                                      resident_blocks(kernel, launch), current_device()));
    } catch (const CudaError&) {
      // The launch's own failure is the one to report.
    }
  }
  fail(result, "cuLaunchKernelEx", arguments);
}

}  // namespace

std::optional<Kernel> Kernel::load(std::span<const std::byte> cubin, const std::string& function,
                                   int device, std::string& rejection) {
  const ContextScope context(device);
  abi::Library library = nullptr;
  abi::Result result =
      api().cuLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (is_rejection(result)) {
    rejection = "cuLibraryLoadData: " + describe(result);
    return std::nullopt;
  }
  check(result, "cuLibraryLoadData", function, std::to_string(cubin.size()) + " bytes");
  Kernel kernel(library, nullptr, function);
  check(api().cuLibraryGetKernel(&kernel.kernel_, library, function.c_str()), "cuLibraryGetKernel",
        function);
  // Libraries load lazily: this is where the driver looks at the code, and not at first launch.
  abi::Function in_context = nullptr;
  result = api().cuKernelGetFunction(&in_context, kernel.kernel_);
  if (is_rejection(result)) {
    rejection = "cuKernelGetFunction: " + describe(result);
    return std::nullopt;
  }
  check(result, "cuKernelGetFunction", function, "device " + std::to_string(device));
  return kernel;
}

Kernel::~Kernel() {
  if (library_ == nullptr) return;
  const abi::Result result = api().cuLibraryUnload(library_);
  if (result != abi::success && result != abi::deinitialized)
    log::error("cuLibraryUnload(" + name_ + "): " + describe(result));
}

void Kernel::allow_shared_bytes(std::size_t bytes, int on) const {
  check(api().cuKernelSetAttribute(abi::max_dynamic_shared_size_bytes, static_cast<int>(bytes),
                                   kernel_, device(on).handle),
        "cuKernelSetAttribute", name_, "dynamic shared memory", bytes,
        fmt::format("of at most {} on device {}", device(on).shared_bytes_opt_in, on));
}

void Kernel::allow_large_clusters(int on) const {
  check(api().cuKernelSetAttribute(abi::non_portable_cluster_size_allowed, 1, kernel_,
                                   device(on).handle),
        "cuKernelSetAttribute", name_, "large clusters", "device " + std::to_string(on));
}

void launch(const Kernel& kernel, const Launch& launch, void** arguments) {
  PreparedLaunch(kernel, launch)(launch.grid.x, launch.stream, arguments);
}

PreparedLaunch::PreparedLaunch(const Kernel& kernel, const Launch& launch)
    : kernel_(kernel), launch_(launch), config_(config_of(launch, attributes_)) {}

void PreparedLaunch::failed(abi::Result result, unsigned grid_x) const {
  Launch launch = launch_;
  launch.grid.x = grid_x;
  launch_failed(result, kernel_, launch);
}

int resident_blocks(const Kernel& kernel, const Launch& launch) {
  int count = 0;
  if (launch.cluster != Dim3{}) {
    abi::LaunchAttribute attributes[3] = {};
    const abi::LaunchConfig config = config_of(launch, attributes);
    check(api().cuOccupancyMaxActiveClusters(&count, kernel.function(), &config),
          "cuOccupancyMaxActiveClusters", kernel.name(), launch.cluster);
    return count * static_cast<int>(launch.cluster.x * launch.cluster.y * launch.cluster.z);
  }
  const int threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  check(api().cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel.function(), threads,
                                                          launch.shared_bytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel.name(), threads);
  return count * device(current_device()).multiprocessors;
}

}  // namespace palladium::driver
