#include "benchmarks/user_kernels/cases.hpp"

#include "palladium/ops/attention.hpp"

namespace palladium::user_kernels {
namespace {

constexpr Tile wide{128, 256, 64}, square{128, 128, 64};

const char* name_of(Sum sum) {
  const char* const names[] = {"carry", "regs", "smem", "output"};
  return names[static_cast<int>(sum)];
}

/// Of k of a carry, which is never a symbol.
Matmul with_symbols(Matmul p, DimOptions known) {
  p.m = dim("m", known);
  p.n = dim("n", known);
  if (p.sum != Sum::carry) p.k = dim("k", known);
  return p;
}

/// ... of which one may be any number.
Matmul with_odd(Matmul p, char which, DimOptions known) {
  p = with_symbols(p, known);
  known.multiple_of = 1;
  (which == 'm' ? p.m : which == 'n' ? p.n : p.k) = dim(std::string(1, which).c_str(), known);
  return p;
}

UserKernel shipped_attention(std::int64_t d, bool causal) {
  const ShapeDtype x{{4, 16, 4096, d}, f16};
  return {ops::attention({.causal = causal}), {x, x, x}};
}

void add_matmuls(std::vector<Case>& all) {
  const auto add = [&](std::string name, const Matmul& p, int at_most, const char* peer) {
    const int stages = at_most > 0 ? 3 : 0;
    all.push_back({"matmul_" + name, [=] { return matmul(p); }, at_most, peer, "sm_90a", stages});
  };
  constexpr DimOptions eights{.multiple_of = 8, .at_most = (1 << 15) - 8};
  for (const Sum sum : {Sum::carry, Sum::registers, Sum::shared, Sum::output}) {
    const std::string name = name_of(sum);
    const Matmul large{.tile = wide, .sum = sum}, small{.tile = square, .sum = sum};
    add("256_" + name, large, 150, "matmul_256");
    add("256_" + name + "_symbolic", with_symbols(large, eights), 182, "matmul_256_symbolic");
    add("128_" + name, small, 380, "matmul_128");
    add("128_" + name + "_symbolic", with_symbols(small, eights), 380, "matmul_128_symbolic");
    add("128_" + name + "_unknown", with_symbols(small, {}), 0, "matmul_128_unknown");
    for (const char which : {'m', 'n', 'k'}) {
      if (which == 'k' && sum == Sum::carry) continue;
      const std::string odd = std::string("_odd_") + which;
      add("128_" + name + odd, with_odd(small, which, eights), 0, "matmul_128_unknown");
      if (sum == Sum::registers)
        add("256_" + name + odd, with_odd(large, which, eights), 0, "matmul_256_unknown");
    }
    if (sum == Sum::output) continue;
    Matmul p = small;
    p.bias_gelu = true;
    add("128_" + name + "_bias_gelu", p, 380, "matmul_128_bias_gelu");
    p = small;
    p.residual = true;
    add("128_" + name + "_residual", p, 380, "matmul_128_residual");
    p = small;
    p.trans_a = true;
    add("128_" + name + "_trans_a", p, 380, "matmul_128_trans_a");
    p = small;
    p.trans_b = true;
    add("128_" + name + "_trans_b", p, 380, "matmul_128_trans_b");
  }
  // Of which shared memory holds no three iterations.
  add("256_carry_deep", {.tile = {128, 256, 128}}, 182, "matmul_256");
  add("256_regs_deep", {.tile = {128, 256, 128}, .sum = Sum::registers}, 310, "matmul_256");
  add("128_carry_deep", {.tile = {128, 128, 256}}, 380, "matmul_128");
  add("128_output_deep", {.tile = {128, 128, 256}, .sum = Sum::output}, 620, "matmul_128");
  for (const bool wants_symbols : {false, true}) {
    MaskedMatmul p{.tile = square};
    if (wants_symbols) p.m = dim("m", eights), p.n = dim("n", eights), p.k = dim("k", eights);
    const std::string name = wants_symbols ? "128_symbolic" : "128";
    const char* const peer = wants_symbols ? "matmul_128_symbolic" : "matmul_128";
    all.push_back(
        {"matmul_masked_" + name, [=] { return masked_matmul(p); }, 0, peer, "sm_90a", 3});
  }
  for (const bool trans_b : {false, true}) {
    Matmul p{.tile = {128, 256, 128}, .dtype = f8e4m3, .trans_b = trans_b};
    add(trans_b ? "fp8_trans_b" : "fp8", p, 0, trans_b ? "matmul_fp8" : "matmul_fp8_rows");
    p.dtype = i8;
    add(trans_b ? "i8_trans_b" : "i8", p, 0, trans_b ? "matmul_i8" : "matmul_i8_rows");
    p = {.tile = {128, 128, 32}, .dtype = f32, .trans_b = trans_b, .precision = tf32};
    add(trans_b ? "tf32_trans_b" : "tf32", p, 0, trans_b ? "matmul_tf32" : "matmul_tf32_rows");
  }
  for (const Sum sum : {Sum::carry, Sum::registers, Sum::shared}) {
    const Matmul p{.tile = {128, 128, 32}, .sum = sum, .dtype = f16};
    all.push_back({std::string("sm80_matmul_") + name_of(sum), [=] { return matmul(p); }, 1000,
                   "sm80_matmul", "sm_80"});
  }
}

void add_other_products(std::vector<Case>& all) {
  const Sizes sizes{.tile = square};
  all.push_back({"grouped_loop", [] { return grouped_matmul({}); }, 380, "grouped", "sm_90a", 3});
  all.push_back({"grouped_grid", [] { return grouped_matmul({.style = Style::grid}); }, 380,
                 "grouped", "sm_90a", 3});
  all.push_back({"swiglu_loop", [] { return swiglu({}); }, 310, "swiglu", "sm_90a", 3});
  all.push_back(
      {"swiglu_grid", [] { return swiglu({.style = Style::grid}); }, 310, "swiglu", "sm_90a", 3});
  all.push_back({"i8_weights_loop", [] { return narrow_weights({}); }, 0, "i8_weights"});
  all.push_back(
      {"i8_weights_grid", [] { return narrow_weights({.style = Style::grid}); }, 0, "i8_weights"});
  all.push_back({"i8_weights_f16", [] { return narrow_weights({.wide = f16}); }, 0, ""});
  all.push_back({"i4_weights_loop", [] { return narrow_weights({.dtype = i4}); }, 0, "i4_weights"});
  all.push_back(
      {"i4_weights_f16", [] { return narrow_weights({.dtype = i4, .wide = f16}); }, 0, ""});
  all.push_back(
      {"f8_weights_loop", [] { return narrow_weights({.dtype = f8e4m3}); }, 0, "f8_weights"});
  all.push_back(
      {"f8_weights_f16", [] { return narrow_weights({.dtype = f8e4m3, .wide = f16}); }, 0, ""});
  all.push_back(
      {"low_rank_adapter", [=] { return low_rank_adapter(sizes); }, 0, "low_rank_adapter"});
  all.push_back({"norm_matmul", [=] { return norm_matmul(sizes); }, 0, "norm_matmul"});
  all.push_back(
      {"activated_matmul", [=] { return activated_matmul(sizes); }, 0, "activated_matmul"});
  all.push_back({"grouped_weights", [=] { return grouped_weights(sizes); }, 0, ""});
  all.push_back({"row_scaled_matmul", [=] { return row_scaled_matmul(sizes, bf16); }, 0,
                 "row_scaled_matmul"});
  all.push_back({"quantised_matmul",
                 [] {
                   return row_scaled_matmul({.tile = {128, 128, 128}}, f8e4m3);
                 },
                 0, "quantised_matmul"});
  all.push_back({"scaled_matmul",
                 [] {
                   return scaled_matmul({.tile = {128, 128, 128}});
                 },
                 0, "scaled_matmul"});
  all.push_back({"scaled_matmul_approx",
                 [] {
                   return scaled_matmul({.tile = {128, 128, 128}}, Style::loop, true);
                 },
                 0, "scaled_matmul"});
  all.push_back({"scaled_matmul_grid",
                 [] {
                   return scaled_matmul({.tile = {128, 128, 128}}, Style::grid);
                 },
                 0, "scaled_matmul"});
  all.push_back({"matmul_stored_transposed", [] { return matmul({.trans_out = true}); }, 0, ""});
  all.push_back({"gathered_matmul", [=] { return gathered_matmul(sizes); }, 0, "gathered_matmul"});
  all.push_back({"mlp", [=] { return mlp(sizes); }, 0, "mlp"});
  all.push_back({"gated_mlp", [=] { return mlp(sizes, true); }, 0, "gated_mlp"});
  all.push_back({"projection_rotary", [=] { return projection_rotary(sizes); }, 0, "matmul_128"});
  all.push_back({"product_norm",
                 [] {
                   return product_norm({.n = 256, .tile = {128, 256, 64}});
                 },
                 0, ""});
  all.push_back({"weight_gradient", [=] { return weight_gradient(sizes); }, 0, "weight_gradient"});
  all.push_back({"gram", [=] { return gram(sizes); }, 0, "matmul_128_trans_b"});
  all.push_back({"complex_matmul", [=] { return complex_matmul(sizes); }, 0, "complex_matmul"});
  all.push_back(
      {"block_sparse_matmul", [=] { return block_sparse_matmul(sizes); }, 0, "block_sparse"});
  all.push_back({"small_matmuls", [] { return small_matmuls(); }, 0, "small_matmuls"});
  all.push_back({"split_k_matmul", [=] { return split_k_matmul(sizes); }, 0, "split_k"});
  all.push_back({"nearest_centres", [=] { return nearest_centres(sizes); }, 0, "nearest_centres"});
  all.push_back({"cross_entropy", [] { return cross_entropy({.n = 32768, .tile = square}); }, 0,
                 "cross_entropy"});
  all.push_back({"router", [] { return router({.tile = {128, 64, 64}}); }, 0, "router"});
  all.push_back({"convolution", [] { return convolution({}); }, 0, "convolution"});
  all.push_back({"convolution_taps", [] { return convolution_taps({}); }, 0, ""});
  all.push_back(
      {"convolution_unrolled", [] { return convolution({.unrolled = true}); }, 0, "convolution"});
  all.push_back({"tiles_by_loop", [=] { return tiles_by_loop(sizes); }, 380, "matmul_128"});
  all.push_back({"tiles_by_loop_256",
                 [] {
                   return tiles_by_loop({.tile = {128, 256, 64}});
                 },
                 190, "matmul_256"});
  all.push_back({"experts_by_loop", [=] { return experts_by_loop(sizes); }, 380, "grouped"});
}

void add_attention(std::vector<Case>& all) {
  const auto add = [&](std::string name, const Attention& p, int at_most, const char* peer) {
    all.push_back({"attention_" + name, [=] { return attention(p); }, at_most, peer});
  };
  for (const std::int64_t d : {64, 128}) {
    const std::string of_d = std::to_string(d);
    // Of d = 64 in blocks of one warpgroup, which take a twentieth less time than of two.
    const int most = d == 64 ? 3720 : 1764;
    for (const bool causal : {false, true}) {
      const std::string kind = of_d + (causal ? "_causal" : "_full");
      const char* const peer = d == 64  ? causal ? "attention_64_causal" : "attention_64_full"
                               : causal ? "attention_128_causal"
                                        : "attention_128_full";
      all.push_back(
          {"attention_" + kind + "_op", [=] { return shipped_attention(d, causal); }, most, peer});
      add(kind, {.d = d, .causal = causal}, 0, peer);
      all.push_back({"attention_" + kind + "_by_loop",
                     [=] { return attention_by_loop({.d = d, .causal = causal}); }, 0, peer});
    }
    // Queries in 64, the 128 keys of a program.
    const Attention backward{.d = d, .rows = 64, .columns = 128};
    const int backward_most = d == 64 ? 2400 : 1450;
    const char* const peer = d == 64 ? "attention_64_dkv" : "attention_128_dkv";
    for (const bool turned : {false, true})
      all.push_back({"attention_" + of_d + (turned ? "_dkv_turned" : "_dkv"),
                     [=] { return attention_dkv(backward, turned); }, backward_most, peer, "sm_90a",
                     2});
  }
  for (const std::int64_t d : {192, 256}) add(std::to_string(d) + "_full", {.d = d}, 0, "");
  add("128_window", {.window = 1024}, 2000, "attention_128_window");
  add("128_bias", {.bias = true}, 0, "attention_128_bias");
  add("128_soft_cap", {.soft_cap = 30}, 0, "attention_128_soft_cap");
  add("128_rotary", {.rotary = true}, 0, "attention_128_rotary");
  add("128_normed", {.normed = true}, 0, "");
  add("128_of_f32", {.stored = f32}, 0, "");
  add("128_of_i8", {.stored = i8}, 0, "");
  add("128_of_f8", {.stored = f8e4m3}, 0, "");
  all.push_back({"attention_128_of_parts", [] { return attention_of_parts({}, 64); }, 0,
                 "attention_128_of_parts"});
  all.push_back({"attention_128_dq", [] { return attention_dq({.rows = 128, .columns = 64}); }, 0,
                 "attention_128_dq"});
  all.push_back({"attention_128_lengths", [] { return attention_of_lengths({}); }, 0,
                 "attention_128_lengths"});
  all.push_back({"attention_128_paged",
                 [] { return paged_attention({.rows = 64, .columns = 128}); }, 0,
                 "attention_128_paged"});
  const Attention token{.batch = 64, .heads = 8, .rows = 16, .columns = 64};
  all.push_back(
      {"decode_attention", [=] { return decode_attention(token, bf16); }, 0, "decode_attention"});
  all.push_back({"decode_attention_i8", [=] { return decode_attention(token, i8); }, 0,
                 "decode_attention_i8"});
  all.push_back({"decode_attention_f8", [=] { return decode_attention(token, f8e4m3); }, 0,
                 "decode_attention_f8"});
  all.push_back({"linear_attention_64", [] { return linear_attention({.d = 64, .rows = 64}); }, 0,
                 "linear_attention_64"});
}

void add_rows(std::vector<Case>& all) {
  all.push_back({"layer_norm_backward_grid", [] { return layer_norm_backward({}); }, 0,
                 "layer_norm_backward"});
  all.push_back({"layer_norm_backward_loop",
                 [] { return layer_norm_backward({.style = Style::loop}); }, 0,
                 "layer_norm_backward"});
  all.push_back({"recurrence", [] { return recurrence(256, 2048, 64); }, 0, ""});
  all.push_back({"scan_by_chunks", [] { return scan_by_chunks({.block = 64}); }, 0, "scan"});
  all.push_back(
      {"top_k_softmax", [] { return top_k_softmax({.columns = 256, .block = 16}); }, 0, ""});
}

void add_model_rows(std::vector<Case>& all) {
  const auto add = [&](const char* name, std::function<UserKernel()> make) {
    all.push_back({name, std::move(make), 0, ""});
  };
  const Rows one{.columns = 4096, .block = 1}, some{.columns = 1024, .block = 4},
      heads{.rows = 65536, .columns = 128, .block = 64};
  constexpr DimOptions eights{.multiple_of = 8, .at_most = 4096};
  add("layer_norm", [=] { return layer_norm(one, 4096); });
  add("layer_norm_symbolic", [=] { return layer_norm(one, dim("n", eights)); });
  add("layer_norm_unknown", [=] { return layer_norm(one, dim("n")); });
  add("rms_norm_residual", [=] { return rms_norm_residual(one); });
  add("bias_gelu", [=] { return bias_gelu(some); });
  add("softmax_backward", [=] { return softmax_backward(some); });
  add("scaled_and_summed", [=] { return scaled_and_summed(some); });
  add("transposed", [=] { return transposed({.block = 64}); });
  add("group_norm", [=] { return group_norm({.rows = 4096, .columns = 1024, .block = 8}); });
  add("dropout", [=] { return dropout(some); });
  add("quantised_rows", [=] { return quantised_rows(some, i8); });
  add("quantised_rows_fp8", [=] { return quantised_rows(some, f8e4m3); });
  add("restored_rows", [=] { return restored_rows(some, i8); });
  add("embedding", [=] { return embedding(one); });
  add("rotary_halves", [=] { return rotary(heads, Rotary::halves); });
  add("rotary_concatenated", [=] { return rotary(heads, Rotary::concatenated); });
  add("rotary_interleaved", [=] { return rotary(heads, Rotary::interleaved); });
  add("gated", [=] { return gated(some); });
  add("adam", [=] { return adam(some); });
  add("label_gradient", [=] { return label_gradient(one); });
  add("column_sums", [=] { return column_sums(some); });
  const Rows linear{.rows = 4096, .columns = 4096, .block = 16};
  add("decode_linear", [=] { return decode_linear(linear, bf16); });
  add("decode_linear_i8", [=] { return decode_linear(linear, i8); });
  add("decode_linear_i4", [=] { return decode_linear(linear, i4); });
  add("restored_groups_i8", [=] { return restored_groups(some, i8); });
  add("restored_groups_i4", [=] { return restored_groups(some, i4); });
  add("quantised_groups", [=] { return quantised_groups(some); });
  add("cache_append", [=] { return cache_append(heads); });
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> result;
    add_matmuls(result);
    add_other_products(result);
    add_attention(result);
    add_rows(result);
    add_model_rows(result);
    return result;
  }();
  return all;
}

}  // namespace palladium::user_kernels
