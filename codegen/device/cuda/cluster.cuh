// Clusters: their barrier and the shared memory of their blocks.

namespace pl {
namespace detail {

// From and to a mapa address.
PL_FN void cluster_load(u8 (&w)[1], u32 a) {
  u16 r;
  asm volatile("ld.shared::cluster.u8 %0, [%1];" : "=h"(r) : "r"(a) : "memory");
  w[0] = static_cast<u8>(r);
}
PL_FN void cluster_load(u16 (&w)[1], u32 a) {
  asm volatile("ld.shared::cluster.u16 %0, [%1];" : "=h"(w[0]) : "r"(a) : "memory");
}
PL_FN void cluster_load(u32 (&w)[1], u32 a) {
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(w[0]) : "r"(a) : "memory");
}
PL_FN void cluster_load(u32 (&w)[2], u32 a) {
  asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
               : "=r"(w[0]), "=r"(w[1])
               : "r"(a)
               : "memory");
}
PL_FN void cluster_load(u32 (&w)[4], u32 a) {
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
               : "r"(a)
               : "memory");
}

PL_FN void cluster_store(u32 a, const u8 (&w)[1]) {
  asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(a), "h"(u16(w[0])) : "memory");
}
PL_FN void cluster_store(u32 a, const u16 (&w)[1]) {
  asm volatile("st.shared::cluster.u16 [%0], %1;" ::"r"(a), "h"(w[0]) : "memory");
}
PL_FN void cluster_store(u32 a, const u32 (&w)[1]) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(a), "r"(w[0]) : "memory");
}
PL_FN void cluster_store(u32 a, const u32 (&w)[2]) {
  asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(a), "r"(w[0]), "r"(w[1])
               : "memory");
}
PL_FN void cluster_store(u32 a, const u32 (&w)[4]) {
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(a), "r"(w[0]), "r"(w[1]),
               "r"(w[2]), "r"(w[3])
               : "memory");
}

}  // namespace detail

PL_FN void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
PL_FN void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
PL_FN void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
PL_FN void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

PL_FN u32 mapa(u32 address, u32 rank) {
  u32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

template <int N = 1, class T>
PL_FN void load_cluster(T* dst, u32 remote, bool active = true) {
  detail::vector_of<N, T> w = {};
  if (active) detail::cluster_load(w, remote);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void store_cluster(u32 remote, const T* src, bool active = true) {
  detail::vector_of<N, T> w;
  detail::to_words<N>(w, src);
  if (active) detail::cluster_store(remote, w);
}

template <int N = 1, class T>
PL_FN void store_async(u32 remote, const T* src, u32 remote_bar) {
  constexpr int bytes = N * int(sizeof(T));
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "store_async: 4, 8 or 16 bytes");
  detail::vector_of<N, T> w;
  detail::to_words<N>(w, src);
  if constexpr (bytes == 4) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
            remote),
        "r"(w[0]), "r"(remote_bar)
        : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::
            "r"(remote),
        "r"(w[0]), "r"(w[1]), "r"(remote_bar)
        : "memory");
  } else {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 "
        "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(remote),
        "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(remote_bar)
        : "memory");
  }
}

}  // namespace pl
