// The part of Array that makes and moves memory.
#include "palladium/array.hpp"

#include <new>

#include "codegen/base/storage.hpp"
#include "runtime/device/device_memory.hpp"

namespace palladium {
namespace {

/// Copies an array, gaps and all, to dense memory: runs of contiguous elements at a time.
void copy_elements(const Array& from, int dimension, const std::byte* source, Device to_device,
                   std::byte*& destination, Stream stream) {
  std::int64_t run = 1;
  int outer = from.rank();
  while (outer > dimension &&
         (from.shape()[outer - 1].value() == 1 || from.stride(outer - 1) == run))
    run *= from.shape()[--outer].value();
  if (outer == dimension) {
    const std::int64_t bytes = from.dtype().bytes_of(run);
    runtime::copy_bytes(destination, to_device, source, from.device(),
                        static_cast<std::size_t>(bytes), stream);
    destination += bytes;
    return;
  }
  const std::int64_t step = from.dtype().bytes_of(from.stride(dimension));
  for (std::int64_t i = 0; i < from.shape()[dimension].value(); ++i)
    copy_elements(from, dimension + 1, source + i * step, to_device, destination, stream);
}

Array dense_copy(const Array& from, Device device, Location at) {
  Array result = Array::empty(from.shape(), from.dtype(), device, at);
  if (from.size() == 0) return result;
  auto* destination = static_cast<std::byte*>(result.data());
  copy_elements(from, 0, static_cast<const std::byte*>(from.data()), device, destination,
                from.storage() ? Stream(from.storage()->stream()) : Stream());
  return result;
}

}  // namespace

Array Array::empty(const Shape& shape, DType dtype, Device device, Location at) {
  // Checks shape and dtype before any memory is asked for.
  alignas(64) static std::byte nowhere[64];
  const std::int64_t bytes =
      dtype.bytes_of(of_storage(nullptr, nowhere, shape, dtype, device, {}, at).size());
  if (device.is_cuda()) {
    void* data = nullptr;
    detail::Storage* storage = runtime::allocate(device, static_cast<std::size_t>(bytes), {}, data);
    runtime::synchronize(device, {});  // so that every stream may use it
    return of_storage(storage, data, shape, dtype, device, {}, at);
  }
  detail::HostStorage* storage = nullptr;
  try {
    storage = new detail::HostStorage(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    throw CompileError(at, "array: " + to_string(ShapeDtype{shape, dtype}) + " needs " +
                               std::to_string(bytes) + " bytes, and there is no memory for them");
  }
  return of_storage(storage, storage->data(), shape, dtype, device, {}, at);
}

Array Array::zeros(const Shape& shape, DType dtype, Device device, Location at) {
  Array a = empty(shape, dtype, device, at);
  const auto bytes = static_cast<std::size_t>(dtype.bytes_of(a.size()));
  if (bytes != 0) runtime::clear_bytes(a.data(), device, bytes);
  return a;
}

Array Array::view(void* data, const Shape& shape, DType dtype, ViewOptions options, Location at) {
  const Device device = options.device ? *options.device : runtime::device_of_pointer(data);
  return of_storage(nullptr, data, shape, dtype, device, options, at);
}

Array Array::to(Device device, Location at) const {
  if (!*this) throw CompileError(at, "to: there is no array");
  return device == device_ ? *this : dense_copy(*this, device, at);
}

Array Array::copy(Location at) const {
  if (!*this) throw CompileError(at, "copy: there is no array");
  return dense_copy(*this, device_, at);
}

}  // namespace palladium
