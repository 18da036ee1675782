// Expressions of the program of a thread as CUDA C++. Internal to codegen/cuda.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/spelling.hpp"
#include "codegen/thread/program.hpp"

namespace palladium::cuda {

/// How tightly C++ binds what stands outermost in an expression.
enum class Binding {
  conditional,
  conjunction,
  bitwise_or,
  bitwise_xor,
  equality,
  relation,
  shifts,
  additive,
  multiplicative,
  unary,
  primary
};

class Expressions {
 public:
  explicit Expressions(const thread::Program& p) : p_(p), e_(p.exprs) {}

  std::string text(thread::ExprId id) const;
  /// In parentheses where it binds less tightly than what stands around it.
  std::string text(thread::ExprId id, Binding within) const;
  /// What is added to a pointer: term by term, and last what changes from element to element of a
  /// thread. Compilers keep the rest in one register then, and that in the instructions.
  std::string text_behind_pointer(thread::ExprId offset) const;
  /// Arguments of a function, whose overloads look at their types.
  std::string joined(const std::vector<thread::ExprId>& args) const;

 private:
  Binding binding(thread::ExprId id) const;
  std::string sum(const thread::Expr& e) const;
  std::string call(const thread::Expr& e) const;
  std::string operation(const thread::Expr& e) const;
  OpForm form(const thread::Expr& e) const;
  std::string address(const thread::Expr& e) const;
  bool is_writable(thread::ExprId pointer) const;
  const std::string& name(thread::VariableId v) const { return e_[v].name; }

  const thread::Program& p_;
  const thread::Exprs& e_;
};

}  // namespace palladium::cuda
