#include "runtime/interpreter/eval.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "palladium/error.hpp"
#include "runtime/interpreter/interpreter.hpp"
#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

constexpr Eval* eval_table[] = {
#define PL_OP(Name, ...) eval_##Name,
#include "codegen/graph/ops.def"
#undef PL_OP
};

constexpr std::align_val_t frame_alignment{Plan::alignment};

std::size_t axis_of(const Inst& inst) {
  return static_cast<std::size_t>(graph::AxisView::of(inst).axis);
}

}  // namespace

Frame::Frame(const Plan& plan, bool poison)
    : plan_(plan),
      memory_(static_cast<std::byte*>(
          ::operator new(std::max<std::size_t>(plan.frame_bytes(), 1), frame_alignment))),
      views_(plan.graph().insts.size()),
      poison_(poison) {
  for (const ValueId c : plan.constants()) eval_Constant(*this, c, inst(c));
}

Frame::~Frame() = default;

void Frame::open_scoped(ValueId param, std::string name) {
  auto it = scoped_.find(param);
  if (it == scoped_.end())
    it = scoped_
             .try_emplace(param, type(param), std::move(name),
                          poison_ ? poison_bits(dtype(param)) : 0)
             .first;
  // What is a thread's own copies touch, too.
  if (races && it->second.races == nullptr && type(param).space == Space::smem &&
      graph::has_async_ops(graph()))
    it->second.races =
        &races->add_memory(it->second.name(), it->second.dtype(), it->second.ref_shape());
  std::erase_if(products, [&](const ProductUnderWay& p) { return p.accumulator == &it->second; });
  it->second.poison();
  it->second.bind(view(param));
}

void Frame::Free::operator()(std::byte* p) const { ::operator delete(p, frame_alignment); }

void Frame::run(RegionId region) {
  for (const Plan::Step& step : plan_.steps(region)) step.eval(*this, step.v, *step.inst);
}

Eval* evaluation(graph::Op op) { return eval_table[static_cast<std::size_t>(op)]; }

void Frame::poison(ValueId v) {
  fill(bytes(v), count(v), dtype(v).bytes(), poison_ ? poison_bits(dtype(v)) : 0);
}

void Frame::poison(ValueId v, std::int64_t element) {
  const int size = dtype(v).bytes();
  fill(bytes(v) + element * size, 1, size, poison_ ? poison_bits(dtype(v)) : 0);
}

void eval_Param(Frame&, ValueId, const Inst&) {
  throw InternalError("interpreter: a parameter stands among a region's instructions");
}

void eval_Constant(Frame& f, ValueId v, const Inst& inst) {
  fill(f.bytes(v), f.count(v), inst.type.dtype.bytes(), inst.attr.bits);
}

void eval_Iota(Frame& f, ValueId v, const Inst& inst) {
  const graph::Extents& shape = inst.type.shape;
  const auto d = static_cast<std::size_t>(graph::iota_dimension(inst));
  std::int64_t inner = 1;
  for (std::size_t i = d + 1; i < shape.size(); ++i) inner *= shape[i];
  with_type_if<IsNumber>(inst.type.dtype, [&]<class T>() {
    T* out = f.data<T>(v);
    const std::int64_t n = f.count(v);
    for (std::int64_t at = 0; at < n;)
      for (std::int64_t i = 0; i < shape[d]; ++i, at += inner) {
        const T element = [&] {
          if constexpr (is_half<T>) {
            return T{static_cast<std::uint16_t>(graph::to_bits(inst.type.dtype, i))};
          } else {
            return static_cast<T>(i);
          }
        }();
        std::fill_n(out + at, inner, element);
      }
  });
}

void eval_ProgramId(Frame& f, ValueId v, const Inst& inst) {
  f.set_number(v, f.position.grid[axis_of(inst)]);
}

void eval_NumPrograms(Frame& f, ValueId v, const Inst& inst) {
  f.set_number(v, f.position.grid_sizes[axis_of(inst)]);
}

// graph::with_sizes() has put a number there.
void eval_DimValue(Frame&, ValueId, const Inst&) {
  throw InternalError("interpreter: a size is a symbol");
}

void eval_AxisIndex(Frame& f, ValueId v, const Inst& inst) {
  const Position& p = f.position;
  switch (graph::AxisView::of(inst).kind) {
  case graph::AxisKind::grid: return f.set_number(v, p.grid[axis_of(inst)]);
  case graph::AxisKind::cluster: return f.set_number(v, p.cluster[axis_of(inst)]);
  case graph::AxisKind::thread: return f.set_number(v, p.thread);
  case graph::AxisKind::warp: return f.set_number(v, p.warp);
  }
}

void eval_AxisSize(Frame& f, ValueId v, const Inst& inst) {
  const Position& p = f.position;
  switch (graph::AxisView::of(inst).kind) {
  case graph::AxisKind::grid: return f.set_number(v, p.grid_sizes[axis_of(inst)]);
  case graph::AxisKind::cluster: return f.set_number(v, p.cluster_sizes[axis_of(inst)]);
  case graph::AxisKind::thread: return f.set_number(v, p.threads);
  case graph::AxisKind::warp: return f.set_number(v, graph::num_warps);
  }
}

void eval_When(Frame& f, ValueId, const Inst& inst) {
  if (*f.operand<bool>(inst, 0)) f.run(inst.regions[0]);
}

namespace {

void start(Frame& f, std::span<const ValueId> carries, std::span<const ValueId> params) {
  for (std::size_t i = 0; i < carries.size(); ++i)
    std::memcpy(f.bytes(params[i]), f.bytes(carries[i]), f.plan().bytes(carries[i]));
}

}  // namespace

void hand_on(Frame& f, ValueId v, std::size_t region) {
  const std::vector<Plan::Handing>& all = f.plan().handed_on(v, region);
  for (const Plan::Handing& h : all)
    if (h.staged) std::memcpy(f.staged(h.stage), f.bytes(h.from), f.plan().bytes(h.from));
  for (const Plan::Handing& h : all)
    std::memcpy(f.staged(h.to), h.staged ? f.staged(h.stage) : f.bytes(h.from),
                f.plan().bytes(h.from));
}

void eval_Loop(Frame& f, ValueId v, const Inst& inst) {
  const graph::LoopView loop = graph::LoopView::of(inst);
  const std::int64_t low = f.number(loop.low), high = f.number(loop.high);
  const std::span<const ValueId> params = f.graph()[loop.body].params;
  start(f, loop.carries, params.subspan(1));
  for (std::int64_t i = low; i < high; i += loop.step) {
    f.set_number(params[0], i);
    f.run(loop.body);
    if (!loop.carries.empty()) hand_on(f, v, 0);
  }
}

void eval_While(Frame& f, ValueId v, const Inst& inst) {
  const graph::WhileView loop = graph::WhileView::of(inst);
  start(f, loop.carries, f.graph()[loop.body].params);
  const ValueId holds = f.graph()[loop.condition].yields[0];
  for (;;) {
    f.run(loop.condition);
    if (!*f.data<bool>(holds)) return;
    f.run(loop.body);
    hand_on(f, v, 1);
  }
}

void eval_Switch(Frame& f, ValueId v, const Inst& inst) {
  const auto last = static_cast<std::int64_t>(inst.regions.size()) - 1;
  const std::int64_t index =
      f.dtype(inst.args[0]).is_bool() ? *f.operand<bool>(inst, 0) : f.number(inst.args[0]);
  const auto taken = static_cast<std::size_t>(std::clamp<std::int64_t>(index, 0, last));
  f.run(inst.regions[taken]);
  hand_on(f, v, taken);
}

void eval_Scoped(Frame& f, ValueId v, const Inst& inst) {
  const std::vector<ValueId>& params = f.graph()[inst.regions[0]].params;
  for (std::size_t i = 0; i < params.size(); ++i)
    f.open_scoped(params[i], "scratch[" + std::to_string(i) + "] of run_scoped");
  f.run(inst.regions[0]);
  hand_on(f, v, 0);
}

void eval_Get(Frame& f, ValueId v, const Inst& inst) {
  const std::size_t place = f.plan().result(inst.args[0], graph::result_of(inst));
  std::memcpy(f.bytes(v), f.staged(place), f.plan().bytes(v));
}

}  // namespace palladium::interpreter
