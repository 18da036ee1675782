// Sorting against the library's, on interpreter and emulator, and random bits against Random123.
#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

constexpr DType every[] = {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

// Numbers of which some are equal, and none is 0 with a sign.
Tensor shuffled(DType t, std::vector<std::int64_t> shape) {
  return Tensor(t, std::move(shape), [=](std::int64_t i) {
    const auto x = static_cast<double>((i * 37 + i / 7 * 11) % 101);
    if (t.is_bool()) return x > 50 ? 1.0 : 0.0;
    return t.is_signed() ? x - 40 : x;
  });
}

bool below(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

struct Sorting {
  std::vector<std::int64_t> shape;
  int axis = -1;
  bool descending = false;
};

void check(const Tensor& in, const Sorting& s, int num_warps = 0) {
  CAPTURE(in.dtype().name(), s.shape, s.axis, s.descending, num_warps);
  Tensor x = in, o(in.dtype(), s.shape), places(i32, s.shape);
  const SortOptions options{s.axis, s.descending};
  run(
      [&](Ref x, Ref o, Ref places) {
        o[_] = sort(x[_], options);
        places[_] = argsort(x[_], options);
      },
      {.compiler_params = {.num_warps = num_warps}}, {&x}, {&o, &places});
  const std::size_t along = s.axis < 0 ? s.shape.size() - 1 : static_cast<std::size_t>(s.axis);
  std::int64_t inner = 1;
  for (std::size_t d = along + 1; d < s.shape.size(); ++d) inner *= s.shape[d];
  const std::int64_t extent = s.shape[along];
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (i / inner % extent != 0) continue;
    const auto number = [&](std::int64_t k) { return x[i + k * inner]; };
    std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
      return s.descending ? below(number(b), number(a)) : below(number(a), number(b));
    });
    for (std::int64_t k = 0; k < extent; ++k) {
      const std::int64_t from = order[static_cast<std::size_t>(k)];
      REQUIRE(places[i + k * inner] == from);
      const double got = o[i + k * inner], expected = number(from);
      REQUIRE((got == expected || (std::isnan(got) && std::isnan(expected))));
    }
  }
}

// The k largest of each row, beside a stable sort.
void check_top(const Tensor& in, std::int64_t rows, std::int64_t columns, std::int64_t k) {
  CAPTURE(in.dtype().name(), rows, columns, k);
  Tensor x = in, values(in.dtype(), {rows, k}), indices(i32, {rows, k});
  run(
      [&](Ref x, Ref values, Ref indices) {
        const TopK best = top_k(x[_], k);
        values[_] = best.values;
        indices[_] = best.indices;
      },
      {}, {&x}, {&values, &indices});
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(columns));
    std::iota(order.begin(), order.end(), r * columns);
    std::ranges::stable_sort(order,
                             [&](std::int64_t a, std::int64_t b) { return below(x[b], x[a]); });
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t from = order[static_cast<std::size_t>(i)];
      REQUIRE(indices[r * k + i] == from - r * columns);
      const double got = values[r * k + i], expected = x[from];
      REQUIRE((got == expected || (std::isnan(got) && std::isnan(expected))));
    }
  }
}

}  // namespace

TEST_CASE("every dtype is sorted, up and down, and where its elements stood is known") {
  for (const DType t : every)
    for (const bool descending : {false, true})
      check(shuffled(t, {3, 20}), {{3, 20}, -1, descending});
}

TEST_CASE("values are sorted along every axis of every rank, whatever the sizes") {
  for (const Sorting& s : {Sorting{{1}},
                           {{2}},
                           {{3}},
                           {{16}},
                           {{127}},
                           {{128}},
                           {{1000}, 0, true},
                           {{1, 5}},
                           {{5, 1}},
                           {{17, 9}, 0},
                           {{17, 9}, 1, true},
                           {{4, 6, 5}, 1}})
    check(shuffled(f32, s.shape), s);
}

TEST_CASE("values are sorted by 4, 8 and 16 warps") {
  for (const int warps : {4, 8, 16}) check(shuffled(i32, {2, 300}), {{2, 300}}, warps);
}

TEST_CASE("NaNs are above all others") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = INFINITY;
  for (const DType t : {f16, bf16, f32, f64})
    for (const bool descending : {false, true})
      check(Tensor(t, {7}, {3, nan, -inf, inf, nan, -2, 5}), {{7}, 0, descending});
}

TEST_CASE("top_k gives the largest and where they stood, the first of equal ones first") {
  Tensor x(f32, {2, 6}, {1, 9, 4, 9, -3, 4, 0, 0, 0, 7, 0, 0}), v(f32, {2, 3}), i(i32, {2, 3});
  run(
      [](Ref x, Ref v, Ref i) {
        const auto [values, indices] = top_k(x[_], 3);
        v[_] = values;
        i[_] = indices;
      },
      {}, {&x}, {&v, &i});
  CHECK(v.numbers() == std::vector<double>{9, 9, 4, 7, 0, 0});
  CHECK(i.numbers() == std::vector<double>{1, 3, 2, 3, 0, 1});
}

TEST_CASE("the few largest and all of them, of every dtype and whatever the sizes") {
  for (const DType t : every)
    for (const std::int64_t k : {1, 2, 7, 20}) check_top(shuffled(t, {3, 20}), 3, 20, k);
  for (const std::int64_t columns : {1, 2, 3, 33, 128, 300})
    for (const std::int64_t k : {std::int64_t{1}, std::min<std::int64_t>(9, columns), columns})
      check_top(shuffled(f32, {5, columns}), 5, columns, k);
}

TEST_CASE("of the largest NaNs come first, and infinities and equal ones each once") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = INFINITY;
  for (const DType t : {f16, bf16, f32, f64})
    for (std::int64_t k = 1; k <= 8; ++k) {
      check_top(Tensor(t, {2, 8},
                       {3, nan, -inf, inf, nan, -2, 3, -inf,  //
                        -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf}),
                2, 8, k);
      check_top(Tensor(t, {1, 8}, {nan, nan, nan, nan, nan, nan, nan, nan}), 1, 8, k);
    }
  check_top(Tensor(i32, {1, 4}, {-2147483648.0, 5, -2147483648.0, 5}), 1, 4, 4);
}

TEST_CASE("what is computed is sorted, and what is sorted is computed with") {
  Tensor x = shuffled(i32, {50}), o(i32, {50});
  run([](Ref x, Ref o) { o[_] = cumsum(sort(-x[_])); }, {}, {&x}, {&o});
  std::vector<double> sorted = x.numbers();
  for (double& e : sorted) e = -e;
  std::ranges::sort(sorted);
  double all = 0;
  for (std::int64_t i = 0; i < 50; ++i)
    REQUIRE(o[i] == (all += sorted[static_cast<std::size_t>(i)]));
}

// The known answers of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", for the
// counters that two words reach.
TEST_CASE("philox gives the bits of Philox 4x32-10") {
  Tensor o(u32, {4, 3});
  run(
      [](Ref o) {
        const Values<4> bits = philox(u64(0), iota(u64, {3}));
        for (int i = 0; i < 4; ++i) o[i] = bits[static_cast<std::size_t>(i)];
      },
      {}, {}, {&o});
  const auto reference = [](std::uint64_t seed, std::uint64_t counter) {
    std::uint32_t c[4] = {std::uint32_t(counter), std::uint32_t(counter >> 32), 0, 0};
    std::uint32_t k[2] = {std::uint32_t(seed), std::uint32_t(seed >> 32)};
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
      const std::uint32_t next[4] = {std::uint32_t(b >> 32) ^ c[1] ^ k[0], std::uint32_t(b),
                                     std::uint32_t(a >> 32) ^ c[3] ^ k[1], std::uint32_t(a)};
      std::copy_n(next, 4, c);
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
    return std::vector<std::uint32_t>(c, c + 4);
  };
  CHECK(reference(0, 0) ==
        std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  for (std::int64_t n = 0; n < 3; ++n)
    for (std::int64_t i = 0; i < 4; ++i)
      CHECK(o.bits(i * 3 + n) ==
            reference(0, static_cast<std::uint64_t>(n))[static_cast<std::size_t>(i)]);
}
