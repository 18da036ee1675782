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

// Threads wait for each other before they wait for what is fetched, which goes on meanwhile.
void add(Statements& list, const Need& need, Location at) {
  auto place = list.end();
  while (place != list.begin() && std::holds_alternative<Wait>(std::prev(place)->what)) --place;
  Statements made;
  if (need.fence) made.push_back({Fence{}, at});
  if (need.sync) made.push_back({Sync{}, at});
  list.insert(place, made.begin(), made.end());
}

void order(Statements& list, const Needed& needed) {
  Statements ordered;
  for (Statement& s : list) {
    if (const auto found = needed.before.find(&s); found != needed.before.end())
      add(ordered, found->second, s.at);
    for_each_body(s, [&](Statements& body) { order(body, needed); });
    ordered.push_back(std::move(s));
  }
  list = std::move(ordered);
}

}  // namespace

void order_accesses(Program& l) {
  for_each_list(l, [&](Statements& list) {
    order(list, Order(l, Order::Ask::threads).missing(list));
  });
}

}  // namespace palladium::passes
