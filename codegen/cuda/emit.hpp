// From a kernel graph to CUDA C++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::cuda {

/// What the emitted text may use.
struct Options {
  int compute_capability = 75;  // 10 * major + minor
};

/// One entry of cuLaunchKernel's kernelParams, in order.
struct Parameter {
  enum class Kind : std::uint8_t {
    array,   // 8 bytes: device pointer of block mapping `index`'s array
    stride,  // 8 bytes: distance in elements along dimension `dimension` of that array (not dense)
    scalar,  // `bytes` bytes: scalar argument `index`
    symbol,  // 8 bytes: value of symbolic dimension `index`
  };
  Kind kind = Kind::array;
  int index = 0;
  int dimension = 0;
  int bytes = 8;
  bool operator==(const Parameter&) const = default;
};

/// A line of the text (from 1) and the user's line that it came from.
struct TextLine {
  int line = 0;
  Location at;
};

struct Emitted {
  std::string text;   // the kernel, without the device library
  std::string entry;  // name of the extern "C" __global__ function
  std::vector<Parameter> parameters;
  int threads = 128;  // per block: 128 per warpgroup
  Dim blocks = 1;     // gridDim.x: programs on the parallel axes times the cluster's blocks
  int cluster_blocks = 1;
  std::int64_t shared_bytes = 0;  // dynamic shared memory
  std::vector<TextLine> lines;
};

/// `g` is canonical. CompileError for what cannot be on that architecture, for a value that must be
/// whole and is too large, ...
Emitted emit(const graph::Graph& g, const Options& options);

/// The text as it is compiled: where the graph asks for line info, each line behind a `#line` that
/// names the user's.
std::string compiled_text(const graph::Graph& g, const Emitted& emitted);

/// The decisions that led to the text, for people: where each Ref and value lives, layouts, passes.
std::string describe(const graph::Graph& g, const Options& options);

}  // namespace palladium::cuda
