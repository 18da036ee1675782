// Products of tf32 and of elements of 8 bits: by wgmma, by mma.sync of older GPUs and of those that
// have no wgmma, and where the operands do not lie as tensor cores want them.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Types {
  DType a, b;
  Precision precision = ieee;
};
const Types tf32s{f32, f32, tf32}, e4m3s{f8e4m3, f8e4m3}, mixed{f8e5m2, f8e4m3}, i8s{i8, i8},
    u8s{u8, u8}, signs{u8, i8};

struct Size {
  std::int64_t m, n, k;
};

graph::Graph product(const Types& t, const Size& s, bool trans_a = false, bool trans_b = true) {
  return traced(
      [&](Ref x, Ref y, Ref o) {
        o[_] = dot(x[_], y[_], {.trans_a = trans_a, .trans_b = trans_b, .precision = t.precision});
      },
      {.name = "product", .out_type = {{s.m, s.n}, t.a.is_float() ? f32 : i32}},
      {array(trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, t.a),
       array(trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, t.b)});
}

std::string text_of(const graph::Graph& g, int cc = 90) {
  return cuda::emit(g, {.compute_capability = cc}).text;
}

/// "" if all roads agree, no register of a product in flight is used, and the text calls `call`.
std::string problem(const graph::Graph& g, const std::string& call, int cc = 90) {
  const std::string text = text_of(g, cc);
  if (text.find("pl::" + call) == text.npos) return "no " + call + " in\n" + text;
  for (const std::string& found : unpinned_registers(text)) return found;
  return on_all_targets(g, {}, cc);
}

struct Rounded {
  DType from = bf16, to = f8e4m3;
  std::int64_t block_m = 128, block_k = 64, k = 256;
  int num_warps = 8;
  bool by_step = false, trans_b = true;  // a row has a scale for each block of k
};

/// a is scaled by rows and rounded in the loop.
graph::Graph rounded(const Rounded& p) {
  constexpr std::int64_t m = 256, n = 64;
  const std::int64_t steps = p.k / p.block_k, scales = p.by_step ? steps : 1;
  const auto body = [=](Ref a, Ref b, Ref scale, Ref o) {
    const auto add = [&](Index l, Value sum) -> Value {
      const Slice now = ds(l * p.block_k, p.block_k);
      const Value x =
          a[{_, now}].astype(f32) * (p.by_step ? Value(scale[{_, ds(l, 1)}]) : Value(scale[_]));
      return sum + dot(p.to.is_float() ? x.astype(p.to) : round(x).astype(p.to),
                       p.trans_b ? b[{_, now}] : b[{now, _}], {.trans_b = p.trans_b})
                       .astype(f32);
    };
    o[_] = loop(0, steps, add, zeros({p.block_m, n}, f32));
  };
  const auto rows = [](Index i) { return Indices{i, 0}; };
  return traced(body,
                {.name = "rounded",
                 .out_type = {{m, n}, f32},
                 .grid = {m / p.block_m},
                 .in_specs = {{{p.block_m, p.k}, rows}, BlockSpec{}, {{p.block_m, scales}, rows}},
                 .out_specs = {{{p.block_m, n}, rows}},
                 .compiler_params = {.num_warps = p.num_warps}},
                {array({m, p.k}, p.from), array(p.trans_b ? Shape{n, p.k} : Shape{p.k, n}, p.to),
                 array({m, scales}, f32)});
}

std::ptrdiff_t fetches(const graph::Graph& g) {
  const auto l = cuda::lower(g, {.compute_capability = 90});
  return std::ranges::count_if(l.storages, [](const lowered::Storage& s) {
    return s.is_fetched() && s.shared().swizzle > 0;
  });
}

}  // namespace

TEST_CASE("products by wgmma of tf32 and of 8 bits agree for tails of K and all kinds of N") {
  const struct {
    Types types;
    Size size;
    const char* call;
  } cases[] = {{tf32s, {64, 40, 20}, "wgmma_m64n40k8_f32_tf32_tf32"},
               {tf32s, {120, 136, 33}, "wgmma_m64n136k8_f32_tf32_tf32"},
               {e4m3s, {61, 24, 48}, "wgmma_m64n24k32_f32_e4m3_e4m3"},
               {mixed, {128, 72, 100}, "wgmma_m64n72k32_f32_e5m2_e4m3"},
               {i8s, {60, 8, 70}, "wgmma_m64n8k32_s32_s8_s8"},
               {i8s, {64, 40, 64}, "wgmma_m64n32k32_s32_s8_s8"},
               {u8s, {128, 120, 31}, "wgmma_m64n112k32_s32_u8_u8"},
               {signs, {64, 264, 33}, "wgmma_m64n8k32_s32_u8_s8<128>("}};
  for (const auto& c : cases) {
    INFO(c.call);
    CHECK(problem(product(c.types, c.size), c.call) == "");
  }
}

TEST_CASE("warpgroups share columns of tf32 and of 8 bits") {
  const struct {
    Types types;
    int warps;
    Size size;
    const char* call;
  } cases[] = {{tf32s, 8, {64, 128, 64}, "wgmma_m64n64k8_f32_tf32_tf32"},
               {tf32s, 16, {128, 256, 20}, "wgmma_m64n128k8_f32_tf32_tf32"},
               {e4m3s, 8, {64, 256, 64}, "wgmma_m64n128k32_f32_e4m3_e4m3"},
               {mixed, 16, {60, 200, 70}, "wgmma_m64n56k32_f32_e5m2_e4m3"},
               {i8s, 8, {64, 256, 64}, "wgmma_m64n128k32_s32_s8_s8"},
               {signs, 16, {128, 256, 64}, "wgmma_m64n128k32_s32_u8_s8"},
               {u8s, 8, {64, 80, 33}, "wgmma_m64n8k32_s32_u8_u8<16>("}};
  for (const auto& c : cases) {
    INFO(c.call);
    CHECK(problem(by_warps(c.warps, product(c.types, c.size)), c.call) == "");
  }
  // Transposed as they are staged.
  CHECK(problem(by_warps(8, product(i8s, {64, 128, 64}, false, false)), "wgmma_m64n64k32_s32") ==
        "");
}

TEST_CASE("tf32 and 8 bits come by TMA to pipelines of wgmma") {
  for (const auto& [t, precision] : {std::pair{f32, tf32}, {f8e5m2, ieee}, {i8, ieee}}) {
    INFO(t.name());
    const std::int64_t block_k = 64 / t.bytes();
    const graph::Graph g = by_warps(8, matmul_graph(t,
                                                    {.m = 200,
                                                     .n = 100,
                                                     .k = 5 * block_k + 16,
                                                     .block_m = 128,
                                                     .block_n = 64,
                                                     .block_k = block_k,
                                                     .trans_b = true},
                                                    precision));
    CHECK(fetches(g) == 2);
    CHECK(problem(g, "wgmma_m64n64k") == "");
  }
}

TEST_CASE("rows of 8 bits that are no multiples of 16 bytes are staged by threads") {
  const graph::Graph g =
      matmul_graph(f8e4m3, {.m = 70, .n = 70, .k = 90, .block_k = 64, .trans_b = true});
  CHECK(fetches(g) == 0);
  CHECK(problem(g, "wgmma_m64n64k32_f32_e4m3_e4m3") == "");
}

TEST_CASE("integers of 8 bits that lie along M or N are transposed as they are staged") {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      INFO(ta << tb);
      const graph::Graph g = product(ta == tb ? i8s : signs, {64, 64, 70}, ta, tb);
      CHECK(problem(g, "wgmma_m64n64k32_s32_") == "");
      std::string remarks;
      for (const Remark& r : cuda::lower(g, {.compute_capability = 90}).remarks)
        remarks += r.text + "\n";
      const auto says = [&](const char* what) { return remarks.find(what) != remarks.npos; };
      constexpr const char* why =
          ": transposed as it is staged, because tensor cores take 8 bits along K alone; store it ";
      CHECK(says(("args[0]" + std::string(why) + "(M, K) and say trans_a = false").c_str()) == ta);
      CHECK(says(("args[1]" + std::string(why) + "(N, K) and say trans_b = true").c_str()) == !tb);
    }
}

TEST_CASE("what wgmma takes along K alone is transposed for it, and for nobody else") {
  CHECK(problem(product(e4m3s, {64, 64, 48}, false, false), "wgmma_m64n64k32_f32_e4m3_e4m3") == "");
  CHECK(problem(product(mixed, {64, 32, 64}, true, false), "wgmma_m64n32k32_f32_e5m2_e4m3") == "");
  for (const bool ta : {false, true})
    CHECK(problem(product(tf32s, {64, 64, 24}, ta, ta), "wgmma_m64n64k8_f32_tf32_tf32") == "");
  CHECK(problem(product(tf32s, {16, 64, 24}, false, false), "dot_mma_tf32") == "");
  CHECK(problem(product(e4m3s, {40, 24, 40}, true, true), "dot_mma_16816", 89) == "");
  CHECK(problem(product(e4m3s, {64, 64, 64}, false, false), "dot_mma_16816", 120) == "");
}

TEST_CASE("bytes are transposed as matrices, whichever share of them a warp has") {
  for_seeds(1, 24, [](std::uint64_t seed) {
    Random random(seed);
    const Types t = random.pick({e4m3s, mixed, i8s, u8s, signs});
    const bool ta = random.between(0, 1) != 0;
    const Size s{64 * random.between(1, 2), 16 * random.between(1, 8), 32 * random.between(1, 6)};
    CAPTURE(t.a.name(), s.m, s.n, s.k, ta);
    const graph::Graph g = by_warps(random.pick({4, 8}), product(t, s, ta, false));
    const int cc =
        random.pick(t.a == f8e4m3 || t.a == f8e5m2 ? std::vector{90} : std::vector{90, 100, 120});
    CAPTURE(cc);
    CHECK(problem(g, "transpose_bytes(", cc) == "");
    CHECK(text_of(g, cc).find("load_shared_padded<1>") == std::string::npos);
  });
}

TEST_CASE("bytes of a loop are transposed while products of others are in flight") {
  for (const DType t : {f8e4m3, i8})
    for (const std::int64_t k : {32, 64, 160, 320}) {
      CAPTURE(t.name(), k);
      const graph::Graph g = matmul_graph(t, {.m = 128, .n = 128, .k = k, .block_k = 32});
      CHECK(problem(g, "transpose_bytes(") == "");
    }
}

TEST_CASE("what is rounded to 8 bits for a product goes there in registers") {
  for (const DType from : {bf16, f16, f32})
    for (const DType to : {f8e4m3, f8e5m2, i8}) {
      const Rounded p{.from = from, .to = to};
      CAPTURE(from.name(), to.name());
      CHECK(problem(rounded(p), "wgmma_m64n64k32") == "");
      CHECK_THAT(text_of(rounded(p)), ContainsSubstring("_rs"));
      CHECK_THAT(text_of(rounded(p)), !ContainsSubstring("load_shared_padded<1>"));
    }
  for (const std::int64_t block_k : {32, 96, 128}) {
    CAPTURE(block_k);
    CHECK(problem(rounded({.block_k = block_k, .k = 3 * block_k}), "wgmma_m64n64k32") == "");
    CHECK(problem(
              rounded({.to = i8, .block_m = 64, .block_k = block_k, .k = block_k, .num_warps = 4}),
              "wgmma_m64n64k32") == "");
  }
}

TEST_CASE("left operands that are scaled and rounded agree, however they are drawn") {
  for_seeds(1, 10, [](std::uint64_t seed) {
    Random random(seed);
    Rounded p{.from = random.pick({bf16, f16, f32}),
              .to = random.pick({f8e4m3, f8e5m2, i8, bf16}),
              .block_m = random.pick({64, 128, 256}),
              .block_k = random.pick({32, 64, 128}),
              .num_warps = random.pick({0, 4, 8}),
              .by_step = random.chance(50),
              .trans_b = random.chance(70)};
    p.k = p.block_k * random.between(1, 5);
    CAPTURE(p.from.name(), p.to.name(), p.block_m, p.block_k, p.k, p.num_warps, p.by_step,
            p.trans_b);
    CHECK(problem(rounded(p), "wgmma_m64n") == "");
  });
}

TEST_CASE("elements of 8 bits are multiplied by mma.sync where there is no wgmma") {
  CHECK(problem(product(i8s, {70, 40, 70}), "dot_mma_16832<", 75) == "");
  CHECK(problem(product(u8s, {30, 100, 33}, true, false), "dot_mma_16832<", 80) == "");
  CHECK(problem(product(signs, {100, 24, 64}), "dot_mma_16832<", 100) == "");
  CHECK(problem(product(e4m3s, {64, 64, 64}), "dot_mma_16832<", 89) == "");
  CHECK(problem(product(mixed, {40, 72, 50}), "dot_mma_16832<", 120) == "");
  CHECK(problem(product(e4m3s, {64, 64, 64}), "dot_mma_16816<", 80) == "");
}

TEST_CASE("an operand that is transposed in the body is read where it lies") {
  const graph::Graph g = traced([](Ref x, Ref y, Ref o) { o[_] = dot(x[_], transpose(y[_])); },
                                {.name = "turned", .out_type = {{64, 64}, i32}},
                                {array({64, 64}, i8), array({64, 64}, i8)});
  CHECK(fetches(g) == 2);
  CHECK(problem(g, "wgmma_m64n64k32_s32_s8_s8_x2(") == "");
}

// With ones on the diagonal of B, the product is A as it was rounded.
TEST_CASE("tf32 is rounded to nearest even on every way to tensor cores") {
  const auto rounded = [](float x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, 4);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
    std::memcpy(&x, &bits, 4);
    return x;
  };
  const struct {
    std::int64_t k;
    bool trans_b;
    int cc;
  } ways[] = {{64, true, 90}, {63, true, 90}, {64, false, 90}, {63, false, 90}, {64, true, 80}};
  for (const auto& way : ways) {
    INFO("K of " << way.k << " on " << way.cc);
    const graph::Graph g = product(tf32s, {64, way.k, way.k}, false, way.trans_b);
    CHECK((fetches(g) == 2) == (way.k == 64 && way.trans_b));
    Random random(7);
    test::Call call = random_call(g, {}, random, true);
    std::vector<float> x(static_cast<std::size_t>(64 * way.k)),
        y(static_cast<std::size_t>(way.k * way.k));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint32_t halves = 0x1000 * static_cast<std::uint32_t>(i % 8);
      const std::uint32_t bits =
          0x3f800000 + halves + (i % 16 < 8 ? 0 : random.between(0, 0x7fffff));
      std::memcpy(&x[i], &bits, 4);
      if (i % 3 == 0) x[i] = -x[i];
    }
    for (std::int64_t i = 0; i < way.k; ++i) y[static_cast<std::size_t>(i * way.k + i)] = 1;
    std::memcpy(call.arrays[0].data(), x.data(), 4 * x.size());
    std::memcpy(call.arrays[1].data(), y.data(), 4 * y.size());
    test::Call expected = call;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float r = rounded(x[i]);
      std::memcpy(expected.arrays[2].data() + 4 * i, &r, 4);
    }
    test::Call interpreted = call;
    run_interpreter(g, interpreted);
    CHECK(difference(g, expected, interpreted) == "");
    run_emulator(g, {.compute_capability = way.cc}, call);
    CHECK(difference(g, expected, call) == "");
  }
}
