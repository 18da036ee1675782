// Clusters: their barrier and the shared memory of their blocks.

namespace pl {
namespace detail {

// The narrow end of a word, or two or four words, at a mapa address.
template <int Bytes>
PL_FN void cluster_load(u32* w, u32 a) {
  if constexpr (Bytes == 1) {
    asm volatile("ld.shared::cluster.u8 %0, [%1];" : "=r"(w[0]) : "r"(a) : "memory");
  } else if constexpr (Bytes == 2) {
    asm volatile("ld.shared::cluster.u16 %0, [%1];" : "=r"(w[0]) : "r"(a) : "memory");
  } else if constexpr (Bytes == 4) {
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(w[0]) : "r"(a) : "memory");
  } else if constexpr (Bytes == 8) {
    asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
                 : "=r"(w[0]), "=r"(w[1])
                 : "r"(a)
                 : "memory");
  } else {
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(a)
                 : "memory");
  }
}

template <int Bytes>
PL_FN void cluster_store(u32 a, const u32* w) {
  if constexpr (Bytes == 1) {
    asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(a), "r"(w[0]) : "memory");
  } else if constexpr (Bytes == 2) {
    asm volatile("st.shared::cluster.u16 [%0], %1;" ::"r"(a), "r"(w[0]) : "memory");
  } else if constexpr (Bytes == 4) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(a), "r"(w[0]) : "memory");
  } else if constexpr (Bytes == 8) {
    asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(a), "r"(w[0]), "r"(w[1])
                 : "memory");
  } else {
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(a), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
  }
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
PL_FN void load_cluster(T* dst, u32 remote) {
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  u32 w[detail::words_of_vector<bytes>];
  detail::cluster_load<bytes>(w, remote);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void store_cluster(u32 remote, const T* src) {
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  u32 w[detail::words_of_vector<bytes>];
  detail::to_words<N>(w, src);
  detail::cluster_store<bytes>(remote, w);
}

template <int N = 1, class T>
PL_FN void store_async(u32 remote, const T* src, u32 remote_bar) {
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "store_async: 4, 8 or 16 bytes");
  u32 w[detail::words_of_vector<bytes>];
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
