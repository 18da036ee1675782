// The effect columns of waist.def against the declarations, both halves, and what the emulator's
// groups of threads do. tests/conformance compares them with the memory that checks touch.
#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "codegen/device/library.hpp"
#include "codegen/device/waist.hpp"
#include "palladium/error.hpp"
#include "tests/emulator/waist_kernels.hpp"
#include "tests/support/waist_uses.hpp"

using namespace palladium;
using device::Access;
using device::Effects;
using device::Group;
using device::Memory;
using device::Row;
using device::RowInfo;

namespace {

/// "const T* p" and "bool in_bounds = true" of a declaration.
std::vector<std::string> parameters(const RowInfo& f) {
  const std::string text(f.declaration);
  const std::size_t open = text.find(std::string(f.name) + "(");
  REQUIRE(open != text.npos);
  std::vector<std::string> all = {""};
  int depth = 0;
  for (std::size_t at = open + f.name.size() + 1; at < text.size(); ++at) {
    const char c = text[at];
    depth += (c == '(') - (c == ')');
    if (depth < 0) break;
    if (c == ',' && depth == 0)
      all.emplace_back();
    else
      all.back() += c;
  }
  for (std::string& p : all) p.erase(0, p.find_first_not_of(' '));
  if (all[0].empty()) all.clear();
  return all;
}

bool is_pointer(const std::string& parameter) {
  const bool names = parameter.find("char*") != std::string::npos;
  const bool coordinates = parameter.find("(&at)") != std::string::npos;
  return !names && !coordinates && parameter.find_first_of("*&") != std::string::npos;
}

bool fits(const Access& a, const std::string& parameter) {
  const bool is_map = parameter.find("TensorMap&") != std::string::npos;
  const bool is_const = parameter.starts_with("const ");
  switch (a.memory) {
  case Memory::registers:
    // An array goes where a scalar goes.
    if (parameter.starts_with("T ")) return a.reads && a.writes;
    return is_pointer(parameter) && !is_map && is_const == !a.writes;
  case Memory::global: return is_pointer(parameter) && !is_map && is_const == !a.writes;
  case Memory::tensor_map: return is_map;
  case Memory::shared:
  case Memory::shared_cluster:
  case Memory::barrier: return parameter.starts_with("u32 ");
  }
  return false;
}

/// Whether nothing is to be known of it but its value.
bool has_no_effect(const Effects& e) {
  return e.accesses().empty() && !e.releases && !e.acquires && !e.waits && e.ordered == 0 &&
         e.role == Effects::Role::none;
}

std::string prelude_of(const RowInfo& f) {
  return device::prelude(device::Half::cuda, "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 pl::" +
                                                 std::string(f.name));
}

}  // namespace

TEST_CASE("the accesses of a row are of arguments that it declares so") {
  for (const RowInfo& f : device::rows()) {
    INFO(f.declaration);
    const std::vector<std::string> all = parameters(f);
    std::vector<bool> told(all.size());
    for (const Access& a : f.effects.accesses()) {
      REQUIRE(a.argument < static_cast<int>(all.size()));
      const auto k = static_cast<std::size_t>(a.argument);
      INFO(all[k]);
      CHECK(!told[k]);
      told[k] = true;
      CHECK((a.reads || a.writes));
      CHECK(fits(a, all[k]));
    }
    // A prefetch touches nothing.
    for (std::size_t k = 0; k < all.size() && f.effects.count > 0; ++k) {
      INFO(all[k]);
      if (is_pointer(all[k])) CHECK(told[k]);
    }
    if (f.effects.on_argument >= 0) {
      REQUIRE(f.effects.on_argument < static_cast<int>(all.size()));
      CHECK(all[static_cast<std::size_t>(f.effects.on_argument)].find("bar") != std::string::npos);
    }
  }
}

TEST_CASE("a pure row gives a value and has no other effect") {
  int pure = 0;
  for (const RowInfo& f : device::rows()) {
    INFO(f.declaration);
    const bool gives = f.declaration.find("void " + std::string(f.name)) == f.declaration.npos;
    if (f.effects.pure) CHECK((gives && has_no_effect(f.effects)));
    pure += f.effects.pure;
  }
  CHECK(pure > 70);
}

TEST_CASE("what an asynchronous row completes on is closed and awaited by rows") {
  using enum Effects::Role;
  for (const RowInfo& f : device::rows()) {
    const Effects& e = f.effects;
    INFO(f.name);
    CHECK((e.role == none) == (e.on == device::Completion::none));
    CHECK((e.on == device::Completion::mbarrier) == (e.on_argument >= 0));
    if (e.role != completes) continue;
    CHECK(e.touches_memory());
    bool closed = e.on == device::Completion::mbarrier, awaited = false;
    for (const RowInfo& g : device::rows()) {
      closed |= g.effects.on == e.on && g.effects.role == closes;
      awaited |= g.effects.on == e.on && g.effects.role == awaits;
    }
    CHECK(closed);
    CHECK(awaited);
  }
}

TEST_CASE("PTX that touches or orders memory tells the compiler, and none of a pure row does") {
  for (const RowInfo& f : device::rows()) {
    INFO(f.name);
    const Effects& e = f.effects;
    const std::string text = prelude_of(f);
    // CUDA's own barriers are no assembler.
    const bool clobbers = text.find("\"memory\"") != text.npos || text.find("__sync") != text.npos;
    if (e.pure) CHECK(!clobbers);
    // Nobody writes what load_global_nc reads; registers are arguments.
    const bool constant = f.name.starts_with("load_global_nc");
    const bool memory = e.touches_memory() || e.releases || e.acquires ||
                        e.orders(Memory::shared) || e.orders(Memory::global) ||
                        e.role != Effects::Role::none;
    if (memory && !constant) CHECK(clobbers);
  }
}

namespace {

/// A kernel of all rows that need no partner, each behind a number, called by a part of a
/// warpgroup: all of it, one warp, one lane.
class Parts {
 public:
  Parts() {
    std::string cases;
    for (const test::WaistUse& use : test::waist_uses(90)) {
      if (!test::needs_no_partner(test::waist_function(use.name))) continue;
      cases += fmt::format("if (which == {} && part) {{ {} }}\n  ", names_.size(), use.statement);
      names_.push_back(use.name);
    }
    const std::string text =
        "{ u32 zero[4] = {}; pl::store_shared<4>(s, zero); }\n"
        "  i32 how[2]; pl::load_global<2>(how, static_cast<const i32*>(m) + 510);\n"
        "  const i32 which = how[0];\n"
        "  const bool part = how[1] == 0 || (pl::thread() < (how[1] == 1 ? 32 : 1));\n"
        "  pl::warpgroup_sync();\n  " +
        cases + "pl::warp_sync();\n  pl::warpgroup_sync();";
    text_ = test::waist_kernel("k", text) + "PL_EXPORT(k)\n";
  }

  const std::vector<std::string>& names() const { return names_; }

  /// What the emulator says; "" if it takes it.
  std::string told(std::size_t which, int part) const {
    std::vector<std::int32_t> memory(512, 1);
    memory[510] = static_cast<std::int32_t>(which);
    memory[511] = part;
    void* p = memory.data();
    std::vector<std::uint8_t> map(128);
    void* arguments[] = {&p, map.data()};
    const emulator::Buffer buffers[] = {test::buffer("memory", memory, true)};
    try {
      emulator::run({.kernel = "k",
                     .text = text_,
                     .shared_bytes = 4096,
                     .parameters = arguments,
                     .buffers = buffers,
                     .options = {.detect_races = false, .workers = 1}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  std::vector<std::string> names_;
  std::string text_;
};

}  // namespace

TEST_CASE("a collective row waits for its warp or warpgroup, and no other row does") {
  const Parts parts;
  int collective = 0;
  for (std::size_t i = 0; i < parts.names().size(); ++i) {
    const RowInfo& f = test::waist_function(parts.names()[i]);
    INFO(f.name);
    CHECK(parts.told(i, 0) == "");
    CHECK((parts.told(i, 1) == "") == (f.effects.by <= Group::warp));
    CHECK((parts.told(i, 2) == "") == (f.effects.by == Group::thread));
    collective += f.effects.by != Group::thread;
  }
  CHECK(collective > 20);
}

TEST_CASE("a pure row touches no memory") {
  // Each call on a line of its own.
  std::string text;
  for (const test::WaistUse& use : test::waist_uses(90)) {
    const RowInfo& f = test::waist_function(use.name);
    if (f.effects.pure && test::needs_no_partner(f)) text += use.statement + "\n";
  }
  for (std::size_t at = 0; (at = text.find("; ", at)) != text.npos;) text[at + 1] = '\n';
  text = test::waist_kernel("k", text) + "PL_EXPORT(k)\n";
  std::vector<std::set<Row>> lines = {{}};
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(device::rows_in(line));
  const auto is_pure = [](Row row) { return device::info(row).effects.pure; };
  CHECK(std::count_if(lines.begin(), lines.end(), [&](const std::set<Row>& rows) {
          return !rows.empty() && std::all_of(rows.begin(), rows.end(), is_pure);
        }) > 300);

  std::vector<std::uint8_t> memory(4096, 1), map(128);
  void* p = memory.data();
  void* arguments[] = {&p, map.data()};
  const emulator::Buffer buffers[] = {test::buffer("memory", memory, true)};
  std::set<int> touching;
  // That all threads write the same elements is said at the end.
  CHECK_THROWS_AS(emulator::run({.kernel = "k",
                                 .text = text,
                                 .shared_bytes = 4096,
                                 .parameters = arguments,
                                 .buffers = buffers,
                                 .options = {.detect_writers = false, .workers = 1},
                                 .watch = [&](int line, const Access&, std::uint64_t,
                                              std::uint64_t) { touching.insert(line); }}),
                  InternalError);
  CHECK(touching.size() > 300);
  for (const int line : touching) {
    const std::set<Row>& rows = lines.at(static_cast<std::size_t>(line));
    INFO("line " << line);
    CHECK(std::any_of(rows.begin(), rows.end(),
                      [](Row row) { return device::info(row).effects.touches_memory(); }));
  }
}

TEST_CASE("rows are found by their names and in texts") {
  CHECK(device::row_named("tma_load") == Row::tma_load);
  CHECK(device::row_named("tma") == std::nullopt);
  for (const RowInfo& f : device::rows()) {
    CHECK(&device::info(f.row) == &f);
    CHECK(device::row_named(f.name) == f.row);
  }
  CHECK(device::rows_in(
            "x = pl::exp(y); // pl::sin\nmy::cos(x); exp2(x); pl::to<pl::nan>(\"pl::\")") ==
        std::set{Row::exp, Row::to, Row::nan});
}
