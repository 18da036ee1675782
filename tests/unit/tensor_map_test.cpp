// The rules of cuTensorMapEncodeTiled, one by one, at both of their ends.
#include "codegen/base/tensor_map.hpp"

#include <functional>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A 3-d array of bf16 that keeps all rules.
TensorMapSpec good() {
  return {.type = TensorMapType::bf16,
          .rank = 3,
          .base = reinterpret_cast<void*>(0x7f00'0000'0010),
          .extents = {4096, 512, 7},
          .strides = {8192, 8192 * 512},
          .box = {64, 128, 1},
          .swizzle = 128};
}

std::string problem(const std::function<void(TensorMapSpec&)>& change) {
  TensorMapSpec spec = good();
  change(spec);
  return problem_of(spec);
}

}  // namespace

TEST_CASE("a tensor map that keeps the rules has no problem") {
  CHECK(problem_of(good()).empty());
  // Dimensions behind the rank say nothing.
  CHECK(problem([](auto& s) {
          s.rank = 2, s.extents[2] = 0, s.box[2] = 0, s.strides[1] = 1;
        }).empty());
}

TEST_CASE("a tensor map has 1 to 5 dimensions") {
  CHECK(problem([](auto& s) { s.rank = 1; }).empty());
  CHECK(problem([](auto& s) {
          s.rank = 5, s.extents[3] = s.extents[4] = 2, s.box[3] = s.box[4] = 1;
          s.strides[2] = s.strides[3] = 16;
        }).empty());
  CHECK(problem([](auto& s) { s.rank = 0; }) == "rank 0 is not in 1..5");
  CHECK(problem([](auto& s) { s.rank = 6; }) == "rank 6 is not in 1..5");
}

TEST_CASE("a tensor map's array begins at a multiple of 16 bytes") {
  CHECK_THAT(problem([](auto& s) { s.base = reinterpret_cast<void*>(0x7f0000000008); }),
             ContainsSubstring("0x7f0000000008 is not a multiple of 16"));
  CHECK_THAT(problem([](auto& s) { s.base = nullptr; }), ContainsSubstring("address 0x0"));
}

TEST_CASE("a tensor map's extents are 1 to 2^32") {
  CHECK(problem([](auto& s) { s.extents[1] = 1; }).empty());
  CHECK(problem([](auto& s) { s.extents[1] = std::uint64_t{1} << 32; }).empty());
  CHECK(problem([](auto& s) { s.extents[1] = 0; }) == "extent 0 of dimension 1 is not in 1..2^32");
  CHECK(problem([](auto& s) { s.extents[0] = (std::uint64_t{1} << 32) + 1; }) ==
        "extent 4294967297 of dimension 0 is not in 1..2^32");
}

TEST_CASE("a tensor map's strides are multiples of 16 bytes below 2^40") {
  CHECK(problem([](auto& s) { s.strides[1] = (std::uint64_t{1} << 40) - 16; }).empty());
  CHECK(problem([](auto& s) { s.strides[1] = std::uint64_t{1} << 40; }) ==
        "stride 1099511627776 of dimension 2 is not a multiple of 16 bytes below 2^40");
  CHECK(problem([](auto& s) { s.strides[0] = 8200; }) ==
        "stride 8200 of dimension 1 is not a multiple of 16 bytes below 2^40");
}

TEST_CASE("a tensor map's box has 1 to 256 elements along a dimension") {
  CHECK(problem([](auto& s) { s.box[1] = 256; }).empty());
  CHECK(problem([](auto& s) { s.box[1] = 0; }) == "box extent 0 of dimension 1 is not in 1..256");
  CHECK(problem([](auto& s) { s.box[2] = 257; }) ==
        "box extent 257 of dimension 2 is not in 1..256");
}

TEST_CASE("a row of a tensor map's box is a multiple of 16 bytes") {
  CHECK(problem([](auto& s) { s.box[0] = 8; }).empty());
  CHECK(problem([](auto& s) { s.box[0] = 12; }) ==
        "a row of the box has 24 bytes, which is not a multiple of 16");
  CHECK(problem([](auto& s) { s.type = TensorMapType::u8, s.box[0] = 8; }) ==
        "a row of the box has 8 bytes, which is not a multiple of 16");
}

TEST_CASE("a row of a tensor map's box is no longer than its swizzle") {
  for (const int swizzle : {32, 64, 128}) {
    const auto with_row = [&](std::uint32_t bytes) {
      return problem([&](auto& s) { s.swizzle = swizzle, s.box[0] = bytes / 2; });
    };
    const auto limit = static_cast<std::uint32_t>(swizzle);
    CHECK(with_row(limit).empty());
    CHECK(with_row(limit + 16) == "a row of the box has " + std::to_string(limit + 16) +
                                      " bytes, more than its swizzle of " +
                                      std::to_string(swizzle));
  }
  CHECK(problem([](auto& s) { s.swizzle = 0, s.box[0] = 256; }).empty());
}

TEST_CASE("a tensor map's element strides are 1 to 8") {
  CHECK(problem([](auto& s) { s.element_strides[1] = 8; }).empty());
  CHECK(problem([](auto& s) { s.element_strides[1] = 9; }) ==
        "element stride 9 of dimension 1 is not in 1..8");
  CHECK(problem([](auto& s) { s.element_strides[0] = 0; }) ==
        "element stride 0 of dimension 0 is not in 1..8");
}

TEST_CASE("a tensor map knows four swizzles and four L2 promotions") {
  CHECK(problem([](auto& s) { s.swizzle = 16; }) == "swizzle 16 is not 0, 32, 64 or 128 bytes");
  for (const int bytes : {0, 64, 128, 256})
    CHECK(problem([&](auto& s) { s.l2_promotion = bytes; }).empty());
  CHECK(problem([](auto& s) { s.l2_promotion = 32; }) ==
        "L2 promotion 32 is not 0, 64, 128 or 256 bytes");
}

TEST_CASE("only a tensor map of floats can be filled with NaN") {
  for (const TensorMapType type : {TensorMapType::f16, TensorMapType::bf16})
    CHECK(problem([&](auto& s) { s.type = type, s.nan_fill = true; }).empty());
  CHECK(problem([](auto& s) { s.type = TensorMapType::u16, s.nan_fill = true; }) ==
        "only arrays of floats can be filled with NaN");
}

TEST_CASE("a tensor map describes itself in words") {
  CHECK(describe(good()) ==
        "3-d bf16 array of 4096 x 512 x 7 at 0x7f0000000010, strides 8192, 4194304; "
        "box of 64 x 128 x 1, swizzle 128");
  TensorMapSpec spec = good();
  spec.rank = 1;
  spec.swizzle = 0;
  spec.type = TensorMapType::f32;
  spec.element_strides[0] = 2;
  spec.l2_promotion = 256;
  spec.nan_fill = true;
  CHECK(describe(spec) ==
        "1-d f32 array of 4096 at 0x7f0000000010; box of 64, element strides 2, "
        "L2 promotion 256, filled with NaN");
}
