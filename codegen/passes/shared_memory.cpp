// Gives every storage in shared memory its offset.
//
// Precondition: assign_layouts, which adds staging and scratch.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/layout/transfer.hpp"
#include "codegen/passes/lowered.hpp"

namespace palladium::passes {
namespace {

using layout::Layout;
using Kind = Statement::Kind;

// Offsets in dynamic shared memory; what every warpgroup has a copy of lies side by side.
class SharedMemory {
 public:
  explicit SharedMemory(Lowered& l) : l_(l) {}

  void run() {
    for (LoweredBody& b : l_.bodies) scratch_sizes(b.statements);
    for (Storage& s : l_.storages)
      if (s.place == Place::shared) place(s);
    l_.shared_bytes = end_;
    if (end_ > l_.machine.max_shared_bytes) too_much();
  }

 private:
  static std::int64_t align(std::int64_t n) { return (n + 15) / 16 * 16; }

  // The exchange between warps needs room for the partial results of the lanes that differ.
  void scratch_sizes(std::vector<Statement>& list) {
    for (Statement& s : list) {
      scratch_sizes(s.body);
      if (s.kind != Kind::pass || s.pass.sink != Pass::Sink::reduce) continue;
      l_.storages[s.pass.scratch].shape = {scratch_elements(s.pass)};
      l_.storages[s.pass.scratch].dtype = accumulator_dtype(l_.graph, s.pass.inst);
    }
  }

  std::int64_t scratch_elements(const Pass& p) const {
    const Layout result = layout::drop(p.layout, p.reduced);
    bool warps = false;
    std::int64_t lanes = 1;
    for (int b = 0; b < layout::thread_bits; ++b) {
      if (b < layout::lane_bits && result.thread()[b] != 0) lanes *= 2;
      if (b >= layout::lane_bits && p.layout.thread()[b] != 0 && result.thread()[b] == 0)
        warps = true;
    }
    std::int64_t registers = std::int64_t{1} << result.reg.size();
    if (l_.storages[p.storage].place != Place::shared) registers = result.registers();
    return warps ? 4 * lanes * registers : 0;
  }

  void place(Storage& s) {
    std::int64_t elements = s.row_stride > 0 && !s.shape.empty()
                                ? graph::element_count(s.shape) /
                                      std::max<std::int64_t>(1, s.shape.back()) * s.row_stride
                                : graph::element_count(s.shape);
    s.offset = end_;
    end_ += align(elements * s.dtype.bytes()) * (s.per_warpgroup ? l_.warpgroups : 1);
  }

  [[noreturn]] void too_much() const {
    const Storage* largest = nullptr;
    for (const Storage& s : l_.storages)
      if (s.place == Place::shared &&
          (!largest || graph::element_count(s.shape) * s.dtype.bytes() >
                           graph::element_count(largest->shape) * largest->dtype.bytes()))
        largest = &s;
    throw CompileError(
        largest->of == graph::no_value ? l_.graph.at : l_.graph.location(largest->of),
        fmt::format("kernel '{}' needs {} bytes of shared memory, sm_{} has {} per block; the "
                    "largest part is {}: choose smaller blocks",
                    l_.graph.name, end_, l_.machine.compute_capability, l_.machine.max_shared_bytes,
                    graph::to_string(graph::Type::value(largest->dtype, largest->shape))));
  }

  Lowered& l_;
  std::int64_t end_ = 0;
};

}  // namespace

DType accumulator_dtype(const graph::Graph& g, ValueId reduce) {
  const DType t = g[reduce].type.dtype;
  return g[reduce].op == graph::Op::ReduceSum && (t == f16 || t == bf16) ? f32 : t;
}

void place_shared_memory(Lowered& l) { SharedMemory(l).run(); }

}  // namespace palladium::passes
