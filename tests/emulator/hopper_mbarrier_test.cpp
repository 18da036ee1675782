// mbarriers: counts, phases and the ways to wait, whatever runs first.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

// Runs it under every policy; `o` must then be `expected`.
void check_everywhere(const SmallKernel& k, Words& o, const Words& expected) {
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    o.assign(o.size(), 0xdead);
    k.run(options);
    REQUIRE(o == expected);
  }
}

constexpr const char* head = R"(
  const u32 smem = pl::shared_base(), bar = smem + 1024, t = pl::thread();
)";

}  // namespace

TEST_CASE("a phase ends with its last arrival, and the next begins") {
  Words o(1);
  SmallKernel k(std::string(head) + R"(
  if (t == 0) {
    pl::mbarrier_init(bar, 96);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  u32 sum = 0;
  for (u32 round = 0; round < 5; ++round) {
    if (t >= 32) {
      const u32 v = 100 * round + t;
      pl::store_shared(smem + 4 * t, &v);
      if (t == 32) pl::mbarrier_arrive(bar, 32);
      if (t >= 64) pl::mbarrier_arrive(bar);
    }
    if (t < 32) {
      u32 v;
      pl::mbarrier_wait(bar, round % 2);
      pl::load_shared(&v, smem + 4 * (64 + t));
      sum += v;
    }
    pl::warpgroup_sync();
  }
  for (u32 x = 1; x < 32; x *= 2) sum += pl::shuffle_xor(sum, x);
  if (t == 0) pl::store_global(o, &sum);)");
  k.writes("u32", "o", o);
  check_everywhere(k, o, {5 * (64 + 95) * 16 + 32 * 100 * 10});
}

TEST_CASE("asking does not wait: a fresh barrier has passed parity 1 and not parity 0") {
  Words o(6);
  SmallKernel k(std::string(head) + R"(
  if (t != 0) return;
  pl::mbarrier_init(bar, 2);
  pl::fence_mbarrier_init();
  u32 v[6];
  v[0] = pl::mbarrier_test_wait(bar, 0);
  v[1] = pl::mbarrier_test_wait(bar, 1);
  pl::mbarrier_arrive(bar);
  v[2] = pl::mbarrier_try_wait(bar, 0);
  pl::mbarrier_arrive(bar);
  v[3] = pl::mbarrier_try_wait(bar, 0);
  v[4] = pl::mbarrier_test_wait(bar, 1);
  pl::mbarrier_arrive(bar, 2);
  v[5] = pl::mbarrier_test_wait(bar, 1);
  for (i32 i = 0; i < 6; ++i) pl::store_global(o + i, &v[i]);)");
  k.writes("u32", "o", o);
  check_everywhere(k, o, {0, 1, 0, 1, 0, 1});
}

TEST_CASE("threads that ask in a loop see the phase end") {
  Words o(128);
  SmallKernel k(std::string(head) + R"(
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  u32 v = 77;
  if (t == 127) {
    pl::store_shared(smem, &v);
    pl::mbarrier_arrive(bar);
  }
  if (t % 2 == 0) while (!pl::mbarrier_try_wait(bar, 0)) {}
  else while (!pl::mbarrier_test_wait(bar, 0)) {}
  pl::load_shared(&v, smem);
  pl::store_global(o + t, &v);)");
  k.writes("u32", "o", o);
  check_everywhere(k, o, Words(128, 77));
}

TEST_CASE("expected bytes hold a phase open until copies have brought them") {
  Words x(512), o(512);
  for (std::uint32_t i = 0; i < 512; ++i) x[i] = 3 * i;
  SmallKernel k(std::string(head) + R"(
  if (t == 0) {
    pl::mbarrier_init(smem + 2048, 2);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  if (t == 0) {
    pl::mbarrier_expect_tx(smem + 2048, 1024);
    pl::bulk_load(smem, x, 1024, smem + 2048);
    pl::mbarrier_arrive(smem + 2048);
  } else if (t == 32) {
    pl::mbarrier_arrive_expect_tx(smem + 2048, 1024);
    pl::bulk_load<pl::evict_first>(smem + 1024, x + 256, 1024, smem + 2048);
  }
  pl::mbarrier_wait(smem + 2048, 0);
  u32 v[4];
  pl::load_shared<4>(v, smem + 16 * t);
  pl::store_global<4>(o + 4 * t, v);)");
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_everywhere(k, o, x);
}

TEST_CASE("bytes may arrive before they are expected") {
  Words x(64), o(1);
  SmallKernel k(std::string(head) + R"(
  if (t != 0) return;
  pl::mbarrier_init(bar, 1);
  pl::fence_mbarrier_init();
  pl::bulk_load(smem, x, 256, bar);
  pl::mbarrier_expect_tx(bar, 256);
  pl::mbarrier_arrive(bar);
  pl::mbarrier_wait(bar, 0);
  u32 v;
  pl::load_shared(&v, smem + 252);
  pl::store_global(o, &v);)");
  x[63] = 5;
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_everywhere(k, o, {5});
}

TEST_CASE("a barrier that was ended leaves ordinary memory and may be made again") {
  Words o(2);
  SmallKernel k(std::string(head) + R"(
  if (t != 0) return;
  u32 v[2] = {7, 9};
  pl::mbarrier_init(bar, 1);
  pl::mbarrier_arrive(bar);
  pl::mbarrier_inval(bar);
  pl::store_shared<2>(bar, v);
  pl::load_shared<2>(v, bar);
  pl::store_global<2>(o, v);
  pl::mbarrier_init(bar, 3);
  pl::mbarrier_arrive(bar, 3);
  pl::mbarrier_wait(bar, 0);)");
  k.writes("u32", "o", o);
  check_everywhere(k, o, {7, 9});
}

TEST_CASE("other blocks arrive and expect bytes at a barrier of the cluster") {
  Words o(4);
  SmallKernel k(std::string(head) + R"(
  const u32 rank = pl::cluster_rank();
  if (t == 0) {
    pl::mbarrier_init(bar, 8);
    pl::fence_mbarrier_init();
  }
  pl::cluster_sync();
  if (t < 4) {
    const u32 theirs = pl::mapa(bar, t), at = pl::mapa(smem + 4 * rank, t), v = 10 * rank + t;
    pl::mbarrier_arrive_cluster(theirs);
    pl::mbarrier_expect_tx_cluster(theirs, 4);
    pl::store_async(at, &v, theirs);
    pl::mbarrier_arrive_expect_tx_cluster(theirs, 0);
  }
  pl::mbarrier_wait_cluster(bar, 0);
  if (t == 0) {
    u32 v[4];
    pl::load_shared<4>(v, smem);
    v[0] += v[1] + v[2] + v[3];
    pl::store_global(o + rank, v);
  }
  pl::cluster_sync();)");
  k.grid = {4, 1, 1};
  k.cluster = {4, 1, 1};
  k.writes("u32", "o", o);
  check_everywhere(k, o, {60, 64, 68, 72});
}
