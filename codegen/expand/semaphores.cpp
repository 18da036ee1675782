// Operations on semaphores: calls by all threads of the program.
#include "codegen/expand/expander.hpp"
#include "codegen/expand/nest.hpp"

namespace palladium::expand {

// To one element of global memory.
ExprId Nest::pointer_to(ValueId ref) {
  const Address a = address(ref, {}, {});
  const Affine first = a.first == no_expr ? Affine() : Affine::term(a.first);
  const Affine offset = first + a.offset;
  const VariableId base = e_[a.base].variable;
  return offset.is_zero() ? e_.address(base) : e_.address(base, e_.sum(offset, a.wide ? i64 : i32));
}

void Expander::expand_one(const lowered::Semaphore& s) {
  const graph::Inst& i = g_[s.inst];
  if (i.op == graph::Op::GridDependencyWait || i.op == graph::Op::LaunchDependents) {
    b_.add(thread::Call{.function = i.op == graph::Op::LaunchDependents
                                        ? Row::griddepcontrol_launch_dependents
                                        : Row::griddepcontrol_wait});
    return;
  }
  if (i.op == graph::Op::Delay) {
    b_.add(thread::Call{.function = Row::delay, .args = {scalar(i.args[0])}});
    return;
  }
  constexpr const char* scopes[] = {"block", "cluster", "gpu", "system_scope"};
  const char* const scope = scopes[static_cast<int>(graph::hearing(g_, i))];
  const lowered::Redirects none;
  thread::Call call{.function = Row::semaphore_signal, .templates = {thread::Named{scope}}};
  call.args = {Nest(*this, none).pointer_to(i.args[0])};
  if (i.op == graph::Op::SemaphoreRead) {
    call.function = Row::semaphore_read;
    call.args.push_back(shared_address(s.scratch));
    if (s.storage) {
      if (!declared_[s.storage]) declare_storage(s.storage);
      call.to = scalar_storage(s.storage);
    }
  } else {
    call.args.push_back(scalar(i.args[1]));
  }
  if (i.op == graph::Op::SemaphoreWait) {
    call.function = Row::semaphore_wait;
    call.templates.emplace_back(graph::waits_by_taking(i));
  }
  call.templates.emplace_back(std::int64_t{warpgroups()});
  add_warps(call);
  b_.add(std::move(call));
}

}  // namespace palladium::expand
