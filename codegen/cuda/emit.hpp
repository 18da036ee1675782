// From a kernel graph to CUDA C++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/thread/parameter.hpp"
#include "palladium/report.hpp"

namespace palladium::cuda {

/// What the emitted text may use.
struct Options {
  int compute_capability = 75;  // 10 * major + minor
  /// Whether the text is for that architecture alone, as sm_90a is and sm_90 is not: wgmma is among
  /// what only such a text may use.
  bool is_specific = true;
  /// What more of is a CompileError, those of an unrolled loop counted each time.
  std::int64_t most_operations = graph::max_compiled;
  /// Whether registers leave room for all blocks that shared memory does.
  bool bounds_launch = true;
  /// Of shared memory for a block, where the architecture gives more.
  std::int64_t most_shared_bytes = INT64_MAX;
};

using Parameter = KernelParameter;

/// A line of the text (from 1) and the user's line that it came from.
struct TextLine {
  int line = 0;
  Location at;
};

struct Emitted {
  std::string text;   // the kernel, without the device library
  std::string entry;  // name of the extern "C" __global__ function
  std::vector<Parameter> parameters;
  int threads = 128;   // per block
  int num_warps = 4;   // of each Pallas thread, that compute
  int min_blocks = 1;  // of a multiprocessor, that registers leave room for
  Dim blocks = 1;      // gridDim.x: programs on the parallel axes times the cluster's blocks ...
  bool persistent = false;  // ... or as many as run at once, if these are fewer
  int cluster_blocks = 1;
  std::int64_t shared_bytes = 0;  // dynamic shared memory
  std::vector<TextLine> lines;
  std::vector<int> statements;  // of each line, of the lowered program, by number; -1: the frame
  std::vector<int> placements;  // lines that check where an index map has placed a block, in order
  std::vector<Remark> remarks;
};

/// What emit() says of a block that needs more shared memory than the architecture has; "" of all
/// others, and where something else keeps the text from being emitted.
std::string shared_memory_problem(const graph::Graph& g, const Options& options);

/// `g` is canonical. CompileError for what cannot be on that architecture, for a value that must be
/// whole and is too large, ...
Emitted emit(const graph::Graph& g, const Options& options);

/// The text as it is compiled: where the graph asks for line info, each line behind a `#line` that
/// names the user's.
std::string compiled_text(const graph::Graph& g, const Emitted& emitted);

/// What the text asks of a multiprocessor, of which so many blocks fit; 0: that is not known.
Report report(const graph::Graph& g, const Options& options, int blocks = 0);

/// The decisions that led to the text, for people: where each Ref and value lives, layouts, passes.
std::string describe(const graph::Graph& g, const Options& options);

/// Who waits for whom of those who work on a block, and whether they do so as they must; for
/// people.
std::string schedule(const graph::Graph& g, const Options& options);

/// Every pass as it ran, in order, with the program behind it: the lowered program's text, and from
/// "expand" on the thread program's.
std::vector<PassDump> pass_dumps(const graph::Graph& g, const Options& options);

}  // namespace palladium::cuda
