#include "runtime/call/extent.hpp"

#include <bit>

#include "codegen/base/dim.hpp"

namespace palladium::runtime {
namespace {

using detail::DimOp;
constexpr int max_depth = 32;

}  // namespace

Extent::Extent(const Dim& dim) {
  compile(dim, 0);
  if (steps_.size() > 1) {
    form_ = Form::program;
    return;
  }
  leaf_ = steps_.front();
  steps_.clear();
  if (leaf_.op == DimOp::symbol) form_ = leaf_.shift == 0 ? Form::symbol : Form::pieces;
}

std::int64_t Extent::pieces_of_negative(std::int64_t n, int shift) {
  return apply(DimOp::cdiv, n, std::int64_t{1} << shift).value();
}

void Extent::compile(const Dim& dim, int depth) {
  if (depth == max_depth)
    throw CompileError("dimension '" + to_string(dim) + "' is nested too deeply");
  if (dim.is_static()) {
    steps_.push_back({.op = DimOp::constant, .operand = dim.value()});
    return;
  }
  const DimNode node = dim_node(dim);
  if (node.op == DimOp::symbol) {
    steps_.push_back({.op = DimOp::symbol, .operand = node.symbol});
    return;
  }
  if (node.op == DimOp::cdiv && !node.a.is_static() && node.b.is_static() && node.b.value() > 0) {
    const DimNode divided = dim_node(node.a);
    const auto by = static_cast<std::uint64_t>(node.b.value());
    if (divided.op == DimOp::symbol && std::has_single_bit(by)) {
      steps_.push_back({DimOp::symbol, std::countr_zero(by), divided.symbol});
      return;
    }
  }
  compile(node.a, depth + 1);
  compile(node.b, depth + 1);
  steps_.push_back({.op = node.op});
}

Checked Extent::run(const std::int64_t* symbols, bool refuses) const {
  std::int64_t stack[max_depth + 1];
  int top = 0;
  for (const Step& step : steps_) {
    if (step.op == DimOp::constant) {
      stack[top++] = step.operand;
    } else if (step.op == DimOp::symbol) {
      stack[top++] = value_of(step, symbols);
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
