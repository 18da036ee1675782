// What the emulator lacks, and what it is given wrongly: an error that names it, never a wrong
// result.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "palladium/error.hpp"
#include "tests/support/hopper_kernels.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;
using Catch::Matchers::Message;

namespace {

struct Array {
  std::vector<std::uint16_t> data = std::vector<std::uint16_t>(64 * 64);
  TensorMapSpec map() { return test::map_of(data, 64, 64, 8, 64); }
};

}  // namespace

TEST_CASE("a tensor map with element strides is refused by name") {
  Array a;
  TensorMapSpec spec = a.map();
  spec.element_strides[1] = 2;
  CHECK_THROWS_MATCHES(emulator::encode(spec), CompileError,
                       Message("the emulator lacks tensor maps with element strides"));
}

TEST_CASE("tensor maps that flush subnormals are refused by name") {
  Array a;
  for (const auto type : {TensorMapType::tf32_ftz, TensorMapType::f32_ftz}) {
    TensorMapSpec spec = a.map();
    spec.type = type;
    spec.box[0] = 32;
    spec.extents[0] = 32;
    CHECK_THROWS_MATCHES(emulator::encode(spec), CompileError,
                         Message("the emulator lacks tensor maps that flush subnormals"));
  }
}

TEST_CASE("a box whose rows do not fill its swizzle is refused by name") {
  Array a;
  TensorMapSpec spec = a.map();
  spec.box[0] = 32;
  CHECK_THROWS_MATCHES(
      emulator::encode(spec), CompileError,
      Message("the emulator lacks boxes whose rows of 64 bytes do not fill the swizzle's 128"));
}

TEST_CASE("a tensor map that no driver takes is refused with the driver's rule") {
  Array a;
  TensorMapSpec spec = a.map();
  spec.box[1] = 257;
  CHECK_THROWS_MATCHES(emulator::encode(spec), CompileError,
                       Message("tensor map: box extent 257 of dimension 1 is not in 1..256"));
}

TEST_CASE("a matrix descriptor with a base offset is refused by name") {
  test::SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  pl::store_shared<4>(smem + 16 * t, ones);
  pl::store_shared<4>(smem + 2048 + 16 * t, ones, t < 16);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[4];
  const u64 b = pl::matrix_descriptor(smem + 2048, 128, 128, 0) | u64(3 * fault) << 49;
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, pl::matrix_descriptor(smem, 1024, 128, 0), b, false);  // multiply
  pl::wgmma_commit();
  pl::wgmma_wait<0>();)");
  test::check_fault(k, {"multiply"},
                    {"uses a matrix descriptor with a base offset, which the emulator lacks"});
}

TEST_CASE("a product that no tensor core has is refused with those that there are") {
  const test::SmallKernel k(R"(
  f32 d[4];
  pl::wgmma_m64n8k16_f32_bf16_f16(d, 0, 0, false);)");
  const std::string told = k.report();
  INFO(told);
  CHECK(told.find("there is no pl::wgmma_m64n8k16_f32_bf16_f16: types go together as "
                  "f32_bf16_bf16") != told.npos);
}
