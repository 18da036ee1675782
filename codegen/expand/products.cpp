// Products of tensor cores and without, but for those of wgmma.
#include "codegen/expand/expander.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::Op;
using lowered::Storage;

// A product that is added to a block in registers reads it.
void Expander::check_accumulator(const lowered::Dot& d) {
  if (!d.accumulates || !unstored_.contains(d.result)) return;
  Location at;
  for (const Inst& sum : g_.insts) {
    if (sum.op != Op::Add || (sum.args[0] != d.inst && sum.args[1] != d.inst)) continue;
    at = g_.location(sum.args[sum.args[0] == d.inst ? 1 : 0]);
  }
  const Location outer = b_.at(at);
  b_.at(at == Location{} ? outer : at);
  thread::Check check{is_stored(d.result), unstored_message(d.result)};
  if (d.anew != graph::no_value) check.test = e_.op(Op::Not, bool_, {scalar(d.anew)});
  b_.add(std::move(check));
  b_.at(outer);
}

// Where in its ring a storage stands, in bytes.
ExprId Expander::slot_in_ring(StorageId s) {
  const Affine at = slot(s);
  return at.is_zero() ? number(0) : e_.sum(at, u32);
}

// By mma.sync, of an A that threads have as accumulators lie.
void Expander::expand_held_product(const lowered::Dot& d) {
  const Storage &a = l_.storages[d.a], &b = l_.storages[d.b];
  if (!d.accumulates) declare_storage(d.result, true);
  const layout::Layout& acc = l_.storages[d.result].registers().layout;
  const bool is_1688 = d.unit == lowered::Dot::Unit::mma_1688;
  b_.add(thread::Call{
      .function = is_1688 ? Row::dot_mma_1688_from_registers : Row::dot_mma_16816_from_registers,
      .templates = {acc.repetitions(0), acc.repetitions(1), graph::DotView::of(g_[d.inst]).trans_b,
                    a.dtype, a.shape[1], b.shared().row_stride * b.dtype.bytes(),
                    std::int64_t{b.shared().row_swizzle}},
      .args = {e_.address(storage(d.result)), e_.address(storage(d.a)), shared_base(d.b),
               slot_in_ring(d.b)}});
}

void Expander::expand_product(const lowered::Dot& d, const lowered::WaitGroup* done) {
  using Unit = lowered::Dot::Unit;
  check_accumulator(d);
  if (lowered::is_of_wgmma(d.unit)) {
    expand_wgmma(d);
    if (done != nullptr) expand_one(*done);
    return mark_stored(d.result);
  }
  const Storage &a = l_.storages[d.a], &b = l_.storages[d.b], &result = l_.storages[d.result];
  const graph::DotView view = graph::DotView::of(g_[d.inst]);
  if (a.in_registers()) {
    expand_held_product(d);
    return mark_stored(d.result);
  }
  const std::int64_t depth = view.trans_a ? a.shape[0] : a.shape[1];
  if (!d.accumulates) declare_storage(d.result, true);
  const std::int64_t lda = a.shared().row_stride * a.dtype.bytes(),
                     ldb = b.shared().row_stride * b.dtype.bytes();
  thread::Call call{.args = {e_.address(storage(d.result)), shared_address(d.a), number(lda),
                             shared_address(d.b), number(ldb), number(depth)}};
  const auto as = [&](Row function, std::initializer_list<std::int64_t> tiles) {
    call.function = function;
    call.templates.assign(tiles.begin(), tiles.end());
    call.templates.insert(call.templates.end(), {view.trans_a, view.trans_b});
  };
  const layout::Layout& acc = result.registers().layout;
  const std::int64_t rows = acc.repetitions(0), columns = acc.repetitions(1);
  switch (d.unit) {
  case Unit::mma_16816:
  case Unit::mma_1688:
  case Unit::mma_16832: {
    if (d.unit == Unit::mma_16832) {
      call.function = Row::dot_mma_16832;
      call.templates = {rows, columns, std::int64_t{d.warps_m}, a.dtype, b.dtype};
    } else {
      as(d.unit == Unit::mma_16816 ? Row::dot_mma_16816 : Row::dot_mma_1688,
         {rows, columns, d.warps_m});
      call.templates.emplace_back(a.dtype);
    }
    for (const std::int64_t n : {depth, lda, std::int64_t{a.shared().row_swizzle}, ldb,
                                 std::int64_t{b.shared().row_swizzle}})
      call.templates.emplace_back(n);
    call.args = {call.args[0], shared_base(d.a), slot_in_ring(d.a), shared_base(d.b),
                 slot_in_ring(d.b)};
    break;
  }
  case Unit::mma_tf32: as(Row::dot_mma_tf32, {rows, columns, d.warps_m}); break;
  case Unit::fma: {
    const std::int64_t vector = std::int64_t{1} << acc.reg.size();
    as(Row::dot_fma, {rows, columns, vector, acc.tile(1) / vector, acc.tile(0)});
    call.templates.insert(call.templates.end(), {a.dtype, result.dtype});
    break;
  }
  case Unit::wgmma:
  case Unit::wgmma_promoted: break;
  }
  if (is_wide())
    call.templates.emplace_back(std::int64_t{d.unit == Unit::fma ? l_.num_warps : d.warps_n});
  b_.add(std::move(call));
  mark_stored(d.result);
}

}  // namespace palladium::expand
