// A program run as a child process: what it says, and how it ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

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
  ~Program();
  pid_t process() const { return process_; }
  Finished wait();

 private:
  Folder folder_;
  pid_t process_ = -1;
};

/// Runs `command` to its end, without input. The variables are set on top of this process's
/// environment, from which all PALLADIUM_ and FAKE_CUDA_ ones are taken away first.
Finished run_program(const std::vector<std::string>& command,
                     const std::vector<Variable>& variables = {});

}  // namespace palladium::test
