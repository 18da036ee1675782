// What statements touch: of each kind, all that it is ever said to touch in the programs of
// tests/passes/cases, in those that passes make of them, and in a few more: every kind is there.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/fields.hpp"
#include "codegen/passes/manifest.hpp"
#include "palladium/error.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/pass_case.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

constexpr const char* access_words[] = {"awaits", "reads", "writes", "updates"};
constexpr const char* role_words[] = {"value",   "mask",   "compared", "view",    "subscript",
                                      "control", "result", "scratch",  "barrier", "block"};

// "writes result storage async elected completes mbarrier"
std::string words_of(const lowered::Effect& e) {
  std::string text = access_words[static_cast<int>(e.access)];
  if (e.access != lowered::Effect::Access::none) {
    text += std::string(" ") + role_words[static_cast<int>(e.role)];
    text += e.storage ? " storage" : e.window ? " window" : e.ring ? " ring" : " -";
  }
  if (e.replaces) text += " in place of another";
  if (e.proxy == device::Proxy::async) text += " async";
  if (e.elected) text += " elected";
  constexpr const char* of[] = {"", " completes", " closes", " awaits"};
  constexpr const char* on[] = {"", " mbarrier", " cp_async_group", " bulk_group", " wgmma_group"};
  return text + of[static_cast<int>(e.completion)] + on[static_cast<int>(e.on)];
}

using Table = std::map<std::string, std::set<std::string>>;

void add(const lowered::Program& l, const lowered::Statements& list, Table& table) {
  for (const lowered::Statement& s : list) {
    std::string kind = passes::statement_words[s.what.index()];
    if (const auto* nest = std::get_if<lowered::LoopNest>(&s.what))
      kind = passes::sink_words[nest->sink.index()];
    std::set<std::string>& known = table[kind];
    const lowered::Effects effects = lowered::effects(l, s);
    for (const lowered::Effect& e : effects) known.insert(words_of(e));
    if (effects.syncs) known.insert("syncs");
    if (effects.fences) known.insert("fences");
    if (effects.tells) known.insert("tells");
    lowered::for_each_body(s, [&](const lowered::Statements& body) { add(l, body, table); });
  }
}

void add(const lowered::Program& l, Table& table) {
  for (const lowered::ProgramBody& b : l.bodies) {
    add(l, b.statements, table);
    add(l, b.producer, table);
  }
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
  (void)cuda::lower(graph_of(R"(kernel waits
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
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_dir() + "/tests/passes/cases")) {
    if (!entry.is_regular_file()) continue;
    const PassCase c = PassCase::parse(text_of(entry.path().string()));
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

constexpr const char* expected = R"(assign
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  writes result storage
await
  awaits awaits cp_async_group
  awaits closes cp_async_group
await_dot
  updates result storage awaits wgmma_group
await_fetch
  reads barrier storage awaits mbarrier
await_sends
  awaits elected awaits bulk_group
consume
  updates barrier storage elected completes mbarrier
  updates block ring
copy
  reads value storage
  writes result storage
dot
  awaits awaits wgmma_group
  reads control storage
  reads value storage
  reads value storage async
  updates result storage
  updates result storage completes wgmma_group
  writes result storage
  writes result storage completes wgmma_group
fetch
  reads subscript storage
  reads value window async elected
  updates barrier storage elected mbarrier
  writes result storage async elected completes mbarrier
fill
  reads value window
  writes result storage
  writes result storage completes cp_async_group
flush
  reads value storage
  writes result window
grid_loop
host_call
  reads control storage
  tells
  updates scratch storage
loop
  reads control storage
  writes result storage
prefetch
  awaits closes cp_async_group
  updates block ring
print
  reads value storage
  tells
produce
  reads barrier storage awaits mbarrier
  updates block ring
reduce
  reads value storage
  reads value window
  updates scratch storage
  writes result storage
relayout
  reads value storage
  updates scratch storage
  writes result storage
release
  updates barrier storage elected completes mbarrier
scalar
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  writes result storage
scan
  reads value window
  updates scratch storage
  writes result storage
scope
semaphore
  reads control storage
  reads result window elected
  reads subscript storage
  updates result window elected
  updates scratch storage
  writes result storage
send
  reads subscript storage
  reads value storage async elected completes bulk_group
  updates result window async elected completes bulk_group
spill
  reads value storage
  writes result storage
stage
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  writes result storage
  writes result storage completes cp_async_group
store
  reads mask storage
  reads mask storage in place of another
  reads mask window
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  reads view storage
  updates result storage
  updates result window
  writes result storage
  writes result window
switch
  reads control storage
  writes result storage
sync
  fences
  syncs
update
  reads compared window
  reads mask storage
  reads mask window
  reads subscript storage
  reads value window
  reads view storage
  updates result window
  writes result storage
warps
when
  reads control storage
while
  reads control storage
window
  reads control window
  writes block window
)";

}  // namespace

TEST_CASE("each kind of statement touches what its row says, and nothing else") {
  CHECK(changes(expected, text_of(table_of_cases())) == "unchanged\n");
}
