// A condition on the scaled number of an iteration of the innermost sequential axis, part * 64 < n,
// asks for the number alone, part < ceil(n / 64): peel_iterations ends the loop there.
#include <optional>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/iterations.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;

// number * scale < end, or <=.
struct Bounded {
  std::int64_t scale = 1;
  ValueId end = graph::no_value;
  bool also_end = false;
};

class Bounding {
 public:
  Bounding(Graph& g, int axis) : g_(g), axis_(axis) {}

  bool run() {
    bool found = false;
    for (const graph::Body& b : g_.bodies)
      for (const ValueId when : std::vector(g_[b.region].insts))
        if (g_[when].op == Op::When) found |= rewrite(when);
    return found;
  }

 private:
  bool rewrite(ValueId when) {
    const ValueId condition = g_[when].args[0];
    const std::optional<Bounded> bounded = bounded_by(g_[condition]);
    if (!bounded || (bounded->scale == 1 && !bounded->also_end && g_[condition].op == Op::Lt) ||
        !holds_all(bounded->scale))
      return false;
    at_ = when;
    where_ = g_.location(condition);
    ValueId end = bounded->end;
    if (bounded->also_end) {
      const ValueId last = add(Op::Min, end, number(INT32_MAX - 1));
      end = add(Op::Add, last, number(1));
    }
    if (bounded->scale > 1) end = divide_upwards(end, bounded->scale);
    const ValueId id = program_id(g_[condition]);
    const ValueId asked = g_.add({Op::Lt, g_[condition].type, {}, {id, end}, {}}, where_);
    insert_before(g_, asked, when);
    g_[when].args[0] = asked;
    return true;
  }

  std::optional<Bounded> bounded_by(const Inst& condition) const {
    const bool less = condition.op == Op::Lt || condition.op == Op::Le;
    if (!less && condition.op != Op::Gt && condition.op != Op::Ge) return {};
    const ValueId low = condition.args[less ? 0 : 1], end = condition.args[less ? 1 : 0];
    const auto scale = scale_of(low);
    if (!scale || g_[end].type.dtype != i32 || asks_for_axis(g_, end, axis_)) return {};
    return Bounded{*scale, end, condition.op == Op::Le || condition.op == Op::Ge};
  }

  std::optional<std::int64_t> scale_of(ValueId v) const {
    const Inst& i = g_[v];
    if (is_program_id(v)) return 1;
    if (i.op != Op::Mul || i.type.dtype != i32) return {};
    for (const std::size_t k : {0, 1}) {
      const Inst& c = g_[i.args[k]];
      if (c.op != Op::Constant || !is_program_id(i.args[1 - k])) continue;
      const std::int64_t scale = graph::to_int(i32, c.attr.bits);
      if (scale > 0) return scale;
    }
    return {};
  }

  bool is_program_id(ValueId v) const {
    return g_[v].op == Op::ProgramId && graph::AxisView::of(g_[v]).axis == axis_;
  }
  ValueId program_id(const Inst& condition) const {
    for (const ValueId a : condition.args) {
      if (is_program_id(a)) return a;
      for (const ValueId inner : g_[a].args)
        if (g_[a].op == Op::Mul && is_program_id(inner)) return inner;
    }
    return graph::no_value;
  }

  // Whether no number of the axis, scaled, wraps around.
  bool holds_all(std::int64_t scale) const {
    const Dim& size = g_.mapping.grid[static_cast<std::size_t>(axis_)];
    return scale == 1 || (size.is_static() && size.value() <= INT32_MAX / scale);
  }

  // Of what is below 0 as of 0.
  ValueId divide_upwards(ValueId n, std::int64_t by) {
    const ValueId some = add(Op::Max, n, number(0));
    const ValueId whole = add(Op::Div, some, number(by));
    const ValueId rest = add(Op::Sub, some, add(Op::Mul, whole, number(by)));
    return add(Op::Add, whole, add(Op::Min, rest, number(1)));
  }

  ValueId number(std::int64_t n) {
    return insert(
        {Op::Constant, graph::Type::value(i32, {}), {{}, graph::to_bits(i32, n)}, {}, {}});
  }
  ValueId add(Op op, ValueId a, ValueId b) {
    return insert({op, graph::Type::value(i32, {}), {}, {a, b}, {}});
  }
  ValueId insert(Inst i) {
    const ValueId v = g_.add(std::move(i), where_);
    insert_before(g_, v, at_);
    return v;
  }

  Graph& g_;
  const int axis_;
  ValueId at_ = graph::no_value;  // the When in front of which instructions are added
  Location where_;
};

}  // namespace

void bound_axes(Program& l) {
  const int axis = innermost_sequential_axis(l.graph);
  if (axis >= 0 && Bounding(l.graph, axis).run()) l.uses = uses_of(l.graph);
}

}  // namespace palladium::passes
