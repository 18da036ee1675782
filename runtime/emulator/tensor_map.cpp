#include "runtime/emulator/tensor_map.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/emulator/emulator.hpp"

namespace palladium::emulator {
namespace {

constexpr std::uint32_t magic = 0x50414c4d;

/// The spec, packed.
struct Image {
  std::uint32_t magic;
  std::uint8_t type, rank, nan_fill, unused;
  void* base;
  std::uint64_t extents[5], strides[4];
  std::uint16_t box[5], element_strides[5];
  std::uint16_t swizzle, l2_promotion;
};
static_assert(sizeof(Image) <= sizeof(TensorMap));

// The types of cp.reduce.async.bulk.tensor.
std::span<const TensorMapType> reducible(abi::Reduction how) {
  using enum TensorMapType;
  constexpr static TensorMapType sums[] = {u32, i32, u64, f32, f16, bf16},
                                 ordered[] = {u32, i32, u64, i64, f16, bf16},
                                 bits[] = {u32, i32, u64, i64}, counters[] = {u32};
  switch (how) {
  case abi::Reduction::none: return {};
  case abi::Reduction::add: return sums;
  case abi::Reduction::min:
  case abi::Reduction::max: return ordered;
  case abi::Reduction::bit_and:
  case abi::Reduction::bit_or:
  case abi::Reduction::bit_xor: return bits;
  case abi::Reduction::inc:
  case abi::Reduction::dec: return counters;
  }
  return {};
}

// What the emulator does not do.
std::string lack(const TensorMapSpec& spec) {
  switch (spec.type) {
  case TensorMapType::f32_ftz:
  case TensorMapType::tf32_ftz: return "tensor maps that flush subnormals";
  default: break;
  }
  for (int d = 0; d < spec.rank; ++d) {
    if (spec.element_strides[d] != 1) return "tensor maps with element strides";
  }
  if (spec.swizzle != 0 && row_bytes(spec) != static_cast<std::uint32_t>(spec.swizzle)) {
    return fmt::format("boxes whose rows of {} bytes do not fill the swizzle's {}", row_bytes(spec),
                       spec.swizzle);
  }
  return {};
}

}  // namespace

TensorMap encode(const TensorMapSpec& spec) {
  if (const std::string problem = problem_of(spec); !problem.empty()) {
    throw CompileError("tensor map: " + problem);
  }
  if (const std::string missing = lack(spec); !missing.empty()) {
    throw CompileError("the emulator lacks " + missing);
  }
  Image image = {};
  image.magic = magic;
  image.type = static_cast<std::uint8_t>(spec.type);
  image.rank = static_cast<std::uint8_t>(spec.rank);
  image.nan_fill = spec.nan_fill;
  image.base = spec.base;
  for (int d = 0; d < spec.rank; ++d) {
    image.extents[d] = spec.extents[d];
    image.box[d] = static_cast<std::uint16_t>(spec.box[d]);
    image.element_strides[d] = static_cast<std::uint16_t>(spec.element_strides[d]);
    if (d > 0) image.strides[d - 1] = spec.strides[d - 1];
  }
  image.swizzle = static_cast<std::uint16_t>(spec.swizzle);
  image.l2_promotion = static_cast<std::uint16_t>(spec.l2_promotion);
  TensorMap map;
  std::memcpy(map.opaque.data(), &image, sizeof image);
  return map;
}

bool decode(const void* map, TensorMapSpec& spec) {
  Image image;
  std::memcpy(&image, map, sizeof image);
  if (image.magic != magic) return false;
  spec.type = static_cast<TensorMapType>(image.type);
  spec.rank = image.rank;
  spec.base = image.base;
  for (int d = 0; d < 5; ++d) {
    spec.extents[d] = image.extents[d];
    spec.box[d] = image.box[d];
    spec.element_strides[d] = image.element_strides[d];
    if (d > 0) spec.strides[d - 1] = image.strides[d - 1];
  }
  spec.swizzle = image.swizzle;
  spec.l2_promotion = image.l2_promotion;
  spec.nan_fill = image.nan_fill;
  return true;
}

abi::Format format_of(TensorMapType type) {
  switch (type) {
  case TensorMapType::u32: return abi::Format::u32;
  case TensorMapType::i32: return abi::Format::i32;
  case TensorMapType::u64: return abi::Format::u64;
  case TensorMapType::i64: return abi::Format::i64;
  case TensorMapType::f16: return abi::Format::f16;
  case TensorMapType::f32: return abi::Format::f32;
  case TensorMapType::f64: return abi::Format::f64;
  case TensorMapType::bf16: return abi::Format::bf16;
  default: return abi::Format::u8;
  }
}

const char* name(abi::Reduction how) {
  constexpr const char* names[] = {"none", "add", "min", "max", "and", "or", "xor", "inc", "dec"};
  return names[static_cast<int>(how)];
}

bool is_reducible(TensorMapType type, abi::Reduction how) {
  return how == abi::Reduction::none || std::ranges::count(reducible(how), type) != 0;
}

std::string types_of(abi::Reduction how) {
  std::string text;
  for (const TensorMapType type : reducible(how)) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name(type));
  }
  return fmt::format("{} of {}", name(how), text);
}

std::uint32_t row_bytes(const TensorMapSpec& spec) {
  return spec.box[0] * static_cast<std::uint32_t>(bytes_of(spec.type));
}

std::uint32_t box_bytes(const TensorMapSpec& spec) {
  std::uint32_t bytes = row_bytes(spec);
  for (int d = 1; d < spec.rank; ++d) bytes *= spec.box[d];
  return bytes;
}

TensorMapSpec as_written(TensorMapSpec spec) {
  const std::uint64_t together = 16 / bytes_of(spec.type);
  spec.extents[0] = (spec.extents[0] + together - 1) / together * together;
  return spec;
}

Extent extent_of(const TensorMapSpec& spec, const std::array<int, 5>& at) {
  const std::uint64_t element = bytes_of(spec.type);
  std::uint64_t begin = 0, last = 0;  // the last element's
  for (int d = 0; d < spec.rank; ++d) {
    const std::int64_t low = std::max(at[d], 0);
    const std::int64_t high =
        std::min(at[d] + std::int64_t{spec.box[d]}, static_cast<std::int64_t>(spec.extents[d]));
    if (low >= high) return {};
    const std::uint64_t stride = d == 0 ? element : spec.strides[d - 1];
    begin += static_cast<std::uint64_t>(low) * stride;
    last += static_cast<std::uint64_t>(high - 1) * stride;
  }
  return {reinterpret_cast<std::uintptr_t>(spec.base) + begin, last + element - begin};
}

}  // namespace palladium::emulator
