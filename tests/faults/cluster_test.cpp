// Clusters whose blocks touch each other's memory wrongly: each kernel is correct with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

namespace {

// A cluster of two blocks; `mine` and `theirs` are the same word in this block and in the other.
SmallKernel pair(const std::string& body) {
  SmallKernel k(
      R"(  const u32 mine = pl::shared_base() + 64, rank = pl::cluster_rank(), t = pl::thread();
  const u32 theirs = pl::mapa(mine, rank ^ 1);
  u32 v = rank;
  pl::name_shared(mine, 4, "word");
)" + body);
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  return k;
}

}  // namespace

TEST_CASE("memory of a block touched before a cluster barrier may not be there yet") {
  SmallKernel k = pair(R"(
  if (!fault) pl::cluster_sync();
  if (t == 0) pl::store_cluster(theirs, &v);  // touch
  pl::cluster_sync();)");
  check_fault(k, {"touch"},
              {"thread 0 of block (0, 0, 0)",
               "touches shared memory of block (1, 0, 0), which may not have started: no cluster "
               "barrier has come before"});
}

TEST_CASE("memory of a block touched without a cluster barrier after may be gone") {
  SmallKernel k = pair(R"(
  pl::cluster_sync();
  if (t == 0) pl::store_cluster(theirs, &v);  // touch
  if (!fault) pl::cluster_sync();)");
  check_fault(
      k, {"touch"},
      {"thread 0 of block (1, 0, 0)", "touches shared memory of block (0, 0, 0), which has ended"});
}

TEST_CASE("a read of what another block writes without a cluster barrier between is a race") {
  SmallKernel k = pair(R"(
  if (t == 0) pl::store_shared(mine, &v);  // write
  pl::cluster_sync();
  if (fault && t == 0) pl::store_shared(mine, &v);  // write again
  if (t == 5) pl::load_cluster(&v, theirs);  // read
  pl::cluster_sync();)");
  k.fault = 0;
  CHECK(k.report() == "");
  k.fault = 1;
  const test::Told told(k.report());
  INFO(told.all);
  CHECK(told.says("race: the "));
  CHECK(told.says(" of word by thread "));
  CHECK(told.says("emitted line " + std::to_string(k.line("write again")) + ":"));
  CHECK(told.says("emitted line " + std::to_string(k.line("read")) + ":"));
}

TEST_CASE("a relaxed arrival at the cluster's barrier orders nothing") {
  SmallKernel k = pair(R"(
  pl::cluster_sync();
  if (t == 0) pl::store_shared(mine, &v);  // write
  if (fault) pl::cluster_arrive_relaxed();
  else pl::cluster_arrive();
  pl::cluster_wait();
  if (t == 0) pl::load_cluster(&v, theirs);  // read
  pl::cluster_sync();)");
  check_fault(k, {"read", "write"},
              {"race: the read of word by thread 0 of block (0, 0, 0)",
               "is not ordered with the write by thread 0 of block (1, 0, 0)"});
}

TEST_CASE("a rank that the cluster does not have is reported") {
  SmallKernel k = pair(R"(
  if (t == 0) (void)pl::mapa(mine, fault ? 2 : 1);  // map)");
  check_fault(k, {"map"}, {"maps an address to rank 2 of 2 blocks"});
}

TEST_CASE("an address of the cluster in a function of the block is reported, and the reverse") {
  SmallKernel k = pair(R"(
  pl::cluster_sync();
  if (t == 0) pl::store_shared(fault == 1 ? pl::mapa(mine, rank) : mine, &v);  // plain
  if (t == 0) pl::store_cluster(fault == 2 ? mine : pl::mapa(mine, rank), &v);  // cluster
  pl::cluster_sync();)");
  check_fault(
      k, {"plain"},
      {"writes shared memory by an address of mapa; only the functions on clusters take one"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("cluster")},
                   {"writes another block's shared memory by an address that is not mapa's"});
}

TEST_CASE("memory of another block outside its end, or off its alignment, is reported") {
  SmallKernel k = pair(R"(
  pl::cluster_sync();
  if (t == 0) pl::store_cluster(theirs + (fault == 1 ? 4096 : 2 * (fault == 2)), &v);  // touch
  pl::cluster_sync();)");
  check_fault(
      k, {"touch"},
      {"writes 4 bytes at offset 4160 of the 4096 bytes of shared memory of block (1, 0, 0): "
       "outside, or no multiple of 4"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("touch")},
                   {"writes 4 bytes at offset 66 of the 4096 bytes"});
}

TEST_CASE("an asynchronous store completes on a barrier of the block that it writes") {
  SmallKernel k = pair(R"(
  const u32 bar = mine + 64;
  if (t == 0) {
    pl::name_shared(bar, 8, "bar");
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 4);
  }
  pl::cluster_sync();
  if (t == 0) pl::store_async(theirs, &v, pl::mapa(bar, fault == 1 ? rank : rank ^ 1));  // store
  if (fault != 2) pl::mbarrier_wait_cluster(bar, 0);
  pl::load_shared_padded(&v, mine, t == 3);  // read
  pl::cluster_sync();)");
  check_fault(k, {"store"}, {"stores to one block and completes on a barrier of another"});
  k.fault = 2;
  const test::Told told(k.report());
  INFO(told.all);
  CHECK(told.says("race: the "));
  CHECK(told.says("by store_async of thread 0 of block ("));
  CHECK(told.says("emitted line " + std::to_string(k.line("read")) + ":"));
}

TEST_CASE("a multicast to a block that the cluster does not have is reported") {
  std::vector<std::uint32_t> x(64);
  SmallKernel k = pair(R"(
  const u32 bar = mine + 64;
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 64);
  }
  pl::cluster_sync();
  if (rank == 0 && t == 0) pl::bulk_load_multicast(pl::shared_base(), x, 64, bar, fault ? 7 : 3);  // send
  pl::mbarrier_wait(bar, 0);
  pl::cluster_sync();)");
  k.reads("u32", "x", x);
  check_fault(k, {"send"}, {"sends to blocks 0b111 of a cluster of 2"});
}

TEST_CASE("a multicast to no block delivers nothing and is reported") {
  std::vector<std::uint32_t> x(64);
  SmallKernel k = pair(R"(
  const u32 bar = mine + 64;
  if (t == 0) {
    pl::name_shared(bar, 8, "bar");
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 64);
  }
  pl::cluster_sync();
  if (rank == 0 && t == 0) pl::bulk_load_multicast(pl::shared_base(), x, 64, bar, fault ? 0 : 3);  // send
  pl::mbarrier_wait(bar, 0);  // wait
  pl::cluster_sync();)");
  k.reads("u32", "x", x);
  check_fault(k, {"send", "wait", "wait"},
              {"thread 0 of block (0, 0, 0)",
               "sends to no block: its mask is 0, nothing is copied and no bytes complete",
               "0 of 1 arrivals and 64 bytes outstanding"},
              2);
}

TEST_CASE("the halves of a cluster barrier come in turn") {
  SmallKernel k = pair(R"(
  if (fault != 2) pl::cluster_arrive();
  if (fault == 1) pl::cluster_arrive();  // arrive
  pl::cluster_wait();  // wait)");
  check_fault(k, {"arrive"},
              {"arrives at the cluster's barrier twice without cluster_wait between"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("wait")},
                   {"waits at the cluster's barrier without cluster_arrive"});
}

TEST_CASE("a bulk copy between blocks that goes to its own block is reported") {
  SmallKernel k = pair(R"(
  const u32 bar = mine + 64, to = fault ? rank : rank ^ 1;
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 16);
    const u32 four[4] = {1, 2, 3, 4};
    pl::store_shared<4>(mine - 64, four);
    pl::fence_async_shared();
  }
  pl::cluster_sync();
  if (t == 0) pl::bulk_copy_cluster(pl::mapa(mine + 128, to), mine - 64, 16, pl::mapa(bar, to));  // copy
  pl::mbarrier_wait_cluster(bar, 0);
  pl::cluster_sync();)");
  check_fault(k, {"copy"},
              {"copies to its own block's shared memory: bulk_copy_cluster goes to another block"});
}

TEST_CASE("an asynchronous store in a cluster of one block is reported") {
  const char* const body = R"(
  const u32 bar = mine + 64, to = pl::cluster_size() - 1 - rank;
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 4);
  }
  pl::cluster_sync();
  if (t == 0) pl::store_async(pl::mapa(mine, to), &v, pl::mapa(bar, to));  // store
  pl::mbarrier_wait_cluster(bar, 0);
  pl::cluster_sync();)";
  const char* const begin = R"(
  const u32 mine = pl::shared_base() + 64, rank = pl::cluster_rank(), t = pl::thread();
  u32 v = rank;)";
  SmallKernel k(std::string(begin) + body);
  test::check_told(k.report(), {k.line("store")},
                   {"calls store_async, which needs more than one block in the cluster"});
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  CHECK(k.report() == "");
}
