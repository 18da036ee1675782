// The classes of calls of which a kernel keeps kernels: those called first, and the weakest, which
// serves all. What a call is compiled for, and what serves it meanwhile.
#pragma once

#include <memory>
#include <string>

#include "palladium/device.hpp"
#include "runtime/build/weaker.hpp"
#include "runtime/launch/kernel_state.hpp"
#include "runtime/launch/operands.hpp"

namespace palladium::runtime {

/// Variant::family.
std::string family_of(const Specialization& s);

/// Where a kernel keeps as many classes as it does, the strongest of these that serves the call,
/// and its symbols; else null. Precondition: the kernel is locked.
Variant* kept_for(const KernelState& kernel, const Given& call, Signature::Symbols& symbols);

/// Whether there is room for one more class of the family, and that has to be the weakest.
/// Precondition: the kernel is locked.
bool wants_weakest(const KernelState& kernel, const std::string& family);

/// Says that no more classes are kept, once.
void tell_of_classes(const graph::Graph& g);

const Launcher* known_launcher(const Variant& variant, int device);

/// The variant that runs the call now: `wanted`; or while that is compiled in the background,
/// another that serves the call and is loaded, with its symbols. Precondition: the call fits
/// `wanted`, with these symbols.
Variant& serving(KernelState& kernel, Variant& wanted, int device, Stream stream, const Given& call,
                 Signature::Symbols& symbols, Location at);

}  // namespace palladium::runtime
