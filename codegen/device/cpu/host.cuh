// What the emulator offers to a kernel's shared object: one struct of function pointers, included
// by the emulator itself, so that both sides read the same declaration. A shared object resolves
// nothing else. Every function that may report takes the line of the emitted text.

enum : u32 { host_version = 1 };

struct Ids {
  u32 thread, warpgroup, warp, lane;
  i32 block[3], grid[3];
  u32 cluster_rank, cluster_size, shared_base;
  bool poison;  // whether lanes out of bounds hold poison rather than 0
};

enum class Shuffle : i32 { by_xor, by_index, up, down };

// What mma multiplies.
enum class Product : i32 { f16_f32, bf16_f32, tf32_f32, i8_i32 };

struct Host {
  u32 version, bytes;  // host_version, sizeof(Host)

  const Ids* (*ids)();
  void (*warpgroup_sync)(i32 warpgroups, i32 line);
  void (*block_sync)(i32 line);
  void (*warp_sync)(i32 line);
  u64 (*shuffle)(u64 value, Shuffle kind, u32 operand, i32 line);
  u32 (*ballot)(bool p, i32 line);
  void (*load_global)(void* dst, const void* p, u32 bytes, i32 line);
  void (*store_global)(void* p, const void* src, u32 bytes, i32 line);
  void (*load_shared)(void* dst, u32 address, u32 bytes, bool padded, i32 line);
  void (*store_shared)(u32 address, const void* src, u32 bytes, i32 line);
  void (*check)(const char* what, i32 line);
  void (*mma)(void* d, const void* a, const void* b, i32 k, Product product, i32 line);
  void (*ldmatrix)(void* dst, u32 row, i32 matrices, bool transposed, i32 line);

  f32 (*sqrt_f32)(f32), (*cbrt_f32)(f32), (*exp_f32)(f32), (*exp2_f32)(f32), (*expm1_f32)(f32),
      (*log_f32)(f32), (*log2_f32)(f32), (*log1p_f32)(f32), (*sin_f32)(f32), (*cos_f32)(f32),
      (*tan_f32)(f32), (*tanh_f32)(f32), (*erf_f32)(f32), (*floor_f32)(f32), (*ceil_f32)(f32),
      (*round_f32)(f32), (*trunc_f32)(f32);
  f64 (*sqrt_f64)(f64), (*cbrt_f64)(f64), (*exp_f64)(f64), (*exp2_f64)(f64), (*expm1_f64)(f64),
      (*log_f64)(f64), (*log2_f64)(f64), (*log1p_f64)(f64), (*sin_f64)(f64), (*cos_f64)(f64),
      (*tan_f64)(f64), (*tanh_f64)(f64), (*erf_f64)(f64), (*floor_f64)(f64), (*ceil_f64)(f64),
      (*round_f64)(f64), (*trunc_f64)(f64);
  f32 (*atan2_f32)(f32, f32), (*pow_f32)(f32, f32), (*remainder_f32)(f32, f32);
  f64 (*atan2_f64)(f64, f64), (*pow_f64)(f64, f64), (*remainder_f64)(f64, f64);
  f32 (*fma_f32)(f32, f32, f32);
  f64 (*fma_f64)(f64, f64, f64);
};
