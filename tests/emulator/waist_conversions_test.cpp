#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "tests/emulator/waist_numbers.hpp"

using namespace palladium::test;

namespace {

// The value that conversion to `to` must give, by definition.
bool right(const NumberType& from, std::uint64_t x, const NumberType& to, std::uint64_t got) {
  const long double value = value_of(from, x), result = value_of(to, got);
  if (is_bool(to)) return got == (value != 0 ? 1 : 0);
  if (to.is_float) return same_value(result, rounded(to, value));
  if (!from.is_float)
    return (got & low_bits(8 * to.bytes)) == [&] {
      // Integers wrap: the low bits of the two's complement.
      const bool negative = value < 0;
      const std::uint64_t magnitude = static_cast<std::uint64_t>(negative ? -value : value);
      return (negative ? ~magnitude + 1 : magnitude) & low_bits(8 * to.bytes);
    }();
  if (std::isnan(value)) return result == 0;
  const int width = 8 * to.bytes;
  const long double top = std::ldexp(1.0L, to.is_signed ? width - 1 : width) - 1;
  const long double least = to.is_signed ? -top - 1 : 0;
  return result == std::min(std::max(std::trunc(value), least), top);
}

}  // namespace

TEST_CASE("conversions between any two types round once, saturate and keep subnormals") {
  const std::vector<NumberType> types = stored_types();
  for (const NumberType& from : types) {
    const std::vector<std::uint64_t> x = patterns(from);
    std::vector<Expression> expressions;
    for (const NumberType& to : types) {
      expressions.push_back({std::string("pl::to<") + to.name + ">(x)", to.name});
    }
    const auto results = evaluate(from, x, x, expressions);
    for (std::size_t k = 0; k < types.size(); ++k) {
      int wrong = 0;
      std::uint64_t example = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (right(from, x[i], types[k], results[k][i])) continue;
        if (wrong++ == 0) example = i;
      }
      INFO(from.name << " to " << types[k].name << ", first of bits " << std::hex << x[example]
                     << " giving " << results[k][example]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("operators of 16-bit floats round the exact result once") {
  for (const char* name : {"f16", "bf16"}) {
    const NumberType& t = number_type(name);
    const std::vector<std::uint64_t> x = patterns(t);
    std::vector<std::uint64_t> y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(3));
    const auto r = evaluate(t, x, y,
                            {{"x + y", name},
                             {"x - y", name},
                             {"x * y", name},
                             {"x / y", name},
                             {"-x", name},
                             {"x == y", "bool"},
                             {"x != y", "bool"},
                             {"x < y", "bool"},
                             {"x <= y", "bool"},
                             {"x > y", "bool"},
                             {"x >= y", "bool"},
                             {"x == x", "bool"}});
    int wrong[12] = {};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double a = value_of(t, x[i]), b = value_of(t, y[i]);
      const auto is = [&](int k, long double want) {
        wrong[k] += !same_value(value_of(t, r[k][i]), rounded(t, want));
      };
      is(0, a + b), is(1, a - b), is(2, a * b), is(3, a / b);
      wrong[4] += r[4][i] != (x[i] ^ 0x8000);
      const bool want[] = {a == b, a != b, a<b, a <= b, a> b, a >= b, !std::isnan(a)};
      for (int k = 0; k < 7; ++k) wrong[5 + k] += r[5 + k][i] != want[k];
    }
    INFO(name);
    for (int count : wrong) CHECK(count == 0);
  }
}

TEST_CASE("constants of the waist are those of their types") {
  for (const NumberType& t : number_types) {
    const std::string type = t.name, of = "<" + type + ">()";
    std::vector<Expression> e = {{"pl::min_value" + of, type}, {"pl::max_value" + of, type}};
    if (t.is_float) e.insert(e.end(), {{"pl::infinity" + of, type}, {"pl::nan" + of, type}});
    const auto r = evaluate(t, {0}, {0}, e);
    const int width = is_bool(t) ? 1 : 8 * t.bytes;
    const long double top =
        t.is_float ? INFINITY : std::ldexp(1.0L, t.is_signed ? width - 1 : width) - 1;
    INFO(type);
    CHECK(value_of(t, r[0][0]) == (t.is_float ? -top : t.is_signed ? -top - 1 : 0));
    CHECK(value_of(t, r[1][0]) == top);
    if (t.is_float) CHECK(value_of(t, r[2][0]) == INFINITY);
    if (t.is_float) CHECK(std::isnan(value_of(t, r[3][0])));
  }
}

TEST_CASE("constants of floats of 8 bits") {
  const auto r = evaluate(number_type("u8"), {0}, {0},
                          {{"pl::nan<f8e4m3>()", "f8e4m3"},
                           {"pl::nan<f8e5m2>()", "f8e5m2"},
                           {"pl::infinity<f8e5m2>()", "f8e5m2"},
                           {"pl::min_value<f8e5m2>()", "f8e5m2"}});
  CHECK(std::isnan(value_of(number_type("f8e4m3"), r[0][0])));
  CHECK(std::isnan(value_of(number_type("f8e5m2"), r[1][0])));
  CHECK(value_of(number_type("f8e5m2"), r[2][0]) == INFINITY);
  CHECK(value_of(number_type("f8e5m2"), r[3][0]) == -INFINITY);
}

TEST_CASE("pairs of 2-byte values pack into words and back") {
  const NumberType& t = number_type("u16");
  const auto r =
      evaluate(t, {0x1234}, {0xabcd},
               {{"pl::pack(x, y)", "u32"},
                {"[&] { bf16 v[2]; pl::unpack(v, 0xabcd1234u); return v[0].bits; }()", "u16"},
                {"[&] { bf16 v[2]; pl::unpack(v, 0xabcd1234u); return v[1].bits; }()", "u16"}});
  CHECK(r[0][0] == 0xabcd1234);
  CHECK(r[1][0] == 0x1234);
  CHECK(r[2][0] == 0xabcd);
}

TEST_CASE("several elements are converted as each of them is") {
  const auto r = evaluate(
      number_type("u16"), {0x1234}, {0xabcd},
      {{"[&] { i8 a[4] = {-128, -1, 0, 127}; f16 v[4]; pl::to_all<4>(v, a); return v[0]; }()",
        "f16"},
       {"[&] { u8 a[4] = {128, 255, 0, 1}; bf16 v[4]; pl::to_all<4>(v, a); return v[1]; }()",
        "bf16"},
       {"[&] { f32 a[3] = {1.5f, -2.5f, 1e9f}; i32 v[3]; pl::to_all<3>(v, a); return v[1]; }()",
        "i32"}});
  CHECK(value_of(number_type("f16"), r[0][0]) == -128);
  CHECK(value_of(number_type("bf16"), r[1][0]) == 255);
  CHECK(value_of(number_type("i32"), r[2][0]) == -2);
}

TEST_CASE("halves of bytes are converted, the lower one first, with a sign or without") {
  const auto r = evaluate(
      number_type("u16"), {0x1234}, {0xabcd},
      {{"[&] { u8 a[1] = {0x8f}; i8 v[2]; pl::to_all<2, true>(v, a); return v[0]; }()", "i8"},
       {"[&] { u8 a[1] = {0x8f}; f16 v[2]; pl::to_all<2, true>(v, a); return v[1]; }()", "f16"},
       {"[&] { u8 a[1] = {0x8f}; bf16 v[2]; pl::to_all<2, false>(v, a); return v[0]; }()",
        "bf16"}});
  CHECK(value_of(number_type("i8"), r[0][0]) == -1);
  CHECK(value_of(number_type("f16"), r[1][0]) == -8);
  CHECK(value_of(number_type("bf16"), r[2][0]) == 15);
}
