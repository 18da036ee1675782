// Checks of matrix fragments: mma.sync, ldmatrix, stmatrix, and what is made of them.
#include <cmath>

#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

struct Product {
  const char *function, *type, *result;
  int a, b;  // elements per lane
  int k;
  int words = 1;  // it takes so many of them at a time
};
constexpr Product products[] = {
    {"mma_m16n8k16", "f16", "f32", 8, 4, 16},
    {"mma_m16n8k16", "bf16", "f32", 8, 4, 16},
    {"mma_m16n8k8", "f16", "f32", 4, 2, 8},
    {"mma_m16n8k8_tf32", "f32", "f32", 4, 2, 8},
    {"mma_m16n8k32", "i8", "i32", 16, 8, 32},
    {"mma_m16n8k16_f16", "f16", "f32", 8, 4, 16, 2},
    {"mma_m16n8k16_bf16", "bf16", "f32", 8, 4, 16, 2},
    {"mma_m16n8k8_f16", "f16", "f32", 4, 2, 8, 2},
    {"mma_m16n8k32_integers<i8, i8>", "i8", "i32", 16, 8, 32, 4},
    {"mma_m16n8k32_integers<u8, i8>", "i8", "i32", 16, 8, 32, 4},
    {"mma_m16n8k32_integers<i8, u8>", "i8", "i32", 16, 8, 32, 4},
    {"mma_m16n8k32_integers<u8, u8>", "u8", "i32", 16, 8, 32, 4},
    {"mma_m16n8k32_floats<f8e4m3, f8e4m3>", "e4m3", "f32", 16, 8, 32, 4},
    {"mma_m16n8k32_floats<f8e5m2, f8e5m2>", "e5m2", "f32", 16, 8, 32, 4}};

/// The same fragments times each other on 16 warps, each with data of its own.
void add_products(std::vector<Case>& all) {
  for (const Product& p : products) {
    for (const bool exact : {true, false}) {
      if (!exact && p.result[0] == 'i') continue;
      std::string body = R"(
  const u32 t = 128 * u32(pl::block_x()) + pl::thread();
  $ a[@], b[&];
  PL_UNROLL for (u32 i = 0; i < @; ++i) pl::load_global(a + i, x + @ * t + i);
  PL_UNROLL for (u32 i = 0; i < &; ++i) pl::load_global(b + i, y + & * t + i);
  ! d[4];
  pl::load_global<4>(d, c + 4 * t);
  pl::^(d, a~, b~);
  pl::^(d, a~, b~);
  pl::store_global<4>(o + 4 * t, d);)";
      constexpr std::string_view call = "  pl::^";
      if (p.words == 2)
        body.insert(body.find(call), R"(  u32 a_words[@ / 2], b_words[& / 2];
  PL_UNROLL for (u32 i = 0; i < @ / 2; ++i) a_words[i] = pl::pack(a[2 * i], a[2 * i + 1]);
  PL_UNROLL for (u32 i = 0; i < & / 2; ++i) b_words[i] = pl::pack(b[2 * i], b[2 * i + 1]);
)");
      std::string parameters = "const $* x, const $* y, const !* c, !* o";
      for (std::string* text : {&body, &parameters}) {
        const int one = p.words == 4 ? 4 : 1;  // of 8 bits words are read
        *text = replaced(replaced(*text, '$', one == 4 ? "u32" : p.type), '!', p.result);
        *text = replaced(replaced(*text, '@', std::to_string(p.a / one)), '&',
                         std::to_string(p.b / one));
        *text = replaced(replaced(*text, '^', p.function), '~', p.words == 2 ? "_words" : "");
      }
      Case c = kernel("mma/" + std::string(p.function) + " of " + p.type +
                          (exact ? ", integers" : ", fractions"),
                      parameters, body);
      c.grid = {4, 1, 1};
      const auto data = exact ? integers : fractions;
      c.array({.type = p.type, .bytes = data(p.type, 512 * static_cast<std::size_t>(p.a), 1)});
      c.array({.type = p.type, .bytes = data(p.type, 512 * static_cast<std::size_t>(p.b), 2)});
      c.array({.type = p.result, .bytes = data(p.result, 512 * 4, 3)});
      c.output(p.result, 512 * 4);
      if (!exact) {
        // Factors of at most 1: every partial sum is at most 2 k + 1, and each of so many terms is
        // cut to 23 bits below the greatest of its sum.
        c.arrays.back().agreement = Agreement::near;
        c.arrays.back().bound = (2 * p.k + 1) * std::ldexp(2 * p.k + 1, -23);
        c.arrays.back().label = std::string(p.function) + " of " + p.type;
      }
      c.sanitized = exact;
      all.push_back(std::move(c));
    }
  }
}

/// Rows of 16 bytes at addresses that are no simple function of the lane.
void add_moves(std::vector<Case>& all) {
  for (const char* size : {"x1", "x2", "x4"}) {
    for (const char* suffix : {"", "_trans"}) {
      const std::string name = std::string(size) + suffix;
      const int n = 2 * (size[1] - '0');
      std::string body;
      for (const char* type : {"u16", "bf16"}) {
        body += replaced(replaced(R"(
  {
    PL_UNROLL for (u32 i = 0; i < 4; ++i) {
      u32 v[4];
      pl::load_global<4>(v, x + 4 * (t + 128 * i));
      pl::store_shared<4>(s + 16 * (t + 128 * i), v);
    }
    pl::warpgroup_sync();
    $ v[#];
    pl::@(v, s + 2048 * pl::warp() + 16 * ((29 * pl::lane() + 3) % 128));
    PL_UNROLL for (u32 i = 0; i < #; i += 2) {
      const u32 w = pl::pack(v[i], v[i + 1]);
      pl::store_global(o + (# * t + i) / 2, &w);
    }
    pl::warpgroup_sync();
  }
  o += 64 * #;)",
                                  '$', type),
                         '#', std::to_string(n));
      }
      Case load = kernel("mma/ldmatrix_" + name, "const u32* x, u32* o",
                         "  const u32 t = pl::thread(), s = pl::shared_base();" +
                             replaced(body, '@', "ldmatrix_" + name));
      load.shared_bytes = 8192;
      load.sanitized = true;
      load.input("u32", random_words(2048, 3)).output("u32", 128 * static_cast<std::size_t>(n));
      all.push_back(load);

      if (n > 2) {
        Case words = kernel("mma/ldmatrix_words_" + name, "const u32* x, u32* o",
                            replaced(replaced(R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  PL_UNROLL for (u32 i = 0; i < 4; ++i) {
    u32 v[4];
    pl::load_global<4>(v, x + 4 * (t + 128 * i));
    pl::store_shared<4>(s + 16 * (t + 128 * i), v);
  }
  pl::warpgroup_sync();
  u32 v[#];
  pl::ldmatrix_words_@(v, s + 2048 * pl::warp() + 16 * ((29 * pl::lane() + 3) % 128));
  PL_UNROLL for (u32 i = 0; i < #; ++i) pl::store_global(o + # * t + i, v + i);)",
                                              '#', std::to_string(n / 2)),
                                     '@', name));
        words.shared_bytes = 8192;
        words.sanitized = true;
        words.input("u32", random_words(2048, 3))
            .output("u32", 128 * static_cast<std::size_t>(n / 2));
        all.push_back(words);
      }

      Case store = kernel("mma/stmatrix_" + name, "const u32* x, u32* o",
                          replaced(replaced(R"(
  const u32 t = pl::thread(), s = pl::shared_base(), zero[4] = {0, 0, 0, 0};
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::store_shared<4>(s + 16 * (t + 128 * i), zero);
  pl::warpgroup_sync();
  bf16 v[#];
  PL_UNROLL for (u32 i = 0; i < # / 2; ++i) {
    u32 w;
    pl::load_global(&w, x + # / 2 * t + i);
    pl::unpack(v + 2 * i, w);
  }
  pl::stmatrix_@(s + 2048 * pl::warp() + 16 * ((29 * pl::lane() + 3) % 128), v);
  pl::warpgroup_sync();
  PL_UNROLL for (u32 i = 0; i < 4; ++i) {
    u32 w[4];
    pl::load_shared<4>(w, s + 16 * (t + 128 * i));
    pl::store_global<4>(o + 4 * (t + 128 * i), w);
  })",
                                            '#', std::to_string(n)),
                                   '@', name));
      store.shared_bytes = 8192;
      store.sanitized = true;
      store.input("u32", random_words(128 * static_cast<std::size_t>(n) / 2, 4))
          .output("u32", 2048);
      all.push_back(store);
    }
  }
}

/// 32 rows of 64 bytes, the first 16 columns of each warp's own; rows of the result at addresses of
/// their own, too.
void add_transposes(std::vector<Case>& all) {
  Case c = kernel("mma/transpose_bytes", "const u32* x, u32* o", R"(
  const u32 t = pl::thread(), s = pl::shared_base(), l = pl::lane(), zero[4] = {0, 0, 0, 0};
  PL_UNROLL for (u32 i = 0; i < 4; ++i) {
    u32 v[4];
    pl::load_global<4>(v, x + 4 * (t + 128 * i));
    pl::store_shared<4>(s + 16 * (t + 128 * i), v);
    pl::store_shared<4>(s + 8192 + 16 * (t + 128 * i), zero);
  }
  pl::warpgroup_sync();
  const u32 differ = (l >> 2 ^ l >> 3) & 1;
  const u32 row = (l & 1) + 4 * (l >> 1 & 1) + 8 * (l >> 2 & 1) + 2 * differ + 16 * (l >> 4);
  const u32 column = 2 * (l % 8) + differ;
  pl::transpose_bytes(s + 8192 + 64 * column + 16 * (pl::warp() % 2 * 2 + (l >> 4)) + 2048 * (pl::warp() / 2),
                      s + 64 * row + 16 * pl::warp());
  pl::warpgroup_sync();
  PL_UNROLL for (u32 i = 0; i < 4; ++i) {
    u32 w[4];
    pl::load_shared<4>(w, s + 8192 + 16 * (t + 128 * i));
    pl::store_global<4>(o + 4 * (t + 128 * i), w);
  })");
  c.shared_bytes = 16384;
  c.sanitized = true;
  c.input("u32", random_words(2048, 6)).output("u32", 2048);
  all.push_back(std::move(c));
}

void add_reductions(std::vector<Case>& all) {
  for (const std::string how : {"Sum", "Prod", "Max", "Min"}) {
    for (const char* type : {"f32", "i32", "bf16", "f64"}) {
      if (how == "Prod" && std::string(type) != "i32") continue;  // floats round
      Case c = kernel("reduce/" + how + " of " + type, replaced("const $* x, $* o", '$', type),
                      replaced(replaced(R"(
  const u32 t = pl::thread();
  $ v[4], w[2];
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::load_global(v + i, x + 4 * t + i);
  w[0] = v[0];
  w[1] = pl::fold(pl::@(), v[2], v[3]);
  $ y = pl::reduce_warps<1, 31, 1>(v[1], pl::shared_base(), pl::@());
  pl::warpgroup_sync();
  y = pl::reduce_lanes<10>(pl::reduce_warps<2, 31, 1>(y, pl::shared_base(), pl::@()), pl::@());
  pl::reduce_lanes<21>(v, pl::@());
  pl::warpgroup_sync();
  pl::reduce_warps<3, 10, 1>(w, pl::shared_base(), pl::@());
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::store_global(o + 7 * t + i, v + i);
  PL_UNROLL for (u32 i = 0; i < 2; ++i) pl::store_global(o + 7 * t + 4 + i, w + i);
  pl::store_global(o + 7 * t + 6, &y);)",
                                        '$', type),
                               '@', how));
      c.shared_bytes = 1024;
      c.sanitized = true;
      c.array({.type = type, .bytes = integers(type, 512, 5)}).output(type, 896);
      all.push_back(std::move(c));

      Case wide = kernel("reduce/" + how + " of " + type + " by 8 warps",
                         replaced("const $* x, $* o", '$', type),
                         replaced(replaced(R"(
  const u32 t = pl::program_thread();
  $ v, w;
  pl::load_global(&v, x + 2 * t);
  pl::load_global(&w, x + 2 * t + 1);
  v = pl::reduce_warps<7, 31, 1, 8>(v, pl::shared_base(), pl::@());
  pl::program_sync<8>();
  w = pl::reduce_warps<5, 31, 1, 8>(w, pl::shared_base(), pl::@());
  pl::store_global(o + 2 * t, &v);
  pl::store_global(o + 2 * t + 1, &w);)",
                                           '$', type),
                                  '@', how),
                         2);
      wide.shared_bytes = 2048;
      wide.sanitized = true;
      wide.array({.type = type, .bytes = integers(type, 512, 6)}).output(type, 512);
      all.push_back(wide);
    }
  }
}

// Forwards over all threads, and backwards over some bits of lanes and warps.
void add_scans(std::vector<Case>& all) {
  for (const std::string how : {"Sum", "Prod", "Max", "Min"}) {
    for (const char* type : {"f32", "i32", "bf16", "f64"}) {
      if (how == "Prod" && std::string(type) != "i32") continue;  // floats round
      Case c =
          kernel("reduce/scan by " + how + " of " + type, replaced("const $* x, $* o", '$', type),
                 replaced(replaced(R"(
  const u32 t = pl::thread();
  $ v[4], w[2], s[2], r[2];
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::load_global(v + i, x + 4 * t + i);
  w[0] = v[1];
  w[1] = v[2];
  pl::scan_registers<2, false>(v, s, pl::@());
  pl::scan_lanes<2, 2, false, 21>(v, s, pl::@());
  pl::scan_warps<4, 1, false, 10, 3, 0, 1>(v, s, pl::shared_base(), pl::@());
  pl::warpgroup_sync();
  pl::scan_registers<1, true>(w, r, pl::@());
  pl::scan_warps<1, 2, true, 3, 2, 28, 1>(w, r, pl::shared_base(), pl::@());
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::store_global(o + 8 * t + i, v + i);
  PL_UNROLL for (u32 i = 0; i < 2; ++i) pl::store_global(o + 8 * t + 4 + i, w + i);
  pl::store_global(o + 8 * t + 6, s);
  pl::store_global(o + 8 * t + 7, r);)",
                                   '$', type),
                          '@', how));
      c.shared_bytes = 1024;
      c.sanitized = true;
      c.array({.type = type, .bytes = integers(type, 512, 5)}).output(type, 1024);
      all.push_back(std::move(c));

      Case wide = kernel("reduce/scan by " + how + " of " + type + " by 8 warps",
                         replaced("const $* x, $* o", '$', type),
                         replaced(replaced(R"(
  const u32 t = pl::program_thread();
  $ v[1], w[1], s[1], r[1];
  pl::load_global(v, x + 2 * t);
  pl::load_global(w, x + 2 * t + 1);
  pl::scan_registers<1, false>(v, s, pl::@());
  pl::scan_warps<1, 1, false, 31, 7, 0, 1, 8>(v, s, pl::shared_base(), pl::@());
  pl::program_sync<8>();
  pl::scan_registers<1, true>(w, r, pl::@());
  pl::scan_warps<1, 1, true, 0, 5, 31, 1, 8>(w, r, pl::shared_base(), pl::@());
  pl::store_global(o + 2 * t, v);
  pl::store_global(o + 2 * t + 1, w);)",
                                           '$', type),
                                  '@', how),
                         2);
      wide.shared_bytes = 2048;
      wide.sanitized = true;
      wide.array({.type = type, .bytes = integers(type, 512, 6)}).output(type, 512);
      all.push_back(wide);
    }
  }
}

void add_dots(std::vector<Case>& all) {
  struct Dot {
    const char *call, *type, *result;
    int mr, nr, wm;
    const char* operands = "s, 512, s + 65536, 512, 48";
  };
  constexpr const char* in_slots = "s, 0, s + 32768, 32768";
  constexpr const char* in_registers = "w, s + 32768, 32768";
  const Dot dots[] = {
      {"dot_mma_16816_from_registers<1, 2, false, bf16, 48, 64, 2>", "bf16", "f32", 1, 2, 4,
       in_registers},
      {"dot_mma_16816_from_registers<2, 1, true, f16, 48, 96, 1>", "f16", "f32", 2, 1, 4,
       in_registers},
      {"dot_mma_1688_from_registers<1, 2, false, f16, 32, 64, 2>", "f16", "f32", 1, 2, 4,
       in_registers},
      {"dot_mma_1688_from_registers<2, 1, true, f16, 48, 512, 3>", "f16", "f32", 2, 1, 4,
       in_registers},
      {"dot_fma<2, 4, 1, 8, 16, false, true, f16>", "f16", "f32", 1, 2, 2},
      {"dot_fma<1, 2, 4, 8, 16, false, false, f32>", "f32", "f32", 1, 2, 2},
      {"dot_fma<2, 1, 4, 2, 32, true, false, i32>", "i32", "i32", 2, 1, 4},
      {"dot_mma_16816<1, 2, 2, false, false, bf16, 48, 512, 3, 64, 2>", "bf16", "f32", 1, 2, 2,
       in_slots},
      {"dot_mma_16816<2, 1, 2, true, true, f16, 48, 128, 3, 96, 1>", "f16", "f32", 2, 1, 2,
       in_slots},
      {"dot_mma_1688<1, 1, 4, false, true, f16, 48, 112, 0, 512, 3>", "f16", "f32", 1, 1, 4,
       in_slots},
      {"dot_mma_1688<1, 2, 2, true, false, f16, 48, 64, 2, 64, 2>", "f16", "f32", 1, 2, 2,
       in_slots},
      {"dot_mma_16832<1, 2, 2, i8, u8, 96, 512, 3, 96, 1>", "i8", "i32", 1, 2, 2, in_slots},
      {"dot_mma_16832<2, 1, 2, f8e4m3, f8e5m2, 64, 128, 3, 64, 2>", "e4m3", "f32", 2, 1, 2,
       in_slots},
      {"dot_mma_tf32<1, 2, 2, false, true>", "f32", "f32", 1, 2, 2},
      {"dot_mma_tf32<2, 1, 2, true, false>", "f32", "f32", 2, 1, 2},
  };
  for (const Dot& d : dots) {
    const std::string count = std::to_string(4 * d.mr * d.nr);
    // A and B fill 128 rows of 512 bytes each; both are read as any shape that fits.
    Case c = kernel("dot/" + std::string(d.call), "const u32* x, " + std::string(d.result) + "* o",
                    replaced(replaced(replaced(replaced(R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  PL_NOUNROLL for (u32 i = t; i < 8192; i += 128) {
    u32 v[4];
    pl::load_global<4>(v, x + 4 * i);
    pl::store_shared<4>(s + 16 * i, v);
  }
  pl::warpgroup_sync();
  u32 w[24];
  PL_UNROLL for (u32 i = 0; i < 24; ++i) pl::load_global(w + i, x + 24 * t + i);
  ! d[#];
  PL_UNROLL for (u32 i = 0; i < #; ++i) d[i] = 1;
  pl::@(d, ~);
  PL_UNROLL for (u32 i = 0; i < #; ++i) pl::store_global(o + # * t + i, d + i);)",
                                                        '#', count),
                                               '@', d.call),
                                      '!', d.result),
                             '~', d.operands));
    c.shared_bytes = 131072;
    c.array(
        {.type = d.type,
         .bytes = integers(d.type, 131072u / static_cast<std::size_t>(bytes_of_type(d.type)), 6)});
    c.output(d.result, 128 * 4 * static_cast<std::size_t>(d.mr * d.nr));
    all.push_back(std::move(c));
  }
}

void add_rounding(std::vector<Case>& all) {
  Case c = kernel("mma/round_to_tf32", "const f32* x, f32* o", R"(
  f32 v;
  pl::load_global(&v, x + pl::thread());
  v = pl::round_to_tf32(v);
  pl::store_global(o + pl::thread(), &v);)");
  c.array({.type = "f32", .bytes = fractions("f32", 128, 5)});
  c.output("f32", 128);
  all.push_back(std::move(c));
}

}  // namespace

void add_matrices(std::vector<Case>& all) {
  add_products(all);
  add_rounding(all);
  add_moves(all);
  add_transposes(all);
  add_reductions(all);
  add_scans(all);
  add_dots(all);
}

}  // namespace palladium::conformance
