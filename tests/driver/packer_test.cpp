// What a call makes of the parameters of a launch plan.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <vector>

#include "runtime/build/launch_plan.hpp"
#include "runtime/driver/tensor_map.hpp"
#include "runtime/launch/packer.hpp"

using namespace palladium;

TEST_CASE("what is divided by an extent is multiplied by a number that the call makes of it") {
  graph::Graph g;
  g.name = "mean";
  g.num_symbols = 2;
  using Kind = cuda::Parameter::Kind;
  runtime::LaunchPlan plan;
  plan.parameters = {{.kind = Kind::symbol, .index = 1},
                     {.kind = Kind::reciprocal, .index = 1},
                     {.kind = Kind::reciprocal, .index = 0}};
  runtime::LaunchPlan read;
  REQUIRE(runtime::from_json(runtime::to_json(plan), read));
  CHECK(read.parameters == plan.parameters);
  runtime::renumber_symbols(read, std::vector<std::uint32_t>{1, 0});
  CHECK(read.parameters[2].index == 1);
  const runtime::Packer packer(g, plan, driver::encode);
  runtime::ArgumentBlock block;
  const runtime::Signature::Symbols symbols = {0, 16777217};
  packer.pack({}, {}, symbols, block);
  CHECK(block.slots[0] == 16777217);
  // As an f32 it is even.
  CHECK(std::bit_cast<double>(block.slots[1]) == 1.0 / 16777216 * (1 + 0x1p-51));
  CHECK(std::bit_cast<double>(block.slots[2]) == std::numeric_limits<double>::infinity());
}
