#include "codegen/cuda/printer.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/base/names.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/cuda/spelling.hpp"
#include "codegen/graph/limits.hpp"

namespace palladium::cuda {

using graph::AxisKind;
using graph::Inst;
using graph::Op;
using passes::Place;
using passes::Residency;
using passes::Statement;
using passes::Storage;
using passes::Window;

Emitted Printer::print() {
  Emitted e;
  e.entry = identifier_of(g_.name) + "_kernel";
  e.threads = graph::warpgroup_threads * l_.warpgroups;
  e.shared_bytes = l_.shared_bytes;
  for (int c : g_.cluster) e.cluster_blocks *= c;
  const std::vector<Dim>& grid = g_.mapping.grid;
  const bool is_empty =
      std::any_of(grid.begin(), grid.end(), [](const Dim& d) { return d.same(0); });
  e.blocks = is_empty ? 0 : e.cluster_blocks;
  for (int a : l_.parallel_axes) e.blocks = e.blocks * g_.mapping.grid[a];
  // A sequential axis without programs leaves nothing to do, not even for its windows.
  for (int a : l_.sequential_axes) e.blocks = e.blocks * cdiv(g_.mapping.grid[a], INT32_MAX);

  name_parameters(e);
  find_mutable_storages();
  find_unstored();
  w_.at(g_.at);
  w_.open_block(signature(e));
  if (l_.shared_bytes > 0) w_.line("const u32 smem = pl::shared_base();");
  // A shuffle, for which whole warps must come: here they do.
  const std::size_t entry = w_.size();
  w_.line("const u32 warpgroup = pl::warpgroup();");
  print_program_ids();
  int first = 0;
  for (const passes::LoweredBody& b : l_.bodies) {
    const bool several = l_.bodies.size() > 1;
    if (several)
      w_.open_block(
          fmt::format("if (warpgroup >= {} && warpgroup < {})", first, first + b.warpgroups));
    print_storages();
    print_list(b.statements);
    if (several) w_.close_block();
    first += b.warpgroups;
  }
  w_.close_block();
  w_.drop_if_unused(entry, "const u32", "warpgroup");
  w_.line(fmt::format("PL_EXPORT({})", e.entry));
  e.text = w_.text();
  e.lines = w_.lines();
  return e;
}

void Printer::name_parameters(Emitted& e) {
  const auto& mappings = g_.mapping.block_mappings;
  const auto array = [&](int m) {
    const bool input = m < g_.mapping.num_inputs;
    arrays_.resize(mappings.size());
    arrays_[m] = input ? fmt::format("in{}", m) : fmt::format("out{}", m - g_.mapping.num_inputs);
    e.parameters.push_back({.kind = Parameter::Kind::array, .index = m});
    if (!mappings[m].dense)
      for (int d = 0; d + 1 < mappings[m].array_aval.shape.rank(); ++d)
        e.parameters.push_back({.kind = Parameter::Kind::stride, .index = m, .dimension = d});
  };
  for (std::size_t i = 0; i < g_.arguments.size(); ++i) {
    const graph::Argument& a = g_.arguments[i];
    if (a.kind == graph::Argument::Kind::input) {
      array(a.index);
      continue;
    }
    e.parameters.push_back(
        {.kind = Parameter::Kind::scalar, .index = a.index, .bytes = a.dtype.bytes()});
    for (const graph::Body& b : g_.bodies)
      names_[index(g_[b.region].params[i])] = fmt::format("scalar{}", a.index);
  }
  for (int o = 0; o < g_.mapping.num_outputs; ++o) array(g_.mapping.num_inputs + o);
  for (int s = 0; s < g_.num_symbols; ++s)
    e.parameters.push_back({.kind = Parameter::Kind::symbol, .index = s});
}

std::string Printer::signature(const Emitted& e) const {
  std::string out = fmt::format("PL_KERNEL({}) {}(", e.threads, e.entry);
  std::vector<DType> scalars(static_cast<std::size_t>(g_.num_scalars()));
  for (const graph::Argument& a : g_.arguments)
    if (a.kind == graph::Argument::Kind::scalar) scalars[a.index] = a.dtype;
  bool first = true;
  for (const Parameter& p : e.parameters) {
    if (!first) out += ", ";
    first = false;
    switch (p.kind) {
    case Parameter::Kind::array: {
      const BlockMapping& m = g_.mapping.block_mappings[p.index];
      const bool stored =
          std::any_of(l_.windows.begin(), l_.windows.end(),
                      [&](const passes::Window& w) { return w.mapping == p.index && w.stored; });
      out += fmt::format("{}{}* {}", stored ? "" : "const ", type_name(m.array_aval.dtype),
                         arrays_[p.index]);
      break;
    }
    case Parameter::Kind::stride:
      out += fmt::format("i64 {}_stride{}", arrays_[p.index], p.dimension);
      break;
    case Parameter::Kind::scalar:
      out += fmt::format("{} scalar{}", type_name(scalars[p.index]), p.index);
      break;
    case Parameter::Kind::symbol: out += fmt::format("i64 s{}", p.index); break;
    }
  }
  return out + ")";
}

std::string Printer::grid_size(int axis) const {
  const Dim& d = g_.mapping.grid[axis];
  return d.is_static() ? dim_text(d) : "i32(" + dim_text(d) + ")";
}

// Programs on the parallel axes are numbered row-major over the blocks (or clusters).
void Printer::print_program_ids() {
  std::string rest = "pl::block_x()";
  int blocks = 1;
  for (int c : g_.cluster) blocks *= c;
  if (blocks > 1) rest = fmt::format("pl::block_x() / {}", blocks);
  const auto& axes = l_.parallel_axes;
  if (axes.size() > 1) {
    w_.line(fmt::format("i32 block = {};", rest));
    rest = "block";
  }
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (i == 0) {
      w_.line(fmt::format("const i32 {} = {};", program_id(axes[i]), rest));
    } else {
      w_.line(fmt::format("const i32 {} = block % {};", program_id(axes[i]), grid_size(axes[i])));
      w_.line(fmt::format("block /= {};", grid_size(axes[i])));
    }
  }
  int below = 1;
  for (std::size_t c = g_.cluster.size(); c-- > 0;) {
    const std::string rank = below > 1 ? fmt::format("i32(pl::block_x()) % {} / {}", blocks, below)
                                       : fmt::format("i32(pl::block_x()) % {}", blocks);
    w_.line(fmt::format("const i32 c{} = ({}) % {};", c, rank, g_.cluster[c]));
    below *= g_.cluster[c];
  }
}

std::string Printer::storage_name(int storage) const {
  const Storage& s = l_.storages[storage];
  const std::string hint = s.of == graph::no_value ? "" : passes::name_of(g_, s.of);
  return (hint.empty() ? "v" : identifier_of(hint) + "_") + std::to_string(storage);
}

std::string Printer::shared_address(int storage) const {
  const Storage& s = l_.storages[storage];
  std::string text = s.offset == 0 ? "smem" : fmt::format("smem + {}", s.offset);
  if (s.per_warpgroup && l_.warpgroups > 1)
    text += fmt::format(" + warpgroup * {}", passes::shared_bytes(s).value());
  return text;
}

void Printer::find_mutable_storages() {
  for (const Window& w : l_.windows) {
    mutable_.insert(w.storage);
    declared_.insert(w.storage);
  }
  for (const Inst& i : g_.insts)
    if (i.op == Op::Loop)
      for (ValueId p : g_[i.regions[0]].params) {
        mutable_.insert(l_.storage_of[index(p)]);
        if (p == g_[i.regions[0]].params[0]) declared_.insert(l_.storage_of[index(p)]);
      }
}

// Blocks and scratch in registers that start with nothing, and are read or flushed.
void Printer::find_unstored() {
  for (std::size_t i = 0; i < l_.windows.size(); ++i) {
    const Window& w = l_.windows[i];
    if (w.residency != Residency::registers || w.fill) continue;
    bool used = w.flush;
    for (const Inst& inst : g_.insts)
      used |= (inst.op == Op::Load || inst.op == Op::Swap) && g_.root(inst.args[0]) == w.root;
    if (used) unstored_[w.storage] = static_cast<int>(i);
  }
}

void Printer::print_stored(int storage) {
  if (unstored_.contains(storage)) w_.line(stored_name(storage) + " = true;");
}

std::string Printer::stored_check(int storage) const {
  const Window& w = l_.windows[static_cast<std::size_t>(unstored_.at(storage))];
  int scratch = 0;
  for (const Window& other : l_.windows) {
    if (&other == &w) break;
    scratch += other.mapping < 0;
  }
  return fmt::format("pl::check({}, \"{} is read before anything was stored there\");",
                     stored_name(storage),
                     w.mapping < 0 ? fmt::format("scratch[{}]", scratch)
                                   : g_.mapping.block_mappings[w.mapping].origin);
}

// A product that is added to a block in registers reads it.
void Printer::check_accumulator(const passes::Dot& d) {
  if (!d.accumulates || !unstored_.contains(d.result)) return;
  Location at;
  for (const Inst& sum : g_.insts) {
    if (sum.op != Op::Add || (sum.args[0] != d.inst && sum.args[1] != d.inst)) continue;
    at = g_.location(sum.args[sum.args[0] == d.inst ? 1 : 0]);
  }
  w_.line(stored_check(d.result), at);
}

// Windows and scratch live as long as the program; other storages are declared where they are
// filled.
void Printer::print_storages() {
  for (const Window& w : l_.windows) {
    if (w.storage < 0) continue;
    const Storage& s = l_.storages[w.storage];
    const std::string name = storage_name(w.storage), type = type_name(s.dtype);
    if (s.place == Place::scalar) w_.line(fmt::format("{} {} = {{}};", type, name));
    if (s.place == Place::registers)
      w_.line(fmt::format("{} {}[{}] = {{}};", type, name, s.layout.registers()));
    if (unstored_.contains(w.storage))
      w_.line(fmt::format("bool {} = false;", stored_name(w.storage)));
  }
}

void Printer::print_list(const passes::Statements& list) {
  for (const Statement& s : list) print_statement(s);
}

void Printer::print_sync() {
  if (synced_) return;
  w_.line(l_.warpgroups == 1 ? "pl::warpgroup_sync();"
                             : fmt::format("pl::warpgroup_sync<{}>();", l_.warpgroups));
  synced_ = true;
}

// Each use of scratch memory has its own: only the last turn of a loop may still be reading it.
void Printer::print_scratch_sync() {
  if (loops_ == 0) return;
  synced_ = false;
  print_sync();
}

void Printer::print_statement(const Statement& s) {
  w_.at(s.at);
  std::visit([this](const auto& what) { print_one(what); }, s.what);
}

void Printer::print_one(const passes::Sync&) { print_sync(); }
void Printer::print_one(const passes::EnterWindow& w) { print_window(w.window); }

void Printer::print_one(const passes::CopyStorage& a) {
  const Storage& to = l_.storages[a.to];
  if (to.place == Place::scalar)
    w_.line(fmt::format("{} = {};", storage_name(a.to), storage_name(a.from)));
  else
    w_.line(fmt::format("PL_UNROLL for (i32 k = 0; k < {}; ++k) {}[k] = {}[k];",
                        to.layout.registers(), storage_name(a.to), storage_name(a.from)));
}

void Printer::print_one(const passes::Pass& p) {
  Nest(*this, p.copies).print(p);
  const FlatPass flat(l_, p);
  if (flat.kind == FlatPass::Kind::assign) print_stored(flat.storage);
  synced_ = false;
}

void Printer::print_one(const passes::Dot& d) {
  check_accumulator(d);
  print_dot(d);
  print_stored(d.result);
  synced_ = false;
}

void Printer::print_one(const passes::Relayout& r) {
  print_relayout(r);
  print_stored(r.to);
}

void Printer::print_one(const passes::Scalar& s) {
  print_scalar(s);
  print_stored(s.storage);
}

void Printer::print_one(const passes::When& w) {
  w_.open_block(fmt::format("if ({})", scalar(w.condition)));
  print_list(w.body);
  w_.close_block();
  synced_ = false;
}

std::string Printer::scalar(ValueId v) {
  const passes::Copies none;
  return Nest(*this, none).scalar(v, false);
}

void Printer::print_one(const passes::GridLoop& loop) {
  const std::string p = program_id(loop.axis);
  w_.open_block(
      fmt::format("PL_NOUNROLL for (i32 {0} = 0; {0} < {1}; ++{0})", p, grid_size(loop.axis)));
  synced_ = false;
  ++loops_;
  print_list(loop.body);
  --loops_;
  w_.close_block();
  synced_ = false;
}

// The counter's next value, which is not below `hi` after the last turn: it overflows nowhere.
std::string Printer::advance(const std::string& counter, std::int64_t step, ValueId hi) const {
  const Inst& limit = g_[hi];
  const std::int64_t most =
      limit.op == Op::Constant ? graph::to_int(i32, limit.attr.bits) : INT32_MAX;
  const std::int64_t last = INT32_MAX - step;  // from which a step can be made
  if (most - 1 <= last) return fmt::format("{} += {}", counter, step);
  return fmt::format("{0} = pl::min({0}, {1}) + {2}", counter, last, step);
}

void Printer::print_one(const passes::Loop& l) {
  const graph::LoopView loop = graph::LoopView::of(g_[l.inst]);
  const graph::Region& r = g_[loop.body];
  const std::string lo = scalar(loop.low), hi = scalar(loop.high);
  const std::string name = storage_name(l_.storage_of[index(r.params[0])]);
  const std::string pragma =
      loop.unroll > 1 ? fmt::format("_Pragma(\"unroll {}\")", loop.unroll) : "PL_NOUNROLL";
  w_.open_block(fmt::format("{0} for (i32 {1} = {2}; {1} < {3}; {4})", pragma, name, lo, hi,
                            advance(name, loop.step, loop.high)));
  synced_ = false;
  ++loops_;
  print_list(l.body);
  --loops_;
  w_.close_block();
  synced_ = false;
}

// The window's first element and, per dimension that may reach over the array's end, how many
// elements of it exist.
void Printer::print_window(int window) {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const std::string name = window_name(window), array = arrays_[w.mapping];
  const passes::Copies none;
  const int rank = m.array_aval.shape.rank();
  const std::vector<std::string> at = Nest(*this, none).index_map(m.index_map, rank);
  for (int d = 0; d < rank; ++d) {
    const BlockDim& b = m.block_shape[d];
    const std::string extent = dim_text(m.array_aval.shape[d]);
    std::string start = at[d];
    if (b.kind == BlockDim::Kind::blocked && b.size != 1)
      start = fmt::format("i64({}) * {}", start, b.size);
    else
      start = fmt::format("i64({})", start);
    if (b.pad_lo != 0) start += fmt::format(" - {}", b.pad_lo);
    if (at[d] == "0" && b.pad_lo == 0) {
      start = "0";
    } else {
      w_.line(fmt::format("const i64 {}_start{} = {};", name, d, start));
      start = fmt::format("{}_start{}", name, d);
    }
    if (!w.in_bounds[d]) {
      if (b.kind == BlockDim::Kind::element && b.pad_lo + b.pad_hi > 0)
        w_.line(fmt::format("const i32 {0}_from{1} = {2} < 0 ? i32(pl::min(-{2}, i64({3}))) : 0;",
                            name, d, start, b.size));
      const bool padded = b.kind == BlockDim::Kind::element;
      const bool at_zero = start == "0";
      const std::string room = fmt::format("i32(pl::min(i64({}{}), i64({})))", extent,
                                           at_zero ? "" : " - " + start, b.size);
      // Without padding a start on either side is far from the array: the room may not be an i32.
      w_.line(padded || at_zero ? fmt::format("const i32 {}_size{} = {};", name, d, room)
                                : fmt::format("const i32 {}_size{} = u64({}) < u64({}) ? {} : 0;",
                                              name, d, start, extent, room));
      w_.line(fmt::format(
          "pl::check({0}_size{1} > {2}, \"{3}: the block is wholly out of bounds along "
          "dimension {1} (an index map gives block indices, not element offsets)\");",
          name, d, padded && b.pad_lo + b.pad_hi > 0 ? fmt::format("{}_from{}", name, d) : "0",
          m.origin));
    }
  }
  Dim stride = 1;
  std::string pointer = array;
  for (int d = rank - 1; d >= 0; --d) {
    if (at[d] != "0" || m.block_shape[d].pad_lo != 0) {
      const std::string by = m.dense         ? dim_text(stride)
                             : d + 1 == rank ? "1"
                                             : fmt::format("{}_stride{}", array, d);
      pointer += fmt::format(" + {}_start{}{}", name, d, by == "1" ? "" : " * " + by);
    }
    stride = stride * m.array_aval.shape[d];
  }
  w_.line(fmt::format("{}{}* {} = {};", w.stored ? "" : "const ", type_name(m.array_aval.dtype),
                      name, pointer));
  if (w.depth > 0 && unstored_.contains(w.storage)) w_.line(stored_name(w.storage) + " = false;");
}

void Printer::print_scalar(const passes::Scalar& s) {
  const Storage& to = l_.storages[s.storage];
  const std::string name = storage_name(s.storage);
  const int own = l_.storage_of[index(s.value)];
  const Op op = g_[s.value].op;
  const bool enter = own == s.storage && op != Op::Param && op != Op::Get;
  const std::string value = Nest(*this, s.copies).scalar(s.value, enter);
  // A store that follows must not overtake another thread's read.
  if (enter && (op == Op::Load || op == Op::Swap)) synced_ = false;
  if (declared_.contains(s.storage)) {
    w_.line(fmt::format("{} = {};", name, value));
    return;
  }
  declared_.insert(s.storage);
  w_.line(fmt::format("{}{} {} = {};", mutable_.contains(s.storage) ? "" : "const ",
                      type_name(to.dtype), name, value));
}

Emitted emit(const graph::Graph& g, const Options& options) {
  const passes::Lowered l = lower(g, options.compute_capability);
  return Printer(l).print();
}

std::string describe(const graph::Graph& g, const Options& options) {
  return passes::to_text(lower(g, options.compute_capability));
}

}  // namespace palladium::cuda
