// What bodies of kernels over meshes say of tensor cores: accumulators, and how shared memory lies.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/trace/recorder.hpp"
#include "palladium/block_spec.hpp"

namespace palladium::trace {

/// Who may say something: a whole Pallas thread, or a warp of it in a WarpMesh, too.
enum class By : std::uint8_t { threads, warps_too };
/// The recorder; CompileError where `what` is not said by such of a kernel over a mesh.
Recorder& recorder_by_hand(const char* what, Location at, By by = By::threads);

bool is_accumulator(const Recorder& recorder, ValueId view);
/// The value of an accumulator, or of a static slice of one, behind a wait for all products but the
/// last `pending`; below 0: behind none.
ValueId load_accumulator(Recorder& recorder, ValueId view, int pending, Location at);
/// The Load of what load_accumulator gave, or a Load itself.
ValueId load_of(const Recorder& recorder, ValueId v);
/// It holds this, or zeros.
void begin_accumulator(Recorder& recorder, ValueId accumulator, const MaybeValue& init,
                       Location at);

/// What is wrong with an accumulator of this type, with transforms of scratch, as the end of a
/// sentence; else "".
std::string accumulator_problem(const ShapeDtype& type);
std::string transform_problem(const Scoped& scratch);
/// Bytes; 0: none is given.
int swizzle_given(const Scoped& scratch);

}  // namespace palladium::trace
