// Recording: what a program uses is in the manifest, and what is read from it is the same kernel.
#include "palladium/record.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::Environment;
using test::Folder;

namespace {

struct Fixture {
  Folder folder;
  Environment root{"PALLADIUM_CACHE_DIR", folder / "cache"};
  std::string path = folder / "kernels.json";
};

Kernel doubling(const char* name = "doubling") {
  return pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.f; },
                     {.name = name, .out_type = {{128}, f32}});
}
const ShapeDtype operand{{128}, f32};

}  // namespace

TEST_CASE_METHOD(Fixture, "a recorder writes down what is compiled and loaded while it lives") {
  (void)doubling("before").lower(operand).compile({.arch = "sm_80"});
  {
    const Recorder recorder(path);
    (void)doubling().lower(operand).compile({.arch = "sm_90a"});
    (void)doubling().lower(operand).compile({.arch = "sm_80"});
    (void)doubling("before").lower(operand).compile({.arch = "sm_80"});  // from the cache
    (void)doubling().lower(operand).compile({.arch = "sm_90a"});
  }
  (void)doubling("after").lower(operand).compile({.arch = "sm_80"});
  const Manifest manifest = read_manifest(path);
  CHECK(manifest.damages.empty());
  REQUIRE(manifest.kernels.size() == 2);
  const RecordedKernel& first = manifest.kernels[0];
  CHECK(first.kernel.name() == "doubling");
  CHECK(first.archs == std::vector<std::string>{"sm_90a", "sm_80"});
  CHECK(first.arguments == std::vector<std::string>{to_string(operand)});
  CHECK_THAT(first.location, ContainsSubstring("record_test.cpp:"));
  CHECK(manifest.kernels[1].kernel.name() == "before");
  CHECK(manifest.kernels[1].archs == std::vector<std::string>{"sm_80"});
}

TEST_CASE_METHOD(Fixture, "a manifest keeps what dims say of their sizes, and what a call found") {
  const Kernel add =
      pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                  [](ShapeDtype x, ShapeDtype) {
                    const auto [m, n] = x.shape.unpack<2>();
                    const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
                    return PallasCallOptions{.name = "add",
                                             .out_type = x,
                                             .grid = {cdiv(m, 8), cdiv(n, 64)},
                                             .in_specs = {tile, tile},
                                             .out_specs = {tile}};
                  });
  const ShapeDtype said{
      {dim("m", {.at_most = 1000}), dim("n", {.multiple_of = 24, .at_most = 4096})}, f16};
  const Array x = Array::zeros({7, 72}, f16), taller = Array::zeros({9, 72}, f16);
  const std::vector<Lowered> lowered{add.lower(said, said), add.lower(x, x), add.lower(x, taller)};
  const CompileOptions options{.arch = "sm_90a"};
  CHECK(lowered[0].key(options) == lowered[1].key(options));
  CHECK(lowered[0].key(options) != lowered[2].key(options));
  {
    const Environment off("PALLADIUM_JIT", "off");
    const Recorder recorder(path);
    for (const Lowered& l : lowered) CHECK_THROWS_AS(l.compile(options), CudaError);
  }
  const Manifest manifest = read_manifest(path);
  REQUIRE(manifest.kernels.size() == 2);
  const Lowered &back = manifest.kernels[0].kernel, &apart = manifest.kernels[1].kernel;
  CHECK_THAT(back.graph(), ContainsSubstring("symbol 1: multiple of 8\n  offsets below 2^31\n") &&
                               ContainsSubstring("args[1]: f16[s0,s1] in"));
  CHECK_THAT(apart.graph(), ContainsSubstring("args[1]: f16[s2,s1] in"));
  CHECK(back.key(options) == lowered[0].key(options));
  CHECK(apart.key(options) == lowered[2].key(options));
}

TEST_CASE_METHOD(Fixture, "every shipped kernel comes back from a manifest with its key and text") {
  std::vector<Lowered> shipped;
  {
    const Recorder recorder(path);
    for (const ops::Entry& e : ops::registry()) {
      shipped.push_back(e.factory().lower(std::vector<ArgType>(e.inputs.begin(), e.inputs.end())));
      (void)shipped.back().compile({.arch = "sm_90a"});
    }
  }
  const Manifest manifest = read_manifest(path);
  REQUIRE(manifest.kernels.size() == shipped.size());
  for (std::size_t i = 0; i < shipped.size(); ++i) {
    const Lowered& back = manifest.kernels[i].kernel;
    CHECK(back.graph() == shipped[i].graph());
    for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
      CHECK(back.key({.arch = arch}) == shipped[i].key({.arch = arch}));
      CHECK(back.cuda_source({.arch = arch}) == shipped[i].cuda_source({.arch = arch}));
    }
    CHECK(back.compile({.arch = "sm_90a"}).from_cache());
  }
}

TEST_CASE_METHOD(Fixture, "a kernel that ran on the CPU is recorded for whichever architecture") {
  {
    const Environment record("PALLADIUM_RECORD", path);
    const Array x = Array::zeros({128}, f32);
    const Kernel kernel = doubling();
    (void)kernel.on(Target::interpreter)(x);
    (void)kernel.on(Target::interpreter)(x);
    (void)doubling("emulated").on(Target::emulator)(x);
  }
  (void)doubling("unrecorded").on(Target::interpreter)(Array::zeros({128}, f32));
  const Manifest manifest = read_manifest(path);
  REQUIRE(manifest.kernels.size() == 2);
  CHECK(manifest.kernels[0].kernel.name() == "doubling");
  CHECK(manifest.kernels[0].archs.empty());
  CHECK(manifest.kernels[1].kernel.name() == "emulated");
}

TEST_CASE_METHOD(Fixture,
                 "a miss that may not be compiled is recorded: it is what must be warmed") {
  const Environment record("PALLADIUM_RECORD", path);
  const Environment off("PALLADIUM_JIT", "off");
  CHECK_THROWS_WITH(doubling().lower(operand).compile({.arch = "sm_90a"}),
                    ContainsSubstring("'doubling'") && ContainsSubstring("PALLADIUM_JIT=off"));
  CHECK(read_manifest(path).kernels.size() == 1);
}

TEST_CASE_METHOD(Fixture, "a manifest that cannot be written costs the program a log line") {
  const Environment record("PALLADIUM_RECORD", folder / "no/such/folder.json");
  const test::CapturedStderr log;
  CHECK(doubling().lower(operand).compile({.arch = "sm_90a"}).cubin().size() > 100);
  CHECK(doubling("other").lower(operand).compile({.arch = "sm_90a"}).cubin().size() > 100);
  const std::string said = log.text();
  CHECK_THAT(said, ContainsSubstring("folder.json' does not get all kernels: open: No such file"));
  CHECK(said.find("does not get") == said.rfind("does not get"));
}

TEST_CASE_METHOD(Fixture, "a line whose graph is none is a damage with its line and reason") {
  CHECK_THROWS_WITH(read_manifest(path), ContainsSubstring("cannot be read: open: No such file"));
  {
    const Recorder recorder(path);
    (void)doubling().lower(operand).compile({.arch = "sm_90a"});
  }
  REQUIRE(files::append(path, "{\"palladium_manifest\":9}\n"));
  REQUIRE(files::append(path, "{\"palladium_man"));
  const Manifest manifest = read_manifest(path);
  CHECK(manifest.kernels.size() == 1);
  REQUIRE(manifest.damages.size() == 2);
  CHECK(manifest.damages[0].line == 2);
  CHECK(manifest.damages[0].what == "version 9, this library reads 1");
  CHECK(manifest.damages[1].line == 3);
}
