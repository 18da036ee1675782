// Reductions and scans over the lanes and warps of a program.

namespace pl {

struct Sum {};
struct Prod {};
struct Max {};
struct Min {};
template <class T>
PL_FN T fold(Sum, T a, T b) {
  return pl::add(a, b);
}
template <class T>
PL_FN T fold(Prod, T a, T b) {
  return pl::mul(a, b);
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

// One element's parts at `parts`: those of the warps that share all bits but Warps.
template <u32 Warps, int NumWarps, class T>
PL_FN void load_parts(T (&p)[values_of<Warps>], u32 parts, u32 warp PL_AND_LINE) {
  constexpr int count = values_of<Warps>;
  constexpr int at_once = count * sizeof(T) <= 16 ? count : 16 / sizeof(T);
  parts += gather_bits<NumWarps - 1 - Warps>(warp) * u32(count * sizeof(T));
  PL_UNROLL for (int i = 0; i < count; i += at_once) {
    pl::load_shared<at_once>(p + i, parts + i * u32(sizeof(T)), true PL_AND_PASS_LINE);
  }
}

// Their fold.
template <u32 Warps, int NumWarps, class T, class Fold>
PL_FN T fold_parts(u32 parts, u32 warp, Fold how PL_AND_LINE) {
  T p[values_of<Warps>];
  load_parts<Warps, NumWarps>(p, parts, warp PL_AND_PASS_LINE);
  return fold_range<0, values_of<Warps>>(p, how);
}

// Whether the lanes of a warp divide the parts of N elements evenly.
template <u32 Warps, u32 Lanes, int NumWarps, int N, class T>
constexpr bool divides_parts = Warps == NumWarps - 1 && Lanes == 0 && sizeof(T) == 4 && N > 1 &&
                               N <= 32 && 32 % N == 0 && N * int(values_of<Warps>) % 32 == 0;

// Each lane folds its share of them, lanes of one element theirs; then every lane has them all.
template <u32 Warps, int N, class T, class Fold>
PL_FN void fold_divided(T (&x)[N], u32 scratch, Fold how PL_AND_LINE) {
  constexpr int own = N * int(values_of<Warps>) / 32, at_once = own < 4 ? own : 4;
  constexpr u32 lanes = 32 / N;
  const u32 first = scratch + pl::lane() * u32(own * sizeof(T));
  T p[own];
  PL_UNROLL for (int i = 0; i < own; i += at_once) {
    pl::load_shared<at_once>(p + i, first + i * u32(sizeof(T)), true PL_AND_PASS_LINE);
  }
  const T all = pl::reduce_lanes<lanes - 1>(fold_range<0, own>(p, how), how PL_AND_PASS_LINE);
  PL_UNROLL for (int i = 0; i < N; ++i) x[i] = pl::shuffle_idx(all, i * lanes PL_AND_PASS_LINE);
}

template <int NumWarps>
PL_FN u32 warp_of_program() {
  return (NumWarps == 4 ? pl::thread() : pl::program_thread()) >> 5;
}

template <int NumWarps>
PL_FN bool is_first_of_program() {
  return (NumWarps == 1 ? pl::lane() : NumWarps == 4 ? pl::thread() : pl::program_thread()) == 0;
}

template <int Warpgroups, int NumWarps>
PL_FN void sync_to_reduce(PL_LINE) {
  if constexpr (NumWarps == 1) {
    pl::warp_sync(PL_PASS_LINE);
  } else if constexpr (NumWarps == 4) {
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
  if constexpr (detail::divides_parts<Warps, Lanes, NumWarps, N, T>) {
    detail::fold_divided<Warps>(x, scratch, how PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (int i = 0; i < N; ++i) x[i] =
        detail::fold_parts<Warps, NumWarps, T>(scratch + i * stride, warp, how PL_AND_PASS_LINE);
  }
}

// ---- scans along an axis, from its first element or (Reverse) its last. Of an array x[N] each run
// of Run elements holds what follows on the runs of the threads before, s[k] belongs to run k.

namespace detail {

template <class T>
PL_FN T identity_of(Sum) {
  return T{};
}
template <class T>
PL_FN T identity_of(Prod) {
  return pl::to<T>(1);
}
template <class T>
PL_FN T identity_of(Max) {
  return pl::min_value<T>();
}
template <class T>
PL_FN T identity_of(Min) {
  return pl::max_value<T>();
}

template <bool Reverse, u32 Bit, class T, class Fold>
PL_FN void scan_lane_bit(T& before, T& s, Fold how PL_AND_LINE) {
  const T other = pl::shuffle_xor(s, Bit PL_AND_PASS_LINE);
  if (((pl::lane() & Bit) != 0) != Reverse) before = pl::fold(how, other, before);
  s = pl::fold(how, s, other);
}

// s becomes the fold over all lanes that differ in the bits of Lanes, `before` that over those
// before this one.
template <bool Reverse, u32 Lanes, class T, class Fold>
PL_FN void scan_over_lanes(T& before, T& s, Fold how PL_AND_LINE) {
  before = identity_of<T>(how);
  if constexpr ((Lanes & 1) != 0) scan_lane_bit<Reverse, 1>(before, s, how PL_AND_PASS_LINE);
  if constexpr ((Lanes & 2) != 0) scan_lane_bit<Reverse, 2>(before, s, how PL_AND_PASS_LINE);
  if constexpr ((Lanes & 4) != 0) scan_lane_bit<Reverse, 4>(before, s, how PL_AND_PASS_LINE);
  if constexpr ((Lanes & 8) != 0) scan_lane_bit<Reverse, 8>(before, s, how PL_AND_PASS_LINE);
  if constexpr ((Lanes & 16) != 0) scan_lane_bit<Reverse, 16>(before, s, how PL_AND_PASS_LINE);
}

// The same over the warps whose parts are p.
template <bool Reverse, u32 Warps, class T, int N, class Fold>
PL_FN void scan_over_warps(T& before, T& s, const T (&p)[N], u32 warp, Fold how) {
  const u32 own = gather_bits<Warps>(warp);
  T far = identity_of<T>(how);
  PL_UNROLL for (u32 i = 0; i < N; ++i) {
    if (Reverse ? i > own : i < own) far = pl::fold(how, far, p[i]);
  }
  before = pl::fold(how, far, before);
  s = fold_range<0, N>(p, how);
}

// Puts what is before them in front of the runs of x, Count of which follow one another; the folds
// of those that do take the first places of s.
template <int Run, int Count, bool Reverse, int N, class T, int Runs, class Fold>
PL_FN void scan_behind(T (&x)[N], T* s, const T (&before)[Runs], Fold how) {
  PL_UNROLL for (int row = 0; row < Runs / Count; ++row) {
    T all = identity_of<T>(how);
    PL_UNROLL for (int c = 0; c < Count; ++c) {
      const int k = row * Count + (Reverse ? Count - 1 - c : c);
      const T first = c == 0 ? before[k] : pl::fold(how, all, before[k]);
      PL_UNROLL for (int i = 0; i < Run; ++i) x[k * Run + i] = pl::fold(how, first, x[k * Run + i]);
      all = c == 0 ? s[k] : pl::fold(how, all, s[k]);
    }
    s[row] = all;
  }
}

}  // namespace detail

// Within the runs of a thread; s[k] becomes the fold of run k.
template <int Run, bool Reverse, int N, class T, class Fold>
PL_FN void scan_registers(T (&x)[N], T* s, Fold how) {
  PL_UNROLL for (int k = 0; k < N / Run; ++k) {
    T all = x[Reverse ? k * Run + Run - 1 : k * Run];
    PL_UNROLL for (int i = 1; i < Run; ++i) {
      const int at = k * Run + (Reverse ? Run - 1 - i : i);
      x[at] = all = pl::fold(how, all, x[at]);
    }
    s[k] = all;
  }
}

// Over the lanes that differ in the bits of Lanes, the lowest bit first, then over Count runs.
template <int Run, int Count, bool Reverse, u32 Lanes, int N, class T, class Fold>
PL_FN void scan_lanes(T (&x)[N], T* s, Fold how PL_AND_LINE) {
  T before[N / Run];
  PL_UNROLL for (int k = 0; k < N / Run; ++k) {
    detail::scan_over_lanes<Reverse, Lanes>(before[k], s[k], how PL_AND_PASS_LINE);
  }
  detail::scan_behind<Run, Count, Reverse>(x, s, before, how);
}

// The same, then over the warps that differ in the bits of Warps, through NumWarps *
// 2^bits(Distinct) elements of shared memory at `scratch` for each run, aligned to 16 bytes. Lanes
// that differ in a bit of Distinct hold different folds of those of Lanes; of those that hold the
// same, one writes. Who uses the same scratch again puts a barrier between.
template <int Run, int Count, bool Reverse, u32 Lanes, u32 Warps, u32 Distinct, int Warpgroups,
          int NumWarps = 4, int N, class T, class Fold>
PL_FN void scan_warps(T (&x)[N], T* s, u32 scratch, Fold how PL_AND_LINE) {
  constexpr u32 stride = NumWarps * detail::values_of<Distinct> * sizeof(T);
  const u32 lane = pl::lane(), warp = detail::warp_of_program<NumWarps>();
  const u32 place = detail::place_of_warp<Warps, NumWarps>(warp);
  T before[N / Run];
  scratch += detail::gather_bits<Distinct>(lane) * (NumWarps * sizeof(T));
  PL_UNROLL for (int k = 0; k < N / Run; ++k) {
    detail::scan_over_lanes<Reverse, Lanes>(before[k], s[k], how PL_AND_PASS_LINE);
    pl::store_shared(scratch + k * stride + place * sizeof(T), s + k,
                     (lane & ~Distinct) == 0 PL_AND_PASS_LINE);
  }
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  PL_UNROLL for (int k = 0; k < N / Run; ++k) {
    T p[detail::values_of<Warps>];
    detail::load_parts<Warps, NumWarps>(p, scratch + k * stride, warp PL_AND_PASS_LINE);
    detail::scan_over_warps<Reverse, Warps>(before[k], s[k], p, warp, how);
  }
  detail::scan_behind<Run, Count, Reverse>(x, s, before, how);
}

}  // namespace pl
