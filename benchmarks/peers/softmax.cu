// Softmax of rows of 1000, a row to a block. Each thread has two vectors of four; the second of the
// last six threads lies past the end and counts as the least number.
PL_KERNEL(128) softmax(const f32* x, f32* o) {
  const u32 smem = pl::shared_base();
  const i32 j = i32(pl::thread()) * 4;
  const i64 row = i64(pl::block_x()) * 1000;
  const bool has_second = j + 512 < 1000;
  f32 v[8];
  pl::load_global_nc<4>(v, x + row + j);
  pl::load_global_nc<4>(v + 4, x + row + j + 512, has_second);
  PL_UNROLL for (i32 e = 4; e < 8; ++e) v[e] = has_second ? v[e] : pl::min_value<f32>();

  f32 highest = v[0];
  PL_UNROLL for (i32 e = 1; e < 8; ++e) highest = pl::max(highest, v[e]);
  highest = pl::reduce_lanes<31>(highest, pl::Max());
  highest = pl::reduce_warps<3, 0, 1>(highest, smem, pl::Max());

  f32 total = 0.0f;
  PL_UNROLL for (i32 e = 0; e < 8; ++e) {
    v[e] = pl::exp(v[e] - highest);
    total = total + v[e];
  }
  total = pl::reduce_lanes<31>(total, pl::Sum());
  total = pl::reduce_warps<3, 0, 1>(total, smem + 16, pl::Sum());

  PL_UNROLL for (i32 e = 0; e < 8; ++e) v[e] = pl::div(v[e], total);
  pl::store_global<4>(o + row + j, v);
  pl::store_global<4>(o + row + j + 512, v + 4, has_second);
}
PL_EXPORT(softmax)
