#include "tests/support/written_chains.hpp"

#include <utility>

namespace palladium::test {
namespace {

/// What softmax of an iteration makes of the sums at `first`: the largest, the total.
struct Softmax {
  Value p, shrink;
};
Softmax softmax(BlockStep& step, std::size_t first, const Value& s) {
  const Value top = step.sums[first];
  const Value next = maximum(top, max(s, {.axis = {1}, .keepdims = true}));
  const Value p = exp2(s - next), shrink = exp2(top - next);
  step.sums[first + 1] =
      step.sums[first + 1] * shrink + pl::sum(p, {.axis = {1}, .keepdims = true});
  step.sums[first] = next;
  return {p, shrink};
}

Value by_keys(const Value& q, const Value& k) { return dot(q, k, {.trans_b = true}); }

}  // namespace

BlockLoop WrittenChain::in(BlockLoop loop) const {
  loop.own = own;
  loop.walked = walked;
  loop.sums = sums;
  loop.body = body;
  return loop;
}

std::vector<WrittenChain> written_chains(DType t, std::int64_t d, std::int64_t columns) {
  const bool turns = t.bytes() == 1;
  const BlockLoop::Walked some{.width = d}, values{.width = d, .is_turned = turns},
      square{.width = columns, .is_turned = turns};
  const auto by_values = [=](const Value& a, const Value& v) {
    return dot(a.astype(t), v, {.trans_b = turns});
  };
  const BlockLoop::Sum top{1, -1e30f}, total{1, 0}, sum{d, 0};
  std::vector<WrittenChain> all;
  all.push_back({"a gated MLP", {d}, {some, some, values}, {sum}, [=](BlockStep& s) {
                   const Value a = by_keys(s.own[0], s.blocks[0]()) * 0.125f,
                               b = by_keys(s.own[0], s.blocks[1]());
                   const Value h = a / (1.0f + exp(-a)) * b;
                   s.sums[0] = s.sums[0] + by_values(h, s.blocks[2]());
                 }});
  all.push_back({"scores of two products",
                 {d, d},
                 {some, some, values},
                 {top, total, sum},
                 [=](BlockStep& s) {
                   const Value scores =
                       by_keys(s.own[0], s.blocks[0]()) + by_keys(s.own[1], s.blocks[1]());
                   const auto [p, shrink] = softmax(s, 0, scores * 0.0625f);
                   s.sums[2] = s.sums[2] * shrink + by_values(p, s.blocks[2]());
                 }});
  all.push_back(
      {"two values", {d}, {some, values, values}, {top, total, sum, sum}, [=](BlockStep& s) {
         const auto [p, shrink] = softmax(s, 0, by_keys(s.own[0], s.blocks[0]()) * 0.0625f);
         s.sums[2] = s.sums[2] * shrink + by_values(p, s.blocks[1]());
         s.sums[3] = s.sums[3] * shrink + by_values(p, s.blocks[2]());
       }});
  for (const bool one_by_one : {true, false})
    all.push_back({one_by_one ? "differential attention, one by one" : "differential attention",
                   {d, d},
                   {some, some, values},
                   {top, total, top, total, sum, sum},
                   [=](BlockStep& s) {
                     const auto scores = [&](std::size_t i) {
                       return by_keys(s.own[i], s.blocks[i]()) * 0.0625f;
                     };
                     const Value v = s.blocks[2]();
                     const auto add = [&](std::size_t i, const Softmax& x) {
                       s.sums[4 + i] = s.sums[4 + i] * x.shrink + by_values(x.p, v);
                     };
                     if (one_by_one) {
                       add(0, softmax(s, 0, scores(0)));
                       add(1, softmax(s, 2, scores(1)));
                       return;
                     }
                     const Value first = scores(0), second = scores(1);
                     const Softmax x = softmax(s, 0, first), y = softmax(s, 2, second);
                     add(0, x);
                     add(1, y);
                   }});
  all.push_back({"three in a row", {d}, {some, square, values}, {sum}, [=](BlockStep& s) {
                   const Value a = maximum(by_keys(s.own[0], s.blocks[0]()), 0.0f);
                   const Value b = maximum(by_values(a, s.blocks[1]()) * 0.0625f, 0.0f);
                   s.sums[0] = s.sums[0] + by_values(b, s.blocks[2]());
                 }});
  all.push_back({"dq",
                 {d, d, 1, 1},
                 {some, some},
                 {sum},
                 [=](BlockStep& s) {
                   const Value keys = s.blocks[0](), l = s.own[2].astype(f32),
                               delta = s.own[3].astype(f32);
                   const Value scores = by_keys(s.own[0], keys) * 0.0625f;
                   const Value ds_ = exp2(scores - l) * (by_keys(s.own[1], s.blocks[1]()) - delta);
                   s.sums[0] = s.sums[0] + dot((ds_ * 0.0625f).astype(t), keys);
                 },
                 true});
  all.push_back({"dk and dv",
                 {d, d, 1, 1},
                 {some, some},
                 {sum, sum},
                 [=](BlockStep& s) {
                   const Value q = s.blocks[0](), g = s.blocks[1](), l = s.own[2].astype(f32),
                               delta = s.own[3].astype(f32);
                   const Value p = exp2(by_keys(s.own[0], q) * 0.0625f - l);
                   const Value ds_ = p * (by_keys(s.own[1], g) - delta) * 0.0625f;
                   s.sums[0] = s.sums[0] + dot(ds_.astype(t), q);
                   s.sums[1] = s.sums[1] + dot(p.astype(t), g);
                 },
                 true});
  all.push_back({"keys that are values",
                 {d},
                 {some},
                 {top, total, sum},
                 [=](BlockStep& s) {
                   const Value keys = s.blocks[0]();
                   const auto [p, shrink] = softmax(s, 0, by_keys(s.own[0], keys) * 0.0625f);
                   s.sums[2] = s.sums[2] * shrink + dot(p.astype(t), keys);
                 },
                 true});
  return all;
}

}  // namespace palladium::test
