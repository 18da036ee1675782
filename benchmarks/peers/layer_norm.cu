// Normalises rows of 768, with a weight for each column. A warp has a row of its own, each lane six
// vectors of four.
PL_KERNEL(128) layer_norm(const f32* x, const f32* weight, f32* o, i64 m) {
  const i64 row = i64(pl::block_x()) * 4 + pl::warp();
  if (row >= m) return;  // a whole warp, and no barrier follows
  const i32 j = i32(pl::lane()) * 4;
  const i64 at = row * 768 + j;
  f32 v[24];
  PL_UNROLL for (i32 r = 0; r < 6; ++r) pl::load_global_nc<4>(v + 4 * r, x + at + 128 * r);

  f32 sum = 0.0f;
  PL_UNROLL for (i32 e = 0; e < 24; ++e) sum = sum + v[e];
  const f32 mean = pl::div(pl::reduce_lanes<31>(sum, pl::Sum()), 768.0f);

  f32 squares = 0.0f;
  PL_UNROLL for (i32 e = 0; e < 24; ++e) {
    v[e] = v[e] - mean;
    squares = squares + v[e] * v[e];
  }
  const f32 variance = pl::div(pl::reduce_lanes<31>(squares, pl::Sum()), 768.0f);
  const f32 factor = pl::rsqrt(variance + 1e-5f);

  PL_UNROLL for (i32 r = 0; r < 6; ++r) {
    f32 w[4];
    pl::load_global_nc<4>(w, weight + j + 128 * r);
    PL_UNROLL for (i32 e = 0; e < 4; ++e) w[e] = v[4 * r + e] * factor * w[e];
    pl::store_global<4>(o + at + 128 * r, w);
  }
}
PL_EXPORT(layer_norm)
