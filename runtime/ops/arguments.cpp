#include "runtime/ops/arguments.hpp"

#include <cmath>
#include <string>

#include "palladium/palladium.hpp"

namespace palladium::ops {
namespace {

void require(const char* kernel, bool holds, const std::string& what) {
  if (!holds) throw CompileError(std::string(kernel) + ": " + what);
}

/// 0: none is given.
void require_block(const char* kernel, const char* name, int given) {
  require(kernel, given >= 0 && given <= 256 && given % 16 == 0,
          std::string(name) + " is " + std::to_string(given) +
              "; a multiple of 16 up to 256, or 0, is needed");
}

/// Of sizes that stay symbols, too; then they are equal in every call.
bool are_equal(const Dim& a, const Dim& b) {
  try {
    require_equal(a, b);
  } catch (const CompileError&) {
    return false;
  }
  return true;
}

/// With the sizes of this call, where it has some: for messages alone, since it reads them.
std::string with_sizes(ShapeDtype x) {
  for (int i = 0; i < x.shape.rank(); ++i) {
    try {
      x.shape[i] = x.shape[i].value();
    } catch (const CompileError&) {
      // A kernel that is lowered for any size has none.
    }
  }
  return to_string(x);
}

}  // namespace

Length length_of(const Dim& n, std::int64_t block) {
  constexpr std::int64_t shortest = 4096;
  const std::int64_t most = n.is_static() ? n.value() : size_class(n, shortest),
                     padded = std::max<std::int64_t>(align_to(most, block), 1);
  return {most, n.is_static() ? BlockDim(padded) : bounded(n, padded)};
}

double scale_of(std::int64_t d, const AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
}

std::int64_t blocks_on_diagonal(const Dim& before, std::int64_t queries, std::int64_t keys) {
  const bool aligned = before.is_static() && before.value() % keys == 0 && keys % queries == 0;
  return aligned ? 1 : cdiv(queries - 1, keys) + 1;
}

Value activated(const Value& x, Activation activation) {
  if (activation == Activation::relu) return relu(x);
  if (activation == Activation::gelu) return gelu(x);
  return activation == Activation::silu ? silu(x) : x;
}

Value size_of(const Dim& d) { return d.is_static() ? Value(d.value()) : dim_as_value(d); }

void require_floats(const char* kernel, const char* operand, const ShapeDtype& x) {
  require(kernel, x.dtype.is_float(),
          std::string(operand) + " is of " + x.dtype.name() + "; floats are needed");
}

void require_columns(const char* kernel, const char* operand, const ShapeDtype& x,
                     const Dim& columns) {
  require_floats(kernel, operand, x);
  const auto [n] = x.shape.unpack<1>();
  if (!are_equal(n, columns))
    require(kernel, false,
            std::string(operand) + " has " + std::to_string(n.value()) + " elements and x " +
                std::to_string(columns.value()) + " columns; as many of both are needed");
}

void check_matmul(const ShapeDtype& a, const ShapeDtype& b, const ShapeDtype* bias,
                  const MatmulOptions& options) {
  const Dim columns = a.shape.unpack<2>()[1], rows = b.shape.unpack<2>()[options.trans_b ? 1 : 0];
  if (!are_equal(columns, rows))
    require("matmul", false,
            "a has " + std::to_string(columns.value()) + " columns and b has " +
                std::to_string(rows.value()) + " rows; as many of both are needed");
  require("matmul", options.out_dtype.is_float(),
          std::string("out_dtype is ") + options.out_dtype.name() + "; a float is needed");
  for (const auto& [name, given] : {std::pair{"block_m", options.block_m},
                                    {"block_n", options.block_n},
                                    {"block_k", options.block_k}})
    require_block("matmul", name, given);
  require("matmul", options.split_k >= 0 && options.split_k <= 8,
          "split_k is " + std::to_string(options.split_k) + "; 1 to 8, or 0, is needed");
  if (bias != nullptr) require_equal(bias->shape.unpack<1>()[0], b.shape[options.trans_b ? 0 : 1]);
}

void check_attention(const ShapeDtype& q, const ShapeDtype& k, const ShapeDtype& v,
                     const AttentionOptions& options) {
  require_equal(q.shape.unpack<4>()[0], k.shape.unpack<4>()[0]);
  require_equal(k, v);
  const auto [batch, heads, queries, d] = q.shape.unpack<4>();
  const auto [k_batch, groups, keys, k_d] = k.shape.unpack<4>();
  const auto require_both = [&](bool holds, const char* what) {
    if (!holds)
      throw CompileError("attention: q is " + with_sizes(q) + " and k " + with_sizes(k) + "; " +
                         what);
  };
  require("attention", q.dtype == f16 || q.dtype == bf16 || q.dtype == f32,
          std::string("q is of ") + q.dtype.name() + "; f16, bf16 or f32 is needed");
  require_both(k.dtype == q.dtype && k_d == d && d > 0 && d <= 256 && d.value() % 16 == 0,
               "one dtype, and one d, a multiple of 16 up to 256, are needed");
  require_both(groups > 0 ? heads.value() % groups.value() == 0 : heads == 0,
               "a number of heads that k's divides is needed");
  try {
    if (options.causal) require_at_most(queries, keys);
  } catch (const CompileError&) {
    require_both(false, "causal queries have as many keys at least");
  }
  if (const std::optional<double> scale = options.scale)
    require("attention", *scale > 0 && std::isfinite(*scale),
            "a scale above 0 is needed, given " + std::to_string(*scale));
  require_block("attention", "block_keys", options.block_keys);
}

Value followed(const Value& top, const Value& largest) {
  return where(top < largest - 7.0f, largest, top);
}

std::int64_t keys_of_block(DType t, std::int64_t d, const AttentionOptions& options) {
  if (options.block_keys > 0) return options.block_keys;
  if (t == f32) return 32;
  return d <= 128 ? 128 : d <= 224 ? 64 : 48;
}

CompilerParams params_of_attention(DType t, std::int64_t d, std::int64_t keys,
                                   const AttentionOptions& options) {
  const bool small = t != f32, usual = options.block_keys == 0;
  return {.num_warps = small && d > 128 ? 8 : 0,
          .approx_math = small,
          .expect = expected(small && usual && keys > 0 && d >= 64)};
}

Expectation expected(bool has_products) {
  if (!has_products) return {.spills = 0};
  return {.on = "sm_90a", .tensor_cores = true, .spills = 0};
}

}  // namespace palladium::ops
