#include "codegen/trace/recorder.hpp"
#include "palladium/call.hpp"

namespace palladium {

Scalar detail::scalar(const Value& literal, DType dtype, Location at) {
  if (dtype == DType()) throw CompileError(at, "scalar: a dtype is needed");
  return {dtype, trace::to_bits(trace::literal(literal), dtype, "scalar", at)};
}

}  // namespace palladium
