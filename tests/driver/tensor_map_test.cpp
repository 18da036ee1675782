// What the driver is asked when a tensor map is made.
#include "runtime/driver/tensor_map.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "palladium/error.hpp"
#include "runtime/driver/device.hpp"
#include "tests/fake_cuda/in_test.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

namespace {

TensorMapSpec spec() {
  return {.type = TensorMapType::bf16,
          .rank = 2,
          .base = reinterpret_cast<void*>(0x7f0000001000),
          .extents = {4096, 512},
          .strides = {8192},
          .box = {64, 128},
          .swizzle = 128,
          .l2_promotion = 256};
}

template <class Error>
std::string message_of(const TensorMapSpec& spec) {
  try {
    driver::encode(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a tensor map reaches the driver as it was asked for") {
  fake_cuda::State& fake = test::fake_driver();
  const driver::ContextScope context(0);
  const TensorMap map = driver::encode(spec());
  TensorMapSpec other = spec();
  other.type = TensorMapType::f32;
  other.box = {8, 4};
  other.element_strides = {1, 2, 1, 1, 1};
  other.swizzle = 32;
  other.l2_promotion = 0;
  other.nan_fill = true;
  const TensorMap second = driver::encode(other);

  REQUIRE(fake.tensor_maps.size() == 2);
  const fake_cuda::TensorMap& m = fake.tensor_maps[0];
  CHECK(m.type == 9);
  CHECK(m.rank == 2);
  CHECK(m.base == spec().base);
  CHECK(m.extents == std::vector<std::uint64_t>{4096, 512});
  CHECK(m.strides == std::vector<std::uint64_t>{8192});
  CHECK(m.box == std::vector<std::uint32_t>{64, 128});
  CHECK(m.element_strides == std::vector<std::uint32_t>{1, 1});
  CHECK(m.swizzle == 3);       // CU_TENSOR_MAP_SWIZZLE_128B
  CHECK(m.l2_promotion == 3);  // CU_TENSOR_MAP_L2_PROMOTION_L2_256B
  CHECK(m.fill == 0);
  const fake_cuda::TensorMap& n = fake.tensor_maps[1];
  CHECK(n.type == 7);
  CHECK(n.element_strides == std::vector<std::uint32_t>{1, 2});
  CHECK(n.swizzle == 1);  // CU_TENSOR_MAP_SWIZZLE_32B
  CHECK(n.l2_promotion == 0);
  CHECK(n.fill == 1);
  CHECK(std::memcmp(&map, &second, sizeof map) != 0);
}

TEST_CASE("a tensor map that breaks a rule never reaches the driver") {
  fake_cuda::State& fake = test::fake_driver();
  const driver::ContextScope context(0);
  TensorMapSpec bad = spec();
  bad.strides[0] = 8200;
  CHECK(message_of<CompileError>(bad) ==
        "tensor map: stride 8200 of dimension 1 is not a multiple of 16 bytes below 2^40");
  CHECK(fake.count("cuTensorMapEncodeTiled") == 0);
}

TEST_CASE("a driver's refusal of a tensor map tells the map in words") {
  fake_cuda::State& fake = test::fake_driver();
  const driver::ContextScope context(0);
  fake.results["cuTensorMapEncodeTiled"] = 1;
  CHECK_THAT(message_of<CudaError>(spec()),
             ContainsSubstring("cuTensorMapEncodeTiled(2-d bf16 array of 4096 x 512 at "
                               "0x7f0000001000, stride 8192; box of 64 x 128, swizzle 128, "
                               "L2 promotion 256): invalid argument (CUDA_ERROR_INVALID_VALUE)"));
}
