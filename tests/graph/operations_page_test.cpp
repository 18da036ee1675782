// docs/operations.md: the op table for users, made of it. With PALLADIUM_TEST_REFRESH the page is
// written anew.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>

#include "codegen/graph/builder.hpp"
#include "palladium/error.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using namespace palladium::graph;

namespace {

constexpr DType every[] = {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

// Whether operands of this dtype are taken, as far as a dtype decides.
bool takes(Op op, DType t) {
  Graph g;
  Builder b(g, g.add_region());
  const ValueId x = b.constant(t, 1, {4, 4}), condition = b.constant(bool_, 1, {4, 4});
  const ValueId start = b.constant(i32, 0), indices = b.constant(i32, 0, {4, 4});
  std::vector<ValueId> args(static_cast<std::size_t>(std::max(info(op).min_args, 1)), x);
  Attr attr;
  Type given = Type::value(t, {4, 4});
  switch (op) {
  case Op::Select: args[0] = condition; break;
  case Op::MultipleOf:
  case Op::MaxContiguous: attr.ints = {1, 1}; break;
  case Op::Broadcast:
  case Op::Transpose: attr.ints = {0, 1}; break;
  case Op::Slice: attr.ints = {0, 0, 1, 1}; break;
  case Op::Concatenate: attr.ints = {0}; break;
  case Op::DynamicSlice: args = {x, start, start}; break;
  case Op::DynamicUpdateSlice: args = {x, x, start, start}; break;
  case Op::TakeAlong:
    args = {x, indices};
    attr.ints = {0};
    break;
  case Op::Dot: attr.ints = {0, 0, 0}; break;
  case Op::LayoutCast: attr.ints = {0, 0}; break;
  default:
    if (is_fold(op)) attr.ints = {0};
  }
  const auto inferred = [&] {
    try {
      infer(g, op, attr, args, given, {});
      return true;
    } catch (const CompileError&) {
      return false;
    }
  };
  if (inferred()) return true;
  if (is_fold(op)) attr.ints = {0, 0};  // a scan
  return is_fold(op) && inferred();
}

std::string dtypes(Op op) {
  std::string list;
  int count = 0;
  bool integers = true, floats = true;
  for (const DType t : every) {
    const bool taken = takes(op, t);
    if (t.is_integer()) integers = integers && taken;
    if (t.is_float()) floats = floats && taken;
    count += taken;
  }
  const auto add = [&](const std::string& name) { list += (list.empty() ? "" : ", ") + name; };
  if (count == static_cast<int>(std::size(every))) return "all";
  if (takes(op, bool_)) add("bool");
  if (integers) add("integers");
  if (floats) add("floats");
  for (const DType t : every)
    if (takes(op, t) && !t.is_bool() && !(t.is_integer() ? integers : floats)) add(t.name());
  return list;
}

/// How a body says it, where that is not pl::<name>(…).
std::string written(const std::string& name) {
  static const std::map<std::string, std::string> otherwise = {
      {"neg", "-x"},
      {"not", "~x, !x"},
      {"cast", "x.astype(pl::f32)"},
      {"add", "x + y"},
      {"sub", "x - y"},
      {"mul", "x * y"},
      {"div", "x / y"},
      {"rem", "x % y"},
      {"max", "pl::maximum(x, y)"},
      {"min", "pl::minimum(x, y)"},
      {"and", "x & y"},
      {"or", "x \\| y"},
      {"xor", "x ^ y"},
      {"shift_left", "x << n"},
      {"shift_right", "x >> n"},
      {"eq", "x == y"},
      {"ne", "x != y"},
      {"lt", "x < y"},
      {"le", "x <= y"},
      {"gt", "x > y"},
      {"ge", "x >= y"},
      {"select", "pl::where(c, x, y)"},
      {"broadcast", "pl::broadcast_to(x, {4, 8})"},
      {"slice", "x[{0, pl::ds(4, 8)}]"},
      {"layout_cast", "plgpu::layout_cast(x, layout)"},
      {"reduce_sum", "pl::sum(x, {.axis = 0})"},
      {"reduce_prod", "pl::prod(x, {.axis = 0})"},
      {"reduce_max", "pl::max(x, {.axis = 0})"},
      {"reduce_min", "pl::min(x, {.axis = 0})"},
  };
  const auto found = otherwise.find(name);
  return found != otherwise.end() ? found->second : "pl::" + name;
}

bool is_on_page(Op op) {
  const OpClass of = info(op).op_class;
  return of == OpClass::elementwise || of == OpClass::shape || of == OpClass::fold ||
         of == OpClass::contraction;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string page() {
  std::string text =
      "# Operations\n\n"
      "What kernels are made of, as the graph has it: `codegen/graph/ops.def`, from which a test\n"
      "(`tests/graph/operations_page_test.cpp`) makes this page. *Written* is how a body says it;\n"
      "options, and the functions that are made of these, are in `include/palladium/ops.hpp`.\n"
      "*ulp* bounds the error in f32 and f64 on every target; without one the result is exact, or\n"
      "correctly rounded. 16-bit floats compute in f32 and round once. Of f32 of which nothing but\n"
      "products, quotients and choices are made before a conversion to 16 bits `exp` and `logistic` "
      "are\n"
      "within 2^-17 of their size. `f8e4m3` and `f8e5m2` are\n"
      "stored, moved, chosen and converted; what is computed of them is recorded as conversions "
      "to\n"
      "f32, the operation, and a conversion back. So it is of `i4` and `u4`, which are computed "
      "as\n"
      "`i8` and `u8`.\n";
  const auto section = [&](const char* title, OpClass of) {
    text += std::string("\n## ") + title +
            "\n\n| Operation | Written | Dtypes | ulp | Meaning |\n|---|---|---|---|---|\n";
    for (int i = 0; i < num_ops; ++i) {
      const Op op{static_cast<std::uint8_t>(i)};
      const OpInfo& row = info(op);
      if (row.op_class != of) continue;
      std::string meaning = row.meaning;
      for (std::size_t at = 0; (at = meaning.find('|', at)) != meaning.npos; at += 2)
        meaning.insert(at, "\\");
      text += std::string("| `") + row.name + "` | `" + written(row.name) + "` | " + dtypes(op) +
              " | " + (row.ulp > 0 ? std::to_string(row.ulp) : "") + " | " + meaning + " |\n";
    }
  };
  section("Elementwise", OpClass::elementwise);
  section("Shapes, and elements elsewhere", OpClass::shape);
  section("Reductions and scans", OpClass::fold);
  section("Products", OpClass::contraction);
  return text;
}

}  // namespace

TEST_CASE("docs/operations.md is what the op table says") {
  const std::string path = test::source_dir() + "/docs/operations.md";
  if (std::getenv("PALLADIUM_TEST_REFRESH") != nullptr) std::ofstream(path) << page();
  CHECK(content(path) == page());
}

TEST_CASE("what docs/operations.md says to write stands in a public header") {
  std::string headers;
  const std::filesystem::path folder = test::source_dir() + "/include/palladium";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) headers += content(entry.path());
  for (int i = 0; i < num_ops; ++i) {
    const Op op{static_cast<std::uint8_t>(i)};
    const std::string how = written(info(op).name);
    if (!is_on_page(op) || !how.starts_with("pl::")) continue;
    INFO(how);
    const std::string name = how.substr(4, how.find('(') - 4);
    CHECK(std::regex_search(headers, std::regex("\\b" + name + "[(,)]")));
  }
}
