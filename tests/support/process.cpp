#include "tests/support/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

namespace palladium::test {

Program::Program(const std::vector<std::string>& command, const std::vector<Variable>& variables) {
  const std::string out = folder_ / "out", err = folder_ / "err";
  std::vector<std::string> environment;
  for (char** v = environ; *v != nullptr; ++v) {
    const std::string variable = *v;
    const std::string name = variable.substr(0, variable.find('='));
    const bool is_set = std::ranges::count(variables, name, &Variable::first) != 0;
    if (!is_set && !name.starts_with("PALLADIUM_") && !name.starts_with("FAKE_CUDA_"))
      environment.push_back(variable);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  const auto pointers = [](const std::vector<std::string>& words) {
    std::vector<char*> result;
    for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
  };

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t number = 0;
  const int error = ::posix_spawn(&number, command[0].c_str(), &actions, nullptr,
                                  pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  INFO("starting " << command[0]);
  REQUIRE(error == 0);
  process_.emplace(process::Id::of(number).value());
}

Finished Program::wait() {
  return {.status = process_->wait().code(),
          .out = text_of(folder_ / "out"),
          .err = text_of(folder_ / "err")};
}

Finished run_program(const std::vector<std::string>& command,
                     const std::vector<Variable>& variables) {
  return Program(command, variables).wait();
}

process::Child forked(const std::function<int()>& body) {
  std::optional<process::Child> child = process::Child::fork(body);
  REQUIRE(child);
  return std::move(*child);
}

int status_of_fork(const std::function<int()>& body) { return forked(body).wait().code(); }

}  // namespace palladium::test
