// What one launch tells the host (codegen/device/common/debug.cuh).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

#include "codegen/graph/graph.hpp"

namespace palladium::runtime {

inline constexpr std::size_t debug_buffer_bytes = std::size_t{1} << 20;

/// Makes memory, at least debug_buffer_bytes of zeros, a buffer of which nothing has been used.
void begin_debug_buffer(std::span<std::uint64_t> buffer);

/// Prints what the kernel, which has ended, has told; how many lines the buffer could not hold is a
/// warning in the log. The memory is zeros again. Returns the failure of a check, if one failed.
std::exception_ptr drain_debug_buffer(std::span<std::uint64_t> buffer, const graph::Graph& g);

}  // namespace palladium::runtime
