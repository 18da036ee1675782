// The operations of a kernel body besides the operators.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "palladium/control.hpp"
#include "palladium/ref.hpp"
#include "palladium/value.hpp"

namespace palladium {

// Elementary functions, exp(x) to trunc(x), pow(x, y), atan2(y, x): a row of palladium/math.def
// each, whose last column says what it gives; docs/operations.md lists them.
#define PALLADIUM_MATH(Op, name, ...) PALLADIUM_API Value name(const Operand& x);
#define PALLADIUM_MATH2(Op, name, a, b, ...) \
  PALLADIUM_API Value name(const Operand& a, const Operand& b);
#include "palladium/math.def"

// Elementwise. Shapes broadcast as in numpy, dtypes must agree, literals adapt; what each gives,
// and how exactly, is in the op table (codegen/graph/ops.def).
PALLADIUM_API Value abs(const Operand& x);
PALLADIUM_API Value sign(const Operand& x);
PALLADIUM_API Value population_count(const Operand& x);
PALLADIUM_API Value clz(const Operand& x);
PALLADIUM_API Value is_finite(const Operand& x);
PALLADIUM_API Value maximum(const Operand& x, const Operand& y);
PALLADIUM_API Value minimum(const Operand& x, const Operand& y);
PALLADIUM_API Value fma(const Operand& x, const Operand& y, const Operand& z);
/// x where the condition holds, else y.
PALLADIUM_API Value where(const Operand& condition, const Operand& x, const Operand& y);

// Made of those above. Dtypes and shapes are theirs.

PALLADIUM_API Value is_nan(const Operand& x);
PALLADIUM_API Value is_inf(const Operand& x);
PALLADIUM_API Value square(const Operand& x);
PALLADIUM_API Value reciprocal(const Operand& x);  ///< floats
/// x multiplied with itself; 1 / that for n < 0, which only floats have.
PALLADIUM_API Value integer_pow(const Operand& x, std::int64_t n);
/// The quotient rounded down. Integers by zero: as `/`; floats: as numpy.
PALLADIUM_API Value floor_divide(const Operand& x, const Operand& y);
/// Integers divided and rounded up; of C++'s numbers and Dims: types.hpp.
PALLADIUM_API Value cdiv(const Operand& x, const Operand& y);
/// x rounded up to a multiple of y.
PALLADIUM_API Value align_to(const Operand& x, const Operand& y);
/// What floor_divide leaves: the sign of y, as numpy's and Python's. Integers by zero: 0.
PALLADIUM_API Value remainder(const Operand& x, const Operand& y);
/// Integers give f32, or f64 if they have 64 bits.
PALLADIUM_API Value true_divide(const Operand& x, const Operand& y);
/// The nearest to x in [low, high]; NaN where one is; high where low is above it.
PALLADIUM_API Value clamp(const Operand& low, const Operand& x, const Operand& high);
PALLADIUM_API Value clip(const Operand& x, const Operand& low, const Operand& high);
/// cases[which]: `which` is bool, of two cases, or an integer; beyond the cases the nearest.
PALLADIUM_API Value select_n(const Operand& which, std::initializer_list<Operand> cases);
/// Zeros enter, whatever the sign; a count outside [0, bits) gives 0.
PALLADIUM_API Value shift_right_logical(const Operand& x, const Operand& count);
PALLADIUM_API Value copysign(const Operand& x, const Operand& y);
/// The next number after x towards y.
PALLADIUM_API Value nextafter(const Operand& x, const Operand& y);
PALLADIUM_API Value relu(const Operand& x);
/// x times its logistic; floats, 16-bit ones computed in f32 and rounded once, as for gelu.
PALLADIUM_API Value silu(const Operand& x);
struct GeluOptions {
  bool approximate = true;  ///< by tanh, else by erf
};
PALLADIUM_API Value gelu(const Operand& x, GeluOptions options = {});

// Hints: x, and what you know of its numbers, which are integers. What starts at a multiple of 16
// bytes is accessed 16 bytes at a time: x[{pl::ds(pl::multiple_of(start, 64), 64)}]. Where a hint
// is false a GPU faults or takes other elements; the interpreter says so, and the emulator does of
// scalars and of arrays that are computed and not loaded.

/// A scalar that is a multiple of n; of an array each run of consecutive numbers (also one of one
/// number) begins at a multiple of values[d] along dimension d.
PALLADIUM_API Value multiple_of(const Operand& x, std::int64_t n);
PALLADIUM_API Value multiple_of(const Operand& x, std::initializer_list<std::int64_t> values);
/// An array of which each values[d] elements along dimension d, counted from the first, are
/// consecutive numbers. No access depends on it: an index is a scalar or a slice.
PALLADIUM_API Value max_contiguous(const Operand& x, std::int64_t n);
PALLADIUM_API Value max_contiguous(const Operand& x, std::initializer_list<std::int64_t> values);

// Values from nothing. An empty dtype of `full` is the value's.
PALLADIUM_API Value full(Shape shape, const Operand& value, DType dtype = {});
PALLADIUM_API Value zeros(Shape shape, DType dtype = f32, Location at = here());
/// A value of which nothing is said but its shape and dtype. It is made of zeros.
PALLADIUM_API Value empty(Shape shape, DType dtype, Location at = here());
PALLADIUM_API Value empty_like(const Operand& x);
PALLADIUM_API Value empty_like(const Ref& x, Location at = here());
PALLADIUM_API Value ones(Shape shape, DType dtype = f32, Location at = here());
// Of the shape of a value or a Ref, of which nothing is read, and of its dtype if none is given.
PALLADIUM_API Value zeros_like(const Operand& x, DType dtype = {});
PALLADIUM_API Value zeros_like(const Ref& x, DType dtype = {}, Location at = here());
PALLADIUM_API Value ones_like(const Operand& x, DType dtype = {});
PALLADIUM_API Value ones_like(const Ref& x, DType dtype = {}, Location at = here());
/// `value` is a scalar, or broadcasts to that shape; a Value is cast, a number must be of the
/// dtype.
PALLADIUM_API Value full_like(const Operand& x, const Operand& value, DType dtype = {});
PALLADIUM_API Value full_like(const Ref& x, const Operand& value, DType dtype = {});
/// Each element is its index along `dimension`.
PALLADIUM_API Value iota(DType dtype, Shape shape, int dimension = 0, Location at = here());
/// The numbers start, start + step, ... before `stop`, each rounded once; of C++ numbers, since the
/// extent comes of them: a Value is refused (pl::iota(...) + start). Without a dtype f32 where one
/// of them is a float, else i32.
PALLADIUM_API Value arange(const Operand& stop, DType dtype = {});
PALLADIUM_API Value arange(const Operand& start, const Operand& stop, const Operand& step = 1,
                           DType dtype = {});

// Shapes.
PALLADIUM_API Value broadcast_to(const Operand& x, Shape shape);
/// The same bits as numbers of another dtype of that width; no bools.
PALLADIUM_API Value bitcast(const Operand& x, DType dtype);
PALLADIUM_API Value reshape(const Operand& x, Shape shape);
/// Without these dimensions, whose extent must be 1; none given: all of extent 1.
PALLADIUM_API Value squeeze(const Operand& x, Axes axes = {});
/// With dimensions of extent 1 that have these places in the result.
PALLADIUM_API Value expand_dims(const Operand& x, Axes axes);
PALLADIUM_API Value swapaxes(const Operand& x, int a, int b);
/// Without a permutation the dimensions are reversed.
PALLADIUM_API Value transpose(const Operand& x, Axes permutation = {});

// Elements of values elsewhere. v[{...}] slices (value.hpp).

/// One behind the other: of one dtype, and of one shape but for the axis.
PALLADIUM_API Value concatenate(std::initializer_list<Operand> values, int axis = 0,
                                Location at = here());
PALLADIUM_API Value concatenate(std::span<const Value> values, int axis = 0, Location at = here());
/// Along an axis of their own, which stands at `axis` in the result; of one dtype and shape.
PALLADIUM_API Value stack(std::initializer_list<Operand> values, int axis = 0,
                          Location at = here());
PALLADIUM_API Value stack(std::span<const Value> values, int axis = 0, Location at = here());
/// So many parts of one size, which must divide the extent.
PALLADIUM_API std::vector<Value> split(const Operand& x, std::int64_t parts, int axis = 0);

/// Elements in front of and behind those of a dimension, and between each two of them. Fewer than 0
/// in front or behind take elements away.
struct PadWidth {
  std::int64_t before = 0, after = 0, interior = 0;
};
enum class PadMode : std::uint8_t {
  constant,
  wrap,  ///< the elements over and over
  edge,  ///< the first and the last
};
struct PadOptions {
  MaybeValue value = {};  ///< a scalar of the dtype; 0 if there is none
  PadMode mode = PadMode::constant;
};
/// One width for each dimension: pl::pad(x, {{1, 2}, {0, 3}}). Constants alone stand in between, and
/// elements are taken away of constant padding alone (lax.pad); something must be left.
PALLADIUM_API Value pad(const Operand& x, std::initializer_list<PadWidth> widths,
                        PadOptions options = {});
/// From the last to the first along these axes; none: all.
PALLADIUM_API Value flip(const Operand& x, Axes axes = {});
/// What leaves at the end comes in at the front; no axes: of the elements in row-major order.
PALLADIUM_API Value roll(const Operand& x, std::int64_t shift, Axes axes = {});
/// Each element so many times; no axis: of all in row-major order.
PALLADIUM_API Value repeat(const Operand& x, std::int64_t times, Axes axis = {});
/// The whole so many times along each dimension, the last ones if there are fewer than dimensions.
PALLADIUM_API Value tile(const Operand& x, Shape times);
/// Zeros above the diagonal (below it) of the last two dimensions; `diagonal` counts to the right.
PALLADIUM_API Value tril(const Operand& x, std::int64_t diagonal = 0);
PALLADIUM_API Value triu(const Operand& x, std::int64_t diagonal = 0);
/// The diagonal of a matrix, `offset` to the right of the main one.
PALLADIUM_API Value diagonal(const Operand& x, std::int64_t offset = 0);
/// `sizes` elements from the starts on; a part that would reach over an end is moved back.
PALLADIUM_API Value dynamic_slice(const Operand& x, std::initializer_list<Operand> starts,
                                  Shape sizes);
/// x with `part` in it, from the starts on, moved likewise.
PALLADIUM_API Value dynamic_update_slice(const Operand& x, const Operand& part,
                                         std::initializer_list<Operand> starts);
/// x with the elements at `indices` along the axis, in whose place the dimensions of `indices`
/// stand: any integers; one out of bounds stands for the nearest in them.
PALLADIUM_API Value take(const Operand& x, const Operand& indices, int axis = 0);
/// The same of each row by indices of its own: of x's shape but for the axis.
PALLADIUM_API Value take_along_axis(const Operand& x, const Operand& indices, int axis = -1);
/// x[i, j, ...] of numpy: the elements that one array of integers for each of `axes` names, the
/// first ones if none are given. The arrays broadcast; their dimensions stand where the axes stood
/// if those are consecutive, else in front. A number out of bounds stands for the nearest in them.
PALLADIUM_API Value gather(const Operand& x, std::initializer_list<Operand> indices,
                           Axes axes = {});
enum class ScatterMode : std::uint8_t { set, add, max, min };
struct ScatterOptions {
  Axes axes = {};  ///< as of `gather`
  ScatterMode mode = ScatterMode::set;
};
/// x.at[i, j, ...].set(updates) of jax.numpy, .add, .max, .min: x with the elements that `gather`
/// takes changed, and those updates left out that are out of bounds. The updates broadcast to what
/// `gather` gives. Several of one element all count, small floats being added in f32; of `set` they
/// are an error on the CPU. x goes through shared memory.
PALLADIUM_API Value scatter(const Operand& x, std::initializer_list<Operand> indices,
                            const Operand& updates, ScatterOptions options = {});

// Sorts, and folds along axes. Their options are deduced, so that a number in their place has a
// sentence, and braces with a wrong field one function to be compared with.
struct SortOptions {
  int axis = -1;
  bool descending = false;
};
struct ReduceOptions {
  Axes axis = {};  ///< none: all
  bool keepdims = false;
};
struct VarianceOptions {
  Axes axis = {};  ///< none: all
  bool keepdims = false;
  std::int64_t ddof = 0;  ///< divides by so much less than the number of elements
};
struct SoftmaxOptions {
  Axes axis = -1;  ///< none: all
};
struct LogSumExpOptions {
  Axes axis = {};  ///< none: all
  bool keepdims = false;
  MaybeValue b = {};  ///< factors of the exponentials, which broadcast; without them 1
};
struct CumulativeOptions {
  int axis = 0;
  bool reverse = false;  ///< from the last element to the first
};

// What the functions below call.
namespace detail::folds {
PALLADIUM_API Value sort(const Operand& x, SortOptions options = {});
PALLADIUM_API Value argsort(const Operand& x, SortOptions options = {});
PALLADIUM_API Value sum(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value prod(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value max(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value min(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value any(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value all(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value argmax(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value argmin(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value mean(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value var(const Operand& x, VarianceOptions options = {});
PALLADIUM_API Value softmax(const Operand& x, SoftmaxOptions options = {});
PALLADIUM_API Value logsumexp(const Operand& x, LogSumExpOptions options = {});
PALLADIUM_API Value cumsum(const Operand& x, CumulativeOptions options = {});
PALLADIUM_API Value cumprod(const Operand& x, CumulativeOptions options = {});
PALLADIUM_API Value cummax(const Operand& x, CumulativeOptions options = {});
PALLADIUM_API Value cummin(const Operand& x, CumulativeOptions options = {});
}  // namespace detail::folds
namespace detail {
template <class O, class Given>
inline constexpr bool is_given = std::is_same_v<O, Given>;
template <class O, class Given>
O given(const Given& options) {
  if constexpr (is_given<O, Given>)
    return options;
  else
    return {};
}
}  // namespace detail

/// NaNs are above all others. Any extent; the value must fit the registers of a program.
template <class O = SortOptions>
Value sort(const Operand& x, O options = {}) {
  static_assert(detail::is_given<SortOptions, O>,
                "palladium: the axis is an option: pl::sort(x, {.axis = 0})");
  return detail::folds::sort(x, detail::given<SortOptions>(options));
}
/// Where the sorted elements stood, i32; equal ones keep their order.
template <class O = SortOptions>
Value argsort(const Operand& x, O options = {}) {
  static_assert(detail::is_given<SortOptions, O>,
                "palladium: the axis is an option: pl::argsort(x, {.axis = 0})");
  return detail::folds::argsort(x, detail::given<SortOptions>(options));
}
struct TopK {
  Value values, indices;
};
/// The k largest along the last dimension, the largest first, the first of equal ones first.
PALLADIUM_API TopK top_k(const Operand& x, std::int64_t k);

/// Philox 4x32-10: four u32 of random bits for each counter, whose bits and those of the seed are
/// taken as u64. Shapes broadcast.
PALLADIUM_API Values<4> philox(const Operand& seed, const Operand& counter);

template <class O = ReduceOptions>
Value sum(const Operand& x, O options = {}) {
  static_assert(detail::is_given<ReduceOptions, O>,
                "palladium: the axis is an option: pl::sum(x, {.axis = 0})");
  return detail::folds::sum(x, detail::given<ReduceOptions>(options));
}
template <class O = ReduceOptions>
Value prod(const Operand& x, O options = {}) {
  static_assert(detail::is_given<ReduceOptions, O>,
                "palladium: the axis is an option: pl::prod(x, {.axis = 0})");
  return detail::folds::prod(x, detail::given<ReduceOptions>(options));
}
template <class O = ReduceOptions>
Value max(const Operand& x, O&& options = {}) {
  static_assert(detail::is_given<ReduceOptions, std::remove_cvref_t<O>>,
                "palladium: pl::max reduces; write pl::maximum(a, b), or the axis as an option: "
                "pl::max(x, {.axis = 0})");
  return detail::folds::max(x, detail::given<ReduceOptions>(options));
}
template <class O = ReduceOptions>
Value min(const Operand& x, O&& options = {}) {
  static_assert(detail::is_given<ReduceOptions, std::remove_cvref_t<O>>,
                "palladium: pl::min reduces; write pl::minimum(a, b), or the axis as an option: "
                "pl::min(x, {.axis = 0})");
  return detail::folds::min(x, detail::given<ReduceOptions>(options));
}
/// bool: whether any element is not 0, whether all are not.
template <class O = ReduceOptions>
Value any(const Operand& x, O options = {}) {
  static_assert(detail::is_given<ReduceOptions, O>,
                "palladium: the axis is an option: pl::any(x, {.axis = 0})");
  return detail::folds::any(x, detail::given<ReduceOptions>(options));
}
template <class O = ReduceOptions>
Value all(const Operand& x, O options = {}) {
  static_assert(detail::is_given<ReduceOptions, O>,
                "palladium: the axis is an option: pl::all(x, {.axis = 0})");
  return detail::folds::all(x, detail::given<ReduceOptions>(options));
}
/// The index of the greatest element along one axis, i32; no axis: in row-major order. The lowest
/// of several; a NaN is the greatest and the least.
template <class O = ReduceOptions>
Value argmax(const Operand& x, O options = {}) {
  static_assert(detail::is_given<ReduceOptions, O>,
                "palladium: the axis is an option: pl::argmax(x, {.axis = 0})");
  return detail::folds::argmax(x, detail::given<ReduceOptions>(options));
}
template <class O = ReduceOptions>
Value argmin(const Operand& x, O options = {}) {
  static_assert(detail::is_given<ReduceOptions, O>,
                "palladium: the axis is an option: pl::argmin(x, {.axis = 0})");
  return detail::folds::argmin(x, detail::given<ReduceOptions>(options));
}
/// Floats keep their dtype, integers and bools give f32, or f64 if they have 64 bits; computed in
/// f32 or f64.
template <class O = ReduceOptions>
Value mean(const Operand& x, O options = {}) {
  static_assert(detail::is_given<ReduceOptions, O>,
                "palladium: the axis is an option: pl::mean(x, {.axis = 0})");
  return detail::folds::mean(x, detail::given<ReduceOptions>(options));
}
/// The mean of the squares of the distances from the mean; dtypes as of `mean`.
template <class O = VarianceOptions>
Value var(const Operand& x, O options = {}) {
  static_assert(detail::is_given<VarianceOptions, O>,
                "palladium: the axis is an option: pl::var(x, {.axis = 0})");
  return detail::folds::var(x, detail::given<VarianceOptions>(options));
}
/// Floats; 16-bit ones are computed in f32 and rounded once.
template <class O = SoftmaxOptions>
Value softmax(const Operand& x, O options = {}) {
  static_assert(detail::is_given<SoftmaxOptions, O>,
                "palladium: the axis is an option: pl::softmax(x, {.axis = 0})");
  return detail::folds::softmax(x, detail::given<SoftmaxOptions>(options));
}
/// jax.nn.logsumexp: log(sum(b exp(x))), without overflow; of no exponential but 0 it is -infinity,
/// of a sum below 0 NaN. Dtypes as of `softmax`.
template <class O = LogSumExpOptions>
Value logsumexp(const Operand& x, O options = {}) {
  static_assert(detail::is_given<LogSumExpOptions, O>,
                "palladium: the axis is an option: pl::logsumexp(x, {.axis = 0})");
  return detail::folds::logsumexp(x, detail::given<LogSumExpOptions>(options));
}

/// Each element is the sum (product, maximum, minimum) of those up to it along the axis; dtype and
/// shape stay. Sums and products of 16-bit floats are computed in f32.
template <class O = CumulativeOptions>
Value cumsum(const Operand& x, O options = {}) {
  static_assert(detail::is_given<CumulativeOptions, O>,
                "palladium: the axis is an option: pl::cumsum(x, {.axis = 0})");
  return detail::folds::cumsum(x, detail::given<CumulativeOptions>(options));
}
template <class O = CumulativeOptions>
Value cumprod(const Operand& x, O options = {}) {
  static_assert(detail::is_given<CumulativeOptions, O>,
                "palladium: the axis is an option: pl::cumprod(x, {.axis = 0})");
  return detail::folds::cumprod(x, detail::given<CumulativeOptions>(options));
}
template <class O = CumulativeOptions>
Value cummax(const Operand& x, O options = {}) {
  static_assert(detail::is_given<CumulativeOptions, O>,
                "palladium: the axis is an option: pl::cummax(x, {.axis = 0})");
  return detail::folds::cummax(x, detail::given<CumulativeOptions>(options));
}
template <class O = CumulativeOptions>
Value cummin(const Operand& x, O options = {}) {
  static_assert(detail::is_given<CumulativeOptions, O>,
                "palladium: the axis is an option: pl::cummin(x, {.axis = 0})");
  return detail::folds::cummin(x, detail::given<CumulativeOptions>(options));
}

/// How exactly `dot` multiplies f32.
enum class Precision : std::uint8_t {
  ieee,  ///< f32 FMA
  tf32,  ///< operands lose 13 bits, on tensor cores
};
inline constexpr Precision ieee = Precision::ieee, tf32 = Precision::tf32;

struct DotOptions {
  bool trans_a = false, trans_b = false;
  Precision precision = ieee;
  /// The result's; none: f32 of floats of 8 to 32 bits, i32 of integers, f64 of f64. Of the
  /// operands' kind, or a float of integers, and no narrower than they are (lax.dot_general's rule).
  /// Sums are made in the widest of these three, and rounded once.
  DType preferred_element_type = {};
};
/// Matrix product of 2-D values.
PALLADIUM_API Value dot(const Operand& a, const Operand& b, DotOptions options = {});

/// Dimensions of both operands of a product that belong together, in order.
struct DotDimensions {
  Axes lhs = {}, rhs = {};
};
struct DotDimensionNumbers {
  DotDimensions contracting = {}, batch = {};
};
struct DotGeneralOptions {
  Precision precision = ieee;
  DType preferred_element_type = {};  ///< as of DotOptions
};
/// lax.dot_general: products of the elements of two values, summed over the contracting dimensions.
/// The result has the batch dimensions, then what is left of lhs, then what is left of rhs.
PALLADIUM_API Value dot_general(const Operand& lhs, const Operand& rhs,
                                const DotDimensionNumbers& dimension_numbers,
                                DotGeneralOptions options = {});

struct EinsumOptions {
  Precision precision = ieee;         ///< of products that `dot` computes
  DType preferred_element_type = {};  ///< as of DotOptions
};
/// "ik,kj->ij": products of the elements of two values, summed over the letters that the result
/// lacks. Without "->" it has the letters that stand once, in alphabetical order. What has letters
/// on both sides to keep, and some to sum over, is computed by `dot`: with letters of both that are
/// kept, once for each of up to 32 elements of that batch.
PALLADIUM_API Value einsum(const char* subscripts, const Operand& a, const Operand& b,
                           EinsumOptions options = {});

/// How many elements along an axis are the array's: of what is made of a pl::bounded block as many
/// as that array has in this call, of others the extent.
PALLADIUM_API Value length(const Operand& x, int axis = -1);
PALLADIUM_API Value length(const Ref& x, int axis = -1, Location at = here());

// Where this program stands.
PALLADIUM_API Value program_id(int axis, Location at = here());
/// A literal where the grid is static along the axis.
PALLADIUM_API Value num_programs(int axis, Location at = here());
/// Position along a named axis of grid, cluster or threads.
PALLADIUM_API Value axis_index(const char* name, Location at = here());
/// Position among all along several axes, row-major in the order given.
PALLADIUM_API Value axis_index(std::initializer_list<const char*> names, Location at = here());
/// Size of a named axis; a literal where it is static.
PALLADIUM_API Value axis_size(const char* name, Location at = here());
PALLADIUM_API Value axis_size(std::initializer_list<const char*> names, Location at = here());

// Memory through a view. Lanes whose mask is false touch nothing; a mask broadcasts to the view.
struct LoadOptions {
  MaybeValue mask = {};
  MaybeValue other = {};  ///< what masked lanes give; undefined without
};
struct StoreOptions {
  MaybeValue mask = {};
};
PALLADIUM_API Value load(const Ref& view, LoadOptions options = {},
                         const detail::Expression& expression = {});
PALLADIUM_API void store(const Ref& view, const Operand& value, StoreOptions options = {});
/// Stores and gives the old elements, and the new value in masked lanes.
PALLADIUM_API Effect swap(const Ref& view, const Operand& value, StoreOptions options = {});
/// Adds to what the view holds. An element that index arrays name several times gets all of the
/// value's that go there: atomically then, in the dtypes of atomic_add.
PALLADIUM_API void addupdate(const Ref& view, const Operand& value,
                             StoreOptions options = {});

// Atomic updates: elements that several lanes, threads or programs update get each update, in an
// order that nothing is said of; no lane sees half of another's. They give the old elements, and
// the value in masked lanes. An array that programs of a parallel axis update is an output with an
// aliased input, from which it starts; what one program stores and another one updates is a race.
// Of integers; atomic_add, _max, _min and _xchg of f16, bf16, f32 and f64 too (atomic_add takes
// subnormals of f32 in global memory for zeros; a maximum or minimum with a NaN is NaN).
PALLADIUM_API Effect atomic_add(const Ref& view, const Operand& value,
                                StoreOptions options = {});
PALLADIUM_API Effect atomic_max(const Ref& view, const Operand& value,
                                StoreOptions options = {});
PALLADIUM_API Effect atomic_min(const Ref& view, const Operand& value,
                                StoreOptions options = {});
PALLADIUM_API Effect atomic_and(const Ref& view, const Operand& value,
                                StoreOptions options = {});
PALLADIUM_API Effect atomic_or(const Ref& view, const Operand& value,
                               StoreOptions options = {});
PALLADIUM_API Effect atomic_xor(const Ref& view, const Operand& value,
                                StoreOptions options = {});
PALLADIUM_API Effect atomic_xchg(const Ref& view, const Operand& value,
                                 StoreOptions options = {});
/// Stores where the element is `expected`.
PALLADIUM_API Effect atomic_cas(const Ref& view, const Operand& expected, const Operand& value,
                                StoreOptions options = {});

}  // namespace palladium
