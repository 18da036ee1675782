// The loop nest of one pass: repetitions, groups of registers, elements of a vector.
#include <algorithm>
#include <numeric>

#include "codegen/base/format.hpp"
#include "codegen/base/overloaded.hpp"
#include "codegen/cuda/printer.hpp"
#include "codegen/cuda/spelling.hpp"
#include "codegen/layout/terms.hpp"
#include "codegen/layout/transfer.hpp"

namespace palladium::cuda {

using graph::Inst;
using graph::MemoryView;
using graph::Op;
using layout::Layout;
using Kind = FlatPass::Kind;
using passes::Place;
using passes::Residency;
using passes::Storage;

namespace {

std::string dim_name(int d) {
  return d < 6 ? std::string(1, "ijklmn"[d]) : "i" + std::to_string(d);
}
std::string repetition_name(int d) { return "r" + dim_name(d); }

// The linear map of the bits of variable `v` (of which there are `bits`) as a sum.
Affine affine_of(const std::string& v, const layout::Terms& terms, int bits) {
  Affine sum;
  for (const layout::Term& t : terms.terms) {
    const bool all = t.mask == (1u << bits) - 1;
    const std::int64_t low = t.mask & -t.mask;
    if (t.shift >= 0)
      sum = sum + Affine::term(all ? v : fmt::format("({} & {})", v, t.mask), all ? 1 : low) *
                      (std::int64_t{1} << t.shift);
    else
      sum = sum + Affine::term(fmt::format("({} >> {} & {})", v, -t.shift, t.mask >> -t.shift),
                               std::max<std::int64_t>(1, low >> -t.shift));
  }
  return sum;
}

}  // namespace

FlatPass::FlatPass(const passes::Lowered& l, const passes::Pass& pass) : Pass(pass) {
  std::visit(Overloaded{[&](const passes::Assign& to) { storage = to.storage; },
                        [&](const passes::Stage& to) {
                          kind = Kind::shared;
                          storage = to.storage;
                        },
                        [&](const passes::Store& to) {
                          kind = Kind::store;
                          inst = to.inst;
                        },
                        [&](const passes::Reduce& to) {
                          kind = Kind::reduce;
                          inst = to.inst;
                          storage = to.storage;
                          reduced = to.reduced;
                          scratch = to.scratch;
                        },
                        [&](const passes::Fill& to) {
                          const bool shared = l.storages[to.storage].place == Place::shared;
                          kind = shared ? Kind::shared : Kind::assign;
                          window = to.window;
                          storage = to.storage;
                        },
                        [&](const passes::Flush& to) {
                          kind = Kind::store;
                          window = to.window;
                          storage = to.storage;
                        },
                        [&](const passes::Spill& to) {
                          kind = Kind::shared;
                          source = to.from;
                          storage = to.to;
                        }},
             sink);
}

void Nest::set_layout(const Layout& layout) {
  layout_ = layout;
  const int last = layout.rank() - 1;
  vector_bits_ = 0;
  const int limit = widest_access();
  while (last >= 0 && vector_bits_ < static_cast<int>(layout.reg.size()) &&
         layout.reg[vector_bits_] == (1u << vector_bits_) &&
         layout.tile_bits[last] > vector_bits_ && (2 << vector_bits_) <= limit)
    ++vector_bits_;
  vector_ = 1 << vector_bits_;
  groups_ = static_cast<int>(layout.reg.size()) > vector_bits_;
}

// Elements of the narrowest type that the pass moves in 16 bytes.
int Nest::widest_access() const {
  int bytes = 4;
  const auto note = [&](DType t) { bytes = std::min(bytes, t.bytes()); };
  if (pass_->window >= 0) note(g_[l_.windows[pass_->window].root].type.dtype);
  if (pass_->storage >= 0) note(l_.storages[pass_->storage].dtype);
  if (pass_->inst != graph::no_value && pass_->kind == Kind::store)
    note(g_[g_[pass_->inst].args[0]].type.dtype);
  return 16 / bytes;
}

bool Nest::is_reduced(int d) const {
  return std::find(pass_->reduced.begin(), pass_->reduced.end(), d) != pass_->reduced.end();
}

Affine Nest::repetition(int d) const {
  return layout_.repetitions(d) > 1 ? Affine::term(repetition_name(d)) : Affine(0);
}

// The coordinates at the innermost loop: one variable per dimension for the thread's part, whose
// definitions are returned, and what the loops add.
std::vector<std::pair<std::string, std::string>> Nest::find_coordinates() {
  std::vector<std::pair<std::string, std::string>> variables;
  coordinates_.clear();
  const layout::Bits thread = layout_.thread();
  const int bits = static_cast<int>(layout_.reg.size());
  for (int d = 0; d < layout_.rank(); ++d) {
    Affine c;
    const layout::Terms terms = layout::terms_of(fields_of(layout_, thread, d));
    if (!terms.empty()) {
      const Affine text = affine_of("t", terms, layout_.thread_bits());
      variables.emplace_back(dim_name(d), text.text());
      c = Affine::term(dim_name(d), std::max<std::int64_t>(1, text.multiple()));
    }
    c = c + repetition(d) * layout_.tile(d);
    layout::Bits low = fields_of(layout_, layout_.reg, d),
                 high(low.begin() + vector_bits_, low.end());
    c = c + affine_of("g", layout::terms_of(high), bits - vector_bits_);
    if (vector_bits_ > 0 && d + 1 == layout_.rank()) c = c + Affine::term("e");
    coordinates_.push_back(c);
  }
  return variables;
}

void Nest::open_repetitions(bool reduced, bool kept) {
  for (int d = 0; d < layout_.rank(); ++d) {
    if (layout_.repetitions(d) == 1 || (is_reduced(d) ? !reduced : !kept)) continue;
    const bool rolled = d < static_cast<int>(pass_->rolled.size()) && pass_->rolled[d];
    p_.w_.open_block(fmt::format("{0} for (i32 {1} = 0; {1} < {2}; ++{1})",
                                 rolled ? "PL_NOUNROLL" : "PL_UNROLL", repetition_name(d),
                                 layout_.repetitions(d)));
    ++open_;
  }
}

void Nest::open_groups() {
  if (!groups_) return;
  p_.w_.open_block(fmt::format("PL_UNROLL for (i32 g = 0; g < {}; ++g)",
                               1 << (layout_.reg.size() - static_cast<std::size_t>(vector_bits_))));
  ++open_;
}

void Nest::close_loops(int down_to) {
  for (; open_ > down_to; --open_) p_.w_.close_block();
}

// The bits of the register number below the repetitions that a leaf keeps, renumbered.
Affine Nest::low_register_index(const DimMap& map, int& bits) const {
  layout::Bits columns;
  bits = 0;
  for (std::uint32_t image : layout_.reg) {
    bool kept = false;
    for (int d : map) kept |= d >= 0 && layout_.field(d, image) != 0;
    columns.push_back(kept ? 1u << bits++ : 0u);
  }
  const layout::Bits element(columns.begin(), columns.begin() + vector_bits_);
  const layout::Bits group(columns.begin() + vector_bits_, columns.end());
  return affine_of("g", layout::terms_of(group), static_cast<int>(group.size())) +
         affine_of("e", layout::terms_of(element), vector_bits_);
}

Affine Nest::register_index(const Layout& leaf, const DimMap& map) const {
  int bits = 0;
  const Affine low = low_register_index(map, bits);
  if (bits != static_cast<int>(leaf.reg.size()))
    throw InternalError("print: a leaf's layout does not follow from that of its pass: " +
                        layout::to_string(leaf) + " in " + layout::to_string(layout_));
  Affine index;
  std::int64_t stride = std::int64_t{1} << bits;
  for (std::size_t d = map.size(); d-- > 0;) {
    if (map[d] < 0) continue;
    index = repetition(map[d]) * stride + index;
    stride *= layout_.repetitions(map[d]);
  }
  return index + low;
}

// Tests of the pass's coordinates against the shape, where registers or threads hold padding.
std::vector<Bound> Nest::padding(const DimMap& map) const {
  std::vector<Bound> bounds;
  if (!pass_) return bounds;
  const bool all = std::find(map.begin(), map.end(), passes::opaque_dim) != map.end();
  for (int d = 0; d < layout_.rank(); ++d) {
    const bool wanted = all || std::find(map.begin(), map.end(), d) != map.end();
    const std::int64_t valid = pass_->valid[d];
    if (!wanted || (valid == layout_.domain[d] && !layout_.pads(d))) continue;
    bounds.push_back({coordinates_[d], std::to_string(valid), valid, false, valid});
  }
  return bounds;
}

// Whether the pass computes the value that its storage holds (rather than read it from there).
bool Nest::enters() const {
  if (pass_->kind == Kind::store || pass_->value == graph::no_value) return false;
  const Op op = g_[pass_->value].op;
  return l_.storage_of[index(pass_->value)] == pass_->storage && op != Op::Param && op != Op::Get;
}

// The expression of the pass's value for one element; what it needs is printed before, and the
// loop over e is open if there is one.
std::string Nest::value(bool enter) {
  memo_.clear();
  element_names_.clear();
  const DimMap all = passes::identity_map(layout_.rank());
  if (pass_->source >= 0) return read(pass_->source, coordinates_, all);
  if (pass_->window >= 0) {
    if (pass_->kind == Kind::store) return read(pass_->storage, coordinates_, all);
    return access(window_address(pass_->window, coordinates_), all, "");
  }
  Coordinates c = coordinates_;
  return evaluate(pass_->value, c, all, enter);
}

void Nest::open_elements() {
  for (const Line& line : before_) p_.w_.line(line.text, line.at);
  before_.clear();
  if (vector_ > 1) {
    p_.w_.open_block(fmt::format("PL_UNROLL for (i32 e = 0; e < {}; ++e)", vector_));
    ++open_;
  }
  for (const Line& line : inside_) p_.w_.line(line.text, line.at);
  inside_.clear();
}

void Nest::print(const passes::Pass& lowered) {
  const FlatPass pass(l_, lowered);
  pass_ = &pass;
  indices_.clear();
  checks_.clear();
  set_layout(pass.layout);
  if (pass.kind == Kind::assign && !p_.declared_.contains(pass.storage)) {
    const Storage& s = l_.storages[pass.storage];
    p_.w_.line(fmt::format("{} {}[{}];", type_name(s.dtype), p_.storage_name(pass.storage),
                           s.layout.registers()));
    p_.declared_.insert(pass.storage);
  }
  if (pass.kind == Kind::reduce) {
    const Storage& s = l_.storages[pass.storage];
    const std::string type = type_name(s.dtype), name = p_.storage_name(pass.storage);
    if (s.place == Place::scalar) p_.w_.line(fmt::format("{} {};", type, name));
    if (s.place == Place::registers)
      p_.w_.line(fmt::format("{} {}[{}];", type, name, s.layout.registers()));
  }
  p_.w_.open_block("");
  const std::uint32_t replicated = layout_.replicated_threads();
  if (pass.kind != Kind::assign && replicated != 0)
    thread_mask_ = replicated == 127 ? "t == 0" : fmt::format("(t & {}) == 0", replicated);
  if (pass.kind == Kind::store && pass.window >= 0 && p_.unstored_.contains(pass.storage))
    thread_mask_ += fmt::format("{}pl::was_stored({})", thread_mask_.empty() ? "" : " && ",
                                p_.stored_name(pass.storage));
  const std::size_t first = p_.w_.size();
  const auto coordinates = find_coordinates();
  switch (pass.kind) {
  case Kind::assign: print_assign(); break;
  case Kind::store: print_store(); break;
  case Kind::shared: print_shared(); break;
  case Kind::reduce: print_reduce(); break;
  }
  p_.w_.close_block();
  for (auto it = checks_.rbegin(); it != checks_.rend(); ++it)
    p_.w_.insert(first, it->text, it->at);
  // What a view computes of a coordinate may cancel out.
  for (auto it = indices_.rbegin(); it != indices_.rend(); ++it)
    p_.w_.drop_if_unused(first, index_type, *it);
  for (auto it = coordinates.rbegin(); it != coordinates.rend(); ++it)
    if (p_.w_.names(first, it->first))
      p_.w_.insert(first, fmt::format("{} {} = {};", index_type, it->first, it->second));
  if (p_.w_.names(first, "t")) p_.w_.insert(first, "const i32 t = pl::thread();");
}

// Where the elements of a group stand one after the other in the registers of a storage; "" where
// they do not.
std::string Nest::group_in_registers(int storage) const {
  const Storage& s = l_.storages[storage];
  if (s.place != Place::registers || vector_ == 1) return "";
  const Affine at = register_index(s.layout, passes::identity_map(layout_.rank()));
  if (at.coefficient("e") != 1) return "";
  const std::string first = at.without("e").text();
  return p_.storage_name(storage) + (first == "0" ? "" : " + " + first);
}

// Where the pass does nothing but read memory, reads a group of elements straight to `to`.
bool Nest::print_copy(const std::string& to) {
  const DimMap all = passes::identity_map(layout_.rank());
  const ValueId v = pass_->value;
  const int temporaries = temporaries_;
  Address a;
  if (pass_->source >= 0) return false;
  if (pass_->window >= 0) {
    a = window_address(pass_->window, coordinates_);
  } else if (enters() && g_[v].op == Op::Load) {
    const MemoryView m = MemoryView::of(g_[v]);
    const int window = l_.window_of[index(g_.root(m.ref))];
    if (m.mask != graph::no_value || l_.windows[window].residency == Residency::registers)
      return false;
    check_indices(v, coordinates_, all, "");
    a = address(m.ref, coordinates_);
  } else {
    return false;
  }
  if (a.dtype != l_.storages[pass_->storage].dtype || !inside_.empty() || !is_vector(a, all)) {
    before_.clear();
    inside_.clear();
    element_names_.clear();
    memo_.clear();
    temporaries_ = temporaries;
    return false;
  }
  flush();
  p_.w_.line(load_vector(a, all, to));
  return true;
}

void Nest::print_assign() {
  const Storage& s = l_.storages[pass_->storage];
  const DimMap all = passes::identity_map(layout_.rank());
  open_repetitions(true, true);
  open_groups();
  const std::string group = group_in_registers(pass_->storage);
  if (!group.empty() && print_copy(group)) return close_loops();
  const std::string text = value(enters());
  open_elements();
  std::string to = p_.storage_name(pass_->storage);
  if (s.place == Place::registers) to += "[" + register_index(s.layout, all).text() + "]";
  p_.w_.line(fmt::format("{} = {};", to, text));
  close_loops();
}

void Nest::print_store() {
  open_repetitions(true, true);
  open_groups();
  const DimMap all = passes::identity_map(layout_.rank());
  if (pass_->window >= 0 && pass_->source < 0) {
    if (l_.storages[pass_->storage].place == Place::shared) return print_flush_of_shared();
    Address a = window_address(pass_->window, coordinates_);
    const std::string from = group_in_registers(pass_->storage);
    if (!from.empty() && a.dtype == l_.storages[pass_->storage].dtype) {
      add_padding(a.bounds, padding(all));
      store_vector(a, from, a.bounds);
      close_loops();
      return;
    }
  }
  const std::string text = value(false);
  std::string mask;
  Address a;
  if (pass_->window >= 0) {
    a = window_address(pass_->window, coordinates_);
  } else {
    const MemoryView m = MemoryView::of(g_[pass_->inst]);
    if (m.mask != graph::no_value) mask = evaluate(m.mask, coordinates_, all, false);
    check_indices(pass_->inst, coordinates_, all, mask);
    storing_ = true;
    a = address(m.ref, coordinates_);
    storing_ = false;
  }
  store_element(a, text, mask, padding(all));
  close_loops();
}

// A block that ends, from shared memory to its array.
void Nest::print_flush_of_shared() {
  const Address from = storage_address(pass_->storage, coordinates_);
  Address to = window_address(pass_->window, coordinates_);
  add_padding(to.bounds, padding(passes::identity_map(layout_.rank())));
  for (Bound& b : to.bounds) b.along_element = b.coordinate.coefficient("e") != 0;
  p_.w_.line(vector_access("pl::flush_resident", to, "", true, to.bounds, thread_mask_, &from));
  close_loops();
}

// Puts one value per element into memory: collected over e, then stored as vectors.
void Nest::store_element(const Address& a, const std::string& text, const std::string& mask,
                         const std::vector<Bound>& limits) {
  if (!a.parts.empty()) return store_parts(a, text, mask, limits);
  std::vector<Bound> bounds = a.bounds;
  add_padding(bounds, limits);
  bool computed = !mask.empty();
  for (const std::string& n : element_names_) {
    computed |= a.offset.mentions(n);
    for (const Bound& b : bounds) computed |= b.coordinate.mentions(n);
  }
  const std::string type = type_name(a.dtype);
  const int outer = open_;
  if (vector_ == 1 || computed) {
    open_elements();
    const std::string name = temporary("o");
    p_.w_.line(fmt::format("const {} {} = {};", type, name, text));
    store_one(a, "&" + name, mask, bounds);
    return;
  }
  // What is the same for all elements of the group is computed once: with a branch in it, NVRTC
  // would unroll the loop too late to keep the group in registers.
  std::string element = text;
  if (!is_atom(text) && !varies_within_group(text)) {
    element = temporary("x");
    before(fmt::format("const {} {} = {};", type, element, text));
  }
  const std::string name = temporary("o");
  before(fmt::format("{} {}[{}];", type, name, vector_));
  open_elements();
  p_.w_.line(fmt::format("{}[e] = {};", name, element));
  close_loops(outer);
  store_vector(a, name, bounds);
}

void Nest::print_shared() {
  const Storage& s = l_.storages[pass_->storage];
  open_repetitions(true, true);
  open_groups();
  std::string text = value(enters());
  // What lies beyond the value is zero.
  std::vector<Bound> beyond;
  for (int d = 0; d < layout_.rank(); ++d)
    if (pass_->valid[d] != layout_.domain[d])
      beyond.push_back({coordinates_[d], std::to_string(pass_->valid[d]), 1});
  if (!beyond.empty())
    text = fmt::format("{} ? {} : {}", predicate(beyond, ""), parenthesised(text),
                       literal(s.dtype, 0));
  std::vector<Bound> inside;
  for (int d = 0; d < layout_.rank(); ++d)
    if (layout_.pads(d))
      inside.push_back({coordinates_[d], std::to_string(layout_.domain[d]), layout_.domain[d]});
  store_element(storage_address(pass_->storage, coordinates_), text, "", inside);
  close_loops();
}

// Partial results in `acc`, folded over the registers, then over lanes and warps.
void Nest::print_reduce() {
  const Storage& s = l_.storages[pass_->storage];
  const bool shared = s.place == Place::shared;
  const Layout result = layout::drop(layout_, pass_->reduced);
  DimMap kept;
  for (int d = 0; d < layout_.rank(); ++d)
    if (!is_reduced(d)) kept.push_back(d);
  const std::int64_t registers = shared ? std::int64_t{1} << result.reg.size() : result.registers();

  const DType accumulator = passes::accumulator_dtype(g_, pass_->inst);
  const std::string type = type_name(accumulator);
  const Op op = g_[pass_->inst].op;
  const std::string identity = op == Op::ReduceSum   ? literal(accumulator, 0)
                               : op == Op::ReduceMax ? fmt::format("pl::min_value<{}>()", type)
                                                     : fmt::format("pl::max_value<{}>()", type);
  const std::string fold = op == Op::ReduceSum   ? "pl::Sum"
                           : op == Op::ReduceMax ? "pl::Max"
                                                 : "pl::Min";

  if (shared) open_repetitions(false, true);
  const int outer = open_;
  const bool one = registers == 1 && !shared;
  if (one) {
    p_.w_.line(fmt::format("{} acc = {};", type, identity));
  } else {
    p_.w_.line(fmt::format("{} acc[{}];", type, registers));
    p_.w_.line(
        fmt::format("PL_UNROLL for (i32 a = 0; a < {}; ++a) acc[a] = {};", registers, identity));
  }
  open_repetitions(true, !shared);
  open_groups();
  std::string text = value(false);
  if (g_[pass_->value].type.dtype != accumulator) text = fmt::format("pl::to<{}>({})", type, text);
  std::vector<Bound> beyond;
  for (const Bound& b : padding(pass_->reduced)) beyond.push_back(b);
  if (!beyond.empty())
    text = fmt::format("{} ? {} : {}", predicate(beyond, ""), parenthesised(text), identity);
  int bits = 0;
  const std::string at =
      shared ? low_register_index(kept, bits).text() : register_index(result, kept).text();
  open_elements();
  const std::string to = one ? "acc" : fmt::format("acc[{}]", at);
  p_.w_.line(fmt::format("{0} = pl::fold({1}(), {0}, {2});", to, fold, text));
  close_loops(outer);
  finish_reduction(fold, one);
  if (shared)
    print_shared_result(registers);
  else
    print_result(registers);
  close_loops();
}

void Nest::finish_reduction(const std::string& fold, bool one) {
  const layout::Bits all = layout_.thread(), left = layout::drop(layout_, pass_->reduced).thread();
  std::uint32_t lanes = 0, warps = 0, distinct = 0;
  for (int b = 0; b < layout_.thread_bits(); ++b) {
    const bool folded = all[b] != 0 && left[b] == 0;
    if (b < layout::lane_bits) {
      lanes |= folded ? 1u << b : 0;
      distinct |= left[b] != 0 ? 1u << b : 0;
    } else {
      warps |= folded ? 1u << (b - layout::lane_bits) : 0;
    }
  }
  const std::string to = one ? "acc = " : "";
  if (lanes != 0) p_.w_.line(fmt::format("{}pl::reduce_lanes<{}>(acc, {}());", to, lanes, fold));
  if (warps == 0) return;
  p_.loops_ += open_;
  p_.print_scratch_sync();
  p_.loops_ -= open_;
  p_.w_.line(fmt::format("{}pl::reduce_warps<{}, {}, {}>(acc, {}, {}());", to, warps, distinct,
                         l_.warpgroups, p_.shared_address(pass_->scratch), fold));
}

void Nest::print_result(std::int64_t registers) {
  const Storage& s = l_.storages[pass_->storage];
  const std::string name = p_.storage_name(pass_->storage);
  const DType accumulator = passes::accumulator_dtype(g_, pass_->inst);
  const auto converted = [&](const std::string& x) {
    return s.dtype == accumulator ? x : fmt::format("pl::to<{}>({})", type_name(s.dtype), x);
  };
  if (registers == 1)
    p_.w_.line(
        fmt::format("{}{} = {};", name, s.place == Place::scalar ? "" : "[0]", converted("acc")));
  else
    p_.w_.line(fmt::format("PL_UNROLL for (i32 a = 0; a < {}; ++a) {}[a] = {};", registers, name,
                           converted("acc[a]")));
}

// One thread of those that hold an element puts it into shared memory.
void Nest::print_shared_result(std::int64_t registers) {
  const Storage& s = l_.storages[pass_->storage];
  const Layout result = layout::drop(layout_, pass_->reduced);
  Coordinates c;
  std::vector<Bound> bounds;
  int r = 0;
  for (int d = 0; d < layout_.rank(); ++d) {
    if (is_reduced(d)) continue;
    Affine x = coordinates_[d].without("e");
    const layout::Bits low = fields_of(result, result.reg, r);
    Affine base;
    if (!layout::terms_of(fields_of(layout_, layout_.thread(), d)).empty())
      base = Affine::term(dim_name(d));
    x = base + repetition(d) * layout_.tile(d) +
        affine_of("a", layout::terms_of(low), static_cast<int>(low.size()));
    if (layout_.pads(d)) bounds.push_back({x, std::to_string(layout_.domain[d]), 1});
    c.push_back(x);
    ++r;
  }
  const std::uint32_t replicated = result.replicated_threads();
  std::string test = predicate(bounds, "");
  if (replicated != 0)
    test += (test.empty() ? "" : " && ") +
            (replicated == 127 ? std::string("t == 0") : fmt::format("(t & {}) == 0", replicated));
  const Address a = storage_address(pass_->storage, c);
  const DType accumulator = passes::accumulator_dtype(g_, pass_->inst);
  p_.w_.open_block(fmt::format("PL_UNROLL for (i32 a = 0; a < {}; ++a)", registers));
  std::string from = "&acc[a]";
  if (s.dtype != accumulator) {
    p_.w_.line(fmt::format("const {0} o = pl::to<{0}>(acc[a]);", type_name(s.dtype)));
    from = "&o";
  }
  p_.w_.line(fmt::format("pl::store_shared<1>({} + ({}) * {}, {}{});", a.base, a.offset.text(),
                         s.dtype.bytes(), from, test.empty() ? "" : ", " + test));
  p_.w_.close_block();
}

}  // namespace palladium::cuda
