// What a lowered program does to asynchronous copies and products, and to those who wait for them:
// its statements without what they compute. protocol.cpp runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/device/waist.hpp"
#include "codegen/lowered/program.hpp"

namespace palladium::lowered::protocol {

/// Who runs statements of its own: a Pallas thread, of so many warpgroups, or what fetches for it.
struct Agent {
  std::string name = {};
  const Statements* statements = nullptr;
  int warpgroups = 1;
  bool is_one_thread = false;
  const Statement* end = nullptr;  // of one thread: at which its warpgroup meets its cluster
  int block = 0;                   // of the cluster
};
std::vector<Agent> agents(const Program& l);

/// Something that a statement does.
struct Act {
  enum class Kind : std::uint8_t {
    access,  // threads read and fill
    copy_by_threads,
    copy,     // TMA fills, and completes a barrier
    send,     // TMA reads
    product,  // of wgmma
    expect,
    arrive,
    wait,
    close,
    wait_group,
    sync,
    meet,  // all threads of the cluster do
  };
  Kind kind = Kind::access;
  const Statement* by = nullptr;
  /// A storage, of a ring in the slot of the iteration so many before.
  struct Read {
    StorageId storage = {};
    int back = 0;
    bool operator==(const Read&) const = default;
  };
  std::vector<Read> reads = {};
  std::vector<StorageId> fills = {};
  BarrierId barrier = {};
  std::int64_t bytes = 0;  // that are expected, or come
  /// A thread of each warpgroup sends, or awaits what it has sent; those of each wait for each
  /// other.
  bool by_warpgroups = false;
  int back = 0, pending = 0;
  device::Completion group = device::Completion::none;
  /// Of an arrival: in blocks that differ along one of these sets of axes alone, too. Of a copy:
  /// blocks that differ along these bring a part each, to all.
  std::vector<std::int64_t> along = {};
};

struct Step;
using Steps = std::vector<Step>;

/// Which loop, condition or branch: what is one value in an iteration is so for all agents.
struct Question {
  enum class Of : std::uint8_t { loop, axis, repetition, condition, branch, whole };
  Of of = Of::loop;
  int number = 0;
  bool operator==(const Question&) const = default;
};

/// A statement, or the part of it that matters.
struct Step {
  enum class Kind : std::uint8_t { act, loop, choice, lead, ahead, advance };
  Kind kind = Kind::act;
  const Statement* by = nullptr;
  Act act = {};
  Question question = {};          // of a loop, a choice, a lead, an ahead
  std::vector<Steps> bodies = {};  // of a choice; of others the first
  Steps prologue = {}, epilogue = {};
  bool rotated = false;
  RingId ring = {};     // of a loop: that is unrolled in it
  RingId grouped = {};  // of a loop: whose slots its text goes over
  int iterations = 0;
  /// Of a loop, how often it runs; all that are tried where nobody knows.
  std::vector<int> counts = {};
  bool varies = false;  // ... and not the same each time that it begins
  std::optional<std::int64_t> trips = {};  // ... in a call, where the program says it
};

/// The storages of which the order of accesses is known: those that something asynchronous
/// touches, one for each slot of a ring, and what else shares bytes with them.
struct Cell {
  StorageId storage = {};
  int slot = 0;
  bool in_registers = false, asynchronous = false;
  std::vector<int> others = {};  // cells of other storages that share bytes
};

/// What is followed: what can go wrong, in few iterations; or each statement that does something,
/// in so many iterations that all slots come again and again, where a condition of equality (the
/// first iteration, the last one) does not hold.
enum class Detail : std::uint8_t { waits, statements };

struct Model {
  const Program* program = nullptr;
  std::vector<Agent> agents = {};
  std::vector<Steps> steps = {};  // of each agent
  std::vector<Cell> cells = {};
  Table<StorageId, int> first_cell = {};     // -1: no such
  Table<BarrierId, int> first_barrier = {};  // one for each slot
  int barriers = 0;
  /// Blocks of a cluster that are followed, each with cells and barriers of its own. One alone
  /// stands for all of its cluster: what it tells others they tell it at that moment.
  int blocks = 1;
  bool counts_warpgroups = false;  // some barrier is told by each warpgroup
  Detail detail = Detail::waits;
  /// A statement that waits for what other programs do; nullptr: none.
  const Statement* waits_for_others = nullptr;

  bool is_empty() const { return cells.empty() && barriers == 0; }
};

/// Fills in cells, and what else is to be known of all statements before one of them is looked at.
void find_cells(Model& m);

/// `l` has its offsets in shared memory.
Model model_of(const Program& l, Detail detail = Detail::waits);
/// With all blocks of a cluster, where these fill each other's memory by copies that they share.
Model model_of_cluster(const Program& l);

}  // namespace palladium::lowered::protocol
