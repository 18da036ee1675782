// mbarriers: phases, arrivals and transaction bytes; and the fences.
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
  if (remote) touch_remote(*at.block, self().agent, line);
  m.transactions += bytes;
  if (m.transactions > most_transactions) {
    fail(line, fmt::format("lets {} expect {} bytes, at most {} fit",
                           describe(*at.block, at.offset), m.transactions, most_transactions));
  }
  progress();
}

void Machine::mbarrier_arrive(std::uint32_t bar, std::uint32_t count, bool remote, int line) {
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
  if (remote) touch_remote(*at.block, self().agent, line);
  if (count > m.pending) {
    fail(line, fmt::format("arrives {} times at {}, which waits for {} of {} arrivals and {} bytes "
                           "in phase {}",
                           count, describe(*at.block, at.offset), m.pending, m.count,
                           m.transactions, m.phase));
  }
  if (races()) m.arrived_with = engine_.join(m.arrived_with, engine_.release(self().agent));
  m.pending -= count;
  end_phase_if_complete(m);
  progress();
}

// An asynchronous copy has brought its bytes; `after` is what its completion tells.
void Machine::complete_tx(Block& block, std::uint32_t offset, std::uint32_t bytes,
                          race::Snapshot after, int line) {
  Mbarrier& m = mbarrier(block, offset, "completes its bytes on", line);
  m.transactions -= bytes;
  if (m.transactions < -most_transactions) {
    fail(line, fmt::format("completes {} bytes more on {} than anybody expected", -m.transactions,
                           describe(block, offset)));
  }
  if (races()) m.arrived_with = engine_.join(m.arrived_with, after);
  m.copy_line = line;
  end_phase_if_complete(m);
  progress();
}

void Machine::end_phase_if_complete(Mbarrier& m) {
  if (m.pending != 0 || m.transactions != 0) return;
  ++m.phase;
  m.pending = m.count;
  m.passed = std::exchange(m.arrived_with, {});
  if (!m.waiting.empty()) m.copy_line = 0;
  wake_all(m.waiting, m.passed);
}

bool Machine::mbarrier_wait(std::uint32_t bar, std::uint32_t parity, abi::Waiting how, int line) {
  const Place at = shared(bar, bytes_of_mbarrier, bytes_of_mbarrier, "waits on", line);
  if (parity > 1) fail(line, fmt::format("waits for parity {}: 0 or 1", parity));
  Mbarrier& m = mbarrier(*at.block, at.offset, "waits on", line);
  require_initialized(*at.block, at.offset, m, line);
  const auto passed = [&] { return (m.phase & 1) != parity; };
  if (!passed() && how != abi::Waiting::until) poll(line);
  if (passed()) {
    if (races()) engine_.acquire(self().agent, m.passed);
    m.copy_line = 0;
    if (how == abi::Waiting::until) progress();
    return true;
  }
  if (how != abi::Waiting::until) return false;
  const std::uint32_t phase = m.phase;
  m.waiting.push_back(&self());
  park(Wait::mbarrier_wait, line, at.offset, parity);
  if (m.phase - phase > 1) {
    report(*at.block, {"slept", line},
           fmt::format("{} sleeps through {} phases of {}{}", describe_self(), m.phase - phase,
                       describe(*at.block, at.offset), where(line)));
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
    if (kind != abi::Fence::mbarrier_init && races()) engine_.fence_async(me.agent);
    return;
  case abi::Fence::async_global:
    if (races()) engine_.fence_async(me.agent);
    return;
  case abi::Fence::block:
  case abi::Fence::cluster:
  case abi::Fence::gpu:
  case abi::Fence::system:
    if (!races()) return;
    me.fenced = engine_.release(me.agent);
    engine_.acquire(me.agent, std::exchange(me.read_relaxed, {}));
  }
}

}  // namespace palladium::emulator
