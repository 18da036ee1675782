// Relayouts through shared memory by a linear map from tile-index bits to offsets.
//
// The lowest address bits are vectors that one side or both keep in registers. Above them stand
// the bank bits. The lanes that the memory serves together must differ in those: a bit that both
// sides' lanes have simply becomes one; two that only one side has are paired, the storing side's
// becomes a bank bit, the loading side's a bit above the banks that is also added to the former's
// (this is the swizzle). Bits that are in registers or warps on both sides may be stepped over,
// one value at a time through the same scratch.
#include <algorithm>
#include <array>
#include <bit>

#include "codegen/layout/memory.hpp"
#include "codegen/layout/relayout_parts.hpp"

namespace palladium::layout {
namespace {

constexpr int widest_bytes = 16, row_bytes = 128;

int log2_of(int power_of_two) { return std::countr_zero(static_cast<unsigned>(power_of_two)); }

bool has(const Bits& images, std::uint32_t image) {
  return std::find(images.begin(), images.end(), image) != images.end();
}

struct Side {
  const OnCommonTile& tile;
  SharedMode mode = SharedMode::Plain;

  // The bits of a row's address in the matrix modes, and of the elements in a row.
  Bits matrix_rows() const {
    const Bits& lane = tile.lane();
    return mode == SharedMode::Matrix ? Bits{lane[2], lane[3], lane[4]}
                                      : Bits{tile.reg()[0], lane[0], lane[1]};
  }
  Bits served_together(const Bits& low, int element_bytes) const {
    if (mode != SharedMode::Plain) return matrix_rows();
    const int bytes = std::max(4, vector(low) * element_bytes);
    return {tile.lane().begin(), tile.lane().begin() + log2_of(row_bytes / bytes)};
  }
  // Registers of one matrix instruction: a pair, times up to four matrices.
  int matrix_register_bits() const { return std::min(3, static_cast<int>(tile.reg().size())); }

  // Elements of a vector access when `low` are the lowest address bits.
  int vector(const Bits& low) const {
    if (mode != SharedMode::Plain) return 1 << matrix_register_bits();
    int v = 1;
    for (const std::uint32_t image : low) {
      if (!has(tile.reg(), image)) break;
      v *= 2;
    }
    return v;
  }
  // The bits that vary among accesses served together, without those in `low`.
  Bits phase(const Bits& low, int element_bytes) const {
    Bits bits;
    for (const std::uint32_t image : served_together(low, element_bytes)) {
      if (image != 0 && !has(low, image)) bits.push_back(image);
    }
    return bits;
  }
  bool steps_over(std::uint32_t image) const {
    const Bits& reg = tile.reg();
    if (has(tile.warp(), image)) return true;
    const auto it = std::find(reg.begin(), reg.end(), image);
    return it != reg.end() &&
           (mode == SharedMode::Plain || it - reg.begin() >= matrix_register_bits());
  }
  double instructions(const Bits& low) const {
    return static_cast<double>(tile.base().registers()) / vector(low);
  }
  // Per warp, if there are no conflicts.
  double wavefronts(const Bits& low, int element_bytes) const {
    if (mode != SharedMode::Plain) return instructions(low) * (vector(low) / 2);
    return instructions(low) * std::max(1, vector(low) * element_bytes / 4);
  }
  int conflicts(const Bits& low, const Bits& offsets, int element_bytes) const {
    Bits lanes = compose(offsets, mode == SharedMode::Plain ? tile.lane() : matrix_rows());
    for (std::uint32_t& lane : lanes) lane *= static_cast<std::uint32_t>(element_bytes);
    return bank_conflicts(lanes,
                          mode == SharedMode::Plain ? vector(low) * element_bytes : widest_bytes);
  }
};

// Lowest address bits to try, with the modes that they suit.
struct Plot {
  Bits low;
  SharedMode store = SharedMode::Plain, load = SharedMode::Plain;
};

Bits shared_registers(const Side& a, const Side& b) {
  Bits bits;
  for (const std::uint32_t image : a.tile.reg()) {
    if (has(b.tile.reg(), image)) bits.push_back(image);
  }
  return bits;
}

Bits extended(Bits low, const Side& registers, const Side& threads, std::size_t size) {
  for (const std::uint32_t image : registers.tile.reg()) {
    const bool elsewhere = has(threads.tile.lane(), image) || has(threads.tile.warp(), image);
    if (low.size() < size && !has(low, image) && elsewhere) low.push_back(image);
  }
  return low;
}

void add_matrix_plots(const Side& side, bool store, std::vector<Plot>& plots) {
  const Bits& lane = side.tile.lane();
  const bool copies = has(lane, 0) || (store && has(side.tile.warp(), 0));
  if (side.tile.reg().empty() || copies) return;
  for (const SharedMode mode : {SharedMode::Matrix, SharedMode::MatrixTransposed}) {
    Plot plot;
    plot.low = mode == SharedMode::Matrix ? Bits{side.tile.reg()[0], lane[0], lane[1]}
                                          : Bits{lane[2], lane[3], lane[4]};
    (store ? plot.store : plot.load) = mode;
    plots.push_back(std::move(plot));
  }
}

std::vector<Plot> plots(const Pair& pair, const PlanOptions& options) {
  const Side a{pair.a}, b{pair.b};
  const auto size = static_cast<std::size_t>(log2_of(widest_bytes / pair.element_bytes));
  Bits both = shared_registers(a, b);
  if (both.size() > size) both.resize(size);
  std::vector<Plot> list{{both}, {extended(both, a, b, size)}, {extended(both, b, a, size)}};
  if (pair.element_bytes == 2) {
    // In this order, for ties: loads need fewer registers, and exist on more architectures.
    if (options.matrix_moves) add_matrix_plots(b, false, list);
    if (options.matrix_stores) add_matrix_plots(a, true, list);
  }
  return list;
}

// Assigns offsets to index bits, lowest first.
class Offsets {
 public:
  explicit Offsets(int index_bits) : offsets_(static_cast<std::size_t>(index_bits), 0) {}

  int position() const { return position_; }
  void place(std::uint32_t image) {
    if ((placed_ & image) != 0) return;
    offsets_[std::countr_zero(image)] = 1u << position_++;
    placed_ |= image;
  }
  void skip(const Bits& images) {
    for (const std::uint32_t image : images) placed_ |= image;
  }
  void place_rest() {
    for (std::size_t i = 0; i < offsets_.size(); ++i) place(1u << i);
  }
  void add(std::uint32_t image, std::uint32_t to) {
    offsets_[std::countr_zero(to)] ^= offset(image);
  }
  std::uint32_t offset(std::uint32_t image) const { return offsets_[std::countr_zero(image)]; }
  Bits take() { return std::move(offsets_); }

 private:
  Bits offsets_;
  std::uint32_t placed_ = 0;
  int position_ = 0;
};

Bits linear_offsets(const Pair& pair, const Side& a, const Side& b, const Plot& plot,
                    const Bits& loops) {
  Offsets offsets(pair.index_bits());
  offsets.skip(loops);
  for (const std::uint32_t image : plot.low) offsets.place(image);
  const Bits phase_a = a.phase(plot.low, pair.element_bytes);
  const Bits phase_b = b.phase(plot.low, pair.element_bytes);
  const int bank_end = std::max(offsets.position(), log2_of(row_bytes / pair.element_bytes));
  const auto place_in_bank = [&](std::uint32_t image) {
    if (offsets.position() < bank_end) offsets.place(image);
  };
  Bits only_a, only_b;
  for (const std::uint32_t image : phase_a) {
    has(phase_b, image) ? place_in_bank(image) : only_a.push_back(image);
  }
  for (const std::uint32_t image : phase_b) {
    if (!has(phase_a, image)) only_b.push_back(image);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> swizzles;
  for (std::size_t i = 0; i < std::max(only_a.size(), only_b.size()); ++i) {
    if (offsets.position() >= bank_end) break;
    offsets.place(i < only_a.size() ? only_a[i] : only_b[i]);
    if (i < only_a.size() && i < only_b.size()) swizzles.push_back({only_a[i], only_b[i]});
  }
  offsets.place_rest();
  for (const auto& [bank, above] : swizzles) offsets.add(bank, above);
  return offsets.take();
}

// Bits to step over so that the scratch fits: those in registers on both sides first.
std::optional<Bits> choose_loops(const Pair& pair, const Side& a, const Side& b, const Bits& low,
                                 std::int64_t limit) {
  std::int64_t bytes = std::int64_t{pair.element_bytes} << pair.index_bits();
  Bits loops;
  for (const bool warps : {false, true}) {
    for (int i = pair.index_bits() - 1; i >= 0 && bytes > limit; --i) {
      const std::uint32_t image = 1u << i;
      const bool in_warps = has(a.tile.warp(), image) || has(b.tile.warp(), image);
      if (in_warps != warps || has(low, image)) continue;
      if (!a.steps_over(image) || !b.steps_over(image)) continue;
      loops.push_back(image);
      bytes /= 2;
    }
  }
  if (bytes > limit) return std::nullopt;
  std::reverse(loops.begin(), loops.end());
  return loops;
}

std::int64_t tiles_per_step(const SharedChoice& choice, const PlanOptions& options) {
  // Tiles that are taken apart have no room beside them.
  return choice.loops.empty() ? std::max<std::int64_t>(1, options.scratch_limit / choice.tile_bytes)
                              : 1;
}

std::int64_t step_count(const Pair& pair, const SharedChoice& choice, const PlanOptions& options) {
  const std::int64_t per_step = tiles_per_step(choice, options);
  return ((pair.repetition_count + per_step - 1) / per_step) << choice.loops.size();
}

std::optional<SharedChoice> evaluate(const Pair& pair, const Plot& plot,
                                     const PlanOptions& options) {
  const Side a{pair.a, plot.store}, b{pair.b, plot.load};
  const auto loops = choose_loops(pair, a, b, plot.low, options.scratch_limit);
  if (!loops) return std::nullopt;
  SharedChoice choice;
  choice.store_mode = plot.store;
  choice.load_mode = plot.load;
  choice.vector = plot.low;
  choice.loops = *loops;
  choice.offsets = linear_offsets(pair, a, b, plot, *loops);
  const auto kept = pair.index_bits() - static_cast<int>(loops->size());
  choice.tile_bytes = std::int64_t{pair.element_bytes} << kept;
  for (const Side* side : {&a, &b}) {
    const double wavefronts = side->wavefronts(plot.low, pair.element_bytes) *
                              side->conflicts(plot.low, choice.offsets, pair.element_bytes);
    choice.cost += side->tile.base().warpgroups() *
                   (wavefront_cost * wavefronts + issue_cost * side->instructions(plot.low));
  }
  choice.cost += shared_latency +
                 2 * barrier_cost * static_cast<double>(step_count(pair, choice, options) - 1);
  return choice;
}

}  // namespace

std::optional<SharedChoice> choose_shared(const Pair& pair, const PlanOptions& options) {
  std::optional<SharedChoice> best;
  for (const Plot& plot : plots(pair, options)) {
    auto choice = evaluate(pair, plot, options);
    if (choice && (!best || choice->cost < best->cost)) best = std::move(choice);
  }
  return best;
}

namespace {

// Makes the accesses of one side.
class Accesses {
 public:
  Accesses(const Pair& pair, const SharedChoice& choice, bool store)
      : pair_(pair),
        choice_(choice),
        store_(store),
        tile_(store ? pair.a : pair.b),
        side_{tile_, store ? choice.store_mode : choice.load_mode} {
    Bits thread = side_.mode == SharedMode::Plain ? tile_.lane() : matrix_lanes();
    thread.append(tile_.warp());
    for (const std::uint32_t image : thread) thread_offset_.push_back(bytes(image));
    for (const std::uint32_t offset : thread_offset_) thread_span_ |= offset;
    const Bits vector = vector_registers();
    for (std::uint32_t e = 0; e < 1u << vector.size(); ++e) within_.push_back(image_of(vector, e));
  }

  SharedSide side() const { return {side_.mode, static_cast<int>(within_.size()), thread_offset_}; }

  // The threads that take part where the looped bits have the values `loop` selects.
  ThreadTest test(std::uint32_t loop) const {
    ThreadTest threads;
    for (std::size_t i = 0; i < tile_.warp().size(); ++i) {
      const std::uint32_t image = tile_.warp()[i], bit = 1u << (lane_bits + i);
      if (!has(choice_.loops, image)) continue;
      threads.mask |= bit;
      if ((loop & image) != 0) threads.value |= bit;
    }
    if (store_) threads.mask |= tile_.base().replicated_threads();
    return threads;
  }

  void add(const Extents& repetition, std::uint32_t loop, std::uint32_t base,
           std::vector<SharedAccess>& list) const {
    std::uint32_t loops = 0;
    for (const std::uint32_t image : choice_.loops) loops |= image;
    for (const std::uint32_t image : tile_.warp()) loops &= ~image;
    for (std::uint32_t r = 0; r < tile_.registers(); ++r) {
      const std::uint32_t index = image_of(tile_.reg(), r);
      if ((r & within_.back()) != 0 || (index & loops) != (loop & loops)) continue;
      SharedAccess access;
      bool any = false;
      for (const std::uint32_t e : within_) {
        int k = tile_.physical(r | e, repetition);
        if (k >= 0 && !tile_.base().in_domain(tile_.base().index(0, k))) k = -1;
        access.registers.push_back(k);
        any |= k >= 0;
        if (!store_) access.padded |= k < 0 || partly_padding(k);
      }
      if (!any) continue;
      const std::uint32_t offset = bytes(index);
      access.flip = offset & thread_span_;
      access.offset = (offset & ~thread_span_) + base;
      list.push_back(std::move(access));
    }
  }

 private:
  std::uint32_t bytes(std::uint32_t image) const {
    return image_of(choice_.offsets, image) * static_cast<std::uint32_t>(pair_.element_bytes);
  }

  // Lanes give addresses: eight rows of each matrix, matrices by register bits 1 and 2.
  Bits matrix_lanes() const {
    Bits lanes = side_.matrix_rows();
    for (int i = 1; i <= 2; ++i) {
      lanes.push_back(i < side_.matrix_register_bits() ? tile_.reg()[i] : 0);
    }
    return lanes;
  }

  // Register bits of one access, in memory order; in the matrix modes the pair, then the matrix.
  Bits vector_registers() const {
    Bits bits;
    if (side_.mode != SharedMode::Plain) {
      for (int i = 0; i < side_.matrix_register_bits(); ++i) bits.push_back(1u << i);
      return bits;
    }
    const int v = side_.vector(choice_.vector);
    for (int i = 0; 1 << i < v; ++i) {
      const auto it = std::find(tile_.reg().begin(), tile_.reg().end(), choice_.vector[i]);
      bits.push_back(1u << (it - tile_.reg().begin()));
    }
    return bits;
  }

  bool partly_padding(int k) const {
    const Layout& base = tile_.base();
    const Extents first = base.index(0, k);
    for (int d = 0; d < base.rank(); ++d) {
      if (first[d] + base.field(d, base.thread_span()) >= base.domain[d]) return true;
    }
    return false;
  }

  const Pair& pair_;
  const SharedChoice& choice_;
  bool store_;
  const OnCommonTile& tile_;
  Side side_;
  Bits thread_offset_;
  std::uint32_t thread_span_ = 0;
  std::vector<std::uint32_t> within_;  // tile registers of an access, relative to its first
};

}  // namespace

void build_shared(const Pair& pair, const SharedChoice& choice, const PlanOptions& options,
                  Plan& plan) {
  const Accesses stores(pair, choice, true), loads(pair, choice, false);
  plan.shared.store = stores.side();
  plan.shared.load = loads.side();
  const std::int64_t per_step = tiles_per_step(choice, options);
  for (std::int64_t first = 0; first < pair.repetition_count; first += per_step) {
    const std::int64_t tiles = std::min(per_step, pair.repetition_count - first);
    plan.scratch_bytes = std::max(plan.scratch_bytes, tiles * choice.tile_bytes);
    for (std::uint32_t n = 0; n < 1u << choice.loops.size(); ++n) {
      const std::uint32_t loop = image_of(choice.loops, n);
      SharedStep step{stores.test(loop), loads.test(loop), {}, {}};
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const Extents repetition = pair.repetition(first + tile);
        const auto base = static_cast<std::uint32_t>(tile * choice.tile_bytes);
        stores.add(repetition, loop, base, step.stores);
        loads.add(repetition, loop, base, step.loads);
      }
      if (!step.loads.empty()) plan.shared.steps.push_back(std::move(step));
    }
  }
  // A warp that writes for all, or scratch that warps use in turn, needs all of them to wait.
  const bool looped_warps = std::any_of(
      choice.loops.begin(), choice.loops.end(),
      [&](std::uint32_t image) { return has(pair.a.warp(), image) || has(pair.b.warp(), image); });
  plan.warp_barrier = pair.within_warps() && !looped_warps && !has(pair.a.warp(), 0);
}

}  // namespace palladium::layout
