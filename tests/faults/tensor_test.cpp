// Boxes that TMA does not take: each kernel is correct with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

namespace {

/// Boxes of 4 rows of 32 u32 in an array of 10 rows of 72, and `inner`, where one starts: -4, or
/// with a fault what is no multiple of 16 bytes.
struct Boxes {
  std::vector<std::uint32_t> data = std::vector<std::uint32_t>(10 * 72);

  TensorMapSpec map() {
    TensorMapSpec spec;
    spec.type = TensorMapType::u32;
    spec.rank = 2;
    spec.base = data.data();
    spec.extents = {72, 10};
    spec.strides = {72 * 4};
    spec.box = {32, 4};
    return spec;
  }

  SmallKernel kernel(const std::string& body) {
    SmallKernel k(R"(
  const u32 smem = pl::shared_base(), bar = smem + 2048, t = pl::thread();
  const i32 inner = fault == 1 ? -1 : fault == 2 ? 3 : fault == 3 ? 70 : )" + right + R"(;
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
  const u32 four[4] = {1, 2, 3, 4};
  pl::store_shared<4>(smem + 16 * t, four, t < 32);
  pl::fence_async_shared();
  pl::warpgroup_sync();
)" + body);
    k.map("x", map(), data.size() * 4, true);
    return k;
  }

  /// An inner coordinate that nothing is wrong with; stores may not begin before the array.
  std::string right = "-4";

  /// Odd rows are right, inner coordinates are not, wherever they lie.
  void check(const std::string& body, const char* what) {
    SmallKernel k = kernel(body);
    const std::string words = std::string(what) + " a box whose inner coordinate ";
    check_fault(k, {"box"},
                {(words + "-1 lies -4 bytes into the row").c_str(),
                 "it must be 16-byte aligned, a multiple of 4 elements"});
    k.fault = 2;
    test::check_told(k.report(), {k.line("box")}, {(words + "3 lies 12 bytes").c_str()});
    k.fault = 3;
    test::check_told(k.report(), {k.line("box")}, {(words + "70 lies 280 bytes").c_str()});
  }
};

}  // namespace

TEST_CASE("a box loaded from an inner coordinate off 16 bytes is reported") {
  Boxes().check(R"(
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 512);
    pl::tma_load(smem, x, bar, {inner, -1});  // box
  }
  pl::mbarrier_wait(bar, 0);)",
                "loads");
}

TEST_CASE("a box sent to several blocks from an inner coordinate off 16 bytes is reported") {
  Boxes().check(R"(
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx(bar, 512);
    pl::tma_load_multicast(smem, x, bar, 1, {inner, 7});  // box
  }
  pl::mbarrier_wait_cluster(bar, 0);)",
                "loads");
}

TEST_CASE("a box stored to an inner coordinate off 16 bytes is reported") {
  Boxes boxes;
  boxes.right = "4";
  boxes.check(R"(
  if (t == 0) {
    pl::tma_store(x, smem, {inner, 3});  // box
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })",
                "stores");
}

TEST_CASE("a box added to an inner coordinate off 16 bytes is reported") {
  Boxes boxes;
  boxes.right = "4";
  boxes.check(R"(
  if (t == 0) {
    pl::tma_reduce<pl::reduce_add>(x, smem, {inner, 5});  // box
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })",
                "reduces");
}

TEST_CASE("a box prefetched from an inner coordinate off 16 bytes is reported") {
  Boxes().check("  if (t == 0) pl::tma_prefetch(x, {inner, 9});  // box", "prefetches");
}

namespace {

constexpr TensorMapType types[] = {TensorMapType::u8,  TensorMapType::u16, TensorMapType::u32,
                                   TensorMapType::i32, TensorMapType::u64, TensorMapType::i64,
                                   TensorMapType::f16, TensorMapType::f32, TensorMapType::f64,
                                   TensorMapType::bf16};

/// What the emulator says of a reduction of zeros.
std::string reduce(const std::string& how, TensorMapType type) {
  std::vector<std::uint64_t> data(2);
  TensorMapSpec spec;
  spec.type = type;
  spec.base = data.data();
  spec.extents = {16 / bytes_of(type)};
  spec.box = {static_cast<std::uint32_t>(16 / bytes_of(type))};
  SmallKernel k(R"(
  if (pl::thread() == 0) {
    const u32 zeros[4] = {0, 0, 0, 0};
    pl::store_shared<4>(pl::shared_base(), zeros);
    pl::fence_async_shared();
    pl::tma_reduce<pl::reduce_)" +
                how + R"(>(x, pl::shared_base(), {0});  // reduce
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
  k.map("x", spec, 16, true);
  return k.report();
}

}  // namespace

TEST_CASE("reductions of types that TMA does not reduce are reported with those that it does") {
  struct Operation {
    const char* name;
    std::string types;
  };
  const Operation operations[] = {{"add", "u32, i32, u64, f32, f16, bf16"},
                                  {"min", "u32, i32, u64, i64, f16, bf16"},
                                  {"max", "u32, i32, u64, i64, f16, bf16"},
                                  {"and", "u32, i32, u64, i64"},
                                  {"or", "u32, i32, u64, i64"},
                                  {"xor", "u32, i32, u64, i64"},
                                  {"inc", "u32"},
                                  {"dec", "u32"}};
  for (const Operation& o : operations) {
    for (const TensorMapType type : types) {
      const std::string type_name = name(type), told = reduce(o.name, type);
      INFO(o.name << " of " << type_name << ": " << told);
      if ((", " + o.types + ",").find(" " + type_name + ",") != std::string::npos) {
        CHECK(told == "");
      } else {
        CHECK(told.find("reduces elements of " + type_name + " by " + o.name + ": TMA has " +
                        o.name + " of " + o.types + "\n  emitted line ") != std::string::npos);
      }
    }
  }
}

TEST_CASE("a bulk sum of a type that there is none of is refused when the text is compiled") {
  for (const bool right : {true, false}) {
    std::vector<std::int64_t> data(2);
    SmallKernel k(R"(
  if (pl::thread() == 0) {
    const u32 zeros[4] = {0, 0, 0, 0};
    pl::store_shared<4>(pl::shared_base(), zeros);
    pl::fence_async_shared();
    pl::bulk_reduce_add(x, pl::shared_base(), 16);
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
    k.writes(right ? "u64" : "i64", "x", data);
    const std::string told = k.report();
    INFO(told);
    if (right) CHECK(told == "");
    if (!right) CHECK(told.find("bulk_reduce_add: not of this type") != std::string::npos);
  }
}
