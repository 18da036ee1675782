// Asynchronous copies to shared memory by every thread for itself.

namespace pl {

template <int Bytes>
PL_FN void cp_async(u32 dst, const void* src, bool in_bounds = true) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp_async: 4, 8 or 16 bytes");
  const u64 from = __cvta_generic_to_global(src);
  const u32 present = in_bounds ? Bytes : 0;  // what is missing becomes zeros
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(from), "r"(present)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(from), "n"(Bytes),
                 "r"(present)
                 : "memory");
  }
}

template <int N, class T>
PL_FN void copy_async(u32 dst, const T* src, bool in_bounds = true, bool exists = true) {
  cp_async<N * int(sizeof(T))>(dst, src, in_bounds && exists);
}

template <int N, class T>
PL_FN void copy_async_zero(u32 dst, const T* src, bool in_bounds = true, bool exists = true) {
  cp_async<N * int(sizeof(T))>(dst, src, in_bounds && exists);
}

template <int N, class T>
PL_FN void copy_async_around(u32 dst, const T* src, i32 left, bool in_bounds, const T* begin) {
  static_assert(N * sizeof(T) == 16, "copy_async_around: 16 bytes");
  const u64 at = __cvta_generic_to_global(src), first = __cvta_generic_to_global(begin);
  const u64 from = at & ~u64(15);
  const i32 behind = left * i32(sizeof(T)) + i32(u32(at) & 15);
  const i32 bytes = !in_bounds || behind < 0 ? 0 : behind < 16 ? behind : 16;
  if (from < first) {  // the array begins in between
    PL_NOUNROLL for (i32 e = 0; e < N; ++e) {
      const i32 byte = e * i32(sizeof(T));
      if (from + byte < first) continue;
      T x = {};
      if (byte < bytes) x = *reinterpret_cast<const T*>(u64(begin) + (from + byte - first));
      store_shared<1>(dst + byte, &x);
    }
    return;
  }
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(from), "r"(bytes)
               : "memory");
}

template <int N, class T>
PL_FN void copy_async_around_zero(u32 dst, const T* src, i32 left, bool in_bounds, const T* begin) {
  copy_async_around<N>(dst, src, left, in_bounds, begin);
}

PL_FN void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
PL_FN void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

PL_FN void cp_async_arrive(u32 bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

}  // namespace pl
