// Arithmetic that the GPU half spells in PTX: division of floats through doubles, and the
// exponential. The library's own text is read and executed here, with approximations that are as
// wrong as the instructions may be.
#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "codegen/device/library.hpp"

namespace {

using namespace palladium;

/// The instructions of one asm statement, which handles a few and knows no memory.
class Ptx {
 public:
  /// The asm of `function` in that file of the GPU half.
  Ptx(const std::string& file_name, const std::string& function) {
    std::string text;
    for (const device::File& file : device::files())
      if (file.name == file_name) text = file.text;
    const std::size_t at = text.find("asm(", text.find(" " + function + "(f32"));
    const std::size_t end = text.find("\n      :", at);
    REQUIRE(end != text.npos);
    std::string code;
    for (std::size_t i = text.find('"', at); i < end; i = text.find('"', i + 1)) {
      const std::size_t last = text.find('"', i + 1);
      code += text.substr(i + 1, last - i - 1);
      i = last;
    }
    std::string line;
    for (std::size_t i = 0; i < code.size(); ++i) {
      const char c = code[i];
      if (c == '\\')
        ++i;  // of \n and \t
      else if (c == ';')
        lines_.push_back(std::exchange(line, ""));
      else if (c != '{' && c != '}')
        line += c;
    }
    REQUIRE(lines_.size() > 4);
  }

  using Registers = std::map<std::string, double>;

  /// All registers in the end. What an approximation gives is off by the part `error`.
  Registers run(Registers at, double error) const {
    bool predicate = false;
    for (std::string line : lines_) {
      for (char& c : line) c = c == ',' ? ' ' : c;
      std::istringstream words(line);
      std::string op, to;
      words >> op >> to;
      if (op[0] == '.') continue;  // .reg
      std::vector<double> x;
      for (std::string word; words >> word;)
        x.push_back(word == "p" ? predicate : at.contains(word) ? at.at(word) : number(word));
      if (op == "setp.num.f64")
        predicate = !std::isnan(x.at(0)) && !std::isnan(x.at(1));
      else
        at[to] = result_of(op, x, error);
    }
    return at;
  }

 private:
  static double number(const std::string& word) {
    if (word.starts_with("0d"))
      return std::bit_cast<double>(std::stoull(word.substr(2), nullptr, 16));
    if (word.starts_with("0f"))
      return std::bit_cast<float>(
          static_cast<std::uint32_t>(std::stoul(word.substr(2), nullptr, 16)));
    return std::stod(word);
  }

  static double result_of(const std::string& op, const std::vector<double>& x, double error) {
    const auto f = [&](std::size_t i) { return static_cast<float>(x.at(i)); };
    if (op == "cvt.f64.f32") return x.at(0);
    if (op == "cvt.rn.f32.f64") return f(0);
    if (op == "neg.f64") return -x.at(0);
    if (op == "mul.rn.f64") return x.at(0) * x.at(1);
    if (op == "fma.rn.f64") return std::fma(x.at(0), x.at(1), x.at(2));
    if (op == "selp.f64") return x.at(2) != 0 ? x.at(0) : x.at(1);
    if (op == "sub.f32") return f(0) - f(1);
    if (op == "mul.rn.f32") return f(0) * f(1);
    if (op == "fma.rn.f32") return std::fma(f(0), f(1), f(2));
    if (op == "max.f32") return std::fmax(f(0), f(1));
    if (op == "min.f32") return std::fmin(f(0), f(1));
    if (op == "and.b64")
      return std::bit_cast<double>(std::bit_cast<std::int64_t>(x.at(0)) &
                                   static_cast<std::int64_t>(x.at(1)));
    if (op == "shl.b32")
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f(0)) << static_cast<int>(x.at(1)));
    if (op == "rcp.approx.ftz.f64") return 1 / x.at(0) * (1 + error);
    if (op == "ex2.approx.ftz.f32") {
      const auto r = static_cast<float>(std::exp2(x.at(0)) * (1 + error));
      return std::abs(r) < std::numeric_limits<float>::min() ? 0 : r;
    }
    FAIL("this test does not know " + op);
    return 0;
  }

  std::vector<std::string> lines_;
};

float quotient(float a, float b, double error) {
  static const Ptx reciprocal("cuda/bits.cuh", "reciprocal");
  static const Ptx quotient("cuda/bits.cuh", "rounded_quotient");
  const double r = reciprocal.run({{"%1", b}}, error).at("%0");
  return static_cast<float>(quotient.run({{"%1", a}, {"%2", r}}, error).at("%0"));
}

void check(float a, float b, double error) {
  const float got = quotient(a, b, error), expected = a / b;
  if (std::isnan(expected)
          ? std::isnan(got)
          : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected))
    return;
  FAIL(a << " / " << b << " gives " << got << " with a reciprocal off by " << error);
}

/// By a constant, whose reciprocal the compiler knows.
float quotient_by(float a, float b) {
  static const Ptx quotient("cuda/bits.cuh", "rounded_quotient");
  const double r = 1 / static_cast<double>(b) * (1 + 0x1p-51);
  return static_cast<float>(quotient.run({{"%1", a}, {"%2", r}}, 0).at("%0"));
}

/// The instruction looks at 20 bits of its operand and gives as many.
constexpr double errors[] = {0, 0x1p-19, -0x1p-19, 0x1.8p-20, -0x1.4p-21};

TEST_CASE("a quotient through doubles is that of IEEE for special operands") {
  using Limits = std::numeric_limits<float>;
  const float special[] = {0.0f,
                           1.0f,
                           2.0f,
                           3.0f,
                           6.0f,
                           9.0f,
                           0.1f,
                           Limits::min(),
                           Limits::denorm_min(),
                           3 * Limits::denorm_min(),
                           9 * Limits::denorm_min(),
                           0x1.fffffcp-127f,
                           Limits::max(),
                           0x1.fffffcp127f,
                           0x1p127f,
                           0x1.000002p0f,
                           0x1.fffffep0f,
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  for (const double error : errors)
    for (const float a : special)
      for (const float b : special)
        for (const float sign : {1.0f, -1.0f}) {
          check(sign * a, b, error);
          check(a, sign * b, error);
        }
}

TEST_CASE("a quotient through doubles is that of IEEE for random operands") {
  std::mt19937 random(7);
  for (int i = 0; i < 10'000; ++i) {
    const float a = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const float b = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    check(a, b, errors[i % 5]);
  }
}

TEST_CASE("a quotient through doubles rounds ties of subnormal results to even") {
  std::mt19937 random(8);
  for (int i = 0; i < 6'000; ++i) {
    // (2k + 1) / 2 smallest floats, or that off by the least that a numerator can be.
    const float b = std::ldexp(static_cast<float>(random() % 0xffff + 1), int(random() % 60));
    const float half = static_cast<float>(2 * (random() % 127) + 1);
    const float a = std::ldexp(half * b, -150);
    check(a, b, errors[i % 5]);
    check(std::nextafter(a, 1.0f), b, errors[i % 5]);
    check(std::nextafter(a, 0.0f), b, errors[i % 5]);
  }
}

TEST_CASE("a quotient by a constant is that of IEEE") {
  std::mt19937 random(11);
  const auto bits = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
  for (int i = 0; i < 30'000; ++i) {
    float a = bits(), b = bits();
    if (i % 3 == 0) b = static_cast<float>(random() % 0xffff + 1);
    if (i % 6 == 0) a = std::ldexp(static_cast<float>(2 * (random() % 127) + 1) * b, -150);
    if (!std::isfinite(b) || b == 0) continue;
    const float got = quotient_by(a, b), expected = a / b;
    if (std::isnan(expected)
            ? !std::isnan(got)
            : std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected))
      FAIL(a << " / " << b << " gives " << got);
  }
}

float exponential(float x, double error) {
  static const Ptx exponential("cuda/math.cuh", "exp");
  return static_cast<float>(exponential.run({{"%1", x}}, error).at("%0"));
}

/// How far it is from e to the x, in places of the last bit of a float.
double ulps_of_exponential(float x, double error) {
  const double expected = std::exp(static_cast<double>(x));
  const int exponent = std::max(std::ilogb(expected), -126);
  return std::abs(exponential(x, error) - expected) / std::ldexp(1.0, exponent - 23);
}

TEST_CASE("the exponential is off by its instruction's error and a bit of rounding") {
  std::mt19937 random(9);
  std::uniform_real_distribution<float> range(-103.9f, 88.72f), little(-1, 1);
  for (int i = 0; i < 20'000; ++i) {
    const float x = i % 4 == 0 ? little(random) : range(random);
    INFO(x);
    // A part of 2^-23 is one to two last places.
    for (const double error : {0.0, 0x1p-23, -0x1p-23}) {
      const double ulps = ulps_of_exponential(x, error);
      if (ulps > 0.95 + std::abs(error) * 0x1p24) FAIL(ulps << " ulp");
    }
  }
}

TEST_CASE("the exponential is right for special operands") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(exponential(0.0f, 0) == 1);
  CHECK(exponential(-0.0f, 0) == 1);
  CHECK(exponential(infinity, 0) == infinity);
  CHECK(exponential(-infinity, 0) == 0);
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN(), 0)));
  CHECK(exponential(88.73f, 0) == infinity);
  CHECK(std::isfinite(exponential(88.72f, 0)));
  CHECK(exponential(3e38f, 0) == infinity);
  CHECK(exponential(-3e38f, 0) == 0);
  CHECK(exponential(-103.9f, 0) == std::numeric_limits<float>::denorm_min());
  CHECK(exponential(-104.0f, 0) == 0);
  CHECK(exponential(1e-40f, 0) == 1);
}

float exponential_of_nonpositive(float x, double error) {
  static const Ptx exponential("cuda/math.cuh", "exp_nonpositive");
  const float c = x < -200 ? -200 : x;  // in an instruction of its own
  return static_cast<float>(exponential.run({{"%1", c}}, error).at("%0"));
}

TEST_CASE("the exponential of what is not above 0 keeps its error") {
  std::mt19937 random(10);
  std::uniform_real_distribution<float> range(-87.33f, 0), little(-1, 0);
  for (int i = 0; i < 20'000; ++i) {
    const float x = i % 4 == 0 ? little(random) : range(random);
    INFO(x);
    const double expected = std::exp(static_cast<double>(x));
    for (const double error : {0.0, 0x1p-23, -0x1p-23}) {
      const double ulps = std::abs(exponential_of_nonpositive(x, error) - expected) /
                          std::ldexp(1.0, std::ilogb(expected) - 23);
      if (ulps > 1.01 + std::abs(error) * 0x1p24) FAIL(ulps << " ulp");
    }
  }
}

TEST_CASE("the exponential of what is not above 0 is right for special operands") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(exponential_of_nonpositive(0.0f, 0) == 1);
  CHECK(exponential_of_nonpositive(-0.0f, 0) == 1);
  CHECK(exponential_of_nonpositive(-1e-40f, 0) == 1);
  CHECK(exponential_of_nonpositive(-infinity, 0) == 0);
  CHECK(exponential_of_nonpositive(-3e38f, 0) == 0);
  CHECK(exponential_of_nonpositive(-88.0f, 0) == 0);
  CHECK(std::isnan(exponential_of_nonpositive(std::numeric_limits<float>::quiet_NaN(), 0)));
}

}  // namespace
