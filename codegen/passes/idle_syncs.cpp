// One thread arrives for all of a Pallas thread, who wait for each other in front of that: it tells
// of what they have done. Where they have touched no memory since they last did, nor fenced what
// they did, the products alone that each knows to be over, they need not; and where each has waited
// for a barrier a product stands in between, which all of them begin together: the arrival of one
// may complete that barrier again.
#include <algorithm>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/async_copies.hpp"

namespace palladium::passes {
namespace {

class IdleSyncs {
 public:
  explicit IdleSyncs(const Program& l) : l_(l) {}

  /// What threads have done since they waited for each other: touched memory, or waited for a
  /// barrier and begun no product then.
  struct Since {
    bool touched = false, waited = false;
    bool any() const { return touched || waited; }
    void join(Since o) {
      touched = touched || o.touched;
      waited = waited || o.waited;
    }
  };

  /// Behind the list.
  Since walk(Statements& list, Since since, bool removes) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (std::holds_alternative<Sync>(list[i].what)) {
        const bool is_idle = removes && !since.any() && arrives_by_hand(list, i + 1);
        if (is_idle) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i--));
        since = {};
        continue;
      }
      since = inside(list[i], since, removes);
      since.touched = since.touched || touches(list[i]);
      since.waited =
          std::holds_alternative<Wait>(list[i].what) || (since.waited && !begins_product(list[i]));
    }
    return since;
  }

 private:
  Since inside(Statement& s, Since since, bool removes) {
    Since behind = since;
    if (Scope* const scope = std::get_if<Scope>(&s.what)) return walk(scope->body, since, removes);
    const auto each = [&](Since before, bool does) {
      for_each_body(s, [&](Statements& body) { behind.join(walk(body, before, does)); });
    };
    if (repeats(s)) each(since, false);
    each(behind, removes);
    return behind;
  }

  static bool begins_product(const Statement& s) {
    const Dot* const d = std::get_if<Dot>(&s.what);
    return d != nullptr && is_of_wgmma(d->unit);
  }

  bool arrives_by_hand(const Statements& list, std::size_t at) const {
    const Arrive* const a = at < list.size() ? std::get_if<Arrive>(&list[at].what) : nullptr;
    return a != nullptr && a->bytes == 0 && l_.barriers[a->barrier].by_hand;
  }

  // A fence is of what a thread did before, whenever that was; what one thread waited for the
  // others know behind a barrier.
  bool touches(const Statement& s) const {
    const Effects all = effects(l_, s);
    if (all.fences) return true;
    return std::ranges::any_of(all, [&](const Effect& e) {
      if (e.elected && e.completion == device::Effects::Role::awaits) return true;
      if (e.elected || e.proxy != device::Proxy::generic || e.role == Effect::Role::barrier)
        return false;
      return e.storage ? l_.storages[e.storage].in_shared()
                       : e.window && e.role != Effect::Role::block;
    });
  }

  const Program& l_;
};

}  // namespace

void leave_out_idle_syncs(Program& l) {
  for_each_list(l, [&](Statements& list) { IdleSyncs(l).walk(list, {}, true); });
}

}  // namespace palladium::passes
