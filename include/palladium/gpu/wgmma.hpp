// Products of a warpgroup's tensor cores (sm_90a), which go on while its threads work: where they
// add up, how shared memory lies that they read, and who waits for them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "palladium/control.hpp"
#include "palladium/ops.hpp"
#include "palladium/scoped.hpp"
#include "palladium/spec.hpp"

namespace palladium::gpu {

// ---- How shared memory lies

/// In tiles of these extents, of the last dimensions, which they divide.
PALLADIUM_API Transform TilingTransform(std::vector<std::int64_t> tiling, Location at = here());
/// The rows of tiles, of 32, 64 or 128 bytes, swizzled, as TMA and tensor cores have them.
PALLADIUM_API Transform SwizzleTransform(int bytes, Location at = here());
/// The widest swizzle, 128, 64, 32 or 16 bytes, of which rows of so many bits are a multiple;
/// CompileError, which names `what`, where there is none.
PALLADIUM_API int find_swizzle(std::int64_t minor_dim_bits, const char* what = "",
                               Location at = here());
/// The same memory with its dimensions in this order.
inline Ref transpose_ref(const Ref& ref, Axes permutation, Location at = here()) {
  return ref.transpose(permutation, at);
}

// ---- Accumulators

/// Scratch in the registers of a Pallas thread, in which tensor cores add up: of f32, of f16 for
/// operands of f16 and 8-bit floats, or of i32 for integers, of a multiple of 64 rows and of 8
/// columns. It holds zeros first.
///
/// `acc[_]`, or a static slice of it, waits for all products of the thread, then reads. It is
/// stored to as a whole.
struct Accumulators {
  Scoped operator()(Shape shape, DType dtype = f32, Location at = here()) const {
    return {Space::accumulator, {std::move(shape), dtype}, at};
  }
  /// One for run_scoped and run_state that holds this value first.
  PALLADIUM_API Scoped init(const Operand& value) const;
};
inline constexpr Accumulators ACC{};

/// acc += a @ b, some time before it is awaited: matrices {m, k} and {k, n} in SMEM, of f16, bf16,
/// f32 (of whose fraction 10 bits count), 8-bit floats, i8 or u8, or an A of 8 or 16 bits in
/// registers. A matrix that lies transposed is given as transpose_ref(a, {1, 0}); those of other
/// than 16 bits lie as {m, k} and {n, k}.
///
/// Until wgmma_wait says that it is over nobody reads or stores to `acc`, but by other products,
/// nor writes what `a` and `b` show. What threads stored there is there behind commit_smem().
PALLADIUM_API void wgmma(const Ref& acc, const Ref& a, const Ref& b, Location at = here());
PALLADIUM_API void wgmma(const Ref& acc, const Operand& a, const Ref& b);
/// Waits for all products of the calling thread but the last n of them.
PALLADIUM_API void wgmma_wait(int n, Location at = here());

struct AccumulatorLoadOptions {
  std::optional<int> wait_n = 0;  ///< so many products may be under way; none: whoever reads knows
};
/// The value of an accumulator, or of a static slice, behind wgmma_wait(wait_n).
PALLADIUM_API Effect wgmma_accumulator_load(const Ref& acc, AccumulatorLoadOptions options = {},
                                            const detail::Expression& at = {});

/// `plgpu::run_state(f)(plgpu::ACC.init(x))` runs f(acc) and gives what the accumulator holds then:
/// a Value; of several, pl::carry of them.
template <class F>
auto run_state(F f, Location at = here()) {
  return [ f = std::move(f), at ]<std::same_as<Scoped>... S>(const S&... accumulators) {
    constexpr std::size_t count = sizeof...(S);
    static_assert(count > 0, "palladium: expected at least one accumulator to run_state");
    const auto run = [&](Refs accs) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        f(accs[static_cast<int>(I)]...);
        if constexpr (count == 1)
          return Value(accs[0][_]);
        else
          return carry(Value(accs[static_cast<int>(I)][_])...);
      }
      (std::make_index_sequence<count>());
    };
    return run_scoped(run, {accumulators...}, {}, detail::Expression(at));
  };
}

// ---- Products of values

/// acc + a @ b of values {m, k} and {k, n} in registers, at once: f16, bf16, 8-bit floats or
/// integers, with an f32 or i32 acc.
PALLADIUM_API Value mma(const Operand& acc, const Operand& a, const Operand& b);

}  // namespace palladium::gpu
