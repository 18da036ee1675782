// What the host does once a GPU has come to a point of a stream.
#pragma once

#include <functional>

#include "palladium/device.hpp"

namespace palladium::runtime {

/// Calls `then` in the first call_reached() after the device has done all that is in the stream
/// now, or in which it turns out that it never will. What `then` holds stays, for good, where the
/// driver cannot tell when that is (CudaError). Precondition: a context of the device is current.
void when_reached(Stream stream, std::function<void()> then);

/// Calls what has been waited for long enough, in the order of when_reached(), and throws the first
/// exception that comes of it. Whoever waits for a stream calls it then; costs a load where nothing
/// waits.
void call_reached();

}  // namespace palladium::runtime
