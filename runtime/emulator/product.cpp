#include "runtime/emulator/product.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

namespace palladium::emulator {
namespace {

// Four rows by two vectors of accumulators stay in registers over all of k.
template <class Vector, class T>
[[gnu::always_inline]] inline void product(T* __restrict d, const T* __restrict a,
                                           const T* __restrict b, int m, int n, int k) {
  constexpr int width = sizeof(Vector) / sizeof(T), rows = 4;
  int column = 0;
  for (; column + 2 * width <= n; column += 2 * width) {
    for (int row = 0; row < m; row += rows) {
      Vector x[rows], y[rows];
#pragma GCC unroll 4
      for (int i = 0; i < rows; ++i) {
        std::memcpy(&x[i], &d[(row + i) * n + column], sizeof(Vector));
        std::memcpy(&y[i], &d[(row + i) * n + column + width], sizeof(Vector));
      }
      for (int j = 0; j < k; ++j) {
        Vector u, v;
        std::memcpy(&u, &b[j * n + column], sizeof(Vector));
        std::memcpy(&v, &b[j * n + column + width], sizeof(Vector));
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
          const T scale = a[(row + i) * k + j];
          x[i] += u * scale;
          y[i] += v * scale;
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < rows; ++i) {
        std::memcpy(&d[(row + i) * n + column], &x[i], sizeof(Vector));
        std::memcpy(&d[(row + i) * n + column + width], &y[i], sizeof(Vector));
      }
    }
  }
  for (; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      T sum = d[row * n + column];
      for (int j = 0; j < k; ++j) sum += a[row * k + j] * b[j * n + column];
      d[row * n + column] = sum;
    }
  }
}

// Wraps, which signed arithmetic need not.
using Word = std::uint32_t;

typedef float Float4 __attribute__((vector_size(16)));
typedef Word Word4 __attribute__((vector_size(16)));

void narrow(float* d, const float* a, const float* b, int m, int n, int k) {
  product<Float4>(d, a, b, m, n, k);
}
void narrow(Word* d, const Word* a, const Word* b, int m, int n, int k) {
  product<Word4>(d, a, b, m, n, k);
}

#if defined(__x86_64__)
typedef float Float8 __attribute__((vector_size(32)));
typedef float Float16 __attribute__((vector_size(64)));

[[gnu::target("avx2,fma")]] void avx2(float* d, const float* a, const float* b, int m, int n,
                                      int k) {
  product<Float8>(d, a, b, m, n, k);
}
[[gnu::target("avx512f")]] void avx512(float* d, const float* a, const float* b, int m, int n,
                                       int k) {
  product<Float16>(d, a, b, m, n, k);
}
#endif

using ProductFunction = void (*)(float*, const float*, const float*, int, int, int);

ProductFunction best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2;
#endif
  return narrow;
}

}  // namespace

void multiply_add(float* d, const float* a, const float* b, int m, int n, int k) {
  static constinit std::atomic<ProductFunction> chosen = nullptr;
  ProductFunction product = chosen.load(std::memory_order_relaxed);
  if (product == nullptr) chosen.store(product = best(), std::memory_order_relaxed);
  product(d, a, b, m, n, k);
}

void multiply_add(std::int32_t* d, const std::int32_t* a, const std::int32_t* b, int m, int n,
                  int k) {
  narrow(reinterpret_cast<Word*>(d), reinterpret_cast<const Word*>(a),
         reinterpret_cast<const Word*>(b), m, n, k);
}

namespace {

// 2^n, for n of normal numbers.
float power_of_two(int n) { return std::bit_cast<float>((n + 127) << 23); }

// One element: what lies below 2^-bits of the power of two in the greatest term is lost of each.
float aligned_sum(float sum, const float* terms, int count, int bits) {
  float most = std::abs(sum), plain = sum;
  for (int j = 0; j < count; ++j) {
    most = std::max(most, std::abs(terms[j]));
    plain += terms[j];
  }
  constexpr int least = -126, exponent_bits = 23, bias = 127;
  const int exponent = static_cast<int>(std::bit_cast<std::uint32_t>(most) >> exponent_bits) - bias;
  // Inf and NaN, of which max knows nothing; numbers as small as no product is.
  if (!std::isfinite(plain) || exponent - bits < least) return plain;
  const float up = power_of_two(bits - exponent), down = power_of_two(exponent - bits);
  auto all = static_cast<std::int32_t>(sum * up);
  for (int j = 0; j < count; ++j) all += static_cast<std::int32_t>(terms[j] * up);
  return static_cast<float>(all) * down;
}

}  // namespace

void multiply_add_aligned(float* d, const float* a, int a_step, const float* b, int m, int n, int k,
                          int bits) {
  constexpr int most = 32;
  float terms[most];
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      for (int j = 0; j < k; ++j) terms[j] = a[row * a_step + j] * b[j * n + column];
      d[row * n + column] = aligned_sum(d[row * n + column], terms, k, bits);
    }
}

}  // namespace palladium::emulator
