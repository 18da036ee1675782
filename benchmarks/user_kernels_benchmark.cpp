// What is made of kernels as users write them (benchmarks/user_kernels), beside what Triton and
// cuTile make of theirs: they are compiled and never run, so no GPU is needed, and what is counted
// are facts of the machine code (sass_estimate.py).
//
//   benchmark_user_kernels [--remarks] [--out FOLDER] [--list] [CASE...]   beginnings of names
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "benchmarks/user_kernels/cases.hpp"
#include "codegen/base/format.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

using namespace palladium;
using user_kernels::Case;

namespace {

struct Arguments {
  bool remarks = false, list = false;
  std::string out;
  std::vector<std::string> names;
};

Arguments arguments_of(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--remarks")
      a.remarks = true;
    else if (word == "--list")
      a.list = true;
    else if (word == "--out" && i + 1 < argc)
      a.out = argv[++i];
    else
      a.names.push_back(word);
  }
  return a;
}

bool is_wanted(const Case& c, const std::vector<std::string>& names) {
  return names.empty() ||
         std::ranges::any_of(names, [&](const std::string& n) { return c.name.starts_with(n); });
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void print_remarks(const Lowered& lowered, const char* arch) {
  for (const Remark& r : lowered.report({.arch = arch}).remarks)
    std::printf("    note: %s\n", first_line(r.text).c_str());
}

void compile(const Case& c, const Arguments& a) {
  try {
    const user_kernels::UserKernel k = c.make();
    const Lowered lowered = k.kernel.lower(std::vector<ArgType>(k.inputs.begin(), k.inputs.end()));
    const Compiled compiled = lowered.compile({.arch = c.arch});
    const std::string path = a.out + "/" + c.name + ".cubin";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(compiled.cubin().data()),
               static_cast<std::streamsize>(compiled.cubin().size()));
    std::printf("%-36s %s\n", c.name.c_str(), path.c_str());
    if (a.remarks) print_remarks(lowered, c.arch);
  } catch (const Error& e) {
    std::printf("%-36s refused: %s\n", c.name.c_str(),
                a.remarks ? e.what() : first_line(e.what()).c_str());
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments a = arguments_of(argc, argv);
  if (!nvrtc::toolchain().found) {
    std::puts("no NVRTC: nothing to measure");
    return 0;
  }
  ::setenv("PALLADIUM_LOG", "off", 1);
  for (const Case& c : user_kernels::cases())
    if (is_wanted(c, a.names)) compile(c, a);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
