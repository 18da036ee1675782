// The cache as kernels see it: what is stored serves, what is damaged costs time and nothing else.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "codegen/base/files.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/program.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::Environment;
using test::Folder;
using test::run_hidden;

namespace {

constexpr const char* arch = "sm_90a";

struct Fixture {
  Folder folder;
  Environment root{"PALLADIUM_CACHE_DIR", folder.path()};

  std::string entry() const {
    const auto list = runtime::store().list();
    REQUIRE(list.size() == 1);
    return list[0].path;
  }
};

Lowered doubling(const char* name = "doubling", Location at = here()) {
  return pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.f; },
                     {.name = name, .out_type = {{128}, f32}}, at)
      .lower(ShapeDtype{{128}, f32});
}

/// How the error of a kernel that was made in this line ends.
auto blames(int line) {
  return Catch::Matchers::EndsWith("\n  at warm_test.cpp:" + std::to_string(line));
}

bool same_bytes(const Compiled& a, const Compiled& b) {
  return a.cubin().size() == b.cubin().size() &&
         std::memcmp(a.cubin().data(), b.cubin().data(), a.cubin().size()) == 0;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a kernel is compiled once and then found") {
  const Compiled cold = doubling().compile({.arch = arch});
  CHECK(!cold.from_cache());
  CHECK(cold.times().nvrtc > 0);
  CHECK(cold.resources().registers > 0);
  const Compiled warm = doubling().compile({.arch = arch});
  CHECK(warm.from_cache());
  CHECK(warm.times().nvrtc == 0);
  CHECK(warm.key() == cold.key());
  CHECK(same_bytes(warm, cold));
  CHECK(warm.ptx() == cold.ptx());
  CHECK(warm.cuda_source() == cold.cuda_source());
  CHECK(warm.resources() == cold.resources());
}

TEST_CASE_METHOD(Fixture, "each architecture has an entry of its own") {
  const Compiled hopper = doubling().compile({.arch = "sm_90a"});
  const Compiled turing = doubling().compile({.arch = "sm_75"});
  CHECK(!turing.from_cache());
  CHECK(hopper.key() != turing.key());
  CHECK(runtime::store().list().size() == 2);
}

TEST_CASE_METHOD(Fixture, "whatever happens to the entry changes speed only") {
  const Compiled cold = doubling().compile({.arch = arch});
  const std::string path = entry();
  const std::string good = test::text_of(path);
  const auto damages = std::vector<std::function<void()>>{
      [&] { REQUIRE(files::remove(path)); },
      [&] { REQUIRE(files::publish(path, "")); },
      [&] { REQUIRE(files::publish(path, good.substr(0, good.size() / 2))); },
      [&] { REQUIRE(files::publish(path, good + "x")); },
      [&] {
        std::string flipped = good;
        flipped[good.size() / 2] ^= 1;
        REQUIRE(files::publish(path, flipped));
      },
      [&] { REQUIRE(files::publish(path, std::string(good.size(), '\0'))); },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    damages[i]();
    const test::CapturedStderr log;
    const Compiled again = doubling().compile({.arch = arch});
    CHECK(!again.from_cache());
    CHECK(same_bytes(again, cold));
    CHECK(doubling().compile({.arch = arch}).from_cache());
    // A file that is gone needs no words, any other damage one line.
    const std::string text = log.text();
    CHECK(std::ranges::count(text, '\n') == (i == 0 ? 0 : 1));
    CHECK((text.find("is not used: ") != std::string::npos) == (i != 0));
  }
}

TEST_CASE_METHOD(Fixture, "an entry whose launch attributes are not ours is a miss") {
  doubling().compile({.arch = arch});
  const cache::Store store = runtime::store();
  auto entry = *store.load(store.list().at(0));
  for (const char* launch : {"{}", "not JSON", "[1]", R"({"entry": 1})"}) {
    entry.metadata.launch = launch;
    REQUIRE(store.publish(entry));
    CHECK(!doubling().compile({.arch = arch}).from_cache());
  }
}

TEST_CASE("a cache that cannot be used costs time and nothing else") {
  const Folder folder;
  REQUIRE(files::publish(folder / "file", "not a folder"));
  for (const std::string& root : {folder / "file", std::string("/proc/none"), std::string("")}) {
    const Environment cache("PALLADIUM_CACHE_DIR", root);
    const Environment xdg("XDG_CACHE_HOME", "/proc/none");
    const test::CapturedStderr quiet;
    const Compiled compiled = doubling().compile({.arch = arch});
    CHECK(!compiled.from_cache());
    CHECK(compiled.cubin().size() > 100);
  }
}

TEST_CASE_METHOD(Fixture, "a program is told once of a cache that it cannot trust") {
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  const test::CapturedStderr log;
  for (const char* name : {"a", "b", "c"})
    CHECK_FALSE(doubling(name).compile({.arch = arch}).from_cache());
  INFO(log.text());
  CHECK_THAT(log.text(), ContainsSubstring("is writable by others (mode 777)"));
  CHECK(std::ranges::count(log.text(), '\n') == 1);
}

TEST_CASE("the key of a kernel holds neither lines nor the names of C++ variables or symbols") {
  const auto make = [](const char* rows) {
    return ops::find("softmax").factory().lower(ShapeDtype{{dim(rows), 1000}, f32});
  };
  CHECK(make("m").key({.arch = arch}) == make("rows").key({.arch = arch}));
  const Kernel first =
      pallas_call([](Ref x, Ref o) { o[_] = x[_] + 1.f; }, {.name = "k", .out_type = {{8}, f32}});
  const Kernel second = pallas_call(
      [](Ref input, Ref output) {
        const Value loaded = input[_];
        output[_] = loaded + 1.f;
      },
      {.name = "k", .out_type = {{8}, f32}});
  const ShapeDtype eight{{8}, f32};
  CHECK(first.lower(eight).key({.arch = arch}) == second.lower(eight).key({.arch = arch}));
}

TEST_CASE("the key of a kernel holds all that its cubin depends on") {
  const ShapeDtype eight{{8}, f32};
  const auto key = [&](const PallasCallOptions& options, float factor = 2) {
    return pallas_call([=](Ref x, Ref o) { o[_] = x[_] * factor; }, options)
        .lower(eight)
        .key({.arch = arch});
  };
  const std::string base = key({.name = "k", .out_type = eight});
  CHECK(key({.name = "k", .out_type = eight}) == base);
  CHECK(key({.name = "l", .out_type = eight}) != base);
  CHECK(key({.name = "k", .out_type = eight}, 3) != base);
  CHECK(key({.name = "k", .out_type = eight, .grid = {2}}) != base);
  CHECK(key({.name = "k", .out_type = eight, .input_output_aliases = {{0, 0}}}) != base);
  CHECK(key({.name = "k", .out_type = eight, .compiler_params = {.approx_math = true}}) != base);
}

TEST_CASE("a call and lower with a symbol that says as much arrive at one key") {
  // The length of a row is its block's.
  const Kernel twice =
      pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2; },
                  [](ShapeDtype x) {
                    const std::int64_t n = x.shape[1];
                    const BlockSpec row{{1, n}, [](Index i) { return Indices{i, 0}; }};
                    return PallasCallOptions{.name = "rows",
                                             .out_type = x,
                                             .grid = {x.shape[0]},
                                             .in_specs = {row},
                                             .out_specs = {row}};
                  });
  const Array x = Array::zeros({77, 1000}, f32);
  CHECK(twice.lower(x).key({.arch = arch}) ==
        twice.lower(ShapeDtype{{dim("m", {.at_most = 1 << 20}), 1000}, f32}).key({.arch = arch}));
  CHECK(twice.lower(x).key({.arch = arch}) !=
        twice.lower(ShapeDtype{{dim("m"), 1000}, f32}).key({.arch = arch}));
  // Rows at odd addresses cannot be accessed in wide pieces: that is another kernel.
  const Array odd = Array::view(static_cast<float*>(x.data()) + 1, {70, 1000}, f32);
  CHECK(twice.lower(odd).key({.arch = arch}) != twice.lower(x).key({.arch = arch}));
}

TEST_CASE_METHOD(Fixture, "with the JIT off a miss is an error that names kernel and cache") {
  const Environment off("PALLADIUM_JIT", "off");
  const Lowered strict = doubling("strict");
  CHECK_THROWS_WITH(strict.compile({.arch = arch}),
                    ContainsSubstring("'strict'") && ContainsSubstring("PALLADIUM_JIT=off") &&
                        ContainsSubstring(folder.path()) && blames(__LINE__ - 3));
}

TEST_CASE_METHOD(Fixture, "with the JIT off a filled cache serves") {
  doubling().compile({.arch = arch});
  const Environment off("PALLADIUM_JIT", "off");
  CHECK(doubling().compile({.arch = arch}).from_cache());
}

namespace {

std::vector<Lowered> shipped() {
  std::vector<Lowered> result;
  for (const ops::Entry& e : ops::registry())
    result.push_back(e.factory().lower(std::vector<ArgType>(e.inputs.begin(), e.inputs.end())));
  return result;
}

}  // namespace

TEST_CASE("HIDDEN no NVRTC and a filled cache", "[.]") {
  for (const Lowered& lowered : shipped()) CHECK(lowered.compile({.arch = arch}).from_cache());
  CHECK(!doubling().key({.arch = arch}).empty());
  const Lowered missing = doubling();
  CHECK_THROWS_WITH(missing.compile({.arch = arch}),
                    ContainsSubstring("'doubling' for sm_90a is not in the cache: NVRTC 12.9 or "
                                      "newer is needed") &&
                        ContainsSubstring("PALLADIUM_NVRTC=/nonexistent") && blames(__LINE__ - 4));
}

TEST_CASE_METHOD(Fixture, "with NVRTC hidden a filled cache serves all shipped kernels") {
  for (const Lowered& lowered : shipped()) lowered.compile({.arch = arch});
  const test::Finished child =
      run_hidden("HIDDEN no NVRTC and a filled cache",
                 {{"PALLADIUM_NVRTC", "/nonexistent"}, {"PALLADIUM_CACHE_DIR", folder.path()}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}

TEST_CASE_METHOD(Fixture, "artefacts are written where PALLADIUM_DUMP asks for them") {
  const Folder dumps;
  const Environment what("PALLADIUM_DUMP", "graph,passes,cuda,ptx");
  const Environment where("PALLADIUM_DUMP_DIR", dumps / "deep/er");
  const Compiled compiled = doubling().compile({.arch = arch});
  const std::string stem = dumps / "deep/er/doubling." + compiled.key().substr(0, 6);
  CHECK_THAT(test::text_of(stem + ".graph"), ContainsSubstring("kernel doubling"));
  CHECK(!test::text_of(stem + ".passes").empty());
  int number = 0;
  for (const PassDump& p : doubling().passes({.arch = arch})) {
    CAPTURE(p.pass);
    CHECK(p.attempt == "4");  // it has one width
    const std::string padded = (number < 9 ? "0" : "") + std::to_string(number + 1);
    CHECK(test::text_of(stem + ".attempt-4.chosen/" + padded + "-" + p.pass + ".txt") == p.text);
    ++number;
  }
  CHECK(test::text_of(stem + ".cu") == compiled.cuda_source());
  CHECK(test::text_of(stem + ".full.cu").size() > compiled.cuda_source().size());
  CHECK(test::text_of(stem + ".ptx") == compiled.ptx());
}

namespace {

constexpr Target cpu_targets[] = {Target::interpreter, Target::emulator};

/// What kernel.KEY<suffix> holds; "" where there is none.
std::string dumped(const Folder& dumps, const std::string& kernel, const std::string& suffix) {
  std::string found;
  for (const std::string& name : dumps.names())
    if (name.starts_with(kernel + ".") && name.ends_with(suffix) &&
        std::ranges::count(name, '.') == 1 + std::ranges::count(suffix, '.'))
      found = test::text_of(dumps / name);
  return found;
}

Kernel doubled(const char* name) {
  return pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.f; },
                     {.name = name, .out_type = {{128}, f32}});
}

Array ones_of(std::int64_t n) { return Array::full({n}, f32, 1.0f); }

}  // namespace

TEST_CASE_METHOD(Fixture, "interpreter and emulator write the artefacts that a GPU's kernel has") {
  const Environment what("PALLADIUM_DUMP", "graph,passes,cuda,ptx");
  for (const Target target : cpu_targets) {
    CAPTURE(to_string(target));
    const Folder dumps;
    const Environment where("PALLADIUM_DUMP_DIR", dumps.path());
    const Kernel k = doubled("seen").on(target);
    const test::CapturedStderr log;
    CHECK(Array(k(ones_of(128))).values<float>()[5] == 2);
    const Lowered lowered = k.lower(ShapeDtype{{128}, f32});
    CHECK_THAT(dumped(dumps, "seen", ".graph"), ContainsSubstring("kernel seen"));
    CHECK(dumped(dumps, "seen", ".passes") == lowered.decisions());
    CHECK(dumped(dumps, "seen", ".cu") == lowered.cuda_source());
    CHECK_THAT(dumped(dumps, "seen", ".full.cu"), ContainsSubstring(lowered.cuda_source()));
    CHECK(dumped(dumps, "seen", ".ptx") == lowered.compile().ptx());
    const std::string words = "dump: kernel 'seen' runs on the " + std::string(to_string(target)) +
                              "; " + dumps.path() + "/seen." + lowered.key().substr(0, 6) +
                              ".* are what " + default_arch() + " gets";
    CHECK_THAT(log.text(), ContainsSubstring(words));
    k(ones_of(128));
    CHECK(log.text().find(words) == log.text().rfind(words));  // of each kernel once
  }
}

TEST_CASE_METHOD(Fixture, "of a list of artefacts those that are named are written, no others") {
  const Environment what("PALLADIUM_DUMP", "passes,cuda");
  for (const Target target : cpu_targets) {
    const Folder dumps;
    const Environment where("PALLADIUM_DUMP_DIR", dumps.path());
    doubled("some").on(target)(ones_of(128));
    CHECK(dumps.names().size() == 4);  // of passes a folder, too
    CHECK(!dumped(dumps, "some", ".passes").empty());
    CHECK(!dumped(dumps, "some", ".cu").empty());
  }
  const Folder none;
  const Environment nothing("PALLADIUM_DUMP", "");
  const Environment where("PALLADIUM_DUMP_DIR", none.path());
  doubled("none").on(Target::interpreter)(ones_of(128));
  CHECK(none.names().empty());
}

TEST_CASE_METHOD(Fixture, "what is not lowered runs on the interpreter, and its dump says why") {
  const Folder dumps;
  const Environment what("PALLADIUM_DUMP", "graph,passes,cuda,ptx");
  const Environment where("PALLADIUM_DUMP_DIR", dumps.path());
  const Kernel k =
      pallas_call(
          [](Ref x, Ref o, Ref s) {
            s[_] = broadcast_to(x[_], s.shape());
            o[_] = max(s[_], {.axis = 0});
          },
          {.name = "huge", .out_type = {{128}, f32}, .scratch_types = {gpu::SMEM({512, 128}, f32)}})
          .on(Target::interpreter);
  const test::CapturedStderr log;
  CHECK(Array(k(ones_of(128))).values<float>()[7] == 1);
  CHECK_THAT(dumped(dumps, "huge", ".graph"), ContainsSubstring("kernel huge"));
  for (const char* suffix : {".passes", ".cu", ".ptx"}) {
    CAPTURE(suffix);
    CHECK_THAT(dumped(dumps, "huge", suffix),
               Catch::Matchers::StartsWith("// kernel 'huge' is not lowered for sm_90a: ") &&
                   ContainsSubstring("bytes of shared memory"));
  }
  CHECK_THAT(log.text(), ContainsSubstring("dump: kernel 'huge' is not lowered for sm_90a"));
}

TEST_CASE_METHOD(Fixture, "a dump that has no folder is one line in the log, and no error") {
  REQUIRE(files::publish(folder / "file", "no folder"));
  const Environment what("PALLADIUM_DUMP", "graph,passes,cuda");
  const Environment where("PALLADIUM_DUMP_DIR", folder / "file/dumps");
  for (const Target target : cpu_targets) {
    const test::CapturedStderr log;
    CHECK(Array(doubled("unwritten").on(target)(ones_of(128))).values<float>()[5] == 2);
    const std::string text = log.text(), words = "dump: " + (folder / "file/dumps");
    CHECK_THAT(text, ContainsSubstring(words + ": ") && ContainsSubstring("Not a directory"));
    CHECK(text.find("Not a directory") == text.rfind("Not a directory"));
  }
}

TEST_CASE_METHOD(Fixture, "a dump on a full disk is one line in the log, and no error") {
  const Environment what("PALLADIUM_DUMP", "graph,passes,cuda");
  const Environment where("PALLADIUM_DUMP_DIR", folder.path());
  const Array x = ones_of(128);
  const test::CapturedStderr log;
  test::ReplacedFiles calls;
  calls->write = [](int, const void*, std::size_t) -> ssize_t {
    errno = ENOSPC;
    return -1;
  };
  CHECK(Array(doubled("full").on(Target::interpreter)(x)).values<float>()[5] == 2);
  calls.restore();
  const std::string text = log.text();
  CHECK_THAT(text, ContainsSubstring("No space left on device"));
  CHECK(text.find("No space left") == text.rfind("No space left"));
}

TEST_CASE("HIDDEN a dump without NVRTC", "[.]") {
  doubled("without").on(Target::interpreter)(ones_of(128));
  std::vector<std::string> names;
  REQUIRE(files::list(std::getenv("PALLADIUM_DUMP_DIR"), names));
  CHECK(names.size() == 1);
}

TEST_CASE("where there is no NVRTC a dump has no PTX, and the log says why") {
  const Folder folder;
  const test::Finished child =
      run_hidden("HIDDEN a dump without NVRTC", {{"PALLADIUM_NVRTC", "/nonexistent"},
                                                 {"PALLADIUM_DUMP", "graph,ptx"},
                                                 {"PALLADIUM_DUMP_DIR", folder / "dump"}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
  CHECK_THAT(child.err, ContainsSubstring("dump: no PTX of kernel 'without' for sm_90a: ") &&
                            ContainsSubstring("PALLADIUM_NVRTC=/nonexistent"));
}

TEST_CASE_METHOD(Fixture,
                 "kernels of any name are compiled, and dumped into the folder asked for") {
  const Folder outer;
  const Environment what("PALLADIUM_DUMP", "graph");
  const Environment where("PALLADIUM_DUMP_DIR", outer / "dumps");
  const std::string names[] = {
      "../../x", ".._.._x", "a\nb", "two words", "two_words", "\xff\xfe", std::string(10'000, 'n')};
  for (const std::string& name : names) {
    const Kernel kernel = pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.f; },
                                      {.name = name, .out_type = {{128}, f32}});
    CHECK_FALSE(kernel.lower(ShapeDtype{{128}, f32}).compile({.arch = arch}).cubin().empty());
    CHECK(kernel.lower(ShapeDtype{{128}, f32}).compile({.arch = arch}).from_cache());
  }
  CHECK(outer.names() == std::vector<std::string>{"dumps"});
  std::vector<std::string> files;
  REQUIRE(files::list(outer / "dumps", files));
  CHECK(files.size() == std::size(names));
}

namespace {

/// An NVRTC that loads, and refuses every program with a log.
constexpr const char* refusing_nvrtc = R"(
extern "C" {
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcVersion(int* major, int* minor) { *major = 13; *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int* n) { *n = 1; return 0; }
int nvrtcGetSupportedArchs(int* archs) { archs[0] = 90; return 0; }
int nvrtcCreateProgram(void** p, const char*, const char*, int, const char* const*,
                       const char* const*) { *p = p; return 0; }
int nvrtcDestroyProgram(void**) { return 0; }
int nvrtcCompileProgram(void*, int, const char* const*) { return 6; }
static const char log_text[] = "kernel.cu(999): error: expected a \";\"\nlibrary.cuh(3): note: here\n";
int nvrtcGetProgramLogSize(void*, unsigned long* n) { *n = sizeof log_text; return 0; }
int nvrtcGetProgramLog(void*, char* log) { __builtin_memcpy(log, log_text, sizeof log_text); return 0; }
int nvrtcGetPTXSize(void*, unsigned long*) { return 1; }
int nvrtcGetPTX(void*, char*) { return 1; }
int nvrtcGetCUBINSize(void*, unsigned long*) { return 1; }
int nvrtcGetCUBIN(void*, char*) { return 1; }
}
)";

}  // namespace

TEST_CASE("HIDDEN NVRTC refuses", "[.]") {
  const Lowered refused = doubling();
  CHECK_THROWS_WITH(refused.compile({.arch = arch}),
                    blames(__LINE__ - 2) && ContainsSubstring("refuses 'doubling' for sm_90a") &&
                        ContainsSubstring("expected a \";\"  (from warm_test.cpp:") &&
                        ContainsSubstring("library.cuh(3): note: here\n") &&
                        ContainsSubstring("/doubling.") && ContainsSubstring(".cu"));
  const std::string folder = std::getenv("PALLADIUM_DUMP_DIR");
  std::vector<std::string> names;
  REQUIRE(files::list(folder, names));
  CHECK(names.size() == 2);
}

TEST_CASE("a refusal of NVRTC gives its log with the user's line, and the path of the text") {
  const Folder folder;
  REQUIRE(files::publish(folder / "nvrtc.cpp", refusing_nvrtc));
  const std::vector<std::pair<std::string, std::string>> made = {
      {"libnvrtc.so.13", "nvrtc.cpp"}, {"libnvrtc-builtins.so.13.0", "nvrtc.cpp"}};
  for (const auto& [library, source] : made) {
    const test::Finished compiled =
        test::run_program({"/usr/bin/env", test::cxx_compiler(), "-shared", "-fPIC",
                           "-Wl,--build-id", folder / source, "-o", folder / library});
    INFO(compiled.err);
    REQUIRE(compiled.status == 0);
  }
  const test::Finished child =
      run_hidden("HIDDEN NVRTC refuses", {{"PALLADIUM_NVRTC", folder / "libnvrtc.so.13"},
                                          {"PALLADIUM_CACHE_DIR", folder / "cache"},
                                          {"PALLADIUM_DUMP_DIR", folder / "dump"}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}
