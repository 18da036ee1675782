#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/library.hpp"
#include "codegen/device/waist.hpp"
#include "tests/emulator/waist_kernels.hpp"
#include "tests/support/waist_uses.hpp"

using namespace palladium;
using test::WaistUse;

namespace {

// The text of a half without its namespace `detail` and without preprocessor lines.
std::string public_text(device::Half half) {
  std::string everything = "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 Sum Prod Max Min";
  for (const device::RowInfo& f : device::rows()) everything += " pl::" + std::string(f.name);
  const std::string text = device::prelude(half, everything);
  std::string result;
  int depth_of_detail = 0, depth = 0;
  bool in_macro = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at) + "\n";
    at = end + 1;
    if (line.find("namespace detail {") != line.npos && depth_of_detail == 0) {
      depth_of_detail = depth + 1;
    }
    for (char c : line) depth += (c == '{') - (c == '}');
    if (depth_of_detail == 0 && !in_macro && line[0] != '#') result += line;
    in_macro = (in_macro || line[0] == '#') && line.ends_with("\\\n");
    if (depth < depth_of_detail) depth_of_detail = 0;
  }
  return result;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Names declared by "PL_FN <type> name(", and the first arguments of macros that make a function.
std::set<std::string> declared(const std::string& text) {
  std::set<std::string> names;
  const auto name_before = [&](std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && is_name(text[begin - 1])) --begin;
    return text.substr(begin, end - begin);
  };
  for (std::size_t at = text.find("PL_FN "); at != text.npos; at = text.find("PL_FN ", at + 1)) {
    const std::string name = name_before(text.find('(', at));
    if (!name.empty()) names.insert(name);
  }
  for (std::size_t at = text.find("\nPL_"); at != text.npos; at = text.find("\nPL_", at + 1)) {
    const std::size_t open =
        text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at + 1);
    if (text[open] != '(' || text.find("PL_HALF_OPERATORS", at) == at + 1) continue;
    std::size_t end = open + 1;
    while (is_name(text[end])) ++end;
    names.insert(text.substr(open + 1, end - open - 1));
  }
  return names;
}

}  // namespace

TEST_CASE("both halves of the device library define exactly the functions of the table") {
  std::set<std::string> table;
  for (const device::RowInfo& f : device::rows()) {
    CHECK(table.insert(std::string(f.name)).second);
  }
  CHECK(declared(public_text(device::Half::cuda)) == table);
  CHECK(declared(public_text(device::Half::cpu)) == table);
}

TEST_CASE("every function of the table is tried") {
  std::set<std::string> table, tried;
  for (const device::RowInfo& f : device::rows()) table.insert(std::string(f.name));
  for (const WaistUse& use : test::waist_uses(90)) tried.insert(use.name);
  CHECK(tried == table);
}

TEST_CASE("g++ and clang++ compile every function that needs a partner for the emulator") {
  std::string text;
  for (const WaistUse& use : test::waist_uses(90)) {
    if (!test::needs_no_partner(test::waist_function(use.name))) text += use.statement + "\n  ";
  }
  REQUIRE_FALSE(test::host_compilers().empty());
  for (const std::string& compiler : test::host_compilers()) {
    const test::HostCompiler chosen((compiler + " -O0").c_str());
    INFO(compiler);
    CHECK_NOTHROW(emulator::prepare(
        "k", test::waist_kernel("k", text) + "PL_EXPORT(k)\n// " + compiler + "\n"));
  }
}

TEST_CASE("the emulator runs every function that needs no partner, compiled by g++ or clang++") {
  // Shared memory is written before it is read, here as in every kernel.
  std::string text =
      "{ u32 zero[4] = {}; pl::store_shared<4>(s, zero); }\n  pl::warpgroup_sync();\n  ";
  for (const WaistUse& use : test::waist_uses(90)) {
    if (test::needs_no_partner(test::waist_function(use.name))) text += use.statement + "\n  ";
  }
  for (const std::string& compiler : test::host_compilers()) {
    const test::HostCompiler chosen((compiler + " -O0").c_str());
    INFO(compiler);
    const std::string all = test::waist_kernel("k", text) + "PL_EXPORT(k)\n// " + compiler + "\n";
    std::vector<std::uint8_t> memory(4096, 1), map(128);
    void* p = memory.data();
    void* parameters[] = {&p, map.data()};
    const emulator::Buffer buffers[] = {test::buffer("memory", memory, true)};
    CHECK_NOTHROW(emulator::run({.kernel = "k",
                                 .text = all,
                                 .shared_bytes = 2048,
                                 .parameters = parameters,
                                 .buffers = buffers,
                                 .options = {.detect_races = false}}));
  }
}
