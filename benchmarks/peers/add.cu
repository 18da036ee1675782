// o = x + y of n elements, 1024 to a block. Blocks that are whole take two vectors for each thread,
// all of them loaded first; of the last, each thread takes every 128th element.
PL_KERNEL(128) add(const f32* x, const f32* y, f32* o, i64 n) {
  const i64 first = i64(pl::block_x()) * 1024;
  const i32 left = i32(pl::min(n - first, i64(1024))), t = i32(pl::thread());
  x += first;
  y += first;
  o += first;
  if (left == 1024) {
    f32 a[8], b[8];
    PL_UNROLL for (i32 r = 0; r < 2; ++r) {
      pl::load_global_nc<4>(a + 4 * r, x + 4 * t + 512 * r);
      pl::load_global_nc<4>(b + 4 * r, y + 4 * t + 512 * r);
    }
    PL_UNROLL for (i32 e = 0; e < 8; ++e) a[e] = a[e] + b[e];
    PL_UNROLL for (i32 r = 0; r < 2; ++r) pl::store_global<4>(o + 4 * t + 512 * r, a + 4 * r);
    return;
  }
  PL_NOUNROLL for (i32 i = t; i < left; i += 128) {
    f32 a, b;
    pl::load_global_nc<1>(&a, x + i);
    pl::load_global_nc<1>(&b, y + i);
    a = a + b;
    pl::store_global<1>(o + i, &a);
  }
}
PL_EXPORT(add)
