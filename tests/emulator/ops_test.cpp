// The shipped kernels against plain C++, on every target.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "palladium/ops/add.hpp"
#include "palladium/ops/blur.hpp"
#include "palladium/ops/cross_entropy.hpp"
#include "palladium/ops/layer_norm.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/ops/rms_norm.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/ops/transpose.hpp"
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

using Doubles = std::vector<double>;

Doubles numbers(const Array& a) {
  const Array plain = a.astype(f32);
  return {plain.data<float>(), plain.data<float>() + plain.size()};
}

/// How far a number of the dtype is from the exact one, given the error of f32 that led to it.
void require_near(double got, double exact, DType t, double error = 2e-6) {
  const double rounding = t == f32 ? 0x1p-24 : t == f16 ? 0x1p-11 : 0x1p-8;
  if (std::abs(got - exact) <= error + rounding * (std::abs(exact) + error)) return;
  FAIL(got << " is not near " << exact);
}

/// Runs a kernel along the rows of x, whose further arguments are vectors of numbers for the
/// columns, on all targets, for numbers of rows that its blocks divide and do not.
void check_rows(
    const Kernel& kernel, DType t, std::int64_t n, std::size_t vectors,
    const std::function<Doubles(const Doubles& row, const std::vector<Doubles>&)>& plain) {
  for_each_target("rows of " + std::to_string(n), [&](Target target) {
    for (const std::int64_t m : {0, 1, 5, n < 256 ? 65 : 6}) {
      CAPTURE(m, n);
      const Array x = random_floats({m, n}, static_cast<unsigned>(7 * m + n)).astype(t);
      std::vector<Array> of_columns;
      std::vector<Doubles> known;
      for (std::size_t v = 0; v < vectors; ++v) {
        of_columns.push_back(random_floats({n}, static_cast<unsigned>(v)).astype(t));
        known.push_back(numbers(of_columns.back()));
        of_columns.back() = on(target, of_columns.back());
      }
      const Kernel k = kernel.on(target);
      const Array there = on(target, x);
      const Array y = on_cpu(vectors == 0   ? k(there)
                             : vectors == 1 ? k(there, of_columns[0])
                                            : k(there, of_columns[0], of_columns[1]));
      REQUIRE(to_string(y.type()) == to_string(x.type()));
      const Doubles in = numbers(x), out = numbers(y);
      for (std::int64_t i = 0; i < m; ++i) {
        const Doubles row(in.begin() + i * n, in.begin() + (i + 1) * n), exact = plain(row, known);
        for (std::int64_t j = 0; j < n; ++j)
          require_near(out[static_cast<std::size_t>(i * n + j)], exact[static_cast<std::size_t>(j)],
                       t);
      }
    }
  });
}

double mean_of(const Doubles& x, const std::function<double(double)>& f) {
  double sum = 0;
  for (const double v : x) sum += f(v);
  return sum / static_cast<double>(x.size());
}

/// log of the sum of the exponentials.
double log_sum(const Doubles& x) {
  double sum = 0;
  for (const double v : x) sum += std::exp(v);
  return std::log(sum);
}

}  // namespace

TEST_CASE("a product that goes into a part of the columns of an array leaves the others") {
  const Array a = random_floats({130, 64}, 1).astype(f16),
              b = random_floats({64, 100}, 2).astype(f16);
  for_each_target("columns", [&](Target target) {
    // 100 columns of 16 bits end inside of 16 bytes, rows of 128 begin at multiples of them.
    const Array wide = on(target, Array::full({130, 128}, f16, 7));
    const std::int64_t strides[] = {128, 1};
    const Device device = device_of(target);
    const Array part =
        Array::view(wide.data(), {130, 100}, f16, {.strides = strides, .device = &device});
    ops::matmul({.out_dtype = f16}).on(target).into({part}, {on(target, a), on(target, b)});
    const Doubles x = numbers(a), y = numbers(b), z = numbers(on_cpu(wide));
    for (std::size_t i = 0; i < 130; ++i)
      for (std::size_t j = 0; j < 128; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < 64; ++k)
          sum += x[i * 64 + k] * y[k * 100 + std::min<std::size_t>(j, 99)];
        require_near(z[i * 128 + j], j < 100 ? sum : 7, f16, 1e-4);
      }
  });
}

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

TEST_CASE("softmax rows match the plain formula, short and long ones, of every float") {
  const auto plain = [](const Doubles& row, const std::vector<Doubles>&) {
    const double all = log_sum(row);
    Doubles y;
    for (const double v : row) y.push_back(std::exp(v - all));
    return y;
  };
  for (const auto& [t, n] :
       {std::pair{f32, 0}, {f32, 1}, {f32, 7}, {f16, 128}, {f32, 1000}, {bf16, 1001}, {f32, 1300}})
    check_rows(ops::softmax(), t, n, 0, plain);
}

TEST_CASE("layer_norm gives rows of mean 0 and variance 1, scaled and shifted") {
  for (const auto& [t, n, bias] : {std::tuple{f32, 0, true},
                                   {f32, 1, true},
                                   {f32, 70, false},
                                   {f16, 1000, true},
                                   {bf16, 1025, true}}) {
    const ops::LayerNormOptions options{.epsilon = 0.01, .bias = bias};
    check_rows(
        ops::layer_norm(options), t, n, bias ? 2 : 1,
        [&](const Doubles& row, const std::vector<Doubles>& of_columns) {
          const double mean = mean_of(row, [](double v) { return v; });
          const double variance = mean_of(row, [&](double v) { return (v - mean) * (v - mean); });
          Doubles y;
          for (std::size_t j = 0; j < row.size(); ++j)
            y.push_back((row[j] - mean) / std::sqrt(variance + options.epsilon) * of_columns[0][j] +
                        (options.bias ? of_columns[1][j] : 0));
          return y;
        });
  }
}

TEST_CASE("rms_norm gives rows of mean square 1, scaled") {
  for (const auto& [t, n] : {std::pair{f32, 33}, {bf16, 2048}})
    check_rows(ops::rms_norm(), t, n, 1,
               [](const Doubles& row, const std::vector<Doubles>& of_columns) {
                 const double squares = mean_of(row, [](double v) { return v * v; });
                 Doubles y;
                 for (std::size_t j = 0; j < row.size(); ++j)
                   y.push_back(row[j] / std::sqrt(squares + 1e-6) * of_columns[0][j]);
                 return y;
               });
}

TEST_CASE("cross_entropy gives each row's loss, none where it is ignored, and NaN for no class") {
  for (const auto& [t, labels_of, n, even] : {std::tuple{f32, i32, 1, 0.0},
                                              {f16, i64, 10, 0.1},
                                              {f32, u8, 1500, 0.0},
                                              {bf16, i32, 700, 0.3}}) {
    const bool has_sign = labels_of.is_signed();
    const std::int64_t ignored = has_sign ? -100 : 255;
    const Kernel k = ops::cross_entropy({.ignore_index = ignored, .label_smoothing = even});
    for_each_target("cross_entropy", [&](Target target) {
      for (const std::int64_t m : {0, 1, 9}) {
        const Array x = random_floats({m, n}, 11).astype(t);
        Array labels = make_array<std::int64_t>({m}, [&](auto i) -> std::int64_t {
          return i == 2               ? ignored
                 : i == 3             ? (has_sign ? n : std::min(n, 1))
                 : i == 4 && has_sign ? -1
                                      : (37 * i + 5) % std::min(n, 250);
        });
        const Array loss =
            on_cpu(k.on(target)(on(target, x), on(target, labels.astype(labels_of))));
        REQUIRE(to_string(loss.type()) == "f32[" + std::to_string(m) + "]");
        const Doubles in = numbers(x);
        for (std::int64_t i = 0; i < m; ++i) {
          const Doubles row(in.begin() + i * n, in.begin() + (i + 1) * n);
          const std::int64_t label = labels.data<std::int64_t>()[i];
          const float got = loss.data<float>()[i];
          CAPTURE(i, n, label);
          if (label == ignored) {
            REQUIRE(got == 0);
          } else if (label < 0 || label >= n) {
            REQUIRE(std::isnan(got));
          } else {
            const double chosen = (1 - even) * row[static_cast<std::size_t>(label)] +
                                  even * mean_of(row, [](double v) { return v; });
            require_near(got, log_sum(row) - chosen, f32, 1e-5);
          }
        }
      }
    });
  }
}

TEST_CASE("transpose moves every element of matrices of any size and dtype") {
  const Kernel k = ops::transpose();
  for (const DType t : {f32, f16, u8, i64})
    for_each_target("transpose", [&](Target target) {
      for (const auto& [m, n] :
           {std::pair{0, 5}, {1, 1}, {3, 100}, {65, 127}, {64, 128}, {16, 80}}) {
        const Array x = make_array<float>({m, n}, [](auto i) { return i % 251; });
        const Array y = on_cpu(k.on(target)(on(target, x.astype(t)))).astype(f32);
        REQUIRE(y.shape()[0] == n);
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j)
            REQUIRE(y.data<float>()[j * m + i] == x.data<float>()[i * n + j]);
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

TEST_CASE("matmul in blocks of any size gives the same product") {
  struct Blocks {
    DType t;
    int m, n, k;
    bool trans_b = false;
  };
  for (const Blocks& c : {Blocks{f16, 128, 256, 64},
                          {bf16, 256, 128, 64, true},
                          {f16, 16, 32, 0},
                          {bf16, 64, 0, 256},
                          {f16, 48, 80, 48},
                          {f32, 16, 128, 16},
                          {f8e4m3, 64, 256, 0, true}}) {
    CAPTURE(c.t.name(), c.m, c.n, c.k);
    const ops::MatmulOptions usual{.trans_b = c.trans_b};
    ops::MatmulOptions options = usual;
    options.block_m = c.m, options.block_n = c.n, options.block_k = c.k;
    const Kernel matmul = ops::matmul(options);
    for_each_target("matmul", [&](Target target) {
      for (const auto& [m, k, n] : {std::tuple{130, 144, 270}, {3, 33, 17}}) {
        std::mt19937 random(4);
        const auto small = [&](auto) { return static_cast<int>(random() % 9) - 4; };
        const Array a = on(target, make_array<float>({m, k}, small).astype(c.t)),
                    b = on(target, (c.trans_b ? make_array<float>({n, k}, small)
                                              : make_array<float>({k, n}, small))
                                       .astype(c.t));
        CHECK(numbers(on_cpu(matmul.on(target)(a, b))) ==
              numbers(on_cpu(ops::matmul(usual).on(target)(a, b))));
      }
    });
  }
}

TEST_CASE("matmul adds a bias, activates and rounds, for every dtype that it takes") {
  struct Case {
    DType in, bias, out;
    ops::Activation activation;
    std::int64_t m, k, n;
  };
  const auto activated = [](double x, ops::Activation a) {
    switch (a) {
    case ops::Activation::relu: return std::max(x, 0.0);
    case ops::Activation::gelu:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1)) * (x + 0.044715 * x * x * x)));
    case ops::Activation::silu: return x / (1 + std::exp(-x));
    case ops::Activation::none: break;
    }
    return x;
  };
  for (const Case& c : {Case{f16, f32, f16, ops::Activation::gelu, 130, 72, 136},
                        {bf16, bf16, f32, ops::Activation::silu, 3, 65, 129},
                        {f8e4m3, f16, bf16, ops::Activation::relu, 70, 100, 33},
                        {f8e5m2, f32, f32, ops::Activation::none, 1, 16, 16},
                        {f64, f32, f64, ops::Activation::none, 5, 40, 3},
                        {f32, f32, f32, ops::Activation::gelu, 65, 0, 3}})
    for_each_target("matmul", [&](Target target) {
      CAPTURE(c.in.name());
      const Array a = random_floats({c.m, c.k}, 1).astype(c.in),
                  b = random_floats({c.k, c.n}, 2).astype(c.in);
      const Array bias = random_floats({c.n}, 3).astype(c.bias);
      const Kernel k = ops::matmul({.bias = true, .activation = c.activation, .out_dtype = c.out});
      const Array y = on_cpu(k.on(target)(on(target, a), on(target, b), on(target, bias)));
      REQUIRE(y.dtype() == c.out);
      const Doubles left = numbers(a), right = numbers(b), added = numbers(bias), got = numbers(y);
      for (std::int64_t i = 0; i < c.m; ++i)
        for (std::int64_t j = 0; j < c.n; ++j) {
          double sum = added[static_cast<std::size_t>(j)];
          for (std::int64_t l = 0; l < c.k; ++l)
            sum += left[static_cast<std::size_t>(i * c.k + l)] *
                   right[static_cast<std::size_t>(l * c.n + j)];
          // Of 8 bits tensor cores keep 13 behind the point of the largest term.
          const double error = c.in.bytes() == 1 ? 4e-3 : 1e-4;
          require_near(got[static_cast<std::size_t>(i * c.n + j)], activated(sum, c.activation),
                       c.out, error);
        }
    });
}

TEST_CASE("matmul takes a second matrix that lies along k") {
  for (const auto& [t, precision] : {std::pair{f32, tf32}, {f8e4m3, ieee}, {f16, ieee}}) {
    CAPTURE(t.name());
    const Kernel matmul = ops::matmul({.trans_b = true, .precision = precision});
    for_each_target("matmul", [&](Target target) {
      for (const auto& [m, k, n] : {std::tuple{130, 144, 70}, {1, 33, 3}}) {
        std::mt19937 random(4);
        const auto small = [&](auto) { return static_cast<int>(random() % 9) - 4; };
        const Array a = make_array<float>({m, k}, small), b = make_array<float>({n, k}, small);
        const Array c = on_cpu(matmul.on(target)(on(target, a.astype(t)), on(target, b.astype(t))));
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int l = 0; l < k; ++l)
              sum += a.data<float>()[i * k + l] * b.data<float>()[j * k + l];
            REQUIRE(c.data<float>()[i * n + j] == sum);
          }
      }
    });
  }
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

TEST_CASE("arrays that a shipped kernel does not take are refused by name") {
  const auto refused = [](const Kernel& k, std::vector<ArgType> types, const std::string& why) {
    try {
      k.lower(types);
      FAIL("nothing was refused");
    } catch (const CompileError& error) {
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(why));
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("ops_test.cpp"));
    }
  };
  const ShapeDtype x{{8, 16}, f32}, v{{16}, f32}, integers{{8, 16}, i32}, few{{15}, f32};
  refused(ops::softmax(), {integers}, "softmax: x is of i32; floats are needed");
  refused(ops::layer_norm(), {x, v, few}, "layer_norm: bias has 15 elements and x 16 columns");
  refused(ops::layer_norm(), {x, v}, "");
  refused(ops::rms_norm(), {x, ShapeDtype{{16}, i32}}, "rms_norm: weight is of i32");
  refused(ops::cross_entropy(), {x, ShapeDtype{{8}, f32}},
          "cross_entropy: labels are of f32; integers are needed");
  refused(ops::cross_entropy(), {x, ShapeDtype{{7}, i32}}, "");
  refused(ops::cross_entropy(), {ShapeDtype{{8, 0}, f32}, ShapeDtype{{8}, i32}}, "no columns");
  refused(ops::matmul(), {x, x}, "matmul: a has 16 columns and b has 8 rows");
  refused(ops::matmul({.bias = true}), {x, ShapeDtype{{16, 8}, f32}, few}, "");

  const ShapeDtype labels{{8}, i32};
  for (const double part : {-0.1, 1.5, std::nan("")})
    refused(ops::cross_entropy({.label_smoothing = part}), {x, labels},
            "cross_entropy: label_smoothing is " + std::to_string(part) + "; 0 to 1 is needed");
  for (const int n : {-16, 24, 272})
    refused(ops::matmul({.block_n = n}), {x, ShapeDtype{{16, 8}, f32}},
            "matmul: block_n is " + std::to_string(n) + "; a multiple of 16 up to 256, or 0");
  for (const int n : {-1, 9})
    refused(ops::matmul({.split_k = n}), {x, ShapeDtype{{16, 8}, f32}},
            "matmul: split_k is " + std::to_string(n) + "; 1 to 8, or 0, is needed");
  refused(ops::matmul({.out_dtype = i32}), {x, ShapeDtype{{16, 8}, f32}},
          "matmul: out_dtype is i32; a float is needed");
}
