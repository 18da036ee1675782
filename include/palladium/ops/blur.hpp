// The shipped image blur.
#pragma once

#include "palladium/kernel.hpp"

namespace palladium::ops {

/// Mean over 5x5 pixels of an 8-bit image [height, width], rounded to nearest; at the border, over
/// those pixels that are inside.
PALLADIUM_API Kernel blur();

}  // namespace palladium::ops
