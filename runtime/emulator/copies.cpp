// Asynchronous copies: TMA boxes, bulk copies, st.async and cp.async. Each is an agent of its own,
// whose accesses are checked when it is issued and known to whoever waits for it.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "codegen/base/format.hpp"
#include "runtime/emulator/machine.hpp"
#include "runtime/emulator/numbers.hpp"

namespace palladium::emulator {
namespace {

constexpr std::uint32_t box_alignment = 128;

// The proxy through which a row goes to memory.
device::Proxy proxy_of(device::Row row) {
  for (const device::Access& a : device::info(row).effects.accesses())
    if (a.memory != device::Memory::registers) return a.proxy;
  return device::Proxy::generic;
}

race::Proxy proxy_of(device::Proxy proxy) {
  return proxy == device::Proxy::async ? race::Proxy::async : race::Proxy::generic;
}

race::Access access(race::Agent agent, device::Row row, race::Kind kind, int line) {
  return {agent, kind, proxy_of(proxy_of(row)), static_cast<std::uint32_t>(line)};
}

race::Group group_of(const Block& block) {
  return {.cluster = static_cast<std::uint32_t>(block.cluster->index), .block = block.linear};
}

void round_chunk_to_tf32(std::byte* at) {
  float numbers[chunk / sizeof(float)];
  std::memcpy(numbers, at, chunk);
  for (float& x : numbers) x = round_to_tf32(x);
  std::memcpy(at, numbers, chunk);
}

// Reads the box into shared memory whose byte 0 is `shared`. Rows under a swizzle have its width
// and lie on multiples of it: all chunks of one are exchanged alike.
void read_box(const TensorMapSpec& map, const std::array<int, 5>& at, std::byte* shared,
              std::uint32_t offset) {
  const std::uint32_t width = row_bytes(map);
  const auto element = static_cast<std::uint32_t>(bytes_of(map.type));
  std::vector<std::byte> padded(width);
  // Rows of an array lie too far apart for a processor to foresee the next.
  const std::uintptr_t ahead = 16 * map.strides[0];
  for_each_row(map, at, [&](const BoxRow& r) {
    const auto* row = reinterpret_cast<const std::byte*>(r.data);
    for (std::uint32_t i = 0; i < width; i += 64) {
      __builtin_prefetch(reinterpret_cast<const void*>(r.data + ahead + i));
    }
    if (r.last - r.first != map.box[0]) {
      std::fill(padded.begin(), padded.end(), map.nan_fill ? std::byte{0xff} : std::byte{0});
      std::copy(row + r.first * element, row + r.last * element, &padded[r.first * element]);
      row = padded.data();
    }
    const std::uint32_t address = shared_base + offset + r.offset;
    const std::uint32_t exchange = swizzled(address, map.swizzle) ^ address;
    std::byte* const to = shared + offset + r.offset;
    for (std::uint32_t i = 0; i < width; i += chunk) {
      std::memcpy(to + (i ^ exchange), row + i, chunk);
      if (map.type == TensorMapType::tf32) round_chunk_to_tf32(to + (i ^ exchange));
    }
  });
}

}  // namespace

// ---- operations

race::Agent Machine::add_agent(Thread& thread, std::string_view operation, device::Proxy through,
                               bool of_warpgroup) {
  const race::Agent agent = engine_.add_agent(group_of(*thread.block), proxy_of(through));
  actors_.resize(agent + 1);
  actors_[agent] = {operation, of_warpgroup, &thread, thread.ids};
  return agent;
}

void Machine::begin_again(race::Agent agent, const Thread& thread) {
  engine_.begin_again(agent, group_of(*thread.block));
  actors_[agent].ids = thread.ids;
}

// Of the same thread and operation each time, so that reports can tell whose an old access was.
race::Agent Machine::take_agent(device::Row row) {
  if (!races()) return 0;
  Thread& me = self();
  const std::string_view operation = device::info(row).name;
  const auto is_same = [&](race::Agent a) { return actors_[a].operation == operation; };
  const auto found = std::find_if(me.idle.begin(), me.idle.end(), is_same);
  const bool is_new = found == me.idle.end();
  const race::Agent agent = is_new ? add_agent(me, operation, proxy_of(row)) : *found;
  if (!is_new) me.idle.erase(found);
  engine_.restart(agent, engine_.release(me.agent));
  return agent;
}

void Machine::give_agent(race::Agent agent) {
  if (races()) actors_[agent].thread->idle.push_back(agent);
}

void Machine::issue(std::function<bool()> run) {
  const Asynchrony when = launch_.options.asynchrony;
  if (when == Asynchrony::eager || (when == Asynchrony::random && random() >> 63 == 0)) {
    for (int step = 0; step < 2; ++step) {
      if (!run()) return;
    }
  }
  operations_.push_back({self().block->cluster->index, std::move(run)});
}

void Machine::run_operation() {
  const bool any = launch_.options.asynchrony == Asynchrony::random;
  const std::size_t i = any ? random() % operations_.size() : 0;
  Operation operation = std::move(operations_[i]);
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(i));
  if (operation.run()) operations_.push_back(std::move(operation));
}

void Machine::wake(Thread& thread, Wait kind) {
  progress();
  if (thread.waits_in == kind) unpark(thread);
}

// ---- into shared memory

void Machine::load(Load load, race::Agent agent) {
  Thread& me = self();
  auto& blocks = me.block->cluster->blocks;
  const Place dst = shared(load.dst, load.bytes, load.alignment, "copies", load.line);
  const Place bar = shared(load.bar, 8, 8, "completes at", load.line);
  const bool multicast = load.blocks != abi::this_block;
  if (multicast && load.blocks == 0) {
    report(*me.block, {"empty multicast", load.line},
           fmt::format("{} sends to no block: its mask is 0, nothing is copied and no bytes "
                       "complete{}",
                       describe_self(), where(load.line)));
  }
  if (multicast && load.blocks >> blocks.size() != 0) {
    fail(load.line,
         fmt::format("sends to blocks {:#b} of a cluster of {}", load.blocks, blocks.size()));
  }
  std::vector<Block*> targets;
  for (Block& block : blocks) {
    if (multicast ? (load.blocks >> block.rank & 1) != 0 : &block == me.block) {
      targets.push_back(&block);
    }
  }
  for (Block* block : targets) {
    Mbarrier& m = mbarrier(*block, bar.offset, "completes its bytes on", load.line);
    if (block == me.block) require_initialized(*block, bar.offset, m, load.line);
    if (!m.fenced) {
      report(*block, {"mbarrier fence", load.line, m.line},
             fmt::format("{} lets a copy complete on {}, whose initialisation has no "
                         "fence_mbarrier_init{}\ninitialised by{}",
                         describe_self(), describe(*block, bar.offset), where(load.line),
                         where(m.line)));
    }
    if (races()) {
      record_shared(*block, dst.offset, load.bytes,
                    access(agent, load.row, race::Kind::write, load.line), {&agent, 1});
    }
    touch_remote(*block, agent, load.line);
  }
  issue([this, load = std::move(load), targets, agent, offset = dst.offset, at = bar.offset] {
    for (Block* block : targets) {
      mark_written(*block, offset, load.bytes, load.line);
      load.fill(block->shared.data());
    }
    for (Block* block : targets) complete_tx(*block, at, load.bytes, agent, load.line);
    give_agent(agent);
    return false;
  });
}

TensorMapSpec Machine::map_of(const void* map, int rank, const char* what, int line) {
  TensorMapSpec spec;
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0) {
    fail(line, fmt::format("{} with a tensor map that is not aligned to 64 bytes", what));
  }
  if (!decode(map, spec)) fail(line, fmt::format("{} with what is no tensor map", what));
  if (rank != 0 && spec.rank != rank) {
    fail(line,
         fmt::format("{} with {} coordinates and a tensor map of rank {}", what, rank, spec.rank));
  }
  return spec;
}

std::array<int, 5> Machine::coordinates(const TensorMapSpec& map, const int* at, const char* what,
                                        int line) {
  std::array<int, 5> first = {};
  std::copy_n(at, map.rank, first.begin());
  const std::int64_t element = static_cast<std::int64_t>(bytes_of(map.type));
  if (first[0] * element % chunk != 0) {
    fail(line, fmt::format("{} a box whose inner coordinate {} lies {} bytes into the row: it must "
                           "be 16-byte aligned, a multiple of {} elements",
                           what, first[0], first[0] * element, chunk / element));
  }
  return first;
}

void Machine::record_box(const TensorMapSpec& map, const std::array<int, 5>& at,
                         race::Access access) {
  const auto element = bytes_of(map.type);
  const bool write = access.kind != race::Kind::read;
  const int line = static_cast<int>(access.tag);
  if (!races() && !write) {
    // Whose elements these are does not matter, as long as one buffer has them all.
    const Extent box = extent_of(map, at);
    if (global_.find(box.begin, box.bytes, hint_) != GlobalMemory::none) return;
  }
  for_each_row(map, at, [&](const BoxRow& r) {
    if (r.last <= r.first) return;
    const std::uintptr_t begin = r.data + r.first * element;
    const std::size_t bytes = (r.last - r.first) * element;
    GlobalMemory::Region& region = global(reinterpret_cast<const void*>(begin), bytes, 1, write,
                                          write ? "writes" : "reads", line);
    if (access.kind == race::Kind::write) record_writer(region, begin, bytes, *self().block, line);
    if (races()) record_global(region, begin, bytes, access, {&access.agent, 1});
  });
}

void Machine::tma_load(std::uint32_t dst, const void* map, std::uint32_t bar, std::uint32_t blocks,
                       int rank, const int* at, int line) {
  const TensorMapSpec spec = map_of(map, rank, "loads", line);
  const std::array<int, 5> first = coordinates(spec, at, "loads", line);
  const race::Agent agent = take_agent(device::Row::tma_load);
  record_box(spec, first, access(agent, device::Row::tma_load, race::Kind::read, line));
  const std::uint32_t offset = dst - shared_base;
  load({.row = device::Row::tma_load,
        .dst = dst,
        .bytes = box_bytes(spec),
        .bar = bar,
        .alignment = box_alignment,
        .blocks = blocks,
        .line = line,
        .fill = [spec, first, offset](std::byte* s) { read_box(spec, first, s, offset); }},
       agent);
}

void Machine::bulk_load(std::uint32_t dst, const void* src, std::uint32_t bytes, std::uint32_t bar,
                        std::uint32_t blocks, int line) {
  if (bytes == 0 || bytes % chunk != 0) {
    fail(line, fmt::format("copies {} bytes: a multiple of 16", bytes));
  }
  GlobalMemory::Region& region = global(src, bytes, chunk, false, "copies", line);
  const race::Agent agent = take_agent(device::Row::bulk_load);
  const auto from = reinterpret_cast<std::uintptr_t>(src);
  if (races()) {
    record_global(region, from, bytes,
                  access(agent, device::Row::bulk_load, race::Kind::read, line), {&agent, 1});
  }
  load({.row = device::Row::bulk_load,
        .dst = dst,
        .bytes = bytes,
        .bar = bar,
        .alignment = chunk,
        .blocks = blocks,
        .line = line,
        .fill = [src, bytes, offset = dst - shared_base](
                    std::byte* s) { std::memcpy(s + offset, src, bytes); }},
       agent);
}

// ---- out of shared memory, in groups of the issuing thread

std::shared_ptr<CopyGroup>& Machine::open_group(std::shared_ptr<CopyGroup>& group, int line) {
  if (!group) group = std::make_shared<CopyGroup>();
  group->line = line;
  return group;
}

void Machine::store(Store store, race::Agent writer) {
  Thread& me = self();
  const Place src = shared(store.src, store.bytes, store.alignment, "copies", store.line);
  Block& block = *src.block;
  require_written(block, src.offset, store.bytes, "copies", store.line);
  const race::Agent reader = take_agent(store.row);
  if (races()) {
    record_shared(block, src.offset, store.bytes,
                  access(reader, store.row, race::Kind::read, store.line), {&reader, 1});
  }
  const std::shared_ptr<CopyGroup> group = open_group(me.open_bulk, store.line);
  ++group->reading;
  ++group->writing;
  auto data = std::make_shared<std::vector<std::byte>>();
  issue([this, &me, &block, store = std::move(store), offset = src.offset, group, data, reader,
         writer] {
    if (data->empty()) {
      data->resize(store.bytes);
      for (std::uint32_t i = 0; i < store.bytes; i += chunk) {
        const std::uint32_t address = swizzled(shared_base + offset + i, store.swizzle);
        std::memcpy(data->data() + i, &block.shared[address - shared_base], chunk);
      }
      --group->reading;
      if (races()) group->has_read = engine_.join(group->has_read, engine_.released(reader));
      give_agent(reader);
      wake(me, Wait::bulk_wait);
      return true;
    }
    store.write(*data);
    --group->writing;
    if (races()) group->has_written = engine_.join(group->has_written, engine_.released(writer));
    give_agent(writer);
    wake(me, Wait::bulk_wait);
    return false;
  });
}

void Machine::write_box(const TensorMapSpec& map, const std::array<int, 5>& at, abi::Reduction how,
                        const std::vector<std::byte>& data) {
  const auto element = static_cast<std::uint32_t>(bytes_of(map.type));
  for_each_row(map, at, [&](const BoxRow& r) {
    if (r.last <= r.first) return;
    auto* to = reinterpret_cast<std::byte*>(r.data + std::size_t{r.first} * element);
    const std::byte* from = &data[r.offset + r.first * element];
    if (how == abi::Reduction::none) {
      std::memcpy(to, from, (r.last - r.first) * element);
      return;
    }
    for (std::uint32_t i = 0; i < (r.last - r.first) * element; i += element) {
      std::uint64_t old = 0, value = 0;
      std::memcpy(&old, to + i, element);
      std::memcpy(&value, from + i, element);
      const std::uint64_t now = combine(how, format_of(map.type), old, value);
      std::memcpy(to + i, &now, element);
    }
  });
}

void Machine::tma_store(const void* map, std::uint32_t src, abi::Reduction how, int rank,
                        const int* at, int line) {
  const bool reduces = how != abi::Reduction::none;
  const device::Row row = reduces ? device::Row::tma_reduce : device::Row::tma_store;
  const char* what = reduces ? "reduces" : "stores";
  const TensorMapSpec spec = as_written(map_of(map, rank, what, line));
  const std::array<int, 5> first = coordinates(spec, at, what, line);
  for (int d = 0; d < spec.rank; ++d)
    if (first[d] < 0)
      fail(line, fmt::format("{} a box that begins {} before the array along dimension {}: loads "
                             "may, stores and reductions are illegal instructions then",
                             what, -std::int64_t{first[d]}, d));
  if (!is_reducible(spec.type, how)) {
    fail(line, fmt::format("reduces elements of {} by {}: TMA has {}", name(spec.type), name(how),
                           types_of(how)));
  }
  const race::Agent writer = take_agent(row);
  record_box(spec, first,
             access(writer, row, reduces ? race::Kind::atomic : race::Kind::write, line));
  store({.row = row,
         .src = src,
         .bytes = box_bytes(spec),
         .alignment = box_alignment,
         .swizzle = spec.swizzle,
         .line = line,
         .write = [this, spec, first,
                   how](const std::vector<std::byte>& data) { write_box(spec, first, how, data); }},
        writer);
}

void Machine::tma_prefetch(const void* map, int rank, const int* at, int line) {
  const TensorMapSpec spec = map_of(map, rank, "prefetches", line);
  if (rank != 0) (void)coordinates(spec, at, "prefetches", line);
}

void Machine::bulk_store(void* dst, std::uint32_t src, std::uint32_t bytes, abi::Reduction how,
                         abi::Format format, int line) {
  if (bytes == 0 || bytes % chunk != 0) {
    fail(line, fmt::format("copies {} bytes: a multiple of 16", bytes));
  }
  GlobalMemory::Region& region = global(dst, bytes, chunk, true, "copies", line);
  const bool reduces = how != abi::Reduction::none;
  const device::Row row = reduces ? device::Row::bulk_reduce_add : device::Row::bulk_store;
  const race::Agent writer = take_agent(row);
  const auto to = reinterpret_cast<std::uintptr_t>(dst);
  if (!reduces) record_writer(region, to, bytes, *self().block, line);
  if (races()) {
    record_global(region, to, bytes,
                  access(writer, row, reduces ? race::Kind::atomic : race::Kind::write, line),
                  {&writer, 1});
  }
  const std::uint32_t element = reduces ? bytes_of(format) : bytes;
  store({.row = row,
         .src = src,
         .bytes = bytes,
         .alignment = chunk,
         .swizzle = 0,
         .line = line,
         .write =
             [=](const std::vector<std::byte>& data) {
               if (!reduces) {
                 std::memcpy(dst, data.data(), bytes);
                 return;
               }
               for (std::uint32_t i = 0; i < bytes; i += element) {
                 std::uint64_t old = 0, value = 0;
                 std::memcpy(&old, static_cast<std::byte*>(dst) + i, element);
                 std::memcpy(&value, &data[i], element);
                 const std::uint64_t now = combine(how, format, old, value);
                 std::memcpy(static_cast<std::byte*>(dst) + i, &now, element);
               }
             }},
        writer);
}

void Machine::bulk_prefetch(const void* src, std::uint32_t bytes, int line) {
  (void)global(src, bytes, chunk, false, "prefetches", line);
}

void Machine::bulk_commit(int) {
  Thread& me = self();
  me.bulk.push_back(me.open_bulk ? std::exchange(me.open_bulk, nullptr)
                                 : std::make_shared<CopyGroup>());
}

void Machine::bulk_wait(int groups, bool read, int line) {
  wait_groups(self().bulk, groups, read, Wait::bulk_wait, line);
}

// Waits for all groups but the latest `keep`: until they have read, or until they are done.
void Machine::wait_groups(std::vector<std::shared_ptr<CopyGroup>>& groups, int keep, bool read,
                          Wait kind, int line) {
  if (static_cast<int>(groups.size()) <= keep) return;
  const auto end = groups.end() - keep;
  for (auto group = groups.begin(); group != end; ++group) {
    while ((*group)->reading != 0 || (!read && (*group)->writing != 0)) park(kind, line);
    (*group)->awaited = true;
    if (!races()) continue;
    finish(**group);
    engine_.acquire(self().agent, (*group)->has_read);
    if (!read) engine_.acquire(self().agent, (*group)->has_written);
    if (kind == Wait::cp_async_wait)
      self().copied = engine_.join(self().copied, (*group)->has_written);
  }
  if (!read) groups.erase(groups.begin(), end);
}

// ---- between blocks

void Machine::bulk_copy_cluster(std::uint32_t remote_dst, std::uint32_t src, std::uint32_t bytes,
                                std::uint32_t remote_bar, int line) {
  if (bytes == 0 || bytes % chunk != 0) {
    fail(line, fmt::format("copies {} bytes: a multiple of 16", bytes));
  }
  const Place from = shared(src, bytes, chunk, "copies", line);
  const Place to = cluster_shared(remote_dst, bytes, chunk, "copies", line);
  const Place bar = cluster_shared(remote_bar, 8, 8, "completes at", line);
  if (to.block == self().block) {
    fail(line, "copies to its own block's shared memory: bulk_copy_cluster goes to another block");
  }
  if (to.block != bar.block) {
    fail(line, "copies to one block and completes on a barrier of another");
  }
  require_written(*from.block, from.offset, bytes, "copies", line);
  mbarrier(*bar.block, bar.offset, "completes its bytes on", line);
  const device::Row row = device::Row::bulk_copy_cluster;
  const race::Agent agent = take_agent(row);
  if (races()) {
    record_shared(*from.block, from.offset, bytes, access(agent, row, race::Kind::read, line),
                  {&agent, 1});
    record_shared(*to.block, to.offset, bytes, access(agent, row, race::Kind::write, line),
                  {&agent, 1});
  }
  touch_remote(*to.block, agent, line);
  issue([=, this] {
    mark_written(*to.block, to.offset, bytes, line);
    std::memcpy(&to.block->shared[to.offset], &from.block->shared[from.offset], bytes);
    complete_tx(*bar.block, bar.offset, bytes, agent, line);
    give_agent(agent);
    return false;
  });
}

void Machine::store_async(std::uint32_t remote, const void* src, std::uint32_t bytes,
                          std::uint32_t remote_bar, int line) {
  if (self().block->cluster->blocks.size() == 1) {
    fail(line, "calls store_async, which needs more than one block in the cluster");
  }
  const Place to = cluster_shared(remote, bytes, bytes, "writes", line);
  const Place bar = cluster_shared(remote_bar, 8, 8, "completes at", line);
  if (to.block != bar.block) {
    fail(line, "stores to one block and completes on a barrier of another");
  }
  mbarrier(*bar.block, bar.offset, "completes its bytes on", line);
  const device::Row row = device::Row::store_async;
  const race::Agent agent = take_agent(row);
  if (races()) {
    record_shared(*to.block, to.offset, bytes, access(agent, row, race::Kind::write, line),
                  {&agent, 1});
  }
  touch_remote(*to.block, agent, line);
  const Block* const me = self().block;
  std::array<std::byte, 16> value;
  std::memcpy(value.data(), src, bytes);
  issue([=, this] {
    mark_written(*to.block, to.offset, bytes, line);
    std::memcpy(&to.block->shared[to.offset], value.data(), bytes);
    complete_tx(*bar.block, bar.offset, bytes, agent, line, to.block != me);
    give_agent(agent);
    return false;
  });
}

// ---- cp.async: through the generic proxy

// An agent for each copy would be right too, and all that anybody knows a list of thousands.
race::Agent Machine::agent_of_copy(CopyGroup& group, std::uint32_t begin, std::uint32_t bytes) {
  constexpr std::size_t most_copies = 32;
  if (!races()) return 0;
  const race::Snapshot knows = engine_.release(self().agent);
  const auto is_free = [&](const CopyAgent& a) {
    return a.taken.size() < most_copies && std::ranges::none_of(a.taken, [&](const auto& t) {
             return begin < t.second && t.first < begin + bytes;
           });
  };
  auto found = std::ranges::find_if(group.agents, is_free);
  if (found == group.agents.end()) {
    group.agents.push_back(
        {.agent = take_agent(device::Row::cp_async), .knows = knows, .taken = {}});
    found = group.agents.end() - 1;
  } else if (found->knows != knows) {
    engine_.acquire(found->agent, knows);
    found->knows = knows;
  }
  found->taken.emplace_back(begin, begin + bytes);
  return found->agent;
}

// Precondition: its copies are over.
void Machine::finish(CopyGroup& group) {
  for (const CopyAgent& a : group.agents) {
    group.has_written = engine_.join(group.has_written, engine_.released(a.agent));
    give_agent(a.agent);
  }
  group.agents.clear();
}

void Machine::cp_async(std::uint32_t dst, const void* src, std::uint32_t bytes, bool in_bounds,
                       const void* otherwise, int line) {
  Thread& me = self();
  const Place to = shared(dst, bytes, bytes, "copies", line);
  const device::Row row = device::Row::cp_async;
  const std::shared_ptr<CopyGroup> group = open_group(me.open_cp_async, line);
  const race::Agent agent = agent_of_copy(*group, to.offset, bytes);
  if (in_bounds) {
    GlobalMemory::Region& region = global(src, bytes, bytes, false, "copies", line);
    if (races()) {
      record_global(region, reinterpret_cast<std::uintptr_t>(src), bytes,
                    access(agent, row, race::Kind::read, line), {&agent, 1});
    }
  }
  if (races()) {
    record_shared(*to.block, to.offset, bytes, access(agent, row, race::Kind::write, line),
                  {&agent, 1});
  }
  ++group->writing;
  std::array<std::byte, 16> missing = {};
  if (otherwise != nullptr) std::memcpy(missing.data(), otherwise, bytes);
  issue([=, this, &me] {
    mark_written(*to.block, to.offset, bytes, line);
    std::memcpy(&to.block->shared[to.offset], in_bounds ? src : missing.data(), bytes);
    --group->writing;
    wake(me, Wait::cp_async_wait);
    return false;
  });
}

void Machine::cp_async_commit(int) {
  Thread& me = self();
  me.cp_async.push_back(me.open_cp_async ? std::exchange(me.open_cp_async, nullptr)
                                         : std::make_shared<CopyGroup>());
}

void Machine::cp_async_wait(int groups, int line) {
  wait_groups(self().cp_async, groups, false, Wait::cp_async_wait, line);
}

void Machine::cp_async_arrive(std::uint32_t bar, int line) {
  Thread& me = self();
  const Place at = shared(bar, 8, 8, "arrives at", line);
  Mbarrier& m = mbarrier(*at.block, at.offset, "arrives at", line);
  require_initialized(*at.block, at.offset, m, line);
  std::vector<std::shared_ptr<CopyGroup>> groups(me.cp_async.begin(), me.cp_async.end());
  if (me.open_cp_async) groups.push_back(me.open_cp_async);
  for (const auto& group : groups) group->awaited = true;
  const race::Snapshot knows = races() ? engine_.release(me.agent) : race::Snapshot{};
  issue([this, at, line, groups, knows] {
    for (const auto& group : groups) {
      if (group->writing != 0) return true;
    }
    Mbarrier& m = mbarrier(*at.block, at.offset, "arrives at", line);
    if (m.pending == 0) {
      fail(line, fmt::format("arrives at {}, which waits for no arrival",
                             describe(*at.block, at.offset)));
    }
    if (races()) {
      m.arrivals_know = engine_.join(m.arrivals_know, knows);
      m.arrived_with = engine_.join(m.arrived_with, engine_.only_witnesses(knows));
    }
    for (const auto& group : groups) {
      if (!races()) continue;
      finish(*group);
      m.arrived_with = engine_.join(m.arrived_with, group->has_written);
    }
    --m.pending;
    end_phase_if_complete(*at.block, at.offset, m);
    progress();
    return false;
  });
}

}  // namespace palladium::emulator
