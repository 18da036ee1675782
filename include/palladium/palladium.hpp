// Everything that a user of Palladium includes, and the names that the documentation uses.
#pragma once

#include "palladium/control.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "palladium/grid_mapping.hpp"
#include "palladium/ops.hpp"
#include "palladium/ref.hpp"
#include "palladium/spec.hpp"
#include "palladium/types.hpp"
#include "palladium/value.hpp"

namespace pl = palladium;
namespace plgpu = palladium::gpu;
