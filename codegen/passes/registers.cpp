// What values take of a thread's registers, and whether a program that nobody gave a width should
// therefore be wider.
//
// Precondition: assign_layouts. How long a value lives, Lives says.
//
// The model. A block's threads share the 65,536 registers of a multiprocessor: each has that part,
// by eights, and 255 at most; where a warpgroup fetches, what it gives away is the others'. A
// program of products holds in them
// - its values, as they live: accumulators, carries, fragments of operands (most_held);
// - beside products of wgmma 26: ptxas refuses an instruction whose accumulators leave fewer
//   (C7602), whatever its columns and dtypes, and a program takes its values and 26 in fact;
// - beside products of mma.sync addresses and what is loaded ahead: 40 are enough, of fewer some
//   values go to local memory.
#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/lives.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/registers.hpp"

namespace palladium::passes {
namespace {

// More of one value, and its loops over registers are run-time loops, which index them in local
// memory; more of all values, and addresses and temporaries do not fit beside them (of the 255 that
// a thread can have, products of 144 take 242). Of tensor cores a program takes more accumulators
// rather than more warps: each byte of an operand is read for as many products. (One of a single
// warpgroup of wgmma has fewer, so that others find room beside it.)
constexpr std::int64_t most_of_a_value = 64, most_of_accumulators = 128, most_of_all = 160;

constexpr int all_registers = 65536, register_step = 8, most_of_thread = 255;
constexpr std::int64_t beside_wgmma = 26, beside_mma = 40;

std::int64_t registers_of(const Storage& s) {
  if (!s.in_registers()) return 0;
  const std::int64_t elements = s.registers().layout.registers();
  return s.is_packed() ? s.words() : elements * words(s.dtype);
}

// The fragments of operands that a product holds beside its accumulators: of B all columns, of A a
// row; without tensor cores a step of K of all rows, and of a vector of columns.
std::int64_t fragments(const Program& l, const Dot& d) {
  const layout::Layout& acc = l.storages[d.result].registers().layout;
  const std::int64_t columns = acc.repetitions(1);
  switch (d.unit) {
  case Dot::Unit::mma_16816: return 2 * columns + 4;
  case Dot::Unit::mma_1688: return columns + 2;
  case Dot::Unit::mma_16832: return 2 * columns + 4;
  case Dot::Unit::mma_tf32: return 2 * columns + 4;
  case Dot::Unit::wgmma:
  case Dot::Unit::wgmma_promoted: return 0;  // of which parts are as large as there is room
  case Dot::Unit::fma: break;
  }
  const std::int64_t vector = std::int64_t{1} << acc.reg.size();
  return (acc.repetitions(0) + vector) * 16 / 4;
}

// Registers at a position beside those of storages: of a product, fragments; fewer where a result
// takes the place of an operand.
struct Beside {
  int position = 0;
  std::int64_t registers = 0;
};

// Of what a nest computes element by element each takes the place of an element that nobody reads
// any more; what changes its layout leaves by parts, or whole, before it comes back.
struct InPlace {
  StorageId from = {}, to = {};
  std::int64_t registers = 0;  // that are both's
};

InPlace in_place(const Program& l, const Lives& lives, const Statement& s, int position) {
  InPlace found;
  std::set<StorageId> read;
  for (const Effect& e : effects(l, s)) {
    if (!e.storage || !l.storages[e.storage].in_registers()) continue;
    if (e.writes() && lives.of(e.storage).first == position) found.to = e.storage;
    if (!e.writes() && lives.of(e.storage).last == position) read.insert(e.storage);
  }
  if (!found.to) return {};
  const Storage& result = l.storages[found.to];
  for (const StorageId from : read) {
    const Storage& operand = l.storages[from];
    const bool is_same =
        operand.shape == result.shape && operand.registers().layout == result.registers().layout;
    const std::int64_t both = std::min(registers_of(operand), registers_of(result));
    if ((!is_same && !std::holds_alternative<Relayout>(s.what)) || both <= found.registers)
      continue;
    found.from = from;
    found.registers = both;
  }
  return found;
}

std::int64_t most_at_once(const Program& l, const Lives& lives, std::span<const Beside> beside) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(lives.end()) + 2);
  const auto add = [&](const Lives::Span& span, std::int64_t registers) {
    change[static_cast<std::size_t>(span.first)] += registers;
    change[static_cast<std::size_t>(span.last) + 1] -= registers;
  };
  for (const StorageId s : l.storages.ids())
    if (lives.has(s)) add(lives.of(s), registers_of(l.storages[s]));
  for (const auto& [position, registers] : beside) add({position, position}, registers);
  std::int64_t now = 0, most = 0;
  for (const std::int64_t n : change) most = std::max(most, now += n);
  return most;
}

[[noreturn]] void too_large(const Program& l, const Storage& s) {
  const graph::Graph& g = l.graph;
  // Powers of two: layouts pad other extents to them.
  Extents fits = s.shape;
  for (std::int64_t& extent : fits)
    extent = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(extent)));
  // Of more a wide program would index registers at run time, through shared memory that it lacks.
  const std::int64_t each = l.num_warps == 4 ? max_whole_registers : most_of_a_value;
  const std::int64_t limit = each * l.threads() / words(s.dtype);
  while (graph::element_count(fits) > limit) *std::max_element(fits.begin(), fits.end()) /= 2;
  throw CompileError(
      g.location(s.of),
      fmt::format("{}, {}, must be held whole by the {} threads of {}: {} bytes take {} "
                  "registers per thread, at most {} are possible; a block that makes it {} fits",
                  description_of(g, s.of), graph::to_string(graph::Type::value(s.dtype, s.shape)),
                  l.threads(),
                  l.num_warps == 4 ? "a warpgroup" : fmt::format("{} warps", l.num_warps),
                  graph::element_count(s.shape) * s.dtype.bytes(), registers_of(s),
                  max_whole_registers, graph::to_string(graph::Type::value(s.dtype, fits))));
}

// The products of a list, and of what stands inside of its statements.
template <class F>
void for_each_product(const Statements& list, const F& f) {
  for (const Statement& s : list) {
    if (const Dot* d = std::get_if<Dot>(&s.what)) f(*d);
    for_each_body(s, [&](const Statements& body) { for_each_product(body, f); });
  }
}
template <class F>
void for_each_product(const Program& l, const F& f) {
  for_each_list(l, [&](const Statements& list) { for_each_product(list, f); });
}

// What a program holds of values, as it stands.
struct Measured {
  std::vector<Beside> beside = {};
  std::vector<std::pair<const Statement*, int>> made = {};  // of others, in place
  Lives lives;
  std::int64_t most = 0;

  // Adds to accumulators what is made of them in place.
  Measured(const Program& l, std::vector<StorageId>& accumulators)
      : lives(
            l,
            [&](const Statement& s, int position) {
              if (const Dot* const d = std::get_if<Dot>(&s.what))
                beside.push_back({position, fragments(l, *d)});
              if (std::holds_alternative<LoopNest>(s.what) ||
                  std::holds_alternative<Relayout>(s.what))
                made.emplace_back(&s, position);
            },
            Lives::First::none) {
    for (const auto& [s, position] : made) {
      const InPlace p = in_place(l, lives, *s, position);
      beside.push_back({position, -p.registers});
      if (std::ranges::count(accumulators, p.from) > 0) accumulators.push_back(p.to);
    }
    most = most_at_once(l, lives, beside);
  }
};

}  // namespace

std::int64_t most_held(const Program& l) {
  std::vector<StorageId> accumulators;
  return Measured(l, accumulators).most;
}

void measure_registers(Program& l) {
  std::vector<StorageId> accumulators;  // of which a thread may hold many
  l.wgmma_products = l.wgmma_by_columns = 0;
  for_each_product(l, [&](const Dot& d) {
    const bool wgmma = is_of_wgmma(d.unit);
    l.wgmma_products += wgmma;
    l.wgmma_by_columns += wgmma && d.warps_n > 1;
    if (wgmma ? l.num_warps > 4 : d.unit != Dot::Unit::fma) accumulators.push_back(d.result);
  });
  const Measured held(l, accumulators);
  l.most_held = held.most;
  l.largest_held = 0;
  for (const StorageId s : l.storages.ids()) {
    if (!held.lives.has(s)) continue;  // as a product that is added to what is there
    const std::int64_t held = registers_of(l.storages[s]);
    const bool accumulates = std::ranges::count(accumulators, s) > 0;
    if (!accumulates || held > most_of_accumulators)
      l.largest_held = std::max(l.largest_held, held);
  }
}

// A kernel begins with a multiple of 8 for each thread; what a producer leaves is the others'. 256
// threads can have the most that a thread can.
RegisterShares registers_beside_producer(int warpgroups) {
  constexpr int step = register_step;
  if (warpgroups == 1) return {};
  const int begin = all_registers / ((warpgroups + 1) * graph::warpgroup_threads) / step * step;
  constexpr int producer = 24;
  return {begin, producer, ((warpgroups + 1) * begin - producer) / warpgroups / step * step};
}

std::int64_t registers_of_thread(std::int64_t threads) {
  return std::min<std::int64_t>(most_of_thread,
                                all_registers / threads / register_step * register_step);
}

std::int64_t registers_of_thread(const Program& l) {
  return registers_of_thread(std::int64_t{l.threads()} * std::max(1, l.warpgroups));
}

bool holds_wgmma(const Program& l, std::int64_t accumulators, int threads) {
  return accumulators + beside_wgmma <=
         registers_of_thread(std::int64_t{threads} * std::max(1, l.warpgroups));
}

namespace {

// Where a producer may stand beside a program's threads.
std::int64_t registers_beside_any_producer(const Program& l) {
  const std::int64_t has = registers_of_thread(l);
  if (l.num_warps != 8) return has;
  return std::min<std::int64_t>(has, registers_beside_producer(l.num_warps / 4).consumer);
}

}  // namespace

bool holds_next(const Program& l, ValueId dot) {
  const graph::Inst& i = l.graph[dot];
  const graph::Type& a = l.graph[graph::DotView::of(i).a].type;
  const std::int64_t of_a = graph::element_count(a.shape) * a.dtype.bytes() / 4;
  return cdiv(graph::element_count(i.type.shape) + 2 * of_a, l.threads()) + beside_mma <=
         registers_beside_any_producer(l);
}

std::int64_t parts_of_promoted(const Program& l, const Dot& d) {
  constexpr std::int64_t most_parts = 4;
  const std::int64_t sum = registers_of(l.storages[d.result]);
  const std::int64_t has = registers_beside_any_producer(l);
  std::int64_t parts = 1;
  while (parts < most_parts && sum + cdiv(sum, parts) + beside_wgmma > has) parts *= 2;
  return parts;
}

bool holds_beside_producer(const Program& l, std::int64_t values) {
  const int share = registers_beside_producer(l.num_warps / 4).consumer;
  const std::int64_t has = share > 0 ? share : registers_of_thread(2 * graph::warpgroup_threads);
  return values + beside_wgmma <= has;
}

bool holds_beside_products(const Program& l, std::int64_t values) {
  const bool has_producer =
      std::ranges::any_of(l.bodies, [](const Body& b) { return b.agents.size() > 1; });
  return has_producer ? holds_beside_producer(l, values)
                      : values + beside_wgmma <= registers_of_thread(l);
}

std::string reason_to_widen(const Program& l) {
  if (l.largest_held > most_of_a_value)
    return fmt::format("a value takes {} registers of each of {} threads", l.largest_held,
                       l.threads());
  if (l.most_held > most_of_all)
    return fmt::format("values take {} registers of each of {} threads at once", l.most_held,
                       l.threads());
  if (l.wanted_warps > l.num_warps)
    return fmt::format("{} threads would read a value again that more of them keep", l.threads());
  return "";
}

namespace {

bool holds_beside_wgmma(const Program& l) { return holds_wgmma(l, l.most_held, l.threads()); }

// Products whose A no two warpgroups read: each has rows of its own.
int wgmma_by_rows(const Program& l) { return l.wgmma_products - l.wgmma_by_columns; }

}  // namespace

// How many registers a thread lacks for its values and what tensor cores need beside them; 0 where
// there are no products.
std::int64_t registers_missing(const Program& l) {
  bool multiplies = false;
  for_each_product(l, [&](const Dot& d) { multiplies |= d.unit != Dot::Unit::fma; });
  if (!multiplies) return 0;
  const std::int64_t beside = l.wgmma_products > 0 ? beside_wgmma : beside_mma;
  return std::max<std::int64_t>(0, l.most_held + beside - registers_of_thread(l));
}

// A product that wgmma loses takes more time than registers save, and of one that is divided by
// columns, not by rows, each warpgroup reads all of A, from shared memory: that is worth it where
// values then find room, which 16 warps of 128 registers each do not make, or nothing else
// compiles.
bool gains(const Program& l, const Program& wider) {
  const bool loses =
      wider.wgmma_products < l.wgmma_products || wgmma_by_rows(wider) < wgmma_by_rows(l);
  const bool makes_room = !holds_beside_wgmma(l) && holds_beside_wgmma(wider);
  if (loses && !makes_room && l.largest_held <= max_whole_registers) return false;
  // Of half the registers values that are no more than halved have less room.
  const std::int64_t missing = registers_missing(wider);
  if (missing > 0 && missing >= registers_missing(l) && l.largest_held <= max_whole_registers)
    return false;
  return l.wanted_warps > l.num_warps || 4 * wider.most_held <= 3 * l.most_held;
}

namespace {

// What is said of products whose accumulators leave too few registers: of all that wgmma would
// multiply, and of the largest of mma.sync.
class CrowdedProducts {
 public:
  explicit CrowdedProducts(Program& l) : l_(l), has_(registers_of_thread(l)) {}

  void tell() {
    std::vector<Dot> products;
    for_each_product(l_, [&](const Dot& d) { products.push_back(d); });
    std::int64_t largest = 0;
    for (const Dot& d : products) largest = std::max(largest, accumulators(d));
    std::set<StorageId> largest_sums;
    for (const Dot& d : products)
      if (accumulators(d) == largest) largest_sums.insert(d.result);
    for (const Dot& d : products) {
      if (d.unit == Dot::Unit::fma) continue;
      const bool by_wgmma = is_of_wgmma(d.unit);
      const std::int64_t taken = accumulators(d), beside = by_wgmma ? beside_wgmma : beside_mma;
      if (!by_wgmma && lacks_registers_for_wgmma(l_, l_.graph[d.inst]))
        tell(d, "by mma.sync, not by wgmma, because its accumulators take", taken, beside_wgmma, 1);
      else if (const int warps = by_wgmma ? 0 : other_warps(d); warps != 0)
        tell_of_width(d, warps);
      else if (taken == largest && l_.most_held + beside > has_)
        tell(d, "partly in local memory, because values take", l_.most_held, beside,
             std::ssize(largest_sums));
    }
  }

 private:
  // Of a program whose width somebody gave: that by which wgmma would multiply; 0: none.
  int other_warps(const Dot& d) const {
    const graph::Graph& g = l_.graph;
    const bool may_be_wide = g.bodies.size() == 1 && g.bodies[0].warpgroups == 1;
    if (!may_be_wide || g.bodies[0].num_warps == 0) return 0;
    return warps_that_take_wgmma(l_, g[d.inst]);
  }

  void tell_of_width(const Dot& d, int warps) {
    const Extents& shape = l_.graph[d.inst].type.shape;
    l_.remarks.push_back(
        {l_.graph.location(d.inst),
         fmt::format("{}: by mma.sync, not by wgmma, because {} warps would have too little each "
                     "of its {} rows and {} columns; with num_warps = {} it is by wgmma",
                     description_of(l_.graph, d.inst), l_.num_warps, shape[0], shape[1], warps)});
  }

  std::int64_t accumulators(const Dot& d) const { return registers_of(l_.storages[d.result]); }

  // `sums`: of so many of its size.
  void tell(const Dot& d, const char* what, std::int64_t taken, std::int64_t beside,
            std::int64_t sums) {
    l_.remarks.push_back(
        {l_.graph.location(d.inst),
         fmt::format("{}: {} {} of the {} registers that a thread of {} has, and {} are needed "
                     "beside them; a block that makes it {} fits",
                     description_of(l_.graph, d.inst), what, taken, has_,
                     std::int64_t{l_.threads()} * std::max(1, l_.warpgroups), beside,
                     fitting(l_.storages[d.result], taken, beside, sums))});
  }

  // With fewer columns, what leaves so many registers.
  std::string fitting(const Storage& s, std::int64_t taken, std::int64_t beside,
                      std::int64_t sums) const {
    Extents fits = s.shape;
    std::int64_t registers = sums * registers_of(s);
    const std::int64_t others = std::max<std::int64_t>(0, taken - registers);
    while (fits.back() > 8 && others + registers + beside > has_) {
      fits.back() = cdiv(fits.back(), 16) * 8;
      registers = cdiv(registers, 2);
    }
    return graph::to_string(graph::Type::value(s.dtype, fits));
  }

  Program& l_;
  const std::int64_t has_;
};

}  // namespace

void check_registers(Program& l) {
  for (const Storage& s : l.storages)
    if (registers_of(s) > max_whole_registers) too_large(l, s);
  CrowdedProducts(l).tell();
}

std::int64_t registers_estimate(const graph::Type& type, int threads) {
  const std::int64_t per_thread = cdiv(graph::element_count(type.shape), threads);
  return per_thread * words(type.dtype);
}

bool fits_registers(Program& l, const graph::Type& type, std::int64_t registers) {
  for (int warps = l.num_warps; warps <= layout::most_warps; warps *= 2) {
    if (registers_estimate(type, warps * graph::warp_threads) > registers) continue;
    l.wanted_warps = std::max(l.wanted_warps, warps);
    return warps == l.num_warps;
  }
  return false;
}

}  // namespace palladium::passes
