// Asynchronous copies to shared memory by every thread for itself.

namespace pl {

template <int Bytes>
PL_FN void cp_async(u32 dst, const void* src, bool in_bounds = true, PL_LINE) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp_async: 4, 8 or 16 bytes");
  detail::host.cp_async(dst, src, Bytes, in_bounds, line);
}

PL_FN void cp_async_commit(PL_LINE) { detail::host.cp_async_commit(line); }

template <int N>
PL_FN void cp_async_wait(PL_LINE) {
  detail::host.cp_async_wait(N, line);
}

PL_FN void cp_async_arrive(u32 bar, PL_LINE) { detail::host.cp_async_arrive(bar, line); }

}  // namespace pl
