#include "runtime/dims.hpp"

#include <algorithm>

#include "codegen/base/dim.hpp"

namespace palladium::runtime {
namespace {

using detail::DimOp;
constexpr int max_depth = 32;

std::int64_t apply(DimOp op, std::int64_t a, std::int64_t b) {
  if (b == 0 && (op == DimOp::div || op == DimOp::mod || op == DimOp::cdiv))
    throw CompileError("a dimension is divided by zero");
  switch (op) {
  case DimOp::add: return a + b;
  case DimOp::sub: return a - b;
  case DimOp::mul: return a * b;
  case DimOp::div: return a / b;
  case DimOp::mod: return a % b;
  case DimOp::cdiv: return a / b + (a % b != 0);
  case DimOp::min: return std::min(a, b);
  case DimOp::max: return std::max(a, b);
  case DimOp::symbol:
  case DimOp::constant: break;
  }
  throw InternalError("extent: not a binary operation");
}

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

std::int64_t Extent::run(const std::int64_t* symbols) const {
  std::int64_t stack[max_depth + 1];
  int top = 0;
  for (const Step& step : steps_) {
    if (step.op == DimOp::constant) {
      stack[top++] = step.operand;
    } else if (step.op == DimOp::symbol) {
      stack[top++] = symbols[step.operand];
    } else {
      --top;
      stack[top - 1] = apply(step.op, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

}  // namespace palladium::runtime
