// Products of wgmma: 64 rows of A by up to 256 columns of B and 32 bytes of K each, all that make
// one product of the kernel in one group, whose end every thread awaits. Warpgroups share rows, and
// columns: where they stand side by side they take turns at a panel of a B that lies along its
// columns, else at 8 columns, and the strides of their descriptors step over those of the others.
#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/registers.hpp"

namespace palladium::expand {

using lowered::Storage;

namespace {

constexpr std::int64_t rows_of_wgmma = 64, most_columns = 256, k_bytes = 32;

// Of each of the matrices of a storage.
std::int64_t rows_of(const Storage& s) { return s.shape[s.shape.size() - 2]; }

/// Where the tile at (mn, k) of an operand stands, in bytes from its first: `mn` counts rows of A
/// or columns of B, from where panels or groups of 8 rows begin.
std::int64_t tile_offset(const Storage& s, bool transposed, std::int64_t mn, std::int64_t k) {
  const int swizzle = s.shared().swizzle;
  const std::int64_t width = swizzle / s.dtype.bytes(), panel = rows_of(s) * swizzle;
  const std::int64_t row = transposed ? k : mn, column = transposed ? mn : k;
  return column / width * panel + row * swizzle + column % width * s.dtype.bytes();
}

std::string_view type_of(DType t) {
  switch (t.kind()) {
  case DType::F16: return "f16";
  case DType::BF16: return "bf16";
  case DType::F8E4M3: return "e4m3";
  case DType::F8E5M2: return "e5m2";
  case DType::I8: return "s8";
  case DType::U8: return "u8";
  default: return "tf32";
  }
}

// The most columns that one product has of those that are left, `part` at most.
std::int64_t columns_of_one(std::int64_t left, std::int64_t part, bool integers) {
  const std::int64_t width = std::min(part, left);
  const bool has = !integers || width % 16 == 0 || width == 8 || width == 24;
  return has ? width : width - 8;
}

/// Whether threads reach elements of shared memory, each its own, in statements that are run each
/// time, or in those that stand inside of these.
bool threads_reach_shared(const lowered::Program& l, const lowered::Statements& list) {
  const auto is_theirs = [&](const lowered::Effect& e) {
    return e.storage && l.storages[e.storage].in_shared() &&
           e.access != lowered::Effect::Access::none && e.proxy == device::Proxy::generic &&
           !e.elected && e.role <= lowered::Effect::Role::result;
  };
  return std::ranges::any_of(list, [&](const lowered::Statement& s) {
    if (std::holds_alternative<lowered::When>(s.what)) return false;
    const bool moves = !std::holds_alternative<lowered::Dot>(s.what);
    bool found = moves && std::ranges::any_of(lowered::effects(l, s), is_theirs);
    lowered::for_each_body(s, [&](const lowered::Statements& body) {
      found = found || threads_reach_shared(l, body);
    });
    return found;
  });
}

/// Whether `next`, the next elements of K, is added to the sums of `steps`.
bool goes_on(const thread::Wgmma& steps, const thread::Wgmma& next) {
  return steps.op.n == next.op.n && steps.first == next.first;
}

void add_step(thread::Wgmma& steps, const thread::Wgmma& next) {
  ++steps.op.steps;
  if (!steps.op.rs) steps.a.push_back(next.a[0]);
  steps.b.push_back(next.b[0]);
}

}  // namespace

// K-major: 8 rows of a panel stand side by side, K follows within rows. MN-major: panels follow
// each other along M or N. Of those, `every`th is one of the matrix.
ExprId Expander::matrix_descriptor(const Storage& s, ExprId address, bool transposed, int every) {
  const int swizzle = s.shared().swizzle;
  const std::int64_t leading = transposed ? every * rows_of(s) * swizzle : 16;
  const std::int64_t stride = std::int64_t{8} * swizzle * (transposed ? 1 : every);
  const ExprId made = e_.call(Row::matrix_descriptor, u64,
                              {address, number(leading), number(stride), number(swizzle)});
  return b_.let_once("matrix", true, made);
}

// What a thread adds to an address that its warpgroup steps over as many bytes for each row, and
// for each column, of warpgroups in which it stands.
Affine Expander::of_warpgroup(const lowered::Dot& d, std::int64_t row_bytes,
                              std::int64_t column_bytes) {
  const int rows = d.warps_m / graph::num_warps, columns = d.warps_n;
  if (columns == 1) return rows == 1 ? Affine() : Affine::term(warpgroup_, row_bytes);
  if (rows == 1) return Affine::term(warpgroup_, column_bytes);
  const int shift = std::countr_zero(static_cast<unsigned>(rows));
  return Affine::term(e_.bits(warpgroup_, rows - 1, 0), row_bytes) +
         Affine::term(e_.bits(warpgroup_, rows * (columns - 1), shift), column_bytes);
}

// Where its operands lie, and which of its elements a warpgroup has.
struct Expander::WgmmaOperands {
  const lowered::Dot& dot;
  const Storage &a, &b;
  graph::DotView view;
  std::int64_t rows, columns, depth;
  std::int64_t part;  // columns of one product, at most
  ExprId first_a, first_b;
  // By hand: which parts of storages they are.
  InPanels part_a = {}, part_b = {};
  std::int64_t first_row = 0, first_column = 0, held_columns = 0;
};

Expander::WgmmaOperands Expander::operands_of_wgmma(const lowered::Dot& d) {
  const Storage &a = l_.storages[d.a], &b = l_.storages[d.b];
  const graph::DotView view = graph::DotView::of(g_[d.inst]);
  const layout::Layout& layout = l_.storages[d.result].registers().layout;
  const std::int64_t columns = layout.repetitions(1) * layout.tile(1) / d.warps_n;
  WgmmaOperands o{.dot = d,
                  .a = a,
                  .b = b,
                  .view = view,
                  .rows = layout.repetitions(0),
                  .columns = columns,
                  .depth = g_[view.a].type.shape[view.trans_a ? 0 : 1],
                  .part = 0,
                  .first_a = no_expr,
                  .first_b = no_expr};
  const bool by_hand = graph::is_product_by_hand(g_[d.inst].op);
  if (by_hand)
    find_parts(o);
  else
    o.depth = view.trans_a ? a.shape[0] : a.shape[1];
  // What loops by hand add to it is not known here: an address that the compiler does not compute
  // again in each iteration.
  const auto begin = [&](const Affine& first) {
    const ExprId address = e_.sum(first, u32);
    return by_hand ? e_.call(Row::warp_uniform, u32, {address}) : address;
  };
  // Parts of B that lies along its columns begin with panels.
  const std::int64_t whole = view.trans_b ? 8 : b.shared().swizzle / b.dtype.bytes();
  o.part = cdiv(cdiv(o.columns, cdiv(o.columns, most_columns)), whole) * whole;
  if (a.in_registers()) {
    o.first_a = e_.address(storage(d.a));
  } else {
    const Affine first = Affine::term(shared_base(d.a)) +
                         of_warpgroup(d, tile_offset(a, view.trans_a, rows_of_wgmma, 0), 0);
    o.first_a = matrix_descriptor(a, begin(first), view.trans_a);
  }
  const Affine first =
      Affine::term(shared_base(d.b)) + of_warpgroup(d, 0, tile_offset(b, !view.trans_b, whole, 0));
  o.first_b = matrix_descriptor(b, begin(first), !view.trans_b, d.warps_n);
  return o;
}

// Of a view of shared memory: what it begins behind its storage, where in a panel, and of that row
// or column.
Expander::InPanels Expander::in_panels(ValueId view, ValueId product, bool transposed) {
  const ValueId root = g_.base(view);
  const graph::Type& all = g_[root].type;
  const Storage& s = l_.storages[l_.windows[l_.window_of[root]].storage()];
  std::vector<Affine> at = origin_in_root(view, product);
  const std::int64_t bytes = all.dtype.bytes(), rows = all.shape[at.size() - 2];
  const Affine column = at.back();
  Affine behind = at[at.size() - 2] * s.shared().swizzle +
                  (column + Affine(-column.constant())) * (rows * bytes);
  std::int64_t stride = rows * all.shape.back() * bytes;
  for (std::size_t d = at.size() - 2; d-- > 0; stride *= all.shape[d])
    behind = behind + at[d] * stride;
  const std::int64_t begin = column.constant();
  return {behind.quotient(16), transposed ? begin : 0, transposed ? 0 : begin};
}

void Expander::find_parts(WgmmaOperands& o) {
  const ValueId product = o.dot.inst;
  if (!o.a.in_registers()) o.part_a = in_panels(o.view.a, product, o.view.trans_a);
  o.part_b = in_panels(o.view.b, product, !o.view.trans_b);
  const ValueId sum = g_[product].args[0];
  const std::vector<Affine> at = origin_in_root(sum, product);
  o.first_row = at[0].constant() / rows_of_wgmma;
  o.first_column = at[1].constant();
  o.held_columns = o.columns;
  o.rows = g_[sum].type.shape[0] / rows_of_wgmma;
  o.columns = g_[sum].type.shape[1];
}

// Of a group of iterations with more descriptors than uniform registers hold what keeps them in the
// group: added up in front of the loop they are moved there and back.
Affine Expander::beside_others(const WgmmaOperands& o, StorageId storage) {
  constexpr std::int64_t most_held = 16;  // products
  RingId ring = l_.storages[storage].ring();
  if (!ring || slots_[ring].group == no_expr) return {};
  if (l_.rings[ring].follows) ring = l_.rings[ring].follows;
  const std::int64_t products = l_.rings[ring].slots * o.rows * cdiv(o.columns, o.part) *
                                cdiv(o.depth * o.a.dtype.bytes(), k_bytes);
  if (products <= most_held) return {};
  const ExprId zero = e_.call(Row::zero_of_iteration, u64, {slots_[ring].group});
  return Affine::term(b_.let_once("zero", false, zero));
}

// Those of so many elements of K and so many columns, in registers that hold nothing else; the
// first is added to what they hold where `begins` says so.
void Expander::multiply(const WgmmaOperands& o, Range k_part, Range n_part, ExprId registers,
                        ExprId begins) {
  // A descriptor counts 16 bytes.
  const auto tile = [&](ExprId matrix, StorageId storage, const InPanels& part, bool transposed,
                        std::int64_t mn, std::int64_t k) {
    const std::int64_t offset =
        tile_offset(l_.storages[storage], transposed, mn + part.mn, k + part.k);
    const int back = storage == o.dot.b ? o.dot.back : 0;
    const Affine place = slot(storage, 16, back) + part.behind + Affine(offset / 16);
    return e_.sum(Affine::term(matrix) + beside_others(o, storage) + place, u64);
  };
  const std::int64_t held_columns = o.held_columns > 0 ? o.held_columns : n_part.end - n_part.begin;
  const bool held = o.a.in_registers(), integers = !o.a.dtype.is_float();
  const bool is_short = l_.storages[o.dot.result].dtype == f16;
  const std::int64_t per_thread = is_short ? 4 : 2;  // elements of a row to a register of it
  const std::int64_t k_step = k_bytes / o.a.dtype.bytes();
  std::optional<thread::Wgmma> steps;
  const auto flush = [&] {
    if (steps) b_.add(*std::exchange(steps, {}));
  };
  for (std::int64_t k = k_part.begin; k < k_part.end; k += k_step)
    for (std::int64_t r = 0; r < o.rows; ++r)
      for (std::int64_t n = n_part.begin, width = 0; n < n_part.end; n += width) {
        width = columns_of_one(n_part.end - n, o.part, integers);
        thread::Wgmma product{
            .op = {.n = static_cast<int>(width),
                   .k = static_cast<int>(k_step),
                   .d = integers   ? "s32"
                        : is_short ? "f16"
                                   : "f32",
                   .a = type_of(o.a.dtype),
                   .b = type_of(o.b.dtype),
                   .rs = held},
            .transpose_a = o.view.trans_a,
            .transpose_b = !o.view.trans_b,
            .registers = registers,
            .first =
                ((o.first_row + r) * held_columns + o.first_column + n - n_part.begin) / per_thread,
            .b = {tile(o.first_b, o.dot.b, o.part_b, !o.view.trans_b, n * o.dot.warps_n, k)},
            .accumulate = k == k_part.begin ? begins : e_.literal(bool_, 1)};
        if (held) {
          product.a = {o.first_a};
          product.first_a = (r * o.depth + k) * o.a.dtype.bytes() / 8;
        } else {
          product.a = {
              tile(o.first_a, o.dot.a, o.part_a, o.view.trans_a, r * 16 * o.dot.warps_m, k)};
        }
        if (steps && goes_on(*steps, product) && !beside_threads_.contains(o.dot.inst)) {
          add_step(*steps, product);
          continue;
        }
        flush();
        steps = std::move(product);
      }
  flush();
  b_.add(thread::Call{.function = Row::wgmma_commit});
}

// Of loops in which threads reach shared memory, too. There NVVM takes the registers of products in
// one statement for more than it has, and computes the addresses of threads in each iteration.
void Expander::find_beside_threads(const lowered::Statements& list, bool reach) {
  for (const lowered::Statement& s : list) {
    if (const auto* d = std::get_if<lowered::Dot>(&s.what); d != nullptr && reach)
      beside_threads_.insert(d->inst);
    lowered::for_each_body(s, [&](const lowered::Statements& body) {
      find_beside_threads(body, lowered::repeats(s) ? threads_reach_shared(l_, body) : reach);
    });
  }
}

// Products that follow, in one list, on a wait for what the one before left, with nothing between
// that touches their sum: the wait has added it.
void Expander::find_added(const lowered::Statements& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    lowered::for_each_body(list[i], [&](const lowered::Statements& body) { find_added(body); });
    const auto* const wait = std::get_if<lowered::WaitGroup>(&list[i].what);
    if (wait == nullptr || wait->kind != device::Completion::wgmma_group || wait->pending > 0)
      continue;
    for (const StorageId sum : wait->storages) {
      const auto next = std::find_if(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end(),
                                     [&](const lowered::Statement& s) {
                                       return lowered::any_effect(
                                           l_, s, [&](const auto& e) { return e.storage == sum; });
                                     });
      const auto* const d = next == list.end() ? nullptr : std::get_if<lowered::Dot>(&next->what);
      if (d != nullptr && d->result == sum && passes::rests(l_, *d)) added_[d] = wait;
    }
  }
}

void Expander::expand_wgmma(const lowered::Dot& d) {
  const WgmmaOperands o = operands_of_wgmma(d);
  if (!d.accumulates && !declared_[d.result]) declare_storage(d.result);
  const ExprId begins = !d.accumulates ? e_.literal(bool_, 0)
                        : d.anew == graph::no_value
                            ? e_.literal(bool_, 1)
                            : e_.op(graph::Op::Not, bool_, {scalar(d.anew)});
  if (d.unit == lowered::Dot::Unit::wgmma_promoted) return promote(o, begins);
  pin(o.a.in_registers() ? std::vector{d.result, d.a} : std::vector{d.result});
  b_.add(thread::Call{.function = Row::wgmma_fence});
  multiply(o, {0, o.depth}, {0, o.columns}, e_.address(storage(d.result)), begins);
  in_flight_.insert(d.result);
}

Expander::Promoted Expander::promoted(const lowered::Dot& d) const {
  const layout::Layout& layout = l_.storages[d.result].registers().layout;
  const std::int64_t columns = layout.repetitions(1) * layout.tile(1) / d.warps_n;
  const std::int64_t of_part = cdiv(columns, passes::parts_of_promoted(l_, d));
  return {layout.repetitions(0), columns, cdiv(of_part, std::int64_t{8}) * 8};
}

std::int64_t Expander::count_of_part(const lowered::Dot& d) const {
  const Promoted p = promoted(d);
  return p.rows * p.width / 2;
}

VariableId Expander::declare_part(const std::string& name, const lowered::Dot& d,
                                  thread::Declare::Start start) {
  const VariableId part = e_.declare({.name = name,
                                      .form = thread::Form::array,
                                      .type = f32,
                                      .count = count_of_part(d),
                                      .facts = {.depends = thread::on_thread}});
  b_.add(thread::Declare{.start = start, .variable = part});
  return part;
}

// Products one behind the other have the same registers for what tensor cores add up: of several
// ptxas makes copies, and has not enough.
void Expander::declare_parts(const lowered::Statements& list) {
  for (const lowered::Statement& s : list) {
    lowered::for_each_body(s, [&](const lowered::Statements& body) { declare_parts(body); });
    const auto* const d = std::get_if<lowered::Dot>(&s.what);
    if (d == nullptr || d->unit != lowered::Dot::Unit::wgmma_promoted || passes::rests(l_, *d))
      continue;
    const std::int64_t count = count_of_part(*d);
    if (!parts_.contains(count))
      parts_[count] =
          declare_part(fmt::format("part{}", count), *d, thread::Declare::Start::nothing);
  }
}

// Tensor cores add up so many elements of K, of as many columns as registers leave room for beside
// the sum in f32; then threads add that to it. The last of these may wait for the next product.
void Expander::promote(const WgmmaOperands& o, ExprId begins) {
  const Promoted p = promoted(o.dot);
  const StorageId sum = o.dot.result;
  const bool is_left = has_rest(sum), rests = is_left && passes::rests(l_, o.dot);
  const VariableId part = is_left ? rests_[sum].part : parts_.at(count_of_part(o.dot));
  const auto wait = [&] {
    b_.add(thread::Call{.function = Row::wgmma_wait, .templates = {std::int64_t{0}}});
    if (in_flight_.erase(sum) > 0) pin({sum});
  };
  const thread::Call pinned{.function = Row::wgmma_registers, .args = {e_.address(part)}};
  if (is_left && !added_.contains(&o.dot)) wait(), b_.add(pinned), add_rest(sum);
  for (std::int64_t k = 0; k < o.depth; k += lowered::promoted_k)
    for (std::int64_t n = 0; n < p.columns; n += p.width) {
      b_.add(pinned);
      b_.add(thread::Call{.function = Row::wgmma_fence});
      multiply(o, {k, std::min(o.depth, k + lowered::promoted_k)},
               {n, std::min(p.columns, n + p.width)}, e_.address(part), e_.literal(bool_, 0));
      if (rests && k + lowered::promoted_k >= o.depth && n == p.last()) break;
      wait();
      b_.add(pinned);
      add_part(sum, p, part, n, k == 0 ? begins : e_.literal(bool_, 1));
    }
  if (is_left && !rests) clear_rest(sum);
}

void Expander::add_part(StorageId sum, const Promoted& p, VariableId part, std::int64_t column,
                        ExprId keep) {
  const std::int64_t count = (std::min(p.columns, column + p.width) - column) / 2;
  for (std::int64_t r = 0; r < p.rows; ++r)
    b_.add(thread::Call{
        .function = Row::promote,
        .templates = {(r * p.columns + column) / 2, r * count, count, column / p.width},
        .args = {e_.address(storage(sum)), e_.address(part), keep}});
}

// What the product before has left. Precondition: it is awaited, and pinned.
void Expander::add_rest(StorageId sum) {
  const Rest& rest = rests_[sum];
  const Promoted p = promoted(*rest.of);
  add_part(sum, p, rest.part, p.last(), e_.literal(bool_, 1));
}

// So that nobody adds it again.
void Expander::clear_rest(StorageId sum) {
  const VariableId part = rests_[sum].part;
  const ExprId r = open_registers("r", e_[part].count, true);
  b_.add(thread::Assign{e_.element(part, r), e_.literal(f32, 0)});
  b_.close();
}

// The compiler leaves what these registers hold where it is, and what is left for them.
void Expander::pin(const std::vector<StorageId>& storages) {
  const auto add = [&](VariableId registers) {
    b_.add(thread::Call{.function = Row::wgmma_registers, .args = {e_.address(registers)}});
  };
  for (const StorageId s : storages) {
    add(storage(s));
    if (has_rest(s)) add(rests_[s].part);
  }
}

// In front of a loop of products. Zeros NVVM would make anew for what stands behind it, where it
// may run no iteration, and what is loaded it would keep where it was loaded: at places where, as
// ptxas sees it, products may be in flight, which would wait for each other (C7514, C7515).
void Expander::pin_declared(const std::vector<StorageId>& sums) {
  for (const StorageId s : sums)
    if (declared_[s]) pin({s});
}

}  // namespace palladium::expand
