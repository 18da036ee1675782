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

PL_FN void cp_async_commit(PL_LINE) { detail::host.cp_async_commit(line); }

template <int N>
PL_FN void cp_async_wait(PL_LINE) {
  detail::host.cp_async_wait(N, line);
}

PL_FN void cp_async_arrive(u32 bar, PL_LINE) { detail::host.cp_async_arrive(bar, line); }

}  // namespace pl
