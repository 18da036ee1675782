// Multiplies bytes by floats by the kernel beside this file and compares with plain loops.
#include "examples/mosaic/mixed_matmul.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

int main() try {
  const std::int64_t m = 128, n = 128, k = 384;
  const pl::Array a = pl::Array::empty({m, k}, pl::i8), waves = pl::Array::empty({k, n}, pl::f32);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<std::int8_t>()[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
  for (std::int64_t i = 0; i < waves.size(); ++i)
    waves.data<float>()[i] = std::sin(0.3f * static_cast<float>(i));
  const pl::Array b = waves.astype(pl::f16), y = b.astype(pl::f32);
  const pl::Device device = pl::default_device();
  const pl::Array c =
      mosaic::mixed_matmul()(a.to(device), b.to(device)).to(pl::Device::cpu()).astype(pl::f32);

  double error = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += double(a.data<std::int8_t>()[i * k + p]) * y.data<float>()[p * n + j];
      error = std::max(error, std::abs(sum - c.data<float>()[i * n + j]) / 1000);
    }
  std::printf("mixed_matmul: %s on %s, largest error %.2g of 1000\n",
              pl::to_string(c.type()).c_str(), pl::to_string(pl::default_target()), error);
  return error < 1e-2 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
