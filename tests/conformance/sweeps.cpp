// Functions of f32 on all their arguments, on a GPU in milliseconds; the emulator takes one in some
// thousands.
#include <bit>
#include <cstdlib>

#include "codegen/base/format.hpp"
#include "codegen/device/waist.hpp"
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

constexpr int blocks = 1024;
constexpr std::size_t threads = 128 * blocks;

/// Of how many divisors the emulator takes one; all with PALLADIUM_TEST_SWEEP=1 (minutes).
std::int64_t emulated(std::int64_t step) {
  return std::getenv("PALLADIUM_TEST_SWEEP") != nullptr ? 1 : step;
}

/// The greatest error of each thread, 0 or more.
Array errors(const std::string& label, double bound) {
  return {.type = "f32",
          .bytes = std::vector<std::byte>(threads * 4, std::byte{0x5a}),
          .output = true,
          .agreement = Agreement::near,
          .bound = bound,
          .label = label,
          .reference = [](std::size_t) { return 0.0L; }};
}

/// Every mantissa of the divisor with 64 dividends and exponents of its own: pl::div against the
/// language's division.
Case quotients() {
  Case c = kernel("sweep/quotients of all mantissas", "const u32* x, u32 step, f32* worst", R"(
  const u32 t = 128 * u32(pl::block_x()) + pl::thread(), threads = 128 * u32(pl::grid_x());
  f32 wrong = 0;
  PL_NOUNROLL for (u32 m = t * step; m < 1u << 23; m += threads * step) {
    PL_NOUNROLL for (u32 i = 0; i < 64; ++i) {
      u32 v[2];
      pl::load_global_nc<2>(v, x + 2 * i);
      const f32 a = pl::bitcast<f32>(v[0]), b = pl::bitcast<f32>(v[1] | m);
      if (pl::bitcast<u32>(pl::div(a, b)) != pl::bitcast<u32>(a / b)) wrong = wrong + 1;
      if (pl::is_finite(b) && b != 0 &&
          pl::bitcast<u32>(pl::div_by(a, b, 1.0 / f64(b) * (1 + 0x1p-51))) != pl::bitcast<u32>(a / b))
        wrong = wrong + 1;
      const f32 count = pl::to<f32>(m);
      if (pl::bitcast<u32>(pl::div_by_count(a, count)) != pl::bitcast<u32>(a / count) &&
          !(a == 0 && m == 0))
        wrong = wrong + 1;
      const f32 row[2] = {a, -a};
      f32 q[2];
      pl::div_all<2>(q, row, b);
      if (pl::bitcast<u32>(q[0]) != pl::bitcast<u32>(a / b)) wrong = wrong + 1;
      if (pl::bitcast<u32>(q[1]) != pl::bitcast<u32>(-a / b)) wrong = wrong + 1;
    }
  }
  pl::store_global(worst + t, &wrong);)");
  // Dividends of all sizes over divisors near 1, and both so that quotients are subnormal or huge.
  std::vector<std::uint32_t> pairs;
  const std::vector<std::uint32_t> random = random_words(64, 51);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t mantissa = random[i] & 0x807fffff;
    const std::uint32_t exponents[][2] = {{127, 127}, {2, 127}, {60, 190}, {250, 120},
                                          {0, 127},   {126, 0}, {1, 3},    {254, 253}};
    const auto& [dividend, divisor] = exponents[i % 8];
    pairs.push_back(mantissa | dividend << 23);
    pairs.push_back(divisor << 23);
  }
  c.grid = {blocks, 1, 1};
  c.input("u32", pairs).word(1, emulated(1 << 11)).array(errors("quotients, number wrong", 0));
  return c;
}

/// Newton's two steps from every reciprocal within two units of the rounded one, of every mantissa
/// but the one that the guard of div_all leaves out.
Case reciprocals() {
  Case c = kernel("sweep/reciprocals of all mantissas", "u32 step, f32* worst", R"(
  const u32 t = 128 * u32(pl::block_x()) + pl::thread(), threads = 128 * u32(pl::grid_x());
  f32 wrong = 0;
  PL_NOUNROLL for (u32 m = t * step; m < (1u << 23) - 1; m += threads * step) {
    const f32 b = pl::bitcast<f32>(u32(127) << 23 | m), rounded = 1.0f / b;
    PL_NOUNROLL for (u32 off = 0; off < 5; ++off) {
      const f32 start = pl::bitcast<f32>(pl::bitcast<u32>(rounded) + off - 2);
      if (pl::detail::refined_reciprocal(b, start) != rounded) wrong = wrong + 1;
    }
  }
  pl::store_global(worst + t, &wrong);)");
  c.grid = {blocks, 1, 1};
  c.word(1, emulated(1 << 7)).array(errors("reciprocals, number wrong", 0));
  return c;
}

/// The quotients that are hardest to round, of every mantissa of the divisor. With significands
/// a 2^k = m b + c, k = 24 or 25 so that m has 25 bits, a / b is |c| / b half units away from the
/// middle m of two floats (or from a float). What div_all rounds last is off by less than 2^-46 of
/// 1, which is 4 / b half units: only pairs with |c| <= 4 can go wrong. With c given, a is found
/// modulo the odd part of b.
Case hard_quotients() {
  Case c = kernel("sweep/hard quotients of all mantissas", "u32 step, f32* worst", R"(
  const u32 t = 128 * u32(pl::block_x()) + pl::thread(), threads = 128 * u32(pl::grid_x());
  f32 wrong = 0;
  PL_NOUNROLL for (u32 m = t * step; m < 1u << 23; m += threads * step) {
    const u32 b = 1u << 23 | m;
    u32 odd = b, zeros = 0;
    PL_NOUNROLL for (; odd % 2 == 0; odd /= 2) ++zeros;
    PL_NOUNROLL for (u32 k = 24; k <= 25; ++k) {
      u64 inverse = 1 % odd;  // of 2^(k - zeros) modulo odd
      PL_NOUNROLL for (u32 i = zeros; i < k; ++i)
        inverse = inverse % 2 == 0 ? inverse / 2 : (inverse + odd) / 2;
      PL_NOUNROLL for (i32 c = -8; c <= 8; ++c) {
        if ((c & ((1 << zeros) - 1)) != 0) continue;
        const i64 part = (c >> zeros) % i64(odd);
        u64 a = u64(part < 0 ? part + odd : part) * inverse % odd;
        if (a < 1u << 23) a += ((1u << 23) - a + odd - 1) / odd * odd;
        PL_NOUNROLL for (; a < 1u << 24; a += odd) {
          const f32 x = f32(u32(a)) * 0x1p-23f, y = f32(b) * 0x1p-23f;
          f32 q;
          pl::div_all<1>(&q, &x, y);
          if (q != x / y) wrong = wrong + 1;
        }
        if (odd == 1) break;  // all of them
      }
    }
  }
  pl::store_global(worst + t, &wrong);)");
  c.grid = {blocks, 1, 1};
  c.word(1, emulated(1 << 11)).array(errors("hard quotients, number wrong", 0));
  return c;
}

/// One function on all 2^32 arguments, against one of f64.
Case all_arguments(const std::string& name, const std::string& call, const std::string& reference,
                   double bound) {
  Case c = kernel("sweep/" + name + " of all f32", "u32 step, f32* worst",
                  replaced(replaced(R"(
  const u32 t = 128 * u32(pl::block_x()) + pl::thread(), threads = 128 * u32(pl::grid_x());
  const f64 most = pl::bitcast<f64>(u64(0x47f0000000000000)), least = pl::bitcast<f64>(u64(0x3810000000000000));
  f32 worst_of_all = 0;
  PL_NOUNROLL for (u64 n = u64(t) * step; n >> 32 == 0; n += u64(threads) * step) {
    const f32 v = pl::bitcast<f32>(u32(n));
    const f64 x = pl::to<f64>(v);
    f64 y = pl::to<f64>($), r = @;
    if (pl::is_nan(y) || pl::is_nan(r)) {
      if (pl::is_nan(y) != pl::is_nan(r)) worst_of_all = pl::infinity<f32>();
      continue;
    }
    // Beyond the greatest f32 comes 2^128, below the least normal one perhaps 0.
    y = pl::min(pl::max(y, -most), most);
    r = pl::min(pl::max(r, -most), most);
    if (y == 0 && pl::abs(r) < least) continue;
    const f64 size = pl::max(pl::min(pl::abs(r), pl::bitcast<f64>(u64(0x47efffffe0000000))), least);
    const f64 unit = pl::bitcast<f64>((pl::bitcast<u64>(size) & u64(0x7ff0000000000000)) - (u64(23) << 52));
    worst_of_all = pl::max(worst_of_all, pl::to<f32>(pl::abs(y - r) / unit));
  }
  pl::store_global(worst + t, &worst_of_all);)",
                                    '$', call),
                           '@', reference));
  c.grid = {blocks, 1, 1};
  c.word(1, (1 << 16) + 1).array(errors(name + " of all f32", bound));
  return c;
}

/// One whose error the table tells.
Case all_arguments(const std::string& name, const std::string& reference) {
  const device::RowInfo& f = device::info(*device::row_named(name));
  return all_arguments(name, "pl::" + name + "(v)", reference, f.ulp_f32);
}

}  // namespace

void add_sweeps(std::vector<Case>& all) {
  all.push_back(quotients());
  all.push_back(reciprocals());
  all.push_back(hard_quotients());
  all.push_back(all_arguments("exp_nonpositive", "pl::exp_nonpositive(-pl::abs(v))",
                              "pl::exp(-pl::abs(x))", 4));
  all.push_back(all_arguments("exp", "pl::exp(x)"));
  all.push_back(all_arguments("exp2", "pl::exp2(x)"));
  all.push_back(all_arguments("exp2_approx", "pl::exp2(x)"));
  all.push_back(all_arguments("rcp_approx", "1 / x"));
}

}  // namespace palladium::conformance
