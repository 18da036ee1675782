// Blocks that are wholly inside of their arrays, as most are, take a way without tests: one branch,
// the same for all threads of a program.
#include <algorithm>

#include "codegen/expand/nest.hpp"

namespace palladium::expand {

using graph::MemoryView;

// What holds where these blocks are whole; none where they always are.
ExprId Expander::are_whole(const std::vector<WindowId>& windows) {
  std::vector<ExprId> conditions;
  for (const WindowId w : windows)
    for (const auto& [x, n] : passes::tests_of_whole(l_, e_, w, windows_[w])) {
      const ExprId holds = e_.plain(Operator::equal, x, e_.number(n), bool_);
      if (std::ranges::find(conditions, holds) == conditions.end()) conditions.push_back(holds);
    }
  return e_.all(conditions);
}

void Expander::declare_filled(const lowered::LoopNest& p) {
  const StorageId storage = lowered::storage_filled(p.sink);
  const bool always = lowered::is_fold(p.sink);
  if (!storage) return;
  const lowered::Storage& s = l_.storages[storage];
  if (!s.in_registers() && !(always && s.is_scalar())) return;
  if (always || !declared_[storage]) declare_storage(storage);
}

void Expander::mark_filled(const lowered::LoopNest& p) {
  if (const auto* a = std::get_if<lowered::Assign>(&p.sink)) mark_stored(a->storage);
  if (const auto* f = std::get_if<lowered::Fill>(&p.sink)) mark_stored(f->storage);
}

void Expander::expand_one(const lowered::LoopNest& p) {
  declare_filled(p);
  Nest(*this, p).expand();
  mark_filled(p);
}

void Expander::expand_one(const lowered::IfWhole& w) {
  const auto& whole = std::get<lowered::LoopNest>(w.bodies[0][0].what);
  const auto& other = std::get<lowered::LoopNest>(w.bodies[1][0].what);
  declare_filled(whole);
  const int around = b_.at().statement;
  const auto expand = [&](const lowered::Statement& s, const lowered::LoopNest& nest) {
    b_.statement(s.id.number());
    Nest(*this, nest).expand();
    b_.statement(around);
  };
  const ExprId holds = are_whole(w.windows);
  if (holds != no_expr) b_.open(thread::If{holds, {}});
  expand(w.bodies[0][0], whole);
  if (holds != no_expr) {
    b_.close();
    b_.open(thread::Else{});
    expand(w.bodies[1][0], other);
    b_.close();
  }
  mark_filled(whole);
}

// Whether the mask is sure to leave nothing out: that the conditions which it is made of are known.
bool Expander::is_known(const lowered::IfMasked& m) const {
  const auto are = [&](const std::vector<ValueId>& conditions, bool holds) {
    return std::ranges::all_of(conditions, [&](ValueId v) {
      const auto it = known_.find(v);
      return it != known_.end() && it->second == holds;
    });
  };
  return are(m.holding, true) && are(m.failing, false);
}

// Of what is copied as a whole the view is where it may be if the mask leaves nothing out; else
// each element that the mask leaves is.
void Expander::expand_one(const lowered::IfMasked& m) {
  if (is_known(m)) return check_view(m.load, no_expr);
  std::vector<ExprId> conditions;
  for (const lowered::IterationSum& s : m.sums) {
    const Affine sum = sum_of(s);
    if (e_.facts(sum).low < 0) conditions.push_back(is_natural(sum));
  }
  const ExprId whole = e_.all(std::move(conditions));
  if (whole == no_expr) return check_view(m.load, no_expr);
  check_view(m.load, whole);
  b_.open(thread::If{e_.op(graph::Op::Not, bool_, {whole}), {}});
  expand_list(m.body);
  b_.close();
}

void Nest::expand_sink(const lowered::Clear& s) {
  const DimMap all = all_dimensions();
  mask_replicas();
  open_to_groups();
  open_elements();
  const ExprId holds = evaluate(nest_->value, coordinates_, all, false);
  check_indices(s.load, coordinates_, all, holds);
  const ExprId zero = e_.literal(l_.storages[s.storage].dtype, 0);
  store_element(storage_address(s.storage, coordinates_), zero,
                e_.op(graph::Op::Not, bool_, {holds}), limits().second);
  b_.close_nest_loops();
}

// The elements of a vector, computed in two ways: where conditions hold that do in whole blocks
// they are not asked for. What is read for them, and stored, is the same.
void Nest::store_two_ways(const lowered::Store& s) {
  const DimMap all = all_dimensions();
  fork_ = x_.are_whole(nest_->forked);
  check_indices(s.inst, coordinates_, all, no_expr);
  const Address a = store_address(MemoryView::of(g_[s.inst]).ref);
  const VariableId o = unfilled("o", a.dtype, vector_);
  b_.add(thread::Declare{.variable = o});
  const auto way = [&](auto branch, bool holds) {
    conditions_hold_ = holds;
    const auto memo = memo_;
    const auto names = hoisted_;
    const std::size_t depth = b_.depth();
    holds ? b_.open(std::move(branch)) : b_.open_apart(std::move(branch));
    open_elements();
    const ExprId value = evaluate(nest_->value, coordinates_, all, false);
    b_.add(thread::Assign{e_.element(o, element_), value});
    b_.close_down_to(depth);
    memo_ = memo;
    hoisted_ = names;
  };
  if (fork_ == no_expr) {
    way(thread::Block{}, true);
  } else {
    way(thread::If{fork_, {}}, true);
    way(thread::Else{}, false);
  }
  Bounds bounds = a.bounds;
  passes::add_padding(e_, bounds, padding(all));
  store_vector(a, o, no_expr, std::move(bounds), store_function(a));
  b_.close_nest_loops();
}

}  // namespace palladium::expand
