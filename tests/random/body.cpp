// Bodies as a kernel takes them: which parameters they have, and whose operand each is.
#include <algorithm>
#include <utility>

#include "tests/random/statements.hpp"

namespace palladium::test::random_calls {
namespace {

struct Collected {
  std::vector<Ref> refs;
  std::vector<Value> numbers;
  void take(const Ref& r) { refs.push_back(r); }
  void take(const Value& v) { numbers.push_back(v); }
  void take(const Refs& all) {
    for (const Ref& r : all) refs.push_back(r);  // a Ref cannot be assigned
  }
};

Parts apart(const Plan& plan, Collected given) {
  Parts parts;
  parts.numbers = std::move(given.numbers);
  for (std::size_t i = 0; i < given.refs.size(); ++i) {
    auto& part = i < plan.inputs.size()                         ? parts.inputs
                 : i < plan.inputs.size() + plan.outputs.size() ? parts.outputs
                                                                : parts.scratch;
    part.push_back(given.refs[i]);
  }
  return parts;
}

template <class... P>
Body taking(const Plan& plan) {
  return Body(
      [plan](P... parameters) {
        Collected given;
        (given.take(parameters), ...);
        const Parts parts = apart(plan, std::move(given));
        Statements(plan, parts).run();
      },
      user(body_line));
}

template <std::size_t... I>
Body taking_refs(const Plan& plan, std::index_sequence<I...>) {
  return taking<pl::detail::Repeat<Ref, I>...>(plan);
}

Body taking_refs(const Plan& plan, int count) {
  switch (count) {
  case 0: return taking_refs(plan, std::make_index_sequence<0>());
  case 1: return taking_refs(plan, std::make_index_sequence<1>());
  case 2: return taking_refs(plan, std::make_index_sequence<2>());
  case 3: return taking_refs(plan, std::make_index_sequence<3>());
  case 4: return taking_refs(plan, std::make_index_sequence<4>());
  case 5: return taking_refs(plan, std::make_index_sequence<5>());
  case 6: return taking_refs(plan, std::make_index_sequence<6>());
  case 7: return taking_refs(plan, std::make_index_sequence<7>());
  default: return taking_refs(plan, std::make_index_sequence<8>());
  }
}

}  // namespace

Body body_of(const Plan& plan) {
  if (plan.operands_more != 0 || (plan.numbers.empty() && plan.seed % 2 == 0)) {
    const std::size_t all = plan.inputs.size() + plan.outputs.size() + plan.scratch.size();
    return taking_refs(plan, std::max(0, static_cast<int>(all) + plan.operands_more));
  }
  const std::string numbers = plan.pattern.substr(0, plan.pattern.find_last_of('v') + 1);
  if (numbers == "v") return taking<Value, Refs>(plan);
  if (numbers == "rv") return taking<Ref, Value, Refs>(plan);
  if (numbers == "rrv") return taking<Ref, Ref, Value, Refs>(plan);
  if (numbers == "vv") return taking<Value, Value, Refs>(plan);
  if (numbers == "vrv") return taking<Value, Ref, Value, Refs>(plan);
  if (numbers == "rvv") return taking<Ref, Value, Value, Refs>(plan);
  if (numbers == "rvrv") return taking<Ref, Value, Ref, Value, Refs>(plan);
  if (numbers == "vrrv") return taking<Value, Ref, Ref, Value, Refs>(plan);
  if (numbers == "rrvv") return taking<Ref, Ref, Value, Value, Refs>(plan);
  return taking<Refs>(plan);
}

}  // namespace palladium::test::random_calls
