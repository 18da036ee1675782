// Expressions of the program of one CUDA thread: made once each, typed, and knowing what can be
// known of their values when they are made.
//
// Whatever is decided about a program asks these nodes. Text is made last, and nobody reads it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/device/waist.hpp"
#include "codegen/graph/graph.hpp"
#include "palladium/types.hpp"

namespace palladium::thread {

enum class ExprId : std::uint32_t {};
inline constexpr ExprId no_expr{~0u};
constexpr std::uint32_t index(ExprId e) { return static_cast<std::uint32_t>(e); }

enum class VariableId : std::uint32_t {};
inline constexpr VariableId no_variable{~0u};
constexpr std::uint32_t index(VariableId v) { return static_cast<std::uint32_t>(v); }

/// What a value changes with, a set of bits: the thread, and the loops of the nest in which it
/// stands. What lacks a loop's bit is the same in all of its iterations.
using Depends = std::uint32_t;
inline constexpr Depends on_thread = 1u << 0;
inline constexpr Depends on_element = 1u << 1;   // the loop over the elements of a vector
inline constexpr Depends in_element = 1u << 2;   // named inside of that loop
inline constexpr Depends on_group = 1u << 3;     // the loop over the vectors of a tile
inline constexpr Depends on_register = 1u << 4;  // a loop over registers
/// The loop over the repetitions of dimension d; high dimensions share a bit.
constexpr Depends on_repetition(int d) { return 1u << (5 + (d < 26 ? d : 26)); }

/// What holds for every value of an expression. Of integers alone is more known than `depends`.
struct Facts {
  std::int64_t multiple = 1;  // divides every value; 0: every value is 0
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  Depends depends = 0;
};

/// Of the counter of a loop from `low` in steps of `step` to below `high`.
Facts facts_of_counter(const Facts& low, const Facts& high, std::int64_t step);

enum class Form : std::uint8_t { value, array, pointer, tensor_map };

/// A name of the program: a constant, a counter, registers, a parameter.
struct Variable {
  std::string name;        // of a temporary: what stands before its number
  bool temporary = false;  // numbered when the program is complete
  Form form = Form::value;
  DType type = {};
  std::int64_t count = 0;  // elements of an array
  bool writable = true;    // a pointer: what it points to
  Facts facts = {};
  std::uint32_t behind_loads_of = 0;  // the block in which it stands behind the loads
};

enum class Node : std::uint8_t {
  literal,  // constant of the kernel graph: `number` holds the bits of a `type`
  number,   // constant of index arithmetic
  variable,
  sum,          // number + coefficients[i] * args[i] + ...
  bits,         // (args[0] & number) >> shift
  plain,        // args[0] `by` args[1] on integers, without overflow
  op,           // elementwise operation of the kernel graph
  element,      // variable[args[0]]
  address,      // variable + args[0], of an array; &variable, of a value
  cast,         // args[0] as a `type`
  reinterpret,  // the pointer args[0] as one to `type`
  bitcast,      // the bits of args[0] as a `type`
  fold,         // how to fold, for functions that take that: `how`
  call,         // pure function of the device library, of args
  choose,       // args[0] ? args[1] : args[2]
  all,          // whether each of args holds
};

enum class Fold : std::uint8_t { sum, product, max, min };

enum class Operator : std::uint8_t {
  mul,
  div,
  rem,
  sub,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  less,
  at_least,
  greater,
  equal,
  differs,
};

struct Expr {
  Node node = Node::number;
  DType type = {};
  std::int64_t number = 0;
  int shift = 0;
  VariableId variable = no_variable;
  graph::Op op{};
  Operator by{};
  Fold how{};
  device::Row function{};
  bool templated = false;  // call: `type` is its template argument
  std::vector<ExprId> args = {};
  std::vector<std::int64_t> coefficients = {};
  bool operator==(const Expr&) const = default;
};

/// constant + sum of coefficient * term, in the order in which the terms came.
class Affine {
 public:
  struct Term {
    ExprId of = no_expr;
    std::int64_t coefficient = 1;
    bool operator==(const Term&) const = default;
  };

  Affine() = default;
  Affine(std::int64_t constant) : constant_(constant) {}
  static Affine term(ExprId of, std::int64_t coefficient = 1);

  Affine operator+(const Affine& o) const;
  Affine operator*(std::int64_t factor) const;
  Affine without(ExprId term) const;
  bool operator==(const Affine&) const = default;

  std::int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  bool is_zero() const { return terms_.empty() && constant_ == 0; }
  std::int64_t coefficient(ExprId term) const;
  bool divides(std::int64_t n) const;  // by looking at the coefficients
  Affine quotient(std::int64_t n) const;

 private:
  friend class Exprs;
  std::vector<Term> terms_;
  std::int64_t constant_ = 0;
};

/// Calls f(variable) for every variable of an expression.
template <class F>
void for_each_variable(const class Exprs& exprs, ExprId root, F&& f);

/// The expressions and variables of one program. Equal expressions have one id.
class Exprs {
 public:
  VariableId declare(Variable v);
  const Variable& operator[](VariableId v) const { return variables_[thread::index(v)]; }
  Variable& operator[](VariableId v) { return variables_[thread::index(v)]; }
  const Expr& operator[](ExprId e) const { return exprs_[thread::index(e)]; }
  const Facts& facts(ExprId e) const { return facts_[thread::index(e)]; }
  /// Operations that its text holds, those of names counted once; 2^20 stands for more.
  int size(ExprId e) const { return sizes_[thread::index(e)]; }
  std::size_t num_variables() const { return variables_.size(); }

  ExprId literal(DType t, std::uint64_t bits);
  ExprId number(std::int64_t n, DType t = i32);
  ExprId variable(VariableId v);
  /// A sum of `type`, i32 or i64; what has another type is cast.
  ExprId sum(const Affine& a, DType type = i32);
  ExprId bits(ExprId of, std::int64_t mask, int shift);
  ExprId plain(Operator by, ExprId a, ExprId b, DType type = i32);
  ExprId op(graph::Op op, DType type, std::vector<ExprId> args);
  /// x, of which it is known.
  ExprId multiple_of(ExprId x, std::int64_t n);
  ExprId element(VariableId array, ExprId at);
  ExprId address(VariableId of, ExprId at = no_expr);
  ExprId cast(DType t, ExprId e);
  /// The same, without a cast where it has that type.
  ExprId as(DType t, ExprId e) { return (*this)[e].type == t ? e : cast(t, e); }
  ExprId reinterpret(DType t, ExprId pointer);
  ExprId bitcast(DType t, ExprId e);
  ExprId fold(Fold how);
  /// Of a pure function; `known`: what is known of its values.
  ExprId call(device::Row function, DType type, std::vector<ExprId> args, bool templated = false,
              Facts known = {});
  ExprId choose(ExprId condition, ExprId a, ExprId b);
  /// no_expr without conditions: what holds always.
  ExprId all(std::vector<ExprId> conditions);

  /// The expression as a sum, if it is one, else as a term.
  Affine affine(ExprId e) const;
  Facts facts(const Affine& a) const;
  std::int64_t multiple(const Affine& a) const { return facts(a).multiple; }
  Depends depends(const Affine& a) const { return facts(a).depends; }
  Depends depends(ExprId e) const { return e == no_expr ? 0 : facts(e).depends; }

 private:
  struct Hash {
    std::size_t operator()(const Expr& e) const;
  };
  ExprId make(Expr e, Facts facts);
  Facts facts_of_plain(Operator by, const Facts& a, const Facts& b) const;
  Facts facts_of_op(graph::Op op, DType type, const std::vector<ExprId>& args) const;
  Depends depends_of(const std::vector<ExprId>& args) const;

  std::vector<Variable> variables_;
  std::vector<Expr> exprs_;
  std::vector<Facts> facts_;
  std::vector<int> sizes_;
  std::unordered_map<Expr, ExprId, Hash> ids_;
};

template <class F>
void for_each_variable(const Exprs& exprs, ExprId root, F&& f) {
  std::vector<ExprId> stack{root};
  while (!stack.empty()) {
    const Expr& e = exprs[stack.back()];
    stack.pop_back();
    if (e.variable != no_variable) f(e.variable);
    stack.insert(stack.end(), e.args.begin(), e.args.end());
  }
}

}  // namespace palladium::thread
