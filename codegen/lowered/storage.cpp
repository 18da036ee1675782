#include "codegen/lowered/storage.hpp"

#include <algorithm>

namespace palladium::lowered {

std::int64_t shared_alignment(const Storage& s) {
  return std::max<std::int64_t>(s.alignment, 8 * s.swizzle);
}

Checked shared_bytes(const Storage& s) {
  Checked elements = checked_product(s.shape);
  if (s.row_stride > 0 && !s.shape.empty())
    elements = elements / std::max<std::int64_t>(1, s.shape.back()) * s.row_stride;
  return checked_align_up(elements * s.dtype.bytes(), shared_alignment(s));
}

int swizzle_of(std::int64_t row_bytes) {
  for (const int bytes : {128, 64, 32})
    if (row_bytes % bytes == 0) return bytes;
  return 0;
}

}  // namespace palladium::lowered
