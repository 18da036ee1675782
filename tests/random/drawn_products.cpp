// Products in loops of the body or of the grid, and chains of two of them as attention has.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "tests/random/drawn_kernels.hpp"
#include "tests/support/tracing.hpp"

namespace palladium::test {
namespace {

using pl::_;

enum class Sum { carry, output, registers, shared };

struct Products {
  DType type;
  int block_m, block_n, block_k, steps;
  int m, n, k;
  Sum sum;
  bool by_axis, inner_loop;  // `steps` along an axis of the grid, a loop of two in each
  bool beside;               // another product by the same operand, with a sum of its own
  bool trans_b, masked, varies, scales, normalises, rounds, grouped;

  DType sum_type() const { return type.is_float() ? f32 : i32; }
  int parts() const { return by_axis ? (inner_loop ? 2 : 1) : steps; }
  int depth() const { return block_k * parts(); }  // of a block
  std::string words() const {
    const char* const sums[] = {"carried", "in the output", "in registers", "in shared memory"};
    return fmt::format(
        "a product of {}, {}x{}x{} in blocks of {}x{}x{}, sum {}{}{}{}{}{}{}{}{}{}{}", type.name(),
        m, n, k, block_m, block_n, block_k, sums[static_cast<int>(sum)],
        by_axis ? ", over an axis" : "", inner_loop && by_axis ? " and a loop" : "",
        beside ? ", two of them" : "", trans_b ? ", b transposed" : "", masked ? ", masked" : "",
        varies ? ", of any length" : "", scales ? ", scaled" : "",
        normalises ? ", less its rows' maxima" : "", rounds ? ", rounded" : "",
        grouped ? ", in groups" : "");
  }
};

Products drawn_products(Random& random) {
  Products p = {};
  p.type = random.pick({f16, f16, bf16, bf16, f32, f8e4m3, i8});
  p.block_m = random.pick({16, 32, 64, 64, 64, 64, 128});
  p.block_n = random.pick({8, 16, 32, 64, 64, 72, 128});
  p.block_k = random.pick({16, 32, 32, 64});
  p.steps = random.pick({1, 2, 3, 4, 5, 6});
  p.sum = random.pick({Sum::carry, Sum::carry, Sum::output, Sum::registers, Sum::shared});
  p.by_axis = random.chance(50);
  p.inner_loop = random.chance(30);
  p.beside = p.sum == Sum::carry && random.chance(30);
  p.trans_b = random.chance(40);
  p.masked = random.chance(10);
  p.varies = !p.by_axis && random.chance(20);
  p.scales = random.chance(25);
  p.normalises = random.chance(20);
  p.rounds = p.sum != Sum::output && p.type.is_float() && p.type.bytes() == 2 && random.chance(50);
  if (p.by_axis && p.sum == Sum::carry) p.rounds = false;  // it is added to the output
  p.grouped = random.chance(20);
  const auto extent = [&](int block) {
    const int whole = block * random.between(1, 3);
    return std::max(1, whole - random.pick({0, 0, 0, 8, 8, 1}));
  };
  p.m = extent(p.block_m);
  p.n = extent(p.block_n);
  p.k = p.by_axis ? p.depth() * p.steps : p.depth();
  p.k = std::max(1, p.k - random.pick({0, 0, 0, 8, 8, 3}));
  return p;
}

/// The body of such a kernel, while it is recorded.
class ProductsBody {
 public:
  ProductsBody(const Products& p, const Refs& refs)
      : p_(p),
        a_(refs[0]),
        b_(refs[1]),
        second_(refs[p.beside ? 2 : 1]),
        output_(refs[p.beside ? 3 : 2]),
        held_(p.sum == Sum::registers || p.sum == Sum::shared ? refs[p.beside ? 4 : 3] : output_) {}

  void run() const {
    const Value step = p_.by_axis ? Value(program_id(2)) : Value(0);
    if (p_.sum != Sum::carry) return add_to_held(step);
    const Value sum = carried();
    if (!p_.by_axis) return void(output_[_] = finished(sum));
    when(step == 0, [&] { output_[_] = zero(); });
    output_[_] += sum;
    when(step == p_.steps - 1, [&] { output_[_] = finished(output_[_]); });
  }

 private:
  Value zero() const { return zeros({p_.block_m, p_.block_n}, p_.sum_type()); }
  Value trips() const {
    return p_.varies ? minimum(program_id(0) + 1, p_.parts()) : Value(p_.parts());
  }

  Value term(const Ref& b, const Value& i) const {
    const Slice part = ds(i * p_.block_k, p_.block_k);
    const Value kept = (iota(i32, {p_.block_m, p_.block_k}, 1) + i * p_.block_k) % 5 != 3;
    const Value x =
        p_.masked ? load(a_.at({_, part}), {.mask = kept, .other = 0}) : Value(a_[{_, part}]);
    const Value y = p_.trans_b ? Value(b[{_, part}]) : Value(b[{part, _}]);
    return dot(x, y,
               {.trans_b = p_.trans_b,
                .precision = p_.type == f32 ? Precision::tf32 : Precision::ieee,
                .preferred_element_type = p_.sum_type()});
  }

  Value scaled(const Value& sum) const { return p_.scales ? sum * 2 : sum; }
  Value finished(const Value& sum) const {
    const Value v = p_.normalises ? sum - pl::max(sum, {.axis = {1}, .keepdims = true}) : sum;
    return p_.rounds ? v.astype(p_.type) : v;
  }

  Value carried() const {
    if (!p_.beside)
      return loop(
          0, trips(), [&](Index i, Value sum) { return scaled(sum) + term(b_, i); }, zero());
    const auto both = [&](Index i, Value x, Value y) {
      return carry(scaled(x) + term(b_, i), y + term(second_, i));
    };
    const auto [x, y] = loop(0, trips(), both, zero(), zero());
    return x - y;
  }

  void add_to_held(const Value& step) const {
    when(step == 0, [&] { held_[_] = zero(); });
    const auto add = [&](const Value& i) { held_[_] = scaled(held_[_]) + term(b_, i); };
    if (p_.parts() == 1)
      add(Value(0));
    else
      loop(0, trips(), [&](Index i) { add(i); });
    when(step == (p_.by_axis ? p_.steps - 1 : 0), [&] { output_[_] = finished(held_[_]); });
  }

  const Products& p_;
  const Ref a_, b_, second_, output_, held_;
};

BlockSpec block_of(const Products& p, bool rows, int block, bool k_last) {
  const auto map = [=](Index i, Index j, Index k) {
    const Index at = rows ? i : j, along = p.by_axis ? k : Index(0);
    return k_last ? Indices{at, along} : Indices{along, at};
  };
  return k_last ? BlockSpec{{block, p.depth()}, map, {.fill = 0}}
                : BlockSpec{{p.depth(), block}, map, {.fill = 0}};
}

graph::Graph recorded(const Products& p, const CompilerParams& params, const Sizes& sizes) {
  const Dim m = sizes("m", p.m), n = sizes("n", p.n), k = p.by_axis ? sizes("k", p.k) : Dim(p.k);
  const BlockSpec a = block_of(p, true, p.block_m, true),
                  b = block_of(p, false, p.block_n, p.trans_b);
  const auto b_type = array(p.trans_b ? Shape{n, k} : Shape{k, n}, p.type);
  std::vector<BlockSpec> specs{a, b};
  std::vector<trace::ArgumentType> types{array({m, k}, p.type), b_type};
  if (p.beside) {
    specs.push_back(b);
    types.push_back(b_type);
  }
  const Shape block{p.block_m, p.block_n};
  ScratchTypes scratch;
  if (p.sum == Sum::shared) scratch = {gpu::SMEM(block, p.sum_type())};
  if (p.sum == Sum::registers) scratch = {gpu::REGS(block, p.sum_type())};
  return traced(
      [=](Refs refs) { ProductsBody(p, refs).run(); },
      {.name = "products",
       .out_type = ShapeDtype{{m, n}, p.rounds ? p.type : p.sum_type()},
       .grid = {cdiv(m, p.block_m), cdiv(n, p.block_n), p.by_axis ? cdiv(k, p.depth()) : Dim(1)},
       .in_specs = specs,
       .out_specs = {{{p.block_m, p.block_n},
                      [](Index i, Index j, Index) {
                        return Indices{i, j};
                      }}},
       .scratch_types = scratch,
       .compiler_params = params},
      types);
}

// ---- chains

struct Chain {
  DType type;
  int rows, columns, d, steps, programs;
  bool softmax, causal, rounds;

  std::string words() const {
    return fmt::format("a chain of {}, {}x{} by {}, {} steps, {} programs{}{}{}", type.name(), rows,
                       columns, d, steps, programs, softmax ? ", normalised as it goes" : "",
                       causal ? ", of any length" : "", rounds ? ", rounded" : "");
  }
};

Chain drawn_chain(Random& random) {
  Chain c = {};
  c.type = random.pick({f16, bf16});
  c.rows = random.pick({64, 64, 64, 128});
  c.columns = random.pick({16, 32, 32, 64});
  c.d = random.pick({16, 32, 64});
  c.programs = random.between(1, 3);
  c.causal = random.chance(40);
  c.steps = random.between(2, 5);
  c.softmax = random.chance(50);
  c.rounds = random.chance(50);
  return c;
}

Value chained(const Chain& c, const Refs& refs) {
  const Ref q = refs[0], k = refs[1], v = refs[2];
  const Value trips = c.causal ? minimum(program_id(0) + 1, c.steps) : Value(c.steps);
  const auto scores = [&](const Value& i) {
    return dot(q[_], k[{ds(i * c.columns, c.columns), _}], {.trans_b = true});
  };
  const auto values = [&](const Value& i) -> Value { return v[{ds(i * c.columns, c.columns), _}]; };
  const Value zero = zeros({c.rows, c.d}, f32);
  if (!c.softmax)
    return loop(
        0, trips,
        [&](Index i, Value acc) { return acc + dot(scores(i).astype(c.type), values(i)); }, zero);
  const auto next = [&](Index i, Value top, Value total, Value acc) {
    const Value s = scores(i) * 0.125f;
    const Value above = maximum(top, pl::max(s, {.axis = {1}, .keepdims = true}));
    const Value p = exp2(s - above), shrink = exp2(top - above);
    return carry(above, total * shrink + pl::sum(p, {.axis = {1}, .keepdims = true}),
                 acc * shrink + dot(p.astype(c.type), values(i)));
  };
  const auto [top, total, acc] =
      loop(0, trips, next, full({c.rows, 1}, -1e30f, f32), zeros({c.rows, 1}, f32), zero);
  (void)top;
  return acc / total;
}

graph::Graph recorded(const Chain& c, const CompilerParams& params, const Sizes& sizes) {
  const Dim rows = sizes("rows", std::int64_t{c.rows} * c.programs);
  const std::int64_t keys = std::int64_t{c.columns} * c.steps;
  const BlockSpec own{{c.rows, c.d},
                      [](Index i) {
                        return Indices{i, 0};
                      }},
      all{{keys, c.d}, [](Index) {
            return Indices{0, 0};
          }};
  return traced(
      [=](Refs refs) {
        const Value sum = chained(c, refs);
        refs[3][_] = c.rounds ? sum.astype(c.type) : sum;
      },
      {.name = "chain",
       .out_type = ShapeDtype{{rows, c.d}, c.rounds ? c.type : f32},
       .grid = {cdiv(rows, c.rows)},
       .in_specs = {own, all, all},
       .out_specs = {own},
       .compiler_params = params},
      {array({rows, c.d}, c.type), array({keys, c.d}, c.type), array({keys, c.d}, c.type)});
}

}  // namespace

OfFamily draw_products(Random& random, const CompilerParams& params) {
  const Products p = drawn_products(random);
  CompilerParams own = params;
  if (p.grouped) own.grid_order = grouped(2);
  return {"product", p.words(), [=](const Sizes& sizes) { return recorded(p, own, sizes); }};
}

OfFamily draw_chain(Random& random, const CompilerParams& params) {
  const Chain c = drawn_chain(random);
  return {"chain", c.words(), [=](const Sizes& sizes) { return recorded(c, params, sizes); }};
}

}  // namespace palladium::test
