#include "codegen/device/library.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "codegen/device/declarations.hpp"
#include "codegen/device/wgmma.hpp"
#include "palladium/error.hpp"

namespace palladium::device {

extern const File embedded[];
extern const int embedded_count;

namespace {

// The files of each half in the order in which their declarations stand in a prelude, and the texts
// that are made of math.def.
constexpr std::string_view cuda_files[] = {
    "cuda/target.cuh",      "common/types.cuh",   "common/order.cuh",      "common/bytes.cuh",
    "cuda/bits.cuh",        "common/convert.cuh", "common/arithmetic.cuh", "functions",
    "cuda/math.cuh",        "common/math.cuh",    "functions of halves",   "cuda/ids.cuh",
    "cuda/barrier.cuh",     "cuda/warp.cuh",      "cuda/memory.cuh",       "cuda/mma.cuh",
    "cuda/cluster.cuh",     "cuda/mbarrier.cuh",  "cuda/fence.cuh",        "common/tma.cuh",
    "cuda/tma.cuh",         "cuda/cp_async.cuh",  "common/wgmma.cuh",      "cuda/wgmma.cuh",
    "cuda/control.cuh",     "common/atomic.cuh",  "cuda/atomic.cuh",       "common/reduce.cuh",
    "common/semaphore.cuh", "common/debug.cuh",   "common/profile.cuh",    "common/part.cuh",
    "common/dot.cuh",       "cuda/view.cuh",      "common/view.cuh",
};
constexpr std::string_view cpu_files[] = {
    "cpu/target.cuh",        "common/types.cuh",   "common/order.cuh",  "cpu/host.cuh",
    "cpu/entry.cuh",         "common/bytes.cuh",   "cpu/bits.cuh",      "common/convert.cuh",
    "common/arithmetic.cuh", "functions",          "cpu/math.cuh",      "common/math.cuh",
    "functions of halves",   "cpu/ids.cuh",        "cpu/barrier.cuh",   "cpu/warp.cuh",
    "cpu/memory.cuh",        "cpu/mma.cuh",        "cpu/cluster.cuh",   "cpu/mbarrier.cuh",
    "cpu/fence.cuh",         "cpu/format.cuh",     "common/tma.cuh",    "cpu/tma.cuh",
    "cpu/cp_async.cuh",      "common/wgmma.cuh",   "cpu/wgmma.cuh",     "cpu/control.cuh",
    "common/atomic.cuh",     "cpu/atomic.cuh",     "common/reduce.cuh", "common/semaphore.cuh",
    "common/debug.cuh",      "common/profile.cuh", "common/part.cuh",   "common/dot.cuh",
    "cpu/view.cuh",          "common/view.cuh",
};

// The emulator includes this file in a namespace of its own; a prelude in these.
constexpr std::string_view file_without_scopes = "cpu/host.cuh";
constexpr std::string_view its_scopes[] = {"namespace pl {", "namespace detail {"};

// What the emulator looks up by name and no text mentions.
constexpr std::string_view looked_up = "palladium_emulator_bind";

// What the rows of math.def say of a function.
struct Function {
  std::string_view name, cuda_f32, cuda_f64, emulated;
  std::string_view a, b;  // two operands, if there are
};
constexpr Function functions[] = {
#define PALLADIUM_MATH(Op, name, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, ...) \
  {#name, #cuda_f32, #cuda_f64, #emulated, "", ""},
#define PALLADIUM_MATH2(Op, name, a, b, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, ...) \
  {#name, #cuda_f32, #cuda_f64, #emulated, #a, #b},
#include "palladium/math.def"
};

std::string defined(const Function& f, std::string_view type, std::string_view as) {
  if (f.a.empty()) return fmt::format("PL_UNARY({}, {}, {})\n", f.name, type, as);
  return fmt::format("PL_FN {0} {1}({0} {2}, {0} {3}) {{ return {4}({2}, {3}); }}\n", type, f.name,
                     f.a, f.b, as);
}

// The functions that are others by another name: libdevice's, or the emulator's by number.
std::string functions_of(Half half) {
  const bool cuda = half == Half::cuda;
  std::string text =
      "namespace pl {\n#define PL_UNARY(name, T, function) \\\n  PL_FN T name(T x) { ";
  text += cuda ? "return function(x); }\n" : "return detail::host.function(x); }\n";
  int unary = 0, binary = 0;
  for (const Function& f : functions) {
    const int row = f.a.empty() ? unary++ : binary++;
    const std::string_view door = f.a.empty() ? "unary_" : "detail::host.binary_";
    for (const int bits : {32, 64}) {
      const std::string_view known = bits == 32 ? f.cuda_f32 : f.cuda_f64;
      if ((cuda ? known : f.emulated) == "own") continue;
      const std::string type = fmt::format("f{}", bits);
      text +=
          defined(f, type, cuda ? std::string(known) : fmt::format("{}{}[{}]", door, type, row));
    }
  }
  return text + "}  // namespace pl\n";
}

// Of f16 and bf16, by those of f32.
std::string functions_of_halves() {
  std::string text = "namespace pl {\n";
  for (const Function& f : functions)
    for (const char* type : {"f16", "bf16"})
      text += fmt::format("PL_HALF_{}({}, {})\n", f.a.empty() ? "UNARY" : "BINARY", f.name, type);
  return text + "}  // namespace pl\n";
}

std::string_view text_of(std::string_view path) {
  for (const File& file : files()) {
    if (file.name == path) return file.text;
  }
  throw InternalError("device library: no file " + std::string(path));
}

// A declaration and the types that must be named for it to be of use.
struct Entry {
  Declaration declaration;
  std::vector<std::string_view> types;
};

// The declarations of a half in order, and where those of a name are.
struct Index {
  std::vector<Entry> entries;
  std::map<std::string_view, std::vector<std::size_t>> by_name;

  // What is made of the table, to which the entries point.
  const std::string made, made_of_halves = functions_of_halves();

  Index(Half half, std::span<const std::string_view> paths) : made(functions_of(half)) {
    std::set<std::string_view> types;
    for (const std::string_view path : paths) {
      const std::string_view text = path == "functions"             ? made
                                    : path == "functions of halves" ? made_of_halves
                                                                    : text_of(path);
      for (Declaration& d : declarations(text)) {
        if (path == file_without_scopes)
          d.scopes.assign(std::begin(its_scopes), std::end(its_scopes));
        for (const std::string_view name : d.names) {
          by_name[name].push_back(entries.size());
          if (d.is_type) types.insert(name);
        }
        entries.push_back({std::move(d), {}});
      }
    }
    // A name with one declaration may be used with operands that convert.
    for (auto& [declaration, needed] : entries) {
      if (by_name[declaration.names[0]].size() == 1) continue;
      for (const std::string_view operand : declaration.operands) {
        if (types.contains(operand)) needed.push_back(operand);
      }
    }
  }
};

const Index& index_of(Half half) {
  // Never destroyed: a compile in the background may be at them when the process ends. A child of
  // fork() must not find them half made.
  const forking::Section section;
  static const Index& cuda = *new Index(Half::cuda, cuda_files);
  static const Index& cpu = *new Index(Half::cpu, cpu_files);
  return half == Half::cuda ? cuda : cpu;
}

// Which entries a text needs that holds `names`.
std::vector<bool> needed(const Index& index, const std::vector<std::string_view>& names) {
  std::set<std::string_view> named(names.begin(), names.end());
  named.insert(looked_up);
  std::vector<bool> taken(index.entries.size());
  const auto is_named = [&](std::string_view name) { return named.contains(name); };
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const auto& [d, types] = index.entries[i];
      if (taken[i] || !std::any_of(d.names.begin(), d.names.end(), is_named) ||
          !std::all_of(types.begin(), types.end(), is_named))
        continue;
      taken[i] = grown = true;
      named.insert(d.uses.begin(), d.uses.end());
    }
  }
  return taken;
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

std::string prelude(Half half, std::string_view kernel) {
  const std::string products = wgmma_functions(half, kernel);
  std::vector<std::string_view> names = identifiers(kernel);
  for (const std::string_view name : identifiers(products)) names.push_back(name);
  const Index& index = index_of(half);
  const std::vector<bool> taken = needed(index, names);

  std::string out;
  std::vector<std::string_view> open;
  const auto enter = [&](const std::vector<std::string_view>& scopes) {
    std::size_t common = 0;
    while (common < std::min(open.size(), scopes.size()) && open[common] == scopes[common])
      ++common;
    for (; open.size() > common; open.pop_back()) out += "}\n";
    for (; open.size() < scopes.size(); open.push_back(scopes[open.size()]))
      out += std::string(scopes[open.size()]) + "\n";
  };
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) continue;
    const Declaration& d = index.entries[i].declaration;
    enter(d.scopes);
    append_code(out, d.text);
  }
  enter({});
  return out + products + "#line 1 \"kernel.cu\"\n";
}

}  // namespace palladium::device
