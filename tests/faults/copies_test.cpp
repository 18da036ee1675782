// Misused asynchronous copies: each kernel is correct with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/hopper_kernels.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

namespace {

// Shared memory of 1 KiB for each of two boxes of 8 rows of 64 bf16, and the barrier `bar`.
SmallKernel with_barrier(const std::string& body) {
  return SmallKernel(R"(  const u32 smem = pl::shared_base(), bar = smem + 2048, t = pl::thread();
  pl::name_shared(smem, 1024, "box");
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
)" + body);
}

struct Array {
  std::vector<std::uint16_t> data = std::vector<std::uint16_t>(16 * 64);

  SmallKernel& map(SmallKernel& k, bool written = false, int rows = 16) {
    return k.map("x", test::map_of(data, rows, 64, 8, 64), data.size() * 2, written);
  }
};

constexpr const char* load_box = R"(
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 1024);
    pl::tma_load(smem + at, x, bar, {0, row});  // load
  }
  pl::mbarrier_wait(bar, 0);)";

// Every thread writes its 16 bytes of a box, which thread 0 then stores.
constexpr const char* write_box = R"(
  const u32 four[4] = {t, t, t, t};
  if (t < 64) pl::store_shared<4>(smem + 16 * t, four);  // write
  pl::fence_async_shared();
  pl::warpgroup_sync();
)";

}  // namespace

TEST_CASE("a box must lie on 128 bytes, and within the memory") {
  Array a;
  SmallKernel k = with_barrier(
      "  const u32 at = fault == 1 ? 64 : fault == 2 ? "
      "3072 : 128;\n  const i32 row = 0;" +
      std::string(load_box));
  a.map(k);
  check_fault(k, {"load"},
              {"copies 1024 bytes of shared memory at offset 64, which is no multiple of 128"});
  k.fault = 2;
  k.shared_bytes = 3584;
  test::check_told(k.report(), {k.line("load")},
                   {"copies 1024 bytes of shared memory at offset 3072 of 3584"});
}

TEST_CASE("a box without swizzle must lie on 128 bytes too") {
  Array a;
  SmallKernel k =
      with_barrier("  const u32 at = 64 * fault;\n  const i32 row = 0;" + std::string(load_box));
  TensorMapSpec spec = test::map_of(a.data, 16, 64, 8, 64);
  spec.swizzle = 0;
  k.map("x", spec, a.data.size() * 2, false);
  check_fault(k, {"load"},
              {"copies 1024 bytes of shared memory at offset 64, which is no multiple of 128"});
}

TEST_CASE("a box read before its copy has come is a race") {
  Array a;
  SmallKernel k = with_barrier(R"(
  u32 v;
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 1024);
    pl::tma_load(smem, x, bar, {0, 0});  // load
  }
  if (fault) pl::warpgroup_sync();
  else pl::mbarrier_wait(bar, 0);
  pl::load_shared(&v, smem + 4 * t);  // read
  pl::mbarrier_wait(bar, 0);)");
  a.map(k);
  check_fault(k, {"read", "load"},
              {"race: the read of box", "is not ordered with the write by tma_load of thread 0"});
}

TEST_CASE("a box with coordinates of another rank is reported") {
  Array a;
  SmallKernel k = with_barrier(R"(
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 1024);
    if (fault) pl::tma_load(smem, x, bar, {0, 0, 0});  // three
    else pl::tma_load(smem, x, bar, {0, 0});
  }
  pl::mbarrier_wait(bar, 0);)");
  a.map(k);
  check_fault(k, {"three"}, {"loads with 3 coordinates and a tensor map of rank 2"});
}

TEST_CASE("what is no tensor map is reported by loads and stores") {
  SmallKernel k = with_barrier(R"(
  if (fault == 1 && t == 0) pl::tma_load(smem, x, bar, {0, 0});   // load
  if (fault == 2 && t == 0) pl::tma_store(x, smem, {0, 0});       // store
  if (fault == 3 && t == 0) pl::tma_prefetch_map(x);              // prefetch)");
  k.no_map("x");
  check_fault(k, {"load"}, {"loads with what is no tensor map"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("store")}, {"stores with what is no tensor map"});
  k.fault = 3;
  test::check_told(k.report(), {k.line("prefetch")}, {"prefetches with what is no tensor map"});
}

TEST_CASE("a map of an array larger than its buffer is reported where the rest is loaded") {
  Array a;
  SmallKernel k = with_barrier("  const u32 at = 0;\n  const i32 row = fault ? 12 : 8;" +
                               std::string(load_box));
  a.map(k, false, 32);
  check_fault(k, {"load"},
              {"reads 128 bytes outside every buffer", "at byte 2048 of x, which has 2048"});
  test::check_told(k.report({.detect_writers = false, .detect_races = false}), {k.line("load")},
                   {"reads 128 bytes outside every buffer", "at byte 2048 of x, which has 2048"});
}

TEST_CASE("a store to an array that is only read is reported") {
  Array a;
  SmallKernel k = with_barrier(std::string(write_box) + R"(
  if (fault && t == 0) pl::tma_store(x, smem, {0, 0});  // store)");
  a.map(k);
  check_fault(k, {"store"}, {"writes to x, which is only read"});
}

TEST_CASE("a box stored from memory that nobody wrote is reported") {
  Array a;
  SmallKernel k = with_barrier(std::string(write_box) + R"(
  if (t == 0) {
    pl::tma_store(x, smem + 1024 * fault, {0, 0});  // store
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
  k.shared_bytes = 4096;
  a.map(k, true);
  check_fault(k, {"store"},
              {"copies 1024 bytes of shared memory at offset 1024 that nobody wrote"});
}

TEST_CASE("a copy that is not committed before its thread returns is reported") {
  Array a;
  SmallKernel k = with_barrier(std::string(write_box) + R"(
  if (t == 0) {
    pl::tma_store(x, smem, {0, 0});  // store
    if (!fault) pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
  a.map(k, true);
  check_fault(k, {"store"},
              {"thread 0 of block (0, 0, 0)", "returns without having committed its copy"});
}

TEST_CASE("a copy that is not waited for before its thread returns is reported") {
  Array a;
  SmallKernel k = with_barrier(std::string(write_box) + R"(
  if (t == 0) {
    pl::tma_store(x, smem, {0, 0});  // store
    pl::bulk_commit();
    if (fault != 1) pl::bulk_wait_read<0>();
  })");
  a.map(k, true);
  check_fault(k, {"store"}, {"returns without waiting until its copy has read shared memory"});
}

TEST_CASE("memory written again before a store has read it is a race") {
  Array a;
  SmallKernel k = with_barrier(std::string(write_box) + R"(
  if (t == 0) {
    pl::tma_store(x, smem, {0, 0});  // store
    pl::bulk_commit();
    if (!fault) pl::bulk_wait_read<0>();
  }
  pl::warpgroup_sync();
  if (t == 9) pl::store_shared<4>(smem + 16 * t, four);  // again
  if (t == 0) pl::bulk_wait<0>();)");
  a.map(k, true);
  check_fault(k, {"again", "store"},
              {"race: the write of box+144 by thread 9 ",
               "is not ordered with the read by tma_store of thread 0 "});
}

TEST_CASE("a fence by the thread that stores counts for what others wrote only if asked") {
  Array a;
  SmallKernel k = with_barrier(R"(
  const u32 four[4] = {t, t, t, t};
  if (t < 64) pl::store_shared<4>(smem + 16 * t, four);  // write
  pl::warpgroup_sync();
  if (t == 0) {
    pl::fence_async_shared();
    pl::tma_store(x, smem, {0, 0});  // store
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
  a.map(k, true);
  CHECK(k.report({.strict_fences = false}) == "");
  test::check_told(k.report(), {k.line("store"), k.line("write")},
                   {"missing fence: the read of box"});
}

TEST_CASE("what a store writes is there after bulk_wait, not yet after bulk_wait_read") {
  std::vector<std::uint32_t> o(256);
  SmallKernel k = with_barrier(std::string(write_box) + R"(
  if (t == 0) {
    u32 v;
    pl::bulk_store(o, smem, 1024);  // store
    pl::bulk_commit();
    if (fault) pl::bulk_wait_read<0>();
    else pl::bulk_wait<0>();
    pl::load_global(&v, o + 17);  // read
    pl::bulk_wait<0>();
  })");
  k.writes("u32", "o", o);
  check_fault(k, {"read", "store"},
              {"race: the read of element ", " of o by thread 0 ",
               "is not ordered with the write by bulk_store of thread 0 "});
}

TEST_CASE("an array written by threads needs fence_async before TMA reads it") {
  Array a;
  SmallKernel k = with_barrier(R"(
  const u32 four[4] = {t, t, t, t};
  pl::store_global<4>(p + 4 * t, four, t < 64);  // write
  if (!fault) pl::fence_async_global();
  pl::warpgroup_sync();
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 1024);
    pl::tma_load(smem, x, bar, {0, 0});  // load
  }
  pl::mbarrier_wait(bar, 0);)");
  a.map(k, true);
  k.writes("u32", "p", a.data);
  check_fault(k, {"load", "write"},
              {"missing fence: the read of element 0 of x by tma_load of thread 0",
               "without fence_async between them, the write by thread 0 "});
}

TEST_CASE("bulk copies of a size or at an address that no GPU can are reported") {
  std::vector<std::uint32_t> x(64);
  SmallKernel k = with_barrier(R"(
  if (t == 0) {
    const u32 bytes = fault == 1 ? 24 : 32;
    pl::mbarrier_arrive_expect_tx(bar, bytes);
    pl::bulk_load(fault == 2 ? smem + 8 : smem, fault == 3 ? x + 1 : x, bytes, bar);  // copy
  }
  pl::mbarrier_wait(bar, 0);)");
  k.reads("u32", "x", x);
  check_fault(k, {"copy"}, {"copies 24 bytes: a multiple of 16"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("copy")},
                   {"copies 32 bytes of shared memory at offset 8, which is no multiple of 16"});
  k.fault = 3;
  test::check_told(k.report(), {k.line("copy")},
                   {"copies 32 bytes at an address that is no multiple of 16", "at byte 4 of x"});
}

TEST_CASE("cp.async read without waiting is a race, and at exit it must have been waited for") {
  std::vector<std::uint32_t> x(512);
  SmallKernel k = with_barrier(R"(
  u32 v;
  pl::cp_async<16>(smem + 16 * t, x + 4 * t);  // copy
  if (fault != 3) pl::cp_async_commit();
  if (fault < 1) pl::cp_async_wait<0>();
  if (fault < 2) pl::load_shared(&v, smem + 16 * t);  // read
  if (fault < 2) pl::cp_async_wait<0>();)");
  k.reads("u32", "x", x);
  check_fault(k, {"read", "copy"},
              {"race: the read of ", "is not ordered with the write by cp_async of thread "});
  k.fault = 2;
  test::check_told(k.report(), {k.line("copy")}, {"returns without waiting for its copy"});
  k.fault = 3;
  test::check_told(k.report(), {k.line("copy")}, {"returns without having committed its copy"});
}

TEST_CASE("waiting for cp.async orders a thread's own copies only") {
  std::vector<std::uint32_t> x(512);
  SmallKernel k = with_barrier(R"(
  u32 v;
  pl::cp_async<16>(smem + 16 * t, x + 4 * t);  // copy
  pl::cp_async_commit();
  pl::cp_async_wait<0>();
  if (!fault) pl::warpgroup_sync();
  else pl::warp_sync();
  pl::load_shared(&v, smem + 16 * (127 - t), t == 3);  // read)");
  k.reads("u32", "x", x);
  k.shared_bytes = 4096;
  check_fault(k, {"read"}, {"by thread 3 "});
}
