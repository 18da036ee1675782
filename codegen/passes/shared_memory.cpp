// Gives every storage in shared memory its offset.
//
// Precondition: assign_layouts, which adds staging and scratch.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/passes/lowered.hpp"

namespace palladium::passes {
namespace {

// Offsets in dynamic shared memory; what every warpgroup has a copy of lies side by side.
class SharedMemory {
 public:
  explicit SharedMemory(Lowered& l) : l_(l) {}

  void run() {
    if (!fits()) too_much();
    l_.shared_bytes = end_.value();
  }

  bool fits() {
    for (LoweredBody& b : l_.bodies) scratch_sizes(b.statements);
    std::vector<bool> scoped(l_.storages.size());
    for (const Window& w : l_.windows)
      if (w.storage >= 0 && w.scope != graph::no_value)
        scoped[static_cast<std::size_t>(w.storage)] = true;
    for (std::size_t s = 0; s < l_.storages.size(); ++s)
      if (l_.storages[s].place == Place::shared && !scoped[s]) place(l_.storages[s]);
    for (LoweredBody& b : l_.bodies) end_ = scopes(b.statements, end_);
    return end_.within(0, l_.machine.max_shared_bytes);
  }

 private:
  // The exchange between warps needs room for the partial results of the lanes that differ.
  void scratch_sizes(Statements& list) {
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { scratch_sizes(body); });
      const Pass* pass = std::get_if<Pass>(&s.what);
      if (pass == nullptr) continue;
      std::visit(
          [&](const auto& fold) {
            if constexpr (requires { fold.scratch; }) {
              l_.storages[fold.scratch].shape = {fold.scratch_elements(l_, pass->layout)};
              l_.storages[fold.scratch].dtype = accumulator_dtype(l_.graph, fold.inst);
            }
          },
          pass->sink);
    }
  }

  // Gives scopes that end before others begin one place; where the last one ends. What is stored
  // there waits for all who read what was there.
  Checked scopes(Statements& list, Checked begin) {
    Checked last = begin;
    for (Statement& s : list) {
      end_ = begin;
      if (const Scope* scope = std::get_if<Scope>(&s.what))
        for (const int w : scope->windows)
          if (const int storage = l_.windows[static_cast<std::size_t>(w)].storage;
              storage >= 0 && l_.storages[static_cast<std::size_t>(storage)].place == Place::shared)
            place(l_.storages[static_cast<std::size_t>(storage)]);
      const Checked inside = end_;
      Checked most = inside;
      for_each_body(s, [&](Statements& body) { most = larger(most, scopes(body, inside)); });
      last = larger(last, most);
    }
    return last;
  }

  static Checked larger(Checked a, Checked b) {
    if (!a.fits() || !b.fits()) return a.fits() ? b : a;
    return a.value() < b.value() ? b : a;
  }

  void place(Storage& s) {
    s.offset = end_.value_or(0);
    end_ += shared_bytes(s) * (s.per_warpgroup ? l_.warpgroups : 1);
  }

  [[noreturn]] void too_much() const {
    const Storage* largest = nullptr;
    for (const Storage& s : l_.storages)
      if (s.place == Place::shared && (!largest || shared_bytes(s).value_or(INT64_MAX) >
                                                       shared_bytes(*largest).value_or(INT64_MAX)))
        largest = &s;
    throw CompileError(
        largest->of == graph::no_value ? l_.graph.at : l_.graph.location(largest->of),
        fmt::format(
            "kernel '{}' needs {} bytes of shared memory, sm_{} has {} per block; the "
            "largest part is {}{}: choose smaller blocks",
            l_.graph.name, end_.fits() ? std::to_string(end_.value()) : "more than 2^63",
            l_.machine.compute_capability, l_.machine.max_shared_bytes,
            graph::to_string(graph::Type::value(largest->dtype, largest->shape)),
            largest->of == graph::no_value ? "" : " for " + description_of(l_.graph, largest->of)));
  }

  Lowered& l_;
  Checked end_ = 0;
};

}  // namespace

bool stages_too_much(const Lowered& l) {
  if (std::ranges::none_of(l.windows,
                           [](const Window& w) { return w.residency == Residency::staged; }))
    return false;
  Lowered copy = l;
  return !SharedMemory(copy).fits();
}

Checked shared_bytes(const Storage& s) {
  Checked elements = checked_product(s.shape);
  if (s.row_stride > 0 && !s.shape.empty())
    elements = elements / std::max<std::int64_t>(1, s.shape.back()) * s.row_stride;
  return checked_align_up(elements * s.dtype.bytes(), 16);
}

void place_shared_memory(Lowered& l) { SharedMemory(l).run(); }

}  // namespace palladium::passes
