#include "tests/support/pass_case.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <vector>

#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/passes/manifest.hpp"
#include "codegen/passes/run.hpp"
#include "palladium/error.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/paths.hpp"

namespace palladium::test {
namespace {

const passes::Pass& pass_named(const std::string& name) {
  for (const auto& passes : {passes::attempt_passes(), passes::chosen_passes()})
    for (const passes::Pass& p : passes)
      if (p.name == name) return p;
  throw std::runtime_error("no pass is called '" + name + "'");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text)
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  lines.pop_back();
  return lines;
}

}  // namespace

std::vector<std::string> pass_case_files() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_dir() + "/tests/passes/cases"))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string changes(const std::string& before, const std::string& after) {
  if (before == after) return "unchanged\n";
  const std::vector<std::string> a = lines_of(before), b = lines_of(after);
  // Of the lines from i and j on, how many both have.
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::string text;
  bool same = true;  // the lines before
  const auto change = [&](char sign, const std::string& line, std::size_t behind) {
    if (same) text += "@" + std::to_string(behind) + (behind > 0 ? " " + a[behind - 1] : "") + "\n";
    text += sign + line + "\n";
    same = false;
  };
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j])
      ++i, ++j, same = true;
    else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1]))
      change('-', a[i], i), ++i;
    else
      change('+', b[j++], i);
  }
  return text;
}

PassCase PassCase::parse(std::string_view text) {
  const auto take = [&](std::string_view from, std::string_view to) {
    const std::size_t end = to.empty() ? text.size() : text.find(to);
    if (!text.starts_with(from) || end == std::string_view::npos)
      throw std::runtime_error("a case of a pass has no line '" + std::string(from) + "'");
    const std::string part(text.substr(from.size(), end - from.size()));
    text.remove_prefix(std::min(end + (to.empty() ? 0 : 1), text.size()));
    return part;
  };
  PassCase c;
  c.title = take("; ", "\npass ");
  c.pass = take("pass ", "\ninput\n");
  c.input = take("input\n", "\nexpected\n") + "\n";
  c.expected = take("expected\n", "");
  return c;
}

std::string PassCase::text() const {
  return "; " + title + "\npass " + pass + "\ninput\n" + input + "expected\n" + expected;
}

std::string PassCase::result() const {
  lowered::Program l = lowered_of(input);
  const std::string before = lowered::to_full_text(l);
  const passes::Pass& p = pass_named(pass);
  try {
    p.run(l);
    passes::verify_behind(p, l);
  } catch (const CompileError& e) {
    return std::string("refused: ") + e.what() + "\n";
  }
  return changes(before, lowered::to_full_text(l));
}

bool PassCase::edits_graph() const {
  lowered::Program l = lowered_of(input);
  const std::string before = graph::to_json(l.graph);
  try {
    pass_named(pass).run(l);
  } catch (const CompileError&) {
    return false;
  }
  return graph::to_json(l.graph) != before;
}

PassCase case_of(const graph::Graph& g, int compute_capability, const std::string& pass) {
  (void)pass_named(pass);
  PassCase c{.title = "a sentence", .pass = pass, .input = "", .expected = ""};
  std::map<std::string, std::string> texts;  // by attempt, behind its last pass
  const auto learn = [&](const passes::PassRun& run, const lowered::Program& l) {
    if (run.pass == pass && c.input.empty()) {
      std::string& before = texts[run.attempt];
      if (before.empty())
        before = lowered::to_full_text(passes::start(g, l.machine, l.num_warps, l.may_stage));
      c.input = before;
    }
    texts[run.attempt] = lowered::to_full_text(l);
  };
  try {
    (void)cuda::lower(g, {.compute_capability = compute_capability}, learn);
  } catch (const CompileError&) {
    // A pass that refuses is not told of: its program is the one that the pass before it left.
    if (c.input.empty() && texts.size() == 1) c.input = texts.begin()->second;
  }
  if (c.input.empty()) throw std::runtime_error("the pass " + pass + " does not run");
  c.expected = c.result();
  return c;
}

}  // namespace palladium::test
