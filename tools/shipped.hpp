// A shipped kernel as `show` and `warm` take it: for its default types.
#pragma once

#include <vector>

#include "palladium/ops/registry.hpp"

namespace palladium::tools {

inline Lowered lowered(const ops::Entry& entry) {
  std::vector<ArgType> types;
  for (const ShapeDtype& type : entry.inputs) types.emplace_back(type, Location{});
  return entry.factory().lower(types, {});
}

}  // namespace palladium::tools
