// Atomic operations, and the order that they and the fences make.
#include <algorithm>
#include <cstring>
#include <utility>

#include "codegen/base/format.hpp"
#include "runtime/emulator/machine.hpp"
#include "runtime/emulator/numbers.hpp"

namespace palladium::emulator {
namespace {

bool releases(abi::Order order) {
  return order == abi::Order::release || order == abi::Order::acq_rel;
}
bool acquires(abi::Order order) {
  return order == abi::Order::acquire || order == abi::Order::acq_rel;
}

}  // namespace

// What this thread tells whoever reads the location: all that it did, or what a fence before this
// access released.
void Machine::order_before(abi::Order order, race::Snapshot& location) {
  Thread& me = self();
  location = engine_.join(location, releases(order) ? engine_.release(me.agent) : me.fenced);
}

void Machine::order_after(abi::Order order, race::Snapshot& location) {
  Thread& me = self();
  if (acquires(order)) {
    engine_.acquire(me.agent, location);
  } else {
    me.read_relaxed = engine_.join(me.read_relaxed, location);
  }
}

// Two updates are atomic for each other if each one's scope holds both threads.
void Machine::require_scope(std::uintptr_t address, abi::Scope scope, int line) {
  Thread& me = self();
  const Block& block = *me.block;
  const std::uint64_t cluster = block.cluster->index;
  constexpr const char* names[] = {"block", "cluster", "GPU", "system"};
  const auto compare = [&](const UpdatesOf& others) {
    for (const auto& [key, theirs] : others) {
      const abi::Scope others_scope = key.second;
      const bool same_block = key.first == block.linear, same_cluster = theirs.cluster == cluster;
      const auto holds = [&](abi::Scope s) {
        return s == abi::Scope::block ? same_block : s != abi::Scope::cluster || same_cluster;
      };
      if (holds(scope) && holds(others_scope)) continue;
      if (engine_.knows(me.agent, theirs.after)) continue;
      report(block, {"scope", std::max(line, theirs.line), std::min(line, theirs.line)},
             fmt::format("{} updates memory in the scope of its {}, {}{}\nwhich is not atomic with "
                         "the update in the scope of its {} by {}{}",
                         describe_self(), names[static_cast<int>(scope)], global_.nearest(address),
                         where(line), names[static_cast<int>(others_scope)], describe(theirs.last),
                         where(theirs.line)));
      return;
    }
  };
  Updated& updated = updated_[address];
  const bool narrow = scope == abi::Scope::block || scope == abi::Scope::cluster;
  compare(updated.narrow);
  if (narrow) compare(updated.wide);
  Updates& mine = (narrow ? updated.narrow : updated.wide)[{block.linear, scope}];
  mine = {cluster, me.agent, line, engine_.join(mine.after, engine_.release(me.agent))};
}

// Whether the thread asks for the same as before and was told the same: such loops must let others
// run. Questions that come round in turn meet a mark that is set anew after 1, 2, 4, ... of them.
bool Machine::asks_again(std::uintptr_t address, std::uint64_t value, std::uint64_t old) {
  constexpr std::uint32_t longest_round = 1 << 20;
  Thread& me = self();
  const Thread::Question question = {address, value, old};
  const bool again = std::exchange(me.asked, question) == question || me.mark == question;
  if (++me.since_mark >= me.until_mark) {
    me.mark = question;
    me.since_mark = 0;
    me.until_mark = std::min(2 * me.until_mark, longest_round);
  }
  return again;
}

std::uint64_t Machine::atomic_global(void* p, abi::Atomic what, abi::Format format,
                                     std::uint32_t bytes, std::uint64_t value,
                                     std::uint64_t expected, abi::Order order, abi::Scope scope,
                                     int line) {
  const bool writes = what != abi::Atomic::load;
  if (!writes) poll(line);
  GlobalMemory::Region& region = global(p, bytes, bytes, writes, "updates", line);
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (races()) {
    const race::Agent me = self().agent;
    record_global(region, address, bytes,
                  {me, race::Kind::atomic, race::Proxy::generic, static_cast<std::uint32_t>(line)},
                  {&me, 1});
    if (writes) require_scope(address, scope, line);
    race::Snapshot& location = atomics_[address];
    if (what != abi::Atomic::store) order_after(order, location);
    if (writes) order_before(order, location);
  }
  std::uint64_t old = 0;
  std::memcpy(&old, p, bytes);
  if (writes) {
    const std::uint64_t now = combine_global(what, format, old, value, expected);
    std::memcpy(p, &now, bytes);
    if (now != old) progress();
    if (asks_again(address, value, old)) poll(line);
  }
  return old;
}

std::uint64_t Machine::atomic_shared(std::uint32_t address, abi::Atomic what, abi::Format format,
                                     std::uint32_t bytes, std::uint64_t value,
                                     std::uint64_t expected, abi::Order order, int line) {
  const Place at = shared(address, bytes, bytes, "updates", line);
  require_written(*at.block, at.offset, bytes, "updates", line);
  record_shared(*at.block, at.offset, bytes, race::Kind::atomic, line);
  if (races()) {
    race::Snapshot& location = shared_atomics_[{at.block, at.offset}];
    order_after(order, location);
    order_before(order, location);
  }
  std::uint64_t old = 0;
  std::memcpy(&old, &at.block->shared[at.offset], bytes);
  const std::uint64_t now = combine(what, format, old, value, expected);
  std::memcpy(&at.block->shared[at.offset], &now, bytes);
  if (now != old) progress();
  if (asks_again(address, value, old)) poll(line);
  return old;
}

}  // namespace palladium::emulator
