#include "runtime/fiber/context.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codegen/base/format.hpp"

namespace palladium::fiber {
namespace {

class Arena {
 public:
  ~Arena() {
    for (auto [address, bytes] : mapped_) munmap(address, bytes);
  }

  Stack take(std::size_t bytes) {
    for (std::size_t i = free_.size(); i-- > 0;) {
      if (free_[i].bytes != bytes) continue;
      const Stack found = free_[i];
      free_[i] = free_.back();
      free_.pop_back();
      return found;
    }
    map(bytes);
    return take(bytes);
  }

  void give(Stack stack) { free_.push_back(stack); }

 private:
  static constexpr int per_mapping = 32;
  // A guard page costs two mappings, of which Linux grants a process 65,530. Fibers beyond these
  // run what the first ones run, and need no more of their stacks.
  static constexpr std::size_t most_guarded = 8192 / per_mapping;

  void map(std::size_t bytes) {
    const bool guarded = mapped_.size() < most_guarded;
    const std::size_t guard = guarded ? static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
    const std::size_t stride = bytes + guard, total = stride * per_mapping;
    // There is room for every stack that may come back.
    mapped_.reserve(mapped_.size() + 1);
    free_.reserve((mapped_.size() + 1) * per_mapping);
    void* memory = mmap(nullptr, total, guarded ? PROT_NONE : PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw NoMemory(per_mapping, bytes, errno);
    for (std::size_t i = 0; guarded && i < per_mapping; ++i) {
      if (mprotect(low_of(memory, i, stride, guard), bytes, PROT_READ | PROT_WRITE) == 0) continue;
      const int error = errno;
      munmap(memory, total);
      throw NoMemory(per_mapping, bytes, error);
    }
    mapped_.push_back({memory, total});
    for (std::size_t i = per_mapping; i-- > 0;)
      free_.push_back({low_of(memory, i, stride, guard), bytes});
  }

  static std::byte* low_of(void* memory, std::size_t i, std::size_t stride, std::size_t guard) {
    return static_cast<std::byte*>(memory) + i * stride + guard;
  }

  struct Mapping {
    void* address;
    std::size_t bytes;
  };
  std::vector<Mapping> mapped_;
  std::vector<Stack> free_;
};

Arena& arena() {
  thread_local Arena of_this_thread;
  return of_this_thread;
}

}  // namespace

NoMemory::NoMemory(int stacks, std::size_t bytes, int error)
    : text_(fmt::format("no memory for {} stacks of {} bytes ({})", stacks, bytes,
                        std::strerror(error))) {}

Stack take_stack(std::size_t bytes) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return arena().take((bytes + page - 1) / page * page);
}

void return_stack(Stack stack) { arena().give(stack); }

#if defined(__x86_64__)
// Saves what the System V ABI lets a callee keep. MXCSR and the x87 control word are not switched:
// nothing here changes them.
extern "C" {
void palladium_fiber_swap(void** save, void* to);
void palladium_fiber_start();
}
asm(R"(
.text
.hidden palladium_fiber_swap
.globl palladium_fiber_swap
.type palladium_fiber_swap, @function
palladium_fiber_swap:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size palladium_fiber_swap, . - palladium_fiber_swap
.hidden palladium_fiber_start
.globl palladium_fiber_start
.type palladium_fiber_start, @function
palladium_fiber_start:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call *%r13
  ud2
  .cfi_endproc
.size palladium_fiber_start, . - palladium_fiber_start
)");

namespace assembly {

void make(Context& c, Stack, std::byte* top, void (*entry)(void*), void* argument) {
  auto address = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15};
  void** sp = reinterpret_cast<void**>(address) - 9;  // the seventh pop leaves it aligned
  sp[0] = nullptr;                                    // r15
  sp[1] = nullptr;                                    // r14
  sp[2] = reinterpret_cast<void*>(entry);             // r13
  sp[3] = argument;                                   // r12
  sp[4] = nullptr;                                    // rbx
  sp[5] = nullptr;                                    // rbp
  sp[6] = reinterpret_cast<void*>(&palladium_fiber_start);
  sp[7] = sp[8] = nullptr;
  c.stack_pointer = sp;
}

void swap(Context& from, Context& to) {
  palladium_fiber_swap(&from.stack_pointer, to.stack_pointer);
}

void prefetch(const Context& c) {
  constexpr int lines = 4, line_bytes = 64;
  const auto* const top = static_cast<const std::byte*>(c.stack_pointer);
  for (int i = 0; i < lines; ++i) __builtin_prefetch(top + i * line_bytes, 1);
}

}  // namespace assembly
#endif

namespace portable {
namespace {

// makecontext passes ints only.
void start(unsigned entry_high, unsigned entry_low, unsigned high, unsigned low) {
  const auto pointer = [](unsigned h, unsigned l) {
    return static_cast<std::uintptr_t>((std::uint64_t{h} << 32) | l);
  };
  reinterpret_cast<void (*)(void*)>(pointer(entry_high, entry_low))(
      reinterpret_cast<void*>(pointer(high, low)));
}

}  // namespace

void make(Context& c, Stack stack, std::byte* top, void (*entry)(void*), void* argument) {
  getcontext(&c.state);
  c.state.uc_stack.ss_sp = stack.low;
  c.state.uc_stack.ss_size = static_cast<std::size_t>(top - stack.low);
  c.state.uc_link = nullptr;
  const std::uint64_t e = reinterpret_cast<std::uintptr_t>(entry);
  const std::uint64_t a = reinterpret_cast<std::uintptr_t>(argument);
  makecontext(&c.state, reinterpret_cast<void (*)()>(start), 4, static_cast<unsigned>(e >> 32),
              static_cast<unsigned>(e), static_cast<unsigned>(a >> 32), static_cast<unsigned>(a));
}

void swap(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

}  // namespace portable

}  // namespace palladium::fiber
