#include "codegen/passes/reads.hpp"

#include "codegen/passes/effects.hpp"

namespace palladium::passes {

std::vector<Read> register_reads(const Lowered& l, const LoopNest& p) {
  std::vector<Read> found;
  for (const Effect& e : effects(l, p)) {
    const int storage = e.own_storage();
    if (e.is_element() && storage >= 0 && l.storages[storage].place == Place::registers)
      found.push_back({&p, storage, e.map});
  }
  return found;
}

}  // namespace palladium::passes
