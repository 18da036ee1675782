// Operands that threads compute in few instructions, between a copy and a product.
#pragma once

#include <set>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

struct ShortOperands {
  RingId ring = {};           ///< in whose slots they are stored; none: the loop does more than that
  std::int64_t elements = 0;  ///< of a thread in the text of an iteration, times what is done of each
};

/// Of a loop that beside copies, which begin at `copies`, stores operands and multiplies.
ShortOperands short_operands(const Program& l, const Statements& body,
                             const std::set<std::size_t>& copies);

/// So many elements the text of a loop may have that goes over all slots of a ring.
inline constexpr std::int64_t most_elements_over_slots = 512;

}  // namespace palladium::passes
