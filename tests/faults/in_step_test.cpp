// Barriers of a block that collide, threads that do not execute together what they must: each
// kernel is correct with fault 0.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

TEST_CASE("a named barrier that is also a warpgroup's is reported with both lines") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 0) {
    pl::warpgroup_sync<2>();  // warpgroup
  } else {
    if (fault) pl::barrier_sync<1>(128);  // named
    else pl::barrier_sync<3>(128);
  })");
  k.warpgroups = 2;
  check_fault(
      k, {"named", "warpgroup"},
      {"(warpgroup 1, ", "comes by barrier_sync to barrier 1 of the block", " by warpgroup_sync"});
}

TEST_CASE("a warpgroup's barrier that others have used by its number is reported") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 0) {
    if (fault) pl::barrier_sync<2>(128);  // named
    else pl::barrier_sync<3>(128);
  } else {
    pl::warpgroup_sync<2>();  // warpgroup
  })");
  k.warpgroups = 2;
  check_fault(
      k, {"warpgroup", "named"},
      {"(warpgroup 1, ", "comes by warpgroup_sync to barrier 2 of the block", " by barrier_sync"});
}

TEST_CASE("threads at one barrier by different functions are reported") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 1 && fault) pl::barrier_sync<0>(128);  // named
  pl::block_sync();  // block)");
  k.warpgroups = 2;
  check_fault(k, {"named", "block"},
              {"(warpgroup 1, ",
               "comes by barrier_sync to barrier 0 of the block, where other threads wait by "
               "block_sync",
               "they wait at"});
}

TEST_CASE("two groups that use one named barrier need an order between them") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 0) pl::barrier_sync<3>(128);  // first
  if (!fault) pl::block_sync();
  if (pl::warpgroup() == 1) pl::barrier_sync<3>(128);  // second)");
  k.warpgroups = 2;
  check_fault(k, {"second", "first"},
              {"race: thread ",
               "comes by barrier_sync to barrier 3 of the block and is not "
               "ordered after those who met there by barrier_sync"});
}

TEST_CASE("a producer that arrives again before its consumers have told it to is reported") {
  SmallKernel k(R"(
  for (i32 round = 0; round < 2; ++round) {
    if (pl::warpgroup() == 0) {
      pl::barrier_arrive<5>(256);  // arrive
      if (!fault) pl::barrier_sync<6>(256);
    } else {
      pl::barrier_sync<5>(256);
      if (!fault) pl::barrier_arrive<6>(256);
    }
  })");
  k.warpgroups = 2;
  check_fault(k, {"arrive"}, {"arrives at barrier 5 twice before its 256 threads have come"});
  // Where the consumers happen to be there in time, nothing tells the producers.
  test::check_told(k.report({.schedule = emulator::Schedule::lifo}), {}, {"barrier 5"},
                   test::any_number);
}

TEST_CASE("lanes of a warp that come to a named barrier at different lines are reported") {
  SmallKernel k(R"(
  if (fault && pl::lane() < 16) {
    pl::barrier_sync<5>(128);  // some
  } else {
    pl::barrier_sync<5>(128);  // others
  })");
  check_fault(k, {"others", "some"},
              {"thread 16 ",
               "executes barrier_sync where other threads of its warp execute barrier_sync: all "
               "must execute the same together",
               "they are at"});
}

TEST_CASE("a lane that comes alone to a cluster's barrier is reported") {
  SmallKernel k(R"(
  if (!fault || pl::lane() != 0) pl::cluster_arrive();  // others
  if (fault && pl::lane() == 0) pl::cluster_arrive();   // one
  pl::cluster_wait();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  check_fault(k, {"others", "one"},
              {"executes cluster_arrive where other threads of its warp execute cluster_arrive"});
}

TEST_CASE("lanes that have returned need not come to the barriers of their warp") {
  SmallKernel k(R"(
  if (pl::lane() >= 8 + 8 * fault) return;
  pl::cluster_arrive();
  pl::cluster_wait();
  pl::block_sync();)");
  k.grid = {2, 1, 1};
  k.cluster = {2, 1, 1};
  CHECK(k.report() == "");
}

namespace {

// Ones in the operands of one product; `body` may say `a`, `b` (descriptors) and `d`.
SmallKernel product(const std::string& body) {
  return SmallKernel(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  pl::store_shared<4>(smem + 16 * t, ones);
  pl::store_shared<4>(smem + 2048 + 16 * t, ones);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  const u64 a = pl::matrix_descriptor(smem, 1024, 128, 0), b = pl::matrix_descriptor(smem + 2048, 128, 128, 0);
  f32 d[4] = {};
  pl::wgmma_registers(d);
)" + body);
}

}  // namespace

TEST_CASE("a warp that commits its products elsewhere is reported") {
  SmallKernel k = product(R"(
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, false);
  if (fault && pl::warp() == 2) pl::wgmma_commit();  // one
  else pl::wgmma_commit();  // others
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);)");
  check_fault(k, {"one", "others"},
              {"(warpgroup 0, warp 2, ",
               "executes wgmma_commit where other threads of its warpgroup execute wgmma_commit"});
}

TEST_CASE("a fence or a wait of products by some lanes alone is reported") {
  SmallKernel k = product(R"(
  if (fault == 1 && t == 0) pl::wgmma_fence();  // lane fence
  pl::wgmma_fence();  // fence
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, false);
  pl::wgmma_commit();
  if (fault == 2 && pl::lane() < 8) pl::wgmma_wait<0>();  // lane wait
  pl::wgmma_wait<0>();  // wait
  pl::wgmma_registers(d);)");
  CHECK(k.report() == "");
  for (const std::string what : {"fence", "wait"}) {
    k.fault = what == "fence" ? 1 : 2;
    const test::Told told(k.report());
    INFO(told.all);
    CHECK(told.says("executes wgmma_" + what + " where other threads of its warpgroup execute "));
    CHECK(told.says("emitted line " + std::to_string(k.line("lane " + what)) + ":"));
    CHECK(told.says("all must execute the same together"));
  }
}

TEST_CASE("a kernel that takes the elected lane for lane 0 fails under other seeds") {
  std::vector<std::uint32_t> o(128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  pl::store_shared(smem + 4 * t, &t);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  if (pl::warp() != 0) return;
  const bool leader = pl::elect_one();
  if (leader) pl::bulk_store(o, smem, 512);  // store
  if (fault ? pl::lane() == 0 : leader) {
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
  k.writes("u32", "o", o);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    k.fault = 0;
    CHECK(k.report({.seed = seed}) == "");
    k.fault = 1;
    const std::string told = k.report({.seed = seed});
    if (seed % 32 == 0) {
      CHECK(told == "");
    } else {
      test::check_told(told, {k.line("store")}, {"returns without having committed its copy"});
    }
  }
}

TEST_CASE("accumulators written after the fence are reported") {
  SmallKernel k = product(R"(
  pl::wgmma_registers(d);
  if (!fault) d[1] = 3;
  pl::wgmma_fence();
  if (fault) d[1] = 3;
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, true);  // multiply
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);)");
  check_fault(k, {"multiply"},
              {"gives accumulator registers to a wgmma that were written after the last "
               "wgmma_fence"});
}

TEST_CASE("operands in registers written after the fence are reported") {
  SmallKernel k = product(R"(
  u32 r[4] = {ones[0], ones[1], ones[2], ones[3]};
  for (i32 i = 0; i < 2; ++i) {
    if (fault == 2) r[3] = i;
    pl::wgmma_fence();
    if (fault == 1) r[3] = i;
    pl::wgmma_m64n8k16_f32_bf16_bf16_rs<false>(d, r, b, true);  // multiply
    pl::wgmma_commit();
    pl::wgmma_wait<0>();
    pl::wgmma_registers(d);
    pl::wgmma_registers(r);
  })");
  check_fault(k, {"multiply"},
              {"gives registers to a wgmma that were written after the last wgmma_fence"});
  k.fault = 2;
  CHECK(k.report() == "");
}

TEST_CASE("products of another shape on the same accumulators need a fence") {
  std::vector<float> o(128);
  SmallKernel k = product(R"(
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, false);
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, true);
  if (!fault) pl::wgmma_fence();
  pl::wgmma_m64n8k8_f32_tf32_tf32(d, a, b, true);  // other shape
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  pl::store_global(o + t, d + 1);)");
  k.writes("f32", "o", o);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    k.fault = 0;
    CHECK(k.report(options) == "");
    // 32 products of 1 and 8 of 0x3f803f80, of which tf32 reads 19 bits.
    CHECK(std::abs(o[77] - (32 + 8 * 1.00195f * 1.00195f)) < 0.02f);
  }
  check_fault(k, {"other shape"},
              {"gives accumulator registers to a wgmma of another shape than the one before "
               "without wgmma_fence between them"});
}

TEST_CASE("operands in registers overwritten while products read them are reported") {
  SmallKernel k = product(R"(
  u32 r[4] = {ones[0], ones[1], ones[2], ones[3]};
  pl::wgmma_registers(r);
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16_rs<false>(d, r, b, false);  // multiply
  pl::wgmma_commit();
  if (fault) r[2] = t;
  pl::wgmma_wait<0>();  // wait
  pl::wgmma_registers(d);
  pl::wgmma_registers(r);
  r[2] = t;)");
  check_fault(k, {"multiply", "wait"},
              {"has written registers of A while a wgmma in flight read them", "before"});
}

TEST_CASE("a swizzled descriptor that starts behind the first row of its pattern is reported") {
  for (const int swizzle : {32, 64, 128}) {
    CAPTURE(swizzle);
    const std::string s = std::to_string(swizzle);
    SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  for (u32 i = 16 * t; i < 16384; i += 2048) pl::store_shared<4>(smem + i, ones);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[4];
  // Further along k is fine, by whole rows is not.
  const u32 at = fault ? )" +
                  s + R"( : )" + std::to_string(swizzle == 32 ? 0 : 32) + R"(;
  pl::wgmma_registers(d);
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, pl::matrix_descriptor(smem + at, 16, 8 * )" +
                  s + ", " + s + R"(), pl::matrix_descriptor(smem + 8192, 16, 8 * )" + s + ", " +
                  s +
                  R"(), false);  // multiply
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);)");
    k.shared_bytes = 16384;
    const std::string words = "uses a matrix descriptor that starts " + s +
                              " bytes behind the beginning of its " + s +
                              "-byte swizzle's pattern: less than " + s + ", in its first row";
    check_fault(k, {"multiply"}, {words.c_str()});
  }
}
