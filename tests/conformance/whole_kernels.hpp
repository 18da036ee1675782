// Whole kernels on a GPU against the interpreter: graphs that tests recorded, and random ones.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace palladium::conformance {

class WholeKernels {
 public:
  /// The graphs of the files json-* in `folder` ("": none), as PALLADIUM_TEST_RECORD leaves them,
  /// and so many random ones.
  WholeKernels(const std::string& folder, int random);

  int size() const { return static_cast<int>(recorded_.size()) + random_; }
  /// "recorded/0c3f…", "random/17".
  std::string name(int number) const;

  /// Runs a kernel on random small numbers, on the interpreter and, if `on_gpu`, on the first GPU.
  /// {"state": "passed" | "failed" | "skipped", "detail": why not}; skipped is what the interpreter
  /// refuses of such numbers, and what is not for one call with arrays of its own. Throws what
  /// lowering, NVRTC and driver do.
  nlohmann::json run(int number, bool on_gpu) const;

 private:
  std::string folder_;
  std::vector<std::string> recorded_;
  int random_ = 0;
};

}  // namespace palladium::conformance
