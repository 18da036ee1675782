// Where PALLADIUM_TEST_RECORD names a folder, tests leave in it the graph and key of each kernel
// that they trace, and the text of each that they lower; scripts/compare_compilers compares such
// folders, scripts/compare_texts what two builds emit for the graphs in one.
//
// The linker sends calls of canonicalize() and emit() here (see tests/CMakeLists.txt). A file is
// named by its contents, so that it does not matter which test came first, or how often.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "codegen/cuda/emit.hpp"
#include "codegen/graph/transform.hpp"
#include "runtime/build/key.hpp"

namespace palladium {
namespace {

std::string fingerprint(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

const char* folder() { return std::getenv("PALLADIUM_TEST_RECORD"); }

void keep(const char* what, const std::string& text) {
  const std::string path = std::string(folder()) + '/' + what + '-' + fingerprint(text);
  if (std::filesystem::exists(path)) return;
  thread_local int number = 0;
  const std::string unfinished =
      path + '.' + std::to_string(gettid()) + '.' + std::to_string(number++);
  std::ofstream(unfinished) << text;
  std::filesystem::rename(unfinished, path);
}

}  // namespace

graph::Graph real_canonicalize(const graph::Graph& g) asm(
    "__real__ZN9palladium5graph12canonicalizeERKNS0_5GraphE");
graph::Graph recording_canonicalize(const graph::Graph& g) asm(
    "__wrap__ZN9palladium5graph12canonicalizeERKNS0_5GraphE");
graph::Graph recording_canonicalize(const graph::Graph& g) {
  graph::Graph result = real_canonicalize(g);
  if (!folder() || result.lineinfo)
    return result;  // compilers tell different lines of a call of several lines
  keep("graph", graph::to_text(result) + runtime::key_of(result, "sm_90a").hex() + '\n');
  return result;
}

cuda::Emitted real_emit(const graph::Graph& g, const cuda::Options& options) asm(
    "__real__ZN9palladium4cuda4emitERKNS_5graph5GraphERKNS0_7OptionsE");
cuda::Emitted recording_emit(const graph::Graph& g, const cuda::Options& options) asm(
    "__wrap__ZN9palladium4cuda4emitERKNS_5graph5GraphERKNS0_7OptionsE");
cuda::Emitted recording_emit(const graph::Graph& g, const cuda::Options& options) {
  cuda::Emitted result = real_emit(g, options);
  if (!folder() || g.lineinfo) return result;
  keep("json", graph::to_json(g));
  keep("text", cuda::compiled_text(g, result));
  return result;
}

}  // namespace palladium
