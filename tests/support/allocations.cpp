#include "tests/support/allocations.hpp"

#include <cstdlib>
#include <new>

namespace palladium::test {
namespace {

thread_local bool counting = false;
thread_local int allocations = 0;

}  // namespace

CountedAllocations::CountedAllocations() {
  allocations = 0;
  counting = true;
}
CountedAllocations::~CountedAllocations() { counting = false; }
int CountedAllocations::count() const { return allocations; }

}  // namespace palladium::test

// Replacing these three replaces all: the other forms call them.
void* operator new(std::size_t bytes) {
  if (palladium::test::counting) ++palladium::test::allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
