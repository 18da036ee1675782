#include "codegen/lowered/machine.hpp"

namespace palladium::lowered {
namespace {

constexpr int first_with_bf16 = 80, first_with_byte_floats = 89;

// Floats of 8 bits, or integers.
bool are_bytes(DType a, DType b) {
  return a.bytes() == 1 && b.bytes() == 1 && !a.is_bool() && !b.is_bool() &&
         a.is_float() == b.is_float();
}

}  // namespace

bool Machine::has_wgmma(DType a, DType b, bool tf32) const {
  if (!has_wgmma()) return false;
  return are_bytes(a, b) || (a == b && (a == f16 || a == bf16 || (a == f32 && tf32)));
}

std::optional<MmaShape> Machine::mma(DType a, DType b, bool tf32) const {
  const int cc = compute_capability;
  if (are_bytes(a, b)) {
    if (a.is_float() && cc < first_with_byte_floats) return {};
    return MmaShape{16, 8, 32};
  }
  if (a != b) return {};
  if (cc >= first_with_bf16) {
    if (a == f16 || a == bf16) return MmaShape{16, 8, 16};
    if (a == f32 && tf32) return MmaShape{16, 8, 8};
  }
  if (a == f16) return MmaShape{16, 8, 8};
  return {};
}

bool Machine::has_fast_byte_floats() const {
  const int cc = compute_capability;
  return cc >= first_with_byte_floats && (cc < 100 || cc >= 120);
}

}  // namespace palladium::lowered
