// References to arrays that kernels read and write in place.
#pragma once

#include <initializer_list>
#include <utility>

#include "palladium/array.hpp"
#include "palladium/ref.hpp"

namespace palladium {

/// Memory of an array that kernels change: the array of the caller sees it. Passed to a pl::kernel
/// it is one Ref of the body, read and written; captured by the body's lambda, by value, it is a
/// Ref there without being passed. A handle, cheap to copy.
class PALLADIUM_API ArrayRef {
 public:
  const Array& array() const { return array_; }
  const Shape& shape() const { return array_.shape(); }
  DType dtype() const { return array_.dtype(); }

  // On the host, views of a part: int, pl::ds, _, pl::ellipsis; numbers only.
  ArrayRef at(std::initializer_list<Idx> subscript, Location at = here()) const;
  template <IdxLike T>
  ArrayRef at(T&& index, Location at = here()) const {
    return this->at({Idx(std::forward<T>(index))}, at);
  }
  ArrayRef reshape(Shape shape, Location at = here()) const;  ///< one dimension may be -1

  // In a body that captured it.
  /// The Ref that it is there; CompileError elsewhere.
  Ref ref(Location at = here()) const;
  operator Ref() const { return ref({}); }
  Slot&& operator[](Subscript&& subscript) const { return ref({})[std::move(subscript)]; }

 private:
  friend PALLADIUM_API ArrayRef new_ref(const Array& array, Location at);
  explicit ArrayRef(Array array) : array_(std::move(array)) {}
  Array array_;
};

/// CompileError for an array that cannot be written.
PALLADIUM_API ArrayRef new_ref(const Array& array, Location at = here());

}  // namespace palladium
