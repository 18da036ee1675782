// Where palladium-compile is.
#pragma once

#include <string>

namespace palladium::nvrtc {

struct HelperPath {
  std::string path;     // or
  std::string problem;  // where there is none
};

/// What PALLADIUM_COMPILE_HELPER names, whether it is there or not; else beside the library or
/// program that this code is in, which is so in a build tree; else where it is installed.
HelperPath find_helper();

}  // namespace palladium::nvrtc
