// References to arrays: views of them on the host, and what they are in a body.
#include "palladium/array_ref.hpp"

#include "codegen/base/storage.hpp"
#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"

namespace palladium {
namespace {

using detail::Access;
using trace::Recorder;

/// A view of the elements from `offset` on.
Array view_of(const Array& array, std::int64_t offset, const Shape& shape,
              const std::vector<std::int64_t>& strides, Location at) {
  if (array.dtype().is_packed() && offset % 2 != 0)
    throw CompileError(at, "at: two elements of " + to_string(array.type()) +
                               " share a byte, and a view begins with the first of both");
  detail::Storage* const storage = array.storage();
  if (storage) storage->retain();
  const Device device = array.device();
  return Array::of_storage(
      storage, static_cast<std::byte*>(array.data()) + array.dtype().bytes_of(offset), shape,
      array.dtype(), device, {.strides = strides, .device = &device}, at);
}

std::int64_t number_of(const Value& start, Location at) {
  if (!trace::is_literal(start))
    throw CompileError(at,
                       "at: a view that is made on the host takes numbers; in a body write "
                       "pl::Ref(x).at({i})");
  if (!trace::literal(start).is_integer())
    throw CompileError(at, "at: an index must be an integer");
  return trace::literal(start).integer;
}

}  // namespace

ArrayRef new_ref(const Array& array, Location at) {
  if (!array) throw CompileError(at, "new_ref: there is no array");
  if (array.is_read_only())
    throw CompileError(at, "new_ref: the array is read-only, a Ref is written");
  for (int d = 0; d < array.rank(); ++d)
    if (array.stride(d) == 0 && array.shape()[d].value() > 1)
      throw CompileError(at,
                         "new_ref: the array has stride 0: several of its elements share one "
                         "place");
  return ArrayRef(array);
}

ArrayRef ArrayRef::at(std::initializer_list<Idx> subscript, Location at) const {
  const int rank = array_.rank();
  int named = 0;
  for (const Idx& i : subscript) named += Access::kind(i) != Access::IndexKind::ellipsis;
  if (static_cast<int>(subscript.size()) - named > 1)
    throw CompileError(at, "at: only one ellipsis is supported");
  if (named > rank)
    throw CompileError(at, "at: " + std::to_string(named) + " indices for " +
                               to_string(array_.type()) + ", which has " + std::to_string(rank) +
                               " dimensions");
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  int d = 0;
  const auto keep = [&](std::int64_t size, std::int64_t stride) {
    shape.push_back(size);
    strides.push_back(array_.stride(d) * stride);
    ++d;
  };
  for (const Idx& i : subscript) {
    const Access::IndexKind kind = Access::kind(i);
    if (kind == Access::IndexKind::ellipsis) {
      for (int n = rank - named; n > 0; --n) keep(array_.shape()[d].value(), 1);
      continue;
    }
    const std::int64_t extent = array_.shape()[d].value();
    if (kind == Access::IndexKind::all) {
      keep(extent, 1);
      continue;
    }
    const bool is_slice = kind == Access::IndexKind::slice;
    const std::int64_t start = number_of(Access::start(i), at);
    const std::int64_t size = is_slice ? Access::size(i) : 1;
    const std::int64_t step = is_slice ? Access::stride(i) : 1;
    if (size < 1 || step < 1 || start < 0 || start >= extent ||
        size - 1 > (extent - 1 - start) / step)
      throw CompileError(
          at, std::string("at: ") +
                  (is_slice ? "slice of start " + std::to_string(start) + ", size " +
                                  std::to_string(size) + ", stride " + std::to_string(step)
                            : "index " + std::to_string(start)) +
                  " is out of bounds for dimension " + std::to_string(d) + " of " +
                  to_string(array_.type()));
    offset += start * array_.stride(d);
    if (is_slice)
      keep(size, step);
    else
      ++d;
  }
  while (d < rank) keep(array_.shape()[d].value(), 1);
  return ArrayRef(view_of(array_, offset, shape, strides, at));
}

ArrayRef ArrayRef::reshape(Shape shape, Location at) const {
  return ArrayRef(
      array_.reshape(trace::to_shape(trace::completed(shape, array_.size(), "reshape", at)), at));
}

Ref ArrayRef::ref(Location at) const {
  Recorder& recorder = Recorder::current("an ArrayRef", at);
  return recorder.ref(recorder.capture(array_, at));
}

}  // namespace palladium
