// How an array is cut into blocks, and where they live.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/function.hpp"
#include "palladium/grid_mapping.hpp"
#include "palladium/ref.hpp"
#include "palladium/value.hpp"

namespace palladium {

/// A block dimension of one element, which the Ref does not have.
inline constexpr BlockDim squeezed{BlockDim::Kind::squeezed, 1};

struct Padding {
  std::int64_t lo = 0, hi = 0;
};
/// n elements from the element that the index map names, in the array padded by lo and hi.
inline BlockDim Element(Dim n, Padding padding = {}) {
  return {BlockDim::Kind::element, n.value(), padding.lo, padding.hi};
}
inline BlockDim Blocked(Dim n) { return {BlockDim::Kind::blocked, n.value()}; }
/// At most n elements: those of the slice, pl::ds(start, size), that the index map gives, all of
/// which are in the array. The Ref has n; the others hold what lies beyond an array.
inline BlockDim BoundedSlice(Dim n) { return {BlockDim::Kind::bounded_slice, n.value()}; }
/// n elements, of which the index map gives the indices: an array of n integers. Of an input they
/// are gathered, to an output, where no index comes twice, scattered. The array's extent along the
/// dimension is static.
inline BlockDim Indirect(Dim n) { return {BlockDim::Kind::indirect, n.value()}; }

/// The n elements that the array has along the dimension, never more than `most`, which is what the
/// Ref has. All that is computed of it has that length: reductions take their identity beyond it,
/// products zeros, means count n elements, and stores write no more. With a .fill what is beyond is
/// that, and counts like all else. A call with more than `most` elements is a CompileError.
inline BlockDim bounded(const Dim& n, std::int64_t most) {
  BlockDim d{BlockDim::Kind::bounded, most};
  d.length = n.expression();
  return d;
}

/// Elements from `start`, as many as a Value says: what an index map gives along a BoundedSlice.
struct BoundedRange {
  Value start, size;
};
template <std::same_as<Value> V>
BoundedRange ds(const Value& start, const V& size) {
  return {start, size};
}
template <std::same_as<Value> V>
BoundedRange dslice(const Value& start, const V& size) {
  return {start, size};
}

/// What an index map gives along a dimension: an index, an array of them (Indirect), a slice
/// (BoundedSlice).
class BlockIndex {
 public:
  template <class T>
  requires(std::convertible_to<T, Value> && !std::same_as<std::remove_cvref_t<T>, BlockIndex>)
      BlockIndex(T&& index)
      : start(std::forward<T>(index)) {}
  BlockIndex(const Slice& s) : start(s.start), size(s.size), stride(s.stride), is_slice(true) {}
  BlockIndex(const BoundedRange& s) : start(s.start), size(s.size), is_slice(true) {}

  Value start;
  Value size = 1;
  std::int64_t stride = 1;
  bool is_slice = false;
};

/// What an index map returns: one index per block dimension.
class PALLADIUM_API Indices {
 public:
  Indices(std::initializer_list<BlockIndex> indices) : indices_(indices) {}
  template <class T>
  requires(std::convertible_to<T, BlockIndex> && !std::same_as<std::remove_cvref_t<T>, Indices>)
      Indices(T&& index)
      : indices_{BlockIndex(std::forward<T>(index))} {}
  Indices(const std::vector<Value>& indices) : indices_(indices.begin(), indices.end()) {}
  const std::vector<BlockIndex>& list() const { return indices_; }

 private:
  std::vector<BlockIndex> indices_;
};

namespace detail {

inline constexpr int max_grid_rank = 8;
inline constexpr int max_index_operands = 8;

struct IndexMapBase : Counted {
  int arity = -1;         ///< -1: decided by the call (a generic lambda)
  bool on_stack = false;  ///< it captured what is on the stack (refers_to_stack)
  /// False if the map does not take `count` ids and `num_refs` Refs behind them.
  virtual bool call(const Value* ids, int count, const Ref* refs, int num_refs,
                    std::vector<BlockIndex>& result) = 0;
};

template <class R>
inline constexpr bool is_index = std::same_as<R, Indices> || std::convertible_to<R, BlockIndex>;

template <class R>
void take_indices(std::vector<BlockIndex>& result, const R& returned) {
  if constexpr (std::same_as<R, Indices>) {
    result = returned.list();
  } else if constexpr (is_index<R>) {
    result = {BlockIndex(returned)};
  }
}

/// How many parameters of a list are a pl::Index, and how many pl::Refs follow; -1 ids where there
/// is something else among them.
struct IndexParameters {
  int ids = 0, refs = 0;
};
template <class... A>
consteval IndexParameters index_parameters(List<A...>) {
  IndexParameters p;
  bool fits = true;
  ((std::same_as<A, Ref> ? (void)++p.refs
                         : (void)(fits = fits && std::same_as<A, Index> && p.refs == 0, ++p.ids)),
   ...);
  return fits ? p : IndexParameters{-1, 0};
}

template <class F>
struct IndexMapModel final : IndexMapBase {
  explicit IndexMapModel(F f) : function(std::move(f)) {
    on_stack = refers_to_stack(function);
    if constexpr (Plain<F>) arity = Signature<F>::arity;
  }

  bool call(const Value* ids, int count, const Ref* refs, int num_refs,
            std::vector<BlockIndex>& result) override {
    if constexpr (Plain<F>) {
      constexpr IndexParameters p = index_parameters(typename Signature<F>::Parameters());
      if constexpr (p.ids >= 0) {
        if (count != p.ids || num_refs != p.refs) return false;
        [&]<std::size_t... I, std::size_t... R>(std::index_sequence<I...>,
                                                std::index_sequence<R...>) {
          take_indices(result, function(ids[I]..., refs[R]...));
        }
        (std::make_index_sequence<p.ids>(), std::make_index_sequence<p.refs>());
        return true;
      }
      return false;
    } else {
      // A generic parameter could be either.
      if (num_refs != 0) return false;
      return [&]<std::size_t... N>(std::index_sequence<N...>) {
        return (attempt(ids, count, result, std::make_index_sequence<N>()) || ...);
      }
      (std::make_index_sequence<max_grid_rank + 1>());
    }
  }

  template <std::size_t... I>
  bool attempt([[maybe_unused]] const Value* ids, int count,
               [[maybe_unused]] std::vector<BlockIndex>& result, std::index_sequence<I...>) {
    if constexpr (std::is_invocable_v<F&, Repeat<Index, I>...>) {
      if (count != static_cast<int>(sizeof...(I))) return false;
      take_indices(result, function(ids[I]...));
      return true;
    } else {
      (void)count;
      return false;
    }
  }

  F function;
};

// In the constructor, so that the compilers name the user's line. Never by is_invocable on a plain
// lambda: constructors that only explain a mistake make types look convertible.
template <class F>
consteval void check_index_map() {
  if constexpr (Plain<F>) {
    constexpr IndexParameters p = index_parameters(typename Signature<F>::Parameters());
    constexpr bool fits = p.ids >= 0 && p.ids <= max_grid_rank;
    static_assert(fits,
                  "palladium: an index map takes a pl::Index per grid axis, then a pl::Ref per "
                  "scalar prefetch operand");
    if constexpr (fits) {
      static_assert(is_index<typename Signature<F>::Result>,
                    "palladium: an index map returns pl::Indices{i, j, ...}, or one index");
    }
  }
}

}  // namespace detail

/// From program ids, and scalar prefetch operands, to a block's index. Kept and run when the kernel
/// is traced: capture by `[=]`.
class IndexMap {
 public:
  IndexMap() = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, IndexMap> && !std::is_arithmetic_v<F>)
      IndexMap(F f, Location at = here())
      : map_(new detail::IndexMapModel<F>(detail::given_function(std::move(f), "index map", at))),
        at_(at) {
    detail::check_index_map<F>();
  }
  explicit operator bool() const { return static_cast<bool>(map_); }

 private:
  friend class detail::Access;
  detail::Shared<detail::IndexMapBase> map_;
  Location at_;
};

namespace gpu {
/// How shared memory is to be laid out: in tiles of its last dimensions, whose rows are swizzled.
struct Transform {
  std::vector<std::int64_t> tiling = {};  ///< of a TilingTransform
  int swizzle = 0;                        ///< of a SwizzleTransform, bytes
};
/// What is brought of elements of an array that there are not, because a slice ends behind it, or
/// begins in front of it.
enum class OOBFillMode : std::uint8_t {
  UNDEFINED,          ///< anything
  PROMISE_IN_BOUNDS,  ///< there are none, which interpreter and emulator check
  ZEROS
};
}  // namespace gpu

/// What a scratch operand is: `plgpu::SMEM({128, 64}, pl::f32)`.
struct Scoped {
  Space space = Space::smem;
  ShapeDtype type = {};
  Location at = {};
  int mesh = -1;     ///< of a kernel over several meshes: the number of the one whose it is
  int arrivals = 0;  ///< of barriers: so many complete each of them
  /// Of a ClusterBarrier: along which axes blocks arrive at those of others.
  std::vector<std::vector<std::string>> collective_axes = {};
  std::vector<gpu::Transform> transforms = {};
  MaybeValue init = {};  ///< of an accumulator: what it holds first; none: zeros
  std::vector<std::vector<Scoped>> groups = {};  ///< of a RefUnion
  /// Of one of its members in a list of scratch: how many members of the union stand before it, and
  /// where in the bytes of all it begins.
  struct Member {
    int number = -1;  ///< -1: it is none
    std::int64_t offset = 0, bytes = 0;
  } member = {};

  /// The same for the threads of one of several meshes: `plgpu::REGS({64}, pl::f32).on(1)`.
  Scoped on(int mesh_number) const {
    Scoped result = *this;
    result.mesh = mesh_number;
    return result;
  }
};

struct MemoryOptions {
  std::vector<gpu::Transform> transforms = {};  ///< of SMEM; inferred where none are given
};
/// Where Refs live; called with a shape and a dtype, a type of scratch.
struct MemorySpace {
  Space space = Space::automatic;
  Scoped operator()(Shape shape, DType dtype, Location at = here()) const {
    return {space, {shape, dtype}, at};
  }
  Scoped operator()(Shape shape, DType dtype, MemoryOptions options, Location at = here()) const {
    Scoped result{space, {shape, dtype}, at};
    result.transforms = std::move(options.transforms);
    return result;
  }
};

/// So many copies of a block at once, of which all but one are on their way while the program works
/// on that one; 1: a block is there before its program begins.
struct Buffered {
  constexpr Buffered() = default;
  explicit constexpr Buffered(int buffer_count) : buffer_count(buffer_count), given(true) {}
  int buffer_count = 0;  ///< 0: the compiler's choice
  bool given = false;
};

struct BlockSpecOptions {
  MemorySpace memory_space = {};
  /// How many copies of the block are under way, where blocks of a loop are fetched ahead.
  Buffered pipeline_mode = {};
  /// What elements of a block hold that lie beyond the array, at its end or in the padding of an
  /// Element, on every target; a store there changes nothing. None: they are undefined.
  std::optional<double> fill = {};
  /// How the memory of blocks of a plgpu::emit_pipeline lies; inferred where none are given.
  std::vector<gpu::Transform> transforms = {};
  /// Steps of a plgpu::emit_pipeline behind which the memory of a block of an input is filled
  /// again: as many as products may be under way behind its body.
  int delay_release = 0;
  /// Cluster axes, of an input of a plgpu::emit_pipeline_warp_specialized: all blocks along them
  /// have the same block of it at the same step, and each brings a part of it to all.
  std::vector<std::string> collective_axes = {};
  /// What blocks of an input of such pipelines hold beyond its array, which they do not divide.
  gpu::OOBFillMode oob_fill_mode = gpu::OOBFillMode::ZEROS;
};

/// How an array is cut into blocks. Without a shape a block is the whole array, without an index
/// map every program has the first block.
class BlockSpec {
 public:
  BlockSpec() = default;
  BlockSpec(std::initializer_list<BlockDim> shape, IndexMap map = {}, BlockSpecOptions options = {},
            Location at = here())
      : block_shape(shape),
        index_map(std::move(map)),
        memory_space(options.memory_space),
        pipeline_mode(options.pipeline_mode),
        fill(options.fill),
        transforms(std::move(options.transforms)),
        delay_release(options.delay_release),
        collective_axes(std::move(options.collective_axes)),
        oob_fill_mode(options.oob_fill_mode),
        whole(false),
        at(at) {}
  /// Of a shape that somebody else has: `pl::BlockSpec{w.shape, map}`. Its dims are pinned.
  template <std::same_as<Shape> S>
  BlockSpec(const S& shape, IndexMap map = {}, BlockSpecOptions options = {}, Location at = here())
      : BlockSpec(of({shape.begin(), shape.end()}, std::move(map), std::move(options), at)) {}
  BlockSpec(BlockSpecOptions options, Location at = here())
      : memory_space(options.memory_space),
        pipeline_mode(options.pipeline_mode),
        fill(options.fill),
        transforms(std::move(options.transforms)),
        delay_release(options.delay_release),
        collective_axes(std::move(options.collective_axes)),
        oob_fill_mode(options.oob_fill_mode),
        at(at) {}
  /// For a rank that is known only at run time.
  static BlockSpec of(std::vector<BlockDim> shape, IndexMap map = {}, BlockSpecOptions options = {},
                      Location at = here()) {
    BlockSpec spec(options, at);
    spec.block_shape = std::move(shape);
    spec.index_map = std::move(map);
    spec.whole = false;
    return spec;
  }

  /// Of neighbouring operands as one entry, such as those of a struct of Refs: one for each.
  static BlockSpec of_struct(std::initializer_list<BlockSpec> specs, Location at = here()) {
    BlockSpec spec(BlockSpecOptions{}, at);
    spec.components = specs;
    return spec;
  }

  std::vector<BlockSpec> components = {};
  std::vector<BlockDim> block_shape = {};
  IndexMap index_map = {};
  MemorySpace memory_space = {};
  Buffered pipeline_mode = {};
  std::optional<double> fill = {};
  std::vector<gpu::Transform> transforms = {};
  int delay_release = 0;
  std::vector<std::string> collective_axes = {};
  gpu::OOBFillMode oob_fill_mode = gpu::OOBFillMode::ZEROS;
  bool whole = true;  ///< the block is the array
  Location at = {};
};

}  // namespace palladium
