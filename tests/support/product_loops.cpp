#include "tests/support/product_loops.hpp"

#include <algorithm>

namespace palladium::test {

using pl::_;

ProductLoops ProductLoops::drawn(Random& random) {
  ProductLoops p;
  p.dtype = random.pick({f16, bf16, f8e4m3, f32});
  p.bm = random.pick({64, 64, 128});
  p.bn = random.pick({16, 32, 64, 128});
  p.bk = random.pick({32, 64});
  p.num_warps = random.pick({0, 0, 4, 8});
  p.num_stages = random.pick({0, 0, 2, 3, 4});
  p.persistent = random.chance(50);
  p.trans_b = random.chance(50);
  p.is_static = random.chance(40);
  p.adds_to_output = random.chance(30);
  p.converts = p.dtype != f32 && random.chance(15);
  p.skips = random.chance(20);
  if (random.chance(50)) p.specialize = random.chance(50);
  for (int i = random.pick({0, 1, 1, 2}); i > 0; --i) p.cuts.push_back(random.below(9));
  std::ranges::sort(p.cuts);
  p.by_program = random.chance(50);
  if (random.chance(40)) {
    p.split_k = random.pick({2, 3, 4, 8});
    p.persistent = random.chance(5);
    if (random.chance(95)) p.cuts.clear();
  }
  return p;
}

std::string ProductLoops::text() const {
  std::string all = std::string(dtype.name()) + " " + std::to_string(bm) + "x" +
                    std::to_string(bn) + "x" + std::to_string(bk) + ", " +
                    std::to_string(num_warps) + " warps, " + std::to_string(num_stages) + " stages";
  if (split_k > 0) all += ", split among " + std::to_string(split_k);
  if (persistent) all += ", persistent";
  if (trans_b) all += ", b [n, k]";
  if (is_static) all += ", static";
  if (adds_to_output) all += ", adds to the output";
  if (converts) all += ", converts";
  if (in_smem) all += ", output in shared memory";
  if (skips) all += ", skips";
  if (specialize) all += *specialize ? ", a producer" : ", no producer";
  for (const int cut : cuts) all += ", cut at " + std::to_string(cut);
  return all + (by_program ? " by program" : "");
}

PallasCallOptions ProductLoops::options(const ShapeDtype& a, const ShapeDtype& b) const {
  Dim m = a.shape[0], k = a.shape[1], n = b.shape[trans_b ? 0 : 1];
  require_equal(k, b.shape[trans_b ? 1 : 0]);
  if (is_static) m = m.value(), k = k.value(), n = n.value();
  const BlockDim all =
      k.is_static() ? BlockDim(align_to(k.value(), bk)) : bounded(k, align_to(most_k, bk));
  const bool turned = trans_b;
  const BlockSpec left{{bm, all}, [](Index i, Index) { return Indices{i, 0}; }, {.fill = 0}};
  const BlockSpec right{{turned ? BlockDim(bn) : all, turned ? all : BlockDim(bn)},
                        [=](Index, Index j) {
                          return turned ? Indices{j, 0} : Indices{0, j};
                        },
                        {.fill = 0}};
  const auto place = [](Index i, Index j) { return Indices{i, j}; };
  const BlockSpec tile{{bm, bn}, place};
  PallasCallOptions options{
      .name = "product_loops",
      .out_type = {{m, n}, f32},
      .grid = {cdiv(m, bm), cdiv(n, bn)},
      .in_specs = {left, right},
      .out_specs = {BlockSpec{
          {bm, bn}, place, {.memory_space = in_smem ? plgpu::SMEM : MemorySpace{}}}},
      .compiler_params = {.num_warps = num_warps,
                          .num_stages = num_stages,
                          .warp_specialize = specialize,
                          .persistent = persistent,
                          .split_k = split_k}};
  if (!adds_to_output) return options;
  options.in_specs.push_back(tile);
  options.input_output_aliases = {{2, 0}};
  return options;
}

Kernel ProductLoops::kernel() const {
  return pallas_call([p = *this](std::span<const ShapeDtype> types) -> Call {
    Dim k = types[0].shape[1];
    if (p.is_static) k = k.value();
    const auto compute = [=](Ref a, Ref b, Ref o) {
      const DotOptions how{.trans_b = p.trans_b, .precision = p.dtype == f32 ? tf32 : ieee};
      const auto product = [&](Value l) {
        const Slice now = ds(l * p.bk, p.bk);
        Value left = a[{_, now}];
        if (p.converts) left = (left.astype(f32) * 2.0f).astype(p.dtype);
        return dot(left, p.trans_b ? b[{_, now}] : b[{now, _}], how);
      };
      const auto add = [&](Index l, Value sum) -> Value {
        if (!p.skips) return sum + product(l);
        return cond(
            l % 3 != 1, [&] { return sum + product(l); }, [&] { return sum; });
      };
      const Dim steps = cdiv(k, p.bk);
      const Value end = steps.is_static() ? Value(steps.value()) : dim_as_value(steps);
      Value sum = p.adds_to_output ? Value(o[_]) : zeros({p.bm, p.bn}, f32);
      Value from = 0;
      for (const int cut : p.cuts) {
        const Value until =
            minimum(end, p.by_program ? program_id(0) + cut : Value(cut).astype(i32));
        sum = 2.0f * loop(from, until, add, sum);
        from = until;
      }
      o[_] = loop(from, end, add, sum);
    };
    if (p.adds_to_output)
      return {[=](Ref a, Ref b, Ref, Ref o) { compute(a, b, o); }, p.options(types[0], types[1])};
    return {compute, p.options(types[0], types[1])};
  });
}

std::vector<ArgType> ProductLoops::types(std::int64_t m, std::int64_t n, std::int64_t k) const {
  const auto size = [&](const char* name, std::int64_t is) {
    return is_static ? Dim(is) : dim(name, {.multiple_of = 16, .at_most = is});
  };
  const Dim rows = size("m", m), columns = size("n", n), depth = size("k", k);
  std::vector<ArgType> all{
      ShapeDtype{{rows, depth}, dtype},
      ShapeDtype{trans_b ? Shape{columns, depth} : Shape{depth, columns}, dtype}};
  if (adds_to_output) all.push_back(ShapeDtype{{rows, columns}, f32});
  return all;
}

Array ProductLoops::expected(const Array& a, const Array& b, const Array& o) const {
  const std::int64_t m = a.shape()[0].value(), k = a.shape()[1].value(),
                     n = b.shape()[trans_b ? 0 : 1].value(), steps = cdiv(k, bk);
  const Array sums = Array::full({m, n}, f32, 0);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = adds_to_output ? o.data<float>()[i * n + j] : 0;
      std::int64_t from = 0;
      const auto add = [&](std::int64_t until) {
        for (std::int64_t l = from * bk; l < std::min(until * bk, k); ++l)
          if (!skips || l / bk % 3 != 1)
            sum += (converts ? 2 : 1) * a.data<float>()[i * k + l] *
                   b.data<float>()[trans_b ? j * k + l : l * n + j];
        from = std::max(from, until);
      };
      for (const int cut : cuts) {
        add(std::min(steps, cut + (by_program ? i / bm : 0)));
        sum *= 2;
      }
      add(steps);
      sums.data<float>()[i * n + j] = sum;
    }
  return sums;
}

}  // namespace palladium::test
