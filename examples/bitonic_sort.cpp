// Sorts every row by a bitonic network: elements whose places differ in one bit are compared and
// change places, first in pairs, then in runs of 4, 8, ... that go up and down by turns. Compared
// with std::sort.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "palladium/palladium.hpp"

using pl::_;

namespace {

constexpr std::int64_t rows = 16, columns = 64;

pl::Kernel bitonic_sort() {
  return pl::pallas_call(
      [](pl::Ref x, pl::Ref o, pl::Ref row) {
        const pl::Value place = pl::iota(pl::i32, {columns});
        row[_] = x[_].reshape({columns});
        for (int run = 2; run <= columns; run *= 2)
          for (int apart = run / 2; apart > 0; apart /= 2) {
            const pl::Value one = row[_], other = row[place ^ apart];
            const pl::Value rises = (place & run) == 0, is_first = (place & apart) == 0;
            row[_] = pl::where(rises == is_first, pl::minimum(one, other),
                               pl::maximum(one, other));
          }
        o[_] = row[_].reshape({1, columns});
      },
      [](pl::ShapeDtype x) {
        const pl::BlockSpec row{{1, columns}, [](pl::Index i) { return pl::Indices{i, 0}; }};
        return pl::PallasCallOptions{.name = "bitonic_sort",
                                     .out_type = x,
                                     .grid = {x.shape[0]},
                                     .in_specs = {row},
                                     .out_specs = {row},
                                     .scratch_types = {pl::gpu::SMEM({columns}, pl::f32)}};
      });
}

}  // namespace

int main() try {
  const pl::Array x = pl::Array::empty({rows, columns}, pl::f32);
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data<float>()[i] = static_cast<float>(i * 7919 % 1009) - 500;
  const pl::Array sorted = bitonic_sort()(x.to(pl::default_device()));
  const pl::Array o = sorted.to(pl::Device::cpu());
  int wrong = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = x.data<float>() + r * columns;
    std::sort(row, row + columns);
    for (std::int64_t c = 0; c < columns; ++c) wrong += o.data<float>()[r * columns + c] != row[c];
  }
  std::printf("bitonic_sort: %lld rows of %lld on %s, %d elements wrong\n",
              static_cast<long long>(rows), static_cast<long long>(columns),
              pl::to_string(pl::default_target()), wrong);
  return wrong == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
