// A softmax over rows that two blocks share: each has half of the columns, and reads of the other's
// shared memory what that found in its own.
#pragma once

#include "palladium/palladium.hpp"

namespace mosaic {

/// Of {rows, columns} of f32, an even number of columns; `rows_at_once` of them by a pair of
/// blocks.
inline pl::Kernel softmax(std::int64_t rows_at_once = 4) {
  const auto body = [=](pl::Ref x, pl::Ref o, pl::Ref found, pl::Ref both) {
    const std::int64_t half = x.shape()[1].value() / 2;
    const pl::Value block = pl::axis_index("half");
    const auto rows = pl::ds(pl::axis_index("rows") * rows_at_once, rows_at_once);
    const auto columns = pl::ds(block * half, half);

    // What the other block found for its half, of each row: it is there when both have arrived.
    // Each of the two times has its own place, so that nobody overwrites what the other still
    // reads.
    const auto of_other = [&](int time, const pl::Value& own) {
      found[time] = own;
      plgpu::barrier_arrive(both);
      plgpu::barrier_wait(both);
      return pl::Value(plgpu::cluster_ref(found.at(time), {{"half", 1 - block}})[pl::_]);
    };

    const pl::Value v = x[{rows, columns}];
    const pl::Value largest = pl::max(v, {.axis = {1}, .keepdims = true});
    const pl::Value e = pl::exp(v - pl::maximum(largest, of_other(0, largest)));
    const pl::Value sum = pl::sum(e, {.axis = {1}, .keepdims = true});
    o[{rows, columns}] = e / (sum + of_other(1, sum));
  };

  return plgpu::kernel(body, [=](pl::ShapeDtype x) {
    return plgpu::KernelOptions{
        .name = "softmax_of_two_blocks",
        .out_type = x,
        .grid = {x.shape[0].value() / rows_at_once},
        .grid_names = {"rows"},
        .cluster = {2},
        .cluster_names = {"half"},
        .scratch_types = {plgpu::SMEM({2, rows_at_once, 1}, pl::f32),
                          plgpu::ClusterBarrier({.collective_axes = {"half"}})}};
  });
}

}  // namespace mosaic
