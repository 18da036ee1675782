// Whole kernels on a GPU against the interpreter: graphs that tests recorded, and random ones.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::conformance {

class WholeKernels {
 public:
  /// The graphs of the files json-* in `folder` ("": none), as PALLADIUM_TEST_RECORD leaves them,
  /// and so many random ones.
  WholeKernels(const std::string& folder, int random);

  int size() const { return static_cast<int>(recorded_.size()) + random_; }
  /// "recorded/0c3f…", "random/17".
  std::string name(int number) const;

  /// Where a kernel runs besides on the interpreter: nowhere, on the emulator, on the first GPU.
  enum class On { nothing, emulator, gpu };

  /// Runs a kernel on random small numbers. {"state": "passed" | "failed" | "skipped", "detail":
  /// why not}; skipped is what the interpreter refuses of such numbers, what depends on the order
  /// of programs, and what is not for one call with arrays of its own. Throws what lowering, NVRTC,
  /// emulator and driver do.
  nlohmann::json run(int number, On on) const;

  struct Kernel {
    graph::Graph graph;
    std::vector<std::int64_t> symbols;
  };

 private:
  Kernel kernel(int number) const;

  std::string folder_;
  std::vector<std::string> recorded_;
  int random_ = 0;
};

}  // namespace palladium::conformance
