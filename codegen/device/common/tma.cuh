// How asynchronous copies are varied.

namespace pl {

enum Cache : i32 { evict_normal, evict_first, evict_last };
enum Reduction : i32 {
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor,
  reduce_inc,
  reduce_dec
};

namespace detail {

// Of which types there are bulk sums.
template <class T>
constexpr bool is_bulk_term = false;
template <>
constexpr bool is_bulk_term<i32> = true;
template <>
constexpr bool is_bulk_term<u32> = true;
template <>
constexpr bool is_bulk_term<u64> = true;
template <>
constexpr bool is_bulk_term<f16> = true;
template <>
constexpr bool is_bulk_term<bf16> = true;
template <>
constexpr bool is_bulk_term<f32> = true;
template <>
constexpr bool is_bulk_term<f64> = true;

}  // namespace detail
}  // namespace pl
