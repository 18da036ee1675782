#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/emulator/waist_kernels.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using test::buffer;

TEST_CASE("an emitted vector add runs on the emulator for sizes that are no multiple of a block") {
  for (int m : {1, 4, 513, 3000, 100003}) {
    std::vector<float> x(m), y(m), o(m, -1);
    for (int i = 0; i < m; ++i) x[i] = i * 0.5f, y[i] = 1.0f / (1 + i);
    void *px = x.data(), *py = y.data(), *po = o.data();
    void* parameters[] = {&px, &py, &po, &m};
    const emulator::Buffer buffers[] = {buffer("args[0]", x), buffer("args[1]", y),
                                        buffer("outputs[0]", o, true)};
    emulator::run({.kernel = "add",
                   .text = test::add_text,
                   .grid = {(m + 511) / 512, 1, 1},
                   .parameters = parameters,
                   .buffers = buffers});
    int wrong = 0;
    for (int i = 0; i < m; ++i) wrong += o[i] != x[i] + y[i];
    CHECK(wrong == 0);
  }
}

TEST_CASE("an emitted softmax with two warpgroups reduces by shuffles and shared memory") {
  for (auto [m, n] : {std::pair{1, 1}, {5, 1000}, {4, 128}, {3, 77}}) {
    std::int64_t rows = m;
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 4);
    std::vector<float> x(m * n), o(m * n, -1);
    for (float& v : x) v = normal(random);
    void *px = x.data(), *po = o.data();
    void* parameters[] = {&px, &po, &rows, &n};
    const emulator::Buffer buffers[] = {buffer("args[0]", x), buffer("outputs[0]", o, true)};
    emulator::run({.kernel = "softmax",
                   .text = test::softmax_text,
                   .grid = {(m + 1) / 2, 1, 1},
                   .warpgroups = 2,
                   .shared_bytes = 64,
                   .parameters = parameters,
                   .buffers = buffers});
    double worst = 0;
    for (int r = 0; r < m; ++r) {
      double top = -INFINITY, sum = 0;
      for (int c = 0; c < n; ++c) top = std::max<double>(top, x[r * n + c]);
      for (int c = 0; c < n; ++c) sum += std::exp(x[r * n + c] - top);
      for (int c = 0; c < n; ++c) {
        const double want = std::exp(x[r * n + c] - top) / sum;
        worst = test::worst_of(worst, std::abs(o[r * n + c] - want) / want);
      }
    }
    CHECK(worst < 2e-6);
  }
}

TEST_CASE("an emitted matmul by ldmatrix and mma.sync is exact on integer values") {
  std::vector<std::uint16_t> a(64 * 64), b(64 * 64);
  std::vector<float> o(64 * 64, -1);
  const auto bf16 = [](float f) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(f) >> 16);
  };
  const auto x = [](int i, int k) { return static_cast<float>((i * 7 + k * 3) % 17 - 8); };
  const auto y = [](int k, int j) { return static_cast<float>((k * 5 + j * 11) % 13 - 6); };
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 64; ++j) a[i * 64 + j] = bf16(x(i, j)), b[i * 64 + j] = bf16(y(i, j));
  }
  void *pa = a.data(), *pb = b.data(), *po = o.data();
  void* parameters[] = {&pa, &pb, &po};
  const emulator::Buffer buffers[] = {buffer("args[0]", a), buffer("args[1]", b),
                                      buffer("outputs[0]", o, true)};
  emulator::run({.kernel = "matmul",
                 .text = test::matmul_text,
                 .shared_bytes = 16384,
                 .parameters = parameters,
                 .buffers = buffers});
  int wrong = 0;
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 64; ++j) {
      float want = 0;
      for (int k = 0; k < 64; ++k) want += x(i, k) * y(k, j);
      wrong += o[i * 64 + j] != want;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("block, grid and cluster ids are those of the launch") {
  constexpr std::string_view text = R"(
PL_KERNEL(128) ids(i32* o) {
  const i32 at = pl::block_x() + pl::grid_x() * (pl::block_y() + pl::grid_y() * pl::block_z());
  i32 v[8] = {pl::block_x(), pl::block_y(), pl::block_z(), pl::grid_x(), pl::grid_y(), pl::grid_z(),
              static_cast<i32>(pl::cluster_rank()), static_cast<i32>(pl::cluster_size())};
  pl::store_global<4>(o + 8 * at, v, pl::thread() == 0);
  pl::store_global<4>(o + 8 * at + 4, v + 4, pl::thread() == 0);
}
PL_EXPORT(ids)
)";
  std::vector<std::int32_t> o(4 * 3 * 2 * 8, -1);
  void* po = o.data();
  void* parameters[] = {&po};
  const emulator::Buffer buffers[] = {buffer("outputs[0]", o, true)};
  emulator::run({.kernel = "ids",
                 .text = text,
                 .grid = {4, 3, 2},
                 .cluster = {2, 1, 2},
                 .parameters = parameters,
                 .buffers = buffers});
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 4; ++x) {
        const int* v = &o[8 * (x + 4 * (y + 3 * z))];
        CHECK(std::vector<int>(v, v + 8) ==
              std::vector<int>{x, y, z, 4, 3, 2, x % 2 + 2 * (z % 2), 4});
      }
    }
  }
}

TEST_CASE("the same texts compile for GPUs, without spills") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    for (std::string_view text : {test::add_text, test::softmax_text, test::matmul_text}) {
      const nvrtc::Result result = nvrtc::compile(
          {.source = device::prelude(device::Half::cuda, text) + std::string(text), .arch = arch});
      INFO(result.log);
      REQUIRE(result.ok);
      const Resources resources = nvrtc::parse_log(result.log);
      CHECK(resources.warnings.empty());
      CHECK(resources.registers > 0);
    }
  }
}
