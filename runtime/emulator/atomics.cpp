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

// Two of them order their threads only where each reaches the other.
Reach reach_of(abi::Scope scope) {
  switch (scope) {
  case abi::Scope::block: return block_reach;
  case abi::Scope::cluster: return cluster_reach;
  default: return device_reach;
  }
}

race::Scope race_scope(abi::Scope scope) {
  switch (reach_of(scope)) {
  case block_reach: return race::Scope::block;
  case cluster_reach: return race::Scope::cluster;
  default: return race::Scope::device;
  }
}

// The part of whoever has this place now.
race::Snapshot& part(std::vector<AtomicLocation::Part>& parts, std::size_t place,
                     std::uint64_t of) {
  if (parts.size() <= place) parts.resize(place + 1);
  if (parts[place].of != of) parts[place] = {.of = of, .told = {}};
  return parts[place].told;
}

}  // namespace

race::Snapshot& Machine::told_to_cluster(AtomicLocation& location) {
  const Cluster& cluster = *self().block->cluster;
  return part(location.clusters, cluster.slot, cluster.index);
}

race::Snapshot& Machine::told_to_block(AtomicLocation& location) {
  const Block& block = *self().block;
  const std::size_t place = block.cluster->slot * block.cluster->blocks.size() + block.rank;
  return part(location.blocks, place, block.linear);
}

// What this thread tells whoever reads the location: all that it did, or what a fence before this
// access released.
void Machine::tell(abi::Order order, Reach reach, AtomicLocation& location) {
  Thread& me = self();
  const bool release = releases(order);
  const race::Snapshot all = release ? engine_.release(me.agent) : race::Snapshot{};
  const auto add = [&](race::Snapshot& told, Reach to) {
    if (reach >= to) told = engine_.join(told, release ? all : me.fenced[to]);
  };
  location.all_is_told_to_all = location.all_is_told_to_all && reach == device_reach &&
                                (release || (me.fenced[block_reach] == me.fenced[device_reach] &&
                                             me.fenced[cluster_reach] == me.fenced[device_reach]));
  add(told_to_block(location), block_reach);
  add(told_to_cluster(location), cluster_reach);
  add(location.told, device_reach);
}

race::Snapshot Machine::heard(Reach reach, AtomicLocation& location) {
  // One snapshot for all that ask, which is evaluated once.
  if (reach == device_reach && location.all_is_told_to_all) return location.told;
  race::Snapshot all = told_to_block(location);
  if (reach >= cluster_reach) all = engine_.join(all, told_to_cluster(location));
  if (reach >= device_reach) all = engine_.join(all, location.told);
  return all;
}

void Machine::hear(abi::Order order, Reach reach, AtomicLocation& location) {
  Thread& me = self();
  if (acquires(order)) return engine_.acquire(me.agent, heard(reach, location));
  for (int fence = block_reach; fence < reaches; ++fence) {
    race::Snapshot& read = me.read_relaxed[fence];
    read = engine_.join(read, heard(std::min(reach, static_cast<Reach>(fence)), location));
  }
}

void Machine::fence(Reach reach) {
  if (!races()) return;
  Thread& me = self();
  const race::Snapshot released = engine_.release(me.agent);
  engine_.acquire(me.agent, me.read_relaxed[reach]);
  for (int r = block_reach; r <= reach; ++r) {
    me.fenced[r] = released;
    me.read_relaxed[r] = {};
  }
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
  const bool reads = what != abi::Atomic::store && what != abi::Atomic::reduce_add;
  if (!writes) poll(line);
  GlobalMemory::Region& region = global(p, bytes, bytes, writes, "updates", line);
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (races()) {
    const race::Agent me = self().agent;
    record_global(region, address, bytes,
                  {me, race::Kind::atomic, race::Proxy::generic, static_cast<std::uint32_t>(line),
                   race_scope(scope)},
                  {&me, 1});
    AtomicLocation& location = atomics_[address];
    if (reads) hear(order, reach_of(scope), location);
    if (writes) tell(order, reach_of(scope), location);
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
  return update_shared(at, address, what, format, bytes, value, expected, order, block_reach, line);
}

std::uint64_t Machine::atomic_cluster(std::uint32_t remote, abi::Atomic what, abi::Format format,
                                      std::uint32_t bytes, std::uint64_t value, abi::Order order,
                                      int line) {
  const Place at = cluster_shared(remote, bytes, bytes, "updates", line);
  touch_remote(*at.block, self().agent, line);
  return update_shared(at, remote, what, format, bytes, value, 0, order, cluster_reach, line);
}

std::uint64_t Machine::update_shared(const Place& at, std::uint32_t address, abi::Atomic what,
                                     abi::Format format, std::uint32_t bytes, std::uint64_t value,
                                     std::uint64_t expected, abi::Order order, Reach reach,
                                     int line) {
  require_written(*at.block, at.offset, bytes, "updates", line);
  record_shared(*at.block, at.offset, bytes, race::Kind::atomic, line);
  if (races()) {
    AtomicLocation& location = shared_atomics_[{at.block, at.offset}];
    hear(order, reach, location);
    tell(order, reach, location);
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
