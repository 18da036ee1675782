// Reductions over the lanes and warps of a warpgroup.

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

// The fold of one element's parts at `parts`, where those of the four warps stand side by side: all
// of them, or the two that `warp` shares.
template <u32 Warps, class T, class Fold>
PL_FN T fold_parts(u32 parts, u32 warp, Fold how PL_AND_LINE) {
  if constexpr (Warps == 3) {
    T p[4];
    if constexpr (sizeof(T) <= 4) {
      pl::load_shared<4>(p, parts, true PL_AND_PASS_LINE);
    } else {
      pl::load_shared<2>(p, parts, true PL_AND_PASS_LINE);
      pl::load_shared<2>(p + 2, parts + 16, true PL_AND_PASS_LINE);
    }
    return pl::fold(how, pl::fold(how, p[0], p[1]), pl::fold(how, p[2], p[3]));
  } else {
    T p[2];
    const u32 pair = Warps == 2 ? warp & 1 : warp >> 1;
    pl::load_shared<2>(p, parts + pair * 2 * sizeof(T), true PL_AND_PASS_LINE);
    return pl::fold(how, p[0], p[1]);
  }
}

}  // namespace detail

// The fold of x over the warps that differ in the bits of Warps, through 4 * 2^bits(Lanes) elements
// of shared memory at `scratch` (N times as many for an array), aligned to 16 bytes. Lanes that
// differ in a bit of Lanes hold different elements; of those that hold the same, one writes. Every
// warp folds in the same order, so that copies stay equal. Who uses the same scratch again puts a
// barrier between.
template <u32 Warps, u32 Lanes, int Warpgroups, class T, class Fold>
PL_FN T reduce_warps(T x, u32 scratch, Fold how PL_AND_LINE) {
  const u32 lane = pl::lane(), warp = pl::thread() >> 5;
  const u32 place = Warps == 2 ? warp >> 1 | (warp & 1) << 1 : warp;
  if constexpr (Lanes != 0) scratch += detail::gather_bits<Lanes>(lane) * (4 * sizeof(T));
  pl::store_shared(scratch + place * sizeof(T), &x, (lane & ~Lanes) == 0 PL_AND_PASS_LINE);
  pl::warpgroup_sync<Warpgroups>(PL_PASS_LINE);
  return detail::fold_parts<Warps, T>(scratch, warp, how PL_AND_PASS_LINE);
}

template <u32 Warps, u32 Lanes, int Warpgroups, int N, class T, class Fold>
PL_FN void reduce_warps(T (&x)[N], u32 scratch, Fold how PL_AND_LINE) {
  constexpr u32 stride = 4 * detail::values_of<Lanes> * sizeof(T);
  const u32 lane = pl::lane(), warp = pl::thread() >> 5;
  const u32 place = Warps == 2 ? warp >> 1 | (warp & 1) << 1 : warp;
  scratch += detail::gather_bits<Lanes>(lane) * (4 * sizeof(T));
  PL_UNROLL for (int i = 0; i < N; ++i) pl::store_shared(
      scratch + i * stride + place * sizeof(T), x + i, (lane & ~Lanes) == 0 PL_AND_PASS_LINE);
  pl::warpgroup_sync<Warpgroups>(PL_PASS_LINE);
  PL_UNROLL for (int i = 0; i < N; ++i) x[i] =
      detail::fold_parts<Warps, T>(scratch + i * stride, warp, how PL_AND_PASS_LINE);
}

}  // namespace pl
