// In which order a GPU is given the programs of a grid.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/targets.hpp"

namespace pl = palladium;

namespace {

struct Sizes {
  std::int64_t batch, rows, columns;
  std::int64_t programs() const { return batch * rows * columns; }
};

/// Which number each program has, row-major, among those that the emulator has begun.
std::vector<std::int64_t> numbers(const Sizes& s, std::optional<pl::GridOrder> order, bool symbolic,
                                  pl::Interpret interpret = {}) {
  const auto count = [](pl::Ref, pl::Ref, pl::Ref, pl::Ref begun, pl::Ref number) {
    const pl::Value row = pl::program_id(0) * pl::num_programs(1) + pl::program_id(1);
    const pl::Value n = pl::atomic_add(begun.at({0}), 1);
    pl::atomic_add(number.at({row * pl::num_programs(2) + pl::program_id(2)}), n);
  };
  const auto options = [=](const pl::Shape& x) {
    return pl::PallasCallOptions{
        .out_type = {pl::ShapeDtype{{1}, pl::i32}, pl::ShapeDtype{{s.programs()}, pl::i32}},
        .grid = {x[0], x[1], x[2]},
        .in_specs = {pl::BlockSpec{}, pl::BlockSpec{}, pl::BlockSpec{}},
        .out_specs = {pl::BlockSpec{}, pl::BlockSpec{}},
        .input_output_aliases = {{1, 0}, {2, 1}},
        .interpret = interpret,
        .compiler_params = {.grid_order = order}};
  };
  const pl::Shape shape{s.batch, s.rows, s.columns};
  const pl::Array x = pl::Array::zeros(shape, pl::i8), zero = pl::Array::zeros({1}, pl::i32),
                  numbers = pl::Array::zeros({s.programs()}, pl::i32);
  const auto run = [&](auto kernel) {
    const auto [begun, number] =
        kernel.on(pl::Target::emulator)(x, zero, numbers).template unpack<2>();
    CHECK(begun.template data<std::int32_t>()[0] == s.programs());
    const std::int32_t* const n = number.template data<std::int32_t>();
    return std::vector<std::int64_t>(n, n + number.size());
  };
  if (!symbolic) return run(pl::pallas_call(count, options(shape)));
  return run(pl::pallas_call(
      count, [=](pl::ShapeDtype x, pl::ShapeDtype, pl::ShapeDtype) { return options(x.shape); }));
}

std::vector<std::int64_t> expected(const Sizes& s, std::int64_t group) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(s.programs()));
  std::int64_t n = 0;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t first = 0; first < s.rows; first += group)
      for (std::int64_t column = 0; column < s.columns; ++column)
        for (std::int64_t row = first; row < std::min(first + group, s.rows); ++row)
          numbers[static_cast<std::size_t>((b * s.rows + row) * s.columns + column)] = n++;
  return numbers;
}

}  // namespace

TEST_CASE("programs begin column by column of as many rows as grid_order says") {
  for (const int group : {1, 2, 3, 65536})
    for (const Sizes& s : {Sizes{1, 7, 5}, Sizes{3, 4, 2}, Sizes{2, 1, 3}}) {
      CAPTURE(group, s.batch, s.rows, s.columns);
      CHECK(numbers(s, pl::grouped(group), true) == expected(s, group));
    }
  CHECK(numbers({3, 7, 2}, pl::grouped(3), false) == expected({3, 7, 2}, 3));
  CHECK(numbers({3, 7, 2}, pl::row_major, false) == expected({3, 7, 2}, 1));
  CHECK(numbers({3, 7, 2}, {}, true) == expected({3, 7, 2}, 1));
}

TEST_CASE("programs begin in an order that a seed gives, each once") {
  const Sizes s{3, 5, 7};
  const auto by_seed = [&](std::int64_t seed) {
    return numbers(s, {}, false,
                   pl::InterpretParams{.random_seed = seed, .num_cores_per_device = 1});
  };
  const std::vector<std::int64_t> in_order = expected(s, 1), shuffled = by_seed(1);
  CHECK(std::ranges::is_permutation(shuffled, in_order));
  CHECK(shuffled != in_order);
  CHECK(by_seed(1) == shuffled);
  CHECK(by_seed(2) != shuffled);
  CHECK(by_seed(-1) == in_order);
}

TEST_CASE("a grid of any size is shuffled without a program left out") {
  for (const std::int64_t columns : {1, 2, 3, 4, 5, 15, 16, 17}) {
    const Sizes s{1, 1, columns};
    const auto begun = numbers(s, {}, false, pl::InterpretParams{.random_seed = 9});
    CHECK(std::ranges::is_permutation(begun, expected(s, 1)));
  }
}
