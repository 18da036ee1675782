// Asynchronous copies: boxes of tensor maps, and runs of bytes.

namespace pl {
namespace detail {

// L2's policies as createpolicy makes them for a whole access.
template <Cache C>
constexpr u64 cache_policy = C == evict_first ? 0x12f0000000000000 : 0x14f0000000000000;

template <Reduction R>
constexpr char reduction_word[] = ".add";
template <>
constexpr char reduction_word<reduce_min>[] = ".min";
template <>
constexpr char reduction_word<reduce_max>[] = ".max";
template <>
constexpr char reduction_word<reduce_and>[] = ".and";
template <>
constexpr char reduction_word<reduce_or>[] = ".or";
template <>
constexpr char reduction_word<reduce_xor>[] = ".xor";
template <>
constexpr char reduction_word<reduce_inc>[] = ".inc";
template <>
constexpr char reduction_word<reduce_dec>[] = ".dec";

template <class T>
constexpr char bulk_sum_word[] = "";
template <>
constexpr char bulk_sum_word<i32>[] = ".s32";
template <>
constexpr char bulk_sum_word<u32>[] = ".u32";
template <>
constexpr char bulk_sum_word<u64>[] = ".u64";
template <>
constexpr char bulk_sum_word<f16>[] = ".noftz.f16";
template <>
constexpr char bulk_sum_word<bf16>[] = ".noftz.bf16";
template <>
constexpr char bulk_sum_word<f32>[] = ".f32";
template <>
constexpr char bulk_sum_word<f64>[] = ".f64";

}  // namespace detail

// One instruction for each rank: `before` 2d `between` {coordinates} `after`. The coordinates are
// the operands behind those given; `numbers` are those of all five.
// clang-format off
#define PL_AT_1(a, b, c, d, e) "{%" #a "}"
#define PL_AT_2(a, b, c, d, e) "{%" #a ", %" #b "}"
#define PL_AT_3(a, b, c, d, e) "{%" #a ", %" #b ", %" #c "}"
#define PL_AT_4(a, b, c, d, e) "{%" #a ", %" #b ", %" #c ", %" #d "}"
#define PL_AT_5(a, b, c, d, e) "{%" #a ", %" #b ", %" #c ", %" #d ", %" #e "}"
#define PL_TENSOR(before, between, after, numbers, ...)                                                                                                                            \
  static_assert(Rank >= 1 && Rank <= 5, "a tensor map has 1 to 5 dimensions");                                                                                                     \
  if constexpr (Rank == 1) asm volatile(before "1d" between PL_AT_1 numbers after :: __VA_ARGS__, "r"(at[0]) : "memory");                                                          \
  if constexpr (Rank == 2) asm volatile(before "2d" between PL_AT_2 numbers after :: __VA_ARGS__, "r"(at[0]), "r"(at[1]) : "memory");                                              \
  if constexpr (Rank == 3) asm volatile(before "3d" between PL_AT_3 numbers after :: __VA_ARGS__, "r"(at[0]), "r"(at[1]), "r"(at[2]) : "memory");                                  \
  if constexpr (Rank == 4) asm volatile(before "4d" between PL_AT_4 numbers after :: __VA_ARGS__, "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");                      \
  if constexpr (Rank == 5) asm volatile(before "5d" between PL_AT_5 numbers after :: __VA_ARGS__, "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]) : "memory")
// clang-format on

template <Cache C = evict_normal, int Rank>
PL_FN void tma_load(u32 dst, const TensorMap& map, u32 bar, const i32 (&at)[Rank]) {
  if constexpr (C == evict_normal) {
    PL_TENSOR("cp.async.bulk.tensor.",
              ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, ", "], [%2];",
              (3, 4, 5, 6, 7), "r"(dst), "l"(&map), "r"(bar));
  } else {
    PL_TENSOR("cp.async.bulk.tensor.",
              ".shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, ",
              "], [%2], %3;", (4, 5, 6, 7, 8), "r"(dst), "l"(&map), "r"(bar),
              "l"(detail::cache_policy<C>));
  }
}

template <Cache C = evict_normal, int Rank>
PL_FN void tma_load_multicast(u32 dst, const TensorMap& map, u32 bar, u16 blocks,
                              const i32 (&at)[Rank]) {
  if constexpr (C == evict_normal) {
    PL_TENSOR("cp.async.bulk.tensor.",
              ".shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, ",
              "], [%2], %3;", (4, 5, 6, 7, 8), "r"(dst), "l"(&map), "r"(bar), "h"(blocks));
  } else {
    PL_TENSOR("cp.async.bulk.tensor.",
              ".shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
              ".L2::cache_hint [%0], [%1, ",
              "], [%2], %3, %4;", (5, 6, 7, 8, 9), "r"(dst), "l"(&map), "r"(bar), "h"(blocks),
              "l"(detail::cache_policy<C>));
  }
}

template <Cache C = evict_normal, int Rank>
PL_FN void tma_store(const TensorMap& map, u32 src, const i32 (&at)[Rank]) {
  if constexpr (C == evict_normal) {
    PL_TENSOR("cp.async.bulk.tensor.", ".global.shared::cta.bulk_group [%0, ", "], [%1];",
              (2, 3, 4, 5, 6), "l"(&map), "r"(src));
  } else {
    PL_TENSOR("cp.async.bulk.tensor.", ".global.shared::cta.bulk_group.L2::cache_hint [%0, ",
              "], [%1], %2;", (3, 4, 5, 6, 7), "l"(&map), "r"(src), "l"(detail::cache_policy<C>));
  }
}

template <Reduction R, int Rank>
PL_FN void tma_reduce(const TensorMap& map, u32 src, const i32 (&at)[Rank]) {
  PL_TENSOR("cp.reduce.async.bulk.tensor.", ".global.shared::cta%2.bulk_group [%0, ", "], [%1];",
            (3, 4, 5, 6, 7), "l"(&map), "r"(src), "C"(detail::reduction_word<R>));
}

template <int Rank>
PL_FN void tma_prefetch(const TensorMap& map, const i32 (&at)[Rank]) {
  PL_TENSOR("cp.async.bulk.prefetch.tensor.", ".L2.global [%0, ", "];", (1, 2, 3, 4, 5), "l"(&map));
}

PL_FN void tma_prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

template <Cache C = evict_normal>
PL_FN void bulk_load(u32 dst, const void* src, u32 bytes, u32 bar) {
  const u64 from = __cvta_generic_to_global(src);
  if constexpr (C == evict_normal) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(dst),
        "l"(from), "r"(bytes), "r"(bar)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
        "l"(from), "r"(bytes), "r"(bar), "l"(detail::cache_policy<C>)
        : "memory");
  }
}

template <Cache C = evict_normal>
PL_FN void bulk_load_multicast(u32 dst, const void* src, u32 bytes, u32 bar, u16 blocks) {
  const u64 from = __cvta_generic_to_global(src);
  if constexpr (C == evict_normal) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
        "l"(from), "r"(bytes), "r"(bar), "h"(blocks)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1], %2, [%3], %4, %5;" ::"r"(dst),
        "l"(from), "r"(bytes), "r"(bar), "h"(blocks), "l"(detail::cache_policy<C>)
        : "memory");
  }
}

template <Cache C = evict_normal>
PL_FN void bulk_store(void* dst, u32 src, u32 bytes) {
  const u64 to = __cvta_generic_to_global(dst);
  if constexpr (C == evict_normal) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(src),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to),
        "r"(src), "r"(bytes), "l"(detail::cache_policy<C>)
        : "memory");
  }
}

template <class T>
PL_FN void bulk_reduce_add(T* dst, u32 src, u32 bytes) {
  static_assert(detail::is_bulk_term<T>, "bulk_reduce_add: not of this type");
  const u64 to = __cvta_generic_to_global(dst);
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add%3 [%0], [%1], %2;" ::"l"(to),
               "r"(src), "r"(bytes), "C"(detail::bulk_sum_word<T>)
               : "memory");
}

PL_FN void bulk_copy_cluster(u32 remote_dst, u32 src, u32 bytes, u32 remote_bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(remote_dst),
      "r"(src), "r"(bytes), "r"(remote_bar)
      : "memory");
}

PL_FN void bulk_prefetch(const void* src, u32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(src)),
               "r"(bytes)
               : "memory");
}

PL_FN void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

template <int N>
PL_FN void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

template <int N>
PL_FN void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

}  // namespace pl
