#include "tests/support/layouts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/terms.hpp"

namespace palladium::layout {
namespace {

using Value = std::int64_t;
constexpr Value undefined = -1;

// x[t][k]
using Registers = std::vector<std::vector<Value>>;

Registers blank(int threads, std::int64_t registers) {
  return Registers(static_cast<std::size_t>(threads),
                   std::vector<Value>(static_cast<std::size_t>(registers), undefined));
}

Value flat(const Extents& index, const Extents& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), Value{0});
}

// Element number of each register; undefined in padding.
Registers numbered(const Layout& l, const Extents& strides, Value offset) {
  Registers x = blank(l.threads(), l.registers());
  for (int t = 0; t < l.threads(); ++t) {
    for (std::int64_t k = 0; k < l.registers(); ++k) {
      const Extents index = l.index(t, k);
      if (l.in_domain(index)) x[t][k] = offset + flat(index, strides);
    }
  }
  return x;
}

struct Failure {
  std::string what;
};

std::string at(int t, std::int64_t k) {
  return " at t=" + std::to_string(t) + " k=" + std::to_string(k);
}

// Shared memory in units of elements.
class Scratch {
 public:
  Scratch(std::int64_t bytes, int element_bytes, bool one_warp_each)
      : cells_(static_cast<std::size_t>(bytes / element_bytes)),
        element_bytes_(element_bytes),
        one_warp_each_(one_warp_each) {}

  void begin_step() {
    for (Cell& cell : cells_) cell = {undefined, -1, cell.warp};
  }
  void store(std::int64_t address, Value value, int t) {
    Cell& cell = touch(address, t);
    if (cell.writer >= 0) throw Failure{"two threads store to one address" + at(t, address)};
    cell.value = value;
    cell.writer = t;
  }
  Value load(std::int64_t address, int t, bool may_be_padding) {
    const Cell& cell = touch(address, t);
    if (cell.writer < 0 && !may_be_padding)
      throw Failure{"a load of what no one stored" + at(t, address)};
    return cell.value;
  }

 private:
  struct Cell {
    Value value = undefined;
    int writer = -1;
    int warp = -1;
  };
  Cell& touch(std::int64_t address, int t) {
    const std::int64_t n = address / element_bytes_;
    if (address % element_bytes_ != 0) throw Failure{"misaligned address" + at(t, address)};
    if (n < 0 || n >= std::ssize(cells_))
      throw Failure{"address outside the scratch" + at(t, address)};
    Cell& cell = cells_[static_cast<std::size_t>(n)];
    if (one_warp_each_ && cell.warp >= 0 && cell.warp != t / 32) {
      throw Failure{"data crosses a warp behind a warp barrier" + at(t, address)};
    }
    cell.warp = t / 32;
    return cell;
  }

  std::vector<Cell> cells_;
  int element_bytes_;
  bool one_warp_each_;
};

std::int64_t address_of(const SharedSide& side, const SharedAccess& access, int t) {
  return (image_of(side.thread_offset, static_cast<std::uint32_t>(t)) ^ access.flip) +
         access.offset;
}

bool takes_part(const ThreadTest& test, int t) {
  return (static_cast<std::uint32_t>(t) & test.mask) == test.value;
}

// Calls f(thread, register slot, byte address) for what each thread's registers meet.
template <class F>
void for_each_element(const SharedSide& side, const SharedAccess& access, const ThreadTest& test,
                      int element_bytes, F f) {
  const int count = static_cast<int>(access.registers.size());
  for (int t = 0; t < 1 << side.thread_offset.size(); ++t) {
    if (!takes_part(test, t)) continue;
    if (side.mode == SharedMode::Plain) {
      const std::int64_t address = address_of(side, access, t);
      if (address % (count * element_bytes) != 0)
        throw Failure{"misaligned vector" + at(t, address)};
      for (int e = 0; e < count; ++e) f(t, e, address + e * element_bytes);
      continue;
    }
    for (int e = 0; e < count; ++e) {  // matrix e / 2; lane 8 m + i has the address of its row i
      const int lane = t % 32, pair = lane % 4 * 2 + e % 2, own = lane / 4;
      const bool transposed = side.mode == SharedMode::MatrixTransposed;
      const int row = transposed ? pair : own, column = transposed ? own : pair;
      const std::int64_t address = address_of(side, access, t / 32 * 32 + e / 2 * 8 + row);
      if (address % 16 != 0) throw Failure{"misaligned matrix row" + at(t, address)};
      f(t, e, address + column * 2);
    }
  }
}

void run_shared(const Plan& plan, const Registers& x, Registers& y) {
  Scratch scratch(plan.scratch_bytes, plan.element_bytes, plan.warp_barrier);
  for (const SharedStep& step : plan.shared.steps) {
    scratch.begin_step();
    for (const SharedAccess& access : step.stores) {
      for_each_element(plan.shared.store, access, step.storing, plan.element_bytes,
                       [&](int t, int e, std::int64_t address) {
                         const int k = access.registers[e];
                         scratch.store(address, k < 0 ? undefined : x[t].at(k), t);
                       });
    }
    for (const SharedAccess& access : step.loads) {
      for_each_element(plan.shared.load, access, step.loading, plan.element_bytes,
                       [&](int t, int e, std::int64_t address) {
                         const Value v = scratch.load(address, t, access.padded);
                         if (access.registers[e] >= 0) y[t].at(access.registers[e]) = v;
                       });
    }
  }
}

void run_selects(const std::vector<Select>& selects, int pack, Registers& words) {
  for (const Select& s : selects) {
    for (int t = 0; t < std::ssize(words); ++t) {
      if ((t >> s.lane_bit & 1) == 0) continue;
      const std::vector<Value> before = words[t];
      for (std::size_t w = 0; w < before.size(); ++w) {
        words[t][w] = before[(w / pack ^ s.flip) * pack + w % pack];
      }
    }
  }
}

void run_shuffles(const Plan& plan, const Registers& x, Registers& y) {
  const Shuffles& s = plan.shuffle;
  const int threads = plan.from.threads();
  for (const ShufflePass& pass : s.passes) {
    Registers in = blank(threads, s.words_in * s.pack), out = blank(threads, s.words_out * s.pack);
    for (int t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < in[t].size(); ++i) {
        if (pass.in.at(i) >= 0) in[t][i] = x[t].at(pass.in[i]);
      }
    }
    run_selects(s.before, s.pack, in);
    for (const Round& round : pass.rounds) {
      for (int t = 0; t < threads; ++t) {
        const int lane = t % 32;
        const int source =
            (s.by_xor
                 ? lane
                 : static_cast<int>(image_of(s.source_lane, static_cast<std::uint32_t>(lane)))) ^
            round.lane_flip;
        for (int e = 0; e < s.pack; ++e) {
          out[t].at(round.to * s.pack + e) = in[t / 32 * 32 + source].at(round.from * s.pack + e);
        }
      }
    }
    run_selects(s.after, s.pack, out);
    for (int t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < out[t].size(); ++i) {
        if (pass.out.at(i) >= 0) y[t].at(pass.out[i]) = out[t][i];
      }
    }
  }
}

// As emitted text does it: vectors, predicates by domain and window.
template <class F>
void for_each_vector(const Layout& l, const MemorySide& side, std::int64_t begin, std::int64_t end,
                     F f) {
  for (int t = 0; t < l.threads(); ++t) {
    if ((static_cast<std::uint32_t>(t) & side.replicated) != 0) continue;
    for (std::int64_t k = 0; k < l.registers(); k += side.vector) {
      const Extents index = l.index(t, k);
      const std::int64_t address = side.offset + flat(index, side.strides);
      if (!l.in_domain(index) || address < begin || address >= end) continue;
      if (address % side.vector != 0) throw Failure{"misaligned vector" + at(t, k)};
      for (int e = 0; e < side.vector; ++e) f(t, k + e, address + e - begin);
    }
  }
}

void run_memory(const Plan& plan, const Registers& x, Registers& y) {
  const MemoryMove& move = plan.memory;
  const int bytes = plan.element_bytes;
  Scratch scratch(plan.scratch_bytes, bytes, false);
  for (std::int64_t w = 0; w < move.windows; ++w) {
    scratch.begin_step();
    const std::int64_t begin = w * move.window, end = begin + move.window;
    for_each_vector(plan.from, move.store, begin, end, [&](int t, std::int64_t k, std::int64_t a) {
      scratch.store(a * bytes, x[t].at(k), t);
    });
    for_each_vector(plan.to, move.load, begin, end, [&](int t, std::int64_t k, std::int64_t a) {
      y[t].at(k) = scratch.load(a * bytes, t, false);
    });
  }
}

void run_renames(const Plan& plan, const Registers& x, Registers& y) {
  for (int t = 0; t < plan.from.threads(); ++t) {
    for (std::size_t k = 0; k < plan.sources.size(); ++k) {
      const int source = plan.sources[k];
      if (plan.kind == Move::Noop && source >= 0 && source != static_cast<int>(k)) {
        throw Failure{"a no-op renames" + at(t, static_cast<std::int64_t>(k))};
      }
      if (source >= 0) y[t].at(k) = x[t].at(source);
    }
  }
}

void execute(const Plan& plan, const Registers& x, Registers& y) {
  switch (plan.kind) {
  case Move::Noop:
  case Move::Rename: return run_renames(plan, x, y);
  case Move::Shuffle: return run_shuffles(plan, x, y);
  case Move::Shared: return run_shared(plan, x, y);
  case Move::Memory: return run_memory(plan, x, y);
  }
}

void compare(const Registers& y, const Registers& expected) {
  for (int t = 0; t < std::ssize(expected); ++t) {
    for (std::size_t k = 0; k < expected[t].size(); ++k) {
      if (expected[t][k] != undefined && y[t][k] != expected[t][k]) {
        throw Failure{"wrong element " + std::to_string(y[t][k]) + " instead of " +
                      std::to_string(expected[t][k]) + at(t, static_cast<std::int64_t>(k))};
      }
    }
  }
}

}  // namespace

Extents random_domain(Random& random) {
  for (;;) {
    Extents domain;
    const int rank = pick(random, 1, 3);
    for (int d = 0; d < rank; ++d) {
      domain.push_back(pick(random, 0, 2) != 0 ? 1 << pick(random, 0, 7) : pick(random, 1, 90));
    }
    const Value size = std::accumulate(domain.begin(), domain.end(), Value{1}, std::multiplies<>());
    if (size >= 8 && size <= 4096) return domain;
  }
}

int random_warps(Random& random) { return 4 << pick(random, 0, 2); }

Layout random_layout(Random& random, const Extents& domain, bool unit, int warps) {
  Layout l = replicated(domain, warps);
  Bits images;
  do {
    l.tile_bits.clear();
    for (const std::int64_t extent : domain) {
      const int full = extent <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(extent - 1));
      l.tile_bits.push_back(std::min(7, pick(random, 0, 2) == 0 ? pick(random, 0, full) : full));
    }
  } while (l.index_bits() > 13);
  for (int i = 0; i < l.index_bits(); ++i) images.push_back(1u << i);
  const auto shuffle = [&](auto& list) {
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1],
                list[static_cast<std::size_t>(pick(random, 0, static_cast<int>(i) - 1))]);
    }
  };
  shuffle(images);
  if (!unit) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      const auto j = static_cast<std::size_t>(pick(random, 0, static_cast<int>(images.size()) - 1));
      if (i != j) images[i] ^= images[j];
    }
  }
  std::vector<std::uint32_t*> slots;
  for (std::uint32_t& image : l.lane) slots.push_back(&image);
  for (std::uint32_t& image : l.warp) slots.push_back(&image);
  shuffle(slots);
  for (std::uint32_t* slot : slots) {
    if (images.empty() || (pick(random, 0, 4) == 0 && images.size() <= 7)) continue;
    *slot = images.back();
    images.pop_back();
  }
  l.reg = images;
  return l;
}

std::string run(const Plan& plan) {
  const bool memory = plan.kind == Move::Memory;
  const Extents from = memory ? plan.memory.store.strides : row_major_strides(plan.from.domain);
  const Extents to = memory ? plan.memory.load.strides : row_major_strides(plan.to.domain);
  const Registers x = numbered(plan.from, from, memory ? plan.memory.store.offset : 0);
  const Registers expected = numbered(plan.to, to, memory ? plan.memory.load.offset : 0);
  Registers y = blank(plan.to.threads(), plan.to.registers());
  try {
    execute(plan, x, y);
    compare(y, expected);
  } catch (const Failure& failure) {
    return failure.what + "\n  " + to_string(plan.from) + "\n  to " + to_string(plan.to) + "\n  " +
           std::to_string(plan.element_bytes) + " bytes, " + describe(plan);
  }
  return "";
}

namespace {

// One warp's access: the memory serves 128 bytes' worth of lanes (or a matrix) at a time, each
// bank one word at a time.
constexpr std::int64_t idle = -1;

void count(const std::vector<std::int64_t>& addresses, int bytes, Wavefronts& total) {
  const std::size_t together = 128 / static_cast<std::size_t>(std::max(bytes, 4));
  for (std::size_t first = 0; first < addresses.size(); first += together) {
    std::vector<std::int64_t> words;
    for (std::size_t i = first; i < std::min(first + together, addresses.size()); ++i) {
      if (addresses[i] == idle) continue;
      for (std::int64_t w = addresses[i] / 4; w <= (addresses[i] + bytes - 1) / 4; ++w)
        words.push_back(w);
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<long, 32> of_bank = {};
    for (const std::int64_t w : words) ++of_bank[static_cast<std::size_t>(w % 32)];
    total.counted += *std::max_element(of_bank.begin(), of_bank.end());
    total.ideal += static_cast<long>((words.size() + 31) / 32);
  }
}

void count(const SharedSide& side, const std::vector<SharedAccess>& accesses,
           const ThreadTest& test, int element_bytes, Wavefronts& total) {
  for (const SharedAccess& access : accesses) {
    for (int warp = 0; warp < 1 << (side.thread_offset.size() - lane_bits); ++warp) {
      const bool plain = side.mode == SharedMode::Plain;
      const int lanes = plain ? 32 : static_cast<int>(access.registers.size()) / 2 * 8;
      std::vector<std::int64_t> addresses;
      for (int t = warp * 32; t < warp * 32 + lanes; ++t) {
        addresses.push_back(takes_part(test, t) ? address_of(side, access, t) : idle);
      }
      const int bytes = plain ? static_cast<int>(access.registers.size()) * element_bytes : 16;
      count(addresses, bytes, total);
    }
  }
}

}  // namespace

Wavefronts wavefronts(const Plan& plan) {
  Wavefronts total;
  for (const SharedStep& step : plan.shared.steps) {
    count(plan.shared.store, step.stores, step.storing, plan.element_bytes, total);
    count(plan.shared.load, step.loads, step.loading, plan.element_bytes, total);
  }
  return total;
}

}  // namespace palladium::layout
