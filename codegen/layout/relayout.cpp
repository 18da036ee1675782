#include "codegen/layout/relayout.hpp"

#include <algorithm>
#include <numeric>

#include "codegen/layout/memory.hpp"
#include "codegen/layout/relayout_parts.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

std::vector<int> common_tile(const Layout& a, const Layout& b) {
  std::vector<int> tile_bits = a.tile_bits;
  for (int d = 0; d < a.rank(); ++d) tile_bits[d] = std::max(tile_bits[d], b.tile_bits[d]);
  return tile_bits;
}

std::int64_t element_count(const Layout& l) {
  return std::accumulate(l.domain.begin(), l.domain.end(), std::int64_t{1}, std::multiplies<>());
}

// Which way, and at what cost; the parts that the kind needs are filled in.
struct Choice {
  Move kind = Move::Memory;
  double cost = 0;
  std::optional<ShuffleChoice> shuffle;
  std::optional<SharedChoice> shared;
};

// Beyond this a common tile is not worth a plan of its own.
constexpr int max_common_bits = 22;

std::optional<Choice> choose(const Pair& pair, const PlanOptions& options) {
  Choice best;
  if (options.shuffles && pair.within_warps()) best.shuffle = choose_shuffles(pair);
  const Layout &from = pair.a.base(), &to = pair.b.base();
  if (is_unit(from) && is_unit(to)) best.shared = choose_shared(pair, options);
  if (best.shuffle && (!best.shared || best.shuffle->cost <= best.shared->cost)) {
    best.kind = Move::Shuffle;
    best.cost = best.shuffle->cost;
  } else if (best.shared) {
    best.kind = Move::Shared;
    best.cost = best.shared->cost;
  } else {
    return std::nullopt;
  }
  return best;
}

bool small_common_tile(const Layout& from, const Layout& to) {
  const std::vector<int> tile_bits = common_tile(from, to);
  return std::accumulate(tile_bits.begin(), tile_bits.end(), 0) <= max_common_bits;
}

// Two domains made one by reshaping either layout, where that moves nothing.
struct OneDomain {
  Layout from, to;
};

std::optional<OneDomain> one_domain(const Layout& from, const Layout& to) {
  if (from.warps() != to.warps()) {
    throw InternalError("relayout between programs of different widths: " + to_string(from) +
                        "\n  to " + to_string(to));
  }
  if (from.domain == to.domain) return OneDomain{from, to};
  if (element_count(from) != element_count(to)) {
    throw InternalError("relayout between different numbers of elements: " + to_string(from) +
                        "\n  to " + to_string(to));
  }
  if (auto reshaped = reshape(from, to.domain)) return OneDomain{std::move(*reshaped), to};
  if (auto reshaped = reshape(to, from.domain)) return OneDomain{from, std::move(*reshaped)};
  return std::nullopt;
}

void rename(std::vector<int>& registers, const std::vector<int>& names) {
  for (int& k : registers) k = k < 0 ? -1 : names[k];
}

void rename_sources(Plan& plan, const std::vector<int>& names) {
  rename(plan.sources, names);
  for (ShufflePass& pass : plan.shuffle.passes) rename(pass.in, names);
  for (SharedStep& step : plan.shared.steps) {
    for (SharedAccess& access : step.stores) rename(access.registers, names);
  }
}

// `numbers`: by new register the old one.
void renumber_results(Plan& plan, const std::vector<int>& numbers, std::int64_t old_registers) {
  std::vector<int> names(static_cast<std::size_t>(old_registers), -1), sources;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] >= 0) names[numbers[k]] = static_cast<int>(k);
    if (!plan.sources.empty()) sources.push_back(numbers[k] < 0 ? -1 : plan.sources[numbers[k]]);
  }
  plan.sources = std::move(sources);
  for (ShufflePass& pass : plan.shuffle.passes) rename(pass.out, names);
  for (SharedStep& step : plan.shared.steps) {
    for (SharedAccess& access : step.loads) rename(access.registers, names);
  }
}

// Makes a plan for reshaped layouts one for the layouts themselves.
void undo_reshape(const OneDomain& reshaped, const Layout& from, const Layout& to, Plan& plan) {
  if (reshaped.from.domain != from.domain) {
    rename_sources(plan, registers_of_reshape(from, reshaped.from));
  }
  if (reshaped.to.domain != to.domain) {
    renumber_results(plan, registers_of_reshape(reshaped.to, to), reshaped.to.registers());
  }
  plan.from = from;
  plan.to = to;
}

bool renames(const Plan& plan) {
  for (std::size_t k = 0; k < plan.sources.size(); ++k) {
    if (plan.sources[k] >= 0 && plan.sources[k] != static_cast<int>(k)) return true;
  }
  return false;
}

MemorySide row_major(const Layout& l) { return {row_major_strides(l.domain), 0, 1, 0}; }

MemoryFacts facts_of(const MemorySide& side, int element_bytes) {
  MemoryFacts facts{element_bytes, {}, 16, 0};
  for (const std::int64_t stride : side.strides) facts.strides.push_back(Stride::fixed(stride));
  const std::int64_t start = side.offset * element_bytes;
  while (start % facts.alignment != 0) facts.alignment /= 2;
  return facts;
}

// Of one side over all windows: bank conflicts of two ways assumed, and a test per access.
double memory_cost(const Layout& l, const MemorySide& side, const MemoryMove& move, int bytes) {
  const double accesses = static_cast<double>(l.registers()) / side.vector;
  const double wavefronts = 2.0 * std::max(1, side.vector * bytes / 4);
  const double issued = accesses * (wavefront_cost * wavefronts + issue_cost) +
                        accesses * 3 * static_cast<double>(move.windows);
  return l.warpgroups() * issued + barrier_cost * static_cast<double>(move.windows);
}

MemoryMove memory_move(const Layout& from, const Layout& to, int element_bytes, MemorySide store,
                       MemorySide load, std::int64_t elements, const PlanOptions& options) {
  MemoryMove move{std::move(store), std::move(load), elements, elements, 1};
  // Windows of whole vectors.
  const std::int64_t limit = std::max<std::int64_t>(options.scratch_limit, 16) / 16 * 16;
  if (elements * element_bytes > limit) {
    move.window = limit / element_bytes;
    move.windows = (elements + move.window - 1) / move.window;
  }
  move.store.vector = vector_width(from, facts_of(move.store, element_bytes));
  move.load.vector = vector_width(to, facts_of(move.load, element_bytes));
  move.store.replicated = from.replicated_threads();
  return move;
}

double cost_of(const MemoryMove& move, const Layout& from, const Layout& to, int element_bytes) {
  return shared_latency + memory_cost(from, move.store, move, element_bytes) +
         memory_cost(to, move.load, move, element_bytes);
}

const char* mode_text(SharedMode mode, bool store) {
  switch (mode) {
  case SharedMode::Matrix: return store ? "stmatrix" : "ldmatrix";
  case SharedMode::MatrixTransposed: return store ? "stmatrix.trans" : "ldmatrix.trans";
  default: return store ? "st" : "ld";
  }
}

std::string side_text(const SharedSide& side, bool store) {
  std::string s = mode_text(side.mode, store);
  if (side.mode == SharedMode::Plain) s += ".v" + std::to_string(side.vector);
  return s;
}

}  // namespace

OnCommonTile::OnCommonTile(const Layout& base, const std::vector<int>& tile_bits)
    : base_(&base), grown_(grow_tile(base, tile_bits)) {
  for (int d = base.rank() - 1; d >= 0; --d) {
    for (int bit = 0; bit < grown_.tile_bits[d] - base.tile_bits[d]; ++bit) {
      virtual_bits_.push_back({d, bit});
    }
  }
}

int OnCommonTile::physical(std::uint32_t r, const Extents& repetition) const {
  const std::size_t own_bits = base_->reg.size();
  std::int64_t number = 0;
  for (int d = 0; d < base_->rank(); ++d) {
    std::int64_t along = repetition[d] << (grown_.tile_bits[d] - base_->tile_bits[d]);
    for (std::size_t i = 0; i < virtual_bits_.size(); ++i) {
      if (virtual_bits_[i].dim == d && (r >> (own_bits + i) & 1) != 0) {
        along |= std::int64_t{1} << virtual_bits_[i].bit;
      }
    }
    if (along >= base_->repetitions(d)) return -1;
    number = number * base_->repetitions(d) + along;
  }
  return static_cast<int>(number << own_bits | (r & ((1u << own_bits) - 1)));
}

Pair::Pair(const Layout& from, const Layout& to, int bytes)
    : tile_bits(common_tile(from, to)), a(from, tile_bits), b(to, tile_bits), element_bytes(bytes) {
  for (int d = 0; d < from.rank(); ++d) {
    const std::int64_t tile = std::int64_t{1} << tile_bits[d];
    repetitions.push_back((from.domain[d] + tile - 1) / tile);
    repetition_count *= repetitions.back();
  }
  Solver source(a.reg());
  for (const std::uint32_t image : a.lane()) source.add(image);
  for (const std::uint32_t image : a.warp()) source.add(image);
  const auto solve = [&](std::uint32_t image) {
    const auto bits = source.solve(image);
    if (!bits) throw InternalError("malformed source layout: " + to_string(from));
    return *bits;
  };
  for (const std::uint32_t image : b.reg()) reg.push_back(solve(image));
  // Where the source replicates over a thread bit, everyone reads the own copy.
  const int nreg = static_cast<int>(a.reg().size());
  for (int i = 0; i < lane_bits; ++i) {
    lane.push_back(solve(b.lane()[i]) ^ (a.lane()[i] == 0 ? 1u << (nreg + i) : 0));
  }
  for (std::size_t i = 0; i < a.warp().size(); ++i) {
    warp.push_back(solve(b.warp()[i]) ^ (a.warp()[i] == 0 ? 1u << (nreg + lane_bits + i) : 0));
  }
}

int Pair::index_bits() const { return std::accumulate(tile_bits.begin(), tile_bits.end(), 0); }

bool Pair::within_warps() const {
  const auto stays = [&](std::uint32_t image) { return warp_part(image) == 0; };
  const std::size_t shift = a.reg().size() + lane_bits;
  for (std::size_t i = 0; i < warp.size(); ++i) {
    if (warp[i] != 1u << (shift + i)) return false;
  }
  return std::all_of(reg.begin(), reg.end(), stays) && std::all_of(lane.begin(), lane.end(), stays);
}

Extents Pair::repetition(std::int64_t number) const {
  Extents along(repetitions.size());
  for (std::size_t d = repetitions.size(); d-- > 0;) {
    along[d] = number % repetitions[d];
    number /= repetitions[d];
  }
  return along;
}

Plan plan_relayout(const Layout& from, const Layout& to, int element_bytes,
                   const PlanOptions& options) {
  if (const auto one = one_domain(from, to)) {
    Plan plan{Move::Noop, from, to, element_bytes};
    if (auto sources = same_up_to_registers(one->from, one->to)) {
      plan.sources = std::move(*sources);
      undo_reshape(*one, from, to, plan);
      plan.kind = renames(plan) ? Move::Rename : Move::Noop;
      return plan;
    }
    if (small_common_tile(one->from, one->to)) {
      const Pair pair(one->from, one->to, element_bytes);
      if (auto choice = choose(pair, options)) {
        plan.kind = choice->kind;
        plan.cost = choice->cost;
        if (choice->kind == Move::Shuffle) {
          plan.shuffle = build_shuffles(pair, std::move(*choice->shuffle));
        } else {
          build_shared(pair, *choice->shared, options, plan);
        }
        undo_reshape(*one, from, to, plan);
        return plan;
      }
    }
  }
  return plan_through_memory(from, to, element_bytes, row_major(from), row_major(to),
                             element_count(from), options);
}

double relayout_cost(const Layout& from, const Layout& to, int element_bytes,
                     const PlanOptions& options) {
  if (const auto one = one_domain(from, to)) {
    if (same_elements(one->from, one->to)) return 0;
    if (small_common_tile(one->from, one->to)) {
      const Pair pair(one->from, one->to, element_bytes);
      if (const auto choice = choose(pair, options)) return choice->cost;
    }
  }
  const MemoryMove move = memory_move(from, to, element_bytes, row_major(from), row_major(to),
                                      element_count(from), options);
  return cost_of(move, from, to, element_bytes);
}

Plan plan_through_memory(const Layout& from, const Layout& to, int element_bytes, MemorySide store,
                         MemorySide load, std::int64_t elements, const PlanOptions& options) {
  Plan plan{Move::Memory, from, to, element_bytes};
  plan.memory =
      memory_move(from, to, element_bytes, std::move(store), std::move(load), elements, options);
  plan.cost = cost_of(plan.memory, from, to, element_bytes);
  plan.scratch_bytes = plan.memory.window * element_bytes;
  return plan;
}

Extents row_major_strides(const Extents& shape) {
  Extents strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::string describe(const Plan& plan) {
  switch (plan.kind) {
  case Move::Noop: return "nothing moves";
  case Move::Rename: return "registers renamed";
  case Move::Shuffle: {
    const Shuffles& s = plan.shuffle;
    return std::to_string(s.shuffles) + " shuffles, " + std::to_string(s.selects) + " selects" +
           (s.pack > 1 ? ", " + std::to_string(s.pack) + " elements to a word" : "");
  }
  case Move::Shared: {
    const std::size_t steps = plan.shared.steps.size();
    return side_text(plan.shared.store, true) + " / " + side_text(plan.shared.load, false) + ", " +
           std::to_string(steps) + (steps == 1 ? " step of " : " steps of ") +
           std::to_string(plan.scratch_bytes) + " B";
  }
  default:
    return "row-major st.v" + std::to_string(plan.memory.store.vector) + " / ld.v" +
           std::to_string(plan.memory.load.vector) + ", " + std::to_string(plan.memory.windows) +
           (plan.memory.windows == 1 ? " window of " : " windows of ") +
           std::to_string(plan.scratch_bytes) + " B";
  }
}

}  // namespace palladium::layout
