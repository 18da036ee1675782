// Predicated vector accesses.

namespace pl {
namespace detail {

// How a vector of so many bytes travels: in registers of 32 bits, narrower ones in one of 16.
template <int Bytes>
struct Vector {
  typedef u32 type[Bytes / 4];
};
template <>
struct Vector<1> {
  typedef u8 type[1];
};
template <>
struct Vector<2> {
  typedef u16 type[1];
};
template <int N, class T>
using vector_of = typename Vector<N* int(sizeof(T))>::type;

// Copies that the compiler sees through, where a loop over the elements takes it longer.
template <int N, class T, class Words>
PL_FN void from_words(T* dst, const Words& w) {
  if constexpr (same<T, bool>) {
    u8 bytes[N];
    ::memcpy(bytes, w, N);
    PL_UNROLL for (int i = 0; i < N; ++i) dst[i] = bytes[i] != 0;
  } else {
    ::memcpy(dst, w, N * sizeof(T));
  }
}

template <int N, class T, class Words>
PL_FN void to_words(Words& w, const T* src) {
  ::memcpy(w, src, N * sizeof(T));
}

template <int N, class T, class Words>
PL_FN void fill_words(Words& w, T x) {
  T all[N];
  PL_UNROLL for (int i = 0; i < N; ++i) all[i] = x;
  to_words<N>(w, all);
}

// Where a load is off, w stays.
// clang-format off
#define PL_LOAD(name, Address, constraint, qualifier, clobber, instruction)                                  \
  PL_FN void name(u8 (&w)[1], Address a, u32 on) {                                                           \
    u16 r = w[0];                                                                                             \
    asm qualifier("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u8 %0, [%1];}"                    \
                  : "+h"(r) : constraint(a), "r"(on) clobber);                                               \
    w[0] = static_cast<u8>(r);                                                                               \
  }                                                                                                          \
  PL_FN void name(u16 (&w)[1], Address a, u32 on) {                                                          \
    asm qualifier("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u16 %0, [%1];}"                   \
                  : "+h"(w[0]) : constraint(a), "r"(on) clobber);                                            \
  }                                                                                                          \
  PL_FN void name(u32 (&w)[1], Address a, u32 on) {                                                          \
    asm qualifier("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u32 %0, [%1];}"                   \
                  : "+r"(w[0]) : constraint(a), "r"(on) clobber);                                            \
  }                                                                                                          \
  PL_FN void name(u32 (&w)[2], Address a, u32 on) {                                                          \
    asm qualifier("{.reg .pred p; setp.ne.u32 p, %3, 0; @p " instruction ".v2.u32 {%0, %1}, [%2];}"          \
                  : "+r"(w[0]), "+r"(w[1]) : constraint(a), "r"(on) clobber);                                \
  }                                                                                                          \
  PL_FN void name(u32 (&w)[4], Address a, u32 on) {                                                          \
    asm qualifier("{.reg .pred p; setp.ne.u32 p, %5, 0; @p " instruction ".v4.u32 {%0, %1, %2, %3}, [%4];}"  \
                  : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]) : constraint(a), "r"(on) clobber);        \
  }
#define PL_STORE(name, Address, constraint, instruction)                                                     \
  PL_FN void name(Address a, const u8 (&w)[1], u32 on) {                                                     \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u8 [%0], %1;}"                     \
                 :: constraint(a), "h"(u16(w[0])), "r"(on) : "memory");                                      \
  }                                                                                                          \
  PL_FN void name(Address a, const u16 (&w)[1], u32 on) {                                                    \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u16 [%0], %1;}"                    \
                 :: constraint(a), "h"(w[0]), "r"(on) : "memory");                                           \
  }                                                                                                          \
  PL_FN void name(Address a, const u32 (&w)[1], u32 on) {                                                    \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u32 [%0], %1;}"                    \
                 :: constraint(a), "r"(w[0]), "r"(on) : "memory");                                           \
  }                                                                                                          \
  PL_FN void name(Address a, const u32 (&w)[2], u32 on) {                                                    \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p " instruction ".v2.u32 [%0], {%1, %2};}"           \
                 :: constraint(a), "r"(w[0]), "r"(w[1]), "r"(on) : "memory");                                \
  }                                                                                                          \
  PL_FN void name(Address a, const u32 (&w)[4], u32 on) {                                                    \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p " instruction ".v4.u32 [%0], {%1, %2, %3, %4};}"   \
                 :: constraint(a), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(on) : "memory");          \
  }
#define PL_MEMORY : "memory"
PL_LOAD(global_load, u64, "l", volatile, PL_MEMORY, "ld.global")
PL_LOAD(global_load_nc, u64, "l", , , "ld.global.nc")
PL_LOAD(shared_load, u32, "r", volatile, PL_MEMORY, "ld.shared")
PL_STORE(global_store, u64, "l", "st.global")
PL_STORE(shared_store, u32, "r", "st.shared")
// clang-format on

PL_FN u64 global_address(const void* p) { return __cvta_generic_to_global(p); }

}  // namespace detail

template <int N = 1, class T>
PL_FN void load_global(T* dst, const T* p, bool in_bounds = true) {
  detail::vector_of<N, T> w = {};
  detail::global_load(w, detail::global_address(p), in_bounds);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void load_global_nc(T* dst, const T* p, bool in_bounds = true) {
  detail::vector_of<N, T> w = {};
  detail::global_load_nc(w, detail::global_address(p), in_bounds);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void load_global_nc_zero(T* dst, const T* p, bool in_bounds = true) {
  load_global_nc<N>(dst, p, in_bounds);
}

template <int N = 1, class T>
PL_FN void load_global_filled(T* dst, const T* p, bool in_bounds, detail::itself<T> outside) {
  detail::vector_of<N, T> w;
  detail::fill_words<N>(w, outside);
  detail::global_load(w, detail::global_address(p), in_bounds);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void load_global_nc_filled(T* dst, const T* p, bool in_bounds, detail::itself<T> outside) {
  detail::vector_of<N, T> w;
  detail::fill_words<N>(w, outside);
  detail::global_load_nc(w, detail::global_address(p), in_bounds);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void store_global(T* p, const T* src, bool in_bounds = true) {
  detail::vector_of<N, T> w;
  detail::to_words<N>(w, src);
  detail::global_store(detail::global_address(p), w, in_bounds);
}

template <int N = 1, class T>
PL_FN void load_shared(T* dst, u32 address, bool active = true) {
  detail::vector_of<N, T> w = {};
  detail::shared_load(w, address, active);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void load_shared_padded(T* dst, u32 address, bool active = true) {
  load_shared<N>(dst, address, active);
}

template <int N = 1, class T>
PL_FN void load_resident(T* dst, u32 address, bool in_bounds = true) {
  load_shared<N>(dst, address, in_bounds);
}

template <int N = 1, class T>
PL_FN void flush_resident(T* p, u32 address, bool in_bounds = true) {
  T moved[N];
  load_shared<N>(moved, address, in_bounds);
  store_global<N>(p, moved, in_bounds);
}

PL_FN bool was_stored(bool) { return true; }

template <class T>
PL_FN u32 skew(const T* p) {
  return u32(detail::global_address(p)) & 15;
}

// Of what begins inside of a word two words have a part each.
template <int N = 1, class T>
PL_FN void load_shared_skewed(T* dst, u32 address, u32 skew, bool active = true) {
  constexpr int bytes = N * int(sizeof(T));
  if constexpr (bytes < 4) {
    PL_UNROLL for (int i = 0; i < N; ++i) {
      load_shared<1>(dst + i, address + skew + i * u32(sizeof(T)), active);
    }
  } else {
    const u32 first = address + (skew & ~3u), order = 0x3210 + 0x1111 * (skew & 3);
    u32 w[bytes / 4 + 1][1] = {};
    PL_UNROLL for (int i = 0; i <= bytes / 4; ++i) detail::shared_load(w[i], first + 4 * i, active);
    detail::vector_of<N, T> shifted;
    PL_UNROLL for (int i = 0; i < bytes / 4; ++i) {
      asm("prmt.b32 %0, %1, %2, %3;" : "=r"(shifted[i]) : "r"(w[i][0]), "r"(w[i + 1][0]), "r"(order));
    }
    detail::from_words<N>(dst, shifted);
  }
}

template <int N = 1, class T>
PL_FN void store_shared(u32 address, const T* src, bool active = true) {
  detail::vector_of<N, T> w;
  detail::to_words<N>(w, src);
  detail::shared_store(address, w, active);
}

template <class T>
PL_FN T out_of_bounds() {
  return bitcast<T>(static_cast<detail::bits_of<T>>(0));
}

PL_FN void check(bool, const char*) {}
PL_FN void check_value(bool, i64, const char*) {}
PL_FN void check_range(i64, i64, i64, const char*) {}

}  // namespace pl
