#include "palladium/gpu/registers.hpp"

#include "codegen/trace/accumulators.hpp"
#include "palladium/error.hpp"

namespace palladium {

using trace::Attr;
using trace::Op;

void gpu::set_max_registers(int n, SetMaxRegistersOptions options, Location at) {
  trace::Recorder& recorder = trace::recorder_by_hand("set_max_registers", at);
  const bool more = options.action == "increase";
  if (!more && options.action != "decrease")
    throw CompileError(at,
                       "set_max_registers: expected the action \"increase\" or \"decrease\", "
                       "given \"" +
                           options.action + "\"");
  recorder.builder().add(Op::SetMaxRegisters, {}, Attr{{n, more}, 0}, {}, at);
}

void gpu::griddepcontrol_wait(Location at) {
  trace::recorder_by_hand("griddepcontrol_wait", at)
      .builder()
      .add(Op::GridDependencyWait, {}, Attr{}, {}, at);
}

void gpu::griddepcontrol_launch_dependents(Location at) {
  trace::recorder_by_hand("griddepcontrol_launch_dependents", at)
      .builder()
      .add(Op::LaunchDependents, {}, Attr{}, {}, at);
}

}  // namespace palladium
