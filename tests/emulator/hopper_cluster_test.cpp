// Clusters: ranks, the memory of other blocks, and the two halves of their barrier.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

void check_everywhere(const SmallKernel& k, Words& o, const Words& expected) {
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    o.assign(o.size(), 0xdead);
    k.run(options);
    REQUIRE(o == expected);
  }
}

}  // namespace

TEST_CASE("ranks run over x, then y, then z of a cluster") {
  Words o(64);
  SmallKernel k(R"(
  const u32 v = 100 * pl::cluster_size() + pl::cluster_rank();
  const i32 at = pl::block_x() + pl::grid_x() * (pl::block_y() + pl::grid_y() * pl::block_z());
  if (pl::thread() == 0) pl::store_global(o + at, &v);)");
  k.writes("u32", "o", o);
  struct Dims {
    std::array<int, 3> cluster;
  };
  for (const Dims& dims : {Dims{{1, 1, 1}}, Dims{{4, 1, 1}}, Dims{{1, 2, 1}}, Dims{{2, 2, 1}},
                           Dims{{1, 1, 4}}, Dims{{2, 2, 2}}}) {
    const auto [x, y, z] = dims.cluster;
    CAPTURE(x, y, z);
    k.grid = {4, 4, 4};
    k.cluster = dims.cluster;
    k.run();
    for (int i = 0; i < 64; ++i) {
      const int bx = i % 4, by = i / 4 % 4, bz = i / 16;
      const int rank = bx % x + x * (by % y + y * (bz % z));
      REQUIRE(o[static_cast<std::size_t>(i)] == static_cast<std::uint32_t>(100 * x * y * z + rank));
    }
  }
}

TEST_CASE("blocks load and store each other's memory in every width") {
  Words o(8 * 128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), rank = pl::cluster_rank(), size = pl::cluster_size(), t = pl::thread();
  const u32 next = pl::mapa(smem, (rank + 1) % size), own = pl::mapa(smem, rank);
  const u16 half = u16(1000 * rank + t);
  const u32 pair[2] = {rank, t}, four[4] = {rank, t, 2 * t, 3 * t};
  pl::cluster_sync();
  pl::store_cluster(next + 2 * t, &half);
  pl::store_cluster<2>(next + 512 + 8 * t, pair);
  pl::store_cluster<4>(own + 2048 + 16 * t, four);
  pl::cluster_sync();
  u16 h;
  u32 p[2], f[4];
  pl::load_shared(&h, smem + 2 * t);                        // of rank - 1
  pl::load_cluster<2>(p, next + 512 + 8 * t);               // of rank
  pl::load_cluster<4>(f, next + 2048 + 16 * (127 - t));     // of rank + 1
  const u32 v = h + 10000 * p[0] + 100000 * f[0] + (p[1] - t) + (f[3] - 3 * (127 - t));
  pl::store_global(o + 128 * pl::block_x() + t, &v);
  pl::cluster_sync();)");
  k.grid = {8, 1, 1};
  k.cluster = {4, 1, 1};
  k.shared_bytes = 4096;
  k.writes("u32", "o", o);
  Words expected;
  for (std::uint32_t block = 0; block < 8; ++block) {
    for (std::uint32_t t = 0; t < 128; ++t) {
      const std::uint32_t rank = block % 4;
      expected.push_back(1000 * ((rank + 3) % 4) + t + 10000 * rank + 100000 * ((rank + 1) % 4));
    }
  }
  check_everywhere(k, o, expected);
}

TEST_CASE("work fits between the halves of a cluster barrier") {
  Words o(2);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), rank = pl::cluster_rank(), t = pl::thread();
  u32 v = 7 + rank;
  if (t == 0) pl::store_shared(smem, &v);
  pl::cluster_arrive();
  u32 private_work = pl::shuffle_xor(t, 1);
  pl::cluster_wait();
  if (t == 0) pl::load_cluster(&v, pl::mapa(smem, rank ^ 1));
  pl::cluster_arrive();
  if (t == 0) pl::store_global(o + rank, &v);
  pl::cluster_wait();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes("u32", "o", o);
  check_everywhere(k, o, {8, 7});
}

TEST_CASE("barriers made before fence_mbarrier_init may be used behind a relaxed arrival") {
  Words o(2);
  SmallKernel k(R"(
  const u32 bar = pl::shared_base(), rank = pl::cluster_rank(), t = pl::thread();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  pl::cluster_arrive_relaxed();
  pl::cluster_wait();
  if (t == 33) pl::mbarrier_arrive_cluster(pl::mapa(bar, rank ^ 1));
  pl::mbarrier_wait_cluster(bar, 0);
  if (t == 0) pl::store_global(o + rank, &rank);
  pl::cluster_sync();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes("u32", "o", o);
  check_everywhere(k, o, {0, 1});
}

TEST_CASE("a fence before a relaxed arrival releases what came before it") {
  Words o(2);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), rank = pl::cluster_rank(), t = pl::thread();
  u32 v = 7 + rank;
  if (t == 0) pl::store_shared(smem, &v);
  pl::fence_cluster();
  pl::cluster_arrive_relaxed();
  pl::cluster_wait();
  if (t == 0) pl::load_cluster(&v, pl::mapa(smem, rank ^ 1));
  if (t == 0) pl::store_global(o + rank, &v);
  pl::cluster_sync();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes("u32", "o", o);
  check_everywhere(k, o, {8, 7});
}

TEST_CASE("a thread that has returned counts as come at its cluster's barrier") {
  Words o(2);
  SmallKernel k(R"(
  if (pl::warp() == 3) return;
  pl::cluster_sync();
  const u32 v = 5;
  if (pl::thread() == 0) pl::store_global(o + pl::cluster_rank(), &v);
  pl::cluster_sync();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes("u32", "o", o);
  check_everywhere(k, o, {5, 5});
}

TEST_CASE("asynchronous stores of every width arrive with their bytes") {
  Words o(14);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 64, rank = pl::cluster_rank(), t = pl::thread();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 28);
  }
  pl::cluster_sync();
  const u32 to = pl::mapa(smem, rank ^ 1), their = pl::mapa(bar, rank ^ 1);
  const u32 v[4] = {rank + 1, rank + 2, rank + 3, rank + 4};
  if (t == 0) pl::store_async(to, v, their);
  if (t == 1) pl::store_async<2>(to + 8, v, their);
  if (t == 2) pl::store_async<4>(to + 16, v, their);
  pl::mbarrier_wait_cluster(bar, 0);
  if (t < 8 && t != 1) {
    u32 x;
    pl::load_shared(&x, smem + 4 * t);
    pl::store_global(o + 7 * rank + (t == 0 ? 0 : t - 1), &x);
  }
  pl::cluster_sync();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes("u32", "o", o);
  check_everywhere(k, o, {2, 2, 3, 2, 3, 4, 5, 1, 1, 2, 1, 2, 3, 4});
}

TEST_CASE("a bulk copy goes to another block and completes there") {
  Words o(256);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 2048, rank = pl::cluster_rank(), t = pl::thread();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 512);
  }
  const u32 v = 1000 * rank + t;
  pl::store_shared(smem + 4 * t, &v);
  pl::fence_async_shared();
  pl::cluster_sync();
  if (t == 0) pl::bulk_copy_cluster(pl::mapa(smem + 1024, rank ^ 1), smem, 512, pl::mapa(bar, rank ^ 1));
  pl::mbarrier_wait_cluster(bar, 0);
  u32 x;
  pl::load_shared(&x, smem + 1024 + 4 * t);
  pl::store_global(o + 128 * rank + t, &x);
  pl::cluster_sync();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes("u32", "o", o);
  Words expected;
  for (std::uint32_t i = 0; i < 256; ++i) expected.push_back(1000 * (1 - i / 128) + i % 128);
  check_everywhere(k, o, expected);
}
