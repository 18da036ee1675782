// The accesses in the columns of waist.def are those that the hardware checks make on the emulator,
// no fewer and no more.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "codegen/device/waist.hpp"
#include "codegen/device/wgmma.hpp"
#include "tests/conformance/run.hpp"

using namespace palladium;
using namespace palladium::conformance;
using device::Access;
using device::Effects;
using device::Memory;

namespace {

/// Calls in a text: rows, and products of wgmma, by name.
std::map<std::string, Effects> calls_in(const std::string& text) {
  std::map<std::string, Effects> found;
  for (const device::Row row : device::rows_in(text))
    found[std::string(device::info(row).name)] = device::info(row).effects;
  if (text.find("pl::wgmma_m64") != text.npos) {
    const bool rs = text.find("_rs") != text.npos;
    found[rs ? "wgmma with A in registers" : "wgmma"] = device::product_effects(rs);
  }
  return found;
}

/// Whether the emulator may say `seen` where a call is to make the access `told`.
bool covers(const Access& told, const Access& seen) {
  const bool shared = told.memory == Memory::shared || told.memory == Memory::shared_cluster ||
                      told.memory == Memory::barrier;
  const bool global = told.memory == Memory::global || told.memory == Memory::tensor_map;
  if (seen.memory == Memory::global ? !global : !shared) return false;
  if (seen.memory == Memory::shared_cluster && told.memory == Memory::shared) return false;
  if (told.proxy != seen.proxy || told.atomic != seen.atomic) return false;
  return seen.atomic || (seen.reads && told.reads) || (seen.writes && told.writes);
}

std::string text(const Access& a) {
  constexpr const char* memories[] = {
      "registers",     "shared memory",         "shared memory of the cluster",
      "global memory", "a tensor map's memory", "an mbarrier"};
  return fmt::format("{}{}{}of {}{}", a.atomic ? "atomic " : "", a.reads ? "read " : "",
                     a.writes ? "write " : "", memories[static_cast<int>(a.memory)],
                     a.proxy == device::Proxy::async ? " (async)" : "");
}

/// What the rows' columns still owe: each read and write of memory, until somebody has made it.
class Owed {
 public:
  Owed() {
    for (const device::RowInfo& f : device::rows()) add(std::string(f.name), f.effects);
    add("wgmma", device::product_effects(false));
    add("wgmma with A in registers", device::product_effects(true));
  }
  void pay(const std::string& name, const Access& seen) {
    std::erase_if(accesses_[name], [&](const Access& told) { return covers(told, seen); });
  }
  bool owes(const std::string& name) const {
    const auto found = accesses_.find(name);
    return found != accesses_.end() && !found->second.empty();
  }
  std::string left() const {
    std::string all;
    for (const auto& [name, accesses] : accesses_)
      for (const Access& a : accesses) all += name + ": " + text(a) + "\n";
    return all;
  }

 private:
  // Operations on mbarriers are no accesses; atomic ones are neither read nor write.
  void add(const std::string& name, const Effects& effects) {
    for (Access a : effects.accesses()) {
      if (a.memory == Memory::registers || a.memory == Memory::barrier) continue;
      const Access told = a;
      for (const bool reads : {true, false}) {
        if (!(reads ? told.reads : told.writes)) continue;
        a.reads = reads || told.atomic;
        a.writes = !reads || told.atomic;
        accesses_[name].push_back(a);
      }
    }
  }

  std::map<std::string, std::vector<Access>> accesses_;
};

}  // namespace

TEST_CASE("calls of the waist touch the memory that their rows tell, and no other") {
  std::vector<const Case*> cases;
  for (const Case& c : all_cases())
    if (c.emulated && !c.slow && c.outcome != Outcome::refused) cases.push_back(&c);
  const auto bytes = [](const Case* c) {
    std::size_t sum = 0;
    for (const Array& a : c->arrays) sum += a.bytes.size();
    return sum;
  };
  std::stable_sort(cases.begin(), cases.end(),
                   [&](const Case* a, const Case* b) { return bytes(a) < bytes(b); });
  Owed owed;
  CHECK(owed.owes("store_async"));
  std::set<std::string> wrong, met;
  for (const Case* c : cases) {
    // Each row in one check at least, and in as many as show all that it does. (Pure ones are in
    // the emulator's tests.)
    bool is_news = false;
    for (const auto& [name, effects] : calls_in(c->text))
      is_news |= !effects.pure && (met.insert(name).second || owed.owes(name));
    if (!is_news) continue;
    std::vector<std::string> lines = {""};
    std::istringstream in(c->text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::vector<std::array<bool, 128>> known(lines.size());
    const auto watch = [&](int line, const Access& seen) {
      const int kind = static_cast<int>(seen.memory) + 8 * static_cast<int>(seen.proxy) +
                       16 * seen.reads + 32 * seen.writes + 64 * seen.atomic;
      bool& is_known = known.at(static_cast<std::size_t>(line))[static_cast<std::size_t>(kind)];
      if (is_known) return;
      is_known = true;
      const std::string& at = lines[static_cast<std::size_t>(line)];
      bool is_told = false;
      for (const auto& [name, effects] : calls_in(at)) {
        const auto accesses = effects.accesses();
        if (!std::any_of(accesses.begin(), accesses.end(),
                         [&](const Access& a) { return covers(a, seen); }))
          continue;
        is_told = true;
        owed.pay(name, seen);
      }
      if (!is_told) wrong.insert(c->name + ": " + text(seen) + " by" + at);
    };
    (void)run_emulator(*c, emulator::Asynchrony::eager, emulator::Schedule::fifo, watch);
  }
  for (const std::string& what : wrong) {
    INFO(what);
    CHECK(false);
  }
  CHECK(owed.left() == "");
}

TEST_CASE("an access is told by its memory, its proxy and its kind") {
  const Access write = {.memory = Memory::shared, .writes = true};
  const auto changed = [&](auto change) {
    Access a = write;
    change(a);
    return a;
  };
  CHECK(covers(write, write));
  const Access in_cluster = changed([](Access& a) { a.memory = Memory::shared_cluster; });
  CHECK(covers(in_cluster, write));
  CHECK(!covers(write, in_cluster));
  CHECK(!covers(write, changed([](Access& a) { a.memory = Memory::global; })));
  CHECK(!covers(write, changed([](Access& a) { a.proxy = device::Proxy::async; })));
  CHECK(!covers(write, changed([](Access& a) { a.atomic = true; })));
  CHECK(!covers(write, {.memory = Memory::shared, .reads = true}));
}
