#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/emulator/waist_kernels.hpp"

using namespace palladium;
using test::buffer;

namespace {

template <class In, class Out>
std::vector<Out> run(std::string_view text, std::vector<In> x, std::size_t outputs,
                     std::uint32_t shared_bytes = 0) {
  std::vector<Out> o(outputs);
  void *px = x.data(), *po = o.data();
  void* parameters[] = {&px, &po};
  const emulator::Buffer buffers[] = {buffer("x", x), buffer("o", o, true)};
  emulator::run({.kernel = "k",
                 .text = text,
                 .shared_bytes = shared_bytes,
                 .parameters = parameters,
                 .buffers = buffers});
  return o;
}

}  // namespace

TEST_CASE("shuffles of every width take the value of the lane they name") {
  const std::string lanes[] = {"l ^ 5", "(l * 7 + 3) % 32", "l >= 3 ? l - 3 : l",
                               "l + 9 < 32 ? l + 9 : l"};
  const std::string calls[] = {"pl::shuffle_xor(v, 5)", "pl::shuffle_idx(v, (l * 7 + 3) % 32)",
                               "pl::shuffle_up(v, 3)", "pl::shuffle_down(v, 9)"};
  std::string body;
  for (const char* type : {"u8", "i16", "u32", "f32", "u64", "f64"}) {
    for (int k = 0; k < 4; ++k) {
      body += std::string("  { const ") + type + " v = pl::to<" + type +
              ">(3 * l + 1); n += " + calls[k] + " == pl::to<" + type + ">(3 * (" + lanes[k] +
              ") + 1); }\n";
    }
  }
  const std::string text =
      "PL_KERNEL(128) k(const u32* x, u32* o) {\n  const u32 l = pl::lane();\n  u32 n = 0;\n" +
      body +
      "  { const bool p = l % 3 == 0; n += pl::shuffle_xor(p, 1) == ((l ^ 1) % 3 == 0); }\n"
      "  { const f16 p = pl::to<f16>(l); n += pl::shuffle_xor(p, 1) == pl::to<f16>(l ^ 1); }\n"
      "  pl::store_global(o + 32 * pl::warp() + l, &n);\n}\nPL_EXPORT(k)\n";
  CHECK(run<std::uint32_t, std::uint32_t>(text, {0}, 128) == std::vector<std::uint32_t>(128, 26));
}

TEST_CASE("votes see every lane of their warp and no other") {
  constexpr std::string_view text = R"(PL_KERNEL(128) k(const u32* x, u32* o) {
  const u32 w = pl::warp(), l = pl::lane();
  const bool p = w == 0 || (w == 1 && l % 2 == 1);
  u32 v[4] = {pl::vote_ballot(p), pl::vote_any(p), pl::vote_all(p), pl::thread()};
  pl::store_global<4>(o + 4 * pl::thread(), v);
}
PL_EXPORT(k)
)";
  const auto o = run<std::uint32_t, std::uint32_t>(text, {0}, 512);
  int wrong = 0;
  for (std::uint32_t t = 0; t < 128; ++t) {
    const std::uint32_t w = t / 32;
    const std::uint32_t want[] = {w == 0 ? ~0u : w == 1 ? 0xaaaaaaaa : 0, w <= 1, w == 0, t};
    for (int i = 0; i < 4; ++i) wrong += o[4 * t + i] != want[i];
  }
  CHECK(wrong == 0);
}

// Fragments are filled from row-major matrices by the formulas of the PTX manual, group = lane / 4,
// member = lane % 4; the product must then be the matrix product.
TEST_CASE("each mma multiplies fragments laid out as the PTX manual says") {
  struct Variant {
    const char *type, *accumulator, *call;
    int k;
    const char *a_row, *a_column, *b_row;  // of element i
  };
  const Variant variants[] = {
      {"f16", "f32", "mma_m16n8k16", 16, "i < 2 || (i >= 4 && i < 6) ? group : group + 8",
       "member * 2 + (i & 1) + (i >= 4 ? 8 : 0)", "member * 2 + (i & 1) + (i >= 2 ? 8 : 0)"},
      {"bf16", "f32", "mma_m16n8k16", 16, "i < 2 || (i >= 4 && i < 6) ? group : group + 8",
       "member * 2 + (i & 1) + (i >= 4 ? 8 : 0)", "member * 2 + (i & 1) + (i >= 2 ? 8 : 0)"},
      {"f16", "f32", "mma_m16n8k8", 8, "i < 2 ? group : group + 8", "member * 2 + (i & 1)",
       "member * 2 + i"},
      {"f32", "f32", "mma_m16n8k8_tf32", 8, "i == 0 || i == 2 ? group : group + 8",
       "i < 2 ? member : member + 4", "i == 0 ? member : member + 4"},
      {"i8", "i32", "mma_m16n8k32", 32, "i < 4 || (i >= 8 && i < 12) ? group : group + 8",
       "member * 4 + (i & 3) + (i >= 8 ? 16 : 0)", "member * 4 + (i & 3) + (i >= 4 ? 16 : 0)"},
  };
  for (const Variant& v : variants) {
    const int k = v.k;
    const std::string ks = std::to_string(k), t = v.type, acc = v.accumulator;
    const std::string text =
        "PL_KERNEL(128) k(const i32* x, i32* o) {\n"
        "  const i32* y = x + 16 * " +
        ks +
        ";\n"
        "  const i32* z = y + 8 * " +
        ks +
        ";\n"
        "  const i32 group = pl::lane() / 4, member = pl::lane() % 4;\n"
        "  const bool mine = pl::warp() == 3;\n"
        "  i32 e;\n"
        "  " +
        t + " a[" + std::to_string(k / 2) + "], b[" + std::to_string(k / 4) +
        "];\n"
        "  for (i32 i = 0; i < " +
        std::to_string(k / 2) +
        "; ++i) {\n"
        "    pl::load_global(&e, x + (" +
        v.a_row + ") * " + ks + " + (" + v.a_column + ")" +
        ");\n"
        "    a[i] = pl::to<" +
        t +
        ">(e);\n  }\n"
        "  for (i32 i = 0; i < " +
        std::to_string(k / 4) +
        "; ++i) {\n"
        "    pl::load_global(&e, y + (" +
        v.b_row +
        ") * 8 + group);\n"
        "    b[i] = pl::to<" +
        t +
        ">(e);\n  }\n"
        "  " +
        acc +
        " d[4];\n"
        "  for (i32 i = 0; i < 4; ++i) {\n"
        "    const i32 at = (i < 2 ? group : group + 8) * 8 + member * 2 + (i & 1);\n"
        "    pl::load_global(&e, z + at);\n    d[i] = pl::to<" +
        acc +
        ">(e);\n  }\n"
        "  pl::" +
        v.call +
        "(d, a, b);\n"
        "  for (i32 i = 0; i < 4; ++i) {\n"
        "    const i32 at = (i < 2 ? group : group + 8) * 8 + member * 2 + (i & 1);\n"
        "    e = pl::to<i32>(d[i]);\n    pl::store_global(o + at, &e, mine);\n  }\n"
        "}\nPL_EXPORT(k)\n";
    std::mt19937 random(5);
    std::vector<std::int32_t> x(24 * k + 128);
    for (std::int32_t& e : x) e = static_cast<std::int32_t>(random() % 31) - 15;
    const auto o = run<std::int32_t, std::int32_t>(text, x, 128);
    int wrong = 0;
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) {
        std::int32_t want = x[24 * k + i * 8 + j];
        for (int q = 0; q < k; ++q) want += x[i * k + q] * x[16 * k + q * 8 + j];
        wrong += o[i * 8 + j] != want;
      }
    }
    INFO(v.call << " of " << v.type);
    CHECK(wrong == 0);
  }
}

TEST_CASE("tf32 operands are rounded to ten bits, halves to even") {
  constexpr std::string_view text = R"(PL_KERNEL(128) k(const f32* x, f32* o) {
  f32 a[4] = {0, 0, 0, 0}, b[2] = {0, 0}, d[4] = {0, 0, 0, 0};
  if (pl::lane() % 4 == 0) pl::load_global(a, x + pl::lane() / 4);
  if (pl::lane() == 0) b[0] = 1;
  pl::mma_m16n8k8_tf32(d, a, b);
  pl::store_global(o + pl::lane() / 4, d, pl::warp() == 0 && pl::lane() % 4 == 0);
}
PL_EXPORT(k)
)";
  const std::vector<float> x = {
      1 + 0x1p-11f, -1 - 0x1.8p-10f, 1 + 0x1p-12f, 1 + 0x1.8p-10f, 0x1p-130f, 3, -0.1f, 65535};
  CHECK(run<float, float>(text, x, 8) == std::vector<float>{1, -1 - 0x1p-9f, 1, 1 + 0x1p-9f,
                                                            0x1p-130f, 3, -0x1.998p-4f, 65536});
}

TEST_CASE("ldmatrix hands out rows, and columns when transposed") {
  for (int matrices : {1, 2, 4}) {
    for (bool transposed : {false, true}) {
      const std::string n = std::to_string(matrices);
      const std::string text =
          "PL_KERNEL(128) k(const u16* x, u16* o) {\n"
          "  const u32 t = pl::thread(), base = pl::shared_base();\n"
          "  u16 v[8];\n"
          "  pl::load_global<2>(v, x + 2 * t);\n"
          "  pl::store_shared<2>(base + 4 * t, v);\n"
          "  pl::warpgroup_sync();\n"
          "  pl::ldmatrix_x" +
          n + (transposed ? "_trans" : "") + "(v, base + 16 * (pl::lane() % (8 * " + n +
          ")));\n"
          "  PL_UNROLL for (u32 i = 0; i < 2 * " +
          n +
          "; ++i)\n"
          "    pl::store_global(o + pl::lane() * 2 * " +
          n +
          " + i, &v[i], pl::warp() == 0);\n"
          "}\nPL_EXPORT(k)\n";
      std::vector<std::uint16_t> x(256);
      for (int i = 0; i < 256; ++i) x[i] = static_cast<std::uint16_t>(1000 + i);
      const auto o = run<std::uint16_t, std::uint16_t>(text, x, 64 * matrices, 512);
      int wrong = 0;
      for (int l = 0; l < 32; ++l) {
        for (int j = 0; j < matrices; ++j) {
          for (int h = 0; h < 2; ++h) {
            const int row = transposed ? 2 * (l % 4) + h : l / 4;
            const int column = transposed ? l / 4 : 2 * (l % 4) + h;
            wrong += o[l * 2 * matrices + 2 * j + h] != 1000 + 64 * j + 8 * row + column;
          }
        }
      }
      INFO(n << (transposed ? " transposed" : ""));
      CHECK(wrong == 0);
    }
  }
}
