// How benchmarks take time.
#pragma once

#include <time.h>

#include <algorithm>

namespace palladium::benchmark {

inline double seconds_on(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// As a user waits.
inline double wall_seconds() { return seconds_on(CLOCK_MONOTONIC); }
/// Of what works in one thread: does not depend on what else the machine does.
inline double thread_seconds() { return seconds_on(CLOCK_THREAD_CPUTIME_ID); }

double seconds_of(double (*now)(), const auto& action) {
  const double start = now();
  action();
  return now() - start;
}

/// The least that `action` takes in so many runs: what it costs when nothing else wants the
/// machine.
double best_of(int runs, double (*now)(), const auto& action) {
  double best = 1e30;
  for (int run = 0; run < runs; ++run) best = std::min(best, seconds_of(now, action));
  return best;
}
/// The thread's own time.
double best_of(int runs, const auto& action) { return best_of(runs, thread_seconds, action); }

}  // namespace palladium::benchmark
