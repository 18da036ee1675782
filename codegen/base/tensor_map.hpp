// Tensor maps: what TMA is told of an array, and the rules that a map must keep.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace palladium {

/// CUtensorMapDataType, in its order and with its numbers.
enum class TensorMapType : std::uint8_t {
  u8,
  u16,
  u32,
  i32,
  u64,
  i64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz
};
std::size_t bytes_of(TensorMapType type);
/// "bf16"
const char* name(TensorMapType type);

/// The arguments of cuTensorMapEncodeTiled, innermost dimension first.
struct TensorMapSpec {
  TensorMapType type = TensorMapType::u8;
  int rank = 1;                               // 1..5
  void* base = nullptr;                       // a multiple of 16
  std::array<std::uint64_t, 5> extents = {};  // elements, 1..2^32
  std::array<std::uint64_t, 4> strides =
      {};                                 // bytes from dimension 1 on; multiples of 16, below 2^40
  std::array<std::uint32_t, 5> box = {};  // elements, 1..256
  std::array<std::uint32_t, 5> element_strides = {1, 1, 1, 1, 1};  // 1..8
  int swizzle = 0;        // bytes: 0, 32, 64 or 128; the box's inner row must fit in it
  int l2_promotion = 0;   // bytes: 0, 64, 128 or 256
  bool nan_fill = false;  // out of bounds: NaN instead of zero, floats only

  bool operator==(const TensorMapSpec&) const = default;
};

/// "2-d bf16 array of 4096 x 512 at 0x7f0000001000, stride 8192; box of 64 x 128, swizzle 128",
/// with what is not the default. For messages.
std::string describe(const TensorMapSpec& spec);

/// CUtensorMap: opaque to everybody but who made it.
struct alignas(128) TensorMap {
  std::array<std::byte, 128> opaque = {};
};

/// What is wrong with the map in a sentence that names dimension, given and allowed values; empty
/// if nothing is. The rules are those of cuTensorMapEncodeTiled's documentation.
std::string problem_of(const TensorMapSpec& spec);

}  // namespace palladium
