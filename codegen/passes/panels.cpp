#include "codegen/passes/panels.hpp"

#include <algorithm>
#include <numeric>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {

using graph::Op;

Panels::Panels(const graph::Graph& g) : g_(g), indices_(g, exprs_) {
  if (!graph::has_async_ops(g)) return;
  for (const graph::Body& b : g.bodies) {
    const std::vector<ValueId>& params = g[b.region].params;
    const std::vector<ValueId>& first = g[g.bodies[0].region].params;
    for (std::size_t i = 0; i < params.size() && i < first.size(); ++i)
      firsts_[params[i]] = first[i];
    find_parts(b.region);
    find_uses(b, b.region);
  }
  for (std::size_t i = 0; i < g.insts.size(); ++i)
    if (const auto v = static_cast<ValueId>(i); g.is_base(v) && g[v].type.swizzle > 0)
      uses_.try_emplace(in_first_body(v));
  for (const auto& [root, uses] : uses_) choose(root, uses);
}

int Panels::swizzle(ValueId root) const {
  const auto found = swizzles_.find(in_first_body(root));
  return found == swizzles_.end() ? 0 : found->second;
}

ValueId Panels::in_first_body(ValueId root) const {
  const auto found = firsts_.find(root);
  return found == firsts_.end() ? root : found->second;
}

// Of members of a union the first that is the same.
void Panels::find_parts(graph::RegionId region) {
  for (const ValueId v : g_[region].insts) {
    const graph::Inst& inst = g_[v];
    if (inst.op == Op::RefPart) {
      const auto same = [&](ValueId other) {
        return in_first_body(g_[other].args[0]) == in_first_body(inst.args[0]) &&
               g_[other].attr == inst.attr && g_[other].type == inst.type;
      };
      const auto found = std::ranges::find_if(parts_, same);
      if (found == parts_.end())
        parts_.push_back(v);
      else
        firsts_[v] = *found;
    }
    for (const graph::RegionId inner : inst.regions) find_parts(inner);
  }
}

void Panels::find_uses(const graph::Body& body, graph::RegionId region) {
  for (const ValueId v : g_[region].insts) {
    const graph::Inst& inst = g_[v];
    for (const graph::RegionId inner : inst.regions) find_uses(body, inner);
    if (!graph::is_product_by_hand(inst.op)) continue;
    const graph::DotView dot = graph::DotView::of(inst);
    if (inst.op == Op::Wgmma)
      uses_[in_first_body(g_.base(dot.a))].push_back({v, dot.a, !dot.trans_a});
    uses_[in_first_body(g_.base(dot.b))].push_back({v, dot.b, dot.trans_b});
  }
}

std::optional<MatrixView> Panels::matrix(ValueId view) {
  if (g_[view].type.shape.size() != 2) return {};
  return matrices(view);
}

std::optional<MatrixView> Panels::matrices(ValueId view) {
  const int shown = static_cast<int>(g_[view].type.shape.size());
  if (shown < 2) return {};
  MatrixView found{.columns = g_[view].type.shape.back()};
  const int row = shown - 2, column = shown - 1;
  std::vector<int> dimensions(static_cast<std::size_t>(shown));  // of what is viewed
  std::iota(dimensions.begin(), dimensions.end(), 0);
  for (; !g_.is_base(view); view = g_[view].args[0]) {
    if (g_[view].op != Op::At || g_.chooses(view)) return {};
    std::vector<int> inner;  // by dimension of this view
    int dimension = 0;
    std::size_t operand = 1;
    for (const graph::SubscriptDim& d : graph::Subscript::of(g_[view]).dims) {
      const ValueId start = d.dynamic ? g_[view].args[operand++] : graph::no_value;
      if (d.is_slice) {
        const auto of_view = std::ranges::find(dimensions, static_cast<int>(inner.size()));
        inner.push_back(dimension);
        if (of_view != dimensions.end()) {
          if (d.stride != 1) return {};
          const std::int64_t multiple =
              d.dynamic ? exprs_.facts(indices_.expr(start)).multiple : d.start;
          const auto shows = of_view - dimensions.begin();
          if (shows == row) found.row_multiple = std::gcd(found.row_multiple, multiple);
          if (shows == column) {
            found.column_multiple = std::gcd(found.column_multiple, multiple);
            found.moves_columns = found.moves_columns || d.dynamic;
          }
        }
      }
      ++dimension;
    }
    for (int& d : dimensions) d = inner[static_cast<std::size_t>(d)];
  }
  const int rank = static_cast<int>(g_[view].type.shape.size());
  if (dimensions[static_cast<std::size_t>(row)] != rank - 2 ||
      dimensions[static_cast<std::size_t>(column)] != rank - 1)
    return {};
  return found;
}

// Why an operand does not lie as tensor cores take it; "" if it does.
std::string Panels::misfit(ValueId root, const Use& use, int swizzle) {
  const graph::Type& type = g_[root].type;
  const int bytes = type.dtype.bytes();
  const std::int64_t width = swizzle / bytes;
  if (type.shape.size() < 2) return "it is no matrix, nor several";
  if (type.shape.back() * bytes % swizzle != 0)
    return fmt::format("its rows have {} bytes", type.shape.back() * bytes);
  if (use.view == graph::no_value) return "";
  if (type.shape[type.shape.size() - 2] % 8 != 0) return "its rows are no multiple of 8";
  const std::optional<MatrixView> view = matrix(use.view);
  if (!view)
    return "the operand is none of its matrices, whole or a slice along rows and columns: indices "
           "and slices alone, transposed last";
  if (view->row_multiple % 8 != 0) return "the operand begins at no multiple of 8 rows";
  const std::int64_t step = use.along_k && !view->moves_columns ? 32 / bytes : width;
  if (view->column_multiple % step != 0)
    return fmt::format("the operand begins at no multiple of {} columns", step);
  return "";
}

void Panels::choose(ValueId root, const std::vector<Use>& uses) {
  const int given = g_[root].type.swizzle;
  std::string misfits;
  for (const int swizzle : {128, 64, 32}) {
    if (given > 0 && swizzle != given) continue;
    Use bad;
    std::string why = misfit(root, bad, swizzle);
    for (const Use& use : uses) {
      if (!why.empty()) break;
      why = misfit(root, bad = use, swizzle);
    }
    if (why.empty()) {
      swizzles_[root] = swizzle;
      return;
    }
    misfits += fmt::format("\n  not of {} bytes{}, because {}", swizzle,
                           given > 0 ? ", which SwizzleTransform gives" : "", why);
    if (bad.product != graph::no_value)
      misfits += fmt::format(" ({})", to_string(g_.location(bad.product)));
  }
  const Location at = uses.empty() ? g_.location(root) : g_.location(uses[0].product);
  throw CompileError(at, fmt::format("wgmma: no swizzle is one for all who use {}:{}",
                                     graph::to_string(g_[root].type), misfits));
}

}  // namespace palladium::passes
