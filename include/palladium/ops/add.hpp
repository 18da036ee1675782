// The shipped vector addition.
#pragma once

#include "palladium/kernel.hpp"

namespace palladium::ops {

/// x + y of two vectors of one length and dtype.
PALLADIUM_API Kernel add();

}  // namespace palladium::ops
