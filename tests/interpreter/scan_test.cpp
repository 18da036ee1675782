// Scans along an axis, against loops over their elements, on interpreter and emulator.
#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

constexpr DType numbers[] = {i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

struct Scan {
  std::vector<std::int64_t> shape;
  int axis = 0;
  bool reverse = false;
  int num_warps = 0;
};

// Small whole numbers: sums are exact in every order.
Tensor pattern(DType dtype, const std::vector<std::int64_t>& shape) {
  return Tensor(dtype, shape, [=](std::int64_t i) {
    const auto x = static_cast<double>((i * 7 + i / 5) % 5);
    return dtype.is_signed() ? x - 2 : x;
  });
}

using Fold = double (*)(double, double);
constexpr Fold sum_of = [](double x, double y) { return x + y; };

std::vector<double> sums(const Tensor& x, const Scan& s, Fold fold = sum_of) {
  const auto axis = static_cast<std::size_t>(s.axis);
  std::int64_t inner = 1;
  for (std::size_t d = axis + 1; d < s.shape.size(); ++d) inner *= s.shape[d];
  std::vector<double> out = x.numbers();
  const auto element = [&](std::int64_t first, std::int64_t k) -> double& {
    return out[static_cast<std::size_t>(first + k * inner)];
  };
  const std::int64_t extent = s.shape[axis];
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (i / inner % extent != 0) continue;
    for (std::int64_t k = 1; k < extent; ++k) {
      if (s.reverse)
        element(i, extent - 1 - k) = fold(element(i, extent - k), element(i, extent - 1 - k));
      else
        element(i, k) = fold(element(i, k - 1), element(i, k));
    }
  }
  for (double& e : out)  // integers wrap, 16-bit floats round
    if (x.dtype().is_integer())
      e = static_cast<double>(
          graph::to_int(x.dtype(), static_cast<std::uint64_t>(static_cast<std::int64_t>(e))));
    else
      e = graph::to_double(x.dtype(), graph::to_bits(x.dtype(), e));
  return out;
}

using Scanning = Value (*)(const Operand&, CumulativeOptions);

// Scans that are small: many to a kernel.
constexpr std::size_t together = 8;

void check(const std::vector<Tensor>& all, const std::vector<Scan>& scans, int num_warps = 0,
           Scanning scan = cumsum, Fold fold = sum_of) {
  for (std::size_t first = 0; first < all.size(); first += together) {
    std::vector<Tensor> in, out;
    for (std::size_t k = first; k < std::min(first + together, all.size()); ++k) {
      in.push_back(all[k]);
      out.emplace_back(in.back().dtype(), in.back().shape());
    }
    run_each(in, out, {.compiler_params = {.num_warps = num_warps}},
             [&](std::size_t k, const Value& x) {
               return scan(x, {.axis = scans[first + k].axis, .reverse = scans[first + k].reverse});
             });
    for (std::size_t k = 0; k < in.size(); ++k) {
      const Scan& s = scans[first + k];
      CAPTURE(in[k].dtype().name(), s.shape, s.axis, s.reverse, num_warps);
      REQUIRE(out[k].numbers() == sums(in[k], s, fold));
    }
  }
}

void check(DType dtype, const std::vector<Scan>& scans, int num_warps = 0) {
  std::vector<Tensor> in;
  for (const Scan& s : scans) in.push_back(pattern(dtype, s.shape));
  check(in, scans, num_warps);
}

std::vector<Scan> both_ways(std::vector<Scan> scans) {
  const std::size_t n = scans.size();
  for (std::size_t i = 0; i < n; ++i) {
    scans.push_back(scans[i]);
    scans.back().reverse = true;
  }
  return scans;
}

}  // namespace

TEST_CASE("cumsum adds up every dtype along either axis [C69]") {
  for (const DType dtype : numbers)
    check(dtype, both_ways({{{32, 8}, 0}, {{32, 8}, 1}, {{300}, 0}, {{3, 5, 7}, 1}}));
}

TEST_CASE("cumsum runs along every axis of every rank, whatever the sizes") {
  check(f32, both_ways({{{1}, 0},        {{2}, 0},          {{127}, 0},        {{129}, 0},
                        {{1000}, 0},     {{1, 1}, 0},       {{1, 77}, 0},      {{1, 77}, 1},
                        {{77, 1}, 0},    {{77, 1}, 1},      {{17, 33}, 0},     {{17, 33}, 1},
                        {{2, 1000}, 0},  {{2, 1000}, 1},    {{1000, 3}, 0},    {{1000, 3}, 1},
                        {{5, 6, 7}, 0},  {{5, 6, 7}, 1},    {{5, 6, 7}, 2},    {{1, 129, 2}, 1},
                        {{64, 1, 9}, 0}, {{2, 3, 4, 5}, 1}, {{2, 3, 4, 5}, 2}, {{4096}, 0}}));
}

TEST_CASE("cumsum gives the same at 4, 8 and 16 warps") {
  for (const int warps : {4, 8, 16})
    for (const DType dtype : {i32, f16, f64})
      check(dtype,
            both_ways({{{5000}, 0}, {{70, 40}, 0}, {{70, 40}, 1}, {{3, 1030}, 1}, {{2, 90, 3}, 1}}),
            warps);
}

TEST_CASE("cumsum takes values that no program holds in registers") {
  for (const int warps : {0, 4})
    check(i32, both_ways({{{40'000}, 0}, {{200, 200}, 0}, {{200, 200}, 1}, {{3, 10, 1100}, 1}}),
          warps);
  check(bf16, both_ways({{{60'000}, 0}, {{250, 240}, 0}}), 4);
}

TEST_CASE("cumsum follows what it is given, and others follow it") {
  Tensor x = pattern(f32, {24, 40}), o(f32, {24, 40}), total(f32, {24}), turned(f32, {40, 24});
  run(
      [](Ref x, Ref o, Ref total, Ref turned) {
        const Value v = cumsum(x[_] * 2.0f + 1.0f, {.axis = -1});
        o[_] = cumsum(v, {.axis = 0, .reverse = true}) - v;
        total[_] = max(v, {.axis = {1}});
        turned[_] = transpose(v, {1, 0});
      },
      {}, {&x}, {&o, &total, &turned});
  const Tensor twice(f32, {24, 40}, [&](std::int64_t i) { return 2 * x[i] + 1; });
  const std::vector<double> v = sums(twice, {{24, 40}, 1});
  const Tensor rows(f32, {24, 40}, [&](std::int64_t i) { return v[static_cast<std::size_t>(i)]; });
  const std::vector<double> both = sums(rows, {{24, 40}, 0, true});
  for (std::int64_t i = 0; i < 24 * 40; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(o[i] == both[at] - v[at]);
    CHECK(turned[i % 40 * 24 + i / 40] == v[at]);
  }
}

TEST_CASE("cumsum of a product follows the layout of its accumulators") {
  for (const bool reverse : {false, true})
    for (const int axis : {0, 1}) {
      Tensor a = pattern(f16, {64, 32}), b = pattern(f16, {32, 128}), o(f32, {64, 128}),
             p(f32, {64, 128});
      run(
          [=](Ref a, Ref b, Ref o, Ref p) {
            const Value v = dot(a[_], b[_]);
            o[_] = cumsum(v, {.axis = axis, .reverse = reverse});
            p[_] = v;
          },
          {}, {&a, &b}, {&o, &p});
      CHECK(o.numbers() == sums(p, {{64, 128}, axis, reverse}));
    }
}

TEST_CASE("cumprod, cummax and cummin scan every dtype along either axis, from either end") {
  const std::vector<Scan> scans = both_ways({{{9, 6}, 0}, {{9, 6}, 1}, {{130}, 0}, {{3, 5, 7}, 1}});
  for (const DType dtype : numbers) {
    std::vector<Tensor> twos, in;  // of products a few twos: they are exact
    for (const Scan& s : scans) {
      twos.emplace_back(dtype, s.shape, [](std::int64_t i) { return i % 37 == 5 ? 2.0 : 1.0; });
      in.push_back(pattern(dtype, s.shape));
    }
    check(twos, scans, 0, cumprod, [](double x, double y) { return x * y; });
    check(in, scans, 0, cummax, [](double x, double y) { return std::max(x, y); });
    check(in, scans, 0, cummin, [](double x, double y) { return std::min(x, y); });
  }
}

TEST_CASE("cummax keeps a NaN from where it stands") {
  Tensor x(f32, {5}, {1, 3, std::nan(""), 7, 2}), o(f32, {5}), p(f32, {5});
  run(
      [](Ref x, Ref o, Ref p) {
        o[_] = cummax(x[_]);
        p[_] = cummin(x[_], {.reverse = true});
      },
      {}, {&x}, {&o, &p});
  CHECK((o[0] == 1 && o[1] == 3));
  CHECK((p[4] == 2 && p[3] == 2));
  for (const std::int64_t i : {2, 3, 4}) CHECK(std::isnan(o[i]));
  for (const std::int64_t i : {0, 1, 2}) CHECK(std::isnan(p[i]));
}

TEST_CASE("cumsum in a loop adds up what each iteration gives it") {
  Tensor x = pattern(i32, {4, 300}), o(i32, {4, 300}), p(i32, {300});
  run(
      [](Ref x, Ref o, Ref p) {
        p[_] = loop(
            0, 4, {},
            [&](Index i, Value acc) {
              const Value row = cumsum(x[{i, _}]);
              o[{i, _}] = row;
              return carry(cumsum(acc + row, {.reverse = true}));
            },
            zeros({300}, i32));
      },
      {}, {&x}, {&o, &p});
  CHECK(o.numbers() == sums(x, {{4, 300}, 1}));
}

TEST_CASE("running sums that take a block's whole memory, one behind the other, share it") {
  Tensor x = pattern(i32, {40'000}), y(i32, {40'000}, [](std::int64_t i) { return i % 7; });
  Tensor a(i32, {40'000}), b(i32, {40'000}), c(i32, {40'000});
  run(
      [](Ref x, Ref y, Ref a, Ref b, Ref c) {
        a[_] = cumsum(x[_]);
        b[_] = cumsum(y[_], {.reverse = true});
        fori_loop(0, 3, [&](Value) {
          c[_] = cumsum(x[_] + 1);
          c[_] = cumsum(y[_] * 2);
        });
      },
      {}, {&x, &y}, {&a, &b, &c});
  CHECK(a.numbers() == sums(x, {{40'000}, 0}));
  CHECK(b.numbers() == sums(y, {{40'000}, 0, true}));
  const Tensor twice(i32, {40'000}, [&](std::int64_t i) { return 2 * y[i]; });
  CHECK(c.numbers() == sums(twice, {{40'000}, 0}));
}
