// A product whose left operand has blocks of zeros that nobody stores: each row of blocks has a
// list of those that there are. Index maps read the lists (scalar prefetch), the last axis of the
// grid walks them, and ragged edges are filled with 0.
#include <cmath>
#include <cstdio>
#include <vector>

#include "palladium/palladium.hpp"

using pl::_;

namespace {

constexpr std::int64_t size = 32;  // of a block, in both directions

/// counts: [rows], columns and blocks: [rows, most] (which block column, which of the stored
/// blocks), stored: [stored blocks, size, size], b: [k, n].
pl::Kernel block_sparse_matmul() {
  return pl::pallas_call(
      [](pl::Ref counts, pl::Ref, pl::Ref, pl::Ref a, pl::Ref b, pl::Ref o) {
        pl::Value step = pl::program_id(2);
        pl::when(step == 0, [&] { o[_] = pl::zeros({size, size}, pl::f32); });
        pl::when(step < counts[pl::program_id(0)], [&] { o[_] += pl::dot(a[_], b[_]); });
      },
      [](pl::ShapeDtype counts, pl::ShapeDtype columns, pl::ShapeDtype, pl::ShapeDtype,
         pl::ShapeDtype b) {
        const pl::Dim rows = counts.shape[0], most = columns.shape[1], n = b.shape[1];
        using pl::Index, pl::Indices, pl::Ref;
        return pl::PallasCallOptions{
            .name = "block_sparse_matmul",
            .out_type = {{rows * size, n}, pl::f32},
            .num_scalar_prefetch = 3,
            .grid = {rows, pl::cdiv(n, size), most},
            .in_specs = {{{pl::squeezed, size, size},
                          [](Index r, Index, Index s, Ref, Ref, Ref blocks) {
                            return Indices{blocks[{r, s}], 0, 0};
                          }},
                         {{size, size},
                          [](Index r, Index j, Index s, Ref, Ref columns, Ref) {
                            return Indices{columns[{r, s}], j};
                          },
                          {.fill = 0}}},
            .out_specs = {{{size, size}, [](Index r, Index j, Index, Ref, Ref, Ref) {
                             return Indices{r, j};
                           }}}};
      });
}

pl::Array numbers(const pl::Shape& shape, std::int64_t period) {
  const pl::Array a = pl::Array::empty(shape, pl::f32);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = static_cast<float>(i % period - period / 2);
  return a;
}

}  // namespace

int main() try {
  constexpr std::int64_t rows = 3, k = 4 * size, n = 50, most = 2;
  std::vector<std::int32_t> counts{2, 0, 1}, columns{0, 3, 0, 0, 2, 0}, blocks{0, 1, 0, 0, 2, 0};
  const pl::Array stored = numbers({3, size, size}, 7), b = numbers({k, n}, 5);

  const pl::Device device = pl::default_device();
  const auto list = [&](std::vector<std::int32_t>& v, const pl::Shape& shape) {
    return pl::Array::view(std::span(v), shape).to(device);
  };
  const pl::Array result =
      block_sparse_matmul()(list(counts, {rows}), list(columns, {rows, most}),
                            list(blocks, {rows, most}), stored.to(device), b.to(device));
  const pl::Array o = result.to(pl::Device::cpu());

  double error = 0;
  for (std::int64_t i = 0; i < rows * size; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const auto row = static_cast<std::size_t>(i / size);
      double sum = 0;
      for (std::size_t s = 0; s < static_cast<std::size_t>(counts[row]); ++s)
        for (std::int64_t l = 0; l < size; ++l)
          sum += stored.data<float>()[(blocks[most * row + s] * size + i % size) * size + l] *
                 b.data<float>()[(columns[most * row + s] * size + l) * n + j];
      error = std::max(error, std::abs(sum - o.data<float>()[i * n + j]));
    }
  std::printf("block_sparse_matmul: %s on %s, largest error %.2g\n",
              pl::to_string(o.type()).c_str(), pl::to_string(pl::default_target()), error);
  return error < 1e-3 ? 0 : 1;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
