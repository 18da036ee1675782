// Memory of GPUs behind Array handles.
#pragma once

#include <cstddef>

#include "codegen/base/storage.hpp"
#include "palladium/array.hpp"
#include "palladium/device.hpp"

namespace palladium::runtime {

/// Where a raw pointer leads to. What the driver does not know is memory of the CPU.
Device device_of_pointer(const void* pointer);

/// Memory of the device's stream-ordered pool, usable in `stream` from now on, and given back to
/// the pool in the same stream when the last handle is gone.
detail::Storage* allocate(Device device, std::size_t bytes, Stream stream, void*& data);

/// Blocks until the work in the stream is done.
void synchronize(Device device, Stream stream);

/// Copies `bytes` between any two devices; done on return. `stream` belongs to a device among them.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                Stream stream);

/// Sets `bytes` to zero; done on return.
void clear_bytes(void* data, Device device, std::size_t bytes);
/// The same in a stream, without waiting for it.
void clear_bytes(void* data, Device device, std::size_t bytes, Stream stream);

}  // namespace palladium::runtime
