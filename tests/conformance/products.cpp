// Checks of wgmma. Shared memory holds random numbers everywhere, so that whatever a descriptor
// leads to decides the result.
#include <cmath>

#include "codegen/base/format.hpp"
#include "codegen/device/wgmma.hpp"
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

using device::Wgmma;

/// Where an operand of `extent` rows (of m or n) lies: two steps along k, both read.
struct Operand {
  int swizzle;
  bool transposed;  // MN-major
  int leading = 16, stride = 0, bytes = 0;
  int advance = 0;  // bytes to the second step

  /// Of the groups of 8 rows, or MN-major of the panels, that lie there, `every`th is one of it.
  Operand(int swizzle_bytes, bool mn_major, int extent, int every = 1)
      : swizzle(swizzle_bytes), transposed(mn_major) {
    const int chunks = extent / 8;  // of 8 rows
    if (transposed && swizzle == 0) {
      leading = 128;
      stride = 512;
      bytes = chunks * 512;
      advance = 256;
    } else if (transposed) {
      const int width = swizzle / 16;
      stride = 128 * width;
      leading = 512 * width * every;
      bytes = (chunks + width - 1) / width * leading;
      advance = 2 * stride;
    } else if (swizzle == 0) {
      stride = 128;
      leading = chunks * 128;
      bytes = extent * 64;
      advance = 2 * leading;
    } else {
      stride = 8 * swizzle * every;
      bytes = extent * std::max(swizzle, 64) * every;
      advance = swizzle > 32 ? 32 : extent * 32;
    }
    bytes = (bytes + 1023) / 1024 * 1024;
  }
  std::string descriptor(const std::string& address) const {
    return fmt::format("pl::matrix_descriptor({}, {}, {}, {})", address, leading, stride, swizzle);
  }
};

std::string words_of(const std::string& d) {
  return d == "f16" ? "u32" : d == "s32" ? "i32" : "f32";
}
/// The emulator's and our words for operands' types.
std::string element(std::string_view type) { return std::string(type); }

struct Variant {
  std::string name;
  Wgmma shape;          // but n
  std::vector<int> ns;  // one after the other
  int swizzle_a = 128, swizzle_b = 128;
  bool transpose_a = false, transpose_b = false, fractions = false;
  int every_b = 1;
};

std::string call(const Variant& v, const Wgmma& op) {
  std::string text = "pl::" + op.name();
  if (op.has_transposes() && (v.transpose_a || v.transpose_b)) {
    text += op.rs ? fmt::format("<{}>", v.transpose_b)
                  : fmt::format("<{}, {}>", v.transpose_a, v.transpose_b);
  }
  return text;
}

/// What one term of a sum may lose: everything below so many bits under the greatest term.
double lost(const Wgmma& op) {
  if (op.k == 32) return std::ldexp(1, -12);  // sums of e4m3 and e5m2 keep 13 bits
  return std::ldexp(1, -22);
}

/// What `words` words of accumulators begin with and end as, behind operands of so many bytes.
void add_arrays(Case& c, const Variant& v, int a_bytes, int b_bytes, std::size_t words) {
  const std::string d(v.shape.d);
  const auto data = v.fractions ? fractions : integers;
  const auto packed = [&](std::string_view type, int size, std::uint64_t seed) {
    return data(element(type), static_cast<std::size_t>(size / bytes_of_type(element(type))), seed);
  };
  std::vector<std::byte> image = packed(v.shape.a, a_bytes, 31);
  const std::vector<std::byte> behind = packed(v.shape.b, b_bytes, 32);
  image.insert(image.end(), behind.begin(), behind.end());
  c.array({.type = "u32", .bytes = image});
  c.array({.type = "u32", .bytes = packed(v.shape.a, 128 * 32, 33)});
  const std::string result = d == "s32" ? "i32" : d;
  const auto count = words * 4 / static_cast<std::size_t>(bytes_of_type(result));
  c.array({.type = result, .bytes = data(result, count, 34)});
  c.output(result, count);
  if (v.fractions) {
    // Terms of at most 1 and the accumulator, added in two steps; f16 results are rounded twice.
    const int terms = 2 * v.shape.k + 1;
    Array& o = c.arrays.back();
    o.agreement = Agreement::near;
    o.bound = terms * lost(v.shape) * terms + (d == "f16" ? 2 * std::ldexp(terms, -11) : 0);
    o.label = fmt::format("wgmma {} {} {}", v.shape.d, v.shape.a, v.shape.b);
  }
}

Case product(const Variant& v) {
  const Operand a(v.swizzle_a, v.transpose_a, 64);
  int most = 0;
  for (const int n : v.ns) most = std::max(most, n);
  const Operand b_most(v.swizzle_b, v.transpose_b, most, v.every_b);
  const int bytes = a.bytes + b_most.bytes;
  const std::string d(v.shape.d), words = words_of(d);

  std::string body = fmt::format(R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  PL_NOUNROLL for (u32 i = t; i < {}; i += 128) {{
    u32 w[4];
    pl::load_global<4>(w, x + 4 * i);
    pl::store_shared<4>(s + 16 * i, w);
  }}
  pl::fence_async_shared();
  pl::warpgroup_sync();
  u32 a[2][4];
  pl::load_global<4>(a[0], r + 8 * t);
  pl::load_global<4>(a[1], r + 8 * t + 4);
)",
                                 bytes / 16);
  std::size_t first = 0;
  for (std::size_t i = 0; i < v.ns.size(); ++i) {
    Wgmma op = v.shape;
    op.n = v.ns[i];
    const Operand b(v.swizzle_b, v.transpose_b, op.n, v.every_b);
    const int registers = op.registers();
    const std::string f = call(v, op);
    body += fmt::format(R"(  {{
    {0} d[{1}];
    PL_UNROLL for (i32 i = 0; i < {1}; ++i) pl::load_global(d + i, c + {2} + {1} * t + i);
    const u64 db = {3};
)",
                        words, registers, first, b.descriptor(fmt::format("s + {}", a.bytes)));
    if (!op.rs) body += "    const u64 da = " + a.descriptor("s") + ";\n";
    const std::string pins =
        op.rs ? "    pl::wgmma_registers(a[0]);\n    pl::wgmma_registers(a[1]);\n" : "";
    body += pins + fmt::format(R"(    pl::wgmma_registers(d);
    pl::wgmma_fence();
    {0}(d, {1}, db, {2});
    {0}(d, {3}, db + {4}, true);
    pl::wgmma_commit();
    pl::wgmma_wait<0>();
{7}    pl::wgmma_registers(d);
    PL_UNROLL for (i32 i = 0; i < {5}; ++i) pl::store_global(o + {6} + {5} * t + i, d + i);
  }}
)",
                               f, op.rs ? "a[0]" : "da", i % 2 == 0 ? "true" : "false",
                               op.rs ? "a[1]" : fmt::format("da + {}", a.advance / 16),
                               b.advance / 16, registers, first, pins);
    first += 128 * static_cast<std::size_t>(registers);
  }
  Case c =
      kernel(v.name, fmt::format("const u32* x, const u32* r, const {0}* c, {0}* o", words), body);
  c.shared_bytes = static_cast<std::uint32_t>(bytes);
  c.make_arrays = [v, a_bytes = a.bytes, b_bytes = b_most.bytes, count = first](Case& made) {
    add_arrays(made, v, a_bytes, b_bytes, count);
  };
  return c;
}

std::string types_of(const Wgmma& op) {
  return fmt::format("{} {} {}{}", op.d, op.a, op.b, op.rs ? " rs" : "");
}

/// All shapes of a type pair in bunches, some at once and the rest for the slow part.
void add_shapes(std::vector<Case>& all) {
  std::vector<Wgmma> kinds;
  std::vector<std::vector<int>> ns;
  for (const Wgmma& op : device::wgmma_variants()) {
    std::size_t i = 0;
    while (i < kinds.size() && types_of(kinds[i]) != types_of(op)) ++i;
    if (i == kinds.size()) kinds.push_back(op), ns.emplace_back();
    ns[i].push_back(op.n);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    all.push_back(
        product({.name = "wgmma/" + types_of(kinds[i]), .shape = kinds[i], .ns = {8, 96, 256}}));
    if (kinds[i].d != "s32") {
      all.push_back(product({.name = "wgmma/" + types_of(kinds[i]) + ", fractions",
                             .shape = kinds[i],
                             .ns = {16, 64},
                             .fractions = true}));
    }
    for (std::size_t at = 0; at < ns[i].size(); at += 4) {
      const std::vector<int> some(
          ns[i].begin() + static_cast<std::ptrdiff_t>(at),
          ns[i].begin() + static_cast<std::ptrdiff_t>(std::min(at + 4, ns[i].size())));
      Case c = product({.name = fmt::format("wgmma/{} n {} to {}", types_of(kinds[i]), some.front(),
                                            some.back()),
                        .shape = kinds[i],
                        .ns = some});
      c.slow = true;
      all.push_back(std::move(c));
    }
  }
}

/// Every swizzle of both operands, K-major; for 16-bit types every mixture with MN-major.
void add_layouts(std::vector<Case>& all) {
  for (const char* type : {"bf16", "f16", "tf32", "e4m3", "s8"}) {
    const std::string_view t = type;
    const Wgmma shape = {.n = 64,
                         .k = t == "tf32"         ? 8
                              : t.ends_with("16") ? 16
                                                  : 32,
                         .d = t == "s8" ? "s32" : "f32",
                         .a = t,
                         .b = t};
    for (const int swizzle_a : {0, 32, 64, 128}) {
      for (const int swizzle_b : {0, 32, 64, 128}) {
        if (swizzle_a != swizzle_b && t != "bf16") continue;
        for (int transposes = 0; transposes < (shape.has_transposes() ? 4 : 1); ++transposes) {
          const bool a = (transposes & 1) != 0, b = (transposes & 2) != 0;
          Variant v = {.name = fmt::format("wgmma/{}: A {} swizzle {}, B {} swizzle {}", type,
                                           a ? "MN-major" : "K-major", swizzle_a,
                                           b ? "MN-major" : "K-major", swizzle_b),
                       .shape = shape,
                       .ns = {64, 128},
                       .swizzle_a = swizzle_a,
                       .swizzle_b = swizzle_b,
                       .transpose_a = a,
                       .transpose_b = b};
          Case c = product(v);
          c.slow = swizzle_a != swizzle_b && transposes != 2;
          all.push_back(std::move(c));
          if (a || swizzle_a != swizzle_b || !shape.has_transposes()) continue;
          v.shape.rs = true;
          v.name = fmt::format("wgmma/{}: A in registers, B {} swizzle {}", type,
                               b ? "MN-major" : "K-major", swizzle_b);
          all.push_back(product(v));
        }
      }
    }
  }
}

/// MN-major operands of which a product reads less than the swizzle's pattern has.
void add_narrow_operands(std::vector<Case>& all) {
  for (const int swizzle : {32, 64, 128}) {
    all.push_back(
        product({.name = fmt::format("wgmma/bf16: B MN-major swizzle {}, n 8 to 40", swizzle),
                 .shape = {.n = 8, .k = 16, .d = "f32", .a = "bf16", .b = "bf16"},
                 .ns = {8, 16, 24, 40},
                 .swizzle_b = swizzle,
                 .transpose_b = true}));
  }
}

/// Operands of which others, side by side, read what lies between.
void add_shared_columns(std::vector<Case>& all) {
  const Wgmma shapes[] = {{.n = 8, .k = 16, .d = "f32", .a = "bf16", .b = "bf16"},
                          {.n = 8, .k = 32, .d = "f32", .a = "e4m3", .b = "e4m3"}};
  for (const Wgmma& shape : shapes)
    for (const int every : {2, 4})
      for (const bool mn_major : {false, true}) {
        if (mn_major && !shape.has_transposes()) continue;
        for (const int swizzle : {64, 128})
          all.push_back(product({.name = fmt::format("wgmma/{}: B {} swizzle {}, every {}th {}",
                                                     shape.b, mn_major ? "MN-major" : "K-major",
                                                     swizzle, every, mn_major ? "panel" : "8 rows"),
                                 .shape = shape,
                                 .ns = {32, 128},
                                 .swizzle_b = swizzle,
                                 .transpose_b = mn_major,
                                 .every_b = every}));
      }
}

/// Groups that overlap: two accumulators, the older waited for while the younger runs.
void add_groups(std::vector<Case>& all) {
  Case c = kernel("wgmma/two groups in flight", "const u32* x, f32* o", R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  PL_NOUNROLL for (u32 i = t; i < 1024; i += 128) {
    u32 w[4];
    pl::load_global<4>(w, x + 4 * i);
    pl::store_shared<4>(s + 16 * i, w);
  }
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[32], e[32];
  const u64 a = pl::matrix_descriptor(s, 16, 1024, 128), b = pl::matrix_descriptor(s + 8192, 16, 1024, 128);
  pl::wgmma_registers(d);
  pl::wgmma_registers(e);
  pl::wgmma_fence();
  PL_UNROLL for (i32 k = 0; k < 4; ++k) pl::wgmma_m64n64k16_f32_bf16_bf16(d, a + 2 * k, b + 2 * k, k > 0);
  pl::wgmma_commit();
  PL_UNROLL for (i32 k = 0; k < 4; ++k) pl::wgmma_m64n64k16_f32_bf16_bf16(e, b + 2 * k, a + 2 * k, k > 0);
  pl::wgmma_commit();
  pl::wgmma_wait<1>();
  pl::wgmma_registers(d);
  PL_UNROLL for (i32 i = 0; i < 32; ++i) pl::store_global(o + 64 * t + i, d + i);
  pl::wgmma_wait<0>();
  pl::wgmma_registers(e);
  PL_UNROLL for (i32 i = 0; i < 32; ++i) pl::store_global(o + 64 * t + 32 + i, e + i);)");
  c.shared_bytes = 16384;
  c.array({.type = "u32", .bytes = integers("bf16", 8192, 35)}).output("f32", 8192);
  all.push_back(std::move(c));
}

/// Parts of sums, which threads add to what they hold or put there.
void add_promoted(std::vector<Case>& all) {
  Case c = kernel("wgmma/parts of sums", "const f32* x, f32* o", R"(
  const u32 t = pl::thread();
  f32 d[4], part[4];
  pl::load_global<4>(d, x + 8 * t);
  pl::load_global<4>(part, x + 8 * t + 4 + pl::zero_of_iteration(i32(t)));
  pl::promote<0, 2, 1, 0>(d, part, t % 2 == 0);
  pl::promote<1, 3, 1, 1>(d, part, t % 2 == 0);
  pl::promote<2, 0, 1, 2>(d, part, true);
  pl::promote<3, 1, 1, 3>(d, part, true);
  pl::store_global<4>(o + 4 * t, d);)");
  c.array({.type = "f32", .bytes = integers("f32", 1024, 36)}).output("f32", 512);
  all.push_back(std::move(c));
}

/// One product behind another into the same registers, of whose sums the same is computed; and of
/// parts that are added to the same.
void add_again(std::vector<Case>& all) {
  std::string parts;
  for (const char* turn : {"0", "1", "2", "3"})
    parts += replaced(R"(
  pl::wgmma_registers(d);
  pl::wgmma_fence();
  pl::wgmma_m64n64k16_f32_bf16_bf16(d, a + 2 * $, b, false);
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  pl::promote<32 * $, 0, 32, $>(sum, d, true);)",
                      '$', turn);
  Case c = kernel("wgmma/products into the same registers", "const u32* x, f32* o", R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  PL_NOUNROLL for (u32 i = t; i < 1024; i += 128) {
    u32 w[4];
    pl::load_global<4>(w, x + 4 * i);
    pl::store_shared<4>(s + 16 * i, w);
  }
  pl::fence_async_shared();
  pl::warpgroup_sync();
  f32 d[32];
  const u64 a = pl::matrix_descriptor(s, 16, 1024, 128), b = pl::matrix_descriptor(s + 8192, 16, 1024, 128);
  PL_UNROLL for (i32 k = 0; k < 4; ++k) {
    if (k > 0) pl::wgmma_apart();
    pl::wgmma_registers(d);
    pl::wgmma_fence();
    pl::wgmma_m64n64k16_f32_bf16_bf16(d, a + 2 * k, b + 2 * k, k > 1);
    pl::wgmma_commit();
    pl::wgmma_wait<0>();
    pl::wgmma_registers(d);
    PL_UNROLL for (i32 i = 0; i < 32; ++i) {
      const f32 twice = d[i] * 2.0f;
      pl::store_global(o + 256 * t + 32 * k + i, &twice);
    }
  }
  f32 sum[128] = {};
)" + parts + R"(
  PL_UNROLL for (i32 i = 0; i < 128; ++i) pl::store_global(o + 256 * t + 128 + i, sum + i);)");
  c.shared_bytes = 16384;
  c.array({.type = "u32", .bytes = integers("bf16", 8192, 37)}).output("f32", 32768);
  all.push_back(std::move(c));
}

}  // namespace

void add_wgmma(std::vector<Case>& all) {
  add_again(all);
  add_shapes(all);
  add_layouts(all);
  add_narrow_operands(all);
  add_shared_columns(all);
  add_groups(all);
  add_promoted(all);
}

}  // namespace palladium::conformance
