#include "codegen/lowered/lives.hpp"

#include <algorithm>

#include "codegen/lowered/effects.hpp"

namespace palladium::lowered {
namespace {

// Elements that a nest makes take the place of those in registers of which it makes them one by
// one; all else that it touches is there behind it, too.
bool outlives(const Program& l, const Effect& e, const LoopNest& p) {
  if (!e.reads() || !e.storage || !l.storages[e.storage].in_registers()) return true;
  const DimMap all = identity_map(static_cast<int>(p.domain.size()));
  return e.map != all ||
         l.storages[e.storage].registers().layout.registers() != p.layout.registers();
}

}  // namespace

namespace {

bool has_waits(const Statements& list) {
  return std::ranges::any_of(list, [](const Statement& s) {
    bool found = std::holds_alternative<WaitGroup>(s.what);
    for_each_body(s, [&](const Statements& body) { found = found || has_waits(body); });
    return found;
  });
}

}  // namespace

Lives::Lives(const Program& l, const Visit& visit, First first)
    : l_(l), first_(first), spans_(l.storages.size()) {
  for_each_list(l, [&](const Statements& list) { awaits_ = awaits_ || has_waits(list); });
  for (const Body& b : l_.bodies)
    if (!b.agents.empty()) walk(b.agents[0].statements, visit);
  for (const auto kind : {device::Completion::wgmma_group, device::Completion::bulk_group})
    await({.kind = kind}, position_);
  for (const Body& b : l_.bodies)
    for (std::size_t i = 1; i < b.agents.size(); ++i) meanwhile(b.agents[i].statements);
  for (const Span& loop : loops_)
    for (Span& s : spans_)
      if (s.meets(loop) && (s.first <= loop.first || s.last > loop.last))
        s = {std::min(s.first, loop.first), std::max(s.last, loop.last)};
  for (const StorageId s : filled_by_others_)
    if (Span& span = spans_[l_.room_of(s)]; span.first > 0) span.first = 0;
  for (const Window& w : l_.windows) {
    if (!w.storage() || w.scope != graph::no_value || l_.storages[w.storage()].ring()) continue;
    Span& span = spans_[l_.room_of(w.storage())];
    if (!l_.storages[w.storage()].in_registers())
      span = {0, position_};
    else
      for (const Span& loop : loops_of_program_)
        if (span.meets(loop))
          span = {std::min(span.first, loop.first), std::max(span.last, loop.last)};
  }
}

void Lives::meanwhile(const Statements& list) {
  for (const Statement& s : list) {
    for (const Effect& e : effects(l_, s)) {
      if (!e.storage) continue;
      const RingId ring = l_.storages[e.storage].ring();
      Span& span = spans_[l_.room_of(e.storage)];
      span = !ring || e.reads() || span.first < 0 ? Span{0, position_} : Span{0, span.last};
    }
    for_each_body(s, [&](const Statements& body) { meanwhile(body); });
  }
}

void Lives::walk(const Statements& list, const Visit& visit) {
  for (const Statement& s : list) {
    const int in = ++position_;
    if (visit) visit(s, in);
    const std::vector<Flight> before = flights_;
    const Rotation loop = rotation_of(s);
    const bool left_out = loop.is_rotated() && first_ == First::none;
    for_each_body(s, [&](const Statements& body) {
      if (!left_out || &body != loop.prologue) walk(body, visit);
    });
    if (left_out)
      for (const StorageId shared : *loop.shared) touch(shared, in);
    leave(s, in, before);
    const int behind = ++position_;
    touch(s, in, behind);
    if (const Dot* const d = std::get_if<Dot>(&s.what)) begin(*d, in);
    if (const Copy* const c = std::get_if<Copy>(&s.what)) begin(*c, in);
    if (const WaitGroup* const wait = std::get_if<WaitGroup>(&s.what)) await(*wait, in);
    if (const Wait* const wait = std::get_if<Wait>(&s.what))
      for (const StorageId filled : filled_[wait->barrier]) touch(filled, in);
    if (!repeats(s)) continue;
    loops_.push_back({in, behind});
    const GridLoop* const grid = std::get_if<GridLoop>(&s.what);
    if (grid == nullptr || grid->axis != programs_axis) loops_of_program_.push_back({in, behind});
  }
}

// An A in registers is named by whoever awaits it.
void Lives::begin(const Dot& d, int in) {
  if (!is_of_wgmma(d.unit) || !awaits_) return;
  flights_.push_back(
      {device::Completion::wgmma_group, l_.storages[d.a].in_shared() ? d.a : StorageId(), d.b, in});
}

void Lives::begin(const Copy& c, int in) {
  // Whoever waits for it names it, though nobody may read what it brings.
  if (c.completes && c.to.storage) filled_[c.completes].insert(c.to.storage);
  if (c.share.axes != 0) filled_by_others_.insert(c.to.storage);
  if (c.from.storage && !c.completes && awaits_)
    flights_.push_back({device::Completion::bulk_group, c.from.storage, StorageId(), in});
}

// All are over but for the last, as many as may be pending: of those that were begun for sure. How
// many copies a group of what is sent has nobody asks here.
void Lives::await(const WaitGroup& wait, int in) {
  const bool counts = wait.kind == device::Completion::wgmma_group;
  if (!counts && (wait.kind != device::Completion::bulk_group || wait.pending > 0)) return;
  int left = wait.pending;
  for (std::size_t i = flights_.size(); i-- > 0;) {
    const Flight f = flights_[i];
    if (f.kind != wait.kind) continue;
    if (left > 0) {
      left -= f.is_certain;
      continue;
    }
    for (const StorageId s : {f.a, f.b}) touch(s, in);
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// What may not have run has neither begun nor awaited anything for sure; what a loop has begun and
// not awaited is under way in its next iteration.
void Lives::leave(const Statement& s, int in, const std::vector<Flight>& before) {
  const bool runs =
      std::holds_alternative<Scope>(s.what) || std::holds_alternative<Elected>(s.what);
  if (!runs) {
    std::erase_if(flights_, [&](const Flight& f) { return f.begun <= in; });
    flights_.insert(flights_.begin(), before.begin(), before.end());
  }
  for (Flight& f : flights_) {
    if (f.begun <= in) continue;
    f.is_certain = f.is_certain && runs;
    if (!repeats(s)) continue;
    for (const StorageId operand : {f.a, f.b}) touch(operand, in);
  }
}

void Lives::touch(const Statement& s, int in, int behind) {
  const LoopNest* const nest = std::get_if<LoopNest>(&s.what);
  for (const Effect& e : effects(l_, s))
    touch(e.storage, nest != nullptr && outlives(l_, e, *nest) ? behind : in);
  if (const Scope* const scope = std::get_if<Scope>(&s.what))
    for (const WindowId w : scope->windows)
      for (const int end : {in, behind}) touch(l_.windows[w].storage(), end);
  // What the branches fill is there behind whichever of them runs.
  if (const Switch* const branches = std::get_if<Switch>(&s.what))
    for (const StorageId r : branches->results) touch(r, behind);
}

void Lives::touch(StorageId storage, int position) {
  if (!storage) return;
  Span& span = spans_[l_.room_of(storage)];
  span = {span.first < 0 ? position : std::min(span.first, position),
          std::max(span.last, position)};
}

bool fills_shared(const Program& l, const Statement& s,
                  const std::function<bool(StorageId)>& is_meant) {
  return std::ranges::any_of(effects(l, s), [&](const Effect& e) {
    return e.writes() && e.storage && l.storages[e.storage].in_shared() && is_meant(e.storage);
  });
}

}  // namespace palladium::lowered
