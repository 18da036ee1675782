// What a statement touches: the one visit over kinds that says so. Who asks what is read, filled,
// begun or awaited asks here, so that a new kind of statement has one place where it must answer.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/device/waist.hpp"
#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// Something that a statement touches by itself, not by what stands inside of it. One of `storage`,
/// `window` and `ring` says what, or none where it only begins or awaits something asynchronous.
struct Effect {
  enum class Access : std::uint8_t {
    none,
    read,
    write,   // all of it
    update,  // what it holds then depends on what it held: elements of it, a sum, a barrier
  };
  /// As what of the statement.
  enum class Role : std::uint8_t {
    value,      // what is evaluated, moved or multiplied: element by element in a loop nest
    mask,       // where a nest stores or updates; element by element, too
    compared,   // with what an update compares
    view,       // index arrays that choose where a nest stores or updates
    subscript,  // scalars by which a view begins where it does, wherever in an expression it stands
    control,    // a condition, the bounds of a loop, the number of a branch
    result,     // what the statement is for
    scratch,    // for an exchange within the statement: nothing is in it before or behind
    barrier,    // an mbarrier, as `barrier`
    block,      // of a window: which block of its array it shows; of a ring: which slot is next
  };
  Access access = Access::none;
  Role role = Role::value;
  StorageId storage = {};
  StorageId replaces =
      {};                // `storage` is read in the place of this one: the same in another layout
  WindowId window = {};  // its block in global memory
  RingId ring = {};
  int back = 0;  // `storage` in the slot of the iteration so many before
  /// What is read by: a load, or a value that has a storage; no_value where storages move.
  ValueId leaf = graph::no_value;
  DimMap map = {};  // of what a nest reads element by element: its coordinates in the nest's

  device::Proxy proxy = device::Proxy::generic;
  bool elected = false;  // one thread of the Pallas thread does it for all
  /// What the access, which goes on behind the statement, completes; or what the statement closes
  /// or awaits.
  device::Completion on = device::Completion::none;
  device::Effects::Role completion = device::Effects::Role::none;
  StorageId barrier = {};  // the storage of the mbarrier

  bool reads() const { return access == Access::read || access == Access::update; }
  bool writes() const { return access == Access::write || access == Access::update; }
  /// What holds the value that is read: not the copy that is read in its place.
  StorageId own_storage() const { return replaces ? replaces : storage; }
  /// Whether a nest reads an element for each of its own.
  bool is_element() const { return access == Access::read && role <= Role::view; }
};

/// All that a statement touches, in the order in which it does: what it reads first.
struct Effects {
  std::vector<Effect> all = {};
  bool syncs = false;  // all threads of the Pallas thread, or of its warp, wait for each other;
                       // with a scratch: once they have stored there what they read
  bool meets_warpgroups = false;  // all threads of each warpgroup wait for each other
  bool fences = false;  // what they stored to shared memory is there for the asynchronous proxy
  bool tells = false;   // the host learns something

  auto begin() const { return all.begin(); }
  auto end() const { return all.end(); }
};

Effects effects(const Program& l, const Statement& s);
Effects effects(const Program& l, const LoopNest& p);

/// What the nest reads, by loads and of values that storages hold, to evaluate an element.
std::vector<Effect> element_reads(const Program& l, const LoopNest& p);

/// A nest reads a value that a storage in registers holds, at these coordinates; of that or, by a
/// Redirect, of a copy.
struct Read {
  const LoopNest* nest = nullptr;
  StorageId storage = {};
  DimMap map = {};
};
std::vector<Read> register_reads(const Program& l, const LoopNest& p);

/// Whether the statement, or one inside of it, has such an effect.
template <class F>
bool any_effect(const Program& l, const Statement& s, const F& is_meant) {
  for (const Effect& e : effects(l, s))
    if (is_meant(e)) return true;
  bool found = false;
  for_each_body(s, [&](const Statements& body) {
    for (const Statement& inner : body) found = found || any_effect(l, inner, is_meant);
  });
  return found;
}

/// Whether one of them changes what the other reads or changes.
bool depend(const Program& l, const Statement& a, const Statement& b);

}  // namespace palladium::lowered
