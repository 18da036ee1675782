// The arguments of a call, as the kernelParams of a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/base/tensor_map.hpp"
#include "codegen/graph/graph.hpp"
#include "palladium/call.hpp"
#include "runtime/build/launch_plan.hpp"
#include "runtime/call/extent.hpp"
#include "runtime/call/signature.hpp"

namespace palladium::runtime {

/// The kernelParams of one launch. Tensor maps are bytes, which a launch without any need not
/// clear.
struct ArgumentBlock {
  static constexpr std::size_t max_parameters = 256, max_tensor_maps = 16;
  alignas(TensorMap) std::byte tensor_maps[max_tensor_maps][sizeof(TensorMap)];
  std::uint64_t slots[max_parameters];
  void* pointers[max_parameters];
};

/// Packs the arguments of a call as a plan wants them, without allocation.
class Packer {
 public:
  using Encode = TensorMap (*)(const TensorMapSpec&);  // of a driver, or of the emulator

  /// CompileError for more parameters than fit; InternalError for a plan that is not of this graph.
  Packer(const graph::Graph& g, const LaunchPlan& plan, Encode encode);

  /// `debug`: the buffer in which the kernel tells the host something, if it does; `profile`: that
  /// of its scopes.
  void pack(std::span<const Arg> arguments, std::span<const Arg> outputs,
            const Signature::Symbols& symbols, ArgumentBlock& block, const void* debug = nullptr,
            const void* profile = nullptr) const;

  /// gridDim.x, 0 for a call without programs. Precondition: CallGrid::check.
  unsigned blocks(const Signature::Symbols& symbols) const;

 private:
  struct Slot {
    cuda::Parameter::Kind kind;
    bool is_output;
    std::uint16_t slot;
    std::uint16_t index;      // position among arguments or outputs
    std::uint16_t dimension;  // of a stride; number of a tensor map
  };
  const TensorMap& tensor_map(const Slot& slot, const Array& array) const;
  [[noreturn]] void refuse(std::int64_t blocks) const;

  struct SymbolSlot {
    std::uint16_t slot, symbol;
  };

  std::size_t count_;
  std::vector<Slot> slots_;  // of the other parameters
  std::vector<SymbolSlot> symbols_, reciprocals_;
  std::vector<cuda::Parameter> tensor_maps_;
  Encode encode_;
  Extent blocks_;
  std::string kernel_;
};

}  // namespace palladium::runtime
