// The helper's second process: compiles, and may die of it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "codegen/nvrtc/wire.hpp"

namespace palladium::tools {

/// Answers requests until the channel closes, allocating at most `memory_bytes`. The end of
/// `keeper`, its parent, ends it too.
[[noreturn]] void work(nvrtc::wire::Channel& channel, pid_t keeper, std::uint64_t memory_bytes);

}  // namespace palladium::tools
