// Tensor maps for TMA on a GPU.
#pragma once

#include "codegen/base/tensor_map.hpp"

namespace palladium::driver {

/// The map that a kernel takes as its PL_TENSOR_MAP parameter. Needs a current context.
///
/// CompileError with problem_of's sentence for a spec that no driver takes, as the emulator's
/// encode() has it; CudaError with the spec in words for one that this driver refuses.
TensorMap encode(const TensorMapSpec& spec);

}  // namespace palladium::driver
