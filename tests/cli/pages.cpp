#include "tests/cli/pages.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"

namespace palladium::test {
namespace {

struct PageBlock {
  std::string language;  // of the fence
  int line = 0;          // its first
  std::vector<std::string> lines = {};
};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string path_of(const std::string& file) { return source_dir() + "/docs/" + file; }

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<PageBlock> blocks_of(const std::vector<std::string>& page) {
  std::vector<PageBlock> blocks;
  bool inside = false;
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page[i].starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({page[i].substr(3), static_cast<int>(i) + 2});
    } else if (inside) {
      blocks.back().lines.push_back(page[i]);
    }
  }
  return blocks;
}

/// Whether the lines are those that are shown.
bool fits(std::span<const std::string> shown, std::span<const std::string> printed) {
  if (shown.empty()) return printed.empty();
  if (shown[0] != "…")
    return !printed.empty() && shown[0] == printed[0] && fits(shown.subspan(1), printed.subspan(1));
  for (std::size_t skipped = 0; skipped <= printed.size(); ++skipped)
    if (fits(shown.subspan(1), printed.subspan(skipped))) return true;
  return false;
}

std::string output_of(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  ::pclose(pipe);
  return text;
}

}  // namespace

struct Page::State {
  std::string file;
  std::vector<std::string> page;
  std::vector<PageBlock> blocks;
  std::vector<std::string> wrong = {};
  Folder folder = {};
  CapturedStdout out = {};
  std::size_t seen = 0;  // of the output

  // What the block printed stands behind it.
  void compare(std::size_t block, const std::string& printed) {
    const bool shows = block + 1 < blocks.size() && blocks[block + 1].language == "text";
    const std::vector<std::string> none, &shown = shows ? blocks[block + 1].lines : none;
    if (fits(shown, lines_of(printed))) return;
    wrong.push_back(file + ":" + std::to_string(blocks[block].line) + " prints\n" + printed +
                    "which is not what is shown:\n" + joined(shown));
    const bool whole = std::find(shown.begin(), shown.end(), "…") == shown.end();
    if (shows && whole && std::getenv("PALLADIUM_TEST_REFRESH") != nullptr)
      blocks[block + 1].lines = lines_of(printed);
  }
  void run_commands(std::size_t from) {
    for (std::size_t b = from; b < blocks.size() && blocks[b].language != "cpp"; ++b)
      if (blocks[b].language == "sh")
        compare(b, output_of("cd " + folder.path() + " && export PATH=" + binary_dir() + ":$PATH " +
                             "PALLADIUM_CACHE_DIR=" + folder.path() + "/cache && { " +
                             joined(blocks[b].lines) + "} 2>&1"));
  }
  void refresh() const {
    if (std::getenv("PALLADIUM_TEST_REFRESH") == nullptr) return;
    std::string text;
    std::size_t block = 0;
    bool inside = false;
    for (const std::string& line : page) {
      const bool fence = line.starts_with("```");
      if (fence && inside) text += joined(blocks[block++].lines);
      if (fence) inside = !inside;
      if (fence || !inside) text += line + "\n";
    }
    std::ofstream(path_of(file)) << text;
  }
};

Page::Page(const std::string& file)
    : state_(new State{.file = file, .page = lines_of(content_of(path_of(file))), .blocks = {}}) {
  state_->blocks = blocks_of(state_->page);
}
Page::~Page() { delete state_; }

void Page::ran(int line) {
  State& s = *state_;
  const std::string all = s.out.text(), printed = all.substr(s.seen);
  s.seen = all.size();
  if (line == 0) return s.run_commands(0);
  for (std::size_t b = 0; b < s.blocks.size(); ++b) {
    if (s.blocks[b].line != line) continue;
    s.compare(b, printed);
    s.run_commands(b + 1);
  }
}

std::vector<std::string> Page::finish() {
  state_->refresh();
  return state_->wrong;
}

std::vector<std::string> misplaced(const std::string& file) {
  std::vector<std::string> wrong;
  std::string before;
  const auto say = [&](const PageBlock& block, const std::string& what) {
    wrong.push_back(file + ":" + std::to_string(block.line) + ": " + what);
  };
  for (const PageBlock& block : blocks_of(lines_of(content_of(path_of(file))))) {
    const std::string& is = block.language;
    if (is == "text" && before != "cpp" && before != "sh") say(block, "nothing prints this");
    if (is == "cmake" &&
        joined(block.lines) != content_of(source_dir() + "/tests/house/consumer/CMakeLists.txt"))
      say(block, "this is not what tests/house/consumer is built with");
    if (is != "text" && is != "cmake" && is != "cpp" && is != "sh" && is != "console")
      say(block, "nobody checks what is marked '" + is + "'");
    before = is;
  }
  return wrong;
}

}  // namespace palladium::test
