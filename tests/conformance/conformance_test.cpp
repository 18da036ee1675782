// The hardware checks without the hardware: every one runs on the emulator and compiles, so that
// none is broken when a GPU is there.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "codegen/device/waist.hpp"
#include "codegen/device/wgmma.hpp"
#include "palladium/error.hpp"
#include "tests/conformance/run.hpp"
#include "tests/conformance/supervise.hpp"
#include "tests/emulator/waist_numbers.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/full.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::conformance;

namespace {

std::vector<const Case*> cases_of(const std::set<std::string>& families, bool slow = false) {
  std::vector<const Case*> found;
  for (const Case& c : all_cases())
    if (families.contains(c.family()) && c.slow == slow) found.push_back(&c);
  return found;
}

/// The arrays with one element of array `k` replaced by what it never may be.
Arrays spoiled(const Case& c, Arrays arrays, std::size_t k) {
  const test::NumberType& t = test::number_type(c.arrays[k].type);
  const auto size = static_cast<std::size_t>(t.bytes);
  const std::size_t at = arrays[k].size() / size / 2 * size;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &arrays[k][at], size);
  // NaN where there is a number and a number where there is NaN; of integers the lowest bit.
  const std::uint64_t nan = test::low_bits(8 * t.bytes - 1);
  if (!t.is_float)
    bits ^= 1;
  else
    bits = std::isnan(test::value_of(t, bits)) ? 0 : nan;
  std::memcpy(&arrays[k][at], &bits, size);
  return arrays;
}

/// What the chip should refuse the emulator reports, with the line.
void emulate_refused(const Case& c) {
  std::string told;
  try {
    (void)run_emulator(c);
  } catch (const InternalError& error) {
    told = error.what();
  }
  INFO(told);
  CHECK(told.find("\n  emitted line ") != told.npos);
  CHECK(expected(c) == std::nullopt);
}

/// What the emulator lacks is nothing to compare with.
bool has_no_claims(const Case& c) {
  return std::ranges::all_of(c.arrays, [](const Array& a) {
    return !a.output || a.agreement == Agreement::any || a.reference != nullptr;
  });
}

/// Each agrees with its formulas whatever runs first, does something, and is judged by all that it
/// does.
void emulate(const std::set<std::string>& families) {
  const auto cases = cases_of(families);
  REQUIRE(!cases.empty());
  for (const Case* c : cases) {
    INFO(c->name << "\n" << c->text);
    if (!c->emulated) {
      CHECK(has_no_claims(*c));
      CHECK(c->answer != nullptr);
      continue;
    }
    if (c->outcome == Outcome::refused) {
      emulate_refused(*c);
      continue;
    }
    Arrays arrays, otherwise;
    REQUIRE_NOTHROW(arrays = run_emulator(*c));
    REQUIRE_NOTHROW(otherwise =
                        run_emulator(*c, emulator::Asynchrony::lazy, emulator::Schedule::lifo));
    const Verdict verdict = judge(*c, arrays, otherwise);
    CHECK(verdict.problem == "");
    if (c->answer) CHECK(verdict.answer != "");
    bool moved = false;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      moved |= arrays[i] != c->arrays[i].bytes;
      INFO("array " << i);
      if (c->arrays[i].output && c->arrays[i].agreement != Agreement::any)
        CHECK(judge(*c, arrays, spoiled(*c, arrays, i)).problem != "");
    }
    CHECK(moved);  // else it would agree with a kernel that does nothing
  }
}

/// In bunches that NVRTC takes quickly; a text with declarations of its own alone.
void compiled(std::vector<const Case*> cases) {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  REQUIRE(!cases.empty());
  while (!cases.empty()) {
    std::vector<const Case*> bunch = {cases.back()};
    cases.pop_back();
    while (!bunch[0]->alone && !cases.empty() && !cases.back()->alone && bunch.size() < 12) {
      bunch.push_back(cases.back());
      cases.pop_back();
    }
    std::string names;
    for (const Case* c : bunch) names += c->name + "\n";
    const nvrtc::Result result = compile(bunch, "sm_90a");
    INFO(names << result.log);
    REQUIRE(result.ok);
    CHECK(complaints(result) == "");
  }
}

/// Which fragments of A of the products in a text no wgmma_registers keeps in place, and where: the
/// first that is missing between the last wait and the fence, or behind the wait.
std::string unpinned(const std::string& text) {
  const std::string pin = "pl::wgmma_registers(", wait = "pl::wgmma_wait<";
  for (std::size_t at = 0; (at = text.find("_rs", at)) != text.npos; ++at) {
    const std::size_t open = text.find('(', at), comma = text.find(", ", open);
    if (open == text.npos || text.find('\n', at) < comma) continue;
    const std::size_t end = text.find_first_of("[,", comma + 2);
    const std::string name = text.substr(comma + 2, end - comma - 2);
    const std::size_t fence = text.rfind("pl::wgmma_fence()", at), before = text.rfind(wait, at),
                      after = text.find(wait, at), next = text.find("pl::wgmma_fence()", after);
    const auto pinned = [&](std::size_t from, std::size_t to) {
      for (const char* behind : {"[", ")"})
        if (text.substr(from, to - from).find(pin + name + behind) != text.npos) return true;
      return false;
    };
    if (!pinned(before == text.npos ? 0 : before, fence)) return name + " before the fence";
    if (!pinned(after, next)) return name + " after the wait";
  }
  return {};
}

std::string program() { return test::binary_dir() + "/gpu_conformance"; }

}  // namespace

TEST_CASE("the checks' texts pin the registers of products after each wait") {
  for (const Case& c : all_cases()) {
    INFO(c.name << "\n" << c.text);
    CHECK(test::unpinned_registers(c.text).empty());
  }
}

TEST_CASE("every function of the waist has a hardware check") {
  std::string all;
  for (const Case& c : all_cases()) all += c.text;
  for (const device::RowInfo& f : device::rows()) {
    INFO(f.name);
    const std::string call = "pl::" + std::string(f.name);
    bool found = false;
    for (std::size_t at = all.find(call); at != all.npos && !found; at = all.find(call, at + 1)) {
      const char next = all[at + call.size()];
      found = next == '(' || next == '<';
    }
    CHECK(found);
  }
}

TEST_CASE("every product of wgmma has a hardware check") {
  std::string all;
  for (const Case& c : all_cases()) all += c.text;
  for (const device::Wgmma& op : device::wgmma_variants()) {
    INFO(op.name());
    const bool found = all.find("pl::" + op.name() + "(") != all.npos ||
                       all.find("pl::" + op.name() + "<") != all.npos;
    CHECK(found);
  }
}

TEST_CASE("hardware checks have names and entries of their own") {
  std::set<std::string> names, entries;
  for (const Case& c : all_cases()) {
    INFO(c.name);
    CHECK(names.insert(c.name).second);
    CHECK((c.alone || entries.insert(c.entry).second));
    CHECK(c.text.find("PL_EXPORT(" + c.entry + ")") != c.text.npos);
    CHECK(c.shared_bytes <= 227 * 1024);
  }
}

TEST_CASE("A in registers is pinned before the fence and after the wait of each product") {
  int products = 0;
  for (const Case& c : all_cases()) {
    INFO(c.name);
    products += c.text.find("_rs") != c.text.npos;
    CHECK(unpinned(c.text) == "");
  }
  CHECK(products > 20);
  const std::string pin = "  pl::wgmma_registers(a);\n", fence = "  pl::wgmma_fence();\n",
                    product = "  pl::wgmma_m64n8k16_f32_bf16_bf16_rs<true>(d, a[k], b, true);\n",
                    wait = "  pl::wgmma_wait<0>();\n";
  CHECK(unpinned(pin + fence + product + wait + pin) == "");
  CHECK(unpinned(fence + product + wait + pin) == "a before the fence");
  CHECK(unpinned(pin + fence + product + wait) == "a after the wait");
  CHECK(unpinned(pin + fence + product + wait + pin + fence + product + wait + pin) == "");
  CHECK(unpinned(pin + fence + product + wait + fence + product + wait + pin) ==
        "a after the wait");
}

TEST_CASE("hardware checks of ids, barriers, memory and control run on the emulator") {
  emulate({"ids", "barrier", "memory", "control"});
}
TEST_CASE("hardware checks of warps, conversions and arithmetic run on the emulator") {
  emulate({"warp", "types", "convert", "arithmetic"});
}
TEST_CASE("hardware checks of elementary functions run on the emulator") { emulate({"math"}); }
TEST_CASE("hardware checks of fragments run on the emulator") { emulate({"mma", "reduce", "dot"}); }
TEST_CASE("hardware checks of atomics run on the emulator") { emulate({"atomic"}); }
TEST_CASE("hardware checks of barriers, clusters and copies run on the emulator") {
  emulate({"mbarrier", "fence", "cp_async", "bulk", "cluster"});
}
TEST_CASE("hardware checks of TMA run on the emulator") { emulate({"tma"}); }
TEST_CASE("hardware checks of wgmma run on the emulator") { emulate({"wgmma"}); }
TEST_CASE("hardware checks of whole kernels run on the emulator") { emulate({"kernels"}); }

TEST_CASE("sweeps over all numbers run on samples of them on the emulator") { emulate({"sweep"}); }
TEST_CASE("questions to the chip that the emulator understands run on it") {
  emulate({"question"});
}

TEST_CASE("every family of hardware checks is run by a test") {
  const std::set<std::string> run = {
      "ids",  "barrier", "memory", "control", "warp",    "types", "convert",  "arithmetic",
      "math", "mma",     "reduce", "dot",     "atomic",  "fence", "mbarrier", "cp_async",
      "bulk", "cluster", "tma",    "wgmma",   "kernels", "sweep", "question"};
  for (const Case& c : all_cases()) {
    INFO(c.name);
    CHECK(run.contains(c.family()));
  }
}

TEST_CASE("NVRTC takes the hardware checks of single numbers") {
  compiled(cases_of({"warp", "types", "convert", "arithmetic"}));
}
TEST_CASE("NVRTC takes the hardware checks of elementary functions") {
  compiled(cases_of({"math"}));
}
TEST_CASE("NVRTC takes the hardware checks of blocks and memory") {
  compiled(cases_of({"ids", "barrier", "memory", "control", "mma", "reduce", "dot"}));
}
TEST_CASE("NVRTC takes the hardware checks of atomics, clusters and copies") {
  compiled(cases_of({"atomic", "mbarrier", "fence", "cp_async", "bulk", "cluster"}));
}
TEST_CASE("NVRTC takes the hardware checks of TMA and whole kernels") {
  compiled(cases_of({"tma", "kernels"}));
}
TEST_CASE("NVRTC takes the sweeps and the questions to the chip") {
  compiled(cases_of({"sweep", "question"}));
}
TEST_CASE("NVRTC takes the hardware checks of wgmma") {
  std::vector<const Case*> cases = cases_of({"wgmma"});
  // Of types and widths all, of the ways in which operands lie ("wgmma/bf16: A ...") every third.
  std::size_t ways = 0;
  std::erase_if(cases, [&](const Case* c) {
    return !test::is_full() && c->name.find(':') != std::string::npos && ++ways % 3 != 0;
  });
  compiled(std::move(cases));
}

TEST_CASE("a result that differs is told with its place and numbers") {
  Case c;
  c.output("f32", 4);
  Arrays emulated = {Case::bytes_of(std::vector<float>{1, 2, 3, 4})};
  Arrays got = {Case::bytes_of(std::vector<float>{1, 2, 3.5f, 5})};
  CHECK(judge(c, emulated, emulated).problem == "");
  CHECK(judge(c, emulated, got).problem ==
        "array 0 (f32): 2 of 4 elements differ, the first is 2: 0x40600000 (3.5), emulator "
        "0x40400000 (3)");
  // A zero's sign counts, a NaN's payload does not.
  CHECK(judge(c, {Case::bytes_of(std::vector<float>{0, 0, 0, 0})},
              {Case::bytes_of(std::vector<float>{0, -0.0f, 0, 0})})
            .problem.starts_with("array 0 (f32): 1 of 4"));
  const std::vector<std::uint32_t> a = {0x7fc00000, 0x7fffffff, 0, 0},
                                   b = {0xffc00001, 0x7fc00000, 0, 0};
  CHECK(judge(c, {Case::bytes_of(a)}, {Case::bytes_of(b)}).problem == "");

  c.arrays[0].agreement = Agreement::near;
  c.arrays[0].bound = 1;
  c.arrays[0].label = "sum";
  const Verdict near = judge(c, emulated, got);
  CHECK(near.problem == "");
  CHECK(near.measured["sum"]["error"] == 1.0);
  c.arrays[0].bound = 0.75;
  CHECK(judge(c, emulated, got).problem.find("worst error 1 where 0.75 is allowed") !=
        std::string::npos);

  c.arrays[0].agreement = Agreement::ulp;
  c.arrays[0].bound = 1;
  c.arrays[0].reference = [](std::size_t i) { return 1.0L + static_cast<long double>(i); };
  CHECK(judge(c, emulated, emulated).problem == "");
  CHECK(judge(c, emulated, got).problem.find("wanted 3") != std::string::npos);
}

TEST_CASE("a check that crashes or hangs costs no other") {
  const test::Folder folder;
  const std::string file = folder / "results.json";
  const test::Finished done = test::run_program(
      {program(), "--emulate", "--json", file, "--timeout", "2", "--start", "8", "--jobs", "2",
       "--crash", "barrier/block_sync", "--hang", "barrier/warp_sync", "barrier/", "ids/"},
      {{"PATH", std::getenv("PATH")}});
  INFO(done.out << done.err);
  CHECK(done.status == 1);
  const auto report = nlohmann::json::parse(test::text_of(file));
  CHECK(report["failed"] == 2);
  CHECK(report["total"] == report["checks"].size());
  std::map<std::string, std::string> states;
  for (const auto& check : report["checks"]) states[check["name"]] = check["state"];
  CHECK(states["barrier/block_sync"] == "crashed");
  CHECK(states["barrier/warp_sync"] == "hung");
  for (const auto& [name, state] : states) {
    INFO(name);
    if (name != "barrier/block_sync" && name != "barrier/warp_sync") CHECK(state == "passed");
  }
}

TEST_CASE("checks that may cost the context come last, each in a process of its own") {
  const test::Folder folder;
  const std::string file = folder / "results.json", deadly = "question/store of a box of u32";
  const test::Finished done =
      test::run_program({program(), "--emulate", "--json", file, "--jobs", "2", "--crash",
                         deadly + " at 4, 2", deadly, "ids/", "barrier/"},
                        {{"PATH", std::getenv("PATH")}});
  INFO(done.out << done.err);
  CHECK(done.status == 1);
  const auto report = nlohmann::json::parse(test::text_of(file));
  CHECK(report["failed"] == 1);
  bool behind = false;
  std::set<int> processes;
  std::size_t last = 0;
  for (const auto& check : report["checks"]) {
    const bool is_last = check["name"].get<std::string>().starts_with(deadly);
    CHECK(is_last >= behind);
    behind = is_last;
    last += is_last;
    if (is_last && check.contains("process"))
      CHECK(processes.insert(check["process"].get<int>()).second);
  }
  CHECK(last == 13);
  CHECK(processes.size() == 12);  // one has crashed
}

TEST_CASE("without a GPU gpu_conformance lists its checks") {
  const test::Finished done = test::run_program(
      {program(), "--full"}, {{"PALLADIUM_LIBCUDA", "/nonexistent/libcuda.so.1"}});
  CHECK(done.status == 0);
  CHECK(done.out.ends_with(
      fmt::format("gpu_conformance: no GPU, {} checks would run\n", all_cases().size())));
  CHECK(done.out.starts_with(all_cases().front().name + "\n"));
}

TEST_CASE("on a driver that runs no kernel every check launches, and differs") {
  const test::Folder folder;
  const std::string file = folder / "results.json";
  const test::Finished done = test::run_program(
      {program(), "--json", file, "--jobs", "2", "barrier/", "tma/load rank 2", "tma/store rank 5",
       "cluster/", "memory/200", "wgmma/two", "kernels/attention of 256", "kernels/gemm 256"},
      {{"PALLADIUM_LIBCUDA", test::binary_dir() + "/tests/fake/libcuda.so.1"},
       {"PATH", std::getenv("PATH")}});
  INFO(done.out << done.err);
  CHECK(done.status == 1);
  const auto report = nlohmann::json::parse(test::text_of(file));
  CHECK(report["total"] == report["checks"].size());
  CHECK(report["checks"].size() > 20);
  for (const auto& check : report["checks"]) {
    INFO(check.dump(1));
    CHECK(check["state"] == "failed");
    CHECK(check.value("detail", "").find("elements differ") != std::string::npos);
  }
}

TEST_CASE("gpu_check without a GPU lists its checks and succeeds") {
  const test::Finished done =
      test::run_program({test::source_dir() + "/scripts/gpu_check", "--bin", test::binary_dir()},
                        {{"PALLADIUM_LIBCUDA", "/nonexistent/libcuda.so.1"}});
  INFO(done.err);
  CHECK(done.status == 0);
  const std::size_t last = done.out.rfind("gpu_check: no GPU, ");
  REQUIRE(last != std::string::npos);
  int checks = 0;
  for (const char* kind : {"conformance: ", "test: ", "compute-sanitizer: "}) {
    int lines = 0;
    for (std::size_t at = 0;
         (at = done.out.find("\n" + std::string(kind), at)) != std::string::npos; ++at)
      ++lines;
    checks += lines + done.out.starts_with(kind);
    if (std::string(kind) != "test: ") CHECK(lines > 50);
  }
  CHECK(done.out.substr(last) == fmt::format("gpu_check: no GPU, {} checks would run\n", checks));
}

TEST_CASE("gpu_check refuses steps that it has not") {
  for (const char* steps : {"kernel", "tests,kernel", ""}) {
    const test::Finished done = test::run_program(
        {test::source_dir() + "/scripts/gpu_check", "--steps", steps, "--bin", test::binary_dir()},
        {{"PALLADIUM_LIBCUDA", "/nonexistent/libcuda.so.1"}});
    INFO(steps << done.err);
    CHECK(done.status == 2);
    CHECK(done.err.find("conformance,tests,demo,kernels") != std::string::npos);
  }
}

TEST_CASE("gpu_pack makes a small folder that checks by itself") {
  const test::Folder folder;
  const std::string pack = folder / "gpu";
  const test::Finished packed =
      test::run_program({test::source_dir() + "/scripts/gpu_pack", "--from", test::binary_dir(),
                         "--into", pack, "--kernels", folder / "none", "--lean"},
                        {{"PATH", std::getenv("PATH")}});
  INFO(packed.out << packed.err);
  REQUIRE(packed.status == 0);
  CHECK(packed.out.find("MiB  in all; needs glibc 2.") != std::string::npos);
  for (const char* name : {"programs.tar.xz", "gpu_check", "emulator_cxx"}) {
    INFO(name);
    CHECK(files::exists(pack + "/" + name));
  }
  const test::Finished done = test::run_program(
      {pack + "/gpu_check"}, {{"PALLADIUM_LIBCUDA", "/nonexistent/libcuda.so.1"}});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  for (const char* name : {"gpu_conformance", "test_emulator", "test_interpreter", "palladium",
                           "palladium-compile", "palladium_demo"}) {
    INFO(name);
    CHECK(files::exists(pack + "/" + name));
  }
  CHECK(done.out.find("\ngpu_check: no GPU, ") != std::string::npos);
}

TEST_CASE("emulator_cxx hands out what it has kept and compiles the rest") {
  const test::Folder folder;
  const std::string source = folder / "a.cu", object = folder / "a.so", kept = folder / "kept";
  REQUIRE(files::make_directories(kept));
  REQUIRE(files::publish(source, "extern \"C\" int answer() { return 42; }\n"));
  const std::vector<std::string> command = {test::source_dir() + "/scripts/emulator_cxx",
                                            "-x",
                                            "c++",
                                            "-shared",
                                            "-fPIC",
                                            "-o",
                                            object,
                                            source};
  const auto run = [&](const char* path) {
    return test::run_program(command, {{"PATH", path}, {"EMULATED_OBJECTS", kept}}).status;
  };
  // Tools, but no compiler.
  const std::string tools = folder / "tools";
  REQUIRE(files::make_directories(tools));
  for (const char* tool : {"bash", "sha256sum", "gzip", "dirname", "env"}) {
    const auto found =
        test::run_program({"/usr/bin/env", "which", tool}, {{"PATH", std::getenv("PATH")}});
    REQUIRE(::symlink(found.out.substr(0, found.out.find('\n')).c_str(),
                      (tools + "/" + tool).c_str()) == 0);
  }
  CHECK(run(tools.c_str()) == 127);
  CHECK(run(std::getenv("PATH")) == 0);
  REQUIRE(files::remove(object));
  CHECK(run(tools.c_str()) == 0);
  CHECK(files::exists(object));
}
