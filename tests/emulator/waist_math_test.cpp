#include <algorithm>
#include <cmath>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/waist.hpp"
#include "tests/emulator/waist_numbers.hpp"
#include "tests/support/waist_reference.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

int bound(const device::RowInfo& f, const NumberType& t) {
  return t.bytes == 8 ? f.ulp_f64 : f.ulp_f32;
}

bool is_bounded(const std::string& function, const NumberType& t) {
  return t.bytes == 8 && bounds_f64(function);
}

long double wanted(const std::string& function, const NumberType& t, long double a, long double b) {
  const auto unary = unary_references.find(function);
  if (unary == unary_references.end()) return binary_references.at(function)(a, b);
  return unary->second(is_bounded(function, t) ? domains.at(function).nearest(a) : a);
}

std::string called(const std::string& function, const NumberType& t) {
  const bool one = unary_references.contains(function);
  const std::string x = is_bounded(function, t) ? domains.at(function).nearest("x") : "x";
  return "pl::" + function + (one ? "(" + x + ")" : "(x, y)");
}

// Every function of the table on these operands.
void check(const NumberType& t, const std::vector<std::uint64_t>& x,
           const std::vector<std::uint64_t>& y) {
  std::vector<Expression> expressions;
  std::vector<const device::RowInfo*> tried;
  for (const device::RowInfo& f : device::rows()) {
    const std::string function(f.name);
    const bool approximate = f.name.ends_with("_approx");
    if (bound(f, t) < 0 || f.name == "fma" || (approximate && t.bytes != 4)) continue;
    REQUIRE((unary_references.contains(function) || binary_references.contains(function)));
    expressions.push_back({called(function, t), t.name});
    tried.push_back(&f);
  }
  REQUIRE(tried.size() >= 33);
  const auto results = evaluate(t, x, y, expressions);
  for (std::size_t k = 0; k < tried.size(); ++k) {
    const std::string function(tried[k]->name);
    double worst = 0;
    std::size_t example = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double want = wanted(function, t, value_of(t, x[i]), value_of(t, y[i]));
      const double error = ulps(t, value_of(t, results[k][i]), want);
      if (error > worst) worst = error, example = i;
    }
    // A 16-bit result is the f32 one rounded once more.
    // An f64 reference is itself rounded, to 64 digits: what lies halfway may fall either way.
    const double exact = t.bytes == 8 ? 0.5 : 0;
    const double allowed = t.bytes == 2 ? 0.501 : std::max<double>(bound(*tried[k], t), exact);
    INFO(function << " of " << t.name << ", worst for " << value_of(t, x[example]) << ", "
                  << value_of(t, y[example]) << " giving " << value_of(t, results[k][example]));
    CHECK(worst <= allowed);
  }
}

std::uint64_t bits_of(const NumberType& t, double x) {
  return t.bytes == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(x))
                      : std::bit_cast<std::uint64_t>(x);
}

}  // namespace

TEST_CASE("elementary functions stay within the table's error") {
  for (const char* name : {"f32", "f64", "f16", "bf16"}) {
    const NumberType& t = number_type(name);
    std::vector<std::uint64_t> x = patterns(t), y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(11));
    check(t, x, y);
  }
}

TEST_CASE("elementary functions stay within the table's error all over their domains") {
  for (const char* name : {"f32", "f64"}) {
    const NumberType& t = number_type(name);
    std::vector<std::uint64_t> x;
    for (const auto& [function, domain] : domains)
      for (const double number : domain.dense(400, t.bytes == 4 ? 100 : 500))
        x.push_back(bits_of(t, number));
    // The zeros of digamma and lgamma, and their neighbours.
    for (const double zero : {1.4616321449683622, 1.0, 2.0, -0.50408300826445541,
                              -2.4570247382208006, -2.7476826467274127, -10.000000275573015})
      for (int k = -50; k <= 50; ++k)
        x.push_back(bits_of(t, t.bytes == 4 ? static_cast<float>(zero) : zero) +
                    static_cast<std::uint64_t>(k));
    std::vector<std::uint64_t> y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(12));
    check(t, x, y);
  }
}

TEST_CASE("where f64 keeps no ulp, it is off by few units of a number of 16") {
  const NumberType& t = number_type("f64");
  std::vector<std::uint64_t> x;
  for (const double size : Domain{0, 1e6}.dense(4000, 20)) x.push_back(bits_of(t, -size));
  int tried = 0;
  for (const auto& [function, domain] : domains) {
    if (!domain.bounds_f64) continue;
    ++tried;
    const auto results = evaluate(t, x, x, {{"pl::" + function + "(x)", "f64"}});
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double want = unary_references.at(function)(value_of(t, x[i]));
      const long double got = value_of(t, results[0][i]);
      if (std::isnan(want) || std::isinf(want)) {
        worst = same_value(got, want) ? worst : INFINITY;
      } else {
        const int exponent = std::ilogb(std::max(std::fabs(want), 16.0L));
        worst = test::worst_of(
            worst, static_cast<double>(std::fabs(got - want) / std::ldexp(1.0L, exponent - 52)));
      }
    }
    INFO(function);
    CHECK(worst <= device::info(*device::row_named(function)).ulp_f64);
  }
  CHECK(tried >= 2);
}

TEST_CASE("fma rounds once") {
  for (const char* name : {"f32", "f64"}) {
    const NumberType& t = number_type(name);
    std::vector<std::uint64_t> x = patterns(t), y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(13));
    const auto r = evaluate(t, x, y, {{"pl::fma(x, y, x)", name}, {"pl::fma(x, y, -y)", name}});
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (t.bytes == 4) {
        const auto a = std::bit_cast<float>(static_cast<std::uint32_t>(x[i]));
        const auto b = std::bit_cast<float>(static_cast<std::uint32_t>(y[i]));
        wrong += !same_value(value_of(t, r[0][i]), std::fma(a, b, a));
        wrong += !same_value(value_of(t, r[1][i]), std::fma(a, b, -b));
      } else {
        const auto a = std::bit_cast<double>(x[i]), b = std::bit_cast<double>(y[i]);
        wrong += !same_value(value_of(t, r[0][i]), std::fma(a, b, a));
        wrong += !same_value(value_of(t, r[1][i]), std::fma(a, b, -b));
      }
    }
    CHECK(wrong == 0);
  }
  // 1/3 of a unit below 1: a product rounded first would lose it.
  const NumberType& half = number_type("f16");
  const auto r = evaluate(half, {0x3c01}, {0xbc02}, {{"pl::fma(x, x, y)", "f16"}});
  CHECK(value_of(half, r[0][0]) == 0x1p-20L);
}
