// Copies without tensor maps, reductions into global memory, groups, and cp.async.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/hopper_kernels.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

void check_everywhere(const SmallKernel& k, Words& o, const Words& expected) {
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    o.assign(o.size(), 0xdead);
    k.run(options);
    REQUIRE(o == expected);
  }
}

Words count(std::uint32_t n, std::uint32_t first = 0) {
  Words v;
  for (std::uint32_t i = 0; i < n; ++i) v.push_back(first + i);
  return v;
}

}  // namespace

TEST_CASE("bulk copies go to shared memory and back") {
  Words x = count(512, 9), o(512);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 2048, t = pl::thread();
  if (t == 0) {
    pl::bulk_prefetch(x, 2048);
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 2048);
    pl::bulk_load<pl::evict_last>(smem, x, 1008, bar);
    pl::bulk_load(smem + 1008, x + 252, 1040, bar);
    pl::mbarrier_wait(bar, 0);
    pl::bulk_store<pl::evict_first>(o, smem, 16);
    pl::bulk_commit();
    pl::bulk_store(o + 4, smem + 16, 2032);
    pl::bulk_commit();
    pl::bulk_wait_read<1>();
    pl::bulk_wait<0>();
  })");
  k.reads("u32", "x", x).writes("u32", "o", o);
  check_everywhere(k, o, x);
}

TEST_CASE("groups of copies: their sources are free after bulk_wait_read") {
  // Four buffers' worth goes through two buffers; the groups' order is the thread's.
  Words o(4 * 128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  for (u32 i = 0; i < 4; ++i) {
    const u32 buffer = smem + 512 * (i % 2), v = 1000 * i + t;
    if (i >= 2 && t == 0) pl::bulk_wait_read<1>();
    pl::warpgroup_sync();
    pl::store_shared(buffer + 4 * t, &v);
    pl::fence_async();
    pl::warpgroup_sync();
    if (t == 0) {
      pl::bulk_store(o + 128 * i, buffer, 512);
      pl::bulk_commit();
    }
  }
  if (t == 0) pl::bulk_wait<0>();)");
  k.writes("u32", "o", o);
  Words expected;
  for (std::uint32_t i = 0; i < 512; ++i) expected.push_back(1000 * (i / 128) + i % 128);
  check_everywhere(k, o, expected);
}

TEST_CASE("a bulk multicast brings its bytes to the blocks of its mask") {
  Words x = count(64), o(4 * 64);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 512, rank = pl::cluster_rank(), t = pl::thread();
  const u32 zero = 0;
  pl::store_shared(smem + 4 * t, &zero);
  pl::fence_async_shared();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, rank == 1 ? 0 : 256);
  }
  pl::cluster_sync();
  if (rank == 2 && t == 0) pl::bulk_load_multicast(smem, x, 256, bar, 13);
  pl::mbarrier_wait_cluster(bar, 0);
  u32 v;
  pl::load_shared(&v, smem + 4 * t, t < 64);
  pl::store_global(o + 64 * rank + t, &v, t < 64);
  pl::cluster_sync();)");
  k.grid = {1, 4, 1};
  k.cluster = {1, 4, 1};
  k.reads("u32", "x", x).writes("u32", "o", o);
  Words expected;
  for (std::uint32_t i = 0; i < 256; ++i) expected.push_back(i / 64 == 1 ? 0 : i % 64);
  check_everywhere(k, o, expected);
}

namespace {

// One reduction of 16 bytes by TMA, by number; and the same into the array of a tensor map.
constexpr const char* reductions = R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  u8 v[16];
  if (t == 0) {
    pl::load_global<16>(v, x);
    pl::store_shared<16>(smem, v);
    pl::fence_async_shared();
    switch (fault) {
    case 0: pl::tma_reduce<pl::reduce_add>(y, smem, {0}); break;
    case 1: pl::tma_reduce<pl::reduce_min>(y, smem, {0}); break;
    case 2: pl::tma_reduce<pl::reduce_max>(y, smem, {0}); break;
    case 3: pl::tma_reduce<pl::reduce_and>(y, smem, {0}); break;
    case 4: pl::tma_reduce<pl::reduce_or>(y, smem, {0}); break;
    case 5: pl::tma_reduce<pl::reduce_xor>(y, smem, {0}); break;
    case 6: pl::tma_reduce<pl::reduce_inc>(y, smem, {0}); break;
    case 7: pl::tma_reduce<pl::reduce_dec>(y, smem, {0}); break;
    }
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })";

enum Operation { add, min, max, bit_and, bit_or, bit_xor, inc, dec };

template <class T, class Of>
void check_reduction(TensorMapType type, Operation operation, std::vector<T> old,
                     std::vector<T> value, Of of) {
  std::vector<T> y = old;
  TensorMapSpec spec;
  spec.type = type;
  spec.base = y.data();
  spec.extents = {y.size()};
  spec.box = {static_cast<std::uint32_t>(y.size())};
  SmallKernel k(reductions);
  k.reads("u8", "x", value).map("y", spec, 16, true);
  k.fault = operation;
  k.run();
  for (std::size_t i = 0; i < y.size(); ++i) {
    CAPTURE(static_cast<int>(type), static_cast<int>(operation), i);
    REQUIRE(y[i] == of(old[i], value[i]));
  }
}

template <class T>
void check_integers(TensorMapType type, std::vector<T> a, std::vector<T> b) {
  if (type != TensorMapType::i64) {  // of which there are no sums
    check_reduction(type, add, a, b, [](T x, T y) { return static_cast<T>(x + y); });
  }
  check_reduction(type, min, a, b, [](T x, T y) { return x < y ? x : y; });
  check_reduction(type, max, a, b, [](T x, T y) { return x < y ? y : x; });
  check_reduction(type, bit_and, a, b, [](T x, T y) { return static_cast<T>(x & y); });
  check_reduction(type, bit_or, a, b, [](T x, T y) { return static_cast<T>(x | y); });
  check_reduction(type, bit_xor, a, b, [](T x, T y) { return static_cast<T>(x ^ y); });
}

std::uint16_t half(float x) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)); }

}  // namespace

TEST_CASE("reductions of integers by TMA: every operation of every format") {
  check_integers<std::uint32_t>(TensorMapType::u32, {1, 0xffffffff, 7, 0x80000000},
                                {2, 3, 7, 0x7fffffff});
  check_integers<std::int32_t>(TensorMapType::i32, {1, -1, 7, -2000}, {-2, 3, 7, 2000});
  check_integers<std::uint64_t>(TensorMapType::u64, {1, 0xffffffffffffffff}, {0xf00000000, 3});
  check_integers<std::int64_t>(TensorMapType::i64, {1, -5'000'000'000}, {-2, 3});
  // Counters that wrap at a bound.
  const auto up = [](std::uint32_t x, std::uint32_t bound) { return x >= bound ? 0 : x + 1; };
  const auto down = [](std::uint32_t x, std::uint32_t bound) {
    return x == 0 || x > bound ? bound : x - 1;
  };
  check_reduction<std::uint32_t>(TensorMapType::u32, inc, {0, 6, 7, 9}, {7, 7, 7, 7}, up);
  check_reduction<std::uint32_t>(TensorMapType::u32, dec, {0, 6, 7, 9}, {7, 7, 7, 7}, down);
}

TEST_CASE("reductions of floats by TMA: every operation of every format") {
  check_reduction<float>(TensorMapType::f32, add, {1, 2.5f, -3, 1e30f}, {4, -2.5f, 1e-9f, 1},
                         [](float x, float y) { return x + y; });
  const std::vector<float> a = {1, -2, 0.5f, 3, -4, 5, 100, 0}, b = {2, 2, -0.25f, 3, 4, -6, 1, -1};
  for (const bool brain : {false, true}) {
    const auto type = brain ? TensorMapType::bf16 : TensorMapType::f16;
    const auto narrow = [&](float x) { return brain ? test::to_bf16(x) : half(x); };
    const auto widen = [&](std::uint16_t x) {
      return brain ? test::from_bf16(x) : static_cast<float>(std::bit_cast<_Float16>(x));
    };
    std::vector<std::uint16_t> x, y;
    for (const float v : a) x.push_back(narrow(v));
    for (const float v : b) y.push_back(narrow(v));
    check_reduction(type, add, x, y, [&](auto p, auto q) { return narrow(widen(p) + widen(q)); });
    check_reduction(type, min, x, y, [&](auto p, auto q) { return widen(p) < widen(q) ? p : q; });
    check_reduction(type, max, x, y, [&](auto p, auto q) { return widen(p) < widen(q) ? q : p; });
  }
}

TEST_CASE(
    "sums of f32 by atomics on global memory flush subnormals to zeros of their sign, copies that "
    "add keep them") {
  // Old values and terms: subnormal ones, and normal ones with a subnormal sum. -0 is not +0.
  const auto bits = [](const std::vector<float>& v) {
    Words w(v.size());
    std::memcpy(w.data(), v.data(), 4 * v.size());
    return w;
  };
  const float tiny = std::bit_cast<float>(1u), least = std::bit_cast<float>(0x00800000u);
  const std::vector<float> old = {tiny, -tiny, least, 1}, term = {tiny, -tiny, -1.5f * least, tiny};
  const Words expected = bits({0, -0.0f, -0.0f, 1});
  std::vector<float> x = term, atomic = old, red = old, bulk = old, tensor = old, shared = old;
  TensorMapSpec spec;
  spec.type = TensorMapType::f32;
  spec.base = tensor.data();
  spec.extents = {4};
  spec.box = {4};
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  f32 v[4];
  if (t < 4) {
    pl::load_global(v, x + t);
    pl::atomic_add(atomic + t, v[0]);
    pl::red_add(red + t, v[0]);
    pl::load_global(v + 1, shared + t);
    pl::store_shared(smem + 128 + 4 * t, v + 1);
    pl::atomic_add_shared(smem + 128 + 4 * t, v[0]);
    pl::load_shared(v + 1, smem + 128 + 4 * t);
    pl::store_global(shared + t, v + 1);
  }
  if (t == 4) {
    pl::load_global<4>(v, x);
    pl::store_shared<4>(smem, v);
    pl::fence_async_shared();
    pl::bulk_reduce_add(bulk, smem, 16);
    pl::tma_reduce<pl::reduce_add>(tensor, smem, {0});
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
  k.reads("f32", "x", x).writes("f32", "atomic", atomic).writes("f32", "red", red);
  k.writes("f32", "bulk", bulk).writes("f32", "shared", shared).map("tensor", spec, 16, true);
  k.run();
  CHECK(bits(atomic) == expected);
  CHECK(bits(red) == expected);
  const Words kept = bits({2 * tiny, -2 * tiny, -0.5f * least, 1});
  CHECK(bits(bulk) == kept);
  CHECK(bits(tensor) == kept);
  CHECK(bits(shared) == kept);
}

TEST_CASE("reductions skip what lies outside the array, and add up over blocks") {
  std::vector<float> y(12, 1);
  TensorMapSpec spec;
  spec.type = TensorMapType::f32;
  spec.base = y.data();
  spec.extents = {12};
  spec.box = {8};
  SmallKernel k(R"(
  const u32 smem = pl::shared_base();
  if (pl::thread() == 0) {
    const f32 v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    pl::store_shared<4>(smem, v);
    pl::store_shared<4>(smem + 16, v + 4);
    pl::fence_async_shared();
    pl::tma_reduce<pl::reduce_add>(y, smem, {4 * pl::block_x()});
    pl::bulk_commit();
    pl::bulk_wait_read<0>();
  })");
  k.grid = {4, 1, 1};
  k.map("y", spec, 48, true);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    y.assign(12, 1);
    k.run(options);
    REQUIRE(y == std::vector<float>{2, 3, 4, 5, 7, 9, 11, 13, 7, 9, 11, 13});
  }
}

TEST_CASE("bulk reductions add every format") {
  std::vector<std::int32_t> i = {1, 2, 3, 4};
  Words u = {1, 2, 3, 0xffffffff};
  std::vector<std::uint64_t> w = {1, 1ull << 40};
  std::vector<float> f = {1, 2, 3, 4};
  std::vector<double> d = {1, 2};
  std::vector<std::uint16_t> h(8, half(1.5f)), b(8, test::to_bf16(1.5f));
  SmallKernel k(R"(
  const u32 smem = pl::shared_base();
  if (pl::thread() != 0) return;
  const i32 vi[4] = {-1, 2, -3, 4};
  const u32 vu[4] = {1, 1, 1, 1};
  const u64 vw[2] = {1, u64(1) << 40};
  const f32 vf[4] = {0.5f, 0.5f, 0.5f, 0.5f};
  const f64 vd[2] = {0.25, -2};
  f16 vh[8];
  bf16 vb[8];
  for (i32 e = 0; e < 8; ++e) { vh[e] = pl::to<f16>(f32(e)); vb[e] = pl::to<bf16>(f32(e)); }
  pl::store_shared<4>(smem, vi);
  pl::store_shared<4>(smem + 16, vu);
  pl::store_shared<2>(smem + 32, vw);
  pl::store_shared<4>(smem + 48, vf);
  pl::store_shared<2>(smem + 64, vd);
  pl::store_shared<8>(smem + 80, vh);
  pl::store_shared<8>(smem + 96, vb);
  pl::fence_async_shared();
  pl::bulk_reduce_add(i, smem, 16);
  pl::bulk_reduce_add(u, smem + 16, 16);
  pl::bulk_reduce_add(w, smem + 32, 16);
  pl::bulk_reduce_add(f, smem + 48, 16);
  pl::bulk_reduce_add(d, smem + 64, 16);
  pl::bulk_reduce_add(h, smem + 80, 16);
  pl::bulk_reduce_add(b, smem + 96, 16);
  pl::bulk_commit();
  pl::bulk_wait<0>();)");
  k.writes("i32", "i", i).writes("u32", "u", u).writes("u64", "w", w).writes("f32", "f", f);
  k.writes("f64", "d", d).writes("f16", "h", h).writes("bf16", "b", b).run();
  CHECK(i == std::vector<std::int32_t>{0, 4, 0, 8});
  CHECK(u == Words{2, 3, 4, 0});
  CHECK(w == std::vector<std::uint64_t>{2, 1ull << 41});
  CHECK(f == std::vector<float>{1.5f, 2.5f, 3.5f, 4.5f});
  CHECK(d == std::vector<double>{1.25, 0});
  for (int e = 0; e < 8; ++e) {
    CHECK(h[static_cast<std::size_t>(e)] == half(1.5f + static_cast<float>(e)));
    CHECK(b[static_cast<std::size_t>(e)] == test::to_bf16(1.5f + static_cast<float>(e)));
  }
}

TEST_CASE("cp.async copies in every width, zeros where out of bounds, group by group") {
  Words x = count(1024, 1), o(3 * 128);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  pl::cp_async<4>(smem + 4 * t, x + t, t % 3 != 0);
  pl::cp_async_commit();
  pl::cp_async<8>(smem + 512 + 8 * t, x + 2 * t);
  pl::cp_async_commit();
  pl::cp_async<16>(smem + 2048 + 16 * t, t < 127 ? x + 4 * t : nullptr, t < 127);
  pl::cp_async_commit();
  u32 a, b[2], c[4];
  pl::cp_async_wait<2>();
  pl::load_shared(&a, smem + 4 * t);
  pl::cp_async_wait<1>();
  pl::load_shared<2>(b, smem + 512 + 8 * t);
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  pl::load_shared<4>(c, smem + 2048 + 16 * (127 - t));
  pl::store_global(o + t, &a);
  pl::store_global(o + 128 + t, &b[1]);
  pl::store_global(o + 256 + t, &c[3]);)");
  k.reads("u32", "x", x).writes("u32", "o", o);
  Words expected;
  for (std::uint32_t t = 0; t < 128; ++t) expected.push_back(t % 3 != 0 ? t + 1 : 0);
  for (std::uint32_t t = 0; t < 128; ++t) expected.push_back(2 * t + 2);
  for (std::uint32_t t = 0; t < 128; ++t) expected.push_back(t == 0 ? 0 : 4 * (127 - t) + 4);
  check_everywhere(k, o, expected);
}

TEST_CASE("cp.async arrives on a barrier when the thread's copies are done") {
  Words x = count(256, 5), o(64);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 2048, t = pl::thread();
  if (t == 0) {
    pl::mbarrier_init(bar, 64);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  if (t < 64) {
    pl::cp_async<16>(smem + 16 * t, x + 4 * t);
    pl::cp_async_arrive(bar);
    pl::cp_async_commit();
  } else {
    u32 v;
    pl::mbarrier_wait(bar, 0);
    pl::load_shared(&v, smem + 16 * (127 - t));
    pl::store_global(o + t - 64, &v);
  })");
  k.reads("u32", "x", x).writes("u32", "o", o);
  Words expected;
  for (std::uint32_t i = 0; i < 64; ++i) expected.push_back(4 * (63 - i) + 5);
  check_everywhere(k, o, expected);
}

TEST_CASE(
    "copies of a thread to the same place race, in one group too; beside each other they do not") {
  const auto reports = [](int apart) {
    Words x = count(128, 1), o(128);
    SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  pl::cp_async<16>(smem + 32 * t, x);
  pl::cp_async<16>(smem + 32 * t + )" +
                  std::to_string(apart) + R"(, x + 4);
  pl::cp_async_commit();
  pl::cp_async_wait<0>();
  u32 v;
  pl::load_shared(&v, smem + 32 * t);
  pl::store_global(o + t, &v);)");
    k.reads("u32", "x", x).writes("u32", "o", o);
    try {
      k.run({});
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(reports(16).empty());
  CHECK(reports(0).find("race: the write") != std::string::npos);
}
