// The kernel cache on disk, to look at.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "palladium/api.hpp"
#include "palladium/resources.hpp"

namespace palladium {

/// A compiled kernel on disk.
struct CacheEntry {
  std::string key;        ///< 64 hex digits
  std::string toolchain;  ///< of the NVRTC that compiled it, 16 hex digits
  std::string path;
  std::int64_t bytes = 0;
  bool usable = false;  ///< only then is the rest known

  std::string kernel;
  std::string function;  ///< the cubin's entry point
  std::string arch;
  std::string nvrtc;          ///< "13.0"
  std::string location;       ///< the user's line, "softmax.cpp:12"
  std::int64_t built_at = 0;  ///< seconds since 1970
  double compile_ms = 0;
  Resources resources;
  /// What the key was made of, by name: Lowered::key_components().
  std::vector<std::pair<std::string, std::string>> components;
};

/// Where compiled kernels are kept; "" where the environment names no place.
PALLADIUM_API std::string cache_root();

/// The files that are named like entries, in the order of their names "<key>.<toolchain>"; those
/// alone whose name begins with `prefix`. What makes one unusable is a log line.
PALLADIUM_API std::vector<CacheEntry> cache_entries(const std::string& prefix = {});

/// The parts of an entry that are for people.
struct CacheText {
  std::string cuda_source;  ///< without the device library
  std::string ptx;
};
/// CompileError if the entry is gone or unusable.
PALLADIUM_API CacheText cache_text(const CacheEntry& entry);

/// What the cache has done for this process so far.
struct CacheStats {
  std::int64_t hits = 0;     ///< kernels that did not have to be compiled
  std::int64_t misses = 0;   ///< kernels that had to
  std::int64_t refused = 0;  ///< files that were damaged, not trusted, or not given by the disk
  std::int64_t stored = 0;
  std::int64_t not_stored = 0;
  std::int64_t evicted = 0;
  std::int64_t evicted_bytes = 0;
  std::int64_t temporaries = 0;  ///< files left by processes that were killed, removed
};
PALLADIUM_API CacheStats cache_stats();

/// What PALLADIUM_CACHE_SIZE and PALLADIUM_CACHE_FILES allow.
struct CacheBounds {
  std::int64_t bytes = 0;
  std::int64_t files = 0;
};
PALLADIUM_API CacheBounds cache_bounds();

struct CacheRemoved {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;
  std::int64_t temporaries = 0;
};
/// Brings the cache within its bounds, and removes what killed processes left an hour ago.
PALLADIUM_API CacheRemoved prune_cache();
/// Removes everything.
PALLADIUM_API CacheRemoved clear_cache();

/// What is wrong with an entry, or "": reads and checks all of it. With `recompile` it is also
/// compiled again, where this machine has the very NVRTC that compiled it and this is the Palladium
/// that stored it, and must give the same bytes.
PALLADIUM_API std::string verify_cache_entry(const CacheEntry& entry, bool recompile = false);

}  // namespace palladium
