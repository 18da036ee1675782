// Atomic accesses.

namespace pl {
namespace detail {

template <class T>
PL_FN T atomic(T* p, Atomic what, T v, T expected, Order order, Scope scope, i32 line) {
  return bitcast<T>(static_cast<bits_of<T>>(
      host.atomic_global(p, what, format_of<T>, sizeof(T), bitcast<bits_of<T>>(v),
                         bitcast<bits_of<T>>(expected), order, scope, line)));
}

template <class T>
PL_FN T atomic_shared(u32 at, Atomic what, T v, T expected, Order order, i32 line) {
  return bitcast<T>(static_cast<bits_of<T>>(
      host.atomic_shared(at, what, format_of<T>, sizeof(T), bitcast<bits_of<T>>(v),
                         bitcast<bits_of<T>>(expected), order, line)));
}

template <class T>
PL_FN T atomic_cluster(u32 at, Atomic what, T v, Order order, i32 line) {
  return bitcast<T>(static_cast<bits_of<T>>(host.atomic_cluster(
      at, what, format_of<T>, sizeof(T), bitcast<bits_of<T>>(v), order, line)));
}

template <class T>
constexpr bool is_term = (is_integer<T> || is_wide_float<T>)&&sizeof(T) >= 4;
template <class T>
constexpr bool is_number = is_integer<T> || is_wide_float<T> || is_half<T>;
template <class T>
constexpr bool is_natural = is_integer<T> && sizeof(T) == 4;

}  // namespace detail

#define PL_ATOMIC(name, what, is_legal)                                                    \
  template <Order O = relaxed, Scope S = gpu, class T>                                     \
  PL_FN T name(T* p, T v, PL_LINE) {                                                       \
    static_assert(detail::is_legal<T>, #name ": not of this type");                        \
    return detail::atomic(p, detail::Atomic::what, v, T{}, static_cast<detail::Order>(O), \
                          static_cast<detail::Scope>(S), line);                            \
  }
#define PL_ATOMIC_SHARED(name, what, is_legal)                           \
  template <Order O = relaxed, class T>                                  \
  PL_FN T name(u32 address, T v, PL_LINE) {                              \
    static_assert(detail::is_legal<T>, #name ": not of this type");      \
    return detail::atomic_shared(address, detail::Atomic::what, v, T{}, \
                                 static_cast<detail::Order>(O), line);   \
  }
PL_ATOMIC(atomic_add, add, is_number)
PL_ATOMIC(atomic_min, min, is_number)
PL_ATOMIC(atomic_max, max, is_number)
PL_ATOMIC(atomic_and, bit_and, is_integer)
PL_ATOMIC(atomic_or, bit_or, is_integer)
PL_ATOMIC(atomic_xor, bit_xor, is_integer)
PL_ATOMIC(atomic_exchange, exchange, is_integer)
PL_ATOMIC_SHARED(atomic_add_shared, add, is_number)
PL_ATOMIC_SHARED(atomic_min_shared, min, is_number)
PL_ATOMIC_SHARED(atomic_max_shared, max, is_number)
PL_ATOMIC_SHARED(atomic_and_shared, bit_and, is_integer)
PL_ATOMIC_SHARED(atomic_or_shared, bit_or, is_integer)
PL_ATOMIC_SHARED(atomic_xor_shared, bit_xor, is_integer)
PL_ATOMIC_SHARED(atomic_exchange_shared, exchange, is_integer)
PL_ATOMIC(atomic_inc, inc, is_natural)
PL_ATOMIC(atomic_dec, dec, is_natural)
#define PL_ATOMIC_CLUSTER(name, what)                                        \
  template <Order O = relaxed, class T>                                      \
  PL_FN T name(u32 remote, T v, PL_LINE) {                                   \
    static_assert(detail::is_integer<T> && sizeof(T) >= 4,                   \
                  #name ": not of this type");                               \
    return detail::atomic_cluster(remote, detail::Atomic::what, v,           \
                                  static_cast<detail::Order>(O), line);      \
  }
PL_ATOMIC_CLUSTER(atomic_add_cluster, add)
PL_ATOMIC_CLUSTER(atomic_min_cluster, min)
PL_ATOMIC_CLUSTER(atomic_max_cluster, max)
PL_ATOMIC_CLUSTER(atomic_and_cluster, bit_and)
PL_ATOMIC_CLUSTER(atomic_or_cluster, bit_or)
PL_ATOMIC_CLUSTER(atomic_xor_cluster, bit_xor)

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN T atomic_compare_exchange(T* p, T expected, T v, PL_LINE) {
  static_assert(detail::is_integer<T>, "atomic_compare_exchange: not of this type");
  return detail::atomic(p, detail::Atomic::compare_exchange, v, expected,
                        static_cast<detail::Order>(O), static_cast<detail::Scope>(S), line);
}

template <Order O = relaxed, class T>
PL_FN T atomic_compare_exchange_shared(u32 address, T expected, T v, PL_LINE) {
  static_assert(detail::is_integer<T>, "atomic_compare_exchange_shared: not of this type");
  return detail::atomic_shared(address, detail::Atomic::compare_exchange, v, expected,
                               static_cast<detail::Order>(O), line);
}

template <Order O = relaxed, Scope S = gpu, class T>
PL_FN void red_add(T* p, T v, PL_LINE) {
  static_assert(O == relaxed || O == release, "red_add: relaxed or release");
  static_assert(detail::is_term<T>, "red_add: not of this type");
  detail::atomic(p, detail::Atomic::reduce_add, v, T{}, static_cast<detail::Order>(O),
                 static_cast<detail::Scope>(S), line);
}

template <int N = 1, class T>
PL_FN void red_add_vector(T* p, const T* src, bool in_bounds = true, PL_LINE) {
  static_assert(detail::is_half<T> || (detail::is_wide_float<T> && sizeof(T) == 4),
                "red_add_vector: not of this type");
  for (int e = 0; e < N && in_bounds; ++e)
    detail::atomic(p + e, detail::Atomic::reduce_add, src[e], T{}, detail::Order::relaxed,
                   detail::Scope::gpu, line);
}

template <Scope S = gpu, class T>
PL_FN T load_acquire(const T* p, PL_LINE) {
  return detail::atomic(const_cast<T*>(p), detail::Atomic::load, T{}, T{}, detail::Order::acquire,
                        static_cast<detail::Scope>(S), line);
}

template <Scope S = gpu, class T>
PL_FN void store_release(T* p, T v, PL_LINE) {
  detail::atomic(p, detail::Atomic::store, v, T{}, detail::Order::release,
                 static_cast<detail::Scope>(S), line);
}

}  // namespace pl
