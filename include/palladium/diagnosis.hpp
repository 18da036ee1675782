// What this machine has of what kernels need.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "palladium/device.hpp"

namespace palladium {

/// What `palladium doctor` prints: one row per thing that kernels need.
struct Finding {
  /// "driver", "gpu", "nvrtc", "compile helper", "cache", "host compiler"
  std::string name = {};
  bool ok = false;
  std::string found = {};   ///< what and where, or what is wrong
  std::string advice = {};  ///< how to get it; empty where all is well
  /// The same for programs: ("path", ...), ("version", ...).
  std::vector<std::pair<std::string, std::string>> details = {};
};
struct Diagnosis {
  std::vector<Finding> findings;
  Target target = Target::interpreter;  ///< the default here
  std::string problem;                  ///< why there is no default target, or empty
};
PALLADIUM_API Diagnosis diagnose();

}  // namespace palladium
