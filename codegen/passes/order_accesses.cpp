// Puts barriers between statements of threads that touch the same memory, and fences where one of
// them does by the asynchronous proxy. Nobody else makes any, but what a statement needs within
// itself.
//
// Precondition: place_shared_memory, since storages that lie in one place are one memory;
// complete_async, since others learn from a barrier what one thread has waited for.
#include <iterator>
#include <utility>

#include "codegen/lowered/order.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

// Threads wait for each other before they wait for what is fetched, which goes on meanwhile; but
// those who fetch anew, when nobody waits for the last time any more.
void add(Statements& list, const Need& need, const Statement& before) {
  const bool computes =
      std::holds_alternative<LoopNest>(before.what) || std::holds_alternative<Dot>(before.what);
  auto place = list.end();
  while (computes && place != list.begin() && std::holds_alternative<Wait>(std::prev(place)->what))
    --place;
  Statements made;
  if (need.fence) made.push_back({Fence{}, before.at});
  if (need.sync)
    made.push_back({Sync{}, before.at});
  else if (need.meets_warpgroups)
    made.push_back({Sync{Sync::Of::warpgroup}, before.at});
  list.insert(place, made.begin(), made.end());
}

void order(Statements& list, const Needed& needed) {
  Statements ordered;
  for (Statement& s : list) {
    if (const auto found = needed.before.find(&s); found != needed.before.end())
      add(ordered, found->second, s);
    for_each_body(s, [&](Statements& body) { order(body, needed); });
    ordered.push_back(std::move(s));
  }
  if (const auto found = needed.behind.find(&list); found != needed.behind.end())
    add(ordered, found->second, ordered.back());
  list = std::move(ordered);
}

}  // namespace

void order_accesses(Program& l) {
  for_each_list(
      l, [&](Statements& list) { order(list, Order(l, Order::Ask::threads).missing(list)); });
}

}  // namespace palladium::passes
