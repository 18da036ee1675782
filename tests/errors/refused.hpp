// Mistakes that the trace refuses, on their words and on the line where they stand.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/tracing.hpp"

namespace palladium::test {

using Arguments = std::vector<trace::ArgumentType>;

/// The line of the next mistake: `line = __LINE__ + 1;` stands above it.
inline int line = 0;

inline PallasCallOptions one_output() { return {.name = "k", .out_type = {{8}, f32}}; }

/// Tracing throws a CompileError that says `sentence` and names `line` of the test's file.
inline void refused(const Body& body, const PallasCallOptions& options, const Arguments& arguments,
                    const std::string& sentence, Location at = here()) {
  CAPTURE(sentence, at.line);
  try {
    trace::trace({&body, 1}, options, arguments, at);
  } catch (const CompileError& e) {
    const Location expected{at.file, line};
    CHECK_THAT(e.what(), Catch::Matchers::ContainsSubstring(sentence));
    CHECK(e.at().line == line);
    CHECK(std::strcmp(e.at().file, at.file) == 0);
    CHECK_THAT(e.what(), Catch::Matchers::ContainsSubstring(to_string(expected)));
    CHECK_FALSE(trace::tracing());
    return;
  }
  FAIL_CHECK("nothing was refused");
}

/// One input x and one output o, both f32[8].
inline void refused(const Body& body, const std::string& sentence, Location at = here()) {
  refused(body, one_output(), {array({8})}, sentence, at);
}

}  // namespace palladium::test
