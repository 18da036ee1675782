#include "codegen/base/packed.hpp"

#include <vector>

#include "codegen/base/storage.hpp"

namespace palladium {

Array in_bytes(const Array& array) {
  const DType dtype = array.dtype();
  if (!dtype.is_packed()) return array;
  Shape shape = array.shape();
  shape[-1] = dtype.bytes_of(shape[-1].value());
  std::vector<std::int64_t> strides;
  for (int d = 0; d + 1 < array.rank(); ++d) strides.push_back(dtype.bytes_of(array.stride(d)));
  strides.push_back(1);
  if (array.storage()) array.storage()->retain();
  const Device device = array.device();
  return Array::of_storage(
      array.storage(), array.data(), shape, u8, device,
      {.strides = strides, .device = &device, .read_only = array.is_read_only()}, {});
}

}  // namespace palladium
