#include "codegen/lowered/storage.hpp"

#include <algorithm>
#include <string>

#include "palladium/error.hpp"

namespace palladium::lowered {
namespace {

template <class In, class Of>
auto& lives_in(Of& variant, const char* where) {
  if (auto* const in = std::get_if<In>(&variant)) return *in;
  throw InternalError(std::string("lowered: a storage that is asked how it lies in ") + where +
                      " does not live there");
}

}  // namespace

Registers& Storage::registers() { return lives_in<Registers>(in, "registers"); }
const Registers& Storage::registers() const { return lives_in<Registers>(in, "registers"); }
Shared& Storage::shared() { return lives_in<Shared>(in, "shared memory"); }
const Shared& Storage::shared() const { return lives_in<Shared>(in, "shared memory"); }

std::int64_t shared_alignment(const Storage& s) {
  return std::max<std::int64_t>(s.shared().alignment, 8 * s.shared().swizzle);
}

Checked shared_bytes(const Storage& s) {
  Checked elements = checked_product(s.shape);
  const std::int64_t stride = s.shared().row_stride;
  if (stride > 0 && !s.shape.empty())
    elements = elements / std::max<std::int64_t>(1, s.shape.back()) * stride;
  return checked_align_up(elements * s.dtype.bytes(), shared_alignment(s));
}

int swizzle_of(std::int64_t row_bytes) {
  for (const int bytes : {128, 64, 32})
    if (row_bytes % bytes == 0) return bytes;
  return 0;
}

}  // namespace palladium::lowered
