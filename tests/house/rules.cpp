#include "tests/house/rules.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <set>
#include <sstream>

namespace palladium::house {
namespace {

struct Row {
  const char* folder;
  std::vector<std::string> uses;
  std::vector<std::string> headers = {};  // include/palladium/<header>.hpp that it implements
};

// The architecture's table of targets. Order: a folder comes after all it uses.
const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {"codegen/base",
       {},
       {"api", "math", "types", "half", "array", "outputs", "error", "report", "resources",
        "sass"}},
      {"codegen/layout", {"codegen/base"}, {"layout"}},
      {"codegen/graph", {"codegen/layout", "codegen/base"}, {"grid_mapping"}},
      {"codegen/trace",
       {"codegen/graph"},
       {"value", "ref", "array_ref", "ops", "control", "function", "block_spec", "body", "scoped",
        "spec", "mesh", "gpu", "gpu/*", "semaphore", "debug"}},
      {"codegen/lowered", {"codegen/thread"}},
      {"codegen/passes", {"codegen/lowered", "codegen/thread"}},
      {"codegen/device", {"codegen/base"}},
      {"codegen/thread", {"codegen/graph", "codegen/layout", "codegen/device"}},
      {"codegen/expand", {"codegen/lowered", "codegen/passes", "codegen/thread"}},
      {"codegen/timeline", {"codegen/lowered", "codegen/thread"}},
      {"codegen/cuda", {"codegen/expand", "codegen/timeline"}},
      {"codegen/nvrtc", {"codegen/base"}},
      {"cache", {"codegen/base"}},
      {"runtime/driver", {"codegen/base"}},
      {"runtime/fiber", {"codegen/base"}},
      {"runtime/race", {"codegen/base"}},
      {"runtime/interpreter", {"codegen/graph", "runtime/fiber", "runtime/race"}},
      {"runtime/emulator", {"codegen/device", "runtime/fiber", "runtime/race"}},
      {"runtime/device", {"runtime/driver", "codegen/graph"}, {"device", "npy"}},
      {"runtime/call", {"runtime/device", "codegen/trace"}, {"call"}},
      {"runtime/build", {"runtime/call", "codegen/cuda", "codegen/nvrtc", "cache"}},
      {"runtime/launch", {"runtime/build", "runtime/interpreter", "runtime/emulator"}},
      {"runtime",
       {"runtime/launch", "runtime/build", "runtime/call", "runtime/device"},
       {"kernel", "mesh_kernel", "cache", "cost", "record", "diagnosis", "version"}},
      {"runtime/ops", {"runtime"}, {"ops/*", "palladium"}},
  };
  return rows;
}

const std::string public_folder = "include/palladium/";

const Row* row_of(const std::string& folder) {
  for (const Row& row : table())
    if (row.folder == folder) return &row;
  return nullptr;
}

// The row whose folder is the longest prefix of the path, or that owns the public header.
const Row* owner(const std::string& path) {
  const Row* best = nullptr;
  if (path.starts_with(public_folder)) {
    std::string header = path.substr(public_folder.size());
    header = header.substr(0, header.rfind('.'));
    for (const std::string folder : {"ops/", "gpu/"})
      if (header.starts_with(folder)) header = folder + "*";
    for (const Row& row : table())
      if (std::ranges::count(row.headers, header)) best = &row;
    return best;
  }
  for (const Row& row : table())
    if (path.starts_with(std::string(row.folder) + "/") &&
        (!best || std::string(row.folder).size() > std::string(best->folder).size()))
      best = &row;
  return best;
}

struct Include {
  int line;
  std::string path;
  bool quoted;
};

// Blanks are gone. No file has this name, so that a compiler which is asked for an older standard
// stops (include/palladium/api.hpp).
constexpr const char* stop = "#include\"PalladiumneedsC++20,assaidabove\"";

std::vector<Include> includes(const std::string& text) {
  std::vector<Include> found;
  std::istringstream lines(text);
  std::string line;
  for (int n = 1; std::getline(lines, line); ++n) {
    std::erase(line, ' ');
    if (!line.starts_with("#include\"") && !line.starts_with("#include<")) continue;
    if (line == stop) continue;
    const std::size_t begin = line.find_first_of("\"<") + 1;
    found.push_back(
        {n, line.substr(begin, line.find_first_of("\">", begin) - begin), line[begin - 1] == '"'});
  }
  return found;
}

// The path from the repository root of a project header; "" for any other.
std::string project_path(const std::string& include) {
  if (include.starts_with("palladium/")) return "include/" + include;
  const std::string folder = include.substr(0, include.find('/'));
  for (const char* ours :
       {"codegen", "cache", "runtime", "tools", "examples", "benchmarks", "tests"})
    if (folder == ours && folder != include) return include;
  return "";
}

std::string at(const std::string& path, int line) { return path + ":" + std::to_string(line); }

// The text with comments and the insides of literals blanked, line breaks kept.
std::string code_only(const std::string& text) {
  std::string out = text;
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, out.size()); ++i)
      if (out[i] != '\n') out[i] = ' ';
  };
  const auto past = [&](std::string_view end, std::size_t from) {
    const std::size_t found = text.find(end, from);
    return found == std::string::npos ? text.size() : found + end.size();
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
      blank(start, i);
    } else if (text.compare(i, 2, "/*") == 0) {
      i = past("*/", i + 2);
      blank(start, i);
    } else if (text.compare(i, 2, "R\"") == 0) {
      const std::size_t open = std::min(text.find('(', i), text.size());
      i = past(")" + text.substr(i + 2, open - i - 2) + "\"", open);
      blank(start + 2, i - 1);
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !std::isalnum(text[i - 1])))) {
      for (++i; i < text.size() && text[i] != text[start]; ++i)
        if (text[i] == '\\') ++i;
      blank(start + 1, i++);
    } else {
      ++i;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> may_use(const std::string& folder) {
  std::set<std::string> reached;
  std::vector<std::string> open = {folder};
  while (!open.empty()) {
    const Row* row = row_of(open.back());
    open.pop_back();
    if (!row) continue;
    for (const std::string& used : row->uses)
      if (reached.insert(used).second) open.push_back(used);
  }
  return {reached.begin(), reached.end()};
}

Violations arrows(const Sources& sources) {
  Violations found;
  for (const auto& [path, text] : sources) {
    const bool is_public = path.starts_with(public_folder);
    const bool is_program = path.starts_with("tools/") || path.starts_with("examples/");
    const Row* from = owner(path);
    if (is_public && !from) found.push_back(path + " has no owner in the table of folders");
    if (!from && !is_program) continue;
    std::vector<std::string> allowed = from ? may_use(from->folder) : std::vector<std::string>{};
    if (from) allowed.push_back(from->folder);
    // The compile helper is the one program that works with plain bytes below the public headers.
    if (path.starts_with("tools/compile")) allowed = {"codegen/base", "codegen/nvrtc", "cache"};

    for (const Include& include : includes(text)) {
      const std::string target = project_path(include.path);
      if (target.empty()) {
        if (include.quoted && !sources.count(include.path))
          found.push_back(at(path, include.line) + " includes \"" + include.path +
                          "\": write it from the repository root");
        continue;
      }
      const bool to_public = target.starts_with(public_folder);
      if (is_program) {
        const bool own = target.substr(0, target.find('/')) == path.substr(0, path.find('/'));
        const Row* to = owner(target);
        if (!own && !to_public && !(to && std::ranges::count(allowed, to->folder)))
          found.push_back(at(path, include.line) + " includes " + include.path +
                          ": a program uses public headers");
        continue;
      }
      const Row* to = owner(target);
      if (!to || !std::ranges::count(allowed, to->folder))
        found.push_back(at(path, include.line) + " includes " + include.path + ": " + from->folder +
                        " may not use " + (to ? to->folder : target.substr(0, target.find('/'))));
    }
  }
  return found;
}

Violations public_headers(const Sources& sources) {
  // Cheap to compile and free of owners, streams and exceptions of the library's.
  static const std::set<std::string> standard = {"algorithm",   "array",       "bit",
                                                 "compare",     "concepts",    "cstddef",
                                                 "cstdint",     "cstring",     "cmath",
                                                 "exception",   "limits",      "initializer_list",
                                                 "optional",    "span",        "source_location",
                                                 "string",      "string_view", "tuple",
                                                 "type_traits", "utility",     "vector",
                                                 "version"};
  Violations found;
  for (const auto& [path, text] : sources) {
    if (!path.starts_with(public_folder)) continue;
    for (const Include& include : includes(text))
      if (!include.path.starts_with("palladium/") && !standard.count(include.path))
        found.push_back(at(path, include.line) + " includes <" + include.path +
                        ">, which no public header may");
  }
  return found;
}

Violations positions(const Sources& sources) {
  static const std::regex words(
      R"(\battr\.ints\b|[<>]=?\s*(graph::)?Op::\w|\bOp::\w+\s*[<>]=?[^<>])");
  Violations found;
  for (const auto& [path, text] : sources) {
    const Row* row = owner(path);
    const std::string_view folder = row ? row->folder : "";
    if (folder.empty() || folder == "codegen/graph" || folder == "codegen/trace") continue;
    std::istringstream lines(code_only(text));
    std::string line;
    for (int n = 1; std::getline(lines, line); ++n)
      if (line.find("attr.ints") != line.npos || line.find("Op::") != line.npos)
        if (std::regex_search(line, words))
          found.push_back(at(path, n) +
                          " reads what an operation is by position: ask its OpInfo or its view");
  }
  return found;
}

Violations architectures(const Sources& sources) {
  static const std::regex words(
      R"(\b(cc|compute_capability|first_with_\w+)\s*([<>]=?|[!=]=)[^<>]|[^<>]([<>]=?|[!=]=)\s*)"
      R"((\w+(\.|->|::))*(cc|compute_capability|first_with_\w+)\b)");
  Violations found;
  for (const auto& [path, text] : sources) {
    if (!path.starts_with("codegen/lowered/") && !path.starts_with("codegen/passes/") &&
        !path.starts_with("codegen/expand/") && !path.starts_with("codegen/cuda/"))
      continue;
    if (path.starts_with("codegen/lowered/machine.")) continue;
    std::istringstream lines(code_only(text));
    std::string line;
    for (int n = 1; std::getline(lines, line); ++n)
      if (std::regex_search(line, words))
        found.push_back(at(path, n) + " compares architectures: ask Machine what it can do");
  }
  return found;
}

Violations waits(const Sources& sources) {
  static const std::regex made(
      R"((^|[^\w:]|lowered::)(Sync|Fence|WaitGroup|Wait|Close|Arrive)(\s+\w+)?\s*\{)");
  static const std::regex declared(R"(\b(struct|class|enum)\s+\w+\s*\{)");
  Violations found;
  for (const auto& [path, text] : sources) {
    if (!path.starts_with("codegen/passes/")) continue;
    // Two make them; a user has said those of the others.
    if (path == "codegen/passes/complete_async.cpp" ||
        path == "codegen/passes/order_accesses.cpp" || path == "codegen/passes/async_copies.cpp" ||
        path == "codegen/passes/products_by_hand.cpp")
      continue;
    std::istringstream lines(code_only(text));
    std::string line;
    for (int n = 1; std::getline(lines, line); ++n)
      if (std::regex_search(line, made) && !std::regex_search(line, declared))
        found.push_back(
            at(path, n) +
            " makes a wait or an arrival: say what is touched, by whom, and it is derived");
  }
  return found;
}

Violations searches(const Sources& sources) {
  // One goes through the lines of a text, the other reads the forms of the op table.
  static const std::vector<std::string> allowed = {"codegen/cuda/lineinfo.cpp",
                                                   "codegen/cuda/spelling.cpp"};
  static const std::regex words(
      R"(\.(starts_with|ends_with|substr|rfind|find_\w+_of)\s*\(|\.find\s*\(\s*["'])"
      R"(|\b(std::regex|strstr|strchr|strncmp|names_identifier)\b)");
  Violations found;
  for (const auto& [path, text] : sources) {
    const Row* row = owner(path);
    const std::string_view folder = row ? row->folder : "";
    if (folder != "codegen/lowered" && folder != "codegen/passes" && folder != "codegen/thread" &&
        folder != "codegen/expand" && folder != "codegen/cuda")
      continue;
    if (std::ranges::count(allowed, path)) continue;
    std::istringstream lines(code_only(text));
    std::string line;
    for (int n = 1; std::getline(lines, line); ++n)
      if (std::regex_search(line, words))
        found.push_back(at(path, n) +
                        " searches text: ask the expression, the statement or the table's row");
  }
  return found;
}

Violations doors(const Sources& sources) {
  struct Door {
    std::vector<std::string> files;  // may say it
    std::regex words;
    const char* what;
  };
  // The expressions are slow, and there are many lines.
  const auto may_match = [](std::string_view line) {
    return std::ranges::any_of(
        std::array<std::string_view, 14>{"spdlog", "nvtx", "open", "creat", "rename", "link", "mk",
                                         "tmp", "dir", "truncate", "realpath", "fstream",
                                         "filesystem", "FILE"},
        [&](std::string_view word) { return line.find(word) != line.npos; });
  };
  // Calls of the C library. What our own functions are named like, too (`files::rename`, a plan's
  // `open`), is one where it is qualified by nothing or std, or has flags.
  static const std::vector<Door> all = {
      {{"codegen/base/log.cpp"}, std::regex(R"(spdlog)"), "the log library"},
      {{"codegen/base/profile.cpp"}, std::regex(R"(\bnvtx[A-Z3])"), "NVTX"},
      {{"codegen/base/files.cpp", "codegen/base/files.hpp"},
       std::regex(R"((^|[^\w.>:]|(^|[^\w>])::|\bstd::)(fopen|freopen|openat|creat|renameat|unlink)"
                  R"(|unlinkat|mkdir|mkdtemp|mkstemp|mkostemp|tmpfile|tmpnam|rmdir|opendir)"
                  R"(|truncate|ftruncate|symlink|readlink|realpath)\s*\()"
                  R"(|((^|[^\w>])::|\bstd::)(open|rename)\s*\(|(^|[^\w.>:])open\s*\(.*\bO_[A-Z])"
                  R"(|\b(i|o)?fstream\b|\bstd::filesystem\b|<filesystem>|<fstream>|\bFILE\s*\*)"),
       "the file system"},
  };
  Violations found;
  for (const auto& [path, text] : sources) {
    if (!owner(path)) continue;
    std::istringstream lines(code_only(text));
    std::string line;
    for (int n = 1; std::getline(lines, line); ++n)
      for (const Door& door : all) {
        if (may_match(line) && !std::ranges::count(door.files, path) &&
            std::regex_search(line, door.words))
          found.push_back(at(path, n) + " reaches for " + door.what + ": only " +
                          door.files.front() + " may");
      }
  }
  return found;
}

Violations processes(const Sources& sources) {
  static const std::regex words(
      R"((^|[^\w.>:]|(^|[^\w>])::)(kill|killpg|tgkill|waitpid|waitid|wait3|wait4|fork|vfork)\s*\()"
      R"(|(^|[^\w>])::wait\s*\()");
  // The expression is slow, and there are many lines.
  const auto may_match = [](std::string_view line) {
    return std::ranges::any_of(std::array<std::string_view, 3>{"kill", "wait", "fork"},
                               [&](std::string_view word) { return line.find(word) != line.npos; });
  };
  Violations found;
  for (const auto& [path, text] : sources) {
    if (path.starts_with("codegen/base/process.") || path.starts_with("tests/process_faults/"))
      continue;
    std::istringstream lines(code_only(text));
    std::string line;
    for (int n = 1; std::getline(lines, line); ++n)
      if (may_match(line) && std::regex_search(line, words))
        found.push_back(at(path, n) +
                        " takes a process by its number: use process::Id and process::Child");
  }
  return found;
}

namespace {

// Public member functions of a class by name, as often as there are overloads.
std::map<std::string, int> members(const std::string& text, const std::string& name) {
  static const std::regex function(R"((operator )?(\w+)\s*\()");
  const std::string code = code_only(text), head = "class PALLADIUM_API " + name + " {";
  std::map<std::string, int> found;
  const std::size_t begin = code.find(head);
  if (begin == code.npos) return found;
  std::string statement;
  int depth = 0, parentheses = 0;
  const auto end_statement = [&] {
    const std::string words = std::regex_replace(statement, std::regex(R"(requires\s*\()"), "");
    std::smatch m;
    if (words.find("static ") == words.npos && words.find("friend ") == words.npos &&
        std::regex_search(words, m, function) && m[2] != name)
      ++found[m[1].str() + m[2].str()];
    statement.clear();
  };
  for (std::size_t i = begin + head.size(); i < code.size() && depth >= 0; ++i) {
    if (depth == 0 && code.compare(i, 9, " private:") == 0) break;
    depth += (code[i] == '{') - (code[i] == '}');
    parentheses += (code[i] == '(') - (code[i] == ')');
    if (depth == 0 && parentheses == 0 && (code[i] == ';' || code[i] == '}'))
      end_statement();
    else if (depth == 0)
      statement += code[i];
  }
  return found;
}

}  // namespace

Violations array_members(const Sources& sources) {
  const auto of = [&](const std::string& header, const std::string& name) {
    const auto file = sources.find(public_folder + header + ".hpp");
    return file == sources.end() ? std::map<std::string, int>() : members(file->second, name);
  };
  std::map<std::string, int> outputs = of("outputs", "Outputs");
  Violations found;
  for (const auto& [name, count] : of("array", "Array"))
    if (outputs[name] < count)
      found.push_back("Outputs lacks a member of Array: " + name + ", of which there are " +
                      std::to_string(count));
  return found;
}

}  // namespace palladium::house
