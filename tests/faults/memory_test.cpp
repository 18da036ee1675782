// Races of plain and atomic accesses, within a block and between blocks: each kernel is correct
// with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

TEST_CASE("two warps that exchange shared memory without a barrier race") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  u32 v = t;
  pl::name_shared(smem, 512, "exchange");
  pl::store_shared(smem + 4 * t, &v);
  pl::warpgroup_sync();
  v = 2 * t;
  pl::store_shared(smem + 4 * t, &v);  // write
  if (fault) pl::warp_sync();
  else pl::warpgroup_sync();
  pl::load_shared(&v, smem + 4 * (t ^ 64));  // read)");
  check_fault(
      k, {"read", "write"},
      {"race: the read of exchange", "by thread ", "is not ordered with the write by thread "});
}

TEST_CASE("a race names both of the user's lines") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  pl::store_shared(smem + 4 * t, &t);  // write
  if (t == 64) pl::store_shared(smem + 4 * (t + fault), &t);  // again)");
  k.fault = 1;
  const std::string told = k.report();
  INFO(told);
  for (const char* marker : {"write", "again"}) {
    CHECK(told.find("\n  at user.cpp:" + std::to_string(1000 + k.line(marker))) != told.npos);
  }
}

TEST_CASE("neighbouring halves of a word belong to different threads") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  u16 v = t;
  pl::store_shared(smem + 2 * t, &v);  // write
  pl::load_shared(&v, smem + 2 * (fault && t == 77 ? 76 : t));  // read)");
  check_fault(k, {"read", "write"},
              {"race: the read of shared memory at offset 152 by thread 77 ",
               "is not ordered with the write by thread 76 "});
}

TEST_CASE("a word that nobody wrote is reported with its name") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  u32 v = t;
  pl::name_shared(smem, 512, "sums", 2);
  pl::store_shared(smem + 4 * t, &v, !fault || t != 9);
  pl::warpgroup_sync();
  pl::load_shared(&v, smem + 4 * (t ^ 1));  // read)");
  check_fault(
      k, {"read"},
      {"thread 8 ", "reads 4 bytes of shared memory at offset 36 that nobody wrote (sums[2]+36)"});
}

TEST_CASE("two threads of a block that write one element of an output race") {
  std::vector<std::uint32_t> o(256);
  SmallKernel k(R"(
  const u32 t = pl::thread();
  pl::store_global(o + (fault && t == 40 ? 39 : t), &t);  // write)");
  k.writes("u32", "o", o);
  check_fault(k, {"write", "write"},
              {"race: the write of element 39 of o by thread 40 ",
               "is not ordered with the write by thread 39 "});
}

TEST_CASE("two blocks that store one box are the user's error") {
  std::vector<std::uint32_t> o(256);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  pl::store_shared(smem + 4 * t, &t);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  if (t == 0) {
    pl::bulk_store(o + (fault ? 124 : 128) * pl::block_x(), smem, 512);  // store
    pl::bulk_commit();
    pl::bulk_wait_read<0>();
  })");
  k.grid = {2, 1, 1};
  k.writes("u32", "o", o, true);
  k.fault = 0;
  CHECK(k.report() == "");
  k.fault = 1;
  test::check_told(k.report(), {}, {"blocks (0, 0, 0) and (1, 0, 0) both write element 124 of o"});
}

TEST_CASE("atomics and plain accesses of one element race") {
  std::vector<std::uint32_t> o(4);
  SmallKernel k(R"(
  const u32 t = pl::thread();
  u32 v = 1;
  pl::atomic_add(o, 1u);  // count
  if (!fault) pl::warpgroup_sync();
  if (t == 7) pl::load_global(&v, o);  // read)");
  k.writes("u32", "o", o);
  k.fault = 0;
  CHECK(k.report() == "");
  k.fault = 1;
  const test::Told told(k.report());
  INFO(told.all);
  CHECK(told.says("race: the "));
  const bool tells_both = told.says("atomic access of element 0 of o by thread ") ||
                          told.says("atomic access by thread ");
  CHECK(tells_both);
  CHECK(told.says("emitted line " + std::to_string(k.line("count")) + ":"));
  CHECK(told.says("emitted line " + std::to_string(k.line("read")) + ":"));
}

TEST_CASE("an atomic on shared memory that nobody wrote is reported") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  u32 v = 0;
  if (!fault && t == 0) pl::store_shared(smem, &v);
  pl::warpgroup_sync();
  pl::atomic_add_shared(smem, 1u);  // count)");
  check_fault(k, {"count"}, {"updates 4 bytes of shared memory at offset 0 that nobody wrote"});
}

TEST_CASE("a block that reads what another wrote without acquiring it races") {
  std::vector<std::uint32_t> data(128), flag(1), o(128);
  SmallKernel k(R"(
  const u32 t = pl::thread();
  u32 v = t;
  if (pl::block_x() == 0) {
    pl::store_global(data + t, &v);  // write
    pl::warpgroup_sync();
    if (t == 0) {
      if (fault == 2) pl::atomic_exchange(flag, 1u);
      else pl::store_release(flag, 1u);
    }
  } else {
    if (t == 0) {
      if (fault == 1) while (pl::atomic_or(flag, 0u) == 0) {}
      else while (pl::load_acquire(flag) == 0) {}
    }
    pl::warpgroup_sync();
    pl::load_global(&v, data + t);  // read
    pl::store_global(o + t, &v);
  })");
  k.grid = {2, 1, 1};
  k.writes("u32", "data", data).writes("u32", "flag", flag).writes("u32", "o", o);
  const auto checked = [&](int fault) {
    flag[0] = 0;
    k.fault = fault;
    return k.report();
  };
  CHECK(checked(0) == "");
  for (const int fault : {1, 2}) {
    INFO(fault);
    test::check_told(checked(fault), {k.line("read"), k.line("write")},
                     {"race: the read of element ", " of data by thread ", " of block (1, 0, 0)",
                      "is not ordered with the write by thread ", " of block (0, 0, 0)"});
  }
}

TEST_CASE("a block races with the one before it in its place, however many were before") {
  std::vector<std::uint32_t> x(200), turn(4);
  SmallKernel k(R"(
  const i32 b = pl::block_x(), place = b % 4;
  if (pl::warpgroup() == 0 && pl::thread() == 0) {
    if (fault == 2 && b >= 140) while (pl::load_acquire(turn + place) + 4 < b) {}
    const u32 v = b;
    pl::store_global(x + (fault && b >= 136 ? 160 + place : b), &v);  // write
    pl::store_release(turn + place, v);
  })");
  k.warpgroups = 8;  // 2^17 agents are 127 such blocks
  k.grid = {160, 1, 1};
  k.writes("u32", "x", x).writes("u32", "turn", turn);
  CHECK(k.report() == "");
  k.fault = 1;
  test::check_told(k.report(), {k.line("write"), k.line("write")},
                   {"race: the write of element 160 of x by thread 0 of block (140, 0, 0)",
                    "is not ordered with the write by a thread of a block that had ended before"});
  k.fault = 2;
  CHECK(k.report() == "");
}

TEST_CASE("a loop on a plain load sees the store that it waits for, and races with it") {
  std::vector<std::uint32_t> flag(1);
  SmallKernel k(R"(
  u32 v = 0;
  if (pl::thread() == 0) {
    while (v == 0) {
      if (fault) pl::load_global(&v, flag);  // ask
      else v = pl::load_acquire(flag);
    }
  } else if (pl::thread() == 64) {
    v = 1;
    if (fault) pl::store_global(flag, &v);  // tell
    else pl::store_release(flag, v);
  })");
  k.writes("u32", "flag", flag);
  CHECK(k.report() == "");
  flag[0] = 0;
  k.fault = 1;
  test::check_told(k.report(), {}, {"race: the ", " of element 0 of flag by thread "});
}

TEST_CASE("a loop on several plain loads in turn sees the stores that it waits for") {
  std::vector<std::uint32_t> flags(3);
  SmallKernel k(R"(
  u32 v[3] = {}, here = 0;
  if (pl::thread() == 0) {
    pl::store_shared(pl::shared_base(), &here);
    while (v[0] + v[1] + v[2] + here < 4) {
      for (int i = 0; i < 3; ++i) pl::load_global(v + i, flags + i);  // ask
      pl::load_shared(&here, pl::shared_base());
    }
  } else if (pl::thread() % 32 == 0 && !fault) {
    v[0] = 1;
    pl::store_global(flags + pl::thread() / 32 - 1, v);
    if (pl::thread() == 96) pl::store_shared(pl::shared_base(), v);
  })");
  k.shared_bytes = 16;
  k.writes("u32", "flags", flags);
  const emulator::Options options = {.detect_races = false};
  CHECK(k.report(options) == "");
  flags = {0, 0, 0};
  k.fault = 1;
  test::check_told(k.report(options), {}, {"asks again and again while no thread makes progress"});
}

TEST_CASE("blocks that wait for a block that is not resident are a livelock") {
  std::vector<std::uint32_t> flag(1);
  SmallKernel k(R"(
  if (pl::thread() == 0) {
    pl::red_add<pl::release>(flag, 1u);
    const u32 all = fault ? pl::grid_x() : 1;
    while (pl::load_acquire(flag) < all) {}  // wait
  })");
  k.grid = {6, 1, 1};
  k.writes("u32", "flag", flag);
  CHECK(k.report() == "");
  flag[0] = 0;
  k.fault = 1;
  CHECK(k.report() == "");
  flag[0] = 0;
  test::check_told(k.report({.resident_clusters = 4}), {k.line("wait")},
                   {"asks again and again while no thread makes progress",
                    "blocks that are not resident cannot answer"});
}
