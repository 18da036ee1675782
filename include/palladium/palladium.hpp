// Everything that a user of Palladium includes, and the names that the documentation uses. A
// program with a `pl` or `plgpu` of its own defines PALLADIUM_NO_ALIASES before: all is in
// namespace palladium, too.
#pragma once

// What a header needs stands before it: a compiler that complains of one then tells the way to it
// in two lines.
// clang-format off
#include "palladium/api.hpp"
#include "palladium/half.hpp"
#include "palladium/error.hpp"
#include "palladium/types.hpp"
#include "palladium/array.hpp"
#include "palladium/value.hpp"
#include "palladium/ref.hpp"
#include "palladium/array_ref.hpp"
#include "palladium/function.hpp"
#include "palladium/grid_mapping.hpp"
#include "palladium/block_spec.hpp"
#include "palladium/body.hpp"
#include "palladium/resources.hpp"
#include "palladium/cache.hpp"
#include "palladium/mesh.hpp"
#include "palladium/outputs.hpp"
#include "palladium/report.hpp"
#include "palladium/spec.hpp"
#include "palladium/call.hpp"
#include "palladium/control.hpp"
#include "palladium/debug.hpp"
#include "palladium/device.hpp"
#include "palladium/diagnosis.hpp"
#include "palladium/gpu.hpp"
#include "palladium/gpu/barrier.hpp"
#include "palladium/gpu/cluster.hpp"
#include "palladium/gpu/copy.hpp"
#include "palladium/sass.hpp"
#include "palladium/kernel.hpp"
#include "palladium/mesh_kernel.hpp"
#include "palladium/npy.hpp"
#include "palladium/ops.hpp"
#include "palladium/record.hpp"
#include "palladium/scoped.hpp"
#include "palladium/gpu/pipeline.hpp"
#include "palladium/gpu/pipeline_specialized.hpp"
#include "palladium/gpu/registers.hpp"
#include "palladium/gpu/scheduling.hpp"
#include "palladium/gpu/wgmma.hpp"
#include "palladium/gpu/union.hpp"
#include "palladium/gpu/layout.hpp"
#include "palladium/gpu/inline.hpp"
#include "palladium/gpu/profile.hpp"
#include "palladium/semaphore.hpp"
#include "palladium/version.hpp"
// clang-format on

#ifndef PALLADIUM_NO_ALIASES
namespace pl = palladium;
namespace plgpu = palladium::gpu;
#endif
