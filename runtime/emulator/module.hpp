// The host compiler, and the shared objects that it makes of emitted text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/emulator/host.hpp"

namespace palladium::emulator {

/// A loaded shared object, bound to this process's table of functions.
class Module {
 public:
  explicit Module(void* handle);
  Module(const Module&) = delete;
  ~Module();

  /// Runs one thread of the kernel.
  void run(void** parameters) const { run_(parameters); }

 private:
  void* handle_;
  void (*run_)(void**);
};

/// What the host compiler that compile() would start says of itself: its command, and the first
/// line of its version. CompileError where it cannot be run.
struct HostCompiler {
  std::string command;
  std::string version;
};
HostCompiler host_compiler();

/// Compiles and loads `text`, or finds it: one module per text and process. Sets `seconds` to what
/// the compiler took, 0 for a known text. Thread-safe.
std::shared_ptr<const Module> compile(std::string_view kernel, std::string_view text,
                                      double& seconds);

}  // namespace palladium::emulator
