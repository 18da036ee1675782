// Products of matrices of numbers, as fast as a CPU's vectors allow.
#pragma once

#include <cstdint>

namespace palladium::emulator {

/// d (m x n) += a (m x k) b (k x n), all row by row; n is a multiple of 8, m of 4. Each product is
/// added in order of k; products of 16-bit and narrower operands are exact in f32, so that fused or
/// not makes no difference.
void multiply_add(float* d, const float* a, const float* b, int m, int n, int k);
/// The same, wrapping.
void multiply_add(std::int32_t* d, const std::int32_t* a, const std::int32_t* b, int m, int n,
                  int k);

}  // namespace palladium::emulator
