// Arrays of which two elements share a byte, as what they are in memory.
#pragma once

#include "palladium/array.hpp"

namespace palladium {

/// The memory of an array of packed elements as bytes, u8 with half the last extent; any other
/// array is that itself.
Array in_bytes(const Array& array);

}  // namespace palladium
