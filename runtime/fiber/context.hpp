// Stacks and the switch between them, by assembly on x86-64 and by ucontext elsewhere.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <new>
#include <string>

namespace palladium::fiber {

/// Memory for one stack; a guard page lies below it.
struct Stack {
  std::byte* low = nullptr;
  std::size_t bytes = 0;
};

/// Says for how many stacks the system has no memory, and in its words why.
class NoMemory final : public std::bad_alloc {
 public:
  NoMemory(int stacks, std::size_t bytes, int error);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Takes a stack of at least `bytes` from the arena of this thread, which keeps what is returned;
/// or throws NoMemory. Giving it back takes no memory.
Stack take_stack(std::size_t bytes);
void return_stack(Stack stack);

#if defined(__x86_64__)
namespace assembly {
struct Context {
  void* stack_pointer = nullptr;
};
/// Prepares `c` to call `entry(argument)` on the stack ending at `top`; entry never returns.
void make(Context& c, Stack stack, std::byte* top, void (*entry)(void*), void* argument);
/// Saves the running context in `from` and continues `to`.
void swap(Context& from, Context& to);
/// Lets the cache fetch the top of a stack that will be continued soon.
void prefetch(const Context& c);
}  // namespace assembly
#endif

namespace portable {
struct Context {
  ucontext_t state;
};
void make(Context& c, Stack stack, std::byte* top, void (*entry)(void*), void* argument);
void swap(Context& from, Context& to);
inline void prefetch(const Context&) {}  // only libc knows where the stack pointer lies
}  // namespace portable

#if defined(__x86_64__)
using assembly::Context;
#else
using portable::Context;
#endif

}  // namespace palladium::fiber
