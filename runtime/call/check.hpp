// What is wrong with the arrays of a call.
#pragma once

#include <span>
#include <string>

#include "codegen/graph/graph.hpp"
#include "palladium/call.hpp"
#include "palladium/device.hpp"

namespace palladium::runtime {

/// Whether an array can be an output: not read-only, no two elements in one place.
bool is_writable(const Array& array);

/// CompileError unless every argument and output is there and can be taken by some kernel: arrays
/// without gaps along their last dimension, outputs writable.
void check_arrays(const std::string& kernel, std::span<const Arg> arguments,
                  std::span<const Arg> outputs);

/// CompileError naming `.to(device)` unless all arrays live on `device`.
void check_devices(const std::string& kernel, Target target, Device device,
                   std::span<const Arg> arguments, std::span<const Arg> outputs);

/// CompileError where an ArrayRef overlaps another array of the call. The arguments from `captured`
/// on are what bodies captured.
void check_refs(const std::string& kernel, std::span<const Arg> arguments, std::size_t captured);

/// Whether outputs overlap nothing but the inputs that they are aliased to, and are those.
bool aliases_hold(const graph::Graph& g, std::span<const Arg> arguments,
                  std::span<const Arg> outputs);
/// CompileError naming the two arrays unless aliases_hold().
void check_aliases(const graph::Graph& g, std::span<const Arg> arguments,
                   std::span<const Arg> outputs);

/// Position among the arguments of array input `number`.
std::size_t position_of_input(const graph::Graph& g, int number);
std::size_t position_of_scalar(const graph::Graph& g, int number);

}  // namespace palladium::runtime
