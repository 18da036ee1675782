#include "codegen/thread/builder.hpp"

#include <algorithm>

namespace palladium::thread {

// Outside of nests statements stand where they are asked for.
std::size_t Builder::level_of(Depends depends) const {
  for (std::size_t i = open_.size() - 1;; --i) {
    const Open& block = open_[i];
    if (block.nest || block.apart || (block.introduces & depends) != 0) return i;
    if (i == 0) return open_.size() - 1;
  }
}

// What stands inside of the loop over elements may differ from element to element.
Facts Builder::facts_at(std::size_t level, Facts known) const {
  if ((open_[level].introduces & on_element) != 0) known.depends |= in_element;
  return known;
}

ExprId Builder::let(Variable v, ExprId value) {
  const std::size_t level = level_of(exprs().depends(value));
  v.facts = facts_at(level, exprs().facts(value));
  v.behind_loads_of = open_[level].serial;
  const VariableId id = exprs().declare(std::move(v));
  declare_at(level, id);
  open_[level].body.push_back({Let{id, value}, at_});
  return exprs().variable(id);
}

ExprId Builder::let_coordinate(Variable v, ExprId value) {
  const Depends depends = exprs().depends(value);
  v.facts = facts_at(level_of(depends), exprs().facts(value));
  const VariableId id = exprs().declare(std::move(v));
  exprs()[id].behind_loads_of = place(depends, Let{id, value});
  return exprs().variable(id);
}

// Whether the statement, or what stands in it, names a value of the block.
bool Builder::waits(const Statement& s, const Open& block) {
  bool found = false;
  for_each_expr(s, [&](ExprId e) {
    for_each_variable(exprs(), e, [&](VariableId v) {
      found |= block.serial != 0 && exprs()[v].behind_loads_of == block.serial;
    });
  });
  if (const For* loop = std::get_if<For>(&s.what))
    for (const Statement& inner : loop->body) found |= waits(inner, block);
  return found;
}

// Gives the block in which the statement stands behind the loads, 0 if it is among them.
std::uint32_t Builder::put(Open& block, Statement s) {
  const std::uint32_t behind = waits(s, block) ? block.serial : 0;
  (behind != 0 || block.serial == 0 ? block.body : block.loads).push_back(std::move(s));
  return behind;
}

void Builder::place(Depends depends, VariableId filled, Statement s) {
  const std::size_t level = level_of(depends);
  Open& block = open_[level];
  exprs()[filled].facts = facts_at(level, {.depends = depends});
  const bool behind = block.serial == 0 || waits(s, block);
  if (behind) exprs()[filled].behind_loads_of = block.serial;
  declare_at(level, filled);
  Statements& list = behind ? block.body : block.loads;
  list.push_back({Declare{.variable = filled}, at_});
  list.push_back(std::move(s));
}

ExprId Builder::let_here(const std::string& name, DType type, ExprId value) {
  const Facts known = exprs().facts(value);
  const VariableId id = exprs().declare({.name = name, .type = type, .facts = known});
  add(Let{id, value});
  return exprs().variable(id);
}

ExprId Builder::let_here(const std::string& name, ExprId value) {
  return let_here(name, exprs()[value].type, value);
}

ExprId Builder::let_here(const std::string& name, ExprId value, const Facts& known) {
  const VariableId id =
      exprs().declare({.name = name, .type = exprs()[value].type, .facts = known});
  add(Let{id, value});
  return exprs().variable(id);
}

// ---- where all is known

void Builder::declare_at(std::size_t level, VariableId v) {
  if (levels_.size() <= index(v)) levels_.resize(index(v) + 1, 0);
  levels_[index(v)] = static_cast<std::uint32_t>(level);
}

// Parameters are declared nowhere: outside of all.
std::size_t Builder::level_where_known(ExprId value) const {
  std::size_t level = 0;
  for_each_variable(p_.exprs, value, [&](VariableId v) {
    if (index(v) < levels_.size()) level = std::max<std::size_t>(level, levels_[index(v)]);
  });
  return level;
}

// Names of values end in numbers: those of letters are apart from them.
std::string Builder::unique_name(const std::string& name, bool numbered) {
  int others = taken_[name]++;
  if (numbered) return name + std::to_string(others);
  std::string letters;
  for (; others > 0; others /= 26) letters += static_cast<char>('a' + others % 26);
  return letters.empty() ? name : name + "_" + letters;
}

ExprId Builder::let_once(const std::string& name, bool numbered, ExprId value, const Facts& known) {
  if (exprs()[value].node == Node::variable || exprs()[value].node == Node::number) return value;
  Open& block = open_[level_where_known(value)];
  const auto found = block.names.find(value);
  if (found != block.names.end()) return found->second;
  const VariableId id = exprs().declare(
      {.name = unique_name(name, numbered), .type = exprs()[value].type, .facts = known});
  declare_at(static_cast<std::size_t>(&block - open_.data()), id);
  exprs()[id].behind_loads_of = put(block, {Let{id, value}, at_});
  return block.names[value] = exprs().variable(id);
}

// ---- blocks

void Builder::open_nest() {
  in_nest_ = true;
  open(Block{.body = {}, .nest = true});
  open_.back().nest = true;
}

void Builder::open_splice(Depends introduces) {
  open(Block{}, introduces);
  open_.back().splice = true;
}

Statements Builder::take() {
  Open& closed = open_.back();
  if (closed.is_loop) --loops_around_;
  if (closed.nest) in_nest_ = false;
  for (Statement& s : closed.body) closed.loads.push_back(std::move(s));
  Statements taken = std::move(closed.loads);
  open_.pop_back();
  return taken;
}

void Builder::close() {
  Open closed = std::move(open_.back());
  open_.back() = {.what = {},
                  .loads = std::move(closed.loads),
                  .body = std::move(closed.body),
                  .nest = closed.nest,
                  .apart = closed.apart,
                  .is_loop = closed.is_loop};
  closed.body = take();
  if (closed.is_loop && closed.body.empty()) return;
  Statements& around = open_.back().body;
  // A nest that has no names of its own needs no braces.
  const bool plain = std::ranges::none_of(closed.body, [](const Statement& s) {
    return std::holds_alternative<Let>(s.what) || std::holds_alternative<Declare>(s.what);
  });
  if (closed.splice || (closed.nest && plain)) {
    for (Statement& s : closed.body) {
      if (For* loop = std::get_if<For>(&s.what); closed.nest && loop) loop->nest = true;
      around.push_back(std::move(s));
    }
    return;
  }
  *body_of(closed.what) = std::move(closed.body);
  if (std::holds_alternative<Else>(closed.what.what)) stand_before_ways(around);
  around.push_back(std::move(closed.what));
}

// Names that one way asked for, and that stand around all of them, are made in front of the first.
void Builder::stand_before_ways(Statements& around) {
  const auto is_way = [](const Statement& s) {
    return std::holds_alternative<If>(s.what) || std::holds_alternative<Else>(s.what);
  };
  auto end = around.end();
  while (end != around.begin() && !is_way(*(end - 1))) --end;
  auto first = end;
  while (first != around.begin() && std::holds_alternative<Else>((first - 1)->what)) --first;
  if (first != around.begin()) --first;
  std::rotate(first, end, around.end());
}

}  // namespace palladium::thread
