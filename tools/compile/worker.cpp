#include "tools/compile/worker.hpp"

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <exception>
#include <string>

#include "codegen/nvrtc/wire.hpp"
#include "palladium/error.hpp"

namespace palladium::tools {
namespace {

using nvrtc::wire::Channel;
using nvrtc::wire::Kind;
using nvrtc::wire::Message;
using nvrtc::wire::Received;

/// From now on allocations fail beyond `bytes`, which ends a compile with words about it. A process
/// that has more than that from the start (a sanitizer's shadow memory) goes without.
void limit_memory(std::uint64_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const rlimit before = limit;
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  setrlimit(RLIMIT_DATA, &limit);
  constexpr std::size_t little = 1 << 20;
  void* memory = mmap(nullptr, little, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    setrlimit(RLIMIT_DATA, &before);
  else
    munmap(memory, little);
}

/// NVRTC frees all that it took at the end of each compile. Kept, it is there for the next one
/// without a page fault: a tenth of a compile's time. The process ends when it has been idle.
void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it takes
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 16 << 20);
}

Message answer(const nvrtc::wire::Compile& compile) {
  try {
    return {Kind::done, nvrtc::wire::encode(nvrtc::compile(compile.request, compile.toolchain))};
  } catch (const CompileError& error) {
    return {Kind::failed, nvrtc::wire::encode(nvrtc::wire::Failed{true, error.what()})};
  } catch (const std::exception& error) {
    return {Kind::failed, nvrtc::wire::encode(nvrtc::wire::Failed{false, error.what()})};
  }
}

}  // namespace

void work(Channel& channel, pid_t keeper, std::uint64_t memory_bytes) {
  // The keeper has one thread, so its end is what this waits for. It may have come already.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(1);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  limit_memory(memory_bytes);
  keep_memory();

  Message message;
  while (channel.receive(message) == Received::message) {
    nvrtc::wire::Compile compile;
    if (!nvrtc::wire::decode(message.body, compile)) {
      const nvrtc::wire::Failed failed{false, "the compile helper cannot read the request"};
      message = {Kind::failed, nvrtc::wire::encode(failed)};
    } else {
      message = answer(compile);
    }
    if (!channel.send(message.kind, message.body)) break;
  }
  _exit(0);
}

}  // namespace palladium::tools
