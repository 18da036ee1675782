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

bool touches(const Program& l, const Statement& s, const std::vector<StorageId>& storages) {
  return any_effect(l, s, [&](const Effect& e) {
    return e.storage && std::ranges::count(storages, e.storage) > 0;
  });
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

// How many statements of the program touch any of the storages.
std::ptrdiff_t touching(const Program& l, const std::vector<StorageId>& storages) {
  std::ptrdiff_t found = 0;
  for_each_list(l, [&](const Statements& list) {
    const auto count = [&](const auto& self, const Statements& all) -> void {
      for (const Statement& s : all) {
        bool has_body = false;
        for_each_body(s, [&](const Statements& body) { has_body = true, self(self, body); });
        found += !has_body && touches(l, s, storages);
      }
    };
    count(count, list);
  });
  return found;
}

}  // namespace

bool can_take_turns(const Program& l, const Statements& body,
                    const std::set<std::size_t>& fetches) {
  if (fetches.size() < 2) return false;
  const std::vector<StorageId> first = filled_by(l, copies_at(body, *fetches.begin()));
  for (std::size_t i = 0; i < *fetches.begin(); ++i)
    if (!is_plain(body[i])) return false;
  for (auto f = fetches.begin(); f != fetches.end(); ++f) {
    const Copies copies = copies_at(body, *f);
    const std::vector<StorageId> filled = filled_by(l, copies);
    if (!completed_by(copies[0]) || !are_alike(l, filled, first)) return false;
    const std::size_t end = std::next(f) == fetches.end() ? body.size() : *std::next(f);
    auto readers = std::ssize(copies);
    bool is_read = false;
    for (std::size_t i = *f + copies.size(); i < end; ++i) {
      if (!is_plain(body[i])) return false;
      if (!touches(l, body[i], filled)) continue;
      if (!is_wgmma(body[i])) return false;
      is_read = true;
      ++readers;
    }
    if (!is_read || readers != touching(l, filled)) return false;
  }
  return true;
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
