// What a loop nest evaluates, and what it reads for that.
#pragma once

#include <vector>

#include "codegen/passes/lowered.hpp"

namespace palladium::passes {

/// A nest reads a value that a storage in registers holds, at these coordinates; of that or, by a
/// Redirect, of a copy.
struct Read {
  const LoopNest* nest = nullptr;
  int storage = -1;
  DimMap map = {};
};
std::vector<Read> register_reads(const Lowered& l, const LoopNest& p);

/// Calls f(value, enter) for what is evaluated element by element: the nest's own value, of a store
/// or an update the mask and what is compared with, and the view that it goes to if index arrays
/// are in it.
template <class F>
void for_each_value(const Lowered& l, const LoopNest& p, F&& f) {
  if (p.value == graph::no_value) return;
  const Assign* whole = std::get_if<Assign>(&p.sink);
  f(p.value, whole != nullptr && enters(l, p, whole->storage));
  const ValueId access = accessed_by(p.sink);
  if (access == graph::no_value) return;
  const graph::MemoryView m = graph::MemoryView::of(l.graph[access]);
  for (const ValueId v : {m.mask, m.other})
    if (v != graph::no_value) f(v, false);
  if (l.graph.chooses(m.ref)) f(m.ref, false);
}

}  // namespace palladium::passes
