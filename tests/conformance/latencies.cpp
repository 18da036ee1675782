// What single instructions of the chip take, in cycles of its clock: what plans and predictions
// count with. Nothing is compared; the answers are for reading.
#include <algorithm>
#include <string>
#include <vector>

#include "codegen/base/format.hpp"
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

using Bodies = std::vector<std::vector<std::byte>>;

constexpr std::uint32_t shared = 160 << 10, barriers = 128 << 10;

struct Timing {
  std::string name;          // "a wgmma m64n256k16 of f16"
  std::string prepare = {};  // before the clock is read
  std::string timed = {};
  int times = 1;  // instructions of which each warp is in the middle of one
  int warpgroups = 1;
  std::string after = {};  // that uses what was computed
  int asked = 2;           // warpgroups of which the slowest warp says it, from the first
};

/// The least of several times, in caches and between other processes' kernels; the slowest warp's.
Case cycles(const Timing& t) {
  Case c = kernel("question/cycles of " + t.name, "const u32* x, u32* o, PL_TENSOR_MAP(map)",
                  fmt::format(R"(
  const u32 g = pl::warpgroup(), t = pl::thread(), s = pl::shared_base(), bar = s + {};
  [[maybe_unused]] u32 parity = 0, sink = 0, least = 0xffffffff;
  if (t == 0 && g == 0) {{
    pl::mbarrier_init(bar, 1);
    pl::mbarrier_init(bar + 8, 128);
    pl::fence_mbarrier_init();
  }}
  const u32 zeros[4] = {{0, 0, 0, 0}};
  PL_NOUNROLL for (u32 i = 16 * t; i < {}; i += 16 * 128) pl::store_shared<4>(s + i, zeros);
  pl::fence_async_shared();
  {}
  PL_NOUNROLL for (u32 turn = 0; turn < 10; ++turn) {{
    pl::block_sync();
    const u64 begin = clock64();
    {}
    least = pl::min(least, u32(clock64() - begin));
    {}
  }}
  if (pl::lane() == 0) pl::store_global(o + 4 * g + t / 32, &least);
  if (sink == 12345) pl::store_global(o + 100, &sink);)",
                              barriers, barriers, t.prepare, t.timed, t.after),
                  t.warpgroups);
  c.shared_bytes = shared;
  c.outcome = Outcome::open;
  c.emulated = false;
  c.input("u32", random_words(1 << 16, 61));
  c.array({.type = "u32",
           .bytes = std::vector<std::byte>(4 * 128),
           .output = true,
           .agreement = Agreement::any});
  TensorMapSpec spec;
  spec.type = TensorMapType::f16;
  spec.rank = 2;
  spec.swizzle = 128;
  spec.extents = {64, 1024};
  spec.strides = {128};
  spec.box = {64, 64};
  c.mapped({.type = "u16",
            .bytes = Case::bytes_of(random_words(1 << 15, 62)),
            .output = true,
            .agreement = Agreement::any},
           spec);
  c.answer = [t](const Bodies& arrays) {
    std::uint64_t most = 0;
    const auto asked = static_cast<std::size_t>(std::min(t.warpgroups, t.asked));
    for (std::size_t i = 0; i < 4 * asked; ++i) most = std::max(most, element(arrays[1], i, 4));
    return fmt::format("{:.1f}", static_cast<double>(most) / t.times);
  };
  return c;
}

void add_wgmma_times(std::vector<Case>& all) {
  struct Shape {
    const char *types, *name;
    int k;
  };
  for (const Shape& shape : {Shape{"f32_f16_f16", "f16", 16}, {"f32_e4m3_e4m3", "e4m3", 32}})
    for (const int n : {64, 128, 256})
      for (const bool rs : {false, true})
        for (const int warpgroups : {1, 2})
          for (const int times : {1, 32}) {
            if (rs && (n != 128 || shape.k == 32)) continue;
            const std::string f =
                fmt::format("pl::wgmma_m64n{}k{}_{}{}", n, shape.k, shape.types, rs ? "_rs" : "");
            const std::string a = rs ? "a" : "da + 2 * (i % 4)";
            all.push_back(cycles(
                {.name = fmt::format("wgmma m64n{}k{} of {}{}, {} behind one another{}", n, shape.k,
                                     shape.name, rs ? ", A in registers" : "", times,
                                     warpgroups == 2 ? ", two warpgroups" : ""),
                 .prepare = fmt::format(
                     "const u64 da = pl::matrix_descriptor(s + 16384 * g, 16, 1024, 128), db = "
                     "pl::matrix_descriptor(s + 32768, 16, 1024, 128);\n  f32 d[{}];\n  "
                     "PL_UNROLL for (i32 i = 0; i < {}; ++i) d[i] = 0;\n  u32 a[4] = {{t, t, t, "
                     "t}};",
                     n / 2, n / 2),
                 .timed =
                     fmt::format("{}pl::wgmma_registers(d);\n    pl::wgmma_fence();\n    "
                                 "PL_UNROLL for (i32 i = 0; i < {}; ++i) {}(d, {}, db + 2 * (i % "
                                 "4), true);\n    pl::wgmma_commit();\n    "
                                 "pl::wgmma_wait<0>();\n    pl::wgmma_registers(d);{}",
                                 rs ? "pl::wgmma_registers(a);\n    " : "", times, f, a,
                                 rs ? "\n    pl::wgmma_registers(a);" : ""),
                 .times = times,
                 .warpgroups = warpgroups,
                 .after = fmt::format(
                     "PL_UNROLL for (i32 i = 0; i < {}; ++i) sink += u32(d[i] != 0);", n / 2)}));
          }
}

void add_copy_times(std::vector<Case>& all) {
  const std::string load = R"(if (t == 0 && g == 0) {
      pl::mbarrier_arrive_expect_tx(bar, 8192 * $);
      PL_UNROLL for (i32 i = 0; i < $; ++i) pl::tma_load(s + 8192 * i, map, bar, {0, 64 * i});
    }
    pl::mbarrier_wait(bar, parity);
    parity ^= 1;)";
  for (const int boxes : {1, 2, 4, 8, 15})
    all.push_back(cycles({.name = fmt::format("{} TMA loads of 8 KiB from L2, all of them", boxes),
                          .timed = replaced(load, '$', std::to_string(boxes))}));
  for (const char* wait : {"bulk_wait_read", "bulk_wait"})
    for (const int boxes : {1, 4})
      all.push_back(cycles(
          {.name = fmt::format("{} TMA stores of 8 KiB until {}", boxes, wait),
           .timed = fmt::format("if (t == 0) {{\n      PL_UNROLL for (i32 i = 0; i < {}; ++i) "
                                "pl::tma_store(map, s + 8192 * i, {{0, 64 * i}});\n      "
                                "pl::bulk_commit();\n      pl::{}<0>();\n    }}",
                                boxes, wait)}));
  for (const int times : {1, 8})
    all.push_back(cycles(
        {.name = fmt::format(
             "cp_async of 16 bytes in each of 128 threads, {} times, until all are there", times),
         .timed =
             fmt::format("PL_UNROLL for (u32 i = 0; i < {}; ++i) pl::cp_async<16>(s + 16 * t + "
                         "2048 * i, x + 4 * t + 512 * i);\n    pl::cp_async_commit();\n    "
                         "pl::cp_async_wait<0>();",
                         times)}));
  all.push_back(cycles(
      {.name = "a load of 4 bytes of global memory from L1, the next address from the last",
       .prepare = "u32 at = 0;",
       .timed = "PL_NOUNROLL for (u32 i = 0; i < 64; ++i) {\n      u32 v;\n      "
                "pl::load_global(&v, x + at);\n      at = (at + 1024 + v % 7) & 65535;\n    }",
       .times = 64,
       .after = "sink += at; at = 0;"}));
}

// Of one warpgroup, alone and while another one multiplies, whose sums go through registers.
void add_times_beside_products(std::vector<Case>& all) {
  struct Operation {
    const char *name, *call;
  };
  for (const Operation& f :
       {Operation{"fma of f32 of one register", "f[i] = pl::fma(f[i], f[i], f[i])"},
        {"fma of f32 of three registers", "f[i] = pl::fma(h[i], w, f[i])"},
        {"product of f32 of two registers", "f[i] = f[i] * h[i]"},
        {"max of f32 of two registers", "f[i] = pl::max(f[i], h[i])"},
        {"ex2.approx of one register", "f[i] = pl::exp2_approx(f[i])"}})
    for (const char* products : {"", "64", "128", "256"}) {
      const bool alone = *products == '\0';
      const std::string n = alone ? "64" : products;
      const std::string multiply = fmt::format(
          "pl::wgmma_registers(d);\n      pl::wgmma_fence();\n      PL_UNROLL for (i32 i = 0; i < "
          "64; ++i) pl::wgmma_m64n{}k16_f32_f16_f16(d, da, db, true);\n      pl::wgmma_commit();\n"
          "      pl::wgmma_wait<0>();\n      pl::wgmma_registers(d);",
          n);
      all.push_back(cycles(
          {.name = fmt::format("{}, 16 chains, 4 warps, {}", f.name,
                               alone ? "alone" : "beside products of " + n + " columns"),
           .prepare = fmt::format(
               "const u64 da = pl::matrix_descriptor(s + 16384, 16, 1024, 128), db = "
               "pl::matrix_descriptor(s + 32768, 16, 1024, 128);\n  f32 d[{0}];\n  PL_UNROLL for "
               "(i32 i = 0; i < {0}; ++i) d[i] = 0;\n  f32 f[16], h[16], w = f32(t);\n  PL_UNROLL "
               "for (i32 i = 0; i < 16; ++i) f[i] = 1.0f / f32(1 + t + i), h[i] = f[i] + w;",
               std::stoi(n) / 2),
           .timed = fmt::format("if (g == 0) {{\n      PL_UNROLL for (i32 k = 0; k < 48; ++k) {{ "
                                "PL_UNROLL for (i32 i = 0; i < 16; ++i) {{ {}; asm volatile(\"\" : "
                                "\"+f\"(f[i])); }} }}\n    }} else {{\n"
                                "      {}\n    }}",
                                f.call, alone ? "" : multiply),
           .times = 48 * 16,
           .warpgroups = 2,
           .after =
               fmt::format("PL_UNROLL for (i32 i = 0; i < 16; ++i) sink += u32(f[i] == 3.0f);"
                           "\n    PL_UNROLL for (i32 i = 0; i < {}; ++i) sink += u32(d[i] != 0);",
                           std::stoi(n) / 2),
           .asked = 1}));
    }
}

void add_arithmetic_times(std::vector<Case>& all) {
  struct Operation {
    const char *name, *call;
  };
  for (const Operation& f :
       {Operation{"ex2.approx", "f[i] = pl::exp2_approx(f[i])"},
        {"fma of f32", "f[i] = pl::fma(f[i], f[i], f[i])"},
        {"max of f32", "f[i] = pl::max(f[i], f[i + 1 & 15])"},
        {"two f32 to bf16",
         "f[i] = pl::bitcast<f32>(pl::pack(pl::to<bf16>(f[i]), pl::to<bf16>(f[i])))"},
        {"a shuffle", "f[i] = pl::shuffle_xor(f[i], 1)"}})
    for (const int chains : {1, 16})
      for (const int warpgroups : {1, 2}) {
        if (chains == 1 && warpgroups == 2) continue;
        all.push_back(
            cycles({.name = fmt::format("{}, {}{}", f.name,
                                        chains == 1 ? "each waiting for the last" : "16 chains",
                                        warpgroups == 2 ? ", 8 warps" : ", 4 warps"),
                    .prepare = "f32 f[16];\n  PL_UNROLL for (i32 i = 0; i < 16; ++i) f[i] = 1.0f / "
                               "f32(1 + t + i);",
                    .timed = fmt::format(
                        "PL_UNROLL for (i32 k = 0; k < 32; ++k) PL_UNROLL for (i32 i = 0; i "
                        "< {}; ++i) {};",
                        chains, f.call),
                    .times = 32 * chains,
                    .warpgroups = warpgroups,
                    .after = "PL_UNROLL for (i32 i = 0; i < 16; ++i) sink += u32(f[i] == 3.0f);"}));
      }
  add_times_beside_products(all);
  for (const int chains : {1, 8})
    for (const int warpgroups : {1, 2}) {
      if (chains == 1 && warpgroups == 2) continue;
      all.push_back(cycles(
          {.name =
               fmt::format("mma_m16n8k16 of f16, {}, {} warps",
                           chains == 1 ? "each waiting for the last" : "8 chains", 4 * warpgroups),
           .prepare =
               "u32 a[4] = {t, t, t, t}, b[2] = {t, t};\n  f32 f[8][4];\n  PL_UNROLL for (i32 i = "
               "0; i < 8; ++i) PL_UNROLL for (i32 e = 0; e < 4; ++e) f[i][e] = 0;",
           .timed = fmt::format(
               "PL_UNROLL for (i32 k = 0; k < 32; ++k) PL_UNROLL for (i32 i = 0; i < {}; "
               "++i) pl::mma_m16n8k16_f16(f[i], a, b);",
               chains),
           .times = 32 * chains,
           .warpgroups = warpgroups,
           .after = "PL_UNROLL for (i32 i = 0; i < 8; ++i) PL_UNROLL for (i32 e = 0; e < 4; ++e) "
                    "sink += u32(f[i][e] == 3.0f);"}));
    }
}

void add_waits(std::vector<Case>& all) {
  const auto repeated = [&](const std::string& name, const std::string& call, int warpgroups) {
    all.push_back(cycles({.name = name,
                          .timed = "PL_UNROLL for (i32 i = 0; i < 32; ++i) { " + call + " }",
                          .times = 32,
                          .warpgroups = warpgroups}));
  };
  repeated("nothing", "", 1);
  repeated("block_sync of 128 threads", "pl::block_sync();", 1);
  repeated("block_sync of 256 threads", "pl::block_sync();", 2);
  repeated("warpgroup_sync", "pl::warpgroup_sync<2>();", 2);
  repeated("fence_async_shared", "pl::fence_async_shared();", 1);
  repeated("fence_async_shared and a store before it",
           "pl::store_shared<4>(s + 16 * t, zeros); pl::fence_async_shared();", 1);
  repeated("arrival at an mbarrier and a wait for it, by 128 threads",
           "pl::mbarrier_arrive(bar + 8); pl::mbarrier_wait(bar + 8, parity); parity ^= 1;", 1);
  repeated("arrival at an mbarrier and a wait for it, by one thread",
           "if (t == 0) { pl::mbarrier_arrive(bar); pl::mbarrier_wait(bar, parity); } parity ^= 1;",
           1);
}

}  // namespace

void add_latencies(std::vector<Case>& all) {
  add_wgmma_times(all);
  add_copy_times(all);
  add_arithmetic_times(all);
  add_waits(all);
}

}  // namespace palladium::conformance
