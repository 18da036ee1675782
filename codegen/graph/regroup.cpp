// Products by constants under approximate maths: see simplify.hpp.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "codegen/graph/simplify.hpp"
#include "codegen/graph/uses.hpp"

namespace palladium::graph {
namespace {

class Regroup {
 public:
  explicit Regroup(Graph& g) : g_(g), uses_(g) {}

  bool run() {
    std::vector<RegionId> stack = root_regions(g_);
    while (!stack.empty()) {
      const RegionId r = stack.back();
      stack.pop_back();
      const std::vector<ValueId> recorded = g_[r].insts;
      insts_.clear();
      for (const ValueId v : recorded) {
        stack.insert(stack.end(), g_[v].regions.begin(), g_[v].regions.end());
        if (g_[v].type.is_value() && g_[v].type.dtype == f32) rewrite(v);
        insts_.push_back(v);
      }
      g_[r].insts = insts_;
    }
    return any_;
  }

 private:
  /// x * by, for nobody else.
  struct Scaled {
    ValueId x = no_value;
    double by = 1;
  };

  static bool is_normal(double x) { return std::isnormal(static_cast<float>(x)); }

  std::optional<double> constant(ValueId v) const {
    if (g_[v].op != Op::Constant) return {};
    return to_double(f32, g_[v].attr.bits);
  }

  std::optional<Scaled> scaled(ValueId v, ValueId user, bool alone) const {
    if (g_[v].op != Op::Mul || uses_.region(v) != uses_.region(user)) return {};
    if (alone && uses_.count(v) > 1) return {};
    for (const std::size_t k : {1, 0})
      if (const auto by = constant(g_[v].args[k]); by && is_normal(*by))
        return Scaled{g_[v].args[1 - k], *by};
    return {};
  }

  void rewrite(ValueId v) {
    switch (g_[v].op) {
    case Op::Mul: return multiply(v);
    case Op::Div: return divide(v);
    case Op::Select: return choose(v);
    case Op::ReduceMax:
    case Op::ReduceMin:
      if (const auto of = scaled(g_[v].args[0], v, false); of && of->by > 0) {
        const Inst reduced{g_[v].op, g_[v].type, g_[v].attr, {of->x}, {}};
        become_product(v, add(reduced, v), of->by);
      }
      return;
    default: return;
    }
  }

  // (x * a) * b = x * (a * b)
  void multiply(ValueId v) {
    for (const std::size_t k : {1, 0}) {
      const auto by = constant(g_[v].args[k]);
      const auto of = by ? scaled(g_[v].args[1 - k], v, true) : std::nullopt;
      if (of && is_normal(*by) && is_normal(*by * of->by))
        return become_product(v, of->x, *by * of->by);
    }
  }

  // x / a = x * (1 / a)
  void divide(ValueId v) {
    const auto by = constant(g_[v].args[1]);
    if (by && is_normal(*by) && is_normal(1 / *by)) become_product(v, g_[v].args[0], 1 / *by);
  }

  // where(c, x * a, b) = where(c, x, b / a) * a
  void choose(ValueId v) {
    for (const std::size_t k : {1, 2}) {
      const auto of = scaled(g_[v].args[k], v, true);
      const auto other = constant(g_[v].args[3 - k]);
      if (!of || !other || std::isnan(*other)) continue;
      const double less = *other / of->by;
      if (std::isfinite(*other) && *other != 0 && !is_normal(less)) continue;
      Inst chosen{Op::Select, g_[v].type, {}, {g_[v].args[0], of->x, of->x}, {}};
      chosen.args[3 - k] = add_constant(less, v);
      return become_product(v, add(std::move(chosen), v), of->by);
    }
  }

  ValueId add(Inst inst, ValueId user) {
    insts_.push_back(g_.add(std::move(inst), g_.location(user)));
    return insts_.back();
  }
  ValueId add_constant(double number, ValueId user) {
    return add({Op::Constant, g_[user].type, {{}, to_bits(f32, number)}, {}, {}}, user);
  }

  void become_product(ValueId v, ValueId x, double by) {
    const ValueId factor = add_constant(by, v);
    Inst& in = g_[v];
    in.op = Op::Mul;
    in.attr = {};
    in.args = {x, factor};
    any_ = true;
  }

  Graph& g_;
  const Uses uses_;
  std::vector<ValueId> insts_;  // of the region
  bool any_ = false;
};

}  // namespace

bool regroup_products(Graph& g) { return Regroup(g).run(); }

}  // namespace palladium::graph
