// Tensor maps as the emulator keeps them in their 128 bytes, and the walk over a box.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "codegen/base/tensor_map.hpp"
#include "runtime/emulator/host.hpp"

namespace palladium::emulator {

/// Whether `map` is one that encode() made; its spec in `spec`.
bool decode(const void* map, TensorMapSpec& spec);

/// The format of its elements, for reductions.
abi::Format format_of(TensorMapType type);

/// Which reductions TMA has: "add" and "u32, i32, u64, f32, f16 and bf16".
const char* name(abi::Reduction how);
std::string types_of(abi::Reduction how);
bool is_reducible(TensorMapType type, abi::Reduction how);

/// Bytes of a whole box, those out of bounds included, and of one row of it.
std::uint32_t box_bytes(const TensorMapSpec& spec);
std::uint32_t row_bytes(const TensorMapSpec& spec);

/// Where a shared address lies under a swizzle of 0, 32, 64 or 128 bytes: a function of the
/// absolute address, exchanging 16-byte chunks.
constexpr std::uint32_t swizzled(std::uint32_t address, int swizzle) {
  const std::uint32_t mask = swizzle == 128  ? 0x70
                             : swizzle == 64 ? 0x30
                             : swizzle == 32 ? 0x10
                                             : 0;
  return address ^ (address >> 3 & mask);
}

/// One row of a box: elements [first, last) of it lie inside the array, `data` is where its element
/// 0 would.
struct BoxRow {
  std::uint32_t offset;  // of the row in the box, in bytes
  std::uintptr_t data;
  std::uint32_t first, last;
};

/// From the first to the last byte that the box has inside the array; empty where it has none.
struct Extent {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};
Extent extent_of(const TensorMapSpec& spec, const std::array<int, 5>& at);

/// The map as stores and reductions take it: what they write of a row ends at a multiple of 16 bytes,
/// be it beyond the array's last element (measured on an H200).
TensorMapSpec as_written(TensorMapSpec spec);

/// Calls visit(BoxRow) for each row of the box whose first element has coordinates `at`.
template <class Visit>
void for_each_row(const TensorMapSpec& spec, const std::array<int, 5>& at, Visit visit) {
  std::uint32_t rows = 1;
  for (int d = 1; d < spec.rank; ++d) rows *= spec.box[d];
  std::array<std::uint32_t, 5> place = {};
  const std::int64_t width = spec.box[0], element = static_cast<std::int64_t>(bytes_of(spec.type));
  for (std::uint32_t r = 0; r < rows; ++r) {
    bool inside = true;
    std::int64_t from = at[0] * element;
    for (int d = 1; d < spec.rank; ++d) {
      const std::int64_t x = std::int64_t{at[d]} + place[d];
      inside = inside && x >= 0 && x < static_cast<std::int64_t>(spec.extents[d]);
      from += x * static_cast<std::int64_t>(spec.strides[d - 1]);
    }
    std::int64_t first = at[0] < 0 ? -std::int64_t{at[0]} : 0;
    std::int64_t last = static_cast<std::int64_t>(spec.extents[0]) - at[0];
    last = last < width ? last : width;
    if (!inside || last <= first) first = last = 0;
    visit(BoxRow{
        .offset = r * row_bytes(spec),
        .data = reinterpret_cast<std::uintptr_t>(spec.base) + static_cast<std::uintptr_t>(from),
        .first = static_cast<std::uint32_t>(first),
        .last = static_cast<std::uint32_t>(last)});
    for (int d = 1; d < spec.rank; ++d) {
      if (++place[d] < spec.box[d]) break;
      place[d] = 0;
    }
  }
}

}  // namespace palladium::emulator
