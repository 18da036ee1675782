// What is told of a kernel before a target on the CPU runs it for the first time.
#pragma once

#include "palladium/device.hpp"
#include "runtime/launch/kernel_state.hpp"

namespace palladium::runtime {

/// Writes what PALLADIUM_DUMP names, and on the interpreter warns of a kernel that no GPU can run
/// for want of shared memory. Once for each variant; no trouble of a dump keeps a kernel from
/// running.
void tell_before_first_run(Variant& variant, Target target);

/// A line in the log when the kernel that was traced last is that of the 2nd size of a dimension of
/// an argument: each of them is a kernel of its own.
void tell_of_sizes(const KernelState& kernel);

}  // namespace palladium::runtime
