// Array handles: ownership, views, strides, refusals.
#include "palladium/array.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a copied handle shares the elements, a moved-from one holds nothing") {
  Array a = Array::zeros({2, 3}, f32);
  Array b = a;
  b.data<float>()[4] = 7;
  CHECK(a.data<float>()[4] == 7);
  Array c = std::move(a);
  CHECK(!a);
  CHECK(c.data() == b.data());
  c = c.copy();
  CHECK(c.data() != b.data());
  CHECK(c.values<const float>()[4] == 7);
  Array& self = b;
  b = self;
  CHECK(b.data<float>()[4] == 7);
}

TEST_CASE("a view writes through to the caller's memory") {
  std::vector<std::int32_t> memory(6, 1);
  const Array v = Array::view(std::span(memory), {2, 3});
  v.data<std::int32_t>()[5] = 9;
  CHECK(memory[5] == 9);
  CHECK(v.stride(0) == 3);
  CHECK(v.stride(-1) == 1);
  CHECK_THROWS_WITH(v.stride(2), ContainsSubstring("has no dimension 2: its rank is 2"));
  CHECK_THROWS_AS(v.stride(1 << 30), CompileError);
  CHECK(v.is_dense());
  CHECK_THROWS_WITH(Array::view(std::span(memory), {2, 4}),
                    ContainsSubstring("needs 8 elements but the span has 6"));
}

TEST_CASE("a view of const elements can only be asked for const elements") {
  const std::vector<float> memory(4, 1.f);
  const Array v = Array::view(std::span(memory));
  CHECK(v.is_read_only());
  CHECK(v.data<const float>()[0] == 1.f);
  CHECK_THROWS_WITH(v.data<float>(), ContainsSubstring("read-only"));
}

TEST_CASE("elements can only be asked for as what they are") {
  const Array a = Array::zeros({4}, f32);
  CHECK_THROWS_WITH(a.data<double>(), ContainsSubstring("f32") && ContainsSubstring("f64") &&
                                          ContainsSubstring("array_test.cpp"));
}

TEST_CASE("strides make gaps, and gaps are told from extents of one") {
  std::vector<float> memory(100);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  const std::int64_t strides[] = {10, 1};
  const Array v = Array::view(memory.data(), {3, 4}, f32, {.strides = strides});
  CHECK(!v.is_dense());
  CHECK_THROWS_WITH(v.values<float>(), ContainsSubstring("gaps"));
  CHECK_THROWS_AS(v.reshape({12}), CompileError);
  const Array::Bytes bytes = v.bytes();
  CHECK(bytes.end - bytes.begin == 24 * 4);
  const Array d = v.copy();
  CHECK(d.is_dense());
  CHECK(d.values<float>()[5] == 11);

  const std::int64_t one[] = {77, 1};
  CHECK(Array::view(memory.data(), {1, 4}, f32, {.strides = one}).is_dense());
  const std::int64_t backwards[] = {-4, 1};
  const Array r = Array::view(memory.data() + 8, {3, 4}, f32, {.strides = backwards});
  CHECK(r.copy().values<float>()[4] == 4);
  CHECK(static_cast<const void*>(r.bytes().begin) == memory.data());
  CHECK_THROWS_WITH(Array::view(memory.data(), {3, 4}, f32, {.strides = {strides, 1}}),
                    ContainsSubstring("as many strides"));
}

TEST_CASE("reshape keeps the elements and their number") {
  const Array a = Array::of<std::int32_t>({1, 2, 3, 4, 5, 6});
  const Array b = a.reshape({2, 3});
  CHECK(b.data() == a.data());
  CHECK(b.shape()[1].value() == 3);
  CHECK_THROWS_WITH(a.reshape({4}), ContainsSubstring("6 elements"));
}

TEST_CASE("impossible arrays are refused by what is wrong with them") {
  CHECK_THROWS_WITH(Array::empty({dim("m")}, f32), ContainsSubstring("must be integers"));
  CHECK_THROWS_WITH(Array::empty({-1}, f32), ContainsSubstring("negative"));
  CHECK_THROWS_WITH(Array::empty({std::int64_t{1} << 40, std::int64_t{1} << 40}, f32),
                    ContainsSubstring("counted"));
  CHECK_THROWS_WITH(Array::empty({std::int64_t{1} << 62}, f32), ContainsSubstring("counted"));
  CHECK_THROWS_WITH(Array::view(nullptr, {4}, f32), ContainsSubstring("null pointer"));
  CHECK_THROWS_WITH(Array::empty({4}, DType()), ContainsSubstring("element type"));
  alignas(8) char memory[16];
  CHECK_THROWS_WITH(Array::view(memory + 1, {2}, f32), ContainsSubstring("aligned"));
  CHECK_THROWS_AS(Array().copy(), CompileError);
}

TEST_CASE("arrays of no elements and of rank 0 are arrays") {
  const Array none = Array::empty({3, 0}, f32);
  CHECK(none);
  CHECK(none.size() == 0);
  CHECK(none.copy().size() == 0);
  CHECK(none.bytes().begin == none.bytes().end);
  const Array one = Array::zeros({}, i64);
  CHECK(one.size() == 1);
  CHECK(one.copy().data<std::int64_t>()[0] == 0);
}

TEST_CASE("shapes and strides that reach farther than memory can are refused") {
  float memory[16] = {};
  constexpr std::int64_t far = std::int64_t{1} << 62;
  const auto view = [&](const Shape& shape, std::vector<std::int64_t> strides) {
    return Array::view(memory, shape, f32, {.strides = strides});
  };
  CHECK_THROWS_WITH(
      Array::view(memory, {far}, f32),
      ContainsSubstring("more bytes than can be counted") && ContainsSubstring("array_test.cpp"));
  CHECK_THROWS_WITH(view({3, 2}, {far, 1}), ContainsSubstring("reaches farther than memory can"));
  CHECK_THROWS_WITH(view({3, 2}, {-far, 1}), ContainsSubstring("reaches farther than memory can"));
  // In elements it could be counted, in bytes it cannot.
  CHECK_THROWS_AS(view({2, 2}, {far / 2, 1}), CompileError);
  // No address lies before the first one.
  CHECK_THROWS_AS(view({2, 2}, {-(std::int64_t{1} << 50), 1}), CompileError);
  // There is nothing to step to, but whoever asks for the distance in bytes must get it.
  CHECK_THROWS_AS(view({1, 2}, {far, 1}), CompileError);
  CHECK_THROWS_AS(view({0, 2}, {INT64_MIN, 1}), CompileError);
  CHECK_THROWS_AS(Array::empty({far}, f32), CompileError);
  CHECK_THROWS_AS(Array::empty({far, 4}, f32), CompileError);
  CHECK(Array::empty({far, 4, 0}, f32).size() == 0);
}

TEST_CASE("a view may run backwards through memory") {
  std::vector<float> memory(12);
  const std::int64_t strides[] = {-4, 1};
  const Array v = Array::view(memory.data() + 8, {3, 4}, f32, {.strides = strides});
  CHECK(v.bytes().begin == reinterpret_cast<const std::byte*>(memory.data()));
  CHECK(v.bytes().end == reinterpret_cast<const std::byte*>(memory.data() + 12));
}
