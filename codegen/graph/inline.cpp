#include "codegen/graph/inline.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>

#include "codegen/graph/type_rule.hpp"

namespace palladium::graph {
namespace {

// The first line of the text: what it is called, its operands, and its results with their dtypes:
// "scale x a -> y:f32". The numbers: the language; of each operand its role and, with their count
// in front, the numbers of its layout; then of each result its extents and its layout, likewise.
class Reader {
 public:
  explicit Reader(const Attr& attr) : attr_(attr) {}

  bool read(InlineView& view, std::size_t num_operands) {
    const std::size_t end = attr_.text.find('\n');
    if (end == std::string::npos || !words(attr_.text.substr(0, end), view)) return false;
    view.text = attr_.text.substr(end + 1);
    std::int64_t language = 0;
    if (view.operands.size() != num_operands || !number(language, 1)) return false;
    view.language = static_cast<InlineView::Language>(language);
    for (InlineView::Operand& o : view.operands) {
      std::int64_t role = 0;
      if (!number(role, 3) || !layout(o.layout)) return false;
      o.role = static_cast<InlineView::Role>(role);
    }
    for (InlineView::Result& r : view.results)
      if (!list(r.type.shape) || !layout(r.layout)) return false;
    return at_ == attr_.ints.size();
  }

 private:
  static bool words(const std::string& line, InlineView& view) {
    bool results = false;
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      const std::string word = line.substr(at, end - at);
      at = end + 1;
      if (view.name.empty()) {
        view.name = word;
      } else if (word == "->") {
        results = true;
      } else if (!results) {
        view.operands.push_back({.name = word});
      } else {
        const std::size_t colon = word.find(':');
        if (colon == std::string::npos) return false;
        const DType dtype = dtype_named(word.substr(colon + 1).c_str());
        if (dtype == DType()) return false;
        view.results.push_back({.name = word.substr(0, colon), .type = Type::value(dtype)});
      }
    }
    return !view.name.empty();
  }

  bool number(std::int64_t& n, std::int64_t most) {
    if (at_ >= attr_.ints.size()) return false;
    n = attr_.ints[at_++];
    return n >= 0 && n <= most;
  }
  bool list(std::vector<std::int64_t>& numbers) {
    std::int64_t count = 0;
    if (!number(count, static_cast<std::int64_t>(attr_.ints.size() - at_))) return false;
    const auto first = attr_.ints.begin() + static_cast<std::ptrdiff_t>(at_);
    if (count > attr_.ints.end() - first) return false;
    numbers.assign(first, first + count);
    at_ += static_cast<std::size_t>(count);
    return true;
  }
  bool layout(std::optional<RegisterLayout>& layout) {
    Inst cast;
    if (!list(cast.attr.ints)) return false;
    if (cast.attr.ints.empty()) return true;
    if (!RegisterLayout::is_well_formed(cast.attr.ints)) return false;
    layout = RegisterLayout::of(cast);
    return true;
  }

  const Attr& attr_;
  std::size_t at_ = 0;
};

void append(std::vector<std::int64_t>& ints, const std::vector<std::int64_t>& list) {
  ints.push_back(std::ssize(list));
  ints.insert(ints.end(), list.begin(), list.end());
}

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_identifier(const std::string& name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, is_part_of_name);
}

/// The text without comments and literals, which may hold anything.
std::string bare(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = text.find("*/", i + 2);
      i = end == text.npos ? text.size() : end + 2;
      out += ' ';
    } else if (text[i] == '"' || text[i] == '\'') {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] != text[i]) end += text[end] == '\\' ? 2 : 1;
      out += "\"\"";
      i = std::min(end + 1, text.size());
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Of PTX: what follows a $ is the name of an operand or a result.
std::string unbound(const InlineView& view) {
  for (std::size_t at = view.text.find('$'); at != std::string::npos;
       at = view.text.find('$', at + 1)) {
    std::size_t end = at + 1;
    while (end < view.text.size() && is_part_of_name(view.text[end])) ++end;
    const std::string name = view.text.substr(at + 1, end - at - 1);
    const auto is_it = [&](const auto& o) { return o.name == name; };
    if (std::ranges::none_of(view.operands, is_it) && std::ranges::none_of(view.results, is_it))
      return "'$" + name + "' is the name of no operand and of no result";
  }
  return "";
}

// A text that closes what it has not opened would end the function in which it stands.
std::string unbalanced(std::string_view text) {
  std::string open;
  for (const char c : bare(text)) {
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c != ')' && c != ']' && c != '}') continue;
    const char expected = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open.empty() || open.back() != expected)
      return std::string("there is a ") + c + " that closes nothing";
    open.pop_back();
  }
  return open.empty() ? "" : std::string("a ") + open.back() + " is not closed";
}

}  // namespace

InlineView InlineView::of(const Inst& inst) {
  InlineView view;
  Reader(inst.attr).read(view, inst.args.size());
  return view;
}

std::vector<std::string> InlineView::lines() const {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const auto is_blank = [](const std::string& line) {
    return line.find_first_not_of(" \t\r") == std::string::npos;
  };
  while (!all.empty() && is_blank(all.back())) all.pop_back();
  while (!all.empty() && is_blank(all.front())) all.erase(all.begin());
  std::size_t indent = std::string::npos;
  for (const std::string& line : all)
    if (!is_blank(line)) indent = std::min(indent, line.find_first_not_of(' '));
  for (std::string& line : all) line.erase(0, std::min(indent, line.size()));
  return all;
}

namespace {

// Results are numbered first.
std::string number_of(const std::string& name, const std::vector<InlineView::Bound>& bound) {
  int number = 0;
  for (const bool results : {true, false})
    for (const InlineView::Bound& b : bound) {
      if (b.is_result != results) continue;
      if (b.name == name) return "%" + std::to_string(number);
      ++number;
    }
  throw InternalError("inline_cuda: no operand of PTX is called " + name);
}

// As a literal of C++, in which asm finds what is bound.
std::string quoted_for_asm(const std::string& line, const std::vector<InlineView::Bound>& bound) {
  std::string out = "\"";
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '$') {
      std::size_t end = i + 1;
      while (end < line.size() && is_part_of_name(line[end])) ++end;
      out += number_of(line.substr(i + 1, end - i - 1), bound);
      i = end;
      continue;
    }
    if (line[i] == '%') out += '%';
    if (line[i] == '"' || line[i] == '\\') out += '\\';
    out += line[i++];
  }
  return out + "\\n\"";
}

}  // namespace

std::string InlineView::assembly(const std::vector<Bound>& bound) const {
  std::string ptx, outputs, inputs;
  for (const std::string& line : lines())
    ptx += (ptx.empty() ? "" : " ") + quoted_for_asm(line, bound);
  for (const Bound& b : bound) {
    std::string& to = b.is_result ? outputs : inputs;
    to += std::string(to.empty() ? "" : ", ") + "\"" + (b.is_result ? "=" : "") + b.constraint +
          "\"(" + b.expression + ")";
  }
  return "asm volatile(" + (ptx.empty() ? "\"\"" : ptx) + " : " + outputs + " : " + inputs +
         " : \"memory\");";
}

Attr InlineView::encode() const {
  Attr attr;
  attr.text = name;
  attr.ints = {static_cast<std::int64_t>(language)};
  const auto layout_of = [](const std::optional<RegisterLayout>& l) {
    return l ? l->encode() : std::vector<std::int64_t>();
  };
  for (const Operand& o : operands) {
    attr.text += " " + o.name;
    attr.ints.push_back(static_cast<std::int64_t>(o.role));
    append(attr.ints, layout_of(o.layout));
  }
  if (!results.empty()) attr.text += " ->";
  for (const Result& r : results) {
    attr.text += " " + r.name + ":" + r.type.dtype.name();
    append(attr.ints, r.type.shape);
    append(attr.ints, layout_of(r.layout));
  }
  attr.text += "\n" + text;
  return attr;
}

std::string inline_problem(const Attr& attr, std::size_t num_operands) {
  InlineView view;
  if (!Reader(attr).read(view, num_operands)) return "it is malformed";
  if (!is_identifier(view.name)) return "'" + view.name + "' is no name of a function";
  std::set<std::string> names;
  const auto check = [&](const std::string& name) -> std::string {
    if (!is_identifier(name)) return "'" + name + "' is no name of a variable";
    return names.insert(name).second ? "" : "two operands or results are called '" + name + "'";
  };
  std::size_t refs = 0;
  for (const InlineView::Operand& o : view.operands) {
    if (std::string problem = check(o.name); !problem.empty()) return problem;
    refs += o.role != InlineView::Role::value;
  }
  for (const InlineView::Result& r : view.results)
    if (std::string problem = check(r.name); !problem.empty()) return problem;
  if (refs > Effects::most)
    return "expected at most " + std::to_string(Effects::most) + " Refs, given " +
           std::to_string(refs);
  return view.is_ptx() ? unbound(view) : unbalanced(view.text);
}

Effects effects(const Inst& inst) {
  Effects all = effects(inst.op);
  if (!all.as_said) return all;
  const InlineView view = InlineView::of(inst);
  for (std::size_t i = 0; i < view.operands.size() && all.count < Effects::most; ++i) {
    using Role = InlineView::Role;
    const Role role = view.operands[i].role;
    if (role == Role::value) continue;
    all.list[all.count++] = {i, role == Role::read    ? Effect::Access::read
                                : role == Role::write ? Effect::Access::write
                                                      : Effect::Access::update};
  }
  return all;
}

std::vector<Type> result_types(const Inst& inline_cuda) {
  std::vector<Type> types;
  for (const InlineView::Result& r : InlineView::of(inline_cuda).results) types.push_back(r.type);
  return types;
}

bool mentions(std::string_view text, std::string_view identifier) {
  const std::string code = bare(text);
  for (std::size_t at = code.find(identifier); at != code.npos;
       at = code.find(identifier, at + 1)) {
    const std::size_t end = at + identifier.size();
    if ((at == 0 || !is_part_of_name(code[at - 1])) &&
        (end == code.size() || !is_part_of_name(code[end])))
      return true;
  }
  return false;
}

ValueId bare_ptx(const Graph& g) {
  for (std::uint32_t v = 0; v < g.insts.size(); ++v) {
    if (g.insts[v].op != Op::InlineCuda) continue;
    const InlineView view = InlineView::of(g.insts[v]);
    if (view.is_ptx() || mentions(view.text, "asm")) return ValueId{v};
  }
  return no_value;
}

bool forget_meanings(Graph& g) {
  bool any = false;
  for (Inst& in : g.insts) {
    if (in.op != Op::InlineCuda || in.regions.empty()) continue;
    in.regions.clear();
    any = true;
  }
  return any;
}

namespace typing {

namespace {

// It runs once for each register: all that has several has as many, and one holds one element.
void expect_for_ptx(const Context& c, const InlineView& view) {
  const Extents* shape = nullptr;
  const auto check = [&](const std::string& name, const Type& t) {
    if (t.dtype.bytes() == 1)
      c.fail("expected elements of 2, 4 or 8 bytes as '" + name + "', for PTX, given " + text(t));
    if (element_count(t.shape) == 1) return;
    if (shape != nullptr && *shape != t.shape)
      c.fail("expected '" + name + "' of " + text(*shape) + ", as what else PTX is given, given " +
             text(t));
    shape = &t.shape;
  };
  for (std::size_t i = 0; i < view.operands.size(); ++i)
    if (view.operands[i].role == InlineView::Role::value) check(view.operands[i].name, c.type(i));
  for (const InlineView::Result& r : view.results) check(r.name, r.type);
}

}  // namespace

Type rule_inline_cuda(const Context& c) {
  if (const std::string problem = inline_problem(c.attr, c.args.size()); !problem.empty())
    c.fail(problem);
  const Inst inst{c.op, {}, c.attr, {c.args.begin(), c.args.end()}, {}};
  const InlineView view = InlineView::of(inst);
  for (std::size_t i = 0; i < view.operands.size(); ++i) {
    const Type& type = c.type(i);
    const bool is_ref = view.operands[i].role != InlineView::Role::value;
    if (is_ref ? !type.is_ref() : !type.is_value())
      c.fail("expected " + std::string(is_ref ? "a Ref" : "a value") + " as '" +
             view.operands[i].name + "', given " + text(type));
    if (type.dtype.bits() < 8)
      c.fail("expected elements of whole bytes as '" + view.operands[i].name + "', given " +
             text(type));
    if (view.operands[i].layout && element_count(type.shape) == 1)
      c.fail("expected an array with a layout as '" + view.operands[i].name + "', given " +
             text(type));
    if (is_ref && (is_own(type.space) || type.space == Space::barrier))
      c.fail("expected a Ref of global or shared memory as '" + view.operands[i].name +
             "', given " + text(type));
  }
  if (view.is_ptx()) expect_for_ptx(c, view);
  return Type::none();
}

Type result_of_text(const Context& c) {
  const std::vector<Type> types = result_types(c.graph[c.args[0]]);
  const auto count = static_cast<std::int64_t>(types.size());
  if (c.ints()[0] < 0 || c.ints()[0] >= count)
    c.fail("expected a result below " + std::to_string(count) + ", given " +
           std::to_string(c.ints()[0]));
  return types[static_cast<std::size_t>(c.ints()[0])];
}

}  // namespace typing
}  // namespace palladium::graph
