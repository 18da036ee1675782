// Barriers: by which the threads of a block wait for each other, and for copies. What a thread did
// before it arrived has happened for whoever waited for that. From sm_90 on.
#pragma once

#include <concepts>
#include <initializer_list>

#include "palladium/spec.hpp"

namespace palladium::gpu {

/// How many barriers: a number, or an array of them, `{2, 3}`.
class BarrierCount {
 public:
  template <std::integral T>
  BarrierCount(T n) : shape{n} {}
  BarrierCount(std::initializer_list<Dim> dims) : shape(dims) {}

  Shape shape;
};

struct BarrierOptions {
  int num_arrivals = 1;           ///< of threads and copies, which complete a barrier
  BarrierCount num_barriers = 1;  ///< 1 to 32 in all
};

/// Barriers of the block, as scratch of a kernel over a mesh:
/// `plgpu::Barrier({.num_arrivals = 2, .num_barriers = 2})`. One of several is chosen by a
/// subscript, `b.at(i)`.
inline Scoped Barrier(BarrierOptions options = {}, Location at = here()) {
  Scoped barriers{Space::barrier, {std::move(options.num_barriers.shape), u64}, at};
  barriers.arrivals = options.num_arrivals;
  return barriers;
}

/// Arrives once for the calling Pallas thread. The last of `num_arrivals` completes the barrier,
/// which then begins anew; it completes again only when a thread has waited for that.
PALLADIUM_API void barrier_arrive(const Ref& barrier, Location at = here());
/// Waits for the next completion that the calling thread has not waited for. A thread that waits
/// for a barrier waits for every completion of it.
PALLADIUM_API void barrier_wait(const Ref& barrier, Location at = here());
/// Whether barrier_wait would not wait; if so the thread has waited for that completion.
PALLADIUM_API Effect barrier_test(const Ref& barrier, const detail::Expression& at = {});

}  // namespace palladium::gpu
