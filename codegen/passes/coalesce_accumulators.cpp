// What is computed of the elements of a product, one by one, takes their place in the product's
// registers, where nobody asks for them any more: wgmma names the registers that it fills, and
// values that live elsewhere would need as many again. What a loop in a loop carries of what that
// one carries is in the same registers, if nobody asks for the outer one meanwhile.
//
// Precondition: assign_layouts.
#include <algorithm>
#include <set>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

class Coalescing {
 public:
  explicit Coalescing(Program& l) : l_(l) {
    for (const Window& w : l_.windows) kept_.insert(w.storage());
  }

  void run() {
    for_each_list(l_, [&](Statements& list) { visit(list); });
  }

 private:
  // How many statements read or fill each storage.
  void count(const Statements& list) {
    for (const Statement& s : list) {
      for (const StorageId storage : touched(s)) ++touches_[storage];
      for_each_body(s, [&](const Statements& body) { count(body); });
    }
  }

  void visit(Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](Statements& body) { visit(body); });
      const Dot* const d = std::get_if<Dot>(&list[i].what);
      if (d != nullptr && d->unit == Dot::Unit::wgmma && !d->accumulates)
        replace(list, i, d->result);
    }
    for (std::size_t i = 0; i < list.size(); ++i)
      if (hand_over(list, i)) --i;
  }

  // ---- carries

  // What the nest is a copy of; none: it computes something.
  StorageId copied(const LoopNest& p) const {
    if (!std::holds_alternative<Assign>(p.sink) || !p.redirects.empty()) return {};
    const std::vector<Effect> reads = element_reads(l_, p);
    if (reads.size() != 1 || reads[0].leaf != p.value ||
        reads[0].map != identity_map(static_cast<int>(p.domain.size())))
      return {};
    return reads[0].storage;
  }

  // Has those who work on the copy that is made at `at` work on what is copied, where that is put
  // back, as it is or element by element, behind all that read it. Says whether it does.
  bool hand_over(Statements& list, std::size_t at) {
    const LoopNest* const begin = std::get_if<LoopNest>(&list[at].what);
    const StorageId outer = begin == nullptr ? StorageId() : copied(*begin);
    const StorageId inner = outer ? storage_filled(begin->sink) : StorageId();
    if (!outer || !can_share(inner, outer)) return false;
    std::size_t end = at + 1;
    while (end < list.size() && !touches_any(list[end], outer)) ++end;
    const LoopNest* const back =
        end < list.size() ? std::get_if<LoopNest>(&list[end].what) : nullptr;
    if (back == nullptr || !takes_place(*back, inner, outer)) return false;
    int touching = 0;
    for (std::size_t k = at; k <= end; ++k) touching += count_touching(list[k], inner);
    if (touching != count_touching(inner)) return false;
    const bool is_moved = copied(*back) == inner;
    if (is_moved) list.erase(list.begin() + static_cast<std::ptrdiff_t>(end));
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    touches_ = {};
    rename(list, inner, outer);
    return true;
  }

  bool can_share(StorageId inner, StorageId outer) const {
    const Storage &from = storage(outer), &to = storage(inner);
    return inner != outer && from.in_registers() && to.in_registers() && !kept_.contains(inner) &&
           !to.is_packed() && from.dtype == to.dtype &&
           from.registers().layout == to.registers().layout;
  }

  // Whether the nest puts into `outer` nothing but what it computes of each element of `inner`.
  bool takes_place(const LoopNest& p, StorageId inner, StorageId outer) const {
    if (!std::holds_alternative<Assign>(p.sink) || storage_filled(p.sink) != outer ||
        !p.redirects.empty())
      return false;
    const DimMap all = identity_map(static_cast<int>(p.domain.size()));
    return std::ranges::all_of(register_reads(l_, p), [&](const Read& r) {
      return r.storage != outer && (r.storage != inner || r.map == all);
    });
  }

  bool touches_any(const Statement& s, StorageId storage) const {
    return any_effect(
        l_, s, [&](const Effect& e) { return e.storage == storage || e.replaces == storage; });
  }

  // Statements that read or fill it: this one and those in it; in all of the program.
  int count_touching(const Statement& s, StorageId storage) const {
    int count = touched(s).contains(storage) ? 1 : 0;
    for_each_body(s, [&](const Statements& body) {
      for (const Statement& inner : body) count += count_touching(inner, storage);
    });
    return count;
  }
  int count_touching(StorageId storage) const {
    int count = 0;
    for_each_list(l_, [&](const Statements& list) {
      for (const Statement& s : list) count += count_touching(s, storage);
    });
    return count;
  }

  // ---- products

  // Elements of the product at `at`, by what stands behind it in the list.
  void replace(Statements& list, std::size_t at, StorageId result) {
    if (touches_.empty()) {  // for the first product: most programs have none
      touches_.resize(l_.storages.size());
      for_each_list(l_, [&](const Statements& all) { count(all); });
    }
    for (std::size_t i = at + 1; i < list.size(); ++i) {
      const LoopNest* const p = std::get_if<LoopNest>(&list[i].what);
      const StorageId filled = p == nullptr ? StorageId() : storage_filled(p->sink);
      if (!filled || !is_replaced(list, at, i, *p, result, filled)) continue;
      const bool is_moved = l_.storage_of[p->value] == result;  // the product itself
      rename(list, filled, result);
      touches_[result] += touches_[filled] - 1;
      if (!is_moved) continue;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i--));
      --touches_[result];
    }
  }

  // Whether the nest at `i` is the last to read `result`, of which it takes the element that it
  // computes, and all that touches either stands in the list.
  bool is_replaced(const Statements& list, std::size_t at, std::size_t i, const LoopNest& p,
                   StorageId result, StorageId filled) const {
    const Storage &from = storage(result), &to = storage(filled);
    if (!std::holds_alternative<Assign>(p.sink) || kept_.contains(filled) ||
        kept_.contains(result) || filled == result || !to.in_registers() || !from.in_registers() ||
        to.is_packed() || to.dtype != from.dtype ||
        to.registers().layout != from.registers().layout || !p.redirects.empty())
      return false;
    const DimMap all = identity_map(static_cast<int>(p.domain.size()));
    bool reads = false;
    for (const Read& r : register_reads(l_, p)) {
      if (r.storage == result && r.map != all) return false;
      reads |= r.storage == result;
    }
    if (!reads) return false;
    int of_result = 0, of_filled = 0;
    for (std::size_t k = at; k < list.size(); ++k) {
      const std::set<StorageId> found = touched(list[k]);
      if (found.contains(result) && k > i) return false;
      if (found.contains(filled) && k < i) return false;
      of_result += found.contains(result) ? 1 : 0;
      of_filled += found.contains(filled) ? 1 : 0;
    }
    return of_result == touches(result) && of_filled == touches(filled);
  }

  void rename(Statements& list, StorageId from, StorageId to) {
    l_.storages[from].in = Inlined{};
    for (StorageId& s : l_.storage_of)
      if (s == from) s = to;
    rename_in(list, from, to);
  }

  static void rename_in(Statements& list, StorageId from, StorageId to) {
    for (Statement& s : list) {
      for_each_name(s, [&](StorageId& named) {
        if (named == from) named = to;
      });
      for_each_body(s, [&](Statements& body) { rename_in(body, from, to); });
    }
  }

  // The storages that stand in a statement itself: of what its values read, those with a copy.
  template <class F>
  static void for_each_name(Statement& s, F&& f) {
    const auto visit = [&](auto& what) {
      if constexpr (requires { what.sink; })
        std::visit([&](auto& sink) { names_of(sink, f); }, what.sink);
      if constexpr (requires { what.redirects; })
        for (auto& [read, copy] : what.redirects) f(read), f(copy.storage);
      names_of(what, f);
    };
    std::visit(visit, s.what);
  }

  // Those of a kind of statement or sink.
  template <class F>
  static void names_of(auto& what, F&& f) {
    if constexpr (requires { what.storage; }) f(what.storage);
    if constexpr (requires { what.a, what.b, what.result; }) f(what.a), f(what.b), f(what.result);
    if constexpr (requires { f(what.from); }) f(what.from);
    if constexpr (requires { f(what.to); }) f(what.to);
    if constexpr (requires { f(what.from.storage); }) f(what.from.storage), f(what.to.storage);
    if constexpr (requires { what.results; })
      for (StorageId& r : what.results) f(r);
    if constexpr (requires { what.storages; })
      for (StorageId& s : what.storages) f(s);
  }

  // The storages that a statement itself reads or fills, or for which it reads copies.
  std::set<StorageId> touched(const Statement& s) const {
    std::set<StorageId> found;
    for (const Effect& e : effects(l_, s))
      for (const StorageId storage : {e.storage, e.replaces})
        if (storage) found.insert(storage);
    return found;
  }

  const Storage& storage(StorageId s) const { return l_.storages[s]; }
  int touches(StorageId s) const { return touches_[s]; }

  Program& l_;
  std::set<StorageId> kept_;  // that live longer than statements say
  Table<StorageId, int> touches_;
};

}  // namespace

void coalesce_accumulators(Program& l) { Coalescing(l).run(); }

}  // namespace palladium::passes
