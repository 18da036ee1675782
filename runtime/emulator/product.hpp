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

/// As the tensor cores of sm_90 add up products of 8-bit floats, k of at most 32: of each term, and
/// of what d holds, all is lost below so many bits behind the leading one of the greatest of them.
/// Rows of a are `a_step` apart.
void multiply_add_aligned(float* d, const float* a, int a_step, const float* b, int m, int n, int k,
                          int bits);

}  // namespace palladium::emulator
