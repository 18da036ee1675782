#include "tests/support/ptxas_words.hpp"

#include <fstream>

#include "tests/support/paths.hpp"

namespace palladium::test {
namespace {

constexpr std::string_view heading = "== ";

std::string file_of(const std::string& version) {
  return source_dir() + "/tests/ptxas/golden/words-" + version + ".txt";
}

}  // namespace

PtxasWords recorded_words(const std::string& version) {
  PtxasWords words;
  std::ifstream file(file_of(version));
  std::string kernel;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(heading))
      kernel = line.substr(heading.size());
    else
      words[kernel] += line + '\n';
  }
  return words;
}

void record_words(const std::string& version, const PtxasWords& words) {
  std::ofstream file(file_of(version));
  for (const auto& [kernel, log] : words) file << heading << kernel << '\n' << log;
}

}  // namespace palladium::test
