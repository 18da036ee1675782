// Questions that only the chip answers: what it says is recorded and printed, and differs from what
// the emulator assumes only where the emulator assumes nothing. Those that may cost the context say
// so.
#include <cmath>
#include <set>

#include "codegen/base/format.hpp"
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

using Bytes = std::vector<std::byte>;
using Bodies = std::vector<Bytes>;

float f32_at(const Bytes& bytes, std::size_t i) {
  float x;
  std::memcpy(&x, &bytes[4 * i], 4);
  return x;
}

/// An output that is only looked at.
Array looked_at(const std::string& type, std::size_t count) {
  const auto size = static_cast<std::size_t>(bytes_of_type(type));
  return {.type = type, .bytes = Bytes(count * size), .output = true, .agreement = Agreement::any};
}

// ---- where boxes start

/// Boxes of 4 rows of 32 u32 of 10 rows of 72: at inner coordinates on and off 16 bytes, before the
/// start of the array and over its end, in part and wholly.
void add_starts_of_boxes(std::vector<Case>& all) {
  TensorMapSpec spec;
  spec.type = TensorMapType::u32;
  spec.rank = 2;
  spec.extents = {72, 10};
  spec.strides = {72 * 4};
  spec.box = {32, 4};
  const std::string write = R"(
  u32 four[4];
  pl::load_global<4>(four, x + 4 * t);
  pl::store_shared<4>(s + 16 * t, four, t < 32);
  pl::fence_async_shared();
  pl::warpgroup_sync();
)";
  const std::string groups =
      "\n    pl::bulk_commit();\n    pl::bulk_wait<0>();\n  }\n  pl::store_global(o + t, &t);";
  const std::pair<const char*, std::string> operations[] = {
      {"load", R"(
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 512);
    pl::tma_load(s, map, bar, {#});
  }
  pl::warpgroup_sync();
  pl::mbarrier_wait(bar, 0);
  u32 v;
  pl::load_shared(&v, s + 4 * t);
  pl::store_global(o + t, &v);)"},
      {"prefetch", "\n  if (t == 0) pl::tma_prefetch(map, {#});\n  pl::store_global(o + t, &t);"},
      {"store", write + "  if (t == 0) {\n    pl::tma_store(map, s, {#});" + groups},
      {"add",
       write + "  if (t == 0) {\n    pl::tma_reduce<pl::reduce_add>(map, s, {#});" + groups}};
  for (const auto& [name, body] : operations) {
    for (const auto& [x, y] : std::initializer_list<std::pair<int, int>>{{-4, 2},
                                                                         {4, 2},
                                                                         {-1, 2},
                                                                         {1, 2},
                                                                         {-32, 2},
                                                                         {0, -2},
                                                                         {0, -4},
                                                                         {-4, -2},
                                                                         {64, 2},
                                                                         {72, 2},
                                                                         {0, 8},
                                                                         {0, 10},
                                                                         {72, 12}}) {
      const bool writes = std::string_view(name) == "store" || std::string_view(name) == "add";
      Case c = kernel(fmt::format("question/{} of a box of u32 at {}, {}", name, x, y),
                      "const u32* x, u32* o, PL_TENSOR_MAP(map)",
                      "  const u32 t = pl::thread(), s = pl::shared_base(), bar = s + 4096;" +
                          replaced(body, '#', fmt::format("{}, {}", x, y)));
      c.shared_bytes = 4096 + 64;
      c.deadly = true;
      c.outcome = x % 4 != 0 || (writes && (x < 0 || y < 0)) ? Outcome::refused : Outcome::agrees;
      c.input("u32", random_words(512, 41)).output("u32", 128);
      c.mapped({.type = "u32", .bytes = Case::bytes_of(random_words(720, 42)), .output = true},
               spec);
      all.push_back(std::move(c));
    }
  }
}

// ---- strides of tensor maps

/// Maps whose rows or planes share elements, which the driver's documentation does not forbid.
void add_strides(std::vector<Case>& all) {
  struct Strides {
    const char* name;
    std::array<std::uint64_t, 4> bytes;
  };
  for (const Strides& strides :
       {Strides{"of 0 bytes", {0, 0}}, Strides{"below the row", {64, 1024}},
        Strides{"of planes that overlap", {128, 256}}}) {
    TensorMapSpec spec;
    spec.type = TensorMapType::u32;
    spec.rank = 3;
    spec.extents = {32, 5, 3};
    spec.strides = strides.bytes;
    spec.box = {32, 4, 2};
    Case c =
        kernel(fmt::format("question/strides {}", strides.name), "u32* o, PL_TENSOR_MAP(map)", R"(
  const u32 t = pl::thread(), s = pl::shared_base(), bar = s + 1024;
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
    pl::mbarrier_arrive_expect_tx(bar, 1024);
    pl::tma_load(s, map, bar, {4, 2, 2});
  }
  pl::warpgroup_sync();
  pl::mbarrier_wait(bar, 0);
  u32 v[2];
  pl::load_shared<2>(v, s + 8 * t);
  pl::store_global<2>(o + 2 * t, v);)");
    c.shared_bytes = 1024 + 64;
    c.deadly = true;
    c.output("u32", 256);
    c.mapped({.type = "u32", .bytes = Case::bytes_of(random_words(1024, 43))}, spec);
    c.answer = [](const Bodies&) { return std::string("taken"); };
    all.push_back(std::move(c));
  }
}

// ---- swizzled operands off their pattern

constexpr std::size_t starts = 8;

/// A, 64 x 64 of bf16, at 128 r bytes into its swizzle's pattern, swizzled by absolute addresses;
/// its first 16 columns times B, with base_offset 0 and r.
void add_base_offsets(std::vector<Case>& all) {
  Case c = kernel("question/swizzled A that starts inside of its pattern",
                  "const u32* x, const u32* y, f32* o",
                  R"(
  const u32 t = pl::thread(), s = pl::shared_base(), at_b = s + 16384;
  u32 v[4];
  pl::load_global<4>(v, y + 4 * t, t < 16);
  pl::store_shared<4>(at_b + 16 * t, v, t < 16);
  PL_NOUNROLL for (u32 r = 0; r < 8; ++r) {
    PL_UNROLL for (u32 i = 0; i < 4; ++i) {
      const u32 chunk = 128 * i + t, a = s + 128 * r + 16 * chunk;
      pl::load_global<4>(v, x + 4 * chunk);
      pl::store_shared<4>(a ^ (a >> 3 & 0x70), v);
    }
    pl::fence_async_shared();
    pl::warpgroup_sync();
    PL_NOUNROLL for (u32 q = 0; q < 2; ++q) {
      const u64 a = pl::matrix_descriptor(s + 128 * r, 16, 1024, 128) | u64(q * r) << 49;
      f32 d[4];
      pl::wgmma_registers(d);
      pl::wgmma_fence();
      pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, pl::matrix_descriptor(at_b, 128, 128, 0), false);
      pl::wgmma_commit();
      pl::wgmma_wait<0>();
      pl::wgmma_registers(d);
      pl::store_global<4>(o + 512 * (2 * r + q) + 4 * t, d);
    }
    pl::warpgroup_sync();
  })");
  c.shared_bytes = 16384 + 256;
  c.deadly = true;
  c.outcome = Outcome::open;
  c.emulated = false;
  const Bytes a = integers("bf16", 64 * 64, 44), b = integers("bf16", 128, 45);
  c.array({.type = "bf16", .bytes = a}).array({.type = "bf16", .bytes = b});
  c.array(looked_at("f32", 2 * starts * 512));
  const auto number = [](const Bytes& bytes, std::size_t i) {
    const auto bits = static_cast<std::uint32_t>(element(bytes, i, 2)) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  };
  c.answer = [a, b, number](const Bodies& arrays) {
    std::vector<float> product(512);  // as the accumulator's registers lie
    for (std::size_t i = 0; i < 512; ++i) {
      const std::size_t t = i / 4, e = i % 4;
      const std::size_t row = 16 * (t / 32) + t % 32 / 4 + 8 * (e / 2), n = 2 * (t % 4) + e % 2;
      for (std::size_t k = 0; k < 16; ++k)
        product[i] += number(a, 64 * row + k) * number(b, 64 * (k / 8) + 8 * n + k % 8);
    }
    std::string text;
    for (std::size_t r = 0; r < starts; ++r) {
      std::size_t wrong[2] = {};
      for (std::size_t i = 0; i < 1024; ++i)
        wrong[i / 512] += f32_at(arrays[2], 1024 * r + i) != product[i % 512];
      text += fmt::format("{}row {}: {} wrong with base_offset 0, {} with {}", r ? "; " : "", r,
                          wrong[0], wrong[1], r);
    }
    return text;
  };
  all.push_back(std::move(c));
}

// ---- sums of tensor cores

/// Rows of A begin 1, 2^-i, and in the lower half 2^-i again; columns of B 1, 2^-n, 2^-n: sums of 1
/// and small terms, as products and with 1 in the accumulator. Terms of another size than 1 tell
/// whether what does not count is cut off or rounded.
Case small_terms(const std::string& type, const std::string& d, int k, int least, double size = 1) {
  const int per_chunk = 16 / bytes_of_type(type);
  const auto image = [&](int rows, const auto& value) {
    Bytes bytes(static_cast<std::size_t>(rows * k * bytes_of_type(type)));
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < k; ++i) {
        const std::uint64_t bits = encode(type, value(r, i));
        const int at = i / per_chunk * (rows * 16) + r * 16 + i % per_chunk * bytes_of_type(type);
        std::memcpy(&bytes[static_cast<std::size_t>(at)], &bits,
                    static_cast<std::size_t>(bytes_of_type(type)));
      }
    }
    return bytes;
  };
  const auto small = [=](int row) { return std::ldexp(1, -std::min(row % 32, least)); };
  const Bytes a = image(64, [&](int r, int i) {
    return i == 0 ? 1 : i == 1 || (i == 2 && r >= 32) ? small(r) : 0;
  });
  Bytes b = image(8, [=](int n, int i) { return i == 0 ? 1 : i < 3 ? std::ldexp(size, -n) : 0; });
  const Bytes without_one =
      image(8, [=](int n, int i) { return i > 0 && i < 3 ? std::ldexp(size, -n) : 0; });
  b.insert(b.end(), without_one.begin(), without_one.end());
  const std::string f = fmt::format("pl::wgmma_m64n8k{}_{}_{}_{}", k, d, type, type);
  const int registers = d == "f32" ? 4 : 2;
  Case c = kernel(
      size == 1 ? fmt::format("question/how small terms of {} count in {}", type, d)
                : fmt::format("question/what counts of {} 2^-13 of {} beside 1 in {}", size, type, d),
      "const u32* x, const u32* y, u32* o",
      fmt::format(R"(
  const u32 t = pl::thread(), s = pl::shared_base(), at_b = s + 4096;
  u32 v[4];
  pl::load_global<4>(v, x + 4 * t);
  pl::store_shared<4>(s + 16 * t, v);
  pl::load_global<4>(v, y + 4 * t, t < 32);
  pl::store_shared<4>(at_b + 16 * t, v, t < 32);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  {0} d[{1}];
  PL_NOUNROLL for (u32 q = 0; q < 2; ++q) {{
    PL_UNROLL for (i32 i = 0; i < {1}; ++i) d[i] = {2};
    pl::wgmma_registers(d);
    pl::wgmma_fence();
    {3}(d, pl::matrix_descriptor(s, 1024, 128, 0), pl::matrix_descriptor(at_b + 256 * q, 128, 128, 0), q == 1);
    pl::wgmma_commit();
    pl::wgmma_wait<0>();
    pl::wgmma_registers(d);
    PL_UNROLL for (i32 i = 0; i < {1}; ++i) {{
      const u32 w = pl::bitcast<u32>(d[i]);
      pl::store_global(o + 128 * {1} * q + {1} * t + i, &w);
    }}
  }})",
                  d == "f32" ? "f32" : "u32", registers, d == "f32" ? "1.0f" : "0x3c003c00", f));
  c.shared_bytes = 4096 + 512;
  c.array({.type = "u32", .bytes = a}).array({.type = "u32", .bytes = b});
  c.array(looked_at("u32", static_cast<std::size_t>(2 * 128 * registers)));
  // The smallest of the terms that show: sums that are not 1, by whether there is one such term.
  if (size != 1) {
    c.answer = [](const Bodies& arrays) {  // row 6, column 7 of two
      const std::size_t lane = 6 * 4 + 3;
      return fmt::format("{} 2^-13, in the accumulator {}",
                         std::ldexp(f32_at(arrays[2], 4 * lane + 1) - 1, 13),
                         std::ldexp(f32_at(arrays[2], 512 + 4 * lane + 1) - 1, 13));
    };
    return c;
  }
  c.answer = [d, least](const Bodies& arrays) {
    const std::size_t size = d == "f32" ? 4 : 2;
    const std::uint64_t one = encode(d, 1);
    int kept[2][2] = {};
    for (std::size_t i = 0; i < 1024; ++i) {
      const std::size_t q = i / 512, t = i % 512 / 4, e = i % 4;
      const int row = static_cast<int>(16 * (t / 32) + t % 32 / 4 + 8 * (e / 2));
      const int n = static_cast<int>(2 * (t % 4) + e % 2);
      if (element(arrays[2], i, size) == one) continue;
      int& most = kept[q][row / 32];
      most = std::max(most, std::min(row % 32, least) + n);
    }
    return fmt::format(
        "least 2^-e that shows: e = {} beside 1, {} twice beside 1, {} beside an "
        "accumulator of 1, {} twice; e to {} were tried",
        kept[0][0], kept[0][1], kept[1][0], kept[1][1], least + 7);
  };
  return c;
}

// ---- reductions of zeros and NaN

/// Old values and operands +0, -0, NaN and 1, each with each.
Case extremes(const std::string& type, const std::string& how) {
  const std::uint64_t one = encode(type, 1);
  const std::uint64_t values[] = {0, 0x8000, type == "f16" ? 0x7e00u : 0x7fc0u, one};
  std::vector<std::uint16_t> old, operand;
  for (int i = 0; i < 16; ++i) {
    old.push_back(static_cast<std::uint16_t>(values[i / 4]));
    operand.push_back(static_cast<std::uint16_t>(values[i % 4]));
  }
  TensorMapSpec spec;
  spec.type = type == "f16" ? TensorMapType::f16 : TensorMapType::bf16;
  spec.rank = 1;
  spec.extents = {16};
  spec.box = {16};
  Case c = kernel(fmt::format("question/{} of zeros, NaN and 1 in {}", how, type),
                  "const u32* x, PL_TENSOR_MAP(map)",
                  fmt::format(R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  if (t == 0) {{
    u32 v[8];
    pl::load_global<4>(v, x);
    pl::load_global<4>(v + 4, x + 4);
    pl::store_shared<4>(s, v);
    pl::store_shared<4>(s + 16, v + 4);
    pl::fence_async_shared();
    pl::tma_reduce<pl::reduce_{}>(map, s, {{0}});
    pl::bulk_commit();
    pl::bulk_wait<0>();
  }})",
                              how));
  c.shared_bytes = 128;
  c.input("u16", operand);
  // As numbers: the sign of a zero is open.
  c.mapped(
      {.type = type, .bytes = Case::bytes_of(old), .output = true, .agreement = Agreement::near},
      spec);
  c.answer = [](const Bodies& arrays) {
    const char* names[] = {"+0", "-0", "NaN", "1"};
    std::string text;
    for (std::size_t i = 0; i < 16; ++i)
      text += fmt::format("{}{} with {}: {:#06x}", i ? ", " : "", names[i / 4], names[i % 4],
                          element(arrays[1], i, 2));
    return text;
  };
  return c;
}

// ---- election, registers

Case election() {
  Case c = kernel("question/which lane is elected", "u32* o, u32* one", R"(
  const u32 warp = pl::warp() + 4 * pl::warpgroup();
  const u32 lanes = pl::vote_ballot(pl::elect_one()), again = pl::vote_ballot(pl::elect_one());
  const u32 count = u32(pl::popcount(lanes)) + 100 * u32(pl::popcount(again));
  if (pl::lane() == 0) pl::store_global(o + 2 * warp, &lanes);
  if (pl::lane() == 0) pl::store_global(o + 2 * warp + 1, &again);
  if (pl::lane() == 0) pl::store_global(one + warp, &count);)",
                  2);
  c.array(looked_at("u32", 16)).output("u32", 8);
  c.answer = [](const Bodies& arrays) {
    std::set<std::string> lanes;
    for (std::size_t i = 0; i < 16; ++i)
      lanes.insert(fmt::format("{:#x}", element(arrays[0], i, 4)));
    return fmt::format("ballots {}", fmt::join(lanes, " "));
  };
  return c;
}

/// One of two warpgroups gives up registers, the other asks for what it has at its entry.
Case registers(int asked) {
  Case c = kernel(fmt::format("question/setmaxnreg_inc<{}> of 256 threads", asked),
                  "const u32* x, u32* o",
                  fmt::format(R"(
  const u32 g = pl::warpgroup(), t = 128 * g + pl::thread();
  u32 v;
  pl::load_global(&v, x + t);
  if (g == 0) {{
    pl::setmaxnreg_dec<40>();
    v *= 3;
  }} else {{
    pl::setmaxnreg_inc<{}>();
    v += 5;
  }}
  pl::store_global(o + t, &v);)",
                              asked),
                  2);
  c.deadly = true;  // may wait for ever
  c.input("u32", random_words(256, 46)).output("u32", 256);
  c.answer = [](const Bodies&) { return std::string("given"); };
  return c;
}

}  // namespace

void add_questions(std::vector<Case>& all) {
  for (const char* type : {"f16", "bf16"})
    for (const char* how : {"min", "max"}) all.push_back(extremes(type, how));
  all.push_back(small_terms("f16", "f32", 16, 24));
  all.push_back(small_terms("f16", "f16", 16, 24));
  all.push_back(small_terms("bf16", "f32", 16, 31));
  all.push_back(small_terms("e4m3", "f32", 32, 9));
  all.push_back(small_terms("e4m3", "f32", 32, 9, 1.75));
  all.push_back(small_terms("e5m2", "f32", 32, 16));
  all.push_back(small_terms("e4m3", "f16", 32, 9));
  all.push_back(election());
  add_strides(all);
  add_base_offsets(all);
  add_starts_of_boxes(all);
  for (const int asked : {240, 256}) all.push_back(registers(asked));
}

}  // namespace palladium::conformance
