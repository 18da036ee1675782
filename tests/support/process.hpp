// A program run as a child process: what it says, and how it ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/process.hpp"
#include "tests/support/folder.hpp"

namespace palladium::test {

struct Finished {
  int status = -1;  // exit status, or minus the signal that ended it
  std::string out;
  std::string err;
};

using Variable = std::pair<std::string, std::string>;

/// A program that runs, until wait() or the end of this object, which kills it.
class Program {
 public:
  Program(const std::vector<std::string>& command, const std::vector<Variable>& variables = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  process::Id process() const { return process_->id(); }
  Finished wait();

 private:
  Folder folder_;
  std::optional<process::Child> process_;
};

/// Runs `command` to its end, without input. The variables are set on top of this process's
/// environment, from which all PALLADIUM_ and FAKE_CUDA_ ones are taken away first.
Finished run_program(const std::vector<std::string>& command,
                     const std::vector<Variable>& variables = {});

/// A fork of this process that ends with what `body` returns.
process::Child forked(const std::function<int()>& body);
/// How such a fork ends: its status, or minus the signal that ended it.
int status_of_fork(const std::function<int()>& body);

}  // namespace palladium::test
