// The shipped kernels against plain C++, on every target.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <random>

#include "palladium/ops/add.hpp"
#include "palladium/ops/blur.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/ops/softmax.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using test::for_each_target;
using test::make_array;
using test::on;
using test::on_cpu;

namespace {

Array random_floats(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  return make_array<float>(shape, [&](auto) { return uniform(random); });
}

}  // namespace

TEST_CASE("add gives the sums of vectors of any length") {
  const Kernel add = ops::add();
  for_each_target("add", [&](Target target) {
    for (const std::int64_t n : {1, 7, 1023, 1024, 1025, 10003}) {
      const Array x = random_floats({n}, 1), y = random_floats({n}, 2);
      const Array z = on_cpu(add.on(target)(on(target, x), on(target, y)));
      for (std::int64_t i = 0; i < n; ++i)
        REQUIRE(z.data<float>()[i] == x.data<float>()[i] + y.data<float>()[i]);
    }
  });
}

TEST_CASE("softmax rows add up to one and match the plain formula") {
  const Kernel softmax = ops::softmax();
  for_each_target("softmax", [&](Target target) {
    for (const auto& [m, n] : {std::pair{1, 1}, {3, 7}, {5, 128}, {4, 1000}, {2, 1001}}) {
      const Array x = random_floats({m, n}, 3);
      const Array y = on_cpu(softmax.on(target)(on(target, x)));
      for (int i = 0; i < m; ++i) {
        const float* row = x.data<float>() + i * n;
        const float top = *std::max_element(row, row + n);
        double total = 0;
        for (int j = 0; j < n; ++j) total += std::exp(static_cast<double>(row[j] - top));
        for (int j = 0; j < n; ++j)
          REQUIRE(std::abs(y.data<float>()[i * n + j] -
                           std::exp(static_cast<double>(row[j] - top)) / total) < 1e-6);
      }
    }
  });
}

TEST_CASE("matmul is exact on small integers for sizes that blocks do not divide") {
  const Kernel matmul = ops::matmul();
  for_each_target("matmul", [&](Target target) {
    for (const auto& [m, k, n] : {std::tuple{1, 1, 1}, {8, 32, 64}, {65, 33, 70}, {100, 70, 30}}) {
      std::mt19937 random(4);
      const auto small = [&](auto) { return static_cast<int>(random() % 9) - 4; };
      const Array a = make_array<float>({m, k}, small), b = make_array<float>({k, n}, small);
      const Array c = on_cpu(matmul.on(target)(on(target, a), on(target, b)));
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          float sum = 0;
          for (int l = 0; l < k; ++l)
            sum += a.data<float>()[i * k + l] * b.data<float>()[l * n + j];
          REQUIRE(c.data<float>()[i * n + j] == sum);
        }
    }
  });
}

TEST_CASE("blur takes the mean of the pixels inside the image") {
  const Kernel blur = ops::blur();
  for_each_target("blur", [&](Target target) {
    for (const auto& [h, w] : {std::pair{1, 1}, {3, 5}, {16, 64}, {17, 65}, {40, 100}}) {
      std::mt19937 random(5);
      const Array x = make_array<std::uint8_t>({h, w}, [&](auto) { return random() % 256; });
      const Array y = on_cpu(blur.on(target)(on(target, x)));
      for (int i = 0; i < h; ++i)
        for (int j = 0; j < w; ++j) {
          int total = 0, count = 0;
          for (int r = std::max(i - 2, 0); r <= std::min(i + 2, h - 1); ++r)
            for (int c = std::max(j - 2, 0); c <= std::min(j + 2, w - 1); ++c) {
              total += x.data<std::uint8_t>()[r * w + c];
              ++count;
            }
          REQUIRE(y.data<std::uint8_t>()[i * w + j] == (total + count / 2) / count);
        }
    }
  });
}

TEST_CASE("every registered kernel lowers for its default inputs") {
  for (const ops::Entry& e : ops::registry()) {
    std::vector<ArgType> types(e.inputs.begin(), e.inputs.end());
    const Lowered lowered = e.factory().lower(types);
    CHECK(lowered.name() == e.name);
    CHECK(lowered.key({.arch = "sm_90a"}).size() == 64);
    CHECK(!std::string(e.sentence).empty());
  }
  CHECK_THROWS_AS(ops::find("none"), CompileError);
}
