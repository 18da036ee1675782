// The shipped kernels by name: what the command line lists, runs, shows and warms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "palladium/kernel.hpp"

namespace palladium::ops {

struct Entry {
  const char* name;
  const char* sentence;  ///< what it computes
  Kernel (*factory)();
  std::vector<ShapeDtype> inputs;  ///< what it is shown and warmed for where nobody says
  /// The types of such calls, whose sizes are symbols, all multiples of this number: what calls of
  /// other sizes run. Null where `inputs` have no other numbers than all calls.
  std::vector<ShapeDtype> (*of_calls)(std::int64_t multiple) = nullptr;
};

PALLADIUM_API std::span<const Entry> registry();
/// CompileError that lists the names if there is none of this one.
PALLADIUM_API const Entry& find(const std::string& name, Location at = here());

}  // namespace palladium::ops
