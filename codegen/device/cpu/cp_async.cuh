// Asynchronous copies to shared memory by every thread for itself.

namespace pl {

template <int Bytes>
PL_FN void cp_async(u32 dst, const void* src, bool in_bounds = true, PL_LINE) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp_async: 4, 8 or 16 bytes");
  detail::host.cp_async(dst, src, Bytes, in_bounds, nullptr, line);
}

template <int N, class T>
PL_FN void copy_async(u32 dst, const T* src, bool in_bounds = true, bool exists = true, PL_LINE) {
  T undefined[N];
  for (int i = 0; i < N; ++i) undefined[i] = out_of_bounds<T>();
  detail::host.cp_async(dst, src, sizeof undefined, in_bounds && exists,
                        exists ? undefined : nullptr, line);
}

template <int N, class T>
PL_FN void copy_async_zero(u32 dst, const T* src, bool in_bounds = true, bool exists = true,
                           PL_LINE) {
  detail::host.cp_async(dst, src, N * sizeof(T), in_bounds && exists, nullptr, line);
}

namespace detail {

// `outside`: what is out of bounds; null: zeros.
template <int N, class T>
PL_FN void copy_around(u32 dst, const T* src, i32 left, bool in_bounds, const T* begin,
                       const T* outside, i32 line) {
  static_assert(N * sizeof(T) == 16, "copy_async_around: 16 bytes");
  const u64 at = reinterpret_cast<u64>(src), first = reinterpret_cast<u64>(begin);
  const u64 from = at & ~u64(15);
  const i64 end = i64(at) + i64(left) * i64(sizeof(T));
  if (!in_bounds || (from >= first && i64(from) + 16 <= end)) {
    host.cp_async(dst, reinterpret_cast<const void*>(from), 16, in_bounds, outside, line);
    return;
  }
  for (u32 byte = 0; byte < 16; byte += sizeof(T))
    if (from + byte >= first)
      host.cp_async(dst + byte, reinterpret_cast<const void*>(from + byte), sizeof(T),
                    i64(from + byte) < end, outside, line);
}

}  // namespace detail

template <int N, class T>
PL_FN void copy_async_around(u32 dst, const T* src, i32 left, bool in_bounds, const T* begin,
                             PL_LINE) {
  T undefined[N];
  for (int i = 0; i < N; ++i) undefined[i] = out_of_bounds<T>();
  detail::copy_around<N>(dst, src, left, in_bounds, begin, undefined, line);
}

template <int N, class T>
PL_FN void copy_async_around_zero(u32 dst, const T* src, i32 left, bool in_bounds, const T* begin,
                                  PL_LINE) {
  detail::copy_around<N>(dst, src, left, in_bounds, begin, static_cast<const T*>(nullptr), line);
}

PL_FN void cp_async_commit(PL_LINE) { detail::host.cp_async_commit(line); }

template <int N>
PL_FN void cp_async_wait(PL_LINE) {
  detail::host.cp_async_wait(N, line);
}

PL_FN void cp_async_arrive(u32 bar, PL_LINE) { detail::host.cp_async_arrive(bar, line); }

}  // namespace pl
