// Decides what of global memory comes to shared memory by asynchronous copies, which take no
// registers and which no thread waits for before it must.
//
// Precondition: assign_layouts, which says what a thread copies. That is nothing but what is read,
// of memory that nobody writes: what is computed of it goes through registers.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/passes/access_model.hpp"
#include "codegen/passes/guards.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/skewed_rows.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::MemoryView;
using graph::Op;

constexpr int least_bytes = 4, most_bytes = 16;

class ChosenCopies {
 public:
  explicit ChosenCopies(Program& l) : l_(l), g_(l.graph), model_(l), guards_(l) {}

  void run() {
    // Who counts groups by hand has them for himself.
    if (!l_.fetches_by_hand.empty()) return;
    placed_ = placed_bytes(l_);
    for_each_list(l_, [&](Statements& list) { visit(list, false); });
  }

 private:
  void visit(Statements& list, bool repeated) {
    Statements out;
    for (Statement& s : list) {
      const bool again = repeats(s);
      for_each_body(s, [&](Statements& body) { visit(body, again); });
      LoopNest* const p = std::get_if<LoopNest>(&s.what);
      if (Stage* to = p != nullptr ? std::get_if<Stage>(&p->sink) : nullptr) {
        const ValueId narrow = stage(*p, *to, s.at, repeated);
        if (narrow != graph::no_value) {
          const bool zeros = narrow != p->value || fill_of(l_.window_loaded(narrow)).has_value();
          out.push_back(bring_skewed_rows(l_, *p, narrow, zeros, s.at));
        }
      }
      if (Fill* to = p != nullptr ? std::get_if<Fill>(&p->sink) : nullptr) fill(*p, *to, s.at);
      out.push_back(std::move(s));
    }
    list = std::move(out);
  }

  // where(inside, x, 0) asks for the zeros that a copy puts there. Gives the load whose rows are to
  // be brought skewed, if there is one.
  ValueId stage(LoopNest& p, Stage& to, Location at, bool repeated) {
    ValueId v = p.value;
    bool guarded = true;
    if (is_inlined(v, to) && g_[v].op == Op::Select && is_inlined(g_[v].args[1], to) &&
        g_[g_[v].args[1]].op == Op::Load) {
      const ValueId load = g_[v].args[1];
      const MemoryView m = MemoryView::of(g_[load]);
      const Window& w = l_.windows[l_.window_of[g_.base(m.ref)]];
      guarded = obstacle(load) != nullptr || guards_.guards(w, v, load, m.ref);
      v = load;
    }
    DimMap map = identity_map(static_cast<int>(p.domain.size()));
    ValueId read = v;
    while (is_inlined(read, to) && (g_[read].op == Op::Transpose || g_[read].op == Op::Reshape ||
                                    g_[read].op == Op::Broadcast)) {
      map = map_of_operand(g_, read, 0, map);
      read = g_[read].args[0];
    }
    if (!is_inlined(read, to) || g_[read].op != Op::Load) return graph::no_value;
    const MemoryView m = MemoryView::of(g_[read]);
    const std::string what = description_of(g_, g_.root(m.ref));
    const char* why = obstacle(read);
    if (why == nullptr && !guarded) why = "a mask asks more than where its array ends";
    if (why == nullptr && l_.storages[to.storage].shared().tf32)
      why = "its elements are rounded to tf32 on their way";
    if (why == nullptr && is_opaque(map)) why = "it is reshaped on its way";
    if (why == nullptr && m.mask != graph::no_value &&
        differs_in_row(m.mask, map, static_cast<int>(p.domain.size()) - 1))
      why = "its mask differs between elements that would be copied together";
    if (why != nullptr) {
      if (is_global(read))
        l_.remarks.push_back({at, fmt::format("{}: plain loads, because {}", what, why)});
      return graph::no_value;
    }
    const int bytes = bytes_together(p, m.ref, map);
    const bool skewed =
        bytes < least_bytes && repeated && read == v && takes_skewed_rows(l_, p, read, placed_);
    tell_of_width(bytes, skewed, what, at);
    if (bytes < least_bytes) return skewed ? read : graph::no_value;
    to.by = {.asynchronous = true,
             .zeros = v != p.value || m.mask != graph::no_value ||
                      fill_of(l_.window_loaded(read)).has_value()};
    p.value = v;
    return graph::no_value;
  }

  void fill(const LoopNest& p, Fill& to, Location at) {
    const Window& w = l_.windows[to.window];
    if (!w.is_staged()) return;
    if (fill_of(w).value_or(0) != 0) {
      l_.remarks.push_back({at, fmt::format("{}: plain loads, because {}",
                                            description_of(g_, w.root), another_fill)});
      return;
    }
    const DimMap all = identity_map(static_cast<int>(p.domain.size()));
    const int bytes = bytes_together(p, w.root, all);
    tell_of_width(bytes, false, description_of(g_, w.root), at);
    to.by = {.asynchronous = bytes >= least_bytes, .zeros = to.by.zeros || fill_of(w).has_value()};
  }

  // Copies fill with zeros.
  std::optional<std::uint64_t> fill_of(const Window& w) const {
    if (w.mapping < 0) return {};
    return g_.mapping.block_mappings[w.mapping].fill;
  }

  // Or lives where it is staged.
  bool is_inlined(ValueId v, const Stage& to) const {
    return !l_.storage_of[v] || l_.storage_of[v] == to.storage;
  }

  bool is_global(ValueId load) const {
    const Window& w = l_.window_loaded(load);
    return w.is_direct() && w.mapping >= 0;
  }

  // Why threads do not copy what is loaded as it is; nullptr: they do.
  const char* obstacle(ValueId load) const {
    const MemoryView m = MemoryView::of(g_[load]);
    if (m.other != graph::no_value && !is_zero(m.other))
      return "where its mask does not hold stands another number than 0";
    if (!is_global(load)) return "it is in shared memory or registers already";
    const Window& w = l_.window_loaded(load);
    if (!w.read_only) return "its memory is written while the kernel runs";
    return fill_of(w).value_or(0) != 0 ? another_fill : nullptr;
  }

  bool is_zero(ValueId v) const { return g_[v].op == Op::Constant && g_[v].attr.bits == 0; }

  // Whether elements of the mask differ along the `last` dimension of the nest, from whose
  // dimensions `map` leads to those of the mask.
  bool differs_in_row(ValueId mask, const DimMap& map, int last) const {
    std::vector<std::pair<ValueId, DimMap>> stack{{mask, map}};
    std::set<std::pair<ValueId, DimMap>> seen;
    while (!stack.empty()) {
      const auto [v, at] = std::move(stack.back());
      stack.pop_back();
      if (!seen.insert({v, at}).second) continue;
      const Inst& i = g_[v];
      const graph::OpClass kind = graph::info(i.op).op_class;
      const bool moves = i.op == Op::Broadcast || i.op == Op::Transpose || i.op == Op::Reshape;
      if (!l_.storage_of[v] && (moves || kind == graph::OpClass::elementwise)) {
        for (std::size_t a = 0; a < i.args.size(); ++a)
          stack.emplace_back(i.args[a], map_of_operand(g_, v, a, at));
        continue;
      }
      if (i.op == Op::Constant) continue;
      for (std::size_t d = 0; d < at.size(); ++d) {
        if (i.type.shape[d] == 1 ||
            (i.op == Op::Iota && graph::iota_dimension(i) != static_cast<int>(d)))
          continue;
        if (at[d] == opaque_dim || at[d] == last) return true;
      }
    }
    return false;
  }

  static constexpr const char* another_fill = "what lies beyond its array is another number than 0";

  int bytes_together(const LoopNest& p, ValueId ref, const DimMap& map) {
    model_.enter(p, p.layout);
    return model_.whole_width(ref, map) * g_[ref].type.dtype.bytes();
  }

  void tell_of_width(int bytes, bool skewed, const std::string& what, Location at) {
    if (bytes >= most_bytes) return;
    const char* const how = bytes >= least_bytes ? "copies of few bytes"
                            : skewed ? "copied by the 16 bytes around its rows, and put in place "
                                       "by threads"
                                     : "plain loads";
    l_.remarks.push_back(
        {at, fmt::format("{}: {}, because no more than {} of its rows {} known to be aligned, and "
                         "inside of the array or out of it, together",
                         what, how, bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes),
                         bytes == 1 ? "is" : "are")});
  }

  Program& l_;
  const graph::Graph& g_;
  AccessModel model_;
  Guards guards_;
  Checked placed_ = 0;  // bytes of shared memory, before anything is copied
};

}  // namespace

void choose_copies(Program& l) {
  if (l.machine.has_async_copies()) ChosenCopies(l).run();
}

}  // namespace palladium::passes
