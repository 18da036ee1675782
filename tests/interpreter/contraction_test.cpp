// Reductions, dot and the moves of whole values, against loops over their elements.
#include <algorithm>
#include <numeric>

#include "tests/interpreter/tensors.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

constexpr DType numbers[] = {i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

std::vector<std::int64_t> indices_of(std::int64_t i, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d > 0; --d) {
    index[d - 1] = i % shape[d - 1];
    i /= shape[d - 1];
  }
  return index;
}

std::int64_t number_of(const std::vector<std::int64_t>& index,
                       const std::vector<std::int64_t>& shape) {
  std::int64_t i = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + index[d];
  return i;
}

// Small whole numbers, so that every order of a sum is exact.
Tensor pattern(DType dtype, std::vector<std::int64_t> shape, int seed = 0) {
  return Tensor(dtype, std::move(shape), [=](std::int64_t i) {
    const auto x = static_cast<double>((i * 7 + i / 5 + seed) % 5);
    return dtype.is_signed() ? x - 2 : x;
  });
}

using Reduce = Value (*)(const Operand&, ReduceOptions);
constexpr Reduce reductions[] = {
    sum, [](const Operand& x, ReduceOptions options) { return max(x, options); },
    [](const Operand& x, ReduceOptions options) { return min(x, options); }};

struct Reduced {
  std::vector<std::int64_t> shape;
  std::vector<int> axes;

  Axes as_axes() const { return axes.size() == 1 ? Axes(axes[0]) : Axes{axes[0], axes[1]}; }
  /// With the dimensions that vanish, as ones.
  std::vector<std::int64_t> kept() const {
    std::vector<std::int64_t> result = shape;
    for (const int a : axes) result[static_cast<std::size_t>(a)] = 1;
    return result;
  }
  std::vector<std::int64_t> result(bool keep) const {
    std::vector<std::int64_t> result;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (std::ranges::count(axes, static_cast<int>(d)) == 0)
        result.push_back(shape[d]);
      else if (keep)
        result.push_back(1);
    return result;
  }
  /// By a loop over the elements of x, by reduction number r.
  std::vector<double> of(const Tensor& x, int r) const {
    const double start[] = {0, -1000, 1000};
    std::vector<double> expected(static_cast<std::size_t>(graph::element_count(kept())), start[r]);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      auto index = indices_of(i, shape);
      for (const int a : axes) index[static_cast<std::size_t>(a)] = 0;
      double& e = expected[static_cast<std::size_t>(number_of(index, kept()))];
      e = r == 0 ? e + x[i] : r == 1 ? std::max(e, x[i]) : std::min(e, x[i]);
    }
    if (x.dtype().is_integer())  // sums wrap
      for (double& e : expected)
        e = static_cast<double>(
            graph::to_int(x.dtype(), static_cast<std::uint64_t>(static_cast<std::int64_t>(e))));
    return expected;
  }
};

std::vector<Tensor*> pointers(std::vector<Tensor>& tensors) {
  std::vector<Tensor*> result;
  for (Tensor& t : tensors) result.push_back(&t);
  return result;
}

}  // namespace

TEST_CASE("sum, max and min reduce any dimensions of every dtype [C66]") {
  const std::vector<Reduced> cases = {
      {{32, 8}, {0}},      {{32, 8}, {1}},       {{32, 8}, {0, 1}},      {{3, 5, 7}, {1}},
      {{3, 5, 7}, {0, 2}}, {{2, 1, 37}, {1, 2}}, {{2, 3, 2, 5}, {0, 2}}, {{2, 3, 2, 5}, {1, 3}},
      {{1, 1}, {0}},       {{40}, {0}}};
  const int n = static_cast<int>(cases.size());
  for (const DType dtype : numbers)
    for (const bool keep : {false, true}) {
      std::vector<Tensor> inputs, outputs;
      for (const Reduced& c : cases) {
        inputs.push_back(pattern(dtype, c.shape));
        for (int r = 0; r < 3; ++r) outputs.emplace_back(dtype, c.result(keep));
      }
      const Body all = [&](Refs refs) {
        for (int i = 0; i < 3 * n; ++i) {
          const Reduced& c = cases[static_cast<std::size_t>(i / 3)];
          refs[n + i][_] =
              reductions[i % 3](refs[i / 3][_], {.axis = c.as_axes(), .keepdims = keep});
        }
      };
      CAPTURE(dtype.name(), keep);
      run(all, {}, pointers(inputs), pointers(outputs), {}, keep ? On::interpreter : On::both);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        CAPTURE(i);
        REQUIRE(outputs[i].numbers() == cases[i / 3].of(inputs[i / 3], static_cast<int>(i % 3)));
      }
    }
}

TEST_CASE("max and min of bools say whether any and all hold [C67]") {
  for (const int falses : {0, 1, 1024}) {
    Tensor x(bool_, {8, 128}, [=](std::int64_t i) { return i >= falses; }), any(bool_, {}),
        all(bool_, {});
    run(
        [](Ref x, Ref any, Ref all) {
          any[_] = max(x[_]);
          all[_] = min(x[_]);
        },
        {}, {&x}, {&any, &all});
    CHECK(any[0] == (falses < 1024));
    CHECK(all[0] == (falses == 0));
  }
}

TEST_CASE("a maximum of NaN is NaN, wherever it stands") {
  for (const DType dtype : {f16, bf16, f32, f64})
    for (const std::int64_t n : {1, 5, 16, 100})
      for (std::int64_t at = 0; at < n; at += 7) {
        Tensor x(dtype, {n}, [=](auto i) { return i == at ? std::nan("") : -double(i); });
        Tensor high(dtype, {}), low(dtype, {});
        run(
            [](Ref x, Ref high, Ref low) {
              high[_] = max(x[_]);
              low[_] = min(x[_]);
            },
            {}, {&x}, {&high, &low});
        CHECK(std::isnan(high[0]));
        CHECK(std::isnan(low[0]));
      }
}

TEST_CASE("sums of 16-bit floats accumulate in f32") {
  // 4096 ones and more do not fit f16's steps on the way; the result does.
  Tensor x = full(f16, {8192}, 1), o(f16, {});
  run([](Ref x, Ref o) { o[_] = sum(x[_]); }, {}, {&x}, {&o});
  CHECK(o[0] == 8192);
  Tensor y = full(bf16, {1000}, 1), p(bf16, {});
  run([](Ref x, Ref o) { o[_] = sum(x[_]); }, {}, {&y}, {&p});
  CHECK(p[0] == 1000);
}

TEST_CASE("a long sum of f32 stays within the bound of its length") {
  const std::int64_t n = 1 << 18;
  Tensor x(f32, {n}, [](auto i) { return 1.0 / (1 + i % 1000); }), o(f32, {});
  run([](Ref x, Ref o) { o[_] = sum(x[_]); }, {}, {&x}, {&o});
  double exact = 0;
  for (std::int64_t i = 0; i < n; ++i) exact += x[i];
  CHECK(std::fabs(o[0] - exact) <= 1e-5 * exact);
}

TEST_CASE("dot multiplies matrices of every dtype, transposed or not [C73] [C74] [C76]") {
  struct Case {
    std::int64_t m, k, n;
  };
  const Case cases[] = {{1, 1, 1},   {8, 16, 8},   {5, 3, 7},   {32, 128, 64},
                        {33, 17, 9}, {64, 64, 64}, {4, 100, 1}, {1, 9, 40}};
  for (const DType dtype : {f16, bf16, f32, f64, i8, i16, i32})
    for (const Case& c : cases)
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          using Pair = std::vector<std::int64_t>;
          Tensor a = pattern(dtype, ta ? Pair{c.k, c.m} : Pair{c.m, c.k}),
                 b = pattern(dtype, tb ? Pair{c.n, c.k} : Pair{c.k, c.n}, 3);
          Tensor o(dtype == f64 ? f64 : dtype.is_float() ? f32 : i32, {c.m, c.n});
          run([=](Ref a, Ref b, Ref o) { o[_] = dot(a[_], b[_], {.trans_a = ta, .trans_b = tb}); },
              {}, {&a, &b}, {&o}, {}, c.m == 33 ? On::both : On::interpreter);
          CAPTURE(dtype.name(), c.m, c.k, c.n, ta, tb);
          for (std::int64_t i = 0; i < c.m; ++i)
            for (std::int64_t j = 0; j < c.n; ++j) {
              double expected = 0;
              for (std::int64_t k = 0; k < c.k; ++k)
                expected += a[ta ? k * c.m + i : i * c.k + k] * b[tb ? j * c.k + k : k * c.n + j];
              REQUIRE(o[i * c.n + j] == expected);
            }
        }
}

TEST_CASE("integer dot wraps and is exact over the full range [C74]") {
  Tensor a(i8, {32, 128}, [](auto i) { return double(i * 37 % 256 - 128); }),
      b(i8, {128, 64}, [](auto i) { return double(i * 91 % 256 - 128); }), o(i32, {32, 64});
  run([](Ref a, Ref b, Ref o) { o[_] = dot(a[_], b[_]); }, {}, {&a, &b}, {&o});
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 64; ++j) {
      std::int64_t expected = 0;
      for (int k = 0; k < 128; ++k)
        expected +=
            static_cast<std::int64_t>(a[i * 128 + k]) * static_cast<std::int64_t>(b[k * 64 + j]);
      REQUIRE(o[i * 64 + j] == static_cast<double>(expected));
    }
  Tensor big = full(i32, {1, 2}, 65536), column = full(i32, {2, 1}, 32768), sum(i32, {1, 1});
  run([](Ref a, Ref b, Ref o) { o[_] = dot(a[_], b[_]); }, {}, {&big, &column}, {&sum});
  CHECK(sum[0] == 0);  // 2^32
}

TEST_CASE("precision decides what dot keeps of f32 [C75]") {
  Tensor a(f32, {32, 16}, [](auto i) { return std::sin(double(i)); }),
      b(f32, {16, 64}, [](auto i) { return std::cos(double(i)); });
  for (const Precision precision : {ieee, tf32}) {
    Tensor o(f32, {32, 64});
    run([=](Ref a, Ref b, Ref o) { o[_] = dot(a[_], b[_], {.precision = precision}); }, {},
        {&a, &b}, {&o});
    double largest = 0;
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 64; ++j) {
        double expected = 0;
        for (int k = 0; k < 16; ++k) expected += a[i * 16 + k] * b[k * 64 + j];
        largest = test::worst_of(largest, std::fabs(o[i * 64 + j] - expected));
      }
    if (precision == ieee) {
      CHECK(largest < 5e-6);
    } else {
      CHECK(largest > 5e-6);
      CHECK(largest < 5e-3);
    }
  }
}

TEST_CASE("a blocked matrix product accumulates over the inner axis [C28]") {
  Tensor x = pattern(f32, {100, 70}), y = pattern(f32, {70, 30}, 1), o(f32, {100, 30});
  const BlockSpec xs{{32, 70},
                     [](Index i, Index) {
                       return Indices{i, 0};
                     }},
      ys{{70, 16},
         [](Index, Index j) {
           return Indices{0, j};
         }},
      os{{32, 16}, [](Index i, Index j) {
           return Indices{i, j};
         }};
  run(
      [](Ref x, Ref y, Ref o) {
        o[_] = loop(
            0, 7, {},
            [&](Index k, Value sum) {
              return sum + dot(x[{_, ds(10 * k, 10)}], y[{ds(10 * k, 10), _}]);
            },
            zeros({32, 16}));
      },
      {.grid = {4, 2}, .in_specs = {xs, ys}, .out_specs = {os}}, {&x, &y}, {&o});
  for (int i = 0; i < 100; ++i)
    for (int j = 0; j < 30; ++j) {
      double expected = 0;
      for (int k = 0; k < 70; ++k) expected += x[i * 70 + k] * y[k * 30 + j];
      REQUIRE(o[i * 30 + j] == expected);
    }
}

TEST_CASE("transpose permutes any dimensions of every element size [C70]") {
  const std::vector<std::int64_t> shape{1, 2, 9, 3, 4};
  std::vector<std::vector<int>> all;
  std::vector<int> p{0, 1, 2, 3, 4};
  do all.push_back(p);
  while (std::next_permutation(p.begin(), p.end()));
  REQUIRE(all.size() == 120);
  // Several in one kernel; all of them for one dtype, every seventh for the others.
  constexpr std::size_t at_once = 12;
  for (const DType dtype : {i8, f16, f32, i64}) {
    std::vector<std::vector<int>> tried;
    for (std::size_t i = 0; i < all.size(); i += dtype == f32 ? 1 : 7) tried.push_back(all[i]);
    for (std::size_t first = 0; first < tried.size(); first += at_once) {
      const std::size_t count = std::min(at_once, tried.size() - first);
      std::vector<Tensor> inputs, outputs;
      inputs.emplace_back(dtype, shape, [](auto i) { return double(i % 120); });
      for (std::size_t n = first; n < first + count; ++n) {
        std::vector<std::int64_t> permuted;
        for (const int d : tried[n]) permuted.push_back(shape[static_cast<std::size_t>(d)]);
        outputs.emplace_back(dtype, permuted);
      }
      const Body transposes = [&](Refs r) {
        for (std::size_t n = 0; n < count; ++n) {
          const std::vector<int>& p = tried[first + n];
          r[static_cast<int>(1 + n)][_] = transpose(r[0][_], {p[0], p[1], p[2], p[3], p[4]});
        }
      };
      run(transposes, {}, pointers(inputs), pointers(outputs));
      for (std::size_t n = 0; n < count; ++n)
        for (std::int64_t i = 0; i < outputs[n].size(); ++i) {
          const auto to = indices_of(i, outputs[n].shape());
          std::vector<std::int64_t> from(5);
          for (std::size_t d = 0; d < 5; ++d)
            from[static_cast<std::size_t>(tried[first + n][d])] = to[d];
          REQUIRE(outputs[n][i] == inputs[0][number_of(from, shape)]);
        }
    }
  }
}

TEST_CASE("reshape keeps the row-major order, broadcast repeats") {
  Tensor x = arange(i32, {4, 6}), o(i32, {3, 8}), p(i32, {2, 4, 6}), q(i32, {4, 5, 6}),
         s(i32, {4, 6});
  run(
      [](Ref x, Ref o, Ref p, Ref q, Ref s) {
        const Value v = x[_];
        o[_] = v.reshape({3, -1});
        p[_] = broadcast_to(v, {2, 4, 6});
        q[_] = broadcast_to(v.reshape({4, 1, 6}), {4, 5, 6});
        s[_] = broadcast_to(max(v), {4, 6});
      },
      {}, {&x}, {&o, &p, &q, &s});
  for (int i = 0; i < 24; ++i) {
    CHECK(o[i] == i);
    CHECK(p[i] == i);
    CHECK(p[24 + i] == i);
    CHECK(s[i] == 23);
    for (int r = 0; r < 5; ++r) CHECK(q[(i / 6 * 5 + r) * 6 + i % 6] == i);
  }
}

TEST_CASE("where broadcasts its condition [C64]") {
  Tensor x = arange(f32, {7, 2, 2}), o(f32, {4, 2, 2});
  run(
      [](Ref x, Ref o) {
        const Value mask = iota(i32, {4, 1, 1}, 0) == 2;
        o[_] = where(mask, reshape(x[{5}], {1, 2, 2}), zeros({4, 2, 2}));
      },
      {}, {&x}, {&o});
  for (int i = 0; i < 16; ++i) CHECK(o[i] == (i / 4 == 2 ? x[20 + i % 4] : 0));
}

TEST_CASE("normalisation and softmax of whole rows [C45] [C77]") {
  Tensor x(f32, {256}, [](auto i) { return std::sin(double(i)); }), o(f32, {256});
  run(
      [](Ref x, Ref o) {
        const Value v = x[_];
        const Value mean = sum(v) / 256, centred = v - mean;
        o[_] = centred * rsqrt(sum(centred * centred) / 256 + 1e-5f);
      },
      {}, {&x}, {&o});
  double mean = 0, variance = 0;
  for (int i = 0; i < 256; ++i) mean += x[i] / 256;
  for (int i = 0; i < 256; ++i) variance += (x[i] - mean) * (x[i] - mean) / 256;
  for (int i = 0; i < 256; ++i)
    REQUIRE(std::fabs(o[i] - (x[i] - mean) / std::sqrt(variance + 1e-5)) < 6e-5);

  // 37 rows of 100 columns in blocks of 8 x 128: lanes beyond are masked.
  Tensor y(f32, {37, 100}, [](auto i) { return std::cos(double(i)) * 10; }), p(f32, {37, 100});
  const BlockSpec rows{{8, 128}, [](Index i) { return Indices{i, 0}; }};
  run(
      [](Ref x, Ref o) {
        const Value inside = iota(i32, {8, 128}, 1) < 100;
        const Value v = load(x, {.mask = inside, .other = -std::numeric_limits<float>::infinity()});
        const Value e = exp(v - max(v, {.axis = 1, .keepdims = true}));
        store(o, e / sum(e, {.axis = 1, .keepdims = true}), {.mask = inside});
      },
      {.grid = 5, .in_specs = {rows}, .out_specs = {rows}}, {&y}, {&p});
  for (int i = 0; i < 37; ++i) {
    double total = 0;
    for (int j = 0; j < 100; ++j) total += std::exp(y[i * 100 + j]);
    for (int j = 0; j < 100; ++j)
      REQUIRE(std::fabs(p[i * 100 + j] - std::exp(y[i * 100 + j]) / total) < 1e-5);
  }
}
