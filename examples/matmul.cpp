// Multiplies two matrices block by block with the shipped kernel and compares with plain loops.
//
//   matmul [A.npy B.npy]      matrices of f32; without, some of 1000 x 700 and 700 x 300
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "palladium/ops/matmul.hpp"
#include "palladium/palladium.hpp"

namespace {

pl::Array waves(std::int64_t rows, std::int64_t columns, float step) {
  const pl::Array a = pl::Array::empty({rows, columns}, pl::f32);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = std::sin(step * static_cast<float>(i));
  return a;
}

/// Relative to the sums of the products' magnitudes.
double largest_error(const pl::Array& a, const pl::Array& b, const pl::Array& c) {
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  double error = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    std::vector<double> sums(n), magnitudes(n, 1e-30);
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j) {
        const double product = double(a.data<float>()[i * k + l]) * b.data<float>()[l * n + j];
        sums[j] += product;
        magnitudes[j] += std::abs(product);
      }
    for (std::int64_t j = 0; j < n; ++j)
      error = std::max(error, std::abs(c.data<float>()[i * n + j] - sums[j]) / magnitudes[j]);
  }
  return error;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 1 && argc != 3) return std::fprintf(stderr, "matmul [A.npy B.npy]\n"), 2;
  const pl::Array a = argc == 3 ? pl::load_npy(argv[1]) : waves(1000, 700, 0.5f);
  const pl::Array b = argc == 3 ? pl::load_npy(argv[2]) : waves(700, 300, 0.3f);

  const pl::Array c = pl::ops::matmul()(a.to(pl::default_device()), b.to(pl::default_device()));

  const double error = largest_error(a, b, c.to(pl::Device::cpu()));
  std::printf("matmul: %s on %s, largest error %.2g\n", pl::to_string(c.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error < 1e-5 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
