// Softmax of rows of 1000, four rows to a block: each warp has one, in eight vectors of four for each
// lane, and nothing goes through shared memory. Of the last vectors six lanes have nothing.
PL_KERNEL(128) softmax_rows(const f32* x, f32* o, i64 m) {
  const i64 row = i64(pl::block_x()) * 4 + pl::warp();
  if (row >= m) return;
  const i32 j = i32(pl::lane()) * 4;
  const bool has_last = j + 896 < 1000;
  f32 v[32];
  PL_UNROLL for (i32 r = 0; r < 7; ++r) pl::load_global_nc<4>(v + 4 * r, x + row * 1000 + j + 128 * r);
  pl::load_global_nc<4>(v + 28, x + row * 1000 + j + 896, has_last);
  PL_UNROLL for (i32 e = 28; e < 32; ++e) v[e] = has_last ? v[e] : pl::min_value<f32>();

  f32 highest = v[0];
  PL_UNROLL for (i32 e = 1; e < 32; ++e) highest = pl::max(highest, v[e]);
  highest = pl::reduce_lanes<31>(highest, pl::Max());

  f32 total = 0.0f;
  PL_UNROLL for (i32 e = 0; e < 32; ++e) {
    v[e] = pl::exp_nonpositive(v[e] - highest);
    total = total + v[e];
  }
  total = pl::reduce_lanes<31>(total, pl::Sum());

  f32 q[32];
  pl::div_all<32, true>(q, v, total);
  PL_UNROLL for (i32 r = 0; r < 7; ++r) pl::store_global<4>(o + row * 1000 + j + 128 * r, q + 4 * r);
  pl::store_global<4>(o + row * 1000 + j + 896, q + 28, has_last);
}
PL_EXPORT(softmax_rows)
