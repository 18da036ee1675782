// Ready kernels for arrays of any size: as many kernels as classes of sizes, and what a plain loop
// gives.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "palladium/ops/add.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/ops/blur.hpp"
#include "palladium/ops/cross_entropy.hpp"
#include "palladium/ops/layer_norm.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/rms_norm.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/ops/transpose.hpp"
#include "tests/emulator/random_sizes.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// Of the extent by which rows are apart: a power of two that it does not exceed, and whether rows
/// begin at multiples of 16 bytes.
using RowClass = std::pair<std::int64_t, bool>;
RowClass class_of(std::int64_t n, std::int64_t least, std::int64_t of_16_bytes) {
  return {size_class(n, least), n % of_16_bytes == 0};
}

bool are_near(double got, double expected) {
  return std::abs(got - expected) <= 2e-5 * std::max(1.0, std::abs(expected));
}

/// A kernel along rows: `expected` makes of a row what is to come of it.
template <class Call, class Expected>
void check_rows(const char* name, std::uint64_t seed, const Call& call, const Expected& expected) {
  for_each_target(name, [&](Target target) {
    RandomSizes drawn(seed);
    std::set<RowClass> classes;
    std::size_t kernels = 0;
    auto run = call();
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t n = drawn.next(0, 1500), m = drawn.below(9);
      const Array x = small_numbers({m, n}), w = small_numbers({n});
      classes.insert(class_of(n, 32, 4));
      const Array o = run(target, x, w, kernels);
      for (std::int64_t r = 0; r < m; ++r) {
        const std::vector<double> row(x.data<float>() + r * n, x.data<float>() + (r + 1) * n);
        for (std::int64_t j = 0; j < n; ++j) {
          INFO("row " << r << " of " << m << ", element " << j << " of " << n);
          REQUIRE(are_near(o.data<float>()[r * n + j], expected(row, j)));
        }
      }
    }
    CHECK(kernels <= classes.size());
  });
}

double mean_square(const std::vector<double>& row, double less = 0) {
  double sum = 0;
  for (const double x : row) sum += (x - less) * (x - less);
  return sum / static_cast<double>(row.size());
}

double weight(std::int64_t j) { return static_cast<double>((j * 7 + j / 5) % 13 - 6); }

}  // namespace

TEST_CASE("softmax and norms compile once for each class of row lengths") {
  check_rows(
      "softmax", 1,
      [] {
        return [k = CountedCalls(ops::softmax())](Target target, const Array& x, const Array&,
                                                  std::size_t& kernels) mutable {
          const Array o = k(target, x);
          kernels = k.kernels();
          return o;
        };
      },
      [](const std::vector<double>& row, std::int64_t j) {
        double all = 0;
        for (const double x : row) all += std::exp(x);
        return std::exp(row[static_cast<std::size_t>(j)]) / all;
      });
  check_rows(
      "rms_norm", 2,
      [] {
        return [k = CountedCalls(ops::rms_norm())](Target target, const Array& x, const Array& w,
                                                   std::size_t& kernels) mutable {
          const Array o = k(target, x, w);
          kernels = k.kernels();
          return o;
        };
      },
      [](const std::vector<double>& row, std::int64_t j) {
        return row[static_cast<std::size_t>(j)] / std::sqrt(mean_square(row) + 1e-6) * weight(j);
      });
  check_rows(
      "layer_norm", 3,
      [] {
        return [k = CountedCalls(ops::layer_norm())](Target target, const Array& x, const Array& w,
                                                     std::size_t& kernels) mutable {
          const Array o = k(target, x, w, w);
          kernels = k.kernels();
          return o;
        };
      },
      [](const std::vector<double>& row, std::int64_t j) {
        double mean = 0;
        for (const double x : row) mean += x;
        mean /= static_cast<double>(row.size());
        return (row[static_cast<std::size_t>(j)] - mean) /
                   std::sqrt(mean_square(row, mean) + 1e-5) * weight(j) +
               weight(j);
      });
}

TEST_CASE("cross entropy compiles once for each class of numbers of classes") {
  for_each_target("cross_entropy", [](Target target) {
    CountedCalls k(ops::cross_entropy());
    RandomSizes drawn(4);
    std::set<std::pair<RowClass, bool>> classes;
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t n = drawn.next(1, 1500), m = drawn.below(9);
      const Array x = small_numbers({m, n});
      const Array labels =
          make_array<std::int32_t>({m}, [&](std::int64_t) { return drawn.below(n); });
      classes.emplace(class_of(n, 32, 4), m % 4 == 0);  // of labels m is the row
      const Array o = k(target, x, labels);
      for (std::int64_t r = 0; r < m; ++r) {
        double all = 0;
        for (std::int64_t j = 0; j < n; ++j) all += std::exp(x.data<float>()[r * n + j]);
        const float own = x.data<float>()[r * n + labels.data<std::int32_t>()[r]];
        REQUIRE(are_near(o.data<float>()[r], std::log(all) - own));
      }
    }
    CHECK(k.kernels() <= classes.size());
  });
}

TEST_CASE("a product compiles once for each class of rows, columns and depths") {
  for (const DType t : {f32, f16})
    for_each_target(t == f32 ? "matmul" : "matmul_f16", [&](Target target) {
      CountedCalls k(ops::matmul());
      RandomSizes drawn(5);
      std::set<std::pair<RowClass, std::array<bool, 4>>> classes;
      for (int i = 0; i < RandomSizes::count(); ++i) {
        const std::int64_t depth = drawn.next(0, 150), m = drawn.below(160), n = drawn.below(160),
                           of_16_bytes = 16 / t.bytes();
        const Array a = small_numbers({m, depth}), b = small_numbers({depth, n});
        // Square results have one symbol; without elements nothing is filled in.
        classes.insert(
            {class_of(depth, 4096, of_16_bytes), {n % of_16_bytes == 0, m == n, m == 0, n == 0}});
        const Array o = k(target, a.astype(t), b.astype(t));
        for (std::int64_t e = 0; e < m * n; ++e) {
          float sum = 0;
          for (std::int64_t j = 0; j < depth; ++j)
            sum += a.data<float>()[e / n * depth + j] * b.data<float>()[j * n + e % n];
          REQUIRE(o.data<float>()[e] == sum);
        }
      }
      CHECK(k.kernels() <= classes.size());
    });
}

TEST_CASE("attention compiles once for each class of numbers of queries and keys") {
  constexpr std::int64_t heads = 2, d = 16;
  for (const auto& [name, t, causal] : {std::tuple{"attention", f32, false},
                                        {"causal_attention", f32, true},
                                        {"causal_attention_f16", f16, true}})
    for_each_target(name, [&, t = t, causal = causal](Target target) {
      CountedCalls k(ops::attention({.causal = causal}));
      RandomSizes drawn(6);
      std::set<std::array<bool, 3>> classes;
      for (int i = 0; i < RandomSizes::count(); ++i) {
        const std::int64_t keys = drawn.next(0, 150),
                           queries = drawn.below(causal ? keys + 1 : 100);
        const auto small = [](const Shape& shape) {
          return make_array<float>(shape,
                                   [](std::int64_t i) { return ((i * 7 + i / 5) % 13 - 6) / 8.0; });
        };
        const Array q = small({1, heads, queries, d}), key = small({1, 1, keys, d}),
                    v = small({1, 1, keys, d});
        classes.insert({queries % 4 == 0, keys % 4 == 0, keys == 0});
        const Array o = k(target, q.astype(t), key.astype(t), v.astype(t)).astype(f32);
        for (std::int64_t row = 0; row < heads * queries; ++row) {
          const std::int64_t seen = causal ? keys - queries + row % queries + 1 : keys;
          double all = 0, sums[d] = {};
          for (std::int64_t j = 0; j < seen; ++j) {
            double score = 0;
            for (std::int64_t e = 0; e < d; ++e)
              score += double(q.data<float>()[row * d + e]) * key.data<float>()[j * d + e];
            const double p = std::exp(score / std::sqrt(double(d)));
            all += p;
            for (std::int64_t e = 0; e < d; ++e) sums[e] += p * v.data<float>()[j * d + e];
          }
          for (std::int64_t e = 0; e < d; ++e) {
            const double expected = keys == 0 ? 0 : sums[e] / all,
                         got = o.data<float>()[row * d + e];
            REQUIRE((t == f32 ? are_near(got, expected) : std::abs(got - expected) < 2e-3));
          }
        }
      }
      CHECK(k.kernels() <= classes.size());
    });
}

TEST_CASE("a blur compiles once for each class of image widths") {
  for_each_target("blur", [](Target target) {
    CountedCalls k(ops::blur());
    RandomSizes drawn(7);
    std::set<std::array<bool, 3>> classes;  // without pixels nothing is filled in
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t width = drawn.next(0, 200), height = drawn.below(60);
      const Array x =
          make_array<std::uint8_t>({height, width}, [](std::int64_t i) { return i * 37 % 251; });
      classes.insert({width % 16 == 0, width == 0, height == 0});
      const Array o = k(target, x);
      for (std::int64_t e = 0; e < height * width; ++e) {
        std::int64_t sum = 0, taps = 0;
        for (std::int64_t r = e / width - 2; r <= e / width + 2; ++r)
          for (std::int64_t c = e % width - 2; c <= e % width + 2; ++c) {
            if (r < 0 || r >= height || c < 0 || c >= width) continue;
            sum += x.data<std::uint8_t>()[r * width + c];
            ++taps;
          }
        REQUIRE(o.data<std::uint8_t>()[e] == (sum + taps / 2) / taps);
      }
    }
    CHECK(k.kernels() <= classes.size());
  });
}

TEST_CASE("sums and transposes compile once for each class of sizes") {
  for_each_target("add", [](Target target) {
    CountedCalls k(ops::add()), turn(ops::transpose());
    RandomSizes drawn(8);
    std::set<bool> of_vectors;
    std::set<std::array<bool, 3>> of_matrices;
    for (int i = 0; i < RandomSizes::count(); ++i) {
      const std::int64_t n = drawn.next(0, 3000), rows = drawn.below(100), columns = n % 90;
      const Array x = small_numbers({n});
      of_vectors.insert(n % 4 == 0);
      const Array o = k(target, x, x);
      for (std::int64_t e = 0; e < n; ++e) REQUIRE(o.data<float>()[e] == 2 * x.data<float>()[e]);
      const Array a = small_numbers({rows, columns});
      of_matrices.insert({rows % 4 == 0, columns % 4 == 0, rows == columns});
      const Array turned = turn(target, a);
      for (std::int64_t e = 0; e < rows * columns; ++e)
        REQUIRE(turned.data<float>()[e % columns * rows + e / columns] == a.data<float>()[e]);
    }
    CHECK(k.kernels() <= of_vectors.size());
    CHECK(turn.kernels() <= of_matrices.size());
  });
}
