// Products by constants under approximate maths: see simplify.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

#include "codegen/graph/simplify.hpp"
#include "codegen/graph/uses.hpp"

namespace palladium::graph {
namespace {

constexpr int deepest = 12;  // operations that are looked at below each other

// A constant whose product a contraction takes as exactly as matters.
constexpr double largest_exact = 1 << 10;

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
    case Op::Sub: return subtract(v);
    case Op::Exp: return raise_two(v);
    case Op::ReduceMax:
    case Op::ReduceMin:
      if (const auto of = scaled(g_[v].args[0], v, false); of && of->by > 0 && is_small(of->x, 0)) {
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
    for (const std::size_t k : {1, 0})
      if (multiply_factors(v, k)) return;
  }

  // (x * a) * b = x * (a * b), where a and b are numbers of rows, or of all, that are repeated.
  bool multiply_factors(ValueId v, std::size_t k) {
    const ValueId by = g_[v].args[k], product = g_[v].args[1 - k];
    if (g_[by].op != Op::Broadcast || g_[product].op != Op::Mul || uses_.count(product) > 1 ||
        uses_.region(product) != uses_.region(v))
      return false;
    for (const std::size_t j : {1, 0}) {
      const ValueId then = g_[product].args[j], x = g_[product].args[1 - j];
      if (g_[then].op != Op::Broadcast || g_[x].op == Op::Broadcast) continue;
      const ValueId factors = product_of_factors(then, by, v);
      if (factors == no_value) continue;
      g_[v].args = {x, factors};
      return any_ = true;
    }
    return false;
  }

  // The product of what both repeat, repeated.
  ValueId product_of_factors(ValueId a, ValueId b, ValueId user) {
    if (g_[g_[a].args[0]].type.is_scalar()) std::swap(a, b);
    const ValueId x = g_[a].args[0], y = g_[b].args[0];
    const Type type = g_[x].type;
    ValueId other = y;
    if (g_[y].type.is_scalar() && !type.is_scalar()) {
      Inst repeats = g_[b];
      repeats.type = type;
      other = add(std::move(repeats), user);
    } else if (g_[y].type != type || g_[a].attr != g_[b].attr) {
      return no_value;
    }
    return repeated(a, add({Op::Mul, type, {}, {x, other}, {}}, user), user);
  }

  // x / a = x * (1 / a)
  void divide(ValueId v) {
    const auto by = constant(g_[v].args[1]);
    if (by && is_normal(*by) && is_normal(1 / *by)) become_product(v, g_[v].args[0], 1 / *by);
  }

  // Whether a constant that is chosen stays what it is beside what a contraction takes from its
  // product: it is small, or subtract() asks once more which elements it is chosen for.
  bool is_exact(double chosen, ValueId condition) const {
    return !std::isfinite(chosen) || std::abs(chosen) <= largest_exact ||
           is_of_numbers(condition, 0);
  }

  // where(c, x * a, b) = where(c, x, b / a) * a
  void choose(ValueId v) {
    for (const std::size_t k : {1, 2}) {
      const auto of = scaled(g_[v].args[k], v, true);
      const auto other = constant(g_[v].args[3 - k]);
      if (!of || !other || std::isnan(*other) || !is_exact(*other, g_[v].args[0])) continue;
      const double less = *other / of->by;
      if (std::isfinite(*other) && *other != 0 && !is_normal(less)) continue;
      Inst chosen{Op::Select, g_[v].type, {}, {g_[v].args[0], of->x, of->x}, {}};
      chosen.args[3 - k] = add_constant(less, v);
      return become_product(v, add(std::move(chosen), v), of->by);
    }
  }

  // where(c, x, a) * by - y = where(c, x * by - y, a * by - y). Of two roundings, not of one as a
  // contraction's, the constant is 0 beside a y that is its product: where a mask leaves nothing of
  // a row, exponentials are of that.
  void subtract(ValueId v) {
    const auto product = scaled(g_[v].args[0], v, false);
    if (!product || g_[product->x].op != Op::Select) return;
    const std::vector<ValueId> chosen = g_[product->x].args;
    for (const std::size_t k : {1, 2}) {
      const auto other = constant(chosen[k]);
      const ValueId x = chosen[3 - k], y = g_[v].args[1];
      if (!other || !std::isfinite(*other) || std::abs(*other) <= largest_exact || constant(x))
        continue;
      const double left = static_cast<float>(*other) * static_cast<float>(product->by);
      const Type type = g_[v].type;
      const ValueId factor = add_constant(product->by, v);
      const ValueId of_x = add({Op::Mul, type, {}, {x, factor}, {}}, v);
      const ValueId difference = add({Op::Sub, type, {}, {of_x, y}, {}}, v);
      const ValueId constant_less_y = less(left, y, v);
      Inst& in = g_[v];
      in.op = Op::Select;
      in.args = {chosen[0], difference, difference};
      in.args[k] = constant_less_y;
      any_ = true;
      return;
    }
  }

  // Whether no elements but an iota's are asked for.
  bool is_of_numbers(ValueId v, int depth) const {
    const Inst& i = g_[v];
    if (i.type.is_scalar() || i.op == Op::Iota || i.op == Op::Constant) return true;
    if (depth > deepest || !(is_elementwise(i.op) || i.op == Op::Broadcast)) return false;
    return std::ranges::all_of(i.args, [&](ValueId a) { return is_of_numbers(a, depth + 1); });
  }

  // number - y, of what y repeats.
  ValueId less(double number, ValueId y, ValueId user) {
    if (g_[y].op != Op::Broadcast) {
      const ValueId all = add_constant(number, user);
      return add({Op::Sub, g_[user].type, {}, {all, y}, {}}, user);
    }
    const ValueId once = g_[y].args[0];
    const ValueId part = add_constant(number, once, user);
    return repeated(y, add({Op::Sub, g_[once].type, {}, {part, once}, {}}, user), user);
  }

  // exp(x - y) = exp2(x * log2(e) - y * log2(e)), where y is one number for many x: a contraction
  // instead of a difference and a product. Both are rounded by themselves: only of what is as small
  // as products and angles are.
  void raise_two(ValueId v) {
    const ValueId difference = g_[v].args[0];
    if (g_[difference].op != Op::Sub || uses_.count(difference) > 1) return;
    const ValueId x = g_[difference].args[0], y = g_[difference].args[1];
    if (g_[y].op != Op::Broadcast || !is_small(x, 0)) return;
    const ValueId once = g_[y].args[0];
    const Type type = g_[v].type;
    const ValueId factor = add_constant(std::numbers::log2e, v);
    const ValueId of_x = add({Op::Mul, type, {}, {x, factor}, {}}, v);
    const ValueId part = add_constant(std::numbers::log2e, once, v);
    const ValueId of_once = add({Op::Mul, g_[once].type, {}, {once, part}, {}}, v);
    const ValueId of_y = repeated(y, of_once, v);
    const ValueId power = add({Op::Sub, type, {}, {of_x, of_y}, {}}, v);
    Inst& in = g_[v];
    in.op = Op::Exp2;
    in.args = {power};
    any_ = true;
  }

  // Whether a value is a product's, or computed of such, of f16 and of integers, but for constants
  // that are chosen instead. What a mask adds in f32 may be as large as there is.
  bool is_small(ValueId v, int depth) const {
    const Inst& i = g_[v];
    const auto arg = [&](std::size_t k) { return is_small(i.args[k], depth + 1); };
    if (depth > deepest) return false;
    switch (i.op) {
    case Op::Dot:
    case Op::Tanh: return true;
    case Op::Cast: return g_[i.args[0]].type.dtype.is_integer() || g_[i.args[0]].type.dtype == f16;
    case Op::Constant: return std::abs(*constant(v)) < 1 << 16;
    case Op::Broadcast:
    case Op::Neg:
    case Op::Abs: return arg(0);
    case Op::Mul: return is_product(v, depth) || (arg(0) && arg(1));
    case Op::Add:
    case Op::Sub: return arg(0) && arg(1);
    case Op::Select: {
      const auto is_chosen = [&](std::size_t k) {
        const auto other = constant(i.args[k]);
        return other ? is_exact(*other, i.args[0]) : arg(k);
      };
      return is_chosen(1) && is_chosen(2);
    }
    default: return false;
    }
  }

  // A product of tensor cores, whatever it is multiplied by.
  bool is_product(ValueId v, int depth) const {
    if (g_[v].op == Op::Dot) return true;
    return g_[v].op == Op::Mul && depth <= deepest &&
           (is_product(g_[v].args[0], depth + 1) || is_product(g_[v].args[1], depth + 1));
  }

  // As `like` repeats its operand.
  ValueId repeated(ValueId like, ValueId once, ValueId user) {
    Inst copy = g_[like];
    copy.args = {once};
    return add(std::move(copy), user);
  }

  ValueId add(Inst inst, ValueId user) {
    insts_.push_back(g_.add(std::move(inst), g_.location(user)));
    return insts_.back();
  }
  ValueId add_constant(double number, ValueId user) { return add_constant(number, user, user); }
  ValueId add_constant(double number, ValueId like, ValueId user) {
    return add({Op::Constant, g_[like].type, {{}, to_bits(f32, number)}, {}, {}}, user);
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
