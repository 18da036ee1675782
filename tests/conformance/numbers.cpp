// Checks of what acts on single numbers, over all element types.
#include <algorithm>
#include <map>
#include <random>

#include "codegen/base/format.hpp"
#include "codegen/device/waist.hpp"
#include "tests/conformance/case.hpp"
#include "tests/emulator/waist_numbers.hpp"
#include "tests/support/waist_reference.hpp"

namespace palladium::conformance {
namespace {

using test::number_type;
using test::NumberType;

const std::vector<std::string> floats = {"f16", "bf16", "f32", "f64"};
const std::vector<std::string> integers_ = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
const std::vector<std::string> sizes = {"bool", "i8", "bf16", "f32", "u64"};

std::vector<std::string> numbers() {
  std::vector<std::string> all = floats;
  all.insert(all.end(), integers_.begin(), integers_.end());
  return all;
}
std::vector<std::string> types() {
  std::vector<std::string> all = numbers();
  all.push_back("bool");
  return all;
}

/// An expression of x and y, both of type `in`.
struct Expression {
  std::string in, out, text;
  Agreement agreement = Agreement::bits;
  double bound = 0;
  std::string label = {};
  // Of the values of x and y; empty unless the agreement is ulp.
  std::function<long double(long double, long double)> reference = {};
};

constexpr int blocks = 4, step = 128 * blocks;

/// Pairs of operands, which many kernels share.
struct Inputs {
  std::vector<std::uint64_t> x, y;
};

/// Every pattern of two-byte types, corners and random bits of wider ones; whole warps of them.
const Inputs& inputs(const std::string& type, std::size_t most) {
  static std::map<std::pair<std::string, std::size_t>, Inputs> made;
  Inputs& in = made[{type, most}];
  if (!in.x.empty()) return in;
  const NumberType& t = number_type(type);
  in.x = test::patterns(t);
  if (in.x.size() > most) {
    // The corners stand in front; of types of two bytes every pattern counts the same.
    const std::size_t corners = t.bytes == 2 ? 0 : most / 2;
    std::shuffle(in.x.begin() + static_cast<std::ptrdiff_t>(corners), in.x.end(), std::mt19937(7));
    in.x.resize(most);
  }
  for (std::size_t i = 0; in.x.size() % step != 0; ++i) in.x.push_back(in.x[i]);
  in.y = in.x;
  std::shuffle(in.y.begin(), in.y.end(), std::mt19937(11));
  return in;
}

/// A kernel that evaluates the expressions on patterns of their types, `most` of each.
Case elementwise(const std::string& name, const std::vector<Expression>& expressions,
                 std::size_t most = 1 << 16) {
  std::vector<std::string> used;
  for (const Expression& e : expressions)
    if (std::ranges::count(used, e.in) == 0) used.push_back(e.in);
  Case c;
  std::string parameters, body = "  const i32 first = 128 * pl::block_x() + i32(pl::thread());\n";
  for (const std::string& in : used) {
    const NumberType& t = number_type(in);
    const auto& [x, y] = inputs(in, most);
    c.input(in, test::memory_of(t, x)).input(in, test::memory_of(t, y));
    c.word(static_cast<std::int64_t>(x.size()));
    parameters += replaced("const $* x_$, const $* y_$, i32 n_$, ", '$', in);
    body += replaced("  PL_NOUNROLL for (i32 i = first; i < n_$; i += " + std::to_string(step) +
                         ") {\n    $ x, y;\n    pl::load_global(&x, x_$ + i);\n"
                         "    pl::load_global(&y, y_$ + i);\n",
                     '$', in);
    for (std::size_t k = 0; k < expressions.size(); ++k) {
      const Expression& e = expressions[k];
      if (e.in != in) continue;
      const std::string o = "o" + std::to_string(k);
      parameters += e.out + "* " + o + ", ";
      body +=
          "    { const " + e.out + " r = " + e.text + "; pl::store_global(" + o + " + i, &r); }\n";
      c.output(e.out, x.size());
      Array& array = c.arrays.back();
      array.agreement = e.agreement;
      array.bound = e.bound;
      array.label = e.label;
      if (e.reference) {
        array.reference = [f = e.reference, &x = x, &y = y, &t](std::size_t i) {
          return f(test::value_of(t, x[i]), test::value_of(t, y[i]));
        };
      }
    }
    body += "  }";
    if (in != used.back()) body += "\n";
  }
  parameters.resize(parameters.size() - 2);
  const Case text = kernel(name, parameters, body);
  c.name = text.name;
  c.text = text.text;
  c.grid = {blocks, 1, 1};
  return c;
}

/// The same expression of each type.
std::vector<Expression> over(const std::vector<std::string>& of, const std::string& text,
                             const std::string& out = "") {
  std::vector<Expression> all;
  for (const std::string& t : of) all.push_back({t, out.empty() ? t : out, replaced(text, '$', t)});
  return all;
}

void add_values(std::vector<Case>& all) {
  constexpr std::size_t few = 4096;
  const auto add = [&](const std::string& name, const std::vector<Expression>& expressions,
                       std::size_t most) { all.push_back(elementwise(name, expressions, most)); };
  for (const char* n : {"shuffle_xor", "shuffle_idx", "shuffle_up", "shuffle_down"}) {
    std::vector<Expression> e;
    for (const char* operand : {"1", "5", "31"}) {
      const auto more = over(sizes, "pl::" + std::string(n) + "(x, " + operand + ")");
      e.insert(e.end(), more.begin(), more.end());
    }
    add("warp/" + std::string(n), e, 512);
  }
  add("warp/votes",
      {{"u32", "bool", "pl::vote_any(x % 32 == 3)"},
       {"u32", "bool", "pl::vote_all(x % 32 != 3)"},
       {"u32", "u32", "pl::vote_ballot(x > y)"}},
      few);
  for (const char* n : {"min_value", "max_value", "out_of_bounds"})
    add("types/" + std::string(n), over(types(), "pl::" + std::string(n) + "<$>()"), 512);
  for (const char* n : {"infinity", "nan"})
    add("types/" + std::string(n), over(floats, "pl::" + std::string(n) + "<$>()"), 512);
  add("types/bitcast",
      {{"f16", "u16", "pl::bitcast<u16>(x)"},
       {"bf16", "u16", "pl::bitcast<u16>(x)"},
       {"f32", "u32", "pl::bitcast<u32>(x)"},
       {"f64", "u64", "pl::bitcast<u64>(x)"},
       {"u64", "f64", "pl::bitcast<f64>(x)"},
       {"i32", "f32", "pl::bitcast<f32>(x)"}},
      few);
  add("convert/pack",
      {{"f16", "u32", "pl::pack(x, y)"},
       {"bf16", "u32", "pl::pack(x, y)"},
       {"i16", "u32", "pl::pack(x, y)"},
       {"u16", "u32", "pl::pack(x, y)"}},
      few);
  add("convert/pack_bytes",
      {{"u8", "u32", "[&] { const u8 v[4] = {x, y, x, x}; return pl::pack_bytes(v); }()"},
       {"i8", "u32", "[&] { const i8 v[4] = {y, x, y, y}; return pl::pack_bytes(v); }()"}},
      few);
  add("convert/unpack",
      {{"u32", "f16", "[&] { f16 h[2]; pl::unpack(h, x); return y % 2 ? h[1] : h[0]; }()"},
       {"u32", "u16", "[&] { u16 h[2]; pl::unpack(h, x); return y % 2 ? h[1] : h[0]; }()"}},
      few);
  std::vector<Expression> together;
  for (const auto& [in, out] : {std::pair("i8", "f16"),
                                {"i8", "bf16"},
                                {"u8", "f16"},
                                {"u8", "bf16"},
                                {"bf16", "f32"},
                                {"i8", "f32"},
                                {"u8", "f32"},
                                {"f8e4m3", "f16"},
                                {"f8e4m3", "bf16"},
                                {"f8e4m3", "f32"},
                                {"f8e5m2", "f16"},
                                {"f8e5m2", "bf16"},
                                {"f8e5m2", "f32"},
                                {"f32", "i8"},
                                {"f32", "u8"},
                                {"f32", "i16"},
                                {"f32", "f8e4m3"},
                                {"f32", "f8e5m2"}})
    for (const char* which : {"0", "1", "2", "3"})
      together.push_back({in, out,
                          fmt::format("[&] {{ {} a[4] = {{x, y, y, x}}; {} h[4]; "
                                      "pl::to_all<4>(h, a); return h[{}]; }}()",
                                      in, out, which)});
  for (const char* out : {"i8", "u8", "f8e4m3", "f8e5m2"})
    for (const char* which : {"0", "1", "5"})
      together.push_back({"f32", out,
                          fmt::format("[&] {{ f32 a[6] = {{x, y, y, x, x, y}}; {} h[6]; "
                                      "pl::to_all<6>(h, a); return h[{}]; }}()",
                                      out, which)});
  for (const char* out : {"f16", "bf16", "f32", "i8"})
    for (const char* sign : {"true", "false"})
      for (const char* which : {"0", "1", "4", "7"})
        together.push_back({"u8", out,
                            fmt::format("[&] {{ u8 a[4] = {{x, y, y, x}}; {} h[8]; "
                                        "pl::to_all<8, {}>(h, a); return h[{}]; }}()",
                                        out, sign, which)});
  add("convert/to_all", together, few);
  std::vector<std::string> stored = types();
  stored.insert(stored.end(), {"f8e4m3", "f8e5m2"});
  for (const std::string& in : stored) {
    std::vector<Expression> e;
    for (const std::string& out : stored) e.push_back({in, out, "pl::to<" + out + ">(x)"});
    all.push_back(elementwise("convert/to from " + in, e, 1 << 14));
  }
}

void add_arithmetic(std::vector<Case>& all) {
  const auto add = [&](const std::string& n, const std::vector<std::string>& of,
                       const std::string& arguments, const std::string& out = "") {
    all.push_back(elementwise("arithmetic/" + n, over(of, "pl::" + n + arguments, out), 1 << 13));
  };
  for (const char* n : {"add", "sub", "mul", "div", "rem", "min", "max"})
    add(n, numbers(), "(x, y)");
  for (const char* n : {"add", "sub", "mul", "min", "max"}) {
    // Of vectors, the first number for all of one operand, of an odd length, in place.
    std::vector<Expression> together;
    for (const char* t : {"f16", "bf16", "f32"})
      for (const char* call :
           {"_all<4>(h, a, a + 1)", "_all<4, 1, 0>(h, a, a + 1)", "_all<4, 0, 1>(h, a, a + 1)",
            "_all<3>(h, a, a + 1)", "_all<4>(h, h, a)"})
        for (const char* which : {"0", "1", "2"})
          together.push_back(
              {t, t,
               fmt::format("[&] {{ {} a[5] = {{x, y, x, y, y}}, h[4] = {{y, x, x, y}}; "
                           "pl::{}{}; return h[{}]; }}()",
                           t, n, call, which)});
    all.push_back(elementwise("arithmetic/" + std::string(n) + "_all", together, 1 << 13));
  }
  for (const char* n : {"neg", "abs", "sign"}) add(n, numbers(), "(x)");
  for (const char* n : {"shift_left", "shift_right", "shift_right_logical"}) {
    add(n, integers_, "(x, y)");
    // Random amounts are nearly always beyond the width.
    all.push_back(elementwise("arithmetic/" + std::string(n) + " by less than the width",
                              over(integers_, "pl::" + std::string(n) + "(x, $(y & 15))"), 4096));
  }
  add("mul_wide", {"i32"}, "(x, y)", "i64");
  for (const char* n : {"popcount", "clz"}) add(n, integers_, "(x)");
  for (const char* n : {"is_nan", "is_finite"}) add(n, floats, "(x)", "bool");
  all.push_back(elementwise(
      "arithmetic/operators of 16-bit floats",
      [] {
        std::vector<Expression> e;
        for (const char* t : {"f16", "bf16"}) {
          for (const char* op : {"x + y", "x - y", "x * y", "x / y", "-x"}) e.push_back({t, t, op});
          for (const char* op : {"x == y", "x != y", "x < y", "x <= y", "x > y", "x >= y"})
            e.push_back({t, "bool", op});
        }
        return e;
      }(),
      1 << 14));
}

void add_functions(std::vector<Case>& all) {
  for (const device::RowInfo& f : device::rows()) {
    if (f.ulp_f32 < 0) continue;
    const std::string name(f.name), call = "pl::" + name;
    std::vector<Expression> e;
    for (const std::string& t : floats) {
      const bool wide = t == "f64", narrow = number_type(t).bytes == 2;
      if (f.ulp_f64 < 0 && t != "f32") continue;
      const int bound = wide ? f.ulp_f64 : f.ulp_f32;
      const std::string label = name + " of " + t;
      if (name == "fma") {
        e.push_back({t, t, call + "(x, y, x)", Agreement::bits, 0, label});
        continue;
      }
      const auto one = test::unary_references.find(name);
      const bool is_unary = one != test::unary_references.end();
      const bool bounded = wide && test::bounds_f64(name);
      // Results below the least normal number may be 0, which the sweep knows.
      const bool flushes = name == "exp2_approx";
      const std::string operand = bounded   ? test::domains.at(name).nearest("x")
                                  : flushes ? "pl::max(x, -126.0f)"
                                            : "x";
      const std::string operands = is_unary ? "(" + operand + ")" : "(x, y)";
      Expression x = {t, t, call + operands, Agreement::bits, 0, label, {}};
      if (bound > 0) {
        x.agreement = Agreement::ulp;
        // A 16-bit result is the f32 one rounded once more.
        x.bound = narrow ? 0.501 : bound;
        if (bounded) {
          x.reference = [g = one->second, &d = test::domains.at(name)](long double a, long double) {
            return g(d.nearest(a));
          };
        } else if (flushes) {
          x.reference = [g = one->second](long double a, long double) {
            return g(std::max(a, -126.0L));
          };
        } else if (is_unary) {
          x.reference = [g = one->second](long double a, long double) { return g(a); };
        } else {
          x.reference = test::binary_references.at(name);
        }
      }
      e.push_back(x);
    }
    all.push_back(elementwise("math/" + name, e, 1 << 13));
  }
}

}  // namespace

void add_numbers(std::vector<Case>& all) {
  add_values(all);
  add_arithmetic(all);
  add_functions(all);
}

}  // namespace palladium::conformance
