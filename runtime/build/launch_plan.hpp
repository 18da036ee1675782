// How an emitted kernel is launched: what is left of cuda::Emitted once its text is compiled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/emit.hpp"
#include "palladium/kernel.hpp"
#include "runtime/call/extent.hpp"
#include "runtime/call/signature.hpp"

namespace palladium::runtime {

struct LaunchPlan {
  std::string entry = {};
  std::vector<cuda::Parameter> parameters = {};
  Dim blocks = 1;  // over the graph's canonical symbols
  int threads = 128;
  int cluster_blocks = 1;
  std::int64_t shared_bytes = 0;  // dynamic
};

LaunchPlan plan_of(const cuda::Emitted& emitted);

/// For the metadata of a cache entry.
std::string to_json(const LaunchPlan& plan);
/// False for text that to_json() did not write.
bool from_json(const std::string& json, LaunchPlan& plan);

/// The kernelParams of one launch.
struct ArgumentBlock {
  static constexpr std::size_t max_parameters = 256;
  std::uint64_t slots[max_parameters];
  void* pointers[max_parameters];
};

/// Packs the arguments of a call as a plan wants them, without allocation.
class Packer {
 public:
  /// CompileError for more parameters than fit; InternalError for a plan that is not of this graph.
  Packer(const graph::Graph& g, const LaunchPlan& plan);

  void pack(std::span<const Arg> arguments, std::span<const Arg> outputs,
            const Signature::Symbols& symbols, ArgumentBlock& block) const;

  /// gridDim.x, 0 for a call without programs. Precondition: CallGrid::check.
  unsigned blocks(const Signature::Symbols& symbols) const;

 private:
  struct Slot {
    cuda::Parameter::Kind kind;
    bool is_output;
    std::uint16_t index;  // position among arguments or outputs; number of a symbol
    std::uint16_t dimension;
  };
  [[noreturn]] void refuse(std::int64_t blocks) const;

  std::vector<Slot> slots_;
  Extent blocks_;
  std::string kernel_;
};

}  // namespace palladium::runtime
