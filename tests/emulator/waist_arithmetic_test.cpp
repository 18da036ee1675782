#include <algorithm>
#include <functional>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "tests/emulator/waist_numbers.hpp"

using namespace palladium::test;

namespace {

using Wide = __int128;

Wide integer(const NumberType& t, std::uint64_t bits) {
  return static_cast<Wide>(value_of(t, bits));
}

struct Case {
  const char* text;
  Wide (*meaning)(Wide a, Wide b, int width, bool is_signed);
};

Wide power(int n) { return Wide{1} << n; }
// The count of a shift, read as unsigned, and whether it reaches the width.
bool reaches(Wide b, int width) { return b < 0 || b >= width; }

const Case cases[] = {
    {"pl::add(x, y)", [](Wide a, Wide b, int, bool) { return a + b; }},
    {"pl::sub(x, y)", [](Wide a, Wide b, int, bool) { return a - b; }},
    {"pl::mul(x, y)", [](Wide a, Wide b, int, bool) { return a * b; }},
    {"pl::neg(x)", [](Wide a, Wide, int, bool) { return -a; }},
    {"pl::div(x, y)", [](Wide a, Wide b, int, bool) { return b == 0 ? Wide{-1} : a / b; }},
    {"pl::rem(x, y)", [](Wide a, Wide b, int, bool) { return b == 0 ? a : a % b; }},
    {"pl::abs(x)", [](Wide a, Wide, int, bool) { return a < 0 ? -a : a; }},
    {"pl::sign(x)", [](Wide a, Wide, int, bool) { return Wide{(a > 0) - (a < 0)}; }},
    {"pl::min(x, y)", [](Wide a, Wide b, int, bool) { return a < b ? a : b; }},
    {"pl::max(x, y)", [](Wide a, Wide b, int, bool) { return a > b ? a : b; }},
    {"pl::shift_left(x, y)",
     [](Wide a, Wide b, int width, bool) { return reaches(b, width) ? 0 : a * power(int(b)); }},
    {"pl::shift_right(x, y)",
     [](Wide a, Wide b, int width, bool) {
       const Wide p = power(reaches(b, width) ? width : int(b));
       return a >= 0 ? a / p : -((-a + p - 1) / p);
     }},
    {"pl::shift_right_logical(x, y)",
     [](Wide a, Wide b, int width, bool) {
       const Wide u = a < 0 ? a + power(width) : a;
       return reaches(b, width) ? 0 : u / power(int(b));
     }},
    {"pl::popcount(x)",
     [](Wide a, Wide, int width, bool) {
       Wide n = 0;
       for (Wide u = a < 0 ? a + power(width) : a; u != 0; u /= 2) n += u % 2;
       return n;
     }},
    {"pl::clz(x)",
     [](Wide a, Wide, int width, bool) {
       Wide n = width;
       for (Wide u = a < 0 ? a + power(width) : a; u != 0; u /= 2) --n;
       return n;
     }},
};

}  // namespace

TEST_CASE("integer operations wrap, divide and shift by the table's rules") {
  for (const NumberType& t : number_types) {
    if (t.is_float || is_bool(t)) continue;
    std::vector<std::uint64_t> x, y;
    if (t.bytes == 1) {  // all pairs
      for (int a = 0; a < 256; ++a) {
        for (int b = 0; b < 256; ++b) x.push_back(a), y.push_back(b);
      }
    } else {
      x = patterns(t, 1);
      y = x;
      std::shuffle(y.begin(), y.end(), std::mt19937(5));
      for (std::size_t i = 0; i + 100 < x.size(); i += 3) y[i] = x[i + 1] % 80;  // shift counts
      const std::uint64_t least = 1ull << (8 * t.bytes - 1), ones = low_bits(8 * t.bytes);
      for (std::uint64_t a : {std::uint64_t{0}, std::uint64_t{7}, least, ones}) {
        for (std::uint64_t b : {std::uint64_t{0}, std::uint64_t{1}, ones}) {
          x.push_back(a), y.push_back(b);
        }
      }
    }
    std::vector<Expression> expressions;
    for (const Case& c : cases) expressions.push_back({c.text, t.name});
    const auto results = evaluate(t, x, y, expressions);
    for (std::size_t k = 0; k < std::size(cases); ++k) {
      int wrong = 0;
      std::size_t example = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const int width = 8 * t.bytes;
        const Wide want = cases[k].meaning(integer(t, x[i]), integer(t, y[i]), width, t.is_signed);
        const bool right = (static_cast<std::uint64_t>(want) & low_bits(width)) ==
                           (results[k][i] & low_bits(width));
        if (!right && wrong++ == 0) example = i;
      }
      INFO(cases[k].text << " of " << t.name << ", first for bits " << std::hex << x[example]
                         << ", " << y[example] << " giving " << results[k][example]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("float arithmetic: IEEE operations, NaN in min and max, signs of zero") {
  for (const char* name : {"f16", "bf16", "f32", "f64"}) {
    const NumberType& t = number_type(name);
    std::vector<std::uint64_t> x = patterns(t), y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(9));
    // Every pair of the special values.
    const std::uint64_t top = 1ull << (8 * t.bytes - 1);
    const std::uint64_t infinity = (low_bits(8 * t.bytes - t.digits)) << (t.digits - 1);
    const std::uint64_t one = (low_bits(8 * t.bytes - t.digits) >> 1) << (t.digits - 1);
    const std::uint64_t specials[] = {0, 1, one, infinity - 1, infinity, infinity + 1};
    for (std::uint64_t a : specials) {
      for (std::uint64_t b : specials) {
        for (int signs = 0; signs < 4; ++signs) {
          x.push_back(a | (signs & 1 ? top : 0));
          y.push_back(b | (signs & 2 ? top : 0));
        }
      }
    }
    const auto r = evaluate(t, x, y,
                            {{"pl::add(x, y)", name},
                             {"pl::sub(x, y)", name},
                             {"pl::mul(x, y)", name},
                             {"pl::div(x, y)", name},
                             {"pl::rem(x, y)", name},
                             {"pl::min(x, y)", name},
                             {"pl::max(x, y)", name},
                             {"pl::abs(x)", name},
                             {"pl::sign(x)", name},
                             {"pl::neg(x)", name},
                             {"pl::is_nan(x)", "bool"},
                             {"pl::is_finite(x)", "bool"}});
    int wrong[12] = {};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double a = value_of(t, x[i]), b = value_of(t, y[i]);
      const auto is = [&](int k, long double want) {
        wrong[k] += !same_value(value_of(t, r[k][i]), rounded(t, want));
      };
      if (t.bytes == 8) {  // long double would round twice
        const auto p = std::bit_cast<double>(x[i]), q = std::bit_cast<double>(y[i]);
        is(0, p + q), is(1, p - q), is(2, p * q), is(3, p / q);
      } else {
        is(0, a + b), is(1, a - b), is(2, a * b), is(3, a / b);
      }
      is(4, std::fmod(a, b));
      const bool nan = std::isnan(a) || std::isnan(b);
      const bool a_less = a < b || (a == b && std::signbit(a));
      is(5, nan ? NAN : a_less ? a : b);
      is(6, nan ? NAN : a_less ? b : a);
      is(7, std::abs(a));
      is(8, a > 0 ? 1 : a < 0 ? -1 : a);
      wrong[9] += r[9][i] != (x[i] ^ top);
      wrong[10] += r[10][i] != std::isnan(a);
      wrong[11] += r[11][i] != std::isfinite(a);
    }
    for (int k = 0; k < 12; ++k) {
      INFO(name << ", expression " << k);
      CHECK(wrong[k] == 0);
    }
  }
}
