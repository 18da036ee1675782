// Blocks that are wholly inside of their arrays, as most are, take a way without tests: one branch,
// the same for all threads of a program.
#include <algorithm>

#include "codegen/base/overloaded.hpp"
#include "codegen/expand/nest.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::expand {

using graph::MemoryView;
using lowered::Residency;
using lowered::Window;

namespace {

// What a nest may hold that is written twice: elements of a thread, reads of memory, conditions.
constexpr std::int64_t most_elements = 64;
constexpr std::size_t most_windows = 5, most_conditions = 4;

}  // namespace

const passes::BlockNames& Nest::block(WindowId window) {
  const passes::BlockNames& names = x_.windows_[window];
  if (!whole_) return names;
  const auto [it, is_new] = whole_blocks_.try_emplace(window, names);
  if (is_new) {
    std::ranges::fill(it->second.size, no_expr);
    std::ranges::fill(it->second.from, no_expr);
  }
  return it->second;
}

// The windows that the nest accesses; none of a nest that is part of a product or of a fold.
std::vector<WindowId> Nest::windows_of_pass() const {
  std::vector<WindowId> windows;
  const auto accessed = [&](ValueId access) {
    windows.push_back(l_.window_of[g_.root(g_[access].args[0])]);
  };
  const bool wanted = std::visit(
      Overloaded{
          [&](const lowered::Assign&) { return true; },
          [&](const lowered::Store& s) { return accessed(s.inst), true; },
          [&](const lowered::Update& s) { return accessed(s.inst), true; },
          [&](const lowered::Fill& s) { return windows.push_back(s.window), !s.by.asynchronous; },
          [&](const lowered::Flush& s) { return windows.push_back(s.window), true; },
          [](const auto&) { return false; }},
      nest_->sink);
  if (!wanted) return {};
  for (const lowered::Effect& e : lowered::element_reads(l_, *nest_)) {
    const bool load = g_[e.leaf].op == graph::Op::Load || g_[e.leaf].op == graph::Op::Swap;
    if (load && (e.window || l_.storage_of[e.leaf] != e.own_storage())) accessed(e.leaf);
  }
  std::ranges::sort(windows);
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  return windows;
}

// What the text has for a thread: loops that stay loops counted once.
std::int64_t Nest::elements_in_text() const {
  std::int64_t elements = std::int64_t{1} << nest_->layout.reg.size();
  for (int d = 0; d < nest_->layout.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (at >= nest_->rolled.size() || !nest_->rolled[at]) elements *= nest_->layout.repetitions(d);
  }
  return elements;
}

// Whether accesses of a block that may not be whole ask where it ends: copies of blocks do not.
bool Nest::tests_blocks() const {
  return std::ranges::any_of(windows_of_pass(), [&](WindowId w) {
    const std::vector<ExprId>& size = x_.windows_[w].size;
    return !l_.windows[w].is_staged() &&
           std::ranges::any_of(size, [](ExprId s) { return s != no_expr; });
  });
}

// What holds where all blocks of the nest are whole; no_expr where none can be, where they always
// are, or where to ask does not pay.
ExprId Nest::wholeness() {
  const std::vector<WindowId> windows = windows_of_pass();
  if (windows.size() > most_windows || elements_in_text() > most_elements) return no_expr;
  std::vector<ExprId> conditions;
  const auto require = [&](ExprId x, std::int64_t n) {
    const thread::Facts known = e_.facts(x);
    if (known.low == n && known.high == n) return;
    const ExprId holds = e_.plain(Operator::equal, x, e_.number(n), bool_);
    if (std::ranges::find(conditions, holds) == conditions.end()) conditions.push_back(holds);
  };
  for (const WindowId w : windows) {
    if (l_.windows[w].mapping < 0) continue;
    const BlockMapping& m = g_.mapping.block_mappings[l_.windows[w].mapping];
    const passes::BlockNames& names = x_.windows_[w];
    for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
      if (names.size[d] == no_expr) continue;
      const std::int64_t size = passes::loaded(l_, l_.windows[w], static_cast<int>(d)).size;
      if (e_.facts(names.size[d]).high < size) return no_expr;
      require(names.size[d], size);
      if (names.from[d] != no_expr) require(names.from[d], 0);
    }
  }
  return conditions.size() <= most_conditions ? e_.all(conditions) : no_expr;
}

// Whether the nest moves elements from memory to memory: any thread may take any of them.
bool Nest::streams() const {
  const auto* store = std::get_if<lowered::Store>(&nest_->sink);
  if (store == nullptr || !redirects_.empty()) return false;
  const auto is_direct = [&](ValueId access) {
    const Window& w = l_.windows[l_.window_of[g_.root(g_[access].args[0])]];
    return w.is_direct();
  };
  bool all = is_direct(store->inst);
  for (const lowered::Effect& e : lowered::element_reads(l_, *nest_))
    all &= e.window || l_.storages[e.storage].place() == lowered::Place::scalar ||
           lowered::reads_staged(l_, e.leaf);
  return all;
}

// The nest in little text: element by element, neighbours in a warp being neighbours in memory.
lowered::LoopNest Nest::by_elements() const {
  lowered::LoopNest p = *nest_;
  const int warps = p.layout.warps();
  p.layout = layout::strided(p.domain, 1, p.layout.threads(), warps);
  p.rolled.assign(p.domain.size(), true);
  p.divided.clear();  // no rows in a thread
  return p;
}

// A nest expanded, and what was found on the way.
struct Nest::Variant {
  thread::Statements statements = {};
  bool has_parts = false, has_conditions = false, stores_vectors = false;
};

Nest::Variant Nest::variant(const lowered::LoopNest& loops, bool whole, ExprId fork) {
  b_.open(thread::Block{});
  Nest nest(x_, loops);
  nest.whole_ = whole;
  nest.fork_ = fork;
  nest.expand_nest();
  return {b_.take(), nest.has_parts_, nest.has_conditions_, nest.stores_vectors_};
}

void Nest::expand() {
  declare_sink();
  const ExprId whole = wholeness();
  if (whole == no_expr) return expand_nest();
  const bool only_moves = streams();
  Variant ragged = variant(*nest_, false);
  // The tests of whole vectors are few, but where nothing else is done for several of them.
  const bool tests_much = only_moves && tests_blocks() &&
                          elements_in_text() > 1 << passes::vector_bits(l_, *nest_, nest_->layout);
  const bool in_parts = ragged.has_parts || ragged.has_conditions;
  if (!in_parts && !tests_much) return b_.add_all(std::move(ragged.statements));
  const bool stores = std::holds_alternative<lowered::Store>(nest_->sink);
  if (stores && !ragged.has_parts && ragged.stores_vectors && !tests_blocks())
    return b_.add_all(variant(*nest_, false, whole).statements);
  Variant inside = variant(*nest_, true);
  if (inside.has_parts) return b_.add_all(std::move(ragged.statements));
  if (only_moves && in_parts) ragged = variant(by_elements(), false);
  b_.open(thread::If{whole, {}});
  b_.add_all(std::move(inside.statements));
  b_.close();
  b_.open(thread::Else{});
  b_.add_all(std::move(ragged.statements));
  b_.close();
}

// The elements of a vector, computed in two ways: where conditions hold that do in whole blocks
// they are not asked for. What is read for them, and stored, is the same.
void Nest::store_two_ways(const lowered::Store& s) {
  const DimMap all = lowered::identity_map(layout_.rank());
  check_indices(s.inst, coordinates_, all, no_expr);
  storing_ = true;
  const Address a = address(MemoryView::of(g_[s.inst]).ref, coordinates_, all);
  storing_ = false;
  const VariableId o = unfilled("o", a.dtype, vector_);
  b_.add(thread::Declare{.variable = o});
  const auto way = [&](auto branch, bool holds) {
    conditions_hold_ = holds;
    const auto memo = memo_;
    const auto names = hoisted_;
    const std::size_t depth = b_.depth();
    holds ? b_.open(std::move(branch)) : b_.open_apart(std::move(branch));
    open_elements();
    const ExprId value = evaluate(nest_->value, coordinates_, all, false);
    b_.add(thread::Assign{e_.element(o, element_), value});
    b_.close_down_to(depth);
    memo_ = memo;
    hoisted_ = names;
  };
  way(thread::If{fork_, {}}, true);
  way(thread::Else{}, false);
  Bounds bounds = a.bounds;
  add_padding(e_, bounds, padding(all));
  store_vector(a, o, no_expr, std::move(bounds));
  b_.close_nest_loops();
}

}  // namespace palladium::expand
