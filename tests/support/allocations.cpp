#include "tests/support/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace palladium::test {
namespace {

thread_local bool counting = false;
thread_local int allocations = 0;
std::atomic<bool> failing = false;
std::atomic<long> until_failure = 0;

}  // namespace

CountedAllocations::CountedAllocations() {
  allocations = 0;
  counting = true;
}
CountedAllocations::~CountedAllocations() { counting = false; }
int CountedAllocations::count() const { return allocations; }

FailingAllocation::FailingAllocation(long n) {
  until_failure = n;
  failing = true;
}
FailingAllocation::~FailingAllocation() { failing = false; }
bool FailingAllocation::has_failed() { return until_failure <= 0; }

}  // namespace palladium::test

// Replacing these three replaces all: the other forms call them.
void* operator new(std::size_t bytes) {
  if (palladium::test::counting) ++palladium::test::allocations;
  if (palladium::test::failing && --palladium::test::until_failure == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
