// Atomic accesses, one instruction each.

namespace pl {
namespace detail {

// The words of an instruction, for asm's "C" operands.
template <Order O>
constexpr char order_word[] = ".relaxed";
template <>
constexpr char order_word<acquire>[] = ".acquire";
template <>
constexpr char order_word<release>[] = ".release";
template <>
constexpr char order_word<acq_rel>[] = ".acq_rel";

template <Scope S>
constexpr char scope_word[] = ".cta";
template <>
constexpr char scope_word<cluster>[] = ".cluster";
template <>
constexpr char scope_word<gpu>[] = ".gpu";
template <>
constexpr char scope_word<system_scope>[] = ".sys";

enum class Atomic { add, min, max, bit_and, bit_or, bit_xor, exchange };
template <Atomic A>
constexpr char atomic_word[] = ".add";
template <>
constexpr char atomic_word<Atomic::min>[] = ".min";
template <>
constexpr char atomic_word<Atomic::max>[] = ".max";
template <>
constexpr char atomic_word<Atomic::bit_and>[] = ".and";
template <>
constexpr char atomic_word<Atomic::bit_or>[] = ".or";
template <>
constexpr char atomic_word<Atomic::bit_xor>[] = ".xor";
template <>
constexpr char atomic_word<Atomic::exchange>[] = ".exch";

// T as a term of a sum, as a number to compare, and as bits.
template <class T>
constexpr char term_word[] = ".u32";
template <>
constexpr char term_word<i64>[] = ".u64";
template <>
constexpr char term_word<u64>[] = ".u64";
template <>
constexpr char term_word<f32>[] = ".f32";
template <>
constexpr char term_word<f64>[] = ".f64";
template <class T>
constexpr char number_word[] = ".u32";
template <>
constexpr char number_word<i32>[] = ".s32";
template <>
constexpr char number_word<i64>[] = ".s64";
template <>
constexpr char number_word<u64>[] = ".u64";
template <class T>
constexpr char bits_word[] = ".b32";
template <>
constexpr char bits_word<i64>[] = ".b64";
template <>
constexpr char bits_word<u64>[] = ".b64";

// ASM(constraint) for the registers of a T.
#define PL_BY_REGISTER(ASM)                                                    \
  static_assert(sizeof(T) >= 4 && !is_half<T>, "atomics are of 4 or 8 bytes"); \
  if constexpr (same<T, f32>) {                                                \
    ASM("f");                                                                  \
  } else if constexpr (same<T, f64>) {                                         \
    ASM("d");                                                                  \
  } else if constexpr (sizeof(T) == 4) {                                       \
    ASM("r");                                                                  \
  } else {                                                                     \
    ASM("l");                                                                  \
  }

template <Atomic A, const auto& Type, Order O, Scope S, class T>
PL_FN T atom(T* p, T v) {
  static_assert(A == Atomic::add || is_integer<T>, "only sums are of floats");
  const u64 at = __cvta_generic_to_global(p);
  T old;
#define PL_ASM(constraint)                                                       \
  asm volatile("atom%3%4.global%5%6 %0, [%1], %2;"                               \
               : "=" constraint(old)                                             \
               : "l"(at), constraint(v), "C"(order_word<O>), "C"(scope_word<S>), \
                 "C"(atomic_word<A>), "C"(Type)                                  \
               : "memory")
  PL_BY_REGISTER(PL_ASM)
#undef PL_ASM
  return old;
}

template <Atomic A, const auto& Type, Order O, class T>
PL_FN T atom_shared(u32 at, T v) {
  static_assert(A == Atomic::add || is_integer<T>, "only sums are of floats");
  T old;
#define PL_ASM(constraint)                                                                  \
  asm volatile("atom%3.cta.shared::cta%4%5 %0, [%1], %2;"                                   \
               : "=" constraint(old)                                                        \
               : "r"(at), constraint(v), "C"(order_word<O>), "C"(atomic_word<A>), "C"(Type) \
               : "memory")
  PL_BY_REGISTER(PL_ASM)
#undef PL_ASM
  return old;
}

// Sums of 16-bit floats. bf16 has no instruction before sm_90: it is exchanged until nobody came
// between.
template <class T>
constexpr char half_word[] = ".add.noftz.f16";
template <>
constexpr char half_word<bf16>[] = ".add.noftz.bf16";
template <class T>
PL_FN constexpr bool adds_half() {
#if __CUDA_ARCH__ >= 900
  return true;
#else
  return same<T, f16>;
#endif
}

template <Order O, Scope S, class T>
PL_FN T atom_half(T* p, T v) {
  const u64 at = __cvta_generic_to_global(p);
  u16 old;
  if constexpr (adds_half<T>()) {
    asm volatile("atom%3%4.global%5 %0, [%1], %2;"
                 : "=h"(old)
                 : "l"(at), "h"(v.bits), "C"(order_word<O>), "C"(scope_word<S>), "C"(half_word<T>)
                 : "memory");
  } else {
    u16 seen;
    asm volatile("ld.relaxed%2.global.u16 %0, [%1];"
                 : "=h"(old)
                 : "l"(at), "C"(scope_word<S>)
                 : "memory");
    do {
      seen = old;
      const u16 sum = bitcast<u16>(bitcast<T>(seen) + v);
      asm volatile("atom%4%5.global.cas.b16 %0, [%1], %2, %3;"
                   : "=h"(old)
                   : "l"(at), "h"(seen), "h"(sum), "C"(order_word<O>), "C"(scope_word<S>)
                   : "memory");
    } while (old != seen);
  }
  return bitcast<T>(old);
}

template <Order O, class T>
PL_FN T atom_half_shared(u32 at, T v) {
  u16 old;
  if constexpr (adds_half<T>()) {
    asm volatile("atom%3.cta.shared::cta%4 %0, [%1], %2;"
                 : "=h"(old)
                 : "r"(at), "h"(v.bits), "C"(order_word<O>), "C"(half_word<T>)
                 : "memory");
  } else {
    u16 seen;
    asm volatile("ld.relaxed.cta.shared::cta.u16 %0, [%1];" : "=h"(old) : "r"(at) : "memory");
    do {
      seen = old;
      const u16 sum = bitcast<u16>(bitcast<T>(seen) + v);
      asm volatile("atom%4.cta.shared::cta.cas.b16 %0, [%1], %2, %3;"
                   : "=h"(old)
                   : "r"(at), "h"(seen), "h"(sum), "C"(order_word<O>)
                   : "memory");
    } while (old != seen);
  }
  return bitcast<T>(old);
}

}  // namespace detail

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_add(T* p, T v) {
  if constexpr (detail::is_half<T>)
    return detail::atom_half<O, S>(p, v);
  else
    return detail::atom<detail::Atomic::add, detail::term_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_min(T* p, T v) {
  return detail::atom<detail::Atomic::min, detail::number_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_max(T* p, T v) {
  return detail::atom<detail::Atomic::max, detail::number_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_and(T* p, T v) {
  return detail::atom<detail::Atomic::bit_and, detail::bits_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_or(T* p, T v) {
  return detail::atom<detail::Atomic::bit_or, detail::bits_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_xor(T* p, T v) {
  return detail::atom<detail::Atomic::bit_xor, detail::bits_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_exchange(T* p, T v) {
  return detail::atom<detail::Atomic::exchange, detail::bits_word<T>, O, S>(p, v);
}

template <Order O = relaxed, class T>
PL_FN T atomic_add_shared(u32 address, T v) {
  if constexpr (detail::is_half<T>)
    return detail::atom_half_shared<O>(address, v);
  else
    return detail::atom_shared<detail::Atomic::add, detail::term_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_min_shared(u32 address, T v) {
  return detail::atom_shared<detail::Atomic::min, detail::number_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_max_shared(u32 address, T v) {
  return detail::atom_shared<detail::Atomic::max, detail::number_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_and_shared(u32 address, T v) {
  return detail::atom_shared<detail::Atomic::bit_and, detail::bits_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_or_shared(u32 address, T v) {
  return detail::atom_shared<detail::Atomic::bit_or, detail::bits_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_xor_shared(u32 address, T v) {
  return detail::atom_shared<detail::Atomic::bit_xor, detail::bits_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_exchange_shared(u32 address, T v) {
  return detail::atom_shared<detail::Atomic::exchange, detail::bits_word<T>, O>(address, v);
}

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_compare_exchange(T* p, T expected, T v) {
  const u64 at = __cvta_generic_to_global(p);
  T old;
  if constexpr (sizeof(T) == 4) {
    asm volatile("atom%4%5.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(at), "r"(expected), "r"(v), "C"(detail::order_word<O>),
                   "C"(detail::scope_word<S>)
                 : "memory");
  } else {
    asm volatile("atom%4%5.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(at), "l"(expected), "l"(v), "C"(detail::order_word<O>),
                   "C"(detail::scope_word<S>)
                 : "memory");
  }
  return old;
}

template <Order O = relaxed, class T>
PL_FN T atomic_compare_exchange_shared(u32 address, T expected, T v) {
  T old;
  if constexpr (sizeof(T) == 4) {
    asm volatile("atom%4.cta.shared::cta.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "r"(address), "r"(expected), "r"(v), "C"(detail::order_word<O>)
                 : "memory");
  } else {
    asm volatile("atom%4.cta.shared::cta.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "r"(address), "l"(expected), "l"(v), "C"(detail::order_word<O>)
                 : "memory");
  }
  return old;
}

namespace detail {

template <Order O, Scope S, class T>
PL_FN void red_sum(T* p, T v) {
  const u64 at = __cvta_generic_to_global(p);
#define PL_ASM(constraint)                                                                    \
  asm volatile("red%2%3.global.add%4 [%0], %1;" ::"l"(at), constraint(v), "C"(order_word<O>), \
               "C"(scope_word<S>), "C"(term_word<T>)                                          \
               : "memory")
  PL_BY_REGISTER(PL_ASM)
#undef PL_ASM
}

}  // namespace detail

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN void red_add(T* p, T v) {
  static_assert(O == relaxed || O == release, "red_add: relaxed or release");
  detail::red_sum<O, S>(p, v);
}

template <Scope S = gpu, class T>
PL_FN T load_acquire(const T* p) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "load_acquire: 4 or 8 bytes");
  const u64 at = __cvta_generic_to_global(p);
  detail::bits_of<T> v;
  if constexpr (sizeof(T) == 4) {
    asm volatile("ld.acquire%2.global.u32 %0, [%1];"
                 : "=r"(v)
                 : "l"(at), "C"(detail::scope_word<S>)
                 : "memory");
  } else {
    asm volatile("ld.acquire%2.global.u64 %0, [%1];"
                 : "=l"(v)
                 : "l"(at), "C"(detail::scope_word<S>)
                 : "memory");
  }
  return bitcast<T>(v);
}

template <Scope S = gpu, class T>
PL_FN void store_release(T* p, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "store_release: 4 or 8 bytes");
  const u64 at = __cvta_generic_to_global(p);
  const auto bits = bitcast<detail::bits_of<T>>(v);
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.release%2.global.u32 [%0], %1;" ::"l"(at), "r"(bits),
                 "C"(detail::scope_word<S>)
                 : "memory");
  } else {
    asm volatile("st.release%2.global.u64 [%0], %1;" ::"l"(at), "l"(bits),
                 "C"(detail::scope_word<S>)
                 : "memory");
  }
}

}  // namespace pl
