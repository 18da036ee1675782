// Two bodies in one launch: while one warpgroup of a block computes on a tile, another one fetches
// the next. They hand tiles over through shared memory, two at a time, by semaphores.
#include <cstdio>
#include <palladium/palladium.hpp>

using pl::_;

namespace {

constexpr int slots = 2, tile = 512;

// x, in rows of tiles, becomes the running sum of the squares of each row's tiles.
pl::Kernel sums_of_squares(int rows, int tiles) {
  const auto producer = [=](pl::Ref x, pl::Ref, pl::Scratch s) {
    pl::loop(0, tiles, [&](pl::Index i) {
      const pl::Value slot = i % slots;
      pl::semaphore_wait(s["empty"].at(slot));
      s["tiles"][slot] = x[{pl::axis_index("row"), pl::ds(i * tile, tile)}];
      pl::semaphore_signal(s["full"].at(slot));
    });
  };
  const auto consumer = [=](pl::Ref, pl::Ref o, pl::Scratch s) {
    for (int slot = 0; slot < slots; ++slot) pl::semaphore_signal(s["empty"].at(slot));
    s["sum"][_] = pl::zeros({tile}, pl::f32);
    pl::loop(0, tiles, [&](pl::Index i) {
      const pl::Value slot = i % slots;
      pl::semaphore_wait(s["full"].at(slot));
      s["sum"][_] += pl::square(s["tiles"][slot]);
      pl::semaphore_signal(s["empty"].at(slot));
      o[{pl::axis_index("row"), pl::ds(i * tile, tile)}] = s["sum"][_];
    });
  };
  const plgpu::Mesh mesh{.grid = {rows}, .grid_names = {"row"}};
  return pl::kernel({producer, consumer},
                    {.name = "sums_of_squares",
                     .out_type = {{rows, tiles * tile}, pl::f32},
                     .mesh = {mesh, mesh},
                     .scratch_types = {{"tiles", plgpu::SMEM({slots, tile}, pl::f32)},
                                       {"sum", plgpu::REGS({tile}, pl::f32).on(1)},
                                       {"full", plgpu::SemaphoreType::REGULAR({slots})},
                                       {"empty", plgpu::SemaphoreType::REGULAR({slots})}}});
}

}  // namespace

int main() {
  constexpr int rows = 4, tiles = 6;
  pl::Array x = pl::Array::empty({rows, tiles * tile}, pl::f32);
  float* element = x.data<float>();
  for (std::int64_t i = 0; i < x.size(); ++i) element[i] = static_cast<float>(i / tile % tiles);
  const pl::Array y = sums_of_squares(rows, tiles)(x.to(pl::default_device()));
  const pl::Array on_host = y.to(pl::Device::cpu());
  bool right = true;
  for (int i = 0; i < tiles; ++i) {
    const float sum = on_host.values<float>()[static_cast<std::size_t>(i * tile)];
    right &= sum == static_cast<float>(i * (i + 1) * (2 * i + 1) / 6);
    std::printf("%g%s", sum, i + 1 < tiles ? " " : "\n");
  }
  return right ? 0 : 1;
}
