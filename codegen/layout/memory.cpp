#include "codegen/layout/memory.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

constexpr int longest_run = 64;  // bytes that a thread takes by accesses which follow one another
constexpr int vector_bytes = 16, sector_bytes = 32, bank_bytes = 4, banks = 32;

// Clocks: a sector moved to use, one that another warp has moved already, one moved in vain, an
// instruction of a warpgroup. Partial sectors cost a store more, for they are read and merged; of
// those that stores one behind the other fill together each takes a place in the L2 cache's queue.
constexpr double used_sector = 1.5, cached_sector = 0.25, wasted_load = 0.5, wasted_store = 1.5,
                 apart_store = 0.5, instruction = 4;

// Register bits 0.. are the low index bits of the last dimension, and nothing else touches those.
bool registers_hold(const Layout& l, int v) {
  const std::uint32_t low = static_cast<std::uint32_t>(v) - 1;
  if ((l.thread_span() & low) != 0 || v > l.tile(l.rank() - 1)) return false;
  for (std::size_t i = 0; i < l.reg.size() || 1 << i < v; ++i) {
    const std::uint32_t wanted = 1 << i < v ? 1u << i : 0;
    if (i >= l.reg.size() || (l.reg[i] & (wanted != 0 ? ~0u : low)) != wanted) return false;
  }
  return true;
}

bool vector_fits(const Layout& l, const MemoryFacts& facts, int v) {
  const int last = l.rank() - 1;
  if (v * facts.element_bytes > vector_bytes || facts.alignment % (v * facts.element_bytes) != 0) {
    return false;
  }
  if (!registers_hold(l, v) || l.domain[last] % v != 0 || facts.last_extent_multiple % v != 0)
    return false;
  for (int d = 0; d < last; ++d) {
    if (l.domain[d] > 1 && facts.strides[d].value % v != 0) return false;
  }
  return true;
}

// Sectors that one access of a warp touches: lanes less than a sector apart share them.
double sectors_of_access(std::span<const std::int64_t> distances, std::int64_t bytes) {
  double far = 1;
  for (const std::int64_t d : distances) {
    if (d == 0) continue;
    if (d < sector_bytes)
      bytes += d;
    else
      far *= 2;
  }
  return far * std::ceil(static_cast<double>(bytes) / sector_bytes);
}

double ideal_sectors_of_access(std::span<const std::int64_t> distances, std::int64_t bytes) {
  const auto apart =
      std::count_if(distances.begin(), distances.end(), [](std::int64_t d) { return d != 0; });
  return std::max(1.0, static_cast<double>(bytes << apart) / sector_bytes);
}

// Elements of the last dimension that follow one another in a thread's registers.
std::int64_t run_of(const Layout& l) {
  std::size_t bits = 0;
  while (bits < l.reg.size() && l.reg[bits] == 1u << bits) ++bits;
  return std::int64_t{1} << std::min<std::size_t>(bits,
                                                  static_cast<std::size_t>(l.tile_bits.back()));
}

// Lanes whose accesses the memory serves together: 128 bytes' worth.
int lanes_together(int access_bytes) {
  return std::countr_zero(128u / static_cast<unsigned>(std::max(access_bytes, bank_bytes)));
}

// The tile-index bit whose byte offset is `offset`; 0 if none.
std::uint32_t index_at(const Bits& offsets, std::uint32_t offset) {
  const auto it = std::find(offsets.begin(), offsets.end(), offset);
  return it == offsets.end() ? 0 : 1u << (it - offsets.begin());
}

}  // namespace

MemoryFacts dense(const Layout& layout, int element_bytes) {
  MemoryFacts facts{element_bytes, std::vector<Stride>(layout.domain.size()), vector_bytes, 0};
  std::int64_t stride = 1;
  for (int d = layout.rank() - 1; d >= 0; --d) {
    facts.strides[d] = Stride::fixed(stride);
    stride *= layout.domain[d];
  }
  return facts;
}

int vector_width(const Layout& l, const MemoryFacts& facts) {
  if (l.rank() == 0 || !facts.strides.back().known || facts.strides.back().value != 1) return 1;
  int v = 1;
  while (vector_fits(l, facts, 2 * v)) v *= 2;
  return v;
}

AccessCost access_cost(const Layout& layout, int vector, int element_bytes,
                       std::span<const std::int64_t> distances, int warps_alike, Around around) {
  double filled = 1;  // the part of the registers that is not padding
  for (int d = 0; d < layout.rank(); ++d) {
    const auto padded = static_cast<double>(layout.repetitions(d) << layout.tile_bits[d]);
    if (padded > 0) filled *= static_cast<double>(layout.domain[d]) / padded;
  }
  AccessCost cost{.accesses = layout.registers() / vector * around.accesses};
  const std::int64_t wanted = std::int64_t{vector} * element_bytes / around.accesses;
  const std::int64_t bytes = around.bytes > 0 ? around.bytes : wanted;
  const double in_all = layout.warps() * filled * static_cast<double>(cost.accesses);
  // What a thread loads by accesses that follow one another is brought by the first of them; of
  // what it stores each goes to the L2 cache by itself.
  const std::int64_t run = run_of(layout);
  const std::int64_t of_run = run / vector * around.accesses;
  const bool follow = bytes == vector_bytes && of_run * bytes <= longest_run;
  const std::int64_t joined = follow ? of_run : 1;
  const double loaded =
      in_all * sectors_of_access(distances, bytes * joined) / static_cast<double>(joined);
  const double stored = in_all * sectors_of_access(distances, bytes);
  const double ideal = in_all * ideal_sectors_of_access(distances, std::min(wanted, bytes));
  const auto wasted = [&](double moved) { return std::max(0.0, moved - ideal); };
  cost.sectors = std::llround(loaded);
  cost.ideal_sectors = std::llround(ideal);
  const double once = ideal / warps_alike;
  const double common = used_sector * once + cached_sector * (ideal - once) +
                        instruction * layout.warpgroups() * static_cast<double>(cost.accesses);
  cost.load = common + wasted_load * wasted(loaded);
  cost.store =
      common + wasted_store * wasted(loaded) + apart_store * (wasted(stored) - wasted(loaded));
  return cost;
}

Bits swizzled_offsets(int row_bits, int column_bits, int element_bytes, Swizzle swizzle) {
  const std::uint32_t width = static_cast<std::uint32_t>(element_bytes) << column_bits;
  std::uint32_t panel = width;
  if (swizzle == Swizzle::B32) panel = 32;
  if (swizzle == Swizzle::B64) panel = 64;
  if (swizzle == Swizzle::B128) panel = 128;
  if (width < panel) {
    throw InternalError("swizzle of " + std::to_string(panel) + " bytes on rows of " +
                        std::to_string(width));
  }
  const std::uint32_t chunks = swizzle == Swizzle::None ? 0 : panel / 16 - 1;
  Bits offsets;
  for (int i = 0; i < column_bits; ++i) {
    const std::uint32_t bytes = static_cast<std::uint32_t>(element_bytes) << i;
    offsets.push_back(bytes < panel ? bytes : bytes << row_bits);
  }
  for (int i = 0; i < row_bits; ++i) offsets.push_back(panel << i);
  for (std::uint32_t& offset : offsets) offset ^= (offset >> 7 & chunks) << 4;
  return offsets;
}

SharedFit fit_shared(const Layout& layout, const Bits& offsets, int element_bytes) {
  if (std::ssize(offsets) != layout.index_bits() || layout.repetitions() != 1) {
    throw InternalError("shared memory of " + std::to_string(offsets.size()) +
                        " index bits for one tile of " + to_string(layout));
  }
  SharedFit fit;
  const auto low = [&](int i) {
    return index_at(offsets, static_cast<std::uint32_t>(element_bytes) << i);
  };
  const auto in_registers = [&](std::uint32_t image) {
    return image != 0 && std::find(layout.reg.begin(), layout.reg.end(), image) != layout.reg.end();
  };
  for (int i = 0; 2 * fit.vector * element_bytes <= vector_bytes && in_registers(low(i)); ++i) {
    fit.vector *= 2;
  }
  fit.conflicts = bank_conflicts(compose(offsets, layout.lane), fit.vector * element_bytes);
  if (element_bytes != 2 || layout.reg.empty()) return fit;
  const Bits& lane = layout.lane;
  const Bits pair{layout.reg[0], lane[0], lane[1]}, row{lane[2], lane[3], lane[4]};
  const Bits lowest{low(0), low(1), low(2)};
  if (std::find(lowest.begin(), lowest.end(), 0u) != lowest.end()) return fit;
  if (lowest == pair) {
    fit.matrix = MatrixMove::Plain;
    fit.matrix_conflicts = bank_conflicts(compose(offsets, row), vector_bytes);
  } else if (lowest == row) {
    fit.matrix = MatrixMove::Transposed;
    fit.matrix_conflicts = bank_conflicts(compose(offsets, pair), vector_bytes);
  }
  return fit;
}

int bank_conflicts(std::span<const std::uint32_t> lanes, int access_bytes) {
  Solver words, word_banks;
  const auto add = [&](std::uint32_t word) {
    words.add(word);
    word_banks.add(word & (banks - 1));
  };
  for (int word = 1; word * bank_bytes < access_bytes; word *= 2) {
    add(static_cast<std::uint32_t>(word));
  }
  const int together = std::min(lanes_together(access_bytes), static_cast<int>(lanes.size()));
  for (int i = 0; i < together; ++i) add(lanes[i] / bank_bytes);
  return 1 << (words.rank() - word_banks.rank());
}

}  // namespace palladium::layout
