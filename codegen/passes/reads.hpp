// What a loop nest evaluates, and what it reads for that.
#pragma once

#include <vector>

#include "codegen/base/overloaded.hpp"
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
  std::visit(Overloaded{[&](const Assign& to) {
                          const bool own = l.storage_of[graph::index(p.value)] == to.storage;
                          const graph::Op op = l.graph[p.value].op;
                          f(p.value, own && op != graph::Op::Param && op != graph::Op::Get);
                        },
                        [&](const Stage&) { f(p.value, false); },
                        [&](const Store& to) {
                          f(p.value, false);
                          const ValueId mask = graph::MemoryView::of(l.graph[to.inst]).mask;
                          if (mask != graph::no_value) f(mask, false);
                        },
                        [&](const Reduce&) { f(p.value, false); }, [](const Fill&) {},
                        [](const Flush&) {}, [](const Spill&) {}},
             p.sink);
}

}  // namespace palladium::passes
