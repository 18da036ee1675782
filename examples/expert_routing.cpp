// Routes tokens to the experts of a mixture: each token goes to the two experts of its largest
// logits, weighted by the softmax of these two; how many tokens an expert gets is counted. Then
// each token's vector is gathered to its places, expert by expert. Compared with plain loops.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "palladium/palladium.hpp"

using pl::_;

namespace {

constexpr std::int64_t tokens = 48, experts = 8, chosen = 2, width = 32, in_block = 16;

pl::Kernel route() {
  return pl::pallas_call(
      [](pl::Ref logits, pl::Ref, pl::Ref expert, pl::Ref weight, pl::Ref counts) {
        const pl::TopK best = pl::top_k(logits[_], chosen);
        expert[_] = best.indices;
        weight[_] = pl::softmax(best.values, {.axis = 1});
        pl::atomic_add(counts.at(best.indices), pl::full({in_block, chosen}, 1, pl::i32));
      },
      [](pl::ShapeDtype logits, pl::ShapeDtype counts) {
        const auto block = [](std::int64_t columns) {
          return pl::BlockSpec{{in_block, columns},
                               [](pl::Index i) { return pl::Indices{i, 0}; }};
        };
        const pl::Dim n = logits.shape[0];
        return pl::PallasCallOptions{
            .name = "route",
            .out_type = {{{n, chosen}, pl::i32}, {{n, chosen}, pl::f32}, counts},
            .grid = {pl::cdiv(n, in_block)},
            .in_specs = {block(experts), pl::BlockSpec()},
            .out_specs = {block(chosen), block(chosen), pl::BlockSpec()},
            .input_output_aliases = {{1, 2}}};
      });
}

// Row i of the result is the token's that stands at place i.
pl::Kernel gather() {
  const pl::BlockSpec rows{{pl::Indirect(in_block), width}, [](pl::Index i, pl::Ref token) {
                             return pl::Indices{pl::Value(token[pl::ds(i * in_block, in_block)]),
                                                0};
                           }};
  const pl::BlockSpec block{{in_block, width},
                            [](pl::Index i, pl::Ref) { return pl::Indices{i, 0}; }};
  return pl::pallas_call([](pl::Ref, pl::Ref x, pl::Ref o) { o[_] = x[_]; },
                         {.name = "gather",
                          .out_type = {{tokens * chosen, width}, pl::f32},
                          .num_scalar_prefetch = 1,
                          .grid = tokens * chosen / in_block,
                          .in_specs = {rows},
                          .out_specs = {block}});
}

float logit(std::int64_t t, std::int64_t e) {
  return static_cast<float>((t * 37 + e * 101) % 97) / 16;
}

}  // namespace

int main() try {
  const pl::Array logits = pl::Array::empty({tokens, experts}, pl::f32);
  const pl::Array x = pl::Array::empty({tokens, width}, pl::f32);
  const pl::Array none = pl::Array::full({experts}, pl::i32, 0);
  for (std::int64_t i = 0; i < logits.size(); ++i)
    logits.data<float>()[i] = logit(i / experts, i % experts);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i);
  const pl::Device device = pl::default_device();
  const auto routed = route()(logits.to(device), none.to(device)).unpack<3>();
  const pl::Array expert = routed[0].to(pl::Device::cpu()), weight = routed[1].to(pl::Device::cpu()),
                  counts = routed[2].to(pl::Device::cpu());

  int wrong = 0;
  std::vector<std::int32_t> expected(experts);
  std::vector<std::vector<std::int32_t>> of_expert(experts);
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::int64_t first = 0, second = -1;
    for (std::int64_t e = 1; e < experts; ++e)
      if (logit(t, e) > logit(t, first)) first = e;
    for (std::int64_t e = 0; e < experts; ++e)
      if (e != first && (second < 0 || logit(t, e) > logit(t, second))) second = e;
    const std::int64_t best[] = {first, second};
    const float share = 1 / (1 + std::exp(logit(t, second) - logit(t, first)));
    for (std::int64_t k = 0; k < chosen; ++k) {
      ++expected[static_cast<std::size_t>(best[k])];
      wrong += expert.data<std::int32_t>()[t * chosen + k] != best[k];
      const float w = weight.data<float>()[t * chosen + k];
      wrong += !(std::abs(w - (k == 0 ? share : 1 - share)) < 1e-5f);
      of_expert[static_cast<std::size_t>(expert.data<std::int32_t>()[t * chosen + k])].push_back(
          static_cast<std::int32_t>(t));
    }
  }
  for (std::size_t e = 0; e < experts; ++e)
    wrong += counts.data<std::int32_t>()[e] != expected[e];

  const pl::Array token = pl::Array::empty({tokens * chosen}, pl::i32);
  std::int64_t place = 0;
  for (const std::vector<std::int32_t>& list : of_expert)
    for (const std::int32_t t : list) token.data<std::int32_t>()[place++] = t;
  const pl::Array gathered = gather()(token.to(device), x.to(device));
  const pl::Array o = gathered.to(pl::Device::cpu());
  for (std::int64_t i = 0; i < o.size(); ++i)
    wrong += o.data<float>()[i] !=
             x.data<float>()[token.data<std::int32_t>()[i / width] * width + i % width];
  std::printf("expert_routing: %lld tokens to %lld experts on %s, %d numbers wrong\n",
              static_cast<long long>(tokens), static_cast<long long>(experts),
              pl::to_string(pl::default_target()), wrong);
  return wrong == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
