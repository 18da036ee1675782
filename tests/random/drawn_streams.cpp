// Arrays that stream through a program and are folded, and parts whose places data says.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "tests/random/drawn_kernels.hpp"
#include "tests/support/tracing.hpp"

namespace palladium::test {
namespace {

using pl::_;

enum class Held { carry, output, registers, shared };
enum class Fold { sum, max, both };

struct Stream {
  DType type;
  int block_rows, block_columns, steps, rows, columns;
  Held held;
  Fold fold;
  bool by_axis, per_row, weighted, masked, varies, unrolled;

  DType held_type() const { return !type.is_float() ? i32 : type == f64 ? f64 : f32; }
  Shape held_shape() const { return {block_rows, per_row ? 1 : block_columns}; }
  std::string words() const {
    const char* const places[] = {"carried", "in the output", "in registers", "in shared memory"};
    const char* const folds[] = {"sum", "maximum", "sum and maximum"};
    return fmt::format("a {} of {}, {}x{} in blocks of {}x{}, {}{}{}{}{}{}{}",
                       folds[static_cast<int>(fold)], type.name(), rows, columns, block_rows,
                       block_columns, places[static_cast<int>(held)],
                       by_axis ? ", over an axis" : "", per_row ? ", of each row" : "",
                       weighted ? ", weighted" : "", masked ? ", masked" : "",
                       varies ? ", of any length" : "", unrolled ? ", unrolled" : "");
  }
};

Stream drawn_stream(Random& random) {
  Stream s = {};
  s.type = random.pick({f32, f32, f16, bf16, f64, i32, i16, i8});
  s.block_rows = random.pick({1, 4, 8, 16, 32});
  s.block_columns = random.pick({16, 32, 64, 100, 128});
  s.steps = random.between(1, 5);
  s.held = random.pick({Held::carry, Held::output, Held::registers, Held::shared});
  s.by_axis = random.chance(50);
  s.fold = s.held == Held::carry && !s.by_axis ? random.pick({Fold::sum, Fold::max, Fold::both})
                                               : random.pick({Fold::sum, Fold::max});
  s.per_row = random.chance(60);
  s.weighted = random.chance(40);
  s.masked = random.chance(40);
  s.varies = !s.by_axis && random.chance(30);
  s.unrolled = !s.by_axis && !s.varies && random.chance(30);
  s.rows = s.block_rows * random.between(1, 4);
  s.rows = std::max(1, s.rows - random.pick({0, 0, 1, 3}));
  s.columns = s.block_columns * s.steps;
  s.columns -= random.pick({0, 0, 1, 8});
  return s;
}

class StreamBody {
 public:
  StreamBody(const Stream& s, const Refs& refs)
      : s_(s),
        x_(refs[0]),
        weights_(refs[s.weighted ? 1 : 0]),
        output_(refs[s.weighted ? 2 : 1]),
        held_(s.held == Held::registers || s.held == Held::shared ? refs[s.weighted ? 3 : 2]
                                                                  : output_) {}

  void run() const;

 private:
  template <class F, class... Init>
  auto over_steps(F f, const Init&... init) const {
    if (s_.unrolled) return loop(0, s_.steps, {.unroll = 2}, f, init...);
    return loop(0, s_.varies ? minimum(program_id(0) + 1, s_.steps) : Value(s_.steps), f, init...);
  }
  Value start(Fold fold) const {
    return full(s_.held_shape(), fold == Fold::max ? -100 : 0, s_.held_type());
  }

  /// What step i folds, in the type of what is held.
  Value part(const Value& i) const {
    const Slice columns = ds(i * s_.block_columns, s_.block_columns);
    const Value kept = (iota(i32, {s_.block_rows, s_.block_columns}, 1) + i) % 3 != 1;
    Value v =
        s_.masked ? load(x_.at({_, columns}), {.mask = kept, .other = 1}) : Value(x_[{_, columns}]);
    v = v.astype(s_.held_type());
    return s_.weighted ? v * Value(weights_[{_, columns}]).astype(s_.held_type()) : v;
  }
  Value next(const Value& held, const Value& v) const { return next(held, v, s_.fold); }
  Value next(const Value& held, const Value& v, Fold fold) const {
    const ReduceOptions row{.axis = {1}, .keepdims = true};
    if (fold == Fold::max) return maximum(held, s_.per_row ? pl::max(v, row) : v);
    return held + (s_.per_row ? pl::sum(v, row) : v);
  }

  Value carried() const {
    if (s_.fold != Fold::both)
      return over_steps([&](Index i, Value held) { return next(held, part(i)); }, start(s_.fold));
    const auto both = [&](Index i, Value sum, Value top) {
      const Value v = part(i);
      return carry(next(sum, v, Fold::sum), next(top, v, Fold::max));
    };
    const auto [sum, top] = over_steps(both, start(Fold::sum), start(Fold::max));
    return sum - top;
  }

  void by_axis() const {
    const Value step = program_id(1);
    when(step == 0, [&] { held_[_] = start(s_.fold); });
    held_[_] = next(held_[_], part(Value(0)));
    if (s_.held == Held::registers || s_.held == Held::shared)
      when(step == s_.steps - 1, [&] { output_[_] = held_[_] + 1; });
  }

  const Stream& s_;
  const Ref x_, weights_, output_, held_;
};

void StreamBody::run() const {
  if (s_.by_axis) return by_axis();
  if (s_.held == Held::carry) return void(output_[_] = carried());
  held_[_] = start(s_.fold);
  over_steps([&](Index i) { held_[_] = next(held_[_], part(i)); });
  if (s_.held != Held::output) output_[_] = held_[_];
}

graph::Graph recorded(const Stream& s, const CompilerParams& params, const Sizes& sizes) {
  const Dim rows = sizes("rows", s.rows),
            columns = s.by_axis ? sizes("columns", s.columns) : Dim(s.columns);
  const std::int64_t width = s.by_axis ? s.block_columns : s.block_columns * s.steps;
  const auto across = [=](Index j) { return s.by_axis ? j : Index(0); };
  std::vector<BlockSpec> specs{{{s.block_rows, width},
                                [=](Index i, Index j) {
                                  return Indices{i, across(j)};
                                },
                                {.fill = 0}}};
  std::vector<trace::ArgumentType> types{array({rows, columns}, s.type)};
  if (s.weighted) {
    specs.push_back({{1, width},
                     [=](Index, Index j) {
                       return Indices{0, across(j)};
                     },
                     {.fill = 0}});
    types.push_back(array({1, columns}, s.type));
  }
  ScratchTypes scratch;
  if (s.held == Held::shared) scratch = {gpu::SMEM(s.held_shape(), s.held_type())};
  if (s.held == Held::registers) scratch = {gpu::REGS(s.held_shape(), s.held_type())};
  const Dim held_columns = s.held_shape()[1];
  return traced([=](Refs refs) { StreamBody(s, refs).run(); },
                {.name = "stream",
                 .out_type = ShapeDtype{{rows, held_columns}, s.held_type()},
                 .grid = {cdiv(rows, s.block_rows), s.by_axis ? cdiv(columns, width) : Dim(1)},
                 .in_specs = specs,
                 .out_specs = {{{s.block_rows, held_columns.value()},
                                [](Index i, Index) {
                                  return Indices{i, 0};
                                }}},
                 .scratch_types = scratch,
                 .compiler_params = params},
                types);
}

// ---- parts

struct SaidParts {
  DType type;
  int most, columns, rows, programs;
  bool multiplies;

  std::string words() const {
    return fmt::format("parts of {}, at most {} rows of {}x{}, {} programs{}", type.name(), most,
                       rows, columns, programs, multiplies ? ", multiplied" : "");
  }
};

SaidParts drawn_parts(Random& random) {
  SaidParts p = {};
  p.type = random.pick({f32, f16, bf16});
  p.most = random.pick({8, 16, 48, 64});
  p.columns = random.pick({8, 16, 64});
  p.rows = p.most + random.between(1, 60);
  p.programs = random.between(1, 5);
  p.multiplies = random.chance(40);
  return p;
}

/// Rows from seven times what is said on, at least one of them.
Indices part_of(const SaidParts& p, const Index& i, const Ref& said) {
  const Value start = minimum(maximum(Value(said[i]) * 7, 0), p.rows - p.most);
  const Value size = minimum(maximum(Value(said[i + 1]) * 5, 1), p.most);
  return {ds(start, size), 0};
}

graph::Graph recorded(const SaidParts& p, const CompilerParams& params, const Sizes& sizes) {
  const BlockSpec part{{BoundedSlice(p.most), p.columns},
                       [=](Index i, Ref said) { return part_of(p, i, said); },
                       {.fill = 0}};
  const BlockSpec weights{{p.columns, p.columns}, [](Index, Ref) { return Indices{0, 0}; }};
  return traced(
      [=](Ref, Ref x, Ref w, Ref o) {
        const Value v = x[_];
        o[_] = p.multiplies ? dot(v, w[_], {.preferred_element_type = f32})
                            : v.astype(f32) * 2.f + Value(w[{ds(0, 1), _}]).astype(f32);
      },
      {.name = "parts",
       .out_type = ShapeDtype{{p.most * p.programs, p.columns}, f32},
       .num_scalar_prefetch = 1,
       .grid = {p.programs},
       .in_specs = {part, weights},
       .out_specs = {{{p.most, p.columns},
                      [](Index i, Ref) {
                        return Indices{i, 0};
                      }}},
       .compiler_params = params},
      {array({p.programs + 1}, i32), array({sizes("rows", p.rows), p.columns}, p.type),
       array({p.columns, p.columns}, p.type)});
}

}  // namespace

OfFamily draw_stream(Random& random, const CompilerParams& params) {
  const Stream s = drawn_stream(random);
  return {"stream", s.words(), [=](const Sizes& sizes) { return recorded(s, params, sizes); }};
}

OfFamily draw_parts(Random& random, const CompilerParams& params) {
  const SaidParts p = drawn_parts(random);
  return {"parts", p.words(), [=](const Sizes& sizes) { return recorded(p, params, sizes); }};
}

}  // namespace palladium::test
