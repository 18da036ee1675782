// What the kernel tells: lines that it prints, and conditions that do not hold.
#include <cstring>
#include <vector>

#include "codegen/base/log.hpp"
#include "codegen/graph/debug.hpp"
#include "palladium/error.hpp"
#include "runtime/interpreter/eval.hpp"

namespace palladium::interpreter {

void eval_DebugPrint(Frame& f, ValueId v, const Inst& inst) {
  std::vector<std::uint64_t> bits;
  for (const ValueId arg : inst.args) {
    const auto size = static_cast<std::size_t>(f.dtype(arg).bytes());
    for (std::int64_t i = 0; i < f.count(arg); ++i) {
      bits.push_back(0);
      std::memcpy(&bits.back(), f.bytes(arg) + static_cast<std::size_t>(i) * size, size);
    }
  }
  log::print(graph::printed_lines(f.graph(), v, bits));
}

void eval_DebugCheck(Frame& f, ValueId v, const Inst& inst) {
  if (!*f.operand<bool>(inst, 0))
    throw CompileError(f.graph().location(v), graph::failed_check(inst, f.position.grid));
}

// It has no clock: how long a scope takes there says nothing.
void eval_ScopeEvent(Frame&, ValueId, const Inst&) {}

}  // namespace palladium::interpreter
