// Functions of f32 on all their arguments, on a GPU in milliseconds; the emulator takes one in some
// thousands.
#include <bit>

#include "codegen/base/format.hpp"
#include "codegen/device/waist.hpp"
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

constexpr int blocks = 1024;
constexpr std::size_t threads = 128 * blocks;

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
  c.input("u32", pairs).word(1, 1 << 11).array(errors("quotients, number wrong", 0));
  return c;
}

/// One function on all 2^32 arguments, against one of f64.
Case all_arguments(const std::string& name, const std::string& reference) {
  Case c = kernel("sweep/" + name + " of all f32", "u32 step, f32* worst",
                  replaced(replaced(R"(
  const u32 t = 128 * u32(pl::block_x()) + pl::thread(), threads = 128 * u32(pl::grid_x());
  const f64 most = pl::bitcast<f64>(u64(0x47f0000000000000)), least = pl::bitcast<f64>(u64(0x3810000000000000));
  f32 worst_of_all = 0;
  PL_NOUNROLL for (u64 n = u64(t) * step; n >> 32 == 0; n += u64(threads) * step) {
    const f32 v = pl::bitcast<f32>(u32(n));
    const f64 x = pl::to<f64>(v);
    f64 y = pl::to<f64>(pl::$(v)), r = @;
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
                                    '$', name),
                           '@', reference));
  double bound = 0;
  for (const device::RowInfo& f : device::rows())
    if (f.name == name) bound = f.ulp_f32;
  c.grid = {blocks, 1, 1};
  c.word(1, (1 << 16) + 1).array(errors(name + " of all f32", bound));
  return c;
}

}  // namespace

void add_sweeps(std::vector<Case>& all) {
  all.push_back(quotients());
  all.push_back(all_arguments("exp", "pl::exp(x)"));
  all.push_back(all_arguments("exp2", "pl::exp2(x)"));
  all.push_back(all_arguments("exp2_approx", "pl::exp2(x)"));
  all.push_back(all_arguments("rcp_approx", "1 / x"));
}

}  // namespace palladium::conformance
