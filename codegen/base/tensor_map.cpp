#include "codegen/base/tensor_map.hpp"

#include <algorithm>
#include <initializer_list>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium {
namespace {

constexpr std::uint64_t chunk = 16;

bool is_float(TensorMapType type) {
  switch (type) {
  case TensorMapType::f16:
  case TensorMapType::f32:
  case TensorMapType::f64:
  case TensorMapType::bf16:
  case TensorMapType::f32_ftz:
  case TensorMapType::tf32:
  case TensorMapType::tf32_ftz: return true;
  default: return false;
  }
}

bool is_one_of(int x, std::initializer_list<int> allowed) {
  for (const int a : allowed) {
    if (x == a) return true;
  }
  return false;
}

std::string problem_of_dimension(const TensorMapSpec& spec, int d) {
  const std::uint64_t extent = spec.extents[d];
  if (extent == 0 || extent > std::uint64_t{1} << 32) {
    return fmt::format("extent {} of dimension {} is not in 1..2^32", extent, d);
  }
  if (spec.box[d] == 0 || spec.box[d] > 256) {
    return fmt::format("box extent {} of dimension {} is not in 1..256", spec.box[d], d);
  }
  if (spec.element_strides[d] == 0 || spec.element_strides[d] > 8) {
    return fmt::format("element stride {} of dimension {} is not in 1..8", spec.element_strides[d],
                       d);
  }
  if (d == 0) return {};
  const std::uint64_t stride = spec.strides[d - 1];
  if (stride % chunk != 0 || stride >= std::uint64_t{1} << 40) {
    return fmt::format("stride {} of dimension {} is not a multiple of 16 bytes below 2^40", stride,
                       d);
  }
  return {};
}

}  // namespace

std::size_t bytes_of(TensorMapType type) {
  switch (type) {
  case TensorMapType::u8: return 1;
  case TensorMapType::u16:
  case TensorMapType::f16:
  case TensorMapType::bf16: return 2;
  case TensorMapType::u32:
  case TensorMapType::i32:
  case TensorMapType::f32:
  case TensorMapType::f32_ftz:
  case TensorMapType::tf32:
  case TensorMapType::tf32_ftz: return 4;
  case TensorMapType::u64:
  case TensorMapType::i64:
  case TensorMapType::f64: return 8;
  }
  throw InternalError("tensor map: no such type");
}

const char* name(TensorMapType type) {
  switch (type) {
  case TensorMapType::u8: return "u8";
  case TensorMapType::u16: return "u16";
  case TensorMapType::u32: return "u32";
  case TensorMapType::i32: return "i32";
  case TensorMapType::u64: return "u64";
  case TensorMapType::i64: return "i64";
  case TensorMapType::f16: return "f16";
  case TensorMapType::f32: return "f32";
  case TensorMapType::f64: return "f64";
  case TensorMapType::bf16: return "bf16";
  case TensorMapType::f32_ftz: return "f32_ftz";
  case TensorMapType::tf32: return "tf32";
  case TensorMapType::tf32_ftz: return "tf32_ftz";
  }
  return "unknown";
}

std::string describe(const TensorMapSpec& spec) {
  const auto rank = static_cast<std::size_t>(std::clamp(spec.rank, 1, 5));
  const auto list = [](const auto& values, std::size_t count, const char* separator) {
    return fmt::format("{}", fmt::join(values.begin(), values.begin() + count, separator));
  };
  std::string text = fmt::format("{}-d {} array of {} at {}", spec.rank, name(spec.type),
                                 list(spec.extents, rank, " x "), spec.base);
  if (rank > 1)
    text += fmt::format(", stride{} {}", rank > 2 ? "s" : "", list(spec.strides, rank - 1, ", "));
  text += "; box of " + list(spec.box, rank, " x ");
  const auto steps = spec.element_strides;
  if (std::any_of(steps.begin(), steps.begin() + rank, [](auto step) { return step != 1; }))
    text += ", element strides " + list(steps, rank, ", ");
  if (spec.swizzle != 0) text += fmt::format(", swizzle {}", spec.swizzle);
  if (spec.l2_promotion != 0) text += fmt::format(", L2 promotion {}", spec.l2_promotion);
  if (spec.nan_fill) text += ", filled with NaN";
  return text;
}

std::string problem_of(const TensorMapSpec& spec) {
  if (spec.rank < 1 || spec.rank > 5) return fmt::format("rank {} is not in 1..5", spec.rank);
  if (const auto base = reinterpret_cast<std::uintptr_t>(spec.base);
      base == 0 || base % chunk != 0) {
    return fmt::format("the array's address {:#x} is not a multiple of 16 bytes", base);
  }
  for (int d = 0; d < spec.rank; ++d) {
    if (std::string problem = problem_of_dimension(spec, d); !problem.empty()) return problem;
  }
  const std::uint64_t row = spec.box[0] * bytes_of(spec.type);
  if (row % chunk != 0) {
    return fmt::format("a row of the box has {} bytes, which is not a multiple of 16", row);
  }
  if (!is_one_of(spec.swizzle, {0, 32, 64, 128})) {
    return fmt::format("swizzle {} is not 0, 32, 64 or 128 bytes", spec.swizzle);
  }
  if (spec.swizzle != 0 && row > static_cast<std::uint64_t>(spec.swizzle)) {
    return fmt::format("a row of the box has {} bytes, more than its swizzle of {}", row,
                       spec.swizzle);
  }
  if (!is_one_of(spec.l2_promotion, {0, 64, 128, 256})) {
    return fmt::format("L2 promotion {} is not 0, 64, 128 or 256 bytes", spec.l2_promotion);
  }
  if (spec.nan_fill && !is_float(spec.type)) return "only arrays of floats can be filled with NaN";
  return {};
}

}  // namespace palladium
