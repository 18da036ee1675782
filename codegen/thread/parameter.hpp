// What a kernel is called with.
#pragma once

#include <array>
#include <cstdint>

namespace palladium {

/// One entry of cuLaunchKernel's kernelParams, in order.
struct KernelParameter {
  enum class Kind : std::uint8_t {
    array,   // 8 bytes: device pointer of block mapping `index`'s array
    stride,  // 8 bytes: distance in elements along dimension `dimension` of that array (not dense)
    scalar,  // `bytes` bytes: scalar argument `index`
    symbol,  // 8 bytes: value of symbolic dimension `index`
    reciprocal,  // 8 bytes: f64, above_reciprocal() of that value as an f32
    tensor_map,  // 128 bytes: block mapping `index`'s array for TMA, in boxes of `box`
    debug,       // 8 bytes: device pointer of what the host is told (common/debug.cuh)
    profile,     // 8 bytes: device pointer of what it is told of scopes (common/profile.cuh)
  };
  Kind kind = Kind::array;
  int index = 0;
  int dimension = 0;
  int bytes = 8;
  std::array<std::int32_t, 5> box = {};  // tensor_map: elements per dimension of the array
  int swizzle = 0;                       // tensor_map: bytes
  bool tf32 = false;                     // tensor_map: elements of f32 are rounded to tf32
  bool operator==(const KernelParameter&) const = default;
};

}  // namespace palladium
