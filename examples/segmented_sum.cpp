// Sums of segments of an array, whose number only the device knows: each segment is a program of a
// grid that is as large as an array says, and walks its tiles, of which there are at most as many
// as a number says that the host passes.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "palladium/palladium.hpp"

using pl::_;

namespace {

constexpr std::int64_t tile = 128;

/// count: how many segments there are, [1]; bounds: segment s reaches from bounds[s] to
/// bounds[s + 1]; x: [n]; result: a sum for each of the segments that there may be.
pl::Kernel segmented_sum() {
  return pl::pallas_call(
      [](pl::Ref, pl::Ref bounds, pl::Value, pl::Ref x, pl::Ref o) {
        pl::Value segment = pl::program_id(0), step = pl::program_id(1);
        pl::Value low = bounds[segment], high = bounds[segment + 1];
        pl::when(step == 0, [&] { o[_] = pl::zeros({1}, pl::f32); });
        pl::Value at = (low / tile + step) * tile + pl::iota(pl::i32, {tile}, 0);
        pl::Value mine = pl::where((at >= low) & (at < high), x[_], 0.f);
        o[_] += pl::sum(mine, {.axis = 0, .keepdims = true});
      },
      [](pl::ShapeDtype, pl::ShapeDtype bounds, pl::ShapeDtype, pl::ShapeDtype x) {
        const pl::Dim segments = bounds.shape[0] - 1, tiles = pl::cdiv(x.shape[0], tile);
        using pl::Index, pl::Ref;
        return pl::PallasCallOptions{
            .name = "segmented_sum",
            .out_type = {{segments}, pl::f32},
            .num_scalar_prefetch = 2,
            .grid = {pl::at_most(pl::argument(0), segments), pl::argument(2)},
            .in_specs = {{{tile},
                          [last = tiles - 1](Index segment, Index step, Ref, Ref bounds) {
                            return pl::minimum(bounds[segment] / tile + step, last.value());
                          },
                          {.fill = 0}}},
            .out_specs = {{{1}, [](Index segment, Index, Ref, Ref) { return segment; }}}};
      });
}

}  // namespace

int main() try {
  constexpr std::int64_t n = 1000;
  const std::vector<std::int32_t> bounds{0, 3, 3, 250, 900, 1000, 0, 0};
  std::vector<std::int32_t> count{5}, held = bounds;
  std::int64_t steps = 1;
  for (std::size_t s = 0; s < 5; ++s)
    if (bounds[s + 1] > bounds[s])
      steps = std::max<std::int64_t>(steps, (bounds[s + 1] - 1) / tile - bounds[s] / tile + 1);
  const pl::Array x = pl::Array::empty({n}, pl::f32);
  for (std::int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(i % 11);

  const pl::Device device = pl::default_device();
  const pl::Array result = segmented_sum()(
      pl::Array::view(std::span(count)).to(device), pl::Array::view(std::span(held)).to(device),
      pl::scalar(static_cast<std::int32_t>(steps)), x.to(device));
  const pl::Array sums = result.to(pl::Device::cpu());

  int wrong = 0;
  for (std::size_t s = 0; s < 5; ++s) {
    const float* const first = x.data<float>();
    wrong +=
        sums.data<float>()[s] != std::accumulate(first + bounds[s], first + bounds[s + 1], 0.f);
  }
  std::printf("segmented_sum: %d of %zu segments on %s, %d wrong\n", count[0], bounds.size() - 1,
              pl::to_string(pl::default_target()), wrong);
  return wrong == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
