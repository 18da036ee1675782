// Every elementwise operation on every dtype that it takes, against arithmetic done by hand.
#include <limits>

#include "codegen/graph/builder.hpp"
#include "tests/interpreter/tensors.hpp"
#include "tests/support/waist_reference.hpp"

using namespace palladium;
using namespace palladium::test;
using graph::Op;

namespace {

constexpr DType all_dtypes[] = {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};
// What is converted and chosen, too.
constexpr DType stored_dtypes[] = {bool_, i8,  i16,  i32, i64, u8,     u16,   u32,
                                   u64,   f16, bf16, f32, f64, f8e4m3, f8e5m2};

// ---- Numbers, exactly: an x87 long double holds every value of every dtype.

using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64);

struct Format {
  int precision, lowest, highest;  // bits, exponents of the least subnormal's unit and of the top
};
Format format_of(DType dtype) {
  switch (dtype.kind()) {
  case DType::F8E4M3: return {4, -9, 8};
  case DType::F8E5M2: return {3, -16, 15};
  case DType::F16: return {11, -24, 15};
  case DType::BF16: return {8, -133, 127};
  case DType::F32: return {24, -149, 127};
  default: return {53, -1074, 1023};
  }
}

Exact ulp_of(DType dtype, Exact x) {
  const Format f = format_of(dtype);
  if (x == 0) return std::ldexp(Exact(1), f.lowest);
  return std::ldexp(Exact(1), std::max(std::ilogb(x) - f.precision + 1, f.lowest));
}

// To nearest even.
Exact rounded(DType dtype, Exact x) {
  constexpr Exact nan = std::numeric_limits<Exact>::quiet_NaN();
  if (dtype == f8e4m3 && std::isinf(x)) return nan;
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const Exact unit = ulp_of(dtype, x);
  const Exact result = std::nearbyint(x / unit) * unit;
  if (dtype == f8e4m3 && std::fabs(result) > 448) return nan;
  if (std::fabs(result) >= std::ldexp(Exact(1), format_of(dtype).highest + 1))
    return std::copysign(std::numeric_limits<Exact>::infinity(), x);
  return result == 0 ? std::copysign(Exact(0), x) : result;
}

Exact least(DType d) { return d.is_signed() ? -std::ldexp(Exact(1), d.bits() - 1) : Exact(0); }
Exact greatest(DType d) { return std::ldexp(Exact(1), d.bits() - d.is_signed()) - 1; }

Exact number(DType dtype, std::uint64_t bits) {
  if (dtype.is_float()) return graph::to_double(dtype, bits);
  if (dtype.is_signed()) return graph::to_int(dtype, bits);
  return bits;
}

// The integer's bits, wrapped to the dtype.
std::uint64_t wrapped(DType dtype, __int128 n) {
  const auto low = static_cast<std::uint64_t>(n);
  return dtype.bits() == 64 ? low : low & ((std::uint64_t(1) << dtype.bits()) - 1);
}

// A number of the dtype, exact already.
std::uint64_t bits_of(DType dtype, Exact x) {
  if (dtype.is_float()) return graph::to_bits(dtype, static_cast<double>(x));
  if (dtype.is_bool()) return x != 0;
  return wrapped(dtype, static_cast<__int128>(x));
}

std::vector<std::uint64_t> samples(DType dtype, bool few = false) {
  std::vector<std::uint64_t> result;
  if (dtype.is_bool()) return {0, 1};
  if (dtype.is_integer()) {
    for (const int x : {0, 1, 2, 3, 5, 7, 13, 31, 32, 63, 64, 100, 127})
      result.push_back(graph::to_bits(dtype, std::int64_t(x)));
    if (dtype.is_signed())
      for (const int x : {-1, -2, -3, -7, -64, -100})
        result.push_back(graph::to_bits(dtype, std::int64_t(x)));
    for (const Exact x : {least(dtype), least(dtype) + 1, greatest(dtype), greatest(dtype) - 1,
                          std::floor(greatest(dtype) / 3)})
      result.push_back(bits_of(dtype, x));
    return result;
  }
  for (const double x : {0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, 1e-3, 100.0, 65504.0, 3e38})
    result.push_back(graph::to_bits(dtype, x));
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double x : {infinity, -infinity, std::nan("")})
    result.push_back(graph::to_bits(dtype, x));
  result.push_back(1);  // the least subnormal
  if (few) return result;
  for (const double x :
       {1.5,   2.5,  -0.5, -1.5, -3.2, 5.1,   0.1,    0.7,    1.0 / 3,   3.14159265358979,
        -1e-5, 1e-7, 10.0, 42.0, 88.0, -88.0, -104.0, 1000.0, 12345.678, 1e5,
        1e10})
    result.push_back(graph::to_bits(dtype, x));
  result.push_back(3);
  return result;
}

// ---- What each operation means

struct Expected {
  std::uint64_t bits = 0;
  Exact value = 0;  // of a float
  int ulp = 0;
};

Exact elementary(Op op, Exact x, Exact y) {
  if (op == Op::Round) {
    // Ties to even, without the rounding mode.
    const Exact down = std::floor(x), rest = x - down;
    if (std::isinf(x) || rest == 0) return x;
    const Exact even = std::fmod(down, 2) == 0 ? down : down + 1;
    const Exact result = rest < 0.5L ? down : rest > 0.5L ? down + 1 : even;
    return result == 0 ? std::copysign(Exact(0), x) : result;
  }
  const std::string name = graph::info(op).name;
  const auto unary = test::unary_references.find(name);
  return unary != test::unary_references.end() ? unary->second(x)
                                               : test::binary_references.at(name)(x, y);
}

// Of floats whose result is the exact one, rounded. f64 has no wider type here: its own operations.
Exact correctly_rounded(Op op, DType dtype, Exact x, Exact y, Exact z) {
  const bool nan = std::isnan(x) || std::isnan(y);
  if (dtype == f64) {
    const auto a = static_cast<double>(x), b = static_cast<double>(y);
    switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::Fma: return std::fma(a, b, static_cast<double>(z));
    default: break;
    }
  }
  switch (op) {
  case Op::Neg: return -x;
  case Op::Abs: return std::fabs(x);
  case Op::Sign: return std::isnan(x) || x == 0 ? x : x < 0 ? -1 : 1;
  case Op::Add: return x + y;
  case Op::Sub: return x - y;
  case Op::Mul: return x * y;
  case Op::Div: return x / y;
  case Op::Rem: return std::fmod(x, y);
  case Op::Max:
    if (nan) return std::numeric_limits<Exact>::quiet_NaN();
    return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
  case Op::Min:
    if (nan) return std::numeric_limits<Exact>::quiet_NaN();
    return x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
  case Op::Fma: return x * y + z;
  default: FAIL("no reference for " << graph::info(op).name); return 0;
  }
}

std::uint64_t of_integers(Op op, DType dtype, std::uint64_t xb, std::uint64_t yb) {
  const auto value = [&](std::uint64_t b) { return static_cast<__int128>(number(dtype, b)); };
  const __int128 x = value(xb), y = value(yb);
  const int width = dtype.bits();
  const __int128 count = static_cast<__int128>(yb);  // without sign
  switch (op) {
  case Op::Neg: return wrapped(dtype, -x);
  case Op::PopulationCount: {
    int ones = 0;
    for (int i = 0; i < width; ++i) ones += static_cast<int>(xb >> i & 1);
    return static_cast<std::uint64_t>(ones);
  }
  case Op::CountLeadingZeros: {
    int zeros = 0;
    while (zeros < width && (xb >> (width - 1 - zeros) & 1) == 0) ++zeros;
    return static_cast<std::uint64_t>(zeros);
  }
  case Op::Abs: return wrapped(dtype, x < 0 ? -x : x);
  case Op::Sign: return wrapped(dtype, x < 0 ? -1 : x > 0);
  case Op::Add: return wrapped(dtype, x + y);
  case Op::Sub: return wrapped(dtype, x - y);
  case Op::Mul: return wrapped(dtype, x * y);
  case Op::Div: return wrapped(dtype, y == 0 ? -1 : x / y);
  case Op::Rem: return wrapped(dtype, y == 0 ? x : x % y);
  case Op::Max: return x > y ? xb : yb;
  case Op::Min: return x < y ? xb : yb;
  case Op::Not: return dtype.is_bool() ? !xb : wrapped(dtype, ~x);
  case Op::And: return xb & yb;
  case Op::Or: return xb | yb;
  case Op::Xor: return xb ^ yb;
  case Op::ShiftLeft: return count >= width ? 0 : wrapped(dtype, x << static_cast<int>(count));
  case Op::ShiftRight:
    return wrapped(dtype, count >= width ? (x < 0 ? -1 : 0) : x >> static_cast<int>(count));
  default: FAIL("no reference for " << graph::info(op).name); return 0;
  }
}

bool holds(Op op, Exact x, Exact y) {
  const bool unordered = std::isnan(x) || std::isnan(y);
  switch (op) {
  case Op::Eq: return !unordered && x == y;
  case Op::Ne: return unordered || x != y;
  case Op::Lt: return !unordered && x < y;
  case Op::Le: return !unordered && x <= y;
  case Op::Gt: return !unordered && x > y;
  case Op::Ge: return !unordered && x >= y;
  case Op::IsFinite: return !std::isnan(x) && !std::isinf(x);
  default: FAIL("no reference for " << graph::info(op).name); return false;
  }
}

Exact converted(DType to, Exact x) {
  if (to.is_bool()) return x != 0;
  if (to.is_float()) return rounded(to, x);
  return x;
}

// Any NaN is as good as another.
bool agree(DType dtype, std::uint64_t got, const Expected& expected) {
  if (!dtype.is_float()) return got == expected.bits;
  const Exact x = number(dtype, got), y = expected.value;
  if (std::isnan(y) || std::isnan(x)) return std::isnan(x) && std::isnan(y);
  if (expected.ulp == 0) return x == y && std::signbit(x) == std::signbit(y);
  if (std::isinf(y) || std::isinf(x)) return x == y;
  return std::fabs(x - y) <= expected.ulp * ulp_of(dtype, y);
}

// ---- Running one operation over a list of operands

Tensor evaluate(Op op, DType result, std::vector<Tensor>& operands) {
  graph::Graph g;
  g.name = "op";
  const std::int64_t n = operands[0].size();
  const graph::RegionId region = g.add_region();
  g.bodies = {{region, 1}};
  graph::Builder b(g, region);
  std::vector<graph::ValueId> refs, values;
  interpreter::Invocation call;
  const auto operand = [&](DType dtype, std::string origin) {
    refs.push_back(b.param(graph::Type::ref(dtype, {n}, Space::automatic)));
    g.mapping.block_mappings.push_back({.block_shape = {n},
                                        .index_map = no_region,
                                        .array_aval = {{n}, dtype},
                                        .origin = std::move(origin)});
  };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operand(operands[i].dtype(), "args[" + std::to_string(i) + "]");
    g.arguments.push_back({graph::Argument::Kind::input, static_cast<int>(i), operands[i].dtype()});
    call.arrays.push_back(operands[i].buffer());
    values.push_back(b.load(refs.back()));
  }
  operand(result, "outputs[0]");
  g.mapping.num_inputs = static_cast<int>(operands.size());
  g.mapping.num_outputs = 1;
  Tensor out(result, {n});
  call.arrays.push_back(out.buffer());
  b.store(refs.back(), op == Op::Cast ? b.cast(values[0], result) : b.add(op, values));
  graph::verify(g, "test");
  interpreter::run(g, call);
  return out;
}

std::vector<Tensor> columns(DType dtype, int arity) {
  const std::vector<std::uint64_t> list = samples(dtype, arity == 3);
  const auto k = static_cast<std::int64_t>(list.size());
  std::int64_t n = k;
  for (int i = 1; i < arity; ++i) n *= k;
  std::vector<Tensor> result;
  std::int64_t period = 1;
  for (int i = 0; i < arity; ++i, period *= k) {
    Tensor t(dtype, {n});
    for (std::int64_t j = 0; j < n; ++j)
      t.set_bits(j, list[static_cast<std::size_t>(j / period % k)]);
    result.push_back(std::move(t));
  }
  return result;
}

struct Row {
  Op op;
  std::string rule;
  int arity;
};

// The elementwise rows of the op table, by their type rules.
std::vector<Row> rows() {
  std::vector<Row> result;
  const auto add = [&](Op op, std::string rule, int arity) {
    for (const char* r : {"same", "bits", "integers", "floating", "predicate"})
      if (rule == r) result.push_back({op, rule, arity});
  };
#define PL_OP(Name, name, op_class, literals, min_args, max_args, rule, ...) \
  add(Op::Name, #rule, max_args);
#include "codegen/graph/ops.def"
#undef PL_OP
  return result;
}

bool takes(const Row& row, DType dtype) {
  if (row.rule == "floating" || row.op == Op::Fma || row.op == Op::IsFinite)
    return dtype.is_float();
  if (row.rule == "integers") return dtype.is_integer();
  if (row.rule == "bits") return !dtype.is_float();
  if (row.rule == "same" && dtype.is_bool()) return row.op == Op::Max || row.op == Op::Min;
  return true;
}

Expected expect(const Row& row, DType dtype, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  const Exact a = number(dtype, x), b = number(dtype, y), c = number(dtype, z);
  if (row.rule == "predicate") return {.bits = holds(row.op, a, b)};
  if (!dtype.is_float()) return {.bits = of_integers(row.op, dtype, x, y)};
  if (row.rule == "floating") {
    const int ulp = graph::info(row.op).ulp;
    // A 16-bit result is the f32 one, rounded: at most its neighbour.
    const Exact exact = elementary(row.op, a, b);
    return {.value = rounded(dtype, exact), .ulp = dtype.bytes() == 2 ? std::min(ulp, 1) : ulp};
  }
  const Exact exact = correctly_rounded(row.op, dtype, a, b, c);
  if (dtype == f64) return {.value = exact};
  // Through f32, as 16-bit floats compute.
  return {.value = rounded(dtype, rounded(f32, exact))};
}

}  // namespace

TEST_CASE("every elementwise operation means on every dtype what the op table says") {
  for (const Row& row : rows())
    for (const DType dtype : all_dtypes) {
      if (!takes(row, dtype)) continue;
      std::vector<Tensor> operands = columns(dtype, row.arity);
      const DType result = row.rule == "predicate" ? bool_ : dtype;
      const Tensor out = evaluate(row.op, result, operands);
      CAPTURE(graph::info(row.op).name, dtype.name());
      const auto operand = [&](std::size_t k, std::int64_t i) {
        return k < operands.size() ? operands[k].bits(i) : std::uint64_t(0);
      };
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const Expected e = expect(row, dtype, operand(0, i), operand(1, i), operand(2, i));
        if (agree(result, out.bits(i), e)) continue;
        CAPTURE(operands[0][i], row.arity > 1 ? operands[1][i] : 0,
                row.arity > 2 ? operands[2][i] : 0, out[i], static_cast<double>(e.value), e.bits);
        FAIL_CHECK("differs");
        break;
      }
    }
}

TEST_CASE("the interpreter keeps the ulp of elementary functions all over their domains") {
  constexpr std::uint64_t steps = 2000;
  int tried = 0;
  for (const Row& row : rows()) {
    const std::string name = graph::info(row.op).name;
    const bool one = domains.contains(name);
    if (!one && !domains.contains(name + "0")) continue;
    ++tried;
    for (const DType dtype : {f32, f64}) {
      std::vector<std::vector<double>> numbers;
      for (int i = 0; i < row.arity; ++i)
        numbers.push_back(domains.at(one ? name : name + std::to_string(i)).dense(steps, 60));
      const std::size_t n = numbers[0].size();
      std::vector<Tensor> operands;
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        const std::vector<double>& of = numbers[k];
        operands.emplace_back(dtype, std::vector{static_cast<std::int64_t>(n)},
                              [&](std::int64_t i) {
                                return of[static_cast<std::size_t>(i) * (1 + 97 * k) % of.size()];
                              });
      }
      const Tensor out = evaluate(row.op, dtype, operands);
      std::int64_t wrong = 0, example = 0;
      for (std::int64_t i = 0; i < out.size(); ++i) {
        Expected e =
            expect(row, dtype, operands[0].bits(i), row.arity > 1 ? operands[1].bits(i) : 0, 0);
        if (dtype == f64 && e.ulp == 0) e.ulp = 1;  // the reference is rounded itself, to 64 digits
        if (agree(dtype, out.bits(i), e)) continue;
        if (wrong++ == 0) example = i;
      }
      INFO(name << " of " << dtype.name() << ", the first for " << operands[0][example]
                << " giving " << out[example]);
      CHECK(wrong == 0);
    }
  }
  CHECK(tried > 25);
}

TEST_CASE("lgamma, digamma and erfc are the numbers of tables, and JAX's where there are none") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    double x, lgamma, digamma, erfc;
  };
  // 17 digits of numbers that are exact in f32.
  const std::vector<Case> cases = {
      {1.0, 0.0, -0.57721566490153286, 0.15729920705028513},
      {2.0, 0.0, 0.42278433509846714, 0.0046777349810472658},
      {0.5, 0.57236494292470009, -1.9635100260214235, 0.47950012218695346},
      {1.5, -0.12078223763524522, 0.036489973978576521, 0.033894853524689273},
      {1.4616321325302124, -0.12148629053584953, -1.2036052549106669e-8, 0.038728502027430627},
      {2.5, 0.28468287047291916, 0.70315664064524319, 0.00040695201744495894},
      {3.0, 0.69314718055994531, 0.92278433509846714, 2.2090496998585441e-5},
      {10.0, 12.80182748008147, 2.2517525890667211, 2.0884875837625448e-45},
      {19.75, 38.598862290607765, 2.9576234493788637, 1.1306070534662014e-171},
      {100.5, 361.43554046777762, 4.6051743525818452, 0.0},
      {1000.25, 5906.9472682711172, 6.9075052894144283, 0.0},
      {1048576.0, 13487767.947523311, 13.862943134361672, 0.0},
      {0.0009765625, 6.9309089024194619, -1024.5756104293406, 0.99889806756992819},
      {9.313225746154785e-10, 20.794415416260785, -1073741824.5772157, 0.99999999894911501},
      {-0.5, 1.2655121234846454, 0.036489973978576521, 1.5204998778130465},
      {-1.5, 0.86004701537648101, 0.70315664064524319, 1.9661051464753107},
      {-0.5040830373764038, 1.2654376221108694, -2.6025495502993588e-7, 1.5240806448322818},
      {-2.4570248126983643, -1.1287842529645816e-7, 1.5156027243498651, 1.9994886852414647},
      {-2.747682571411133, -1.4418167987778364e-7, -1.9143487432766416, 1.9998980107291623},
      {-3.25, -0.62315345132099865, 4.46627587235028, 1.9999956972205363},
      {-10.75, -15.403074503504817, -0.72089576016716117, 2.0},
      {-100.5, -364.90096830942735, 4.6151246013380641, 2.0},
      {-2047.3125, -13565.37970395166, 9.7236725393426462, 2.0},
      {6.0, 4.787491742782046, 1.7061176684318005, 2.1519736712498913e-17},
      {9.0, 10.60460290274525, 2.14064147795561, 4.1370317465138102e-37},
      {13.5, 21.260076156244701, 2.565195651274912, 2.9494331132579883e-81},
      {-0.25, 1.589575312551186, 2.9141391202135278, 1.2763263901682369},
      {-4.0, inf, nan, 1.9999999845827421},
      {0.0, inf, nan, 1.0},
      {-0.0, inf, nan, 1.0},
      {-1.0, inf, nan, 1.8427007929497149},
      {-2.0, inf, nan, 1.9953222650189527},
      {-170.0, inf, nan, 2.0},
      {inf, inf, inf, 0.0},
      {-inf, inf, nan, 2.0},
      {nan, nan, nan, nan},
  };
  const auto n = static_cast<std::int64_t>(cases.size());
  for (const DType t : {f16, bf16, f32, f64}) {
    const auto of = [&](auto member) {
      return Tensor(t, {n},
                    [&](std::int64_t i) { return cases[static_cast<std::size_t>(i)].*member; });
    };
    // Narrow numbers are rounded before they are operands: the exact ones alone are compared.
    Tensor x(of(&Case::x)), out[] = {Tensor(t, {n}), Tensor(t, {n}), Tensor(t, {n})};
    // Next to a zero below 0 the emulator's f64 is near the interpreter's by its distance alone.
    run(
        [](Ref x, Ref a, Ref b, Ref c) {
          a[_] = lgamma(x[_]);
          b[_] = digamma(x[_]);
          c[_] = erfc(x[_]);
        },
        {}, {&x}, {&out[0], &out[1], &out[2]}, {}, t == f64 ? On::interpreter : On::both);
    const Tensor wanted[] = {of(&Case::lgamma), of(&Case::digamma), of(&Case::erfc)};
    for (std::size_t k = 0; k < 3; ++k)
      for (std::int64_t i = 0; i < n; ++i) {
        const double at = cases[static_cast<std::size_t>(i)].x;
        if (x[i] != at && !std::isnan(at)) continue;
        const double got = out[k][i], want = wanted[k][i];
        CAPTURE(t.name(), k, at, got, want);
        if (std::isnan(want) || std::isinf(want)) {
          CHECK((std::isnan(want) ? std::isnan(got) : got == want));
        } else {
          // f64 is off by some units of 16 where it is near a zero below 0.
          const double units = t == f64 && at < 0 ? std::max(std::fabs(want), 16.0) : want;
          CHECK(std::fabs(got - want) <=
                (t.bytes() == 2 ? 1 : 8) * static_cast<double>(ulp_of(t, units)));
        }
      }
  }
}

TEST_CASE("cast converts every dtype to every dtype, rounding once [C71]") {
  for (const DType from : stored_dtypes) {
    // All values of the dtypes of at most 16 bits.
    const bool all = from.bits() <= 16 && !from.is_bool();
    const std::vector<std::uint64_t> list = samples(from);
    Tensor x(from, {all ? std::int64_t(1) << from.bits() : static_cast<std::int64_t>(list.size())});
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.set_bits(i, all ? static_cast<std::uint64_t>(i) : list[static_cast<std::size_t>(i)]);
    for (const DType to : stored_dtypes) {
      if (to == from) continue;
      std::vector<Tensor> operands{x};
      const Tensor out = evaluate(Op::Cast, to, operands);
      CAPTURE(from.name(), to.name());
      for (std::int64_t i = 0; i < x.size(); ++i) {
        Exact exact = number(from, x.bits(i));
        Expected e;
        if (to.is_float()) {
          e.value = converted(to, exact);
        } else if (to.is_bool()) {
          e.bits = exact != 0;
        } else if (from.is_float()) {
          if (std::isnan(exact)) exact = 0;
          e.bits = bits_of(to, std::trunc(std::min(std::max(exact, least(to)), greatest(to))));
        } else {
          e.bits = bits_of(to, exact);
        }
        if (agree(to, out.bits(i), e)) continue;
        CAPTURE(x[i], out[i], static_cast<double>(e.value), e.bits);
        FAIL_CHECK("differs");
        break;
      }
    }
  }
}

TEST_CASE("a conversion to a 16-bit float rounds 64-bit integers once") {
  // Between two bf16 numbers, a hair above the middle: f64 or f32 on the way would lose the hair.
  const std::uint64_t middle = (std::uint64_t(1) << 63) + (std::uint64_t(1) << 55);
  Tensor x(u64, {2});
  x.set_bits(0, middle);
  x.set_bits(1, middle + 1);
  std::vector<Tensor> operands{x};
  const Tensor out = evaluate(Op::Cast, bf16, operands);
  CHECK(out[0] == std::ldexp(1.0, 63));
  CHECK(out[1] == std::ldexp(1 + 1 / 128.0, 63));
}

TEST_CASE("select takes y where x holds, for every dtype [C63]") {
  for (const DType dtype : stored_dtypes) {
    Tensor c(bool_, {4}, {1, 0, 0, 1}), x = full(dtype, {4}, 1), y = full(dtype, {4}, 0);
    std::vector<Tensor> operands{c, x, y};
    CHECK(evaluate(Op::Select, dtype, operands).numbers() == std::vector<double>{1, 0, 0, 1});
  }
}

TEST_CASE("comparison of integers minds their sign [C57]") {
  for (const DType dtype : {i32, u32}) {
    Tensor x(dtype, {8}), y(dtype, {8});
    const int xs[] = {0, 3, -4, -6, 0, 5, 4, -7}, ys[] = {3, 1, -4, -5, 0, -2, 2, 4};
    for (int i = 0; i < 8; ++i) {
      x.set_bits(i, static_cast<std::uint32_t>(xs[i]));
      y.set_bits(i, static_cast<std::uint32_t>(ys[i]));
    }
    std::vector<Tensor> operands{x, y};
    CHECK(evaluate(Op::Lt, bool_, operands).numbers() ==
          (dtype == i32 ? std::vector<double>{1, 0, 0, 1, 0, 0, 0, 1}
                        : std::vector<double>{1, 0, 0, 1, 0, 1, 0, 0}));
  }
}

TEST_CASE("comparisons with infinities and NaN are those of IEEE [C62]") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double xs[] = {infinity, -infinity, nan, nan, infinity, 1, -infinity},
               ys[] = {infinity, infinity, nan, 1, nan, -infinity, 0};
  for (const DType dtype : {f16, bf16, f32, f64}) {
    Tensor x(dtype, {7}), y(dtype, {7});
    for (int i = 0; i < 7; ++i) {
      x.set(i, xs[i]);
      y.set(i, ys[i]);
    }
    std::vector<Tensor> operands{x, y};
    const auto compared = [&](Op op) { return evaluate(op, bool_, operands).numbers(); };
    CHECK(compared(Op::Eq) == std::vector<double>{1, 0, 0, 0, 0, 0, 0});
    CHECK(compared(Op::Ne) == std::vector<double>{0, 1, 1, 1, 1, 1, 1});
    CHECK(compared(Op::Lt) == std::vector<double>{0, 1, 0, 0, 0, 0, 1});
    CHECK(compared(Op::Le) == std::vector<double>{1, 1, 0, 0, 0, 0, 1});
    CHECK(compared(Op::Gt) == std::vector<double>{0, 0, 0, 0, 0, 1, 0});
    CHECK(compared(Op::Ge) == std::vector<double>{1, 0, 0, 0, 0, 1, 0});
  }
}

TEST_CASE("shifts of i32 [C59]") {
  Tensor x(i32, {8}, {0, 3, -4, -6, 0, 5, 4, -7}), s(i32, {8}, {3, 1, 4, 5, 2, 2, 2, 4});
  std::vector<Tensor> operands{x, s};
  CHECK(evaluate(Op::ShiftLeft, i32, operands).numbers() ==
        std::vector<double>{0, 6, -64, -192, 0, 20, 16, -112});
  CHECK(evaluate(Op::ShiftRight, i32, operands).numbers() ==
        std::vector<double>{0, 1, -1, -1, 0, 1, 1, -1});
}

TEST_CASE("sign keeps minus zero and NaN [C61]") {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor x(f32, {6}, {-3.2, -0.0, 0.0, 5.1, infinity, -infinity});
  std::vector<Tensor> operands{x};
  const Tensor s = evaluate(Op::Sign, f32, operands);
  CHECK(s.numbers() == std::vector<double>{-1, 0, 0, 1, 1, -1});
  CHECK(std::signbit(s[1]));
  CHECK_FALSE(std::signbit(s[2]));
}

TEST_CASE("a product under an addition is one rounding, unless the kernel says otherwise") {
  // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: the last bit is seen only without a rounding between.
  const float a = 1 + std::ldexp(1.0f, -12);
  for (const bool fma : {true, false}) {
    Tensor x = full(f32, {8}, a), o(f32, {8});
    PallasCallOptions options;
    options.compiler_params.fma = fma;
    run([=](Ref x, Ref o) { o[_] = x[_] * x[_] - (1 + std::ldexp(1.0f, -11)); }, options, {&x},
        {&o});
    CHECK(o[0] == (fma ? std::ldexp(1.0, -24) : 0.0));
  }
}

TEST_CASE("iota counts along any dimension [C65]") {
  struct Case {
    graph::Extents shape;
    int dimension;
  };
  const Case cases[] = {{{32}, 0},       {{8, 4}, 0},     {{8, 4}, 1},
                        {{8, 16, 2}, 0}, {{8, 16, 2}, 1}, {{8, 16, 2}, 2}};
  for (const DType dtype : {f32, f16, bf16, f64, i32, i16, i8, u64, f8e4m3})
    for (const Case& c : cases) {
      if (dtype == f8e4m3 && c.shape[0] > 16) continue;  // it has no 17
      Tensor o(dtype, c.shape);
      const Shape shape = shape_of(o);
      run([=](Ref o) { o[_] = iota(dtype, shape, c.dimension); }, {}, {}, {&o});
      std::int64_t inner = 1;
      for (std::size_t d = static_cast<std::size_t>(c.dimension) + 1; d < c.shape.size(); ++d)
        inner *= c.shape[d];
      for (std::int64_t i = 0; i < o.size(); ++i)
        REQUIRE(o[i] == i / inner % c.shape[static_cast<std::size_t>(c.dimension)]);
    }
}
