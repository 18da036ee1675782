// The answers of effects() in words, and all that there are.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/effects_for_tests.hpp"
#include "codegen/lowered/fields.hpp"

namespace palladium::test {

inline constexpr const char* access_words[] = {"awaits", "reads", "writes", "updates"};
inline constexpr const char* role_words[] = {"value",     "mask",    "compared", "view",
                                             "subscript", "control", "result",   "scratch",
                                             "barrier",   "block"};

/// "writes result storage async elected completes mbarrier"
inline std::string words_of(const lowered::Effect& e) {
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

/// All that a statement touches, each word for word.
inline std::set<std::string> words_of(const lowered::Effects& effects) {
  std::set<std::string> all;
  for (const lowered::Effect& e : effects) all.insert(words_of(e));
  if (effects.syncs) all.insert("syncs");
  if (effects.fences) all.insert("fences");
  if (effects.tells) all.insert("tells");
  return all;
}

/// What a kind of statement or of sink is called.
inline std::string kind_of(const lowered::testing::Kind& kind) {
  return kind.statement == 0 ? lowered::sink_words[kind.sink]
                             : lowered::statement_words[kind.statement];
}

/// By kind, which stands in front of its answers.
inline constexpr const char* effects_by_kind = R"(advance
  updates block ring
ahead
  reads control storage
  updates block ring
  writes block storage
arrive
  reads control storage
  updates barrier storage elected completes mbarrier
  updates barrier storage elected mbarrier
assign
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  writes result storage
clear
  reads value storage
  updates result storage
close
  awaits closes cp_async_group
  awaits elected closes bulk_group
copy
  reads control storage
  reads subscript storage
  reads value storage async elected completes bulk_group
  reads value window async elected
  updates result window async elected completes bulk_group
  writes result storage async elected completes mbarrier
copy_storage
  reads value storage
  writes result storage
dot
  reads control storage
  reads value storage
  reads value storage async completes wgmma_group
  reads value storage completes wgmma_group
  updates result storage
  updates result storage completes wgmma_group
  writes result storage
  writes result storage completes wgmma_group
elected
fence
  fences
fill
  reads value window
  writes result storage
  writes result storage completes cp_async_group
flush
  reads value storage
  writes result window
grid_loop
  reads control storage
host_call
  reads control storage
  syncs
  tells
  updates scratch storage
if_masked
if_whole
  reads block window
inline
  reads control storage
  reads subscript storage
  reads value storage
  reads value window
  updates result storage
  updates result window
  writes result storage
lead
  reads control storage
  updates block ring
  writes block storage
loop
  reads control storage
  writes result storage
print
  reads value storage
  reads value storage in place of another
  reads value window
  tells
reduce
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  syncs
  updates scratch storage
  writes result storage
relayout
  reads value storage
  syncs
  updates scratch storage
  writes result storage
scalar
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  writes result storage
scan
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  syncs
  updates scratch storage
  writes result storage
scope
semaphore
  reads control storage
  reads result window elected
  reads subscript storage
  syncs
  updates result window elected
  updates scratch storage
  writes result storage
set_registers
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
  reads view storage in place of another
  updates result storage
  updates result window
  writes result storage
  writes result window
switch
  reads control storage
  writes result storage
sync
  syncs
update
  reads compared window
  reads mask storage
  reads mask storage in place of another
  reads mask window
  reads subscript storage
  reads value storage
  reads value storage in place of another
  reads value window
  reads view storage
  reads view storage in place of another
  updates result window
  writes result storage
wait
  reads barrier storage awaits mbarrier
  reads control storage
  syncs
  updates scratch storage
  writes result storage
wait_group
  awaits awaits cp_async_group
  awaits elected awaits bulk_group
  updates result storage awaits wgmma_group
warps
  syncs
when
  reads control storage
while
  reads control storage
window
  reads control window
  writes block window
)";

}  // namespace palladium::test
