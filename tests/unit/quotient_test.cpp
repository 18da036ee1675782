// Division of floats through doubles, as the GPU half spells it: its own PTX, read from the library
// and executed here, with a reciprocal that is as wrong as the instruction may be.
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
  /// The asm of `function` in the GPU half's bits.cuh.
  explicit Ptx(const std::string& function) {
    std::string text;
    for (const device::File& file : device::files())
      if (file.name == "cuda/bits.cuh") text = file.text;
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
    REQUIRE(lines_.size() > 6);
  }

  using Registers = std::map<std::string, double>;

  /// All registers in the end. A reciprocal is off by the part `error`.
  Registers run(Registers at, double error) const {
    bool predicate = false;
    for (std::string line : lines_) {
      for (char& c : line) c = c == ',' ? ' ' : c;
      std::istringstream words(line);
      std::string op, to;
      words >> op;
      if (op[0] == '.') continue;  // .reg
      if (op == "@p") {
        if (!predicate) continue;
        words >> op;
      }
      words >> to;
      std::vector<double> x;
      for (std::string word; words >> word;)
        x.push_back(word.starts_with("0d")
                        ? std::bit_cast<double>(std::stoull(word.substr(2), nullptr, 16))
                        : at.at(word));
      if (op == "cvt.f64.f32" || op == "neg.f64")
        at[to] = op == "neg.f64" ? -x.at(0) : x.at(0);
      else if (op == "rcp.approx.ftz.f64")
        at[to] = 1 / x.at(0) * (1 + error);
      else if (op == "mul.rn.f64")
        at[to] = x.at(0) * x.at(1);
      else if (op == "fma.rn.f64")
        at[to] = std::fma(x.at(0), x.at(1), x.at(2));
      else if (op == "setp.ne.f64")
        predicate = x.at(0) < x.at(1) || x.at(0) > x.at(1);  // not of a NaN
      else if (op == "cvt.rn.f32.f64")
        at[to] = static_cast<float>(x.at(0));
      else
        FAIL("this test does not know " + op);
    }
    return at;
  }

 private:
  std::vector<std::string> lines_;
};

float quotient(float a, float b, double error) {
  static const Ptx divisor("divisor"), quotient("quotient");
  const Ptx::Registers d = divisor.run({{"%2", b}}, error);
  return static_cast<float>(
      quotient.run({{"%1", a}, {"%2", d.at("%0")}, {"%3", d.at("%1")}}, error).at("%0"));
}

void check(float a, float b, double error) {
  const float got = quotient(a, b, error), expected = a / b;
  if (std::isnan(expected)
          ? std::isnan(got)
          : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected))
    return;
  FAIL(a << " / " << b << " gives " << got << " with a reciprocal off by " << error);
}

constexpr double errors[] = {0, 0x1p-20, -0x1p-20, 0x1.8p-21, -0x1.4p-22};

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

}  // namespace
