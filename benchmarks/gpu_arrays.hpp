// Arrays of drawn numbers on the first GPU, made there.
#pragma once

#include <cstdint>

#include "palladium/palladium.hpp"

namespace palladium::benchmark {

inline std::int64_t elements_of(const Shape& shape) {
  std::int64_t n = 1;
  for (const Dim& d : shape) n *= d.value();
  return n;
}

/// Floats from -1 to 1, integers of any value: what is multiplied decides how much power a GPU
/// takes and with it how fast it is.
inline Array drawn(const ShapeDtype& type) {
  constexpr int block = 4096;
  const std::int64_t n = elements_of(type.shape);
  const auto body = [=](Ref seed, Ref o) {
    const Value place = iota(i32, {block}, 0) + program_id(0) * block;
    const Value bits = philox(seed[{0}], place)[0];
    const bool is_float = type.dtype.is_float();
    o[_] = is_float ? ((bits >> 8u).astype(f32) * (2.0f / (1 << 24)) - 1.0f).astype(type.dtype)
                    : bits.astype(i32).astype(type.dtype);
  };
  const Kernel fill =
      pallas_call(body, {.name = "drawn",
                         .out_type = {{n}, type.dtype},
                         .grid = {cdiv(n, block)},
                         .in_specs = {{{1}, [](Index) { return Indices{0}; }}},
                         .out_specs = {{{block}, [](Index i) { return Indices{i}; }}}});
  const Array seed = Array::of<std::int32_t>({7}).to(device_of(Target::cuda));
  return Array(fill.on(Target::cuda)(seed)).reshape(type.shape);
}

}  // namespace palladium::benchmark
