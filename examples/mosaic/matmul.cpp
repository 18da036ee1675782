// Multiplies two matrices by the kernel beside this file and compares with plain loops.
#include "examples/mosaic/matmul.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

pl::Array waves(std::int64_t rows, std::int64_t columns, float step) {
  const pl::Array a = pl::Array::empty({rows, columns}, pl::f32);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = std::sin(step * static_cast<float>(i));
  return a.astype(pl::f16);
}

}  // namespace

int main() try {
  const std::int64_t m = 128, n = 256, k = 320;
  const pl::Array a = waves(m, k, 0.5f), b = waves(k, n, 0.3f);
  const pl::Device device = pl::default_device();
  const pl::Array c =
      mosaic::matmul()(a.to(device), b.to(device)).to(pl::Device::cpu()).astype(pl::f32);

  const pl::Array x = a.astype(pl::f32), y = b.astype(pl::f32);
  double error = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += double(x.data<float>()[i * k + p]) * y.data<float>()[p * n + j];
      error = std::max(error, std::abs(sum - c.data<float>()[i * n + j]));
    }
  std::printf("matmul: %s on %s, largest error %.2g\n", pl::to_string(c.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error < 1e-2 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
