// What a loop nest evaluates, and what it reads for that.
#pragma once

#include <vector>

#include "codegen/passes/lowered.hpp"

namespace palladium::passes {

/// A pass reads a storage in registers, at these coordinates.
struct Read {
  const Pass* pass = nullptr;
  int storage = -1;
  DimMap map = {};
};
std::vector<Read> register_reads(const Lowered& l, const Pass& p);

/// Calls f(value, enter) for what is evaluated element by element: the pass's own value, and a
/// store's mask.
template <class F>
void for_each_value(const Lowered& l, const Pass& p, F&& f) {
  if (p.value == graph::no_value) return;
  const Assign* whole = std::get_if<Assign>(&p.sink);
  f(p.value, whole != nullptr && enters(l, p, whole->storage));
  const Store* store = std::get_if<Store>(&p.sink);
  const ValueId mask =
      store == nullptr ? graph::no_value : graph::MemoryView::of(l.graph[store->inst]).mask;
  if (mask != graph::no_value) f(mask, false);
}

}  // namespace palladium::passes
