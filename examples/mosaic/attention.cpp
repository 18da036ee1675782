// Runs the attention beside this file and compares with plain loops.
#include "examples/mosaic/attention.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

pl::Array waves(const pl::Shape& shape, float step) {
  const pl::Array a = pl::Array::empty(shape, pl::f32);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = std::sin(step * static_cast<float>(i));
  return a.astype(pl::f16);
}

}  // namespace

int main() try {
  const std::int64_t heads = 2, queries = 128, keys = 256, d = 64;
  const pl::Array q = waves({heads, queries, d}, 0.5f), k = waves({heads, keys, d}, 0.3f),
                  v = waves({heads, keys, d}, 0.7f);
  const pl::Device device = pl::default_device();
  const pl::Array o = mosaic::attention()(q.to(device), k.to(device), v.to(device))
                          .to(pl::Device::cpu())
                          .astype(pl::f32);

  const pl::Array fq = q.astype(pl::f32), fk = k.astype(pl::f32), fv = v.astype(pl::f32);
  double error = 0;
  for (std::int64_t row = 0; row < heads * queries; ++row) {
    const std::int64_t head = row / queries;
    std::vector<double> p(static_cast<std::size_t>(keys));
    double sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      double dot = 0;
      for (std::int64_t x = 0; x < d; ++x)
        dot += double(fq.data<float>()[row * d + x]) * fk.data<float>()[(head * keys + j) * d + x];
      sum += p[static_cast<std::size_t>(j)] = std::exp(dot / std::sqrt(double(d)));
    }
    for (std::int64_t x = 0; x < d; ++x) {
      double mean = 0;
      for (std::int64_t j = 0; j < keys; ++j)
        mean += p[static_cast<std::size_t>(j)] / sum * fv.data<float>()[(head * keys + j) * d + x];
      error = std::max(error, std::abs(mean - o.data<float>()[row * d + x]));
    }
  }
  std::printf("attention: %s on %s, largest error %.2g\n", pl::to_string(o.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error < 1e-2 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
