// A lowered program that is broken is refused by the rule that it breaks.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/verify.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/passes/lowering.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::StartsWith;

namespace verified {
namespace {

// Two products, one behind the other, whose operands share the memory of a block.
constexpr const char* two_products = R"(kernel two
  grid
  args[0]: f16[64,192] in blocks [64,192]
  args[1]: f16[192,64] in blocks [192,64]
  args[2]: f16[64,192] in blocks [64,192]
  args[3]: f16[192,64] in blocks [192,64]
  outputs[0]: f32[64,64] in blocks [64,64]
  outputs[1]: f32[64,64] in blocks [64,64]
num_warps 4
{ %0: ref block f16[64,192] %1: ref block f16[192,64] %2: ref block f16[64,192] %3: ref block f16[192,64] %4: ref block f32[64,64] %5: ref block f32[64,64]
  %6: f16[64,192] = load %0
  %7: f16[192,64] = load %1
  %8: f32[64,64] = dot %6, %7
  store %4, %8
  %9: f16[64,192] = load %2
  %10: f16[192,64] = load %3
  %11: f32[64,64] = dot %9, %10
  store %5, %11
}
)";

lowered::Program program(int compute_capability = 75) {
  return cuda::lower(graph_of(two_products), {.compute_capability = compute_capability});
}

// Behind the last pass.
constexpr lowered::Behind last{.waits = true, .offsets = true, .order = true};

// By whom each storage is filled, and which are read.
struct Uses {
  std::map<lowered::StorageId, int> filled = {};
  std::set<lowered::StorageId> read = {};

  void add(const lowered::Program& l, const lowered::Statements& list) {
    for (const lowered::Statement& s : list) {
      for (const lowered::Effect& e : lowered::effects(l, s)) {
        if (e.role == lowered::Effect::Role::scratch || !e.storage) continue;
        if (e.reads()) read.insert(e.storage);
        if (e.writes()) ++filled[e.storage];
      }
      lowered::for_each_body(s, [&](const lowered::Statements& body) { add(l, body); });
    }
  }

  // Whether the statement alone fills, with something that somebody reads, what is no window's, no
  // barrier and in no ring.
  bool is_missed(const lowered::Program& l, const lowered::Statement& s) const {
    for (const lowered::Effect& e : lowered::effects(l, s)) {
      if (!e.writes() || !e.storage || e.reads() || filled.at(e.storage) != 1) continue;
      bool other = bool(l.storages[e.storage].ring());
      for (const lowered::Window& w : l.windows) other |= w.storage() == e.storage;
      if (!other && read.contains(e.storage)) return true;
    }
    return false;
  }
};

// Leaves each statement out of a list, and of those inside of it, that somebody would miss.
int leave_out(lowered::Program& l, lowered::Statements& list, const Uses& uses) {
  int left_out = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const lowered::Statement s = list[i];
    // The number of a loop's iteration is missed by nobody behind it.
    if (!lowered::repeats(s) && uses.is_missed(l, s)) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      INFO(lowered::to_text(l));
      CHECK_THAT(lowered::defect(l, last), StartsWith("filled: "));
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), s);
      ++left_out;
    }
    lowered::for_each_body(
        list[i], [&](lowered::Statements& body) { left_out += leave_out(l, body, uses); });
  }
  return left_out;
}

}  // namespace

TEST_CASE("a statement that names what there is not is refused") {
  lowered::Program l = program();
  CHECK(lowered::defect(l, last) == "");
  l.bodies[0].agents[0].statements.push_back({lowered::Advance{lowered::RingId(3)}});
  CHECK(lowered::defect(l, {}) == "ids: advance names r3, which there is not");
  l.bodies[0].agents[0].statements.back() = {lowered::Wait{.barrier = lowered::BarrierId(0)},
                                             {.file = "a", .line = 7}};
  CHECK(lowered::defect(l, {}) == "ids: wait of line 7 names m0, which there is not");
}

TEST_CASE("a storage within one that there is not is refused") {
  lowered::Program l = program(90);
  for (lowered::Storage& s : l.storages)
    if (s.in_shared()) s.shared().within.storage = lowered::StorageId(99);
  CHECK(lowered::defect(l, {}) == "ids: a storage lies within s99, which there is not");
}

TEST_CASE("storages that share bytes while both hold something are refused") {
  lowered::Program l = program();
  std::vector<lowered::StorageId> operands;
  for (const lowered::StorageId s : l.storages.ids())
    if (l.storages[s].in_shared() && l.storages[s].dtype == f16) operands.push_back(s);
  REQUIRE(operands.size() == 4);
  // Those of one product beside each other, those of the other in their place.
  l.storages[operands[1]].shared().offset = l.storages[operands[0]].shared().offset + 16;
  CHECK(lowered::defect(l, {}) == "");
  CHECK_THAT(lowered::defect(l, last), StartsWith("bytes: "));
}

// Takes each statement of a kind out of the program, one by one, with what becomes of it then.
template <class Kind, class F>
int without_each(lowered::Program& l, lowered::Statements& list, const F& meant, const char* rule) {
  int found = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const lowered::Statement s = list[i];
    if (const Kind* const kind = std::get_if<Kind>(&s.what); kind && meant(*kind)) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      INFO(lowered::to_text(l));
      CHECK_THAT(lowered::defect(l, last), StartsWith(rule));
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), s);
      ++found;
    }
    lowered::for_each_body(list[i], [&](lowered::Statements& body) {
      found += without_each<Kind>(l, body, meant, rule);
    });
  }
  return found;
}

TEST_CASE("what nobody does, expects, waits for or needs is refused") {
  // A copy and a product, not in a loop: each is the only one of its kind.
  lowered::Program l = program(90);
  REQUIRE(lowered::defect(l, last) == "");
  lowered::Statements& list = l.bodies[0].agents[0].statements;
  const auto any = [](const auto&) { return true; };
  CHECK(without_each<lowered::Wait>(l, list, any, "awaited: ") > 0);
  CHECK(without_each<lowered::Arrive>(l, list, any, "awaited: ") > 0);
  const auto defect_with = [&](lowered::Statement s, int compute_capability = 75) {
    lowered::Program p = program(compute_capability);
    p.bodies[0].agents[0].statements.push_back(std::move(s));
    return lowered::defect(p, last);
  };
  CHECK_THAT(defect_with({lowered::Fence{}}), StartsWith("fenced: fence orders nothing"));
  CHECK(defect_with({lowered::Fence{}}, 90) == "");
  CHECK(defect_with({lowered::SetRegisters{.count = 40}}) == "");
  CHECK_THAT(defect_with({lowered::IfWhole{.bodies = {{}, {}}}}),
             StartsWith("does: if_whole asks of no block"));

  // Whom a scalar was for.
  lowered::Program conditional = cuda::lower(graph_of(R"(kernel conditional
  grid
  args[0]: i32[4] in blocks [4]
  outputs[0]: f32[32] in blocks [32]
{ %0: ref block i32[4] %1: ref block f32[32]
  %2: ref block i32[] = at %0 [1]
  %3: i32[] = load %2
  %4: i32[] = constant 3
  %5: bool[] = lt %3, %4
  when %5
    {
      %6: f32[32] = constant 1
      store %1, %6
    }
}
)"),
                                             {.compute_capability = 90});
  CHECK(lowered::defect(conditional, last) == "");
  CHECK(without_each<lowered::When>(conditional, conditional.bodies[0].agents[0].statements, any,
                                    "used: ") == 1);
}

TEST_CASE("whatever fills what somebody reads is missed when it is left out") {
  int left_out = 0;
  for (const ops::Entry& entry : ops::registry()) {
    CAPTURE(entry.name);
    const std::vector<ArgType> types(entry.inputs.begin(), entry.inputs.end());
    const graph::Graph g = graph::from_json(entry.factory().lower(types).json());
    for (const int compute_capability : {75, 80, 90}) {
      lowered::Program l = cuda::lower(g, {.compute_capability = compute_capability});
      lowered::for_each_list(l, [&](lowered::Statements& list) {
        Uses uses;
        uses.add(l, list);
        left_out += leave_out(l, list, uses);
      });
    }
  }
  CHECK(left_out > 80);
}

namespace {

/// What is refused of a typed program in which the first of such words is another.
std::string typed_defect(const std::string& name, const std::string& words,
                         const std::string& others) {
  std::string text = text_of(source_dir() + "/tests/passes/typed/" + name + ".txt");
  const std::size_t at = text.find(words);
  REQUIRE(at != std::string::npos);
  return lowered::defect(lowered_of(text.replace(at, words.size(), others)), {});
}

}  // namespace

TEST_CASE("which of several barriers, slots and blocks is meant is said, and there is such") {
  const auto by_hand = [](const std::string& words, const std::string& others) {
    return typed_defect("by-hand", words, others);
  };
  CHECK(by_hand("phase=tracked", "phase=tracked") == "");
  CHECK(by_hand("wait barrier=m0 slot=%14 ", "wait barrier=m0 ") ==
        "chosen: wait does not say which of several barriers it means");
  CHECK(by_hand("arrive barrier=m0 slot=%4 ", "arrive barrier=m0 ") ==
        "chosen: arrive does not say which of several barriers it means");
  CHECK(by_hand("completes=m0 slot=%4 ", "completes=m0 ") ==
        "chosen: copy does not say which of several barriers it means");
  CHECK(by_hand("slot=%14 phase=tracked", "slot=%14") ==
        "chosen: wait waits for an iteration at a barrier of no ring");
  CHECK(by_hand("dtype=u64 shape=[2] row_stride=2", "dtype=u64 shape=[33] row_stride=33") ==
        "chosen: wait waits for one of more barriers than a thread has bits");
  const std::string wait = "        wait barrier=m0 slot=%14 phase=";
  CHECK(by_hand(wait + "tracked\n", wait + "in_turn\n") == "");
  CHECK(by_hand(wait + "tracked\n", wait + "tracked\n" + wait + "in_turn\n") ==
        "chosen: wait waits in turn at barriers for which others wait in any order");
  CHECK(by_hand("slot=%17 bytes=16384", "slot=%17 bytes=16384 back=1") ==
        "chosen: arrive arrives for an iteration before at a barrier of no ring");
  CHECK(by_hand("shape=[64,64] of=%23 row_stride=64 swizzle=128 fetched ring=r0",
                "shape=[64,64] of=%23 row_stride=64 swizzle=128 fetched") ==
        "chosen: copy chooses a slot of no ring");
  CHECK(by_hand("compute_capability=90", "compute_capability=80") ==
        "chosen: copy is a copy by TMA, which the machine does not have");
  CHECK(typed_defect("exchange", "to=s1:%6", "to=s1") ==
        "chosen: copy copies between storages of one block, or what is none of another");
  CHECK(typed_defect("multicast", "from=%9 to=s4", "from=%9 to=s4:%3") ==
        "chosen: copy copies between storages of one block, or what is none of another");
  CHECK(typed_defect("exchange", " completes=m0", "") ==
        "chosen: copy fills another block, which nobody tells");
  CHECK(typed_defect("exchange", "completes=m0", "completes=m0 multicast=%5") ==
        "chosen: copy fills several blocks, and brings nothing to shared memory");
}

TEST_CASE("the members of a union lie in its bytes, and share them") {
  const auto lies = [](const std::string& within) {
    return typed_defect("union", "within=s2", within);
  };
  CHECK(lies("within=s2") == "");
  CHECK(lies("within=s2 within_offset=16") ==
        "bytes: s0 lies within s2, which has not so many bytes");
  CHECK(lies("within=s1") == "bytes: s0 lies within s1, which has no bytes of its own");
  CHECK(typed_defect("union", "rows_alike=4 within=s2\n  storage 2",
                     "rows_alike=4 within=s2 within_offset=8\n  storage 2") ==
        "bytes: s1 lies within s2, where it is not aligned");
}

}  // namespace verified
