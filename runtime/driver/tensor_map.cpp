#include "runtime/driver/tensor_map.hpp"

#include <bit>

#include "palladium/error.hpp"
#include "runtime/driver/driver.hpp"

namespace palladium::driver {
namespace {

/// 0 for none, 1 for `least` bytes, 2 and 3 for the powers of two behind it.
int code(int bytes, int least) {
  return bytes == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bytes / least)) + 1;
}

}  // namespace

TensorMap encode(const TensorMapSpec& spec) {
  if (const std::string problem = problem_of(spec); !problem.empty())
    throw CompileError("tensor map: " + problem);
  constexpr int no_interleave = 0;
  // Its own: g++ does not align the memory in which callers take the result.
  alignas(TensorMap) std::array<std::byte, sizeof(TensorMap)> opaque;
  check(api().cuTensorMapEncodeTiled(
            opaque.data(), static_cast<int>(spec.type), static_cast<unsigned>(spec.rank),
            spec.base, spec.extents.data(), spec.strides.data(), spec.box.data(),
            spec.element_strides.data(), no_interleave, code(spec.swizzle, 32),
            code(spec.l2_promotion, 64), spec.nan_fill ? 1 : 0),
        "cuTensorMapEncodeTiled", describe(spec));
  return {opaque};
}

}  // namespace palladium::driver
