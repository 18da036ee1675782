// Shared and global memory: bounds, alignment, what nobody wrote, and who accesses what when.
#include <algorithm>
#include <cstring>
#include <utility>

#include "codegen/base/format.hpp"
#include "runtime/emulator/machine.hpp"

namespace palladium::emulator {
namespace {

// Accesses have 1, 2, 4, 8 or 16 bytes: copied without a call.
void copy(void* to, const void* from, std::uint32_t bytes) {
  switch (bytes) {
  case 1: std::memcpy(to, from, 1); break;
  case 2: std::memcpy(to, from, 2); break;
  case 4: std::memcpy(to, from, 4); break;
  case 8: std::memcpy(to, from, 8); break;
  default: std::memcpy(to, from, 16);
  }
}

bool is_same(const void* a, const void* b, std::uint32_t bytes) {
  return bytes == 4 ? std::memcmp(a, b, 4) == 0 : std::memcmp(a, b, bytes) == 0;
}

bool is_multiple(std::uintptr_t address, std::uint32_t bytes) {
  return (address & (bytes - 1)) == 0;
}

constexpr std::size_t page_bytes = 64 * 1024;

std::array<std::int64_t, 3> block_index(std::uint32_t linear, std::array<std::int64_t, 3> grid) {
  return {linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]};
}

}  // namespace

// ---- shared memory

Machine::Place Machine::shared(std::uint32_t address, std::uint32_t bytes, std::uint32_t alignment,
                               const char* what, int line) {
  Block& block = *self().block;
  if (address >> rank_shift != 0) {
    fail(line, fmt::format("{} shared memory by an address of mapa; only the functions on clusters "
                           "take one",
                           what));
  }
  const std::uint32_t offset = address - shared_base;
  const std::size_t size = block.shared.size();
  if (address < shared_base || offset > size || bytes > size - offset) {
    fail_access(line, fmt::format("{} {} bytes of shared memory at offset {} of {}", what, bytes,
                                  static_cast<std::int64_t>(address) - shared_base, size));
  }
  if (!is_multiple(offset, alignment)) {
    fail(line,
         fmt::format("{} {} bytes of shared memory at offset {}, which is no multiple of {}", what,
                     bytes, offset, alignment == bytes ? "it" : std::to_string(alignment)));
  }
  return {&block, offset};
}

std::uint32_t Machine::mapa(std::uint32_t address, std::uint32_t rank, int line) {
  const std::size_t size = self().block->cluster->blocks.size();
  if (rank >= size) fail(line, fmt::format("maps an address to rank {} of {} blocks", rank, size));
  return (address & ((1u << rank_shift) - 1)) | (rank + 1) << rank_shift;
}

Machine::Place Machine::cluster_shared(std::uint32_t remote, std::uint32_t bytes,
                                       std::uint32_t alignment, const char* what, int line) {
  const std::uint32_t rank = remote >> rank_shift;
  auto& blocks = self().block->cluster->blocks;
  if (rank == 0 || rank > blocks.size()) {
    fail(line,
         fmt::format("{} another block's shared memory by an address that is not mapa's", what));
  }
  Block& block = blocks[rank - 1];
  const std::uint32_t address = remote & ((1u << rank_shift) - 1), offset = address - shared_base;
  const std::size_t size = block.shared.size();
  if (address < shared_base || offset > size || bytes > size - offset ||
      !is_multiple(offset, alignment)) {
    fail(line, fmt::format("{} {} bytes at offset {} of the {} bytes of shared memory of block {}: "
                           "outside, or no multiple of {}",
                           what, bytes, static_cast<std::int64_t>(address) - shared_base, size,
                           text(block.index), alignment));
  }
  return {&block, offset};
}

void Machine::touch_remote(Block& block, race::Agent agent, int line, bool only_counts) {
  Thread& me = self();
  if (&block == me.block) return;
  if (!me.met_cluster) {
    report(
        block, {"cluster start", line},
        fmt::format("{} touches shared memory of block {}, which may not have started: no cluster "
                    "barrier has come before{}",
                    describe_self(), text(block.index), where(line)));
  }
  if (block.live == 0) {
    report(block, {"cluster exit", line},
           fmt::format("{} touches shared memory of block {}, which has ended{}", describe_self(),
                       text(block.index), where(line)));
  }
  if (races()) {
    const race::Snapshot after = only_counts         ? testify().told
                                 : agent == me.agent ? engine_.release(agent)
                                                     : engine_.released(agent);
    block.remote[agent] = {after, line};
  }
}

void Machine::fail_unwritten(const Block& block, std::uint32_t offset, std::uint32_t bytes,
                             const char* what, int line) {
  const auto gap = std::find(&block.state[offset], &block.state[offset] + bytes, Block::unwritten);
  const auto at = static_cast<std::uint32_t>(gap - block.state.data());
  fail(line,
       fmt::format("{} {} bytes of shared memory at offset {} that nobody wrote{}", what, bytes,
                   offset, block.names.empty() ? "" : fmt::format(" ({})", describe(block, at))));
}

void Machine::mark_written(Block& block, std::uint32_t offset, std::uint32_t bytes, int line) {
  std::uint8_t* state = &block.state[offset];
  if (!block.mbarriers.empty()) {
    if (const void* found = std::memchr(state, Block::mbarrier, bytes)) {
      const auto at = static_cast<const std::uint8_t*>(found) - block.state.data();
      fail(line, fmt::format("overwrites an mbarrier, {}",
                             describe(block, static_cast<std::uint32_t>(at))));
    }
  }
  std::memset(state, Block::written, bytes);
}

device::Memory Machine::memory_of(const Block& block) const {
  return &block == self().block ? device::Memory::shared : device::Memory::shared_cluster;
}

void Machine::tell_watcher(device::Memory memory, const race::Access& access, std::uint64_t at,
                           std::uint64_t bytes) const {
  launch_.watch(
      static_cast<int>(access.tag),
      {.memory = memory,
       .proxy = access.proxy == race::Proxy::async ? device::Proxy::async : device::Proxy::generic,
       .reads = access.kind == race::Kind::read,
       .writes = access.kind == race::Kind::write,
       .atomic = access.kind == race::Kind::atomic},
      at, bytes);
}

void Machine::record_shared(Block& block, std::uint32_t offset, std::uint32_t bytes,
                            race::Access access, std::span<const race::Agent> issuers) {
  if (!races()) return;
  if (launch_.watch) tell_watcher(memory_of(block), access, offset, bytes);
  if (const auto race = block.shadow->access(offset, bytes, access, issuers)) {
    report_race(block, describe(block, offset + static_cast<std::uint32_t>(race->offset - offset)),
                *race);
  }
}

void Machine::record_shared(Block& block, std::uint32_t offset, std::uint32_t bytes,
                            race::Kind kind, int line) {
  if (!races()) return;
  const race::Access access = {self().agent, kind, race::Proxy::generic,
                               static_cast<std::uint32_t>(line)};
  if (launch_.watch) tell_watcher(memory_of(block), access, offset, bytes);
  if (const auto race = block.shadow->access(offset, bytes, access)) {
    report_race(block, describe(block, static_cast<std::uint32_t>(race->offset)), *race);
  }
}

void Machine::load_shared(void* dst, std::uint32_t address, std::uint32_t bytes,
                          abi::Unwritten unwritten, int line) {
  const Place at = shared(address, bytes, bytes, "reads", line);
  if (unwritten == abi::Unwritten::wrong) {
    require_written(*at.block, at.offset, bytes, "reads", line);
  } else if (unwritten == abi::Unwritten::by_user &&
             std::memchr(&at.block->state[at.offset], Block::unwritten, bytes) != nullptr) {
    blame_user(line, fmt::format("{} reads an element of scratch or of an output's block before "
                                 "anything was stored there{}",
                                 describe_self(), where(line)));
  }
  copy(dst, &at.block->shared[at.offset], bytes);
  record_shared(*at.block, at.offset, bytes, race::Kind::read, line);
  ask(address, dst, bytes, line);
}

void Machine::store_shared(std::uint32_t address, const void* src, std::uint32_t bytes, int line) {
  const Place at = shared(address, bytes, bytes, "writes", line);
  mark_written(*at.block, at.offset, bytes, line);
  if (!is_same(&at.block->shared[at.offset], src, bytes)) progress();
  copy(&at.block->shared[at.offset], src, bytes);
  record_shared(*at.block, at.offset, bytes, race::Kind::write, line);
}

// Elements of which nobody stored a part stay what they are in global memory.
void Machine::flush_resident(void* p, std::uint32_t address, std::uint32_t element_bytes,
                             int elements, int line) {
  const std::uint32_t bytes = element_bytes * static_cast<std::uint32_t>(elements);
  const Place at = shared(address, bytes, bytes, "reads", line);
  std::uint8_t* const state = &at.block->state[at.offset];
  std::byte moved[16];
  const auto move = [&](std::uint32_t offset, std::uint32_t count) {
    load_shared(moved, address + offset, count, abi::Unwritten::padding, line);
    store_global(static_cast<std::byte*>(p) + offset, moved, count, line);
  };
  if (std::memchr(state, Block::unwritten, bytes) == nullptr) {
    move(0, bytes);
  } else {
    for (std::uint32_t e = 0; e < bytes; e += element_bytes)
      if (std::memchr(state + e, Block::written, element_bytes) != nullptr) move(e, element_bytes);
  }
  std::memset(state, Block::unwritten, bytes);
}

void Machine::load_cluster(void* dst, std::uint32_t remote, std::uint32_t bytes, int line) {
  const Place at = cluster_shared(remote, bytes, bytes, "reads", line);
  require_written(*at.block, at.offset, bytes, "reads", line);
  copy(dst, &at.block->shared[at.offset], bytes);
  record_shared(*at.block, at.offset, bytes, race::Kind::read, line);
  touch_remote(*at.block, self().agent, line);
  ask(remote, dst, bytes, line);
}

void Machine::store_cluster(std::uint32_t remote, const void* src, std::uint32_t bytes, int line) {
  const Place at = cluster_shared(remote, bytes, bytes, "writes", line);
  mark_written(*at.block, at.offset, bytes, line);
  if (!is_same(&at.block->shared[at.offset], src, bytes)) progress();
  copy(&at.block->shared[at.offset], src, bytes);
  record_shared(*at.block, at.offset, bytes, race::Kind::write, line);
  touch_remote(*at.block, self().agent, line);
}

void Machine::name_shared(std::uint32_t address, std::uint32_t bytes, const char* name, int index) {
  Block& block = *self().block;
  const std::uint32_t offset = address - shared_base;
  for (const Block::Name& n : block.names) {
    if (n.offset == offset && n.bytes == bytes) return;
  }
  block.names.push_back({offset, bytes, index < 0 ? name : fmt::format("{}[{}]", name, index)});
}

// ---- global memory

GlobalMemory::Region& Machine::global(const void* p, std::size_t bytes, std::uint32_t alignment,
                                      bool write, const char* what, int line) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const std::size_t index = global_.find(address, bytes, hint_);
  if (index == GlobalMemory::none) {
    fail_access(line, fmt::format("{} {} bytes outside every buffer, {}", what, bytes,
                                  global_.nearest(address)));
  }
  GlobalMemory::Region& region = global_.region(index);
  if (!is_multiple(address, alignment)) {
    fail_access(line, fmt::format("{} {} bytes at an address that is no multiple of {}, {}", what,
                                  bytes, alignment == bytes ? "it" : std::to_string(alignment),
                                  global_.nearest(address)));
  }
  if (write && !region.buffer->written) {
    fail(line, fmt::format("writes to {}, which is only read", region.buffer->name));
  }
  return region;
}

// Races of one cluster's threads; other clusters' writes are the writer map's.
void Machine::record_global(GlobalMemory::Region& region, std::uintptr_t address, std::size_t bytes,
                            race::Access access, std::span<const race::Agent> issuers) {
  if (races() && launch_.watch) tell_watcher(device::Memory::global, access, address, bytes);
  if (races() && region.buffer->overlapped) require_end_of_previous(region, access);
  if (!region.buffer->written) return;
  if (access.kind == race::Kind::read)
    check_read(region, address, bytes, static_cast<int>(access.tag));
  if (!races()) return;
  auto& pages = global_shadows_[region_index(region)].pages;
  std::size_t offset = address - region.begin;
  while (bytes > 0) {
    const std::size_t page = offset / page_bytes, within = offset % page_bytes;
    const std::size_t part = std::min(bytes, page_bytes - within);
    auto found = pages.find(page);
    if (found == pages.end())
      found = pages.try_emplace(page, engine_, page_bytes, race::Space::global).first;
    if (const auto race = found->second.access(within, part, access, issuers)) {
      const std::size_t element =
          static_cast<std::size_t>(std::max(1, region.buffer->element_bytes));
      report_race(*self().block,
                  fmt::format("element {} of {}", (page * page_bytes + race->offset) / element,
                              region.buffer->name),
                  *race);
    }
    offset += part;
    bytes -= part;
  }
}

void Machine::require_end_of_previous(const GlobalMemory::Region& region, race::Access access) {
  if (engine_.knows(access.agent, previous_kernel_)) return;
  const int line = static_cast<int>(access.tag);
  report(*self().block, {"previous kernel", line},
         fmt::format("race: {} touches {} without griddepcontrol_wait before: the kernel that this "
                     "launch overlaps may still write it{}",
                     describe(access), region.buffer->name, where(line)));
}

// Blocks that run together may wait for each other, and the engine knows whether they did.
bool Machine::is_ordered_by_engine(std::uint32_t other) const {
  if (clusters_.size() > 1) return true;
  const auto cluster_of = [&](std::uint32_t linear) {
    std::array<std::int64_t, 3> index = block_index(linear, launch_.grid);
    for (std::size_t d = 0; d < 3; ++d) index[d] /= launch_.cluster[d];
    return index;
  };
  return cluster_of(other) == cluster_of(self().block->linear);
}

void Machine::check_read(GlobalMemory::Region& region, std::uintptr_t address, std::size_t bytes,
                         int line) {
  if (region.writers.elements() == 0) return;
  const race::Write mine{self().block->linear, static_cast<std::uint32_t>(line)};
  const std::size_t last = region.element_of(address + bytes - 1);
  for (std::size_t i = region.element_of(address); i <= last; ++i) {
    if (region.readers.elements() > 0) region.readers.record(i, mine);
    const std::optional<race::Write> write = region.writers.writer(i);
    const bool own = write && (write->program == mine.program || !region.buffer->one_writer);
    if (region.buffer->initialised) {
      if (write && !own && !is_ordered_by_engine(write->program))
        report_unordered(region, i, mine, *write);
    } else if (!own) {
      blame_user(line,
                 fmt::format("{} reads element {} of {}, to which no input is aliased, before "
                             "anything was stored there by its block{}",
                             describe_self(), i, region.buffer->name, where(line)));
    }
  }
}

void Machine::report_unordered(GlobalMemory::Region& region, std::size_t element, race::Write read,
                               race::Write write) {
  const int line = static_cast<int>(read.tag), other = static_cast<int>(write.tag);
  report(*self().block, {"read across blocks", line, other, true},
         fmt::format("race: block {} reads element {} of {}{}\nwhich block {} writes; blocks have "
                     "no order{}",
                     text(block_index(read.program, launch_.grid)), element, region.buffer->name,
                     where(line), text(block_index(write.program, launch_.grid)), where(other)));
}

// Two blocks that write one element, or of which one reads it, are the user's error.
void Machine::record_writer(GlobalMemory::Region& region, std::uintptr_t address, std::size_t bytes,
                            const Block& block, int line) {
  if (region.writers.elements() == 0) return;
  const std::size_t first = region.element_of(address);
  const std::size_t last = region.element_of(address + bytes - 1);
  if (last >= region.writers.elements()) return;
  const race::Write mine{.program = block.linear, .tag = static_cast<std::uint32_t>(line)};
  const auto conflict = region.writers.record(first, last - first + 1, mine);
  for (std::size_t i = first; i <= last && region.readers.elements() > 0; ++i) {
    const std::optional<race::Write> read = region.readers.other(i, mine.program);
    if (read && !is_ordered_by_engine(read->program)) report_unordered(region, i, *read, mine);
  }
  if (!conflict || !region.buffer->one_writer) return;
  WriteConflict found = {.region = region_index(region),
                         .element = conflict->element,
                         .first = conflict->first.program,
                         .second = block.linear,
                         .line = line};
  if (found.first > found.second) {
    std::swap(found.first, found.second);
    found.line = static_cast<int>(conflict->first.tag);
  }
  reports_.add(found);
}

void Machine::load_global(void* dst, const void* p, std::uint32_t bytes, int line) {
  load_global(global(p, bytes, bytes, false, "reads", line), dst, p, bytes, line);
}

void Machine::load_global_nc(void* dst, const void* p, std::uint32_t bytes, int line) {
  GlobalMemory::Region& region = global(p, bytes, bytes, false, "reads", line);
  if (region.buffer->overlapped) {
    fail(line, fmt::format("reads {} by load_global_nc, and the kernel before, which it overlaps, "
                           "may write it meanwhile",
                           region.buffer->name));
  }
  load_global(region, dst, p, bytes, line);
}

void Machine::load_global(GlobalMemory::Region& region, void* dst, const void* p,
                          std::uint32_t bytes, int line) {
  copy(dst, p, bytes);
  const race::Agent me = self().agent;
  record_global(region, reinterpret_cast<std::uintptr_t>(p), bytes,
                {me, race::Kind::read, race::Proxy::generic, static_cast<std::uint32_t>(line)},
                {&me, 1});
  ask(reinterpret_cast<std::uintptr_t>(p), dst, bytes, line);
}

// A loop of plain loads may wait for another thread as well.
void Machine::ask(std::uintptr_t address, const void* got, std::uint32_t bytes, int line) {
  std::uint64_t value = 0;
  std::memcpy(&value, got, std::min<std::size_t>(bytes, sizeof value));
  if (asks_again(address, 0, value)) poll(line);
}

void Machine::store_global(void* p, const void* src, std::uint32_t bytes, int line) {
  GlobalMemory::Region& region = global(p, bytes, bytes, true, "writes", line);
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  record_writer(region, address, bytes, *self().block, line);
  const race::Agent me = self().agent;
  record_global(region, address, bytes,
                {me, race::Kind::write, race::Proxy::generic, static_cast<std::uint32_t>(line)},
                {&me, 1});
  if (!is_same(p, src, bytes)) progress();
  copy(p, src, bytes);
}

void Machine::check_range(std::int64_t first, std::int64_t last, std::int64_t extent,
                          const char* what, int line) {
  const std::string part = first == last ? fmt::format("element {} is", first)
                                         : fmt::format("elements {} to {} are", first, last);
  blame_user(line, fmt::format("{}: {} out of bounds, the extent is {} (in block {})", what, part,
                               extent, text(self().block->index)));
}

void Machine::check_value(std::int64_t value, const char* what, int line) {
  std::string said = what;
  if (const std::size_t at = said.find("{}"); at != said.npos)
    said.replace(at, 2, std::to_string(value));
  check(said.c_str(), line);
}

void Machine::check(const char* what, int line) {
  blame_user(line, fmt::format("{} (in block {})", what, text(self().block->index)));
}

}  // namespace palladium::emulator
