// Causal attention of four heads of queries to two of keys with the shipped kernel, compared with
// plain loops. One kernel serves any batch.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "palladium/ops/attention.hpp"
#include "palladium/palladium.hpp"

namespace {

constexpr std::int64_t batch = 2, heads = 4, kv_heads = 2, queries = 70, keys = 90, d = 32;

pl::Array waves(const pl::Shape& shape, float step) {
  return pl::Array::from_function(
      shape, pl::f16, [=](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t l) {
        return 2 * std::sin(step * static_cast<float>(l + 37 * i + 101 * h + 211 * b));
      });
}

// Row i of the result, of the keys that it sees.
std::vector<double> attended(const float* q, const float* k, const float* v, std::int64_t seen) {
  std::vector<double> weights, row(d);
  double top = -INFINITY, total = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (std::int64_t l = 0; l < d; ++l) score += static_cast<double>(q[l]) * k[j * d + l];
    weights.push_back(score / std::sqrt(static_cast<double>(d)));
    top = std::max(top, weights.back());
  }
  for (double& w : weights) total += w = std::exp(w - top);
  for (std::int64_t j = 0; j < seen; ++j)
    for (std::int64_t l = 0; l < d; ++l)
      row[static_cast<std::size_t>(l)] +=
          weights[static_cast<std::size_t>(j)] / total * v[j * d + l];
  return row;
}

}  // namespace

int main() try {
  const pl::Array q = waves({batch, heads, queries, d}, 0.7f),
                  k = waves({batch, kv_heads, keys, d}, 0.3f),
                  v = waves({batch, kv_heads, keys, d}, 0.9f);
  const pl::Kernel attention = pl::ops::attention({.causal = true});
  const pl::Device device = pl::default_device();
  const pl::Array result = attention(q.to(device), k.to(device), v.to(device));
  const pl::Array o = result.to(pl::Device::cpu());

  const pl::Array fq = q.astype(pl::f32), fk = k.astype(pl::f32), fv = v.astype(pl::f32),
                  fo = o.astype(pl::f32);
  double error = 0;
  for (std::int64_t row = 0; row < batch * heads * queries; ++row) {
    const std::int64_t i = row % queries, head = row / queries;
    const std::int64_t kv =
        (head / heads * kv_heads + head % heads / (heads / kv_heads)) * keys * d;
    const auto expected = attended(fq.data<float>() + row * d, fk.data<float>() + kv,
                                   fv.data<float>() + kv, i + 1 + keys - queries);
    for (std::int64_t l = 0; l < d; ++l)
      error = std::max(
          error, std::abs(fo.data<float>()[row * d + l] - expected[static_cast<std::size_t>(l)]));
  }
  std::printf("attention: %s on %s, largest error %.2g\n", pl::to_string(o.type()).c_str(),
              pl::to_string(pl::default_target()), error);
  return error < 4e-3 ? 0 : 1;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
