// Reports of the emulator name the user's line, with line info in the compiled text or without.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "palladium/palladium.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;

TEST_CASE("a report names the line of the store that went wrong, under line info too") {
  for (const bool lineinfo : {false, true}) {
    CAPTURE(lineinfo);
    int line = 0;
    const Kernel k = pallas_call(
                         [&](Ref x, Ref fine, Ref o) {
                           fine[_] = x[_] + 1;
                           line = __LINE__ + 1;
                           o[_] = x[_] * 2;
                         },
                         {.name = "overlapping",
                          .out_type = {{{8}, f32}, {{6}, f32}},
                          .grid = {2},
                          .in_specs = {{{4}, [](Index i) { return i; }}},
                          .out_specs = {{{4}, [](Index i) { return i; }},
                                        {{Element(4)}, [](Index i) { return 2 * i; }}},
                          .compiler_params = {.lineinfo = lineinfo}})
                         .on(Target::emulator);
    CHECK_THROWS_WITH(k(Array::zeros({8}, f32)),
                      ContainsSubstring("outputs[1]") &&
                          ContainsSubstring("lines_test.cpp:" + std::to_string(line)));
  }
}

TEST_CASE("a report names the line of the load that went wrong, not of the store it is part of") {
  int load = 0, store = 0;
  const Kernel k = pallas_call(
                       [&](Ref x, Ref o) {
                         load = __LINE__ + 1;
                         const Value next = x[_];
                         store = __LINE__ + 1;
                         o[_] = next + 1;
                       },
                       {.name = "shifted",
                        .out_type = {{8}, f32},
                        .grid = {2},
                        .in_specs = {{{4}, [](Index i) { return 1 - i; }}},
                        .out_specs = {{{4}, [](Index i) { return i; }}},
                        .input_output_aliases = {{0, 0}}})
                       .on(Target::emulator);
  std::string message;
  try {
    k(Array::zeros({8}, f32));
  } catch (const Error& e) {
    message = e.what();
  }
  CHECK_THAT(message, ContainsSubstring("lines_test.cpp:" + std::to_string(load)));
  CHECK_THAT(message, ContainsSubstring("lines_test.cpp:" + std::to_string(store)));
}
