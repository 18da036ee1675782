// What products by hand accept.
#include <string>

#include "codegen/graph/type_rule.hpp"

namespace palladium::graph::typing {
namespace {

constexpr std::int64_t rows_at_once = 64, columns_at_once = 8, bytes_of_k = 32;

const Type& matrix(const Context& c, std::size_t operand, const char* name) {
  const Type& type = c.type(operand);
  if (type.shape.size() != 2)
    c.fail(std::string("expected a matrix as ") + name + ", given " + text(type));
  return type;
}

// In shared memory.
const Type& shared_matrix(const Context& c, std::size_t operand, const char* name) {
  const Type& type = reference(c, operand);
  if (type.space != Space::smem)
    c.fail(std::string("expected ") + name + " in SMEM, given " + text(type));
  expect_inside(c, c.args[operand]);
  expect_own_block(c, c.args[operand]);
  return matrix(c, operand, name);
}

const Type& accumulator(const Context& c) {
  const Type& type = reference(c, 0);
  if (type.space != Space::accumulator)
    c.fail("expected an accumulator as operand 0, given " + text(type) +
           "; accumulators are scratch of a plgpu::kernel, plgpu::ACC({m, n})");
  expect_inside(c, c.args[0]);
  return matrix(c, 0, "the accumulator");
}

void expect_dtypes(const Context& c, DType a, DType b, DType sum) {
  const bool bytes = a.bytes() == 1 && b.bytes() == 1;
  const bool floats = is_byte_float(a) && is_byte_float(b);
  const bool integers = bytes && !a.is_float() && !b.is_float() && !a.is_bool() && !b.is_bool();
  const std::string given = std::string("given ") + a.name() + " and " + b.name();
  if (a != b && !floats && !integers)
    c.fail("mixed input dtypes for matrix multiplication unsupported, " + given);
  if (!floats && !integers && a != f16 && a != bf16 && a != f32)
    c.fail(
        "expected operands of f16, bf16, f32 (whose first 10 bits of fraction count), 8-bit "
        "floats, i8 or u8, " +
        given);
  const DType expected = integers ? i32 : f32;
  const bool is_short = sum == f16 && (floats || (a == f16 && b == f16));
  if (sum != expected && !is_short)
    c.fail("expected an accumulator of " + std::string(expected.name()) + " for operands of " +
           a.name() + " and " + b.name() + ", given " + sum.name());
}

}  // namespace

Type rule_wgmma(const Context& c) {
  expect_ints(c, 3);
  const bool trans_a = c.ints()[0] != 0, trans_b = c.ints()[1] != 0;
  const Type& acc = accumulator(c);
  const bool held = c.op == Op::WgmmaHeld;
  const Type& a = held ? (value(c, 1), matrix(c, 1, "A")) : shared_matrix(c, 1, "A");
  const Type& b = shared_matrix(c, 2, "B");
  expect_dtypes(c, a.dtype, b.dtype, acc.dtype);
  const std::int64_t m = a.shape[trans_a], k = a.shape[!trans_a];
  const std::int64_t n = b.shape[!trans_b], k_of_b = b.shape[trans_b];
  if (k != k_of_b || acc.shape != Extents{m, n})
    c.fail("incompatible shapes for matrix multiplication: A is " + text(Extents{m, k}) +
           ", B is " + text(Extents{k_of_b, n}) + ", the accumulator " + text(acc.shape));
  const std::int64_t k_step = bytes_of_k / a.dtype.bytes();
  if (m % rows_at_once != 0 || n % columns_at_once != 0 || k % k_step != 0)
    c.fail("expected multiples of 64 rows, 8 columns and " + std::to_string(k_step) +
           " of K, given an A of " + text(Extents{m, k}) + " and a B of " + text(Extents{k, n}));
  if (a.dtype.bytes() != 2 && (trans_a || !trans_b))
    c.fail(std::string("only operands of 16 bits are taken transposed: of ") + a.dtype.name() +
           " A lies as {m, k} and B as {n, k}, given as plgpu::transpose_ref(b, {1, 0})");
  if (held && (a.dtype.bytes() > 2 || trans_a))
    c.fail("expected an A in registers of 8 or 16 bits, given " + text(a) + "; others lie in SMEM");
  return Type::none();
}

Type rule_await_products(const Context& c) {
  expect_ints(c, 1);
  if (c.ints()[0] < 0 || c.ints()[0] > INT32_MAX)
    c.fail("expected 0 or more products that may be under way, given " +
           std::to_string(c.ints()[0]));
  return Type::none();
}

}  // namespace palladium::graph::typing
