#include "codegen/cuda/printer.hpp"

#include "codegen/base/format.hpp"
#include "codegen/cuda/expressions.hpp"

namespace palladium::cuda {
namespace {

using thread::ExprId;
using thread::no_expr;

class Printer {
 public:
  explicit Printer(const thread::Program& p) : p_(p), e_(p.exprs), expressions_(p) {}

  Printed print() {
    for (const thread::Function& f : p_.functions) function(f);
    line(signature() + " {", {p_.at});
    ++depth_;
    list(p_.body);
    --depth_;
    line("}", {p_.at});
    line(fmt::format("PL_EXPORT({})", p_.entry), {p_.at});
    return std::move(out_);
  }

 private:
  std::string text(ExprId id) const { return expressions_.text(id); }
  std::string joined(const std::vector<ExprId>& args) const { return expressions_.joined(args); }
  const std::string& name(thread::VariableId v) const { return e_[v].name; }
  std::string type(thread::VariableId v, bool constant) const;

  // ---- statements
  std::string signature() const;
  void function(const thread::Function& f);
  void list(const thread::Statements& statements);
  void line(const std::string& text, thread::Origin at);
  void body(const std::string& head, const thread::Statements& statements, thread::Origin at,
            const std::string& end = "}");
  void one(const thread::Block& b, thread::Origin at);
  void one(const thread::If& i, thread::Origin at);
  void one(const thread::For& f, thread::Origin at);
  void one(const thread::While& w, thread::Origin at);
  template <class S>
  void one(const S& s, thread::Origin at) {
    line(text_of(s), at);
  }
  void one(const thread::Check& c, thread::Origin at);
  std::string text_of(const thread::Let& s) const;
  std::string text_of(const thread::Declare& s) const;
  std::string text_of(const thread::Assign& s) const;
  std::string text_of(const thread::Load& s) const;
  std::string text_of(const thread::Store& s) const;
  std::string text_of(const thread::Flush& s) const;
  std::string text_of(const thread::Update& s) const;
  std::string text_of(const thread::Copy& s) const;
  std::string text_of(const thread::Call& s) const;
  std::string text_of(const thread::Wgmma& s) const;
  std::string text_of(const thread::Inline& s) const;
  std::string text_of(const thread::Check& s) const;
  std::string text_of(const thread::CheckRange& s) const;
  std::string only_if(ExprId test) const;
  std::string text_of(const thread::Sync& s) const;
  std::string text_of(const thread::Comment& s) const { return "// " + s.text; }
  std::string text_of(const thread::Block& s) const;
  std::string text_of(const thread::If& s) const;
  std::string text_of(const thread::Else&) const { return "else {}"; }  // with its If
  std::string text_of(const thread::For& s) const;
  std::string text_of(const thread::While&) const { return "while (true) {}"; }  // in lines
  std::string text_of(const thread::BreakUnless& s) const;
  std::string head(const thread::For& s) const;
  std::string short_body(const thread::Statements& statements) const;
  std::string place(const thread::Place& p) const;
  std::string access(const thread::Access& a, const std::string& first,
                     const std::string& second) const;

  const thread::Program& p_;
  const thread::Exprs& e_;
  const Expressions expressions_;
  Printed out_;
  int depth_ = 0, lines_ = 0;
};

// ---- statements

std::string Printer::type(thread::VariableId id, bool constant) const {
  const thread::Variable& v = e_[id];
  if (v.form == thread::Form::pointer)
    return fmt::format("{}{}*", v.writable ? "" : "const ", type_name(v.type));
  return (constant ? "const " : "") + type_name(v.type);
}

std::string Printer::signature() const {
  const std::string blocks = p_.min_blocks > 1 ? fmt::format(", {}", p_.min_blocks) : "";
  std::string out = fmt::format("PL_KERNEL({}{}) {}(", p_.threads, blocks, p_.entry);
  for (const thread::VariableId v : p_.names) {
    const bool map = e_[v].form == thread::Form::tensor_map;
    out += v == p_.names[0] ? "" : ", ";
    out += map ? fmt::format("PL_TENSOR_MAP({})", name(v)) : type(v, false) + " " + name(v);
  }
  return out + ")";
}

void Printer::function(const thread::Function& f) {
  line(fmt::format("PL_FN void {}({}) {{", f.name, f.parameters), f.at);
  ++depth_;
  for (const std::string& text : f.text) line(text, f.at);
  --depth_;
  line("}", f.at);
}

void Printer::line(const std::string& text, thread::Origin at) {
  out_.text += std::string(static_cast<std::size_t>(2 * depth_), ' ') + text + "\n";
  ++lines_;
  out_.statements.push_back(at.statement);
  if (at.line != 0) out_.lines.push_back({lines_, at});
}

void Printer::body(const std::string& head, const thread::Statements& statements, thread::Origin at,
                   const std::string& end) {
  line(head + "{", at);
  ++depth_;
  list(statements);
  --depth_;
  line(end, at);
}

void Printer::list(const thread::Statements& statements) {
  const auto is_else = [&](std::size_t i) {
    return i < statements.size() && std::holds_alternative<thread::Else>(statements[i].what);
  };
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const thread::Statement& s = statements[i];
    if (!is_else(i + 1)) {
      std::visit([&](const auto& what) { one(what, s.at); }, s.what);
      continue;
    }
    line("if (" + text(std::get<thread::If>(s.what).condition) + ") {", s.at);
    for (;; ++i) {
      ++depth_;
      list(*thread::body_of(statements[i]));
      --depth_;
      if (!is_else(i + 1)) break;
      const ExprId condition = std::get<thread::Else>(statements[i + 1].what).condition;
      line(condition == no_expr ? "} else {" : "} else if (" + text(condition) + ") {",
           statements[i + 1].at);
    }
    line("}", statements[i].at);
  }
}

void Printer::one(const thread::Block& b, thread::Origin at) {
  if (b.short_form) return line(text_of(b), at);
  body("", b.body, at);
}

void Printer::one(const thread::Check& c, thread::Origin at) {
  line(text_of(c), at);
  if (c.of_placement) out_.placements.push_back(lines_);
}

void Printer::one(const thread::If& i, thread::Origin at) {
  if (i.short_form) return line(text_of(i), at);
  body("if (" + text(i.condition) + ") ", i.body, at);
}

void Printer::one(const thread::For& f, thread::Origin at) {
  if (f.short_form) return line(text_of(f), at);
  body(head(f), f.body, at);
}

void Printer::one(const thread::While& w, thread::Origin at) {
  body("PL_NOUNROLL while (true) ", w.body, at);
}

std::string Printer::text_of(const thread::BreakUnless& s) const {
  return "if (!" + expressions_.text(s.condition, Binding::unary) + ") break;";
}

std::string Printer::text_of(const thread::Let& s) const {
  return fmt::format("{} {} = {};", type(s.variable, true), name(s.variable), text(s.value));
}

std::string Printer::text_of(const thread::Declare& s) const {
  using Start = thread::Declare::Start;
  const thread::Variable& v = e_[s.variable];
  const bool array = v.form == thread::Form::array;
  std::string out = type_name(v.type) + " " + v.name;
  if (array) out += fmt::format("[{}]", v.count);
  if (s.start == Start::zeros) out += " = {}";
  if (s.start == Start::values)
    out += array ? " = {" + joined(s.values) + "}" : " = " + text(s.values[0]);
  return out + ";";
}

std::string Printer::text_of(const thread::Assign& s) const {
  return text(s.to) + " = " + text(s.value) + ";";
}

std::string Printer::place(const thread::Place& p) const {
  if (p.iteration != no_expr) {
    thread::Place first = p;
    first.iteration = no_expr;
    return fmt::format("reinterpret_cast<const {}*>(u64({}) + u64({}) * {})", type_name(p.type),
                       place(first), text(p.iteration), p.type.bytes());
  }
  if (p.offset == no_expr) return text(p.base);
  if (p.shared) return fmt::format("{} + ({}) * {}", text(p.base), text(p.offset), p.type.bytes());
  return text(p.base) + " + " + expressions_.text_behind_pointer(p.offset);
}

std::string Printer::access(const thread::Access& a, const std::string& first,
                            const std::string& second) const {
  std::string out =
      fmt::format("pl::{}<{}>({}, {}", device::info(a.function).name, a.width, first, second);
  if (a.skew != no_expr) out += ", " + text(a.skew);
  if (a.valid != no_expr) out += ", " + text(a.valid);
  if (a.test != no_expr) out += ", " + text(a.test);
  if (a.outside != no_expr) out += ", " + text(a.outside);
  return out + ");";
}

std::string Printer::text_of(const thread::Load& s) const {
  return access(s.access, text(s.access.registers), place(s.access.place));
}

std::string Printer::text_of(const thread::Store& s) const {
  return access(s.access, place(s.access.place), text(s.access.registers));
}

std::string Printer::text_of(const thread::Flush& s) const {
  return access(s.access, place(s.access.place), place(s.from));
}

std::string Printer::text_of(const thread::Update& s) const {
  const std::string to = s.to == no_expr ? "" : text(s.to) + " = ";
  return fmt::format("{}{}pl::{}({}, {});", only_if(s.access.test), to,
                     device::info(s.access.function).name, place(s.access.place), joined(s.args));
}

std::string Printer::text_of(const thread::Copy& s) const {
  std::string out = access(s.access, place(s.access.place), place(s.from));
  const ExprId last = s.begin == no_expr ? s.exists : s.begin;
  if (last == no_expr) return out;
  out.resize(out.size() - 2);
  return fmt::format("{}{}, {});", out, s.access.test == no_expr ? ", true" : "", text(last));
}

std::string Printer::text_of(const thread::Call& s) const {
  std::string of;
  const auto add = [&](const std::string& t) { of += (of.empty() ? "" : ", ") + t; };
  for (const auto& t : s.templates) {
    if (const auto* n = std::get_if<std::int64_t>(&t)) add(std::to_string(*n));
    if (const auto* b = std::get_if<bool>(&t)) add(*b ? "true" : "false");
    if (const auto* d = std::get_if<DType>(&t)) add(type_name(*d));
    if (const auto* n = std::get_if<thread::Named>(&t)) add(std::string("pl::") + n->name);
  }
  if (!of.empty()) of = "<" + of + ">";
  const std::string to = s.to == no_expr ? "" : text(s.to) + " = ";
  const std::string at = s.at.empty() ? "" : ", {" + joined(s.at) + "}";
  return fmt::format("{}pl::{}{}({}{});", to, device::info(s.function).name, of, joined(s.args),
                     at);
}

std::string Printer::text_of(const thread::Wgmma& s) const {
  std::string of;
  const auto add = [&](const std::string& t) { of += (of.empty() ? "<" : ", ") + t; };
  const bool starts = s.first > 0 || s.first_a > 0;
  if (s.op.has_transposes()) {
    if (!s.op.rs && (s.transpose_a || s.transpose_b || starts))
      add(s.transpose_a ? "true" : "false");
    if (s.transpose_b || starts) add(s.transpose_b ? "true" : "false");
  }
  if (starts) add(std::to_string(s.first));
  if (s.first_a > 0) add(std::to_string(s.first_a));
  if (!of.empty()) of += ">";
  std::string operands = s.op.rs ? text(s.a[0]) + ", " : "";
  for (std::size_t step = 0; step < s.b.size(); ++step)
    operands += (s.op.rs ? "" : text(s.a[step]) + ", ") + text(s.b[step]) + ", ";
  return fmt::format("pl::{}{}({}, {}{});", s.op.name(), of, text(s.registers), operands,
                     text(s.accumulate));
}

std::string Printer::text_of(const thread::Inline& s) const {
  std::string operands;
  for (const thread::Inline::Operand& o : s.operands) {
    std::string one = text(o.value);
    if (!o.strides.empty())
      one = fmt::format("{{{}, {{{}}}, {{{}}}{}}}", one, joined(o.strides), joined(o.extents),
                        o.panel == no_expr ? "" : ", " + text(o.panel) + ", " + text(o.column));
    operands += (operands.empty() ? "" : ", ") + one;
  }
  return fmt::format("{}({});", p_.functions[s.function].name, operands);
}

std::string Printer::text_of(const thread::Check& s) const {
  if (s.value == no_expr)
    return fmt::format("{}pl::check({}, \"{}\");", only_if(s.test), text(s.condition), s.message);
  return fmt::format("{}pl::check_value({}, {}, \"{}\");", only_if(s.test), text(s.condition),
                     text(s.value), s.message);
}

std::string Printer::text_of(const thread::CheckRange& s) const {
  const std::string extent = s.of_call == no_expr ? std::to_string(s.extent) : text(s.of_call);
  return fmt::format("{}pl::check_range({}, {}, {}, \"{}\");", only_if(s.test), text(s.low),
                     text(s.high), extent, s.message);
}

std::string Printer::only_if(ExprId test) const {
  return test == no_expr ? "" : "if (" + text(test) + ") ";
}

std::string Printer::text_of(const thread::Sync& s) const {
  if (s.whole_warps) return "pl::warp_sync();";
  if (s.warps != 4) return fmt::format("pl::program_sync<{}>();", s.warps);
  return s.warpgroups == 1 ? "pl::warpgroup_sync();"
                           : fmt::format("pl::warpgroup_sync<{}>();", s.warpgroups);
}

// ---- on one line

std::string Printer::short_body(const thread::Statements& statements) const {
  std::string out;
  for (const thread::Statement& s : statements)
    out += (out.empty() ? "" : " ") +
           std::visit([this](const auto& what) { return text_of(what); }, s.what);
  return statements.size() == 1 ? out : "{ " + out + " }";
}

std::string Printer::text_of(const thread::Block& s) const {
  return s.body.size() == 1 ? "{ " + short_body(s.body) + " }" : short_body(s.body);
}

std::string Printer::text_of(const thread::If& s) const {
  return "if (" + text(s.condition) + ") " + short_body(s.body);
}

std::string Printer::text_of(const thread::For& s) const { return head(s) + short_body(s.body); }

std::string Printer::head(const thread::For& s) const {
  const std::string unroll = s.unroll == 0   ? "PL_UNROLL"
                             : s.unroll == 1 ? "PL_NOUNROLL"
                                             : fmt::format("_Pragma(\"unroll {}\")", s.unroll);
  const std::string counter = name(s.counter);
  const std::string step = s.next != no_expr ? fmt::format("{} = {}", counter, text(s.next))
                           : s.step == 1     ? "++" + counter
                                             : fmt::format("{} += {}", counter, s.step);
  return fmt::format("{} for (i32 {} = {}; {} < {}; {}) ", unroll, counter, text(s.low), counter,
                     text(s.high), step);
}

}  // namespace

Printed print(const thread::Program& program) { return Printer(program).print(); }

}  // namespace palladium::cuda
