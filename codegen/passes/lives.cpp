#include "codegen/passes/lives.hpp"

#include <algorithm>

#include "codegen/base/overloaded.hpp"
#include "codegen/passes/reads.hpp"

namespace palladium::passes {

Lives::Lives(Lowered& l) : l_(l), spans_(l.storages.size()) {
  for (LoweredBody& b : l_.bodies) walk(b.statements);
  for (const Span& loop : loops_)
    for (Span& s : spans_) {
      if (s.first < loop.first && s.last >= loop.first) s.last = std::max(s.last, loop.last);
      if (s.last > loop.last && s.first >= loop.first && s.first <= loop.last) s.first = loop.first;
    }
}

void Lives::walk(Statements& list) {
  for (Statement& s : list) {
    const int begin = ++position_;
    std::visit([this](const auto& what) { touch(what); }, s.what);
    for_each_body(s, [&](Statements& body) { walk(body); });
    if (repeats(s)) loops_.push_back({begin, ++position_});
  }
}

void Lives::touch(int storage) {
  if (storage >= 0)
    if (const int ring = l_.storages[static_cast<std::size_t>(storage)].ring; ring >= 0)
      storage = l_.rings[static_cast<std::size_t>(ring)].storage;
  if (storage < 0 || l_.storages[static_cast<std::size_t>(storage)].place != Place::shared) return;
  Span& span = spans_[static_cast<std::size_t>(storage)];
  if (span.first < 0) span.first = position_;
  span.last = position_;
}

void Lives::touch_leaves(ValueId value, const DimMap& map, bool enter) {
  for_each_leaf(l_, value, map, enter, [&](ValueId, const DimMap&, int s) { touch(s); });
}

void Lives::touch(const LoopNest& p) {
  const DimMap all = identity_map(static_cast<int>(p.domain.size()));
  for_each_value(l_, p, [&](ValueId v, bool enter) { touch_leaves(v, all, enter); });
  for (const auto& [from, redirect] : p.redirects) touch(redirect.storage);
  for (const int s : {storage_filled(p.sink), storage_moved(p.sink), scratch_of(p.sink)}) touch(s);
}

void Lives::touch(const Dot& d) {
  for (const int s : {d.a, d.b, d.result}) touch(s);
}

void Lives::touch(const Relayout& r) {
  for (const int s : {r.from, r.to, r.scratch}) touch(s);
}

void Lives::touch(const Send& s) { touch(s.from); }

void Lives::touch(const Scalar& s) {
  const auto rank = static_cast<int>(l_.graph[s.value].type.shape.size());
  touch_leaves(s.value, identity_map(rank), true);
  for (const auto& [from, redirect] : s.redirects) touch(redirect.storage);
  touch(s.storage);
}

void Lives::touch(const CopyStorage& c) {
  touch(c.from);
  touch(c.to);
}

void Lives::touch(const Semaphore& s) { touch(s.scratch); }

void Lives::touch(const HostCall& t) { touch(t.scratch); }

std::vector<int> shared_filled(const Lowered& l, const Statement& s) {
  std::vector<int> filled;
  std::visit(Overloaded{[&](const LoopNest& p) {
                          filled = {storage_filled(p.sink), scratch_of(p.sink)};
                        },
                        [&](const Relayout& r) {
                          filled = {r.to, r.scratch};
                        },
                        [&](const Semaphore& semaphore) { filled = {semaphore.scratch}; },
                        [&](const HostCall& t) { filled = {t.scratch}; },
                        [&](const CopyStorage& c) { filled = {c.to}; }, [](const auto&) {}},
             s.what);
  std::erase_if(filled, [&](int f) {
    return f < 0 || l.storages[static_cast<std::size_t>(f)].place != Place::shared;
  });
  return filled;
}

}  // namespace palladium::passes
