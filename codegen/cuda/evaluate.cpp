// Expressions of one element: inlined operations, reads of storages and of memory.
#include <numeric>
#include <utility>

#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/cuda/printer.hpp"
#include "codegen/cuda/spelling.hpp"
#include "codegen/layout/transfer.hpp"

namespace palladium::cuda {

using graph::AxisKind;
using graph::Inst;
using graph::MemoryView;
using graph::Op;
using passes::Place;
using passes::Residency;
using passes::Storage;
using passes::Window;

namespace {

std::string key_of(const Coordinates& c) {
  std::string key;
  for (const Affine& a : c) key += a.text() + ";";
  return key;
}

}  // namespace

// A test against the window's size implies the one against the value's shape.
void add_padding(std::vector<Bound>& bounds, const std::vector<Bound>& padding) {
  const std::size_t given = bounds.size();
  for (const Bound& p : padding) {
    bool implied = false;
    for (std::size_t i = 0; i < given; ++i)
      implied |= !bounds[i].lower && bounds[i].most <= p.most &&
                 bounds[i].coordinate.text() == p.coordinate.text();
    if (!implied) bounds.push_back(p);
  }
}

std::string Nest::temporary(const std::string& prefix) {
  // Those outside of a nest stand in the scope of the statements around it.
  if (!pass_) return "s" + prefix + std::to_string(p_.temporaries_++);
  return *temporary_names_.insert(prefix + std::to_string(temporaries_++)).first;
}

// Gives a value that is used more than once, or whose text is long, a name.
std::string Nest::named(const Pending& p, const std::string& text) {
  const bool atom = is_atom(text) && text.size() < 24 && text.find("pl::") == std::string::npos;
  if (atom || (l_.uses[index(p.v)] <= 1 && text.size() < 80)) return text;
  const std::string name = temporary("x");
  inside(fmt::format("const {} {} = {};", type_name(g_[p.v].type.dtype), name, text));
  element_names_.insert(name);
  memo_[p.key] = name;
  return name;
}

// Expressions may be as deep as a kernel has operations: no recursion.
std::string Nest::evaluate(ValueId v, const Coordinates& c, const DimMap& map, bool enter) {
  std::vector<Pending> stack{{v, c, map, enter}};
  for (;;) {
    Pending operand;
    std::string text;
    if (next_operand(stack.back(), operand, text)) {
      stack.push_back(std::move(operand));
      continue;
    }
    stack.pop_back();
    if (stack.empty()) return text;
    stack.back().operands.push_back(std::move(text));
  }
}

// The operand that `p` needs next; false where it needs none and `text` is its expression.
bool Nest::next_operand(Pending& p, Pending& operand, std::string& text) {
  const Inst& i = g_[p.v];
  if (p.operands.empty()) {
    if (!p.enter && l_.storage_of[index(p.v)] >= 0) {
      text = read(l_.storage_of[index(p.v)], p.c, p.map);
      return false;
    }
    p.key = std::to_string(index(p.v)) + "@" + key_of(p.c);
    if (const auto it = memo_.find(p.key); it != memo_.end()) {
      text = it->second;
      return false;
    }
  }
  const auto want = [&](ValueId v, Coordinates c, DimMap map) {
    operand = {v, std::move(c), std::move(map), false};
    return true;
  };
  switch (i.op) {
  case Op::Load:
  case Op::Swap: return next_of_load(p, operand, text);
  case Op::Broadcast:
  case Op::Transpose:
  case Op::Reshape:
    if (p.operands.empty())
      return want(i.args[0], operand_coordinates(p.v, 0, p.c),
                  passes::map_of_operand(g_, p.v, 0, p.map));
    text = std::move(p.operands[0]);
    return false;
  default: break;
  }
  if (!graph::is_elementwise(i.op)) {
    text = leaf(p.v, p.c);
    return false;
  }
  if (p.operands.size() < i.args.size()) return want(i.args[p.operands.size()], p.c, p.map);
  const DType of = g_[i.args[i.op == Op::Select ? 1 : 0]].type.dtype;
  text = named(p, spell(i.op, of, i.type.dtype, p.operands, g_.approx_math));
  return false;
}

// What has no operands to evaluate.
std::string Nest::leaf(ValueId v, const Coordinates& c) {
  const Inst& i = g_[v];
  switch (i.op) {
  case Op::Constant: return literal(i.type.dtype, i.attr.bits);
  case Op::Iota:
    return coordinate_value(c[static_cast<std::size_t>(graph::iota_dimension(i))], i.type.dtype);
  case Op::ProgramId: return p_.program_id(graph::AxisView::of(i).axis);
  case Op::NumPrograms: return p_.grid_size(graph::AxisView::of(i).axis);
  case Op::AxisIndex:
    switch (const graph::AxisView a = graph::AxisView::of(i); a.kind) {
    case AxisKind::grid: return p_.program_id(a.axis);
    case AxisKind::cluster: return fmt::format("c{}", a.axis);
    case AxisKind::thread: return "i32(warpgroup)";
    }
    break;
  case Op::AxisSize:
    switch (const graph::AxisView a = graph::AxisView::of(i); a.kind) {
    case AxisKind::grid: return p_.grid_size(a.axis);
    case AxisKind::cluster: return std::to_string(g_.cluster[a.axis]);
    case AxisKind::thread: return std::to_string(l_.warpgroups);
    }
    break;
  case Op::Param:
    if (const auto it = p_.names_.find(index(v)); it != p_.names_.end()) return it->second;
    break;
  default: break;
  }
  throw InternalError(fmt::format("print: cannot evaluate '{}' element by element in kernel '{}'",
                                  graph::info(i.op).name, g_.name));
}

std::string Nest::coordinate_value(const Affine& c, DType t) const {
  const std::string text = c.text();
  return t == i32 ? parenthesised(text) : fmt::format("pl::to<{}>({})", type_name(t), text);
}

Coordinates Nest::operand_coordinates(ValueId v, std::size_t arg, const Coordinates& c) {
  const Inst& i = g_[v];
  const Extents& operand = g_[i.args[arg]].type.shape;
  Coordinates out(operand.size());
  if (i.op == Op::Broadcast) {
    for (std::size_t d = 0; d < operand.size(); ++d)
      if (operand[d] != 1) out[d] = c[static_cast<std::size_t>(graph::dimensions(i)[d])];
  } else if (i.op == Op::Transpose) {
    for (std::size_t d = 0; d < operand.size(); ++d)
      out[static_cast<std::size_t>(graph::dimensions(i)[d])] = c[d];
  } else {
    return reshape_coordinates(operand, i.type.shape, c);
  }
  return out;
}

Affine Nest::flat(const Extents& shape, const Coordinates& c) const {
  Affine sum;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    sum = sum + c[d] * stride;
    stride *= shape[d];
  }
  return sum;
}

// Whether it is known inside the loop over e alone.
bool Nest::is_of_element(const Affine& a) const {
  return a.mentions("e") || std::any_of(element_names_.begin(), element_names_.end(),
                                        [&](const std::string& n) { return a.mentions(n); });
}

bool Nest::varies_within_group(const std::string& text) const {
  return names_identifier(text, "e") ||
         std::ranges::any_of(element_names_,
                             [&](const std::string& n) { return names_identifier(text, n); });
}

std::string Nest::declare_index(const std::string& text, bool per_element) {
  const std::string name = temporary("n");
  (per_element ? inside_ : before_)
      .push_back({fmt::format("{} {} = {};", index_type, name, text), reading_});
  if (pass_) indices_.push_back(name);
  if (per_element) element_names_.insert(name);
  return name;
}

// Coordinates in `from` of the element that stands at `c` in `to`, both row-major.
Coordinates Nest::reshape_coordinates(const Extents& from, const Extents& to,
                                      const Coordinates& c) {
  Coordinates out(from.size());
  std::size_t t = 0;
  bool same = true;  // only unit dimensions come and go
  for (std::size_t d = 0; d < from.size() && same; ++d) {
    if (from[d] == 1) continue;
    while (t < to.size() && to[t] == 1) ++t;
    same = t < to.size() && to[t] == from[d];
    if (same) out[d] = c[t++];
  }
  if (same) return out;

  const Affine position = flat(to, c);
  std::string name = position.text();
  const bool per_element =
      std::any_of(c.begin(), c.end(), [&](const Affine& a) { return is_of_element(a); });
  const auto declare = [&](const std::string& text) { return declare_index(text, per_element); };
  if (!is_atom(name)) name = declare(name);
  std::int64_t stride = 1;
  bool outermost = true;
  for (std::size_t d = 0; d < from.size(); ++d) stride *= from[d];
  for (std::size_t d = 0; d < from.size(); ++d) {
    stride /= from[d];
    if (from[d] == 1) {
      out[d] = 0;
      continue;
    }
    std::string text = stride == 1 ? name : fmt::format("{} / {}", name, stride);
    if (!outermost) text = fmt::format("{} % {}", text, from[d]);
    outermost = false;
    out[d] = Affine::term(declare(text));
  }
  return out;
}

std::string Nest::read(int storage, const Coordinates& c, const DimMap& map) {
  for (const auto& [from, copy] : copies_)
    if (from == storage && copy.map == map) {
      storage = copy.storage;
      break;
    }
  const Storage& s = l_.storages[storage];
  const std::string name = p_.storage_name(storage);
  if (s.place == Place::scalar) return name;
  if (s.place == Place::registers) return name + "[" + register_index(s.layout, map).text() + "]";
  const std::string key = "s" + std::to_string(storage) + "@" + key_of(c);
  if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
  return memo_[key] = access(storage_address(storage, c), map, "");
}

// The mask comes first, then the access, then what stands in where the mask does not hold.
bool Nest::next_of_load(Pending& p, Pending& operand, std::string& text) {
  const Inst& i = g_[p.v];
  const MemoryView m = MemoryView::of(i);
  const bool masked = m.mask != graph::no_value;
  if (masked && p.operands.empty()) {
    operand = {m.mask, p.c, p.map, false};
    return true;
  }
  const std::string mask = masked ? p.operands[0] : "";
  if (p.operands.size() <= 1) {
    const Window& w = l_.windows[l_.window_of[index(g_.root(m.ref))]];
    const Location outer = std::exchange(reading_, g_.location(p.v));
    if (w.residency == Residency::registers) {
      text = load_registers(p.v, p.c, p.map);
    } else {
      check_indices(p.v, p.c, p.map, mask);
      text = access(address(m.ref, p.c), p.map, mask);
    }
    reading_ = outer;
    const ValueId other = i.op == Op::Swap ? m.value : m.other;
    if (masked && other != graph::no_value) {
      p.got = std::move(text);
      operand = {other, p.c, p.map, false};
      return true;
    }
  } else {
    text = temporary("x");
    inside(fmt::format("const {} {} = {} ? {} : {};", type_name(i.type.dtype), text,
                       parenthesised(mask), p.got, parenthesised(p.operands[1])));
    element_names_.insert(text);
  }
  memo_[p.key] = text;
  return false;
}

// A block in registers: what the user stored there as far as the array reaches.
std::string Nest::load_registers(ValueId v, const Coordinates& c, const DimMap& map) {
  const int window = l_.window_of[index(g_.root(g_[v].args[0]))];
  const Window& w = l_.windows[window];
  if (p_.unstored_.contains(w.storage)) print_check(p_.stored_check(w.storage));
  const std::string got = read(w.storage, c, map);
  if (w.mapping < 0 || l_.storages[w.storage].place == Place::scalar) return got;
  Address bounds;
  add_bounds_of_window(bounds, window, c);
  if (bounds.bounds.empty()) return got;
  const std::string name = temporary("x"), type = type_name(g_[v].type.dtype);
  inside(fmt::format("const {} {} = {} ? {} : pl::out_of_bounds<{}>();", type, name,
                     predicate(bounds.bounds, ""), got, type));
  element_names_.insert(name);
  return name;
}

// ---- accesses

Nest::Width Nest::vector_width(const Address& a, const std::vector<Bound>& bounds) const {
  if (a.offset.coefficient("e") != 1) return {};
  const auto limited = [](int width, std::int64_t multiple) {
    while (width > 1 && multiple % width != 0) width /= 2;
    return width;
  };
  int width = std::min<int>(vector_, 16 / a.dtype.bytes());
  width = limited(width, a.alignment);
  width = limited(width, a.offset.without("e").multiple());
  int whole = width;  // elements that are in or out of bounds together
  bool upper = true;
  for (const Bound& b : bounds) {
    const std::int64_t step = b.coordinate.coefficient("e");
    if (step == 0) continue;
    if (step != 1) return {};
    upper = upper && !b.lower;
    whole = limited(whole, b.multiple);
    whole = limited(whole, b.coordinate.without("e").multiple());
  }
  if (whole < width && upper && (!a.shared || a.resident)) return {width, true};
  return {whole, false};
}

// One access of every element of the vector at `array`, by as few instructions as may be.
std::string Nest::vector_access(const std::string& function, Address a, const std::string& array,
                                bool store, std::vector<Bound> bounds, const std::string& extra,
                                const Address* from) const {
  Width w = vector_width(a, bounds);
  if (from != nullptr) w.width = std::min(w.width, vector_width(*from, {}).width);
  const bool once = w.width == vector_;
  if (once) {
    a.offset = a.offset.without("e");
    for (Bound& b : bounds) b.coordinate = b.coordinate.without("e");
  }
  std::string valid;
  if (w.part) {
    std::vector<Bound> rest;
    for (const Bound& b : bounds) {
      const bool along = once ? b.along_element : b.coordinate.coefficient("e") != 0;
      if (!along) {
        rest.push_back(b);
        continue;
      }
      const std::string left = b.limit + " - " + parenthesised(b.coordinate.text());
      valid = valid.empty() ? left : fmt::format("pl::min({}, {})", valid, left);
    }
    bounds = std::move(rest);
  }
  std::string test = predicate(bounds, "");
  if (!extra.empty()) test += (test.empty() ? "" : " && ") + extra;
  std::string arguments = array + (once ? "" : " + e");
  if (from != nullptr) {
    Address place_of_first = *from;
    if (once) place_of_first.offset = from->offset.without("e");
    arguments = place(place_of_first);
  }
  arguments = store ? place(a) + ", " + arguments : arguments + ", " + place(a);
  if (w.part) arguments += ", " + valid;
  if (!test.empty()) arguments += ", " + test;
  const std::string loop =
      once ? "" : fmt::format("PL_UNROLL for (i32 e = 0; e < {}; e += {}) ", vector_, w.width);
  return fmt::format("{}{}{}<{}>({});", loop, function, w.part ? "_part" : "", w.width, arguments);
}

// All elements of a group stand on one side of a limit that is a multiple of their number: the
// first speaks for them.
Affine Nest::tested_coordinate(const Bound& b) const {
  const Affine first = b.coordinate.without("e");
  const bool together = !b.lower && b.coordinate.coefficient("e") == 1 && !first.mentions("e") &&
                        b.multiple % vector_ == 0 && first.multiple() % vector_ == 0;
  return together ? first : b.coordinate;
}

std::string Nest::predicate(const std::vector<Bound>& bounds, const std::string& mask) const {
  std::string out = mask.empty() ? "" : parenthesised(mask);
  for (const Bound& b : bounds) {
    const std::string test = tested_coordinate(b).text() + (b.lower ? " >= " : " < ") + b.limit;
    out += (out.empty() ? "" : " && ") + test;
  }
  return out;
}

// What an access is subject to: its bounds, those of the padding, and which threads make it.
std::vector<Bound> Nest::bounds_of(const Address& a, const DimMap& map) const {
  std::vector<Bound> bounds = a.bounds;
  add_padding(bounds, padding(map));
  for (Bound& b : bounds) b.along_element = b.coordinate.coefficient("e") != 0;
  return bounds;
}

// Whether the elements of a group are read together: the address moves with e, and nothing in it
// comes from what was computed for one element.
bool Nest::is_vector(const Address& a, const DimMap& map) const {
  if (!a.parts.empty()) return false;
  bool varies = false, computed = false;
  const auto note = [&](const Affine& x) {
    varies |= x.mentions("e");
    for (const std::string& name : element_names_) computed |= x.mentions(name);
  };
  note(a.offset);
  for (const Bound& b : bounds_of(a, map)) note(b.coordinate);
  return varies && !computed && vector_ > 1;
}

// Where only one of several threads that compute a value stores it, the others must not read what
// it may just have overwritten.
std::string Nest::reading_threads(const Address& a) const {
  const bool stores = pass_ != nullptr && (pass_->kind == FlatPass::Kind::store ||
                                           pass_->kind == FlatPass::Kind::shared);
  return stores && !a.read_only ? thread_mask_ : "";
}

std::string Nest::load_function(const Address& a) {
  return a.resident    ? "pl::load_resident"
         : a.shared    ? "pl::load_shared_padded"
         : a.read_only ? "pl::load_global_nc"
                       : "pl::load_global";
}

std::string Nest::load_vector(const Address& a, const DimMap& map, const std::string& to) const {
  return vector_access(load_function(a), a, to, false, bounds_of(a, map), reading_threads(a));
}

// Reads one element at `a` for each e; returns the element's expression.
std::string Nest::access(const Address& a, const DimMap& map, const std::string& mask) {
  if (!a.parts.empty()) return joined_access(a, map, mask);
  const std::string name = temporary("a");
  const std::string type = type_name(a.dtype);
  if (mask.empty() && is_vector(a, map)) {
    before(fmt::format("{} {}[{}];", type, name, vector_));
    before(load_vector(a, map, name));
    return name + "[e]";
  }
  const std::vector<Bound> bounds = bounds_of(a, map);
  bool computed = !mask.empty();
  for (const std::string& n : element_names_) {
    computed |= a.offset.mentions(n);
    for (const Bound& b : bounds) computed |= b.coordinate.mentions(n);
  }
  auto& lines = computed ? inside_ : before_;
  if (computed) element_names_.insert(name);
  lines.push_back({fmt::format("{} {};", type, name), reading_});
  std::string test = predicate(bounds, mask);
  const std::string threads = reading_threads(a);
  if (!threads.empty()) test += (test.empty() ? "" : " && ") + threads;
  lines.push_back({fmt::format("{}<1>(&{}, {}{});", load_function(a), name, place(a),
                               test.empty() ? "" : ", " + test),
                   reading_});
  return name;
}

std::string Nest::place(const Address& a) const {
  const std::string offset = a.offset.text(a.wide);
  return a.shared ? fmt::format("{} + ({}) * {}", a.base, offset, a.dtype.bytes())
                  : fmt::format("{} + {}", a.base, parenthesised(offset));
}

void Nest::store_vector(const Address& a, const std::string& values, std::vector<Bound> bounds) {
  for (Bound& b : bounds) b.along_element = b.coordinate.coefficient("e") != 0;
  p_.w_.line(vector_access(a.shared ? "pl::store_shared" : "pl::store_global", a, values, true,
                           bounds, thread_mask_));
}

void Nest::store_one(const Address& a, const std::string& from, const std::string& mask,
                     const std::vector<Bound>& bounds) {
  std::string test = predicate(bounds, mask);
  if (!thread_mask_.empty()) test += (test.empty() ? "" : " && ") + thread_mask_;
  p_.w_.line(fmt::format("pl::store_{}<1>({}, {}{});", a.shared ? "shared" : "global", place(a),
                         from, test.empty() ? "" : ", " + test));
}

std::string Nest::scalar(ValueId v, bool enter) {
  layout_ = {};
  vector_ = 1;
  const Extents& shape = g_[v].type.shape;
  const std::string text = evaluate(v, Coordinates(shape.size()),
                                    passes::identity_map(static_cast<int>(shape.size())), enter);
  flush();
  return text;
}

std::vector<std::string> Nest::index_map(RegionIndex region, int rank) {
  if (region == no_region) return std::vector<std::string>(static_cast<std::size_t>(rank), "0");
  const graph::Region& r = g_[graph::RegionId{region}];
  for (std::size_t i = 0; i < r.params.size(); ++i)
    p_.names_[index(r.params[i])] = p_.program_id(static_cast<int>(i));
  std::vector<std::string> out;
  for (ValueId v : r.yields) out.push_back(scalar(v, false));
  return out;
}

void Nest::flush() {
  for (const Line& line : before_) p_.w_.line(line.text, line.at);
  for (const Line& line : inside_) p_.w_.line(line.text, line.at);
  before_.clear();
  inside_.clear();
}

}  // namespace palladium::cuda
