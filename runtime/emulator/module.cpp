#include "runtime/emulator/module.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/device/library.hpp"
#include "palladium/error.hpp"

extern char** environ;

namespace palladium::emulator {
namespace {

/// A folder of this process, removed at its end; a fork leaves it to the parent.
class Workspace {
 public:
  Workspace() {
    const char* base = getenv("TMPDIR");
    const std::string prefix =
        fmt::format("{}/palladium-emulator", base != nullptr && *base != 0 ? base : P_tmpdir);
    if (const files::Outcome made = files::make_unique_directory(prefix, path_); !made) {
      throw CompileError(
          fmt::format("emulator: cannot make a folder {} for its shared objects ({}); TMPDIR names "
                      "another place",
                      prefix, made.message()));
    }
    owner_ = getpid();
  }
  Workspace(const Workspace&) = delete;
  ~Workspace() {
    if (getpid() != owner_) return;
    std::vector<std::string> names;
    (void)files::list(path_, names);
    for (const std::string& name : names) (void)files::remove(path_ + "/" + name);
    (void)files::remove_directory(path_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  pid_t owner_;
};

/// What PALLADIUM_CXX says, split at blanks: "ccache g++" is a compiler too.
std::vector<std::string> compiler() {
  const std::string value = environment::get(environment::Variable::cxx);
  std::istringstream in(value.empty() ? "c++" : value);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.empty()) words.push_back("c++");
  return words;
}

/// Runs a command with its output in a file; its wait status, or -errno when it cannot be started.
int execute(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -error;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -errno;
  }
  return status;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// No -march: results must not depend on the machine. Fused multiply-add is exact either way and
/// slow without the instruction; the compiler may not contract by itself. Exceptions pass through
/// kernels, which the tables allow; code for them would ask a program for its C++ library.
void add_flags(std::vector<std::string>& command) {
  for (const char* flag :
       {"-x", "c++", "-pipe", "-std=c++17", "-O1", "-fPIC", "-shared", "-nostdlib", "-w", "-fwrapv",
        "-ffp-contract=off", "-fno-strict-aliasing", "-fvisibility=hidden",
        "-fasynchronous-unwind-tables", "-fno-exceptions"}) {
    command.push_back(flag);
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma")) command.push_back("-mfma");
#endif
}

/// A path in this process's folder, without an extension, that nobody else gets.
std::string new_stem() {
  static Workspace workspace;
  static std::atomic<int> count = 0;
  return fmt::format("{}/{}", workspace.path(), count++);
}

/// A status of execute() that means that there was nothing to run.
void require_started(const std::string& compiler, int status) {
  if (status >= 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 127)) return;
  throw CompileError(
      fmt::format("emulator: the host compiler {} cannot be run ({}); PALLADIUM_CXX names another, "
                  "g++ or clang++",
                  compiler, status < 0 ? std::strerror(-status) : "not found"));
}

std::shared_ptr<const Module> build(std::string_view kernel, std::string_view text) {
  const std::string stem = new_stem();
  const std::string source = stem + ".cu", object = stem + ".so", log = stem + ".log";

  if (files::Outcome written =
          files::publish(source, device::prelude(device::Half::cpu, text) + std::string(text));
      !written) {
    throw CompileError(fmt::format("emulator: cannot write {} ({})", source, written.message()));
  }
  std::vector<std::string> command = compiler();
  const std::string name = command[0];
  add_flags(command);
  command.insert(command.end(), {"-o", object, source});
  int status = execute(command, log);
  // Where the application ignores SIGCHLD the status is lost; the object tells.
  if (status == -ECHILD) status = files::exists(object) ? 0 : 256;
  std::string output;
  (void)files::read(log, 1 << 20, output);
  (void)files::remove(log);
  require_started(name, status);
  if (status != 0) {
    throw InternalError(
        fmt::format("emulator: the host compiler refuses the text of kernel '{}'\n"
                    "  {}\n{}",
                    kernel, joined(command), output));
  }
  void* handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw InternalError(fmt::format("emulator: {}", dlerror()));
  (void)files::remove(object);
  (void)files::remove(source);
  return std::make_shared<const Module>(handle);
}

}  // namespace

Module::Module(void* handle) : handle_(handle) {
  auto bind =
      reinterpret_cast<bool (*)(const abi::Host*)>(dlsym(handle, "palladium_emulator_bind"));
  run_ = reinterpret_cast<void (*)(void**)>(dlsym(handle, "palladium_emulator_run"));
  if (bind == nullptr || run_ == nullptr) {
    throw InternalError("emulator: the emitted text does not end in PL_EXPORT");
  }
  if (!bind(&host_table()))
    throw InternalError("emulator: the device library is of another version");
}

Module::~Module() { dlclose(handle_); }

HostCompiler host_compiler() {
  std::vector<std::string> command = compiler();
  HostCompiler result{.command = joined(command), .version = {}};
  command.push_back("--version");
  const std::string log = new_stem() + ".log";
  const int status = execute(command, log);
  (void)files::read(log, 1 << 20, result.version);
  (void)files::remove(log);
  if (status != -ECHILD) require_started(command[0], status);
  result.version.resize(std::min(result.version.find('\n'), result.version.size()));
  return result;
}

std::shared_ptr<const Module> compile(std::string_view kernel, std::string_view text,
                                      double& seconds) {
  using Result = std::shared_future<std::shared_ptr<const Module>>;
  static std::mutex mutex;
  static std::map<std::string, Result, std::less<>> modules;
  seconds = 0;
  std::promise<std::shared_ptr<const Module>> promise;
  {
    std::unique_lock lock(mutex);
    if (auto found = modules.find(text); found != modules.end()) {
      const Result result = found->second;
      lock.unlock();
      return result.get();
    }
    modules.emplace(text, promise.get_future());
  }
  try {
    const auto start = std::chrono::steady_clock::now();
    std::shared_ptr<const Module> module = build(kernel, text);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    log::info(fmt::format("{}  emulator  {} {:.0f} ms", kernel, compiler()[0], 1e3 * seconds));
    promise.set_value(module);
    return module;
  } catch (...) {
    promise.set_exception(std::current_exception());
    std::lock_guard lock(mutex);
    modules.erase(modules.find(text));  // the next call may find a compiler
    throw;
  }
}

}  // namespace palladium::emulator
