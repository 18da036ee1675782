// What the passes ask of operations that fold elements along dimensions.
#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/base/format.hpp"
#include "codegen/layout/transfer.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

using graph::Op;
using layout::Layout;

namespace {

// A value that no program holds in registers is made tile by tile, in shared memory.
void share_if_large(Program& l, Storage& s) {
  constexpr std::int64_t comfortable = 64, of_a_multiprocessor = 48 * 1024;
  const graph::Type type = graph::Type::value(s.dtype, s.shape);
  if (fits_registers(l, type, comfortable)) return;
  const std::int64_t most = std::min(max_whole_registers, of_a_multiprocessor / l.threads());
  if (registers_estimate(type, l.threads()) <= most) return;
  s.place = Place::shared;
  s.row_stride = s.shape.back();
}

}  // namespace

LoopNest fold_nest(Program& l, ValueId v) {
  const graph::Inst& i = l.graph[v];
  const int storage = l.storage_of[index(v)];
  const Extents& domain = l.graph[i.args[0]].type.shape;
  const int variable = l.add_variable();
  const int scratch =
      l.add_storage({.place = Place::shared, .dtype = l.storages[storage].dtype, .of = v});
  Storage& s = l.storages[storage];
  s.variable = variable;
  LoopNest p{.value = i.args[0], .domain = domain, .valid = domain, .variable = variable};
  const bool scans = i.type.shape.size() == domain.size();
  if (scans && s.place != Place::scalar) {
    share_if_large(l, s);
    const graph::ScanView along = graph::ScanView::of(i);
    p.sink = Scan{.inst = v,
                  .storage = storage,
                  .dimension = along.dimension,
                  .reverse = along.reverse,
                  .scratch = scratch};
    return p;
  }
  const auto along = graph::dimensions(i);
  s.dropped.assign(along.begin(), along.end());
  if (s.place == Place::scalar) {
    // Every thread gets a single value, whatever threads hold the padding of its dimensions.
    s.dropped.resize(domain.size());
    std::iota(s.dropped.begin(), s.dropped.end(), 0);
  }
  p.sink = Reduce{.inst = v, .storage = storage, .reduced = s.dropped, .scratch = scratch};
  return p;
}

}  // namespace palladium::passes
