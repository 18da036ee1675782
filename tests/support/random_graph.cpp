#include "tests/support/random_graph.hpp"

#include <limits>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/graph/classes.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/graph/transform.hpp"
#include "tests/support/random_values.hpp"

namespace palladium::test {
namespace random_graph {
namespace {

class Generator : RandomValues {
 public:
  using RandomValues::RandomValues;

  RandomKernel run() {
    g_.name = "random_" + std::to_string(random_.below(1000));
    g_.at = here_();
    g_.fma = random_.chance(70);
    make_axes();
    make_operands();
    make_body();
    RandomKernel result;
    result.recorded = g_;
    std::vector<std::uint32_t> order;
    for (const BlockMapping& m : g_.mapping.block_mappings)
      for (const Dim& d : m.array_aval.shape) collect_symbols(d, order);
    for (const std::uint32_t s : order) result.symbols.push_back(symbol_values_[s]);
    result.graph = canonicalize(g_);
    if (random_.chance(50)) add_facts(order, result);
    result.graph.semantics = grid_order(result.graph, {});
    result.recorded.semantics = result.graph.semantics;
    verify(result.graph, "random_kernel");
    return result;
  }

 private:
  // The class of the symbols' values, in the recorded numbering too.
  static void add_facts(const std::vector<std::uint32_t>& order, RandomKernel& k) {
    set_multiples(k.graph, k.symbols);
    k.graph.short_offsets = k.recorded.short_offsets = has_runtime_reach(k.graph);
    if (k.graph.facts.multiples.empty()) return;
    k.recorded.facts.multiples.assign(8, 1);
    for (std::size_t i = 0; i < order.size(); ++i)
      k.recorded.facts.multiples[order[i]] = k.graph.facts.multiples[i];
  }

  // ---- statements

  void statement(Builder& b, Pool& pool, int depth) {
    ++line_;
    const auto keep = [&](ValueId v) { pool.values.push_back(v); };
    const int kind = random_.below(100);
    if (kind < 18) return keep(load(b, pool));
    if (kind < 42) return keep(binary(b, pool));
    if (kind < 50) return keep(unary(b, some_value(b, pool)));
    if (kind < 56) return keep(select(b, pool));
    if (kind < 62) return keep(converted(b, some_value(b, pool)));
    if (kind < 68) return keep(reshaped(b, some_value(b, pool)));
    if (kind < 74) return keep(o_.contractions ? reduced(b, some_value(b, pool)) : leaf(b));
    if (kind < 77) return keep(o_.contractions ? dot(b, pool) : leaf(b));
    if (kind < 85) return store(b, pool);
    if (kind < 88) return o_.memory ? swap(b, pool) : keep(leaf(b));
    if (kind < 91) return keep(leaf(b));
    if (depth == 0) return keep(binary(b, pool));
    if (kind < 93) return when(b, pool, depth);
    if (kind < 95) return loop(b, pool, depth);
    if (kind < 97) return while_loop(b, pool, depth);
    kind < 98 && o_.memory ? scope(b, pool, depth) : choose(b, pool, depth);
  }

  void statements(Builder& b, Pool& pool, int count, int depth) {
    for (int i = 0; i < count; ++i) statement(b, pool, depth);
  }

  void when(Builder& b, Pool& pool, int depth) {
    const ValueId c = condition(b, pool);
    const RegionId r = g_.add_region();
    Builder inner(g_, r);
    Pool scope = pool;
    statements(inner, scope, random_.between(1, 5), depth - 1);
    store(inner, scope);
    b.add(Op::When, {c}, std::vector<RegionId>{r}, {}, here_());
  }

  void loop(Builder& b, Pool& pool, int depth) {
    const ValueId lo = b.constant(i32, random_.below(3), {}, here_());
    const ValueId hi = random_.chance(50) ? b.constant(i32, random_.below(6), {}, here_())
                                          : index_up_to(b, pool, 5);
    std::vector<ValueId> args{lo, hi};
    const int carries = random_.below(4);
    for (int i = 0; i < carries; ++i) args.push_back(some_value(b, pool));
    const RegionId r = g_.add_region();
    Builder inner(g_, r);
    Pool scope = pool;
    scope.values.push_back(inner.param(Type::value(i32), here_()));
    std::vector<Type> types;
    for (int i = 0; i < carries; ++i) types.push_back(type(args[static_cast<std::size_t>(2 + i)]));
    for (const Type& t : types) scope.values.push_back(inner.param(t, here_()));
    statements(inner, scope, random_.between(1, 6), depth - 1);
    inner.yield(some_values(inner, scope, types));
    const std::int64_t step = random_.pick({1, 1, 1, 2, 3}), unroll = random_.pick({1, 1, 2, 4});
    const ValueId v = b.add(Op::Loop, args, std::vector<RegionId>{r}, {{step, unroll}, 0}, here_());
    read_results(b, pool, v, types.size());
  }

  std::vector<ValueId> some_values(Builder& b, Pool& pool, const std::vector<Type>& types) {
    std::vector<ValueId> values;
    for (const Type& t : types) {
      const ValueId v = some_value(b, pool);
      values.push_back(coerce(b, v, t.dtype, t.shape));
    }
    return values;
  }

  // A counter is the first carry, so that there is an end.
  void while_loop(Builder& b, Pool& pool, int depth) {
    std::vector<ValueId> args{b.constant(i32, 0, {}, here_())};
    for (int i = random_.below(4); i > 0; --i) args.push_back(some_value(b, pool));
    std::vector<Type> carried;
    for (const ValueId a : args) carried.push_back(type(a));
    const auto region = [&](const auto& record) {
      const RegionId r = g_.add_region();
      Builder inner(g_, r);
      Pool scope = pool;
      for (const Type& t : carried) scope.values.push_back(inner.param(t, here_()));
      record(inner, scope, g_[r].params[0]);
      return r;
    };
    const RegionId condition = region([&](Builder& inner, Pool& scope, ValueId counter) {
      statements(inner, scope, random_.below(3), depth - 1);
      ValueId holds = add(inner, Op::Lt, {counter, inner.constant(i32, random_.below(5))});
      if (random_.chance(30)) {
        const ValueId other = this->condition(inner, scope);
        holds = add(inner, Op::And, {holds, other});
      }
      inner.yield({holds});
    });
    const RegionId body = region([&](Builder& inner, Pool& scope, ValueId counter) {
      statements(inner, scope, random_.between(1, 5), depth - 1);
      std::vector<ValueId> yields = some_values(inner, scope, {carried.begin() + 1, carried.end()});
      yields.insert(yields.begin(), add(inner, Op::Add, {counter, inner.constant(i32, 1)}));
      inner.yield(yields);
    });
    const ValueId v = b.add(Op::While, args, std::vector<RegionId>{condition, body}, {}, here_());
    read_results(b, pool, v, args.size());
  }

  // By a bool, or by a number that may be that of no region.
  void choose(Builder& b, Pool& pool, int depth) {
    const bool chooses = random_.chance(50);
    ValueId which = chooses ? this->condition(b, pool) : index_up_to(b, pool, 5);
    if (!chooses) which = add(b, Op::Sub, {which, b.constant(i32, random_.below(3), {}, here_())});
    std::vector<Type> types;
    for (int i = random_.below(4); i > 0; --i) types.push_back(type(some_value(b, pool)));
    std::vector<RegionId> regions;
    for (int n = chooses ? 2 : random_.between(1, 4); n > 0; --n) {
      regions.push_back(g_.add_region());
      Builder inner(g_, regions.back());
      Pool scope = pool;
      statements(inner, scope, random_.below(5), depth - 1);
      inner.yield(some_values(inner, scope, types));
    }
    const ValueId v = b.add(Op::Switch, {which}, regions, {}, here_());
    read_results(b, pool, v, types.size());
  }

  // Memory of its own, which is written first.
  void scope(Builder& b, Pool& pool, int depth) {
    const RegionId r = g_.add_region();
    Builder inner(g_, r);
    Pool scope = pool;
    const DType d = dtype();
    const Extents shape = some_shape();
    const ValueId own = inner.param(Type::ref(d, shape, random_.pick({Space::smem, Space::regs})));
    inner.store(own, coerce(inner, some_value(inner, scope), d, shape), no_value, here_());
    readable_.push_back(own);
    writable_.push_back(own);
    statements(inner, scope, random_.between(1, 5), depth - 1);
    std::vector<Type> types{Type::value(d, shape)};
    for (int i = random_.below(3); i > 0; --i) types.push_back(type(some_value(inner, scope)));
    inner.yield(some_values(inner, scope, types));
    readable_.pop_back();
    writable_.pop_back();
    read_results(b, pool, b.add(Op::Scoped, {}, std::vector<RegionId>{r}, {}, here_()),
                 types.size());
  }

  void read_results(Builder& b, Pool& pool, ValueId v, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      if (random_.chance(80))
        pool.values.push_back(add(b, Op::Get, {v}, {{static_cast<std::int64_t>(i)}, 0}));
  }

  // ---- body

  void initialise(Builder& b, Pool& pool, ValueId ref, bool once) {
    const Type t = type(ref);
    if (once && revisited_ >= 0) {
      const ValueId id = add(b, Op::ProgramId, {}, {{revisited_}, 0});
      const ValueId first = add(b, Op::Eq, {id, b.constant(i32, 0, {}, here_())});
      const RegionId r = g_.add_region();
      Builder inner(g_, r);
      Pool scope = pool;
      inner.store(ref, coerce(inner, some_value(inner, scope), t.dtype, t.shape), no_value,
                  here_());
      b.add(Op::When, {first}, std::vector<RegionId>{r}, {}, here_());
    } else {
      b.store(ref, coerce(b, some_value(b, pool), t.dtype, t.shape), no_value, here_());
    }
  }

  void make_body() {
    const RegionId r = g_.add_region();
    g_.bodies.push_back({r, 1});
    Builder b(g_, r);
    Pool pool;
    const GridMapping& m = g_.mapping;
    const auto block = [&](int i) {
      const BlockMapping& bm = m.block_mappings[static_cast<std::size_t>(i)];
      return b.param(Type::ref(bm.array_aval.dtype, bm.ref_shape(), bm.memory_space), here_());
    };
    for (const Argument& a : g_.arguments)
      if (a.kind == Argument::Kind::scalar)
        pool.values.push_back(b.param(Type::value(a.dtype), here_()));
      else
        readable_.push_back(block(a.index));
    std::vector<ValueId> outputs, scratch;
    for (int i = 0; i < m.num_outputs; ++i) outputs.push_back(block(m.num_inputs + i));
    for (const AbstractValue& s : m.scratch_avals) {
      Extents shape;
      for (const Dim& d : s.type.shape) shape.push_back(d.value());
      scratch.push_back(b.param(Type::ref(s.type.dtype, shape, s.memory_space), here_()));
    }
    for (int i = random_.between(1, 3); i > 0; --i) pool.values.push_back(load(b, pool));
    statements(b, pool, 2, 0);
    for (const ValueId s : scratch) {
      initialise(b, pool, s, random_.chance(50));
      readable_.push_back(s);
      writable_.push_back(s);
    }
    for (int i = 0; i < m.num_outputs; ++i) {
      const ValueId o = outputs[static_cast<std::size_t>(i)];
      const BlockMapping& bm = m.block_mappings[static_cast<std::size_t>(m.num_inputs + i)];
      const bool revisits = revisited_ >= 0 && bm.index_map != no_region &&
                            !depends_on_axis(g_, m.num_inputs + i, revisited_);
      initialise(b, pool, o, revisits || bm.index_map == no_region);
      writable_.push_back(o);
      readable_.push_back(o);
    }
    statements(b, pool, o_.statements, o_.depth);
    for (const ValueId o : outputs) {
      const Type t = type(o);
      ValueId x = coerce(b, some_value(b, pool), t.dtype, t.shape);
      // Element by element, so that what lies beyond the end stays there.
      if (random_.chance(50) && !t.dtype.is_bool())
        x = add(b, random_.pick({Op::Add, Op::Max}), {b.load(o, no_value, no_value, here_()), x});
      if (o_.elementary && t.dtype.is_float() && random_.chance(70))
        x = add(b,
                random_.pick({Op::Exp, Op::Exp2, Op::Expm1, Op::Sin, Op::Cos, Op::Tanh,
                              Op::Logistic, Op::Erf}),
                {x});
      b.store(o, x, no_value, here_());
    }
  }
};

}  // namespace
}  // namespace random_graph

using namespace palladium::graph;

std::uint64_t Random::bits() {  // splitmix64
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t random_number(Random& random, DType dtype) {
  if (dtype.is_bool()) return random.bits() & 1;
  if (dtype.is_float()) {
    if (random.chance(3))
      return to_bits(dtype, random.chance(50) ? std::numeric_limits<double>::infinity() : 0.0);
    const double sign = random.chance(50) ? 1 : -1;
    const int numerator = random.between(1, 80);
    return to_bits(dtype, sign * numerator / random.pick({1, 2, 4, 8, 3}));
  }
  if (random.chance(5)) {
    const std::uint64_t most = to_bits(dtype, std::numeric_limits<double>::infinity());
    return random.chance(50) ? most : to_bits(dtype, -std::numeric_limits<double>::infinity());
  }
  return to_bits(dtype, static_cast<std::int64_t>(random.between(dtype.is_signed() ? -20 : 0, 40)));
}

std::vector<std::int64_t> RandomKernel::array_shape(int i) const {
  std::vector<std::int64_t> shape;
  for (const Dim& d : graph.mapping.block_mappings[static_cast<std::size_t>(i)].array_aval.shape)
    shape.push_back(evaluate(d, symbols));
  return shape;
}

RandomKernel random_kernel(std::uint64_t seed, const RandomOptions& options) {
  // Blocks that came out too large are drawn again, from a seed that follows from this one.
  for (std::uint64_t attempt = 0;; ++attempt) try {
      return random_graph::Generator(seed + (attempt << 40), options).run();
    } catch (const random_graph::Restart&) {
    }
}

}  // namespace palladium::test
