// What caches of this process have done, counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace palladium::cache {

enum class Event {
  hit,      // a kernel that did not have to be compiled
  miss,     // one that had to
  refused,  // a file that is damaged, not trusted, or that the disk does not give
  stored,
  not_stored,
  evicted,
  evicted_bytes,
  temporary,  // left by a process that was killed, removed
  count
};

inline constinit std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Event::count)>
    events = {};

inline void count(Event event, std::uint64_t times = 1) {
  events[static_cast<std::size_t>(event)].fetch_add(times, std::memory_order_relaxed);
}
inline std::uint64_t counted(Event event) {
  return events[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
}

}  // namespace palladium::cache
