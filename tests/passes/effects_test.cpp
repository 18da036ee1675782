// What statements touch: of each kind, all that it is ever said to touch in the programs of
// tests/passes/cases, in those that passes make of them, and in a few more: every kind is there.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/manifest.hpp"
#include "palladium/error.hpp"
#include "tests/support/effect_words.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/pass_case.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

using Table = std::map<std::string, std::set<std::string>>;

void add(const lowered::Program& l, const lowered::Statements& list, Table& table) {
  for (const lowered::Statement& s : list) {
    const auto* const nest = std::get_if<lowered::LoopNest>(&s.what);
    table[kind_of({s.what.index(), nest == nullptr ? 0 : nest->sink.index()})].merge(
        words_of(lowered::effects(l, s)));
    lowered::for_each_body(s, [&](const lowered::Statements& body) { add(l, body, table); });
  }
}

void add(const lowered::Program& l, Table& table) {
  lowered::for_each_list(l, [&](const lowered::Statements& list) { add(l, list, table); });
}

// What few kernels do at once: atomics through index arrays, under masks; blocks that prefetched
// numbers choose; semaphores, and what is told, of computed numbers.
void add_rare_kernels(Table& table) {
  const auto add_kernel = [&](const Body& body, const PallasCallOptions& options,
                              const std::vector<trace::ArgumentType>& arguments) {
    (void)cuda::lower(traced(body, options, arguments), {.compute_capability = 90},
                      [&](const passes::PassRun&, const lowered::Program& l) { add(l, table); });
  };
  add_kernel(
      [](Ref ids, Ref x, Ref row, Ref o) {
        const Value i = ids[_], at = row[0];
        atomic_cas(o.at({at, i}), x[_], x[_] + 1, {.mask = x[_] > i});
        store(o.at({at, i}), x[_] + o[{at, ds(at, 32)}], {.mask = x[_] > 2});
      },
      {.name = "chosen", .out_type = {{8, 64}, i32}},
      {array({32}, i32), array({32}, i32), array({4}, i32)});
  add_kernel([](Ref, Ref x, Ref o) { o[_] = x[_] + 1; },
             {.name = "prefetched",
              .out_type = {{4, 16}, i32},
              .num_scalar_prefetch = 1,
              .grid = 4,
              .in_specs = {BlockSpec{{pl::squeezed, 16},
                                     [](Index i, Ref s) {
                                       return Indices{s[i], 0};
                                     }}},
              .out_specs = {BlockSpec{{pl::squeezed, 16},
                                      [](Index i, Ref) {
                                        return Indices{i, 0};
                                      }}}},
             {array({4}, i32), array({4, 16}, i32)});
  (void)cuda::lower(changed_graph_of(R"(kernel waits
  grid
  args[0]: i32[4] in blocks [4]
  outputs[0]: i32[4] in blocks [4]
{ %0: ref block i32[4] %1: ref block i32[4] %2: ref semaphore i32[4]
  %3: ref block i32[] = at %0 [1]
  %4: i32[] = load %3
  %5: ref semaphore i32[] = at %2 [%4]
  semaphore_signal %5, %4
  semaphore_wait %5, %4 [1]
  debug_print 0 "n {}" %4
  %6: i32[4] = load %0
  store %1, %6
}
)"),
                    {.compute_capability = 90},
                    [&](const passes::PassRun&, const lowered::Program& l) { add(l, table); });
}

Table table_of_cases() {
  Table table;
  for (const std::string& file : pass_case_files()) {
    const PassCase c = PassCase::parse(text_of(file));
    lowered::Program l = lowered_of(c.input);
    add(l, table);
    for (const auto& all : {passes::attempt_passes(), passes::chosen_passes()})
      for (const passes::Pass& p : all)
        if (p.name == c.pass) {
          try {
            p.run(l);
            add(l, table);
          } catch (const CompileError&) {  // a refusal
          }
        }
  }
  add_rare_kernels(table);
  return table;
}

std::string text_of(const Table& table) {
  std::string text;
  for (const auto& [kind, effects] : table) {
    text += kind + "\n";
    for (const std::string& e : effects) text += "  " + e + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("each kind of statement touches what its row says, and nothing else") {
  CHECK(changes(effects_by_kind, text_of(table_of_cases())) == "unchanged\n");
}
