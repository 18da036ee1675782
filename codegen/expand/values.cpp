// What expressions of elements are in the program: names, registers, parameters, loads at their
// place in the user's file.
#include <algorithm>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/expand/nest.hpp"
#include "codegen/graph/extents.hpp"
#include "codegen/graph/packed.hpp"
#include "palladium/error.hpp"

namespace palladium::expand {

using graph::AxisKind;
using graph::AxisView;
using graph::Inst;
using graph::MemoryView;
using graph::Op;
using lowered::Residency;
using lowered::Storage;

namespace {

// Keys of vectors that are made at once, apart from those of values and of storages.
constexpr std::uint32_t converted_vector = UINT32_MAX;

}  // namespace

ExprId Nest::temporary(const char* of, ExprId value) {
  const ExprId name =
      b_.let({.name = prefix(of), .temporary = true, .type = e_[value].type}, value);
  named_[name] = value;
  return name;
}

ExprId Nest::unnamed(ExprId value) const {
  const auto known = named_.find(value);
  return known == named_.end() ? value : known->second;
}

std::vector<ExprId> Nest::hoisted(std::vector<ExprId> operands) {
  thread::Depends all = 0;
  for (const ExprId o : operands) all |= e_.depends(o);
  for (ExprId& o : operands) {
    if (e_.size(o) <= 1 || !b_.is_outside(e_.depends(o), all)) continue;
    const auto [name, is_new] = hoisted_.try_emplace(o, no_expr);
    if (is_new) name->second = temporary("x", o);
    o = name->second;
  }
  return operands;
}

ExprId Nest::scalar_leaf(ValueId v) {
  const Inst& i = g_[v];
  switch (i.op) {
  case Op::ProgramId: return x_.program_id(AxisView::of(i).axis);
  case Op::DimValue: return x_.symbol(static_cast<int>(graph::symbol_of(i)));
  case Op::NumPrograms: return x_.grid_size(AxisView::of(i).axis);
  case Op::AxisIndex:
    switch (const AxisView a = AxisView::of(i); a.kind) {
    case AxisKind::grid: return x_.program_id(a.axis);
    case AxisKind::cluster: return x_.cluster_ids_[static_cast<std::size_t>(a.axis)];
    case AxisKind::thread: return x_.is_wide() ? e_.number(0) : e_.cast(i32, x_.warpgroup_);
    case AxisKind::warp: return x_.warp_number();
    }
    break;
  case Op::AxisSize:
    switch (const AxisView a = AxisView::of(i); a.kind) {
    case AxisKind::grid: return x_.grid_size(a.axis);
    case AxisKind::cluster: return e_.number(g_.cluster[static_cast<std::size_t>(a.axis)]);
    case AxisKind::thread: return e_.number(l_.warpgroups);
    case AxisKind::warp: return e_.number(graph::num_warps);
    }
    break;
  case Op::Param:
    if (const auto it = x_.values_.find(index(v)); it != x_.values_.end()) return it->second;
    break;
  default: break;
  }
  throw InternalError(fmt::format("expand: cannot evaluate '{}' element by element in kernel '{}'",
                                  graph::info(i.op).name, g_.name));
}

ExprId Nest::skew_of(const Address& row) {
  const Affine first = row.first == no_expr ? Affine() : Affine::term(row.first);
  const ExprId pointer =
      e_.address(e_[row.base].variable, e_.sum(first + row.offset, row.wide ? i64 : i32));
  return temporary("k", e_.call(Row::skew, u32, {pointer}, false, {.low = 0, .high = 15}));
}

std::optional<bool> Nest::known(ValueId v) const {
  const auto it = x_.known_.find(v);
  return it == x_.known_.end() ? std::nullopt : std::optional(it->second);
}

ExprId Nest::held_value(StorageId storage, const DimMap& map) {
  if (const ExprId known = x_.literal_[storage]; known != no_expr) return known;
  const Storage& s = l_.storages[storage];
  if (s.is_scalar()) return x_.scalar_storage(storage);
  return e_.element(x_.storage(storage), e_.sum(register_index(s.registers().layout, map)));
}

// Bytes, and bf16, of which several take fewer instructions together than one by one.
ExprId Nest::cast_together(DType to, ExprId x) {
  constexpr int least = 4;
  const thread::Expr of = e_[x];
  if (of.node != thread::Node::element || vector_ < least) return no_expr;
  const bool is_span = spans_.contains(of.variable);
  if (of.args[0] != element_ && !is_span) return no_expr;
  const thread::Variable& from = e_[of.variable];
  const bool of_bytes = from.type == i8 || from.type == u8 || graph::is_byte_float(from.type);
  const bool to_floats = to == f32 || (of_bytes && (to == f16 || to == bf16));
  if (!to_floats || !(of_bytes || from.type == bf16)) return no_expr;
  if (!from.temporary || (from.count != vector_ && !is_span)) return no_expr;
  const Key key{converted_vector, static_cast<std::uint32_t>(thread::index(of.variable)),
                static_cast<std::uint32_t>(to.kind())};
  ExprId& all = memo_.try_emplace(key, no_expr).first->second;
  if (all == no_expr) all = converted_elements(of.variable, to, from.count, {from.count});
  return e_.element(e_[all].variable, of.args[0]);
}

// So many elements that are there, as the function with these templates makes them.
ExprId Nest::converted_elements(VariableId from, DType to, std::int64_t count,
                                decltype(thread::Call::templates) templates) {
  const VariableId all = unfilled("x", to, count);
  b_.place(e_[from].facts.depends, all,
           {thread::Call{.function = Row::to_all,
                         .templates = std::move(templates),
                         .args = {e_.address(all), e_.address(from)}},
            b_.at()});
  return e_.element(all, element_);
}

// Of bytes that are read together, as a vector of twice as many.
ExprId Nest::converted_halves(const HalvedBytes& bytes, DType to) {
  const Location at = g_.location(bytes.of);
  const Location outer = b_.at(at == Location{} ? b_.at() : at);
  if (!l_.storage_of[bytes.of])
    check_indices(bytes.of, bytes.first, lowered::DimMap(bytes.first.size(), lowered::opaque_dim),
                  no_expr);
  Address a = bytes.at;
  a.offset = a.offset.without(bytes.byte);
  const VariableId read = unfilled("a", u8, bytes.count);
  b_.place(depends(a, {}), read,
           {thread::Load{{.function = load_function(a),
                          .width = bytes.count,
                          .registers = e_.address(read),
                          .place = place_of(a)}},
            b_.at()});
  b_.at(outer);
  return converted_elements(read, to, vector_, {std::int64_t{vector_}, bytes.is_signed});
}

ExprId Nest::load(const Pending& p, ExprId mask) {
  const Location at = g_.location(p.v);
  const Location outer = b_.at(at == Location{} ? b_.at() : at);
  const ValueId ref = g_[p.v].args[0];
  if (l_.windows[l_.window_of[g_.base(ref)]].residency() != Residency::registers) {
    Bounds range;
    if (p.partial) add_range(range, p.c, g_[p.v].type.shape);
    check_indices(p.v, p.c, p.map, e_.all({mask, predicate(range)}));
  }
  const ExprId value = Elements::load(p, mask);
  b_.at(outer);
  return value;
}

ExprId Nest::load_registers(const Pending& p) {
  const StorageId storage = l_.windows[l_.window_of[g_.base(g_[p.v].args[0])]].storage();
  if (const ExprId stored = x_.is_stored(storage);
      stored != no_expr && checked_stored_.insert(storage).second)
    b_.place(0, thread::Check{stored, x_.unstored_message(storage)});
  return Elements::load_registers(p);
}

ExprId Nest::scalar(ValueId v, bool enter) {
  const Extents& shape = g_[v].type.shape;
  return evaluate(v, Coordinates(shape.size()),
                  lowered::identity_map(static_cast<int>(shape.size())), enter);
}

ExprId Nest::held(StorageId storage) {
  const std::size_t rank = l_.storages[storage].shape.size();
  return read(storage, Coordinates(rank), lowered::identity_map(static_cast<int>(rank)));
}

std::vector<ExprId> Nest::index_map(RegionIndex region, int rank) {
  if (region == no_region) return std::vector<ExprId>(static_cast<std::size_t>(rank), e_.number(0));
  const graph::Region& r = g_[graph::RegionId{region}];
  // Behind them stand index operands, whose windows are known.
  for (std::size_t i = 0; i < g_.mapping.grid.size(); ++i)
    x_.values_[index(r.params[i])] = x_.program_id(static_cast<int>(i));
  std::vector<ExprId> out;
  for (const ValueId v : r.yields) out.push_back(scalar(v, false));
  return out;
}

}  // namespace palladium::expand
