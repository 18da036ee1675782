#include "codegen/device/library.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "codegen/device/wgmma.hpp"
#include "palladium/error.hpp"

namespace palladium::device {

extern const File embedded[];
extern const int embedded_count;

namespace {

constexpr int any_arch = std::numeric_limits<int>::max();
constexpr Function table[] = {
#define PALLADIUM_WAIST(file, name, first_arch, declaration, meaning) \
  {#file, #name, first_arch, any_arch, -1, -1, declaration, meaning},
#define PALLADIUM_WAIST_HOPPER(file, name, declaration, meaning) \
  {#file, #name, 90, 90, -1, -1, declaration, meaning},
#define PALLADIUM_WAIST_MATH(file, name, ulp_f32, ulp_f64, declaration, meaning) \
  {#file, #name, 75, any_arch, ulp_f32, ulp_f64, declaration, meaning},
#include "codegen/device/waist.def"
};

// A part of the library: taken always, or when the kernel names a function of one of the waist's
// `files`.
struct Part {
  std::string_view path, files;

  bool wanted_by(const std::vector<std::string_view>& named) const {
    std::string_view rest = files;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (std::find(named.begin(), named.end(), rest.substr(0, end)) != named.end()) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return files.empty();
  }
};
constexpr Part cuda_parts[] = {
    {"cuda/target.cuh", ""},
    {"common/types.cuh", ""},
    {"cuda/bits.cuh", ""},
    {"common/convert.cuh", ""},
    {"common/arithmetic.cuh", "arithmetic"},
    {"cuda/math.cuh", "math"},
    {"common/math.cuh", "math"},
    {"cuda/ids.cuh", "ids"},
    {"cuda/barrier.cuh", "barrier"},
    {"cuda/warp.cuh", "warp"},
    {"cuda/memory.cuh", "memory cluster"},
    {"cuda/mma.cuh", "mma"},
    {"cuda/cluster.cuh", "cluster"},
    {"cuda/mbarrier.cuh", "mbarrier"},
    {"cuda/fence.cuh", "fence"},
    {"common/tma.cuh", "tma"},
    {"cuda/tma.cuh", "tma"},
    {"cuda/cp_async.cuh", "cp_async"},
    {"common/wgmma.cuh", "wgmma"},
    {"cuda/wgmma.cuh", "wgmma"},
    {"cuda/control.cuh", "control"},
    {"common/atomic.cuh", "atomic"},
    {"cuda/atomic.cuh", "atomic"},
    {"common/reduce.cuh", "reduce"},
    {"common/part.cuh", "part"},
    {"common/dot.cuh", "dot"},
};
constexpr Part cpu_parts[] = {
    {"cpu/target.cuh", ""},
    {"common/types.cuh", ""},
    {"cpu/host.cuh", ""},
    {"cpu/entry.cuh", ""},
    {"cpu/bits.cuh", ""},
    {"common/convert.cuh", ""},
    {"common/arithmetic.cuh", "arithmetic"},
    {"cpu/math.cuh", "math"},
    {"common/math.cuh", "math"},
    {"cpu/ids.cuh", "ids"},
    {"cpu/barrier.cuh", "barrier"},
    {"cpu/warp.cuh", "warp"},
    {"cpu/memory.cuh", "memory cluster"},
    {"cpu/mma.cuh", "mma"},
    {"cpu/cluster.cuh", "cluster"},
    {"cpu/mbarrier.cuh", "mbarrier"},
    {"cpu/fence.cuh", "fence"},
    {"cpu/format.cuh", "tma atomic"},
    {"common/tma.cuh", "tma"},
    {"cpu/tma.cuh", "tma"},
    {"cpu/cp_async.cuh", "cp_async"},
    {"common/wgmma.cuh", "wgmma"},
    {"cpu/wgmma.cuh", "wgmma"},
    {"cpu/control.cuh", "control"},
    {"common/atomic.cuh", "atomic"},
    {"cpu/atomic.cuh", "atomic"},
    {"common/reduce.cuh", "reduce"},
    {"common/part.cuh", "part"},
    {"common/dot.cuh", "dot"},
};

std::string_view text_of(std::string_view path) {
  for (const File& file : files()) {
    if (file.name == path) return file.text;
  }
  throw InternalError("device library: no file " + std::string(path));
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The waist's files whose functions `kernel` names as pl::<name>.
std::vector<std::string_view> named_files(std::string_view kernel) {
  std::vector<std::string_view> found;
  for (std::size_t at = kernel.find("pl::"); at != kernel.npos; at = kernel.find("pl::", at)) {
    at += 4;
    std::size_t end = at;
    while (end < kernel.size() && is_name(kernel[end])) ++end;
    const std::string_view name = kernel.substr(at, end - at);
    for (const Function& f : table) {
      if (f.name == name && std::find(found.begin(), found.end(), f.file) == found.end()) {
        found.push_back(f.file);
      }
    }
  }
  return found;
}

// Appends `text` without the lines that hold nothing but a comment.
void append_code(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    const std::size_t first = line.find_first_not_of(" \n");
    if (first != line.npos && line.substr(first, 2) != "//") out += line;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::span<const File> files() { return {embedded, static_cast<std::size_t>(embedded_count)}; }

std::span<const Function> functions() { return table; }

std::string prelude(Half half, std::string_view kernel) {
  std::string text(kernel);
  // Compositions name the functions that they are made of.
  for (const std::string_view composition : {"reduce", "part", "dot"}) {
    const auto direct = named_files(kernel);
    if (std::find(direct.begin(), direct.end(), composition) != direct.end())
      text += text_of("common/" + std::string(composition) + ".cuh");
  }
  const std::vector<std::string_view> named = named_files(text);
  const std::span<const Part> parts =
      half == Half::cuda ? std::span<const Part>(cuda_parts) : std::span<const Part>(cpu_parts);
  std::string out;
  for (const Part& part : parts) {
    if (!part.wanted_by(named)) continue;
    const bool host = part.path == "cpu/host.cuh";
    if (host) out += "namespace pl {\nnamespace detail {\n";
    append_code(out, text_of(part.path));
    if (host) out += "}\n}\n";
  }
  out += wgmma_functions(half, kernel);
  out += "#line 1 \"kernel.cu\"\n";
  return out;
}

}  // namespace palladium::device
