// A call on the emulator.
#pragma once

#include <memory>
#include <span>

#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

/// The emitted text of a specialisation, ready for launches on the CPU.
struct Emulated;
std::shared_ptr<const Emulated> emulate(const Specialization& s);

void run_emulator(const Specialization& s, const Emulated& text, std::span<const Arg> arguments,
                  std::span<const Arg> outputs, const Signature::Symbols& symbols);

}  // namespace palladium::runtime
