// From a call to a run: specialise where nothing fits yet, make outputs, and hand to the target.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "palladium/call.hpp"
#include "palladium/device.hpp"
#include "runtime/launch/kernel_state.hpp"

namespace palladium::runtime {

/// Where and how a handle on a kernel runs.
struct Where {
  Stream stream;
  Target target = Target::cuda;
  bool has_target = false;
};

/// The visible outputs of a call, with their names where they have some.
struct Results {
  std::vector<Array> arrays;
  std::vector<std::string> names;
};

/// Runs on new outputs and returns them.
Results call(KernelState& kernel, const Where& where, std::span<const Arg> arguments, Location at);

/// Runs on the caller's outputs. With arrays like those of the call before, on a GPU, this takes no
/// lock, allocates nothing and reads no environment.
void call_into(KernelState& kernel, const Where& where, std::span<const Arg> outputs,
               std::span<const Arg> arguments, Location at);

/// All of a first call with such arguments but the launch, on every device of the target.
void prepare(KernelState& kernel, const Where& where, std::span<const ArgType> types, Location at);

}  // namespace palladium::runtime
