// How a program's accesses fall on memory, and how many instructions of each kind a thread
// executes.
#pragma once

#include <map>
#include <set>
#include <string>

#include "codegen/thread/program.hpp"
#include "palladium/report.hpp"

namespace palladium::thread {

/// By evaluating the addresses of the first warp's lanes. `array_bytes`: of all arrays, 0 where
/// they are not known.
Report report(const Program& program, int compute_capability, std::int64_t array_bytes);

/// What one statement of the lowered program takes when it runs once: of a thread or, of what warps
/// do together, of a warp.
struct Work {
  InstructionMix mix = {};
  double special_steps = 0;  // instructions of what has an error bound
  double conversions = 0;    // of 16-bit floats that are widened and rounded
  /// Of all of these, those of integer units: no additions and products of floats.
  double integer = 0;
  double wavefronts = 0;                      // of shared memory, that threads load and store
  double loaded_bytes = 0, stored_bytes = 0;  // of global memory, in whole sectors
  /// Instructions of wgmma, of those whose A is in registers, columns of all of them.
  double wgmma = 0, wgmma_from_registers = 0, wgmma_columns = 0;
  double mma = 0, by_mma = 0;  // instructions of mma.sync; multiply-adds as in TensorWork
  double tensor_bytes = 0;     // that tensor cores read of shared memory, of wgmma a warpgroup's
};
/// By number of the statement; -1: the frame. `around`: statements that others stand in, whose
/// iterations count for nothing here.
std::map<int, Work> works(const Program& program, const std::set<int>& around);

/// What tensor cores multiply, and read for that of shared memory, in all threads of a block.
struct TensorWork {
  double by_wgmma = 0, by_mma = 0;  // multiply-adds, as many of 16-bit operands as take as long
  double shared_bytes = 0;
};
/// Of a block with so many computing threads, whose warps execute what the report counts.
Prediction predict(const Report& report, const TensorWork& tensor, int compute_capability,
                   int threads);
/// Completes a prediction by the time of so many blocks, whose arrays have so many bytes.
void predict_call(Prediction& prediction, int compute_capability, std::int64_t blocks,
                  std::int64_t array_bytes);

}  // namespace palladium::thread
