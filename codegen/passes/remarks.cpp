// Says of each loop with products what it waits for and need not: what its iterations read of
// global memory where they use it, operands that threads make in the one buffer that products read,
// products of a slower unit than the machine has for their elements, and products while which
// results nobody multiplies. Nothing else of the program changes.
//
// Precondition: complete_async, so that it stands in the program who waits; and
// eliminate_dead_scalars, so that who is awaited is wanted. All follows from what statements touch.
// What passes before have said is not said again: a reason that they gave is told what it costs,
// and what several say alike is said once.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/factors.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/said_layouts.hpp"

namespace palladium::passes {
namespace {

using graph::Op;

// ---- what waiting costs

// Clocks of a multiprocessor from a load to its first bytes, which the L2 cache has; and bytes that
// it is given in each of those that follow.
constexpr std::int64_t clocks_of_latency = 700, bytes_per_clock = 64;
constexpr std::int64_t small_scratch = 32 << 10;  // bytes that a block has to spare

std::int64_t awaited_clocks(std::int64_t bytes) {
  return round_up(clocks_of_latency + bytes / bytes_per_clock, 100);
}

std::int64_t product_clocks(const Program& l, const Dot& d) {
  const graph::DotView view = graph::DotView::of(l.graph[d.inst]);
  const graph::Type& a = l.graph[view.a].type;
  const std::int64_t depth = a.shape[view.trans_a ? 0 : 1];
  return graph::element_count(l.graph[d.inst].type.shape) * depth * a.dtype.bytes() / 4096;
}

std::string with_commas(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

constexpr const char* awaited = " are awaited in each iteration";

std::string bytes_text(std::int64_t bytes) { return with_commas(bytes) + " bytes"; }

// ---- one iteration of a loop

bool runs_by_itself(const Dot& d) { return is_of_wgmma(d.unit); }

bool has_product(const Statement& s) {
  if (std::holds_alternative<Dot>(s.what)) return true;
  bool found = false;
  for_each_body(
      s, [&](const Statements& body) { found = found || std::ranges::any_of(body, has_product); });
  return found;
}

// Its statements in order, without what is done for iterations to come, in loops inside, or under
// conditions that no product has.
class Iteration {
 public:
  explicit Iteration(const Statements& body) {
    add(body);
    follow_products();
  }

  std::span<const Statement* const> statements() const { return all_; }
  const std::vector<const Dot*>& products() const { return products_; }
  /// Whether a product of a warpgroup is on its way while this statement runs.
  bool multiplies_meanwhile(std::size_t at) const { return running_[at]; }

 private:
  void add(const Statements& list) {
    for (const Statement& s : list) {
      if (std::holds_alternative<Lead>(s.what) || std::holds_alternative<Ahead>(s.what)) continue;
      if (const Dot* const d = std::get_if<Dot>(&s.what)) products_.push_back(d);
      all_.push_back(&s);
      const bool chosen =
          std::holds_alternative<When>(s.what) || std::holds_alternative<Switch>(s.what);
      if (repeats(s) || (chosen && !has_product(s))) continue;
      for_each_body(s, [&](const Statements& body) { add(body); });
    }
  }

  // Of the iteration before, those that it has not awaited.
  void follow_products() {
    running_.resize(all_.size());
    int begun = 0;
    for (int round = 0; round < 2; ++round)
      for (std::size_t i = 0; i < all_.size(); ++i) {
        const Dot* const d = std::get_if<Dot>(&all_[i]->what);
        begun += d != nullptr && runs_by_itself(*d);
        const WaitGroup* const w = std::get_if<WaitGroup>(&all_[i]->what);
        if (w != nullptr && w->kind == device::Completion::wgmma_group)
          begun = std::min(begun, w->pending);
        running_[i] = begun > 0;
      }
  }

  std::vector<const Statement*> all_;
  std::vector<const Dot*> products_;
  std::vector<bool> running_;
};

// ---- what values of an iteration are made of

// A load, or the block of a window that is loaded whole.
struct Source {
  ValueId load = graph::no_value;
  WindowId window = {};
  auto operator<=>(const Source&) const = default;
};

struct MadeOf {
  std::set<Source> sources = {};  // that this iteration reads of global memory
  bool of_product = false;

  void add(const MadeOf& other) {
    sources.insert(other.sources.begin(), other.sources.end());
    of_product |= other.of_product;
  }
};

// ---- the remarks on a loop

class LoopRemarks {
 public:
  LoopRemarks(Program& l, const Iteration& iteration, bool rotated, bool is_counted)
      : l_(l), g_(l.graph), it_(iteration), rotated_(rotated), is_counted_(is_counted) {}

  void tell() {
    trace(), made_of_ = products_made_of_, trace();
    for (std::size_t i = 0; i < it_.statements().size(); ++i) tell_of_operand(i);
    for (std::size_t i = 0; i < it_.statements().size(); ++i) tell_of_reads(i);
    for (const Dot* const d : it_.products()) tell_of_unit(*d);
    tell_of_idle_products();
  }

 private:
  const Statement& at(std::size_t i) const { return *it_.statements()[i]; }

  // In order; what products fill stays so for the iterations behind.
  void trace() {
    for (const Statement* const s : it_.statements()) {
      const MadeOf of = made_of(*s);
      for (const Effect& e : effects(l_, *s)) {
        if (!e.writes() || !e.storage || e.role != Effect::Role::result) continue;
        if (e.access == Effect::Access::write && std::holds_alternative<LoopNest>(s->what))
          made_of_[e.storage] = of;
        else
          made_of_[e.storage].add(of);
        products_made_of_[e.storage].of_product |= of.of_product;
      }
    }
  }

  MadeOf made_of(const Statement& s) const {
    MadeOf all;
    all.of_product = std::holds_alternative<Dot>(s.what);
    if (repeats(s)) return all;
    for (const Effect& e : effects(l_, s))
      if (const auto found = made_of_.find(e.storage); e.reads() && found != made_of_.end())
        all.add(found->second);
    for (const Source& source : read_by(s)) all.sources.insert(source);
    return all;
  }

  // Of global memory, to evaluate elements: not what copies, which run by themselves, bring.
  std::set<Source> read_by(const Statement& s) const {
    std::set<Source> found;
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    if (p == nullptr && !std::holds_alternative<Scalar>(s.what)) return found;
    for (const Effect& e : effects(l_, s)) {
      const bool element = e.role == Effect::Role::value || e.role == Effect::Role::mask;
      if (!e.reads() || !e.window || !element) continue;
      if (e.on != device::Completion::none) continue;
      found.insert({e.leaf, e.leaf == graph::no_value ? e.window : WindowId()});
    }
    if (p != nullptr && is_asynchronous(*p)) found.clear();
    return found;
  }

  static bool is_asynchronous(const LoopNest& p) {
    const Stage* const stage = std::get_if<Stage>(&p.sink);
    const Fill* const fill = std::get_if<Fill>(&p.sink);
    return (stage != nullptr && stage->by.asynchronous) ||
           (fill != nullptr && fill->by.asynchronous);
  }

  ValueId root_of_source(const Source& s) const {
    return s.load != graph::no_value ? root_of(g_, s.load) : l_.windows[s.window].root;
  }
  // Where the user reads it.
  Location line_of(const Source& s, std::size_t i) const {
    return s.load != graph::no_value ? g_.location(s.load) : at(i).at;
  }
  const graph::Type& type_of(const Source& s) const {
    return s.load != graph::no_value ? g_[s.load].type : g_[l_.windows[s.window].root].type;
  }
  std::int64_t bytes_of(const std::set<Source>& all) const {
    std::int64_t bytes = 0;
    for (const Source& s : all) {
      const graph::Type& t = type_of(s);
      bytes += graph::element_count(t.shape) * t.dtype.bits() / 8;
    }
    return std::max<std::int64_t>(1, bytes);
  }
  std::string names_of(const std::set<Source>& all) const {
    std::vector<std::string> names;
    for (const Source& s : all) {
      std::string name = description_of(g_, root_of_source(s));
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
    std::string text = names[0];
    for (std::size_t i = 1; i < names.size(); ++i)
      text += (i + 1 < names.size() ? ", " : " and ") + names[i];
    return text;
  }

  std::string cost_of(const std::set<Source>& read, std::size_t i) const {
    const std::int64_t bytes = bytes_of(read);
    return fmt::format("{}{}, some {} clocks{}", bytes_text(bytes), awaited,
                       with_commas(awaited_clocks(bytes)),
                       it_.multiplies_meanwhile(i) ? "" : " in which nothing is multiplied");
  }

  // ---- operands that threads make

  // Of memory alone: what is made of the product of an iteration is not there before.
  void tell_of_operand(std::size_t i) {
    const LoopNest* const p = std::get_if<LoopNest>(&at(i).what);
    if (p == nullptr || is_asynchronous(*p) || p->value == graph::no_value) return;
    const StorageId filled = storage_filled(p->sink);
    const Dot* const user = product_of(filled);
    if (user == nullptr || !l_.storages[filled].in_shared()) return;
    const MadeOf of = made_of(at(i));
    if (of.of_product || of.sources.empty()) return;
    told_.insert(of.sources.begin(), of.sources.end());
    const std::string cost = cost_of(of.sources, i);
    const std::string names = names_of(of.sources);
    if (has_said_why(at(i).at, names + ": plain loads, because", cost)) return;
    if (has_said_why(g_.location(user->inst), ": multiplied as f16, because", cost)) return;
    say(line_of(*of.sources.begin(), i),
        fmt::format("{}: {} by threads into the one buffer that the product reads, so "
                    "that nothing is copied ahead: {}; {}",
                    names, how_made(*p), cost, instead_of_making(*p)));
  }

  const Dot* product_of(StorageId operand) const {
    for (const Dot* const d : it_.products())
      if (operand && (d->a == operand || d->b == operand)) return d;
    return nullptr;
  }

  // What is computed of one load but for moves, if that is no more than another dtype.
  std::optional<DType> converted_from(const LoopNest& p) const {
    std::optional<DType> from;
    ValueId v = p.value;
    for (; g_[v].op != Op::Load; v = g_[v].args[0]) {
      const Op op = g_[v].op;
      if (op == Op::Cast)
        from = g_[g_[v].args[0]].type.dtype;
      else if (op != Op::Transpose && op != Op::Reshape && op != Op::Broadcast)
        return {};
    }
    return from;
  }

  bool is_load(const LoopNest& p) const {
    ValueId v = p.value;
    while (g_[v].op == Op::Transpose || g_[v].op == Op::Reshape || g_[v].op == Op::Broadcast)
      v = g_[v].args[0];
    return g_[v].op == Op::Load;
  }

  std::string how_made(const LoopNest& p) const {
    if (const std::optional<DType> from = converted_from(p))
      return fmt::format("converted from {} to {}", from->name(), dtype_of(p).name());
    return is_load(p) ? "loaded and stored" : "read, and what is computed of it stored";
  }

  std::string instead_of_making(const LoopNest& p) const {
    if (converted_from(p)) return fmt::format("an array of {} is copied ahead", dtype_of(p).name());
    if (is_load(p)) return "blocks of a BlockSpec are copied ahead";
    return "what a kernel before computes and stores is copied ahead";
  }

  DType dtype_of(const LoopNest& p) const { return g_[p.value].type.dtype; }

  // ---- what is read where it is used

  void tell_of_reads(std::size_t i) {
    std::set<Source> read = read_by(at(i));
    std::erase_if(read, [&](const Source& s) { return told_.contains(s); });
    if (read.empty() || !is_awaited(i)) return;
    for (const Source& s : read) {
      told_.insert(s);
      say(line_of(s, i), fmt::format("{}: read of global memory where the iteration needs it: {}{}",
                                     description_of(g_, root_of_source(s)), cost_of({s}, i),
                                     instead_of_reading(s)));
    }
  }

  // What is only loaded, for iterations behind alone, is there by then. Who asks a scalar for an
  // address asks for a copy.
  bool is_awaited(std::size_t i) const {
    const StorageId filled = filled_by_assignment(at(i));
    const LoopNest* const p = std::get_if<LoopNest>(&at(i).what);
    if (!filled || (p != nullptr && !is_load(*p))) return true;
    for (std::size_t j = i + 1; j < it_.statements().size(); ++j) {
      if (!std::holds_alternative<LoopNest>(at(j).what)) continue;
      for (const Effect& e : effects(l_, at(j)))
        if (e.reads() && e.storage == filled && e.role != Effect::Role::subscript) return true;
    }
    return false;
  }

  static StorageId filled_by_assignment(const Statement& s) {
    if (const Scalar* const scalar = std::get_if<Scalar>(&s.what)) return scalar->storage;
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    const Assign* const to = p == nullptr ? nullptr : std::get_if<Assign>(&p->sink);
    return to == nullptr ? StorageId() : to->storage;
  }

  std::string instead_of_reading(const Source& s) const {
    const ValueId root = root_of_source(s);
    const graph::Type& block = g_[root].type;
    const bool small = std::ranges::all_of(block.shape, [](auto n) { return n > 0; }) &&
                       graph::element_count(block.shape) * block.dtype.bits() / 8 <= small_scratch;
    if (!small || !l_.windows[l_.window_of[root]].read_only) return "";
    return "; copied to scratch in plgpu::SMEM in front of the loop, it is read from there";
  }

  // ---- units

  void tell_of_unit(const Dot& d) {
    const graph::Inst& inst = g_[d.inst];
    const graph::DotView view = graph::DotView::of(inst);
    const DType a = g_[view.a].type.dtype, b = g_[view.b].type.dtype;
    const bool tf32 = view.precision == graph::Precision::tf32;
    if (d.unit == Dot::Unit::fma && a == f32 && !tf32 && l_.machine.mma(f32, f32, true))
      say(g_.location(d.inst),
          fmt::format("{}: multiplied in f32 by no tensor core, which with .precision = "
                      "pl::Precision::tf32 would be many times as fast, rounding operands to 10 "
                      "bits",
                      description_of(g_, d.inst)));
    if (runs_by_itself(d)) return;
    const std::int64_t rows = inst.type.shape[0], columns = inst.type.shape[1];
    if (!l_.machine.has_wgmma(a, b, tf32) || rows >= 64) return;
    if (!is_by_wgmma_turned(inst)) return;
    if (has_said(g_.location(d.inst), "by mma.sync")) return;
    say(g_.location(d.inst),
        fmt::format("{}: by mma.sync, not by wgmma, which takes 64 rows at once, and it has {}; "
                    "turned, as dot(B^T, A^T) of {} rows, it is by wgmma",
                    description_of(g_, d.inst), rows, columns));
  }

  // The transposed product, of exchanged operands, at the width that was given or another.
  bool is_by_wgmma_turned(const graph::Inst& inst) const {
    const graph::DotView view = graph::DotView::of(inst);
    graph::Inst turned = inst;
    std::swap(turned.args[0], turned.args[1]);
    std::swap(turned.type.shape[0], turned.type.shape[1]);
    turned.attr = {{!view.trans_b, !view.trans_a, static_cast<std::int64_t>(view.precision)}, 0};
    const int warps = warps_that_take_wgmma(l_, turned);
    return warps != 0 && (warps == l_.num_warps || g_.bodies[0].num_warps == 0);
  }

  // ---- products that could run meanwhile

  // Where threads compute of products, and one whose operands are there anyway is not begun.
  void tell_of_idle_products() {
    const graph::Body& body = g_.bodies[0];
    if (rotated_ || !is_counted_ || !body.warp_specialize.value_or(true)) return;
    const bool told = std::ranges::any_of(it_.products(), [&](const Dot* d) {
      return has_said(g_.location(d->inst), "not begun before the next iteration computes");
    });
    const Dot* const first = independent_product();
    if (told || first == nullptr) return;
    const Dot* awaited = nullptr;
    for (std::size_t i = 0; i < it_.statements().size(); ++i)
      if (awaited == nullptr && !it_.multiplies_meanwhile(i)) awaited = product_read(at(i));
    if (awaited == nullptr) return;
    say(g_.location(awaited->inst),
        fmt::format(
            "{}: nothing is multiplied while the iteration computes of it, though a product "
            "of the next iteration could be: only for a sum of nothing but products nobody waits; "
            "the {} clocks of the products add to those of the computation, unless two blocks "
            "share a multiprocessor",
            description_of(g_, awaited->inst), with_commas(clocks_of_products())));
  }

  std::int64_t clocks_of_products() const {
    std::int64_t all = 0;
    for (const Dot* const d : it_.products()) all += product_clocks(l_, *d);
    return all;
  }

  // Of operands that are fetched ahead or the same in all iterations, added to nothing.
  const Dot* independent_product() const {
    for (const Dot* const d : it_.products()) {
      if (!runs_by_itself(*d) || d->accumulates) continue;
      if (is_there(d->a) && is_there(d->b)) return d;
    }
    return nullptr;
  }

  bool is_there(StorageId operand) const {
    return l_.storages[operand].ring() || !products_made_of_.contains(operand);
  }

  // By a nest that fills registers of threads.
  const Dot* product_read(const Statement& s) const {
    if (!std::holds_alternative<LoopNest>(s.what)) return nullptr;
    for (const Effect& e : effects(l_, s))
      for (const Dot* const d : it_.products())
        if (e.reads() && e.storage && e.storage == d->result && runs_by_itself(*d)) return d;
    return nullptr;
  }

  // ---- remarks

  bool has_said(Location where, std::string_view words) const {
    return std::ranges::any_of(l_.remarks, [&](const Remark& r) {
      return r.at.line == where.line && r.text.find(words) != std::string::npos;
    });
  }

  // Whether remarks there give such a reason: with what that costs, once.
  bool has_said_why(Location where, std::string_view words, const std::string& cost) {
    bool found = false;
    for (Remark& r : l_.remarks) {
      if (r.at.line != where.line || r.text.find(words) == std::string::npos) continue;
      if (r.text.find(awaited) == std::string::npos) r.text += "; " + cost;
      found = true;
    }
    return found;
  }

  void say(Location where, std::string text) { l_.remarks.push_back({where, std::move(text)}); }

  Program& l_;
  const graph::Graph& g_;
  const Iteration& it_;
  const bool rotated_, is_counted_;
  std::map<StorageId, MadeOf> made_of_, products_made_of_;
  std::set<Source> told_;
};

// ---- loops

// The next iteration of which somebody may ask for.
bool runs_several_times(const Program& l, const Statement& s) {
  if (const Loop* const loop = std::get_if<Loop>(&s.what))
    return graph::trips(l.graph, loop->inst).value_or(2) > 1;
  const GridLoop* const grid = std::get_if<GridLoop>(&s.what);
  if (grid == nullptr) return std::holds_alternative<While>(s.what);
  if (grid->axis == programs_axis) return false;
  const Dim& extent = l.graph.mapping.grid[static_cast<std::size_t>(grid->axis)];
  return !extent.is_static() || extent.value() > 1;
}

void tell_in(Program& l, const Statements& list) {
  for (const Statement& s : list) {
    for_each_body(s, [&](const Statements& body) { tell_in(l, body); });
    if (!runs_several_times(l, s)) continue;
    const While* const by_while = std::get_if<While>(&s.what);
    const Iteration iteration(by_while != nullptr ? by_while->body : *rotation_of(s).body);
    if (iteration.products().empty()) continue;
    LoopRemarks(l, iteration, rotation_of(s).is_rotated(), by_while == nullptr).tell();
  }
}

// What is said alike of several lines, or several times of one.
void say_once(std::vector<Remark>& remarks) {
  std::vector<Remark> all;
  std::map<std::string, std::vector<std::uint32_t>> lines;
  for (Remark& r : remarks) {
    std::vector<std::uint32_t>& of = lines[r.text];
    of.push_back(static_cast<std::uint32_t>(r.at.line));
    if (of.size() == 1) all.push_back(std::move(r));
  }
  for (Remark& r : all) {
    std::vector<std::uint32_t>& of = lines[r.text];
    if (of.size() == 1) continue;
    const std::size_t times = of.size();
    std::ranges::sort(of);
    const auto again = std::ranges::unique(of);
    of.erase(again.begin(), again.end());
    r.text += of.size() == 1 ? fmt::format(" ({} times)", times)
                             : fmt::format(" (lines {})", fmt::join(of, ", "));
  }
  remarks = std::move(all);
}

}  // namespace

void tell_of_loops(Program& l) {
  if (l.graph.bodies[0].num_stages != 1)
    for_each_list(l, [&](Statements& list) { tell_in(l, list); });
  tell_layouts(l);
  tell_factors(l);
  say_once(l.remarks);
}

}  // namespace palladium::passes
