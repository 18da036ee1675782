// Mistakes that are found where no line of the user's is known get one from what encloses them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/palladium.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using pl::_;

namespace {

constexpr Location line(int number) { return {"user.cpp", number}; }
Shape of_nine(int n) { return {n, n, n, n, n, n, n, n, n}; }

}  // namespace

TEST_CASE("a shape of too many dimensions is blamed on the body that makes it") {
  const Kernel k = pallas_call(Body([](Ref o) { o[_] = zeros(of_nine(1)); }, line(3)),
                               PallasCallOptions{.name = "nine", .out_type = {{4}, f32}}, line(2));
  CHECK_THROWS_WITH(k.lower({}, line(1)),
                    ContainsSubstring("at most 8 dimensions") && EndsWith("user.cpp:3"));
}

TEST_CASE("a shape of too many dimensions is blamed on the index map that makes it") {
  const IndexMap map(
      [](Index i) {
        of_nine(1);
        return i;
      },
      line(4));
  const Kernel k = pallas_call(
      [](Ref o) { o[_] = zeros({4}); },
      PallasCallOptions{
          .name = "nine", .out_type = {{8}, f32}, .grid = {2}, .out_specs = {{{4}, map}}});
  CHECK_THROWS_WITH(k.lower(), ContainsSubstring("at most 8 dimensions") && EndsWith("user.cpp:4"));
}

TEST_CASE("a squeezed dimension of several elements is refused") {
  const BlockSpec spec(
      {BlockDim(BlockDim::Kind::squeezed, 2)}, [](Index i) { return i; }, {}, line(5));
  const Kernel k = pallas_call(
      [](Ref o) { o[_] = zeros({}); },
      PallasCallOptions{.name = "two", .out_type = {{8}, f32}, .grid = {4}, .out_specs = {spec}});
  CHECK_THROWS_WITH(k.lower(), ContainsSubstring("outputs[0]: a squeezed dimension has one "
                                                 "element, given 2") &&
                                   EndsWith("user.cpp:5"));
}

TEST_CASE("padding of what is no Element is refused") {
  const BlockSpec spec(
      {BlockDim(BlockDim::Kind::blocked, 4, 1, 1)}, [](Index i) { return i; }, {}, line(5));
  const Kernel k =
      pallas_call([](Ref o) { o[_] = zeros({4}); },
                  PallasCallOptions{
                      .name = "padded", .out_type = {{8}, f32}, .grid = {2}, .out_specs = {spec}});
  CHECK_THROWS_WITH(k.lower(), ContainsSubstring("outputs[0]") &&
                                   ContainsSubstring("only an Element has padding") &&
                                   EndsWith("user.cpp:5"));
}

TEST_CASE("an array that memory does not hold is refused at the line that asks for it") {
  constexpr std::int64_t n = std::int64_t{1} << 46;
  CHECK_THROWS_WITH(Array::empty({n}, f32, Device::cpu(), line(6)),
                    ContainsSubstring("needs 281474976710656 bytes, and there is no memory") &&
                        EndsWith("user.cpp:6"));
}
