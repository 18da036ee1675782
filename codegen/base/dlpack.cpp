// Array in and out of DLPack.
#include "codegen/base/dlpack.hpp"

#include <iterator>
#include <vector>

#include "codegen/base/storage.hpp"
#include "palladium/array.hpp"

namespace palladium {
namespace {

using dlpack::TypeCode;

struct TypeRow {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr TypeRow types[] = {
    {bool_, TypeCode::boolean, 8},     {i8, TypeCode::signed_int, 8},
    {i16, TypeCode::signed_int, 16},   {i32, TypeCode::signed_int, 32},
    {i64, TypeCode::signed_int, 64},   {u8, TypeCode::unsigned_int, 8},
    {u16, TypeCode::unsigned_int, 16}, {u32, TypeCode::unsigned_int, 32},
    {u64, TypeCode::unsigned_int, 64}, {f16, TypeCode::floating, 16},
    {bf16, TypeCode::bfloat, 16},      {f32, TypeCode::floating, 32},
    {f64, TypeCode::floating, 64},     {f8e4m3, TypeCode::float8_e4m3fn, 8},
    {f8e5m2, TypeCode::float8_e5m2, 8}, {i4, TypeCode::signed_int, 4},
    {u4, TypeCode::unsigned_int, 4},
};

/// Another library's tensor, given back when nobody looks at it any more.
template <class Managed>
class ForeignStorage final : public detail::Storage {
 public:
  explicit ForeignStorage(Managed* tensor) : tensor_(tensor) {}
  void disown() { tensor_ = nullptr; }

 private:
  ~ForeignStorage() override {
    if (tensor_ && tensor_->deleter) tensor_->deleter(tensor_);
  }
  Managed* tensor_;
};

DType dtype_from(DLDataType type, Location at) {
  if (type.lanes == 1)
    for (const TypeRow& row : types)
      if (row.code == type.code && row.bits == type.bits) return row.dtype;
  throw CompileError(at, "from_dlpack: no element type has code " + std::to_string(type.code) +
                             ", " + std::to_string(type.bits) + " bits and " +
                             std::to_string(type.lanes) + " lanes");
}

Device device_from(DLDevice device, Location at) {
  switch (device.device_type) {
  case dlpack::cpu:
  case dlpack::cuda_host: return Device::cpu();
  case dlpack::cuda:
  case dlpack::cuda_managed: return Device::cuda(device.device_id);
  default:
    throw CompileError(at, "from_dlpack: memory of device type " +
                               std::to_string(device.device_type) +
                               " cannot be used, only that of the CPU (1) and of CUDA (2)");
  }
}

template <class Managed>
Array import(Managed* tensor, bool read_only, Location at) {
  const DLTensor& t = tensor->dl_tensor;
  if (t.ndim < 0 || t.ndim > Shape::max_rank)
    throw CompileError(at, "from_dlpack: an array has at most " + std::to_string(Shape::max_rank) +
                               " dimensions, the tensor has " + std::to_string(t.ndim));
  const DType dtype = dtype_from(t.dtype, at);
  const Device device = device_from(t.device, at);
  Shape shape;
  for (int i = 0; i < t.ndim; ++i) shape.push_back(t.shape[i]);
  ViewOptions options{.read_only = read_only};
  if (t.strides && t.ndim > 0) options.strides = {t.strides, static_cast<std::size_t>(t.ndim)};
  auto* storage = new ForeignStorage<Managed>(tensor);
  void* data = t.data ? static_cast<std::byte*>(t.data) + t.byte_offset : nullptr;
  storage->retain();
  try {
    Array array = Array::of_storage(storage, data, shape, dtype, device, options, at);
    storage->release();
    return array;
  } catch (...) {
    storage->disown();
    storage->release();
    throw;
  }
}

/// What an exported tensor points to.
template <class Managed>
struct Exported {
  Managed tensor = {};
  Array array;
  std::int64_t shape[Shape::max_rank] = {};
  std::int64_t strides[Shape::max_rank] = {};
};

template <class Managed>
Exported<Managed>* exported(const Array& array) {
  auto* e = new Exported<Managed>{.array = array};
  DLTensor& t = e->tensor.dl_tensor;
  t.data = array.data();
  t.device = {array.device().is_cpu() ? dlpack::cpu : dlpack::cuda, array.device().index};
  t.ndim = array.rank();
  for (const TypeRow& row : types)
    if (row.dtype == array.dtype()) t.dtype = {row.code, row.bits, 1};
  for (int i = 0; i < array.rank(); ++i) {
    e->shape[i] = array.shape()[i].value();
    e->strides[i] = array.stride(i);
  }
  t.shape = e->shape;
  t.strides = e->strides;
  e->tensor.manager_ctx = e;
  e->tensor.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  return e;
}

void require_array(const Array& array, Location at) {
  if (!array) throw CompileError(at, "to_dlpack: there is no array");
}

}  // namespace

Array Array::from_dlpack(DLManagedTensor* tensor, Location at) {
  if (!tensor) throw CompileError(at, "from_dlpack: there is no tensor");
  return import(tensor, false, at);
}

Array Array::from_dlpack(DLManagedTensorVersioned* tensor, Location at) {
  if (!tensor) throw CompileError(at, "from_dlpack: there is no tensor");
  if (tensor->version.major != dlpack::major_version)
    throw CompileError(at, "from_dlpack: the tensor is of DLPack " +
                               std::to_string(tensor->version.major) + "." +
                               std::to_string(tensor->version.minor) + ", version 1 is understood");
  if (tensor->dl_tensor.dtype.bits < 8 && (tensor->flags & dlpack::flag_padded) != 0)
    throw CompileError(at, "from_dlpack: elements of " +
                               std::to_string(tensor->dl_tensor.dtype.bits) +
                               " bits have a byte each; two of them must share one");
  return import(tensor, (tensor->flags & dlpack::flag_read_only) != 0, at);
}

DLManagedTensor* Array::to_dlpack(Location at) const {
  require_array(*this, at);
  if (read_only_)
    throw CompileError(at,
                       "to_dlpack: the array is read-only, which only a versioned tensor can say; "
                       "write .to_dlpack_versioned()");
  return &exported<DLManagedTensor>(*this)->tensor;
}

DLManagedTensorVersioned* Array::to_dlpack_versioned(Location at) const {
  require_array(*this, at);
  auto* e = exported<DLManagedTensorVersioned>(*this);
  e->tensor.version = {dlpack::major_version, dlpack::minor_version};
  e->tensor.flags = read_only_ ? dlpack::flag_read_only : 0;
  return &e->tensor;
}

}  // namespace palladium
