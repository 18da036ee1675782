#include "runtime/emulator/module.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/process.hpp"
#include "codegen/base/profile.hpp"
#include "codegen/device/library.hpp"
#include "palladium/error.hpp"

namespace palladium::emulator {
namespace {

/// A folder for what one build makes, removed at its end with all that is in it. Nobody shares it:
/// children of fork() go on counting where their parent was, and would write the same names.
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
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    std::vector<std::string> names;
    (void)files::list(path_, names);
    for (const std::string& name : names) (void)files::remove(path_ + "/" + name);
    (void)files::remove_directory(path_);
  }
  /// A path in it, without an extension. No object of this process is loaded from another of the
  /// same name, which the loader would take for this one.
  std::string new_stem() const {
    static constinit std::atomic<int> count = 0;
    return fmt::format("{}/{}", path_, count++);
  }

 private:
  std::string path_;
};

/// What PALLADIUM_CXX says, split at blanks: "ccache g++ -Og" is a compiler too.
std::vector<std::string> compiler() {
  const std::string value = environment::get(environment::Variable::cxx);
  std::istringstream in(value.empty() ? "c++" : value);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.empty()) words.push_back("c++");
  return words;
}

/// How a command ended, or the errno for which it could not be started.
struct Executed {
  process::Ending ending = {};
  int error = 0;
};

/// Runs a command with its output in a file. It handles signals by default, whatever this process
/// does: compilers wait for their parts, which they cannot where SIGCHLD is ignored.
Executed execute(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> variables = environment::pointers();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  pid_t number = 0;
  const int error = posix_spawnp(&number, arguments[0], &actions, &attributes, arguments.data(),
                                 variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {.error = error};
  return {.ending = process::Child(process::Id::of(number).value()).wait()};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// No -march: results must not depend on the machine. Fused multiply-add is exact either way and
/// slow without the instruction; the compiler may not contract by itself. Exceptions pass through
/// kernels, which the tables allow; code for them would ask a program for its C++ library. Behind
/// them stand those of PALLADIUM_CXX, which so are the last to say something.
void add_flags(std::vector<std::string>& command) {
  std::vector<std::string> flags = {"-x",
                                    "c++",
                                    "-pipe",
                                    "-std=c++17",
                                    "-O1",
                                    "-fPIC",
                                    "-shared",
                                    "-nostdlib",
                                    "-w",
                                    "-fwrapv",
                                    "-ffp-contract=off",
                                    "-fno-strict-aliasing",
                                    "-fvisibility=hidden",
                                    "-fasynchronous-unwind-tables",
                                    "-fno-exceptions"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma")) flags.emplace_back("-mfma");
#endif
  const auto theirs =
      std::ranges::find_if(command, [](const std::string& w) { return w.starts_with('-'); });
  command.insert(theirs, flags.begin(), flags.end());
}

/// Throws where there was nothing to run.
void require_started(const std::string& compiler, const Executed& executed) {
  constexpr int not_found = 127;  // as a shell says it
  if (executed.error == 0 && executed.ending.code() != not_found) return;
  throw CompileError(
      fmt::format("emulator: the host compiler {} cannot be run ({}); PALLADIUM_CXX names another, "
                  "g++ or clang++",
                  compiler, executed.error != 0 ? std::strerror(executed.error) : "not found"));
}

/// What the host compiler made of a text: an object to call, or why there is none.
struct Built {
  void* handle = nullptr;
  std::string problem;
};

Built compile_text(std::string_view text) {
  const Workspace workspace;
  const std::string stem = workspace.new_stem();
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
  const Executed executed = execute(command, log);
  std::string output;
  (void)files::read(log, 1 << 20, output);
  require_started(name, executed);
  // Where nobody knows how the compiler ended, the object tells.
  const process::Ending& ending = executed.ending;
  if (ending.is_known ? !ending.is_good() : !files::exists(object))
    return {nullptr, fmt::format("  {}\n{}", joined(command), output)};
  void* handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {nullptr, fmt::format("  {}", dlerror())};
  return {handle, {}};
}

/// Throws, when the compiler refuses the least text too: then it is not one that can be used.
void require_usable() {
  const Built least = compile_text(
      "PL_KERNEL(128) least_kernel(f32* out0) {\n"
      "  const f32 v = pl::exp(f32(pl::thread()));\n"
      "  pl::store_global<1>(out0 + pl::thread(), &v);\n"
      "}\n"
      "PL_EXPORT(least_kernel)\n");
  if (least.handle != nullptr) {
    dlclose(least.handle);
    return;
  }
  throw CompileError(
      fmt::format("emulator: the host compiler {} cannot be used: it does not make a shared object "
                  "of the device library; PALLADIUM_CXX names another, g++ 12 or clang++ 16 and "
                  "newer ones\n{}",
                  joined(compiler()), least.problem));
}

std::shared_ptr<const Module> build(std::string_view kernel, std::string_view text) {
  const profile::Range range("compile", kernel);
  const Built built = compile_text(text);
  if (built.handle != nullptr) return std::make_shared<const Module>(built.handle);
  require_usable();
  throw InternalError(fmt::format("emulator: the host compiler refuses the text of kernel '{}'\n{}",
                                  kernel, built.problem));
}

/// The modules of this process, and those that a thread of it is at.
class Modules {
 public:
  using Result = std::shared_future<std::shared_ptr<const Module>>;

  static Modules& instance() {
    static constinit Modules modules;
    return modules;
  }

  /// The text's result, which may have to be waited for; or none, and `mine` will be it.
  std::optional<Result> find_or_add(std::string_view text,
                                    std::promise<std::shared_ptr<const Module>>& mine) {
    const forking::Section section;
    const std::lock_guard lock(mutex_);
    if (const auto found = results().find(text); found != results().end()) return found->second;
    results().emplace(text, mine.get_future());
    return std::nullopt;
  }
  void remove(std::string_view text) {
    const forking::Section section;
    const std::lock_guard lock(mutex_);
    if (const auto found = results().find(text); found != results().end()) results().erase(found);
  }
  /// In a child of fork(), where nobody is at those that were under way.
  void drop_unfinished() {
    std::erase_if(results(), [](const auto& entry) {
      return entry.second.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    });
  }

 private:
  using Results = std::map<std::string, Result, std::less<>>;
  /// Never destroyed: threads may be at it when the process ends.
  Results& results() {
    if (results_ == nullptr) results_ = new Results;
    return *results_;
  }

  std::mutex mutex_;
  Results* results_ = nullptr;
};

const forking::Registration modules_registration({.in_child = [] {
  Modules::instance().drop_unfinished();
}});

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
  const Workspace workspace;
  const std::string log = workspace.new_stem() + ".log";
  const Executed executed = execute(command, log);
  (void)files::read(log, 1 << 20, result.version);
  require_started(command[0], executed);
  result.version.resize(std::min(result.version.find('\n'), result.version.size()));
  return result;
}

std::shared_ptr<const Module> compile(std::string_view kernel, std::string_view text,
                                      double& seconds) {
  seconds = 0;
  std::promise<std::shared_ptr<const Module>> promise;
  if (const auto known = Modules::instance().find_or_add(text, promise)) {
    const forking::Outside outside;
    return known->get();
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
    Modules::instance().remove(text);  // the next call may find a compiler
    throw;
  }
}

}  // namespace palladium::emulator
