#include "runtime/emulator/block.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "codegen/base/format.hpp"

namespace palladium::emulator {

thread_local Block* Block::running = nullptr;

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

bool is_multiple(std::uintptr_t address, std::uint32_t bytes) {
  return (address & (bytes - 1)) == 0;
}

// Dynamic shared memory does not begin at 0 on a GPU either; a null address is then never valid.
constexpr std::uint32_t shared_base = 1024;
constexpr std::byte poison{0xff};  // NaN in every float type

constexpr const char* names[] = {"",        "warpgroup_sync", "block_sync", "warp_sync",
                                 "shuffle", "vote",           "mma",        "ldmatrix"};
const char* name(Collective c) { return names[static_cast<int>(c)]; }

std::string text(std::array<std::int64_t, 3> i) {
  return fmt::format("({}, {}, {})", i[0], i[1], i[2]);
}

std::array<std::int64_t, 3> block_index(std::uint32_t linear, std::array<std::int64_t, 3> grid) {
  return {linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]};
}

}  // namespace

GlobalMemory::GlobalMemory(const Launch& launch) {
  for (const Buffer& buffer : launch.buffers) {
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.base);
    const bool watched = buffer.written && buffer.one_writer && launch.options.detect_writers;
    const std::size_t element = static_cast<std::size_t>(std::max(1, buffer.element_bytes));
    regions_.push_back({&buffer, begin, begin + buffer.bytes,
                        race::WriterMap(watched ? buffer.bytes / element : 0)});
  }
  // Of an aliased input and output the written one comes first, so that it is found.
  std::stable_sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) {
    return std::tuple(a.begin, !a.buffer->written) < std::tuple(b.begin, !b.buffer->written);
  });
}

GlobalMemory::Region* GlobalMemory::find(std::uintptr_t address, std::size_t bytes) {
  const auto holds = [&](const Region& r) {
    return address >= r.begin && address < r.end && bytes <= r.end - address;
  };
  if (last_ < regions_.size() && holds(regions_[last_])) return &regions_[last_];
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (!holds(regions_[i])) continue;
    last_ = i;
    return &regions_[i];
  }
  return nullptr;
}

std::string GlobalMemory::nearest(std::uintptr_t address) const {
  const Region* best = nullptr;
  std::uintptr_t distance = 1 << 20;
  for (const Region& r : regions_) {
    const std::uintptr_t d =
        address < r.begin ? r.begin - address : address - std::min(address, r.end);
    if (d < distance) {
      distance = d;
      best = &r;
    }
  }
  if (best == nullptr) return "far from every buffer";
  const char* name = best->buffer->name.c_str();
  if (address < best->begin) return fmt::format("{} bytes before {}", best->begin - address, name);
  return fmt::format("at byte {} of {}, which has {}", address - best->begin, name,
                     best->buffer->bytes);
}

Block::Block(const Launch& launch, const Module& module)
    : launch_(launch),
      module_(module),
      global_(launch),
      scheduler_({.stack_bytes = 128 * 1024}),
      threads_(static_cast<std::size_t>(launch.warpgroups) * 128),
      shared_(launch.shared_bytes),
      shared_written_(launch.shared_bytes) {
  const int count = static_cast<int>(threads_.size());
  const int cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  for (int i = 0; i < count; ++i) {
    abi::Ids& ids = threads_[i].ids;
    ids.thread = i % 128;
    ids.warpgroup = i / 128;
    ids.warp = i / 32 % 4;
    ids.lane = i % 32;
    ids.cluster_size = cluster;
    ids.shared_base = shared_base;
    ids.poison = launch.options.out_of_bounds == OutOfBounds::poison;
    for (int d = 0; d < 3; ++d) ids.grid[d] = static_cast<int>(launch.grid[d]);
  }
  for (int first = 0; first < count; first += 32) warps_.push_back({.first = first, .count = 32});
  for (int first = 0; first < count; first += 128) {
    warpgroups_.push_back({.first = first, .count = 128});
  }
  everyone_.count = count;
  scheduler_.on_deadlock([this](fiber::Scheduler&) { deadlock(); });
}

void Block::run(std::array<std::int64_t, 3> index) {
  index_ = index;
  linear_ = static_cast<std::uint32_t>(index[0] +
                                       launch_.grid[0] * (index[1] + launch_.grid[1] * index[2]));
  std::fill(shared_.begin(), shared_.end(), poison);
  std::fill(shared_written_.begin(), shared_written_.end(), 0);
  std::uint32_t rank = 0;
  for (int d = 2; d >= 0; --d) {
    rank = rank * launch_.cluster[d] + static_cast<std::uint32_t>(index[d] % launch_.cluster[d]);
  }
  for (Thread& thread : threads_) {
    for (int d = 0; d < 3; ++d) thread.ids.block[d] = static_cast<int>(index[d]);
    thread.ids.cluster_rank = rank;
    scheduler_.spawn([this] { module_.run(launch_.parameters); });
  }
  Block* const outer = std::exchange(running, this);
  try {
    scheduler_.run();
  } catch (...) {
    running = outer;
    throw;
  }
  running = outer;
}

// ---- reports

std::string Block::describe_thread() const {
  if (scheduler_.current() == nullptr) return fmt::format("block {}", text(index_));
  const std::uint32_t id = scheduler_.current()->id();
  return fmt::format("thread {} of block {} (warpgroup {}, warp {}, lane {})", id, text(index_),
                     id / 128, id / 32 % 4, id % 32);
}

// "\n  emitted line 17: pl::load_shared(...)\n  at softmax.cpp:12"
std::string Block::where(int line) const {
  std::string_view rest = launch_.text;
  for (int i = 1; i < line && !rest.empty(); ++i) {
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  std::string_view code = rest.substr(0, rest.find('\n'));
  code.remove_prefix(std::min(code.find_first_not_of(' '), code.size()));
  std::string result = fmt::format("\n  emitted line {}: {}", line, code);
  if (line >= 1 && line <= static_cast<int>(launch_.lines.size())) {
    const std::string user = to_string(launch_.lines[line - 1]);
    if (!user.empty()) result += "\n  at " + user;
  }
  return result;
}

void Block::fail(int line, const std::string& what) {
  throw InternalError(fmt::format("emulator: kernel '{}': {} {}{}", launch_.kernel,
                                  describe_thread(), what, where(line)));
}

void Block::blame_user(int line, const std::string& what) {
  const bool known = line >= 1 && line <= static_cast<int>(launch_.lines.size());
  throw CompileError(known ? launch_.lines[line - 1] : Location{},
                     fmt::format("kernel '{}': {}", launch_.kernel, what));
}

void Block::deadlock() {
  struct Group {
    int waiting = 0;
    std::uint32_t first = 0, last = 0;
  };
  std::map<std::tuple<Collective, int>, Group> groups;
  int returned = 0;
  for (const auto& fiber : scheduler_.fibers()) {
    if (fiber->done()) {
      ++returned;
      continue;
    }
    const Thread& thread = threads_[fiber->id()];
    Group& group = groups[{thread.waits_in, thread.line}];
    if (group.waiting++ == 0) group.first = fiber->id();
    group.last = fiber->id();
  }
  std::string what =
      fmt::format("deadlock: of {} threads {} have returned", threads_.size(), returned);
  for (const auto& [key, group] : groups) {
    const auto& [kind, at] = key;
    what += fmt::format("\n  {} (of {} to {}) wait in {}{}", group.waiting, group.first, group.last,
                        name(kind), where(at));
  }
  throw InternalError(fmt::format("emulator: kernel '{}': block {} is in a {}", launch_.kernel,
                                  text(index_), what));
}

// ---- collectives

template <class Finish>
void Block::meet(Meeting& meeting, Collective kind, int variant, int line, Finish finish) {
  if (meeting.arrived == 0) {
    meeting.kind = kind;
    meeting.variant = variant;
    meeting.line = line;
  } else if (meeting.kind != kind || meeting.variant != variant || meeting.line != line) {
    fail(line, fmt::format("reaches {} while threads that must take part wait in {} elsewhere:{}",
                           name(kind), name(meeting.kind), where(meeting.line)));
  }
  if (++meeting.arrived < meeting.count) {
    Thread& thread = self();
    thread.waits_in = kind;
    thread.line = line;
    scheduler_.park(&meeting);
    return;
  }
  finish();
  meeting.arrived = 0;
  for (int i = meeting.first; i < meeting.first + meeting.count; ++i) {
    if (scheduler_.fibers()[i].get() != scheduler_.current()) {
      scheduler_.unpark(*scheduler_.fibers()[i]);
    }
  }
}

void Block::warpgroup_sync(int warpgroups, int line) {
  if (warpgroups != launch_.warpgroups) {
    fail(line, fmt::format("calls warpgroup_sync<{}> in a block of {} warpgroups", warpgroups,
                           launch_.warpgroups));
  }
  meet(warpgroups_[self().ids.warpgroup], Collective::warpgroup_sync, 0, line, [] {});
}

void Block::block_sync(int line) {
  meet(everyone_, Collective::block_sync, 0, line, [] {});
}

void Block::warp_sync(int line) {
  meet(warp_of_self(), Collective::warp_sync, 0, line, [] {});
}

std::uint64_t Block::shuffle(std::uint64_t value, abi::Shuffle kind, std::uint32_t operand,
                             int line) {
  Thread& me = self();
  me.value = value;
  me.operand = operand;
  if (operand >= 32) fail(line, fmt::format("shuffles by {}, which is not below 32", operand));
  Meeting& warp = warp_of_self();
  meet(warp, Collective::shuffle, static_cast<int>(kind), line, [&] {
    Thread* lanes = &threads_[warp.first];
    for (std::uint32_t i = 0; i < 32; ++i) {
      std::uint32_t from = i;
      switch (kind) {
      case abi::Shuffle::by_xor: from = i ^ lanes[i].operand; break;
      case abi::Shuffle::by_index: from = lanes[i].operand; break;
      case abi::Shuffle::up:
        if (i >= lanes[i].operand) from = i - lanes[i].operand;
        break;
      case abi::Shuffle::down:
        if (i + lanes[i].operand < 32) from = i + lanes[i].operand;
        break;
      }
      lanes[i].result = lanes[from].value;
    }
  });
  return me.result;
}

std::uint32_t Block::ballot(bool p, int line) {
  Thread& me = self();
  me.value = p;
  Meeting& warp = warp_of_self();
  meet(warp, Collective::vote, 0, line, [&] {
    std::uint32_t bits = 0;
    for (int i = 0; i < 32; ++i)
      bits |= static_cast<std::uint32_t>(threads_[warp.first + i].value) << i;
    for (int i = 0; i < 32; ++i) threads_[warp.first + i].result = bits;
  });
  return static_cast<std::uint32_t>(me.result);
}

// ---- memory

void Block::load_global(void* dst, const void* p, std::uint32_t bytes, int line) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (global_.find(address, bytes) == nullptr) {
    fail(line,
         fmt::format("reads {} bytes outside every buffer, {}", bytes, global_.nearest(address)));
  }
  if (!is_multiple(address, bytes)) {
    fail(line, fmt::format("reads {} bytes at an address that is no multiple of it, {}", bytes,
                           global_.nearest(address)));
  }
  copy(dst, p, bytes);
}

void Block::store_global(void* p, const void* src, std::uint32_t bytes, int line) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  GlobalMemory::Region* region = global_.find(address, bytes);
  if (region == nullptr) {
    fail(line,
         fmt::format("writes {} bytes outside every buffer, {}", bytes, global_.nearest(address)));
  }
  if (!is_multiple(address, bytes)) {
    fail(line, fmt::format("writes {} bytes at an address that is no multiple of it, {}", bytes,
                           global_.nearest(address)));
  }
  if (!region->buffer->written) {
    fail(line, fmt::format("writes to {}, which is only read", region->buffer->name));
  }
  if (region->writers.elements() != 0) {
    const std::size_t element = static_cast<std::size_t>(region->buffer->element_bytes);
    const std::size_t first = (address - region->begin) / element;
    const std::size_t last = (address - region->begin + bytes - 1) / element;
    if (last < region->writers.elements()) {
      const auto conflict = region->writers.record(
          first, last - first + 1, {.program = linear_, .tag = static_cast<std::uint32_t>(line)});
      if (conflict) {
        blame_user(line, fmt::format(
                             "blocks {} and {} both write element {} of {}; an axis of the grid on "
                             "which an output block does not depend must be sequential",
                             text(block_index(conflict->first.program, launch_.grid)), text(index_),
                             conflict->element, region->buffer->name));
      }
    }
  }
  copy(p, src, bytes);
}

std::byte* Block::shared(std::uint32_t address, std::uint32_t bytes, const char* what, int line) {
  const std::uint32_t offset = address - shared_base;
  if (address < shared_base || offset > shared_.size() || bytes > shared_.size() - offset) {
    fail(line, fmt::format("{} {} bytes of shared memory at offset {} of {}", what, bytes,
                           static_cast<std::int64_t>(address) - shared_base, shared_.size()));
  }
  if (!is_multiple(offset, bytes)) {
    fail(line, fmt::format("{} {} bytes of shared memory at offset {}, which is no multiple of it",
                           what, bytes, offset));
  }
  return shared_.data() + offset;
}

void Block::load_shared(void* dst, std::uint32_t address, std::uint32_t bytes, bool padded,
                        int line) {
  const std::byte* from = shared(address, bytes, "reads", line);
  const std::size_t offset = static_cast<std::size_t>(from - shared_.data());
  if (!padded && std::memchr(&shared_written_[offset], 0, bytes) != nullptr) {
    fail(line, fmt::format("reads {} bytes of shared memory at offset {} that nobody wrote", bytes,
                           offset));
  }
  copy(dst, from, bytes);
}

void Block::store_shared(std::uint32_t address, const void* src, std::uint32_t bytes, int line) {
  std::byte* to = shared(address, bytes, "writes", line);
  copy(to, src, bytes);
  std::memset(&shared_written_[static_cast<std::size_t>(to - shared_.data())], 1, bytes);
}

void Block::check(const char* what, int line) {
  blame_user(line, fmt::format("{} (in block {})", what, text(index_)));
}

// ---- matrices

void Block::mma(void* d, const void* a, const void* b, int k, abi::Product product, int line) {
  Thread& me = self();
  me.d = d;
  me.a = a;
  me.b = b;
  Meeting& warp = warp_of_self();
  meet(warp, Collective::mma, k * 8 + static_cast<int>(product), line,
       [&] { multiply(warp, k, product); });
}

void Block::ldmatrix(void* dst, std::uint32_t row, int matrices, bool transposed, int line) {
  Thread& me = self();
  me.d = dst;
  me.operand = row;
  Meeting& warp = warp_of_self();
  meet(warp, Collective::ldmatrix, matrices * 2 + transposed, line,
       [&] { read_matrices(warp, matrices, transposed, line); });
}

}  // namespace palladium::emulator
