// The rules of the house hold for the tree, and each rule catches what it forbids.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "palladium/error.hpp"
#include "tests/house/declared_uses.hpp"
#include "tests/house/rules.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;

namespace {

house::Sources tree() {
  namespace fs = std::filesystem;
  house::Sources sources;
  const fs::path root = test::source_dir();
  for (const char* folder :
       {"codegen", "cache", "runtime", "include", "tools", "examples", "benchmarks", "tests"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".h") continue;
      std::ifstream file(entry.path());
      sources[fs::relative(entry.path(), root)] = {std::istreambuf_iterator<char>(file), {}};
    }
  }
  REQUIRE(sources.size() > 100);
  return sources;
}

std::string listed(const house::Violations& violations) {
  std::string text;
  for (const std::string& violation : violations) text += "\n  " + violation;
  return text;
}

}  // namespace

TEST_CASE("every include follows the arrows of the architecture") {
  const auto violations = house::arrows(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("public headers need only public headers and cheap standard ones") {
  const auto violations = house::public_headers(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("what an operation is, is asked of its row and read by name") {
  const auto violations = house::positions(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("nobody between a graph and its text searches text") {
  const auto violations = house::searches(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("behind the graph Machine alone knows what an architecture can do") {
  const auto violations = house::architectures(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("waits, arrivals, barriers and fences are made where order is derived, nowhere else") {
  const auto violations = house::waits(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("the log library and the file system have one door each") {
  const auto violations = house::doors(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("what a call gives has all members of an array") {
  const auto violations = house::array_members(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("nobody kills, waits or forks by a number that could be everybody's") {
  const auto violations = house::processes(tree());
  INFO(listed(violations));
  CHECK(violations.empty());
}

TEST_CASE("no component is linked with more than its row of the architecture allows") {
  for (const auto& [folder, uses] : test::declared_uses()) {
    const auto allowed = house::may_use(folder);
    for (const std::string& used : uses) {
      INFO(folder << " USES " << used);
      CHECK(std::find(allowed.begin(), allowed.end(), used) != allowed.end());
    }
  }
}

TEST_CASE("a shipped kernel has at most 60 lines, of public headers beside its folder's own") {
  constexpr std::ptrdiff_t most = 60;
  int kernels = 0;
  for (const auto& [path, text] : tree()) {
    const std::string& name = path;
    if (!name.starts_with("runtime/ops/") || !name.ends_with(".cpp") ||
        name.ends_with("/arguments.cpp") || name.ends_with("/blocks.cpp") ||
        name.ends_with("/registry.cpp"))
      continue;
    CAPTURE(name);
    CHECK(std::ranges::count(text, '\n') <= most);
    ++kernels;
  }
  CHECK(kernels == 9);
}

TEST_CASE("our own files are named from the root of the repository") {
  CHECK(std::string(here().file) == "tests/house/house_test.cpp");
}

TEST_CASE("an include against the arrows is found, with its line") {
  const auto found = house::arrows(
      {{"cache/store.cpp", "#include <string>\n\n#include \"codegen/graph/graph.hpp\"\n"}});
  REQUIRE(found.size() == 1);
  CHECK(found[0] ==
        "cache/store.cpp:3 includes codegen/graph/graph.hpp: cache may not use codegen/graph");
}

TEST_CASE("what a used folder uses is allowed, what uses it is not") {
  CHECK(house::arrows({{"codegen/cuda/lower.cpp", "#include \"codegen/layout/layout.hpp\"\n"}})
            .empty());
  CHECK(house::arrows({{"codegen/layout/layout.cpp", "#include \"codegen/cuda/lower.hpp\"\n"}})
            .size() == 1);
  CHECK(house::arrows({{"runtime/fiber/fiber.cpp", "#include \"runtime/launch/dispatch.hpp\"\n"}})
            .size() == 1);
  CHECK(house::arrows({{"runtime/launch/dispatch.cpp", "#include \"runtime/fiber/fiber.hpp\"\n"}})
            .empty());
}

TEST_CASE("the floors of the runtime look down only") {
  const std::vector<std::string> floors = {"runtime/device/array", "runtime/call/check",
                                           "runtime/build/key", "runtime/launch/packer",
                                           "runtime/lowered"};
  for (std::size_t low = 0; low < floors.size(); ++low)
    for (std::size_t high = low + 1; high < floors.size(); ++high) {
      INFO(floors[low] << " and " << floors[high]);
      const auto include = [](const std::string& file) {
        return "#include \"" + file + ".hpp\"\n";
      };
      CHECK(house::arrows({{floors[low] + ".cpp", include(floors[high])}}).size() == 1);
      CHECK(house::arrows({{floors[high] + ".cpp", include(floors[low])}}).empty());
    }
}

TEST_CASE("a public header counts as its owner's folder, from both sides") {
  CHECK(house::arrows({{"codegen/graph/graph.cpp", "#include \"palladium/types.hpp\"\n"}}).empty());
  CHECK(
      house::arrows({{"codegen/graph/graph.cpp", "#include \"palladium/kernel.hpp\"\n"}}).size() ==
      1);
  CHECK(house::arrows({{"include/palladium/types.hpp", "#include \"palladium/value.hpp\"\n"}})
            .size() == 1);
  CHECK(house::arrows({{"include/palladium/orphan.hpp", ""}}) ==
        house::Violations{"include/palladium/orphan.hpp has no owner in the table of folders"});
}

TEST_CASE("programs see public headers only") {
  CHECK(house::arrows({{"examples/softmax.cpp", "#include <palladium/palladium.hpp>\n"}}).empty());
  CHECK(house::arrows({{"tools/doctor.cpp", "#include \"tools/table.hpp\"\n"}}).empty());
  CHECK(house::arrows({{"tools/doctor.cpp", "#include \"cache/store.hpp\"\n"}}).size() == 1);
  CHECK(house::arrows({{"tools/compile.cpp", "#include \"cache/store.hpp\"\n"}}).empty());
  CHECK(house::arrows({{"tools/compile.cpp", "#include \"codegen/graph/graph.hpp\"\n"}}).size() ==
        1);
}

TEST_CASE("an include that is relative to its own folder is found") {
  CHECK(house::arrows({{"cache/store.cpp", "#include \"store.hpp\"\n"}}) ==
        house::Violations{
            "cache/store.cpp:1 includes \"store.hpp\": write it from the repository root"});
}

TEST_CASE("a public header that includes CUDA, streams or an internal is found") {
  for (const char* include : {"<cuda.h>", "<iostream>", "<memory>", "<functional>",
                              "<nlohmann/json.hpp>", "\"codegen/base/dim.hpp\""}) {
    INFO(include);
    CHECK(
        house::public_headers({{"include/palladium/value.hpp", std::string("#include ") + include}})
            .size() == 1);
  }
  CHECK(house::public_headers({{"include/palladium/value.hpp",
                                "#include <string>\n#include \"palladium/types.hpp\""}})
            .empty());
}

TEST_CASE("the one file that may be missing is the one at which older standards stop") {
  const auto violations = [](const std::string& name) {
    const house::Sources sources = {{"include/palladium/api.hpp", "#  include \"" + name + "\"\n"}};
    return house::arrows(sources).size() + house::public_headers(sources).size();
  };
  CHECK(violations("Palladium needs C++20, as said above") == 0);
  CHECK(violations("Palladium needs C++17, as said above") == 2);
}

TEST_CASE("reads of operations by position are found outside of the graph") {
  for (const char* line : {"if (op >= Op::Neg && op <= Op::Select) {", "if (op < graph::Op::Add)",
                           "const auto d = inst.attr.ints[0];", "for (auto d : i.attr.ints)"}) {
    INFO(line);
    CHECK(house::positions({{"codegen/passes/places.cpp", line}}).size() == 1);
    CHECK(house::positions({{"codegen/graph/simplify.cpp", line}}).empty());
  }
  for (const char* line : {"if (i.op == Op::Load) {", "std::vector<graph::Op> ops;",
                           "add(Op::Lt, {a, b});", "return op == Op::Max ? a : b;"}) {
    INFO(line);
    CHECK(house::positions({{"codegen/passes/places.cpp", line}}).empty());
  }
}

TEST_CASE("a search in text is found from the passes to the printer, and nowhere else") {
  for (const char* line : {"if (text.starts_with(name))", "if (line.find(\"e\") != line.npos)",
                           "return text.find('[') != text.npos;", "if (names_identifier(text, n))",
                           "const std::string rest = text.substr(3);"}) {
    INFO(line);
    CHECK(house::searches({{"codegen/lowered/effects.cpp", line}}).size() == 1);
    CHECK(house::searches({{"codegen/expand/nest.cpp", line}}).size() == 1);
    CHECK(house::searches({{"codegen/cuda/printer.cpp", line}}).size() == 1);
    CHECK(house::searches({{"codegen/cuda/lineinfo.cpp", line}}).empty());
    CHECK(house::searches({{"codegen/device/library.cpp", line}}).empty());
  }
  for (const char* line : {"const auto it = memo_.find(key);", "std::ranges::find(list, x)"}) {
    INFO(line);
    CHECK(house::searches({{"codegen/expand/nest.cpp", line}}).empty());
  }
}

TEST_CASE("a comparison of architectures is found behind the graph, and nowhere else") {
  for (const char* line :
       {"if (l.machine.compute_capability >= 90) return;", "return cc != 90;",
        "if (cc < Machine::first_with_tma)", "return 80 <= l.machine.compute_capability;"}) {
    INFO(line);
    CHECK(house::architectures({{"codegen/lowered/effects.cpp", line}}).size() == 1);
    CHECK(house::architectures({{"codegen/passes/sends.cpp", line}}).size() == 1);
    CHECK(house::architectures({{"codegen/expand/nest.cpp", line}}).size() == 1);
    CHECK(house::architectures({{"codegen/cuda/lower.cpp", line}}).size() == 1);
    CHECK(house::architectures({{"codegen/lowered/machine.cpp", line}}).empty());
    CHECK(house::architectures({{"codegen/thread/occupancy.cpp", line}}).empty());
  }
  for (const char* line : {"if (l.machine.has_tma()) run();", "f(x.compute_capability);",
                           "int compute_capability = 75;", "x << cc << y;"}) {
    INFO(line);
    CHECK(house::architectures({{"codegen/passes/sends.cpp", line}}).empty());
  }
}

TEST_CASE("a wait or an arrival that a pass makes by hand is found") {
  for (const char* line : {"out.push_back({Sync{}, at});", "list.insert(i, {Wait{barrier}, at});",
                           "WaitGroup done{.kind = kind};", "first.push_back({lowered::Fence{}});",
                           "body.push_back({Close{}, where});", "Arrive arrive{.barrier = b};",
                           "done.push_back({Arrive{.barrier = empty, .back = 1}, at});"}) {
    INFO(line);
    CHECK(house::waits({{"codegen/passes/sends.cpp", line}}).size() == 1);
    CHECK(house::waits({{"codegen/passes/order_accesses.cpp", line}}).empty());
    CHECK(house::waits({{"codegen/expand/fetch.cpp", line}}).empty());
  }
  for (const char* line :
       {"if (is<Wait>(s)) return;", "struct Close {", "const Sync& sync = *x;"}) {
    INFO(line);
    CHECK(house::waits({{"codegen/passes/sends.cpp", line}}).empty());
  }
}

TEST_CASE("the log library, NVTX and file functions outside their door are found") {
  for (const char* line :
       {"#include <spdlog/spdlog.h>", "int f = ::open(path, 0);", "if (std::rename(a, b)) {",
        "int f = open(path, O_RDONLY);", "mkdir(path, 0700);", "std::ifstream in(path);",
        "std::filesystem::remove(path);", "FILE* f;", "auto* f = std::fopen(path, mode);",
        "#include <nvtx3/nvToolsExt.h>", "nvtxRangePop();"}) {
    INFO(line);
    CHECK(house::doors({{"cache/store.cpp", line}}).size() == 1);
    CHECK(house::doors({{"tests/cache/store_test.cpp", line}}).empty());
  }
  for (const char* line :
       {"files::rename(a, b);", "functions().open(path, 0, 0);", "table->open(path);",
        "// rename() is atomic", "say(\"open(2) failed\");", "void reopen(int);",
        "rename(registers, names);", "std::optional<int> open(std::span<const int> indices);",
        "char quote = '\"'; reopen(1);"}) {
    INFO(line);
    CHECK(house::doors({{"cache/store.cpp", line}}).empty());
  }
  CHECK(house::doors({{"codegen/base/files.cpp", "::open(path, 0);"}}).empty());
}

TEST_CASE("processes by their bare numbers are found, in every folder") {
  for (const char* line :
       {"::kill(worker_, SIGKILL);", "while (waitpid(child, &status, 0) < 0) {",
        "const pid_t child = ::fork();", "if (fork() == 0) run();", "killpg(group, 9);",
        "::wait(nullptr);", "return ::waitid(P_ALL, 0, &info, WEXITED);"}) {
    INFO(line);
    for (const char* path : {"tools/compile/keeper.cpp", "runtime/build/jobs.cpp",
                             "tests/a_test.cpp", "benchmarks/a_benchmark.cpp"})
      CHECK(house::processes({{path, line}}).size() == 1);
    CHECK(house::processes({{"codegen/base/process.cpp", line}}).empty());
  }
  for (const char* line :
       {"child.kill();", "worker_->process->kill();", "process::Child::fork(body);",
        "// a child of fork() has one thread", "say(\"fork() failed\");", "future.wait();",
        "condition.wait(lock);", "bool Channel::wait(short events)", "int skill(int);"}) {
    INFO(line);
    CHECK(house::processes({{"tools/compile/keeper.cpp", line}}).empty());
  }
}

TEST_CASE("a member of Array that Outputs lacks is found, and each that there is") {
  house::Sources sources = tree();
  std::string& array = sources["include/palladium/array.hpp"];
  std::string& outputs = sources["include/palladium/outputs.hpp"];
  const std::string whole = outputs, first = "  const Shape& shape() const";
  REQUIRE(array.find(first) != array.npos);
  array.insert(array.find(first),
               "  template <class T>\n  T* first(int n = f({1})) const { return g(n); }\n");
  CHECK(house::array_members(sources) ==
        house::Violations{"Outputs lacks a member of Array: first, of which there are 1"});
  sources = tree();
  sources["include/palladium/outputs.hpp"].clear();
  const auto names = house::array_members(sources);
  for (const char* name : {"operator bool,",
                           "astype,",
                           "bytes,",
                           "copy,",
                           "device,",
                           "dtype,",
                           "fill,",
                           "is_dense,",
                           "is_read_only,",
                           "rank,",
                           "reshape,",
                           "shape,",
                           "size,",
                           "storage,",
                           "stride,",
                           "to,",
                           "to_dlpack,",
                           "to_dlpack_versioned,",
                           "type,",
                           "values, of which there are 2",
                           "data, of which there are 2"}) {
    INFO(name << listed(names));
    CHECK(std::ranges::any_of(names, [&](const std::string& violation) {
      return violation.find(": " + std::string(name)) != violation.npos;
    }));
  }
  CHECK(names.size() == 21);
}
