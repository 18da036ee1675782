// How threads, warpgroups and blocks wait for each other: named barriers, registers, atomics,
// flags.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

// Runs it under every policy, `o` being `initial` before; it must then be `expected`.
void check_everywhere(const SmallKernel& k, Words& o, const Words& expected,
                      std::uint32_t initial = 0) {
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    o.assign(o.size(), initial);
    k.run(options);
    REQUIRE(o == expected);
  }
}

}  // namespace

TEST_CASE("named barriers hand data from producers that arrive to consumers that wait") {
  Words o(2 * 128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread(), w = pl::warpgroup();
  for (u32 round = 0; round < 4; ++round) {
    u32 v = 100 * round + t;
    if (w == 0) {
      pl::store_shared(smem + 4 * t, &v);
      pl::barrier_arrive<8>(384);
      pl::barrier_sync<9>(384);
    } else {
      pl::barrier_sync<8>(384);
      pl::load_shared(&v, smem + 4 * (127 - t));
      if (round == 3) pl::store_global(o + 128 * (w - 1) + t, &v);
      pl::barrier_arrive<9>(384);
    }
  })");
  k.warpgroups = 3;
  k.writes("u32", "o", o);
  Words expected;
  for (std::uint32_t i = 0; i < 256; ++i) expected.push_back(300 + 127 - i % 128);
  check_everywhere(k, o, expected);
}

TEST_CASE("barriers of warps, warpgroups and the block meet whom they name") {
  Words o(256);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = 128 * pl::warpgroup() + pl::thread();
  u32 v = t;
  pl::store_shared(smem + 4 * t, &v);
  pl::warp_sync();
  pl::load_shared(&v, smem + 4 * (t ^ 31));
  pl::warpgroup_sync<2>();
  pl::store_shared(smem + 4 * t, &v);
  pl::warpgroup_sync<2>();
  pl::load_shared(&v, smem + 4 * (t ^ 96));
  pl::block_sync();
  pl::store_shared(smem + 4 * t, &v);
  pl::barrier_sync<0>(256);
  pl::load_shared(&v, smem + 4 * (t ^ 128));
  pl::store_global(o + t, &v);)");
  k.warpgroups = 2;
  k.writes("u32", "o", o);
  Words expected;
  for (std::uint32_t i = 0; i < 256; ++i) expected.push_back(i ^ 255);
  check_everywhere(k, o, expected);
}

TEST_CASE("registers that one warpgroup gives up let others go on") {
  Words o(3);
  SmallKernel k(R"(
  const u32 w = pl::warpgroup();
  if (w == 0) pl::setmaxnreg_dec<24>();
  else pl::setmaxnreg_inc<240>();
  if (pl::thread() == 0) pl::store_global(o + w, &w);
  pl::warpgroup_sync<3>();
  if (w != 0) pl::setmaxnreg_dec<56>();
  else pl::setmaxnreg_inc<104>();)");
  k.warpgroups = 3;
  k.writes("u32", "o", o);
  check_everywhere(k, o, {0, 1, 2});
}

TEST_CASE("a kernel has at its entry the registers that its launch bounds leave each thread") {
  const int registers[] = {256, 256, 168, 128, 96, 80, 72, 64};
  for (int warpgroups = 1; warpgroups <= 8; ++warpgroups) {
    const int n = registers[warpgroups - 1];
    CAPTURE(warpgroups, n);
    // As many can be asked for without anybody's giving up any, and no more.
    const auto asks = [&](int more) {
      SmallKernel k("  pl::setmaxnreg_inc<" + std::to_string(n + more) + ">();");
      k.warpgroups = warpgroups;
      return k.report();
    };
    CHECK(asks(0) == "");
    if (n < 256) CHECK(asks(8).find("(the block's pool has 0)") != std::string::npos);
  }
}

TEST_CASE("a kernel has at its entry no more registers than it ever asks for") {
  for (const char* body : {"  pl::setmaxnreg_inc<240>();",
                           "  pl::setmaxnreg_inc<200>();\n  pl::warpgroup_sync<2>();\n"
                           "  pl::setmaxnreg_dec<40>();"}) {
    SmallKernel k(body);
    k.warpgroups = 2;
    CHECK(k.report() == "");
  }
  SmallKernel more(R"(
  if (pl::warpgroup() == 0) pl::setmaxnreg_dec<208>();  // keep
  else pl::setmaxnreg_inc<200>();)");
  more.warpgroups = 2;
  CHECK(more.report().find("calls setmaxnreg_dec<208> and has 200 registers") != std::string::npos);
}

TEST_CASE("the lane that is elected is the seed's, everywhere the same") {
  Words o(8);
  SmallKernel k(R"(
  const u32 warp = pl::warp();
  const u32 first = pl::vote_ballot(pl::elect_one()), second = pl::vote_ballot(pl::elect_one());
  if (pl::lane() == 7) {
    pl::store_global(o + warp, &first);
    pl::store_global(o + 4 + warp, &second);
  })");
  k.writes("u32", "o", o);
  for (const std::uint64_t seed : {0, 1, 31, 37}) {
    k.run({.seed = seed});
    CHECK(o == Words(8, 1u << seed % 32));
  }
}

TEST_CASE("one lane is elected, a uniform value is that of lane 0") {
  Words o(4);
  SmallKernel k(R"(
  pl::griddepcontrol_wait();
  const u32 warp = pl::warp();
  const u32 votes = pl::vote_ballot(pl::elect_one()), v = pl::warp_uniform(10 * warp + pl::lane());
  const bool same = pl::vote_all(v == 10 * warp);
  const u32 good = v + 100 * same + 1000 * pl::popcount(votes);
  if (pl::lane() == 7) pl::store_global(o + warp, &good);
  pl::griddepcontrol_launch_dependents();)");
  k.writes("u32", "o", o);
  check_everywhere(k, o, {1100, 1110, 1120, 1130});
}

namespace {

// Atomics of one integer type: every operation by 4 blocks of 128 threads.
constexpr const char* integer_atomics = R"(
  const u32 t = 128 * pl::block_x() + pl::thread();
  const T one = T(1);
  const T ticket = pl::atomic_add(o, one);
  pl::atomic_add<pl::release>(o + 1, T(t));
  pl::atomic_min(o + 2, T(500) - T(t));
  pl::atomic_max<pl::acquire, pl::gpu>(o + 3, T(t));
  pl::atomic_and<pl::acq_rel, pl::system_scope>(o + 4, ~(one << T(t % 30)));
  if (pl::block_x() == 2) pl::atomic_or<pl::relaxed, pl::block>(o + 5, one << T(t % 30));
  if (pl::block_x() < 2) pl::atomic_or<pl::relaxed, pl::cluster>(o + 13, one << T(t % 30));
  pl::atomic_xor(o + 6, one << T(t % 30));
  const T left = pl::atomic_exchange(o + 7, T(t) + one);
  pl::atomic_add(o + 8, left);
  pl::red_add(o + 9, T(2));
  pl::red_add<pl::release>(o + 9, T(3));
  if (pl::atomic_compare_exchange(o + 10, T(t), T(t) + one) == T(t)) pl::red_add(o + 11, one);
  pl::atomic_or(o + 12, T(ticket == T(511)));)";

template <class T>
void check_integer_atomics(const char* type) {
  std::vector<T> o(14);
  SmallKernel k(std::string("  typedef ") + type + " T;" + integer_atomics);
  k.grid = {4, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes(type, "o", o);
  for (const emulator::Options& options : test::policies()) {
    INFO(type << ", " << test::describe(options));
    o.assign(14, T(0));
    o[2] = T(1000);
    o[4] = static_cast<T>(~T(0));
    k.run(options);
    const T low = T{0x3fffffff};
    const T sum = T{512 * 511 / 2};
    REQUIRE(o[0] == 512);
    REQUIRE(o[1] == sum);
    // 500 - 511 is the greatest number where there are no negative ones.
    REQUIRE(o[2] == (T(-1) < T(0) ? static_cast<T>(-11) : T{0}));
    REQUIRE(o[3] == 511);
    REQUIRE(o[4] == static_cast<T>(~low));
    REQUIRE(o[5] == low);
    REQUIRE(o[13] == low);
    // 512 = 17 * 30 + 2: bits 0 and 1 have been turned 18 times, the others 17.
    REQUIRE(o[6] == static_cast<T>(low & ~T{3}));
    // What was exchanged in: all of it but what is left has come out again.
    REQUIRE(o[7] + o[8] == sum + 512);
    REQUIRE(o[9] == 5 * 512);
    REQUIRE(o[10] == o[11]);
    REQUIRE(o[12] == 1);
  }
}

}  // namespace

TEST_CASE("atomics of unsigned integers by several blocks") {
  check_integer_atomics<std::uint32_t>("u32");
  check_integer_atomics<std::uint64_t>("u64");
}

TEST_CASE("atomics of signed integers by several blocks") {
  check_integer_atomics<std::int32_t>("i32");
  check_integer_atomics<std::int64_t>("i64");
}

TEST_CASE("atomics of floats by several blocks") {
  std::vector<float> f(2);
  std::vector<double> d(2);
  SmallKernel k(R"(
  const f32 before = pl::atomic_add(f, 0.5f);
  pl::atomic_add<pl::acq_rel>(d, f64(before));
  pl::red_add(f + 1, 2.0f);
  pl::red_add<pl::release>(d + 1, 0.25);)");
  k.grid = {4, 1, 1};
  k.writes("f32", "f", f).writes("f64", "d", d);
  k.run();
  CHECK(f == std::vector<float>{256, 1024});
  CHECK(d == std::vector<double>{0.5 * 512 * 511 / 2, 128});
}

TEST_CASE("atomics on shared memory") {
  Words o(6);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 start[4] = {0, 1000, 0, 0}, zero = 0;
  const f32 none = 0;
  if (t == 0) {
    pl::store_shared<4>(smem, start);
    pl::store_shared(smem + 16, &none);
    pl::store_shared(smem + 20, &zero);
  }
  pl::warpgroup_sync();
  pl::atomic_add_shared<pl::acq_rel>(smem, t);
  pl::atomic_min_shared(smem + 4, t + 7);
  pl::atomic_max_shared(smem + 8, t);
  pl::atomic_add_shared(smem + 12, pl::atomic_exchange_shared(smem + 20, t));
  pl::atomic_add_shared(smem + 16, 0.5f);
  pl::warpgroup_sync();
  // A lock taken by compare and exchange.
  if (t % 32 == 0) {
    while (pl::atomic_compare_exchange_shared<pl::acquire>(smem + 8, 127u, 1u) != 127) {}
    u32 v;
    pl::load_shared(&v, smem);
    v += 10000;
    pl::store_shared(smem, &v);
    pl::atomic_exchange_shared<pl::release>(smem + 8, 127u);
  }
  pl::warpgroup_sync();
  u32 v;
  pl::load_shared(&v, smem + 4 * t, t < 6);
  if (t < 6) pl::store_global(o + t, &v);)");
  k.writes("u32", "o", o);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    k.run(options);
    REQUIRE(o[0] == 127 * 64 + 40000);
    REQUIRE(o[1] == 7);
    REQUIRE(o[2] == 127);
    REQUIRE(o[3] + o[5] == 127 * 64);
    REQUIRE(o[4] == 0x42800000);  // 64.0f
  }
}

TEST_CASE("resident blocks pass data by a barrier of the whole grid") {
  // Each round every block reads what its neighbour wrote in the round before.
  Words count(1), o(4 * 128), data(2 * 4 * 128);
  SmallKernel k(R"(
  const u32 t = pl::thread(), b = pl::block_x(), n = pl::grid_x();
  u32 v = t;
  for (u32 round = 0; round < 5; ++round) {
    u32* mine = data + 512 * (round % 2);
    pl::store_global(mine + 128 * b + t, &v);
    pl::warpgroup_sync();
    if (t == 0) {
      pl::red_add<pl::release>(count, 1u);
      while (pl::load_acquire(count) < n * (round + 1)) {}
    }
    pl::warpgroup_sync();
    pl::load_global(&v, mine + 128 * ((b + 1) % n) + t);
    v += b;
  }
  pl::store_global(o + 128 * b + t, &v);)");
  k.grid = {4, 1, 1};
  k.writes("u32", "count", count).writes("u32", "data", data).writes("u32", "o", o);
  Words expected;
  for (std::uint32_t b = 0; b < 4; ++b) {
    std::uint32_t sum = 0;
    for (std::uint32_t r = 0; r < 5; ++r) sum += (b + r) % 4;
    for (std::uint32_t t = 0; t < 128; ++t) expected.push_back(t + sum);
  }
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    count[0] = 0;
    k.run(options);
    REQUIRE(o == expected);
  }
}

TEST_CASE("a flag stored with release tells who loads it with acquire, fences do the same") {
  Words flag(2), data(256), o(128);
  SmallKernel k(R"(
  const u32 t = pl::thread();
  u32 v = 3 * t;
  if (pl::block_x() == 0) {
    pl::store_global(data + t, &v);
    pl::warpgroup_sync();
    if (t == 0) pl::store_release(flag, 1u);
    pl::store_global(data + 128 + t, &v);
    pl::warpgroup_sync();
    if (t == 0) {
      pl::fence_gpu();
      pl::atomic_exchange(flag + 1, 1u);
    }
  } else {
    if (t == 0) {
      while (pl::load_acquire(flag) == 0) {}
    }
    pl::warpgroup_sync();
    u32 first, second;
    pl::load_global(&first, data + t);
    if (t == 0) {
      while (pl::atomic_or(flag + 1, 0u) == 0) {}
      pl::fence_gpu();
    }
    pl::warpgroup_sync();
    pl::load_global(&second, data + 128 + t);
    v = first + second;
    pl::store_global(o + t, &v);
  })");
  k.grid = {2, 1, 1};
  k.writes("u32", "flag", flag).writes("u32", "data", data).writes("u32", "o", o);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    flag = {0, 0};
    k.run(options);
    for (std::uint32_t t = 0; t < 128; ++t) REQUIRE(o[t] == 6 * t);
  }
}

TEST_CASE("fences of every scope order what relaxed atomics tell") {
  for (const char* fence : {"fence_block", "fence_cluster", "fence_gpu", "fence_system"}) {
    CAPTURE(fence);
    Words o(1);
    const std::string call = std::string("pl::") + fence + "();";
    SmallKernel k(R"(
  const u32 smem = pl::shared_base(), flag = smem + 64, t = pl::thread();
  u32 v = 0;
  if (t == 0) pl::store_shared(flag, &v);
  pl::warpgroup_sync();
  if (t == 0) {
    v = 5;
    pl::store_shared(smem, &v);
    )" + call + R"(
    pl::atomic_exchange_shared(flag, 1u);
  } else if (t == 32) {
    while (pl::atomic_compare_exchange_shared(flag, 7u, 7u) == 0) {}
    )" + call + R"(
    pl::load_shared(&v, smem);
    pl::store_global(o, &v);
  })");
    k.writes("u32", "o", o).run();
    CHECK(o[0] == 5);
  }
}

TEST_CASE("thousands of blocks may count in one place") {
  Words o(1);
  SmallKernel k("  if (pl::lane() == 0) pl::red_add(o, 1u);");
  k.grid = {3000, 1, 1};
  k.writes("u32", "o", o).run();
  CHECK(o[0] == 12000);
}
