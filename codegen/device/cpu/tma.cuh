// Asynchronous copies: boxes of tensor maps, and runs of bytes.

namespace pl {

template <Cache C = evict_normal, int Rank>
PL_FN void tma_load(u32 dst, const TensorMap& map, u32 bar, const i32 (&at)[Rank], PL_LINE) {
  detail::host.tma_load(dst, &map, bar, detail::this_block, Rank, at, line);
}

template <Cache C = evict_normal, int Rank>
PL_FN void tma_load_multicast(u32 dst, const TensorMap& map, u32 bar, u16 blocks,
                              const i32 (&at)[Rank], PL_LINE) {
  detail::host.tma_load(dst, &map, bar, blocks, Rank, at, line);
}

template <Cache C = evict_normal, int Rank>
PL_FN void tma_store(const TensorMap& map, u32 src, const i32 (&at)[Rank], PL_LINE) {
  detail::host.tma_store(&map, src, detail::Reduction::none, Rank, at, line);
}

template <Reduction R, int Rank>
PL_FN void tma_reduce(const TensorMap& map, u32 src, const i32 (&at)[Rank], PL_LINE) {
  detail::host.tma_store(&map, src, static_cast<detail::Reduction>(R + 1), Rank, at, line);
}

template <int Rank>
PL_FN void tma_prefetch(const TensorMap& map, const i32 (&at)[Rank], PL_LINE) {
  detail::host.tma_prefetch(&map, Rank, at, line);
}

PL_FN void tma_prefetch_map(const TensorMap& map, PL_LINE) {
  detail::host.tma_prefetch(&map, 0, nullptr, line);
}

template <Cache C = evict_normal>
PL_FN void bulk_load(u32 dst, const void* src, u32 bytes, u32 bar, PL_LINE) {
  detail::host.bulk_load(dst, src, bytes, bar, detail::this_block, line);
}

template <Cache C = evict_normal>
PL_FN void bulk_load_multicast(u32 dst, const void* src, u32 bytes, u32 bar, u16 blocks, PL_LINE) {
  detail::host.bulk_load(dst, src, bytes, bar, blocks, line);
}

template <Cache C = evict_normal>
PL_FN void bulk_store(void* dst, u32 src, u32 bytes, PL_LINE) {
  detail::host.bulk_store(dst, src, bytes, detail::Reduction::none, detail::Format::u8, line);
}

template <class T>
PL_FN void bulk_reduce_add(T* dst, u32 src, u32 bytes, PL_LINE) {
  static_assert(detail::is_bulk_term<T>, "bulk_reduce_add: not of this type");
  detail::host.bulk_store(dst, src, bytes, detail::Reduction::add, detail::format_of<T>, line);
}

PL_FN void bulk_copy_cluster(u32 remote_dst, u32 src, u32 bytes, u32 remote_bar, PL_LINE) {
  detail::host.bulk_copy_cluster(remote_dst, src, bytes, remote_bar, line);
}

PL_FN void bulk_prefetch(const void* src, u32 bytes, PL_LINE) {
  detail::host.bulk_prefetch(src, bytes, line);
}

PL_FN void bulk_commit(PL_LINE) { detail::host.bulk_commit(line); }

template <int N>
PL_FN void bulk_wait(PL_LINE) {
  detail::host.bulk_wait(N, false, line);
}

template <int N>
PL_FN void bulk_wait_read(PL_LINE) {
  detail::host.bulk_wait(N, true, line);
}

}  // namespace pl
