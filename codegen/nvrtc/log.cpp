// Reads the assembler's report (`--ptxas-options=-v`) out of a compile log.
#include <algorithm>
#include <charconv>

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

}  // namespace

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
  return found;
}

}  // namespace palladium::nvrtc
