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

}  // namespace pl
