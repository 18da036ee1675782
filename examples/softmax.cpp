// Softmax along the rows of a matrix with the shipped kernel, compared with plain loops. One kernel
// serves any number of rows.
//
//   softmax [X.npy]      a matrix of f32; without, one of 100 rows and 1000 columns
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"

namespace {

pl::Array waves(std::int64_t rows, std::int64_t columns) {
  const pl::Array a = pl::Array::empty({rows, columns}, pl::f32);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = 4 * std::sin(0.7f * static_cast<float>(i));
  return a;
}

double largest_error(const pl::Array& x, const pl::Array& y) {
  const std::int64_t columns = x.shape()[1];
  double error = 0;
  for (std::int64_t row = 0; row < x.shape()[0]; ++row) {
    const float *in = x.data<float>() + row * columns, *out = y.data<float>() + row * columns;
    const double top = *std::max_element(in, in + columns);
    double sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += std::exp(in[i] - top);
    for (std::int64_t i = 0; i < columns; ++i)
      error = std::max(error, std::abs(out[i] - std::exp(in[i] - top) / sum));
  }
  return error;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 2) return std::fprintf(stderr, "softmax [X.npy]\n"), 2;
  const pl::Array x = argc == 2 ? pl::load_npy(argv[1]) : waves(100, 1000);

  const pl::Kernel softmax = pl::ops::softmax();
  const pl::Array y = softmax(x.to(pl::default_device()));

  const double error = largest_error(x, y.to(pl::Device::cpu()));
  std::printf("softmax: %s on %s, largest error %.2g\n", pl::to_string(y.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error < 1e-6 ? 0 : 1;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
