// Vector accesses at the end of an array, where only some of the elements exist.

namespace pl {

// dst[0..N) = p[0..N) as far as there are `valid` elements; the rest is out of bounds.
template <int N, class T>
PL_FN void load_global_part(T* dst, const T* p, i32 valid, bool in_bounds = true PL_AND_LINE) {
  if (valid >= N) {
    pl::load_global<N>(dst, p, in_bounds PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (i32 e = 0; e < N; ++e) {
      pl::load_global<1>(dst + e, p + e, in_bounds && e < valid PL_AND_PASS_LINE);
    }
  }
}

template <int N, class T>
PL_FN void load_global_nc_part(T* dst, const T* p, i32 valid, bool in_bounds = true PL_AND_LINE) {
  if (valid >= N) {
    pl::load_global_nc<N>(dst, p, in_bounds PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (i32 e = 0; e < N; ++e) {
      pl::load_global_nc<1>(dst + e, p + e, in_bounds && e < valid PL_AND_PASS_LINE);
    }
  }
}

template <int N, class T>
PL_FN void load_global_part_filled(T* dst, const T* p, i32 valid, bool in_bounds,
                                   detail::itself<T> outside PL_AND_LINE) {
  if (valid >= N) {
    pl::load_global_filled<N>(dst, p, in_bounds, outside PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (i32 e = 0; e < N; ++e) {
      pl::load_global_filled<1>(dst + e, p + e, in_bounds && e < valid,
                                 outside PL_AND_PASS_LINE);
    }
  }
}

template <int N, class T>
PL_FN void load_global_nc_part_filled(T* dst, const T* p, i32 valid, bool in_bounds,
                                      detail::itself<T> outside PL_AND_LINE) {
  if (valid >= N) {
    pl::load_global_nc_filled<N>(dst, p, in_bounds, outside PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (i32 e = 0; e < N; ++e) {
      pl::load_global_nc_filled<1>(dst + e, p + e, in_bounds && e < valid,
                                    outside PL_AND_PASS_LINE);
    }
  }
}

template <int N, class T>
PL_FN void store_global_part(T* p, const T* src, i32 valid, bool in_bounds = true PL_AND_LINE) {
  if (valid >= N) {
    pl::store_global<N>(p, src, in_bounds PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (i32 e = 0; e < N; ++e) {
      pl::store_global<1>(p + e, src + e, in_bounds && e < valid PL_AND_PASS_LINE);
    }
  }
}

template <int N, class T>
PL_FN void load_resident_part(T* dst, u32 address, i32 valid, bool in_bounds = true PL_AND_LINE) {
  if (valid >= N) {
    pl::load_resident<N>(dst, address, in_bounds PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (i32 e = 0; e < N; ++e) {
      pl::load_resident<1>(dst + e, address + e * u32(sizeof(T)),
                           in_bounds && e < valid PL_AND_PASS_LINE);
    }
  }
}

template <int N, class T>
PL_FN void flush_resident_part(T* p, u32 address, i32 valid, bool in_bounds = true PL_AND_LINE) {
  if (valid >= N) {
    pl::flush_resident<N>(p, address, in_bounds PL_AND_PASS_LINE);
  } else {
    PL_UNROLL for (i32 e = 0; e < N; ++e) {
      pl::flush_resident<1>(p + e, address + e * u32(sizeof(T)),
                            in_bounds && e < valid PL_AND_PASS_LINE);
    }
  }
}

}  // namespace pl
