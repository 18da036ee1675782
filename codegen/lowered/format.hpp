// Numbers of parts of a lowered program in text: -1 for none.
#pragma once

#include "codegen/base/format.hpp"
#include "codegen/lowered/ids.hpp"

template <class Kind>
struct fmt::formatter<palladium::lowered::Id<Kind>> : fmt::formatter<int> {
  template <class Context>
  auto format(palladium::lowered::Id<Kind> id, Context& context) const {
    return fmt::formatter<int>::format(id.number(), context);
  }
};
