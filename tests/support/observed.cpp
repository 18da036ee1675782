#include "tests/support/observed.hpp"

#include <algorithm>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/graph/warps.hpp"
#include "codegen/lowered/storage.hpp"

namespace palladium::test {

using lowered::Effect;
using lowered::Storage;
using lowered::StorageId;

Observed::Observed(lowered::Program l, std::vector<int> statements, std::vector<Array> arrays,
                   const lowered::testing::Hearing& hearing)
    : l_(std::move(l)), statements_(std::move(statements)), arrays_(std::move(arrays)) {
  const lowered::testing::Heard heard([&](const auto& kind, lowered::Effects& effects) {
    if (hearing) hearing(kind, effects);
  });
  for_each_list(l_, [&](const lowered::Statements& list) { add(list); });
}

void Observed::add(const lowered::Statements& list) {
  for (const lowered::Statement& s : list) {
    const auto at = static_cast<std::size_t>(s.id.number());
    if (ranges_.size() <= at) ranges_.resize(at + 1);
    std::vector<Range> ranges;
    for (const Effect& e : lowered::effects(l_, s)) add(ranges, e);
    ranges_[at] = std::move(ranges);
    lowered::for_each_body(s, [&](const lowered::Statements& body) { add(body); });
  }
}

void Observed::add(std::vector<Range>& ranges, const Effect& e) const {
  Range range{.reads = e.reads(), .writes = e.writes(), .async = e.proxy == device::Proxy::async};
  // Who waits at a barrier asks it, and whoever is the last to arrive begins its next phase.
  if (e.role == Effect::Role::barrier) range.reads = range.writes = true;
  if (e.storage) add_storage(ranges, e.storage, range);
  if (!e.window || e.role == Effect::Role::block) return;
  const int mapping = l_.windows[e.window].mapping;
  if (mapping < 0) return;
  const Array& a = arrays_[static_cast<std::size_t>(mapping)];
  range.begin = a.address;
  range.end = a.address + a.bytes;
  ranges.push_back(range);
}

// Of every warpgroup and warp that has a copy; in a ring, of every slot.
void Observed::add_storage(std::vector<Range>& ranges, StorageId storage, Range range) const {
  const Storage& s = l_.storages[storage];
  if (!s.in_shared()) return;
  const lowered::RingId ring = s.ring();
  const Storage& room = l_.storages[l_.room_of(storage)];
  const lowered::Shared& placed = room.shared();
  const std::int64_t bytes = lowered::shared_bytes(s).value();
  const std::int64_t all = lowered::shared_bytes(room).value();
  const std::int64_t copies = (placed.per_warpgroup ? std::max(1, l_.warpgroups) : 1) *
                              (placed.per_warp ? graph::num_warps : 1);
  const int slots = ring ? l_.rings[ring].slots : 1;
  range.shared = true;
  for (std::int64_t copy = 0; copy < copies; ++copy)
    for (int slot = 0; slot < slots; ++slot) {
      const std::int64_t in_room =
          ring ? s.shared().offset + slot * l_.rings[ring].slot_bytes : s.shared().within.offset;
      range.begin = static_cast<std::uint64_t>(placed.offset + copy * all + in_room);
      range.end = range.begin + static_cast<std::uint64_t>(bytes);
      ranges.push_back(range);
    }
}

bool Observed::is_of_an_array(std::uint64_t at) const {
  return std::ranges::any_of(
      arrays_, [&](const Array& a) { return a.address <= at && at < a.address + a.bytes; });
}

void Observed::see(int line, const device::Access& access, std::uint64_t at, std::uint64_t bytes) {
  const auto n = static_cast<std::size_t>(line) - 1;
  if (n >= statements_.size() || statements_[n] < 0) return;
  const bool shared = access.memory != device::Memory::global;
  if (!shared && !is_of_an_array(at)) return;  // what the host is told; semaphores
  const bool async = access.proxy == device::Proxy::async;
  for (const Range& r : ranges_[static_cast<std::size_t>(statements_[n])])
    if (r.shared == shared && r.begin <= at && at + bytes <= r.end && (!async || r.async) &&
        (!access.reads || r.reads) && (!access.writes || r.writes))
      return;
  tell(line, access, at, bytes);
}

void Observed::tell(int line, const device::Access& access, std::uint64_t at, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) return;
  problem_ = fmt::format(
      "line {}: {}{} of {} bytes of {} memory at {} are not among what statement {} touches:\n{}",
      line, access.proxy == device::Proxy::async ? "asynchronous " : "",
      access.reads    ? "reads"
      : access.writes ? "writes"
                      : "updates",
      bytes, access.memory == device::Memory::global ? "global" : "shared", at,
      statements_[static_cast<std::size_t>(line) - 1], lowered::to_text(l_));
}

}  // namespace palladium::test
