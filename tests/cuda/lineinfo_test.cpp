// .lineinfo: what is compiled points at the user's C++, on request only.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "codegen/cuda/emit.hpp"
#include "palladium/palladium.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

constexpr const char* file = "tests/cuda/lineinfo_test.cpp";

/// Two lines of a body; the first is `line`.
Lowered two_lines(bool lineinfo, int* line) {
  return pallas_call(
             [=](Ref x, Ref o) {
               if (line) *line = __LINE__ + 1;
               const Value root = sqrt(x[_]);
               o[_] = root + 1;
             },
             {.name = "two_lines",
              .out_type = {{128}, f32},
              .compiler_params = {.lineinfo = lineinfo}})
      .lower(ShapeDtype{{128}, f32});
}

Lowered same_elsewhere(bool lineinfo) {
  return pallas_call([](Ref x, Ref o) { o[_] = sqrt(x[_]) + 1; },
                     {.name = "two_lines",
                      .out_type = {{128}, f32},
                      .compiler_params = {.lineinfo = lineinfo}})
      .lower(ShapeDtype{{128}, f32});
}

}  // namespace

TEST_CASE("the text names no line of the user's unless line info is asked for") {
  CHECK_THAT(two_lines(false, nullptr).cuda_source(), !ContainsSubstring("#line"));
  int line = 0;
  const std::string text = two_lines(true, &line).cuda_source();
  std::istringstream lines(text);
  // Every line stands behind its own directive: the text's lines do not run along with the user's.
  std::string directive, code;
  bool names_store = false;
  while (std::getline(lines, directive) && std::getline(lines, code)) {
    CHECK(directive.starts_with("#line "));
    CHECK(directive.ends_with(" \"" + std::string(file) + "\""));
    CHECK(!code.starts_with("#"));
    names_store |= directive.starts_with("#line " + std::to_string(line + 1) + " ");
  }
  CHECK(names_store);
}

TEST_CASE("a load points at the line that loads, whatever the loop of its store holds") {
  int load = 0, store = 0;
  const std::string text =
      pallas_call(
          [&](Ref x, Ref y, Ref o) {
            load = __LINE__ + 1;
            const Value a = x[_];
            const Value b = y[_];
            store = __LINE__ + 1;
            o[_] = a * b;
          },
          {.name = "inlined", .out_type = {{128}, f32}, .compiler_params = {.lineinfo = true}})
          .lower(ShapeDtype{{128}, f32}, ShapeDtype{{128}, f32})
          .cuda_source();
  std::istringstream lines(text);
  std::string directive, code;
  std::map<std::string, int> line_of;
  while (std::getline(lines, directive) && std::getline(lines, code))
    for (const char* words :
         {"load_global_nc<1>(&a0, in0", "load_global_nc<1>(&a1, in1", "pl::store"})
      if (code.find(words) != std::string::npos) line_of[words] = std::stoi(directive.substr(6));
  CHECK(line_of.at("load_global_nc<1>(&a0, in0") == load);
  CHECK(line_of.at("load_global_nc<1>(&a1, in1") == load + 1);
  CHECK(line_of.at("pl::store") == store);
}

TEST_CASE("under line info PTX and cubin point at the user's lines") {
  int line = 0;
  const Compiled compiled = two_lines(true, &line).compile({.arch = "sm_90a"});
  CHECK_THAT(compiled.ptx(), ContainsSubstring(file));
  CHECK_THAT(compiled.ptx(), ContainsSubstring(" " + std::to_string(line + 1) + " "));
  const std::string_view cubin(reinterpret_cast<const char*>(compiled.cubin().data()),
                               compiled.cubin().size());
  CHECK(cubin.find("lineinfo_test.cpp") != std::string_view::npos);
  CHECK(compiled.resources().warnings.empty());
  const Compiled plain = two_lines(false, nullptr).compile({.arch = "sm_90a"});
  CHECK_THAT(plain.ptx(), !ContainsSubstring("lineinfo_test.cpp"));
}

TEST_CASE("lines are in the key under line info, and only then") {
  const CompileOptions arch{.arch = "sm_90a"};
  CHECK(two_lines(false, nullptr).key(arch) == same_elsewhere(false).key(arch));
  CHECK(two_lines(true, nullptr).key(arch) != same_elsewhere(true).key(arch));
  CHECK(two_lines(true, nullptr).key(arch) == two_lines(true, nullptr).key(arch));
  CHECK(two_lines(true, nullptr).key(arch) != two_lines(false, nullptr).key(arch));
}

TEST_CASE("a file name of any characters stays within its directive") {
  graph::Graph g;
  g.lineinfo = true;
  cuda::Emitted emitted;
  emitted.text = "a;\nb;\n";
  emitted.lines = {{1, {"C:\\\"x\".cpp\n#error", 3}}, {2, {"y.cpp", 9}}};
  CHECK(cuda::compiled_text(g, emitted) ==
        "#line 3 \"C:\\\\\\\"x\\\".cpp?#error\"\na;\n#line 9 \"y.cpp\"\nb;\n");
}
