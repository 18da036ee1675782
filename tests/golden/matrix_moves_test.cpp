// ldmatrix, stmatrix and the fragments of mma.sync: where each element lies, written down.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

// Element 8 r + c of a matrix of 8 x 8: in which lane and half it lies after ldmatrix.
constexpr int lane_of(int r, int c) { return 4 * r + c / 2; }

// Four matrices, whose element (r, c) of matrix j is 64 j + 8 r + c, loaded in every way; and
// stored from fragments in every way.
struct Moves {
  // [call][lane][element] of x1, x2, x4, x1.trans, x2.trans, x4.trans
  std::vector<std::uint16_t> loaded = std::vector<std::uint16_t>(6 * 32 * 8);
  // [call][matrix][row][column]
  std::vector<std::uint16_t> stored = std::vector<std::uint16_t>(6 * 4 * 64);

  Moves() {
    std::string text = R"(  const u32 smem = pl::shared_base(), l = pl::lane();
  const u32 warpgroup = pl::warpgroup(), warp = pl::warp();
  if (warpgroup != 0 || warp != 0) return;
  const u32 row = smem + 16 * l;
  u16 v[8];
  PL_UNROLL for (u32 c = 0; c < 8; ++c) v[c] = u16(8 * l + c);
  pl::store_shared<8>(row, v);
  pl::warp_sync();
)";
    int call = 0;
    for (const char* trans : {"", "_trans"}) {
      for (const int x : {1, 2, 4}) {
        const std::string at = std::to_string(call++);
        text += "  { u16 f[8] = {}; pl::ldmatrix_x" + std::to_string(x) + trans +
                "(f, row); for (i32 e = 0; e < 8; ++e) pl::store_global(loaded + " + at +
                " * 256 + 8 * l + e, &f[e]); }\n";
      }
    }
    call = 0;
    for (const char* trans : {"", "_trans"}) {
      for (const int x : {1, 2, 4}) {
        // Element e of lane l is 8 l + e + 1; what stmatrix leaves is 0.
        const std::string at = std::to_string(call++);
        text +=
            "  { u16 f[8], z[8] = {}; for (u32 e = 0; e < 8; ++e) f[e] = u16(8 * l + e + 1);\n"
            "    pl::store_shared<8>(row, z); pl::warp_sync(); pl::stmatrix_x" +
            std::to_string(x) + trans +
            "(row, f); pl::warp_sync(); pl::load_shared<8>(z, row); pl::warp_sync();\n"
            "    pl::store_global<8>(stored + " +
            at + " * 256 + 8 * l, z); }\n";
      }
    }
    SmallKernel k(text);
    k.writes("u16", "loaded", loaded).writes("u16", "stored", stored).run();
  }
};

constexpr std::array<int, 6> matrices = {1, 2, 4, 1, 2, 4};

}  // namespace

TEST_CASE("ldmatrix gives a lane two neighbours of a row, transposed two of a column") {
  const Moves moves;
  for (int call = 0; call < 6; ++call) {
    const bool transposed = call >= 3;
    for (int j = 0; j < matrices[call]; ++j) {
      for (int r = 0; r < 8; ++r) {
        for (int c = 0; c < 8; ++c) {
          const int lane = transposed ? lane_of(c, r) : lane_of(r, c);
          const int e = 2 * j + (transposed ? r : c) % 2;
          CAPTURE(call, j, r, c);
          REQUIRE(moves.loaded[static_cast<std::size_t>(call * 256 + 8 * lane + e)] ==
                  64 * j + 8 * r + c);
        }
      }
    }
  }
  // Lanes 0, 1, 4 and 31 of x4 and of x4.trans.
  const auto of_lane = [&](int call, int lane) {
    const auto from = moves.loaded.begin() + call * 256 + 8 * lane;
    return std::vector<int>(from, from + 8);
  };
  CHECK(of_lane(2, 0) == std::vector<int>{0, 1, 64, 65, 128, 129, 192, 193});
  CHECK(of_lane(2, 1) == std::vector<int>{2, 3, 66, 67, 130, 131, 194, 195});
  CHECK(of_lane(2, 4) == std::vector<int>{8, 9, 72, 73, 136, 137, 200, 201});
  CHECK(of_lane(2, 31) == std::vector<int>{62, 63, 126, 127, 190, 191, 254, 255});
  CHECK(of_lane(5, 0) == std::vector<int>{0, 8, 64, 72, 128, 136, 192, 200});
  CHECK(of_lane(5, 1) == std::vector<int>{16, 24, 80, 88, 144, 152, 208, 216});
  CHECK(of_lane(5, 4) == std::vector<int>{1, 9, 65, 73, 129, 137, 193, 201});
  CHECK(of_lane(5, 31) == std::vector<int>{55, 63, 119, 127, 183, 191, 247, 255});
}

TEST_CASE("stmatrix puts a lane's pair where ldmatrix takes it from, and nothing elsewhere") {
  const Moves moves;
  for (int call = 0; call < 6; ++call) {
    const bool transposed = call >= 3;
    for (int j = 0; j < 4; ++j) {
      for (int r = 0; r < 8; ++r) {
        for (int c = 0; c < 8; ++c) {
          const int lane = transposed ? lane_of(c, r) : lane_of(r, c);
          const int e = 2 * j + (transposed ? r : c) % 2;
          CAPTURE(call, j, r, c);
          REQUIRE(moves.stored[static_cast<std::size_t>(call * 256 + 64 * j + 8 * r + c)] ==
                  (j < matrices[call] ? 8 * lane + e + 1 : 0));
        }
      }
    }
  }
}

namespace {

// By mma.sync of m16 n8 k: A's element e of lane l is 32 e + l (or `value`) and B a part of the
// unit matrix, so that d shows columns [8 h, 8 h + 8) of A; then B's element e of lane l is that
// and A shows rows [16 h, 16 h + 16) of it. Accumulators: element (r, c) in lane 4 (r % 8) + c / 2,
// register 2 (r / 8) + c % 2.
struct Fragments {
  int k, a_elements, b_elements;
  std::vector<float> a, b;  // [row][k], [k][column]

  Fragments(int k, const std::string& type, const std::string& call, int a_elements, int b_elements,
            const std::string& a_row, const std::string& a_k, const std::string& b_k,
            const std::string& accumulator = "f32", const std::string& value = "f32(32 * e + l)")
      : k(k),
        a_elements(a_elements),
        b_elements(b_elements),
        a(static_cast<std::size_t>(16 * k), -1),
        b(static_cast<std::size_t>(8 * k), -1) {
    const auto n = [](int x) { return std::to_string(x); };
    SmallKernel kernel(
        "  if (pl::warp() != 0) return;\n"
        "  const i32 l = i32(pl::lane()), g = l / 4, c = l % 4;\n"
        "  typedef " +
        type +
        " T;\n"
        "  for (i32 h = 0; h < " +
        n(k / 8) +
        "; ++h) {\n"
        "    T x[" +
        n(a_elements) + "], y[" + n(b_elements) +
        "];\n"
        "    " +
        accumulator +
        " d[4] = {};\n"
        "    PL_UNROLL for (i32 e = 0; e < " +
        n(a_elements) + "; ++e) x[e] = pl::to<T>(" + value +
        ");\n"
        "    PL_UNROLL for (i32 e = 0; e < " +
        n(b_elements) + "; ++e) y[e] = pl::to<T>(" + b_k + " == 8 * h + g ? 1 : 0);\n    " + call +
        "(d, x, y);\n"
        "    PL_UNROLL for (i32 i = 0; i < 4; ++i) { const f32 v = f32(d[i]); pl::store_global(a + "
        "(g + 8 * (i / 2)) * " +
        n(k) +
        " + 8 * h + 2 * c + i % 2, &v); }\n  }\n"
        "  for (i32 h = 0; h < " +
        n((k + 15) / 16) +
        "; ++h) {\n"
        "    T x[" +
        n(a_elements) + "], y[" + n(b_elements) +
        "];\n"
        "    " +
        accumulator +
        " d[4] = {};\n"
        "    PL_UNROLL for (i32 e = 0; e < " +
        n(b_elements) + "; ++e) y[e] = pl::to<T>(" + value +
        ");\n"
        "    PL_UNROLL for (i32 e = 0; e < " +
        n(a_elements) + "; ++e) x[e] = pl::to<T>(" + a_k + " == 16 * h + " + a_row +
        " ? 1 : 0);\n    " + call +
        "(d, x, y);\n"
        "    PL_UNROLL for (i32 i = 0; i < 4; ++i) { const f32 v = f32(d[i]); const i32 r = 16 * h "
        "+ g + 8 * (i / 2); pl::store_global(b + r * 8 + 2 * c + i % 2, &v, r < " +
        n(k) + "); }\n  }\n");
    kernel.writes("f32", "a", a).writes("f32", "b", b).run();
  }
};

}  // namespace

TEST_CASE("mma.sync of 16 bits: where the elements of A and B lie") {
  for (const int k : {8, 16}) {
    const std::string call = k == 8 ? "pl::mma_m16n8k8" : "pl::mma_m16n8k16";
    const Fragments f(k, "f16", call, k / 2, k / 4, "g + 8 * (e / 2 % 2)",
                      "2 * c + e % 2 + 8 * (e / 4)", "2 * c + e % 2 + 8 * (e / 2)");
    for (int row = 0; row < 16; ++row) {
      for (int along = 0; along < k; ++along) {
        const int lane = 4 * (row % 8) + along % 8 / 2;
        const int e = along % 2 + 2 * (row / 8) + 4 * (along / 8);
        CAPTURE(k, row, along);
        REQUIRE(f.a[static_cast<std::size_t>(row * k + along)] ==
                static_cast<float>(32 * e + lane));
      }
    }
    for (int along = 0; along < k; ++along) {
      for (int column = 0; column < 8; ++column) {
        const int lane = 4 * column + along % 8 / 2, e = along % 2 + 2 * (along / 8);
        CAPTURE(k, along, column);
        REQUIRE(f.b[static_cast<std::size_t>(along * 8 + column)] ==
                static_cast<float>(32 * e + lane));
      }
    }
  }
}

TEST_CASE("mma.sync of tf32: where the elements of A and B lie") {
  const Fragments f(8, "f32", "pl::mma_m16n8k8_tf32", 4, 2, "g + 8 * (e % 2)", "c + 4 * (e / 2)",
                    "c + 4 * e");
  for (int row = 0; row < 16; ++row) {
    for (int along = 0; along < 8; ++along) {
      const int lane = 4 * (row % 8) + along % 4, e = row / 8 + 2 * (along / 4);
      CAPTURE(row, along);
      REQUIRE(f.a[static_cast<std::size_t>(row * 8 + along)] == static_cast<float>(32 * e + lane));
    }
  }
  for (int along = 0; along < 8; ++along) {
    for (int column = 0; column < 8; ++column) {
      const int lane = 4 * column + along % 4, e = along / 4;
      CAPTURE(along, column);
      REQUIRE(f.b[static_cast<std::size_t>(along * 8 + column)] ==
              static_cast<float>(32 * e + lane));
    }
  }
}

TEST_CASE("mma.sync of 8 bits: where the elements of A and B lie") {
  const auto fragments = [](const char* value) {
    return Fragments(32, "i8", "pl::mma_m16n8k32", 16, 8, "g + 8 * (e / 4 % 2)",
                     "4 * c + e % 4 + 16 * (e / 8)", "4 * c + e % 4 + 16 * (e / 4)", "i32", value);
  };
  const Fragments lanes = fragments("l"), elements = fragments("e");
  for (int row = 0; row < 16; ++row) {
    for (int along = 0; along < 32; ++along) {
      const auto at = static_cast<std::size_t>(row * 32 + along);
      CAPTURE(row, along);
      REQUIRE(lanes.a[at] == static_cast<float>(4 * (row % 8) + along % 16 / 4));
      REQUIRE(elements.a[at] == static_cast<float>(along % 4 + 4 * (row / 8) + 8 * (along / 16)));
    }
  }
  for (int along = 0; along < 32; ++along) {
    for (int column = 0; column < 8; ++column) {
      const auto at = static_cast<std::size_t>(along * 8 + column);
      CAPTURE(along, column);
      REQUIRE(lanes.b[at] == static_cast<float>(4 * column + along % 16 / 4));
      REQUIRE(elements.b[at] == static_cast<float>(along % 4 + 4 * (along / 16)));
    }
  }
}
