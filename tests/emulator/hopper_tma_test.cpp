// TMA: boxes of every rank and swizzle, also where they leave their array, and multicast.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/emulator/tensor_map.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Place = std::array<std::int64_t, 5>;

struct Shape {
  TensorMapType type;
  int element_bytes;
  std::vector<std::int64_t> extents, box;
  int swizzle;

  int rank() const { return static_cast<int>(extents.size()); }
  /// The elements that inner coordinates are multiples of.
  std::int64_t step() const { return 16 / element_bytes; }
  std::size_t row_bytes() const {
    // Rows of arrays begin at multiples of 16.
    return (static_cast<std::size_t>(extents[0]) * static_cast<std::size_t>(element_bytes) + 15) /
           16 * 16;
  }
  std::vector<std::size_t> strides() const {
    std::vector<std::size_t> s = {static_cast<std::size_t>(element_bytes)};
    std::size_t next = row_bytes();
    for (int d = 1; d < rank(); ++d) {
      s.push_back(next);
      next *= static_cast<std::size_t>(extents[static_cast<std::size_t>(d)]);
    }
    s.push_back(next);  // all of it
    return s;
  }
  std::size_t bytes() const { return strides().back(); }
  std::size_t box_bytes() const {
    std::size_t n = static_cast<std::size_t>(element_bytes);
    for (const std::int64_t b : box) n *= static_cast<std::size_t>(b);
    return n;
  }
  TensorMapSpec map(Bytes& array) const {
    TensorMapSpec spec;
    spec.type = type;
    spec.rank = rank();
    spec.base = array.data();
    spec.swizzle = swizzle;
    const std::vector<std::size_t> s = strides();
    for (std::size_t d = 0; d < extents.size(); ++d) {
      spec.extents[d] = static_cast<std::uint64_t>(extents[d]);
      spec.box[d] = static_cast<std::uint32_t>(box[d]);
      if (d > 0) spec.strides[d - 1] = s[d];
    }
    return spec;
  }
  /// The same array with rows that end where stores do, at multiples of 16 bytes.
  Shape as_written() const {
    Shape s = *this;
    s.extents[0] = (s.extents[0] + step() - 1) / step() * step();
    return s;
  }
  /// Visits each element of the box at `at`: its offset in the box, where it is in the array, and
  /// whether it is inside.
  template <class Visit>
  void for_each(const Place& at, Visit visit) const {
    std::size_t elements = 1;
    for (const std::int64_t b : box) elements *= static_cast<std::size_t>(b);
    const std::vector<std::size_t> s = strides();
    for (std::size_t e = 0; e < elements; ++e) {
      std::size_t rest = e, offset = 0;
      bool inside = true;
      for (std::size_t d = 0; d < box.size(); ++d) {
        const std::int64_t x =
            at[d] + static_cast<std::int64_t>(rest % static_cast<std::size_t>(box[d]));
        rest /= static_cast<std::size_t>(box[d]);
        inside = inside && x >= 0 && x < extents[d];
        if (inside) offset += static_cast<std::size_t>(x) * s[d];
      }
      visit(e * static_cast<std::size_t>(element_bytes), offset, inside);
    }
  }
};

// Where byte `i` of a box lies that begins at a multiple of 1024.
std::size_t swizzled(std::size_t i, int swizzle) {
  const std::size_t line = i / 128, chunk = i % 128 / 16;
  const std::size_t mask = swizzle == 0 ? 0 : static_cast<std::size_t>(swizzle / 16 - 1);
  return line * 128 + (chunk ^ (line & mask)) * 16 + i % 16;
}

Bytes numbers(std::size_t n, std::uint32_t seed) {
  Bytes v(n);
  for (std::uint8_t& x : v)
    x = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return v;
}

// Loads the box of x at `at`, shows how it lies in shared memory, and stores it to y at `to`.
struct Copy {
  Bytes x, y, shown;
  std::vector<std::int32_t> where;

  Copy(const Shape& shape, const Place& at, const Place& to, const emulator::Options& options) {
    x = numbers(shape.bytes(), 1);
    y = numbers(shape.bytes(), 2);
    shown.assign(shape.box_bytes(), 0xee);
    std::string from = "{", into = "{";
    for (int d = 0; d < shape.rank(); ++d) {
      from += (d > 0 ? ", at[" : "at[") + std::to_string(d) + "]";
      into += (d > 0 ? ", at[5 + " : "at[5 + ") + std::to_string(d) + "]";
    }
    for (const Place* p : {&at, &to}) {
      for (const std::int64_t c : *p) where.push_back(static_cast<std::int32_t>(c));
    }
    where.push_back(static_cast<std::int32_t>(shape.box_bytes()));
    SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 16384, t = pl::thread();
  i32 at[11];
  PL_UNROLL for (i32 i = 0; i < 11; ++i) pl::load_global(&at[i], where + i);
  const u32 bytes = at[10];
  if (t == 0) {
    pl::tma_prefetch_map(x);
    pl::tma_prefetch(x, )" +
                  from + R"(});
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, bytes);
    pl::tma_load<pl::evict_first>(smem, x, bar, )" +
                  from + R"(});
  }
  pl::warpgroup_sync();
  pl::mbarrier_wait(bar, 0);
  for (u32 i = 16 * t; i < bytes; i += 16 * 128) {
    u8 v[16];
    pl::load_shared<16>(v, smem + i);
    pl::store_global<16>(shown + i, v);
  }
  if (t == 0) {
    pl::tma_store(y, smem, )" +
                  into + R"(});
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
    k.shared_bytes = 16384 + 8;
    k.map("x", shape.map(x), x.size(), false).map("y", shape.map(y), y.size(), true);
    k.reads("i32", "where", where).writes("u8", "shown", shown);
    k.run(options);
  }
};

void check_extent(const Shape& shape, const Place& at) {
  Bytes x(shape.bytes());
  std::size_t begin = x.size(), end = 0;
  shape.for_each(at, [&](std::size_t, std::size_t from, bool inside) {
    if (!inside) return;
    begin = std::min(begin, from);
    end = std::max(end, from + static_cast<std::size_t>(shape.element_bytes));
  });
  std::array<int, 5> place = {};
  std::copy(at.begin(), at.end(), place.begin());
  const emulator::Extent extent = emulator::extent_of(shape.map(x), place);
  REQUIRE(extent.bytes == (begin < end ? end - begin : 0));
  if (begin < end) REQUIRE(extent.begin == reinterpret_cast<std::uintptr_t>(&x[begin]));
}

void check(const Shape& shape, const Place& at, const Place& to, const emulator::Options& options) {
  const Copy copy(shape, at, to, options);
  const auto size = static_cast<std::size_t>(shape.element_bytes);
  Bytes box(shape.box_bytes()), shown(shape.box_bytes()), y = numbers(shape.bytes(), 2);
  shape.for_each(at, [&](std::size_t i, std::size_t from, bool inside) {
    if (inside) std::memcpy(&box[i], &copy.x[from], size);
  });
  for (std::size_t i = 0; i < box.size(); ++i) shown[swizzled(i, shape.swizzle)] = box[i];
  shape.as_written().for_each(to, [&](std::size_t i, std::size_t into, bool inside) {
    if (inside) std::memcpy(&y[into], &box[i], size);
  });
  INFO("rank " << shape.rank() << ", swizzle " << shape.swizzle << ", at " << at[0] << " " << at[1]
               << " " << at[2] << ", " << test::describe(options));
  REQUIRE(copy.shown == shown);
  REQUIRE(copy.y == y);
  check_extent(shape, at);
}

// Inside; out on each side of each dimension, but for stores before the array; wholly outside.
void check_places(const Shape& shape) {
  const std::vector<emulator::Options> policies = test::policies();
  std::size_t turn = 0;
  const auto next = [&] { return policies[turn++ % policies.size()]; };
  check(shape, {}, {shape.step(), 1, 1, 1, 1}, next());
  for (std::size_t d = 0; d < shape.box.size(); ++d) {
    const std::int64_t step = d == 0 ? shape.step() : 1;
    Place low = {}, high = {};
    low[d] = (-1 - static_cast<std::int64_t>(d)) * step;
    high[d] = (shape.extents[d] - 1) / step * step;
    check(shape, low, high, next());
    check(shape, high, {shape.step()}, next());
    low[d] = -shape.box[d];
    high[d] = (shape.extents[d] + step - 1) / step * step;
    check(shape, low, {}, next());
    check(shape, {}, high, next());
  }
}

}  // namespace

TEST_CASE("boxes that begin before the array are loaded, and neither stored nor added") {
  std::vector<float> y(64, 1);
  TensorMapSpec spec;
  spec.type = TensorMapType::f32;
  spec.rank = 2;
  spec.base = y.data();
  spec.extents = {16, 4};
  spec.strides = {64};
  spec.box = {8, 2};
  for (const std::string call : {"tma_store", "tma_reduce<pl::reduce_add>"})
    for (const char* at : {"-4, 0", "0, -1", "-8, 0"}) {
      CAPTURE(call, at);
      SmallKernel k(
          "  const u32 smem = pl::shared_base(), t = pl::thread();\n  const u32 zero = 0;\n"
          "  if (t < 16) pl::store_shared(smem + 4 * t, &zero);\n"
          "  pl::fence_async_shared();\n  pl::warpgroup_sync();\n"
          "  if (t == 0) {\n    pl::" +
          call + "(y, smem, {" + at +
          "});\n"
          "    pl::bulk_commit();\n    pl::bulk_wait<0>();\n  }");
      k.shared_bytes = 64;
      k.map("y", spec, 256, true);
      CHECK_THROWS_WITH(k.run(), Catch::Matchers::ContainsSubstring("before the array along"));
      CHECK(y == std::vector<float>(64, 1));
    }
}

TEST_CASE("boxes of rank 1 are copied, inside and across each end") {
  check_places({TensorMapType::u8, 1, {100}, {32}, 0});
  check_places({TensorMapType::f64, 8, {50}, {16}, 128});
  check_places({TensorMapType::u16, 2, {3}, {8}, 0});
}

TEST_CASE("boxes of rank 2 are copied in every swizzle, inside and across each side") {
  check_places({TensorMapType::bf16, 2, {70, 40}, {64, 24}, 128});
  check_places({TensorMapType::bf16, 2, {70, 40}, {32, 24}, 64});
  check_places({TensorMapType::bf16, 2, {70, 40}, {16, 24}, 32});
  check_places({TensorMapType::f32, 4, {21, 9}, {12, 5}, 0});
}

TEST_CASE("boxes of rank 3 are copied in every swizzle, inside and across each side") {
  check_places({TensorMapType::f16, 2, {70, 9, 5}, {64, 4, 3}, 128});
  check_places({TensorMapType::f32, 4, {20, 9, 5}, {16, 4, 3}, 64});
  check_places({TensorMapType::u8, 1, {50, 9, 5}, {32, 4, 3}, 32});
  check_places({TensorMapType::i32, 4, {20, 9, 5}, {8, 4, 3}, 0});
}

TEST_CASE("boxes of rank 4 are copied, inside and across each side") {
  check_places({TensorMapType::bf16, 2, {65, 5, 4, 3}, {64, 4, 2, 2}, 128});
  check_places({TensorMapType::u32, 4, {9, 5, 4, 3}, {8, 4, 2, 2}, 32});
  check_places({TensorMapType::i64, 8, {9, 5, 4, 3}, {2, 3, 2, 2}, 0});
}

TEST_CASE("boxes of rank 5 are copied, inside and across each side") {
  check_places({TensorMapType::u64, 8, {9, 4, 3, 3, 2}, {8, 3, 2, 2, 1}, 64});
  check_places({TensorMapType::u8, 1, {40, 4, 3, 3, 2}, {16, 3, 2, 2, 2}, 0});
}

TEST_CASE("parts of a box outside its array are NaN where the map says so") {
  std::vector<float> x(8 * 8, 2.0f);
  std::vector<std::uint32_t> o(64);
  TensorMapSpec spec;
  spec.type = TensorMapType::f32;
  spec.rank = 2;
  spec.base = x.data();
  spec.extents = {8, 8};
  spec.strides = {32};
  spec.box = {8, 8};
  spec.nan_fill = true;
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 1024, t = pl::thread();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 256);
    pl::tma_load(smem, x, bar, {-4, 6});
  }
  pl::warpgroup_sync();
  pl::mbarrier_wait(bar, 0);
  f32 v;
  pl::load_shared(&v, smem + 4 * t, t < 64);
  const u32 is = pl::is_nan(v) ? 1 : pl::bitcast<u32>(v);
  pl::store_global(o + t, &is, t < 64);)");
  k.map("x", spec, x.size() * 4, false).writes("u32", "o", o).run();
  for (std::size_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    REQUIRE(o[i] == (i % 8 >= 4 && i / 8 < 2 ? 0x40000000u : 1u));
  }
}

TEST_CASE("a multicast brings its box to the blocks of its mask and completes on their barriers") {
  Bytes x = numbers(4 * 256, 3), o(8 * 1024);
  const Shape shape = {TensorMapType::u8, 1, {128, 8}, {128, 2}, 0};
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 1024, rank = pl::cluster_rank(), t = pl::thread();
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, rank == 3 ? 512 : 1024);
  }
  const u32 zero[2] = {};
  pl::store_shared<2>(smem + 8 * t, zero);
  pl::fence_async_shared();
  pl::cluster_sync();
  const u16 mask = rank < 2 ? 15 : 7;  // ranks 2 and 3 leave out block 3
  if (t == 0) pl::tma_load_multicast(smem + 256 * rank, x, bar, mask, {0, 2 * i32(rank)});
  pl::mbarrier_wait_cluster(bar, 0);
  u8 v[8];
  pl::load_shared<8>(v, smem + 8 * t);
  pl::store_global<8>(o + 1024 * pl::block_x() + 8 * t, v);
  pl::cluster_sync();)");
  k.grid = {8, 1, 1};
  k.cluster = {4, 1, 1};
  k.map("x", shape.map(x), x.size(), false).writes("u8", "o", o);
  Bytes expected;
  for (int block = 0; block < 8; ++block) {
    Bytes part(1024);
    std::copy_n(x.begin(), block % 4 == 3 ? 512 : 1024, part.begin());
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    k.run(options);
    REQUIRE(o == expected);
  }
}
