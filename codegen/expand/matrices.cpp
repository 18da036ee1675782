// Values of 16 bits whose layout is that of a product's accumulators go to shared memory, and come
// from panels there, as matrices of 8 rows of 16 bytes: each lane has two elements of a matrix, and
// the address of a row of one. The same words come to the same banks as one by one, by a quarter of
// the instructions.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <utility>

#include "codegen/expand/nest.hpp"

namespace palladium::expand {

using lowered::Storage;

namespace {

constexpr std::int64_t registers_of_tile = 4;  // elements of two matrices
constexpr std::int64_t most_together = 64;     // elements that are read in front of all loops

/// The bits of a layout's index that are columns of a matrix, and those beside them.
struct Columns {
  std::array<std::uint32_t, 3> columns;
  std::vector<std::uint32_t> others;
};

Columns columns_of(const layout::Layout& l, bool transposed) {
  const auto &reg = l.reg, &lane = l.lane;
  const std::vector pairs{reg[0], lane[0], lane[1]}, eights{lane[2], lane[3], lane[4]};
  const std::vector<std::uint32_t>&along = transposed ? eights : pairs,
        rows = transposed ? pairs : eights;
  Columns c{.columns = {along[0], along[1], along[2]}, .others = rows};
  c.others.push_back(reg[1]);
  c.others.insert(c.others.end(), l.warp.begin(), l.warp.end());
  return c;
}

// Whether columns are neighbours along the last dimension, and rows begin with one of 8.
bool are_matrices(const layout::Layout& l, bool transposed) {
  const int last = l.rank() - 1;
  const Columns c = columns_of(l, transposed);
  const bool neighbours =
      std::ranges::equal(c.columns, std::array<std::uint32_t, 3>{1, 2, 4}, {},
                         [&](std::uint32_t image) { return l.field(last, image); });
  const bool in_line = std::ranges::all_of(
      c.columns, [&](std::uint32_t image) { return (image & ~l.field_mask(last)) == 0; });
  return neighbours && in_line && l.tile(last) >= 8 &&
         std::ranges::all_of(c.others,
                             [&](std::uint32_t image) { return l.field(last, image) % 8 == 0; });
}

// Whether rows of 8 elements begin at multiples of their bytes; of panels, of whole patterns.
bool has_rows_for(const layout::Layout& l, const Storage& s) {
  if (s.shape.size() < 2) return false;
  const std::int64_t swizzle = s.shared().swizzle, bytes = s.dtype.bytes();
  if (swizzle == 0) return s.shared().row_stride * bytes % 16 == 0;
  return l.tile(0) % 8 == 0 && s.shape[s.shape.size() - 2] % 8 == 0;
}

}  // namespace

// The whole of which the sink fills, if it is in shared memory.
StorageId Nest::stored_in_shared(const lowered::Store& s) const {
  const graph::MemoryView m = graph::MemoryView::of(g_[s.inst]);
  if (m.mask != graph::no_value || !g_.is_base(m.ref) || !nest_->forked.empty()) return {};
  const StorageId storage = l_.windows[l_.window_of[m.ref]].storage();
  return storage && l_.storages[storage].in_shared() ? storage : StorageId();
}

std::optional<Nest::Matrices> Nest::matrices_of(StorageId storage) const {
  const Storage& s = l_.storages[storage];
  const auto [beyond, inside] = limits();
  const bool whole = beyond.empty() && inside.empty() && thread_mask_.empty();
  const bool rolled = std::ranges::any_of(nest_->rolled, [](int n) { return n > 0; });
  if (!s.in_shared() || s.dtype.bytes() != 2 || !whole || rolled || x_.in_warps_) return {};
  if (layout_.reg.size() != 2 || layout_.domain != s.shape || !has_rows_for(layout_, s)) return {};
  for (const bool transposed : {false, true}) {
    if (!are_matrices(layout_, transposed)) continue;
    Matrices m{.transposed = transposed};
    for (int d = layout_.rank(); d-- > 0 && m.along < 0;)
      if (layout_.repetitions(d) > 1) m.along = d;
    m.four = m.along >= 0 && layout_.repetitions(m.along) % 2 == 0;
    return m;
  }
  return {};
}

std::optional<Nest::Matrices> Nest::matrices_stored(StorageId storage) const {
  return storage && l_.machine.has_matrix_stores() ? matrices_of(storage) : std::nullopt;
}

// Of panels, by whole warps.
std::optional<Nest::Matrices> Nest::matrices_loaded(StorageId storage) {
  if (nest_ == nullptr || !nest_->forked.empty() || !l_.machine.has_matrix_moves()) return {};
  const Storage& s = l_.storages[storage];
  const bool in_panels = s.shared().swizzle > 0 && s.shape.size() == 2 && !s.shared().skewed;
  return in_panels && reads_apart(storage) ? matrices_of(storage) : std::nullopt;
}

// All of the thread's elements, then so many at once.
void Nest::store_matrices(StorageId storage, const Matrices& m,
                          const std::function<ExprId()>& value) {
  const VariableId o = unfilled("o", l_.storages[storage].dtype, layout_.registers());
  b_.add(thread::Declare{.variable = o});
  open_to_groups();
  open_elements();
  b_.add(thread::Assign{e_.element(o, e_.sum(register_index(layout_, all_dimensions()))), value()});
  b_.close_nest_loops();

  const std::vector<Affine> counted = open_stores(m);
  static constexpr Row stores[2][2] = {{Row::stmatrix_x2, Row::stmatrix_x2_trans},
                                       {Row::stmatrix_x4, Row::stmatrix_x4_trans}};
  const ExprId row = l_.storages[storage].shared().swizzle > 0 ? row_in_panels(storage, m, counted)
                                                               : row_of_matrix(storage, m, counted);
  b_.add(thread::Call{.function = stores[m.four][m.transposed],
                      .args = {row, e_.address(o, e_.sum(first_register(m, counted)))}});
  b_.close_nest_loops();
}

// Of the matrices with these numbers, in an array of all.
Affine Nest::first_register(const Matrices& m, const std::vector<Affine>& counted) const {
  Affine first;
  std::int64_t registers = registers_of_tile;
  for (int d = layout_.rank(); d-- > 0; registers *= layout_.repetitions(d))
    first = first + counted[static_cast<std::size_t>(d)] * (registers * m.of_one_access(d));
  return first;
}

ExprId Nest::in_matrices(StorageId storage, const DimMap& map) {
  if (map != all_dimensions()) return no_expr;
  const std::optional<Matrices> m = matrices_loaded(storage);
  if (!m) return no_expr;
  if (layout_.registers() > most_together) return load_matrices_of_tile(storage, *m);
  const auto [all, is_new] = matrices_.try_emplace(storage, thread::no_variable);
  if (is_new) all->second = load_all_matrices(storage, *m);
  return e_.element(all->second, e_.sum(register_index(layout_, all_dimensions())));
}

namespace {

constexpr Row matrix_loads[2][2] = {{Row::ldmatrix_x2, Row::ldmatrix_x2_trans},
                                    {Row::ldmatrix_x4, Row::ldmatrix_x4_trans}};

}  // namespace

// In front of the nest's loops, in loops of their own.
VariableId Nest::load_all_matrices(StorageId storage, const Matrices& m) {
  std::vector<Affine> counted(static_cast<std::size_t>(layout_.rank()));
  std::vector<thread::For> loops;
  for (int d = 0; d < layout_.rank(); ++d) {
    const std::int64_t count = layout_.repetitions(d) / m.of_one_access(d);
    if (count <= 1) continue;
    std::string name = e_[e_[repetitions_[static_cast<std::size_t>(d)]].variable].name;
    name[0] = 'q';
    const VariableId q =
        e_.declare({.name = std::move(name), .type = i32, .facts = {.low = 0, .high = count - 1}});
    counted[static_cast<std::size_t>(d)] = Affine::term(e_.variable(q));
    loops.push_back({.counter = q, .low = e_.number(0), .high = e_.number(count), .body = {}});
  }
  const VariableId all = unfilled("a", l_.storages[storage].dtype, layout_.registers());
  const ExprId row = row_in_panels(storage, m, counted);
  thread::Statement s{
      thread::Call{.function = matrix_loads[m.four][m.transposed],
                   .args = {e_.address(all, e_.sum(first_register(m, counted))), row}},
      b_.at()};
  for (; !loops.empty(); loops.pop_back()) {
    loops.back().body.push_back(std::move(s));
    s = {std::move(loops.back()), b_.at()};
  }
  b_.place(0, all, std::move(s));
  return all;
}

// In the nest's loops over tiles, where all would be too many registers.
ExprId Nest::load_matrices_of_tile(StorageId storage, Matrices m) {
  m.four = false;
  std::vector<Affine> counted(static_cast<std::size_t>(layout_.rank()));
  Affine in_tile = register_index(layout_, all_dimensions());
  thread::Depends tile = 0;
  for (int d = 0; d < layout_.rank(); ++d) {
    if (layout_.repetitions(d) <= 1) continue;
    const ExprId r = repetitions_[static_cast<std::size_t>(d)];
    counted[static_cast<std::size_t>(d)] = Affine::term(r);
    in_tile = in_tile.without(r);
    tile |= e_.depends(r);
  }
  const VariableId of_tile = unfilled("a", l_.storages[storage].dtype, registers_of_tile);
  const ExprId row = row_in_panels(storage, m, counted);
  b_.place(
      tile, of_tile,
      {thread::Call{.function = matrix_loads[0][m.transposed], .args = {e_.address(of_tile), row}},
       b_.at()});
  return e_.element(of_tile, e_.sum(in_tile));
}

// A loop over stores along each dimension that has several: the number of each.
std::vector<Affine> Nest::open_stores(const Matrices& m) {
  std::vector<Affine> counted(static_cast<std::size_t>(layout_.rank()));
  for (int d = 0; d < layout_.rank(); ++d) {
    const std::int64_t count = layout_.repetitions(d) / m.of_one_access(d);
    if (count > 1) counted[static_cast<std::size_t>(d)] = open_counted(d, count);
  }
  return counted;
}

// A loop over matrices along a dimension: their number.
Affine Nest::open_counted(int d, std::int64_t count) {
  const VariableId r =
      e_.declare({.name = e_[e_[repetitions_[static_cast<std::size_t>(d)]].variable].name,
                  .type = i32,
                  .facts = {.low = 0, .high = count - 1, .depends = thread::on_repetition(d)}});
  b_.open_loop(thread::For{.counter = r, .low = e_.number(0), .high = e_.number(count), .body = {}},
               thread::on_repetition(d));
  return Affine::term(e_.variable(r));
}

// What the bits of a thread's number add to the coordinate of the row whose address it gives: that
// of row t % 8 of matrix t / 8 % 4.
layout::Bits Nest::bits_of_row(const Matrices& m, int d) const {
  const auto at = [&](std::uint32_t image) { return layout_.field(d, image); };
  const auto &reg = layout_.reg, &lane = layout_.lane;
  layout::Bits bits = m.transposed ? layout::Bits{at(reg[0]), at(lane[0]), at(lane[1])}
                                   : layout::Bits{at(lane[2]), at(lane[3]), at(lane[4])};
  bits.push_back(at(reg[1]));
  bits.push_back(m.four && d == m.along ? static_cast<std::uint32_t>(layout_.tile(d)) : 0);
  for (const std::uint32_t image : layout_.warp) bits.push_back(at(image));
  return bits;
}

ExprId Nest::row_of_matrix(StorageId storage, const Matrices& m,
                           const std::vector<Affine>& counted) {
  Coordinates row;
  for (int d = 0; d < layout_.rank(); ++d)
    row.push_back(Affine::term(x_.image(thread_, bits_of_row(m, d))) +
                  counted[static_cast<std::size_t>(d)] * (layout_.tile(d) * m.of_one_access(d)));
  const thread::Place place = place_of(storage_address(storage, row));
  const std::int64_t bytes = l_.storages[storage].dtype.bytes();
  const ExprId offset = e_.sum(e_.affine(place.offset) * bytes);
  return e_.sum(Affine::term(place.base) + Affine::term(e_.as(u32, offset)), u32);
}

// Of panels rows are apart by the same bits for all threads: one address, from which others are
// made by an exclusive or along a panel's row and a constant beyond it, in all storages. Which
// panel a thread begins in is counted apart where panels are not so many rows that bits say it.
ExprId Nest::row_in_panels(StorageId storage, const Matrices& m,
                           const std::vector<Affine>& counted) {
  const Storage& s = l_.storages[storage];
  const auto swizzle = static_cast<std::uint32_t>(s.shared().swizzle);
  const auto bytes = static_cast<std::uint32_t>(s.dtype.bytes());
  const auto panel = static_cast<std::uint32_t>(s.shape[0]) * swizzle;
  layout::Bits offsets = bits_of_row(m, 0);
  const layout::Bits columns = bits_of_row(m, 1);
  layout::Bits panels;
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const std::uint32_t along = columns[k] * bytes;
    panels.push_back(along / swizzle);
    offsets[k] = offsets[k] * swizzle + along % swizzle;
    if (std::has_single_bit(panel)) offsets[k] += std::exchange(panels.back(), 0) * panel;
    offsets[k] ^= (offsets[k] >> 7 & (swizzle / 16 - 1)) << 4;
  }
  const auto of_thread = [&](const layout::Bits& bits) {
    return e_.as(u32, x_.image(thread_, bits));
  };
  Affine place_of_thread = Affine::term(x_.smem_) + Affine::term(of_thread(offsets));
  if (std::ranges::any_of(panels, [](std::uint32_t n) { return n > 0; }))
    place_of_thread = place_of_thread + Affine::term(of_thread(panels), panel);
  const ExprId first = e_.sum(place_of_thread, u32);
  const bool is_operand = loops_around_ > 0 && !s.shared().sent;
  ExprId row = b_.let_once("rows", true, is_operand ? x_.kept(first) : first);
  Affine beyond;
  if (!counted[0].is_zero())
    beyond = Affine::term(e_.as(u32, e_.sum(counted[0] * (layout_.tile(0) * m.of_one_access(0)))),
                          swizzle);
  if (!counted[1].is_zero()) {
    const ExprId along = e_.sum(counted[1] * (layout_.tile(1) * m.of_one_access(1) * bytes));
    const bool ends = e_.facts(along).high < swizzle;
    const ExprId inside = ends ? along : e_.bits(along, swizzle - 1, 0);
    row = e_.plain(Operator::bit_xor, row, e_.as(u32, inside), u32);
    if (!ends)
      beyond = beyond +
               Affine::term(e_.as(u32, e_.plain(Operator::div, along, e_.number(swizzle))), panel);
  }
  const Affine place = x_.shared_place(storage) + x_.slot(storage) + Affine::term(x_.smem_, -1);
  return e_.sum(Affine::term(row) + place + beyond, u32);
}

}  // namespace palladium::expand
