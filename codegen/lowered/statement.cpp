#include "codegen/lowered/statement.hpp"

namespace palladium::lowered {

// The member of that name, of the kinds that have it.
#define PALLADIUM_MEMBER(function, member)         \
  int function(const Sink& sink) {                 \
    return std::visit(                             \
        [](const auto& kind) {                     \
          if constexpr (requires { kind.member; }) \
            return kind.member;                    \
          else                                     \
            return -1;                             \
        },                                         \
        sink);                                     \
  }
PALLADIUM_MEMBER(storage_filled, storage)
PALLADIUM_MEMBER(storage_moved, from)
PALLADIUM_MEMBER(window_moved, window)
PALLADIUM_MEMBER(scratch_of, scratch)
#undef PALLADIUM_MEMBER

ValueId accessed_by(const Sink& sink) {
  if (const Store* s = std::get_if<Store>(&sink)) return s->inst;
  if (const Update* u = std::get_if<Update>(&sink)) return u->inst;
  return graph::no_value;
}

}  // namespace palladium::lowered
