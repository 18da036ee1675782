// How a kernel is called: blocks, grids, scratch, options and the erased body.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/grid_mapping.hpp"
#include "palladium/ref.hpp"
#include "palladium/value.hpp"

namespace palladium {

namespace detail {

/// Base of shared objects; the count is atomic.
struct Counted {
  Counted() = default;
  Counted(const Counted&) = delete;
  virtual ~Counted() = default;
  mutable int uses = 1;
};

/// A shared handle (<memory> alone would double what this header costs).
template <class T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* adopted) : object_(adopted) {}
  Shared(const Shared& o) : object_(o.object_) {
    if (object_) __atomic_add_fetch(&object_->uses, 1, __ATOMIC_RELAXED);
  }
  Shared(Shared&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Shared& operator=(Shared o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Shared() {
    if (object_ && __atomic_sub_fetch(&object_->uses, 1, __ATOMIC_ACQ_REL) == 0) delete object_;
  }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

template <class... T>
struct List {};
template <class T, std::size_t>
using Repeat = T;

/// Parameters of a function whose call operator is no template.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Parameters = List<std::remove_cvref_t<A>...>;
  using Result = std::remove_cvref_t<R>;
  static constexpr int arity = sizeof...(A);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class F>
concept Plain = std::is_pointer_v<F> || requires {
  &F::operator();
};

}  // namespace detail

// ---- Blocks

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
      : map_(new detail::IndexMapModel<F>(std::move(f))), at_(at) {
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
      names.push_back(a.name);
    }
  }
  bool empty() const { return sizes.empty(); }

  std::vector<Dim> sizes = {};
  std::vector<std::string> names = {};  ///< empty, or one per axis
};

/// One output, a list of them, or none.
class OutType {
 public:
  OutType() = default;
  OutType(const Shape& shape, DType dtype) : list_{{shape, dtype}}, single_(true) {}
  OutType(const ShapeDtype& type) : list_{type}, single_(true) {}
  OutType(std::initializer_list<ShapeDtype> list) : list_(list) {}
  OutType(std::vector<ShapeDtype> list) : list_(std::move(list)) {}
  const std::vector<ShapeDtype>& list() const { return list_; }
  bool single() const { return single_; }
  bool empty() const { return list_.empty(); }

 private:
  std::vector<ShapeDtype> list_;
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
    for (const Scoped& t : types) list.push_back({"", t});
  }
  ScratchTypes(std::initializer_list<NamedScoped> types) : list(types) {}
  bool empty() const { return list.empty(); }

  std::vector<NamedScoped> list = {};
};

struct GridSpec {
  Grid grid = {};
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  ScratchTypes scratch_shapes = {};
};

// ---- Options

/// Order of the programs that differ along a grid axis.
enum class Semantics : std::uint8_t {
  parallel,    ///< unspecified, at the same time
  sequential,  ///< one after the other
};
inline constexpr Semantics parallel = Semantics::parallel, sequential = Semantics::sequential;

struct CompilerParams {
  /// Empty: an axis along which an output block is revisited is sequential, others are parallel.
  std::vector<Semantics> dimension_semantics = {};
  bool approx_math = false;
  bool fma = true;  ///< fuse a product that only an addition uses
  /// Several programs of a parallel axis may write one element.
  bool allow_revisit = false;
};

struct InterpretParams {
  enum OutOfBounds : std::uint8_t { poison, zero };

  bool detect_races = false;
  OutOfBounds out_of_bounds = poison;  ///< what reads beyond an array give
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

struct CostEstimate {
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t bytes_accessed = 0;
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
  GridSpec grid_spec = {};  ///< or grid, in_specs, out_specs and scratch one by one
  Grid grid = {};
  std::vector<std::string> grid_names = {};
  std::vector<Dim> cluster = {};
  std::vector<std::string> cluster_names = {};
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  ScratchTypes scratch_types = {};
  ScratchTypes scratch_shapes = {};
  std::vector<InputOutputAlias> input_output_aliases = {};
  Interpret interpret = {};
  bool debug = false;
  CompilerParams compiler_params = {};
  CostEstimate cost_estimate = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// ---- The body

/// Parameter of a body: the references that no other parameter takes.
class Refs {
 public:
  Refs(const Ref* refs, int count) : refs_(refs), count_(count) {}
  const Ref* begin() const { return refs_; }
  const Ref* end() const { return refs_ + count_; }
  const Ref& operator[](int i) const { return refs_[i]; }
  int size() const { return count_; }

 private:
  const Ref* refs_;
  int count_;
};

/// Parameter of a body: all scratch, by name.
class PALLADIUM_API Scratch {
 public:
  struct Name {
    Name(const char* text, Location at = here()) : text(text), at(at) {}
    const char* text;
    Location at;
  };
  /// CompileError with the list of names if there is none of that name.
  Ref operator[](Name name) const;

 private:
  friend class detail::Access;
  Scratch(const Ref* refs, const std::vector<std::string>* names) : refs_(refs), names_(names) {}
  const Ref* refs_;
  const std::vector<std::string>* names_;
};

namespace detail {

/// What a body parameter takes from *arguments, *outputs, *scratch.
struct Parameter {
  enum class Kind : std::uint8_t { refs, value, rest, scratch };
  Kind kind = Kind::refs;
  int count = 0;  // Kind::refs
};

/// The operands of one call of a body, in order.
class PALLADIUM_API Operands {
 public:
  virtual ~Operands() = default;
  /// CompileError unless the parameters take exactly these operands; then `position` tells where
  /// each begins.
  virtual void match(const Parameter* parameters, int count, int* position) = 0;
  virtual const Ref* refs(int position) = 0;
  virtual Value value(int position) = 0;
  virtual Refs rest(int position) = 0;
  virtual Scratch scratch() = 0;
  virtual int size() = 0;
};

// Fields of a struct parameter, counted by brace initialisation.
struct AnyRef {
  operator Ref() const;
};
struct AnyField {
  template <class T>
  operator T() const;
};
inline constexpr int max_fields = 16;
template <class T, std::size_t... I>
consteval bool braces(std::index_sequence<I...>) {
  return requires { T{Repeat<AnyRef, I>{}...}; };
}
template <class T, int N = max_fields>
consteval int ref_fields() {
  if constexpr (N == 0) {
    return 0;
  } else if constexpr (braces<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return ref_fields<T, N - 1>();
  }
}
template <class T, std::size_t... I>
consteval bool more_fields(std::index_sequence<I...>) {
  return requires { T{Repeat<AnyRef, I>{}..., AnyField{}}; };
}
template <class T>
consteval int width() {
  if constexpr (std::is_aggregate_v<T>) {
    constexpr int n = ref_fields<T>();
    if constexpr (n == 0 || more_fields<T>(std::make_index_sequence<n>())) {
      return 0;
    } else {
      return n;
    }
  } else {
    return 0;
  }
}

template <class T>
consteval Parameter parameter() {
  if constexpr (std::same_as<T, Ref>) {
    return {Parameter::Kind::refs, 1};
  } else if constexpr (std::same_as<T, Value>) {
    return {Parameter::Kind::value, 1};
  } else if constexpr (std::same_as<T, Refs>) {
    return {Parameter::Kind::rest, 0};
  } else if constexpr (std::same_as<T, Scratch>) {
    return {Parameter::Kind::scratch, 0};
  } else {
    return {Parameter::Kind::refs, width<T>()};
  }
}
constexpr bool takes_something(Parameter p) {
  return p.kind != Parameter::Kind::refs || p.count > 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-braces"  // structs in structs: their Refs in one row
template <class T>
T take(Operands& operands, int position) {
  if constexpr (std::same_as<T, Ref>) {
    return *operands.refs(position);
  } else if constexpr (std::same_as<T, Value>) {
    return operands.value(position);
  } else if constexpr (std::same_as<T, Refs>) {
    return operands.rest(position);
  } else if constexpr (std::same_as<T, Scratch>) {
    return operands.scratch();
  } else {
    const Ref* refs = operands.refs(position);
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return T{refs[I]...}; }
    (std::make_index_sequence<width<T>()>());
  }
}
#pragma GCC diagnostic pop

template <class F, class... A>
auto call_body(F& f, Operands& operands, List<A...>) {
  constexpr bool fits = (takes_something(parameter<A>()) && ...);
  static_assert(fits,
                "palladium: a kernel function takes pl::Ref, pl::Refs, pl::Scratch, structs of "
                "pl::Ref (nothing else in them), or pl::Value for a scalar argument");
  if constexpr (fits) {
    const Parameter parameters[] = {parameter<A>()..., Parameter{}};
    int position[sizeof...(A) + 1] = {};
    operands.match(parameters, sizeof...(A), position);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return f(take<A>(operands, position[I])...);
    }
    (std::make_index_sequence<sizeof...(A)>());
  }
}

// How many Refs a generic lambda takes: -1 if that cannot be told.
template <class F, std::size_t... I>
consteval bool takes_refs(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, Repeat<Ref, I>...>;
}
template <class F>
consteval int generic_arity() {
  int arity = -1, fitting = 0;
  [&]<std::size_t... N>(std::index_sequence<N...>) {
    ((takes_refs<F>(std::make_index_sequence<N>()) ? (arity = static_cast<int>(N), ++fitting) : 0),
     ...);
  }
  (std::make_index_sequence<max_fields + 1>());
  return fitting == 1 ? arity : -1;
}

template <class F>
auto call_body(F& f, Operands& operands) {
  if constexpr (Plain<F>) {
    return call_body(f, operands, typename Signature<F>::Parameters{});
  } else {
    constexpr int arity = generic_arity<F>();
    static_assert(arity >= 0,
                  "palladium: cannot tell how many references this generic lambda takes; write "
                  "pl::Ref for each, or one pl::Refs");
    if constexpr (arity >= 0) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return call_body(f, operands, List<Repeat<Ref, I>...>{});
      }
      (std::make_index_sequence<arity>());
    }
  }
}

struct BodyBase : Counted {
  virtual void call(Operands& operands) = 0;
};
template <class F>
struct BodyModel final : BodyBase {
  explicit BodyModel(F f) : function(std::move(f)) {}
  void call(Operands& operands) override { call_body(function, operands); }
  F function;
};

}  // namespace detail

/// A kernel function, kept and run at each trace: capture by `[=]` or nothing, never by `[&]`.
class Body {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Body>) Body(F f, Location at = here())
      : body_(new detail::BodyModel<F>(std::move(f))), at_(at) {
    // Here, so that the compilers name the user's line.
    static_assert(std::is_void_v<decltype(detail::call_body(std::declval<F&>(),
                                                            std::declval<detail::Operands&>()))>,
                  "palladium: the kernel function should return nothing; write results to the "
                  "output Refs");
  }
  Location at() const { return at_; }

 private:
  friend class detail::Access;
  detail::Shared<detail::BodyBase> body_;
  Location at_;
};

}  // namespace palladium
