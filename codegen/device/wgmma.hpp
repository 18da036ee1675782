// The functions pl::wgmma_...: made for those products only that a kernel names, since all of them
// together take NVRTC longer than any kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/device/library.hpp"

namespace palladium::device {

/// A product that the hardware has: D of 64 x n = A of 64 x k times B of k x n, plus D; or several
/// that are added to the same D, one after another.
struct Wgmma {
  int n = 8, k = 16;
  std::string_view d, a, b;  // "f32", "bf16", "bf16"; integers are called s32, s8 and u8
  bool rs = false;           // A lies in registers
  int steps = 1;

  /// Whether the operands in shared memory may be transposed.
  bool has_transposes() const { return k == 16; }
  /// Registers of D per thread.
  int registers() const { return d == "f16" ? n / 4 : n / 2; }
  /// "wgmma_m64n128k16_f32_bf16_bf16_rs", and "_x4" behind that where there are four.
  std::string name() const;
};

/// All of one step, by types, then n, then rs.
std::vector<Wgmma> wgmma_variants();

/// The definitions of those products that `kernel` names with their namespace. InternalError, which
/// tells what would be legal, for a name that no product has.
std::string wgmma_functions(Half half, std::string_view kernel);

}  // namespace palladium::device
