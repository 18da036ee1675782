// Reads the assembler's report (`--ptxas-options=-v`) out of a compile log.
#include <algorithm>
#include <charconv>
#include <map>

#include "codegen/base/format.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

namespace palladium::nvrtc {
namespace {

/// The number right before `words` in the line ("4224" of "4224 bytes smem"); 0 without.
int number_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

/// "(C7510)": the assembler's codes for what it had to do to wgmma and its operands.
bool has_performance_code(std::string_view line) {
  for (const std::string_view family : {"(C75", "(C76"})
    if (line.find(family) != std::string_view::npos) return true;
  return false;
}

std::string_view without_prefix(std::string_view line) {
  const std::size_t colon = line.find(" : ");
  return colon == std::string_view::npos ? line : line.substr(colon + 3);
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

constexpr std::string_view blame = " around line ";

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

bool blame_a_line(const std::vector<std::string>& warnings) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [](const std::string& w) { return w.find(blame) != w.npos; });
}

std::vector<std::string> located_warnings(const Result& with_line_information) {
  std::vector<std::string> warnings = parse_log(with_line_information.log).warnings;
  for (std::string& warning : warnings) {
    const std::size_t at = warning.find(blame);
    if (at == warning.npos) continue;
    const std::size_t digits = at + blame.size();
    int line = 0;
    const auto [end, error] =
        std::from_chars(warning.data() + digits, warning.data() + warning.size(), line);
    if (error != std::errc()) continue;
    const std::string found = kernel_place(with_line_information.ptx, line);
    if (found.empty()) continue;
    const auto count = static_cast<std::size_t>(end - (warning.data() + at));
    warning.replace(at, count, " around " + found);
  }
  return warnings;
}

Resources parse_log(std::string_view log) {
  Resources found;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log = end == std::string_view::npos ? std::string_view() : log.substr(end + 1);
    if (!line.starts_with("ptxas") && !line.starts_with("    ")) continue;

    if (has_performance_code(line) || line.starts_with("ptxas warning")) {
      std::string warning(without_prefix(line));
      if (std::find(found.warnings.begin(), found.warnings.end(), warning) == found.warnings.end())
        found.warnings.push_back(std::move(warning));
    } else if (line.find("Used ") != std::string_view::npos) {
      // Of the entry function; those of called functions are within it.
      found.registers = std::max(found.registers, number_before(line, " registers"));
      found.barriers = std::max(found.barriers, number_before(line, " barriers"));
      found.shared_bytes = std::max(found.shared_bytes, number_before(line, " bytes smem"));
      found.stack_bytes =
          std::max({found.stack_bytes, number_before(line, " bytes cumulative stack size"),
                    number_before(line, " bytes lmem")});
    } else if (line.find(" bytes stack frame") != std::string_view::npos) {
      found.stack_bytes = std::max(found.stack_bytes, number_before(line, " bytes stack frame"));
      found.spill_store_bytes += number_before(line, " bytes spill stores");
      found.spill_load_bytes += number_before(line, " bytes spill loads");
    }
  }
  warn_of_local_memory(found);
  return found;
}

}  // namespace palladium::nvrtc
