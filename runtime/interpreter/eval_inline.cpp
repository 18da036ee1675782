// Text of the user's: what its author says that it means.
#include "codegen/graph/inline.hpp"
#include "palladium/error.hpp"
#include "runtime/interpreter/eval.hpp"

namespace palladium::interpreter {

void eval_InlineCuda(Frame& f, ValueId v, const Inst& inst) {
  if (!inst.regions.empty()) {
    f.run(inst.regions[0]);
    return hand_on(f, v, 0);
  }
  const graph::InlineView view = graph::InlineView::of(inst);
  throw CompileError(f.graph().location(v),
                     "inline_cuda '" + view.name + "': the interpreter runs no " +
                         (view.is_ptx() ? "PTX" : "CUDA C++") +
                         "; say what the text means, .interpret = [&] { return ...; }, or run "
                         "the kernel on the emulator" +
                         (view.is_ptx() ? ", which takes CUDA C++" : ""));
}

}  // namespace palladium::interpreter
