// Counts how often each of 256 numbers occurs, compared with a plain loop. A program counts its
// block in shared memory; then all programs add to one array, atomically, in whatever order.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "palladium/palladium.hpp"

using pl::_;

namespace {

constexpr std::int64_t block = 1024, bins = 256;

pl::Kernel histogram() {
  return pl::pallas_call(
      [](pl::Ref x, pl::Ref, pl::Ref counts, pl::Ref own) {
        own[_] = pl::zeros({bins}, pl::i32);
        pl::atomic_add(own.at(x[_]), pl::full({block}, 1, pl::i32));
        pl::atomic_add(counts, own[_]);
      },
      [](pl::ShapeDtype x, pl::ShapeDtype counts) {
        const pl::BlockSpec part{{block}, [](pl::Index i) { return i; }};
        return pl::PallasCallOptions{.name = "histogram",
                                     .out_type = counts,
                                     .grid = {pl::cdiv(x.shape[0], block)},
                                     .in_specs = {part, pl::BlockSpec()},
                                     .out_specs = {pl::BlockSpec()},
                                     .scratch_types = {pl::gpu::SMEM({bins}, pl::i32)},
                                     .input_output_aliases = {{1, 0}}};
      });
}

}  // namespace

int main() try {
  constexpr std::int64_t size = 60 * block;
  const pl::Array x = pl::Array::empty({size}, pl::u8);
  const pl::Array zeros = pl::Array::empty({bins}, pl::i32);
  std::vector<std::int32_t> expected(bins);
  for (std::int64_t i = 0; i < size; ++i) {
    const auto number = static_cast<std::uint8_t>(i * i >> 7);
    x.data<std::uint8_t>()[i] = number;
    ++expected[number];
  }
  for (std::int64_t i = 0; i < bins; ++i) zeros.data<std::int32_t>()[i] = 0;

  const pl::Array counts = histogram()(x.to(pl::default_device()), zeros.to(pl::default_device()));
  const pl::Array o = counts.to(pl::Device::cpu());
  int wrong = 0;
  for (std::int64_t i = 0; i < bins; ++i)
    wrong += o.data<std::int32_t>()[i] != expected[static_cast<std::size_t>(i)];
  std::printf("histogram: %lld numbers on %s, %d counts wrong\n", static_cast<long long>(size),
              pl::to_string(pl::default_target()), wrong);
  return wrong == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
