#include "runtime/components.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cache/digest.hpp"
#include "cache/text_digest.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "runtime/compile.hpp"
#include "runtime/compiler.hpp"

namespace palladium::runtime {
namespace {

std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 300;
  return text.size() <= longest ? text : "sha256:" + cache::digest(text).hex().substr(0, 16);
}

/// The parts of a graph's text: behind the line of the kernel's name one for each line that is
/// indented once, with what is indented deeper below it; the rest is the body.
std::map<std::string, std::string> parts_of(const std::string& text) {
  std::map<std::string, std::string> parts;
  std::string* part = nullptr;
  std::size_t at = std::min(text.find('\n'), text.size() - 1) + 1;
  while (at < text.size() && text[at] == ' ') {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    at = std::min(end + 1, text.size());
    if (line.starts_with("    ") && part != nullptr) {
      part->append("\n").append(line.substr(2));
      continue;
    }
    const std::string_view said = line.substr(2);
    const std::size_t name = std::min(said.find_first_of(": "), said.size());
    part = &parts[std::string(said.substr(0, name))];
    if (!part->empty()) *part += '\n';
    const std::size_t value = std::min(said.find_first_not_of(": ", name), said.size());
    *part += said.substr(value);
  }
  parts["body"] = text.substr(at);
  return parts;
}

}  // namespace

std::map<std::string, std::string> components_of(const graph::Graph& g, const std::string& arch) {
  std::map<std::string, std::string> result = parts_of(graph::to_text(g));
  for (auto& [name, text] : result) text = shortened(text);
  result["arch"] = arch;
  result["name"] = g.name;
  result["text"] = "sha256:" + std::string(cache::text_digest).substr(0, 16);
  result["graph"] = "sha256:" + cache::digest(graph::canonical_bytes(g)).hex().substr(0, 16);
  result["lineinfo"] = g.lineinfo ? "true" : "false";
  return result;
}

std::string drift(const cache::Entry& entry) {
  const auto& parts = entry.metadata.components;
  const auto text = parts.find("text"), lineinfo = parts.find("lineinfo");
  const auto& toolchain = nvrtc::toolchain().found;
  const bool is_comparable =
      toolchain && toolchain->id == entry.toolchain && text != parts.end() &&
      lineinfo != parts.end() &&
      text->second == "sha256:" + std::string(cache::text_digest).substr(0, 16);
  if (!is_comparable) return "";
  const nvrtc::Request request =
      request_for(entry.source, entry.metadata.arch, lineinfo->second == "true");
  const nvrtc::Pool::Outcome outcome = run_nvrtc(request, *toolchain);
  if (outcome.end != nvrtc::Pool::End::result || !outcome.result.ok)
    return "its source does not compile any more";
  if (outcome.result.cubin != entry.cubin) return "its source compiles to other bytes now";
  return "";
}

}  // namespace palladium::runtime
