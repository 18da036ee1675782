// Whose mistake it is: what a kernel's author can cause is a CompileError with their line, on the
// emulator as in the interpreter; what the host compiler cannot do names PALLADIUM_CXX.
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "codegen/base/files.hpp"
#include "palladium/palladium.hpp"
#include "runtime/emulator/emulator.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

int line = 0;  // of the mistake

template <class F>
std::string user_error(const F& call) {
  try {
    call();
  } catch (const CompileError& e) {
    INFO(e.what());
    CHECK(e.at().line == line);
    CHECK_THAT(e.what(), ContainsSubstring("blame_test.cpp:" + std::to_string(line)));
    return e.what();
  }
  FAIL_CHECK("nothing was thrown");
  return "";
}

Array host(Shape shape) { return Array::zeros(shape, f32); }

BlockSpec row(int width) {
  return {{1, width}, [](Index i) { return Indices{i, 0}; }};
}

std::string compiler_error(const std::string& compiler, const std::string& kernel) {
  const test::Environment named("PALLADIUM_CXX", compiler);
  const std::string text = "PL_KERNEL(128) " + kernel + "() {\n}\nPL_EXPORT(" + kernel + ")\n";
  try {
    emulator::run({.kernel = kernel, .text = text});
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

std::string script(const test::Folder& folder, const std::string& name, const std::string& body) {
  REQUIRE(files::publish(folder / name, "#!/bin/sh\n" + body + "\n"));
  REQUIRE(::chmod((folder / name).c_str(), 0755) == 0);
  return folder / name;
}

}  // namespace

TEST_CASE("an index that leaves the array is the user's error") {
  const auto far = [](int distance) {
    return pallas_call(
               [=](Ref x, Ref o) {
                 const Value i = program_id(0) + distance;
                 line = __LINE__ + 1;
                 o[_] = Value(x[{ds(i, 1), _}]);
               },
               {.name = "far", .out_type = {{4, 128}, f32}, .grid = {4}, .out_specs = {row(128)}})
        .on(Target::emulator);
  };
  CHECK_NOTHROW(far(0)(host({4, 128})));
  for (const int distance : {1'000'000, -1'000'000})
    CHECK_THAT(user_error([&] { far(distance)(host({4, 128})); }), ContainsSubstring("'far'"));
}

TEST_CASE("an index that leaves all shared memory is the user's error") {
  const Kernel k = pallas_call(
                       [](Ref x, Ref o, Ref s) {
                         s[_] = x[_];
                         const Value i = program_id(0) + 100'000;
                         line = __LINE__ + 1;
                         o[_] = Value(s[{ds(i, 128)}]);
                       },
                       {.name = "scratch",
                        .out_type = {{128}, f32},
                        .grid = {2},
                        .scratch_types = {plgpu::SMEM({128}, f32)}})
                       .on(Target::emulator);
  CHECK_THAT(user_error([&] { k(host({128})); }), ContainsSubstring("kernel 'scratch'"));
}

TEST_CASE("an index map that leaves the array is the user's error") {
  const auto message = [](const Kernel& k, const Array& x) {
    std::string words;
    try {
      k(x);
    } catch (const CompileError& e) {
      words = e.what();
    }
    return words;
  };
  const auto both = [&](const Kernel& k, const Array& x, const std::string& sentence) {
    const std::string meant = message(k.on(Target::interpreter), x);
    CHECK_THAT(meant, ContainsSubstring(sentence));
    CHECK_THAT(meant, ContainsSubstring("blame_test.cpp:" + std::to_string(line)));
    CHECK(message(k.on(Target::emulator), x) == meant);
  };
  const auto kernel = [](const BlockSpec& in, std::int64_t programs) {
    return pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, {.name = "map",
                                                           .out_type = {{4, 128}, f32},
                                                           .grid = {programs},
                                                           .in_specs = {in},
                                                           .out_specs = {row(128)}});
  };
  line = __LINE__ + 1;
  const auto far = [](Index i) { return Indices{128 * i, 0}; };
  both(
      kernel({{1, 128}, far}, 4), host({4, 128}),
      "args[0]: in program (1) block (128, 0) lies wholly out of bounds of the array of shape "
      "[4,128]: in dimension 0 it starts at 128 = 128 * 1 (an index map returns block indices, not "
      "element offsets)");
  line = __LINE__ + 1;
  const auto right = [](Index i) { return Indices{i, i * 64}; };
  both(kernel({{1, Element(128)}, right}, 4), host({4, 128}),
       "args[0]: in program (2) block (2, 128) lies wholly out of bounds of the array of shape "
       "[4,128]: in dimension 1 it starts at 128");
  line = __LINE__ + 1;
  const auto slice = [](Index i) { return Indices{i, ds(i * 64, 1 + 63 * Value(i))}; };
  both(kernel({{1, BoundedSlice(128)}, slice}, 4), host({4, 128}),
       "args[0]: in program (2) the index map gives along dimension 1 the slice of start 128 and "
       "size 127, of a BoundedSlice(128) of 128 elements of the array: it leaves the array, or is "
       "longer than that");
}

TEST_CASE("a read of what another program writes is the user's error") {
  const Kernel k = pallas_call(
                       [](Ref x, Ref o) {
                         o[{ds(0, 4)}] = x[_];
                         line = __LINE__ + 1;
                         const Value other = o[{ds(4, 4)}];
                         o[{ds(0, 4)}] = other;
                       },
                       {.name = "across",
                        .out_type = {{12}, f32},
                        .grid = {2},
                        .in_specs = {{{4}, [](Index i) { return i; }}},
                        .out_specs = {{{Element(8)}, [](Index i) { return 4 - 4 * i; }}}})
                       .on(Target::emulator);
  CHECK_THROWS_AS(k(host({8})), CompileError);
  CHECK_THROWS_WITH(k(host({8})), ContainsSubstring("outputs[0]") &&
                                      ContainsSubstring("blame_test.cpp:" + std::to_string(line)));
}

TEST_CASE("a host compiler that cannot be used is told by name, not as a fault of the text") {
  const test::Folder folder;
  const std::string old = script(
      folder, "old-g++", "echo \"error: unrecognized command line option '-std=c++17'\"; exit 1");
  const std::string lazy = script(folder, "lazy", "exit 0");
  const std::string text =
      script(folder, "text",
             "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && echo nothing >\"$2\"; shift; done");
  const std::string killed = script(folder, "killed", "kill -9 $$");
  for (const std::string& compiler : {old, lazy, text, killed}) {
    CAPTURE(compiler);
    const std::string said = compiler_error(compiler, "by_a_wrong_compiler");
    CHECK_THAT(said, ContainsSubstring(compiler));
    CHECK_THAT(said, ContainsSubstring("cannot be used"));
    CHECK_THAT(said, ContainsSubstring("PALLADIUM_CXX names another"));
  }
  CHECK_THAT(compiler_error(old, "again"), ContainsSubstring("unrecognized command line option"));
  CHECK_THAT(compiler_error("/nonexistent/c++", "missing"), ContainsSubstring("cannot be run"));
}

TEST_CASE("flags of the host compiler that the environment names have the last word") {
  const test::Folder folder;
  const std::string compiler =
      script(folder, "noting", "echo \"$@\" >'" + (folder / "said") + "'; exec c++ \"$@\"");
  CHECK(compiler_error(compiler + " -O2 -DNOTHING", "by_flags") == "");
  const std::string said = test::text_of(folder / "said");
  REQUIRE(said.find("-O1") != said.npos);
  CHECK(said.find("-O1") < said.find("-O2 -DNOTHING"));
}

TEST_CASE("what the host compiler says of itself has the line of the kernel") {
  const test::Environment named("PALLADIUM_CXX", "/nonexistent/c++");
  const PallasCallOptions options{.name = "uncompiled", .out_type = {{8}, f32}};
  line = __LINE__ + 1;
  const Kernel k = pallas_call([](Ref o) { o[_] = 1.25f; }, options);
  user_error([&] { k.on(Target::emulator)(); });
}

TEST_CASE("a text that a working compiler refuses is ours") {
  CHECK_THROWS_AS(emulator::run({.kernel = "wrong", .text = "PL_KERNEL(128) wrong() { no }\n"}),
                  InternalError);
}
