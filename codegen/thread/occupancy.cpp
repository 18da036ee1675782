#include "codegen/thread/occupancy.hpp"

#include <algorithm>
#include <climits>
#include <iterator>

#include "codegen/base/checked.hpp"
#include "codegen/graph/limits.hpp"

namespace palladium::thread {
namespace {

constexpr std::int64_t KiB = 1024;

// CUDA programming guide, "Technical specifications per compute capability", and data sheets.
constexpr Multiprocessor multiprocessors[] = {
    {75, 32, 16, 64 * KiB, 64 * KiB, "T4", 40},
    {80, 64, 32, 164 * KiB, 163 * KiB, "A100 SXM", 108},
    {86, 48, 16, 100 * KiB, 99 * KiB, "A10", 72},
    {87, 48, 16, 164 * KiB, 163 * KiB, "Jetson AGX Orin", 16},
    {89, 48, 24, 100 * KiB, 99 * KiB, "L40S", 142},
    {90, 64, 32, 228 * KiB, 227 * KiB, "H100 SXM", 132},
    {100, 64, 32, 228 * KiB, 227 * KiB, "B200", 148},
    {110, 48, 24, 228 * KiB, 227 * KiB, "Jetson AGX Thor", 20},
    {120, 48, 24, 100 * KiB, 99 * KiB, "RTX PRO 6000 Blackwell", 188},
    {121, 48, 24, 100 * KiB, 99 * KiB, "GB10", 48},
};

// Of all of them. Registers are given to warps, in each of four parts of the multiprocessor.
constexpr int parts = 4, registers = 64 << 10, most_registers_of_thread = 255;
constexpr int register_unit = 256;
// From sm_80 on the system takes some of each block's shared memory.
constexpr std::int64_t reserved_bytes = KiB, shared_unit = 128, shared_unit_of_sm_75 = 256;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

const Multiprocessor& multiprocessor(int compute_capability) {
  const Multiprocessor* last = std::begin(multiprocessors);
  for (const Multiprocessor& m : multiprocessors)
    if (m.compute_capability <= compute_capability) last = &m;
  return *last;
}

Occupancy occupancy(int compute_capability, int threads, const Resources& r) {
  const Multiprocessor& m = multiprocessor(compute_capability);
  const int warps = std::max(1, (threads + graph::warp_threads - 1) / graph::warp_threads);
  Occupancy o{.most_warps = m.warps, .by_warps = m.warps / warps, .by_slots = m.blocks};

  const auto of_warp = static_cast<int>(
      round_up(std::int64_t{std::max(1, r.registers)} * graph::warp_threads, register_unit));
  if (r.registers <= most_registers_of_thread)
    o.by_registers = registers / parts / of_warp * parts / static_cast<int>(round_up(warps, parts));

  const bool is_old = compute_capability < 80;
  const std::int64_t of_block = round_up(r.shared_bytes + (is_old ? 0 : reserved_bytes),
                                         is_old ? shared_unit_of_sm_75 : shared_unit);
  o.by_shared_memory =
      static_cast<int>(of_block == 0                           ? m.blocks
                       : r.shared_bytes > m.block_shared_bytes ? 0
                                                               : m.shared_bytes / of_block);

  o.blocks = std::min({o.by_registers, o.by_shared_memory, o.by_warps, o.by_slots});
  o.warps = o.blocks * warps;
  return o;
}

std::int64_t resident_blocks(int compute_capability, int threads, int cluster_blocks,
                             const Resources& resources) {
  const std::int64_t blocks =
      std::int64_t{occupancy(compute_capability, threads, resources).blocks} *
      multiprocessor(compute_capability).count;
  return blocks / cluster_blocks * cluster_blocks;
}

std::optional<std::int64_t> programs_of_call(const graph::Graph& g) {
  Checked all = 1;
  for (const int blocks : g.cluster) all = all * blocks;
  for (std::size_t axis = 0; axis < g.semantics.size(); ++axis) {
    if (g.semantics[axis] != graph::Semantics::parallel) continue;
    const Dim& programs = g.mapping.grid[axis];
    if (!programs.is_static()) return {};
    all = all * programs.value();
  }
  return all.value_or(INT64_MAX);
}

int blocks_of_call(const graph::Graph& g, int compute_capability) {
  const std::int64_t count = multiprocessor(compute_capability).count,
                     blocks = programs_of_call(g).value_or(INT64_MAX);
  return static_cast<int>(
      std::clamp<std::int64_t>(blocks / count + (blocks % count != 0), 1, INT_MAX));
}

}  // namespace palladium::thread
