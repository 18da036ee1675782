// Atomic accesses: one instruction each, or a loop of one where there is none.

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

enum class Atomic { add, min, max, bit_and, bit_or, bit_xor, exchange, inc, dec };
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
template <>
constexpr char atomic_word<Atomic::inc>[] = ".inc";
template <>
constexpr char atomic_word<Atomic::dec>[] = ".dec";

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

// Shared memory, and among whom: the block's own, any one's of the cluster.
constexpr char of_block[] = ".cta.shared::cta";
constexpr char of_cluster[] = ".cluster.shared::cluster";

template <Atomic A, const auto& Type, Order O, const auto& Of, class T>
PL_FN T atom_shared(u32 at, T v) {
  static_assert(A == Atomic::add || is_integer<T>, "only sums are of floats");
  T old;
#define PL_ASM(constraint)                                                                   \
  asm volatile("atom%3%6%4%5 %0, [%1], %2;"                                                  \
               : "=" constraint(old)                                                         \
               : "r"(at), constraint(v), "C"(order_word<O>), "C"(atomic_word<A>), "C"(Type), \
                 "C"(Of)                                                                     \
               : "memory")
  PL_BY_REGISTER(PL_ASM)
#undef PL_ASM
  return old;
}

// The bits of an element, read, and exchanged if they are the expected ones.
#define PL_BY_BITS(ASM)                     \
  if constexpr (sizeof(Bits) == 2) {        \
    ASM("h", ".b16");                       \
  } else if constexpr (sizeof(Bits) == 4) { \
    ASM("r", ".b32");                       \
  } else {                                  \
    ASM("l", ".b64");                       \
  }

template <Order O>
constexpr char load_word[] = ".relaxed";
template <>
constexpr char load_word<acquire>[] = ".acquire";
template <>
constexpr char load_word<acq_rel>[] = ".acquire";

template <Order O, Scope S>
struct OnGlobal {
  typedef u64 Address;
  template <class Bits>
  PL_FN static Bits load(Address at) {
    Bits bits;
#define PL_ASM(constraint, type)                                \
  asm volatile("ld%2%3.global" type " %0, [%1];"                \
               : "=" constraint(bits)                           \
               : "l"(at), "C"(load_word<O>), "C"(scope_word<S>) \
               : "memory")
    PL_BY_BITS(PL_ASM)
#undef PL_ASM
    return bits;
  }
  template <class Bits>
  PL_FN static Bits exchange_if(Address at, Bits expected, Bits v) {
    Bits old;
#define PL_ASM(constraint, type)                                                   \
  asm volatile("atom%4%5.global.cas" type " %0, [%1], %2, %3;"                     \
               : "=" constraint(old)                                               \
               : "l"(at), constraint(expected), constraint(v), "C"(order_word<O>), \
                 "C"(scope_word<S>)                                                \
               : "memory")
    PL_BY_BITS(PL_ASM)
#undef PL_ASM
    return old;
  }
};

template <Order O, const auto& Of>
struct OnShared {
  typedef u32 Address;
  template <class Bits>
  PL_FN static Bits load(Address at) {
    Bits bits;
#define PL_ASM(constraint, type)                     \
  asm volatile("ld%2%3" type " %0, [%1];"            \
               : "=" constraint(bits)                \
               : "r"(at), "C"(load_word<O>), "C"(Of) \
               : "memory")
    PL_BY_BITS(PL_ASM)
#undef PL_ASM
    return bits;
  }
  template <class Bits>
  PL_FN static Bits exchange_if(Address at, Bits expected, Bits v) {
    Bits old;
#define PL_ASM(constraint, type)                                                           \
  asm volatile("atom%4%5.cas" type " %0, [%1], %2, %3;"                                    \
               : "=" constraint(old)                                                       \
               : "r"(at), constraint(expected), constraint(v), "C"(order_word<O>), "C"(Of) \
               : "memory")
    PL_BY_BITS(PL_ASM)
#undef PL_ASM
    return old;
  }
};

// A byte is exchanged with the word around it.
template <class Where, class Bits>
PL_FN Bits load_bits(typename Where::Address at) {
  if constexpr (sizeof(Bits) == 1) {
    const u32 word = Where::template load<u32>(at & ~typename Where::Address(3));
    return static_cast<Bits>(word >> 8 * (at & 3));
  } else {
    return Where::template load<Bits>(at);
  }
}
template <class Where, class Bits>
PL_FN Bits exchange_if(typename Where::Address at, Bits expected, Bits v) {
  if constexpr (sizeof(Bits) == 1) {
    const typename Where::Address around = at & ~typename Where::Address(3);
    const u32 place = 8 * static_cast<u32>(at & 3), mask = 255u << place;
    u32 seen = Where::template load<u32>(around);
    while (static_cast<Bits>(seen >> place) == expected) {
      const u32 next = (seen & ~mask) | u32(v) << place;
      const u32 old = Where::exchange_if(around, seen, next);
      if (old == seen) break;
      seen = old;
    }
    return static_cast<Bits>(seen >> place);
  } else {
    return Where::exchange_if(at, expected, v);
  }
}

template <Atomic A, class T>
PL_FN T combined(T old, T v) {
  if constexpr (A == Atomic::add) return add(old, v);
  if constexpr (A == Atomic::min) return min(old, v);
  if constexpr (A == Atomic::max) return max(old, v);
  if constexpr (A == Atomic::bit_and) return static_cast<T>(old & v);
  if constexpr (A == Atomic::bit_or) return static_cast<T>(old | v);
  if constexpr (A == Atomic::bit_xor) return static_cast<T>(old ^ v);
  return v;
}

// Exchanged until nobody came between.
template <Atomic A, class Where, class T>
PL_FN T atom_loop(typename Where::Address at, T v) {
  typedef bits_of<T> Bits;
  Bits seen = load_bits<Where, Bits>(at);
  for (;;) {
    const Bits next = bitcast<Bits>(combined<A>(bitcast<T>(seen), v));
    const Bits old = exchange_if<Where>(at, seen, next);
    if (old == seen) return bitcast<T>(old);
    seen = old;
  }
}

// Whether an instruction does it. bf16 has none before sm_90. What ptxas makes of one for 8 bytes
// of shared memory (a loop over ATOMS.CAST.SPIN, but for cas and exch) loses what another block
// does to them meanwhile.
template <Atomic A, class T>
PL_FN constexpr bool has_atom() {
  if (is_half<T>) {
#if __CUDA_ARCH__ >= 900
    return A == Atomic::add;
#else
    return A == Atomic::add && same<T, f16>;
#endif
  }
  return sizeof(T) >= 4 && (A == Atomic::add || is_integer<T>);
}

// Sums of 16-bit floats.
template <class T>
constexpr char half_word[] = ".add.noftz.f16";
template <>
constexpr char half_word<bf16>[] = ".add.noftz.bf16";

template <Order O, Scope S, class T>
PL_FN T atom_half(T* p, T v) {
  const u64 at = __cvta_generic_to_global(p);
  u16 old;
  asm volatile("atom%3%4.global%5 %0, [%1], %2;"
               : "=h"(old)
               : "l"(at), "h"(v.bits), "C"(order_word<O>), "C"(scope_word<S>), "C"(half_word<T>)
               : "memory");
  return bitcast<T>(old);
}

template <Order O, class T>
PL_FN T atom_half_shared(u32 at, T v) {
  u16 old;
  asm volatile("atom%3.cta.shared::cta%4 %0, [%1], %2;"
               : "=h"(old)
               : "r"(at), "h"(v.bits), "C"(order_word<O>), "C"(half_word<T>)
               : "memory");
  return bitcast<T>(old);
}

template <Atomic A, const auto& Type, Order O, Scope S, class T>
PL_FN T update(T* p, T v) {
  if constexpr (!has_atom<A, T>())
    return atom_loop<A, OnGlobal<O, S>>(__cvta_generic_to_global(p), v);
  else if constexpr (is_half<T>)
    return atom_half<O, S>(p, v);
  else
    return atom<A, Type, O, S>(p, v);
}
template <Atomic A, class T>
PL_FN constexpr bool has_atom_shared() {
#if __CUDA_ARCH__ >= 900
  if (sizeof(T) == 8 && is_integer<T>) return A == Atomic::exchange;
#endif
  return has_atom<A, T>();
}
template <Atomic A, const auto& Type, Order O, const auto& Of = of_block, class T>
PL_FN T update_shared(u32 at, T v) {
  if constexpr (!has_atom_shared<A, T>())
    return atom_loop<A, OnShared<O, Of>>(at, v);
  else if constexpr (is_half<T>)
    return atom_half_shared<O>(at, v);
  else
    return atom_shared<A, Type, O, Of>(at, v);
}
template <Atomic A, const auto& Type, Order O, class T>
PL_FN T update_cluster(u32 at, T v) {
  static_assert(is_integer<T>, "atomics of another block's memory are of integers");
  return update_shared<A, Type, O, of_cluster>(at, v);
}

}  // namespace detail

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_add(T* p, T v) {
  return detail::update<detail::Atomic::add, detail::term_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_min(T* p, T v) {
  return detail::update<detail::Atomic::min, detail::number_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_max(T* p, T v) {
  return detail::update<detail::Atomic::max, detail::number_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_and(T* p, T v) {
  return detail::update<detail::Atomic::bit_and, detail::bits_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_or(T* p, T v) {
  return detail::update<detail::Atomic::bit_or, detail::bits_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_xor(T* p, T v) {
  return detail::update<detail::Atomic::bit_xor, detail::bits_word<T>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_exchange(T* p, T v) {
  return detail::update<detail::Atomic::exchange, detail::bits_word<T>, O, S>(p, v);
}

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_inc(T* p, T v) {
  static_assert(sizeof(T) == 4 && detail::is_integer<T>, "atomic_inc: of u32 and i32");
  return detail::atom<detail::Atomic::inc, detail::number_word<u32>, O, S>(p, v);
}
template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_dec(T* p, T v) {
  static_assert(sizeof(T) == 4 && detail::is_integer<T>, "atomic_dec: of u32 and i32");
  return detail::atom<detail::Atomic::dec, detail::number_word<u32>, O, S>(p, v);
}

template <Order O = relaxed, class T>
PL_FN T atomic_add_cluster(u32 remote, T v) {
  return detail::update_cluster<detail::Atomic::add, detail::term_word<T>, O>(remote, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_min_cluster(u32 remote, T v) {
  return detail::update_cluster<detail::Atomic::min, detail::number_word<T>, O>(remote, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_max_cluster(u32 remote, T v) {
  return detail::update_cluster<detail::Atomic::max, detail::number_word<T>, O>(remote, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_and_cluster(u32 remote, T v) {
  return detail::update_cluster<detail::Atomic::bit_and, detail::bits_word<T>, O>(remote, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_or_cluster(u32 remote, T v) {
  return detail::update_cluster<detail::Atomic::bit_or, detail::bits_word<T>, O>(remote, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_xor_cluster(u32 remote, T v) {
  return detail::update_cluster<detail::Atomic::bit_xor, detail::bits_word<T>, O>(remote, v);
}

template <Order O = relaxed, class T>
PL_FN T atomic_add_shared(u32 address, T v) {
  return detail::update_shared<detail::Atomic::add, detail::term_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_min_shared(u32 address, T v) {
  return detail::update_shared<detail::Atomic::min, detail::number_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_max_shared(u32 address, T v) {
  return detail::update_shared<detail::Atomic::max, detail::number_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_and_shared(u32 address, T v) {
  return detail::update_shared<detail::Atomic::bit_and, detail::bits_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_or_shared(u32 address, T v) {
  return detail::update_shared<detail::Atomic::bit_or, detail::bits_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_xor_shared(u32 address, T v) {
  return detail::update_shared<detail::Atomic::bit_xor, detail::bits_word<T>, O>(address, v);
}
template <Order O = relaxed, class T>
PL_FN T atomic_exchange_shared(u32 address, T v) {
  return detail::update_shared<detail::Atomic::exchange, detail::bits_word<T>, O>(address, v);
}

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_compare_exchange(T* p, T expected, T v) {
  typedef detail::bits_of<T> Bits;
  return bitcast<T>(detail::exchange_if<detail::OnGlobal<O, S>>(
      __cvta_generic_to_global(p), bitcast<Bits>(expected), bitcast<Bits>(v)));
}

template <Order O = relaxed, class T>
PL_FN T atomic_compare_exchange_shared(u32 address, T expected, T v) {
  typedef detail::bits_of<T> Bits;
  return bitcast<T>(detail::exchange_if<detail::OnShared<O, detail::of_block>>(
      address, bitcast<Bits>(expected), bitcast<Bits>(v)));
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

namespace detail {

// Sums of the elements of one word, two or four.
PL_FN void red_sums(u64 at, const f32 (&v)[2]) {
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(v[0]), "f"(v[1])
               : "memory");
}
PL_FN void red_sums(u64 at, const f32 (&v)[4]) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(v[0]),
               "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
}
template <class T>
constexpr char pair_word[] = ".f16x2";
template <>
constexpr char pair_word<bf16>[] = ".bf16x2";
template <class T>
PL_FN void red_pairs(u64 at, const u32 (&v)[1]) {
  asm volatile("red.relaxed.gpu.global.add.noftz%2 [%0], %1;" ::"l"(at), "r"(v[0]),
               "C"(pair_word<T>)
               : "memory");
}
template <class T>
PL_FN void red_pairs(u64 at, const u32 (&v)[2]) {
  asm volatile("red.relaxed.gpu.global.add.noftz.v2%3 [%0], {%1, %2};" ::"l"(at), "r"(v[0]),
               "r"(v[1]), "C"(pair_word<T>)
               : "memory");
}
template <class T>
PL_FN void red_pairs(u64 at, const u32 (&v)[4]) {
  asm volatile("red.relaxed.gpu.global.add.noftz.v4%5 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v[0]),
               "r"(v[1]), "r"(v[2]), "r"(v[3]), "C"(pair_word<T>)
               : "memory");
}

// The elements that one instruction adds.
template <int N, class T>
PL_FN constexpr int added_at_once() {
#if __CUDA_ARCH__ >= 900
  return N;
#else
  return same<T, f16> && N > 1 ? 2 : 1;
#endif
}

}  // namespace detail

template <int N = 1, class T>
PL_FN void red_add_vector(T* p, const T* src, bool in_bounds = true) {
  static_assert(detail::is_half<T> || detail::same<T, f32>, "red_add_vector: not of this type");
  constexpr int once = detail::added_at_once<N, T>();
  if (!in_bounds) return;
  PL_UNROLL for (int e = 0; e < N; e += once) {
    if constexpr (once == 1) {
      atomic_add(p + e, src[e]);
    } else if constexpr (detail::is_half<T>) {
      u32 pairs[once / 2];
      ::memcpy(pairs, src + e, sizeof pairs);
      detail::red_pairs<T>(__cvta_generic_to_global(p + e), pairs);
    } else {
      f32 v[once];
      PL_UNROLL for (int i = 0; i < once; ++i) v[i] = src[e + i];
      detail::red_sums(__cvta_generic_to_global(p + e), v);
    }
  }
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
