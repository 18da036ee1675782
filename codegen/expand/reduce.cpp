// Reductions: partial results in registers, folded over lanes and warps.
#include "codegen/expand/nest.hpp"
#include "codegen/layout/transfer.hpp"

namespace palladium::expand {

using lowered::Storage;
using thread::Declare;

ExprId Nest::Folding::accumulator(Exprs& e, ExprId at) const {
  return one ? e.variable(acc) : e.element(acc, at);
}

ExprId Nest::converted(ExprId x, DType to) {
  return e_[x].type == to ? x : e_.call(Row::to, to, {x}, true);
}

ExprId Nest::identity(thread::Fold how, DType type) {
  switch (how) {
  case thread::Fold::max: return e_.call(Row::min_value, type, {}, true);
  case thread::Fold::min: return e_.call(Row::max_value, type, {}, true);
  case thread::Fold::product: return e_.literal(type, graph::to_bits(type, 1.0));
  case thread::Fold::sum: break;
  }
  return e_.literal(type, 0);
}

Nest::Folding Nest::folding(const lowered::Reduce& s) {
  Folding f;
  const bool shared = l_.storages[s.storage].in_shared();
  f.type = lowered::accumulator_dtype(g_, s.inst);
  f.result = layout::drop(layout_, s.reduced);
  f.registers = shared ? std::int64_t{1} << f.result.reg.size() : f.result.registers();
  f.one = f.registers == 1 && !shared;
  f.how = lowered::fold_of(g_[s.inst].op);
  f.identity = identity(f.how, f.type);
  return f;
}

void Nest::start_folding(Folding& f) {
  f.acc = e_.declare({.name = "acc",
                      .form = f.one ? thread::Form::value : thread::Form::array,
                      .type = f.type,
                      .count = f.registers,
                      .facts = {.depends = thread::on_thread}});
  if (f.one) {
    b_.add(Declare{.start = Declare::Start::values, .variable = f.acc, .values = {f.identity}});
    return;
  }
  b_.add(Declare{.variable = f.acc});
  const ExprId a = x_.open_registers("a", f.registers, true);
  b_.add(thread::Assign{e_.element(f.acc, a), f.identity});
  b_.close();
}

// What of the elements the fold takes: not what registers and threads hold beyond the value, but
// where that is in the fold already, and once more makes no difference.
ExprId Nest::folded_elements(const lowered::Reduce& s) {
  DimMap folded(s.reduced.begin(), s.reduced.end());
  if (nest_->repeats_first) std::erase(folded, layout_.rank() - 1);
  return predicate(padding(folded));
}

// A product is added with one rounding, where those of the user's own sums are.
ExprId Nest::folded(const Folding& f, ExprId into, ExprId value) {
  const thread::Expr x = e_[unnamed(value)];
  const bool is_product = x.node == thread::Node::op && x.op == graph::Op::Mul && x.type == f.type;
  if (g_.fma && is_product && f.type.is_float() && f.how == thread::Fold::sum)
    return e_.op(graph::Op::Fma, f.type, {x.args[0], x.args[1], into});
  return e_.call(Row::fold, f.type, {e_.fold(f.how), into, value});
}

void Nest::fold_elements(const lowered::Reduce& s, const Folding& f) {
  constexpr thread::Depends on_elements = thread::on_element | thread::in_element;
  DimMap kept;
  for (int d = 0; d < layout_.rank(); ++d)
    if (!is_reduced(d)) kept.push_back(d);
  const bool shared = l_.storages[s.storage].in_shared();
  open_groups();
  int bits = 0;
  const ExprId at =
      e_.sum(shared ? low_register_index(kept, bits) : register_index(f.result, kept));
  const ExprId to = f.accumulator(e_, at), exists = folded_elements(s);
  const auto fold = [&](ExprId into, ExprId value) {
    b_.add(thread::Assign{into, folded(f, into, value)});
  };
  // A vector that is beyond the value as a whole is left out as a whole.
  const bool by_vectors = vector_ > 1 && exists != no_expr &&
                          ((e_.depends(exists) | e_.depends(at)) & on_elements) == 0;
  ExprId part = to;
  if (by_vectors) {
    // Of floats -0, which leaves every other as it is.
    const bool floats = f.how == thread::Fold::sum && f.type.is_float();
    const ExprId neutral =
        floats ? e_.literal(f.type, std::uint64_t{1} << (8 * f.type.bytes() - 1)) : f.identity;
    const VariableId v =
        e_.declare({.name = "part", .type = f.type, .facts = {.depends = thread::on_thread}});
    b_.add(Declare{.start = Declare::Start::values, .variable = v, .values = {neutral}});
    part = e_.variable(v);
  }
  open_elements();
  ExprId value = converted(evaluate(nest_->value, coordinates_, all_dimensions(), false), f.type);
  if (!by_vectors && exists != no_expr) value = e_.choose(exists, value, f.identity);
  fold(part, value);
  if (!by_vectors) return;
  b_.close();
  fold(to, e_.choose(exists, part, f.identity));
}

// Over the lanes of each warp, then over the warps, through shared memory.
void Nest::fold_threads(const lowered::Reduce& s, const Folding& f) {
  const layout::Bits all = layout_.thread(), left = f.result.thread();
  std::int64_t lanes = 0, warps = 0, distinct = 0;
  for (int b = 0; b < layout_.thread_bits(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const bool folded = all[at] != 0 && left[at] == 0;
    if (b < layout::lane_bits) {
      lanes |= folded ? 1 << b : 0;
      distinct |= left[at] != 0 ? 1 << b : 0;
    } else {
      warps |= folded ? 1 << (b - layout::lane_bits) : 0;
    }
  }
  const ExprId acc = f.one ? e_.variable(f.acc) : e_.address(f.acc);
  const ExprId to = f.one ? acc : no_expr, how = e_.fold(f.how);
  if (lanes != 0)
    b_.add(thread::Call{
        .function = Row::reduce_lanes, .templates = {lanes}, .args = {acc, how}, .to = to});
  if (warps == 0) return;
  sync_scratch();
  thread::Call call{.function = Row::reduce_warps,
                    .templates = {warps, distinct, std::int64_t{x_.warpgroups()}},
                    .args = {acc, x_.shared_address(s.scratch), how},
                    .to = to};
  if (x_.is_wide()) call.templates.emplace_back(std::int64_t{l_.num_warps});
  b_.add(std::move(call));
}

void Nest::keep_result(const lowered::Reduce& s, const Folding& f) {
  const Storage& to = l_.storages[s.storage];
  const VariableId v = x_.storage(s.storage);
  if (f.registers == 1) {
    const ExprId acc = f.accumulator(e_, e_.number(0));
    b_.add(thread::Assign{to.is_scalar() ? e_.variable(v) : e_.element(v, e_.number(0)),
                          converted(acc, to.dtype)});
    return;
  }
  const ExprId a = x_.open_registers("a", f.registers, true);
  b_.add(thread::Assign{e_.element(v, a), converted(e_.element(f.acc, a), to.dtype)});
  b_.close();
}

// One thread of those that hold an element puts it into shared memory.
void Nest::keep_result_in_shared(const lowered::Reduce& s, const Folding& f) {
  const Storage& to = l_.storages[s.storage];
  const ExprId a = x_.open_registers("a", f.registers, false);
  Coordinates c;
  Bounds bounds;
  int r = 0;
  for (int d = 0; d < layout_.rank(); ++d) {
    if (is_reduced(d)) continue;
    const auto at = static_cast<std::size_t>(d);
    const layout::Bits low = fields_of(f.result, f.result.reg, r++);
    const Affine base = thread_part_[at] == no_expr ? Affine() : Affine::term(thread_part_[at]);
    const Affine x = base + repetition(d) * layout_.tile(d) +
                     affine_of(e_, a, layout::terms_of(low), static_cast<int>(low.size()));
    if (layout_.pads(d)) bounds.push_back({x, e_.number(layout_.domain[at])});
    c.push_back(x);
  }
  thread_mask_.clear();
  if (const std::uint32_t replicated = f.result.replicated_threads(); replicated != 0) {
    const ExprId which =
        replicated == layout_.threads() - 1u ? thread_ : e_.bits(thread_, replicated, 0);
    thread_mask_.push_back(e_.plain(Operator::equal, which, e_.number(0), bool_));
  }
  ExprId from = e_.address(f.acc, a);
  if (to.dtype != f.type) {
    const VariableId o = e_.declare({.name = "o", .type = to.dtype});
    b_.add(thread::Let{o, converted(e_.element(f.acc, a), to.dtype)});
    from = e_.address(o);
  }
  b_.add(thread::Store{{.function = Row::store_shared,
                        .registers = from,
                        .place = place_of(storage_address(s.storage, c)),
                        .test = predicate(bounds, thread_mask_)}});
  b_.close();
}

void Nest::expand_sink(const lowered::Reduce& s) {
  const bool shared = l_.storages[s.storage].in_shared();
  Folding f = folding(s);
  if (shared) open_repetitions(false, true);
  start_folding(f);
  const std::size_t outside = b_.depth();
  open_repetitions(true, !shared);
  fold_elements(s, f);
  b_.close_down_to(outside);
  fold_threads(s, f);
  if (shared)
    keep_result_in_shared(s, f);
  else
    keep_result(s, f);
  b_.close_nest_loops();
}

}  // namespace palladium::expand
