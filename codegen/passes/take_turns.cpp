#include "codegen/passes/take_turns.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/slots.hpp"

namespace palladium::passes {

namespace {

bool is_like(const Storage& a, const Storage& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.in_shared() && b.in_shared() &&
         a.shared() == b.shared();
}

bool are_alike(const Program& l, const std::vector<StorageId>& a, const std::vector<StorageId>& b) {
  return std::ranges::equal(
      a, b, [&](StorageId x, StorageId y) { return is_like(l.storages[x], l.storages[y]); });
}

// Whether it is a sum by wgmma, or nothing that takes time.
bool is_plain(const Statement& s) {
  const Dot* const d = std::get_if<Dot>(&s.what);
  return (is_wgmma(s) && d->accumulates) || std::holds_alternative<Scalar>(s.what) ||
         std::holds_alternative<EnterWindow>(s.what);
}

// The program without barriers that nobody completes any more.
void drop(Program& l, const std::set<BarrierId>& dropped) {
  std::map<BarrierId, BarrierId> number;
  Table<BarrierId, lowered::Barriers> kept;
  for (const BarrierId b : l.barriers.ids())
    if (dropped.contains(b))
      l.storages[l.barriers[b].storage].in = lowered::Inlined{};
    else
      number[b] = kept.add(l.barriers[b]);
  l.barriers = std::move(kept);
  const auto renumber = [&](BarrierId& b) {
    if (b) b = number.at(b);
  };
  for (lowered::Ring& r : l.rings) renumber(r.empty_barriers);
  const auto visit = [&](const auto& self, Statements& list) -> void {
    for (Statement& s : list) {
      if (Copy* const c = std::get_if<Copy>(&s.what)) renumber(c->completes);
      if (Arrive* const a = std::get_if<Arrive>(&s.what)) renumber(a->barrier);
      if (Wait* const w = std::get_if<Wait>(&s.what)) renumber(w->barrier);
      for_each_body(s, [&](Statements& body) { self(self, body); });
    }
  };
  for_each_list(l, [&](Statements& list) { visit(visit, list); });
}

/// Who touches the storages that fetches fill.
class Uses {
 public:
  Uses(const Program& l, const Statements& body, const std::set<std::size_t>& fetches) : l_(l) {
    int number = 0;
    for (const std::size_t f : fetches) {
      for (const StorageId s : filled_by(l, copies_at(body, f))) fetch_[s] = number;
      ++number;
    }
    for_each_list(l, [&](const Statements& list) { count(list); });
  }

  /// Counts the statement as met; whether it touches nothing that other fetches fill.
  bool meet(const Statement& s, int number) {
    return std::ranges::all_of(touched(s), [&](StorageId x) {
      --left_[x];
      return fetch_.at(x) == number;
    });
  }
  /// Whether no other statement of the program touches any.
  bool are_met() const {
    return std::ranges::all_of(left_, [](const auto& x) { return x.second == 0; });
  }
  std::set<StorageId> touched(const Statement& s) const {
    std::set<StorageId> found;
    for (const Effect& e : effects(l_, s))
      if (e.storage && fetch_.contains(e.storage)) found.insert(e.storage);
    return found;
  }

 private:
  void count(const Statements& list) {
    for (const Statement& s : list) {
      for (const StorageId x : touched(s)) ++left_[x];
      for_each_body(s, [&](const Statements& body) { count(body); });
    }
  }

  const Program& l_;
  std::map<StorageId, int> fetch_, left_;
};

}  // namespace

bool can_take_turns(const Program& l, const Statements& body,
                    const std::set<std::size_t>& fetches) {
  if (fetches.size() < 2) return false;
  const std::vector<StorageId> first = filled_by(l, copies_at(body, *fetches.begin()));
  Uses uses(l, body, fetches);
  int number = -1;
  bool is_read = true;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (fetches.contains(i)) {
      const Copies copies = copies_at(body, i);
      if (!is_read || !completed_by(copies[0]) || !are_alike(l, filled_by(l, copies), first))
        return false;
      ++number;
      is_read = false;
      for (const Statement& s : copies)
        if (!uses.meet(s, number)) return false;
      i += copies.size() - 1;
    } else {
      const bool reads = !uses.touched(body[i]).empty();
      if (!is_plain(body[i]) || (reads && !is_wgmma(body[i])) || !uses.meet(body[i], number))
        return false;
      is_read = is_read || reads;
    }
  }
  return is_read && uses.are_met();
}

void take_turns(Program& l, Statements& body, const std::set<std::size_t>& fetches) {
  const Copies copies = copies_at(body, *fetches.begin());
  const std::vector<StorageId> first = filled_by(l, copies);
  const BarrierId barrier = completed_by(copies[0]);
  std::map<StorageId, StorageId> renamed;
  std::set<BarrierId> others;
  for (const std::size_t f : fetches) {
    if (const BarrierId b = completed_by(body[f]); b != barrier) others.insert(b);
    const std::vector<StorageId> filled = filled_by(l, copies_at(body, f));
    for (std::size_t i = 0; i < filled.size(); ++i)
      if (filled[i] != first[i]) renamed[filled[i]] = first[i];
  }
  const auto rename = [&](StorageId& s) {
    if (const auto to = renamed.find(s); to != renamed.end()) s = to->second;
  };
  for (Statement& s : body) {
    if (Copy* const c = std::get_if<Copy>(&s.what)) {
      rename(c->to.storage);
      c->completes = barrier;
    } else if (Dot* const d = std::get_if<Dot>(&s.what)) {
      rename(d->a);
      rename(d->b);
    }
  }
  for (StorageId& s : l.storage_of) rename(s);
  for (const auto& [from, to] : renamed) l.storages[from].in = lowered::Inlined{};
  drop(l, others);
}

}  // namespace palladium::passes
