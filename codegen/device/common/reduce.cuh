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

// acc[0..N) = fold over the lanes that differ in the bits of Lanes.
template <int N, u32 Lanes, class T, class Fold>
PL_FN void reduce_lanes(T* acc, Fold how PL_AND_LINE) {
  PL_UNROLL for (u32 bit = 16; bit > 0; bit >>= 1) {
    if ((Lanes & bit) == 0) continue;
    PL_UNROLL for (int i = 0; i < N; ++i) acc[i] =
        pl::fold(how, acc[i], pl::shuffle_xor(acc[i], bit PL_AND_PASS_LINE));
  }
}

// acc[0..N) = fold over the warps that differ in the bits of Warps, through 4 * 2^bits(Lanes) * N
// elements of shared memory at `scratch`. Lanes that differ in a bit of Lanes hold different
// elements. Every warp folds in the same order, so that copies stay equal.
template <int N, u32 Warps, u32 Lanes, int Warpgroups, class T, class Fold>
PL_FN void reduce_warps(T* acc, u32 scratch, Fold how PL_AND_LINE) {
  u32 slot = 0, slots = 1;
  PL_UNROLL for (u32 bit = 0; bit < 5; ++bit) {
    if ((Lanes >> bit & 1) == 0) continue;
    slot += (pl::lane() >> bit & 1) * slots;
    slots *= 2;
  }
  const bool first = (pl::lane() & ~Lanes & 31) == 0;
  pl::warpgroup_sync<Warpgroups>(PL_PASS_LINE);
  PL_UNROLL for (int i = 0; i < N; ++i) {
    pl::store_shared<1>(scratch + ((pl::warp() * slots + slot) * N + i) * u32(sizeof(T)), acc + i,
                        first PL_AND_PASS_LINE);
  }
  pl::warpgroup_sync<Warpgroups>(PL_PASS_LINE);
  const u32 own = pl::warp() & ~Warps & 3;
  PL_UNROLL for (int i = 0; i < N; ++i) {
    bool started = false;
    PL_UNROLL for (u32 w = 0; w < 4; ++w) {
      if ((w & ~Warps) != 0) continue;
      T part;
      pl::load_shared<1>(&part, scratch + (((own | w) * slots + slot) * N + i) * u32(sizeof(T)),
                         true PL_AND_PASS_LINE);
      acc[i] = started ? pl::fold(how, acc[i], part) : part;
      started = true;
    }
  }
}

}  // namespace pl
