#include "palladium/array.hpp"

#include <new>
#include <utility>

#include "codegen/base/checked.hpp"
#include "codegen/base/storage.hpp"

namespace palladium {
namespace {

std::string list(const std::int64_t* numbers, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i ? "," : "") + std::to_string(numbers[i]);
  return text + "]";
}

// Whether every element has an address, and every distance along a dimension a number of bytes,
// even where there is nothing to step to.
bool fits_memory(const void* data, const Shape& shape, const std::int64_t* strides,
                 std::int64_t size, DType dtype) {
  const Checked first = reinterpret_cast<std::uintptr_t>(data);
  Checked low = 0, high = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(Checked(strides[i]) * dtype.bytes()).fits()) return false;
    if (size != 0) (strides[i] < 0 ? low : high) += Checked(strides[i]) * (shape[i].value() - 1);
  }
  return (first + low * dtype.bytes()).within(0, INT64_MAX) &&
         (first + high * dtype.bytes()).fits() && ((high - low) * dtype.bytes()).fits();
}

}  // namespace

std::string to_string(Device device) {
  return device.is_cpu() ? "cpu" : "cuda:" + std::to_string(device.index);
}

namespace detail {

HostStorage::HostStorage(std::size_t bytes)
    : data_(::operator new (bytes != 0 ? bytes : 1, std::align_val_t{64})) {}
HostStorage::~HostStorage() { ::operator delete (data_, std::align_val_t{64}); }

}  // namespace detail

Array::Array(const Array& o) noexcept
    : storage_(o.storage_),
      data_(o.data_),
      size_(o.size_),
      dtype_(o.dtype_),
      dense_(o.dense_),
      read_only_(o.read_only_),
      device_(o.device_),
      shape_(o.shape_) {
  for (int i = 0; i < Shape::max_rank; ++i) strides_[i] = o.strides_[i];
  if (storage_) storage_->retain();
}

Array::Array(Array&& o) noexcept : Array(static_cast<const Array&>(o)) { o = Array(); }

Array& Array::operator=(const Array& o) noexcept {
  if (o.storage_) o.storage_->retain();
  if (storage_) storage_->release();
  storage_ = o.storage_;
  data_ = o.data_;
  size_ = o.size_;
  dtype_ = o.dtype_;
  dense_ = o.dense_;
  read_only_ = o.read_only_;
  device_ = o.device_;
  shape_ = o.shape_;
  for (int i = 0; i < Shape::max_rank; ++i) strides_[i] = o.strides_[i];
  return *this;
}

Array& Array::operator=(Array&& o) noexcept {
  if (this == &o) return *this;
  *this = static_cast<const Array&>(o);
  if (o.storage_) o.storage_->release();
  o.storage_ = nullptr;
  o.data_ = nullptr;
  o.size_ = 0;
  o.dtype_ = DType();
  return *this;
}

Array::~Array() {
  if (storage_) storage_->release();
}

Array Array::of_storage(detail::Storage* storage, void* data, const Shape& shape, DType dtype,
                        Device device, const ViewOptions& options, Location at) {
  Array a;
  a.storage_ = storage;  // first: an error below gives the reference back
  const auto fail = [&](const std::string& what) { throw CompileError(at, "array: " + what); };
  if (dtype == DType()) fail("an element type is needed");
  if (!shape.is_static())
    fail("the shape " + to_string(shape) + " of an array in memory must be integers");
  const int rank = shape.rank();
  const auto check_packed = [&](const std::int64_t* strides) {
    if (rank == 0 || shape[rank - 1].value() % 2 != 0)
      fail(std::string("two elements of ") + dtype.name() +
           " share a byte: the last extent is even, given " + to_string(shape));
    for (int d = 0; d < rank; ++d)
      if (d + 1 == rank ? strides[d] != 1 : strides[d] % 2 != 0)
        fail(std::string("two elements of ") + dtype.name() +
             " share a byte: the last stride is 1 and others are even, given " +
             list(strides, rank));
  };
  if (!options.strides.empty() && options.strides.size() != static_cast<std::size_t>(rank))
    fail("a shape of " + std::to_string(rank) + " dimensions needs as many strides, not " +
         std::to_string(options.strides.size()));
  for (const Dim& d : shape)
    if (d.value() < 0) fail("an extent of the shape " + to_string(shape) + " is negative");
  const Checked count = checked_product(shape);
  if (!(count * dtype.bytes()).fits())
    fail("the shape " + to_string(shape) + " has more bytes than can be counted");
  const std::int64_t size = count.value();
  std::int64_t gapless = 1;
  for (int i = rank - 1; i >= 0; --i) {
    a.strides_[i] =
        options.strides.empty() ? gapless : options.strides[static_cast<std::size_t>(i)];
    if (shape[i].value() != 1 && size != 0 && a.strides_[i] != gapless) a.dense_ = false;
    if (size != 0) gapless *= shape[i].value();
  }
  if (!fits_memory(data, shape, a.strides_, size, dtype))
    fail("the shape " + to_string(shape) + " with strides " + list(a.strides_, rank) +
         " reaches farther than memory can");
  if (data == nullptr && size != 0) fail("a null pointer cannot hold " + to_string(shape));
  if (dtype.is_packed()) check_packed(a.strides_);
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<unsigned>(dtype.bytes()) != 0)
    fail(std::string("the address is not aligned to an element of ") + dtype.name());
  a.data_ = data;
  a.size_ = size;
  a.dtype_ = dtype;
  a.read_only_ = options.read_only;
  a.device_ = device;
  a.shape_ = shape;
  return a;
}

Array Array::view_host(void* data, std::size_t count, const Shape& shape, DType dtype,
                       bool read_only, Location at) {
  Array a = of_storage(nullptr, data, shape, dtype, Device::cpu(), {.read_only = read_only}, at);
  if (static_cast<std::uint64_t>(a.size_) > count)
    throw CompileError(at, "array: the shape " + to_string(shape) + " needs " +
                               std::to_string(a.size_) + " elements but the span has " +
                               std::to_string(count));
  return a;
}

void* Array::typed(DType wanted, bool constant, Location at) const {
  if (!*this) throw CompileError(at, "data: there is no array");
  if (wanted != dtype_)
    throw CompileError(at, std::string("data: the elements are ") + dtype_.name() +
                               ", asked for as " + wanted.name());
  if (read_only_ && !constant)
    throw CompileError(at, "data: the array is read-only; ask for const elements");
  return data_;
}

void Array::require_host(Location at) const {
  if (!device_.is_cpu())
    throw CompileError(at, "values: the array is on " + to_string(device_) +
                               "; copy it first with .to(pl::Device::cpu())");
  if (!dense_)
    throw CompileError(at, "values: the array has gaps: shape " + to_string(shape_) + ", strides " +
                               list(strides_, rank()));
}

Array Array::reshape(const Shape& shape, Location at) const {
  if (!*this) throw CompileError(at, "reshape: there is no array");
  if (!dense_)
    throw CompileError(at, "reshape: the array has gaps: shape " + to_string(shape_) +
                               ", strides " + list(strides_, rank()));
  if (storage_) storage_->retain();
  Array a = of_storage(storage_, data_, shape, dtype_, device_, {.read_only = read_only_}, at);
  if (a.size_ != size_)
    throw CompileError(at, "reshape: " + to_string(shape_) + " has " + std::to_string(size_) +
                               " elements, " + to_string(shape) + " has " +
                               std::to_string(a.size_));
  return a;
}

Array::Bytes Array::bytes() const {
  if (size_ == 0) return {};
  std::int64_t low = 0, high = 0;
  for (int i = 0; i < rank(); ++i) {
    const std::int64_t reach = (shape_[i].value() - 1) * strides_[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto* first = static_cast<const std::byte*>(data_);
  return {first + dtype_.bytes_of(low), first + dtype_.bytes_of(high + 1)};
}

}  // namespace palladium
