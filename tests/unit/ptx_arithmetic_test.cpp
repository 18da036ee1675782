// Arithmetic that the GPU half spells in PTX: division of floats through doubles, and the
// exponential. The library's own text is read and executed here, with approximations that are as
// wrong as the instructions may be.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cctype>
#include <cmath>
#include <initializer_list>
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
        add(std::exchange(line, ""));
      else if (c != '{' && c != '}')
        line += c == ',' ? ' ' : c;
    }
    REQUIRE(instructions_.size() > 3);
  }

  struct Input {
    const char* name;
    double value;
  };

  /// What "%0" is in the end. What an approximation gives is off by the part `error`.
  double run(std::initializer_list<Input> inputs, double error) const {
    std::vector<double> registers = numbers_;
    for (const Input& input : inputs) registers[slots_.at(input.name)] = input.value;
    for (const Instruction& i : instructions_)
      registers[i.to] =
          i.function({registers[i.from[0]], registers[i.from[1]], registers[i.from[2]], error});
    return registers[slots_.at("%0")];
  }

 private:
  /// Operands, of which an instruction looks at as many as it has.
  struct Operands {
    double x, y, z, error;
  };
  using Function = double (*)(const Operands&);
  struct Instruction {
    Function function;
    std::size_t to;
    std::array<std::size_t, 3> from;
  };

  void add(const std::string& line) {
    std::istringstream words(line);
    std::string op, word;
    words >> op;
    if (op[0] == '.') return;  // .reg
    if (!functions().contains(op)) FAIL("this test does not know " << op);
    Instruction i{functions().at(op), 0, {}};
    words >> word;
    i.to = slot(word);
    for (std::size_t n = 0; words >> word; ++n) i.from.at(n) = slot(word);
    instructions_.push_back(i);
  }

  /// Where a register or a number is kept; a register that nobody wrote is no number.
  std::size_t slot(const std::string& word) {
    const auto [at, is_new] = slots_.emplace(word, numbers_.size());
    if (is_new)
      numbers_.push_back(std::isalpha(word[0]) || word[0] == '%' ? std::nan("") : number(word));
    return at->second;
  }

  static double number(const std::string& word) {
    if (word.starts_with("0d"))
      return std::bit_cast<double>(std::stoull(word.substr(2), nullptr, 16));
    if (word.starts_with("0f"))
      return std::bit_cast<float>(
          static_cast<std::uint32_t>(std::stoul(word.substr(2), nullptr, 16)));
    return std::stod(word);
  }

  static const std::map<std::string, Function>& functions() {
    using O = const Operands&;
    static constexpr auto f = [](double x) { return static_cast<float>(x); };
    static const std::map<std::string, Function> all = {
        {"cvt.f64.f32", [](O o) { return o.x; }},
        {"cvt.rn.f32.f64", [](O o) -> double { return f(o.x); }},
        {"setp.num.f64", [](O o) -> double { return !std::isnan(o.x) && !std::isnan(o.y); }},
        {"selp.f64", [](O o) { return o.z != 0 ? o.x : o.y; }},
        {"neg.f64", [](O o) { return -o.x; }},
        {"mul.rn.f64", [](O o) { return o.x * o.y; }},
        {"fma.rn.f64", [](O o) { return std::fma(o.x, o.y, o.z); }},
        {"sub.f32", [](O o) -> double { return f(o.x) - f(o.y); }},
        {"mul.rn.f32", [](O o) -> double { return f(o.x) * f(o.y); }},
        {"fma.rn.f32", [](O o) -> double { return std::fma(f(o.x), f(o.y), f(o.z)); }},
        {"max.f32", [](O o) -> double { return std::fmax(f(o.x), f(o.y)); }},
        {"min.f32", [](O o) -> double { return std::fmin(f(o.x), f(o.y)); }},
        {"and.b64",
         [](O o) {
           return std::bit_cast<double>(std::bit_cast<std::int64_t>(o.x) &
                                        static_cast<std::int64_t>(o.y));
         }},
        {"shl.b32",
         [](O o) -> double {
           return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f(o.x))
                                       << static_cast<int>(o.y));
         }},
        {"rcp.approx.ftz.f64", [](O o) { return 1 / o.x * (1 + o.error); }},
        {"ex2.approx.ftz.f32",
         [](O o) -> double {
           const float r = f(std::exp2(o.x) * (1 + o.error));
           return std::abs(r) < std::numeric_limits<float>::min() ? 0 : r;
         }},
    };
    return all;
  }

  std::map<std::string, std::size_t> slots_;
  std::vector<double> numbers_;  // what the slots hold before
  std::vector<Instruction> instructions_;
};

float quotient(float a, float b, double error) {
  static const Ptx reciprocal("cuda/bits.cuh", "reciprocal");
  static const Ptx quotient("cuda/bits.cuh", "rounded_quotient");
  const double r = reciprocal.run({{"%1", b}}, error);
  return static_cast<float>(quotient.run({{"%1", a}, {"%2", r}}, error));
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
  return static_cast<float>(quotient.run({{"%1", a}, {"%2", r}}, 0));
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
    const int exponent = int(random() % 60);
    const float b = std::ldexp(static_cast<float>(random() % 0xffff + 1), exponent);
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
  return static_cast<float>(exponential.run({{"%1", x}}, error));
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
  return static_cast<float>(exponential.run({{"%1", c}}, error));
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
