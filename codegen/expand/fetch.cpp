// Boxes of arrays that TMA brings to shared memory, where one thread asks for them and all wait,
// and takes from there.
#include <algorithm>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/expand/nest.hpp"
#include "codegen/graph/extents.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/fetches.hpp"

namespace palladium::expand {

using graph::Op;
using lowered::Storage;

namespace {

// Whether some statement of the program, of this kind, is such.
template <class Kind, class F>
bool any_of(const lowered::Statements& list, const F& is_such) {
  return std::ranges::any_of(list, [&](const lowered::Statement& s) {
    const Kind* const kind = std::get_if<Kind>(&s.what);
    bool found = kind != nullptr && is_such(*kind);
    lowered::for_each_body(
        s, [&](const lowered::Statements& body) { found = found || any_of<Kind>(body, is_such); });
    return found;
  });
}
template <class Kind, class F>
bool any_of(const lowered::Program& l, const F& is_such) {
  bool found = false;
  lowered::for_each_list(
      l, [&](const lowered::Statements& list) { found = found || any_of<Kind>(list, is_such); });
  return found;
}

bool is_tracked(const lowered::Program& l, BarrierId barrier) {
  return any_of<lowered::Wait>(l, [&](const lowered::Wait& w) {
    return w.barrier == barrier && !std::holds_alternative<lowered::OfIteration>(w.phase);
  });
}

bool reach_other_blocks(const lowered::Program& l) {
  const auto arrives = [](const lowered::Arrive& a) { return a.block != graph::no_value; };
  return any_of<lowered::Copy>(l, lowered::fills_others) || any_of<lowered::Arrive>(l, arrives) ||
         graph::reach_other_blocks(l.graph);
}

const char* reduction(graph::Update how) {
  switch (how) {
  case graph::Update::add: return "reduce_add";
  case graph::Update::min: return "reduce_min";
  case graph::Update::max: return "reduce_max";
  case graph::Update::bit_and: return "reduce_and";
  case graph::Update::bit_or: return "reduce_or";
  case graph::Update::increment: return "reduce_inc";
  case graph::Update::decrement: return "reduce_dec";
  default: return "reduce_xor";
  }
}

bool touch_by_threads(const lowered::Program& l, const lowered::Statements& list,
                      const std::set<StorageId>& which) {
  return std::ranges::any_of(list, [&](const lowered::Statement& s) {
    return lowered::any_effect(l, s, [&](const lowered::Effect& e) {
      return e.proxy == device::Proxy::generic && which.contains(e.storage);
    });
  });
}

// Whether threads, not copies and products alone, touch what other blocks touch, too: barriers tell
// of that at the scope of the cluster, which takes long.
bool hand_over_by_threads(const lowered::Program& l) {
  const auto is_peer = [](const graph::Inst& inst) { return inst.op == Op::RefPeer; };
  if (std::ranges::any_of(l.graph.insts, is_peer)) return true;
  std::set<StorageId> filled;
  (void)any_of<lowered::Copy>(l, [&](const lowered::Copy& c) {
    if (c.multicast != graph::no_value || c.share.axes != 0) filled.insert(c.to.storage);
    return false;
  });
  bool found = false;
  lowered::for_each_list(l, [&](const lowered::Statements& list) {
    found = found || touch_by_threads(l, list, filled);
  });
  return found;
}

bool is_told_by_blocks(const lowered::Program& l, BarrierId barrier) {
  if (!l.barriers[barrier].along.empty()) return true;
  return any_of<lowered::Arrive>(l, [&](const lowered::Arrive& a) {
    return a.barrier == barrier && a.block != graph::no_value;
  });
}

}  // namespace

void Expander::declare_tensor_maps() {
  for (const lowered::TensorBox& box : l_.tensor_boxes) {
    KernelParameter p{.kind = KernelParameter::Kind::tensor_map,
                      .index = box.mapping,
                      .bytes = 128,
                      .swizzle = box.swizzle,
                      .tf32 = box.tf32};
    std::ranges::copy(box.box, p.box.begin());
    p_.parameters.push_back(p);
    p_.names.push_back(e_.declare({.name = fmt::format("map{}", tensor_maps_.size()),
                                   .form = thread::Form::tensor_map,
                                   .type = u8}));
    tensor_maps_.push_back(p_.names.back());
  }
}

// One thread of the agent, of each where Pallas threads go through one body. Asked where it is
// needed: ptxas then knows that there is only one.
ExprId Expander::elected() {
  if (in_warps_)
    return l_.machine.has_tma() ? e_.call(Row::elect_one, bool_, {})
                                : e_.plain(Operator::equal, lane(), number(0), bool_);
  if (!l_.machine.has_tma()) return e_.plain(Operator::equal, thread_, number(0), bool_);
  if ((!agent_.is_known || agent_.count > 1) && l_.warpgroups == 1) return elected_of_block();
  const ExprId first = e_.plain(Operator::equal, warp_, number(0), bool_);
  return e_.all({first, e_.call(Row::elect_one, bool_, {})});
}

ExprId Expander::elected_of_warpgroup() {
  const ExprId first = e_.plain(Operator::equal, warp_, number(0), bool_);
  return e_.all({first, e_.call(Row::elect_one, bool_, {})});
}

ExprId Expander::elected_of_block() {
  const ExprId first = e_.plain(Operator::equal, warp_, number(0), bool_);
  const ExprId elects = l_.machine.has_tma() ? e_.call(Row::elect_one, bool_, {})
                                             : e_.plain(Operator::equal, thread_, number(0), bool_);
  if (agent_.is_known && agent_.count == 1) return e_.all({first, elects});
  return e_.all(
      {e_.plain(Operator::equal, warpgroup_, number(agent_.first), bool_), first, elects});
}

namespace {

// How many threads arrive at a barrier until it is complete.
std::int64_t tellers(const lowered::Barriers& b) {
  return b.by_warps ? std::int64_t{b.arrivals} * graph::warpgroup_threads / graph::warp_threads
                    : b.arrivals;
}

}  // namespace

// Barriers that know when copies are done. Of those that other blocks complete these know only when
// they are made. Meanwhile the maps that copies go by come near.
void Expander::begin_fetches() {
  if (l_.barriers.empty() && reach_other_blocks(l_))
    b_.add(thread::Call{.function = Row::cluster_sync});
  if (l_.tensor_boxes.empty() && l_.barriers.empty() && !graph::has_async_ops(g_)) return;
  warp_ = b_.let_here("warp", e_.call(Row::warp, u32, {}));
  if (l_.barriers.empty()) return;
  b_.open(thread::If{elected_of_block(), {}});
  for (const VariableId map : tensor_maps_)
    b_.add(thread::Call{.function = Row::tma_prefetch_map, .args = {e_.variable(map)}});
  for (const lowered::Barriers& all : l_.barriers)
    for (std::int64_t k = 0; k < l_.storages[all.storage].shape[0]; ++k)
      b_.add(
          thread::Call{.function = Row::mbarrier_init,
                       .args = {e_.sum(shared_place(all.storage) + Affine(barrier_bytes * k), u32),
                                number(tellers(all))}});
  if (l_.machine.has_tma()) b_.add(thread::Call{.function = Row::fence_mbarrier_init});
  b_.close();
  if (reach_other_blocks(l_))
    b_.add(thread::Call{.function = Row::cluster_sync});
  else if (has_one_agent() && l_.warpgroups == 1)
    sync();
  else
    b_.add(thread::Call{.function = Row::block_sync});
  begin_phases();
}

void Expander::begin_phases() {
  const bool by_threads = reach_other_blocks(l_) && hand_over_by_threads(l_);
  for (const BarrierId barrier : l_.barriers.ids()) {
    if (by_threads && is_told_by_blocks(l_, barrier)) cluster_scopes_.insert(barrier);
    if (!is_tracked(l_, barrier)) continue;
    const VariableId phase =
        e_.declare({.name = fmt::format("phase{}", phases_.size()), .type = u32});
    b_.add(thread::Declare{
        .start = thread::Declare::Start::values, .variable = phase, .values = {e_.number(0, u32)}});
    phases_[barrier] = phase;
  }
}

void Expander::check_view(ValueId access, ExprId test) {
  for (ValueId view = g_[access].args[0]; !g_.is_base(view); view = g_[view].args[0]) {
    std::size_t operand = 1;
    const std::vector<graph::SubscriptDim> dims = graph::Subscript::of(g_[view]).dims;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d].dynamic)
        check_box(access, dims[d], g_[g_[view].args[0]].type.shape[d],
                  scalar(g_[view].args[operand++]), view, static_cast<int>(d), test);
  }
}

void Expander::check_box(ValueId load, const graph::SubscriptDim& d, std::int64_t extent,
                         ExprId start, ValueId view, int dimension, ExprId test) {
  const std::int64_t size = d.is_slice ? d.size : 1;
  const ExprId low = e_.sum(Affine::term(start), i64);
  const ExprId high = e_.sum(Affine::term(start) + Affine(size - 1), i64);
  const Dim dim = graph::extent_of(g_, g_[view].args[0], static_cast<std::size_t>(dimension));
  const ExprId of_call = dim.is_static() ? no_expr : this->dim(dim);
  if (of_call == no_expr && e_.facts(low).low >= 0 && e_.facts(high).high < extent) return;
  const Location at = g_.location(view);
  const Location outer = b_.at(at == Location{} ? b_.at() : at);
  b_.add(thread::CheckRange{low, high, extent,
                            fmt::format("{}: dimension {} of {}", graph::info(g_[load].op).name,
                                        dimension, graph::to_string(g_[g_[view].args[0]].type)),
                            test, of_call});
  b_.at(outer);
}

// Of the first element of the view that is moved, its coordinates in the array, the last dimension
// first, as TMA counts them.
std::vector<ExprId> Expander::box_origin(ValueId access) {
  ValueId view = g_[access].args[0];
  std::vector<Affine> at(g_[view].type.shape.size());
  for (; !g_.is_base(view); view = g_[view].args[0]) {
    std::vector<Affine> inner;
    std::size_t next = 0, operand = 1;
    for (const graph::SubscriptDim& d : graph::Subscript::of(g_[view]).dims) {
      const Affine x = d.is_slice ? at[next++] : Affine();
      inner.push_back(x +
                      (d.dynamic ? e_.affine(scalar(g_[view].args[operand++])) : Affine(d.start)));
    }
    at = std::move(inner);
  }
  const WindowId window = l_.window_of[view];
  const BlockMapping& m =
      g_.mapping.block_mappings[static_cast<std::size_t>(l_.windows[window].mapping)];
  const passes::BlockNames& names = windows_[window];
  std::vector<ExprId> origin;
  std::size_t next = at.size();
  for (std::size_t d = m.block_shape.size(); d-- > 0;) {
    const bool squeezed = m.block_shape[d].kind == BlockDim::Kind::squeezed;
    const Affine start = Affine::term(e_.as(i32, names.start[d]));
    origin.push_back(e_.sum(squeezed ? start : start + at[--next]));
  }
  return origin;
}

// The dimension of the array along which that of a view steps, counted from the last.
std::size_t Expander::dimension_in_array(ValueId access, const lowered::TensorBox& box,
                                         int of) const {
  const auto of_view = *passes::box_dimensions(g_, g_[access].args[0]);
  const auto& block = g_.mapping.block_mappings[static_cast<std::size_t>(box.mapping)].block_shape;
  std::size_t next = of_view.size(), found = 0;
  for (std::size_t d = block.size(), from_last = 0; d-- > 0; ++from_last)
    if (block[d].kind != BlockDim::Kind::squeezed && of_view[--next] == of) found = from_last;
  return found;
}

// One behind the other along the first dimension that a box is too small for; else one.
// Of a copy that blocks share, as far as it is the own part.
template <class F>
void Expander::for_each_run(const graph::Inst& access, const std::vector<ExprId>& origin,
                            const lowered::TensorBox& box, std::int64_t parts, F&& copy) {
  const graph::Type& view = g_[access.args[0]].type;
  std::int64_t bytes = view.dtype.bytes();
  for (const std::int32_t n : box.box) bytes *= n;
  const std::int64_t count = graph::element_count(view.shape) * view.dtype.bytes() /
                             std::max<std::int64_t>(1, bytes) / parts;
  const auto first = std::ranges::find_if(box.box, [](std::int32_t n) { return n > 1; });
  const auto along = static_cast<std::size_t>(box.box.end() - first) - 1;
  for (std::int64_t k = 0; k < count; ++k) {
    std::vector<ExprId> at = origin;
    if (k > 0) at[along] = e_.sum(e_.affine(at[along]) + Affine(k * *first));
    copy(std::move(at), k * bytes);
  }
}

// Of a copy by hand of several matrices: in one box, where they are all that there is, or in boxes
// of each.
template <class F>
void Expander::for_each_matrix(const lowered::Copy& c, const Storage& s,
                               const std::vector<ExprId>& origin, std::int64_t rows, F&& copy) {
  const lowered::TensorBox& box = l_.tensor_boxes[c.box];
  const Extents& all = g_[g_[c.of].args[0]].type.shape;
  const std::size_t rank = all.size(), of_rows = rank - 2;
  const std::int64_t swizzle = s.shared().swizzle, columns = swizzle / s.dtype.bytes();
  if (rows * columns == graph::element_count(all)) return copy(origin, 0);
  const std::int64_t panel = s.shape[s.shape.size() - 2] * swizzle;
  std::vector<std::size_t> places;
  for (std::size_t d = 0; d < rank; ++d)
    places.push_back(dimension_in_array(c.of, box, static_cast<int>(d)));
  // Bytes between matrices along the dimensions in front of their own.
  const auto shown = *passes::box_dimensions(g_, graph::CopyView::of(g_[c.of]).shared);
  std::vector<std::int64_t> strides(rank);
  std::int64_t stride = s.dtype.bytes();
  for (std::size_t d = s.shape.size(); d-- > 0; stride *= s.shape[d])
    if (shown[d] >= 0) strides[static_cast<std::size_t>(shown[d])] = stride;
  std::int64_t matrices = 1;
  for (std::size_t d = 0; d < of_rows; ++d) matrices *= all[d];
  for (std::int64_t number = 0; number < matrices; ++number) {
    std::vector<ExprId> first = origin;
    std::int64_t bytes = 0, left = number;
    const auto move = [&](std::vector<ExprId>& at, std::size_t d, std::int64_t by) {
      at[places[d]] = e_.sum(e_.affine(at[places[d]]) + Affine(by));
    };
    for (std::size_t d = of_rows; d-- > 0; left /= all[d]) {
      move(first, d, left % all[d]);
      bytes += left % all[d] * strides[d];
    }
    for (std::int64_t column = 0; column < all.back(); column += columns)
      for (std::int64_t row = 0; row < all[of_rows]; row += rows) {
        std::vector<ExprId> at = first;
        move(at, rank - 1, column), move(at, of_rows, row);
        copy(std::move(at), bytes + column / columns * panel + row * swizzle);
      }
  }
}

namespace {

std::int64_t rows_of(const lowered::TensorBox& box) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < box.box.size(); ++d) rows *= box.box[d];
  return rows;
}

}  // namespace

// Boxes side by side, and one below the other, make up what is copied: copy(at, offset) with the
// place of each in the array, and the bytes before it. What has no panels is rows, whole ones.
template <class F>
void Expander::for_each_box(const lowered::Copy& c, StorageId storage, F&& copy) {
  const ValueId access = c.of;
  const bool leaves = graph::is_async_op(g_[access].op)
                          ? graph::CopyView::of(g_[access]).beyond != graph::Beyond::none
                          : graph::MemoryView::of(g_[access]).mask != graph::no_value;
  if (!leaves) check_view(access, no_expr);
  const Storage& s = l_.storages[storage];
  const lowered::TensorBox& box = l_.tensor_boxes[c.box];
  const std::int64_t parts = graph::blocks_along(g_, c.share.axes);
  const std::vector<ExprId> origin = part_origin(c, box_origin(access));
  if (s.shared().swizzle == 0) return for_each_run(g_[access], origin, box, parts, copy);
  const std::int64_t swizzle = s.shared().swizzle, columns = swizzle / s.dtype.bytes();
  const std::int64_t rows = rows_of(box);
  // What is copied by hand may be a part, and several matrices.
  const bool by_hand = graph::is_async_op(g_[access].op);
  const Extents& all = by_hand ? g_[g_[access].args[0]].type.shape : s.shape;
  if (all.size() > 2) return for_each_matrix(c, s, origin, rows, copy);
  const std::int64_t panel = s.shape[s.shape.size() - 2] * swizzle;
  const bool by_panels = is_of_panels(c);
  const std::int64_t all_rows = all[0] / (by_panels ? 1 : parts);
  const std::int64_t all_columns = all[1] / (by_panels ? parts : 1);
  const bool apart = s.shared().by_warpgroups;
  const std::size_t rows_at = rows < all_rows ? dimension_in_array(access, box, 0) : 0;
  const Affine own = apart ? Affine::term(e_.as(i32, warpgroup_), rows) : Affine();
  const std::int64_t step = apart ? rows * (l_.num_warps / 4) : rows;
  for (std::int64_t column = 0; column < all_columns; column += columns)
    for (std::int64_t row = 0; row < all_rows; row += step) {
      std::vector<ExprId> at = origin;
      at[0] = e_.sum(e_.affine(at[0]) + Affine(column));
      at[rows_at] = e_.sum(e_.affine(at[rows_at]) + Affine(row) + own);
      copy(std::move(at), column / columns * panel + row * swizzle);
    }
}

void Expander::expand_one(const lowered::Copy& c) {
  const bool asks = c.predicate != graph::no_value;
  if (asks) b_.open(thread::If{scalar(c.predicate), {}});
  if (lowered::brings_near(c)) {
    bring_near(c);
  } else if (c.from.window) {
    copy_window(c);
  } else if (c.from.storage && c.to.storage) {
    copy_bytes(c);
  } else if (!c.box) {
    copy_run(c);
  } else {
    const lowered::Place& shared = c.completes ? c.to : c.from;
    for_each_box(c, shared.storage, [&](std::vector<ExprId> at, std::int64_t offset) {
      const Affine shown =
          shared.view == graph::no_value ? Affine() : view_bytes(shared.view, c.of);
      const lowered::Storage& s = l_.storages[shared.storage];
      const Affine own =
          s.is_by_warpgroups()
              ? Affine::term(warpgroup_, rows_of(l_.tensor_boxes[c.box]) * s.shared().swizzle)
              : Affine();
      const ExprId place = e_.sum(
          Affine::term(place_address(shared)) + shown + part_bytes(c) + own + Affine(offset), u32);
      if (c.completes) return load_box(c, place, std::move(at));
      const ExprId map = e_.variable(tensor_maps_[c.box]);
      thread::Call call{.function = Row::tma_store, .args = {map, place}, .at = std::move(at)};
      if (c.update >= 0) {
        call.function = Row::tma_reduce;
        call.templates = {thread::Named{reduction(graph::Update{c.update})}};
      }
      b_.add(std::move(call));
    });
  }
  if (asks) b_.close();
}

void Expander::bring_near(const lowered::Copy& c) {
  check_view(c.of, no_expr);
  const ExprId map = e_.variable(tensor_maps_[c.box]);
  for_each_run(
      g_[c.of], box_origin(c.of), l_.tensor_boxes[c.box], 1,
      [&](std::vector<ExprId> at, std::int64_t) {
        b_.add(thread::Call{.function = Row::tma_prefetch, .args = {map}, .at = std::move(at)});
      });
}

void Expander::copy_window(const lowered::Copy& c) {
  const passes::BlockNames& names = windows_[c.from.window];
  std::vector<ExprId> at;
  for (std::size_t d = names.start.size(); d-- > 0;) at.push_back(e_.as(i32, names.start[d]));
  load_box(c, e_.sum(Affine::term(place_address(c.to)) + part_bytes(c), u32),
           part_origin(c, std::move(at)));
}

void Expander::load_box(const lowered::Copy& c, ExprId to, std::vector<ExprId> at) {
  thread::Call call{.function = Row::tma_load,
                    .args = {to, e_.variable(tensor_maps_[c.box]),
                             barrier_address(c.completes, slot_of(c.completes, c.slot))},
                    .at = std::move(at)};
  if (c.multicast != graph::no_value || c.share.axes != 0) {
    call.function = Row::tma_load_multicast;
    call.args.push_back(
        e_.cast(u16, c.share.axes != 0 ? blocks_of_share(c.share.axes) : scalar(c.multicast)));
  }
  b_.add(std::move(call));
}

// By hand, of bytes that follow one another on both sides.
void Expander::copy_run(const lowered::Copy& c) {
  const lowered::Place& shared = c.completes ? c.to : c.from;
  const ValueId array = g_[c.of].args[0];
  const graph::Type& type = g_[array].type;
  const lowered::Redirects none;
  check_view(c.of, no_expr);
  const ExprId there = Nest(*this, none).view_of(array).operand.value;
  const ExprId place =
      e_.sum(Affine::term(place_address(shared)) + view_bytes(shared.view, c.of), u32);
  const ExprId bytes = number(graph::element_count(type.shape) * type.dtype.bytes());
  if (c.completes)
    b_.add(thread::Call{
        .function = Row::bulk_load,
        .args = {place, there, bytes, barrier_address(c.completes, slot_of(c.completes, c.slot))}});
  else
    b_.add(thread::Call{.function = Row::bulk_store, .args = {there, place, bytes}});
}

// To where the same storage stands in another block.
void Expander::copy_bytes(const lowered::Copy& c) {
  const ExprId bytes = number(lowered::shared_bytes(l_.storages[c.from.storage]).value());
  const ExprId barrier = barrier_address(c.completes, slot_of(c.completes, c.slot));
  b_.add(thread::Call{.function = Row::bulk_copy_cluster,
                      .args = {in_block(place_address(c.to), c.to.block), place_address(c.from),
                               bytes, in_block(barrier, c.to.block)}});
}

ExprId Expander::in_block(ExprId address, ValueId block) {
  return e_.call(Row::mapa, u32, {address, e_.as(u32, scalar(block))});
}

// Of a view's first element the coordinates in its root.
std::vector<Affine> Expander::origin_in_root(ValueId view, ValueId access) {
  std::vector<Affine> at(g_[view].type.shape.size());
  for (; !g_.is_base(view); view = g_[view].args[0]) {
    const Extents& extents = g_[g_[view].args[0]].type.shape;
    std::vector<Affine> inner;
    std::size_t next = 0, operand = 1;
    for (const graph::SubscriptDim& d : graph::Subscript::of(g_[view]).dims) {
      Affine x = d.is_slice ? at[next++] : Affine();
      const std::size_t dimension = inner.size();
      if (d.dynamic) {
        const ExprId start = scalar(g_[view].args[operand++]);
        check_box(access, d, extents[dimension], start, view, static_cast<int>(dimension), no_expr);
        x = x + e_.affine(start);
      } else {
        x = x + Affine(d.start);
      }
      inner.push_back(x);
    }
    at = std::move(inner);
  }
  return at;
}

// In panels a column, the first of one, stands behind all rows of those before it.
Affine Expander::view_bytes(ValueId view, ValueId access) {
  const std::vector<Affine> at = origin_in_root(view, access);
  const graph::Type& all = g_[g_.base(view)].type;
  const int swizzle =
      l_.storages[l_.windows[l_.window_of[g_.base(view)]].storage()].shared().swizzle;
  Affine bytes;
  std::int64_t stride = all.dtype.bytes();
  for (std::size_t d = at.size(); d-- > 0; stride *= all.shape[d]) {
    const bool is_column = swizzle > 0 && d + 1 == at.size();
    const bool is_row = swizzle > 0 && d + 2 == at.size();
    bytes = bytes + at[d] * (is_column ? stride * all.shape[d - 1] : is_row ? swizzle : stride);
  }
  return bytes;
}

ExprId Expander::place_address(const lowered::Place& p) {
  if (p.slot == graph::no_value) return shared_address(p.storage);
  const lowered::Ring& ring = l_.rings[l_.storages[p.storage].ring()];
  const Affine slot = Affine::term(e_.as(u32, scalar(p.slot)), ring.slot_bytes);
  return e_.sum(shared_place(p.storage) + slot, u32);
}

// Of an array a thread has a word of bits, one for each of the barriers; of one that it goes round,
// the phase that those have for which it has yet to wait in this round.
void Expander::expand_one(const lowered::Wait& w) {
  const ExprId slot = slot_of(w.barrier, w.slot), address = barrier_address(w.barrier, slot);
  const Row function =
      cluster_scopes_.contains(w.barrier) ? Row::mbarrier_wait_cluster : Row::mbarrier_wait;
  const auto wait = [&](ExprId phase) {
    b_.add(thread::Call{.function = function, .args = {address, phase}});
  };
  const ExprId one = e_.number(1, u32);
  const auto flipped = [&](ExprId phase, ExprId bit) {
    return e_.plain(Operator::bit_xor, phase, bit, u32);
  };
  if (std::holds_alternative<lowered::OfIteration>(w.phase)) {
    // A barrier that nobody arrived at is in its first phase: that before it, of parity 1, is over.
    const RingId ring = l_.barriers[w.barrier].ring;
    const ExprId phase = slots_[ring].phase;
    const bool is_empty = l_.rings[ring].empty_barriers == w.barrier;
    return wait(is_empty ? flipped(phase, one) : phase);
  }
  const ExprId phase = e_.variable(phases_.at(w.barrier));
  if (w.told) return test(w, address, phase, slot);
  if (slot == no_expr) {
    wait(phase);
    return b_.add(thread::Assign{phase, flipped(phase, one)});
  }
  if (std::holds_alternative<lowered::InTurn>(w.phase)) {
    wait(phase);
    const std::int64_t last = l_.storages[l_.barriers[w.barrier].storage].shape[0] - 1;
    const ExprId is_last = e_.plain(Operator::equal, slot, e_.number(last, u32), bool_);
    return b_.add(thread::Assign{phase, e_.choose(is_last, flipped(phase, one), phase)});
  }
  wait(e_.bits(e_.plain(Operator::shift_right, phase, slot, u32), 1, 0));
  b_.add(thread::Assign{phase, flipped(phase, e_.plain(Operator::shift_left, one, slot, u32))});
}

// One thread looks, so that all see the same.
void Expander::test(const lowered::Wait& w, ExprId address, ExprId phase, ExprId slot) {
  const VariableId done = e_.declare(
      {.name = "done", .temporary = true, .type = i32, .facts = {.depends = thread::on_thread}});
  b_.open(thread::If{elected(), {}});
  b_.add(thread::Declare{.variable = done});
  b_.add(thread::Call{
      .function = Row::mbarrier_test_wait,
      .args = {address, e_.bits(e_.plain(Operator::shift_right, phase, slot, u32), 1, 0)},
      .to = e_.variable(done)});
  b_.add(
      thread::Store{{.function = Row::store_shared,
                     .registers = e_.address(done),
                     .place = {.base = shared_address(w.scratch), .type = i32, .shared = true}}});
  b_.close();
  sync();
  const lowered::Redirects none;
  set_scalar(w.told,
             e_.plain(Operator::greater, Nest(*this, none).held(w.scratch), number(0), bool_));
  sync();
  const ExprId bit =
      e_.plain(Operator::shift_left, e_.cast(u32, scalar_storage(w.told)), slot, u32);
  b_.add(thread::Assign{phase, e_.plain(Operator::bit_xor, phase, bit, u32)});
}

void Expander::expand_one(const lowered::Close& c) {
  const bool bulk = c.kind == device::Completion::bulk_group;
  b_.add(thread::Call{.function = bulk ? Row::bulk_commit : Row::cp_async_commit});
}

void Expander::expand_one(const lowered::WaitGroup& w) {
  const auto wait = [&](Row function) {
    b_.add(thread::Call{.function = function, .templates = {std::int64_t{w.pending}}});
  };
  switch (w.kind) {
  case device::Completion::wgmma_group:
    wait(Row::wgmma_wait);
    pin(w.storages);
    for (const StorageId s : w.storages) in_flight_.erase(s);
    if (w.pending > 0) return;
    for (const StorageId s : w.storages) {
      if (!has_rest(s)) continue;
      add_rest(s);
      const bool is_begun_anew = std::ranges::any_of(
          added_, [&](const auto& a) { return a.second == &w && a.first->result == s; });
      if (!is_begun_anew) clear_rest(s);
    }
    return;
  case device::Completion::bulk_group:
    if (!is_one_thread_)
      b_.open(thread::If{sends_by_warpgroups_ ? elected_of_warpgroup() : elected(), {}});
    wait(w.written ? Row::bulk_wait : Row::bulk_wait_read);
    return is_one_thread_ ? void() : b_.close();
  default: wait(Row::cp_async_wait);
  }
}

void Expander::expand_one(const lowered::Fence&) {
  b_.add(thread::Call{.function = Row::fence_async_shared});
}

ExprId Expander::slot_of(BarrierId barrier, ValueId chosen) {
  if (chosen != graph::no_value) return e_.as(u32, scalar(chosen));
  const RingId ring = l_.barriers[barrier].ring;
  return !ring ? no_expr : slots_[ring].now;
}

ExprId Expander::barrier_address(BarrierId barrier, ExprId slot) {
  const Affine at = shared_place(l_.barriers[barrier].storage);
  return e_.sum(slot == no_expr ? at : at + Affine::term(slot, barrier_bytes), u32);
}

}  // namespace palladium::expand
