// Appends statements to a program, and finds for each value the outermost place where it is known.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/thread/program.hpp"

namespace palladium::thread {

class Builder {
 public:
  explicit Builder(Program& p) : p_(p), open_(1) {}

  Exprs& exprs() { return p_.exprs; }
  /// Statements from here on come from there; returns what it was.
  Location at(Location at) { return std::exchange(static_cast<Location&>(at_), at); }
  int statement(int number) { return std::exchange(at_.statement, number); }
  Origin at() const { return at_; }

  /// Adds to the innermost open block.
  template <class What>
  void add(What what) {
    note(what, open_.size() - 1);
    open_.back().body.push_back({std::move(what), at_});
  }
  void add_statement(Statement s) { open_.back().body.push_back(std::move(s)); }

  // To the outermost open block of the nest in which all that `depends` names is known. Loads, and
  // what addresses are made of, stand before the values of their block: a thread waits once.

  /// A value's name.
  ExprId let(Variable v, ExprId value);
  /// The name of a part of addresses.
  ExprId let_coordinate(Variable v, ExprId value);
  /// A load, or a check of what is loaded.
  template <class What>
  std::uint32_t place(Depends depends, What what) {
    const std::size_t level = level_of(depends);
    note(what, level);
    return put(open_[level], {std::move(what), at_});
  }
  /// A load with the declaration of what it fills.
  void place(Depends depends, VariableId filled, Statement s);
  bool is_outside(Depends depends, Depends of) const { return level_of(depends) < level_of(of); }

  // To the outermost open block, of nest or program, in which all that an expression names is
  // known: what does not change in a loop stands before it.

  /// The name of a value, one for all who ask where it can be seen: `name` and a number, or `name`
  /// alone, with letters behind it if another value has it. Nothing that is assigned to may be in
  /// the value. `known`: also what the expression does not tell.
  ExprId let_once(const std::string& name, bool numbered, ExprId value, const Facts& known);
  ExprId let_once(const std::string& name, bool numbered, ExprId value) {
    return let_once(name, numbered, value, exprs().facts(value));
  }
  template <class What>
  void add_where_known(ExprId of, What what) {
    put(open_[level_where_known(of)], {std::move(what), at_});
  }

  /// Declares the variable in the block around the innermost one.
  void declare_around(VariableId v) {
    declare_at(open_.size() - 2, v);
    open_[open_.size() - 2].body.push_back({Declare{.variable = v}, at_});
  }
  /// A name in the innermost open block.
  ExprId let_here(const std::string& name, ExprId value);
  ExprId let_here(const std::string& name, DType type, ExprId value);
  /// The same of a value about which more is known.
  ExprId let_here(const std::string& name, ExprId value, const Facts& known);

  /// The body of `what` (a Block, an If or a For) until close(). `introduces`: what is known inside
  /// alone.
  template <class What>
  void open(What what, Depends introduces = 0) {
    note(what, open_.size());
    open_.push_back({.what = {std::move(what), at_},
                     .serial = in_nest_ ? ++serials_ : 0,
                     .introduces = introduces});
  }
  /// The innermost open block, a loop, ends unless the condition holds: in front of all that is
  /// placed or added there.
  void break_unless(BreakUnless condition) {
    open_.back().loads.push_back({std::move(condition), at_});
  }
  /// The same as open(), and nothing that is added inside is placed outside.
  template <class What>
  void open_apart(What what) {
    open(std::move(what));
    open_.back().apart = true;
  }
  void open_nest();
  /// A block without braces: what is placed around it stands before all that is added to it.
  void open_splice(Depends introduces);
  void close();
  /// Closes the innermost block and gives what is in it, which stands nowhere then.
  Statements take();
  void add_all(Statements list) {
    for (Statement& s : list) add_statement(std::move(s));
  }
  /// All blocks inside of the innermost nest.
  void close_nest_loops() {
    while (!open_.back().nest) close();
  }
  void close_down_to(std::size_t depth) {
    while (open_.size() > depth) close();
  }
  std::size_t depth() const { return open_.size(); }
  int loops() const { return loops_around_; }
  /// The program's body, when all is closed.
  Statements finish() { return std::move(open_[0].body); }

  template <class What>
  void open_loop(What what, Depends introduces = 0) {
    ++loops_around_;
    open(std::move(what), introduces);
    open_.back().is_loop = true;
  }

 private:
  struct Open {
    Statement what = {};
    Statements loads = {}, body = {};
    std::uint32_t serial = 0;  // 0: outside of nests, where statements keep their order
    Depends introduces = 0;
    bool splice = false;
    bool nest = false;
    bool apart = false;
    bool is_loop = false;
    std::map<ExprId, ExprId> names = {};  // what let_once named here
  };
  static void stand_before_ways(Statements& around);
  std::size_t level_of(Depends depends) const;
  bool waits(const Statement& s, const Open& block);
  std::uint32_t put(Open& block, Statement s);
  Facts facts_at(std::size_t level, Facts known) const;
  std::string unique_name(const std::string& name, bool numbered);
  std::size_t level_where_known(ExprId value) const;
  void declare_at(std::size_t level, VariableId v);
  template <class What>
  void note(const What& what, std::size_t level) {
    if constexpr (requires { what.counter; }) declare_at(level, what.counter);
    if constexpr (requires { what.variable; }) declare_at(level, what.variable);
  }

  Program& p_;
  std::vector<Open> open_;
  std::vector<std::uint32_t> levels_;  // of variables: the open block that declares them
  std::map<std::string, int> taken_;   // names of let_once: how often
  Origin at_;
  int loops_around_ = 0;
  bool in_nest_ = false;
  std::uint32_t serials_ = 0;
};

}  // namespace palladium::thread
