// Counts what a scope allocates with operator new in its thread, for hot paths that must not.
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

}  // namespace palladium::test
