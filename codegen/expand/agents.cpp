// Which threads of a block do what: warpgroups of agents, side by side.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "codegen/expand/expander.hpp"

namespace palladium::expand {

ExprId Expander::is_among(int first, int count) {
  return e_.all({e_.plain(Operator::at_least, warpgroup_, number(first), bool_),
                 e_.plain(Operator::less, warpgroup_, number(first + count), bool_)});
}

bool Expander::has_one_agent() const {
  return l_.bodies.size() == 1 && l_.bodies[0].agents.size() == 1;
}

// The other agents one after the other, the last one first, and the first one behind what all know.
void Expander::expand_body(const lowered::Body& body) {
  const int number_of_body = static_cast<int>(&body - l_.bodies.data()), begin = agent_.first;
  const std::size_t others = body.agents.size() - 1;
  std::vector<std::pair<ExprId, thread::Statements>> branches;
  int first = begin + body.warpgroups();
  for (std::size_t i = others; i > 0; --i) {
    const int count = body.agents[i].warpgroups;
    first -= count;
    agent_ = {.first = first, .count = count, .is_known = true};
    b_.open(thread::Block{});
    const auto slots = slots_;
    apart([&] { expand_agent(body.agents[i], number_of_body); });
    slots_ = slots;
    const ExprId is_agent = count == 1 ? e_.plain(Operator::equal, warpgroup_, number(first), bool_)
                                       : is_among(first, count);
    branches.emplace_back(is_agent, b_.take());
  }
  agent_ = {.first = begin, .count = body.agents[0].warpgroups, .is_known = others == 0};
  if (others > 0) b_.open(thread::Block{});
  expand_agent(body.agents[0], number_of_body);
  if (others == 0) return;
  branches.emplace_back(no_expr, b_.take());
  for (std::size_t n = 0; n < branches.size(); ++n) {
    auto& [condition, statements] = branches[n];
    if (n == 0)
      b_.add(thread::If{
          .condition = condition, .body = std::move(statements), .uniform = true, .both = true});
    else
      b_.add(thread::Else{condition, std::move(statements)});
  }
}

// Registers change hands before any are filled. What one thread alone fills it counts alone.
void Expander::expand_agent(const lowered::Agent& agent, int body) {
  const std::span all(agent.statements);
  find_last_turns(agent.statements);
  const auto begin = std::ranges::find_if_not(all, [](const lowered::Statement& s) {
    return std::holds_alternative<lowered::SetRegisters>(s.what);
  });
  const auto front = static_cast<std::size_t>(begin - all.begin());
  expand_list(all.first(front));
  for (const lowered::Statement& s : all)
    if (!std::holds_alternative<lowered::Elected>(s.what)) begin_rings_filled(s);
  find_lags(agent.statements);
  declare_slots_before(agent.statements);
  declare_storages(agent, body);
  parts_.clear();
  declare_parts(agent.statements);
  expand_by_length(all.subspan(front));
}

void Expander::expand_one(const lowered::SetRegisters& s) {
  b_.add(thread::Call{.function = s.more ? Row::setmaxnreg_inc : Row::setmaxnreg_dec,
                      .templates = {std::int64_t{s.count}}});
}

void Expander::expand_one(const lowered::Elected& e) {
  b_.open(thread::If{elected(), {}});
  is_one_thread_ = true;
  for (const lowered::Statement& s : e.body) begin_rings_filled(s);
  expand_list(e.body);
  is_one_thread_ = false;
  b_.close();
}

}  // namespace palladium::expand
