// Every elementwise operation and every cast, for every dtype, on emulator and interpreter.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/waist_reference.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

const std::vector<DType> all_dtypes = {bool_, i8,  i16, i32,  i64, u8, u16,
                                       u32,   u64, f16, bf16, f32, f64};
// What is stored and converted, too.
const std::vector<DType> stored_dtypes = [] {
  std::vector<DType> all = all_dtypes;
  all.insert(all.end(), {f8e4m3, f8e5m2});
  return all;
}();
constexpr std::int64_t size = 1003;

using Operation = std::function<Value(Value, Value, Value)>;

// Inputs x, y, z of one dtype; output i is operation i of them.
graph::Graph operations_graph(DType t, DType out, const std::vector<Operation>& operations) {
  std::vector<ShapeDtype> types(operations.size(), ShapeDtype{{size}, out});
  const Body body = [&](Refs r) {
    const Value x = r[0][_], y = r[1][_], z = r[2][_];
    for (std::size_t i = 0; i < operations.size(); ++i)
      r[static_cast<int>(3 + i)][_] = operations[i](x, y, z);
  };
  return traced(body, {.name = "operations", .out_type = OutType(types)},
                {array({size}, t), array({size}, t), array({size}, t)});
}

// Zeros of both signs, the ends of the range, what is not a number.
std::vector<std::uint64_t> corners(DType t) {
  constexpr double most = std::numeric_limits<double>::infinity();
  if (t.is_bool()) return {0, 1};
  std::vector<std::uint64_t> bits;
  if (!t.is_float()) {
    for (const std::int64_t x : {0, 1, 2, 3, 7, 8, 31, 32, 63, 64, -1, -2, -8})
      bits.push_back(graph::to_bits(t, x));
    for (const double x : {most, -most}) bits.push_back(graph::to_bits(t, x));
    return bits;
  }
  for (const double x : {0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e30, most, -most,
                         std::numeric_limits<double>::quiet_NaN()})
    bits.push_back(graph::to_bits(t, x));
  // The least subnormal number, the greatest finite one, and the neighbours of 1.
  const std::uint64_t one = graph::to_bits(t, 1.0), sign = graph::to_bits(t, -0.0);
  const std::uint64_t greatest = graph::to_bits(t, most) - 1;
  for (const std::uint64_t x :
       {std::uint64_t{1}, sign | 1, greatest, sign | greatest, one + 1, one - 1})
    bits.push_back(x);
  return bits;
}

// Each corner with each other one, then random numbers, the last third of which are any bits.
test::Call demanding_call(const graph::Graph& g) {
  Random random(5);
  test::Call c = random_call(g, {}, random, false);
  for (int input = 0; input < g.mapping.num_inputs; ++input) {
    const DType t = g.mapping.block_mappings[static_cast<std::size_t>(input)].array_aval.dtype;
    std::vector<std::byte>& bytes = c.arrays[static_cast<std::size_t>(input)];
    const auto set = [&](std::int64_t i, std::uint64_t bits) {
      std::memcpy(&bytes[static_cast<std::size_t>(i * t.bytes())], &bits,
                  static_cast<std::size_t>(t.bytes()));
    };
    const std::vector<std::uint64_t> all = corners(t);
    const auto n = static_cast<std::int64_t>(all.size());
    const auto corner = [&](std::int64_t i) {
      return all[static_cast<std::size_t>((input == 0 ? i / n : input == 1 ? i : i + i / n) % n)];
    };
    for (std::int64_t i = 0; i < n * n; ++i) set(i, corner(i));
    for (std::int64_t i = n * n + (size - n * n) * 2 / 3; i < size; ++i)
      set(i, t.is_bool() ? random.bits() & 1 : random.bits());
  }
  return c;
}

// "" if interpreter and emulator agree on numbers of the whole range.
std::string both(const graph::Graph& g) {
  test::Call a = demanding_call(g), b = a;
  const Tolerance tolerance = tolerance_of(g, a);
  run_interpreter(g, a);
  run_emulator(g, {.compute_capability = 90}, b);
  return difference(g, a, b, tolerance);
}

const std::vector<Operation> comparisons = {
    [](Value x, Value y, Value) { return x == y; }, [](Value x, Value y, Value) { return x != y; },
    [](Value x, Value y, Value) { return x < y; },  [](Value x, Value y, Value) { return x <= y; },
    [](Value x, Value y, Value) { return x > y; },  [](Value x, Value y, Value) { return x >= y; },
};

const std::vector<Operation> classes = {
    [](Value x, Value, Value) { return is_finite(x); },
    [](Value x, Value, Value) { return is_nan(x); },
    [](Value x, Value, Value) { return is_inf(x); },
};

const std::vector<Operation> arithmetic = {
    [](Value x, Value y, Value) { return x + y; },
    [](Value x, Value y, Value) { return x - y; },
    [](Value x, Value y, Value) { return x * y; },
    [](Value x, Value y, Value) { return x / y; },
    [](Value x, Value y, Value) { return x % y; },
    [](Value x, Value y, Value) { return maximum(x, y); },
    [](Value x, Value y, Value) { return minimum(x, y); },
    [](Value x, Value y, Value z) { return where(x < y, y, z); },
    [](Value x, Value y, Value) { return floor_divide(x, y); },
    [](Value x, Value y, Value) { return remainder(x, y); },
    [](Value x, Value, Value) { return floor_divide(x, 7); },
    [](Value x, Value, Value) { return remainder(x, 7); },
    [](Value x, Value y, Value z) { return clamp(y, x, z); },
    [](Value x, Value, Value) { return clip(x, 2, 99); },
    [](Value x, Value y, Value z) {
      return select_n(x < y, {z, x});
    },
    [](Value x, Value, Value) { return square(x); },
    [](Value x, Value, Value) { return integer_pow(x, 5); },
    [](Value x, Value, Value) { return -x; },
    [](Value x, Value, Value) { return abs(x); },
    [](Value x, Value, Value) { return sign(x); },
};

const std::vector<Operation> bitwise = {
    [](Value x, Value y, Value) { return x & y; },
    [](Value x, Value y, Value) { return x | y; },
    [](Value x, Value y, Value) { return x ^ y; },
    [](Value x, Value, Value) { return ~x; },
};

const std::vector<Operation> shifts = {
    [](Value x, Value y, Value) { return x << y; },
    [](Value x, Value y, Value) { return x >> y; },
    [](Value x, Value, Value) { return x << 3; },
    [](Value x, Value, Value) { return x >> 3; },
    [](Value x, Value, Value) { return population_count(x); },
    [](Value x, Value, Value) { return clz(x); },
    [](Value x, Value y, Value) { return shift_right_logical(x, y); },
};

const std::vector<Operation> exact = {
    [](Value x, Value, Value) { return sqrt(x); },
    [](Value x, Value, Value) { return floor(x); },
    [](Value x, Value, Value) { return ceil(x); },
    [](Value x, Value, Value) { return round(x); },
    [](Value x, Value, Value) { return trunc(x); },
    [](Value x, Value y, Value) { return copysign(x, y); },
    [](Value x, Value y, Value) { return nextafter(x, y); },
    [](Value x, Value, Value) { return reciprocal(x); },
    [](Value x, Value, Value) { return relu(x); },
    [](Value x, Value y, Value z) { return fma(x, y, z); },
};

// Any number brought into a domain.
Value brought_into(const Domain& domain, Value x) {
  if (std::isfinite(domain.from) && std::isfinite(domain.to))
    return (x / (abs(x) + 1) + 1) * ((domain.to - domain.from) / 2) + domain.from;
  return std::isfinite(domain.from) ? abs(x) + domain.from : x;
}

// Each function of the table on any numbers and on those of its domain.
const std::vector<Operation> elementary = [] {
  std::vector<Operation> all = {
      [](Value x, Value, Value) { return silu(x); },
      [](Value x, Value, Value) { return gelu(x); },
      [](Value x, Value, Value) { return gelu(x, {.approximate = false}); },
  };
#define PALLADIUM_MATH(Op, name, ...)                              \
  all.push_back([](Value x, Value, Value) {                        \
    const bool bounded = bounds_f64(#name) && x.dtype() == f64;    \
    return name(bounded ? maximum(x, domains.at(#name).from) : x); \
  });                                                              \
  all.push_back([](Value x, Value, Value) { return name(brought_into(domains.at(#name), x)); });
#define PALLADIUM_MATH2(Op, name, ...)                                                           \
  all.push_back([](Value x, Value y, Value) {                                                    \
    return name(brought_into(domains.at(#name "0"), x), brought_into(domains.at(#name "1"), y)); \
  });
#include "palladium/math.def"
  all.push_back([](Value x, Value y, Value) { return pow(abs(x), y); });
  all.push_back([](Value x, Value y, Value) { return atan2(x, y); });
  return all;
}();

}  // namespace

TEST_CASE("every elementwise operation of the op table is tried here") {
  std::set<graph::Op> tried;
  const auto collect = [&](const graph::Graph& g) {
    for (const graph::Inst& inst : g.insts) tried.insert(inst.op);
  };
  collect(operations_graph(f32, bool_, comparisons));
  collect(operations_graph(f32, bool_, classes));
  collect(operations_graph(i32, i32, bitwise));
  collect(operations_graph(i32, i32, shifts));
  for (const auto* list : {&arithmetic, &exact, &elementary})
    collect(operations_graph(f32, f32, *list));
  for (int op = int(graph::Op::Neg); op <= int(graph::Op::Select); ++op) {
    INFO(graph::info(graph::Op(op)).name);
    const bool other = graph::Op(op) == graph::Op::Cast || graph::Op(op) == graph::Op::Bitcast;
    CHECK((tried.contains(graph::Op(op)) || other));
  }
}

TEST_CASE("comparisons agree for every dtype") {
  for (DType t : all_dtypes) {
    INFO(t.name());
    CHECK(both(operations_graph(t, bool_, comparisons)) == "");
    if (t.is_float()) CHECK(both(operations_graph(t, bool_, classes)) == "");
  }
}

TEST_CASE("arithmetic agrees in every bit for every dtype of numbers") {
  for (DType t : all_dtypes) {
    if (t.is_bool()) continue;
    INFO(t.name());
    CHECK(both(operations_graph(t, t, arithmetic)) == "");
  }
}

TEST_CASE("bitwise operations and shifts agree for every integer dtype") {
  for (DType t : all_dtypes) {
    if (t.is_float()) continue;
    INFO(t.name());
    CHECK(both(operations_graph(t, t, bitwise)) == "");
    if (!t.is_bool()) CHECK(both(operations_graph(t, t, shifts)) == "");
  }
}

TEST_CASE("correctly rounded functions agree in every bit for every float dtype") {
  for (DType t : {f16, bf16, f32, f64}) {
    INFO(t.name());
    CHECK(both(operations_graph(t, t, exact)) == "");
  }
}

TEST_CASE("elementary functions agree as the op table's ulp allows") {
  for (DType t : {f16, bf16, f32, f64}) {
    INFO(t.name());
    CHECK(both(operations_graph(t, t, elementary)) == "");
  }
}

TEST_CASE("floats of 8 bits are computed in f32, each result rounded") {
  for (DType t : {f8e4m3, f8e5m2}) {
    INFO(t.name());
    CHECK(both(operations_graph(t, t, arithmetic)) == "");
  }
  CHECK(both(operations_graph(f8e4m3, f8e4m3, exact)) == "");
  CHECK(both(operations_graph(f8e4m3, bool_, comparisons)) == "");
  CHECK(both(operations_graph(f8e5m2, bool_, classes)) == "");
}

TEST_CASE("bitcasts agree in every bit between any two dtypes of one width") {
  for (DType from : stored_dtypes) {
    INFO("from " << from.name());
    std::vector<ShapeDtype> types;
    for (DType to : stored_dtypes)
      if (!to.is_bool() && !from.is_bool() && to.bytes() == from.bytes())
        types.push_back({{size}, to});
    if (types.empty()) continue;
    const Body body = [&](Refs r) {
      for (std::size_t i = 0; i < types.size(); ++i)
        r[static_cast<int>(1 + i)][_] = r[0][_].bitcast(types[i].dtype);
    };
    CHECK(both(traced(body, {.name = "bitcasts", .out_type = OutType(types)},
                      {array({size}, from)})) == "");
  }
}

TEST_CASE("casts agree in every bit between any two dtypes") {
  for (DType from : stored_dtypes) {
    INFO("from " << from.name());
    std::vector<ShapeDtype> types;
    for (DType to : stored_dtypes) types.push_back({{size}, to});
    const Body body = [](Refs r) {
      const Value x = r[0][_];
      for (std::size_t i = 0; i < stored_dtypes.size(); ++i)
        r[static_cast<int>(1 + i)][_] = x.astype(stored_dtypes[i]);
    };
    CHECK(both(traced(body, {.name = "casts", .out_type = OutType(types)},
                      {array({size}, from)})) == "");
  }
}
