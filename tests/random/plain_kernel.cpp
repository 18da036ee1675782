// Bodies as they are recorded.
#include <optional>
#include <utility>

#include "tests/random/plain.hpp"

namespace palladium::test::plain {
namespace {

class Recording {
 public:
  explicit Recording(const std::vector<Ref>& inputs) : inputs_(inputs) {}

  Value run(const Program& p, std::vector<Value> values) const {
    for (const Step& s : p.steps) values.push_back(step(s, values));
    return values[static_cast<std::size_t>(p.result)];
  }

 private:
  Value step(const Step& s, const std::vector<Value>& values) const {
    const auto at = [&](int v) { return values[static_cast<std::size_t>(v)]; };
    const auto input = [&] { return inputs_[static_cast<std::size_t>(s.n)]; };
    const int n = static_cast<int>(s.n);
    switch (s.kind) {
    case Kind::number: return s.dtype(s.n);
    case Kind::counted: return pl::iota(s.dtype, to_shape(s.shape), n);
    case Kind::program: return pl::program_id(n);
    case Kind::loaded: return Value(input()[pl::_]);
    case Kind::loaded_row: return Value(input()[{at(s.a), ellipsis}]);
    case Kind::loaded_at: return Value(input()[{at(s.a), ellipsis}]);
    case Kind::cast: return at(s.a).astype(s.dtype);
    case Kind::coerced: return coerced(at(s.a), s.shape);
    case Kind::unary: return unary(n, at(s.a));
    case Kind::binary: return binary(n, at(s.a), at(s.b));
    case Kind::compared: return compared(n, at(s.a), at(s.b));
    case Kind::chosen: return pl::where(at(s.a), at(s.b), at(s.c));
    case Kind::transposed: return pl::transpose(at(s.a));
    case Kind::leading: return pl::broadcast_to(at(s.a), to_shape(s.shape));
    case Kind::summed: return pl::sum(at(s.a), {.axis = n});
    case Kind::largest: return pl::max(at(s.a), {.axis = n});
    case Kind::smallest: return pl::min(at(s.a), {.axis = n});
    case Kind::place_of_largest: return pl::argmax(at(s.a), {.axis = n});
    case Kind::accumulated: return pl::cumsum(at(s.a), {.axis = n, .reverse = s.m != 0});
    case Kind::product: return pl::dot(at(s.a), at(s.b));
    case Kind::flipped: return pl::flip(at(s.a), n);
    case Kind::doubled: return pl::concatenate({at(s.a), at(s.a)});
    case Kind::part: return at(s.a)[{ds(s.n, s.m), ellipsis}];
    case Kind::part_at: return at(s.a)[{ds(at(s.b), s.m), ellipsis}];
    case Kind::taken: return pl::take(at(s.a), at(s.b));
    case Kind::looped:
      return pl::loop(
          0, s.m,
          [&](Index i, Value carried) {
            std::vector<Value> all = values;
            all.insert(all.end(), {i, carried});
            return run(s.inside[0], all);
          },
          at(s.a));
    case Kind::branched:
      return pl::switch_(
          at(s.a), [&] { return run(s.inside[0], values); },
          [&] { return run(s.inside[1], values); });
    }
    return {};
  }

  static Value coerced(const Value& v, const Sizes& to) {
    const Shape own = v.shape();
    if (own.size() == count(to)) return pl::reshape(v, to_shape(to));
    return pl::broadcast_to(own.rank() == 0 ? v : pl::sum(v), to_shape(to));
  }
  static Value unary(int n, const Value& v) {
    if (v.dtype().is_bool()) return ~v;
    switch (n) {
    case 0: return -v;
    case 1: return pl::abs(v);
    case 2: return pl::floor(v);
    default: return pl::sqrt(pl::abs(v));
    }
  }
  static Value binary(int n, const Value& x, const Value& y) {
    if (x.dtype().is_bool()) return n == 0 ? x & y : n == 1 ? x | y : x ^ y;
    switch (n) {
    case 0: return x + y;
    case 1: return x - y;
    case 2: return x * y;
    case 3: return pl::maximum(x, y);
    case 4: return pl::minimum(x, y);
    case 5: return x.dtype().is_float() ? x / (pl::abs(y) + 1) : x & y;
    case 6: return x | y;
    case 7: return x ^ y;
    case 8: return x / y;
    default: return x % y;
    }
  }
  static Value compared(int n, const Value& x, const Value& y) {
    return n == 0 ? x < y : n == 1 ? x <= y : n == 2 ? x == y : x != y;
  }

  const std::vector<Ref>& inputs_;
};

}  // namespace

Kernel kernel_of(const Plan& plan) {
  const std::size_t out_rank = plan.output_axes();
  const auto spec = [&](std::size_t rank, std::optional<double> with) {
    std::vector<BlockDim> block;
    for (std::size_t d = 0; d < rank; ++d) block.emplace_back(plan.axes[d].block);
    const auto map = [rank](auto... ids) {
      std::vector<Value> all{ids...};
      all.resize(rank);
      return Indices(all);
    };
    return BlockSpec::of(block, IndexMap(map), {.fill = with});
  };
  PallasCallOptions o{.name = "plain"};
  Shape out;
  for (std::size_t d = 0; d < plan.axes.size(); ++d) o.grid.sizes.push_back(plan.axes[d].programs);
  for (std::size_t d = 0; d < out_rank; ++d) out.push_back(plan.axes[d].extent);
  o.out_type = ShapeDtype{out, plan.output};
  for (const DType d : plan.inputs)
    o.in_specs.push_back(spec(plan.axes.size(), d.is_bool() ? 1 : fill));
  o.out_specs = {spec(out_rank, std::nullopt)};
  o.compiler_params.fma = false;  // so that every operation rounds
  o.interpret.params.detect_races = plan.seed % 2 == 0;
  return pallas_call(
      [plan](Refs refs) {
        std::vector<Ref> inputs;
        for (std::size_t i = 0; i < plan.inputs.size(); ++i) inputs.push_back(refs[i]);
        const Ref output = refs[plan.inputs.size()];
        const Value result = Recording(inputs).run(plan.body, {});
        if (!plan.accumulates) {
          output[pl::_] = result;
          return;
        }
        pl::when(pl::program_id(1) == 0, [&] { output[pl::_] = pl::zeros_like(output); });
        output[pl::_] += result;
      },
      o);
}

}  // namespace palladium::test::plain
