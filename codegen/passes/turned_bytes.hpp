// Operands of 8 bits that are transposed on their way from shared memory to shared memory.
#pragma once

#include <optional>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Bytes that a warp transposes at once, and what a lane gives addresses of: rows of 16 of them.
inline constexpr std::int64_t turned_rows = 32, turned_columns = 16;

/// What lies in rows becomes columns.
struct TurnedBytes {
  StorageId from = {}, to = {};
  std::int64_t rows = 0, columns = 0;     ///< of `from`, in squares of a warp
  int warps_rows = 1, warps_columns = 1;  ///< that stand along them
  std::int64_t squares_of_warp() const { return rows / warps_rows * (columns / warps_columns); }
};

/// Whether a value is what it transposes, bytes that warps of the machine can transpose so.
bool turns_bytes(const Program& l, ValueId v);

/// A nest that does that and nothing else, by the machine's loads and stores of matrices.
std::optional<TurnedBytes> turned_bytes(const Program& l, const LoopNest& p);

}  // namespace palladium::passes
