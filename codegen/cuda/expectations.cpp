#include "codegen/cuda/expectations.hpp"

#include <algorithm>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/timeline/timeline.hpp"

namespace palladium::cuda {
namespace {

using lowered::Dot;
using lowered::Statement;
using lowered::Statements;

std::string with_line(const std::string& text, Location at) {
  return at.line == 0 ? text : fmt::format("{} (line {})", text, at.line);
}

class BrokenByProgram {
 public:
  BrokenByProgram(const graph::Graph& g, const Options& options) : l_(lower(g, options)) {}

  std::vector<std::string> run(int blocks) {
    const Expectation& e = l_.graph.expect;
    lowered::for_each_list(l_, [&](const Statements& list) { visit(list); });
    if (e.tensor_cores && products_ == 0) add("tensor_cores", "it has no products");
    if (e.tma && boxes_ == 0) add("tma", "no block is fetched by it");
    if (e.of_limit > 0) predict(e.of_limit, blocks);
    return std::move(broken_);
  }

 private:
  void visit(const Statements& list) {
    for (const Statement& s : list) {
      if (const Dot* const d = std::get_if<Dot>(&s.what)) check(*d);
      if (std::holds_alternative<lowered::LoopNest>(s.what)) check_copy(s);
      if (const auto* const copy = std::get_if<lowered::Copy>(&s.what))
        boxes_ += copy->box && copy->to.storage;
      for_each_body(s, [&](const Statements& body) { visit(body); });
    }
  }

  // Whether tensor cores make it, by the best that they have for its elements.
  void check(const Dot& d) {
    ++products_;
    if (!l_.graph.expect.tensor_cores || lowered::is_of_wgmma(d.unit)) return;
    const graph::Graph& g = l_.graph;
    const graph::DotView dot = graph::DotView::of(g[d.inst]);
    const bool tf32 = dot.precision == graph::Precision::tf32;
    const bool has_wgmma = l_.machine.has_wgmma(g[dot.a].type.dtype, g[dot.b].type.dtype, tf32);
    if (d.unit != Dot::Unit::fma && !has_wgmma) return;
    add("tensor_cores",
        with_line(fmt::format("{} is multiplied by {}", lowered::description_of(g, d.inst),
                              has_wgmma ? "something else than wgmma" : "no tensor core"),
                  g.location(d.inst)));
  }

  // What threads bring to shared memory.
  void check_copy(const Statement& s) {
    if (!l_.graph.expect.tma) return;
    const auto effects = lowered::effects(l_, s);
    const bool fills = std::ranges::any_of(effects, [&](const lowered::Effect& e) {
      return e.writes() && e.storage && l_.storages[e.storage].in_shared();
    });
    for (const lowered::Effect& e : effects) {
      if (!fills || !e.reads() || !e.window || !told_.insert(e.window).second) continue;
      const auto root = l_.windows[e.window].root;
      add("tma",
          with_line(fmt::format("threads copy {}", lowered::description_of(l_.graph, root)), s.at));
    }
  }

  // The loop that is farthest from the limit.
  void predict(double wanted, int blocks) {
    const thread::Program p = thread_program(l_);
    const Timeline t = timeline::timeline_of(l_, p, blocks);
    if (!t.unknown.empty()) {
      if (!l_.graph.expect.on.empty()) add("of_limit", "nothing is predicted: " + t.unknown);
      return;
    }
    const auto least = std::ranges::min_element(t.loops, {}, &Timeline::Loop::fraction);
    if (least == t.loops.end()) return add("of_limit", "nothing is predicted: it has no loop");
    if (least->fraction < wanted)
      add("of_limit", with_line(fmt::format("{:.2f} is predicted, not {:.2f}; bound by {}",
                                            least->fraction, wanted, least->bound_by),
                                least->at));
  }

  void add(const char* what, const std::string& why) {
    broken_.push_back(fmt::format(".{}: {}", what, why));
  }

  const lowered::Program l_;
  int products_ = 0, boxes_ = 0;
  std::set<lowered::WindowId> told_;
  std::vector<std::string> broken_;
};

}  // namespace

bool is_expected_on(const graph::Graph& g, const std::string& arch) {
  return g.expect != Expectation{} && (g.expect.on.empty() || g.expect.on == arch);
}

std::vector<std::string> broken_by(const graph::Graph& g, const Resources& resources,
                                   std::span<const std::string> of_products) {
  const Expectation& e = g.expect;
  std::vector<std::string> broken;
  const int spilled = resources.spill_store_bytes + resources.spill_load_bytes;
  if (e.spills && spilled > *e.spills)
    broken.push_back(
        fmt::format(".spills: registers spill by {} bytes of stores and {} of loads, not {}",
                    resources.spill_store_bytes, resources.spill_load_bytes, *e.spills));
  if (e.registers > 0 && resources.registers > e.registers)
    broken.push_back(
        fmt::format(".registers: a thread has {}, not {}", resources.registers, e.registers));
  if (e.tensor_cores)
    for (const std::string& warning : of_products) broken.push_back(".tensor_cores: " + warning);
  return broken;
}

std::vector<std::string> broken_by_program(const graph::Graph& g, const Options& options,
                                           int blocks) {
  const Expectation& e = g.expect;
  if (!e.tensor_cores && !e.tma && e.of_limit <= 0) return {};
  return BrokenByProgram(g, options).run(blocks);
}

std::vector<std::string> remarks_of(const graph::Graph& g, const Options& options) {
  std::vector<std::string> all;
  for (const Remark& r : lower(g, options).remarks)
    if (const std::string told = with_line(r.text, r.at); std::ranges::count(all, told) == 0)
      all.push_back(told);
  return all;
}

}  // namespace palladium::cuda
