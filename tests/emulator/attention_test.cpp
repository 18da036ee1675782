// The shipped attention against plain C++, on every target.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/ops/attention.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using test::for_each_target;
using test::make_array;
using test::on;
using test::on_cpu;

namespace {

struct Sizes {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, d = 16;
};

Array random_floats(const Shape& shape, DType t, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  return make_array<float>(shape, [&](auto) { return normal(random); }).astype(t);
}

// One row of the result, in doubles.
std::vector<double> expected(const Sizes& s, const float* q, const float* k, const float* v,
                             std::int64_t seen, double scale) {
  std::vector<double> scores, row(static_cast<std::size_t>(s.d));
  for (std::int64_t j = 0; j < seen; ++j) {
    double sum = 0;
    for (std::int64_t l = 0; l < s.d; ++l) sum += static_cast<double>(q[l]) * k[j * s.d + l];
    scores.push_back(sum * scale);
  }
  const double top = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    const double p = std::exp(scores[static_cast<std::size_t>(j)] - top);
    total += p;
    for (std::int64_t l = 0; l < s.d; ++l) row[static_cast<std::size_t>(l)] += p * v[j * s.d + l];
  }
  for (double& x : row) x /= total;
  return row;
}

double largest_error(const Sizes& s, const Array& q, const Array& k, const Array& v, const Array& o,
                     const ops::AttentionOptions& options) {
  const Array fq = q.astype(f32), fk = k.astype(f32), fv = v.astype(f32), fo = o.astype(f32);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(s.d)));
  double error = 0;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::int64_t row = ((b * s.heads + h) * s.queries + i) * s.d;
        const std::int64_t kv = (b * s.kv_heads + h * s.kv_heads / s.heads) * s.keys * s.d;
        const std::int64_t seen = options.causal ? i + 1 + s.keys - s.queries : s.keys;
        const std::vector<double> wanted = expected(
            s, fq.data<float>() + row, fk.data<float>() + kv, fv.data<float>() + kv, seen, scale);
        for (std::int64_t l = 0; l < s.d; ++l)
          error = std::max(
              error, std::abs(fo.data<float>()[row + l] - wanted[static_cast<std::size_t>(l)]));
      }
  return error;
}

void check(const Sizes& s, DType t, const ops::AttentionOptions& options) {
  const Kernel attention = ops::attention(options);
  const Array q = random_floats({s.batch, s.heads, s.queries, s.d}, t, 1),
              k = random_floats({s.batch, s.kv_heads, s.keys, s.d}, t, 2),
              v = random_floats({s.batch, s.kv_heads, s.keys, s.d}, t, 3);
  INFO(t.name() << " " << s.heads << " heads of " << s.queries << " queries, " << s.kv_heads
                << " of " << s.keys << " keys, d " << s.d << ", causal " << options.causal);
  for_each_target("attention", [&](Target target) {
    const Array o = on_cpu(attention.on(target)(on(target, q), on(target, k), on(target, v)));
    // The probabilities and the result are rounded once each.
    const double bound = t == f32 ? 2e-6 : t == f16 ? 4e-3 : 3e-2;
    CHECK(largest_error(s, q, k, v, o, options) < bound);
  });
}

}  // namespace

TEST_CASE("attention is the mean of values by the softmax of scores, for any length") {
  check({.queries = 1, .keys = 1}, f16, {});
  check({.queries = 70, .keys = 150, .d = 32}, f16, {});
  check({.queries = 130, .keys = 129, .d = 64}, bf16, {.scale = 0.3});
  check({.queries = 65, .keys = 70}, f32, {});
}

TEST_CASE("causal attention sees no key behind the query's own, counted from the last") {
  check({.queries = 140, .keys = 140, .d = 64}, f16, {.causal = true});
  check({.queries = 50, .keys = 133, .d = 32}, bf16, {.causal = true});
  check({.queries = 67, .keys = 80}, f32, {.causal = true});
}

TEST_CASE("several heads of queries attend to one of keys") {
  check({.batch = 2, .heads = 4, .kv_heads = 2, .queries = 20, .keys = 30}, f16, {.causal = true});
}
