// Layouts against formulas written from the PTX manual's figures and from Mosaic GPU's tilings.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

using Formula = std::function<Extents(int t, std::int64_t k)>;

// The first thread and register where layout and formula differ, or "".
std::string difference(const Layout& l, const Formula& formula) {
  check(l);
  for (int t = 0; t < l.threads(); ++t) {
    for (std::int64_t k = 0; k < l.registers(); ++k) {
      if (l.index(t, k) != formula(t, k)) {
        return to_string(l) + " differs at t=" + std::to_string(t) + " k=" + std::to_string(k);
      }
    }
  }
  return "";
}

// The same for elements in any registers.
std::string difference_of_sets(const Layout& l, std::int64_t registers, const Formula& formula) {
  check(l);
  if (l.registers() != registers) return to_string(l) + " has another number of registers";
  for (int t = 0; t < l.threads(); ++t) {
    std::vector<Extents> a, b;
    for (std::int64_t k = 0; k < registers; ++k) {
      a.push_back(l.index(t, k));
      b.push_back(formula(t, k));
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b) return to_string(l) + " differs at t=" + std::to_string(t);
  }
  return "";
}

Layout mosaic(const Extents& domain, std::vector<std::vector<int>> tiles,
              std::initializer_list<int> warp, std::initializer_list<int> lane, int vector) {
  return tiled(domain, tiles, warp, lane, vector);
}

Extents accumulator_formula(int t, std::int64_t i) {
  return {16 * (t / 32) + t % 32 / 4 + 8 * (i / 2 & 1), 8 * (i / 4) + 2 * (t % 4) + (i & 1)};
}

TEST_CASE("the wgmma accumulator is the manual's for every N", "[layout]") {
  for (const int n : {8, 24, 128, 136, 256}) {
    CHECK(difference(accumulator({64, n}), accumulator_formula) == "");
  }
  CHECK(difference(accumulator({128, 24}), [](int t, std::int64_t i) {
          Extents x = accumulator_formula(t, i % 12);
          x[0] += 64 * (i / 12);
          return x;
        }) == "");
}

TEST_CASE("warpgroups side by side take turns at runs of the accumulator's columns", "[layout]") {
  for (const int run : {8, 16, 64, 128})
    CHECK(difference(accumulator({64, 4 * run}, {4, 2}, run), [=](int t, std::int64_t i) {
            Extents x = accumulator_formula(t % 128, i % (run / 2));
            x[1] += run * (t / 128 + 2 * (i / (run / 2)));
            return x;
          }) == "");
  CHECK(difference(accumulator({128, 256}, {8, 2}, 64), [](int t, std::int64_t i) {
          Extents x = accumulator_formula(t % 128, i % 32);
          x[0] += 64 * (t / 128 % 2);
          x[1] += 64 * (t / 256 + 2 * (i / 32));
          return x;
        }) == "");
  CHECK_THROWS_AS(accumulator({64, 64}, {4, 2}, 24), InternalError);
}

TEST_CASE("row and column vectors of the accumulator replicate over quads and over row groups",
          "[layout]") {
  CHECK(difference(drop(accumulator({64, 128}), 1), [](int t, std::int64_t i) {
          return Extents{16 * (t / 32) + t % 32 / 4 + 8 * i};
        }) == "");
  CHECK(difference(drop(accumulator({64, 24}), 0), [](int t, std::int64_t i) {
          return Extents{8 * (i / 2) + 2 * (t % 4) + (i & 1)};
        }) == "");
}

TEST_CASE("A operands of wgmma are the manual's for 16, 8 and 32 bit elements", "[layout]") {
  CHECK(difference(operand_a({64, 64}, 16), [](int t, std::int64_t i) {
          const std::int64_t step = i / 8, word = i % 8 / 2, half = i & 1;
          return Extents{16 * (t / 32) + t % 32 / 4 + 8 * (word & 1),
                         16 * step + 8 * (word >> 1) + 2 * (t % 4) + half};
        }) == "");
  CHECK(difference(operand_a({64, 64}, 8), [](int t, std::int64_t i) {
          const std::int64_t step = i / 16, word = i % 16 / 4, byte = i & 3;
          return Extents{16 * (t / 32) + t % 32 / 4 + 8 * (word & 1),
                         32 * step + 16 * (word >> 1) + 4 * (t % 4) + byte};
        }) == "");
  CHECK(difference(operand_a({64, 16}, 32), [](int t, std::int64_t i) {
          const std::int64_t step = i / 4, word = i % 4;
          return Extents{16 * (t / 32) + t % 32 / 4 + 8 * (word & 1),
                         8 * step + 4 * (word >> 1) + t % 4};
        }) == "");
}

TEST_CASE("mma.sync fragments are the manual's, with warps split along rows and columns",
          "[layout]") {
  for (const Warps warps : {Warps{4, 1}, Warps{2, 2}, Warps{1, 4}, Warps{8, 1}, Warps{4, 2},
                            Warps{2, 4}, Warps{1, 8}, Warps{16, 1}, Warps{4, 4}, Warps{2, 8}}) {
    const auto warp_m = [=](int t) { return t / 32 % warps.m; };
    const auto warp_n = [=](int t) { return t / 32 / warps.m; };
    const int m = 16 * warps.m, n = 8 * warps.n;
    const auto group = [](int t) { return t % 32 / 4; };
    // One instruction: registers c0..c3 of D, a0.. of A, b0.. of B.
    CHECK(difference(accumulator({m, n}, warps), [=](int t, std::int64_t i) {
            return Extents{16 * warp_m(t) + group(t) + (i < 2 ? 0 : 8),
                           8 * warp_n(t) + t % 4 * 2 + (i & 1)};
          }) == "");
    CHECK(difference(operand_a({m, 16}, 16, warps), [=](int t, std::int64_t i) {
            const bool upper = (i >= 2 && i < 4) || i >= 6;
            return Extents{16 * warp_m(t) + group(t) + (upper ? 8 : 0),
                           t % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
          }) == "");
    CHECK(difference(operand_b({16, n}, 16, warps), [=](int t, std::int64_t i) {
            return Extents{t % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), 8 * warp_n(t) + group(t)};
          }) == "");
    // m16n8k8 of 16-bit elements
    CHECK(difference(operand_a({m, 8}, 16, warps, true), [=](int t, std::int64_t i) {
            return Extents{16 * warp_m(t) + group(t) + (i < 2 ? 0 : 8), t % 4 * 2 + (i & 1)};
          }) == "");
    CHECK(difference(operand_b({8, n}, 16, warps, true), [=](int t, std::int64_t i) {
            return Extents{t % 4 * 2 + i, 8 * warp_n(t) + group(t)};
          }) == "");
    // m16n8k8 of tf32
    CHECK(difference(operand_a({m, 8}, 32, warps), [=](int t, std::int64_t i) {
            return Extents{16 * warp_m(t) + group(t) + (i == 1 || i == 3 ? 8 : 0),
                           t % 4 + (i >= 2 ? 4 : 0)};
          }) == "");
    CHECK(difference(operand_b({8, n}, 32, warps), [=](int t, std::int64_t i) {
            return Extents{t % 4 + 4 * i, 8 * warp_n(t) + group(t)};
          }) == "");
    // m16n8k32 of 8-bit elements
    CHECK(difference(operand_a({m, 32}, 8, warps), [=](int t, std::int64_t i) {
            const bool upper = (i >= 4 && i < 8) || i >= 12;
            return Extents{16 * warp_m(t) + group(t) + (upper ? 8 : 0),
                           t % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
          }) == "");
    CHECK(difference(operand_b({32, n}, 8, warps), [=](int t, std::int64_t i) {
            return Extents{t % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), 8 * warp_n(t) + group(t)};
          }) == "");
  }
  CHECK(
      difference(operand_b({32, 16}, 16), [](int t, std::int64_t i) {
        const int l = t % 32;
        const std::int64_t q = i / 4;
        return Extents{16 * (q / 2) + 2 * (l % 4) + (i & 1) + 8 * (i / 2 & 1), 8 * (q % 2) + l / 4};
      }) == "");
}

TEST_CASE("ldmatrix tiles hold two elements of a row, transposed of a column", "[layout]") {
  CHECK(difference(matrix_tile({8, 16}), [](int t, std::int64_t i) {
          return Extents{t % 32 / 4, 8 * (i / 2) + t % 4 * 2 + (i & 1)};
        }) == "");
  CHECK(difference(matrix_tile({16, 8}, true), [](int t, std::int64_t i) {
          return Extents{8 * (i / 2) + t % 4 * 2 + (i & 1), t % 32 / 4};
        }) == "");
}

TEST_CASE("strided layouts are the flat formula where extents are powers of two", "[layout]") {
  CHECK(difference(strided({1, 1024}, 4), [](int t, std::int64_t i) {
          return Extents{0, i / 4 * 512 + t * 4 + i % 4};
        }) == "");
  CHECK(difference(strided({64, 64}, 8), [](int t, std::int64_t i) {
          const std::int64_t flat = i / 8 * 1024 + t * 8 + i % 8;
          return Extents{flat / 64, flat % 64};
        }) == "");
  CHECK(difference(strided({7, 13}, 1), [](int t, std::int64_t) {
          return Extents{t / 16, t % 16};
        }) == "");
  CHECK(difference(strided({64, 24}, 8), [](int t, std::int64_t i) {
          return Extents{32 * (i / 8) + t / 4, t % 4 * 8 + i % 8};
        }) == "");
  CHECK(strided({128, 96}, 4).registers() == 128);
  CHECK(strided({128, 96}, 4, 32).registers() == 96);
  CHECK(strided({std::int64_t{1} << 20}, 4).registers() == 8192);
  CHECK_THROWS_AS(strided({64}, 3), InternalError);
  CHECK_THROWS_AS(strided({64}, 4, 24), InternalError);
}

TEST_CASE("beside what is alike along a dimension, warps have others of it") {
  const auto text = [](const Extents& domain, int vec, std::vector<bool> alike, int warps = 4) {
    return to_string(strided_beside(domain, vec, alike, warps));
  };
  CHECK(text({4, 8, 64}, 8, {false, true, false}) ==
        "dom(4,8,64) tile(4,4,64) reg[k1 k2 k4] lane[k8 k16 k32 j1 j2] warp[i1 i2]");
  CHECK(text({4, 2, 64}, 8, {false, true, false}) ==
        "dom(4,2,64) tile(4,2,64) reg[k1 k2 k4] lane[k8 k16 k32 j1 *] warp[i1 i2]");
  CHECK(text({8, 2, 16}, 4, {false, true, false}) ==
        "dom(8,2,16) tile(8,2,16) reg[k1 k2] lane[k4 k8 j1 i4 *] warp[i1 i2]");
  CHECK(text({1, 32, 64}, 8, {false, true, false}, 8) ==
        "dom(1,32,64) tile(1,32,64) reg[k1 k2 k4] lane[k8 k16 k32 j1 j2] warp[j4 j8 j16]");
  // 15 are nearly 16; of 6 only halves are.
  CHECK(text({4, 15, 64}, 8, {false, true, false}) ==
        "dom(4,15,64) tile(4,4,64) reg[k1 k2 k4] lane[k8 k16 k32 j1 j2] warp[i1 i2]");
  CHECK(text({4, 6, 64}, 8, {false, true, false}) ==
        "dom(4,6,64) tile(4,2,64) reg[k1 k2 k4] lane[k8 k16 k32 j1 *] warp[i1 i2]");
  CHECK(text({4, 8, 24}, 8, {false, true, false}) ==
        "dom(4,8,24) tile(4,8,8) reg[k1 k2 k4] lane[j1 j2 j4 * *] warp[i1 i2]");
}

TEST_CASE("strided layouts of 8 and 16 warps give each thread a vector before any a second",
          "[layout]") {
  for (const int warps : {8, 16}) {
    const int threads = 32 * warps;
    CHECK(difference(strided({1, 4096}, 4, full_width, warps), [=](int t, std::int64_t i) {
            return Extents{0, i / 4 * (4 * threads) + t * 4 + i % 4};
          }) == "");
    CHECK(strided({7, 13}, 1, full_width, warps).replicated_threads() ==
          static_cast<std::uint32_t>(threads - 128));
  }
  CHECK(accumulator({128, 128}).registers() == 128);
  CHECK(accumulator({128, 128}, {4, 2}).registers() == 64);
  CHECK(accumulator({128, 128}, {4, 4}).registers() == 32);
  CHECK_THROWS_AS(strided({64}, 4, full_width, 2), InternalError);
  CHECK_THROWS_AS(strided({64}, 4, full_width, 32), InternalError);
  CHECK_THROWS_AS(accumulator({64, 64}, {4, 3}), InternalError);
  CHECK_THROWS_AS(replicated({64}, 12), InternalError);
}

TEST_CASE("what a thread holds along a dimension follows one another in a consecutive layout",
          "[layout]") {
  for (const auto& [from, d] : {std::pair{strided({64, 64}, 1), 0},
                                {strided({200, 32}, 4), 0},
                                {strided({3, 5000}, 4), 1},
                                {strided({6, 40, 16}, 2), 1}}) {
    const Layout l = consecutive(from, d);
    INFO(to_string(l));
    check(l);
    CHECK(l.repetitions(d) == 1);
    CHECK(l.registers() >= from.registers());
    const auto at = static_cast<std::size_t>(d);
    for (const int t : {0, 37, 127}) {
      std::map<Extents, std::set<std::int64_t>> lines;  // by the other coordinates
      for (std::int64_t k = 0; k < l.registers(); ++k) {
        Extents index = l.index(t, k);
        const std::int64_t along = std::exchange(index[at], 0);
        CHECK(lines[index].insert(along).second);
      }
      for (const auto& [_, line] : lines)
        CHECK(*line.rbegin() - *line.begin() + 1 == static_cast<std::int64_t>(line.size()));
    }
  }
  CHECK(consecutive(strided({64}, 4), 0) == strided({64}, 4));
}

TEST_CASE("a value of one element is a layout that replicates everywhere", "[layout]") {
  for (const Extents& domain : {Extents{}, Extents{1}, Extents{1, 1}}) {
    CHECK(replicated(domain).registers() == 1);
    CHECK(replicated(domain).replicated_threads() == 127);
    CHECK(same_elements(replicated(domain), strided(domain, 4)));
  }
  CHECK(drop(drop(accumulator({64, 64}), 0), 0) == replicated({}));
}

// Every row of the reference's table of register layouts.
TEST_CASE("every Mosaic GPU layout is representable", "[layout]") {
  const auto quad_row = [](int t) { return 16 * (t / 32) + t % 32 / 4; };
  SECTION("WGMMA is the accumulator; WGMMA_ACC_32BIT differs in registers only") {
    const Layout wgmma = mosaic({64, 128}, {{64, 8}, {16, 8}, {8, 8}, {2}}, {-7}, {-3, -2}, -1);
    CHECK(wgmma == accumulator({64, 128}));
    const Layout scalar =
        mosaic({64, 128}, {{64, 8}, {16, 8}, {8, 8}, {2}, {1}}, {-8}, {-4, -3}, -1);
    CHECK(same_elements(scalar, wgmma));
  }
  SECTION("two warpgroups, one below the other") {
    const Layout l = mosaic({128, 128}, {{128, 8}, {16, 8}, {8, 8}, {2}}, {-7}, {-3, -2}, -1);
    CHECK(l == accumulator({128, 128}, {8, 1}));
  }
  SECTION("WGMMA.reduce(1), WGMMA.reduce(0)") {
    CHECK(mosaic({64}, {{64}, {16}, {8}, {1}}, {-4}, {-2, 4}, -1) == drop(accumulator({64, 8}), 1));
    CHECK(mosaic({8}, {{8}, {2}}, {4}, {8, -2}, -1) == drop(accumulator({64, 8}), 0));
  }
  SECTION("WGMMA_8BIT") {
    const Layout l = mosaic({64, 64}, {{64, 16}, {16, 16}, {8, 16}, {4}}, {-7}, {-3, -2}, -1);
    CHECK(difference_of_sets(l, 32, [&](int t, std::int64_t i) {
            return Extents{quad_row(t) + 8 * (i / 4 & 1), 16 * (i / 8) + t % 4 * 4 + i % 4};
          }) == "");
    CHECK(same_elements(l, operand_a({64, 64}, 8)));
  }
  SECTION("WGMMA_UPCAST_2X and 4X are widened A operands") {
    const Layout up2 =
        mosaic({64, 64}, {{64, 16}, {16, 16}, {8, 16}, {8}, {4}}, {-8}, {-4, -2, -3}, -1);
    CHECK(difference_of_sets(up2, 32, [&](int t, std::int64_t i) {
            return Extents{quad_row(t) + 8 * (i / 4 & 1),
                           16 * (i / 8) + 8 * (t & 1) + 4 * (t >> 1 & 1) + i % 4};
          }) == "");
    CHECK(widen(operand_a({64, 64}, 16), 4) == up2);
    const Layout up4 = mosaic({64, 64}, {{64, 32}, {16, 32}, {8, 32}, {8}}, {-7}, {-3, -2}, -1);
    CHECK(difference_of_sets(up4, 32, [&](int t, std::int64_t i) {
            return Extents{quad_row(t) + 8 * (i / 8 & 1), 32 * (i / 16) + t % 4 * 8 + i % 8};
          }) == "");
    CHECK(widen(operand_a({64, 64}, 16), 8) == up4);
  }
  SECTION("WGMMA_TRANSPOSED") {
    const Layout l =
        mosaic({64, 64}, {{64, 8}, {16, 8}, {8, 8}, {2, 2}, {2, 1}}, {-10}, {-6, -3, -5}, -2);
    CHECK(difference_of_sets(l, 32, [&](int t, std::int64_t i) {
            const int lane = t % 32;  // 2x2 blocks: rows by the high lane bits
            return Extents{16 * (t / 32) + lane / 8 * 2 + (i & 1) + 8 * (i / 2 & 1),
                           8 * (i / 4) + lane % 4 * 2 + (lane / 4 & 1)};
          }) == "");
  }
  SECTION("MMA_LHS, MMA_RHS, MMA_ACC") {
    CHECK(accumulator({16, 32}, {1, 4}).registers() == 4);
    CHECK(operand_a({16, 64}, 4, {1, 4}).registers() == 32);
    CHECK(operand_b({64, 32}, 4, {1, 4}).registers() == 16);
  }
  SECTION("WG_STRIDED on the flat domain") {
    CHECK(difference(strided({1536}, 4), [](int t, std::int64_t i) {
            return Extents{i / 4 * 512 + t * 4 + i % 4};
          }) == "");
  }
  SECTION("TCGEN05 and its transpose") {
    const Layout l = mosaic({128, 64}, {{128, 8}, {32, 8}, {8, 8}, {2}}, {-7}, {-3, -2}, -1);
    CHECK(difference_of_sets(l, 64, [](int t, std::int64_t i) {
            return Extents{32 * (t / 32) + t % 32 / 4 + 8 * (i / 2 & 3),
                           8 * (i / 8) + t % 4 * 2 + (i & 1)};
          }) == "");
    const int swap[] = {1, 0};
    CHECK(transpose(transpose(l, swap), swap) == l);
  }
  SECTION("TCGEN05_TMEM_NATIVE") {
    const Layout l = mosaic({128, 16}, {{128, 4}, {32, 4}, {1, 4}}, {-6}, {-4}, -1);
    const auto rows = [](int t, std::int64_t i) { return Extents{t, i}; };
    CHECK(difference_of_sets(l, 16, rows) == "");
    CHECK(difference(tensor_memory_rows({128, 16}), rows) == "");
  }
  SECTION("TCGEN05_M64_COLLECTIVE: warps 2 and 3 hold the second half of the columns") {
    const Layout l = mosaic({64, 32}, {{64, 32}, {32, 16}, {8, 8}, {2}}, {-6, -7}, {-3, -2}, -1);
    CHECK(difference_of_sets(l, 16, [](int t, std::int64_t i) {
            const int w = t / 32;
            return Extents{32 * (w & 1) + t % 32 / 4 + 8 * (i / 2 & 3),
                           16 * (w >> 1) + 8 * (i / 8) + t % 4 * 2 + (i & 1)};
          }) == "");
  }
  SECTION("SMEM_GMEM_COPY: a row of 128 bytes per eight lanes") {
    const Layout l = mosaic({64, 64}, {{32, 64}, {8, 64}, {4, 64}, {8}}, {-7}, {-3, -2}, -1);
    CHECK(difference_of_sets(l, 32, [](int t, std::int64_t i) {
            return Extents{8 * (t / 32) + t % 32 / 8 + 4 * (i / 8 & 1) + 32 * (i / 16),
                           t % 8 * 8 + i % 8};
          }) == "");
  }
  SECTION("TMA_INDICES and TMA_INDICES_4") {
    CHECK(difference(mosaic({16}, {{16}, {4}}, {-2}, {32}, -1),
                     [](int t, std::int64_t i) { return Extents{t / 32 * 4 + i}; }) == "");
    CHECK(difference(mosaic({4}, {{4}}, {4}, {32}, -1),
                     [](int, std::int64_t i) { return Extents{i}; }) == "");
  }
}

TEST_CASE("an impossible tiling is an error that says why", "[layout]") {
  const auto message = [](auto&& make) -> std::string {
    try {
      make();
    } catch (const CompileError& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(message([] {
          mosaic({64, 8}, {{64, 8}, {16, 8}}, {-4}, {-2}, -1);
        }) == "tiled layout: lane dimensions take 16, expected 32");
  CHECK(message([] {
          mosaic({32, 8}, {{32, 8}, {16, 8}, {8, 8}, {2}}, {-7}, {-3, -2}, -1);
        }) == "tiled layout: warp dimensions take 2, expected 4, 8 or 16");
  CHECK(message([] {
          mosaic({64}, {{48}, {16}}, {-2}, {32}, -1);
        }) == "tiled layout: expected a power of two, got 48");
  CHECK(message([] {
          mosaic({64}, {{16}, {64}}, {-2}, {32}, -1);
        }) == "tiled layout: a tile is larger than the one it divides");
  CHECK(message([] {
          mosaic({64}, {{8, 8}}, {-2}, {32}, -1);
        }) == "tiled layout: the first tile has more dimensions than the value");
  CHECK(message([] { mosaic({64}, {{64}}, {-3}, {32}, -1); }) ==
        "tiled layout: there is no dimension -3");
  CHECK(message([] { accumulator({64}); }) ==
        "accumulator layout: expected a value of rank 2, got rank 1");
  CHECK(message([] {
          operand_a({64, 64}, 64);
        }) == "tensor core operand: expected elements of 4, 8, 16 or 32 bits, got 64");
}

}  // namespace
}  // namespace palladium::layout
