// Who does what a lowered program does.
#pragma once

#include <string>
#include <vector>

#include "codegen/lowered/statement.hpp"

namespace palladium::lowered {

/// Warpgroups of a block that go through the same statements.
struct Agent {
  std::string name = "compute";  // one word
  int warpgroups = 1;            // of four warps each
  Statements statements = {};
};

/// What a body of the kernel does, by agents side by side: the warpgroups of the first are the
/// first of those that the body has.
struct Body {
  std::vector<Agent> agents = {};

  int warpgroups() const;
};

}  // namespace palladium::lowered
