// What the kernel tells the host: records in the launch's buffer (codegen/device/common/debug.cuh).
#include "codegen/expand/expander.hpp"
#include "codegen/expand/nest.hpp"

namespace palladium::expand {

void Expander::expand_one(const lowered::HostCall& t) {
  const graph::Inst& i = g_[t.inst];
  if (i.op == graph::Op::ScopeEvent) return tell_scope(t.inst);
  const bool is_check = i.op == graph::Op::DebugCheck, is_array(t.scratch);
  const std::vector<ExprId> told = is_check   ? program_ids_
                                   : is_array ? std::vector<ExprId>()
                                              : scalars(i.args);
  const ExprId debug = e_.variable(debug_);
  thread::Call call{.function = Row::debug_record,
                    .args = {debug, e_.number(graph::DebugView::of(i).site, u32)}};
  if (is_check) {
    call.function = Row::debug_fail;
    call.args.push_back(scalar(i.args[0]));
  } else {
    const std::int64_t elements = is_array ? graph::element_count(g_[i.args[0]].type.shape)
                                           : static_cast<std::int64_t>(told.size());
    call.args.push_back(number(elements));
  }
  if (is_array) {
    call.function = Row::debug_record_all;
    call.args.push_back(shared_address(t.scratch));
    call.templates.emplace_back(std::int64_t{warpgroups()});
  }
  add_warps(call);
  const VariableId record = e_.declare(
      {.name = "told", .temporary = true, .type = i32, .facts = {.depends = thread::on_thread}});
  b_.add(thread::Declare{.variable = record});
  call.to = e_.variable(record);
  b_.add(std::move(call));
  records_[index(t.inst)] = e_.variable(record);
  for (std::size_t n = 0; n < told.size(); ++n)
    put(records_[index(t.inst)], number(static_cast<std::int64_t>(n)), told[n], no_expr);
}

// Each warpgroup, or warp, has a place in the buffer, at which one of its threads writes.
void Expander::begin_profile() {
  if (profile_ == thread::no_variable) return;
  const graph::ScopeView scope = graph::ScopeView::of(g_[graph::first_scope(g_)]);
  const int of_unit = scope.of_warps ? graph::warp_threads : graph::warpgroup_threads;
  const auto declare = [&](const char* name, DType type, std::int64_t begin) {
    const VariableId v =
        e_.declare({.name = name, .type = type, .facts = {.depends = thread::on_thread}});
    b_.add(thread::Declare{.start = thread::Declare::Start::values,
                           .variable = v,
                           .values = {e_.number(begin, type)}});
    return e_.variable(v);
  };
  profile_at_ = declare("profile_at", i64, 0);
  profile_count_ = declare("profile_count", i32, 0);
  b_.add(thread::Call{.function = Row::profile_begin,
                      .templates = {std::int64_t{p_.threads / of_unit}, std::int64_t{of_unit}},
                      .args = {e_.variable(profile_), number(scope.space)},
                      .to = profile_at_});
}

void Expander::tell_scope(ValueId event) {
  const graph::ScopeView scope = graph::ScopeView::of(g_[event]);
  const std::int64_t tag = 2 * scope.number + (scope.ends ? 1 : 0);
  b_.add(thread::Call{.function = Row::profile_event,
                      .args = {e_.variable(profile_), profile_at_, profile_count_,
                               number(scope.space), e_.number(tag, u32)},
                      .to = profile_count_});
}

void Expander::end_profile() {
  if (profile_ == thread::no_variable) return;
  b_.add(thread::Call{.function = Row::profile_end,
                      .args = {e_.variable(profile_), profile_at_, profile_count_}});
}

std::vector<ExprId> Expander::scalars(const std::vector<ValueId>& values) {
  std::vector<ExprId> all;
  for (const ValueId v : values) all.push_back(scalar(v));
  return all;
}

// A slot of a record = the bits of a value, where `test` holds.
void Expander::put(ExprId record, ExprId slot, ExprId value, ExprId test) {
  const DType type = e_[value].type;
  if (type.is_float()) value = e_.bitcast(passes::unsigned_of(type.bytes()), value);
  thread::Call call{.function = Row::debug_put,
                    .args = {e_.variable(debug_), record, slot, e_.as(u64, value)}};
  if (test != no_expr) call.args.push_back(test);
  b_.add(std::move(call));
}

void Nest::expand_sink(const lowered::Print& s) {
  const DimMap all = all_dimensions();
  mask_replicas();
  open_to_groups();
  open_elements();
  const ExprId value = evaluate(nest_->value, coordinates_, all, false);
  Affine element;
  for (std::size_t d = 0; d < coordinates_.size(); ++d)
    element = element * nest_->valid[d] + coordinates_[d];
  std::vector<ExprId> tests = thread_mask_;
  tests.insert(tests.begin(), predicate(padding(all)));
  x_.put(x_.records_.at(index(s.inst)), e_.sum(element), value, e_.all(std::move(tests)));
  b_.close_nest_loops();
}

}  // namespace palladium::expand
