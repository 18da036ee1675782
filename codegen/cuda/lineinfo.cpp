// The user's lines in the text that is compiled, for profilers and debuggers.
#include <string_view>

#include "codegen/base/format.hpp"
#include "codegen/cuda/emit.hpp"

namespace palladium::cuda {
namespace {

// As a string literal of one line, whatever the name.
std::string quoted(std::string_view file) {
  std::string out = "\"";
  for (const char c : file) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return out + "\"";
}

}  // namespace

std::string compiled_text(const graph::Graph& g, const Emitted& emitted) {
  if (!g.lineinfo) return emitted.text;
  std::string out;
  std::string_view rest = emitted.text;
  auto next = emitted.lines.begin();
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    if (next != emitted.lines.end() && next->line == line) {
      out += fmt::format("#line {} {}\n", next->at.line, quoted(next->at.file));
      ++next;
    }
    out += rest.substr(0, end);
    rest.remove_prefix(end);
  }
  return out;
}

}  // namespace palladium::cuda
