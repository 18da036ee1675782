// The losses of a small classifier, layer by layer with the shipped kernels: rms_norm, a product
// with bias and gelu, layer_norm, a product with weights that are stored transposed, cross_entropy.
// Compared with plain loops.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "palladium/ops/cross_entropy.hpp"
#include "palladium/ops/layer_norm.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/rms_norm.hpp"
#include "palladium/ops/transpose.hpp"
#include "palladium/palladium.hpp"

namespace {

constexpr int rows = 50, inputs = 96, hidden = 200, classes = 10;

struct Layers {
  pl::Array x, scale, w0, b0, weight, bias, w1, labels;
};

pl::Array waves(const pl::Shape& shape, float step) {
  const pl::Array a = pl::Array::empty(shape, pl::f32);
  float at = 0;
  for (float& element : a.values<float>()) element = std::sin(at += step);
  return a;
}

Layers layers() {
  const pl::Array labels = pl::Array::empty({rows}, pl::i32);
  int next = 0;
  for (std::int32_t& label : labels.values<std::int32_t>()) label = next++ * 7 % classes;
  labels.data<std::int32_t>()[3] = -100;  // ignored
  return {waves({rows, inputs}, 0.7f),    waves({inputs}, 0.3f),
          waves({inputs, hidden}, 0.9f),  waves({hidden}, 0.2f),
          waves({hidden}, 0.4f),          waves({hidden}, 0.6f),
          waves({classes, hidden}, 0.8f), labels};
}

pl::Array losses(const Layers& l) {
  const auto there = [](const pl::Array& a) { return a.to(pl::default_device()); };
  const pl::Kernel product =
      pl::ops::matmul({.bias = true, .activation = pl::ops::Activation::gelu});
  const pl::Array x = pl::ops::rms_norm()(there(l.x), there(l.scale));
  const pl::Array y = product(x, there(l.w0), there(l.b0));
  const pl::Array z = pl::ops::layer_norm()(y, there(l.weight), there(l.bias));
  const pl::Array w = pl::ops::transpose()(there(l.w1));
  const pl::Array logits = pl::ops::matmul()(z, w);
  return pl::Array(pl::ops::cross_entropy()(logits, there(l.labels))).to(pl::Device::cpu());
}

double gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

double plain_loss(const Layers& l, int row) {
  const int label = l.labels.data<std::int32_t>()[row];
  if (label < 0) return 0;
  const auto at = [](const pl::Array& a, int i) { return double(a.data<float>()[i]); };
  double squares = 0, mean = 0, variance = 0, total = 0;
  for (int i = 0; i < inputs; ++i) squares += std::pow(at(l.x, row * inputs + i), 2) / inputs;
  std::vector<double> y(hidden), logits(classes);
  for (int j = 0; j < hidden; ++j) {
    double sum = at(l.b0, j);
    for (int i = 0; i < inputs; ++i)
      sum += at(l.x, row * inputs + i) / std::sqrt(squares + 1e-6) * at(l.scale, i) *
             at(l.w0, i * hidden + j);
    mean += (y[j] = gelu(sum)) / hidden;
  }
  for (const double v : y) variance += (v - mean) * (v - mean) / hidden;
  for (int c = 0; c < classes; ++c) {
    for (int j = 0; j < hidden; ++j)
      logits[c] += ((y[j] - mean) / std::sqrt(variance + 1e-5) * at(l.weight, j) + at(l.bias, j)) *
                   at(l.w1, c * hidden + j);
    total += std::exp(logits[c]);
  }
  return std::log(total) - logits[label];
}

}  // namespace

int main() try {
  const Layers l = layers();
  const pl::Array got = losses(l);
  double error = 0;
  for (int row = 0; row < rows; ++row)
    error = std::max(error, std::abs(got.data<float>()[row] - plain_loss(l, row)));
  std::printf("classifier: %s of losses on %s, largest error %.2g\n",
              pl::to_string(got.type()).c_str(), pl::to_string(pl::default_target()), error);
  return error < 1e-3 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
