// The shipped attention against plain C++, on every target.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/ops/attention.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using test::for_each_target;
using test::for_seeds;
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
          error = test::worst_of(
              error, std::abs(fo.data<float>()[row + l] - wanted[static_cast<std::size_t>(l)]));
      }
  return error;
}

void check(const Sizes& s, const Array& q, const Array& k, const Array& v,
           const ops::AttentionOptions& options) {
  const Kernel attention = ops::attention(options);
  const DType t = q.dtype();
  INFO(t.name() << " " << s.heads << " heads of " << s.queries << " queries, " << s.kv_heads
                << " of " << s.keys << " keys, d " << s.d << ", causal " << options.causal);
  for_each_target("attention", [&](Target target) {
    const Array o = on_cpu(attention.on(target)(on(target, q), on(target, k), on(target, v)));
    // The probabilities and the result are rounded once each.
    const double bound = t == f32 ? 2e-6 : t == f16 ? 4e-3 : 3e-2;
    CHECK(largest_error(s, q, k, v, o, options) < bound);
  });
}

void check(const Sizes& s, DType t, const ops::AttentionOptions& options) {
  check(s, random_floats({s.batch, s.heads, s.queries, s.d}, t, 1),
        random_floats({s.batch, s.kv_heads, s.keys, s.d}, t, 2),
        random_floats({s.batch, s.kv_heads, s.keys, s.d}, t, 3), options);
}

}  // namespace

TEST_CASE("attention is the mean of values by the softmax of scores, for any length") {
  check({.queries = 1, .keys = 1}, f16, {});
  check({.queries = 70, .keys = 150, .d = 32}, f16, {});
  check({.queries = 130, .keys = 129, .d = 64}, bf16, {.scale = 0.3});
  check({.queries = 65, .keys = 70}, f32, {});
  check({.queries = 130, .keys = 140, .d = 256}, f16, {});
}

TEST_CASE("causal attention sees no key behind the query's own, counted from the last") {
  check({.queries = 140, .keys = 140, .d = 64}, f16, {.causal = true});
  check({.queries = 50, .keys = 133, .d = 32}, bf16, {.causal = true});
  check({.queries = 67, .keys = 80}, f32, {.causal = true});
}

TEST_CASE("attention is right where scores grow by less and by more than a maximum ignores") {
  const Sizes s{.queries = 130, .keys = 600, .d = 64};
  const Array q = make_array<float>({1, 1, s.queries, s.d},
                                    [&](std::int64_t i) {
                                      return i % s.d == 0 ? 1.f
                                                          : static_cast<float>(i * 37 % 64) / 1024;
                                    })
                      .astype(f16),
              v = random_floats({1, 1, s.keys, s.d}, f16, 3);
  // Of natural logarithms: 5.4 and 5.7 stand around a factor of 256.
  for (const float step : {0.f, 0.9f, 5.4f, 5.7f, 30.f, -5.4f, -5.7f})
    for (const bool causal : {false, true}) {
      INFO("by " << step << " in every block of keys");
      const Array k = make_array<float>({1, 1, s.keys, s.d}, [&](std::int64_t i) {
                        return i % s.d == 0 ? step * static_cast<float>(i / s.d / 128)
                                            : static_cast<float>(i * 53 % 64) / 256;
                      }).astype(f16);
      check(s, q, k, v, {.causal = causal, .scale = 1.0});
    }
}

TEST_CASE("attention of scores whose last place is more than a maximum ignores has no infinity") {
  const Sizes s{.queries = 16, .keys = 256, .d = 16};
  // 2^24 in the block that comes first, 2^24 + 2 in the other: times 8, they are 16 apart.
  const Array q = make_array<float>({1, 1, s.queries, s.d},
                                    [&](std::int64_t i) {
                                      return i % s.d == 0 ? 2048.f : i % s.d == 1 ? 2.f : 0.f;
                                    })
                      .astype(f16),
              v = random_floats({1, 1, s.keys, s.d}, f16, 3);
  for (const std::int64_t first : {0, 128})
    for (const double places : {8., 16., 4., 64.}) {
      INFO("keys from " << first << ", times " << places);
      const Array k = make_array<float>({1, 1, s.keys, s.d}, [&](std::int64_t i) {
                        const bool is_larger = i / s.d >= first && i / s.d < first + 128;
                        return i % s.d == 0 ? 8192.f : i % s.d == 1 && is_larger ? 1.f : 0.f;
                      }).astype(f16);
      check(s, q, k, v, {.scale = places / std::numbers::log2e});
    }
}

TEST_CASE("several heads of queries attend to one of keys") {
  check({.batch = 2, .heads = 4, .kv_heads = 2, .queries = 20, .keys = 30}, f16, {.causal = true});
}

TEST_CASE("attention over random lengths, heads and blocks of keys agrees") {
  for_seeds(40, 4, [](std::uint64_t seed) {
    test::Random random(seed);
    const bool causal = random.pick({false, true});
    const int kv_heads = random.between(1, 3), keys = random.between(1, 300);
    const int batch = random.between(0, 2), heads = kv_heads * random.between(1, 3);
    const int queries = random.between(0, causal ? keys : 200),
              d = 16 * random.between(1, random.chance(20) ? 16 : 8);
    const DType t = random.pick({f16, bf16});
    const int block_keys = 16 * random.between(0, 12);
    check({.batch = batch,
           .heads = heads,
           .kv_heads = kv_heads,
           .queries = queries,
           .keys = keys,
           .d = d},
          t, {.causal = causal, .block_keys = block_keys});
  });
}

TEST_CASE("arrays and options that attention does not take are refused by what is wrong") {
  const auto refused = [](const ShapeDtype& q, const ShapeDtype& k,
                          const ops::AttentionOptions& options, const std::string& why) {
    try {
      ops::attention(options).lower(q, k, k);
      FAIL("nothing was refused");
    } catch (const CompileError& error) {
      CHECK_THAT(error.what(), ContainsSubstring("attention: "));
      CHECK_THAT(error.what(), ContainsSubstring(why));
      CHECK_THAT(error.what(), ContainsSubstring("attention_test.cpp"));
    }
  };
  const auto of = [](std::int64_t heads, std::int64_t length, std::int64_t d, DType t = f16) {
    return ShapeDtype{{1, heads, length, d}, t};
  };
  refused(of(2, 8, 32, f64), of(2, 8, 32, f64), {}, "q is of f64; f16, bf16 or f32");
  refused(of(2, 8, 32), of(2, 8, 32, bf16), {}, "one dtype");
  for (const std::int64_t d : {0, 24, 272}) refused(of(2, 8, d), of(2, 8, d), {}, "one d, a mult");
  refused(of(2, 8, 32), of(2, 8, 16), {}, "one d, a multiple of 16 up to 256");
  refused(of(3, 8, 32), of(2, 8, 32), {}, "a number of heads that k's divides");
  refused(of(2, 8, 32), of(0, 8, 32), {}, "a number of heads that k's divides");
  refused(of(2, 8, 32), of(2, 7, 32), {.causal = true}, "causal queries have as many keys");
  for (const double scale : {0.0, -1.0, std::nan(""), HUGE_VAL})
    refused(of(2, 8, 32), of(2, 8, 32), {.scale = scale}, "a scale above 0 is needed, given ");
  for (const int n : {-16, 8, 272})
    refused(of(2, 8, 32), of(2, 8, 32), {.block_keys = n},
            "block_keys is " + std::to_string(n) + "; a multiple of 16 up to 256");
}
