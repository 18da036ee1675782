#include "palladium/grid_mapping.hpp"

#include <algorithm>

#include "palladium/error.hpp"

namespace palladium {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw InternalError("GridMapping: " + what);
}

std::string count(std::size_t n, const char* what) { return std::to_string(n) + " " + what; }

}  // namespace

const char* to_string(Space space) {
  switch (space) {
  case Space::automatic: return "automatic";
  case Space::gmem: return "gmem";
  case Space::smem: return "smem";
  case Space::regs: return "regs";
  case Space::semaphore: return "semaphore";
  }
  return "?";
}

std::vector<std::int64_t> BlockMapping::ref_shape() const {
  std::vector<std::int64_t> shape;
  for (const BlockDim& d : block_shape)
    if (d.kind != BlockDim::Kind::squeezed) shape.push_back(d.size);
  return shape;
}

bool BlockMapping::is_whole() const {
  for (std::size_t d = 0; d < block_shape.size(); ++d) {
    const Dim& extent = array_aval.shape[static_cast<int>(d)];
    const bool all = block_shape[d].kind == BlockDim::Kind::blocked && extent.is_static() &&
                     extent.value() == block_shape[d].size;
    if (!all) return false;
  }
  return true;
}

void GridMapping::check_invariants() const {
  require(num_index_operands >= 0 && num_inputs >= 0 && num_outputs >= 0,
          "an operand count is negative");
  require(num_index_operands <= num_inputs,
          count(num_index_operands, "index operands, but ") + count(num_inputs, "inputs"));
  require(block_mappings.size() == static_cast<std::size_t>(num_inputs) + num_outputs,
          count(block_mappings.size(), "block mappings for ") + count(num_inputs, "inputs and ") +
              count(num_outputs, "outputs"));
  require(index_map_avals.size() == grid.size() + num_index_operands,
          count(index_map_avals.size(), "index map parameters for ") +
              count(grid.size(), "grid axes and ") + count(num_index_operands, "index operands"));
  require(index_map_tree == IndexMapTree{static_cast<int>(grid.size()), num_index_operands},
          "the index maps' parameter structure is not (*program_ids, *index_operands)");
  for (std::size_t i = 0; i < grid.size(); ++i)
    require(index_map_avals[i].type == ShapeDtype{{}, i32} && !index_map_avals[i].is_ref,
            "index map parameter " + std::to_string(i) + " is a program id but not i32[]");
  require(vmapped_dims.size() <= grid.size(),
          count(vmapped_dims.size(), "vmapped dims for ") + count(grid.size(), "grid axes"));
  for (const int d : vmapped_dims)
    require(d >= 0 && static_cast<std::size_t>(d) < grid.size(),
            "vmapped dim " + std::to_string(d) + " is no grid axis");
  require(grid_names.empty() || grid_names.size() == grid.size(),
          count(grid_names.size(), "grid names for ") + count(grid.size(), "grid axes"));
  for (std::size_t i = 0; i < grid.size(); ++i)
    require(!grid[i].is_static() || grid[i].value() >= 0,
            "grid axis " + std::to_string(i) + " has a negative size");
  require(bounds.empty() || bounds.size() == grid.size(),
          count(bounds.size(), "bounds for ") + count(grid.size(), "grid axes"));
  for (const int input : bounds) {
    if (input < 0) continue;
    require(input < num_inputs,
            "a grid bound is held by input " + std::to_string(input) + ", which there is not");
    const ShapeDtype& type = block_mappings[static_cast<std::size_t>(input)].array_aval;
    require(type.dtype.is_integer() && type.shape.is_static() && type.shape.size() == 1,
            "a grid bound is held by " + to_string(type) + ", which is not one integer");
  }
  for (int i = 0; i < num_index_operands; ++i) {
    const AbstractValue& parameter = index_map_avals[grid.size() + static_cast<std::size_t>(i)];
    const BlockMapping& m = block_mappings[static_cast<std::size_t>(i)];
    const std::string who = "index operand " + std::to_string(i) + " ";
    require(
        parameter.is_ref && parameter.memory_space == Space::gmem && m.memory_space == Space::gmem,
        who + "is no Ref of global memory");
    require(parameter.type == m.array_aval, who + "is " + to_string(m.array_aval) +
                                                " but index maps take " +
                                                to_string(parameter.type));
    require(m.array_aval.shape.is_static() && m.index_map == no_region && m.is_whole(),
            who + "is cut into blocks");
  }
  for (const AbstractValue& scratch : scratch_avals) {
    require(scratch.is_ref, "a scratch operand is not a Ref");
    require(scratch.memory_space != Space::automatic, "a scratch operand has no memory space");
    require(scratch.type.shape.is_static(), "a scratch operand has a symbolic shape");
  }
  for (const BlockMapping& m : block_mappings) {
    const std::string who = "block mapping of " + m.origin + ": ";
    require(m.array_aval.dtype != DType(), who + "the array has no dtype");
    require(m.block_shape.size() == static_cast<std::size_t>(m.array_aval.shape.rank()),
            who + "block rank " + std::to_string(m.block_shape.size()) + ", array rank " +
                std::to_string(m.array_aval.shape.rank()));
    for (const BlockDim& d : m.block_shape) {
      require(d.size >= 1, who + "a block dimension is below 1");
      require(d.kind != BlockDim::Kind::squeezed || d.size == 1,
              who + "a squeezed dimension has more than one element");
      require(d.kind == BlockDim::Kind::element || (d.pad_lo == 0 && d.pad_hi == 0),
              who + "padding on a dimension that is not Element");
      require(d.pad_lo >= 0 && d.pad_hi >= 0, who + "negative padding");
    }
    for (const Dim& d : m.array_aval.shape)
      require(!d.is_static() || d.value() >= 0, who + "a negative array extent");
    require(m.memory_space != Space::regs, who + "a block cannot be pinned to registers");
    require(m.alignment >= m.array_aval.dtype.bytes() && (m.alignment & (m.alignment - 1)) == 0,
            who + "alignment " + std::to_string(m.alignment) +
                " is not a power of two of at least the element size");
    const int bits = m.array_aval.dtype.bits();
    require(!m.fill || bits == 64 || *m.fill >> bits == 0,
            who + "a fill of more bits than an element has");
    require(m.buffers >= 0, who + "a negative number of buffers");
  }
}

bool GridMapping::has_static_size(std::size_t axis) const {
  return grid[axis].is_static() && (bounds.empty() || bounds[axis] < 0);
}

bool GridMapping::static_grid() const { return num_dynamic_grid_bounds() == 0; }

int GridMapping::num_dynamic_grid_bounds() const {
  int dynamic = 0;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) dynamic += !has_static_size(axis);
  return dynamic;
}

std::vector<ShapeDtype> GridMapping::in_shapes() const {
  std::vector<ShapeDtype> shapes;
  for (int i = 0; i < num_inputs; ++i) shapes.push_back(block_mappings[i].array_aval);
  return shapes;
}

std::vector<ShapeDtype> GridMapping::out_shapes() const {
  std::vector<ShapeDtype> shapes;
  for (int i = 0; i < num_outputs; ++i) shapes.push_back(block_mappings[num_inputs + i].array_aval);
  return shapes;
}

std::vector<BlockMapping> GridMapping::block_mappings_output() const {
  return {block_mappings.end() - num_outputs, block_mappings.end()};
}

GridMapping::Range GridMapping::slice_index_ops() const { return {0, num_index_operands}; }

GridMapping::Range GridMapping::slice_block_ops() const {
  return {num_index_operands, static_cast<int>(block_mappings.size())};
}

GridMapping::Range GridMapping::slice_scratch_ops() const {
  const int begin = slice_block_ops().end;
  return {begin, begin + num_scratch_operands()};
}

}  // namespace palladium
