// The kernel cache on disk, to look at.
#pragma once

#include <cstdint>
#include <string>
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

}  // namespace palladium
