// What one OS thread emulates: resident clusters of blocks, their CUDA threads as fibers, shared
// memory, barriers, asynchronous engines and what happened before what.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/base/shuffle.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/global_memory.hpp"
#include "runtime/emulator/host.hpp"
#include "runtime/emulator/module.hpp"
#include "runtime/emulator/reports.hpp"
#include "runtime/emulator/tensor_map.hpp"
#include "runtime/emulator/wgmma.hpp"
#include "runtime/fiber/fiber.hpp"
#include "runtime/race/engine.hpp"
#include "runtime/race/shadow.hpp"

namespace palladium::emulator {

/// Shared memory does not begin at 0 on a GPU either; a null address is then never valid. The
/// address of another block's memory holds that block's rank + 1 above the offset.
constexpr std::uint32_t shared_base = 1024;
constexpr int rank_shift = 24;

/// What bulk copies and matrices in shared memory are made of.
constexpr std::uint32_t chunk = 16;

/// What a thread waits in.
enum class Wait : std::uint8_t {
  nothing,
  warpgroup_sync,
  block_sync,
  warp_sync,
  shuffle,
  vote,
  warp_uniform,
  warp,
  warpgroup,
  elect_one,
  mma,
  ldmatrix,
  stmatrix,
  setmaxnreg,
  barrier_sync,
  cluster_wait,
  mbarrier_wait,
  wgmma_wait,
  bulk_wait,
  cp_async_wait,
  next_cluster,
  // Nobody waits in these; they are executed in step.
  barrier_arrive,
  cluster_arrive,
  wgmma_fence,
  wgmma_commit
};
const char* name(Wait w);

struct Block;
struct Cluster;

/// How far a scope reaches: the block, the cluster, all.
enum Reach : std::uint8_t { block_reach, cluster_reach, device_reach };
constexpr int reaches = 3;

/// What releases at one address told, those of each resident block and cluster apart.
struct AtomicLocation {
  struct Part {
    std::uint64_t of = 0;  // the block or cluster; another may have had its place
    race::Snapshot told;
  };
  race::Snapshot told;  // to all
  std::vector<Part> blocks, clusters;
  bool all_is_told_to_all = true;  // those of a block or a cluster have heard nothing else
};

/// Instructions that all threads of a group must execute at one line, in their order: each thread
/// tells what it executes next.
class InStep {
 public:
  struct Step {
    Wait kind = Wait::nothing;
    int line = 0;
    bool operator==(const Step&) const = default;
  };
  /// What the first thread executed as its instruction `number`; `threads` are still there.
  Step next(std::uint32_t number, Step mine, int threads) {
    if (number < first_) return mine;
    if (number - first_ == steps_.size() - head_) steps_.push_back({mine, 0});
    Counted& step = steps_[head_ + number - first_];
    const Step expected = step.step;
    ++step.threads;
    while (head_ < steps_.size() && steps_[head_].threads >= threads) ++head_, ++first_;
    if (head_ == steps_.size()) steps_.clear(), head_ = 0;
    return expected;
  }

 private:
  struct Counted {
    Step step;
    int threads;  // that have executed it
  };
  std::vector<Counted> steps_;  // from head_ on, the first is number first_
  std::size_t head_ = 0;
  std::uint32_t first_ = 0;
};

/// One that makes several copies, to places which do not overlap: copies to the same place race.
struct CopyAgent {
  race::Agent agent = 0;
  race::Snapshot knows;  // what its issuer did when it last issued
  std::vector<std::pair<std::uint32_t, std::uint32_t>> taken;  // begin and end
};

/// Copies that a thread waits for together.
struct CopyGroup {
  std::vector<CopyAgent> agents = {};  // of its copies to shared memory
  int line = 0;
  int reading = 0, writing = 0;          // copies that have not read their source, written
  race::Snapshot has_read, has_written;  // what waiting for them tells
  bool awaited = false;                  // at least its reads
};

struct Thread {
  abi::Ids ids = {};
  Block* block = nullptr;
  fiber::Fiber* fiber = nullptr;
  race::Agent agent = 0;

  Wait waits_in = Wait::nothing;
  int line = 0;
  std::uint32_t object = 0, parity = 0;  // what it waits for: an mbarrier, a named barrier

  // What the thread brings to a collective of its warp and takes from it.
  std::uint64_t value = 0, result = 0;
  std::uint32_t operand = 0;
  void* d = nullptr;
  const void *a = nullptr, *b = nullptr;

  bool woken = false;  // by what happened while it went to sleep
  bool returned = false;
  bool met_cluster = false;  // has passed a cluster barrier: the other blocks have started
  bool arrived_in_cluster = false;
  bool cluster_scope = false;                           // of the mbarrier_wait in which it sleeps
  std::uint32_t warp_steps = 0, warpgroup_steps = 0;    // executed in step
  std::uint32_t cluster_phase = 0;                      // in which it did
  std::uint32_t clusters_passed = 0;                    // up to which phase it has waited
  std::shared_ptr<CopyGroup> open_bulk, open_cp_async;  // not committed yet
  std::vector<std::shared_ptr<CopyGroup>> bulk, cp_async;
  race::Snapshot copied;  // by cp.async that it has waited for since its last fence for them
  WgmmaThread wgmma;
  std::vector<race::Agent> idle;  // agents of its asynchronous operations that are over
  // For atomics: what a fence of at least each reach released, and what relaxed accesses brought
  // for the next fence of each reach.
  std::array<race::Snapshot, reaches> fenced, read_relaxed;
  struct Question {
    std::uintptr_t address = 0;
    std::uint64_t value = 0, answer = 0;
    bool operator==(const Question&) const = default;
  };
  Question asked;  // by its last atomic or load
  Question mark;   // by an earlier one, to see that it goes round
  std::uint32_t since_mark = 0, until_mark = 1;
  std::vector<std::uint32_t> initialized;  // mbarriers, since its last fence
  std::vector<std::uint32_t> published;    // those fenced since it arrived in the cluster
};

/// Where a fixed set of threads of a block meets.
struct Meeting {
  int first = 0, count = 0;  // threads [first, first + count)
  int arrived = 0;
  Wait kind = Wait::nothing;
  int variant = 0;  // all must agree on it: kind of shuffle, product, matrices
  int line = 0;
  race::Snapshot arrived_with = {};
  int live = count;  // threads that have not returned
  InStep steps = {};
};

/// A named barrier or a cluster's: threads come in any number.
struct Barrier {
  Wait user = Wait::nothing;  // by what threads last met here
  int user_line = 0;
  std::bitset<1024> came;  // which threads have arrived
  std::uint32_t expected = 0, arrived = 0;
  std::uint32_t left = 0;  // arrived at a cluster's barrier and returned
  int line = 0;
  std::vector<Thread*> waiting;
  race::Snapshot arrived_with = {};
  race::Snapshot passed;
  race::Agent witness = 0;  // of a named barrier's passing
  race::Record passed_at;   // by that, of the last one
  std::uint32_t phase = 0;
};

/// A step of a warp's witness, and what knows of it.
struct Seen {
  race::Record at;
  race::Snapshot told;
};

struct Mbarrier {
  std::uint32_t count = 0, pending = 0, phase = 0;
  std::int64_t transactions = 0;  // bytes outstanding in the current phase
  int line = 0;                   // of its mbarrier_init
  bool fenced = false;            // by fence_mbarrier_init
  std::uint32_t visible = 0;      // to who has passed so many barriers of the cluster
  race::Snapshot initialized;
  std::vector<Thread*> waiting;
  race::Snapshot arrived_with = {};
  race::Snapshot passed;  // of the last phase
  // What other blocks' threads told, for who waits at the scope of the cluster.
  race::Snapshot cluster_arrived_with, cluster_passed;
  // In the current phase: arrivals, whatever their scopes, and of witnesses those who issued
  // copies.
  race::Snapshot arrivals_know;
  /// A warp that has seen that the last phase ended, and which thread of it was the first.
  struct Observer {
    abi::Ids ids;
    int line;
    Seen seen;
  };
  std::vector<Observer> observers;
  int copy_line = 0;  // of a copy that completed in the last phase and nobody waited for
};

struct Block {
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0, linear = 0;
  std::array<std::int64_t, 3> index = {};
  std::vector<Thread> threads;
  std::vector<Meeting> warps, warpgroups;
  Meeting everyone;
  std::array<Barrier, 16> barriers;
  std::vector<WgmmaUnit> wgmma;                    // per warpgroup
  std::vector<race::Agent> witnesses;              // per warp, of what its threads have seen
  std::set<const MatrixChunks*> written_operands;  // found to be written, which they then stay
  std::vector<std::byte> shared;
  enum : std::uint8_t { unwritten, written, mbarrier };
  std::vector<std::uint8_t> state;  // of each byte of shared
  std::optional<race::Shadow> shadow;
  std::map<std::uint32_t, Mbarrier> mbarriers;  // by offset
  struct Name {
    std::uint32_t offset, bytes;
    std::string name;
  };
  std::vector<Name> names;
  int live = 0;
  int registers_free = 0;         // in the pool that setmaxnreg moves registers through
  std::vector<int> registers_of;  // per warpgroup, for each thread
  struct Wish {
    std::uint32_t warpgroup;
    int registers;
  };
  std::vector<Wish> wishes;  // of warpgroups that wait for more
  struct RegisterChange {
    race::Snapshot after;  // of all threads
    int line = 0;
  };
  std::vector<RegisterChange> register_changes;  // the last of each warpgroup
  // Accesses of other blocks, which must happen before this one's end.
  struct Remote {
    race::Snapshot after;
    int line;
  };
  std::map<race::Agent, Remote> remote;
  race::Snapshot end;
};

/// Blocks that run together and see each other's shared memory. A slot that is filled again.
struct Cluster {
  std::size_t slot = 0;  // its place among the resident ones
  std::uint64_t index = 0;
  std::uint64_t turn = 0;  // how many were begun before it
  std::deque<Block> blocks;
  Barrier barrier;
  int live = 0;
  bool finished = false;  // there is no next cluster for this slot
  std::vector<Thread*> waiting;
};

/// Hands out clusters to the workers of a launch, each once, until there are no more or somebody
/// failed: in order, or in one that a seed gives.
class Clusters {
 public:
  Clusters(std::uint64_t count, std::optional<std::uint64_t> seed) : count_(count) {
    if (seed) order_.emplace(count, *seed);
  }
  struct Next {
    std::uint64_t index = 0, turn = 0;
  };
  std::optional<Next> next() {
    if (stopped_) return std::nullopt;
    const std::uint64_t turn = next_++;
    if (turn >= count_) return std::nullopt;
    return Next{order_ ? (*order_)(turn) : turn, turn};
  }
  void stop() { stopped_ = true; }

 private:
  std::atomic<std::uint64_t> next_ = 0;
  std::uint64_t count_;
  std::optional<Shuffle> order_;
  std::atomic<bool> stopped_ = false;
};

class Machine {
 public:
  Machine(const Launch& launch, const Module& module, GlobalMemory& global, Reports& reports,
          Clusters& clusters, std::uint64_t resident);
  Machine(const Machine&) = delete;

  /// Runs clusters until there are no more. Throws what stops a kernel; an InternalError says it
  /// without kernel and former reports.
  void run();
  /// The turn of the cluster that a failure belongs to.
  std::uint64_t failed_turn() const { return failed_; }

  /// Functions of abi::Host that its threads have called: what they take for a clock.
  std::uint64_t calls = 0;

  /// The machine that this OS thread runs.
  static Machine& current() { return *running; }

  // ---- the functions of abi::Host
  const abi::Ids* ids() { return &self().ids; }
  void warpgroup_sync(int warpgroups, int line);
  void block_sync(int line);
  void warp_sync(int line);
  std::uint64_t shuffle(std::uint64_t value, abi::Shuffle kind, std::uint32_t operand, int line);
  std::uint32_t ballot(bool p, int line);
  std::uint32_t warp_uniform(std::uint32_t x, abi::Uniform what, int line);
  bool elect_one(int line);
  void barrier(std::uint32_t id, std::uint32_t threads, bool wait, int line);
  void cluster_arrive(bool release, int line);
  void cluster_wait(int line);
  void setmaxnreg(int registers, bool increase, int line);

  void load_global(void* dst, const void* p, std::uint32_t bytes, int line);
  void load_global_nc(void* dst, const void* p, std::uint32_t bytes, int line);
  void store_global(void* p, const void* src, std::uint32_t bytes, int line);
  void load_shared(void* dst, std::uint32_t address, std::uint32_t bytes, abi::Unwritten unwritten,
                   int line);
  void store_shared(std::uint32_t address, const void* src, std::uint32_t bytes, int line);
  std::uint32_t mapa(std::uint32_t address, std::uint32_t rank, int line);
  void load_cluster(void* dst, std::uint32_t remote, std::uint32_t bytes, int line);
  void store_cluster(std::uint32_t remote, const void* src, std::uint32_t bytes, int line);
  void flush_resident(void* p, std::uint32_t address, std::uint32_t element_bytes, int elements,
                      int line);
  void check(const char* what, int line);
  void check_value(std::int64_t value, const char* what, int line);
  void check_range(std::int64_t first, std::int64_t last, std::int64_t extent, const char* what,
                   int line);
  void name_shared(std::uint32_t address, std::uint32_t bytes, const char* name, int index);
  std::uint64_t atomic_global(void* p, abi::Atomic what, abi::Format format, std::uint32_t bytes,
                              std::uint64_t value, std::uint64_t expected, abi::Order order,
                              abi::Scope scope, int line);
  std::uint64_t atomic_cluster(std::uint32_t remote, abi::Atomic what, abi::Format format,
                               std::uint32_t bytes, std::uint64_t value, abi::Order order,
                               int line);
  std::uint64_t atomic_shared(std::uint32_t address, abi::Atomic what, abi::Format format,
                              std::uint32_t bytes, std::uint64_t value, std::uint64_t expected,
                              abi::Order order, int line);

  void mbarrier_init(std::uint32_t bar, std::uint32_t count, int line);
  void mbarrier_inval(std::uint32_t bar, int line);
  void mbarrier_expect_tx(std::uint32_t bar, std::uint32_t bytes, bool remote, int line);
  void mbarrier_arrive(std::uint32_t bar, std::uint32_t count, abi::Arrival how, int line);
  bool mbarrier_wait(std::uint32_t bar, std::uint32_t parity, abi::Waiting how, bool cluster_scope,
                     int line);
  void fence(abi::Fence kind, int line);
  void griddepcontrol(bool wait);

  void tma_load(std::uint32_t dst, const void* map, std::uint32_t bar, std::uint32_t blocks,
                int rank, const int* at, int line);
  void tma_store(const void* map, std::uint32_t src, abi::Reduction how, int rank, const int* at,
                 int line);
  void tma_prefetch(const void* map, int rank, const int* at, int line);
  void bulk_load(std::uint32_t dst, const void* src, std::uint32_t bytes, std::uint32_t bar,
                 std::uint32_t blocks, int line);
  void bulk_store(void* dst, std::uint32_t src, std::uint32_t bytes, abi::Reduction how,
                  abi::Format format, int line);
  void bulk_copy_cluster(std::uint32_t remote_dst, std::uint32_t src, std::uint32_t bytes,
                         std::uint32_t remote_bar, int line);
  void bulk_prefetch(const void* src, std::uint32_t bytes, int line);
  void store_async(std::uint32_t remote, const void* src, std::uint32_t bytes,
                   std::uint32_t remote_bar, int line);
  void bulk_commit(int line);
  void bulk_wait(int groups, bool read, int line);
  void cp_async(std::uint32_t dst, const void* src, std::uint32_t bytes, bool in_bounds,
                const void* otherwise, int line);
  void cp_async_commit(int line);
  void cp_async_wait(int groups, int line);
  void cp_async_arrive(std::uint32_t bar, int line);

  void mma(void* d, const void* a, const void* b, int k, abi::Product product, int line);
  void ldmatrix(void* dst, std::uint32_t row, int matrices, bool transposed, int line);
  void stmatrix(std::uint32_t row, const void* src, int matrices, bool transposed, int line);
  void wgmma(const abi::Wgmma& shape, void* d, const std::uint32_t* a_registers, std::uint64_t a,
             std::uint64_t b, bool accumulate, int line);
  void wgmma_registers(const void* registers, std::uint32_t words);
  void wgmma_fence(int line);
  void wgmma_commit(int line);
  void wgmma_wait(int groups, int line);
  void saw_in_flight(int line);

 private:
  // The static model: a call per access would cost as much as the access.
  static thread_local Machine* running __attribute__((tls_model("initial-exec")));

  // ---- life of threads and clusters (machine.cpp)
  Thread& self() const { return *static_cast<Thread*>(scheduler_.current()->owner()); }
  void build(Cluster& cluster);
  void fill(Cluster& cluster, Clusters::Next next, bool is_new);
  bool add_cluster();
  bool add_clusters();
  race::Agent witness_again(race::Agent former, bool go_on);
  void run_thread(Thread& thread);
  void finish(Thread& thread);
  void finish(Cluster& cluster);
  bool next_cluster(Thread& thread);
  /// Parks the running thread; everything that blocks goes through here.
  void park(Wait kind, int line, std::uint32_t object = 0, std::uint32_t parity = 0);
  void unpark(Thread& thread);
  /// Wakes those that wait, who then know what `passed` tells.
  void wake_all(std::vector<Thread*>& waiting, race::Snapshot passed);
  /// Lets the others run; for loops that ask again and again.
  void poll(int line);
  void progress() { polls_ = rounds_ = 0; }
  std::uint64_t random() { return random_ = random_ * 6364136223846793005u + 1442695040888963407u; }
  [[noreturn]] void deadlock();

  // ---- collectives (collectives.cpp)
  Meeting& warp_of(Thread& t) { return t.block->warps[t.ids.warpgroup * 4 + t.ids.warp]; }
  std::span<Thread> threads_of(Thread& t, const Meeting& m) {
    return {t.block->threads.data() + m.first, static_cast<std::size_t>(m.count)};
  }
  /// Waits for all threads of the meeting; the last to arrive calls `finish` before any goes on.
  template <class Finish>
  void meet(Meeting& meeting, Wait kind, int variant, int line, Finish finish);
  void pass(Barrier& barrier);
  void pass_if_all_came(Cluster& cluster);
  void pass_if_all_came(Block& block);
  void give_registers(Block& block);
  /// All threads of the warp, or of the warpgroup, must do this together.
  void in_step(Meeting& group, std::uint32_t& number, Wait kind, int line);
  void warp_in_step(Wait kind, int line);
  void warpgroup_in_step(Wait kind, int line);
  /// The running thread comes to named barrier `id` by `user`; others must not be there by another
  /// or, not ordered with it, have been.
  struct Others {
    bool there = false;
    Wait by = Wait::nothing;
    int line = 0;
  };
  void use_barrier(std::uint32_t id, Wait user, const Others& others, int line);

  // ---- memory (memory.cpp, atomics.cpp)
  struct Place {
    Block* block;
    std::uint32_t offset;
  };
  /// Where a shared address lies; `what` ("reads") and bytes, which must divide it, for messages.
  Place shared(std::uint32_t address, std::uint32_t bytes, std::uint32_t alignment,
               const char* what, int line);
  Place cluster_shared(std::uint32_t remote, std::uint32_t bytes, std::uint32_t alignment,
                       const char* what, int line);
  /// Notes an access of another block's memory. One that only counts (an arrival) is known to who
  /// hears of it by whatever way.
  void touch_remote(Block& block, race::Agent agent, int line, bool only_counts = false);
  void require_written(const Block& block, std::uint32_t offset, std::uint32_t bytes,
                       const char* what, int line) {
    if (std::memchr(&block.state[offset], Block::unwritten, bytes) != nullptr) {
      fail_unwritten(block, offset, bytes, what, line);
    }
  }
  [[noreturn]] void fail_unwritten(const Block& block, std::uint32_t offset, std::uint32_t bytes,
                                   const char* what, int line);
  void mark_written(Block& block, std::uint32_t offset, std::uint32_t bytes, int line);
  void tell_watcher(device::Memory memory, const race::Access& access, std::uint64_t at,
                    std::uint64_t bytes) const;
  device::Memory memory_of(const Block& block) const;
  void record_shared(Block& block, std::uint32_t offset, std::uint32_t bytes, race::Access access,
                     std::span<const race::Agent> issuers);
  void record_shared(Block& block, std::uint32_t offset, std::uint32_t bytes, race::Kind kind,
                     int line);
  GlobalMemory::Region& global(const void* p, std::size_t bytes, std::uint32_t alignment,
                               bool write, const char* what, int line);
  void record_global(GlobalMemory::Region& region, std::uintptr_t address, std::size_t bytes,
                     race::Access access, std::span<const race::Agent> issuers);
  /// What a read of a buffer that is written must be: of elements that hold something, and that no
  /// other block writes.
  void check_read(GlobalMemory::Region& region, std::uintptr_t address, std::size_t bytes,
                  int line);
  bool is_ordered_by_engine(std::uint32_t other_block) const;
  void report_unordered(GlobalMemory::Region& region, std::size_t element, race::Write read,
                        race::Write write);
  std::size_t region_index(const GlobalMemory::Region& region) {
    return static_cast<std::size_t>(&region - &global_.region(0));
  }
  void record_writer(GlobalMemory::Region& region, std::uintptr_t address, std::size_t bytes,
                     const Block& block, int line);
  void load_global(GlobalMemory::Region& region, void* dst, const void* p, std::uint32_t bytes,
                   int line);
  bool asks_again(std::uintptr_t address, std::uint64_t value, std::uint64_t old);
  void ask(std::uintptr_t address, const void* got, std::uint32_t bytes, int line);
  void fence(Reach reach);
  std::uint64_t update_shared(const Place& at, std::uint32_t address, abi::Atomic what,
                              abi::Format format, std::uint32_t bytes, std::uint64_t value,
                              std::uint64_t expected, abi::Order order, Reach reach, int line);
  void tell(abi::Order order, Reach reach, AtomicLocation& location);
  void hear(abi::Order order, Reach reach, AtomicLocation& location);
  race::Snapshot heard(Reach reach, AtomicLocation& location);
  race::Snapshot& told_to_block(AtomicLocation& location);
  race::Snapshot& told_to_cluster(AtomicLocation& location);
  void require_end_of_previous(const GlobalMemory::Region& region, race::Access access);

  // ---- mbarriers (mbarrier.cpp)
  Mbarrier& mbarrier(Block& block, std::uint32_t offset, const char* what, int line);
  void require_initialized(Block& block, std::uint32_t offset, Mbarrier& m, int line);
  /// The copy is `agent`. `of_threads`: who waits is told of accesses of other blocks' threads.
  void complete_tx(Block& block, std::uint32_t offset, std::uint32_t bytes, race::Agent agent,
                   int line, bool of_threads = false);
  void end_phase_if_complete(Block& block, std::uint32_t offset, Mbarrier& m);
  void observe(Mbarrier& m, int line);
  /// Lets the warp's witness tell of what the running thread has just seen or counted.
  Seen testify();
  void require_observers_known(Block& block, std::uint32_t offset, const Mbarrier& m);

  // ---- asynchronous copies (copies.cpp)
  /// An asynchronous operation between its issue and its end: run() makes its next step and says
  /// whether there is another.
  struct Operation {
    std::uint64_t cluster;
    std::function<bool()> run;
  };
  race::Agent add_agent(Thread& thread, std::string_view operation = {},
                        device::Proxy through = device::Proxy::generic, bool of_warpgroup = false);
  void begin_again(race::Agent agent, const Thread& thread);
  /// An agent for an operation of the running thread, which knows what the thread knows.
  race::Agent take_agent(device::Row operation);
  void give_agent(race::Agent agent);
  void issue(std::function<bool()> run);
  void run_operation();
  /// A copy into shared memory: `fill` writes the bytes of one block.
  struct Load {
    device::Row row;
    std::uint32_t dst, bytes, bar, alignment;
    std::uint32_t blocks;  // abi::this_block, or their bits
    int line;
    std::function<void(std::byte* shared)> fill;
  };
  void load(Load load, race::Agent agent);
  /// A copy out of shared memory: `write` gets the bytes, without swizzle.
  struct Store {
    device::Row row;
    std::uint32_t src, bytes, alignment;
    int swizzle, line;
    std::function<void(const std::vector<std::byte>& data)> write;
  };
  void store(Store store, race::Agent writer);
  TensorMapSpec map_of(const void* map, int rank, const char* what, int line);
  /// The box's first element; fails where no TMA takes it.
  std::array<int, 5> coordinates(const TensorMapSpec& map, const int* at, const char* what,
                                 int line);
  void write_box(const TensorMapSpec& map, const std::array<int, 5>& at, abi::Reduction how,
                 const std::vector<std::byte>& data);
  void record_box(const TensorMapSpec& map, const std::array<int, 5>& at, race::Access access);
  race::Agent agent_of_copy(CopyGroup& group, std::uint32_t begin, std::uint32_t bytes);
  void finish(CopyGroup& group);
  std::shared_ptr<CopyGroup>& open_group(std::shared_ptr<CopyGroup>& group, int line);
  void wait_groups(std::vector<std::shared_ptr<CopyGroup>>& groups, int keep, bool read, Wait kind,
                   int line);
  void wake(Thread& thread, Wait kind);

  // ---- matrices (matrix.cpp, wgmma.cpp)
  void multiply(std::span<Thread> warp, int k, abi::Product product);
  void read_matrices(std::span<Thread> warp, int matrices, bool transposed, int line);
  void write_matrices(std::span<Thread> warp, int matrices, bool transposed, int line);
  void move_row(Thread& lane, void* to, const void* from, int line);
  [[noreturn]] void fail_divergent(const WgmmaCall& mine, const WgmmaCall& theirs);
  void lend(WgmmaProduct& product, void* d, int line);
  void settle(WgmmaUnit& unit, void* d, int line);
  void require_fence(const void* registers, const char* what, int line);
  void take_a(WgmmaProduct& product, const std::uint32_t* registers, int line);
  const MatrixChunks& chunks_of(std::uint64_t descriptor, bool transposed, int extent, int k,
                                abi::Format format);
  void find_operands(Block& block, WgmmaProduct& product);
  void require_operand(Block& block, const MatrixChunks& chunks, const char* operand, int line);
  void execute(Block& block, WgmmaUnit& unit, std::uint32_t until);
  void retire(WgmmaUnit& unit, std::uint32_t until, int line);
  void give_back(const WgmmaThread::Lent& lent, const abi::Wgmma& shape, int line);

  // ---- reports (machine.cpp)
  static std::string describe(const abi::Ids& thread);
  std::string describe(const Thread& thread) const { return describe(thread.ids); }
  std::string describe(race::Agent agent) const;
  std::string describe(const race::Access& access) const;
  std::string describe_self() const;
  std::string describe(const Block& block, std::uint32_t offset) const;
  std::string where(int line) const { return reports_.where(line); }
  void report(const Block& block, const Cause& cause, std::string text);
  bool are_pallas_threads(race::Agent a, race::Agent b) const;
  void report_race(const Block& block, const std::string& memory, const race::Race& race);
  [[noreturn]] void fail(int line, const std::string& what);
  /// With the line of threads that did otherwise: "theirs", "the others wait in vote".
  [[noreturn]] void fail(int line, const std::string& what, const std::string& others,
                         int others_line);
  /// What an index of the user's may do.
  [[noreturn]] void fail_access(int line, const std::string& what);
  [[noreturn]] void blame_user(int line, const std::string& what);
  bool races() const { return races_; }

  const Launch& launch_;
  const Module& module_;
  GlobalMemory& global_;
  Reports& reports_;
  Clusters& queue_;
  fiber::Scheduler scheduler_;
  const bool races_;
  race::Engine engine_;
  const std::uint64_t resident_;      // as many clusters as may run together
  std::deque<Cluster> clusters_;      // that do
  std::vector<Thread*> threads_;      // by fiber
  std::deque<Operation> operations_;  // in order of issue
  /// What an agent is: a thread, an asynchronous operation of one, or a warpgroup's tensor core.
  struct Actor {
    std::string_view operation = {};  // none: the thread itself
    bool of_warpgroup = false;
    Thread* thread = nullptr;
    abi::Ids ids = {};  // the thread may have become another block's since
  };
  std::vector<Actor> actors_;  // by agent
  struct GlobalShadow {
    std::unordered_map<std::size_t, race::Shadow> pages;
  };
  std::vector<GlobalShadow> global_shadows_;                       // by region
  std::map<std::array<std::uint64_t, 2>, MatrixChunks> operands_;  // of descriptors seen so far
  std::map<std::uintptr_t, AtomicLocation> atomics_;               // at global addresses
  std::map<std::pair<const Block*, std::uint32_t>, AtomicLocation> shared_atomics_;
  race::Snapshot previous_kernel_;  // what it did
  race::Agent end_of_block_ = 0;
  std::size_t hint_ = 0;
  std::uint64_t random_;
  std::uint64_t polls_ = 0;   // since anything went on
  std::uint64_t rounds_ = 0;  // since more went on than that threads met
  std::uint64_t failed_ = 0;
};

/// Whether blocks may tell each other something through global memory, by what the text calls:
/// those of a kernel whose blocks wait for each other must run together.
bool blocks_communicate(std::string_view text);

}  // namespace palladium::emulator
