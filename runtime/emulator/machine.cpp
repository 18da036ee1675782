#include "runtime/emulator/machine.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <tuple>
#include <utility>

#include "codegen/base/format.hpp"

namespace palladium::emulator {

thread_local Machine* Machine::running = nullptr;

namespace {

constexpr std::byte poison{0xff};  // NaN in every float type
// After so many a new block's threads take over the timelines of the block before them (see
// race::Engine::begin_again).
constexpr std::uint32_t most_agents = 1 << 17;
constexpr std::uint64_t polls_of_a_livelock = 2'000'000;
// Where threads meet between their questions: those who compute may meet often as well.
constexpr std::uint64_t rounds_of_a_livelock = 32'000'000;
// Of many threads each asks so often at least.
constexpr std::uint64_t polls_of_each = 100;
// Clusters that run together before anybody is seen to wait for others, and after how many
// questions between which threads meet there are more of them.
constexpr std::uint64_t first_clusters = 4;
constexpr std::uint64_t rounds_of_few = 1 << 18;

fiber::Order order_of(Schedule s) {
  switch (s) {
  case Schedule::fifo: return fiber::Order::fifo;
  case Schedule::lifo: return fiber::Order::lifo;
  case Schedule::random: return fiber::Order::random;
  }
  return fiber::Order::fifo;
}

// "0 to 63, 127"
std::string ranges(const std::vector<std::uint32_t>& ascending) {
  constexpr int most = 4;
  std::string result;
  int shown = 0;
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    if (i > 0) result += ", ";
    if (++shown > most) return result + "...";
    const std::uint32_t first = ascending[i];
    while (i + 1 < ascending.size() && ascending[i + 1] == ascending[i] + 1) ++i;
    result += ascending[i] == first ? fmt::format("{}", first)
                                    : fmt::format("{} to {}", first, ascending[i]);
  }
  return result;
}

// For vectors that are filled anew in each block.
template <class T>
void keep_memory(std::vector<T>& to, std::vector<T>& from) {
  from.clear();
  to = std::move(from);
}

// What each thread of a kernel with __launch_bounds__(threads, 1) may have at its entry: its part
// of 65536 registers, by eights. (The 255 that an instruction can name are allocated as 256.)
int part_of_registers(int threads) { return std::min(65536 / threads / 8 * 8, 256); }

// But no more than the kernel ever asks setmaxnreg_inc for.
int launch_registers(int threads, std::string_view text) {
  constexpr std::string_view ask = "pl::setmaxnreg_inc<";
  int most = 0;
  for (std::size_t at = text.find(ask); at != text.npos; at = text.find(ask, at)) {
    at += ask.size();
    int n = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), n);
    most = std::max(most, n);
  }
  const int part = part_of_registers(threads);
  return most == 0 ? part : std::min(part, most);
}

}  // namespace

const char* name(Wait w) {
  constexpr const char* names[] = {"nothing",
                                   "warpgroup_sync",
                                   "block_sync",
                                   "warp_sync",
                                   "shuffle",
                                   "vote",
                                   "warp_uniform",
                                   "warp",
                                   "warpgroup",
                                   "elect_one",
                                   "mma",
                                   "ldmatrix",
                                   "stmatrix",
                                   "setmaxnreg",
                                   "barrier_sync",
                                   "cluster_wait",
                                   "mbarrier_wait",
                                   "wgmma_wait",
                                   "bulk_wait",
                                   "cp_async_wait",
                                   "the next cluster",
                                   "barrier_arrive",
                                   "cluster_arrive",
                                   "wgmma_fence",
                                   "wgmma_commit"};
  return names[static_cast<int>(w)];
}

int known_registers(int threads, std::string_view text) {
  return text.find("pl::setmaxnreg") == text.npos ? 0 : launch_registers(threads, text);
}

bool blocks_communicate(std::string_view text) {
  const auto tells = [](const device::Access& a) {
    const bool global =
        a.memory == device::Memory::global || a.memory == device::Memory::tensor_map;
    return global && a.atomic;
  };
  const std::set<device::Row> rows = device::rows_in(text);
  return std::any_of(rows.begin(), rows.end(), [&](device::Row row) {
    if (device::info(row).file == "debug") return false;  // tells the host
    const std::span<const device::Access> all = device::info(row).effects.accesses();
    return std::any_of(all.begin(), all.end(), tells);
  });
}

Machine::Machine(const Launch& launch, const Module& module, GlobalMemory& global, Reports& reports,
                 Clusters& clusters, std::uint64_t resident)
    : launch_(launch),
      module_(module),
      global_(global),
      reports_(reports),
      queue_(clusters),
      scheduler_({.stack_bytes = 128 * 1024,
                  .order = order_of(launch.options.schedule),
                  .seed = launch.options.seed}),
      races_(launch.options.detect_races),
      engine_({.strict_fences = launch.options.strict_fences}),
      resident_(resident),
      global_shadows_(global.size()),
      random_(launch.options.seed * 2 + 1) {
  scheduler_.on_deadlock([this](fiber::Scheduler& scheduler) {
    while (!operations_.empty()) {
      run_operation();
      if (scheduler.any_ready()) return;
    }
    deadlock();
  });
}

void Machine::build(Cluster& cluster) {
  const int size = launch_.cluster[0] * launch_.cluster[1] * launch_.cluster[2];
  const int threads = launch_.warpgroups * 128;
  cluster.blocks.resize(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    Block& block = cluster.blocks[rank];
    block.cluster = &cluster;
    block.rank = static_cast<std::uint32_t>(rank);
    block.shared.resize(launch_.shared_bytes);
    block.state.resize(launch_.shared_bytes);
    block.wgmma.resize(static_cast<std::size_t>(launch_.warpgroups));
    block.witnesses.resize(static_cast<std::size_t>(launch_.warpgroups) * 4);
    block.registers_of.resize(static_cast<std::size_t>(launch_.warpgroups));
    block.threads.resize(static_cast<std::size_t>(threads));
  }
}

// A witness that has seen nothing yet.
race::Agent Machine::witness_again(race::Agent former, bool go_on) {
  if (!races()) return 0;
  if (!go_on) return engine_.add_witness();
  engine_.begin_again(former, {});
  return former;
}

// Makes the slot's blocks those of the cluster `next`, at the beginning of their lives.
void Machine::fill(Cluster& cluster, Clusters::Next next, bool is_new) {
  if (resident_ == 1 && races()) {
    // Nothing that happened before matters: writes of other blocks are WriterMap's business.
    engine_.reset();
    actors_.clear();
    global_shadows_.clear();
    global_shadows_.resize(global_.size());
    atomics_.clear();
    shared_atomics_.clear();
  }
  if (races() && engine_.agents() == 0) {
    const race::Agent previous = engine_.add_agent();
    engine_.record({.agent = previous});
    previous_kernel_ = engine_.release(previous);
    end_of_block_ = engine_.add_agent();
  }
  const bool go_on = races() && !is_new && engine_.agents() > most_agents;
  cluster.index = next.index;
  cluster.turn = next.turn;
  cluster.barrier = {};
  cluster.live = 0;
  std::array<std::int64_t, 3> first = {};
  std::uint64_t rest = next.index;
  for (int d = 0; d < 3; ++d) {
    const auto along = static_cast<std::uint64_t>(launch_.grid[d] / launch_.cluster[d]);
    first[d] = static_cast<std::int64_t>(rest % along) * launch_.cluster[d];
    rest /= along;
  }
  for (Block& block : cluster.blocks) {
    const auto size = std::array<std::uint32_t, 3>{static_cast<std::uint32_t>(launch_.cluster[0]),
                                                   static_cast<std::uint32_t>(launch_.cluster[1]),
                                                   static_cast<std::uint32_t>(launch_.cluster[2])};
    block.index = {first[0] + block.rank % size[0], first[1] + block.rank / size[0] % size[1],
                   first[2] + block.rank / size[0] / size[1]};
    block.linear = static_cast<std::uint32_t>(
        block.index[0] + launch_.grid[0] * (block.index[1] + launch_.grid[1] * block.index[2]));
    std::fill(block.shared.begin(), block.shared.end(), poison);
    std::fill(block.state.begin(), block.state.end(), Block::unwritten);
    block.mbarriers.clear();
    block.names.clear();
    for (Barrier& barrier : block.barriers) {
      const race::Agent former = std::exchange(barrier, {}).witness;
      barrier.witness = witness_again(former, go_on);
    }
    block.remote.clear();
    block.end = {};
    const int threads = static_cast<int>(block.threads.size());
    block.live = threads;
    cluster.live += threads;
    block.warps.clear();
    block.warpgroups.clear();
    for (int i = 0; i < threads; i += 32) block.warps.push_back({.first = i, .count = 32});
    for (int i = 0; i < threads; i += 128) block.warpgroups.push_back({.first = i, .count = 128});
    block.everyone = {.first = 0, .count = threads};
    block.registers_free = 0;
    std::fill(block.registers_of.begin(), block.registers_of.end(),
              launch_registers(threads, launch_.text));
    block.wishes.clear();
    block.register_changes.assign(block.registers_of.size(), {});
    block.written_operands.clear();
    if (races()) block.shadow.emplace(engine_, block.shared.size());
    for (int i = 0; i < threads; ++i) {
      Thread& thread = block.threads[i];
      Thread former = std::exchange(thread, {});
      thread.fiber = former.fiber;
      keep_memory(thread.bulk, former.bulk);
      keep_memory(thread.wgmma.groups, former.wgmma.groups);
      keep_memory(thread.wgmma.lent, former.wgmma.lent);
      keep_memory(thread.wgmma.reading, former.wgmma.reading);
      keep_memory(thread.wgmma.operands, former.wgmma.operands);
      thread.block = &block;
      abi::Ids& ids = thread.ids;
      ids.thread = i % 128;
      ids.warpgroup = i / 128;
      ids.warp = i / 32 % 4;
      ids.lane = i % 32;
      ids.cluster_rank = block.rank;
      ids.cluster_size = static_cast<std::uint32_t>(cluster.blocks.size());
      ids.shared_base = shared_base;
      ids.poison = launch_.options.out_of_bounds == OutOfBounds::poison;
      for (int d = 0; d < 3; ++d) {
        ids.block[d] = static_cast<int>(block.index[d]);
        ids.grid[d] = static_cast<int>(launch_.grid[d]);
      }
      if (go_on) {
        thread.agent = former.agent;
        thread.idle = former.idle;
        begin_again(thread.agent, thread);
        for (const race::Agent a : thread.idle) begin_again(a, thread);
      } else if (races()) {
        thread.agent = add_agent(thread);
      }
    }
    for (race::Agent& witness : block.witnesses) {
      witness = witness_again(witness, go_on);
    }
    for (std::size_t w = 0; w < block.wgmma.size(); ++w) {
      Thread& first_thread = block.threads[128 * w];
      const race::Agent former = std::exchange(block.wgmma[w], {}).agent;
      if (go_on) {
        block.wgmma[w].agent = former;
        begin_again(former, first_thread);
      } else if (races()) {
        block.wgmma[w].agent = add_agent(first_thread, "wgmma", device::Proxy::async, true);
      }
    }
  }
}

// Lets one more cluster run beside the others; false where no other is left, or has room.
bool Machine::add_cluster() {
  if (clusters_.size() == resident_) return false;
  const std::optional<Clusters::Next> next = queue_.next();
  if (!next) return false;
  Cluster& cluster = clusters_.emplace_back();
  cluster.slot = clusters_.size() - 1;
  build(cluster);
  fill(cluster, *next, true);
  for (Block& block : cluster.blocks) {
    for (Thread& thread : block.threads) {
      thread.fiber = &scheduler_.spawn([this, &thread] { run_thread(thread); }, &thread);
      threads_.push_back(&thread);
    }
  }
  return true;
}

// As many more as there are.
bool Machine::add_clusters() {
  const std::size_t before = clusters_.size();
  while (clusters_.size() < 2 * before && add_cluster()) {
  }
  return clusters_.size() > before;
}

void Machine::run() {
  while (clusters_.size() < first_clusters && add_cluster()) {
  }
  Machine* const outer = std::exchange(running, this);
  try {
    scheduler_.run();
  } catch (...) {
    running = outer;
    throw;
  }
  running = outer;
}

// A fiber is the same thread of one cluster after the other.
void Machine::run_thread(Thread& thread) {
  do {
    module_.run(launch_.parameters);
    finish(thread);
  } while (next_cluster(thread));
}

void Machine::finish(Thread& thread) {
  Block& block = *thread.block;
  Cluster& cluster = *block.cluster;
  for (const auto& group : thread.bulk) {
    if (group->awaited || group->line == 0) continue;
    report(block, {"bulk exit", group->line},
           fmt::format("{} returns without waiting until its copy has read shared memory{}",
                       describe(thread), where(group->line)));
  }
  for (const auto& open : {thread.open_bulk, thread.open_cp_async}) {
    if (!open || open->awaited) continue;
    report(block, {"uncommitted exit", open->line},
           fmt::format("{} returns without having committed its copy{}", describe(thread),
                       where(open->line)));
  }
  for (const auto& group : thread.cp_async) {
    if (group->awaited || group->line == 0) continue;
    report(block, {"cp.async exit", group->line},
           fmt::format("{} returns without waiting for its copy{}", describe(thread),
                       where(group->line)));
  }
  if (thread.wgmma.issued != thread.wgmma.retired) {
    const int line = block.wgmma[thread.ids.warpgroup][thread.wgmma.retired].line;
    report(block, {"wgmma exit", line},
           fmt::format("{} returns with a wgmma in flight{}", describe(thread), where(line)));
  }
  if (races()) block.end = engine_.join(block.end, engine_.release(thread.agent));
  thread.copied = {};
  thread.returned = true;
  --warp_of(thread).live;
  --block.warpgroups[thread.ids.warpgroup].live;
  --block.live;
  --cluster.live;
  if (thread.arrived_in_cluster && thread.cluster_phase == cluster.barrier.phase) {
    ++cluster.barrier.left;
  }
  progress();
  pass_if_all_came(block);
  pass_if_all_came(cluster);
}

void Machine::finish(Cluster& cluster) {
  while (std::any_of(operations_.begin(), operations_.end(),
                     [&](const Operation& o) { return o.cluster == cluster.index; })) {
    run_operation();
  }
  for (Block& block : cluster.blocks) {
    for (auto& [offset, m] : block.mbarriers) {
      if (m.transactions != 0) {
        report(block, {"transactions at exit", m.line},
               fmt::format("block {} ends while {} still expects {} bytes{}", text(block.index),
                           describe(block, offset), m.transactions, where(m.line)));
      } else if (m.copy_line != 0) {
        report(block, {"copy at exit", m.copy_line},
               fmt::format("block {} ends and nobody has waited on {} for this copy{}",
                           text(block.index), describe(block, offset), where(m.copy_line)));
      }
    }
    if (!races() || block.remote.empty()) continue;
    engine_.begin_again(end_of_block_, {});
    engine_.acquire(end_of_block_, block.end);
    for (const auto& [agent, access] : block.remote) {
      if (engine_.knows(end_of_block_, access.after)) continue;
      report(block, {"cluster exit", access.line},
             fmt::format("{} touches shared memory of block {}, which may have ended by then; a "
                         "cluster barrier must come between{}",
                         describe(agent), text(block.index), where(access.line)));
    }
  }
}

// The last thread of a cluster fills the slot again; the others wait for it.
bool Machine::next_cluster(Thread& thread) {
  Cluster& cluster = *thread.block->cluster;
  if (cluster.live > 0) {
    cluster.waiting.push_back(&thread);
    park(Wait::next_cluster, 0);
    return !cluster.finished;
  }
  finish(cluster);
  const std::optional<Clusters::Next> next = queue_.next();
  std::vector<Thread*> waiting = std::exchange(cluster.waiting, {});
  if (next) {
    fill(cluster, *next, false);
  } else {
    cluster.finished = true;
  }
  // In order of threads, as at the beginning.
  std::sort(waiting.begin(), waiting.end());
  for (Thread* t : waiting) unpark(*t);
  if (next) scheduler_.yield();
  return next.has_value();
}

void Machine::park(Wait kind, int line, std::uint32_t object, std::uint32_t parity) {
  Thread& thread = self();
  thread.waits_in = kind;
  thread.woken = false;
  thread.line = line;
  thread.object = object;
  thread.parity = parity;
  if (launch_.options.asynchrony == Asynchrony::random && !operations_.empty() &&
      random() >> 61 == 0) {
    run_operation();
  }
  // The operation may have been what this thread is about to wait for.
  if (!std::exchange(thread.woken, false)) scheduler_.park(&thread);
  thread.waits_in = Wait::nothing;
}

void Machine::unpark(Thread& thread) {
  if (thread.fiber->parked()) {
    scheduler_.unpark(*thread.fiber);
  } else {
    thread.woken = true;
  }
}

void Machine::wake_all(std::vector<Thread*>& waiting, race::Snapshot passed) {
  for (Thread* thread : waiting) {
    if (races()) engine_.acquire(thread->agent, passed);
    unpark(*thread);
  }
  waiting.clear();
}

void Machine::poll(int line) {
  ++polls_, ++rounds_;
  // Who asks twice, and so do all others that can run, may ask for what a block tells that has not
  // begun.
  if ((polls_ > 2 * scheduler_.ready() + 2 || rounds_ > rounds_of_few) && add_clusters())
    progress();
  const std::uint64_t of_all = polls_of_each * scheduler_.live();
  if (polls_ > std::max(polls_of_a_livelock, of_all) ||
      rounds_ > std::max(rounds_of_a_livelock, of_all)) {
    fail(line,
         "asks again and again while no thread makes progress (a livelock; blocks that are "
         "not resident cannot answer)");
  }
  // Copies that nobody waits for in a barrier must go on as well.
  if (!operations_.empty() && polls_ > 2 * scheduler_.live()) run_operation();
  scheduler_.yield();
}

// ---- reports

std::string Machine::describe(const abi::Ids& ids) {
  return fmt::format("thread {} of block ({}, {}, {}) (warpgroup {}, warp {}, lane {})",
                     ids.warpgroup * 128 + ids.thread, ids.block[0], ids.block[1], ids.block[2],
                     ids.warpgroup, ids.warp, ids.lane);
}

std::string Machine::describe_self() const {
  if (scheduler_.current() == nullptr) return "an asynchronous copy";
  return describe(static_cast<const Thread*>(scheduler_.current()->owner())->ids);
}

std::string Machine::describe(race::Agent agent) const {
  const Actor& actor = actors_[agent];
  const abi::Ids& ids = actor.ids;
  if (actor.of_warpgroup) {
    return fmt::format("{} of warpgroup {} of block ({}, {}, {})", actor.operation, ids.warpgroup,
                       ids.block[0], ids.block[1], ids.block[2]);
  }
  if (actor.operation.empty()) return describe(ids);
  return fmt::format("{} of {}", actor.operation, describe(ids));
}

std::string Machine::describe(const race::Access& access) const {
  if (!access.former) return describe(access.agent);
  const Actor& actor = actors_[access.agent];
  const char* earlier = "a thread of a block that had ended before";
  if (actor.operation.empty()) return earlier;
  return fmt::format("{} of {}", actor.operation, earlier);
}

// "full[2]", "A+128", "shared memory at offset 128"
std::string Machine::describe(const Block& block, std::uint32_t offset) const {
  for (const Block::Name& n : block.names) {
    if (offset < n.offset || offset >= n.offset + n.bytes) continue;
    return offset == n.offset ? n.name : fmt::format("{}+{}", n.name, offset - n.offset);
  }
  return fmt::format("shared memory at offset {}", offset);
}

void Machine::report(const Block& block, const Cause& cause, std::string text) {
  reports_.add(block.cluster->turn, cause, std::move(text));
}

// A Pallas thread is a warpgroup of one block: inside of it nothing but the text makes races.
bool Machine::are_pallas_threads(race::Agent a, race::Agent b) const {
  const abi::Ids &x = actors_[a].ids, &y = actors_[b].ids;
  return x.warpgroup != y.warpgroup ||
         !std::equal(std::begin(x.block), std::end(x.block), std::begin(y.block));
}

void Machine::report_race(const Block& block, const std::string& memory, const race::Race& race) {
  const auto access = [](const race::Access& a) {
    switch (a.kind) {
    case race::Kind::read: return "read";
    case race::Kind::write: return "write";
    case race::Kind::atomic: return "atomic access";
    }
    return "";
  };
  const int later = static_cast<int>(race.later.tag), earlier = static_cast<int>(race.earlier.tag);
  const bool atomics =
      race.earlier.kind == race::Kind::atomic && race.later.kind == race::Kind::atomic;
  const char* relation = atomics
                             ? "is neither ordered with nor, by its scope and proxy, atomic for "
                               "the"
                             : "is not ordered with the";
  if (race.missing_fence) {
    relation = race.earlier.proxy == race::Proxy::generic
                   ? "is asynchronous and comes after, but without fence_async between them, the"
                   : "is asynchronous and comes after, but without fence_async in its own block "
                     "between them, the";
  }
  // Two lines that race do so in either order.
  Cause cause = race.missing_fence
                    ? Cause{"fence", later, earlier}
                    : Cause{"race", std::max(later, earlier), std::min(later, earlier)};
  cause.of_user = !race.missing_fence && are_pallas_threads(race.later.agent, race.earlier.agent);
  report(block, cause,
         fmt::format("{}: the {} of {} by {}{}\n{} {} by {}{}",
                     race.missing_fence ? "missing fence" : "race", access(race.later), memory,
                     describe(race.later), where(later), relation, access(race.earlier),
                     describe(race.earlier), where(earlier)));
}

void Machine::fail(int line, const std::string& what) {
  if (scheduler_.current() != nullptr) failed_ = self().block->cluster->turn;
  throw InternalError(fmt::format("{} {}{}", describe_self(), what, where(line)));
}

void Machine::fail(int line, const std::string& what, const std::string& others, int others_line) {
  failed_ = self().block->cluster->turn;
  throw InternalError(
      fmt::format("{} {}{}\n{}{}", describe_self(), what, where(line), others, where(others_line)));
}

void Machine::fail_access(int line, const std::string& what) {
  if (!launch_.is_emitted) fail(line, what);
  failed_ = self().block->cluster->turn;
  throw CompileError(reports_.user_line(line),
                     fmt::format("emulator: kernel '{}': {} {}{}", launch_.kernel, describe_self(),
                                 what, where(line)));
}

void Machine::blame_user(int line, const std::string& what) {
  failed_ = self().block->cluster->turn;
  const std::string message = fmt::format("kernel '{}': {}", launch_.kernel, what);
  if (std::ranges::binary_search(launch_.placements, line))
    throw Misplaced(reports_.user_line(line), message);
  throw CompileError(reports_.user_line(line), message);
}

void Machine::deadlock() {
  struct Group {
    std::vector<std::uint32_t> threads;
    const Thread* any = nullptr;
  };
  using Key = std::tuple<std::uint32_t, Wait, int, std::uint32_t, std::uint32_t>;
  std::map<Key, Group> groups;
  std::size_t returned = 0;
  const Thread* first = nullptr;
  for (const Thread* t : threads_) {
    if (t->returned) {
      ++returned;
      continue;
    }
    if (first == nullptr) first = t;
    Group& group = groups[{t->block->linear, t->waits_in, t->line, t->object, t->parity}];
    group.threads.push_back(t->ids.warpgroup * 128 + t->ids.thread);
    group.any = t;
  }
  if (first != nullptr) failed_ = first->block->cluster->turn;
  std::string what =
      fmt::format("deadlock: of {} threads {} have returned", threads_.size(), returned);
  for (const auto& [key, group] : groups) {
    const auto& [linear, kind, line, object, parity] = key;
    const Block* const block = group.any->block;
    what += fmt::format("\n  {} of block {} ({}) wait in {}", group.threads.size(),
                        text(block->index), ranges(group.threads), name(kind));
    if (kind == Wait::mbarrier_wait) {
      const Mbarrier& m = block->mbarriers.at(object);
      what += fmt::format(
          " for parity {} of {} (phase {}: {} of {} arrivals and {} bytes outstanding{})", parity,
          describe(*block, object), m.phase, m.pending, m.count,
          std::max<std::int64_t>(0, m.transactions),
          m.transactions < 0 ? fmt::format(", {} more than expected", -m.transactions) : "");
    } else if (kind == Wait::barrier_sync) {
      what += fmt::format(" at barrier {} ({} of {} threads have come)", object,
                          block->barriers[object].arrived, block->barriers[object].expected);
    } else if (kind == Wait::setmaxnreg) {
      what +=
          fmt::format(" for {} registers (the block's pool has {})", object, block->registers_free);
    }
    what += where(line);
  }
  throw InternalError(what);
}

}  // namespace palladium::emulator
