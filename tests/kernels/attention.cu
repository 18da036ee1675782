// O = softmax(Q K^T scale) V for one head of 64 columns, bf16 with sums in f32.
//
// Two warpgroups have 64 rows of Q each and go over K and V in tiles of 128 rows, which warpgroup 0
// copies into a ring of STAGES stages. The probabilities stay in registers: an accumulator's
// fragment is the next product's A. FAULT leaves out or spoils one thing; 0 is correct.
constexpr i32 STAGES = {STAGES}, FAULT = {FAULT};
constexpr i32 COLUMNS = 64, TILE = 128;
constexpr u32 TILE_BYTES = TILE * COLUMNS * 2, ROW_BYTES = COLUMNS * 2;
constexpr u32 Q = 0, K = Q + TILE_BYTES, V = K + STAGES * TILE_BYTES, O = V + STAGES * TILE_BYTES;
constexpr u32 Q_FULL = O + TILE_BYTES, FULL = Q_FULL + 8, EMPTY = FULL + 8 * STAGES;

PL_KERNEL(384)
attention(PL_TENSOR_MAP(q), PL_TENSOR_MAP(k), PL_TENSOR_MAP(v), PL_TENSOR_MAP(o), i32 length,
          f32 scale) {
  const u32 smem = pl::shared_base(), q_full = smem + Q_FULL, full = smem + FULL,
            empty = smem + EMPTY;
  const u32 warpgroup = pl::warpgroup(), t = pl::thread();
  const i32 first = pl::block_x() * TILE, tiles = length / TILE;
  pl::name_shared(smem + Q, TILE_BYTES, "Q");
  pl::name_shared(smem + K, STAGES * TILE_BYTES, "K");
  pl::name_shared(smem + V, STAGES * TILE_BYTES, "V");
  pl::name_shared(smem + O, TILE_BYTES, "O");
  if (warpgroup == 0 && t == 0) {
    pl::name_shared(q_full, 8, "q_full");
    pl::mbarrier_init(q_full, 1);
    PL_UNROLL for (i32 s = 0; s < STAGES; ++s) {
      pl::name_shared(full + 8 * s, 8, "full", s);
      pl::name_shared(empty + 8 * s, 8, "empty", s);
      pl::mbarrier_init(full + 8 * s, 1);
      pl::mbarrier_init(empty + 8 * s, 2);
    }
    pl::fence_mbarrier_init();
  }
  pl::block_sync();

  if (warpgroup == 0) {
    pl::setmaxnreg_dec<40>();
    if (pl::warp() == 0 && pl::elect_one()) {
      pl::mbarrier_arrive_expect_tx(q_full, TILE_BYTES);
      pl::tma_load(smem + Q, q, q_full, {0, first});  // load Q
      u32 s = 0, phase = 0;
      PL_NOUNROLL for (i32 i = 0; i < tiles; ++i) {
        pl::mbarrier_wait(empty + 8 * s, phase ^ 1);
        pl::mbarrier_arrive_expect_tx(full + 8 * s, 2 * TILE_BYTES);
        pl::tma_load(smem + K + s * TILE_BYTES, k, full + 8 * s, {0, i * TILE});  // load K
        pl::tma_load(smem + V + s * TILE_BYTES, v, full + 8 * s, {0, i * TILE});  // load V
        if (++s == STAGES) {
          s = 0;
          phase ^= 1;
        }
      }
    }
  } else {
    pl::setmaxnreg_inc<232>();
    const u32 w = warpgroup - 1;
    f32 out[COLUMNS / 2], greatest[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
    PL_UNROLL for (i32 i = 0; i < COLUMNS / 2; ++i) out[i] = 0;
    const u64 at_q = pl::matrix_descriptor(smem + Q + w * 64 * ROW_BYTES, 16, 1024, 128);
    const f32 scale2 = scale * 1.44269504f;
    if (FAULT != 1) pl::mbarrier_wait(q_full, 0);
    u32 s = 0, phase = 0;
    PL_NOUNROLL for (i32 i = 0; i < tiles; ++i) {
      pl::mbarrier_wait(full + 8 * s, phase);
      const u64 at_k = pl::matrix_descriptor(smem + K + s * TILE_BYTES, 16, 1024, 128);
      const u64 at_v = pl::matrix_descriptor(smem + V + s * TILE_BYTES, 0, 1024, 128);
      f32 p[TILE / 2];
      pl::wgmma_registers(p);
      pl::wgmma_fence();
      PL_UNROLL for (i32 kk = 0; kk < COLUMNS / 16; ++kk) {
        pl::wgmma_m64n128k16_f32_bf16_bf16(p, at_q + 2 * kk, at_k + 2 * kk, kk > 0);  // scores
      }
      pl::wgmma_commit();
      if (FAULT != 2) pl::wgmma_wait<0>();  // wait scores
      pl::wgmma_registers(p);
      // This thread has columns of rows g and g + 8; the row's other columns are in 3 more lanes.
      PL_UNROLL for (i32 h = 0; h < 2; ++h) {
        f32 top = greatest[h];
        PL_UNROLL for (i32 j = 0; j < TILE / 2; j += 4) top = pl::max(top, pl::max(p[j + 2 * h], p[j + 2 * h + 1]));
        PL_UNROLL for (u32 x = 1; x < 4; x *= 2) top = pl::max(top, pl::shuffle_xor(top, x));
        const f32 shrink = pl::exp2_approx((greatest[h] - top) * scale2);
        greatest[h] = top;
        const f32 below = -(top * scale2);
        f32 total = 0;
        PL_UNROLL for (i32 j = 0; j < TILE / 2; j += 4) {
          PL_UNROLL for (i32 e = 2 * h; e < 2 * h + 2; ++e) {
            p[j + e] = pl::exp2_approx(pl::fma(p[j + e], scale2, below));
            total += p[j + e];
          }
        }
        PL_UNROLL for (u32 x = 1; x < 4; x *= 2) total += pl::shuffle_xor(total, x);
        sum[h] = sum[h] * shrink + total;
        PL_UNROLL for (i32 j = 0; j < COLUMNS / 2; j += 4) {
          out[j + 2 * h] *= shrink;
          out[j + 2 * h + 1] *= shrink;
        }
      }
      u32 a[TILE / 16][4];
      PL_UNROLL for (i32 kk = 0; kk < TILE / 16; ++kk) {
        PL_UNROLL for (i32 j = 0; j < 4; ++j) a[kk][j] = pl::pack(pl::to<bf16>(p[8 * kk + 2 * j]), pl::to<bf16>(p[8 * kk + 2 * j + 1]));  // pack
      }
      PL_UNROLL for (i32 kk = 0; kk < TILE / 16; ++kk) pl::wgmma_registers(a[kk]);
      pl::wgmma_registers(out);
      if (FAULT != 3) pl::wgmma_fence();
      PL_UNROLL for (i32 kk = 0; kk < TILE / 16; ++kk) {
        pl::wgmma_m64n64k16_f32_bf16_bf16_rs<true>(out, a[kk], at_v + kk * (16 * ROW_BYTES >> 4), true);  // output
      }
      pl::wgmma_commit();
      if (FAULT == 4) out[0] = 0;  // write in flight
      if (FAULT == 5 && t == 0) pl::mbarrier_arrive(empty + 8 * s);
      pl::wgmma_wait<0>();  // wait output
      PL_UNROLL for (i32 kk = 0; kk < TILE / 16; ++kk) pl::wgmma_registers(a[kk]);
      pl::wgmma_registers(out);
      if (FAULT != 5 && t == 0) pl::mbarrier_arrive(empty + 8 * s);
      if (++s == STAGES) {
        s = 0;
        phase ^= 1;
      }
    }
    const u32 lane = pl::lane(), row = pl::warp() * 16 + lane % 16;
    const u32 buffer = smem + O + w * 64 * ROW_BYTES;
    const f32 inverse[2] = {1 / sum[0], 1 / sum[1]};
    PL_UNROLL for (i32 j = 0; j < 8; j += 2) {
      bf16 fragment[8];
      PL_UNROLL for (i32 e = 0; e < 8; ++e) fragment[e] = pl::to<bf16>(out[4 * j + e] * inverse[e / 2 % 2]);
      const u32 chunk = (j + lane / 16) ^ row % 8;
      pl::stmatrix_x4(buffer + row * ROW_BYTES + chunk * 16, fragment);  // write O
    }
    pl::fence_async_shared();
    pl::warpgroup_sync<3>();
    if (t == 0) {
      pl::tma_store(o, buffer, {0, first + 64 * i32(w)});  // store O
      pl::bulk_commit();
      if (FAULT != 6) pl::bulk_wait_read<0>();
    }
  }
}
PL_EXPORT(attention)
