#include "runtime/emulator/host.hpp"

#include <cmath>

#include "runtime/emulator/block.hpp"

namespace palladium::emulator {
using namespace abi;

const Host& host_table() {
#define PALLADIUM_LIBM(name) .name##_f32 = [](float x) -> float { return std::name(x); }
#define PALLADIUM_LIBM_64(name) .name##_f64 = [](double x) -> double { return std::name(x); }
  static const Host table = {
      .version = host_version,
      .bytes = sizeof(Host),
      .ids = [] { return Block::current().ids(); },
      .warpgroup_sync = [](i32 n, i32 line) { Block::current().warpgroup_sync(n, line); },
      .block_sync = [](i32 line) { Block::current().block_sync(line); },
      .warp_sync = [](i32 line) { Block::current().warp_sync(line); },
      .shuffle = [](u64 value, Shuffle kind, u32 operand, i32 line) -> u64 {
        return Block::current().shuffle(value, kind, operand, line);
      },
      .ballot = [](bool p, i32 line) -> u32 { return Block::current().ballot(p, line); },
      .load_global = [](void* dst, const void* p, u32 bytes,
                        i32 line) { Block::current().load_global(dst, p, bytes, line); },
      .store_global = [](void* p, const void* src, u32 bytes,
                         i32 line) { Block::current().store_global(p, src, bytes, line); },
      .load_shared =
          [](void* dst, u32 address, u32 bytes, bool padded, i32 line) {
            Block::current().load_shared(dst, address, bytes, padded, line);
          },
      .store_shared = [](u32 address, const void* src, u32 bytes,
                         i32 line) { Block::current().store_shared(address, src, bytes, line); },
      .check = [](const char* what, i32 line) { Block::current().check(what, line); },
      .mma = [](void* d, const void* a, const void* b, i32 k, Product product,
                i32 line) { Block::current().mma(d, a, b, k, product, line); },
      .ldmatrix = [](void* dst, u32 row, i32 matrices, bool transposed,
                     i32 line) { Block::current().ldmatrix(dst, row, matrices, transposed, line); },
      PALLADIUM_LIBM(sqrt),
      PALLADIUM_LIBM(cbrt),
      PALLADIUM_LIBM(exp),
      PALLADIUM_LIBM(exp2),
      PALLADIUM_LIBM(expm1),
      PALLADIUM_LIBM(log),
      PALLADIUM_LIBM(log2),
      PALLADIUM_LIBM(log1p),
      PALLADIUM_LIBM(sin),
      PALLADIUM_LIBM(cos),
      PALLADIUM_LIBM(tan),
      PALLADIUM_LIBM(tanh),
      PALLADIUM_LIBM(erf),
      PALLADIUM_LIBM(floor),
      PALLADIUM_LIBM(ceil),
      .round_f32 = [](float x) -> float { return std::rint(x); },
      PALLADIUM_LIBM(trunc),
      PALLADIUM_LIBM_64(sqrt),
      PALLADIUM_LIBM_64(cbrt),
      PALLADIUM_LIBM_64(exp),
      PALLADIUM_LIBM_64(exp2),
      PALLADIUM_LIBM_64(expm1),
      PALLADIUM_LIBM_64(log),
      PALLADIUM_LIBM_64(log2),
      PALLADIUM_LIBM_64(log1p),
      PALLADIUM_LIBM_64(sin),
      PALLADIUM_LIBM_64(cos),
      PALLADIUM_LIBM_64(tan),
      PALLADIUM_LIBM_64(tanh),
      PALLADIUM_LIBM_64(erf),
      PALLADIUM_LIBM_64(floor),
      PALLADIUM_LIBM_64(ceil),
      .round_f64 = [](double x) -> double { return std::rint(x); },
      PALLADIUM_LIBM_64(trunc),
      .atan2_f32 = [](float y, float x) -> float { return std::atan2(y, x); },
      .pow_f32 = [](float x, float y) -> float { return std::pow(x, y); },
      .remainder_f32 = [](float a, float b) -> float { return std::fmod(a, b); },
      .atan2_f64 = [](double y, double x) -> double { return std::atan2(y, x); },
      .pow_f64 = [](double x, double y) -> double { return std::pow(x, y); },
      .remainder_f64 = [](double a, double b) -> double { return std::fmod(a, b); },
      .fma_f32 = [](float a, float b, float c) -> float { return std::fma(a, b, c); },
      .fma_f64 = [](double a, double b, double c) -> double { return std::fma(a, b, c); },
  };
#undef PALLADIUM_LIBM
#undef PALLADIUM_LIBM_64
  return table;
}

}  // namespace palladium::emulator
