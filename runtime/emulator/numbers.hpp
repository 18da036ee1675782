// Number formats on the CPU: from bits to float and back, and the arithmetic of atomics.
#pragma once

#include <cstdint>

#include "runtime/emulator/host.hpp"

namespace palladium::emulator {

float widen_f16(std::uint16_t x);
float widen_bf16(std::uint16_t x);
float widen_e4m3(std::uint8_t x);
float widen_e5m2(std::uint8_t x);
/// To nearest even.
std::uint16_t narrow_f16(float x);
std::uint16_t narrow_bf16(float x);
float round_to_tf32(float x);

/// Bytes of an element.
std::uint32_t bytes_of(abi::Format format);
/// "bf16"
const char* name(abi::Format format);

/// What a minimum or maximum with a NaN is: NaN, as those of kernels, or the other number.
enum class Nans : std::uint8_t { propagate, ignore };

/// `what` of an old value and an operand, both in the low end of the words.
std::uint64_t combine(abi::Atomic what, abi::Format format, std::uint64_t old, std::uint64_t value,
                      std::uint64_t expected, Nans nans = Nans::propagate);
/// The same on global memory, where sums of f32 take subnormals for zeros of their sign and make
/// them.
std::uint64_t combine_global(abi::Atomic what, abi::Format format, std::uint64_t old,
                             std::uint64_t value, std::uint64_t expected,
                             Nans nans = Nans::propagate);
/// The same for copies that reduce, which keep subnormals.
std::uint64_t combine(abi::Reduction how, abi::Format format, std::uint64_t old,
                             std::uint64_t value);

}  // namespace palladium::emulator
