// Which loops over repetitions of a nest are loops of its text: reduced dimensions first, until the
// nest is short enough.
#include <algorithm>
#include <numeric>
#include <vector>

#include "codegen/layout/transfer.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/layout_costs.hpp"
#include "codegen/passes/layouts.hpp"

namespace palladium::passes {
namespace {

using layout::Layout;

constexpr std::int64_t max_unrolled_registers = 64;  // longer nests become run-time loops
constexpr std::int64_t max_unrolled_operations = 1024;
constexpr std::int64_t most_together = 8;          // iterations of one, in its text
constexpr std::int64_t max_unrolled_reads = 4096;  // operations of nests that read registers

class Rolling {
 public:
  explicit Rolling(Program& l) : l_(l) {}

  void run(LoopNest& p) {
    const Layout& l = p.layout;
    p.rolled.assign(static_cast<std::size_t>(l.rank()), 0);
    std::int64_t size = l.registers() * widest(p);
    const bool brief = size * operations(p) <= max_unrolled_operations;
    if (fills_registers(p.sink) || (size <= max_unrolled_registers && brief)) return;
    roll_dimensions(p, size);
    stand_together(p, size);
  }

 private:
  // Leaves `size` elements in the text.
  void roll_dimensions(LoopNest& p, std::int64_t& size) {
    const Layout& l = p.layout;
    const std::vector<bool> held = held_dimensions(p);
    const auto is_held = [&](int d) { return held[static_cast<std::size_t>(d)]; };
    const auto roll = [&](int d) {
      if (l.repetitions(d) == 1 || is_held(d)) return;
      p.rolled[d] = 1;
      size /= l.repetitions(d);
    };
    if (const Reduce* fold = std::get_if<Reduce>(&p.sink)) {
      for (const int d : fold->reduced) roll(d);
      const Layout result = layout::drop(l, fold->reduced);
      const bool few = result.registers() <= Reduce::most_registers;
      // Where registers are read along what is folded, no loop is shorter.
      const bool reads_registers = std::ranges::any_of(fold->reduced, is_held);
      if (few && size <= (reads_registers ? 8 : 2) * max_unrolled_registers) return;
      if (!few) share_result(*fold);
    }
    for (int d = 0; d < l.rank(); ++d)
      if (p.rolled[d] == 0) roll(d);
  }

  // Of the innermost run-time loop a few iterations stand in its text together, so that their loads
  // are under way together.
  void stand_together(LoopNest& p, std::int64_t size) const {
    if (std::holds_alternative<Scan>(p.sink)) return;
    int innermost = -1;
    for (int d = 0; d < p.layout.rank(); ++d)
      if (p.rolled[d] > 0 && (innermost < 0 || is_folded(p, d) || !is_folded(p, innermost)))
        innermost = d;
    if (innermost < 0) return;
    const std::int64_t repetitions = p.layout.repetitions(innermost);
    const std::int64_t most = std::max<std::int64_t>(
        1, std::min({most_together, repetitions, max_unrolled_registers / size,
                     max_unrolled_operations / (size * operations(p))}));
    std::int64_t together = most;
    while (repetitions % together != 0) --together;
    if (2 * together <= most) together = most;  // those left over stand alone
    p.rolled[innermost] = static_cast<int>(together);
  }

  static bool is_folded(const LoopNest& p, int d) {
    const Reduce* const fold = std::get_if<Reduce>(&p.sink);
    return fold != nullptr && std::ranges::find(fold->reduced, d) != fold->reduced.end();
  }

  // Dimensions along which the nest reads registers, which no run-time loop can index. None where
  // the text would be too long: then what is read goes through shared memory.
  std::vector<bool> held_dimensions(const LoopNest& p) const {
    std::vector<bool> held(p.domain.size());
    for (const Read& r : register_reads(l_, p))
      for (const int d : r.map)
        if (d >= 0) held[static_cast<std::size_t>(d)] = true;
    std::int64_t size = (std::int64_t{1} << p.layout.reg.size()) * widest(p) * operations(p);
    for (int d = 0; d < p.layout.rank(); ++d)
      if (held[static_cast<std::size_t>(d)]) size *= p.layout.repetitions(d);
    if (size > max_unrolled_reads) held.assign(held.size(), false);
    return held;
  }

  // Whether what the nest makes is a whole value in registers, which no run-time loop can index.
  bool fills_registers(const Sink& sink) const {
    const StorageId filled = storage_filled(sink);
    return filled && !std::holds_alternative<Reduce>(sink) && !l_.storages[filled].in_shared();
  }

  // Operations per element that the nest inlines.
  std::int64_t operations(const LoopNest& p) const {
    constexpr int limit = 1024;
    return p.value == graph::no_value ? 1 : std::max(1, passes::operations(l_, p.value, limit));
  }

  std::int64_t widest(const LoopNest& p) const {
    return p.value == graph::no_value ? 1 : words(l_.graph[p.value].type.dtype);
  }

  // The result has too many registers for a run-time loop: each iteration leaves its part in
  // shared memory.
  void share_result(const Reduce& fold) {
    Storage& s = l_.storages[fold.storage];
    if (!s.in_registers()) return;
    s.in = Shared{.row_stride = s.shape.empty() ? 1 : s.shape.back()};
  }

  Program& l_;
};

}  // namespace

void roll_loops(Program& l, LoopNest& p) { Rolling(l).run(p); }

}  // namespace palladium::passes
