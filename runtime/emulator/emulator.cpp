#include "runtime/emulator/emulator.hpp"

#include <limits>

#include "codegen/base/format.hpp"
#include "runtime/emulator/block.hpp"
#include "runtime/emulator/module.hpp"

namespace palladium::emulator {
namespace {

void validate(const Launch& launch) {
  const auto refuse = [&](const std::string& what) {
    throw InternalError(fmt::format("emulator: launch of kernel '{}': {}", launch.kernel, what));
  };
  std::int64_t blocks = 1;
  for (int d = 0; d < 3; ++d) {
    if (launch.grid[d] < 0 || launch.grid[d] > std::numeric_limits<std::int32_t>::max()) {
      refuse(fmt::format("grid dim {} is {}", d, launch.grid[d]));
    }
    if (launch.cluster[d] < 1 || launch.grid[d] % launch.cluster[d] != 0) {
      refuse(fmt::format("grid dim {} of {} blocks is no multiple of the cluster's {}", d,
                         launch.grid[d], launch.cluster[d]));
    }
    blocks *= launch.grid[d];
    if (blocks > std::numeric_limits<std::uint32_t>::max()) refuse("more than 2^32 blocks");
  }
  if (launch.warpgroups < 1 || launch.warpgroups > 8) {
    refuse(fmt::format("{} warpgroups, 1 to 8 fit in a block", launch.warpgroups));
  }
  if (launch.shared_bytes > 227 * 1024) {
    refuse(fmt::format("{} bytes of shared memory, no GPU has more than {}", launch.shared_bytes,
                       227 * 1024));
  }
}

}  // namespace

void run(const Launch& launch) {
  validate(launch);
  double seconds = 0;
  const std::shared_ptr<const Module> module = compile(launch.kernel, launch.text, seconds);
  Block block(launch, *module);
  for (std::int64_t z = 0; z < launch.grid[2]; ++z) {
    for (std::int64_t y = 0; y < launch.grid[1]; ++y) {
      for (std::int64_t x = 0; x < launch.grid[0]; ++x) block.run({x, y, z});
    }
  }
}

double prepare(std::string_view kernel, std::string_view text) {
  double seconds = 0;
  compile(kernel, text, seconds);
  return seconds;
}

}  // namespace palladium::emulator
