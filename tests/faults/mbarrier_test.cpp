// Misused mbarriers: each kernel is correct with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::check_told;
using test::SmallKernel;

namespace {

// `body` after one thread made the barrier `bar`, with `count` arrivals, and all know of it.
SmallKernel with_barrier(const std::string& body, const std::string& count = "1") {
  return SmallKernel(
      R"(  const u32 smem = pl::shared_base(), bar = smem + 1024, t = pl::thread(), w = pl::warpgroup();
  if (w == 0 && t == 0) {
    pl::name_shared(bar, 8, "bar");
    pl::mbarrier_init(bar, )" +
      count + R"();  // init
    pl::fence_mbarrier_init();
  }
  pl::block_sync();
)" + body);
}

}  // namespace

TEST_CASE("an arrival at what is no barrier is reported") {
  SmallKernel k = with_barrier(R"(
  if (t == 0) pl::mbarrier_arrive(fault ? bar + 8 : bar);  // arrive
  pl::mbarrier_wait(bar, 0);)");
  check_fault(k, {"arrive"},
              {"thread 0 of block (0, 0, 0) (warpgroup 0, warp 0, lane 0) arrives at shared memory "
               "at offset 1032, which is no mbarrier: nobody has called mbarrier_init on it"});
}

TEST_CASE("more arrivals than a phase expects are reported with its counts") {
  SmallKernel k = with_barrier(R"(
  if (t == 0) pl::mbarrier_arrive(bar, fault ? 3 : 2);  // arrive
  pl::mbarrier_wait(bar, 0);)",
                               "2");
  check_fault(k, {"arrive"},
              {"arrives 3 times at bar, which waits for 2 of 2 arrivals and 0 bytes in phase 0"});
}

TEST_CASE("an arrival that counts for nobody is reported") {
  SmallKernel k = with_barrier(R"(
  if (t == 0) pl::mbarrier_arrive(bar, fault ? 0 : 1);  // arrive
  pl::mbarrier_wait(bar, 0);)");
  check_fault(k, {"arrive"}, {"arrives 0 times at bar: 1 to 1048575"});
}

TEST_CASE("a barrier made twice is reported with both lines") {
  SmallKernel k = with_barrier(R"(
  if (t == 0 && fault) pl::mbarrier_init(bar, 1);  // again)");
  check_fault(k, {"again", "init"}, {"makes bar an mbarrier twice", "the first time"});
}

TEST_CASE("a barrier with a count that does not fit is reported") {
  SmallKernel k = with_barrier("", "fault ? 0 : 1");
  check_fault(k, {"init"}, {"gives bar a count of 0: 1 to 1048575"});
}

TEST_CASE("a store over a live barrier is reported, one over a barrier that was ended is not") {
  SmallKernel k = with_barrier(R"(
  if (t == 0) {
    const u32 zero = 0;
    if (!fault) pl::mbarrier_inval(bar);
    pl::store_shared(bar + 4, &zero);  // overwrite
  })");
  check_fault(k, {"overwrite"}, {"thread 0 ", "overwrites an mbarrier, bar+4"});
}

TEST_CASE("a copy over a live barrier is reported") {
  std::vector<std::uint32_t> x(64);
  SmallKernel k = with_barrier(R"(
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 128);
    pl::bulk_load(fault ? bar - 64 : smem, x, 128, bar);  // copy
  }
  pl::mbarrier_wait(bar, 0);)");
  k.reads("u32", "x", x);
  check_fault(
      k, {"copy", "init", "copy"},
      {"missing fence: the write of bar by bulk_load of thread 0",
       "thread 0 of block (0, 0, 0) (warpgroup 0, warp 0, lane 0) overwrites an mbarrier, bar"},
      2);
}

TEST_CASE("a barrier that was ended is none") {
  SmallKernel k = with_barrier(R"(
  if (t == 0) pl::mbarrier_arrive(bar);
  pl::mbarrier_wait(bar, 0);
  pl::warpgroup_sync();
  if (t == 0) {
    if (fault) pl::mbarrier_inval(bar);
    pl::mbarrier_arrive(bar);  // arrive
  })");
  check_fault(k, {"arrive"}, {"arrives at bar, which is no mbarrier"});
}

TEST_CASE("a thread that sleeps through phases is reported") {
  SmallKernel k = with_barrier(R"(
  if (t < 32) pl::mbarrier_wait(bar, 0);  // wait
  else if (t == 32) {
    pl::mbarrier_arrive(bar);
    if (fault) pl::mbarrier_arrive(bar);
  })");
  check_fault(k, {"wait"}, {"thread 0 ", "sleeps through 2 phases of bar"});
}

TEST_CASE("a thread that waits for phases and tells nobody may be overrun") {
  // Where it fails the consumer comes in time, as it happens.
  SmallKernel k = with_barrier(R"(
  const u32 told = bar + 8;
  if (w == 0 && t == 0) {
    pl::mbarrier_init(told, 1);
    pl::fence_mbarrier_init();
  }
  pl::block_sync();
  for (u32 i = 0; i < 3; ++i) {
    if (w == 0) {
      if (t == 0) pl::mbarrier_arrive(bar);
      if (t == 0 && !fault) pl::mbarrier_wait(told, i % 2);
      (void)pl::shuffle_xor(t, 1);
    } else if (t == 0) {
      while (!pl::mbarrier_test_wait(bar, i % 2)) {}  // wait
      if (!fault) pl::mbarrier_arrive(told);
    }
  })");
  k.warpgroups = 2;
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    CHECK(k.report(options) == "");
  }
  check_fault(k, {"wait"},
              {"race: thread 128 ",
               "waits for phase 0 of bar, and phase 1 ends without an arrival "
               "that comes after: it might have missed both"});
}

TEST_CASE("a wait for a parity that does not exist is reported") {
  SmallKernel k = with_barrier(R"(
  if (t == 0) pl::mbarrier_arrive(bar);
  pl::mbarrier_wait(bar, 2 * fault);  // wait)");
  check_fault(k, {"wait"}, {"waits for parity 2: 0 or 1"});
}

TEST_CASE("more bytes than a barrier can count are reported") {
  SmallKernel k = with_barrier(R"(
  if (fault && t == 0) {
    pl::mbarrier_expect_tx(bar, 1 << 19);
    pl::mbarrier_expect_tx(bar, 1 << 19);  // expect
  })");
  check_fault(k, {"expect"}, {"lets bar expect 1048576 bytes, at most 1048575 fit"});
}

TEST_CASE("a block that ends while a barrier expects bytes is reported") {
  SmallKernel k = with_barrier(R"(
  if (fault && t == 0) pl::mbarrier_expect_tx(bar, 64);)");
  check_fault(k, {"init"}, {"block (0, 0, 0) ends while bar still expects 64 bytes"});
}

TEST_CASE("a copy that nobody waits for before the block ends is reported") {
  std::vector<std::uint32_t> x(64);
  SmallKernel k = with_barrier(R"(
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 128);
    pl::bulk_load(smem, x, 128, bar);  // copy
    if (!fault) pl::mbarrier_wait(bar, 0);
  })");
  k.reads("u32", "x", x);
  check_fault(k, {"copy"}, {"block (0, 0, 0) ends and nobody has waited on bar for this copy"});
}

TEST_CASE("a deadlock says who waits on which barrier for which phase, and who has returned") {
  SmallKernel k = with_barrier(R"(
  if (t < 64) {
    if (t == 0) pl::mbarrier_arrive(bar, fault ? 3 : 4);
    pl::mbarrier_wait(bar, 0);  // first
  } else if (t < 96 && fault) {
    pl::warp_sync();
    if (t < 80) pl::warp_sync();  // second
  })",
                               "4");
  check_fault(k, {"second", "first"},
              {"deadlock: of 128 threads 48 have returned",
               "64 of block (0, 0, 0) (0 to 63) wait in mbarrier_wait for parity 0 of bar (phase "
               "0: 1 of 4 arrivals and 0 bytes outstanding)",
               "16 of block (0, 0, 0) (64 to 79) wait in warp_sync"});
}

TEST_CASE("threads that ask again and again for what cannot come are a livelock") {
  SmallKernel k = with_barrier(R"(
  if (t == 0) {
    if (!fault) pl::mbarrier_arrive(bar);
    while (!pl::mbarrier_test_wait(bar, 0)) {  // ask
    }
  })");
  check_fault(k, {"ask"}, {"asks again and again while no thread makes progress (a livelock;"});
}

TEST_CASE("data behind a barrier is ordered for those who waited on it and no others") {
  SmallKernel k = with_barrier(R"(
  u32 v = 7;
  if (t == 0) {
    pl::store_shared(smem, &v);  // write
    pl::mbarrier_arrive(bar);
  } else if (t == 64) {
    if (!fault) pl::mbarrier_wait(bar, 0);
    pl::load_shared_padded(&v, smem);  // read
  })");
  check_fault(k, {"read", "write"},
              {"race: the read of shared memory at offset 0 by thread 64 ",
               "is not ordered with the write by thread 0 "});
}
