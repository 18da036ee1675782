#include "codegen/lowered/statement.hpp"

#include <algorithm>

namespace palladium::lowered {

// The member of that name, of the kinds that have it.
#define PALLADIUM_MEMBER(function, member, Kind)   \
  Kind function(const Sink& sink) {                \
    return std::visit(                             \
        [](const auto& kind) {                     \
          if constexpr (requires { kind.member; }) \
            return kind.member;                    \
          else                                     \
            return Kind();                         \
        },                                         \
        sink);                                     \
  }
PALLADIUM_MEMBER(storage_filled, storage, StorageId)
PALLADIUM_MEMBER(storage_moved, from, StorageId)
PALLADIUM_MEMBER(window_moved, window, WindowId)
PALLADIUM_MEMBER(scratch_of, scratch, StorageId)
#undef PALLADIUM_MEMBER

ValueId accessed_by(const Sink& sink) {
  if (const Store* s = std::get_if<Store>(&sink)) return s->inst;
  if (const Update* u = std::get_if<Update>(&sink)) return u->inst;
  return graph::no_value;
}

int steps(const Statements& list, RingId ring) {
  return static_cast<int>(std::ranges::count_if(list, [&](const Statement& s) {
    const Advance* const a = std::get_if<Advance>(&s.what);
    return a != nullptr && a->ring == ring;
  }));
}

}  // namespace palladium::lowered
