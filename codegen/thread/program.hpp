// The program of one CUDA thread: what codegen/expand makes of a lowered graph, and codegen/cuda
// spells. Every decision is in it: names, widths, tests, what is computed once, barriers.
//
// A variable is used in the body in which it is declared, and in those inside, behind its
// declaration. Statements know the user's line that they came from.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/device/wgmma.hpp"
#include "codegen/thread/expr.hpp"
#include "codegen/thread/parameter.hpp"

namespace palladium::thread {

struct Statement;
using Statements = std::vector<Statement>;

/// const T variable = value.
struct Let {
  VariableId variable = no_variable;
  ExprId value = no_expr;
};

/// A variable that is assigned later: T variable, with a value or one per element, or zeros.
struct Declare {
  enum class Start : std::uint8_t { nothing, zeros, values } start = Start::nothing;
  VariableId variable = no_variable;
  std::vector<ExprId> values = {};
};

struct Assign {
  ExprId to = no_expr;  // a variable or an element
  ExprId value = no_expr;
};

/// A scope. `nest`: numbers of temporaries begin anew.
struct Block {
  Statements body;
  bool nest = false;
  bool short_form = false;  // on one line
};

struct If {
  ExprId condition = no_expr;
  Statements body;
  bool short_form = false;
  bool uniform = false;  // all threads of the Pallas thread go one way
  bool both = false;     // uniform: some warps always go this way, the others that of the Else
  bool longest = false;  // uniform: the Else does the same of fewer elements
  double share = 1;      // of the times that it is reached, how often it holds, as far as is known
};

/// What happens where the condition of the If before it, and of each Else between them, does not
/// hold, and its own does. Nobody waits for other threads in it, nor in that If, unless that is
/// uniform.
struct Else {
  ExprId condition = no_expr;  // no_expr: it holds
  Statements body;
};

/// for (i32 counter = low; counter < high; counter = next).
struct For {
  VariableId counter = no_variable;
  ExprId low = no_expr, high = no_expr;
  std::int64_t step = 1;
  ExprId next = no_expr;    // no_expr: counter + step
  std::int64_t unroll = 0;  // 0: wholly, 1: not, n: by n
  std::int64_t trips = -1;  // that are counted where the bounds do not say; -1: one
  Statements body;
  bool short_form = false;
  bool nest = false;  // numbers of temporaries begin anew
};

/// while (true), until a BreakUnless among the statements of its body ends it.
struct While {
  Statements body;
};

/// Where the condition does not hold, the For or While around it ends.
struct BreakUnless {
  ExprId condition = no_expr;
  double share = 1;        // as in If
  std::int64_t asked = 0;  // the last iterations, so many, in which it may not hold; 0: any
};

/// Where one element, or the first of several, stands: base + offset in elements.
struct Place {
  ExprId base = no_expr;    // a pointer; in shared memory a u32 address
  ExprId offset = no_expr;  // in elements
  DType type = {};
  bool shared = false;
  bool unwritten = false;  // by whatever the loops around the access do
  /// Where what is in front of it is the same in all iterations of a loop: i32 elements more, which
  /// are not. Added as bytes to a number, so that NVRTC keeps the two apart.
  ExprId iteration = no_expr;
};

/// A vector access: `width` elements, or the first `valid` of them, where `test` holds.
struct Access {
  device::Row function{};
  int width = 1;
  ExprId registers = no_expr;  // their address
  Place place = {};
  ExprId skew = no_expr;  // bytes behind the place
  ExprId valid = no_expr;
  ExprId test = no_expr;
  ExprId outside = no_expr;  // what is loaded instead of the other elements; no_expr: undefined
};
/// registers = place.
struct Load {
  Access access;
};
/// place = registers.
struct Store {
  Access access;
};
/// place (of an array) = from (in shared memory).
struct Flush {
  Access access;
  Place from;
};

/// to = function(place, args), atomically, where `test` holds; args are variables, one of them `to`
/// or none.
struct Update {
  Access access;
  std::vector<ExprId> args = {};
  ExprId to = no_expr;
};

/// place (in shared memory) = from (of an array), asynchronously; `exists`: else zeros. With
/// `begin`, a pointer to the array's first element: the 16 bytes around there, `valid` elements of
/// them from there on.
struct Copy {
  Access access;
  Place from;
  ExprId exists = no_expr;
  ExprId begin = no_expr;
};

/// A template argument that the device library has a name for.
struct Named {
  const char* name = "";
};
/// to = function<templates>(args, {at}), for functions that act.
struct Call {
  device::Row function{};
  std::vector<std::variant<std::int64_t, bool, DType, Named>> templates = {};
  std::vector<ExprId> args = {};
  ExprId to = no_expr;
  std::vector<ExprId> at = {};  // coordinates of a box; none: there are no braces
};

/// Products of wgmma, `op.steps` of them: `op.registers()` registers from `first` on = a * b, the
/// first added to what they hold where `accumulate`, the others in any case. a and b are matrix
/// descriptors of each step; of `op.rs` a is the address of registers, one, of which each step takes
/// the next four, from `first_a` on.
struct Wgmma {
  device::Wgmma op = {};
  bool transpose_a = false, transpose_b = false;
  ExprId registers = no_expr;  // the address of their array
  std::int64_t first = 0, first_a = 0;
  std::vector<ExprId> a = {}, b = {};
  ExprId accumulate = no_expr;
};

/// A call of Program::functions[function], the user's text.
struct Inline {
  /// Registers, a number, or of a Ref what a View holds: where its first element is, and along each
  /// dimension how far apart elements are and how many there are.
  struct Operand {
    ExprId value = no_expr;
    std::vector<ExprId> strides = {}, extents = {};
    ExprId panel = no_expr, column = no_expr;  // of memory in panels
  };
  std::size_t function = 0;
  std::vector<Operand> operands = {};
};

/// The emulator reports `message` where the condition does not hold; nothing in a cubin.
struct Check {
  ExprId condition = no_expr;
  std::string message = {};
  ExprId value = no_expr;     // an i64, for which the message says "{}"
  ExprId test = no_expr;      // only if it holds
  bool of_placement = false;  // of where an index map has placed a block
};
/// The same where low < 0 or high >= extent, if `test` holds.
struct CheckRange {
  ExprId low = no_expr, high = no_expr;
  std::int64_t extent = 0;
  std::string message = {};
  ExprId test = no_expr;
  ExprId of_call = no_expr;  // the extent, where only a call knows it
};

/// A barrier of the Pallas thread.
struct Sync {
  bool whole_warps = false;  // of each warp alone
  int warps = 4;             // of the Pallas thread
  int warpgroups = 1;        // Pallas threads of the block
};

struct Comment {
  std::string text;
};

/// Where a statement comes from: the user's line, and the statement of the lowered program, by
/// number; -1: the frame around these.
struct Origin : Location {
  int statement = -1;
};

struct Statement {
  std::variant<Let, Declare, Assign, Block, If, Else, For, While, BreakUnless, Load, Store, Flush,
               Update, Copy, Call, Wgmma, Inline, Check, CheckRange, Sync, Comment>
      what = Sync{};
  Origin at = {};
};

/// The statements inside; nullptr for most kinds.
inline Statements* body_of(Statement& s) {
  if (Block* b = std::get_if<Block>(&s.what)) return &b->body;
  if (If* i = std::get_if<If>(&s.what)) return &i->body;
  if (Else* e = std::get_if<Else>(&s.what)) return &e->body;
  if (For* f = std::get_if<For>(&s.what)) return &f->body;
  if (While* w = std::get_if<While>(&s.what)) return &w->body;
  return nullptr;
}

inline const Statements* body_of(const Statement& s) { return body_of(const_cast<Statement&>(s)); }

/// A function of the user's, in front of the kernel.
struct Function {
  std::string name, parameters;
  std::vector<std::string> text;  // lines of its body
  Origin at = {};
};

struct Program {
  std::string entry;  // name of the extern "C" __global__ function
  std::vector<KernelParameter> parameters;
  std::vector<VariableId> names;  // of the parameters
  int threads = 128;              // per block
  Dim blocks = 1;  // gridDim.x: programs on the parallel axes times the cluster's blocks ...
  bool persistent = false;  // ... or fewer
  int cluster_blocks = 1;
  std::int64_t shared_bytes = 0;  // dynamic shared memory
  int min_blocks = 1;             // of a multiprocessor, that registers leave room for
  bool approx_math = false;
  Location at;
  Exprs exprs;
  std::vector<Function> functions = {};
  Statements body;
};

/// Calls f(expression), an ExprId&, for every expression that the statement itself holds, not those
/// inside of it.
template <class F>
void change_exprs(Statement& s, F&& f);
/// The same for who changes none: f(ExprId).
template <class F>
void for_each_expr(const Statement& s, F&& f) {
  change_exprs(const_cast<Statement&>(s), [&](ExprId& e) { f(ExprId{e}); });
}

// ---- the passes, in the order in which codegen/cuda/lower.cpp runs them

/// Leaves out names that nobody uses.
void drop_unused(Program& p);
/// One loop where two that are unrolled count the elements of arrays together; values of one use
/// stand where they are used.
void join_loops(Program& p);
/// Folds over unrolled loops begin with their first element.
void begin_folds(Program& p);
/// What an unrolled loop that stores loads of memory that it does not write, it loads before it
/// stores for the first time.
void load_first(Program& p);
/// Where few iterations of an unrolled loop may be too many, these ask each for itself: predicates,
/// where leaving the loop takes branches.
void guard_last(Program& p);
/// wgmma_apart stands where threads have looked at registers into which another product goes.
void part_products(Program& p);
/// Numbers the temporaries, by where they stand.
void number_temporaries(Program& p);
/// InternalError where a variable is used out of its scope or where another of its name hides it, is
/// declared twice or beside another of its name, or written as a constant, where types of
/// assignments differ, and where a function that acts stands in an expression.
void verify(const Program& p);

// ---- implementation

namespace detail {

template <class F>
struct ExprVisit {
  F& f;
  template <class... E>
  void each(E&... e) const {
    ((e != no_expr ? f(e) : void()), ...);
  }
  void all(std::vector<ExprId>& list) const {
    for (ExprId& e : list) f(e);
  }
  void access(Access& a) const {
    each(a.registers, a.place.base, a.place.offset, a.skew, a.valid, a.test, a.outside);
  }
  void operator()(Let& x) const { each(x.value); }
  void operator()(Declare& x) const { all(x.values); }
  void operator()(Assign& x) const { each(x.to, x.value); }
  void operator()(Block&) const {}
  void operator()(If& x) const { each(x.condition); }
  void operator()(Else& x) const { each(x.condition); }
  void operator()(For& x) const { each(x.low, x.high, x.next); }
  void operator()(While&) const {}
  void operator()(BreakUnless& x) const { each(x.condition); }
  void operator()(Load& x) const { access(x.access); }
  void operator()(Store& x) const { access(x.access); }
  void operator()(Flush& x) const { access(x.access), each(x.from.base, x.from.offset); }
  void operator()(Update& x) const { access(x.access), all(x.args), each(x.to); }
  void operator()(Copy& x) const {
    access(x.access), each(x.from.base, x.from.offset, x.from.iteration, x.exists, x.begin);
  }
  void operator()(Call& x) const { all(x.args), each(x.to), all(x.at); }
  void operator()(Wgmma& x) const { each(x.registers, x.accumulate), all(x.a), all(x.b); }
  void operator()(Inline& x) const {
    for (Inline::Operand& o : x.operands)
      each(o.value, o.panel, o.column), all(o.strides), all(o.extents);
  }
  void operator()(Check& x) const { each(x.condition, x.value, x.test); }
  void operator()(CheckRange& x) const { each(x.low, x.high, x.test, x.of_call); }
  void operator()(Sync&) const {}
  void operator()(Comment&) const {}
};
}  // namespace detail

template <class F>
void change_exprs(Statement& s, F&& f) {
  std::visit(detail::ExprVisit<F>{f}, s.what);
}

}  // namespace palladium::thread
