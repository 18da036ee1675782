// One thread arrives for all of a Pallas thread, who wait for each other in front of that: it tells
// of what they have done. Where they have touched no memory since they last did, the products alone
// that each knows to be over, they need not.
#include <algorithm>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/async_copies.hpp"

namespace palladium::passes {
namespace {

class IdleSyncs {
 public:
  explicit IdleSyncs(const Program& l) : l_(l) {}

  /// Whether threads have touched memory since they waited for each other, behind the list.
  bool walk(Statements& list, bool touched, bool removes) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (std::holds_alternative<Sync>(list[i].what)) {
        const bool is_idle = removes && !touched && arrives_by_hand(list, i + 1);
        if (is_idle) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i--));
        touched = false;
        continue;
      }
      touched = inside(list[i], touched, removes) || touches(list[i]);
    }
    return touched;
  }

 private:
  bool inside(Statement& s, bool touched, bool removes) {
    bool behind = touched;
    if (Scope* const scope = std::get_if<Scope>(&s.what))
      return walk(scope->body, touched, removes);
    const auto each = [&](bool before, bool does) {
      for_each_body(s, [&](Statements& body) { behind = walk(body, before, does) || behind; });
    };
    if (repeats(s)) each(touched, false);
    each(behind, removes);
    return behind;
  }

  bool arrives_by_hand(const Statements& list, std::size_t at) const {
    const Arrive* const a = at < list.size() ? std::get_if<Arrive>(&list[at].what) : nullptr;
    return a != nullptr && a->bytes == 0 && l_.barriers[a->barrier].by_hand;
  }

  bool touches(const Statement& s) const {
    const Effects all = effects(l_, s);
    return std::ranges::any_of(all, [&](const Effect& e) {
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
  for_each_list(l, [&](Statements& list) { IdleSyncs(l).walk(list, false, true); });
}

}  // namespace palladium::passes
