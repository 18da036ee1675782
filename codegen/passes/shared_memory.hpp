// What place_shared_memory refuses.
#pragma once

#include "palladium/error.hpp"

namespace palladium::passes {

/// A block needs more shared memory than the architecture has.
class SharedMemoryError final : public CompileError {
 public:
  using CompileError::CompileError;
};

}  // namespace palladium::passes
