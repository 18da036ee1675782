// What the trace refuses of operations on arrays: the message names the operation, what it expected
// and what it was given.
#include <string>

#include "tests/errors/refused.hpp"

using pl::_;
using pl::ds;
using pl::test::line;
using pl::test::refused;

namespace {

void keep(const pl::Value&) {}

pl::Value ints() { return pl::iota(pl::i32, {8}); }
pl::Value matrix() { return pl::zeros({3, 4}); }

}  // namespace

// clang-format off
#define REFUSED(expression, sentence) \
  refused([](pl::Ref x, pl::Ref) { (void)x; line = __LINE__; keep(expression); }, sentence)

TEST_CASE("elementwise functions made of others are refused by their own names") {
  REFUSED(pl::floor_divide(x[_], ints()), "floor_divide: expected operands of one dtype, given f32 and i32");
  REFUSED(pl::remainder(x[_] > 0, true), "remainder: expected numbers, given bool[8]");
  REFUSED(pl::remainder(x[_], pl::zeros({3})), "remainder: expected operands whose shapes can be broadcast to one, given f32[8] and f32[3]");
  REFUSED(pl::clip(x[_], 0, ints()), "clip: expected operands of one dtype, given f32 and i32");
  REFUSED(pl::clip(ints(), 0.5, 9), "clip: the literal 0.5 is no i32");
  REFUSED(pl::select_n(x[_], {1, 2}), "select_n: expected a bool or integer to choose by, given f32");
  REFUSED(pl::select_n(x[_] > 0, {x[_], x[_], x[_]}), "select_n: expected 2 cases for a bool, given 3");
  REFUSED(pl::select_n(ints(), {}), "select_n: expected at least one case, given none");
  REFUSED(pl::select_n(ints(), {x[_], ints()}), "select_n: expected operands of one dtype, given f32 and i32");
  REFUSED(pl::shift_right_logical(x[_], 1.0), "shift_right_logical: expected integers, given f32");
  REFUSED(pl::copysign(ints(), 1), "copysign: expected a floating-point operand, given i32[8]");
  REFUSED(pl::nextafter(ints(), 1), "nextafter: expected a floating-point operand, given i32[8]");
  REFUSED(pl::reciprocal(ints()), "reciprocal: expected a floating-point operand, given i32[8]");
  REFUSED(pl::is_nan(ints()), "is_nan: expected a floating-point operand, given i32[8]");
  REFUSED(pl::gelu(ints()), "gelu: expected a floating-point operand, given i32[8]");
  REFUSED(pl::silu(ints()), "silu: expected a floating-point operand, given i32[8]");
  REFUSED(pl::softmax(ints()), "softmax: expected a floating-point operand, given i32[8]");
  REFUSED(pl::integer_pow(ints(), -1), "integer_pow: expected an exponent from 0 for integers, given -1");
  REFUSED(pl::asin(ints()), "asin: expected floating-point operands, given i32[8]");
  REFUSED(pl::clz(x[_]), "clz: expected integers, given f32[8]");
  REFUSED(pl::bitcast(x[_], pl::i16), "bitcast: expected a dtype of 32 bits for f32[8], given i16");
  REFUSED((x[_] > 0).bitcast(pl::u8), "bitcast: expected dtypes other than bool, given bool[8] to u8");
}

TEST_CASE("folds are refused by their own names") {
  REFUSED(pl::prod(x[_] > 0), "reduce_prod: expected numbers, given bool[8]");
  REFUSED(pl::argmax(x[_], {.axis = 1}), "argmax: axis 1 is out of bounds for a value of 1 dimensions");
  REFUSED(pl::argmin(matrix(), {.axis = {0, 1}}), "argmin: expected one axis, or none for all elements, given 2");
  REFUSED(pl::any(x[_], {.axis = 2}), "any: axis 2 is out of bounds for a value of 1 dimensions");
  REFUSED(pl::mean(x[_], {.axis = {0, 0}}), "mean: axis 0 is given twice");
  REFUSED(pl::var(x[_], {.axis = -2}), "var: axis -2 is out of bounds for a value of 1 dimensions");
  REFUSED(pl::cummax(x[_] > 0), "cummax: expected numbers, given bool[8]");
  REFUSED(pl::cumprod(x[_], {.axis = 1}), "cumprod: axis 1 is out of bounds for a value of 1 dimensions");
}

TEST_CASE("subscripts of values are those of what they have") {
  REFUSED(pl::Value(x[_])[8], "slice: index 8 is out of bounds for dimension 0 of f32[8]");
  REFUSED(pl::Value(x[_])[-1], "slice: index -1 is out of bounds for dimension 0 of f32[8]");
  REFUSED((pl::Value(x[_])[{0, _}]), "slice: 2 indices for f32[8], which has 1 dimensions");
  REFUSED(pl::Value(x[_])[ds(5, 4)], "slice: slice of start 5, size 4, stride 1 is out of bounds for dimension 0 of f32[8]");
  REFUSED(pl::Value(x[_])[ds(0, 0)], "slice: a slice takes at least one element, at least one apart; given size 0, stride 1");
  REFUSED(pl::Value(x[_])[pl::f32(1)], "slice: an index must be an integer scalar, given f32[]");
}

TEST_CASE("parts that do not fit together are refused") {
  REFUSED(pl::concatenate({x[_], ints()}), "concatenate: expected operands of one dtype, and of one shape but for dimension 0, given f32[8] and i32[8]");
  REFUSED(pl::concatenate({matrix(), pl::zeros({4, 4})}, 1), "concatenate: expected operands of one dtype, and of one shape but for dimension 1, given f32[3,4] and f32[4,4]");
  REFUSED(pl::concatenate({x[_], x[_]}, 1), "concatenate: axis 1 is out of bounds for a value of 1 dimensions");
  REFUSED(pl::concatenate(std::span<const pl::Value>()), "concatenate: expected values, given none");
  REFUSED(pl::stack({x[_], matrix()}), "stack: expected operands of one dtype and shape, given f32[8] and f32[3,4]");
  REFUSED(pl::stack({x[_], x[_]}, 2 + 1), "stack: axis 3 is out of bounds for a value of 2 dimensions");
  REFUSED(pl::split(x[_], 3)[0], "split: expected a number of parts that divides 8, given 3");
  REFUSED(pl::split(x[_], 0)[0], "split: expected a number of parts that divides 8, given 0");
  REFUSED(pl::pad(x[_], {{1, 1}, {1, 1}}), "pad: expected a width for each dimension of f32[8], given 2");
  REFUSED(pl::pad(x[_], {{-9, 1}}), "pad: expected widths that leave an element, given -9 and 1 for 8 elements in dimension 0");
  REFUSED(pl::pad(x[_], {{-8, -7, 1}}), "pad: expected widths that leave an element, given -8 and -7 for 15 elements in dimension 0");
  REFUSED(pl::pad(x[_], {{-1, 1}}, {.mode = pl::PadMode::edge}), "pad: expected widths from 0, given -1 and 1 in dimension 0");
  REFUSED(pl::pad(x[_], {{1, 1, -1}}), "pad: expected an interior width from 0, given -1 in dimension 0");
  REFUSED(pl::pad(x[_], {{1, 1, 2}}, {.mode = pl::PadMode::wrap}), "pad: expected constants between elements, given 2 in dimension 0");
  REFUSED(pl::pad(ints(), {{1, 1}}, {.value = 0.5}), "pad: the literal 0.5 is no i32");
  REFUSED(pl::squeeze(matrix(), 1), "squeeze: expected an extent of 1 in dimension 1 of f32[3,4], given 4");
  REFUSED(pl::expand_dims(x[_], 2), "expand_dims: axis 2 is out of bounds for a value of 2 dimensions");
  REFUSED(pl::repeat(x[_], 0), "repeat: expected at least one time, given 0");
  REFUSED(pl::repeat(matrix(), 2, {0, 1}), "repeat: expected one axis, or none for all elements, given 2");
  REFUSED(pl::tile(x[_], {0}), "tile: expected at least one time, given 0");
  REFUSED(pl::flip(x[_], 1), "flip: axis 1 is out of bounds for a value of 1 dimensions");
  REFUSED(pl::tril(x[_]), "tril: expected a value of at least two dimensions, given f32[8]");
  REFUSED(pl::diagonal(x[_]), "diagonal: expected a value of two dimensions, given f32[8]");
  REFUSED(pl::diagonal(matrix(), 4), "diagonal: expected an offset above -3 and below 4, given 4");
}

TEST_CASE("elements that are asked for by wrong numbers are refused") {
  REFUSED(pl::dynamic_slice(matrix(), {0}, {1, 1}), "dynamic_slice: expected a start for each dimension of f32[3,4], given 1");
  REFUSED(pl::dynamic_slice(matrix(), {0, 1.5}, {1, 1}), "dynamic_slice: a start must be an integer, given f32");
  REFUSED(pl::dynamic_slice(matrix(), {0, 0}, {1, 5}), "dynamic_slice: a part of shape [1,5] does not fit into f32[3,4]");
  REFUSED(pl::dynamic_update_slice(matrix(), pl::zeros({4, 4}), {0, 0}), "dynamic_update_slice: a part of shape [4,4] does not fit into f32[3,4]");
  REFUSED(pl::dynamic_update_slice(x[_], ints(), {0}), "dynamic_update_slice: expected operands of one dtype, given f32[8], i32[8] and i32[]");
  REFUSED(pl::take(x[_], x[_]), "take: expected integers as indices, given f32[8]");
  REFUSED(pl::take(x[_], ints(), 1), "take: axis 1 is out of bounds for a value of 1 dimensions");
  REFUSED(pl::take_along_axis(matrix(), ints()), "take_along_axis: expected indices i32 of the operand's shape but for dimension 1, given f32[3,4] and i32[8]");
  REFUSED(pl::gather(x[_], {}), "gather: expected an array of indices, given none");
  REFUSED(pl::gather(x[_], {x[_]}), "gather: expected integers as indices, given f32[8]");
  REFUSED(pl::gather(x[_], {ints(), ints()}), "gather: expected an array of indices for each of 1 axes at most, given 2");
  REFUSED(pl::gather(matrix(), {ints()}, {0, 1}), "gather: expected an array of indices for each of 2 axes, given 1");
  REFUSED(pl::gather(matrix(), {ints(), pl::iota(pl::i32, {3})}), "gather: expected operands whose shapes can be broadcast to one, given i32[8] and i32[3]");
  REFUSED(pl::gather(matrix(), {ints()}, 2), "gather: axis 2 is out of bounds for a value of 2 dimensions");
  REFUSED(pl::scatter(x[_], {ints()}, ints()), "scatter: expected updates of the value's dtype f32, given i32[8]");
  REFUSED(pl::scatter(x[_], {ints()}, pl::zeros({3})), "scatter: expected updates that can be broadcast to [8], given f32[3]");
  REFUSED(pl::scatter(x[_] > 0, {ints()}, x[_] > 1, {.mode = pl::ScatterMode::add}), "scatter: expected numbers to combine, given bool");
  REFUSED(pl::sort(pl::sum(x[_])), "sort: axis -1 is out of bounds for a value of 0 dimensions");
  REFUSED(pl::argsort(x[_], {.axis = 1}), "argsort: axis 1 is out of bounds for a value of 1 dimensions");
  REFUSED(pl::top_k(x[_], 9).values, "top_k: expected a number of elements from 1 to 8, given 9");
  REFUSED(pl::philox(x[_], 0)[0], "philox: expected integers as seed and counter, given f32");
}

TEST_CASE("floats of 8 bits are refused where no float is taken, and beside others") {
  REFUSED(pl::f8e4m3(x[_]) & pl::f8e4m3(x[_]), "and: expected integers or bools, given f8e4m3[8] and f8e4m3[8]");
  REFUSED(pl::f8e4m3(x[_]) + pl::f8e5m2(x[_]), "add: expected operands of one dtype, given f8e4m3 and f8e5m2; convert one of them: pl::f8e4m3(x)");
  REFUSED(pl::dot(pl::f8e4m3(matrix()), pl::f16(matrix())), "dot: expected operands of one dtype, given f8e4m3[3,4] and f16[3,4]");
  REFUSED(pl::bitcast(pl::f8e5m2(x[_]), pl::f16), "bitcast: expected a dtype of 8 bits for f8e5m2[8], given f16");
}

TEST_CASE("products are refused by what is wrong with dtypes and dimension numbers") {
  REFUSED(pl::dot(matrix(), matrix(), {.trans_b = true, .preferred_element_type = pl::f16}), "dot: expected a preferred_element_type that is a float and no narrower than f32, given f16");
  REFUSED(pl::dot(pl::f16(matrix()), pl::f16(matrix()), {.trans_b = true, .preferred_element_type = pl::i32}), "dot: expected a preferred_element_type that is a float and no narrower than f16, given i32");
  REFUSED(pl::einsum("i,i", ints(), ints(), {.preferred_element_type = pl::u32}), "einsum: expected a preferred_element_type that is a signed integer or a float and no narrower than i32, given u32");
  REFUSED(pl::dot_general(matrix(), matrix(), {.contracting = {1, {}}}), "dot_general: expected as many contracting dimensions of lhs as of rhs, given 1 and 0");
  REFUSED(pl::dot_general(matrix(), matrix(), {.contracting = {2, 0}}), "dot_general: expected a contracting dimension of lhs below 2, given 2");
  REFUSED(pl::dot_general(matrix(), matrix(), {.contracting = {1, 1}, .batch = {1, 1}}), "dot_general: dimension 1 of lhs stands twice among those given");
  REFUSED(pl::dot_general(matrix(), matrix(), {.contracting = {1, 0}}), "dot_general: contracting dimension 1 of lhs has 4 elements and 0 of rhs has 3");
  REFUSED(pl::dot_general(matrix(), ints(), {}), "dot_general: expected operands of one dtype, given f32[3,4] and i32[8]");
}

TEST_CASE("products by letters are refused by what is wrong with the letters") {
  REFUSED(pl::einsum("i->i", x[_], x[_]), "einsum: expected letters for the dimensions of two operands, as in \"ik,kj->ij\", given \"i->i\"");
  REFUSED(pl::einsum("i.,i", x[_], x[_]), "einsum: expected letters for the dimensions of two operands, as in \"ik,kj->ij\", given \"i.,i\"");
  REFUSED(pl::einsum("i,i,i", x[_], x[_]), "einsum: expected letters for the dimensions of two operands, as in \"ik,kj->ij\", given \"i,i,i\"");
  REFUSED(pl::einsum("ii,i", matrix(), x[_]), "einsum: letter 'i' stands twice in operand 0");
  REFUSED(pl::einsum("i,j->ijj", x[_], x[_]), "einsum: letter 'j' stands twice in the result");
  REFUSED(pl::einsum("i,j->ik", x[_], x[_]), "einsum: letter 'k' of the result stands in no operand of \"i,j->ik\"");
  REFUSED(pl::einsum("i,ij", x[_], x[_]), "einsum: expected a value of 2 dimensions for \"ij\" as operand 1, given f32[8]");
  REFUSED(pl::einsum("i,ij", x[_], matrix()), "einsum: letter 'i' has extent 8 in f32[8] and 3 in f32[3,4]");
  REFUSED(pl::einsum("i,i", x[_], ints()), "einsum: expected operands of one dtype, given f32[8] and i32[8]");
  REFUSED(pl::einsum("i,i", pl::u16(ints()), pl::u16(ints())), "einsum: expected floats, i8, u8, i16 or i32, given u16[8] and u16[8]");
}
// clang-format on
