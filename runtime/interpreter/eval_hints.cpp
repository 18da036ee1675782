// What the user says of integers: looked at, number by number.
#include <cstring>
#include <limits>
#include <string>

#include "palladium/error.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

/// Where an element stands along a dimension: `inner` elements lie between neighbours.
struct Along {
  std::int64_t extent, inner;
  std::int64_t at(std::int64_t element) const { return element / inner % extent; }
};

template <class T>
bool follows(T x, T previous) {
  return x != std::numeric_limits<T>::min() && x - 1 == previous;
}

// Calls wrong(element) for the first that breaks the hint along a dimension, if there is one.
template <class T, class Wrong>
void check_along(const T* x, std::int64_t count, graph::Op op, std::int64_t n, Along d,
                 const Wrong& wrong) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = d.at(i);
    const bool holds = op == graph::Op::MultipleOf
                           ? (at > 0 && follows(x[i], x[i - d.inner])) || __int128{x[i]} % n == 0
                           : at % n == 0 || follows(x[i], x[i - d.inner]);
    if (!holds) return wrong(i);
  }
}

void eval_hint(Frame& f, ValueId v, const Inst& inst) {
  with_type_if<IsInteger>(inst.type.dtype, [&]<class T>() {
    const T* x = f.operand<T>(inst, 0);
    const std::int64_t count = f.count(v);
    Along d{1, 1};
    for (std::size_t i = graph::hint(inst).size(); i-- > 0; d.inner *= d.extent) {
      if (!inst.type.shape.empty()) d.extent = inst.type.shape[i];
      check_along(x, count, inst.op, graph::hint(inst)[i], d, [&](std::int64_t element) {
        std::string message = graph::broken_hint(inst, i);
        message.replace(message.find("{}"), 2, std::to_string(x[element]));
        throw CompileError(f.graph().location(v), message);
      });
    }
    std::memcpy(f.data<T>(v), x, static_cast<std::size_t>(count) * sizeof(T));
  });
}

}  // namespace

void eval_MultipleOf(Frame& f, ValueId v, const Inst& inst) { eval_hint(f, v, inst); }
void eval_MaxContiguous(Frame& f, ValueId v, const Inst& inst) { eval_hint(f, v, inst); }

}  // namespace palladium::interpreter
