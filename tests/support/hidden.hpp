// Test cases that need a process of their own: what a process decides once (its driver, its NVRTC,
// its default target) can be decided otherwise there.
#pragma once

#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace palladium::test {

/// Runs one test case of this very executable, hidden by the tag [.], in a child process.
inline Finished run_hidden(const std::string& test_case, const std::vector<Variable>& variables) {
  return run_program({"/proc/self/exe", test_case}, variables);
}

}  // namespace palladium::test
