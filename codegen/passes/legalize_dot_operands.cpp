// Makes operands of products what tensor cores take: floats of 8 bits as they are, rather than the
// f16 that they were widened to, and elements of 8 bits along K, which is where the hardware wants
// all but those of 16.
#include <algorithm>
#include <array>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::Op;

class Legalization {
 public:
  explicit Legalization(Program& l) : l_(l), g_(l.graph) {}

  void run() {
    const Analysis a(g_);
    for (const ValueId v : a.order)
      if (g_[v].op == Op::Dot) suit(v);
    l_.uses = uses_of(g_);
  }

 private:
  void suit(ValueId dot) {
    const DType t = g_[g_[dot].args[0]].type.dtype;
    const bool tf32 = graph::DotView::of(g_[dot]).precision == graph::Precision::tf32;
    if (t.bytes() > 2 && !tf32) return;
    for (const std::size_t operand : {0, 1}) take_transpose(dot, operand);
    if (t == f16) narrow(dot);
    if (g_[g_[dot].args[0]].type.dtype.bytes() == 1 || (tf32 && takes_wgmma_along_k(g_[dot])))
      for (const std::size_t operand : {0, 1}) turn(dot, operand);
  }

  // Whether wgmma would multiply the operands if both were stored along K.
  bool takes_wgmma_along_k(Inst dot) const {
    graph::DotView view = graph::DotView::of(dot);
    dot.attr = {{false, true, static_cast<std::int64_t>(view.precision)}, 0};
    return warps_that_take_wgmma(l_, dot) > 0;
  }

  bool is_turned(ValueId dot, std::size_t operand) const {
    const graph::DotView view = graph::DotView::of(g_[dot]);
    return operand == 0 ? view.trans_a : !view.trans_b;
  }

  // x, instead of what transposes x.
  void take_transpose(ValueId dot, std::size_t operand) {
    const Inst& i = g_[g_[dot].args[operand]];
    if (i.op != Op::Transpose || !std::ranges::equal(graph::dimensions(i), std::array{1, 0}))
      return;
    flip(dot, operand);
    replace(dot, operand, i.args[0]);
  }

  // x and y of 8 bits, instead of f16(x) and f16(y), which hold the same numbers.
  void narrow(ValueId dot) {
    if (!l_.machine.has_fast_byte_floats()) return;
    Inst narrow = g_[dot];
    for (ValueId& operand : narrow.args) {
      const Inst& i = g_[operand];
      if (i.op != Op::Cast || !graph::is_byte_float(g_[i.args[0]].type.dtype)) return;
      operand = i.args[0];
    }
    if (!is_k_major(graph::DotView::of(narrow)) && !takes_wgmma_along_k(narrow))
      return tell_of_major(dot,
                           "multiplied as f16, because tensor cores take 8 bits along K alone");
    g_[dot].args = narrow.args;
  }

  // What does not lie along K is transposed on its way to where products read it, which mma.sync of
  // tf32 does not need.
  void turn(ValueId dot, std::size_t operand) {
    if (!is_turned(dot, operand)) return;
    const ValueId x = g_[dot].args[operand];
    graph::Type type = g_[x].type;
    std::swap(type.shape[0], type.shape[1]);
    const Location at = g_.location(dot);
    tell(dot, operand,
         fmt::format("transposed as it is staged, because tensor cores take {} along K alone",
                     g_[x].type.dtype == f32 ? "tf32" : "8 bits"));
    const ValueId turned = g_.add({Op::Transpose, std::move(type), {{1, 0}, 0}, {x}, {}}, at);
    insert_before(g_, turned, dot);
    g_[dot].args[operand] = turned;
    flip(dot, operand);
  }

  void flip(ValueId dot, std::size_t operand) {
    graph::DotView view = graph::DotView::of(g_[dot]);
    bool& transposed = operand == 0 ? view.trans_a : view.trans_b;
    transposed = !transposed;
    g_[dot].attr = {{view.trans_a, view.trans_b, static_cast<std::int64_t>(view.precision)}, 0};
  }

  void replace(ValueId dot, std::size_t operand, ValueId by) { g_[dot].args[operand] = by; }

  void tell_of_major(ValueId dot, const char* what) {
    for (const std::size_t operand : {0, 1})
      if (is_turned(dot, operand)) tell(dot, operand, what);
  }

  void tell(ValueId dot, std::size_t operand, std::string_view what) {
    l_.remarks.push_back(
        {g_.location(dot),
         fmt::format("{}: {}; store it {} and say trans_{} = {}", of(g_[dot].args[operand]), what,
                     operand == 0 ? "(M, K)" : "(N, K)", operand == 0 ? "a" : "b", operand != 0)});
  }

  // What the user knows an operand as: that of which it is loaded.
  std::string of(ValueId v) const {
    const auto is_moved = [](Op op) {
      return op == Op::Cast || op == Op::Transpose || op == Op::Broadcast || op == Op::Reshape;
    };
    while (g_[v].op == Op::Select || is_moved(g_[v].op)) v = g_[v].args[g_[v].op == Op::Select];
    return description_of(g_, g_[v].op == Op::Load ? root_of(g_, v) : v);
  }

  Program& l_;
  graph::Graph& g_;
};

}  // namespace

void legalize_dot_operands(Program& l) { Legalization(l).run(); }

}  // namespace palladium::passes
