#include "codegen/trace/captures.hpp"

#include <pthread.h>

#include <cstdint>
#include <cstring>

#include "codegen/base/once.hpp"
#include "palladium/function.hpp"

namespace palladium {
namespace {

/// Where this thread's stack begins, above all of its frames; 0 if that cannot be told.
std::uintptr_t stack_base() {
  static thread_local std::uintptr_t base = 0;
  if (base != 0) return base;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0)
    base = reinterpret_cast<std::uintptr_t>(lowest) + bytes;
  pthread_attr_destroy(&attributes);
  return base;
}

}  // namespace

// All of them: what is captured by value may have bytes that nobody wrote, an std::optional without
// a value for one, and these are often what lay on the stack before. On a stack that is not the
// thread's own (a coroutine's, a sanitizer's) the frame is not below the base, or what is captured
// is elsewhere: then nothing is found.
bool detail::points_to_stack(const void* bytes, std::size_t count) {
  const auto lowest = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t base = stack_base();
  constexpr std::size_t word = sizeof(std::uintptr_t);
  for (std::size_t at = 0; at < count; at += word) {
    std::uintptr_t address = 0;
    if (at + word <= count) std::memcpy(&address, static_cast<const std::byte*>(bytes) + at, word);
    if (address < lowest || address >= base) return false;
  }
  return count > 0;
}

void trace::warn_of_captures(const std::string& kernel, const std::string& what, Location at) {
  warn::once("kernel '" + kernel + "': " + what +
             " captured by reference something on the stack of the function that made it, or "
             "a pointer to that; it is kept and run later, when that may be gone: capture by "
             "value, [=]\n  at " +
             to_string(at));
}

}  // namespace palladium
