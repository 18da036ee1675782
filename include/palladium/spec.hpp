// How a kernel is called: grid, outputs, scratch and options, beside its blocks and its body.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palladium/block_spec.hpp"
#include "palladium/body.hpp"
#include "palladium/report.hpp"

namespace palladium {

// ---- Grid, outputs, scratch

/// `{m, pl::cdiv(n, 128)}`, `{{"i", m}, {"j", n}}`, or one size.
class Grid {
 public:
  struct Axis {
    const char* name;
    Dim size;
  };
  Grid() = default;
  Grid(const Grid&) = default;
  Grid(Grid&&) = default;
  Grid& operator=(const Grid&) = default;  // alone: clang finds `grid = {}` ambiguous with two
  template <detail::DimLike T>
  Grid(T size) : sizes{size} {}
  Grid(std::initializer_list<Dim> dims) : sizes(dims) {}
  Grid(std::initializer_list<Axis> axes) {
    for (const Axis& a : axes) {
      sizes.push_back(a.size);
      names.push_back(a.name ? a.name : "");
    }
  }
  bool empty() const { return sizes.empty(); }

  std::vector<Dim> sizes = {};
  std::vector<std::string> names = {};  ///< empty, or one per axis
};

/// One output, a list of them, with names or without, or none.
class OutType {
 public:
  struct Named {
    const char* name;
    ShapeDtype type;
  };
  OutType() = default;
  OutType(const Shape& shape, DType dtype) : list_{{shape, dtype}}, single_(true) {}
  OutType(const ShapeDtype& type) : list_{type}, single_(true) {}
  OutType(std::initializer_list<ShapeDtype> list) : list_(list) {}
  OutType(std::vector<ShapeDtype> list) : list_(std::move(list)) {}
  OutType(std::initializer_list<Named> list) {
    for (const Named& n : list) {
      list_.push_back(n.type);
      names_.push_back(n.name ? n.name : "");
    }
  }
  const std::vector<ShapeDtype>& list() const { return list_; }
  const std::vector<std::string>& names() const { return names_; }  ///< empty, or one for each
  bool single() const { return single_; }
  bool empty() const { return list_.empty(); }

 private:
  std::vector<ShapeDtype> list_;
  std::vector<std::string> names_;
  bool single_ = false;
};

struct NamedScoped {
  std::string name = {};
  Scoped type = {};
};
/// `{plgpu::SMEM(...), ...}`, or with names: `{{"acc", plgpu::SMEM(...)}, ...}`.
class ScratchTypes {
 public:
  ScratchTypes() = default;
  ScratchTypes(const ScratchTypes&) = default;
  ScratchTypes(ScratchTypes&&) = default;
  ScratchTypes& operator=(const ScratchTypes&) = default;  // alone, like Grid's
  ScratchTypes(std::initializer_list<Scoped> types) {
    for (const Scoped& t : types) add({"", t});
  }
  ScratchTypes(std::initializer_list<NamedScoped> types) {
    for (const NamedScoped& t : types) add(t);
  }
  bool empty() const { return list.empty(); }
  /// Of a RefUnion its members, one after the other: "u" has "u[0]", "u[1]", ...
  PALLADIUM_API void add(const NamedScoped& type);

  std::vector<NamedScoped> list = {};
};

struct GridSpec {
  Grid grid = {};
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  ScratchTypes scratch_shapes = {};
  int num_scalar_prefetch = 0;
};
/// As in jax.experimental.pallas.tpu: a GridSpec with index operands.
struct PrefetchScalarGridSpec {
  int num_scalar_prefetch = 0;
  Grid grid = {};
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  ScratchTypes scratch_shapes = {};
  operator GridSpec() const {
    return {grid, in_specs, out_specs, scratch_shapes, num_scalar_prefetch};
  }
};

// ---- Options

/// Order of the programs that differ along a grid axis.
enum class Semantics : std::uint8_t {
  parallel,    ///< unspecified, at the same time
  sequential,  ///< one after the other
};
inline constexpr Semantics parallel = Semantics::parallel, sequential = Semantics::sequential;

/// In which order a GPU is given the programs of a grid's parallel axes. Of the last two of these,
/// rows and columns of blocks, it takes `rows` rows at once: column by column of them, then the
/// next rows. What programs that run together read of the rows and of the columns they share in
/// the L2 cache. Results do not depend on it. 1: row-major, all columns of a row first.
struct GridOrder {
  int rows = 1;
  bool operator==(const GridOrder&) const = default;
};
inline constexpr GridOrder row_major = {};
/// Triton's GROUP_SIZE_M.
constexpr GridOrder grouped(int rows) { return {rows}; }

namespace gpu {
/// Of whom a profile has a trace each.
enum class TraceScope : std::uint8_t { WARPGROUP, WARP };
enum class LoweringSemantics : std::uint8_t { Lane, Warpgroup };
}  // namespace gpu

struct CompilerParams {
  /// Empty: an axis along which an output block is revisited is sequential, others are parallel.
  std::vector<Semantics> dimension_semantics = {};
  /// Warps that compute a program: 4, 8 or 16. 0: as many as its values need to stay in registers,
  /// or more where the timeline says that they are faster.
  int num_warps = 0;
  bool approx_math = false;
  bool fma = true;  ///< fuse a product that only an addition uses
  /// Profilers and debuggers point at the user's C++. Its lines then decide the kernel's key, too.
  bool lineinfo = false;
  /// Several programs of a parallel axis may write one element, and read it, in any order.
  bool allow_revisit = false;
  /// Iterations of a loop for which shared memory holds at once what they read of blocks that
  /// change with it: 1 to 16, those to come are copied meanwhile (from sm_80 on). 0: as many as
  /// hide the time of a copy and leave room for other programs, or fewer where the timeline says
  /// that they are faster. Fewer where a block has not that much memory.
  int num_stages = 0;
  /// Whether a warpgroup beside those of `num_warps` asks TMA for the copies to come, where all
  /// that a loop copies can be fetched (sm_90a). Unset: where that is expected to be faster.
  std::optional<bool> warp_specialize = {};
  /// Unset: row_major, or grouped where some inputs are read by rows and others by columns of the
  /// last two parallel axes, by as many rows as let programs that run together read the least.
  std::optional<GridOrder> grid_order = {};
  /// As many blocks as a GPU runs at once go through the programs of the parallel axes, one after
  /// the other. What is set up for a program, and inputs that are the same for all, is set up once;
  /// a warpgroup that fetches goes on to the next program while others end this one. Not of a
  /// kernel over a mesh, whose programs may wait for each other.
  bool persistent = false;
  /// So many blocks, of a cluster, share the iterations of the loop in which the body adds up
  /// products: each goes through a part of them, the first adds up the sums of all and does what
  /// stands behind the loop. For grids of fewer programs than half of the GPU's multiprocessors:
  /// few rows, long sums. 1 to 8; 0: one block has all. The body's own loop, no condition around
  /// it, whose carries are sums (sum + dot(...)); nothing is stored in front of it; no output in
  /// SMEM, no sequential axis, no cluster, not persistent. Where a kernel or an architecture (before
  /// sm_90) cannot, one block has all, and a remark says why. Sums differ in their order alone; the
  /// interpreter adds up as if nobody shared.
  int split_k = 0;
  /// Tensor cores of sm_90a keep 13 bits behind the point of sums of 8-bit floats. Unset, such sums
  /// are added up in f32 every 128 of K, which takes as many additions; set, what they keep is what
  /// a product gives, however long K is. Nothing of other architectures and elements.
  bool fast_accumulation = false;
  /// num_stages by Pallas's name; one of the two is given.
  int max_concurrent_steps = 0;
  /// Of a kernel over a mesh: threads of a Pallas thread wait for each other, before they read what
  /// others of them stored and store to what others read, where the body says so
  /// (plgpu::commit_smem, a barrier) and nowhere else.
  bool unsafe_no_auto_barriers = false;
  /// Accepted: a reduction has the shared memory that it takes.
  int reduction_scratch_bytes = 2048;
  /// Accepted: layouts are inferred over the whole kernel.
  gpu::LoweringSemantics lowering_semantics = gpu::LoweringSemantics::Warpgroup;
  /// Of the scopes of a body (plgpu::named_scope) so many begins and ends are kept of each
  /// warpgroup of a launch, or of each warp; written to profile_dir as a trace for Perfetto. 0:
  /// scopes are nothing.
  int profile_space = 0;
  std::string profile_dir = {};  ///< given with profile_space, or neither is
  gpu::TraceScope profile_trace_scope = gpu::TraceScope::WARPGROUP;
  /// What does not fit is left out, and the log says so. Else it is an error that says how many
  /// there were.
  bool profile_bounds_check = false;
  /// What the kernel is to become, told where it does not; no part of the key.
  Expectation expect = {};
};

struct InterpretParams {
  enum OutOfBounds : std::uint8_t { poison, zero };
  enum Uninitialised : std::uint8_t { warning, error };

  bool detect_races = false;  ///< among the threads of a block
  OutOfBounds out_of_bounds =
      poison;  ///< what reads beyond an array give: zero is what a GPU gives
  /// What elements of an output are that no program wrote, where no input is aliased to it. (To
  /// read them, or scratch, before something was stored there is an error always.)
  Uninitialised uninitialised = warning;
  /// Programs that no sequential axis orders, and the threads of a block, run in an order that this
  /// number gives: the same for the same number. Below 0: row-major. Programs that share a block of
  /// the emulator's (persistent, or of a cluster) stay together.
  std::int64_t random_seed = -1;
  /// OS threads of the host that share the programs of parallel axes; 0: one for each core, where
  /// a call lasts long enough; of more than 16, at most four for each core. Results and errors are
  /// the same for any number.
  int num_cores_per_device = 0;
};

/// `.interpret = true` or `.interpret = pl::InterpretParams{...}`.
class Interpret {
 public:
  Interpret() = default;
  template <std::same_as<bool> B>
  Interpret(B on) : on(on) {}
  Interpret(InterpretParams params) : on(true), params(params) {}

  bool on = false;
  InterpretParams params = {};
};

/// The output shares the memory of the input: numbers among the array inputs and the outputs.
struct InputOutputAlias {
  int input = 0, output = 0;
};

/// Designators stand in this order; of an old and a new spelling (out_shape, out_type) one is
/// given.
struct PallasCallOptions {
  std::string name = {};
  OutType out_type = {};
  OutType out_shape = {};
  /// The first so many arguments are index operands: arrays that the body gets whole, in global
  /// memory, and that index maps take as Refs behind the program ids. They are read only, have no
  /// entry in in_specs, and count in input_output_aliases.
  int num_scalar_prefetch = 0;
  GridSpec grid_spec = {};  ///< or grid, in_specs, out_specs and scratch one by one
  Grid grid = {};
  std::vector<std::string> grid_names = {};
  /// Which place of the grid a program has: from the program ids, by the order in which programs
  /// start, to one index per axis. Index maps and bodies know the place. Programs that share
  /// operands can so run together: `[](Index i, Index j) { return Indices{...}; }`.
  IndexMap get_grid_indices = {};
  /// What program_id and num_programs give: from the place in the grid to an index and a size for
  /// each axis that the kernel shall see, `Indices{i / 2, pl::num_programs(0) / 2, i % 2, 2}`.
  IndexMap local_grid_env = {};
  std::vector<Dim> cluster = {};
  std::vector<std::string> cluster_names = {};
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  ScratchTypes scratch_types = {};
  ScratchTypes scratch_shapes = {};
  std::vector<InputOutputAlias> input_output_aliases = {};
  Interpret interpret = {};
  /// The graph, as soon as it is traced, and the text that is emitted for it go to the log.
  bool debug = false;
  CompilerParams compiler_params = {};
  /// For people, like `metadata`: both stand in the graph, in reports and in manifests, and change
  /// no kernel and no key.
  CostEstimate cost_estimate = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

}  // namespace palladium
