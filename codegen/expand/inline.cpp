// Text of the user's: a function in front of the kernel, and its call.
#include "codegen/graph/inline.hpp"

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/expand/nest.hpp"
#include "codegen/passes/fetches.hpp"
#include "palladium/error.hpp"

namespace palladium::expand {

using graph::InlineView;
using lowered::Storage;
using lowered::Window;

// ---- where a view stands

namespace {

/// Along a dimension of a view: that of the block, and where the view begins in it.
struct Along {
  std::size_t of_block = 0;
  Affine start = {};
  std::int64_t stride = 1;
};

}  // namespace

// Rows of panels, from the one where the view begins, in elements apart; columns count from there.
Nest::Viewed Nest::view_in_panels(ValueId ref) {
  const StorageId storage = l_.windows[l_.window_of[g_.base(ref)]].storage();
  const Storage& s = l_.storages[storage];
  const std::vector<Affine> at = x_.origin_in_root(ref, ref);
  const std::vector<int> dimensions = *passes::box_dimensions(g_, ref);
  const std::size_t last = s.shape.size() - 1;
  const std::int64_t width = s.shared().swizzle / s.dtype.bytes();
  Viewed v{.operand = {}, .shared = true, .writable = true, .swizzle = s.shared().swizzle};
  v.operand.strides.assign(g_[ref].type.shape.size(), e_.number(1, i64));
  v.operand.extents = extents_of(ref);
  Affine rows;
  std::int64_t stride = width;
  for (std::size_t d = last; d-- > 0;) {
    rows = rows + at[d] * stride;
    if (dimensions[d] >= 0)
      v.operand.strides[static_cast<std::size_t>(dimensions[d])] = e_.number(stride, i64);
    stride = d + 1 == last ? s.shape[last] * s.shape[d] : stride * s.shape[d];
  }
  v.operand.value = e_.sum(Affine::term(x_.shared_address(storage)) + rows * s.dtype.bytes(), u32);
  v.operand.panel = e_.number(s.shape[last - 1] * s.shared().swizzle, u32);
  v.operand.column = e_.sum(at[last]);
  return v;
}

Nest::Viewed Nest::view_of(ValueId ref) {
  const StorageId in = l_.windows[l_.window_of[g_.base(ref)]].storage();
  if (in && l_.storages[in].in_shared() && l_.storages[in].shared().swizzle > 0)
    return view_in_panels(ref);
  const Extents& shape = g_[ref].type.shape;
  const auto rank = static_cast<int>(shape.size());
  const Coordinates none(shape.size());
  const DimMap all = lowered::identity_map(rank);
  const Address first = address(ref, none, all);
  Viewed v{.operand = {}, .shared = first.shared, .writable = first.writable};
  const Affine begin =
      (first.first == no_expr ? Affine() : Affine::term(first.first)) + first.offset;
  if (first.shared) {
    v.operand.value = e_.sum(Affine::term(first.base) + begin * first.dtype.bytes(), u32);
  } else {
    const VariableId base = e_[first.base].variable;
    v.operand.value = begin.is_zero() ? e_.address(base)
                                      : e_.address(base, e_.sum(begin, first.wide ? i64 : i32));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Coordinates next = none;
    next[d] = Affine(1);
    v.operand.strides.push_back(e_.sum(address(ref, next, all).offset + first.offset * -1, i64));
  }
  const std::vector<ExprId> extents = extents_of(ref);
  v.operand.extents = extents;
  // A scalar is one element.
  if (shape.empty()) {
    v.operand.strides = {e_.number(1, i64)};
    v.operand.extents = {e_.number(1)};
  }
  return v;
}

// How many elements there are along each dimension: of a block that its array may end in, so many
// less.
std::vector<ExprId> Nest::extents_of(ValueId ref) {
  const Extents& shape = g_[ref].type.shape;
  std::vector<Along> along(shape.size());
  for (std::size_t d = 0; d < along.size(); ++d) along[d].of_block = d;
  ValueId v = ref;
  for (; !g_.is_base(v); v = g_[v].args[0]) {
    const graph::Inst& view = g_[v];
    if (view.op == graph::Op::RefTranspose) {
      for (Along& a : along)
        a.of_block = static_cast<std::size_t>(graph::dimensions(view)[a.of_block]);
      continue;
    }
    std::vector<Along> slices;  // of the view's dimensions
    std::size_t operand = 1, dimension = 0;
    for (const graph::SubscriptDim& d : graph::Subscript::of(view).dims) {
      const Affine start = d.dynamic ? e_.affine(index_value(view.args[operand++])) : d.start;
      if (d.is_slice) slices.push_back({dimension, start, d.stride});
      ++dimension;
    }
    for (Along& a : along) {
      const Along& s = slices[a.of_block];
      a = {s.of_block, a.start * s.stride + s.start, a.stride * s.stride};
    }
  }
  const WindowId window = l_.window_of[v];
  const Window& w = l_.windows[window];
  std::vector<ExprId> sizes(g_[v].type.shape.size(), no_expr);
  if (w.mapping >= 0) {
    const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
    const passes::BlockNames& names = block(window);
    std::size_t next = 0;
    for (std::size_t d = 0; d < m.block_shape.size(); ++d)
      if (m.block_shape[d].kind != BlockDim::Kind::squeezed) sizes[next++] = names.size[d];
  }
  std::vector<ExprId> extents;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const ExprId most = e_.number(shape[d]);
    const ExprId size = sizes[along[d].of_block];
    if (size == no_expr) {
      extents.push_back(most);
      continue;
    }
    ExprId left = e_.sum(Affine::term(size) + along[d].start * -1 + Affine(along[d].stride - 1));
    if (along[d].stride > 1)
      left = e_.plain(Operator::div, e_.call(Row::max, i32, {left, e_.number(0)}),
                      e_.number(along[d].stride));
    extents.push_back(e_.call(Row::max, i32, {e_.call(Row::min, i32, {left, most}), e_.number(0)}));
  }
  return extents;
}

// ---- PTX

namespace {

const char* constraint_of(DType t) {
  if (t.is_float()) return t.bytes() == 8 ? "d" : t.bytes() == 4 ? "f" : "h";
  return t.bytes() == 8 ? "l" : t.bytes() == 4 ? "r" : "h";
}

}  // namespace

// ---- the function and its call

std::size_t Expander::function_of(ValueId v, std::string parameters) {
  const auto [known, is_new] = functions_.try_emplace({v, parameters}, p_.functions.size());
  if (!is_new) return known->second;
  const graph::Inst& inst = g_[v];
  const InlineView view = InlineView::of(inst);
  thread::Function f{.name = fmt::format("{}_{}", view.name, p_.functions.size()),
                     .parameters = std::move(parameters),
                     .text = {},
                     .at = b_.at()};
  if (!view.is_ptx()) {
    f.text = view.lines();
  } else {
    std::vector<InlineView::Bound> bound;
    std::string registers;  // of which operand or result
    const auto bind = [&](const std::string& name, const graph::Type& type, bool is_result) {
      const bool one = graph::element_count(type.shape) == 1;
      if (!one) registers = name;
      const bool half = type.dtype.is_float() && type.dtype.bytes() == 2;
      bound.push_back({name, name + (one ? "" : "[i]") + (half ? ".bits" : ""),
                       constraint_of(type.dtype), is_result});
    };
    for (std::size_t i = 0; i < view.operands.size(); ++i) {
      const InlineView::Operand& o = view.operands[i];
      const graph::Type& type = g_[inst.args[i]].type;
      if (o.role == InlineView::Role::value) {
        bind(o.name, type, false);
        continue;
      }
      std::string zeros = "0";
      for (std::size_t d = 1; d < type.shape.size(); ++d) zeros += ", 0";
      const WindowId w = l_.window_of[g_.base(inst.args[i])];
      bound.push_back({o.name, fmt::format("{}.address({})", o.name, zeros),
                       l_.windows[w].is_direct() ? "l" : "r", false});
    }
    for (const InlineView::Result& r : view.results) bind(r.name, r.type, true);
    const std::string statement = view.assembly(bound);
    if (registers.empty())
      f.text = {statement};
    else
      f.text = {fmt::format("PL_UNROLL for (i32 i = 0; i < PL_REGISTERS({}); ++i)", registers),
                "  " + statement};
  }
  p_.functions.push_back(std::move(f));
  return known->second;
}

void Expander::expand_one(const lowered::Inline& t) {
  const graph::Inst& inst = g_[t.inst];
  const InlineView view = InlineView::of(inst);
  std::string parameters;
  thread::Inline call;
  const auto add = [&](const std::string& parameter, thread::Inline::Operand operand) {
    parameters += (parameters.empty() ? "" : ", ") + parameter;
    call.operands.push_back(std::move(operand));
  };
  const auto registers = [&](const std::string& name, StorageId s, const char* qualifier) {
    const thread::Variable& v = e_[storage(s)];
    return fmt::format("{}{} (&{})[{}]", qualifier, v.type.name(), name, v.count);
  };
  for (std::size_t i = 0; i < view.operands.size(); ++i) {
    const std::string& name = view.operands[i].name;
    const std::string type = g_[inst.args[i]].type.dtype.name();
    if (view.operands[i].role != InlineView::Role::value) {
      const lowered::Redirects none;
      Nest::Viewed viewed = Nest(*this, none).view_of(inst.args[i]);
      const bool reads = view.operands[i].role == InlineView::Role::read;
      const std::string parameter =
          fmt::format("const pl::View<{}{}, {}, {}{}> {}", reads ? "const " : "", type,
                      viewed.operand.strides.size(), viewed.shared,
                      viewed.swizzle > 0 ? ", " + std::to_string(viewed.swizzle) : "", name);
      add(parameter, std::move(viewed.operand));
    } else if (t.operands[i]) {
      add(registers(name, t.operands[i], "const "), {e_.variable(storage(t.operands[i]))});
    } else {
      add(fmt::format("const {} {}", type, name), {scalar(inst.args[i])});
    }
  }
  for (std::size_t r = 0; r < view.results.size(); ++r) {
    const StorageId s = t.results[r];
    if (!declared_[s]) declare_storage(s);
    mark_stored(s);
    add(l_.storages[s].is_scalar()
            ? fmt::format("{}& {}", l_.storages[s].dtype.name(), view.results[r].name)
            : registers(view.results[r].name, s, ""),
        {e_.variable(storage(s))});
  }
  call.function = function_of(t.inst, std::move(parameters));
  b_.add(std::move(call));
}

}  // namespace palladium::expand
