#include "tests/support/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/graph/builder.hpp"
#include "tests/support/targets.hpp"

namespace palladium::test {
namespace {

using namespace palladium::graph;

constexpr int variants = 4;

int digits_of(DType t) { return t == f64 ? 53 : t == f32 ? 24 : t == f16 ? 11 : 8; }
int min_exponent_of(DType t) { return t == f64 ? -1022 : t == f16 ? -14 : -126; }

// Tensor cores may add what a product is added to; they cut sums off where others round.
bool adds_to_product(const Graph& g, const Inst& inst) {
  const auto is_product = [&](ValueId v) { return g[v].op == Op::Dot; };
  if (inst.op == Op::Fma) return is_product(inst.args[2]);
  return inst.op == Op::Add && std::ranges::any_of(inst.args, is_product);
}

bool is_inexact(const Graph& g, const Inst& inst) {
  if (!inst.type.is_value() || !inst.type.dtype.is_float()) return false;
  return adds_to_product(g, inst) || info(inst.op).ulp > 0 || inst.op == Op::ReduceSum ||
         inst.op == Op::ReduceProd || inst.op == Op::CumSum || inst.op == Op::CumProd ||
         inst.op == Op::Dot;
}

bool is_product(const Graph& g, const Inst& inst) {
  return inst.op == Op::Dot && is_inexact(g, inst);
}

/// Finds what results of a kind reach, through memory and control too.
class Reach {
 public:
  using Kind = bool (*)(const Graph&, const Inst&);
  Reach(const Graph& g, Kind begins)
      : g_(g), begins_(begins), values_(g.insts.size()), regions_(g.regions.size()) {
    for (bool more = true; more;) {
      const auto before = std::pair(values_, memory_);
      for (const graph::Body& body : g.bodies) visit(body.region, false);
      more = before != std::pair(values_, memory_);
    }
  }
  bool holds(ValueId root) const { return memory_.contains(g_.alias_class(root)); }

 private:
  void visit(RegionId r, bool controlled) {
    for (const ValueId v : g_[r].insts) visit(v, controlled);
  }
  void visit(ValueId v, bool controlled) {
    const Inst& inst = g_[v];
    const auto is_marked = [&](ValueId x) { return bool(values_[index(x)]); };
    bool marked = begins_(g_, inst);
    if (inst.op == Op::Loop) return visit_loop(v, controlled);
    if (inst.op == Op::While) return visit_while(v, controlled);
    if (inst.op == Op::Switch) return visit_switch(v, controlled);
    if (inst.op == Op::Scoped) return visit(inst.regions[0], controlled);
    if (inst.op == Op::Get) {
      const Inst& of = g_[inst.args[0]];
      marked = regions_[index(of.regions[0])];
      if (repeats(of.op)) {
        const Repeated repeated = Repeated::of(of);
        marked = marked || is_marked(g_[repeated.region].params[repeated.first + result_of(inst)]);
      } else {
        for (const RegionId r : of.regions)
          marked = marked || is_marked(g_[r].yields[result_of(inst)]);
      }
      values_[index(v)] = marked;
      return;
    }
    for (const ValueId x : inst.args) marked |= is_marked(x);
    if (inst.op == Op::When) return visit(inst.regions[0], controlled || marked);
    for (const graph::Effect& e : graph::effects(inst.op).on_memory()) {
      const int memory = g_.alias_class(g_.root(inst.args[e.operand]));
      if (e.writes() && (marked || controlled)) memory_.insert(memory);
      marked |= memory_.contains(memory);
    }
    values_[index(v)] = marked;
  }
  void visit_loop(ValueId v, bool controlled) {
    const Inst& loop = g_[v];
    const Region& body = g_[loop.regions[0]];
    const bool bounds = values_[index(loop.args[0])] || values_[index(loop.args[1])];
    if (bounds) regions_[index(loop.regions[0])] = true;
    for (std::size_t i = 0; i < body.yields.size(); ++i)
      values_[index(body.params[i + 1])] = values_[index(body.params[i + 1])] ||
                                           values_[index(loop.args[i + 2])] ||
                                           values_[index(body.yields[i])];
    if (bounds) values_[index(body.params[0])] = true;
    visit(loop.regions[0], controlled || bounds);
  }
  void visit_while(ValueId v, bool controlled) {
    const Inst& inst = g_[v];
    const WhileView loop = WhileView::of(inst);
    const Region &condition = g_[loop.condition], &body = g_[loop.body];
    for (std::size_t i = 0; i < loop.carries.size(); ++i) {
      const bool marked = values_[index(body.params[i])] || values_[index(loop.carries[i])] ||
                          values_[index(body.yields[i])];
      values_[index(body.params[i])] = values_[index(condition.params[i])] = marked;
    }
    visit(loop.condition, controlled);
    const bool turns = values_[index(condition.yields[0])];
    if (turns) regions_[index(loop.condition)] = true;
    visit(loop.condition, controlled || turns);
    visit(loop.body, controlled || turns);
  }
  void visit_switch(ValueId v, bool controlled) {
    const Inst& inst = g_[v];
    const bool which = values_[index(inst.args[0])];
    if (which) regions_[index(inst.regions[0])] = true;
    for (const RegionId r : inst.regions) visit(r, controlled || which);
  }

  const Graph& g_;
  Kind begins_;
  std::vector<bool> values_;   // by instruction
  std::vector<bool> regions_;  // first ones: of what runs inexactly often, or is chosen so
  std::set<int> memory_;       // alias classes
};

constexpr int narrow_digits = 13;

/// Appends to a region what displaces one result.
class Displacement {
 public:
  Displacement(Graph& g, RegionId r, int variant) : b_(g, r), variant_(variant) {}

  ValueId of(ValueId v) {
    const Inst inst = b_.graph()[v];
    const DType t = inst.type.dtype;
    wide_ = t == f64 ? f64 : f32;
    shape_ = inst.type.shape;
    const ValueId x = b_.cast(v, wide_);
    ValueId most = info(inst.op).ulp > 0               ? of_function(inst.op, t, x)
                   : adds_to_product(b_.graph(), inst) ? of_addition(inst)
                                                       : of_sum(inst);
    // What is nearly halfway between two narrow numbers may be rounded to either.
    if (t.bytes() == 2 && info(inst.op).ulp == 0)
      most = add(Op::Add, {most, where(add(Op::Gt, {most, number(0)}),
                                       times(magnitude(x), std::ldexp(1.0, -digits_of(t))))});
    const ValueId moved = add(Op::Add, {x, add(Op::Mul, {most, sign(v)})});
    return b_.cast(add(Op::Select, {add(Op::IsFinite, {x}), moved, x}), t);
  }

 private:
  ValueId add(Op op, std::vector<ValueId> args) { return b_.elementwise(op, std::move(args)); }
  ValueId number(double x) { return b_.constant(wide_, x, shape_); }
  ValueId times(ValueId v, double factor) { return add(Op::Mul, {v, number(factor)}); }
  ValueId magnitude(ValueId v) { return b_.add(Op::Abs, {v}); }
  ValueId where(ValueId condition, ValueId v) { return add(Op::Select, {condition, v, number(0)}); }

  /// Two implementations, each within the table's ulp of f32 or f64; a narrow result is rounded
  /// once more. Zero is exact.
  ValueId of_function(Op op, DType t, ValueId x) {
    const double units = t.bytes() == 2 ? 1 : 2.0 * info(op).ulp;
    const ValueId size = magnitude(x);
    const ValueId least = number(std::ldexp(0.75 * units, min_exponent_of(t) + 1 - digits_of(t)));
    ValueId most = add(Op::Max, {times(size, std::ldexp(units, -digits_of(t))), least});
    // pl::exp_nonpositive
    const ValueId normal = number(std::ldexp(1.0, -126));
    if (op == Op::Exp && t.bytes() <= 4)
      most = add(Op::Select, {add(Op::Lt, {size, normal}), normal, most});
    return where(add(Op::Gt, {size, number(0)}), most);
  }

  /// By the length of the accumulation: each step of each implementation may lose a unit. Sums and
  /// products of whole numbers that stay exact lose nothing.
  ValueId of_sum(const Inst& inst) {
    std::vector<ValueId> sizes;
    ValueId whole = b_.constant(bool_, 1);
    for (const ValueId v : inst.args) {
      const ValueId x = b_.cast(v, wide_);
      sizes.push_back(b_.add(Op::Abs, {inst.op == Op::Dot ? v : x}));
      whole = b_.elementwise(Op::And, {whole, is_whole(x)});
    }
    const Extents& operand = b_.graph()[inst.args[0]].type.shape;
    std::int64_t length = 1;
    if (inst.op == Op::Dot)
      length = operand[inst.attr.ints[0] != 0 ? 0 : 1];
    else if (inst.op == Op::CumSum || inst.op == Op::CumProd)
      length = operand[static_cast<std::size_t>(ScanView::of(inst).dimension)];
    else
      for (const std::int64_t d : inst.attr.ints) length *= operand[static_cast<std::size_t>(d)];
    const ValueId all = b_.cast(b_.add(inst.op, sizes, inst.attr), wide_);
    const double steps = static_cast<double>(inst.op == Op::Dot ? length : length - 1);
    const int digits = is_narrow(inst) ? narrow_digits : digits_of(wide_);
    const ValueId most = times(all, std::ldexp(2 * steps, 1 - digits));
    const ValueId fits = add(Op::Le, {all, number(std::ldexp(1.0, digits))});
    const ValueId exact = b_.elementwise(Op::And, {b_.broadcast_to(whole, shape_), fits});
    return add(Op::Select, {exact, number(0), most});
  }

  /// Of 8-bit floats, of whose sums tensor cores keep fewer bits.
  bool is_narrow(const Inst& inst) {
    const Graph& g = b_.graph();
    return inst.op == Op::Dot && std::ranges::all_of(inst.args, [&](ValueId x) {
             return g[x].op == Op::Cast && is_byte_float(g[g[x].args[0]].type.dtype);
           });
  }

  /// Each product of a slice of 8 along K loses a unit of what it is added to.
  ValueId of_addition(const Inst& inst) {
    ValueId all = number(0), whole = b_.constant(bool_, 1);
    std::int64_t steps = 1;
    int digits = digits_of(wide_);
    const auto term = [&](const ValueId& size) {
      whole = b_.elementwise(Op::And, {whole, is_whole(size)});
      all = add(Op::Add, {all, magnitude(size)});
    };
    for (const ValueId v : inst.args) {
      const Inst product = b_.graph()[v];
      if (product.op != Op::Dot) continue;
      if (is_narrow(product) && b_.graph().fast_accumulation) digits = narrow_digits;
      const Extents& operand = b_.graph()[product.args[0]].type.shape;
      steps += operand[product.attr.ints[0] != 0 ? 0 : 1] / 8;
      std::vector<ValueId> sizes;
      for (const ValueId x : product.args) sizes.push_back(b_.add(Op::Abs, {x}));
      term(b_.cast(b_.add(Op::Dot, sizes, product.attr), wide_));
    }
    const bool fused = inst.op == Op::Fma;
    if (fused) term(add(Op::Mul, {b_.cast(inst.args[0], wide_), b_.cast(inst.args[1], wide_)}));
    for (const ValueId v : inst.args)
      if (!fused && b_.graph()[v].op != Op::Dot) term(b_.cast(v, wide_));
    const ValueId most = times(all, std::ldexp(2.0 * static_cast<double>(steps), 1 - digits));
    const ValueId fits = add(Op::Le, {all, number(std::ldexp(1.0, digits))});
    const ValueId exact = b_.elementwise(Op::And, {b_.broadcast_to(whole, shape_), fits});
    return add(Op::Select, {exact, number(0), most});
  }

  /// bool[]: whether all elements are whole numbers.
  ValueId is_whole(ValueId x) {
    Attr all;
    for (std::size_t d = 0; d < b_.graph()[x].type.shape.size(); ++d)
      all.ints.push_back(static_cast<std::int64_t>(d));
    ValueId part = b_.add(Op::Abs, {b_.elementwise(Op::Sub, {x, b_.add(Op::Round, {x})})});
    if (!all.ints.empty()) part = b_.add(Op::ReduceMax, {part}, all);
    return b_.elementwise(Op::Eq, {part, b_.constant(wide_, 0.0)});
  }

  /// 1 or -1 for each element.
  ValueId sign(ValueId seed) {
    if (variant_ < 2) return number(variant_ == 0 ? 1 : -1);
    const auto whole = [&](std::int64_t x) { return b_.constant(i32, x, shape_); };
    ValueId hash =
        whole(1000003 * variant_ + 7919 * static_cast<std::int64_t>(index(seed) % 10007));
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const ValueId i =
          b_.add(Op::Iota, {}, {{static_cast<std::int64_t>(d)}, 0}, Type::value(i32, shape_));
      hash = add(Op::Mul, {add(Op::Add, {hash, i}), whole(1664525)});
      hash = add(Op::Xor, {hash, add(Op::ShiftRight, {hash, whole(15)})});
    }
    const ValueId bit = add(Op::And, {add(Op::ShiftRight, {hash, whole(7)}), whole(1)});
    return add(Op::Select, {b_.cast(bit, bool_), number(1), number(-1)});
  }

  Builder b_;
  int variant_;
  DType wide_ = f32;
  Extents shape_;
};

std::uint64_t get(const std::vector<std::byte>& from, std::int64_t i, DType t) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from.data() + i * t.bytes(), static_cast<std::size_t>(t.bytes()));
  return bits;
}

double value_of(DType t, std::uint64_t bits) {
  return t.is_float() ? to_double(t, bits) : static_cast<double>(to_int(t, bits));
}

double apart(double p, double q) {
  if (p == q || (std::isnan(p) && std::isnan(q))) return 0;
  const double d = std::fabs(p - q);
  return std::isnan(d) ? INFINITY : d;
}

double unit_of(DType t, double x) {
  if (!t.is_float() || !std::isfinite(x)) return 0;
  const int exponent = x == 0 ? min_exponent_of(t) : std::max(std::ilogb(x), min_exponent_of(t));
  return std::ldexp(1.0, exponent + 1 - digits_of(t));
}

std::vector<bool> arrays_reached(const Graph& g, Reach::Kind begins) {
  const Reach reach(g, begins);
  std::vector<bool> result(g.mapping.block_mappings.size());
  for (const graph::Body& body : g.bodies) {
    const std::vector<ValueId>& params = g[body.region].params;
    for (std::size_t i = 0; i < g.arguments.size(); ++i)
      if (g.arguments[i].kind == Argument::Kind::input && reach.holds(params[i]))
        result[static_cast<std::size_t>(g.arguments[i].index)] = true;
    for (int o = 0; o < g.mapping.num_outputs; ++o)
      if (reach.holds(params[g.arguments.size() + static_cast<std::size_t>(o)]))
        result[static_cast<std::size_t>(g.mapping.num_inputs + o)] = true;
  }
  return result;
}

}  // namespace

std::vector<bool> inexact_arrays(const Graph& g) { return arrays_reached(g, is_inexact); }

Graph displaced(const Graph& g, int variant) {
  Graph result = g;
  std::vector<ValueId> now;  // what users of a value take
  for (std::uint32_t v = 0; v < g.insts.size(); ++v) now.push_back(ValueId{v});
  for (std::uint32_t r = 0; r < g.regions.size(); ++r) {
    const std::vector<ValueId> insts = std::exchange(result.regions[r].insts, {});
    for (const ValueId v : insts) {
      result.regions[r].insts.push_back(v);
      if (is_inexact(g, g[v])) now[index(v)] = Displacement(result, RegionId{r}, variant).of(v);
    }
  }
  const auto replace = [&](std::vector<ValueId>& values) {
    for (ValueId& v : values)
      if (v != no_value) v = now[index(v)];
  };
  for (std::size_t v = 0; v < g.insts.size(); ++v) replace(result.insts[v].args);
  for (Region& r : result.regions) replace(r.yields);
  return result;
}

Tolerance tolerance_of(const Graph& g, const Call& before, bool poison) {
  const std::vector<bool> inexact = inexact_arrays(g), of_products = arrays_reached(g, is_product);
  Tolerance result(inexact.size());
  if (std::find(inexact.begin(), inexact.end(), true) == inexact.end()) return result;
  Call plain = before;
  run_interpreter(g, plain, poison);
  for (int variant = 0; variant < variants; ++variant) {
    Call moved = before;
    run_interpreter(displaced(g, variant), moved, poison);
    for (std::size_t i = 0; i < inexact.size(); ++i) {
      if (!inexact[i]) continue;
      const DType t = g.mapping.block_mappings[i].array_aval.dtype;
      const std::int64_t count = element_count(before.shapes[i]);
      result[i].resize(static_cast<std::size_t>(count));
      for (std::int64_t k = 0; k < count; ++k) {
        double& most = result[i][static_cast<std::size_t>(k)];
        const double p = value_of(t, get(plain.arrays[i], k, t));
        const double by = apart(p, value_of(t, get(moved.arrays[i], k, t)));
        // Of all errors that there may be these are a few.
        constexpr double more = 1.08;
        if (by > 0) most = std::max(most, more * by + unit_of(t, p));
        // Tensor cores give sums of products that are zeros a sign of their own.
        if (p == 0 && of_products[i]) most = std::max(most, std::numeric_limits<double>::min());
      }
    }
  }
  return result;
}

std::string difference(const Graph& g, const Call& a, const Call& b, const Tolerance& tolerance) {
  for (std::size_t i = static_cast<std::size_t>(g.mapping.num_inputs); i < a.arrays.size(); ++i) {
    const DType t = g.mapping.block_mappings[i].array_aval.dtype;
    const std::size_t s = storage_of(g, i);
    for (std::int64_t k = 0; k < element_count(a.shapes[i]); ++k) {
      const std::uint64_t x = get(a.arrays[s], k, t), y = get(b.arrays[s], k, t);
      if (x == y) continue;
      const double p = value_of(t, x), q = value_of(t, y);
      if (std::isnan(p) && std::isnan(q)) continue;
      const double most = s < tolerance.size() && !tolerance[s].empty()
                              ? tolerance[s][static_cast<std::size_t>(k)]
                              : 0;
      if (most > 0 && apart(p, q) <= most) continue;
      return fmt::format("{} element {} of {}: {} and {} ({:#x} and {:#x}), {:g} apart is allowed",
                         g.mapping.block_mappings[i].origin, k, element_count(a.shapes[i]), p, q, x,
                         y, most);
    }
  }
  return "";
}

std::string difference(const Graph& g, const Call& a, const Call& b) {
  return difference(g, a, b, Tolerance());
}

std::string on_all_targets(const Graph& g, const std::vector<std::int64_t>& symbols,
                           int compute_capability) {
  Random random(11);
  return call_on_all_targets(g, random_call(g, symbols, random, true), compute_capability);
}

namespace {

// Displacements are a few of those that there can be: another may round what is computed of it to
// the next number.
Tolerance of_another_machine(const Graph& g, Tolerance tolerance, const Call& expected) {
  for (std::size_t i = 0; i < tolerance.size(); ++i) {
    const DType t = g.mapping.block_mappings[i].array_aval.dtype;
    for (std::size_t k = 0; t.is_float() && k < tolerance[i].size(); ++k)
      tolerance[i][k] =
          2 * tolerance[i][k] +
          unit_of(t, value_of(t, get(expected.arrays[i], static_cast<std::int64_t>(k), t)));
  }
  return tolerance;
}

// What nobody writes, and what is made of it, a GPU may leave as it was or not: the interpreter
// tells by what is there before.
void forget_unwritten(const Graph& g, const Call& before, const Call& expected, Call& there) {
  Call other = before;
  for (std::size_t i = static_cast<std::size_t>(g.mapping.num_inputs); i < other.arrays.size(); ++i)
    if (storage_of(g, i) == i) std::ranges::fill(other.arrays[i], std::byte{0x55});
  run_interpreter(g, other, false);
  for (std::size_t i = static_cast<std::size_t>(g.mapping.num_inputs); i < there.arrays.size();
       ++i) {
    const auto size = static_cast<std::size_t>(
        i < g.mapping.block_mappings.size() ? g.mapping.block_mappings[i].array_aval.dtype.bytes()
                                            : 1);
    for (std::size_t b = 0; b < there.arrays[i].size(); b += size)
      if (std::memcmp(&other.arrays[i][b], &expected.arrays[i][b], size) != 0)
        std::memcpy(&there.arrays[i][b], &expected.arrays[i][b], size);
  }
}

}  // namespace

std::string call_on_all_targets(const Graph& g, const Call& call, int compute_capability) {
  const Tolerance tolerance = tolerance_of(g, call);
  if (has_gpu()) {
    // A GPU has zeros out of bounds.
    Call zeros = call, there = call;
    run_interpreter(g, zeros, false);
    run_gpu(g, there);
    forget_unwritten(g, call, zeros, there);
    const Tolerance wider = of_another_machine(g, tolerance, zeros);
    if (const std::string gpu = difference(g, zeros, there, wider); !gpu.empty())
      return "on the GPU: " + gpu;
  }
  if (!is_wanted(Target::emulator)) return "";
  Call a = call, b = call;
  run_interpreter(g, a);
  run_emulator(g, {.compute_capability = compute_capability}, b);
  return difference(g, a, b, tolerance);
}

}  // namespace palladium::test
