#include "codegen/base/dim.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "codegen/base/forking.hpp"

namespace palladium {

using detail::DimOp;

namespace {

// Interned for the life of the process: a program has a handful of them.
struct Table {
  std::mutex mutex;
  std::deque<DimNode> nodes{DimNode{}};  // id 0 is no expression
  std::deque<std::string> symbols;
  std::map<std::string, std::uint32_t, std::less<>> symbol_ids;
  using Key =
      std::tuple<DimOp, std::int64_t, std::uint32_t, std::int64_t, std::uint32_t, std::uint32_t>;
  std::map<Key, std::uint32_t> ids;
  std::vector<DimOptions> promises{DimOptions{}};  // 0 is none

  std::uint32_t intern(const DimNode& n) {
    const auto part = [](const Dim& d) { return d.is_static() ? d.value() : 0; };
    const Key key{n.op, part(n.a), n.a.expression(), part(n.b), n.b.expression(), n.symbol};
    auto [it, fresh] = ids.try_emplace(key, static_cast<std::uint32_t>(nodes.size()));
    if (fresh) nodes.push_back(n);
    return it->second;
  }
  std::uint32_t promise(const DimOptions& o) {
    const auto same = [&](const DimOptions& p) {
      return p.multiple_of == o.multiple_of && p.at_most == o.at_most;
    };
    const auto found = std::find_if(promises.begin(), promises.end(), same);
    const auto id = static_cast<std::uint32_t>(found - promises.begin());
    if (found == promises.end()) promises.push_back(o);
    return id;
  }
  std::uint32_t symbol(std::string_view name) {
    if (auto it = symbol_ids.find(name); it != symbol_ids.end()) return it->second;
    const auto id = static_cast<std::uint32_t>(symbols.size());
    symbols.emplace_back(name);
    symbol_ids.emplace(name, id);
    return id;
  }
};

Table& table() {
  static Table* t = new Table;  // never destroyed: Dims may live in static objects
  return *t;
}

const forking::Registration registration({.before = [] { table().mutex.lock(); },
                                          .in_parent = [] { table().mutex.unlock(); },
                                          .in_child = [] { table().mutex.unlock(); }});

// Canonical symbols occupy the numbers below this; named ones follow.
constexpr std::uint32_t first_named_symbol = 1u << 16;
// Those of the arguments of a call follow.
constexpr std::uint32_t first_argument_symbol = 1u << 30;
constexpr int most_arguments = 1 << 16;

thread_local DimBinding* current_binding = nullptr;

std::int64_t apply_or_refuse(DimOp op, std::int64_t a, std::int64_t b) {
  const Checked result = apply(op, a, b);
  if (!result.fits()) refuse_size(op, a, b);
  return result.value();
}

// Evaluates with `leaf(symbol)` for symbols.
template <class Leaf>
std::int64_t fold(const Dim& d, const Leaf& leaf) {
  if (d.is_static()) return d.value();
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol) return leaf(n.symbol);
  const std::int64_t a = fold(n.a, leaf);
  return apply_or_refuse(n.op, a, fold(n.b, leaf));
}

Dim make_symbol(std::uint32_t number) {
  std::lock_guard lock(table().mutex);
  return Dim::of_expression(table().intern({.op = DimOp::symbol, .symbol = number}));
}

const char* spelling(DimOp op) {
  switch (op) {
  case DimOp::add: return " + ";
  case DimOp::sub: return " - ";
  case DimOp::mul: return " * ";
  case DimOp::div: return " / ";
  case DimOp::mod: return " % ";
  default: return ", ";
  }
}

[[noreturn]] void refuse_unknown(const Dim& d) {
  throw CompileError("dimension '" + to_string(d) +
                     "' is symbolic: its size is not known here; it can be used in array types "
                     "and grids, or be given as an integer");
}

// Replaces the symbols of `d` by what `leaf` gives.
template <class Leaf>
Dim replaced(const Dim& d, const Leaf& leaf) {
  if (d.is_static()) return d;
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol) return leaf(n.symbol);
  const Dim a = replaced(n.a, leaf);
  return detail::dim_binary(n.op, a, replaced(n.b, leaf));
}

bool is_symbol(const Dim& d) { return !d.is_static() && dim_node(d).op == DimOp::symbol; }

bool mentions(const Dim& d, std::uint32_t symbol) {
  std::vector<std::uint32_t> symbols;
  collect_symbols(d, symbols);
  return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
}

}  // namespace

void detail::extent_too_large(std::uint64_t n) {
  throw CompileError("the size " + std::to_string(n) + " is larger than 2^63 - 1");
}

void detail::no_power_of_two(std::int64_t n) {
  throw CompileError("next_power_of_2: expected a number from 0 to 2^62, given " +
                     std::to_string(n));
}
void detail::extent_divided_by_zero() { throw CompileError("a dimension is divided by zero"); }

Checked apply(DimOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
  case DimOp::add: return Checked(a) + b;
  case DimOp::sub: return Checked(a) - b;
  case DimOp::mul: return Checked(a) * b;
  case DimOp::div: return Checked(a) / b;
  case DimOp::mod: return Checked(a) % b;
  case DimOp::cdiv: return Checked(a) / b + int{!(Checked(a) % b).within(0, 0)};
  case DimOp::min: return std::min(a, b);
  case DimOp::max: return std::max(a, b);
  case DimOp::symbol:
  case DimOp::constant: break;
  }
  throw InternalError("dim: not a binary operation");
}

void refuse_size(DimOp op, std::int64_t a, std::int64_t b) {
  const bool divides = op == DimOp::div || op == DimOp::mod || op == DimOp::cdiv;
  if (divides && b == 0) detail::extent_divided_by_zero();
  throw CompileError("the dimension " + std::to_string(a) + spelling(op) + std::to_string(b) +
                     " is not held by 64 bits");
}

Dim Dim::of_expression(std::uint32_t id) {
  Dim d;
  d.expression_ = id;
  return d;
}

std::int64_t Dim::read() const {
  if (!current_binding) refuse_unknown(*this);
  return current_binding->read(*this);
}

Dim Dim::with_promise(std::uint32_t promise) const {
  Dim d = *this;
  d.promise_ = promise;
  return d;
}

Dim dim(const char* name, DimOptions options, Location at) {
  if (!name || !*name) throw CompileError(at, "dim: a symbol needs a name");
  const auto refuse = [&](const char* field, const char* expected, std::int64_t given) {
    throw CompileError(at, std::string("dim '") + name + "': ." + field + " is " + expected +
                               ", given " + std::to_string(given));
  };
  if (options.multiple_of < 1) refuse("multiple_of", "a number from 1", options.multiple_of);
  if (options.at_most < 0) refuse("at_most", "a number from 0", options.at_most);
  std::uint32_t number, promise;
  {
    std::lock_guard lock(table().mutex);
    number = first_named_symbol + table().symbol(name);
    promise = table().promise(options);
  }
  return make_symbol(number).with_promise(promise);
}

Dim argument(int i, Location at) {
  if (i < 0 || i >= most_arguments)
    throw CompileError(at, "argument: a call has no argument " + std::to_string(i));
  return make_symbol(argument_symbol(i));
}

Dim at_most(const Dim& d, const Dim& most) { return detail::dim_binary(DimOp::min, d, most); }

Dim detail::dim_binary(DimOp op, const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return apply_or_refuse(op, a.value(), b.value());
  const auto is = [](const Dim& d, std::int64_t n) { return d.is_static() && d.value() == n; };
  if ((op == DimOp::add || op == DimOp::sub) && is(b, 0)) return a;
  if (op == DimOp::add && is(a, 0)) return b;
  if (op == DimOp::mul && (is(a, 0) || is(b, 0))) return 0;
  if ((op == DimOp::mul || op == DimOp::div || op == DimOp::cdiv) && is(b, 1)) return a;
  if (op == DimOp::mul && is(a, 1)) return b;
  std::lock_guard lock(table().mutex);
  const auto size = [](const Dim& d) {
    return d.is_static() ? 0 : table().nodes[d.expression()].size;
  };
  const std::uint32_t operations = size(a) + size(b) + 1;
  if (operations > max_dim_operations)
    throw CompileError("a dimension is an expression of more than " +
                       std::to_string(max_dim_operations) + " operations");
  return Dim::of_expression(table().intern({.op = op, .a = a, .b = b, .size = operations}));
}

DimNode dim_node(const Dim& d) {
  std::lock_guard lock(table().mutex);
  return table().nodes[d.expression()];
}

Dim dim_symbol(std::uint32_t number) { return make_symbol(number); }

std::uint32_t argument_symbol(int i) {
  return first_argument_symbol + static_cast<std::uint32_t>(i);
}

int argument_of(std::uint32_t symbol) {
  return symbol < first_argument_symbol ? -1 : static_cast<int>(symbol - first_argument_symbol);
}

std::string symbol_name(std::uint32_t symbol) {
  if (symbol < first_named_symbol) return "s" + std::to_string(symbol);
  if (const int i = argument_of(symbol); i >= 0) return "args[" + std::to_string(i) + "]";
  std::lock_guard lock(table().mutex);
  return table().symbols[symbol - first_named_symbol];
}

void collect_symbols(const Dim& d, std::vector<std::uint32_t>& out) {
  if (d.is_static()) return;
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol) {
    if (std::find(out.begin(), out.end(), n.symbol) == out.end()) out.push_back(n.symbol);
    return;
  }
  collect_symbols(n.a, out);
  collect_symbols(n.b, out);
}

Dim substitute(const Dim& d, std::span<const std::uint32_t> from, std::span<const Dim> to) {
  return replaced(d, [&](std::uint32_t s) {
    const auto it = std::find(from.begin(), from.end(), s);
    return it == from.end() ? dim_symbol(s) : to[static_cast<std::size_t>(it - from.begin())];
  });
}

std::int64_t evaluate(const Dim& d, std::span<const std::int64_t> values) {
  return fold(d, [&](std::uint32_t s) {
    if (s >= values.size()) throw InternalError("dim: no value for symbol " + symbol_name(s));
    return values[s];
  });
}

void DimSizes::narrow(const DimSizes& o) {
  const Checked both = multiple == 0 || o.multiple == 0
                           ? Checked(0)
                           : Checked(multiple) / std::gcd(multiple, o.multiple) * o.multiple;
  multiple = both.value_or(multiple);
  least = std::max(least, o.least);
  most = std::min(most, o.most);
}

DimSizes promised(const Dim& d) {
  if (d.promise() == 0) return {};
  std::lock_guard lock(table().mutex);
  const DimOptions& o = table().promises[d.promise()];
  return {.multiple = o.multiple_of, .most = o.at_most};
}

namespace {

struct Range {
  Checked least, most;
};

// All operations but % are monotonic in each operand, between divisors of one sign.
Range range_of(const Dim& d, std::span<const DimSizes> symbols) {
  constexpr Checked unknown = Checked(INT64_MAX) + 1;
  if (d.is_static()) return {d.value(), d.value()};
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol) {
    const DimSizes s = n.symbol < symbols.size() ? symbols[n.symbol] : DimSizes{};
    return {s.least, s.most == INT64_MAX && s.least != s.most ? unknown : Checked(s.most)};
  }
  const Range a = range_of(n.a, symbols), b = range_of(n.b, symbols);
  if (!a.least.fits() || !a.most.fits() || !b.least.fits() || !b.most.fits())
    return {unknown, unknown};
  const bool divides = n.op == DimOp::div || n.op == DimOp::mod || n.op == DimOp::cdiv;
  const bool one = a.least.value() == a.most.value() && b.least.value() == b.most.value();
  if (divides && b.least.value() <= 0 && !one) return {unknown, unknown};
  if (n.op == DimOp::mod && !one) return {Checked(1) - b.most, b.most - 1};
  Range r{unknown, unknown};
  for (const Checked& x : {a.least, a.most})
    for (const Checked& y : {b.least, b.most}) {
      const Checked z = apply(n.op, x.value(), y.value());
      if (!z.fits()) return {unknown, unknown};
      const bool first = !r.most.fits();
      r.least = first ? z : Checked(std::min(r.least.value(), z.value()));
      r.most = first ? z : Checked(std::max(r.most.value(), z.value()));
    }
  return r;
}

}  // namespace

Checked most(const Dim& d, std::span<const DimSizes> symbols) { return range_of(d, symbols).most; }

std::int64_t multiple_of(const Dim& d, const DimFacts& facts) {
  if (d.is_static()) return d.value() == INT64_MIN ? 1 : std::abs(d.value());
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol) return facts.multiple(n.symbol);
  const std::int64_t a = multiple_of(n.a, facts), b = multiple_of(n.b, facts);
  switch (n.op) {
  case DimOp::mul: return (Checked(a) * b).value_or(a);
  case DimOp::div:
  case DimOp::cdiv: return n.b.is_static() && b > 0 && a % b == 0 ? a / b : 1;
  default: return std::gcd(a, b);  // sums, and what is one of the two or a rest
  }
}

std::string to_string(const Dim& d) {
  if (d.is_static()) return std::to_string(d.value());
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol) return symbol_name(n.symbol);
  const std::string name = n.op == DimOp::cdiv  ? "cdiv"
                           : n.op == DimOp::min ? "min"
                           : n.op == DimOp::max ? "max"
                                                : "";
  return name + "(" + to_string(n.a) + spelling(n.op) + to_string(n.b) + ")";
}

DimBinding::DimBinding() : outer_(current_binding) { current_binding = this; }
DimBinding::~DimBinding() { current_binding = outer_; }
DimBinding* DimBinding::current() { return current_binding; }

void DimBinding::bind(std::uint32_t symbol, std::int64_t value) {
  entries_.push_back({symbol, true, value, dim_symbol(symbol)});
}

Dim DimBinding::seen(const std::string& name, const Dim& is) {
  const Dim symbol = dim(name.c_str());
  Entry& e = entries_[number(dim_node(symbol).symbol)];
  e.is = is;
  e.is_seen = true;
  return symbol;
}

bool DimBinding::has_seen(const Dim& d) const {
  std::vector<std::uint32_t> symbols;
  collect_symbols(d, symbols);
  return std::any_of(symbols.begin(), symbols.end(), [&](std::uint32_t s) {
    const Entry* e = find(s);
    return e && e->is_seen;
  });
}

const DimBinding::Entry* DimBinding::find(std::uint32_t symbol) const {
  for (const Entry& e : entries_)
    if (e.symbol == symbol) return &e;
  return nullptr;
}

std::size_t DimBinding::number(std::uint32_t symbol) {
  if (const Entry* e = find(symbol)) return static_cast<std::size_t>(e - entries_.data());
  entries_.push_back({symbol, false, 0, dim_symbol(symbol)});
  return entries_.size() - 1;
}

Dim DimBinding::resolve(const Dim& d) const {
  return replaced(d, [&](std::uint32_t s) {
    const Dim symbol = dim_symbol(s);
    const Entry* e = find(s);
    return e && !e->is.same(symbol) ? resolve(e->is) : symbol;
  });
}

std::int64_t DimBinding::peek(const Dim& d) const {
  return fold(resolve(d), [&](std::uint32_t s) {
    const Entry* e = find(s);
    if (!e || !e->has_value) refuse_unknown(dim_symbol(s));
    return e->value;
  });
}

bool DimBinding::can_peek(const Dim& d) const {
  std::vector<std::uint32_t> symbols;
  collect_symbols(resolve(d), symbols);
  return std::all_of(symbols.begin(), symbols.end(), [&](std::uint32_t s) {
    const Entry* e = find(s);
    return e && e->has_value;
  });
}

std::int64_t DimBinding::read(const Dim& d) {
  const std::int64_t value = peek(d);
  std::vector<std::uint32_t> symbols;
  collect_symbols(resolve(d), symbols);
  for (const std::uint32_t s : symbols) {
    Entry& e = entries_[number(s)];
    e.is = e.value;
  }
  return value;
}

bool DimBinding::equal(const Dim& a, const Dim& b) {
  if (resolve(a).same(resolve(b))) return true;
  if (peek(a) == peek(b) && replace_symbol(a, b)) return true;
  return read(a) == read(b);
}

bool DimBinding::unify(const Dim& a, const Dim& b) {
  if (can_peek(a) && can_peek(b)) return equal(a, b);
  return resolve(a).same(resolve(b)) || replace_symbol(a, b);
}

bool DimBinding::require_multiple(const Dim& d, std::int64_t n) {
  requirements_.push_back({d, {.multiple = n, .least = INT64_MIN}});
  return !can_peek(d) || peek(d) % n == 0;
}

void DimBinding::require_range(const Dim& d, std::int64_t least, std::int64_t most) {
  requirements_.push_back({d, {.least = least, .most = most}});
}

DimSizes DimBinding::required(std::uint32_t symbol) const {
  DimSizes sizes;
  for (const Requirement& r : requirements_) {
    const Dim d = resolve(r.dim);
    if (is_symbol(d) && dim_node(d).symbol == symbol) sizes.narrow(r.sizes);
  }
  return sizes;
}

bool DimBinding::replace_by(const Dim& symbol, const Dim& d) {
  if (!is_symbol(symbol)) return false;
  const std::uint32_t s = dim_node(symbol).symbol;
  if (mentions(d, s) || (can_peek(symbol) && !can_peek(d))) return false;
  entries_[number(s)].is = d;
  return true;
}

bool DimBinding::replace_symbol(const Dim& a, const Dim& b) {
  const Dim x = resolve(a), y = resolve(b);
  const bool y_is_older =
      is_symbol(x) && is_symbol(y) && number(dim_node(y).symbol) < number(dim_node(x).symbol);
  return y_is_older ? replace_by(x, y) || replace_by(y, x) : replace_by(y, x) || replace_by(x, y);
}

bool detail::dim_equal(const Dim& a, const Dim& b) {
  if (a.same(b)) return true;
  if (current_binding) return current_binding->equal(a, b);
  return a.value() == b.value();
}

}  // namespace palladium
