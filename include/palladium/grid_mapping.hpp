// GridMapping: the canonical form of a kernel's grid, blocks and calling convention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palladium/types.hpp"

namespace palladium {

/// Extent of a Ref along which only a call knows how many elements there are.
inline constexpr std::int64_t unknown_extent = 0x7fffffff;

/// One dimension of a block shape.
struct BlockDim {
  enum class Kind : std::uint8_t {
    blocked,   ///< n elements; the index map gives a block index b, the block starts at b * n
    squeezed,  ///< 1 element, dropped from the Ref's shape; the index map gives an element index
    element,   ///< n elements; the index map gives an element index into the padded array
    bounded_slice,  ///< at most n elements; the index map gives a slice: its start and its size
    indirect,       ///< the array's extent, of which bodies get the view that an array of indices
                    ///< chooses
    whole,          ///< the array's extent, a symbol; Refs have `unknown_extent` elements
    bounded,        ///< like blocked, of an array that never has more than n elements; those that
                    ///< it has not are of no reduction or product, and are not stored
  };

  template <std::integral T>
  constexpr BlockDim(T n) : size(Dim(n).value()) {}
  BlockDim(const Dim& n) : size(n.value()) {}
  template <std::floating_point T>
  constexpr BlockDim(T) {
    static_assert(detail::no_float<T>,
                  "palladium: a block has a whole number of elements, given a float; divide "
                  "integers, n / 2, or round up: pl::cdiv(n, 2)");
  }
  constexpr BlockDim(Kind k, std::int64_t n, std::int64_t lo = 0, std::int64_t hi = 0)
      : kind(k), size(n), pad_lo(lo), pad_hi(hi) {}

  bool operator==(const BlockDim&) const = default;

  /// What of an array's extent `d` is in one block with all of it.
  static BlockDim all_of(const Dim& d) {
    return d.is_static() ? BlockDim(d.value()) : BlockDim(Kind::whole, unknown_extent);
  }
  /// From one block to the next, in elements: what an index is multiplied by.
  std::int64_t step() const { return kind == Kind::blocked || kind == Kind::bounded ? size : 1; }
  /// How far beyond the end of its array a block may reach: as one of so many elements.
  std::int64_t cut() const { return kind == Kind::whole ? 1 : size; }

  Kind kind = Kind::blocked;
  std::int64_t size = 1;
  std::int64_t pad_lo = 0, pad_hi = 0;  ///< Kind::element: conceptual padding of the array
  /// Kind::bounded, in a BlockSpec: Dim::expression() of the extent that pl::bounded() was given.
  std::uint32_t length = 0;
};

/// Where a Ref lives.
enum class Space : std::uint8_t {
  automatic,    ///< a block: the compiler decides; scratch is never automatic
  gmem,         ///< global memory
  smem,         ///< shared memory of the block
  regs,         ///< registers of the Pallas thread
  semaphore,    ///< counters in global memory, of a block or of a launch, 0 when it starts
  barrier,      ///< barriers in shared memory of the block (plgpu::Barrier)
  accumulator,  ///< registers of the Pallas thread in which tensor cores add up (plgpu::ACC)
};
PALLADIUM_API const char* to_string(Space space);

/// Region of the kernel's graph; `no_region` stands for Pallas's None.
using RegionIndex = std::uint32_t;
inline constexpr RegionIndex no_region = ~RegionIndex(0);

/// One array operand: how the grid cuts it into blocks.
struct BlockMapping {
  std::vector<BlockDim> block_shape = {};  ///< one entry per array dimension
  /// Region: *program_ids, *index -> one i32 per dimension (of a bounded slice its start, of an
  /// indirect dimension 0), then the size of each bounded slice.
  RegionIndex index_map = no_region;
  ShapeDtype array_aval = {};  ///< the whole array
  std::string origin = {};     ///< "args[0]", "outputs[1]"
  Space memory_space = Space::automatic;
  /// Row-major without gaps; otherwise the last dimension is contiguous and the strides of the
  /// others are kernel arguments.
  bool dense = true;
  /// Byte alignment of every row start that the kernel may rely on: a power of two from the
  /// element size up to 16.
  int alignment = 16;
  /// What elements of a block hold that lie beyond the array: its bits in the array's dtype,
  /// zero-extended. None: they are undefined.
  std::optional<std::uint64_t> fill = {};
  /// Copies of a block that may be under way at once (pl::Buffered); 0: lowering chooses.
  int buffers = 0;
  /// Of an operand that is several arrays: those, which to_lojax() puts in its place. It has only
  /// an origin of its own.
  std::vector<BlockMapping> components = {};

  /// Shape of the block Ref: squeezed dimensions dropped.
  std::vector<std::int64_t> ref_shape() const;
  /// How many indices its index map gives.
  std::size_t num_indices() const;
  /// Whether a block is as large as the array.
  bool is_whole() const;
};

/// Type of an index map's parameter, of a scratch operand, ...
struct AbstractValue {
  ShapeDtype type = {};
  bool is_ref = false;
  Space memory_space = Space::automatic;
  std::vector<AbstractValue> components = {};  ///< as BlockMapping's
  int arrivals = 0;                            ///< of barriers: so many complete each of them
  int swizzle = 0;                             ///< of shared memory: bytes, as the user gave them
};

/// Structure of an index map's parameters.
struct IndexMapTree {
  int num_program_ids = 0;
  int num_index_operands = 0;
  bool operator==(const IndexMapTree&) const = default;

  struct Parameters {
    std::vector<AbstractValue> program_ids, index_operands;
  };
  /// The parameters by what they are; InternalError if they are more or less.
  Parameters unflatten(const std::vector<AbstractValue>& avals) const;
};

/// An axis of the grid as a kernel sees it.
struct GridAxis {
  std::string name = {};  ///< or empty
  Dim size = 0;
  bool has_static_size = false;  ///< while the kernel is traced
};

/// The canonicalized GridSpec (jax.extend.pallas.GridMapping).
///
/// The call is invoked with (*index, *inputs), the kernel with (*index, *inputs, *outputs,
/// *scratch), index maps with (*program_ids, *index). Scalar arguments, sizes of the grid among
/// them, stand outside of it (Graph::arguments).
///
/// Index operands are inputs, the first ones, whose block is the whole array in global memory:
/// block_mappings and num_inputs count them too.
struct PALLADIUM_API GridMapping {
  std::vector<Dim> grid = {};
  /// Empty, or per grid axis the input whose only element says how many of its programs there are,
  /// at most grid[axis]; -1: all of them.
  std::vector<int> bounds = {};
  std::vector<std::string> grid_names = {};       ///< empty, or one name per grid axis
  std::vector<BlockMapping> block_mappings = {};  ///< inputs, then outputs
  IndexMapTree index_map_tree = {};
  std::vector<AbstractValue> index_map_avals = {};
  std::vector<int> vmapped_dims = {};
  std::vector<AbstractValue> scratch_avals = {};
  int num_index_operands = 0;
  int num_inputs = 0;
  int num_outputs = 0;
  /// Region: program ids -> one index per grid axis, which index maps take and kernels see of those
  /// axes that are not vmapped. None: the program ids.
  RegionIndex get_grid_indices = no_region;
  /// Region: grid indices -> (index, size) of each axis that program_id and num_programs count.
  /// None: all that are not vmapped. graph::bind_grid() puts what both say into bodies and index
  /// maps.
  RegionIndex local_grid_env = no_region;
  bool debug = false;  ///< graph and text go to the log

  /// Throws InternalError naming the violated invariant.
  void check_invariants() const;
  /// A copy that `change` changed; InternalError if that violates an invariant.
  template <class F>
  GridMapping replace(F&& change) const {
    GridMapping m = *this;
    change(m);
    m.check_invariants();
    return m;
  }
  /// With every operand that is several arrays replaced by those, and counts to match.
  GridMapping to_lojax() const;
  /// The axes that a kernel without local_grid_env asks for, by number or name.
  std::vector<GridAxis> trace_env() const;
  bool static_grid() const;  ///< no symbolic and no dynamic bound
  bool has_static_size(std::size_t axis) const;
  int num_dynamic_grid_bounds() const;
  int num_scratch_operands() const { return static_cast<int>(scratch_avals.size()); }
  std::vector<ShapeDtype> in_shapes() const;  ///< of *index, *inputs
  std::vector<ShapeDtype> out_shapes() const;
  std::vector<BlockMapping> block_mappings_output() const;

  /// Half-open range of kernel operands.
  struct Range {
    int begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  Range slice_index_ops() const;
  Range slice_block_ops() const;
  Range slice_scratch_ops() const;
};

}  // namespace palladium
