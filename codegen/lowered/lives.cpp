#include "codegen/lowered/lives.hpp"

#include <algorithm>

#include "codegen/lowered/effects.hpp"

namespace palladium::lowered {

Lives::Lives(const Program& l) : l_(l), spans_(l.storages.size()) {
  for (const ProgramBody& b : l_.bodies) walk(b.statements);
  for (const Span& loop : loops_)
    for (Span& s : spans_) {
      if (s.first < loop.first && s.last >= loop.first) s.last = std::max(s.last, loop.last);
      if (s.last > loop.last && s.first >= loop.first && s.first <= loop.last) s.first = loop.first;
    }
}

void Lives::walk(const Statements& list) {
  for (const Statement& s : list) {
    const int begin = ++position_;
    for (const Effect& e : effects(l_, s)) touch(e.storage);
    for_each_body(s, [&](const Statements& body) { walk(body); });
    if (repeats(s)) loops_.push_back({begin, ++position_});
  }
}

void Lives::touch(StorageId storage) {
  if (storage)
    if (const RingId ring = l_.storages[storage].ring(); ring) storage = l_.rings[ring].storage;
  if (!storage || l_.storages[storage].place() != Place::shared) return;
  Span& span = spans_[storage];
  if (span.first < 0) span.first = position_;
  span.last = position_;
}

bool fills_shared(const Program& l, const Statement& s,
                  const std::function<bool(StorageId)>& is_meant) {
  return std::ranges::any_of(effects(l, s), [&](const Effect& e) {
    return e.writes() && e.storage && l.storages[e.storage].place() == Place::shared &&
           is_meant(e.storage);
  });
}

}  // namespace palladium::lowered
