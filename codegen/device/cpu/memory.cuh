// Predicated vector accesses.

namespace pl {
namespace detail {

// A bool in memory may hold any byte; as a bool it is 0 or 1.
template <int N, class T>
PL_FN void normalize(T* dst) {
  if constexpr (same<T, bool>) {
    for (int i = 0; i < N; ++i) dst[i] = *reinterpret_cast<const u8*>(dst + i) != 0;
  }
}

}  // namespace detail

template <class T>
PL_FN T out_of_bounds() {
  if (!detail::host.ids()->poison) return bitcast<T>(static_cast<detail::bits_of<T>>(0));
  if constexpr (detail::is_float<T>) {
    return nan<T>();
  } else if constexpr (detail::same<T, bool>) {
    return true;
  } else {
    return min_value<T>();
  }
}

template <int N = 1, class T>
PL_FN void load_global(T* dst, const T* p, bool in_bounds = true, PL_LINE) {
  if (in_bounds) {
    detail::host.load_global(dst, p, N * sizeof(T), line);
    detail::normalize<N>(dst);
  } else {
    for (int i = 0; i < N; ++i) dst[i] = out_of_bounds<T>();
  }
}

template <int N = 1, class T>
PL_FN void load_global_nc(T* dst, const T* p, bool in_bounds = true, PL_LINE) {
  if (in_bounds) {
    detail::host.load_global_nc(dst, p, N * sizeof(T), line);
    detail::normalize<N>(dst);
  } else {
    for (int i = 0; i < N; ++i) dst[i] = out_of_bounds<T>();
  }
}

template <int N = 1, class T>
PL_FN void load_global_nc_zero(T* dst, const T* p, bool in_bounds = true, PL_LINE) {
  for (int i = 0; i < N; ++i) dst[i] = bitcast<T>(static_cast<detail::bits_of<T>>(0));
  if (in_bounds) load_global_nc<N>(dst, p, true, line);
}

template <int N = 1, class T>
PL_FN void load_global_filled(T* dst, const T* p, bool in_bounds, detail::itself<T> outside,
                              PL_LINE) {
  for (int i = 0; i < N; ++i) dst[i] = outside;
  if (in_bounds) load_global<N>(dst, p, true, line);
}

template <int N = 1, class T>
PL_FN void load_global_nc_filled(T* dst, const T* p, bool in_bounds, detail::itself<T> outside,
                                 PL_LINE) {
  for (int i = 0; i < N; ++i) dst[i] = outside;
  if (in_bounds) load_global_nc<N>(dst, p, true, line);
}

template <int N = 1, class T>
PL_FN void store_global(T* p, const T* src, bool in_bounds = true, PL_LINE) {
  if (in_bounds) detail::host.store_global(p, src, N * sizeof(T), line);
}

namespace detail {

template <int N, class T>
PL_FN void load_shared(T* dst, u32 address, bool active, Unwritten unwritten, i32 line) {
  if (active) {
    host.load_shared(dst, address, N * sizeof(T), unwritten, line);
    normalize<N>(dst);
  } else {
    for (int i = 0; i < N; ++i) dst[i] = out_of_bounds<T>();
  }
}

}  // namespace detail

template <int N = 1, class T>
PL_FN void load_shared(T* dst, u32 address, bool active = true, PL_LINE) {
  detail::load_shared<N>(dst, address, active, detail::Unwritten::wrong, line);
}

template <int N = 1, class T>
PL_FN void load_shared_padded(T* dst, u32 address, bool active = true, PL_LINE) {
  detail::load_shared<N>(dst, address, active, detail::Unwritten::padding, line);
}

template <int N = 1, class T>
PL_FN void load_resident(T* dst, u32 address, bool in_bounds = true, PL_LINE) {
  detail::load_shared<N>(dst, address, in_bounds, detail::Unwritten::by_user, line);
}

template <int N = 1, class T>
PL_FN void flush_resident(T* p, u32 address, bool in_bounds = true, PL_LINE) {
  if (in_bounds) detail::host.flush_resident(p, address, sizeof(T), N, line);
}

PL_FN bool was_stored(bool stored) { return stored; }

template <class T>
PL_FN u32 skew(const T* p) {
  return u32(reinterpret_cast<u64>(p) & 15);
}

template <int N = 1, class T>
PL_FN void load_shared_skewed(T* dst, u32 address, u32 skew, bool active = true, PL_LINE) {
  for (u32 i = 0; i < N; ++i)
    detail::load_shared<1>(dst + i, address + skew + i * u32(sizeof(T)), active,
                           detail::Unwritten::wrong, line);
}

template <int N = 1, class T>
PL_FN void store_shared(u32 address, const T* src, bool active = true, PL_LINE) {
  if (active) detail::host.store_shared(address, src, N * sizeof(T), line);
}

PL_FN void check(bool ok, const char* what, PL_LINE) {
  if (!ok) detail::host.check(what, line);
}

PL_FN void check_value(bool ok, i64 value, const char* what, PL_LINE) {
  if (!ok) detail::host.check_value(value, what, line);
}

PL_FN void check_range(i64 first, i64 last, i64 extent, const char* what, PL_LINE) {
  if (first < 0 || last >= extent) detail::host.check_range(first, last, extent, what, line);
}

}  // namespace pl
