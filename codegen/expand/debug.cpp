// What the kernel tells the host: records in the launch's buffer (codegen/device/common/debug.cuh).
#include "codegen/expand/expander.hpp"
#include "codegen/expand/nest.hpp"

namespace palladium::expand {

void Expander::expand_one(const lowered::HostCall& t) {
  const graph::Inst& i = g_[t.inst];
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
