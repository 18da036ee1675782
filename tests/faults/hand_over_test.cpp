// Who learns of what by flags, fences and arrivals: their scopes and proxies. Each kernel is
// correct with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

/// Block 0 writes `data` and tells, another block is told and reads.
struct HandOver {
  HandOver(const std::string& tell, const std::string& be_told, const std::string& reader = "1")
      : kernel(R"(
  const u32 t = pl::thread();
  u32 v = t;
  if (pl::block_x() == 0) {
    pl::store_global(data + t, &v);  // write
    pl::warpgroup_sync();
    if (t == 0) {)" +
               tell + R"(
    }
  } else if (pl::block_x() == )" +
               reader + R"() {
    if (t == 0) {)" +
               be_told + R"(
    }
    pl::warpgroup_sync();
    pl::load_global(&v, data + t);  // read
    pl::store_global(o + t, &v);
  })") {
    kernel.grid = {2, 1, 1};
    kernel.writes("u32", "data", data).writes("u32", "flag", flag).writes("u32", "o", o);
  }
  std::string report(int fault) {
    flag[0] = 0;
    kernel.fault = fault;
    return kernel.report();
  }
  /// Its data races where the reader reads.
  void check_race(int fault, int reports) {
    INFO(fault);
    const test::Told told(report(fault));
    INFO(told.all);
    CHECK(told.reports == reports);
    CHECK(told.says("race: the read of element "));
    CHECK(told.says(" of data by thread "));
    CHECK(told.says("is not ordered with the write by thread "));
    CHECK(told.says("emitted line " + std::to_string(kernel.line("read")) + ":"));
    CHECK(told.says("emitted line " + std::to_string(kernel.line("write")) + ":"));
  }

  Words data = Words(128), flag = Words(1), o = Words(128);
  SmallKernel kernel;
};

/// A cluster of two blocks; `mine` and `theirs` are the same word in this block and in the other,
/// `bar` and `their_bar` a barrier of one arrival.
SmallKernel pair(const std::string& body) {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), rank = pl::cluster_rank(), t = pl::thread();
  const u32 mine = smem + 1024, bar = smem + 2048;
  const u32 theirs = pl::mapa(mine, rank ^ 1), their_bar = pl::mapa(bar, rank ^ 1);
  u32 v = rank;
  pl::name_shared(mine, 512, "slot");
  if (t == 0) {
    pl::name_shared(bar, 8, "bar");
    pl::mbarrier_init(bar, 1);
    pl::mbarrier_init(bar + 8, 1);
    pl::fence_mbarrier_init();
  }
  pl::cluster_sync();
)" + body + "\n  pl::cluster_sync();");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  return k;
}

}  // namespace

TEST_CASE("a flag orders blocks where both sides have the scope of the GPU") {
  HandOver h(R"(
      if (fault == 1) pl::store_release<pl::block>(flag, 1u);
      else pl::store_release(flag, 1u);)",
             R"(
      if (fault == 2) while (pl::load_acquire<pl::cluster>(flag) == 0) {}
      else while (pl::load_acquire(flag) == 0) {})");
  CHECK(h.report(0) == "");
  // The accesses of the flag race as well: they are not atomic with each other.
  h.check_race(1, 2);
  h.check_race(2, 2);
}

TEST_CASE("a fence orders what relaxed atomics tell as far as its own scope reaches") {
  HandOver h(R"(
      if (fault == 1) pl::fence_block();
      else if (fault == 2) pl::fence_cluster();
      else pl::fence_gpu();
      pl::atomic_exchange(flag, 1u);)",
             R"(
      while (pl::atomic_or(flag, 0u) == 0) {}
      if (fault == 3) pl::fence_block();
      else if (fault == 4) pl::fence_cluster();
      else pl::fence_gpu();)");
  CHECK(h.report(0) == "");
  for (const int fault : {1, 2, 3, 4}) h.check_race(fault, 1);
}

TEST_CASE("the scope of a cluster orders the blocks of a cluster and no others") {
  HandOver h(R"(
      pl::store_release<pl::cluster>(flag, 1u);)",
             R"(
      while (pl::load_acquire<pl::cluster>(flag) == 0) {})",
             "(fault ? 2 : 1)");
  h.kernel.grid = {4, 1, 1};
  h.kernel.cluster = {2, 1, 1};
  CHECK(h.report(0) == "");
  h.check_race(1, 2);
}

TEST_CASE("atomics of the block's scope by two blocks on one address race") {
  Words o(1);
  SmallKernel k(R"(
  if (pl::lane() == 0) {
    if (fault) pl::red_add<pl::relaxed, pl::block>(o, 1u);  // count
    else pl::red_add(o, 1u);
  })");
  k.grid = {2, 1, 1};
  k.writes("u32", "o", o);
  check_fault(
      k, {"count", "count"},
      {"race: the atomic access of element 0 of o by thread 0 of block (1, 0, 0)",
       "is neither ordered with nor, by its scope and proxy, atomic for the atomic access by "
       "thread "});
  k.grid = {1, 1, 1};
  CHECK(k.report() == "");
}

TEST_CASE("a red brings nothing for a later fence, an atomic with a result does") {
  HandOver h(R"(
      pl::fence_gpu();
      pl::atomic_exchange(flag, 1u);)",
             R"(
      if (fault) pl::red_add(flag, 1u);
      else while (pl::atomic_add(flag, 0u) == 0) {}
      pl::fence_gpu();)");
  CHECK(h.report(0) == "");
  h.check_race(1, 1);
}

TEST_CASE("a wait of the block's scope does not learn what another block's threads wrote") {
  SmallKernel k = pair(R"(
  if (t == 0) pl::store_cluster(theirs, &v);  // write
  if (t == 0) pl::mbarrier_arrive_cluster(their_bar);
  if (fault) pl::mbarrier_wait(bar, 0);
  else pl::mbarrier_wait_cluster(bar, 0);
  pl::load_shared(&v, mine, t == 9);  // read)");
  check_fault(
      k, {"read", "write"},
      {"race: the read of slot by thread 9 ", "is not ordered with the write by thread 0 "});
}

TEST_CASE("an arrival of the block's scope does not tell what threads wrote") {
  SmallKernel k = pair(R"(
  if (t == 0) pl::store_cluster(theirs, &v);  // write
  if (t == 0 && fault) pl::mbarrier_arrive_remote(their_bar);
  if (t == 0 && !fault) pl::mbarrier_arrive_cluster(their_bar);
  pl::mbarrier_wait_cluster(bar, 0);
  pl::load_shared(&v, mine, t == 9);  // read)");
  check_fault(
      k, {"read", "write"},
      {"race: the read of slot by thread 9 ", "is not ordered with the write by thread 0 "});
}

TEST_CASE("bytes of st.async are waited for at the scope of the cluster") {
  SmallKernel k = pair(R"(
  if (t == 0) pl::mbarrier_arrive_expect_tx(bar, 4);
  if (t == 0) pl::store_async(theirs, &v, their_bar);  // write
  if (fault) pl::mbarrier_wait(bar, 0);
  else pl::mbarrier_wait_cluster(bar, 0);
  pl::load_shared(&v, mine, t == 9);  // read)");
  check_fault(k, {"read", "write", "write"},
              {"race: the read of slot by thread 9 ",
               "is not ordered with the write by store_async of thread 0 ",
               "store_async of thread 0 of block (1, 0, 0)", "which may have ended by then"},
              2);
}

TEST_CASE("a slot freed by a copy needs no scope of the cluster, one that threads read does") {
  // Block 1 fills a slot of block 0 twice; block 0 says when it has been read.
  Words x(256), o(128);
  SmallKernel k = pair(R"(
  const u32 empty = bar + 8;
  for (u32 round = 0; round < 2; ++round) {
    if (rank == 1 && t == 0) {
      if (round == 1) pl::mbarrier_wait(empty, 0);
      pl::bulk_load_multicast(mine, x + 128 * round, 512, bar, 1);  // fill
    }
    if (rank == 0) {
      if (t == 0) pl::mbarrier_arrive_expect_tx(bar, 512);
      pl::mbarrier_wait(bar, round);
      if (fault) pl::load_shared(&v, mine + 4 * t);  // read
      pl::warpgroup_sync();
      if (t == 0) {
        pl::bulk_store(o, mine, 512);
        pl::bulk_commit();
        pl::bulk_wait<0>();
        if (round == 0) {
          if (fault == 2) pl::mbarrier_arrive_cluster(pl::mapa(empty, 1));
          else pl::mbarrier_arrive_remote(pl::mapa(empty, 1));
        }
      }
    }
  })");
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_fault(k, {"fill", "read"},
              {"race: the write of slot by bulk_load of thread 0 of block (1, 0, 0)",
               "is not ordered with the read by thread "});
  // Nor is an arrival of the right scope enough where the wait does not have it.
  k.fault = 2;
  test::check_told(k.report(), {k.line("fill"), k.line("read")},
                   {"race: the write of slot by bulk_load of thread 0 of block (1, 0, 0)"});
}

TEST_CASE("a slot freed by wgmma needs no scope of the cluster") {
  Words x(640, 0x3f803f80);
  SmallKernel k = pair(R"(
  const u32 a = smem + 4096, b = smem + 3072, empty = bar + 8;
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  if (rank == 0) pl::store_shared<4>(b + 16 * t, ones, t < 16);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[4];
  for (u32 round = 0; round < 2; ++round) {
    if (rank == 1 && t == 0) {
      if (round == 1) pl::mbarrier_wait(empty, 0);
      pl::bulk_load_multicast(a, x, 2048, bar, 1);  // fill
    }
    if (rank == 0) {
      if (t == 0) pl::mbarrier_arrive_expect_tx(bar, 2048);
      pl::mbarrier_wait(bar, round);
      pl::wgmma_registers(d);
      pl::wgmma_fence();
      pl::wgmma_m64n8k16_f32_bf16_bf16(d, pl::matrix_descriptor(a, 1024, 128, 0), pl::matrix_descriptor(b, 128, 128, 0), false);  // multiply
      pl::wgmma_commit();
      if (fault && round == 0 && t == 0) pl::mbarrier_arrive_remote(pl::mapa(empty, 1));
      pl::wgmma_wait<0>();
      pl::wgmma_registers(d);
      if (!fault && round == 0 && t == 0) pl::mbarrier_arrive_remote(pl::mapa(empty, 1));
    }
  })");
  k.shared_bytes = 8192;
  k.reads("u32", "x", x);
  check_fault(k, {"fill", "multiply"},
              {"race: the write of ", "by bulk_load of thread 0 of block (1, 0, 0)",
               "is not ordered with the read by wgmma of warpgroup 0 of block (0, 0, 0)"});
}

TEST_CASE("fence_async orders the memory that it names, and both if it names none") {
  Words o(128), x(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 1024, t = pl::thread();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  pl::store_shared(smem + 4 * t, &t);  // write shared
  pl::store_global(x + t, &t);         // write global
  if (fault == 0) pl::fence_async();
  if (fault != 1 && fault != 0) pl::fence_async_shared();
  if (fault != 2 && fault != 0) pl::fence_async_global();
  pl::warpgroup_sync();
  if (t == 0) {
    pl::bulk_store(o, smem, 512);  // store
    pl::bulk_commit();
    pl::mbarrier_arrive_expect_tx(bar, 512);
    pl::bulk_load(smem + 512, x, 512, bar);  // load
    pl::bulk_wait<0>();
  }
  pl::mbarrier_wait(bar, 0);)");
  k.writes("u32", "o", o).writes("u32", "x", x);
  check_fault(
      k, {"store", "write shared"},
      {"missing fence: the read of shared memory at offset ", " by bulk_store of thread 0"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("load"), k.line("write global")},
                   {"missing fence: the read of element ", " of x by bulk_load of thread 0"});
  k.fault = 3;
  CHECK(k.report() == "");
}

TEST_CASE("what another block's TMA stored needs a fence of the block whose TMA loads it") {
  Words data(128), flag(1);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 1024, t = pl::thread();
  pl::store_shared(smem + 4 * t, &t);
  pl::fence_async_shared();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  if (pl::block_x() == 0) {
    if (t == 0) {
      pl::bulk_store(data, smem, 512);  // store
      pl::bulk_commit();
      pl::bulk_wait<0>();
      if (fault == 2) pl::fence_async_global();
      pl::store_release(flag, 1u);
    }
  } else {
    if (fault == 3 && t == 32) pl::fence_async_global();
    if (t == 32) while (pl::load_acquire(flag) == 0) {}
    if (fault == 0 && t == 32) pl::fence_async_global();
    pl::warpgroup_sync();
    if (fault == 4 && t == 0) pl::fence_async();
    if (t == 0) {
      pl::mbarrier_arrive_expect_tx(bar, 512);
      pl::bulk_load(smem + 512, data, 512, bar);  // load
    }
    pl::mbarrier_wait(bar, 0);
  })");
  k.grid = {2, 1, 1};
  k.writes("u32", "data", data).writes("u32", "flag", flag);
  const auto report = [&](int fault) {
    flag[0] = 0;
    k.fault = fault;
    return k.report();
  };
  CHECK(report(0) == "");
  CHECK(report(4) == "");
  for (const int fault : {1, 2, 3}) {
    INFO(fault);
    test::check_told(report(fault), {k.line("load"), k.line("store")},
                     {"missing fence: the read of element 0 of data by bulk_load of thread 0 of "
                      "block (1, 0, 0)",
                      "is asynchronous and comes after, but without fence_async in its own block "
                      "between them, the write by bulk_store of thread 0 of block (0, 0, 0)"});
  }
}

TEST_CASE("a block may load by TMA what its own TMA stored and it waited for") {
  Words data(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 1024, t = pl::thread();
  pl::store_shared(smem + 4 * t, &t);
  pl::fence_async_shared();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  if (t == 0) {
    pl::bulk_store(data, smem, 512);  // store
    pl::bulk_commit();
    if (fault) pl::bulk_wait_read<0>();
    else pl::bulk_wait<0>();
    pl::mbarrier_arrive_expect_tx(bar, 512);
    pl::bulk_load(smem + 512, data, 512, bar);  // load
    pl::bulk_wait<0>();
  }
  pl::mbarrier_wait(bar, 0);)");
  k.writes("u32", "data", data);
  check_fault(k, {"load", "store"},
              {"race: the read of element 0 of data by bulk_load of thread 0",
               "is not ordered with the write by bulk_store of thread 0"});
}

TEST_CASE("what the kernel before writes is touched after griddepcontrol_wait only") {
  Words x(128), y(128), o(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 1024, t = pl::thread();
  u32 v, w;
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  pl::load_global(&w, y + t);
  pl::warpgroup_sync();
  // One thread may wait for all, who then wait for it.
  if (t == 0 && fault != 1) pl::griddepcontrol_wait();
  if (fault != 2) pl::warpgroup_sync();
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 512);
    pl::bulk_load(smem, x, 512, bar);  // copy
  }
  pl::load_global(&v, x + t, t == 77);  // read
  pl::griddepcontrol_wait();
  pl::mbarrier_wait(bar, 0);
  v = v + w;
  pl::store_global(o + t, &v);)");
  k.reads("u32", "x", x).overlapped().reads("u32", "y", y).writes("u32", "o", o);
  check_fault(k, {"copy", "read"},
              {"race: bulk_load of thread 0 of block (0, 0, 0)",
               "touches x without griddepcontrol_wait before: the kernel that this launch overlaps "
               "may still write it",
               "race: thread 77 of block (0, 0, 0)"},
              2);
  k.fault = 2;
  test::check_told(k.report(), {k.line("read")},
                   {"race: thread 77 ", "touches x without griddepcontrol_wait before"});
}

TEST_CASE("asynchronous and plain atomics on one address race") {
  Words o(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  pl::store_shared(smem + 4 * t, &t);
  pl::fence_async_shared();
  pl::red_add(o + t, 1u);  // count
  if (fault != 2) pl::fence_async_global();
  pl::warpgroup_sync();
  if (t == 0) {
    pl::bulk_reduce_add(o, smem, 512);  // reduce
    pl::bulk_commit();
    pl::bulk_wait<0>();
  }
  if (fault != 1) pl::warpgroup_sync();
  if (t == 40) pl::red_add(o + t, 1u);  // count again)");
  k.writes("u32", "o", o);
  check_fault(
      k, {"count again", "reduce"},
      {"race: the atomic access of element 40 of o by thread 40 ",
       "is neither ordered with nor, by its scope and proxy, atomic for the atomic access by "
       "bulk_reduce_add of thread 0 "});
  k.fault = 2;
  test::check_told(
      k.report(), {k.line("reduce"), k.line("count")},
      {"missing fence: the atomic access of element 0 of o by bulk_reduce_add of thread 0"});
}
