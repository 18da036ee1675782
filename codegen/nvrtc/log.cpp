// Reads the assembler's report (`--ptxas-options=-v`) out of a compile log.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "codegen/base/format.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

namespace palladium::nvrtc {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The number right before `words` in the line ("4224" of "4224 bytes smem"); -1 without.
int number_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == line.npos) return -1;
  std::size_t begin = at;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  int value = -1;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

/// What the assembler says behind its name: "ptxas info    : text", "ptxas         .     text".
/// What it says of a line of its input, "ptxas application ptx input, line 35; info    : text", is
/// left whole but for the name.
std::string_view said(std::string_view line) {
  constexpr std::string_view name = "ptxas";
  if (line.starts_with(name)) line.remove_prefix(name.size());
  for (const std::string_view prefix : {" info    : ", " warning : ", "         . "})
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == line.npos ? std::string_view() : line.substr(begin);
}

/// One part of "Used 38 registers, used 2 barriers, 400 bytes cmem[0]", or of the lines on global
/// memory and the stack; false for what is none.
bool take_figure(std::string_view part, Resources& found) {
  // Of the entry function; those of called functions are within it. Spills are each function's.
  const auto most = [&](std::string_view words, int* into) {
    const int value = number_before(part, words);
    if (value >= 0 && into != nullptr) *into = std::max(*into, value);
    return value >= 0;
  };
  const auto sum = [&](std::string_view words, int& into) {
    const int value = number_before(part, words);
    into += std::max(value, 0);
    return value >= 0;
  };
  return most(" registers", &found.registers) || most(" barriers", &found.barriers) ||
         most(" bytes smem", &found.shared_bytes) ||
         most(" bytes cumulative stack size", &found.stack_bytes) ||
         most(" bytes lmem", &found.stack_bytes) ||
         most(" bytes stack frame", &found.stack_bytes) ||
         sum(" bytes spill stores", found.spill_store_bytes) ||
         sum(" bytes spill loads", found.spill_load_bytes) || most(" bytes gmem", nullptr) ||
         most(" bytes cmem[", nullptr);
}

/// A line that is figures and nothing else, or names the function that they are of.
bool take_report(std::string_view line, Resources& found) {
  for (const std::string_view start :
       {"Compiling entry function ", "Function properties for ", "Compile time = "})
    if (line.starts_with(start)) return true;
  bool is_understood = !line.empty();
  while (!line.empty()) {
    const std::size_t end = line.find(", ");
    is_understood = take_figure(line.substr(0, end), found) && is_understood;
    line = end == line.npos ? std::string_view() : line.substr(end + 2);
  }
  return is_understood;
}

/// Slow memory that only a complaint makes visible.
void warn_of_local_memory(Resources& found) {
  if (found.spill_store_bytes + found.spill_load_bytes > 0)
    found.warnings.push_back(fmt::format(
        "registers spill to {} bytes of local memory per thread: code for {} bytes of stores and "
        "{} of loads",
        found.stack_bytes, found.spill_store_bytes, found.spill_load_bytes));
  else if (found.stack_bytes > 0)
    found.warnings.push_back(fmt::format(
        "{} bytes of local memory per thread: an array indexed at run time, a call that was not "
        "inlined, or sin, cos or tan",
        found.stack_bytes));
}

/// Where a warning names a line of the PTX: "line 181", by whatever words it is surrounded.
struct Blame {
  std::size_t begin = 0, end = 0;
  int line = 0;
};

std::optional<Blame> blame_in(std::string_view warning) {
  constexpr std::string_view words = " line ";
  for (std::size_t at = warning.find(words); at != warning.npos; at = warning.find(words, at + 1)) {
    Blame found = {.begin = at + 1};
    const char* const digits = warning.data() + at + words.size();
    const auto [end, error] = std::from_chars(digits, warning.data() + warning.size(), found.line);
    if (error != std::errc()) continue;
    found.end = static_cast<std::size_t>(end - warning.data());
    return found;
  }
  return std::nullopt;
}

/// The two numbers behind `word` in a line of PTX: a file's and a line's.
bool numbers_behind(std::string_view text, std::string_view word, int& file, int& line) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return false;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + at + word.size(), end, file);
  return error == std::errc() && rest != end &&
         std::from_chars(rest + 1, end, line).ec == std::errc();
}

/// Files that the PTX names, by number: .file 1 "/somewhere/kernel.cu".
std::map<int, std::string> files_of(std::string_view ptx) {
  constexpr std::string_view word = "\t.file\t";
  std::map<int, std::string> files;
  for (std::size_t at = ptx.find(word); at != ptx.npos; at = ptx.find(word, at + 1)) {
    int number = 0;
    std::from_chars(ptx.data() + at + word.size(), ptx.data() + ptx.size(), number);
    const std::size_t begin = ptx.find('"', at) + 1, end = ptx.find('"', begin);
    if (begin == 0 || end == ptx.npos) break;
    const std::string_view name = ptx.substr(begin, end - begin);
    // Our own text has no path, and the compiler put its working directory before it.
    files[number] = name.ends_with("/kernel.cu") ? "kernel.cu" : name;
  }
  std::erase_if(files, [](const auto& file) { return file.second.ends_with("library.cuh"); });
  return files;
}

/// "kernel.cu(14)": from which line of the kernel, not of the library, a line of the PTX was made;
/// "" if that cannot be told. What was inlined names the line of its caller.
std::string kernel_place(std::string_view ptx, int line) {
  const std::map<int, std::string> files = files_of(ptx);
  std::string place;
  for (int number = 1; number <= line && !ptx.empty(); ++number) {
    const std::size_t end = std::min(ptx.find('\n'), ptx.size() - 1);
    const std::string_view text = ptx.substr(0, end);
    // .loc 2 394 11, function_name $L__info_string6, inlined_at 1 8 13
    for (const std::string_view word : {".loc\t", "inlined_at "}) {
      int file = 0, of_file = 0;
      if (!numbers_behind(text, word, file, of_file)) continue;
      if (const auto found = files.find(file); found != files.end())
        place = fmt::format("{}({})", found->second, of_file);
    }
    ptx.remove_prefix(end + 1);
  }
  return place;
}

}  // namespace

std::vector<std::string> warnings_of_wgmma(const Resources& resources) {
  std::vector<std::string> found;
  for (const std::string& warning : resources.warnings)
    if (warning.find("wgmma") != std::string::npos) found.push_back(warning);
  return found;
}

bool blame_a_line(const std::vector<std::string>& warnings) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [](const std::string& w) { return blame_in(w).has_value(); });
}

std::vector<std::string> located_warnings(const Result& with_line_information) {
  std::vector<std::string> warnings = parse_log(with_line_information.log).warnings;
  for (std::string& warning : warnings) {
    const std::optional<Blame> blame = blame_in(warning);
    if (!blame) continue;
    const std::string place = kernel_place(with_line_information.ptx, blame->line);
    if (!place.empty()) warning.replace(blame->begin, blame->end - blame->begin, place);
  }
  return warnings;
}

Resources parse_log(std::string_view log) {
  Resources found;
  bool is_of_assembler = false;  // not of the compiler before it, whose lines are of our text
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log = end == std::string_view::npos ? std::string_view() : log.substr(end + 1);
    if (!line.starts_with(' ')) is_of_assembler = line.starts_with("ptxas");
    if (!is_of_assembler || take_report(said(line), found)) continue;
    std::string warning(said(line));
    if (std::find(found.warnings.begin(), found.warnings.end(), warning) == found.warnings.end())
      found.warnings.push_back(std::move(warning));
  }
  warn_of_local_memory(found);
  return found;
}

}  // namespace palladium::nvrtc
