// Which NVRTC this process would compile with: found and identified without loading it.
//
// The first that is new enough wins:
//   1. PALLADIUM_NVRTC: this file exactly, and nothing else
//   2. $CUDA_HOME/lib64
//   3. /usr/local/cuda/lib64
//   4. ../lib64 of the nvcc on PATH
//   5. where the dynamic loader looks: LD_LIBRARY_PATH, then the system's loader cache
//   6. .deps beside this library or in up to two folders above it (what `pip install --target`
//      makes of the nvidia-cuda-nvrtc wheel)
// In a toolkit `lib` and `targets/<machine>-linux/lib` stand in for a missing lib64.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace palladium::nvrtc {

/// The oldest NVRTC that takes all options which make a compile free of side effects.
inline constexpr int oldest_major = 12;
inline constexpr int oldest_minor = 9;

struct Toolchain {
  std::string library = {};   // path of libnvrtc
  std::string builtins = {};  // path of libnvrtc-builtins, which stands beside it
  int major = 0;
  int minor = 0;
  /// 16 hex digits: the first 8 of the build-id of each of the two files.
  std::string id = {};

  std::string version() const { return std::to_string(major) + "." + std::to_string(minor); }
};

struct Search {
  std::optional<Toolchain> found;
  /// What was met on the way and why it was passed over, one line each, for people.
  std::vector<std::string> passed_over;
};

/// Searches anew: microseconds, reads the environment.
Search find_toolchain();

/// The process's toolchain, searched for once.
const Search& toolchain();

/// How to get an NVRTC, without a full stop.
std::string toolchain_advice();

/// Why `search` found nothing and what to do about it.
std::string missing_toolchain_message(const Search& search);

}  // namespace palladium::nvrtc
