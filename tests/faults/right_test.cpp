// Kernels in forms that are usual on Hopper and right: the emulator has nothing to say of them,
// whoever runs first. Elsewhere each faulty kernel has such a neighbour; these are ways of handing
// over that no fault needs.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

void check_silent(SmallKernel& k) {
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    CHECK(k.report(options) == "");
  }
}

Words numbers(std::size_t count) {
  Words x(count);
  std::iota(x.begin(), x.end(), 1u);
  return x;
}

/// A cluster of two blocks with 128 words at `slot` and at `other`, and barriers `full`, of one
/// arrival, and `empty`; `peer` says what lies at the same place in the other block.
SmallKernel pair(const std::string& empty_count, const std::string& body,
                 bool meets_at_end = true) {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), rank = pl::cluster_rank(), t = pl::thread();
  const u32 slot = smem + 1024, other = smem + 2048, full = smem, empty = smem + 8;
  const auto peer = [&](u32 address) { return pl::mapa(address, rank ^ 1); };
  u32 v = t;
  if (t == 0) {
    pl::mbarrier_init(full, 1);
    pl::mbarrier_init(empty, )" +
                empty_count + R"();
    pl::fence_mbarrier_init();
  }
  pl::cluster_sync();
)" + body + (meets_at_end ? "\n  pl::cluster_sync();" : ""));
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  return k;
}

}  // namespace

TEST_CASE("two groups may take turns by named barriers, of which the first opens its own") {
  Words o(128);
  SmallKernel k(R"(
  const u32 slot = pl::shared_base(), t = pl::thread();
  u32 v = 0;
  if (pl::warpgroup() == 0) {
    pl::store_shared(slot + 4 * t, &v);
    pl::barrier_arrive<4>(256);
  }
  for (u32 round = 0; round < 3; ++round) {
    if (pl::warpgroup() == 0) pl::barrier_sync<4>(256);
    else pl::barrier_sync<5>(256);
    pl::load_shared(&v, slot + 4 * t);
    v = v + 1;
    pl::store_shared(slot + 4 * t, &v);
    if (pl::warpgroup() == 0) pl::barrier_arrive<5>(256);
    else if (round < 2) pl::barrier_arrive<4>(256);
  }
  if (pl::warpgroup() == 1) pl::store_global(o + t, &v);)");
  k.warpgroups = 2;
  k.writes("u32", "o", o);
  check_silent(k);
  CHECK(o == Words(128, 6));
}

TEST_CASE("a slot in another block may be filled by copies and emptied by arrivals from there") {
  const bool by_threads = GENERATE(true, false);
  Words o(128);
  // Nobody in the other block has heard of the thread that waits for `empty` but by its copies.
  SmallKernel k = pair("1", by_threads ? R"(
  for (u32 round = 0; round < 4; ++round) {
    if (rank == 0 && t < 32) {
      if (t == 0 && round > 0) pl::mbarrier_wait_cluster(empty, (round - 1) & 1);
      if (t == 0) v = round, pl::store_async(peer(slot), &v, peer(full));
    } else if (rank == 1) {
      if (t == 0) pl::mbarrier_arrive_expect_tx(full, 4);
      pl::mbarrier_wait_cluster(full, round & 1);
      pl::load_shared(&v, slot);
      pl::store_global(o + t, &v);
      pl::warpgroup_sync();
      if (t == 0) pl::mbarrier_arrive_cluster(peer(empty));
    }
  })"
                                       : R"(
  if (rank == 0) {
    pl::store_shared(other + 4 * t, &v);
    pl::fence_async_shared();
    pl::warpgroup_sync();
  }
  for (u32 round = 0; round < 4; ++round) {
    if (rank == 0 && t == 64) {
      if (round > 0) pl::mbarrier_wait(empty, (round - 1) & 1);
      pl::bulk_copy_cluster(peer(slot), other, 512, peer(full));
    } else if (rank == 1 && t == 0) {
      pl::mbarrier_arrive_expect_tx(full, 512);
      pl::mbarrier_wait(full, round & 1);
      pl::bulk_store(o, slot, 512);
      pl::bulk_commit();
      pl::bulk_wait<0>();
      pl::mbarrier_arrive_remote(peer(empty));
    }
  })");
  k.writes("u32", "o", o);
  check_silent(k);
  CHECK(o[100] == (by_threads ? 3 : 100));
}

TEST_CASE("one block may arm the barriers of all and hear of their copies from afar") {
  Words x = numbers(512), o(256);
  SmallKernel k = pair("2", R"(
  for (u32 round = 0; round < 4; ++round) {
    if (rank == 0 && t == 96) {
      if (round > 0) pl::mbarrier_wait(empty, (round - 1) & 1);
      pl::mbarrier_arrive_expect_tx(full, 512);
      pl::mbarrier_arrive_expect_tx_cluster(peer(full), 512);
      pl::bulk_load_multicast(slot, x + 128 * round, 512, full, 3);
    }
    if (t == 0) {
      pl::mbarrier_wait(full, round & 1);
      pl::bulk_store(o + 128 * rank, slot, 512);
      pl::bulk_commit();
      pl::bulk_wait<0>();
      pl::mbarrier_arrive_remote(pl::mapa(empty, 0));
    }
  })");
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_silent(k);
  CHECK(o[255] == 512);
}

TEST_CASE("a block may end when it has heard that nobody will arrive from afar any more") {
  Words x = numbers(512), o(256);
  SmallKernel k = pair("2", R"(
  for (u32 round = 0; round < 4; ++round) {
    if (t == 96) {
      if (round > 0) pl::mbarrier_wait(empty, (round - 1) & 1);
      pl::mbarrier_arrive_expect_tx(full, 512);
      pl::bulk_load_multicast(slot + 256 * rank, x + 128 * round + 64 * rank, 256, full, 3);
    }
    if (t == 0) {
      pl::mbarrier_wait(full, round & 1);
      pl::bulk_store(o + 128 * rank, slot, 512);
      pl::bulk_commit();
      pl::bulk_wait<0>();
      pl::mbarrier_arrive(empty);
      pl::mbarrier_arrive_remote(peer(empty));
    }
  }
  // The tail of the producer, in place of a barrier of the cluster.
  if (t == 96) pl::mbarrier_wait(empty, 1);)",
                       false);
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_silent(k);
  CHECK(o[255] == 512);
}

TEST_CASE("a barrier may be armed for the next phase before its slot is free") {
  Words x = numbers(512), o(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), slot = smem + 1024, full = smem, empty = smem + 8;
  const u32 t = pl::thread(), group = pl::warpgroup();
  if (t == 0 && group == 0) {
    pl::mbarrier_init(full, 1);
    pl::mbarrier_init(empty, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(full, 512);
  }
  pl::block_sync();
  for (u32 round = 0; round < 4; ++round) {
    if (group == 1 && t == 0) {  // loads, and waits for `empty`
      if (round > 0) pl::mbarrier_wait(empty, (round - 1) & 1);
      pl::bulk_load(slot, x + 128 * round, 512, full);
    } else if (group == 0 && t == 0) {  // arms, and knows of nobody
      if (round < 3) {
        pl::mbarrier_wait(full, round & 1);
        pl::mbarrier_arrive_expect_tx(full, 512);
      }
    } else if (group == 2 && t == 0) {  // uses
      pl::mbarrier_wait(full, round & 1);
      pl::bulk_store(o, slot, 512);
      pl::bulk_commit();
      pl::bulk_wait<0>();
      pl::mbarrier_arrive(empty);
    }
  })");
  k.warpgroups = 3;
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_silent(k);
  CHECK(o[127] == 512);
}

TEST_CASE("that a named barrier has been passed may be known by what was copied thereafter") {
  Words x = numbers(512), o(256);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), slot = smem + 1024, t = pl::thread(), group = pl::warpgroup();
  if (t == 0 && group == 0) {
    pl::mbarrier_init(smem, 1);
    pl::fence_mbarrier_init();
  }
  pl::block_sync();
  for (u32 round = 0; round < 4; ++round) {
    if (group == 0) {
      if (t < 32) pl::barrier_sync<6>(288);
      if (t == 0) pl::bulk_load(slot, x + 128 * round, 512, smem);
    } else {
      // One of the users arms; nobody hears of the thread that copies.
      if (group == 1 && t == 0) pl::mbarrier_arrive_expect_tx(smem, 512);
      pl::barrier_arrive<6>(288);
      pl::mbarrier_wait(smem, round & 1);
      u32 v;
      pl::load_shared(&v, slot + 4 * t);
      pl::store_global(o + 128 * (group - 1) + t, &v);
    }
  })");
  k.warpgroups = 3;
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_silent(k);
  CHECK(o[255] == 512);
}

TEST_CASE("a pipeline of cp.async may arrive by its copies alone") {
  Words x = numbers(768), o(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread(), group = pl::warpgroup();
  const auto full = [&](u32 stage) { return smem + 8 * stage; };
  const auto empty = [&](u32 stage) { return smem + 16 + 8 * stage; };
  if (t == 0 && group == 0) {
    for (u32 stage = 0; stage < 2; ++stage) {
      pl::mbarrier_init(full(stage), 128);
      pl::mbarrier_init(empty(stage), 1);
    }
    pl::fence_mbarrier_init();
  }
  pl::block_sync();
  u32 sum = 0;
  for (u32 k = 0; k < 6; ++k) {
    const u32 stage = k & 1, parity = k >> 1 & 1, slot = smem + 1024 + 512 * stage;
    if (group == 0) {
      pl::mbarrier_wait(empty(stage), parity ^ 1);
      pl::cp_async<4>(slot + 4 * t, x + 128 * k + t);
      pl::cp_async_arrive(full(stage));
    } else {
      pl::mbarrier_wait(full(stage), parity);
      u32 v;
      pl::load_shared(&v, slot + 4 * (127 - t));
      sum = sum + v;
      pl::barrier_sync<7>(128);
      if (t == 0) pl::mbarrier_arrive(empty(stage));
    }
  }
  if (group == 0) {
    pl::cp_async_commit();
    pl::cp_async_wait<0>();
  } else {
    pl::store_global(o + t, &sum);
  })");
  k.warpgroups = 2;
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_silent(k);
  CHECK(o[127] == 6 + 128 * 15);
}

TEST_CASE("the last block to count may add what all blocks left, by either kind of order") {
  Words parts(512), count(1), o(128);
  SmallKernel k(R"(
  const u32 t = pl::thread(), smem = pl::shared_base();
  u32 v = t + u32(pl::block_x());
  pl::store_global(parts + 128 * pl::block_x() + t, &v);
  pl::warpgroup_sync();
  if (t == 0) {
    u32 before;
    if (fault == 0) {
      before = pl::atomic_add<pl::acq_rel>(count, 1u);
    } else {
      pl::fence_gpu();
      before = pl::atomic_add(count, 1u);
      pl::fence_gpu();
    }
    pl::store_shared(smem, &before);
  }
  pl::warpgroup_sync();
  u32 before, sum = 0;
  pl::load_shared(&before, smem);
  if (before == 3) {
    for (i32 i = 0; i < 4; ++i) {
      pl::load_global(&v, parts + 128 * i + t);
      sum = sum + v;
    }
    pl::store_global(o + t, &sum);
  })");
  k.grid = {4, 1, 1};
  k.writes("u32", "parts", parts).writes("u32", "count", count).writes("u32", "o", o);
  k.fault = GENERATE(0, 1);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    count[0] = 0;
    o.assign(128, 0);
    CHECK(k.report(options) == "");
    CHECK(o[5] == 26);
  }
}

TEST_CASE("groups may take turns by mbarriers, each arriving at the next one's") {
  Words o(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), slot = smem + 1024, t = pl::thread(), mine = pl::warpgroup();
  if (t == 0 && mine == 0) {
    for (u32 i = 0; i < 3; ++i) pl::mbarrier_init(smem + 8 * i, 128);
    pl::fence_mbarrier_init();
  }
  u32 v = 0;
  if (mine == 0) pl::store_shared(slot + 4 * t, &v);
  pl::block_sync();
  for (u32 round = 0; round < 3; ++round) {
    pl::mbarrier_wait(smem + 8 * mine, (mine == 0 ? round + 1 : round) & 1);
    for (u32 i = 0; i < 2; ++i) {
      pl::barrier_sync<9>(128);
      pl::load_shared(&v, slot + 4 * (127 - t));
      pl::barrier_sync<9>(128);
      v = v + 1;
      pl::store_shared(slot + 4 * t, &v);
    }
    if (round < 2 || mine < 2) pl::mbarrier_arrive(smem + 8 * ((mine + 1) % 3));
  }
  if (mine == 2) pl::store_global(o + t, &v);)");
  k.warpgroups = 3;
  k.writes("u32", "o", o);
  check_silent(k);
  CHECK(o == Words(128, 18));
}
