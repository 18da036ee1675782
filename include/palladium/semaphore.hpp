// Semaphores: counters by which the threads of a block, and the blocks of a launch, wait for each
// other. What a thread did before it signalled has happened for whoever waited for that.
#pragma once

#include "palladium/spec.hpp"

namespace palladium {

struct SemaphoreSignalOptions {
  /// Who hears what this thread did before: "cta", its block, "cluster", "gpu", or "sys", the host
  /// and other GPUs, too; none: the blocks that have the semaphore, for which that must suffice.
  const char* memory_scope = nullptr;
};
struct SemaphoreWaitOptions {
  bool decrement = true;               ///< take from the count what was waited for
  const char* memory_scope = nullptr;  ///< of whom it hears
};

/// The count. Every thread of a mesh that runs one of these operations counts once.
PALLADIUM_API Effect semaphore_read(const Ref& semaphore, const detail::Expression& at = {});
/// Adds to the count.
PALLADIUM_API void semaphore_signal(const Ref& semaphore, const Operand& inc = 1,
                                    SemaphoreSignalOptions options = {});
/// Waits until the count is at least `value`.
PALLADIUM_API void semaphore_wait(const Ref& semaphore, const Operand& value = 1,
                                  SemaphoreWaitOptions options = {});

/// Waits about so many nanoseconds, an integer scalar; on the CPU no time passes. It orders nothing
/// between threads.
PALLADIUM_API void delay(const Operand& nanos);

/// Memory of the launch, one and the same for all its blocks, zero when it starts: of every place
/// where it is asked for, in each body, another. `plgpu::GMEM(shape, dtype)` or
/// `plgpu::SemaphoreType::REGULAR(shape)`; in the body of a pl::kernel.
PALLADIUM_API Ref get_global(const Scoped& what, Location at = here());

namespace gpu {

struct SemaphoreType {
  /// Counts of 0 at the start; as scratch, of each block its own.
  static Scoped REGULAR(Shape shape = {}, Location at = here()) {
    return {Space::semaphore, {shape, i32}, at};
  }
};

}  // namespace gpu

}  // namespace palladium
