#include "palladium/grid_mapping.hpp"

#include <algorithm>
#include <set>

#include "codegen/graph/graph.hpp"
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
  case Space::barrier: return "barrier";
  case Space::accumulator: return "accumulator";
  }
  return "?";
}

std::vector<std::int64_t> BlockMapping::ref_shape() const {
  std::vector<std::int64_t> shape;
  for (const BlockDim& d : block_shape)
    if (d.kind != BlockDim::Kind::squeezed) shape.push_back(d.size);
  return shape;
}

std::size_t BlockMapping::num_indices() const {
  return block_shape.size() + static_cast<std::size_t>(std::ranges::count(
                                  block_shape, BlockDim::Kind::bounded_slice, &BlockDim::kind));
}

IndexMapTree::Parameters IndexMapTree::unflatten(const std::vector<AbstractValue>& avals) const {
  require(num_program_ids >= 0 && num_index_operands >= 0 &&
              avals.size() == static_cast<std::size_t>(num_program_ids) + num_index_operands,
          "the index maps' parameter structure is not (*program_ids, *index_operands)");
  return {{avals.begin(), avals.begin() + num_program_ids},
          {avals.begin() + num_program_ids, avals.end()}};
}

bool BlockMapping::is_whole() const {
  for (std::size_t d = 0; d < block_shape.size(); ++d) {
    const Dim& extent = array_aval.shape[static_cast<int>(d)];
    const bool all = block_shape[d].kind == BlockDim::Kind::whole ||
                     ((block_shape[d].kind == BlockDim::Kind::blocked ||
                       block_shape[d].kind == BlockDim::Kind::bounded) &&
                      extent.is_static() && extent.value() == block_shape[d].size);
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
  const IndexMapTree::Parameters parameters = index_map_tree.unflatten(index_map_avals);
  require(parameters.program_ids.size() == grid.size(),
          count(parameters.program_ids.size(), "program ids in the index maps' parameters for ") +
              count(grid.size(), "grid axes"));
  for (std::size_t i = 0; i < grid.size(); ++i)
    require(
        parameters.program_ids[i].type == ShapeDtype{{}, i32} && !parameters.program_ids[i].is_ref,
        "index map parameter " + std::to_string(i) + " is a program id but not i32[]");
  require(vmapped_dims.size() <= grid.size(),
          count(vmapped_dims.size(), "vmapped dims for ") + count(grid.size(), "grid axes"));
  for (const int d : vmapped_dims)
    require(d >= 0 && static_cast<std::size_t>(d) < grid.size(),
            "vmapped dim " + std::to_string(d) + " is no grid axis");
  require(std::set(vmapped_dims.begin(), vmapped_dims.end()).size() == vmapped_dims.size(),
          "a vmapped dim is named twice");
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
    const AbstractValue& parameter = parameters.index_operands[static_cast<std::size_t>(i)];
    const BlockMapping& m = block_mappings[static_cast<std::size_t>(i)];
    const std::string who = "index operand " + std::to_string(i) + " ";
    require(
        parameter.is_ref && parameter.memory_space == Space::gmem && m.memory_space == Space::gmem,
        who + "is no Ref of global memory");
    // Of an array without elements the block is the least that there is, and nobody reads it.
    const bool is_none = graph::is_empty(m) && parameter.type.dtype == m.array_aval.dtype;
    require(m.index_map == no_region && (is_none || m.is_whole()), who + "is cut into blocks");
    ShapeDtype shown{{}, m.array_aval.dtype};
    for (const std::int64_t extent : m.ref_shape()) shown.shape.push_back(extent);
    require(is_none || parameter.type == shown, who + "is " + to_string(m.array_aval) +
                                                    " but index maps take " +
                                                    to_string(parameter.type));
  }
  for (const AbstractValue& scratch : scratch_avals) {
    require(scratch.components.empty(), "a scratch operand is still several; see to_lojax");
    require(scratch.is_ref, "a scratch operand is not a Ref");
    require(scratch.memory_space != Space::automatic, "a scratch operand has no memory space");
    require(scratch.type.shape.is_static(), "a scratch operand has a symbolic shape");
    require((scratch.memory_space == Space::barrier) == (scratch.arrivals > 0),
            "barriers are made for no arrivals, or what is none for some");
  }
  for (const BlockMapping& m : block_mappings) {
    const std::string who = "block mapping of " + m.origin + ": ";
    require(m.components.empty(), who + "it is still that of several arrays; see to_lojax");
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
      require(d.length == 0, who + "an extent in place of the array's");
    }
    for (int d = 0; d < m.array_aval.shape.rank(); ++d)
      if (const BlockDim& b = m.block_shape[static_cast<std::size_t>(d)];
          b.kind == BlockDim::Kind::indirect)
        require(m.array_aval.shape[d].is_static() && m.array_aval.shape[d].value() == b.size,
                who + "an indirect dimension is not as long as its array");
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

namespace {

/// What an operand that is several arrays consists of, or itself; `counts` are those among which it
/// is one.
template <class T>
void add_components(std::vector<T>& to, const T& operand, std::initializer_list<int*> counts) {
  if (operand.components.empty()) return to.push_back(operand);
  const std::size_t before = to.size();
  for (const T& component : operand.components) add_components(to, component, {});
  for (int* n : counts) *n += static_cast<int>(to.size() - before) - 1;
}

}  // namespace

GridMapping GridMapping::to_lojax() const {
  GridMapping m = *this;
  m.block_mappings.clear();
  std::vector<int> first;  // by operand
  for (int i = 0; i < num_inputs + num_outputs; ++i) {
    first.push_back(static_cast<int>(m.block_mappings.size()));
    const BlockMapping& mapping = block_mappings[static_cast<std::size_t>(i)];
    if (i < num_index_operands)
      add_components(m.block_mappings, mapping, {&m.num_index_operands, &m.num_inputs});
    else
      add_components(m.block_mappings, mapping, {i < num_inputs ? &m.num_inputs : &m.num_outputs});
  }
  m.scratch_avals.clear();
  for (const AbstractValue& scratch : scratch_avals) add_components(m.scratch_avals, scratch, {});
  m.index_map_avals.clear();
  for (const AbstractValue& aval : index_map_avals) add_components(m.index_map_avals, aval, {});
  m.index_map_tree.num_index_operands += m.num_index_operands - num_index_operands;
  for (int& input : m.bounds)
    if (input >= 0) input = first[static_cast<std::size_t>(input)];
  return m;
}

std::vector<GridAxis> GridMapping::trace_env() const {
  std::vector<GridAxis> axes;
  for (std::size_t axis = 0; axis < grid.size(); ++axis)
    if (std::ranges::find(vmapped_dims, static_cast<int>(axis)) == vmapped_dims.end())
      axes.push_back({grid_names.empty() ? std::string() : grid_names[axis], grid[axis],
                      has_static_size(axis)});
  return axes;
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
