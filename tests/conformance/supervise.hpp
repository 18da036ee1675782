// Runs checks in child processes, so that one that crashes, hangs or leaves the GPU's context
// broken costs no other.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace palladium::conformance {

struct Supervision {
  std::vector<std::string> command;  // of a child, which takes --child and numbers of checks
  int jobs = 1;                      // children at a time
  int bunch = 16;                    // checks per child
  double seconds_per_check = 30;     // then the child is killed
  double seconds_to_start = 60;      // besides, until a child is ready: its context, NVRTC
  double seconds_in_all = 1e9;       // then no more are started
};

/// Runs the checks of these numbers; `finished` gets the record of each as it ends: what the child
/// printed, or {"state": "crashed" | "hung" | "not run", "detail": ...}, always with "number". A
/// child says {"ready": true} once what all its checks share stands.
void supervise(const std::vector<int>& numbers, const Supervision& how,
               const std::function<void(const nlohmann::json&)>& finished);

}  // namespace palladium::conformance
