// What the emulator sees of a kernel's memory, held against what its statements say they touch.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/cuda/emit.hpp"
#include "codegen/device/waist.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/effects_for_tests.hpp"
#include "codegen/lowered/program.hpp"

namespace palladium::test {

/// Passes and verifiers share effects(): this asks somebody else. Each access of memory comes from
/// a line, and that from a statement, among whose effects it must be.
class Observed {
 public:
  /// Where the array of a block mapping stands.
  struct Array {
    std::uint64_t address = 0, bytes = 0;
  };
  Observed(lowered::Program l, std::vector<int> statements, std::vector<Array> arrays,
           const lowered::testing::Hearing& hearing = {});

  /// May be called by several threads.
  void see(int line, const device::Access& access, std::uint64_t at, std::uint64_t bytes);
  /// "" if every access was among what its statement touches.
  const std::string& problem() const { return problem_; }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;
    bool shared = false, reads = false, writes = false, async = false;
  };
  void add(const lowered::Statements& list);
  void add(std::vector<Range>& ranges, const lowered::Effect& e) const;
  void add_storage(std::vector<Range>& ranges, lowered::StorageId storage, Range range) const;
  bool is_of_an_array(std::uint64_t at) const;
  void tell(int line, const device::Access& access, std::uint64_t at, std::uint64_t bytes);

  const lowered::Program l_;
  const std::vector<int> statements_;  // of lines
  const std::vector<Array> arrays_;
  std::vector<std::vector<Range>> ranges_;  // by statement
  std::mutex mutex_;
  std::string problem_;
};

}  // namespace palladium::test
