// What is made of kernels as users write them (benchmarks/user_kernels), beside what Triton and
// cuTile make of theirs (benchmarks/peers). They are compiled and never run, so that no GPU is
// needed; what is counted are facts of the machine code (benchmarks/sass_estimate.py): instructions
// beside MMAs of a tile, and how far ahead is copied.
//
//   benchmark_user_kernels [--remarks] [--json] [--out FOLDER] [CASE...]    beginnings of names
//
// $PYTHON names a Python that has the peers, $PALLADIUM_NVDISASM the disassembler. In FOLDER the
// cubins stay, and those of peers are not made again.
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/user_kernels/cases.hpp"
#include "codegen/base/format.hpp"
#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

using namespace palladium;
using user_kernels::Case;

namespace {

struct Arguments {
  bool remarks = false, json = false;
  std::string out = (std::filesystem::temp_directory_path() / "palladium-user-kernels").string();
  std::vector<std::string> names;
};

Arguments arguments_of(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--remarks")
      a.remarks = true;
    else if (word == "--json")
      a.json = true;
    else if (word == "--out" && i + 1 < argc)
      a.out = argv[++i];
    else
      a.names.push_back(word);
  }
  return a;
}

std::vector<Case> wanted_cases(const std::vector<std::string>& names) {
  std::vector<Case> wanted;
  for (const Case& c : user_kernels::cases())
    if (names.empty() ||
        std::ranges::any_of(names, [&](const std::string& n) { return c.name.starts_with(n); }))
      wanted.push_back(c);
  return wanted;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// One of a list that user_kernels_report.py reads: fields between tabs.
struct Entry {
  std::string lines;
  void add(const std::string& fields) { lines += fields + "\n"; }
};

Entry compile(const Case& c, const Arguments& a) {
  Entry entry;
  const auto begin = [&](int shared_bytes) {
    entry.add(
        fmt::format("case\t{}\t{}\t{}\t{}\t{}", c.name, c.peer, c.at_most, c.stages, shared_bytes));
  };
  try {
    const user_kernels::UserKernel k = c.make();
    const Lowered lowered = k.kernel.lower(std::vector<ArgType>(k.inputs.begin(), k.inputs.end()));
    const Compiled compiled = lowered.compile({.arch = c.arch});
    const std::span<const std::byte> cubin = compiled.cubin();
    std::ofstream(a.out + "/" + c.name + ".cubin", std::ios::binary)
        .write(reinterpret_cast<const char*>(cubin.data()),
               static_cast<std::streamsize>(cubin.size()));
    begin(compiled.resources().shared_bytes);
    if (a.remarks)
      for (const Remark& r : lowered.report({.arch = c.arch}).remarks)
        entry.add("note\t" + first_line(r.text));
  } catch (const Error& e) {
    begin(0);
    entry.add("refused\t" + first_line(e.what()));
  }
  return entry;
}

int report(const Arguments& a) {
  const char* chosen = std::getenv("PYTHON");
  const std::string command =
      fmt::format("'{}' '{}/user_kernels_report.py' '{}'{}", chosen != nullptr ? chosen : "python3",
                  PALLADIUM_BENCHMARKS, a.out, a.json ? " --json" : "");
  return std::system(command.c_str()) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments a = arguments_of(argc, argv);
  const std::string nvdisasm = nvrtc::find_nvdisasm();
  if (!nvrtc::toolchain().found || nvdisasm.empty()) {
    std::puts("no NVRTC, or no nvdisasm (scripts/setup --nvdisasm): nothing to measure");
    return 0;
  }
  ::setenv("PALLADIUM_NVDISASM", nvdisasm.c_str(), 1);
  ::setenv("PALLADIUM_LOG", "off", 1);
  std::filesystem::create_directories(a.out);
  std::ofstream list(a.out + "/cases");
  for (const Case& c : wanted_cases(a.names)) list << compile(c, a).lines;
  list.close();
  return report(a);
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
