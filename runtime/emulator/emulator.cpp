#include "runtime/emulator/emulator.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "codegen/base/format.hpp"
#include "runtime/emulator/machine.hpp"
#include "runtime/emulator/module.hpp"
#include "runtime/fiber/workers.hpp"
#include "runtime/race/unwritten.hpp"

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

/// What went wrong in the cluster that was begun first: the same, whichever worker was faster.
class Failure {
 public:
  void keep(std::uint64_t turn, std::exception_ptr exception) {
    std::lock_guard lock(mutex_);
    if (exception_ != nullptr && turn_ <= turn) return;
    turn_ = turn;
    exception_ = std::move(exception);
  }
  /// With what was reported before.
  void rethrow(const Reports& reports) const {
    if (exception_ == nullptr) return;
    try {
      std::rethrow_exception(exception_);
    } catch (const InternalError& e) {
      throw InternalError(reports.text(e.what(), turn_));
    }
  }

 private:
  std::mutex mutex_;
  std::uint64_t turn_ = 0;
  std::exception_ptr exception_;
};

std::string block_text(std::uint32_t linear, std::array<std::int64_t, 3> grid) {
  return text({linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]});
}

[[noreturn]] void blame(const Launch& launch, const Reports& reports, GlobalMemory& global,
                        const WriteConflict& conflict) {
  throw CompileError(
      reports.user_line(conflict.line),
      fmt::format(
          "kernel '{}': blocks {} and {} both write element {} of {}; an axis of the grid on "
          "which an output block does not depend must be sequential",
          launch.kernel, block_text(conflict.first, launch.grid),
          block_text(conflict.second, launch.grid), conflict.element,
          global.region(conflict.region).buffer->name));
}

/// What the buffers hold that were given without contents, and nobody wrote.
void tell_unwritten(const Launch& launch, const Reports& reports, GlobalMemory& global) {
  for (std::size_t i = 0; i < global.size(); ++i) {
    const GlobalMemory::Region& region = global.region(i);
    const Buffer& buffer = *region.buffer;
    if (buffer.initialised || !buffer.written || !launch.options.detect_writers) continue;
    const std::vector<std::int64_t> row = {static_cast<std::int64_t>(region.writers.elements())};
    const std::vector<std::int64_t> unit = {1};
    const bool shaped = !buffer.strides.empty();
    race::tell(race::find_unwritten(region.writers, shaped ? buffer.shape : row,
                                    shaped ? buffer.strides : unit),
               launch.kernel, buffer.name, launch.options.unwritten_is_error, reports.user_line(1));
  }
}

void run_checked(const Launch& launch) {
  validate(launch);
  std::uint64_t count = 1;
  for (int d = 0; d < 3; ++d)
    count *= static_cast<std::uint64_t>(launch.grid[d] / launch.cluster[d]);
  GlobalMemory global(launch);
  Reports reports(launch);
  if (count == 0) return tell_unwritten(launch, reports, global);

  double seconds = 0;
  const std::shared_ptr<const Module> module = compile(launch.kernel, launch.text, seconds);
  const bool together = blocks_communicate(launch.text);
  const auto most = [&](std::int64_t n) {
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(n), 1, count);
  };
  const int workers =
      together ? 1 : static_cast<int>(most(fiber::worker_count(launch.options.workers)));
  const std::uint64_t resident = together ? most(launch.options.resident_clusters) : 1;

  const bool shuffles = launch.options.schedule == Schedule::random;
  Clusters clusters(count, shuffles ? std::optional(launch.options.seed) : std::nullopt);
  Failure failure;
  fiber::run_on_workers(workers, [&]() noexcept {
    std::optional<Machine> machine;
    try {
      machine.emplace(launch, *module, global, reports, clusters, resident);
      machine->run();
    } catch (...) {
      clusters.stop();
      failure.keep(machine ? machine->failed_turn() : 0, std::current_exception());
    }
  });
  failure.rethrow(reports);
  if (const auto conflict = reports.conflict()) blame(launch, reports, global, *conflict);
  reports.raise();
  tell_unwritten(launch, reports, global);
}

}  // namespace

void run(const Launch& launch) {
  try {
    run_checked(launch);
  } catch (const std::bad_alloc& error) {
    throw CudaError(
        fmt::format("emulator: kernel '{}': out of memory ({}); fewer workers, or smaller blocks, "
                    "need less of it",
                    launch.kernel, error.what()));
  }
}

double prepare(std::string_view kernel, std::string_view text) {
  double seconds = 0;
  compile(kernel, text, seconds);
  return seconds;
}

}  // namespace palladium::emulator
