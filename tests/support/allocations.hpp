// Counts what a scope allocates with operator new in its thread, for hot paths that must not; and
// lets one allocation fail.
#pragma once

namespace palladium::test {

class CountedAllocations {
 public:
  CountedAllocations();
  CountedAllocations(const CountedAllocations&) = delete;
  CountedAllocations& operator=(const CountedAllocations&) = delete;
  ~CountedAllocations();
  /// So far.
  int count() const;
};

/// The `n`-th allocation of all threads from now on, counted from 1, throws std::bad_alloc.
class FailingAllocation {
 public:
  explicit FailingAllocation(long n);
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  ~FailingAllocation();
  /// Whether there have been so many, for the latest of these.
  static bool has_failed();
};

}  // namespace palladium::test
