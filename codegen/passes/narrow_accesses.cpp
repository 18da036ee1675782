// Says which accesses of neighbours in global memory move less than 16 bytes at a time, why, and
// what would make them wider. Nothing else of the program changes.
//
// Precondition: plan_accesses. What stands between a block's whole ways and its ragged ones is said
// of the whole ones; what is too small to give each thread 16 bytes is as wide as it can be.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/layouts.hpp"
#include "codegen/passes/nest_model.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Op;

constexpr int wide_bytes = 16;

class NarrowAccesses {
 public:
  explicit NarrowAccesses(Program& l)
      : l_(l), g_(l.graph), model_(l), nests_(l), halved_(graph::halved_bytes(l.graph)) {}

  void tell() {
    for_each_list(l_, [&](const Statements& list) { visit(list); });
  }

 private:
  void visit(const Statements& list) {
    for (const Statement& s : list) {
      if (const LoopNest* const p = std::get_if<LoopNest>(&s.what)) tell_of(*p, s.at);
      if (const IfWhole* const both = std::get_if<IfWhole>(&s.what))
        visit(both->bodies[0]);
      else
        for_each_body(s, [&](const Statements& body) { visit(body); });
    }
  }

  void tell_of(const LoopNest& p, Location at) {
    nest_ = &p;
    const std::vector<Effect> reads = element_reads(l_, p);
    const bool mixes =
        std::ranges::any_of(reads, [](const Effect& e) { return e.window && is_opaque(e.map); });
    widths_ = mixes ? nests_.look(p).widths : std::map<ValueId, int>();
    model_.enter(p, p.layout);
    for (const Effect& e : reads)
      if (e.window && e.on == device::Completion::none && g_[e.leaf].op == Op::Load)
        tell_of(g_[e.leaf].args[0], e.map, "read", g_.location(e.leaf), e.leaf);
    const DimMap all = identity_map(p.layout.rank());
    if (const Store* const to = std::get_if<Store>(&p.sink))
      tell_of(g_[to->inst].args[0], all, "stored", at);
    if (const auto* const to = std::get_if<lowered::Update>(&p.sink); to && adds_vectors(l_, *to))
      tell_of(g_[to->inst].args[0], all, "added", at);
    if (const Flush* const to = std::get_if<Flush>(&p.sink))
      tell_of(l_.windows[to->window].root, all, "stored", at);
    const Fill* const from = std::get_if<Fill>(&p.sink);
    if (from != nullptr && !from->by.asynchronous)
      tell_of(l_.windows[from->window].root, all, "read", at);
  }

  void tell_of(ValueId ref, const DimMap& map, const char* moved, Location at,
               ValueId load = graph::no_value) {
    const WindowId window = l_.window_of[g_.base(ref)];
    const Window& w = l_.windows[window];
    const bool moves_block = g_[ref].op == Op::Param && !w.is_direct();
    const graph::Type& type = g_[ref].type;
    if ((!w.is_direct() && !moves_block) || w.mapping < 0 || g_.chooses(ref)) return;
    const int bytes = type.dtype.bytes();
    const auto known = widths_.find(load);
    const int width = !is_opaque(map)          ? model_.whole_width(ref, map)
                      : known != widths_.end() ? known->second
                                               : 1;
    const std::int64_t each = graph::element_count(type.shape) / l_.threads();
    if (width * bytes >= wide_bytes || each <= width || !model_.has_neighbours(ref)) return;
    const int widest = moves_block ? model_.widest_of_block(window) : model_.widest(ref);
    const std::string why =
        halved_.contains(load) && width > 1
            ? fmt::format("threads have {} elements of 4 bits next to each other", 2 * width)
            : reason(w, ref, map, width, std::min(widest, wide_bytes / bytes), moved);
    const std::string text = fmt::format(
        "{}: {} {} at a time, not 16, because {}", description_of(g_, g_.root(ref)), moved,
        width * bytes == 1 ? "a byte" : fmt::format("{} bytes", width * bytes), why);
    if (told_.emplace(load == graph::no_value ? ref : load, text).second)
      l_.remarks.push_back({at, text});
  }

  std::string reason(const Window& w, ValueId ref, const DimMap& map, int width, int widest,
                     std::string_view moved) {
    if (widest * g_[ref].type.dtype.bytes() < wide_bytes) return alignment(w, ref);
    if (is_opaque(map))
      return "its elements are taken in another order than they stand in, as by a reshape or a "
             "strided slice; copied to scratch in plgpu::SMEM first, it is read by 16";
    if (moved == "read" && is_of_product())
      return "the threads that compute with it have its elements as a product in the loop leaves "
             "them; behind the loop it is read by 16";
    if (is_of_product())
      return fmt::format("of a row products leave a thread {} next to each other{}",
                         width == 1 ? "no elements" : fmt::format("{} elements", width),
                         sends_halves(moved, ref) ? "; in f16 or bf16 it is stored by 16" : "");
    return "threads have its elements as another array or a fold wants them; a block with more "
           "elements for each thread, or a copy of it in plgpu::SMEM, moves by 16";
  }

  // Whether TMA would store it in 16 bits.
  bool sends_halves(std::string_view moved, ValueId ref) const {
    return moved == "stored" && l_.machine.has_tma() && g_[ref].type.dtype.bytes() != 2;
  }

  // Whether it goes over elements as products leave them.
  bool is_of_product() const {
    bool found = false;
    const std::function<void(const Statements&)> visit = [&](const Statements& list) {
      for (const Statement& s : list) {
        const Dot* const d = std::get_if<Dot>(&s.what);
        found |= d != nullptr && l_.storages[d->result].in_registers() &&
                 l_.storages[d->result].registers().layout == nest_->layout;
        for_each_body(s, visit);
      }
    };
    for_each_list(l_, visit);
    return found;
  }

  std::string alignment(const Window& w, ValueId ref) {
    const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
    const int n = wide_bytes / g_[ref].type.dtype.bytes();
    const int rank = m.array_aval.shape.rank();
    const Dim row = rank == 0 ? Dim(1) : m.array_aval.shape[rank - 1];
    if (rank > 0 && row.is_static() && row.value() % n != 0)
      return fmt::format(
          "its rows have {} elements, no multiple of {}; padded to {} they move by 16", row.value(),
          n, round_up(row.value(), n));
    if (rank > 0 && !row.is_static() && model_.multiple(row) % n != 0)
      return fmt::format(
          "nothing says that its rows have a multiple of {} elements; a call whose sizes are, or "
          "pl::dim(name, {{.multiple_of = {}}}), moves 16",
          n, n);
    return fmt::format(
        "of where it begins in a row nothing says that it is a multiple of {}; "
        "pl::multiple_of(start, {}) does",
        n, n);
  }

  Program& l_;
  const graph::Graph& g_;
  AccessModel model_;
  NestModel nests_;
  const std::set<ValueId> halved_;  // bytes of which elements of 4 bits are made
  const LoopNest* nest_ = nullptr;
  std::map<ValueId, int> widths_;  // of its loads, where some are of mixed elements
  std::set<std::pair<ValueId, std::string>> told_;
};

}  // namespace

void tell_of_accesses(Program& l) { NarrowAccesses(l).tell(); }

}  // namespace palladium::passes
