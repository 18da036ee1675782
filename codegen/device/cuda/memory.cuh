// Predicated vector accesses.

namespace pl {
namespace detail {

// A vector of up to 16 bytes travels as 32-bit words; narrower ones fill the low end of one word.
template <int N, class T>
constexpr int bytes_of_vector = N* int(sizeof(T));
template <int Bytes>
constexpr int words_of_vector = Bytes <= 4 ? 1 : Bytes / 4;

template <class T>
PL_FN T from_bits(bits_of<T> bits) {
  if constexpr (same<T, bool>) {
    return bits != 0;
  } else {
    return bitcast<T>(bits);
  }
}

template <int N, class T>
PL_FN void from_words(T* dst, const u32* w) {
  constexpr int per_word = sizeof(T) >= 4 ? 1 : 4 / int(sizeof(T));
  PL_UNROLL for (int i = 0; i < N; ++i) {
    if constexpr (sizeof(T) == 8) {
      dst[i] = bitcast<T>(u64(w[2 * i + 1]) << 32 | w[2 * i]);
    } else {
      const u32 word = w[i / per_word] >> (8 * sizeof(T) * (i % per_word));
      dst[i] = from_bits<T>(static_cast<bits_of<T>>(word));
    }
  }
}

template <int N, class T>
PL_FN void to_words(u32* w, const T* src) {
  constexpr int per_word = sizeof(T) >= 4 ? 1 : 4 / int(sizeof(T));
  PL_UNROLL for (int i = 0; i < N; ++i) {
    if constexpr (sizeof(T) == 8) {
      const u64 bits = bitcast<u64>(src[i]);
      w[2 * i] = static_cast<u32>(bits);
      w[2 * i + 1] = static_cast<u32>(bits >> 32);
    } else {
      const u32 part = u32(bitcast<bits_of<T>>(src[i])) << (8 * sizeof(T) * (i % per_word));
      w[i / per_word] = i % per_word == 0 ? part : w[i / per_word] | part;
    }
  }
}

// clang-format off
#define PL_LOAD(name, Address, constraint, qualifier, clobber, instruction)                                                            \
  template <int Bytes>                                                                                                                 \
  PL_FN void name(u32* w, Address a, bool p) {                                                                                         \
    const u32 on = p;                                                                                                                  \
    PL_UNROLL for (int i = 0; i < words_of_vector<Bytes>; ++i) w[i] = 0;                                                               \
    if constexpr (Bytes == 1)                                                                                                          \
      asm qualifier("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u8 %0, [%1];}" : "+r"(w[0]) : constraint(a), "r"(on) clobber); \
    else if constexpr (Bytes == 2)                                                                                                     \
      asm qualifier("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u16 %0, [%1];}" : "+r"(w[0]) : constraint(a), "r"(on) clobber); \
    else if constexpr (Bytes == 4)                                                                                                     \
      asm qualifier("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u32 %0, [%1];}" : "+r"(w[0]) : constraint(a), "r"(on) clobber); \
    else if constexpr (Bytes == 8)                                                                                                     \
      asm qualifier("{.reg .pred p; setp.ne.u32 p, %3, 0; @p " instruction ".v2.u32 {%0, %1}, [%2];}" : "+r"(w[0]), "+r"(w[1]) : constraint(a), "r"(on) clobber); \
    else                                                                                                                               \
      asm qualifier("{.reg .pred p; setp.ne.u32 p, %5, 0; @p " instruction ".v4.u32 {%0, %1, %2, %3}, [%4];}" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]) : constraint(a), "r"(on) clobber); \
  }
#define PL_STORE(name, Address, constraint, instruction)                                                                               \
  template <int Bytes>                                                                                                                 \
  PL_FN void name(Address a, const u32* w, bool p) {                                                                                   \
    const u32 on = p;                                                                                                                  \
    if constexpr (Bytes == 1)                                                                                                          \
      asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u8 [%0], %1;}" :: constraint(a), "r"(w[0]), "r"(on) : "memory"); \
    else if constexpr (Bytes == 2)                                                                                                     \
      asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u16 [%0], %1;}" :: constraint(a), "r"(w[0]), "r"(on) : "memory"); \
    else if constexpr (Bytes == 4)                                                                                                     \
      asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " instruction ".u32 [%0], %1;}" :: constraint(a), "r"(w[0]), "r"(on) : "memory"); \
    else if constexpr (Bytes == 8)                                                                                                     \
      asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p " instruction ".v2.u32 [%0], {%1, %2};}" :: constraint(a), "r"(w[0]), "r"(w[1]), "r"(on) : "memory"); \
    else                                                                                                                               \
      asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p " instruction ".v4.u32 [%0], {%1, %2, %3, %4};}" :: constraint(a), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(on) : "memory"); \
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
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  u32 w[detail::words_of_vector<bytes>];
  detail::global_load<bytes>(w, detail::global_address(p), in_bounds);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void load_global_nc(T* dst, const T* p, bool in_bounds = true) {
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  u32 w[detail::words_of_vector<bytes>];
  detail::global_load_nc<bytes>(w, detail::global_address(p), in_bounds);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void store_global(T* p, const T* src, bool in_bounds = true) {
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  u32 w[detail::words_of_vector<bytes>];
  detail::to_words<N>(w, src);
  detail::global_store<bytes>(detail::global_address(p), w, in_bounds);
}

template <int N = 1, class T>
PL_FN void load_shared(T* dst, u32 address, bool active = true) {
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  u32 w[detail::words_of_vector<bytes>];
  detail::shared_load<bytes>(w, address, active);
  detail::from_words<N>(dst, w);
}

template <int N = 1, class T>
PL_FN void load_shared_padded(T* dst, u32 address, bool active = true) {
  load_shared<N>(dst, address, active);
}

template <int N = 1, class T>
PL_FN void store_shared(u32 address, const T* src, bool active = true) {
  constexpr int bytes = detail::bytes_of_vector<N, T>;
  u32 w[detail::words_of_vector<bytes>];
  detail::to_words<N>(w, src);
  detail::shared_store<bytes>(address, w, active);
}

template <class T>
PL_FN T out_of_bounds() {
  return bitcast<T>(static_cast<detail::bits_of<T>>(0));
}

PL_FN void check(bool, const char*) {}

}  // namespace pl
