// The kernels with the sizes at which they are measured, and what is expected of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {

struct Case {
  std::string name;
  std::function<UserKernel()> make;
  int at_most = 0;        ///< instructions of a tile in every trip; 0: nothing is said
  const char* peer = "";  ///< the same kernel among those of benchmarks/peers, if there is one
  const char* arch = "sm_90a";
  int stages = 0;  ///< places that the main loop should copy into in turn, at least
};

const std::vector<Case>& cases();

}  // namespace palladium::user_kernels
