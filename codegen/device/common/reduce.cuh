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

// Shared memory in which the warps of a warpgroup exchange their parts of elements of type T: four
// parts side by side for each element, those that differ in the bits of Warps first.
template <u32 Warps, u32 Lanes, class T>
struct Exchange {
  static constexpr u32 size = sizeof(T), stride = 4 * values_of<Lanes> * size;
  static constexpr int parts = Warps == 3 ? 4 : 2, vector = parts * size <= 16 ? parts : 16 / size;
  u32 slot, part;
  bool puts;  // of lanes that hold the same elements, one

  PL_FN explicit Exchange(u32 scratch) {
    const u32 lane = pl::lane(), warp = pl::thread() >> 5;
    slot = scratch + gather_bits<Lanes>(lane) * 4 * size;
    part = (Warps == 2 ? warp >> 1 | (warp & 1) << 1 : warp) * size;
    puts = (lane & ~Lanes & 31) == 0;
  }
  PL_FN void put(int i, const T& x PL_AND_LINE) const {
    pl::store_shared<1>(slot + u32(i) * stride + part, &x, puts PL_AND_PASS_LINE);
  }
  template <class Fold>
  PL_FN T get(int i, Fold how PL_AND_LINE) const {
    const u32 first = slot + u32(i) * stride + (part & ~(parts * size - 1));
    T p[parts];
    pl::load_shared<vector>(p, first, true PL_AND_PASS_LINE);
    if constexpr (vector < parts)
      pl::load_shared<vector>(p + vector, first + 16, true PL_AND_PASS_LINE);
    if constexpr (parts == 2) {
      return pl::fold(how, p[0], p[1]);
    } else {
      return pl::fold(how, pl::fold(how, p[0], p[1]), pl::fold(how, p[2], p[3]));
    }
  }
};

}  // namespace detail

// The fold of x over the warps that differ in the bits of Warps, through 4 * 2^bits(Lanes) elements
// of shared memory at `scratch` (N times as many for an array), aligned to 16 bytes. Lanes that
// differ in a bit of Lanes hold different elements. Every warp folds in the same order, so that
// copies stay equal. Who uses the same scratch again puts a barrier between.
template <u32 Warps, u32 Lanes, int Warpgroups, class T, class Fold>
PL_FN T reduce_warps(T x, u32 scratch, Fold how PL_AND_LINE) {
  const detail::Exchange<Warps, Lanes, T> exchange(scratch);
  exchange.put(0, x PL_AND_PASS_LINE);
  pl::warpgroup_sync<Warpgroups>(PL_PASS_LINE);
  return exchange.get(0, how PL_AND_PASS_LINE);
}

template <u32 Warps, u32 Lanes, int Warpgroups, int N, class T, class Fold>
PL_FN void reduce_warps(T (&x)[N], u32 scratch, Fold how PL_AND_LINE) {
  const detail::Exchange<Warps, Lanes, T> exchange(scratch);
  PL_UNROLL for (int i = 0; i < N; ++i) exchange.put(i, x[i] PL_AND_PASS_LINE);
  pl::warpgroup_sync<Warpgroups>(PL_PASS_LINE);
  PL_UNROLL for (int i = 0; i < N; ++i) x[i] = exchange.get(i, how PL_AND_PASS_LINE);
}

}  // namespace pl
