// The operations of a kernel body besides the operators.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "palladium/ref.hpp"
#include "palladium/value.hpp"

namespace palladium {

// Elementwise. Shapes broadcast as in numpy, dtypes must agree, literals adapt; what each gives,
// and how exactly, is in the op table (codegen/graph/ops.def).
PALLADIUM_API Value abs(const Operand& x);
PALLADIUM_API Value sign(const Operand& x);
PALLADIUM_API Value population_count(const Operand& x);
PALLADIUM_API Value exp(const Operand& x);
PALLADIUM_API Value exp2(const Operand& x);
PALLADIUM_API Value expm1(const Operand& x);
PALLADIUM_API Value log(const Operand& x);
PALLADIUM_API Value log2(const Operand& x);
PALLADIUM_API Value log1p(const Operand& x);
PALLADIUM_API Value sqrt(const Operand& x);
PALLADIUM_API Value rsqrt(const Operand& x);
PALLADIUM_API Value sin(const Operand& x);
PALLADIUM_API Value cos(const Operand& x);
PALLADIUM_API Value tan(const Operand& x);
PALLADIUM_API Value tanh(const Operand& x);
PALLADIUM_API Value logistic(const Operand& x);
PALLADIUM_API Value erf(const Operand& x);
PALLADIUM_API Value erf_inv(const Operand& x);
PALLADIUM_API Value floor(const Operand& x);
PALLADIUM_API Value ceil(const Operand& x);
PALLADIUM_API Value round(const Operand& x);
PALLADIUM_API Value is_finite(const Operand& x);
PALLADIUM_API Value pow(const Operand& x, const Operand& y);
PALLADIUM_API Value atan2(const Operand& y, const Operand& x);
PALLADIUM_API Value maximum(const Operand& x, const Operand& y);
PALLADIUM_API Value minimum(const Operand& x, const Operand& y);
PALLADIUM_API Value fma(const Operand& x, const Operand& y, const Operand& z);
/// x where the condition holds, else y.
PALLADIUM_API Value where(const Operand& condition, const Operand& x, const Operand& y);

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
PALLADIUM_API Value ones(Shape shape, DType dtype = f32, Location at = here());
/// Each element is its index along `dimension`.
PALLADIUM_API Value iota(DType dtype, Shape shape, int dimension = 0, Location at = here());

// Shapes.
PALLADIUM_API Value broadcast_to(const Operand& x, Shape shape);
PALLADIUM_API Value reshape(const Operand& x, Shape shape);
/// Without a permutation the dimensions are reversed.
PALLADIUM_API Value transpose(const Operand& x, Axes permutation = {});

struct ReduceOptions {
  Axes axis = {};  ///< none: all
  bool keepdims = false;
};
PALLADIUM_API Value sum(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value max(const Operand& x, ReduceOptions options = {});
PALLADIUM_API Value min(const Operand& x, ReduceOptions options = {});

struct CumulativeOptions {
  int axis = 0;
  bool reverse = false;  ///< from the last element to the first
};
/// Each element is the sum of those up to it along the axis; dtype and shape stay. Floats of 16
/// bits are summed in f32.
PALLADIUM_API Value cumsum(const Operand& x, CumulativeOptions options = {});

namespace detail {
template <class T>
concept IsTraced = std::derived_from<T, Traced>;
template <class A, class B>
concept TwoOperands = (IsTraced<A> || IsTraced<B>)&&(IsTraced<A> || Literal<A>)&&(IsTraced<B> ||
                                                                                  Literal<B>);
}  // namespace detail
template <class A, class B>
requires detail::TwoOperands<A, B> Value max(const A&, const B&) {
  static_assert(detail::never<A>, "palladium: pl::max reduces; write pl::maximum(a, b)");
  return {};
}
template <class A, class B>
requires detail::TwoOperands<A, B> Value min(const A&, const B&) {
  static_assert(detail::never<A>, "palladium: pl::min reduces; write pl::minimum(a, b)");
  return {};
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
};
/// Matrix product of 2-D values; f16, bf16 and f32 give f32, integers i32, f64 f64.
PALLADIUM_API Value dot(const Operand& a, const Operand& b, DotOptions options = {});

// Where this program stands.
PALLADIUM_API Value program_id(int axis, Location at = here());
/// A literal where the grid is static along the axis.
PALLADIUM_API Value num_programs(int axis, Location at = here());
/// Position along a named axis of grid, cluster or threads.
PALLADIUM_API Value axis_index(const char* name, Location at = here());
/// Size of a named axis; a literal where it is static.
PALLADIUM_API Value axis_size(const char* name, Location at = here());

// Memory through a view. Lanes whose mask is false touch nothing; a mask broadcasts to the view.
struct LoadOptions {
  MaybeValue mask = {};
  MaybeValue other = {};  ///< what masked lanes give; undefined without
};
struct StoreOptions {
  MaybeValue mask = {};
};
PALLADIUM_API Value load(const Ref& view, const LoadOptions& options = {},
                         const detail::Expression& expression = {});
PALLADIUM_API void store(const Ref& view, const Operand& value, const StoreOptions& options = {});
/// Stores and gives the old elements, and the new value in masked lanes.
PALLADIUM_API Effect swap(const Ref& view, const Operand& value, const StoreOptions& options = {});

}  // namespace palladium
