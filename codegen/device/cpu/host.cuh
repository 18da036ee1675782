// What the emulator offers to a kernel's shared object: one struct of function pointers, included
// by the emulator itself, so that both sides read the same declaration. A shared object resolves
// nothing else. Every function that may report takes the line of the emitted text.

enum : u32 { host_version = 13 };

struct Ids {
  u32 thread, warpgroup, warp, lane;
  i32 block[3], grid[3];
  u32 cluster_rank, cluster_size, shared_base;
  bool poison;  // whether lanes out of bounds hold poison rather than 0
};

enum class Shuffle : i32 { by_xor, by_index, up, down };

// What a warp is told by its lane 0.
enum class Uniform : i32 { value, warp, warpgroup };

// What mma multiplies: operands of one type, or of 8 bits A by B.
enum class Product : i32 {
  f16_f32,
  bf16_f32,
  tf32_f32,
  i8_i8,
  i8_u8,
  u8_i8,
  u8_u8,
  e4m3_e4m3,
  e4m3_e5m2,
  e5m2_e4m3,
  e5m2_e5m2
};

// Number formats of operands and accumulators.
enum class Format : i32 {
  f16,
  bf16,
  tf32,
  f32,
  f64,
  e4m3,
  e5m2,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64
};

// One wgmma, d of 64 x n += A of 64 x k times B of k x n.
struct Wgmma {
  i32 n, k;
  Format d, a, b;
  bool transpose_a, transpose_b;
};

enum class Reduction : i32 { none, add, min, max, bit_and, bit_or, bit_xor, inc, dec };
enum class Fence : i32 {
  mbarrier_init,
  async_shared,
  async_global,
  async,
  block,
  cluster,
  gpu,
  system
};
// What a load of shared memory that nobody wrote is.
enum class Unwritten : i32 { wrong, padding, by_user };
enum class Waiting : i32 { test, try_once, until };
enum class Order : i32 { relaxed, acquire, release, acq_rel };
enum class Scope : i32 { block, cluster, gpu, system };
// How an arrival at an mbarrier of a mapa address releases, if it is one.
enum class Arrival : i32 { own, remote_block_scope, remote_cluster_scope };
// The blocks to which a copy goes: this one alone, or the bits of a multicast.
enum : u32 { this_block = 0xffffffffu };
enum class Atomic : i32 {
  add,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  exchange,
  compare_exchange,
  load,
  store,
  reduce_add,  // whose old value nobody gets
  inc,
  dec
};

// What an accumulator register holds while a wgmma writes it: a signalling NaN.
enum : u32 { in_flight = 0x7fadbeef };

struct Host {
  u32 version, bytes;  // host_version, sizeof(Host)

  const Ids* (*ids)();
  void (*warpgroup_sync)(i32 warpgroups, i32 line);
  void (*block_sync)(i32 line);
  void (*warp_sync)(i32 line);
  u64 (*shuffle)(u64 value, Shuffle kind, u32 operand, i32 line);
  u32 (*ballot)(bool p, i32 line);
  void (*load_global)(void* dst, const void* p, u32 bytes, i32 line);
  void (*load_global_nc)(void* dst, const void* p, u32 bytes, i32 line);
  void (*store_global)(void* p, const void* src, u32 bytes, i32 line);
  void (*load_shared)(void* dst, u32 address, u32 bytes, Unwritten unwritten, i32 line);
  void (*store_shared)(u32 address, const void* src, u32 bytes, i32 line);
  void (*flush_resident)(void* p, u32 address, u32 element_bytes, i32 elements, i32 line);
  void (*check)(const char* what, i32 line);
  void (*check_value)(i64 value, const char* what, i32 line);
  void (*check_range)(i64 first, i64 last, i64 extent, const char* what, i32 line);
  void (*mma)(void* d, const void* a, const void* b, i32 k, Product product, i32 line);
  void (*ldmatrix)(void* dst, u32 row, i32 matrices, bool transposed, i32 line);

  void (*stmatrix)(u32 row, const void* src, i32 matrices, bool transposed, i32 line);
  u32 (*warp_uniform)(u32 x, Uniform what, i32 line);
  bool (*elect_one)(i32 line);

  void (*barrier)(u32 id, u32 threads, bool wait, i32 line);
  void (*cluster_arrive)(bool release, i32 line);
  void (*cluster_wait)(i32 line);
  u32 (*mapa)(u32 address, u32 rank, i32 line);
  void (*load_cluster)(void* dst, u32 remote, u32 bytes, i32 line);
  void (*store_cluster)(u32 remote, const void* src, u32 bytes, i32 line);
  void (*store_async)(u32 remote, const void* src, u32 bytes, u32 remote_bar, i32 line);

  // `remote`: the barrier's address is one of mapa.
  void (*mbarrier_init)(u32 bar, u32 count, i32 line);
  void (*mbarrier_inval)(u32 bar, i32 line);
  void (*mbarrier_expect_tx)(u32 bar, u32 bytes, bool remote, i32 line);
  void (*mbarrier_arrive)(u32 bar, u32 count, Arrival how, i32 line);
  bool (*mbarrier_wait)(u32 bar, u32 parity, Waiting how, bool cluster_scope, i32 line);
  void (*fence)(Fence kind, i32 line);

  // `at` holds one coordinate per dimension.
  void (*tma_load)(u32 dst, const void* map, u32 bar, u32 blocks, i32 rank, const i32* at,
                   i32 line);
  void (*tma_store)(const void* map, u32 src, Reduction how, i32 rank, const i32* at, i32 line);
  // rank 0: the map itself
  void (*tma_prefetch)(const void* map, i32 rank, const i32* at, i32 line);
  void (*bulk_load)(u32 dst, const void* src, u32 bytes, u32 bar, u32 blocks, i32 line);
  void (*bulk_store)(void* dst, u32 src, u32 bytes, Reduction how, Format format, i32 line);
  void (*bulk_copy_cluster)(u32 remote_dst, u32 src, u32 bytes, u32 remote_bar, i32 line);
  void (*bulk_prefetch)(const void* src, u32 bytes, i32 line);
  void (*bulk_commit)(i32 line);
  void (*bulk_wait)(i32 groups, bool read, i32 line);
  // `otherwise`: what is put there where !in_bounds; nullptr: zeros
  void (*cp_async)(u32 dst, const void* src, u32 bytes, bool in_bounds, const void* otherwise,
                   i32 line);
  void (*cp_async_commit)(i32 line);
  void (*cp_async_wait)(i32 groups, i32 line);
  void (*cp_async_arrive)(u32 bar, i32 line);

  // a_registers is null where A lies in shared memory.
  void (*wgmma)(const Wgmma* op, void* d, const u32* a_registers, u64 a, u64 b, bool accumulate,
                i32 line);
  // These registers, `words` of 4 bytes, will be operands of a wgmma.
  void (*wgmma_registers)(const void* registers, u32 words);
  void (*wgmma_fence)(i32 line);
  void (*wgmma_commit)(i32 line);
  void (*wgmma_wait)(i32 groups, i32 line);
  // Accumulators in flight hold the bits `in_flight`; whoever sees them in a conversion tells.
  void (*saw_in_flight)(i32 line);

  void (*setmaxnreg)(i32 registers, bool increase, i32 line);
  // Functions of this table that threads of the launch have called.
  u64 (*clock)();
  void (*griddepcontrol)(bool wait, i32 line);
  void (*name_shared)(u32 address, u32 bytes, const char* name, i32 index);
  // value, expected and the result hold `bytes` bytes in their low end.
  u64 (*atomic_global)(void* p, Atomic what, Format format, u32 bytes, u64 value, u64 expected,
                       Order order, Scope scope, i32 line);
  u64 (*atomic_cluster)(u32 remote, Atomic what, Format format, u32 bytes, u64 value, Order order,
                        i32 line);
  u64 (*atomic_shared)(u32 address, Atomic what, Format format, u32 bytes, u64 value, u64 expected,
                       Order order, i32 line);

  // The functions of math.def, by the numbers of their rows.
  f32 (*const* unary_f32)(f32);
  f64 (*const* unary_f64)(f64);
  f32 (*const* binary_f32)(f32, f32);
  f64 (*const* binary_f64)(f64, f64);
  f32 (*remainder_f32)(f32, f32);
  f64 (*remainder_f64)(f64, f64);
  f32 (*fma_f32)(f32, f32, f32);
  f64 (*fma_f64)(f64, f64, f64);
};
