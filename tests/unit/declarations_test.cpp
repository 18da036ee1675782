#include "codegen/device/declarations.hpp"

#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/device/library.hpp"
#include "palladium/error.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using device::Declaration;
using Names = std::vector<std::string_view>;

namespace {

Declaration only(std::string_view text) {
  const std::vector<Declaration> all = device::declarations(text);
  REQUIRE(all.size() == 1);
  return all[0];
}

/// Whether a GPU kernel's prelude holds `text`.
bool brings(const std::string& kernel, const std::string& text) {
  return device::prelude(device::Half::cuda, kernel).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a declaration is known by its name and by what stands behind it") {
  const Declaration function = only(
      "template <int N = 1, class T>\nPL_FN f32 f(T* dst, u32 a) {\n"
      "  return g(\"h }\") + x.y;  // k\n}\n");
  CHECK(function.names == Names{"f"});
  CHECK(function.operands == Names{"T", "dst", "u32", "a"});
  CHECK(function.uses == Names{"template", "int", "N", "class", "T", "PL_FN", "f32", "f", "T",
                               "dst", "u32", "a", "return", "g", "x"});
  CHECK_FALSE(function.is_type);

  const Declaration specialised = only("template <>\nconstexpr bool same<f16, f16> = true;\n");
  CHECK(specialised.names == Names{"same"});
  CHECK(specialised.operands == Names{"f16", "f16"});

  CHECK(only("extern __shared__ __align__(1024) u8 memory[];\n").names == Names{"memory"});
  CHECK(only("typedef unsigned char u8;\n").names == Names{"u8"});
  CHECK(only("typedef unsigned char u8;\n").is_type);
  CHECK(only("template <class T>\nusing bits = typename B<sizeof(T)>::type;\n").names ==
        Names{"bits"});
  CHECK(only("struct alignas(64) Map {\n  u64 x[2];\n};\n").names == Names{"Map"});
  CHECK(only("enum Order : i32 { relaxed, acquire = 4 };\n").names ==
        Names{"Order", "relaxed", "acquire"});
  CHECK(only("enum class Atomic { add, min };\n").names == Names{"Atomic"});
  CHECK(only("#define PL_TWO(a) \\\n  f(a); \\\n  g(a)\n").names == Names{"PL_TWO"});
  const Declaration made = only("PL_HALF_UNARY(exp, f16)\n");
  CHECK(made.names == Names{"exp"});
  CHECK(made.operands == Names{"f16"});
}

TEST_CASE("declarations keep their order, text and namespaces") {
  const std::string text =
      "// A file.\n\nnamespace pl {\nnamespace detail {\n\n// One.\nPL_FN f32 a() "
      "{\n#if X\n  return 1;\n#else\n  return 2;\n#endif\n}\n\n}  // "
      "namespace detail\nstruct B {};\n}  // namespace pl\n";
  const std::vector<Declaration> all = device::declarations(text);
  REQUIRE(all.size() == 2);
  CHECK(all[0].text.starts_with("PL_FN f32 a() {\n#if X"));
  CHECK(all[0].text.ends_with("#endif\n}\n"));
  CHECK(all[0].scopes == Names{"namespace pl {", "namespace detail {"});
  CHECK(all[1].text == "struct B {};\n");
  CHECK(all[1].scopes == Names{"namespace pl {"});
}

TEST_CASE("what cannot be cut into declarations is named") {
  CHECK_THROWS_MATCHES(device::declarations("#if X\nint a;\n#endif\n"), InternalError,
                       MessageMatches(ContainsSubstring("outside of a function stands #if X")));
  CHECK_THROWS_MATCHES(device::declarations("}\n"), InternalError,
                       MessageMatches(ContainsSubstring("a brace closes nothing")));
  CHECK_THROWS_MATCHES(device::declarations("int a = 1\n"), InternalError,
                       MessageMatches(ContainsSubstring("no end of int a = 1")));
}

TEST_CASE("a prelude holds what its kernel names and little else") {
  const std::string small =
      device::prelude(device::Half::cuda, "pl::thread(); pl::load_global(a, b);");
  CHECK(small.find("load_global(") != small.npos);
  CHECK(small.find("load_global_nc(") == small.npos);
  CHECK(small.find("mma.sync") == small.npos);
  CHECK(small.find("\n//") == small.npos);
  CHECK(small.ends_with("#line 1 \"kernel.cu\"\n"));
  CHECK(brings("f32 x = pl::log(x);", "PL_UNARY(log, f32"));
  CHECK_FALSE(brings("f32 x = pl::log(x);", "PL_UNARY(exp2, f32"));
  CHECK_FALSE(brings("f32 x = pl::logistics(x);", "PL_UNARY(log, f32"));
  CHECK_FALSE(brings("f32 x = y;  // pl::log(x)", "PL_UNARY(log, f32"));
}

TEST_CASE("a prelude has the overloads of those types that are named") {
  CHECK_FALSE(brings("f32 x = pl::log(x);", "f16"));
  CHECK_FALSE(brings("f32 x = pl::log(x);", "PL_UNARY(log, f64"));
  // f16's log is that of f32.
  const std::string half = "f16 x = pl::log(x);";
  CHECK(brings(half, "PL_HALF_UNARY(log, f16)"));
  CHECK(brings(half, "PL_UNARY(log, f32"));
  CHECK(brings(half, "PL_HALF_OPERATORS(f16)"));
  CHECK_FALSE(brings(half, "bf16"));
}
