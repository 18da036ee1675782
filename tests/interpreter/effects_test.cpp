// What operations do with the Refs that they take, against what the table of operations says.
#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "tests/interpreter/tensors.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using graph::Op;

namespace {

constexpr int given = 3;  // where an operation takes a value

/// Records the operation on `m`; what it gives is stored in `result`.
using Instance = std::function<void(const Ref& m, const Ref& result)>;

const std::map<Op, Instance>& on_memory() {
  static const std::map<Op, Instance> instances = {
      {Op::Load, [](const Ref& m, const Ref& result) { result[0] = m[0]; }},
      {Op::Store, [](const Ref& m, const Ref&) { m[0] = given; }},
      {Op::Swap, [](const Ref& m, const Ref& result) { result[0] = swap(m.at({0}), given); }},
      {Op::Atomic, [](const Ref& m, const Ref&) { atomic_add(m.at({0}), given); }},
  };
  return instances;
}

const std::map<Op, Instance>& on_semaphores() {
  static const std::map<Op, Instance> instances = {
      {Op::SemaphoreRead,
       [](const Ref& m, const Ref& result) {
         const Value n = semaphore_read(m.at(0));
         result[0] = n;
       }},
      {Op::SemaphoreSignal, [](const Ref& m, const Ref&) { semaphore_signal(m.at(0), given); }},
      {Op::SemaphoreWait, [](const Ref& m, const Ref&) { semaphore_wait(m.at(0), given); }},
  };
  return instances;
}

/// What an operation gave, and what then was where it had been done.
struct Seen {
  double result = 0, left = 0;
};

/// Of an operation on an element that is `before`.
Seen seen_in_memory(const Instance& instance, int before) {
  Tensor x = full(i32, {1}, before), result(i32, {1}), left(i32, {1});
  const auto body = [=](Ref x, Ref result, Ref left) {
    result[0] = 0;
    left[0] = x[0];
    instance(left, result);
  };
  run(body, {}, {&x}, {&result, &left}, {}, On::interpreter);
  return {result[0], left[0]};
}

/// Of an operation on a semaphore that counts `before`.
Seen seen_of_semaphore(const Instance& instance, int before) {
  const Kernel k = gpu::kernel(
                       [=](Ref o, Ref s) {
                         o[0] = 0;
                         semaphore_signal(s.at(0), before);
                         instance(s, o);
                         const Value n = semaphore_read(s.at(0));
                         o[1] = n;
                       },
                       {.name = "seen",
                        .out_type = {{2}, i32},
                        .scratch_types = {gpu::SemaphoreType::REGULAR({1})}})
                       .on(Target::interpreter);
  const Array o = k();
  const auto counts = o.values<const std::int32_t>();
  return {double(counts[0]), double(counts[1])};
}

Seen seen(Op op, int before) {
  const auto found = on_memory().find(op);
  if (found != on_memory().end()) return seen_in_memory(found->second, before);
  return seen_of_semaphore(on_semaphores().at(op), before);
}

}  // namespace

TEST_CASE("operations read and write what the table of operations says") {
  for (int i = 0; i < graph::num_ops; ++i) {
    const Op op{static_cast<std::uint8_t>(i)};
    const std::span<const graph::Effect> effects = graph::effects(op).on_operands();
    INFO(graph::info(op).name);
    if (graph::is_async_op(op)) continue;  // tests/mosaic: who touches what when
    if (!on_memory().contains(op) && !on_semaphores().contains(op)) {
      CHECK(effects.empty());  // else it wants an instance
      continue;
    }
    constexpr int few = 5, many = 9;
    const Seen a = seen(op, few), b = seen(op, many);
    const bool writes = a.left != few || b.left != many;
    const bool reads = a.result != b.result || (writes && a.left != b.left);
    CHECK(std::ranges::any_of(effects, &graph::Effect::reads) == reads);
    CHECK(std::ranges::any_of(effects, &graph::Effect::writes) == writes);
  }
}
