// Memory spaces of a GPU, as `plgpu` names them.
#pragma once

#include "palladium/spec.hpp"

namespace palladium::gpu {

inline constexpr MemorySpace GMEM{Space::gmem}, SMEM{Space::smem}, REGS{Space::regs};

}  // namespace palladium::gpu
