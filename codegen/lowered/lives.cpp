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

void Lives::touch(int storage) {
  if (storage >= 0)
    if (const int ring = l_.storages[static_cast<std::size_t>(storage)].ring; ring >= 0)
      storage = l_.rings[static_cast<std::size_t>(ring)].storage;
  if (storage < 0 || l_.storages[static_cast<std::size_t>(storage)].place != Place::shared) return;
  Span& span = spans_[static_cast<std::size_t>(storage)];
  if (span.first < 0) span.first = position_;
  span.last = position_;
}

bool fills_shared(const Program& l, const Statement& s, const std::function<bool(int)>& is_meant) {
  return std::ranges::any_of(effects(l, s), [&](const Effect& e) {
    return e.writes() && e.storage >= 0 &&
           l.storages[static_cast<std::size_t>(e.storage)].place == Place::shared &&
           is_meant(e.storage);
  });
}

}  // namespace palladium::lowered
