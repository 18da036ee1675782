#include "runtime/call/extent.hpp"

#include "codegen/base/dim.hpp"

namespace palladium::runtime {
namespace {

using detail::DimOp;
constexpr int max_depth = 32;

}  // namespace

Extent::Extent(const Dim& dim) {
  if (dim.is_static())
    constant_ = dim.value();
  else
    compile(dim, 0);
}

void Extent::compile(const Dim& dim, int depth) {
  if (depth == max_depth)
    throw CompileError("dimension '" + to_string(dim) + "' is nested too deeply");
  if (dim.is_static()) {
    steps_.push_back({DimOp::constant, dim.value()});
    return;
  }
  const DimNode node = dim_node(dim);
  if (node.op == DimOp::symbol) {
    steps_.push_back({DimOp::symbol, node.symbol});
    return;
  }
  compile(node.a, depth + 1);
  compile(node.b, depth + 1);
  steps_.push_back({node.op, 0});
}

Checked Extent::run(const std::int64_t* symbols, bool refuses) const {
  std::int64_t stack[max_depth + 1];
  int top = 0;
  for (const Step& step : steps_) {
    if (step.op == DimOp::constant) {
      stack[top++] = step.operand;
    } else if (step.op == DimOp::symbol) {
      stack[top++] = symbols[step.operand];
    } else {
      --top;
      const Checked result = apply(step.op, stack[top - 1], stack[top]);
      if (!result.fits() && refuses) refuse_size(step.op, stack[top - 1], stack[top]);
      if (!result.fits()) return result;
      stack[top - 1] = result.value();
    }
  }
  return stack[0];
}

}  // namespace palladium::runtime
