// Preloaded into a program and its compile helpers: lets one call fail, as a machine does that has
// no more processes, memory or descriptors. The environment variable
//
//   PROCESS_FAULT="helper pipe2 2 24"
//
// is the process that it happens to (a `helper`, or the `program`), the function, which of its
// calls in that process (counted from 1; 0 for all of them), and the errno. The file
// PROCESS_FAULT_HITS gets a byte each time.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

#define REPLACED extern "C" __attribute__((visibility("default")))

namespace {

struct Fault {
  char function[32] = "";
  int call = 0;
  int error = 0;
  const char* hits = nullptr;

  Fault() {
    const char* const text = ::getenv("PROCESS_FAULT");
    hits = ::getenv("PROCESS_FAULT_HITS");
    char who[32] = "";
    if (text == nullptr || ::sscanf(text, "%31s %31s %d %d", who, function, &call, &error) != 4)
      return;
    const bool is_helper = ::strcmp(program_invocation_short_name, "palladium-compile") == 0;
    if (is_helper != (::strcmp(who, "helper") == 0)) function[0] = '\0';
  }
};

/// The errno with which this call of the function must fail, or 0. Takes no lock and no memory:
/// some calls come from between fork and exec.
int fault_of(const char* function) {
  static const Fault fault;
  static std::atomic<int> calls = 0;
  if (::strcmp(fault.function, function) != 0) return 0;
  if (++calls != fault.call && fault.call != 0) return 0;
  if (fault.hits != nullptr) {
    const int file = ::open(fault.hits, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, "x", 1) != 1) ::abort();
    ::close(file);
  }
  return fault.error;
}

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int failed(int error) {
  errno = error;
  return -1;
}

}  // namespace

REPLACED pid_t fork() noexcept {
  static auto* const function = real(&::fork, "fork");
  const int error = fault_of("fork");
  return error != 0 ? failed(error) : function();
}

REPLACED int pipe2(int ends[2], int flags) noexcept {
  static auto* const function = real(&::pipe2, "pipe2");
  const int error = fault_of("pipe2");
  return error != 0 ? failed(error) : function(ends, flags);
}

REPLACED int socketpair(int domain, int type, int protocol, int ends[2]) noexcept {
  static auto* const function = real(&::socketpair, "socketpair");
  const int error = fault_of("socketpair");
  return error != 0 ? failed(error) : function(domain, type, protocol, ends);
}

REPLACED int clone(int (*body)(void*), void* stack, int flags, void* argument, ...) noexcept {
  static auto* const function = real(&::clone, "clone");
  const int error = fault_of("clone");
  return error != 0 ? failed(error) : function(body, stack, flags, argument);
}

REPLACED int posix_spawn(pid_t* process, const char* path,
                         const posix_spawn_file_actions_t* actions,
                         const posix_spawnattr_t* attributes, char* const arguments[],
                         char* const variables[]) {
  static auto* const function = real(&::posix_spawn, "posix_spawn");
  const int error = fault_of("posix_spawn");
  return error != 0 ? error : function(process, path, actions, attributes, arguments, variables);
}

REPLACED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                            void* (*body)(void*), void* argument) noexcept {
  static auto* const function = real(&::pthread_create, "pthread_create");
  const int error = fault_of("pthread_create");
  return error != 0 ? error : function(thread, attributes, body, argument);
}
