// Test cases that need a process of their own: what a process decides once (its driver, its NVRTC,
// its default target) can be decided otherwise there.
#pragma once

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "codegen/base/files.hpp"
#include "tests/support/process.hpp"

namespace palladium::test {

/// Runs one test case of this very executable, hidden by the tag [.], in a child process.
inline Finished run_hidden(const std::string& test_case, const std::vector<Variable>& variables) {
  return run_program({"/proc/self/exe", test_case}, variables);
}

/// The same where even a signal to all processes meets only those that were started there, with
/// `preload` as its LD_PRELOAD. Skips the test where there can be no such place.
inline Finished run_isolated(const std::string& test_case, const std::vector<Variable>& variables,
                             const std::string& preload = "") {
  std::vector<std::string> command = {"/usr/bin/unshare", "--pid", "--fork", "--mount-proc",
                                      "--kill-child"};
  if (::geteuid() != 0) command.insert(command.end(), {"--user", "--map-root-user"});
  std::vector<std::string> probe = command;
  probe.push_back("/bin/true");
  if (run_program(probe).status != 0) SKIP("needs a PID namespace of its own, by unshare");
  std::string self;
  REQUIRE(files::resolve("/proc/self/exe", self));
  // The shell is process 1, which gets the orphans.
  const std::string script = "LD_PRELOAD='" + preload + "' \"$@\"; exit $?";
  command.insert(command.end(), {"/bin/sh", "-c", script, "sh", self, test_case});
  return run_program(command, variables);
}

}  // namespace palladium::test
