// How an array is cut into blocks, and where they live.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/function.hpp"
#include "palladium/grid_mapping.hpp"
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

/// What an index map returns: one index per block dimension.
class PALLADIUM_API Indices {
 public:
  Indices(std::initializer_list<Value> indices) : indices_(indices) {}
  Indices(const Value& index) : indices_{index} {}
  Indices(std::vector<Value> indices) : indices_(std::move(indices)) {}
  const std::vector<Value>& list() const { return indices_; }

 private:
  std::vector<Value> indices_;
};

namespace detail {

inline constexpr int max_grid_rank = 8;

struct IndexMapBase : Counted {
  int arity = -1;  ///< -1: decided by the call (a generic lambda)
  /// False if the map does not take `count` ids.
  virtual bool call(const Value* ids, int count, std::vector<Value>& result) = 0;
};

template <class R>
inline constexpr bool is_index = std::same_as<R, Indices> || std::convertible_to<R, Value>;

template <class R>
void take_indices(std::vector<Value>& result, const R& returned) {
  if constexpr (std::same_as<R, Indices>) {
    result = returned.list();
  } else if constexpr (is_index<R>) {
    result = {Value(returned)};
  }
}

// Never by is_invocable on a plain lambda: constructors that only explain a mistake make types look
// convertible.
template <class F, std::size_t... I>
consteval bool takes_ids(std::index_sequence<I...>) {
  if constexpr (Plain<F>) {
    return std::same_as<typename Signature<F>::Parameters, List<Repeat<Index, I>...>>;
  } else {
    return std::is_invocable_v<F&, Repeat<Index, I>...>;
  }
}

template <class F>
struct IndexMapModel final : IndexMapBase {
  explicit IndexMapModel(F f) : function(std::move(f)) {
    if constexpr (Plain<F>) arity = Signature<F>::arity;
  }

  bool call(const Value* ids, int count, std::vector<Value>& result) override {
    return [&]<std::size_t... N>(std::index_sequence<N...>) {
      return (attempt(ids, count, result, std::make_index_sequence<N>()) || ...);
    }
    (std::make_index_sequence<max_grid_rank + 1>());
  }

  template <std::size_t... I>
  bool attempt([[maybe_unused]] const Value* ids, int count,
               [[maybe_unused]] std::vector<Value>& result, std::index_sequence<I...>) {
    if constexpr (takes_ids<F>(std::index_sequence<I...>())) {
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

// In the constructor, so that the compilers name the user's line.
template <class F>
consteval void check_index_map() {
  if constexpr (Plain<F>) {
    constexpr int arity = Signature<F>::arity;
    constexpr bool fits = takes_ids<F>(std::make_index_sequence<arity>());
    static_assert(fits, "palladium: an index map takes a pl::Index per grid axis");
    if constexpr (fits) {
      static_assert(is_index<typename Signature<F>::Result>,
                    "palladium: an index map returns pl::Indices{i, j, ...}, or one index");
    }
  }
}

}  // namespace detail

/// From program ids to a block's index. Kept and run when the kernel is traced: capture by `[=]`.
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

/// What a scratch operand is: `plgpu::SMEM({128, 64}, pl::f32)`.
struct Scoped {
  Space space = Space::smem;
  ShapeDtype type = {};
  Location at = {};
  int mesh = -1;  ///< of a kernel over several meshes: the number of the one whose it is

  /// The same for the threads of one of several meshes: `plgpu::REGS({64}, pl::f32).on(1)`.
  Scoped on(int mesh_number) const {
    Scoped result = *this;
    result.mesh = mesh_number;
    return result;
  }
};

/// Where Refs live; called with a shape and a dtype, a type of scratch.
struct MemorySpace {
  Space space = Space::automatic;
  Scoped operator()(Shape shape, DType dtype, Location at = here()) const {
    return {space, {shape, dtype}, at};
  }
};

struct BlockSpecOptions {
  MemorySpace memory_space = {};
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
        whole(false),
        at(at) {}
  BlockSpec(BlockSpecOptions options, Location at = here())
      : memory_space(options.memory_space), at(at) {}
  /// For a rank that is known only at run time.
  static BlockSpec of(std::vector<BlockDim> shape, IndexMap map = {}, BlockSpecOptions options = {},
                      Location at = here()) {
    BlockSpec spec(options, at);
    spec.block_shape = std::move(shape);
    spec.index_map = std::move(map);
    spec.whole = false;
    return spec;
  }

  std::vector<BlockDim> block_shape = {};
  IndexMap index_map = {};
  MemorySpace memory_space = {};
  bool whole = true;  ///< the block is the array
  Location at = {};
};

}  // namespace palladium
