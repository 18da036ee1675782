#include "runtime/launch/packer.hpp"

#include <algorithm>
#include <cstring>

#include "codegen/graph/limits.hpp"
#include "runtime/call/check.hpp"

namespace palladium::runtime {

Packer::Packer(const graph::Graph& g, const LaunchPlan& plan, Encode encode)
    : count_(plan.parameters.size()), encode_(encode), blocks_(plan.blocks), kernel_(g.name) {
  if (plan.parameters.size() > ArgumentBlock::max_parameters)
    throw CompileError(g.at, "'" + g.name + "' needs " + std::to_string(plan.parameters.size()) +
                                 " kernel parameters; at most " +
                                 std::to_string(ArgumentBlock::max_parameters) + " can be passed");
  if (std::ranges::count(plan.parameters, cuda::Parameter::Kind::tensor_map,
                         &cuda::Parameter::kind) > std::ptrdiff_t{ArgumentBlock::max_tensor_maps})
    throw InternalError("launch plan of '" + g.name + "': more tensor maps than can be passed");
  using Kind = cuda::Parameter::Kind;
  for (const cuda::Parameter& p : plan.parameters) {
    const auto number = static_cast<std::uint16_t>(&p - plan.parameters.data());
    if (p.kind == Kind::symbol || p.kind == Kind::reciprocal) {
      if (p.index >= g.num_symbols)
        throw InternalError("launch plan of '" + g.name + "': there is no symbol " +
                            std::to_string(p.index));
      (p.kind == Kind::symbol ? symbols_ : reciprocals_)
          .push_back({number, static_cast<std::uint16_t>(p.index)});
      continue;
    }
    Slot slot{.kind = p.kind,
              .is_output = false,
              .slot = number,
              .index = static_cast<std::uint16_t>(p.index),
              .dimension = static_cast<std::uint16_t>(p.dimension)};
    if (p.kind == Kind::array || p.kind == Kind::stride || p.kind == Kind::tensor_map) {
      slot.is_output = p.index >= g.mapping.num_inputs;
      slot.index = static_cast<std::uint16_t>(slot.is_output ? p.index - g.mapping.num_inputs
                                                             : position_of_input(g, p.index));
    } else if (p.kind == Kind::scalar) {
      slot.index = static_cast<std::uint16_t>(position_of_scalar(g, p.index));
    }
    if (p.kind == Kind::tensor_map) {
      slot.dimension = static_cast<std::uint16_t>(tensor_maps_.size());
      tensor_maps_.push_back(p);
    }
    slots_.push_back(slot);
  }
}

namespace {

// Kernels know arrays of which two elements share a byte as bytes.
std::int64_t stride_in_memory(const Array& array, int dimension) {
  const std::int64_t stride = array.stride(dimension);
  return array.dtype().is_packed() ? array.dtype().bytes_of(stride) : stride;
}

std::int64_t extent_in_memory(const Array& array, int dimension) {
  const std::int64_t extent = array.shape()[dimension].value();
  const bool shared = array.dtype().is_packed() && dimension + 1 == array.rank();
  return shared ? array.dtype().bytes_of(extent) : extent;
}

}  // namespace

// Encoding one takes longer than a launch: calls with the arrays of those before find theirs.
const TensorMap& Packer::tensor_map(const Slot& slot, const Array& array) const {
  struct Known {
    Encode encode = nullptr;
    TensorMapSpec spec = {};
    TensorMap map = {};
  };
  // No map describes an array without elements, and no box of one is asked for.
  static constexpr TensorMap none = {};
  if (array.size() == 0) return none;
  constexpr std::size_t most_known = 32;
  static thread_local Known known[most_known];
  static thread_local std::size_t next = 0;
  std::int64_t shape[5] = {}, strides[5] = {};
  const auto rank = static_cast<std::size_t>(array.rank());
  for (std::size_t d = 0; d < rank; ++d) {
    shape[d] = extent_in_memory(array, static_cast<int>(d));
    strides[d] = stride_in_memory(array, static_cast<int>(d));
  }
  const TensorMapSpec spec =
      tensor_map_of(tensor_maps_[slot.dimension], array.dtype(), array.data(),
                    std::span(shape).first(rank), std::span(strides).first(rank));
  for (const Known& k : known)
    if (k.encode == encode_ && k.spec == spec) return k.map;
  Known& made = known[next++ % most_known];
  made.map = encode_(spec);
  made.spec = spec;
  made.encode = encode_;
  return made.map;
}

void Packer::pack(std::span<const Arg> arguments, std::span<const Arg> outputs,
                  const Signature::Symbols& symbols, ArgumentBlock& block, const void* debug,
                  const void* profile) const {
  using Kind = cuda::Parameter::Kind;
  for (std::size_t i = 0; i < count_; ++i) block.pointers[i] = &block.slots[i];
  for (const SymbolSlot& s : symbols_)
    block.slots[s.slot] = static_cast<std::uint64_t>(symbols[s.symbol]);
  for (const SymbolSlot& s : reciprocals_) block.slots[s.slot] = reciprocal_of(symbols[s.symbol]);
  for (const Slot& s : slots_) {
    std::uint64_t& slot = block.slots[s.slot];
    if (s.kind == Kind::debug || s.kind == Kind::profile) [[unlikely]] {
      slot = reinterpret_cast<std::uintptr_t>(s.kind == Kind::debug ? debug : profile);
      continue;
    }
    const Arg& arg = (s.is_output ? outputs : arguments)[s.index];
    if (s.kind == Kind::array) {
      slot = reinterpret_cast<std::uintptr_t>(arg.array()->data());
    } else if (s.kind == Kind::scalar) {
      slot = arg.scalar().bits;  // little endian: low bytes first
    } else if (s.kind == Kind::stride) {
      slot = static_cast<std::uint64_t>(stride_in_memory(*arg.array(), s.dimension));
    } else {
      std::memcpy(block.tensor_maps[s.dimension], &tensor_map(s, *arg.array()), sizeof(TensorMap));
      block.pointers[s.slot] = block.tensor_maps[s.dimension];
    }
  }
}

unsigned Packer::blocks(const Signature::Symbols& symbols) const {
  const std::int64_t blocks = blocks_.evaluate(symbols);
  if (blocks < 0 || blocks > graph::most_blocks) [[unlikely]]
    refuse(blocks);
  return static_cast<unsigned>(blocks);
}

void Packer::refuse(std::int64_t blocks) const {
  throw InternalError("launch plan of '" + kernel_ + "': " + std::to_string(blocks) + " blocks");
}

}  // namespace palladium::runtime
