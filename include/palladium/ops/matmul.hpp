// The shipped matrix product.
#pragma once

#include "palladium/kernel.hpp"

namespace palladium::ops {

/// a @ b in f32 for f32, f16 or bf16 matrices [m, k] and [k, n] of any size; one kernel serves any
/// m.
PALLADIUM_API Kernel matmul();

}  // namespace palladium::ops
