// A copy of a matrix by hand: tiles come to a ring of slots in shared memory and go on from there,
// and no thread touches an element.
#pragma once

#include <algorithm>

#include "palladium/palladium.hpp"

namespace mosaic {

struct CopyTile {
  std::int64_t rows = 64, columns = 128;
  int slots = 4;  ///< of the ring: tiles that are on their way in or out at once
};

/// o = x, {rows, columns} that the tile divides; a block copies a column of tiles.
inline pl::Kernel copy(CopyTile t = {}) {
  const auto body = [=](pl::Ref x, pl::Ref o, pl::Ref ring, pl::Ref there) {
    const std::int64_t steps = x.shape()[0].value() / t.rows;
    const pl::Value column = pl::axis_index("column") * t.columns;
    const auto tile = [&](const pl::Ref& of, const pl::Value& step) {
      return of.at({pl::ds(step * t.rows, t.rows), pl::ds(column, t.columns)});
    };
    const auto fetch = [&](const pl::Value& step) {
      plgpu::copy_gmem_to_smem(tile(x, step), ring.at(step % t.slots), there.at(step % t.slots));
    };
    // Half of the slots are filled ahead, while what the others hold goes out.
    const int ahead = t.slots / 2;
    pl::loop(0, std::min<std::int64_t>(ahead, steps), [&](pl::Index step) { fetch(step); });
    pl::loop(0, steps, [&](pl::Index step) {
      const pl::Value slot = step % t.slots;
      plgpu::barrier_wait(there.at(slot));
      plgpu::copy_smem_to_gmem(ring.at(slot), tile(o, step));
      pl::when(step + ahead < steps, [&] {
        // The tile that had this slot has left: all have but the last ones.
        plgpu::wait_smem_to_gmem(t.slots - ahead - 1, {.wait_read_only = true});
        fetch(step + ahead);
      });
    });
    plgpu::wait_smem_to_gmem(0);
  };

  return plgpu::kernel(body, [=](pl::ShapeDtype x) {
    return plgpu::KernelOptions{
        .name = "copy",
        .out_type = x,
        .grid = {x.shape[1].value() / t.columns},
        .grid_names = {"column"},
        .scratch_types = {plgpu::SMEM({t.slots, t.rows, t.columns}, x.dtype),
                          plgpu::Barrier({.num_barriers = t.slots})}};
  });
}

}  // namespace mosaic
