// mbarriers: phases, arrivals and transaction bytes; and the fences.
#include <algorithm>
#include <utility>

#include "codegen/base/format.hpp"
#include "runtime/emulator/machine.hpp"

namespace palladium::emulator {
namespace {

constexpr std::uint32_t most_arrivals = (1u << 20) - 1;
constexpr std::int64_t most_transactions = (1 << 20) - 1;
constexpr std::uint32_t bytes_of_mbarrier = 8;

}  // namespace

void Machine::mbarrier_init(std::uint32_t bar, std::uint32_t count, int line) {
  const Place at = shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "makes an mbarrier of", line);
  if (count == 0 || count > most_arrivals) {
    fail(line, fmt::format("gives {} a count of {}: 1 to {}", describe(*at.block, at.offset), count,
                           most_arrivals));
  }
  if (const auto found = at.block->mbarriers.find(at.offset); found != at.block->mbarriers.end()) {
    report(*at.block, {"mbarrier again", line, found->second.line},
           fmt::format("{} makes {} an mbarrier twice{}\nthe first time{}", describe_self(),
                       describe(*at.block, at.offset), where(line), where(found->second.line)));
  }
  record_shared(*at.block, at.offset, bytes_of_mbarrier, race::Kind::write, line);
  std::fill_n(at.block->state.begin() + at.offset, bytes_of_mbarrier, Block::mbarrier);
  Mbarrier& m = at.block->mbarriers[at.offset];
  m = {};
  m.count = m.pending = count;
  m.line = line;
  if (races()) m.initialized = engine_.release(self().agent);
  self().initialized.push_back(at.offset);
}

void Machine::mbarrier_inval(std::uint32_t bar, int line) {
  const Place at = shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "invalidates", line);
  mbarrier(*at.block, at.offset, "invalidates", line);
  record_shared(*at.block, at.offset, bytes_of_mbarrier, race::Kind::write, line);
  std::fill_n(at.block->state.begin() + at.offset, bytes_of_mbarrier, Block::unwritten);
  at.block->written_operands.clear();
  at.block->mbarriers.erase(at.offset);
}

Mbarrier& Machine::mbarrier(Block& block, std::uint32_t offset, const char* what, int line) {
  const auto found = block.mbarriers.find(offset);
  if (found == block.mbarriers.end()) {
    fail(line, fmt::format("{} {}, which is no mbarrier: nobody has called mbarrier_init on it",
                           what, describe(block, offset)));
  }
  return found->second;
}

// Its initialisation must happen before its use by the running thread, and be fenced where another
// block or an asynchronous copy uses it.
void Machine::require_initialized(Block& block, std::uint32_t offset, Mbarrier& m, int line) {
  if (!races() || engine_.knows(self().agent, m.initialized)) return;
  if (m.visible != 0 && self().clusters_passed >= m.visible) return;
  report(block, {"mbarrier race", line, m.line},
         fmt::format("race: {} uses {} and is not ordered with its initialisation{}\nby{}",
                     describe_self(), describe(block, offset), where(line), where(m.line)));
}

void Machine::mbarrier_expect_tx(std::uint32_t bar, std::uint32_t bytes, bool remote, int line) {
  const Place at =
      remote ? cluster_shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "expects at", line)
             : shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "expects at", line);
  Mbarrier& m = mbarrier(*at.block, at.offset, "expects bytes at", line);
  require_initialized(*at.block, at.offset, m, line);
  if (remote) touch_remote(*at.block, self().agent, line, true);
  m.transactions += bytes;
  if (m.transactions > most_transactions) {
    fail(line, fmt::format("lets {} expect {} bytes, at most {} fit",
                           describe(*at.block, at.offset), m.transactions, most_transactions));
  }
  progress();
}

void Machine::mbarrier_arrive(std::uint32_t bar, std::uint32_t count, abi::Arrival how, int line) {
  const bool remote = how != abi::Arrival::own;
  const Place at =
      remote ? cluster_shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "arrives at", line)
             : shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "arrives at", line);
  Mbarrier& m = mbarrier(*at.block, at.offset, "arrives at", line);
  require_initialized(*at.block, at.offset, m, line);
  if (at.block != self().block && !m.fenced) {
    report(
        *at.block, {"mbarrier fence", line, m.line},
        fmt::format("{} arrives at {} of another block, whose initialisation has no "
                    "fence_mbarrier_init{}\ninitialised by{}",
                    describe_self(), describe(*at.block, at.offset), where(line), where(m.line)));
  }
  if (remote) touch_remote(*at.block, self().agent, line, true);
  if (count == 0) {
    fail(line, fmt::format("arrives 0 times at {}: 1 to {}", describe(*at.block, at.offset),
                           most_arrivals));
  }
  if (count > m.pending) {
    fail(line, fmt::format("arrives {} times at {}, which waits for {} of {} arrivals and {} bytes "
                           "in phase {}",
                           count, describe(*at.block, at.offset), m.pending, m.count,
                           m.transactions, m.phase));
  }
  if (races()) {
    race::Snapshot told = engine_.release(self().agent);
    m.arrivals_know = engine_.join(m.arrivals_know, told);
    if (at.block != self().block) {
      // Of another block's threads knows only who waits at the scope of the cluster for an arrival
      // that has it too.
      if (how == abi::Arrival::remote_cluster_scope)
        m.cluster_arrived_with = engine_.join(m.cluster_arrived_with, told);
      told = engine_.only_async(told);
    }
    m.arrived_with = engine_.join(m.arrived_with, told);
  }
  m.pending -= count;
  end_phase_if_complete(*at.block, at.offset, m);
  progress();
}

// An asynchronous copy has brought its bytes. Its completion tells what the copy did, and not what
// its issuer did or knew; but what that thread had seen before was before.
void Machine::complete_tx(Block& block, std::uint32_t offset, std::uint32_t bytes,
                          race::Agent agent, int line, bool of_threads) {
  Mbarrier& m = mbarrier(block, offset, "completes its bytes on", line);
  m.transactions -= bytes;
  if (m.transactions < -most_transactions) {
    fail(line, fmt::format("completes {} bytes more on {} than anybody expected", -m.transactions,
                           describe(block, offset)));
  }
  if (races()) {
    race::Snapshot& told = of_threads ? m.cluster_arrived_with : m.arrived_with;
    told = engine_.join(told, engine_.released(agent));
    const race::Snapshot seen = engine_.only_witnesses(engine_.release(agent));
    m.arrived_with = engine_.join(m.arrived_with, seen);
    m.arrivals_know = engine_.join(m.arrivals_know, seen);
  }
  m.copy_line = line;
  end_phase_if_complete(block, offset, m);
  progress();
}

// Threads that see a phase end must be heard of before the next one ends: else the barrier may be
// two phases on when they look, where parities say the opposite. For a warpgroup that waits as one
// it is enough that one of its threads is.
void Machine::require_observers_known(Block& block, std::uint32_t offset, const Mbarrier& m) {
  const race::View known = engine_.view(m.arrivals_know);
  std::uint32_t heard_of = 0;
  for (const Mbarrier::Observer& o : m.observers) {
    if (known.knows(o.seen.at)) heard_of |= 1u << o.ids.warpgroup;
  }
  for (const Mbarrier::Observer& o : m.observers) {
    if ((heard_of >> o.ids.warpgroup & 1) != 0) continue;
    report(
        block, {"overrun", o.line},
        fmt::format("race: {} waits for phase {} of {}, and phase {} ends without an arrival that "
                    "comes after: it might have missed both{}",
                    describe(o.ids), m.phase - 1, describe(block, offset), m.phase, where(o.line)));
    return;
  }
}

void Machine::observe(Mbarrier& m, int line) {
  if (!races() || m.phase == 0) return;
  const Thread& me = self();
  const auto mine = std::find_if(m.observers.begin(), m.observers.end(), [&](const auto& o) {
    return o.ids.warpgroup == me.ids.warpgroup && o.ids.warp == me.ids.warp;
  });
  if (mine == m.observers.end()) {
    m.observers.push_back({me.ids, line, testify()});
  } else {
    engine_.acquire(me.agent, mine->seen.told);
  }
}

Seen Machine::testify() {
  const Thread& me = self();
  const race::Agent witness = me.block->witnesses[me.ids.warpgroup * 4 + me.ids.warp];
  const race::Record at = engine_.record({.agent = witness});
  const race::Snapshot told = engine_.released(witness);
  engine_.acquire(me.agent, told);
  return {at, told};
}

void Machine::end_phase_if_complete(Block& block, std::uint32_t offset, Mbarrier& m) {
  if (m.pending != 0 || m.transactions != 0) return;
  if (!m.observers.empty()) {
    require_observers_known(block, offset, m);
    m.observers.clear();
  }
  m.arrivals_know = {};
  ++m.phase;
  m.pending = m.count;
  m.passed = std::exchange(m.arrived_with, {});
  m.cluster_passed = std::exchange(m.cluster_arrived_with, {});
  if (!m.waiting.empty()) m.copy_line = 0;
  for (Thread* thread : m.waiting) {
    if (races() && thread->cluster_scope) engine_.acquire(thread->agent, m.cluster_passed);
  }
  wake_all(m.waiting, m.passed);
}

bool Machine::mbarrier_wait(std::uint32_t bar, std::uint32_t parity, abi::Waiting how,
                            bool cluster_scope, int line) {
  const Place at = shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "waits on", line);
  if (parity > 1) fail(line, fmt::format("waits for parity {}: 0 or 1", parity));
  Mbarrier& m = mbarrier(*at.block, at.offset, "waits on", line);
  require_initialized(*at.block, at.offset, m, line);
  const auto passed = [&] { return (m.phase & 1) != parity; };
  if (!passed() && how != abi::Waiting::until) poll(line);
  if (passed()) {
    if (races()) {
      engine_.acquire(self().agent, m.passed);
      if (cluster_scope) engine_.acquire(self().agent, m.cluster_passed);
    }
    m.copy_line = 0;
    observe(m, line);
    if (how == abi::Waiting::until) progress();
    return true;
  }
  if (how != abi::Waiting::until) return false;
  const std::uint32_t phase = m.phase;
  m.waiting.push_back(&self());
  self().cluster_scope = cluster_scope;
  park(Wait::mbarrier_wait, line, at.offset, parity);
  if (m.phase - phase > 1) {
    report(*at.block, {"slept", line},
           fmt::format("{} sleeps through {} phases of {}{}", describe_self(), m.phase - phase,
                       describe(*at.block, at.offset), where(line)));
  } else {
    observe(m, line);
  }
  return true;
}

void Machine::fence(abi::Fence kind, int) {
  Thread& me = self();
  switch (kind) {
  case abi::Fence::mbarrier_init:
  case abi::Fence::async_shared:
  case abi::Fence::async:
    for (const std::uint32_t offset : std::exchange(me.initialized, {})) {
      const auto found = me.block->mbarriers.find(offset);
      if (found == me.block->mbarriers.end()) continue;
      found->second.fenced = true;
      me.published.push_back(offset);
    }
    if (kind != abi::Fence::mbarrier_init && races()) {
      const race::Spaces spaces =
          kind == abi::Fence::async ? race::all_spaces : race::only(race::Space::shared);
      engine_.fence_async(me.agent, spaces);
      // Copies of cp.async go through the thread's own proxy.
      engine_.acquire(me.agent, engine_.fenced(std::exchange(me.copied, {}), spaces));
    }
    return;
  case abi::Fence::async_global:
    if (races()) engine_.fence_async(me.agent, race::only(race::Space::global));
    return;
  case abi::Fence::block: return fence(block_reach);
  case abi::Fence::cluster: return fence(cluster_reach);
  case abi::Fence::gpu:
  case abi::Fence::system: return fence(device_reach);
  }
}

void Machine::griddepcontrol(bool wait) {
  if (wait && races()) engine_.acquire(self().agent, previous_kernel_);
}

}  // namespace palladium::emulator
