// Scans: runs in registers, continued over lanes and warps, and over the tiles of a value in shared
// memory by a carry.
#include <algorithm>

#include "codegen/expand/nest.hpp"
#include "codegen/layout/transfer.hpp"

namespace palladium::expand {

using lowered::Storage;
using thread::Declare;
using thread::For;

template <>
class Nest::Expansion<lowered::Scan> {
 public:
  Expansion(Nest& nest, const lowered::Scan& scan)
      : n_(nest),
        scan_(scan),
        to_(nest.l_.storages[scan.storage]),
        type_(lowered::accumulator_dtype(nest.g_, scan.inst)),
        how_(lowered::fold_of(nest.g_[scan.inst].op)),
        shared_(to_.in_shared()),
        levels_(scan.levels(nest.l_, nest.layout_)),
        registers_(shared_ ? std::int64_t{1} << nest.layout_.reg.size()
                           : nest.layout_.registers()) {
    if (levels_.empty())
      throw InternalError("expand: a scan along bits that meet others: " +
                          layout::to_string(nest.layout_));
    along_ = levels_.back().run * levels_.back().count;
  }

  void run() { shared_ ? through_shared() : in_registers(); }

 private:
  // The whole value at once.
  void in_registers() {
    in_place_ = type_ == to_.dtype && keeps_numbers();
    elements_ = in_place_ ? n_.x_.storage(scan_.storage) : array("x", registers_);
    const std::size_t outside = n_.b_.depth();
    if (!in_place_) n_.b_.add(Declare{.variable = elements_});
    n_.open_repetitions(true, true);
    take_elements();
    n_.b_.close_down_to(outside);
    fold();
    if (in_place_) return;
    n_.open_repetitions(true, true);
    n_.open_groups();
    n_.open_elements();
    n_.assign_element(scan_.storage, n_.converted(element(), to_.dtype));
    n_.b_.close_down_to(outside);
  }

  // A tile at a time: `carry` is the fold of those before it.
  void through_shared() {
    n_.mask_replicas();
    for (int d = 0; d < n_.layout_.rank(); ++d)
      if (d != scan_.dimension && n_.layout_.repetitions(d) > 1) open_tiles(d, false);
    const std::size_t outside = n_.b_.depth();
    const std::int64_t rows = registers_ / along_;
    const VariableId carry = array("carry", rows);
    const bool several = n_.layout_.repetitions(scan_.dimension) > 1;
    if (several) {
      n_.b_.add(Declare{.variable = carry});
      each_row(rows, [&](ExprId a) {
        n_.b_.add(thread::Assign{n_.e_.element(carry, a), n_.identity(how_, type_)});
      });
      open_tiles(scan_.dimension, scan_.reverse);
    }
    const std::size_t inside = n_.b_.depth();
    elements_ = array("x", registers_);
    n_.b_.add(Declare{.variable = elements_});
    take_elements();
    n_.b_.close_down_to(inside);
    fold();
    n_.open_groups();
    n_.open_elements();
    ExprId value = element();
    if (several) value = folded(n_.e_.element(carry, n_.e_.sum(row())), value);
    n_.put_in_shared(scan_.storage, n_.converted(value, to_.dtype));
    n_.b_.close_down_to(inside);
    if (several)
      each_row(rows, [&](ExprId a) {
        const ExprId before = n_.e_.element(carry, a);
        n_.b_.add(thread::Assign{before, folded(before, n_.e_.element(folds_, a))});
      });
    n_.b_.close_down_to(outside);
    n_.b_.close_nest_loops();
  }

  // Over the tiles along a dimension, from the first or from the last.
  void open_tiles(int d, bool backwards) {
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t tiles = n_.layout_.repetitions(d);
    const VariableId repetition = n_.e_[n_.repetitions_[at]].variable;
    const thread::Depends on = thread::on_repetition(d);
    VariableId counter = repetition;
    if (backwards)
      counter = n_.e_.declare(
          {.name = "back", .type = i32, .facts = {.low = 0, .high = tiles - 1, .depends = on}});
    n_.b_.open_loop(For{.counter = counter,
                        .low = n_.e_.number(0),
                        .high = n_.e_.number(tiles),
                        .unroll = n_.unrolled_by(d),
                        .body = {}},
                    on);
    n_.loops_ |= on;
    if (backwards)
      n_.b_.place(on,
                  thread::Let{repetition, n_.e_.sum(Affine(tiles - 1) +
                                                    Affine::term(n_.e_.variable(counter), -1))});
  }

  // Padding comes behind all elements, unless the scan goes backwards.
  void take_elements() {
    n_.open_groups();
    n_.open_elements();
    const DimMap all = lowered::identity_map(n_.layout_.rank());
    ExprId value = n_.converted(n_.evaluate(n_.nest_->value, n_.coordinates_, all, false), type_);
    if (scan_.reverse)
      if (const ExprId exists = n_.predicate(n_.padding({scan_.dimension})); exists != no_expr)
        value = n_.e_.choose(exists, value, n_.identity(how_, type_));
    n_.b_.add(thread::Assign{element(), value});
  }

  void fold() {
    using Templates = decltype(thread::Call::templates);
    folds_ = array("s", registers_ / levels_.front().count);
    n_.b_.add(Declare{.variable = folds_});
    const ExprId x = n_.e_.address(elements_), s = n_.e_.address(folds_), how = n_.e_.fold(how_);
    bool scratch = false;  // is in use
    for (const lowered::Scan::Level& level : levels_) {
      if (&level == &levels_.front()) {
        n_.b_.add(thread::Call{.function = Row::scan_registers,
                               .templates = {level.count, scan_.reverse},
                               .args = {x, s, how}});
        continue;
      }
      Templates templates = {level.run, level.count, scan_.reverse, std::int64_t{level.lanes}};
      if (level.warps == 0) {
        n_.b_.add(thread::Call{
            .function = Row::scan_lanes, .templates = std::move(templates), .args = {x, s, how}});
        continue;
      }
      scratch ? n_.x_.sync() : n_.sync_scratch();
      scratch = true;
      templates.insert(templates.end(), {std::int64_t{level.warps}, std::int64_t{level.distinct},
                                         std::int64_t{n_.x_.warpgroups()}});
      if (n_.x_.is_wide()) templates.emplace_back(std::int64_t{n_.l_.num_warps});
      n_.b_.add(thread::Call{.function = Row::scan_warps,
                             .templates = std::move(templates),
                             .args = {x, s, n_.x_.shared_address(scan_.scratch), how}});
    }
  }

  ExprId folded(ExprId a, ExprId b) {
    return n_.e_.call(Row::fold, type_, {n_.e_.fold(how_), a, b});
  }

  VariableId array(const char* name, std::int64_t count) {
    return n_.e_.declare({.name = name,
                          .form = thread::Form::array,
                          .type = type_,
                          .count = count,
                          .facts = {.depends = thread::on_thread}});
  }

  template <class F>
  void each_row(std::int64_t rows, F&& f) {
    f(n_.x_.open_registers("a", rows, true));
    n_.b_.close();
  }

  // ---- numbers of elements: the axis runs fastest, in the order of its coordinate

  ExprId element() {
    const DimMap all = lowered::identity_map(n_.layout_.rank());
    const Affine at = in_place_ ? n_.register_index(to_.registers().layout, all)
                                : row() * along_ + place_in_row();
    return n_.e_.element(elements_, n_.e_.sum(at));
  }

  Affine place_in_row() {
    Affine at = number(axis_bits());
    if (!shared_)
      at = at + n_.repetition(scan_.dimension) * (std::int64_t{1} << axis_bits().size());
    return at;
  }

  Affine row() {
    const std::vector<int> bits = kept_bits();
    Affine at = number(bits);
    std::int64_t stride = std::int64_t{1} << bits.size();
    for (int d = n_.layout_.rank(); d-- > 0;) {
      if (shared_ || d == scan_.dimension) continue;
      at = at + n_.repetition(d) * stride;
      stride *= n_.layout_.repetitions(d);
    }
    return at;
  }

  // Bits of the register number along the axis, by the coordinate's bits; and the others.
  std::vector<int> axis_bits() const {
    std::vector<int> bits;
    for (int p = 0; p < n_.layout_.tile_bits[static_cast<std::size_t>(scan_.dimension)]; ++p)
      for (std::size_t b = 0; b < n_.layout_.reg.size(); ++b)
        if (n_.layout_.field(scan_.dimension, n_.layout_.reg[b]) == 1u << p)
          bits.push_back(static_cast<int>(b));
    return bits;
  }
  std::vector<int> kept_bits() const {
    std::vector<int> bits;
    for (std::size_t b = 0; b < n_.layout_.reg.size(); ++b)
      if (n_.layout_.field(scan_.dimension, n_.layout_.reg[b]) == 0)
        bits.push_back(static_cast<int>(b));
    return bits;
  }

  // The number of which bit i is bit bits[i] of the register number, of vectors and elements.
  Affine number(const std::vector<int>& bits) {
    layout::Bits columns(n_.layout_.reg.size());
    for (std::size_t i = 0; i < bits.size(); ++i)
      columns[static_cast<std::size_t>(bits[i])] = 1u << i;
    const auto middle = columns.begin() + n_.vector_bits_;
    const layout::Bits element(columns.begin(), middle), group(middle, columns.end());
    return passes::affine_of(n_.e_, n_.group_, layout::terms_of(group),
                             static_cast<int>(group.size())) +
           passes::affine_of(n_.e_, n_.element_, layout::terms_of(element), n_.vector_bits_);
  }

  // Whether elements have the numbers of the storage's registers: the axis, then the others.
  bool keeps_numbers() const {
    std::vector<int> bits = axis_bits();
    const std::vector<int> kept = kept_bits();
    bits.insert(bits.end(), kept.begin(), kept.end());
    bool last = true;  // no dimension behind the axis repeats
    for (int d = scan_.dimension + 1; d < n_.layout_.rank(); ++d)
      last &= n_.layout_.repetitions(d) == 1;
    const bool repeats = n_.layout_.repetitions(scan_.dimension) > 1;
    return std::ranges::is_sorted(bits) && (!repeats || (last && kept.empty()));
  }

  Nest& n_;
  const lowered::Scan& scan_;
  const Storage& to_;
  const DType type_;
  const thread::Fold how_;
  const bool shared_;
  const std::vector<lowered::Scan::Level> levels_;
  const std::int64_t registers_;  // of x
  std::int64_t along_ = 1;        // of them along the axis
  bool in_place_ = false;         // x is the storage
  VariableId elements_ = thread::no_variable, folds_ = thread::no_variable;
};

void Nest::expand_sink(const lowered::Scan& s) { Expansion<lowered::Scan>(*this, s).run(); }

}  // namespace palladium::expand
