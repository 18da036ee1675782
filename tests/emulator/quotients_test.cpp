// Rows divided by one number: the device library's text, on the CPU, with reciprocals that are as
// wrong as a GPU's may be. tests/conformance sweeps over all mantissas.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/emulator/emulator.hpp"

using namespace palladium;

namespace {

constexpr int width = 5;

/// Rows of `width` dividends and a divisor each.
struct Rows {
  std::vector<float> dividends, divisors;

  void add(const std::vector<float>& a, float b) {
    REQUIRE(a.size() == width);
    dividends.insert(dividends.end(), a.begin(), a.end());
    divisors.push_back(b);
  }
};

std::vector<float> quotients(const Rows& rows, bool below) {
  const std::string text = std::string(R"(
PL_KERNEL(128) k(const f32* a, const f32* b, f32* o, i32 n) {
  PL_NOUNROLL for (i32 i = pl::thread(); i < n; i += 128) {
    f32 x[5], y, q[5];
    PL_UNROLL for (i32 e = 0; e < 5; ++e) pl::load_global(x + e, a + i * 5 + e);
    pl::load_global(&y, b + i);
    pl::div_all<5, BELOW>(q, x, y);
    pl::div_all<5, BELOW>(x, x, y);
    PL_UNROLL for (i32 e = 0; e < 5; ++e) {
      pl::check(pl::bitcast<u32>(x[e]) == pl::bitcast<u32>(q[e]) || x[e] != x[e], "in place");
      pl::store_global(o + i * 5 + e, q + e);
    }
  }
}
PL_EXPORT(k)
)");
  std::string chosen = text;
  for (std::size_t at; (at = chosen.find("BELOW")) != chosen.npos;)
    chosen.replace(at, 5, below ? "true" : "false");
  std::vector<float> a = rows.dividends, b = rows.divisors, o(a.size());
  void *pa = a.data(), *pb = b.data(), *po = o.data();
  int n = static_cast<int>(b.size());
  void* parameters[] = {&pa, &pb, &po, &n};
  const emulator::Buffer buffers[] = {
      {.base = pa, .bytes = a.size() * 4, .name = "a"},
      {.base = pb, .bytes = b.size() * 4, .name = "b"},
      {.base = po, .bytes = o.size() * 4, .name = "o", .written = true, .element_bytes = 4}};
  emulator::run({.kernel = "k",
                 .text = chosen,
                 .parameters = parameters,
                 .buffers = buffers,
                 .options = {.detect_writers = false, .detect_races = false}});
  return o;
}

void check(const Rows& rows, bool below) {
  const std::vector<float> got = quotients(rows, below);
  int wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float a = rows.dividends[i], b = rows.divisors[i / width], want = a / b;
    const bool right = std::isnan(want) ? std::isnan(got[i])
                                        : std::bit_cast<std::uint32_t>(got[i]) ==
                                              std::bit_cast<std::uint32_t>(want);
    if (!right && ++wrong <= 5) UNSCOPED_INFO(a << " / " << b << " gives " << got[i]);
  }
  CHECK(wrong == 0);
}

using Limits = std::numeric_limits<float>;

/// Where a guard begins or ends, what it must keep out, and what is a case of its own.
std::vector<float> corners() {
  std::vector<float> all = {0.0f,
                            1.0f,
                            3.0f,
                            0x1.fffffep0f,
                            0x1.fffffep-1f,
                            0x1.ccccc4p0f,
                            0x1.fffff6p0f,
                            Limits::denorm_min(),
                            3 * Limits::denorm_min(),
                            Limits::min(),
                            Limits::max(),
                            Limits::infinity(),
                            Limits::quiet_NaN()};
  for (const float edge : {0x1p-64f, 0x1p-63f, 0x1p-61f, 0x1p-60f, 0x1p59f, 0x1p60f, 0x1p64f,
                           0x1p65f, 0x1p-102f, 0x1p126f})
    for (const float x : {std::nextafter(edge, 0.0f), edge, std::nextafter(edge, Limits::max())})
      all.push_back(x);
  const std::size_t positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

bool is_below(float a, float b) { return std::abs(a) <= std::abs(b) || std::isnan(b); }

}  // namespace

TEST_CASE("the quotients of a row are those of IEEE for every pair of special operands") {
  Rows any, below;
  for (const float a : corners())
    for (const float b : corners()) {
      // Alone among plain ones, and among its like.
      const float plain = std::isfinite(b) ? 0.75f * b : 1.0f;
      any.add({plain, a, plain, 1.5f, plain}, b);
      any.add({a, a, -a, a, 0.0f}, b);
      if (!is_below(a, b)) continue;
      below.add({plain, a, plain, b, plain}, b);
      below.add({a, a, -a, a, 0.0f}, b);
    }
  check(any, false);
  check(below, true);
}

TEST_CASE("the quotients of a row are those of IEEE for random operands") {
  std::mt19937 random(3);
  const auto bits = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
  const auto number = [&](int least, int most) {
    const float mantissa = 1 + static_cast<float>(random() >> 9) * 0x1p-23f;
    const int exponent = least + static_cast<int>(random() % static_cast<unsigned>(most - least));
    return std::ldexp(random() % 2 ? mantissa : -mantissa, exponent);
  };
  Rows any, below;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<float> a(width);
    const float b = i % 8 == 0 ? bits() : i % 8 == 1 ? number(-126, 128) : number(-60, 60);
    for (float& x : a) x = i % 4 == 0 ? bits() : i % 4 == 1 ? number(-149, 128) : number(-63, 65);
    if (i % 16 == 3) a[1] = 0.0f, a[3] = -0.0f;
    any.add(a, b);
    for (float& x : a)
      if (!is_below(x, b)) x = b * (static_cast<float>(random() >> 9) * 0x1p-23f);
    below.add(a, b);
  }
  check(any, false);
  check(below, true);
}

TEST_CASE("the quotients of a row with zeros by a plain divisor keep the signs of the zeros") {
  Rows rows;
  for (const float b : {3.0f, -3.0f, 1.0f, 0x1.8p40f, -0x1.8p40f})
    rows.add({0.0f, -0.0f, 0.75f, -0.25f, 0.0f}, b);
  check(rows, false);
  check(rows, true);
}
