// The table of functions that a kernel's shared object calls.
#pragma once

namespace palladium::emulator::abi {

using i32 = int;
using i64 = long long;
using u32 = unsigned;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;
static_assert(sizeof(i32) == 4 && sizeof(i64) == 8 && sizeof(u64) == 8);

#include "codegen/device/cpu/host.cuh"

}  // namespace palladium::emulator::abi

namespace palladium::emulator {

/// The functions of this process. Those that concern a block act on the block that this OS thread
/// runs.
const abi::Host& host_table();

}  // namespace palladium::emulator
