// A roofline: what bounds a block on its multiprocessor, and a call on its device.
#include <algorithm>
#include <iterator>

#include "codegen/graph/limits.hpp"
#include "codegen/thread/occupancy.hpp"
#include "codegen/thread/report.hpp"

namespace palladium::thread {
namespace {

// Devices by which architectures are judged, those of the table of multiprocessors: boost clocks
// and public figures.
struct Device {
  int compute_capability;  // from this on, up to the next row
  double ghz, gb_per_second;
  double l2_bytes;               // per multiprocessor and clock
  double multiply_adds, by_mma;  // the same: of 16-bit operands, by wgmma and by mma.sync
};
constexpr Device devices[] = {
    {75, 1.59, 320, 20, 512, 512},
    {80, 1.41, 2039, 47, 1024, 1024},
    {90, 1.755, 3352, 64, 2048, 1270},
};

constexpr double schedulers = 4, special_units = 16, fma_units = 128;
constexpr int bytes_of_wavefront = 128;

const Device& device_of(int compute_capability) {
  const Device* last = std::begin(devices);
  for (const Device& d : devices)
    if (d.compute_capability <= compute_capability) last = &d;
  return *last;
}

}  // namespace

Prediction predict(const Report& r, const TensorWork& tensor, int compute_capability, int threads) {
  const Device& d = device_of(compute_capability);
  const double warps = static_cast<double>(threads) / graph::warp_threads;
  const InstructionMix& m = r.mix;
  const double instructions = m.global_loads + m.global_stores + m.shared_loads + m.shared_stores +
                              m.operations + m.special + m.products + m.exchanges + m.barriers;
  double wavefronts = 0;  // of a warp
  for (const AccessReport& a : r.accesses)
    if (a.shared)
      wavefronts +=
          a.times * std::max(a.touched, a.bytes * graph::warp_threads / bytes_of_wavefront);
  return {.issue = (instructions / schedulers + m.multiply_adds * graph::warp_threads / fma_units) *
                   warps,
          .special = m.special * threads / special_units,
          .tensor = tensor.by_wgmma / d.multiply_adds + tensor.by_mma / d.by_mma,
          .shared = wavefronts * warps + tensor.shared_bytes / bytes_of_wavefront,
          .memory = r.moved_bytes * warps / d.l2_bytes,
          .device = multiprocessor(d.compute_capability).device};
}

void predict_call(Prediction& p, int compute_capability, std::int64_t blocks,
                  std::int64_t array_bytes) {
  const Device& d = device_of(compute_capability);
  const auto waves =
      static_cast<double>(cdiv(blocks, std::int64_t{multiprocessor(d.compute_capability).count}));
  constexpr double clocks_of_microsecond = 1e3, bytes_of_microsecond = 1e3;
  p.microseconds =
      std::max(waves * p.clocks() / (d.ghz * clocks_of_microsecond),
               static_cast<double>(array_bytes) / (d.gb_per_second * bytes_of_microsecond));
}

}  // namespace palladium::thread
