// The kernels of benchmarks/user_kernels, small: interpreter and emulator agree, races on, and who
// works on one waits for others as he must; all spellings of one product give the same.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "benchmarks/user_kernels/kernels.hpp"
#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"
#include "tests/user_kernels/traced.hpp"

using namespace palladium;
using namespace palladium::test;
using namespace palladium::user_kernels;

namespace {

using Change = std::function<void(test::Call&)>;

template <class T>
void put(test::Call& call, std::size_t array, const std::vector<T>& numbers) {
  REQUIRE(call.arrays[array].size() == numbers.size() * sizeof(T));
  std::memcpy(call.arrays[array].data(), numbers.data(), call.arrays[array].size());
}

// Scores of queries this small have no powers that are too small for a float: of those it depends
// on the order of a sum which sign its zero has.
void lessen_queries(test::Call& call) {
  for (std::size_t i = 0; i < call.arrays[0].size(); i += 2) {
    bfloat16_t x;
    std::memcpy(&x, call.arrays[0].data() + i, 2);
    x = bfloat16_t(static_cast<float>(x) / 16);
    std::memcpy(call.arrays[0].data() + i, &x, 2);
  }
}

// Two elements in each byte.
void pack(test::Call& call, std::size_t array) {
  call.shapes[array].back() /= 2;
  call.arrays[array].resize(call.arrays[array].size() / 2);
  for (std::size_t i = 0; i < call.arrays[array].size(); ++i)
    call.arrays[array][i] = static_cast<std::byte>(i * 37 % 251);
}
void pack_weights(test::Call& call) { pack(call, 1); }

// The first array, where it has two elements in each byte.
Change packed_if(DType t) {
  return [=](test::Call& call) {
    if (t.is_packed()) pack(call, 0);
  };
}

// As problem_of, of a call that somebody changes.
std::string problem_with(const graph::Graph& g, int cc, const std::vector<std::int64_t>& symbols,
                         const Change& change) {
  std::string found = protocol_problem(cuda::lower(g, {.compute_capability = cc}));
  if (!found.empty()) return found;
  Random random(11);
  test::Call call = random_call(g, symbols, random, true);
  if (change) change(call);
  return call_on_all_targets(g, call, cc);
}

void check(const std::string& name, const UserKernel& k, const Change& change = {},
           const std::vector<int>& architectures = {90, 80}) {
  const graph::Graph g = graph_of(k);
  for (const int cc : architectures) {
    INFO(name << " on " << cc);
    try {
      CHECK(problem_with(g, cc, {}, change) == "");
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}

// By default the architectures take turns.
void check_turn(std::size_t number, const std::string& name, const UserKernel& k,
                const Change& change = {}) {
  check(name, k, change, is_full() ? std::vector{90, 80} : std::vector{number % 3 == 2 ? 80 : 90});
}

constexpr Tile small{64, 64, 32};

const char* name_of(Sum sum) {
  const char* const names[] = {"carry", "registers", "shared", "output"};
  return names[static_cast<int>(sum)];
}

std::vector<std::byte> product_of(const Matmul& p, int cc, std::vector<std::int64_t> symbols) {
  const graph::Graph g = graph_of(matmul(p));
  Random random(5);
  test::Call call = random_call(g, symbols, random, true);
  run_emulator(g, {.compute_capability = cc}, call);
  return call.arrays.back();
}

// a b of the numbers that product_of() draws, which are small: nothing is rounded.
std::vector<std::byte> plain_product(const Matmul& p, std::int64_t m, std::int64_t n,
                                     std::int64_t k) {
  const graph::Graph g = graph_of(matmul(p));
  Random random(5);
  const test::Call call = random_call(g, {}, random, true);
  const auto element = [&](std::size_t array, std::int64_t at) {
    float16_t x;
    std::memcpy(&x, call.arrays[array].data() + at * 2, 2);
    return static_cast<float>(x);
  };
  std::vector<std::byte> result(static_cast<std::size_t>(m * n * 4));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += element(0, p.trans_a ? l * m + i : i * k + l) *
               element(1, p.trans_b ? j * k + l : l * n + j);
      std::memcpy(result.data() + (i * n + j) * 4, &sum, 4);
    }
  return result;
}

}  // namespace

TEST_CASE("all spellings of a product agree, of any number of iterations and stages") {
  std::size_t number = 0;
  for (const Sum sum : {Sum::carry, Sum::registers, Sum::shared, Sum::output})
    for (const int stages : {3, 2, 1})
      for (const int iterations : {1, 2, 3, 4, 5}) {
        const bool is_edge = iterations == stages || iterations == stages + 1 || iterations == 1;
        if (!is_full() && (stages == 1 || !is_edge)) continue;
        Matmul p{.m = 64, .n = 64, .k = 32 * iterations, .tile = small, .sum = sum};
        p.params.num_stages = stages;
        check_turn(number++,
                   fmt::format("{}, {} stages, {} iterations", name_of(sum), stages, iterations),
                   matmul(p));
      }
}

TEST_CASE("all spellings of a product of symbols agree, of none to many iterations") {
  constexpr DimOptions eights{.multiple_of = 8, .at_most = 1 << 10};
  for (const Sum sum : {Sum::registers, Sum::shared, Sum::output})
    for (const bool known : {true, false}) {
      Matmul p{.m = dim("m", known ? eights : DimOptions{}),
               .n = dim("n", known ? eights : DimOptions{}),
               .k = dim("k", known ? eights : DimOptions{}),
               .tile = small,
               .sum = sum};
      p.params.num_stages = 2;
      const graph::Graph g = graph_of(matmul(p));
      for (const int cc : {90, 80}) {
        if (!is_full() && known != (cc == 90)) continue;
        for (const auto& [m, n, k] : {std::tuple{64, 64, 0},
                                      {64, 64, 32},
                                      {64, 64, 64},
                                      {64, 64, 96},
                                      {72, 40, 104},
                                      {8, 8, 8},
                                      {0, 64, 32}}) {
          INFO(name_of(sum) << " on " << cc << ": " << m << "x" << n << "x" << k);
          CHECK(problem_of(g, {m, n, k}, cc) == "");
        }
        if (known) continue;
        for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {65, 63, 33}, {3, 70, 31}}) {
          INFO(name_of(sum) << " on " << cc << ": " << m << "x" << n << "x" << k);
          CHECK(problem_of(g, {m, n, k}, cc) == "");
        }
      }
    }
}

TEST_CASE("products, with what stands behind them and however operands lie, agree") {
  std::size_t number = 0;
  for (const Sum sum : {Sum::carry, Sum::registers, Sum::shared})
    for (int kind = 0; kind < 4; ++kind) {
      Matmul p{.m = 128, .n = 64, .k = 96, .tile = small, .sum = sum};
      p.bias_gelu = kind == 0;
      p.residual = kind == 1;
      p.trans_a = kind == 2;
      p.trans_b = kind == 3;
      check_turn(number++, fmt::format("{}, {}", name_of(sum), kind), matmul(p));
    }
  for (const Sum sum : {Sum::carry, Sum::registers, Sum::output}) {
    Matmul p{.m = 64, .n = 64, .k = 192, .tile = {64, 64, 64}, .sum = sum, .trans_b = true};
    p.dtype = f8e4m3;
    check_turn(0, fmt::format("fp8 {}", name_of(sum)), matmul(p));
    p.dtype = i8;
    check_turn(0, fmt::format("i8 {}", name_of(sum)), matmul(p));
    p.dtype = f32;
    p.precision = tf32;
    check_turn(0, fmt::format("tf32 {}", name_of(sum)), matmul(p));
  }
  check("of 8 warps", matmul({.m = 128,
                              .n = 128,
                              .k = 96,
                              .tile = {128, 128, 32},
                              .sum = Sum::shared,
                              .params = {.num_warps = 8}}));
  check("persistent", matmul({.m = 320,
                              .n = 192,
                              .k = 96,
                              .tile = small,
                              .sum = Sum::registers,
                              .params = {.persistent = true}}));
}

TEST_CASE("all spellings of a product give what plain loops do") {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      Matmul p{.m = 64, .n = 128, .k = 96, .tile = small, .sum = Sum::output};
      p.dtype = f16;
      p.trans_a = trans_a;
      p.trans_b = trans_b;
      const std::vector<std::byte> plain = plain_product(p, 64, 128, 96);
      for (const Sum sum : {Sum::output, Sum::registers, Sum::shared, Sum::carry}) {
        p.sum = sum;
        const std::vector<std::byte> found = product_of(p, trans_b ? 90 : 80, {});
        INFO(name_of(sum) << (trans_a ? ", a transposed" : "")
                          << (trans_b ? ", b transposed" : ""));
        if (sum == Sum::output) {
          CHECK(std::memcmp(found.data(), plain.data(), plain.size()) == 0);
          continue;
        }
        // Stored as bf16: as many bits of those.
        REQUIRE(found.size() * 2 == plain.size());
        bool same = true;
        for (std::size_t i = 0; i < found.size() / 2; ++i) {
          float sum_ = 0;
          std::memcpy(&sum_, plain.data() + i * 4, 4);
          const bfloat16_t rounded(sum_);
          same = same && std::memcmp(&rounded, found.data() + i * 2, 2) == 0;
        }
        CHECK(same);
      }
    }
}

TEST_CASE("products as models have them agree") {
  const Sizes sizes{.m = 128, .n = 64, .k = 96, .tile = small};
  const auto experts = [](test::Call& call) { put<std::int32_t>(call, 0, {2, 0, 2}); };
  std::size_t number = 0;
  for (const Style style : {Style::loop, Style::grid}) {
    check_turn(number++, "grouped",
               grouped_matmul(
                   {.tokens = 192, .experts = 3, .n = 64, .k = 96, .tile = small, .style = style}),
               experts);
    check_turn(0, "swiglu", swiglu({.m = 64, .n = 64, .k = 128, .tile = small, .style = style}));
    check_turn(number++, "swiglu of one iteration",
               swiglu({.m = 64, .n = 64, .k = 32, .tile = small, .style = style}));
    check_turn(number++, "i8 weights",
               narrow_weights({.m = 64, .n = 64, .k = 96, .tile = small, .style = style}));
    check_turn(
        number++, "i4 weights",
        narrow_weights({.m = 64, .n = 64, .k = 96, .tile = small, .dtype = i4, .style = style}),
        pack_weights);
  }
  check_turn(0, "low rank", low_rank_adapter(sizes, 16));
  check_turn(0, "norm", norm_matmul(sizes));
  check_turn(0, "activated", activated_matmul(sizes));
  const Sizes scaled{.m = 64, .n = 128, .k = 192, .tile = {64, 64, 64}};
  check_turn(0, "scaled", scaled_matmul(scaled));
  check_turn(0, "scaled, approximately", scaled_matmul(scaled, Style::loop, true));
  check_turn(0, "scaled along an axis", scaled_matmul(scaled, Style::grid));
  for (const Sum sum : {Sum::carry, Sum::registers, Sum::shared})
    check_turn(0, "transposed",
               matmul({.m = 128, .n = 64, .k = 128, .tile = small, .sum = sum, .trans_out = true}));
  check_turn(0, "gathered", gathered_matmul(sizes));
  check_turn(0, "mlp", mlp({.m = 64, .n = 64, .k = 96, .tile = small}));
  check_turn(0, "gated mlp", mlp({.m = 64, .n = 64, .k = 96, .tile = small}, true), lessen_queries);
  check_turn(0, "projection, rotary",
             projection_rotary({.m = 128, .n = 128, .k = 96, .tile = small}));
  check_turn(0, "product, norm", product_norm({.m = 128, .n = 64, .k = 96, .tile = small}));
  check_turn(0, "weight gradient", weight_gradient(sizes));
  check_turn(0, "gram", gram(sizes));
  check_turn(0, "complex", complex_matmul(sizes));
  check_turn(0, "block sparse",
             block_sparse_matmul({.m = 128, .n = 64, .k = 256, .tile = small}, 4),
             [](test::Call& call) {
               put<std::int32_t>(call, 0, {3, 0});
             });
  check_turn(0, "small", small_matmuls(3, {64, 64, 32}));
  check_turn(0, "split", split_k_matmul({.m = 64, .n = 64, .k = 192, .tile = small}, 2));
  check_turn(0, "centres", nearest_centres({.m = 64, .n = 192, .tile = small}));
  check_turn(0, "cross entropy", cross_entropy({.m = 64, .n = 128, .k = 96, .tile = small}));
  check_turn(0, "tiles", tiles_by_loop({.m = 192, .n = 128, .k = 96, .tile = small}, 4));
  check_turn(0, "experts", experts_by_loop({.m = 320, .n = 64, .k = 96, .tile = small}, 3),
             [](test::Call& call) {
               put<std::int32_t>(call, 0, {0, 2, 2, 5});
             });
  check_turn(0, "router", router({.m = 64, .k = 96, .tile = {64, 16, 32}}));
  const Convolution images{.images = 1,
                           .height = 4,
                           .width = 32,
                           .channels = 64,
                           .filters = 32,
                           .rows = 2,
                           .block_filters = 32,
                           .block_channels = 32};
  for (const bool unrolled : {false, true}) {
    Convolution p = images;
    p.unrolled = unrolled;
    check_turn(0, "convolution", convolution(p));
  }
  // Rows of one image row, of many; of 32 bytes.
  for (const auto& [rows, width, channels] : {std::tuple{1, 64, 64}, {8, 8, 16}, {3, 64, 32}}) {
    Convolution p = images;
    p.images = 2;
    p.height = 2 * rows;
    p.rows = rows;
    p.width = width;
    p.block_channels = channels;
    check_turn(0, "convolution", convolution(p));
  }
  if (!is_full()) return;
  for (const int k : {32, 64, 128, 256}) {
    const Sizes other{.m = 64, .n = 64, .k = k, .tile = small};
    for (const Style style : {Style::loop, Style::grid}) {
      check("swiglu", swiglu({.m = 64, .n = 64, .k = k, .tile = small, .style = style}));
      check("weights", narrow_weights({.m = 64, .n = 64, .k = k, .tile = small, .style = style}));
    }
    check("low rank", low_rank_adapter(other, 16));
    check("norm", norm_matmul(other));
    check("activated", activated_matmul(other));
    check("gathered", gathered_matmul(other));
    check("mlp", mlp(other));
    check("weight gradient", weight_gradient(other));
    check("gram", gram(other));
    check("complex", complex_matmul(other));
    check("cross entropy", cross_entropy(other));
    check("tiles", tiles_by_loop(other, 2));
  }
}

TEST_CASE("attention in all its kinds agrees") {
  Attention p{
      .batch = 1, .heads = 2, .queries = 128, .keys = 128, .d = 32, .rows = 64, .columns = 32};
  std::size_t number = 0;
  const auto with = [&](const std::function<void(Attention&)>& change) {
    Attention changed = p;
    change(changed);
    check_turn(number, fmt::format("attention {}", number), attention(changed), lessen_queries);
    ++number;
  };
  with([](Attention&) {});
  with([](Attention& a) { a.causal = true; });
  with([](Attention& a) { a.window = 48; });
  with([](Attention& a) {
    a.window = 48, a.params.warp_specialize = true, a.params.num_stages = 2;
  });
  with([](Attention& a) { a.bias = true; });
  with([](Attention& a) { a.soft_cap = 5; });
  with([](Attention& a) { a.rotary = true; });
  with([](Attention& a) { a.normed = true; });
  for (const DType stored : {f32, i8, f8e4m3}) with([=](Attention& a) { a.stored = stored; });
  with([](Attention& a) { a.causal = true, a.params.persistent = true; });
  for (const bool turned : {false, true})
    check_turn(
        0, "dkv",
        attention_dkv(
            {.batch = 1, .heads = 1, .queries = 96, .keys = 64, .d = 32, .rows = 32, .columns = 64},
            turned));
  check_turn(0, "dq", attention_dq(p), lessen_queries);
  check_turn(0, "of parts", attention_of_parts(p, 16), lessen_queries);
  for (const bool causal : {false, true}) {
    Attention whole = p;
    whole.causal = causal, whole.queries = whole.keys = 192;
    check_turn(0, "by loop", attention_by_loop(whole), lessen_queries);
  }
  Attention linear = p;
  linear.keys = linear.queries = 192;
  check_turn(0, "linear", linear_attention(linear));
  Attention lengths{
      .batch = 3, .heads = 1, .queries = 64, .keys = 64, .d = 32, .rows = 64, .columns = 32};
  check("lengths", attention_of_lengths(lengths), [](test::Call& call) {
    put<std::int32_t>(call, 0, {0, 64, 70, 131});
  });
}

// A page's number may be the last one of the pool, and the one behind the table's end is nobody's.
TEST_CASE("attention over pages agrees, whatever the lengths") {
  for (const int parts : {1, 2, 3, 5}) {
    if (!is_full() && parts == 2) continue;
    const Attention p{
        .batch = 2, .heads = 1, .keys = 32 * parts, .d = 32, .rows = 64, .columns = 32};
    const auto table = [&](test::Call& call) {
      std::vector<std::int32_t> pages;
      for (int i = 0; i < 2 * parts; ++i) pages.push_back(i % 2 == 0 ? 6 : i % 7);
      put(call, 0, pages);
      put<std::int32_t>(call, 1, {32 * parts - 7, 20});
    };
    INFO(parts << " pages");
    check("paged", paged_attention(p, 7), table, {90});
    if (is_full() || parts == 3) check("paged", paged_attention(p, 7), table, {80});
  }
}

TEST_CASE("attention of one token over pages agrees, however keys are stored") {
  for (const DType stored : {bf16, i8, f8e4m3}) {
    const Attention p{.batch = 2, .heads = 2, .keys = 160, .d = 64, .rows = 16, .columns = 32};
    const auto table = [](test::Call& call) {
      put<std::int32_t>(call, 0, {6, 1, 2, 0, 3, 5, 4, 1, 0, 6});
      put<std::int32_t>(call, 1, {160 - 7, 20});
    };
    INFO(stored.name());
    check("decode", decode_attention(p, stored, 7), table, {80, 90});
  }
}

TEST_CASE("folds of rows in every spelling agree") {
  for (const Style style : {Style::loop, Style::grid})
    check_turn(0, "layer norm backward",
               layer_norm_backward({.rows = 24, .columns = 128, .block = 4, .style = style}, 2));
  check_turn(0, "recurrence", recurrence(2, 9, 32));
  check_turn(0, "scan", scan_by_chunks({.rows = 32, .columns = 512, .block = 8}));
  check_turn(0, "top k", top_k_softmax({.rows = 8, .columns = 64, .block = 4}, 3));
}

TEST_CASE("what stands between products, row by row, agrees, whatever the sizes") {
  std::size_t number = 0;
  const auto both = [&](const char* name, const std::function<UserKernel(const Rows&)>& make) {
    for (const std::int64_t columns : {256, 1000, 129 * 8, 36})
      for (const DType dtype : {bf16, f32}) {
        if (!is_full() && (columns == 1000) == (dtype == f32)) continue;
        check_turn(number++, fmt::format("{} of {} columns of {}", name, columns, dtype.name()),
                   make({.rows = 16, .columns = columns, .block = 4, .dtype = dtype}));
      }
  };
  both("layer norm", [](const Rows& p) { return layer_norm(p, p.columns); });
  both("rms norm", rms_norm_residual);
  both("gelu", bias_gelu);
  both("softmax backward", softmax_backward);
  both("scaled", [](const Rows& p) { return scaled_and_summed(p, 2); });
  both("group norm", [](const Rows& p) { return group_norm(p, 2); });
  both("dropout", dropout);
  both("quantised", [](const Rows& p) { return quantised_rows(p, i8); });
  both("restored", [](const Rows& p) { return restored_rows(p, i8); });
  both("rotary", [](const Rows& p) { return rotary(p, Rotary::halves); });
  both("rotary as one", [](const Rows& p) { return rotary(p, Rotary::concatenated); });
  both("rotary of neighbours", [](const Rows& p) { return rotary(p, Rotary::interleaved); });
  both("gated", gated);
  both("adam", adam);
  both("column sums", [](const Rows& p) { return column_sums(p, 2); });
  check_turn(0, "transposed", transposed({.rows = 64, .columns = 128, .block = 32}));
  check_turn(0, "fp8", quantised_rows({.rows = 8, .columns = 64, .block = 4}, f8e4m3));
  check_turn(0, "embedding", embedding({.rows = 6, .columns = 72, .block = 1}, 9),
             [](test::Call& call) {
               put<std::int32_t>(call, 0, {3, 0, 8, 8, 1, 5});
             });
  check_turn(0, "labels", label_gradient({.rows = 8, .columns = 100, .block = 2}),
             [](test::Call& call) {
               put<std::int32_t>(call, 1, {3, 0, 99, 8, 1, 5, 0, 64});
             });
}

TEST_CASE("the taps of a convolution agree, each a product of its own") {
  check("taps",
        convolution_taps({.images = 2, .height = 3, .width = 64, .channels = 32, .filters = 64}));
  check_turn(
      0, "few",
      convolution_taps({.images = 1, .height = 2, .width = 16, .channels = 16, .filters = 32}));
}

TEST_CASE("weights of 4 bits with zeros and scales of groups agree") {
  std::size_t number = 0;
  for (const std::int64_t group : {64, 32})
    check_turn(number++, fmt::format("groups of {}", group),
               grouped_weights({.m = 64, .n = 128, .k = 192, .tile = small}, group),
               [](test::Call& call) {
                 pack(call, 1);
                 pack(call, 3);
               });
}

TEST_CASE("what a model does for one token, and with groups of few bits, agrees") {
  std::size_t number = 0;
  for (const DType weights : {bf16, i8, i4, u4, f8e4m3})
    for (const std::int64_t columns : {1024, 192})
      check_turn(number++, fmt::format("linear of {} of {}", columns, weights.name()),
                 decode_linear({.rows = 32, .columns = columns, .block = 16}, weights),
                 packed_if(weights));
  for (const DType from : {i8, i4, u4})
    for (const std::int64_t group : {64, 32, 48})
      check_turn(number++, fmt::format("groups of {} of {}", group, from.name()),
                 restored_groups({.rows = 8, .columns = 4 * group}, from, group), packed_if(from));
  for (const std::int64_t group : {128, 16, 96})
    check_turn(number++, fmt::format("to groups of {}", group),
               quantised_groups({.rows = 8, .columns = 2 * group}, group));
  check_turn(number++, "cache", cache_append({.rows = 8, .columns = 64, .block = 4}, 99),
             [](test::Call& call) {
               put<std::int32_t>(call, 0, {3, 98, 8, 0, 41, 7, 12, 64});
             });
}

TEST_CASE("a norm of a symbol's columns agrees, of all that a block holds") {
  for (const bool known : {true, false}) {
    const Dim n = known ? dim("n", {.multiple_of = 8, .at_most = 256}) : dim("n");
    const graph::Graph g = graph_of(layer_norm({.rows = 6, .columns = 256, .block = 2}, n));
    for (const int cc : {90, 80})
      for (const std::int64_t columns : {8, 72, 256, 1, 77, 255}) {
        if (known && columns % 8 != 0) continue;
        INFO(columns << " columns on " << cc);
        CHECK(problem_of(g, {columns}, cc) == "");
      }
  }
}
