// The softmax of the rows of a matrix, by the kernel beside this file, compared with plain loops.
#include "examples/mosaic/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

int main() try {
  const std::int64_t rows = 8, columns = 4096;
  const pl::Array x = pl::Array::empty({rows, columns}, pl::f32);
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data<float>()[i] = 4.0f * std::sin(0.37f * static_cast<float>(i));
  const pl::Array o = mosaic::softmax()(x.to(pl::default_device())).to(pl::Device::cpu());

  double error = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *row = x.data<float>() + r * columns, *got = o.data<float>() + r * columns;
    const double largest = *std::max_element(row, row + columns);
    double sum = 0;
    for (std::int64_t c = 0; c < columns; ++c) sum += std::exp(row[c] - largest);
    for (std::int64_t c = 0; c < columns; ++c)
      error = std::max(error, std::abs(std::exp(row[c] - largest) / sum - got[c]));
  }
  std::printf("softmax: %s on %s, largest error %.2g\n", pl::to_string(o.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error < 1e-6 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
