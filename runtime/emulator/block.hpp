// One thread block on the CPU: its threads, shared memory, barriers and reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/host.hpp"
#include "runtime/emulator/module.hpp"
#include "runtime/fiber/fiber.hpp"
#include "runtime/race/writer_map.hpp"

namespace palladium::emulator {

/// Global memory during one launch, with the writer of each element.
class GlobalMemory {
 public:
  explicit GlobalMemory(const Launch& launch);

  struct Region {
    const Buffer* buffer = nullptr;
    std::uintptr_t begin = 0, end = 0;
    race::WriterMap writers;
  };
  /// The buffer that holds all of [address, address + bytes), or null.
  Region* find(std::uintptr_t address, std::size_t bytes);
  /// "; it ends 12 bytes before outputs[0]" for messages.
  std::string nearest(std::uintptr_t address) const;

 private:
  std::vector<Region> regions_;  // by address
  std::size_t last_ = 0;
};

/// What a thread waits in; each has one name, line and set of participants.
enum class Collective : std::uint8_t {
  none,
  warpgroup_sync,
  block_sync,
  warp_sync,
  shuffle,
  vote,
  mma,
  ldmatrix
};

class Block {
 public:
  Block(const Launch& launch, const Module& module);
  Block(const Block&) = delete;

  /// Runs the block to its end.
  void run(std::array<std::int64_t, 3> index);

  /// The block that this OS thread runs.
  static Block& current() { return *running; }

  const abi::Ids* ids() { return &self().ids; }
  void warpgroup_sync(int warpgroups, int line);
  void block_sync(int line);
  void warp_sync(int line);
  std::uint64_t shuffle(std::uint64_t value, abi::Shuffle kind, std::uint32_t operand, int line);
  std::uint32_t ballot(bool p, int line);
  void load_global(void* dst, const void* p, std::uint32_t bytes, int line);
  void store_global(void* p, const void* src, std::uint32_t bytes, int line);
  void load_shared(void* dst, std::uint32_t address, std::uint32_t bytes, bool padded, int line);
  void store_shared(std::uint32_t address, const void* src, std::uint32_t bytes, int line);
  void check(const char* what, int line);
  void mma(void* d, const void* a, const void* b, int k, abi::Product product, int line);
  void ldmatrix(void* dst, std::uint32_t row, int matrices, bool transposed, int line);

 private:
  struct Thread {
    abi::Ids ids = {};
    Collective waits_in = Collective::none;
    int line = 0;
    // What the thread brings to a collective and takes from it.
    std::uint64_t value = 0, result = 0;
    std::uint32_t operand = 0;
    void* d = nullptr;
    const void *a = nullptr, *b = nullptr;
  };
  /// Where a fixed set of threads meets.
  struct Meeting {
    int first = 0, count = 0;  // threads [first, first + count)
    int arrived = 0;
    Collective kind = Collective::none;
    int variant = 0;  // all must agree on it: kind of shuffle, product, matrices
    int line = 0;
  };

  // The static model: a call per access would cost as much as the access.
  static thread_local Block* running __attribute__((tls_model("initial-exec")));

  Thread& self() { return threads_[scheduler_.current()->id()]; }
  Meeting& warp_of_self() { return warps_[scheduler_.current()->id() / 32]; }
  /// Waits for all threads of the meeting; the last to arrive calls `finish` before any goes on.
  template <class Finish>
  void meet(Meeting& meeting, Collective kind, int variant, int line, Finish finish);
  std::byte* shared(std::uint32_t address, std::uint32_t bytes, const char* what, int line);
  void multiply(const Meeting& warp, int k, abi::Product product);
  void read_matrices(const Meeting& warp, int matrices, bool transposed, int line);

  std::string where(int line) const;
  std::string describe_thread() const;
  [[noreturn]] void fail(int line, const std::string& what);
  [[noreturn]] void blame_user(int line, const std::string& what);
  [[noreturn]] void deadlock();

  const Launch& launch_;
  const Module& module_;
  GlobalMemory global_;
  fiber::Scheduler scheduler_;
  std::vector<Thread> threads_;
  std::vector<Meeting> warps_, warpgroups_;
  Meeting everyone_;
  std::vector<std::byte> shared_;
  std::vector<std::uint8_t> shared_written_;
  std::array<std::int64_t, 3> index_ = {};
  std::uint32_t linear_ = 0;
};

}  // namespace palladium::emulator
