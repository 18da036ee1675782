// Clusters: their barrier and the shared memory of their blocks.

namespace pl {

PL_FN void cluster_arrive(PL_LINE) { detail::host.cluster_arrive(true, line); }
PL_FN void cluster_arrive_relaxed(PL_LINE) { detail::host.cluster_arrive(false, line); }
PL_FN void cluster_wait(PL_LINE) { detail::host.cluster_wait(line); }
PL_FN void cluster_sync(PL_LINE) {
  cluster_arrive(line);
  cluster_wait(line);
}

PL_FN u32 mapa(u32 address, u32 rank, PL_LINE) { return detail::host.mapa(address, rank, line); }

template <int N = 1, class T>
PL_FN void load_cluster(T* dst, u32 remote, bool active = true, PL_LINE) {
  if (!active) {
    for (int i = 0; i < N; ++i) dst[i] = out_of_bounds<T>();
    return;
  }
  detail::host.load_cluster(dst, remote, N * sizeof(T), line);
  detail::normalize<N>(dst);
}

template <int N = 1, class T>
PL_FN void store_cluster(u32 remote, const T* src, bool active = true, PL_LINE) {
  if (active) detail::host.store_cluster(remote, src, N * sizeof(T), line);
}

template <int N = 1, class T>
PL_FN void store_async(u32 remote, const T* src, u32 remote_bar, PL_LINE) {
  constexpr int bytes = N * int(sizeof(T));
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "store_async: 4, 8 or 16 bytes");
  detail::host.store_async(remote, src, bytes, remote_bar, line);
}

}  // namespace pl
