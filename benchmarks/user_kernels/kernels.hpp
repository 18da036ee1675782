// Kernels as users write them, in every spelling that the language has for one thing: products that
// are added up in a carry, in scratch or in an output, in a loop or along an axis of the grid; and
// what models are made of. None is written for a machine: what is slow here is slow for everybody.
//
// Each is a function of its sizes and blocks, so that a benchmark compiles it as large as it is
// used and a test runs it as small as it likes.
#pragma once

#include <cstdint>
#include <vector>

#include "palladium/palladium.hpp"

namespace palladium::user_kernels {

/// Integers that point somewhere: the i-th is first + (i / together) step mod below.
struct Numbers {
  std::int64_t first = 0, step = 1, below = 1, together = 1;
};

struct UserKernel {
  Kernel kernel;
  std::vector<ShapeDtype> inputs;
  std::vector<Numbers> numbers = {};  ///< what those inputs hold that are i32, in order
  int added_to = -1;                  ///< the input that is the first output, too
};

struct Tile {
  std::int64_t m = 128, n = 128, k = 64;
};

/// Where products of blocks are added up.
enum class Sum {
  carry,      ///< of a loop
  registers,  ///< scratch that the first program along k zeroes and the last one stores
  shared,     ///< the same in shared memory
  output,     ///< o[_] += dot(...), of f32, which the first program zeroes
};

/// Which loop goes over k.
enum class Style {
  loop,  ///< of the body
  grid,  ///< a sequential axis
};

// ---- products (products.cpp)

struct Matmul {
  Dim m = 4096, n = 4096, k = 4096;  ///< k is an integer if the sum is a carry
  Tile tile = {};
  Sum sum = Sum::carry;
  DType dtype = bf16;
  bool trans_a = false, trans_b = false;
  bool bias_gelu = false;  ///< gelu(a b + bias)
  bool residual = false;   ///< a b + c
  bool trans_out = false;  ///< (a b)^T, of a carry or scratch, without a residual
  Precision precision = ieee;
  CompilerParams params = {};
};
UserKernel matmul(const Matmul& options);

/// a b with masks on rows, columns and k.
struct MaskedMatmul {
  Dim m = 4096, n = 4096, k = 4096;
  Tile tile = {};
};
UserKernel masked_matmul(const MaskedMatmul& options);

/// a: [tokens, k], sorted by expert; b: [experts, k, n]; which expert a block of rows has is
/// prefetched.
struct Grouped {
  std::int64_t tokens = 4096, experts = 8, n = 4096, k = 4096;
  Tile tile = {};
  Style style = Style::loop;
};
UserKernel grouped_matmul(const Grouped& options);

/// silu(x gate) * (x up), x loaded once.
struct SwiGlu {
  std::int64_t m = 4096, n = 4096, k = 4096;
  Tile tile = {};
  Style style = Style::loop;
};
UserKernel swiglu(const SwiGlu& options);

/// Weights of fewer bits: converted before a product, scaled by column behind it.
struct Weights {
  std::int64_t m = 4096, n = 4096, k = 4096;
  Tile tile = {};
  DType dtype = i8;   ///< i8 or i4
  DType wide = bf16;  ///< what they become; of activations and results
  Style style = Style::loop;
};
UserKernel narrow_weights(const Weights& options);

struct Sizes {
  std::int64_t m = 4096, n = 4096, k = 4096;
  Tile tile = {};
};
/// x w + (x down) up, with `rank` columns of down.
UserKernel low_rank_adapter(const Sizes& sizes, std::int64_t rank = 64);
/// (x rsqrt(mean(x²))) w: rows are scaled behind the product, their squares added up beside it.
UserKernel norm_matmul(const Sizes& sizes);
/// x w and a rotary embedding of its heads, a block of columns each, by factors of rows: halves of
/// a head turn each other.
UserKernel projection_rotary(const Sizes& sizes);
/// A layer's end: the norm of the rows of activation(x w + bias) + residual, a block's columns
/// each.
UserKernel product_norm(const Sizes& sizes);
/// silu(a) b: an operand that is computed.
UserKernel activated_matmul(const Sizes& sizes);
/// (a row_scale) b, the left operand rounded to what b is of: bf16 [k, n], or f8e4m3 [n, k].
UserKernel row_scaled_matmul(const Sizes& sizes, DType rounded);
/// Weights of 4 bits, with a scale and a zero for each group of K.
UserKernel grouped_weights(const Sizes& sizes, std::int64_t group = 128);
/// Sums of products of 128 along k, each scaled by row and by column of blocks (fp8).
UserKernel scaled_matmul(const Sizes& sizes, Style style = Style::loop, bool approx_math = false);
/// s = s exp(g) + k v^T, o = s^T q, row by row: a state of d x d that a loop carries.
UserKernel recurrence(std::int64_t batch, std::int64_t rows, std::int64_t d);
/// Rows of a by prefetched ids, whose products are an expert's.
UserKernel gathered_matmul(const Sizes& sizes);
/// relu(x up) down, or silu(x gate) (x up) down: the first products are the last one's operand;
/// down has `n` columns, all in a block.
UserKernel mlp(const Sizes& sizes, bool gated = false);
/// x^T dy and the sums of dy's columns.
UserKernel weight_gradient(const Sizes& sizes);
/// a a^T: both operands are blocks of one array.
UserKernel gram(const Sizes& sizes);
/// Real and imaginary parts apart: four products of four operands.
UserKernel complex_matmul(const Sizes& sizes);
/// Products of the blocks that there are: which, a prefetched list says.
UserKernel block_sparse_matmul(const Sizes& sizes, std::int64_t most = 16);
/// A matrix to a program.
UserKernel small_matmuls(std::int64_t batch = 4096, const Tile& size = {64, 64, 64});
/// Parts of k to different programs, added atomically.
UserKernel split_k_matmul(const Sizes& sizes, std::int64_t parts = 8);
/// The nearest of n centres: argmin behind products, block by block.
UserKernel nearest_centres(const Sizes& sizes);
/// -log softmax(x w)[label], of blocks of the vocabulary one after the other.
UserKernel cross_entropy(const Sizes& sizes);
/// Logits of a router, their largest and their softmax.
UserKernel router(const Sizes& sizes, std::int64_t chosen = 2);
/// 3 x 3, NHWC, by windows that overlap; `channels` at once.
struct Convolution {
  std::int64_t images = 32, height = 56, width = 64, channels = 256, filters = 256;
  std::int64_t rows = 2, block_filters = 128, block_channels = 64;
  bool unrolled = false;  ///< a C++ loop goes over the nine places of the window
};
UserKernel convolution(const Convolution& options);

struct Taps {
  std::int64_t images = 16, height = 64, width = 64, channels = 64, filters = 128;
};
/// 3x3 of images with borders, a program for each row: nine products, each in the text of it.
UserKernel convolution_taps(const Taps& sizes);

// ---- products in loops inside of each other (nests.cpp)

/// a b by so many programs, each of which goes through blocks of the result.
UserKernel tiles_by_loop(const Sizes& sizes, int programs = 132);
/// Rows of a, sorted by expert, by the expert's matrix: a program has a block of columns and goes
/// through experts and their blocks of rows, whose first ones are prefetched.
UserKernel experts_by_loop(const Sizes& sizes, std::int64_t experts = 8);

// ---- attention (attention.cpp)

struct Attention {
  std::int64_t batch = 4, heads = 16, queries = 4096, keys = 4096, d = 128;
  std::int64_t rows = 128, columns = 128;
  bool causal = false;
  std::int64_t window = 0;  ///< keys that a query sees before itself; 0: all
  bool bias = false;        ///< added to the scores, [heads, queries, keys]
  float soft_cap = 0;       ///< scores are soft_cap * tanh(s / soft_cap)
  bool rotary = false;      ///< queries and keys are turned by their place
  bool normed = false;      ///< ... and divided by the root of their mean square
  /// Of keys and values. Integers have a scale for each key; of 8-bit floats queries are, too, and
  /// products; of f32 queries are, and products of bf16.
  DType stored = bf16;
  CompilerParams params = {};
};
UserKernel attention(const Attention& options);
/// Scores are a head's product and one of `turned` more columns, of keys that all heads share.
UserKernel attention_of_parts(const Attention& options, std::int64_t turned);
/// A program goes through all queries of its head, block by block.
UserKernel attention_by_loop(const Attention& options);
/// Sequences behind one another; where they begin is prefetched.
UserKernel attention_of_lengths(const Attention& options);
/// Keys and values in pages, by a prefetched table; `rows` queries of one group.
UserKernel paged_attention(const Attention& options, std::int64_t pages = 4096);
/// The same for one token: the queries of a head that share its keys, a loop over as many pages as
/// its sequence has. Keys and values are stored as `stored`; integers have a scale for each key.
UserKernel decode_attention(const Attention& options, DType stored, std::int64_t pages = 4096);
/// dk and dv of a block of keys, over blocks of queries. `turned`: scores have a row for each key.
UserKernel attention_dkv(const Attention& options, bool turned);
/// dq of a block of queries, over blocks of keys.
UserKernel attention_dq(const Attention& options);
/// Chunks of queries and keys, and a state of d x d that goes from chunk to chunk.
UserKernel linear_attention(const Attention& options);

// ---- rows (rows.cpp)

struct Rows {
  std::int64_t rows = 8192, columns = 4096, block = 4;
  DType dtype = bf16;
  Style style = Style::grid;
};
/// dx, and for each of `programs` the sums of dgamma and dbeta.
UserKernel layer_norm_backward(const Rows& rows, std::int64_t programs = 128);
/// The first axis in chunks: h = a h + x, a and x by column.
UserKernel scan_by_chunks(const Rows& rows);
UserKernel top_k_softmax(const Rows& rows, std::int64_t k = 8);

// ---- rows between products (model_rows.cpp)

/// `columns`, of which there are no more than rows.columns, may be a symbol.
UserKernel layer_norm(const Rows& rows, const Dim& columns);
/// x + residual, and its norm.
UserKernel rms_norm_residual(const Rows& rows);
/// gelu(x + bias), and what backward needs of it.
UserKernel bias_gelu(const Rows& rows);
UserKernel softmax_backward(const Rows& rows);
/// 2 x in f16, and for each of `programs` the sum of its rows, along a sequential axis.
UserKernel scaled_and_summed(const Rows& rows, std::int64_t programs = 128);
/// Blocks of rows.block squared.
UserKernel transposed(const Rows& rows);
/// Images of channels, in groups of rows.block.
UserKernel group_norm(const Rows& rows, std::int64_t groups = 32);
/// Random numbers by a counter; and what was kept.
UserKernel dropout(const Rows& rows);
/// To i8 or f8e4m3, with a scale for each row.
UserKernel quantised_rows(const Rows& rows, DType to);
UserKernel restored_rows(const Rows& rows, DType from);
/// Rows of a table, by prefetched numbers, and one for each place.
UserKernel embedding(const Rows& rows, std::int64_t words = 32000);
/// Pairs that stand in two halves of a row, stored by halves or as one, or beside each other.
enum class Rotary { halves, concatenated, interleaved };
UserKernel rotary(const Rows& rows, Rotary kind);
/// silu of one half of a row times the other.
UserKernel gated(const Rows& rows);
/// f32 weights and moments, gradients of rows.dtype, and a rounded copy.
UserKernel adam(const Rows& rows);
/// softmax - the label, and the loss.
UserKernel label_gradient(const Rows& rows);
/// Weights [rows, columns], and a scale for each row, times one token.
UserKernel decode_linear(const Rows& rows, DType weights);
/// Numbers of 8 or 4 bits with a scale for each group of a row.
UserKernel restored_groups(const Rows& rows, DType from, std::int64_t group = 128);
/// silu(gate) * up in f8e4m3, with a scale for each group of a row.
UserKernel quantised_groups(const Rows& rows, std::int64_t group = 128);
/// Rows that are turned by angles, stored in the slots of a cache that data chooses.
UserKernel cache_append(const Rows& rows, std::int64_t slots = 65536);
/// For each of `programs` the sum of its rows, in a loop.
UserKernel column_sums(const Rows& rows, std::int64_t programs = 128);

}  // namespace palladium::user_kernels
