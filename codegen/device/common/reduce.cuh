// Reductions over the lanes and warps of a program.

namespace pl {

struct Sum {};
struct Max {};
struct Min {};
template <class T>
PL_FN T fold(Sum, T a, T b) {
  return pl::add(a, b);
}
template <class T>
PL_FN T fold(Max, T a, T b) {
  return pl::max(a, b);
}
template <class T>
PL_FN T fold(Min, T a, T b) {
  return pl::min(a, b);
}

// The fold of x over the lanes that differ in the bits of Lanes. (A loop takes NVRTC longer.)
template <u32 Lanes, class T, class Fold>
PL_FN T reduce_lanes(T x, Fold how PL_AND_LINE) {
  if constexpr ((Lanes & 16) != 0) x = pl::fold(how, x, pl::shuffle_xor(x, 16 PL_AND_PASS_LINE));
  if constexpr ((Lanes & 8) != 0) x = pl::fold(how, x, pl::shuffle_xor(x, 8 PL_AND_PASS_LINE));
  if constexpr ((Lanes & 4) != 0) x = pl::fold(how, x, pl::shuffle_xor(x, 4 PL_AND_PASS_LINE));
  if constexpr ((Lanes & 2) != 0) x = pl::fold(how, x, pl::shuffle_xor(x, 2 PL_AND_PASS_LINE));
  if constexpr ((Lanes & 1) != 0) x = pl::fold(how, x, pl::shuffle_xor(x, 1 PL_AND_PASS_LINE));
  return x;
}

template <u32 Lanes, int N, class T, class Fold>
PL_FN void reduce_lanes(T (&x)[N], Fold how PL_AND_LINE) {
  PL_UNROLL for (int i = 0; i < N; ++i) x[i] = reduce_lanes<Lanes>(x[i], how PL_AND_PASS_LINE);
}

namespace detail {

// The bits of `lane` that Lanes names, side by side, as bits from `To` on.
template <u32 Lanes, u32 To = 0>
PL_FN u32 gather_bits(u32 lane) {
  if constexpr (Lanes == 0) {
    return 0;
  } else if constexpr ((Lanes & 1) == 0) {
    return gather_bits<Lanes / 2, To>(lane >> 1);
  } else {
    return (lane & 1) << To | gather_bits<Lanes / 2, To + 1>(lane >> 1);
  }
}

// How many values the bits of a mask can have.
template <u32 Mask>
constexpr u32 values_of = (Mask & 1 ? 2 : 1) * values_of<Mask / 2>;
template <>
constexpr u32 values_of<0> = 1;

// p[First] to p[First + Count - 1] folded, two and two.
template <int First, int Count, class T, int N, class Fold>
PL_FN T fold_range(const T (&p)[N], Fold how) {
  if constexpr (Count == 1) {
    return p[First];
  } else {
    return pl::fold(how, fold_range<First, Count / 2>(p, how),
                    fold_range<First + Count / 2, Count / 2>(p, how));
  }
}

// Those of `Warps` warps whose parts are folded stand side by side, the others above them.
template <u32 Warps, int NumWarps>
PL_FN u32 place_of_warp(u32 warp) {
  if constexpr (Warps == NumWarps - 1) {
    return warp;
  } else {
    return gather_bits<Warps>(warp) + gather_bits<NumWarps - 1 - Warps>(warp) * values_of<Warps>;
  }
}

// The fold of one element's parts at `parts`: those of the warps that share all bits but Warps.
template <u32 Warps, int NumWarps, class T, class Fold>
PL_FN T fold_parts(u32 parts, u32 warp, Fold how PL_AND_LINE) {
  constexpr int count = values_of<Warps>;
  constexpr int at_once = count * sizeof(T) <= 16 ? count : 16 / sizeof(T);
  T p[count];
  parts += gather_bits<NumWarps - 1 - Warps>(warp) * u32(count * sizeof(T));
  PL_UNROLL for (int i = 0; i < count; i += at_once) {
    pl::load_shared<at_once>(p + i, parts + i * u32(sizeof(T)), true PL_AND_PASS_LINE);
  }
  return fold_range<0, count>(p, how);
}

template <int NumWarps>
PL_FN u32 warp_of_program() {
  return (NumWarps == 4 ? pl::thread() : pl::program_thread()) >> 5;
}

template <int Warpgroups, int NumWarps>
PL_FN void sync_to_reduce(PL_LINE) {
  if constexpr (NumWarps == 4) {
    pl::warpgroup_sync<Warpgroups>(PL_PASS_LINE);
  } else {
    pl::program_sync<NumWarps>(PL_PASS_LINE);
  }
}

}  // namespace detail

// The fold of x over the warps that differ in the bits of Warps, through NumWarps * 2^bits(Lanes)
// elements of shared memory at `scratch` (N times as many for an array), aligned to 16 bytes. Lanes
// that differ in a bit of Lanes hold different elements; of those that hold the same, one writes.
// Every warp folds in the same order, so that copies stay equal. Who uses the same scratch again
// puts a barrier between.
template <u32 Warps, u32 Lanes, int Warpgroups, int NumWarps = 4, class T, class Fold>
PL_FN T reduce_warps(T x, u32 scratch, Fold how PL_AND_LINE) {
  const u32 lane = pl::lane(), warp = detail::warp_of_program<NumWarps>();
  const u32 place = detail::place_of_warp<Warps, NumWarps>(warp);
  if constexpr (Lanes != 0) scratch += detail::gather_bits<Lanes>(lane) * (NumWarps * sizeof(T));
  pl::store_shared(scratch + place * sizeof(T), &x, (lane & ~Lanes) == 0 PL_AND_PASS_LINE);
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  return detail::fold_parts<Warps, NumWarps, T>(scratch, warp, how PL_AND_PASS_LINE);
}

template <u32 Warps, u32 Lanes, int Warpgroups, int NumWarps = 4, int N, class T, class Fold>
PL_FN void reduce_warps(T (&x)[N], u32 scratch, Fold how PL_AND_LINE) {
  constexpr u32 stride = NumWarps * detail::values_of<Lanes> * sizeof(T);
  const u32 lane = pl::lane(), warp = detail::warp_of_program<NumWarps>();
  const u32 place = detail::place_of_warp<Warps, NumWarps>(warp);
  scratch += detail::gather_bits<Lanes>(lane) * (NumWarps * sizeof(T));
  PL_UNROLL for (int i = 0; i < N; ++i) pl::store_shared(
      scratch + i * stride + place * sizeof(T), x + i, (lane & ~Lanes) == 0 PL_AND_PASS_LINE);
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  PL_UNROLL for (int i = 0; i < N; ++i) x[i] =
      detail::fold_parts<Warps, NumWarps, T>(scratch + i * stride, warp, how PL_AND_PASS_LINE);
}

}  // namespace pl
