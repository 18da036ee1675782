// Threads that do not meet as they should: each kernel is correct with fault 0.
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

TEST_CASE("a named barrier to which threads come for different counts is reported") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 0) {
    pl::barrier_arrive<5>(256);  // producer
  } else if (fault) {
    pl::barrier_sync<5>(128);  // consumer
  } else {
    pl::barrier_sync<5>(256);
  })");
  k.warpgroups = 2;
  check_fault(k, {"consumer", "producer"},
              {"comes to barrier 5 for 128 threads, others for 256", "they came by"});
}

TEST_CASE("a named barrier that is never full is a deadlock that counts its threads") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 1 || !fault) {
    pl::barrier_sync<3>(256);  // wait
  })");
  k.warpgroups = 2;
  check_fault(k, {"wait"},
              {"deadlock: of 256 threads 128 have returned",
               "128 of block (0, 0, 0) (128 to 255) wait in barrier_sync at barrier 3 (128 of 256 "
               "threads have come)"});
}

TEST_CASE("a named barrier for no whole warps, or more than the block has, is reported") {
  SmallKernel k(R"(
  pl::barrier_sync<2>(fault == 1 ? 120 : fault == 2 ? 256 : 128);  // wait)");
  check_fault(k, {"wait"},
              {"names 120 threads at barrier 2: a multiple of 32, at most the block's 128"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("wait")}, {"names 256 threads at barrier 2"});
}

TEST_CASE("data handed over by a named barrier is a race for whoever does not wait") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  u32 v = t;
  if (pl::warpgroup() == 0) {
    pl::store_shared(smem + 4 * t, &v);  // write
    pl::barrier_arrive<5>(256);
  } else {
    if (fault) pl::barrier_arrive<5>(256);
    else pl::barrier_sync<5>(256);
    pl::load_shared_padded(&v, smem + 4 * t);  // read
  })");
  k.warpgroups = 2;
  check_fault(
      k, {"read", "write"},
      {"race: the read of shared memory at offset ", "is not ordered with the write by thread "});
}

TEST_CASE("a matrix moved at different lines by the lanes of a warp is reported") {
  SmallKernel k(R"(
  const u32 row = pl::shared_base() + 16 * pl::lane() + 512 * pl::warp();
  const u16 v[2] = {};
  if (fault && pl::lane() < 8) pl::stmatrix_x1(row, v);  // some
  else pl::stmatrix_x1(row, v);  // others)");
  check_fault(k, {},
              {"reaches stmatrix while threads that must take part wait in stmatrix elsewhere"});
}

// Lane 0 asks alone where `ask` divides the warp: a shuffle for which the GPU waits for ever.
static void check_asked_alone(const std::string& ask, const char* name) {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const bool some = !fault || pl::elect_one();
  u32 v = 0;
  pl::store_shared(smem + 4 * t, &v);
)" + ask + R"(  // ask
  pl::store_shared(smem + 4 * t, &v);
  pl::warp_sync();)");
  check_fault(k, {"ask"},
              {(std::string("reaches ") + name +
                " while threads that must take part wait in warp_sync elsewhere")
                   .c_str()});
}

TEST_CASE("an index of the warpgroup asked for behind a divergent branch is reported") {
  check_asked_alone("  if (some) v = pl::warpgroup() * 4;", "warpgroup");
}

TEST_CASE("an index of the warp asked for behind a divergent && or ?: is reported") {
  check_asked_alone("  if (some && pl::warp() == 0) v = 1;", "warp");
  check_asked_alone("  v = some ? pl::warp() : 0;", "warp");
}

TEST_CASE("threads of a warpgroup that issue different products are reported") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  pl::store_shared<4>(smem + 16 * t, ones);
  pl::store_shared<4>(smem + 2048 + 16 * t, ones, t < 32);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[4];
  const u64 a = pl::matrix_descriptor(smem, 1024, 128, 0);
  const u64 b = pl::matrix_descriptor(smem + (fault && pl::warp() == 2 ? 2304 : 2048), 128, 128, 0);
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, false);  // multiply
  pl::wgmma_commit();
  pl::wgmma_wait<0>();)");
  check_fault(k, {"multiply"},
              {"issues another wgmma than the other threads of its warpgroup: descriptors "});
}

TEST_CASE("a product that a warp does not take part in is a deadlock of those who wait for it") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  pl::store_shared<4>(smem + 16 * t, ones);
  pl::store_shared<4>(smem + 2048 + 16 * t, ones, t < 16);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[4];
  if (!fault || pl::warp() != 3) {
    pl::wgmma_fence();
    pl::wgmma_m64n8k16_f32_bf16_bf16(d, pl::matrix_descriptor(smem, 1024, 128, 0), pl::matrix_descriptor(smem + 2048, 128, 128, 0), false);
    pl::wgmma_commit();
    pl::wgmma_wait<0>();  // wait
  })");
  check_fault(k, {"wait"},
              {"deadlock: of 128 threads 32 have returned",
               "96 of block (0, 0, 0) (0 to 95) wait in wgmma_wait"});
}

TEST_CASE("operands written by threads need fence_async before a product reads them") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  pl::name_shared(smem, 2048, "A");
  pl::store_shared<4>(smem + 16 * t, ones);  // write
  pl::store_shared<4>(smem + 2048 + 16 * t, ones, t < 16);
  if (!fault || t != 70) pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[4];
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, pl::matrix_descriptor(smem, 1024, 128, 0), pl::matrix_descriptor(smem + 2048, 128, 128, 0), false);  // multiply
  pl::wgmma_commit();
  pl::wgmma_wait<0>();)");
  check_fault(
      k, {"multiply", "write"},
      {"missing fence: the read of A+1120 by wgmma of warpgroup 0 of block (0, 0, 0)",
       "is asynchronous and comes after, but without fence_async between them, the write by "
       "thread 70 "});
}

TEST_CASE("operands outside shared memory, or that nobody wrote, are reported") {
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  pl::store_shared<4>(smem + 16 * t, ones);
  pl::store_shared<4>(smem + 2048 + 16 * t, ones, t < 16);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[4];
  const u32 at_b = smem + (fault == 1 ? 4096 : fault == 2 ? 2304 : 2048);
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, pl::matrix_descriptor(smem, 1024, 128, 0), pl::matrix_descriptor(at_b, 128, 128, 0), false);  // multiply
  pl::wgmma_commit();
  pl::wgmma_wait<0>();)");
  check_fault(
      k, {"multiply"},
      {"multiplies by an operand B: it reaches offset 4096 of 4096 bytes of shared memory"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("multiply")},
                   {"multiplies by an operand B: 16 bytes of shared memory at offset 2304 that "
                    "nobody wrote"});
}

TEST_CASE("a warpgroup that asks for more registers than the block has left waits for ever") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 0) {
    if (fault) pl::setmaxnreg_dec<152>();
    else pl::setmaxnreg_dec<24>();
  } else {
    pl::setmaxnreg_inc<240>();  // ask
  })");
  k.warpgroups = 3;
  check_fault(k, {"ask"},
              {"deadlock: of 384 threads 128 have returned",
               "wait in setmaxnreg for 240 registers (the block's pool has 2048)"});
}

TEST_CASE("registers asked for in the wrong direction are reported") {
  SmallKernel k(R"(
  if (fault == 1) pl::setmaxnreg_inc<24>();  // ask
  else if (fault == 2) pl::setmaxnreg_dec<256>();  // keep
  else if (fault == 3) pl::setmaxnreg_inc<240>();
  else pl::setmaxnreg_dec<24>();)");
  k.warpgroups = 3;
  check_fault(k, {"ask"}, {"calls setmaxnreg_inc<24> and has 168 registers"});
  k.fault = 2;
  test::check_told(k.report(), {k.line("keep")},
                   {"calls setmaxnreg_dec<256> and has 168 registers"});
}

TEST_CASE("registers changed again before the warps have met are reported") {
  SmallKernel k(R"(
  if (pl::warpgroup() == 0) {
    pl::setmaxnreg_dec<40>();  // first
    if (!fault) pl::warpgroup_sync<2>();
    else pl::warp_sync();
    pl::setmaxnreg_dec<24>();  // again
  } else {
    pl::setmaxnreg_inc<232>();
  })");
  k.warpgroups = 2;
  check_fault(k, {"again", "first"},
              {"calls setmaxnreg_dec and has not met all warps of its warpgroup since the last "
               "change of its registers"});
}

TEST_CASE("a number of registers that no GPU has is refused when the text is compiled") {
  SmallKernel k("  pl::setmaxnreg_dec<20>();");
  const std::string told = k.report();
  INFO(told);
  CHECK(told.find("setmaxnreg: a multiple of 8, 24 to 256") != told.npos);
}
