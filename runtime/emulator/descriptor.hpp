// Matrix descriptors of wgmma: where the 16-byte chunks of an operand lie in shared memory.
#pragma once

#include <cstdint>

#include "runtime/emulator/tensor_map.hpp"

namespace palladium::emulator {

/// A decoded descriptor, in bytes.
struct MatrixDescriptor {
  std::uint32_t start = 0, leading = 0, stride = 0;
  int swizzle = 0;      // 0, 32, 64 or 128
  int base_offset = 0;  // other than 0 where the swizzle pattern does not begin on its boundary

  static MatrixDescriptor decode(std::uint64_t bits) {
    constexpr int swizzles[] = {0, 128, 64, 32};
    const auto field = [&](int at) { return static_cast<std::uint32_t>(bits >> at & 0x3fff) << 4; };
    return {.start = field(0),
            .leading = field(16),
            .stride = field(32),
            .swizzle = swizzles[bits >> 62],
            .base_offset = static_cast<int>(bits >> 49 & 7)};
  }

  /// 16-byte chunks in a row of the swizzle pattern.
  std::uint32_t width() const {
    return swizzle == 0 ? 1 : static_cast<std::uint32_t>(swizzle) / 16;
  }

  /// K-major: chunk `q` along k of row `r` (of m or n).
  std::uint32_t k_major(std::uint32_t r, std::uint32_t q) const {
    const std::uint32_t along = swizzle == 0 ? q * leading : q * 16;
    return swizzled(start + r % 8 * 16 * width() + r / 8 * stride + along, swizzle);
  }

  /// MN-major, elements of 2 bytes: chunk `c` (8 elements of m or n) at `k`. Without a swizzle the
  /// two strides change their roles.
  std::uint32_t mn_major(std::uint32_t c, std::uint32_t k) const {
    if (swizzle == 0) return start + c * stride + k % 8 * 16 + k / 8 * leading;
    const std::uint32_t w = width();
    return swizzled(start + c % w * 16 + c / w * leading + k % 8 * 16 * w + k / 8 * stride,
                    swizzle);
  }
};

}  // namespace palladium::emulator
