#include "codegen/graph/debug.hpp"

#include <algorithm>
#include <cmath>

#include "codegen/graph/transform.hpp"

namespace palladium::graph {
namespace {

/// A format, taken apart: `text` before the first value, between them, and behind the last.
struct Format {
  std::vector<std::string> text = {""};
  std::string problem;

  explicit Format(std::string_view format) {
    for (std::size_t i = 0; i < format.size() && problem.empty(); ++i) {
      const char c = format[i];
      const bool twice = i + 1 < format.size() && format[i + 1] == c;
      if ((c == '{' || c == '}') && twice) {
        text.back() += c;
        ++i;
      } else if (c == '{') {
        i = field(format, i);
      } else if (c == '}') {
        problem = "there is a } without a { before it; a brace is written }}";
      } else {
        text.back() += c;
      }
    }
  }

 private:
  // What begins at `open`; where it ends.
  std::size_t field(std::string_view format, std::size_t open) {
    const std::size_t close = format.find('}', open);
    if (close == format.npos) {
      problem = "there is a { without a } behind it; a brace is written {{";
      return open;
    }
    const std::string_view inside = format.substr(open + 1, close - open - 1);
    if (inside.find_first_of(":!") != inside.npos)
      problem = "the format string should not contain any format specs or conversions";
    else if (!inside.empty())
      problem = "the format string should not reference arguments by position or name";
    if (!problem.empty()) problem += ", given {" + std::string(inside) + "}";
    text.emplace_back();
    return close;
  }
};

std::string text_of_index(std::int64_t element, const Extents& shape) {
  std::string text;
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d])
    text = std::to_string(element % shape[d]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

std::uint64_t low_bits(DType dtype, std::uint64_t bits) {
  return dtype.bits() == 64 ? bits : bits & ((std::uint64_t{1} << dtype.bits()) - 1);
}

}  // namespace

std::string format_problem(std::string_view format, std::span<const Type> types) {
  const Format f(format);
  if (!f.problem.empty()) return f.problem;
  if (f.text.size() - 1 != types.size())
    return "the format string expects " + std::to_string(f.text.size() - 1) + " values, given " +
           std::to_string(types.size());
  const auto is_array = [](const Type& t) { return !t.shape.empty(); };
  if (types.size() < 2 || std::ranges::none_of(types, is_array)) return "";
  std::string given;
  for (const Type& t : types) given += (given.empty() ? "" : ", ") + to_string(t);
  return "expected any number of scalars, or one array; given " + given;
}

std::string printed_number(DType dtype, std::uint64_t bits) {
  bits = low_bits(dtype, bits);
  if (dtype.is_float() && std::isnan(to_double(dtype, bits))) return "nan";
  return number_text(dtype, bits);
}

std::int64_t count_printed(const Graph& g, ValueId print) {
  const std::vector<ValueId>& args = g[print].args;
  return args.size() == 1 ? element_count(g[args[0]].type.shape)
                          : static_cast<std::int64_t>(args.size());
}

std::string printed_lines(const Graph& g, ValueId print, std::span<const std::uint64_t> bits) {
  const Inst& i = g[print];
  const Format f(i.attr.text);
  std::string lines;
  if (i.args.size() == 1 && !g[i.args[0]].type.shape.empty()) {
    const Type& t = g[i.args[0]].type;
    for (std::size_t e = 0; e < bits.size(); ++e)
      lines += f.text[0] + text_of_index(static_cast<std::int64_t>(e), t.shape) + ": " +
               printed_number(t.dtype, bits[e]) + f.text[1] + "\n";
    return lines;
  }
  for (std::size_t n = 0; n < i.args.size(); ++n)
    lines += f.text[n] + printed_number(g[i.args[n]].type.dtype, bits[n]);
  return lines + f.text[i.args.size()] + "\n";
}

std::string failed_check(const Inst& check, std::span<const std::int64_t> program) {
  std::string text = "debug_check: " + check.attr.text;
  for (std::size_t d = 0; d < program.size(); ++d)
    text += (d == 0 ? " (program (" : ", ") + std::to_string(program[d]);
  return program.empty() ? text : text + "))";
}

ValueId debug_site(const Graph& g, std::int64_t site) {
  for (std::uint32_t v = 0; v < g.insts.size(); ++v)
    if (is_debug_op(g.insts[v].op) && DebugView::of(g.insts[v]).site == site) return ValueId{v};
  return no_value;
}

bool has_debug_op(const Graph& g, Op op) {
  return std::ranges::any_of(g.insts, [&](const Inst& i) { return i.op == op; });
}

}  // namespace palladium::graph
