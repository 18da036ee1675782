// Statements inside of conditions, loops, scopes and branches.
#include "tests/random/statements.hpp"

namespace palladium::test::random_calls {
namespace {

struct Two {
  Value a, b;
};

}  // namespace

void Statements::inside(int depth) {
  for (int i = random_.between(1, 4); i > 0; --i) statement(depth - 1);
}

void Statements::when_(int depth) {
  const std::size_t outside = values_.size();
  pl::when(condition(), [&] {
    inside(depth);
    store();
  });
  values_.resize(outside);
}

void Statements::loop_(int depth) {
  const int lo = random_.below(3), step = random_.pick({1, 1, 2, 3});
  const bool literal = random_.chance(50);
  const Value hi = literal ? Value(random_.below(6)) : index_up_to(5);
  const int unroll = literal ? random_.pick({1, 1, 2, 4, 0}) : 1;
  const Value a0 = some(), b0 = some();
  const std::size_t outside = values_.size();
  const auto body = [&](Index i, Value a, Value b) {
    values_.insert(values_.end(), {i, a, b});
    inside(depth);
    const Value next = coerced(some(), a.dtype(), a.shape());
    return carry(next, coerced(some(), b.dtype(), b.shape()));
  };
  auto [a, b] = pl::loop(lo, hi, LoopOptions{.step = step, .unroll = unroll}, body,
                         a0.astype(a0.dtype()), b0.astype(b0.dtype()));
  values_.resize(outside);
  keep(a);
  keep(b);
}

void Statements::while_(int depth) {
  const int most = random_.below(5);
  const Value a0 = some();
  const std::size_t outside = values_.size();
  const auto again = [&](Value n, Value a) {
    values_.insert(values_.end(), {n, a});
    if (random_.chance(50)) inside(depth);
    const Value holds = random_.chance(30) ? (n < most) & condition() : n < most;
    values_.resize(outside);
    return holds;
  };
  const auto body = [&](Value n, Value a) {
    values_.insert(values_.end(), {n, a});
    inside(depth);
    const Value next = coerced(some(), a.dtype(), a.shape());
    return carry(n + 1, next);
  };
  auto [n, a] = pl::while_loop(again, body, i32(0), a0.astype(a0.dtype()));
  values_.resize(outside);
  keep(n);
  keep(a);
}

void Statements::scope(int depth) {
  const std::size_t outside = values_.size();
  const Value start = some();
  const Shape shape = start.shape();
  Space space = random_.pick({Space::smem, Space::regs});
  const auto body = [&](Ref tmp) {
    tmp[_] = start.astype(tmp.dtype());
    readable_.push_back(&tmp);
    writable_.push_back(&tmp);
    inside(depth);
    const Value result = coerced(some(), tmp.dtype(), tmp.shape());
    std::erase(readable_, &tmp);
    std::erase(writable_, &tmp);
    return result;
  };
  const Value given = run_scoped(body, {Scoped{space, {shape, dtype()}, here()}});
  values_.resize(outside);
  keep(given);
}

void Statements::choose(int depth) {
  const Value a0 = some(), b0 = some();
  const std::size_t outside = values_.size();
  const auto branch = [&] {
    if (random_.chance(80)) inside(depth);
    const Value a = coerced(some(), a0.dtype(), a0.shape());
    const Value b = coerced(some(), b0.dtype(), b0.shape());
    values_.resize(outside);
    return Two{a, b};
  };
  const auto chosen = [&] {
    if (random_.chance(50)) return pl::cond(condition(), branch, branch);
    const Value number = index_up_to(5);
    const Value index = number - random_.below(3);
    return pl::switch_(index, branch, branch, branch);
  };
  const auto [a, b] = chosen();
  values_.resize(outside);
  keep(a);
  keep(b);
}

}  // namespace palladium::test::random_calls
